//! Where a playbook stands, as the root thread's journal has it.

use super::vars::Place;
use crate::error::{Error, Result};
use komado_core::Seq;
use komado_core::raw::Raw;
use komado_engine::Thread;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// What the notes of playbooks are about.
pub const ABOUT: &str = "playbook";

/// A note: written before a node acts.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub(super) struct Note {
    pub(super) playbook: String,
    pub(super) digest: String,
    /// The node that is about to act.
    pub(super) node: String,
    /// The threads it works in, the root first.
    pub(super) stack: Vec<String>,
    /// The last entry of the last of them before the node acted.
    pub(super) at: Seq,
    /// The variables, when they changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) vars: Option<Map<String, Value>>,
    /// The note that has them, when they did not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) vars_at: Option<Seq>,
    /// The last reply of the model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) said: Option<Place>,
    /// The last answer of a tool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) told: Option<Place>,
    /// The thread that is about to be begun.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) child: Option<String>,
    /// The last node that answers whatever was said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) answers: Option<String>,
    /// True when whoever wrote it rests, and has begun none of the calls that wait.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) resting: bool,
}

impl Note {
    /// As it is kept.
    pub(super) fn raw(&self) -> Result<Raw> {
        let text = serde_json::to_string(self).and_then(Raw::parse);
        text.map_err(|why| Error::Io(why.into()))
    }

    /// The last one in the root thread, and its entry.
    pub(super) fn last(root: &Thread<'_>) -> Result<Option<(Seq, Self)>> {
        let Some((seq, raw)) = root.noted(ABOUT)? else { return Ok(None) };
        Ok(Some((seq, read(root, seq, &raw)?)))
    }

    /// The variables that it, or the one before it that it names, has.
    pub(super) fn vars(&self, root: &Thread<'_>) -> Result<Map<String, Value>> {
        if let Some(vars) = &self.vars {
            return Ok(vars.clone());
        }
        let Some(seq) = self.vars_at else { return Ok(Map::new()) };
        match root.record(seq)?.entry {
            komado_core::journal::Entry::Note { value, .. } => {
                Ok(read(root, seq, &value)?.vars.unwrap_or_default())
            }
            _ => Ok(Map::new()),
        }
    }
}

/// True when whoever followed a playbook rests, and has begun none of the calls that wait.
pub(crate) fn rests(root: &Thread<'_>) -> Result<bool> {
    Ok(Note::last(root)?.is_some_and(|(_, note)| note.resting))
}

fn read(root: &Thread<'_>, seq: Seq, raw: &Raw) -> Result<Note> {
    serde_json::from_str(raw.get()).map_err(|why| {
        let place = format!("{}/root@{seq}", root.session());
        let why = format!(
            "the note of where the playbook stood cannot be read ({why}); `komado rewind` goes back before it"
        );
        super::Error::Bad { place, why }.into()
    })
}
