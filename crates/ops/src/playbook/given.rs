//! What a run is given: variables, and the folder that the tools work in.
//!
//! It is noted in the root's journal with the first words. A run that goes on after a crash reads it there: the rest of the
//! work must not be done in another folder, or with other words, because not everything was said once more.

use crate::address::Target;
use crate::{Context, Fault, Outcome};
use komado_agent::playbook::RESULTS;
use komado_core::raw::Raw;
use komado_engine::Thread;
use komado_store::Mode;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::path::{Path, PathBuf};

/// What the note of it is about.
const ABOUT: &str = "playbook_run";

/// What a run is given.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Given {
    pub(super) vars: Map<String, Value>,
    /// Where the tools work, from the root of the file system; in a folder of the session's own when left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) folder: Option<PathBuf>,
}

/// A note as it was written by any version. The first ones noted the variables alone, `task` always among them.
#[derive(Deserialize)]
#[serde(untagged)]
enum Noted {
    Given(Given),
    Vars(Map<String, Value>),
}

impl Given {
    /// As a request says.
    pub(super) fn new(vars: Map<String, Value>, folder: Option<&Path>) -> Outcome<Self> {
        if let Some(folder) = folder.filter(|folder| !folder.is_dir()) {
            return Err(Fault::input(format!("--folder {}: there is no such folder", folder.display())));
        }
        if let Some(name) = vars.keys().find(|name| RESULTS.contains(&name.as_str())) {
            let taken = RESULTS.join(", ");
            return Err(Fault::usage(format!(
                "--var {name}: the run sets {taken} itself, and would never read a value that is given; choose another name"
            )));
        }
        let given = Self { vars, folder: folder.map(std::path::absolute).transpose()? };
        // What cannot be noted is refused before anything is made for it.
        given.note()?;
        Ok(given)
    }

    /// What a session notes; `None` when no playbook began in it.
    pub(super) fn of_session(context: &Context, at: Target) -> Outcome<Option<Self>> {
        Self::of(&context.open(&context.find_now(at)?, Mode::Read)?)
    }

    /// What a root thread notes.
    pub(super) fn of(root: &Thread<'_>) -> Outcome<Option<Self>> {
        if !root.id().is_root() {
            return Err(Fault::usage(
                "a playbook is followed from the root thread: name a session, without a thread",
            ));
        }
        let Some((_, noted)) = root.noted(ABOUT)? else { return Ok(None) };
        let noted = serde_json::from_str(noted.get())
            .map_err(|why| Fault::input(format!("what was given to the playbook cannot be read: {why}")))?;
        Ok(Some(match noted {
            Noted::Given(given) => given,
            Noted::Vars(vars) => Self { vars, folder: None },
        }))
    }

    /// This as a note.
    pub(super) fn note(&self) -> Outcome<(&'static str, Raw)> {
        let text = serde_json::to_string(self)
            .map_err(|why| Fault::input(format!("what was given cannot be noted: {why}")))?;
        Ok((ABOUT, Raw::parse(text).map_err(|why| Fault::input(format!("--var: {why}")))?))
    }

    /// This, and of what was given before all that it leaves open.
    pub(super) fn after(self, before: Self) -> Self {
        let mut vars = before.vars;
        vars.extend(self.vars);
        Self { vars, folder: self.folder.or(before.folder) }
    }

    /// The folder to work in after what was given `before`; `None` for one of the session's own. Another one than before
    /// is told, since files that were made are not there.
    pub(super) fn folder(&self, context: &Context, before: Option<&Self>) -> Outcome<Option<PathBuf>> {
        let Some(before) = before else { return Ok(self.folder.clone()) };
        match (&self.folder, &before.folder) {
            (None, Some(old)) if !old.is_dir() => Err(Fault::input(format!(
                "the playbook works in {}, and there is no such folder any more: bring it back, or name another with \
                 --folder",
                old.display()
            ))),
            (None, old) => Ok(old.clone()),
            (Some(new), Some(old)) if is_same(new, old) => Ok(Some(new.clone())),
            (Some(new), old) => {
                let old = old.as_ref().map(|old| format!(", no longer in {}", old.display()));
                let old = old.unwrap_or_default();
                context.note(format!("from here on the playbook works in {}{old}", new.display()));
                Ok(Some(new.clone()))
            }
        }
    }
}

fn is_same(one: &Path, other: &Path) -> bool {
    one == other || one.canonicalize().is_ok_and(|one| other.canonicalize().is_ok_and(|other| one == other))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn read(value: Value) -> Given {
        match serde_json::from_value(value).unwrap() {
            Noted::Given(given) => given,
            Noted::Vars(vars) => Given { vars, folder: None },
        }
    }

    #[test]
    fn a_note_of_variables_alone_is_read_also_with_names_of_our_own_fields() {
        let vars = json!({"task": {"title": "窓"}, "vars": {"n": 1}, "folder": "/x"});
        assert_eq!(read(vars.clone()), Given { vars: vars.as_object().unwrap().clone(), folder: None });
        let new = Given { vars: vars.as_object().unwrap().clone(), folder: Some("/作業".into()) };
        assert_eq!(read(serde_json::to_value(&new).unwrap()), new);
    }

    #[test]
    fn what_is_given_later_wins_and_what_it_leaves_open_stays() {
        let given = |vars: Value, folder: Option<&str>| Given {
            vars: vars.as_object().unwrap().clone(),
            folder: folder.map(PathBuf::from),
        };
        let before = given(json!({"a": 1, "b": 1}), Some("/x"));
        let now = given(json!({"b": 2}), None).after(before.clone());
        assert_eq!(now, given(json!({"a": 1, "b": 2}), Some("/x")));
        assert_eq!(given(json!({}), Some("/y")).after(before).folder, Some("/y".into()));
    }
}
