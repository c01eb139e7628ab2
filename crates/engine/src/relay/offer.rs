//! Our own tools: offered to the model once something has left the view, and answered without the client noticing.
//!
//! They stand behind the client's tools, always with the same bytes, from the first edit on. A client that brings no tools
//! is offered none: it may not expect an answer that calls some. Whether they are offered follows from the view alone, so
//! that it is the same after a restart.

use super::Offer;
use super::session_request::SessionRequest;
use crate::converse::{Library, Toolbox, answers};
use crate::error::Result;
use komado_core::journal::{Group, Mark, Setup};
use komado_core::message::Call;
use komado_core::raw::Raw;
use komado_provider::Dialect;

/// Our tools may take this share of a window at most, as a divisor; in a smaller one they would cost more than they bring.
const SHARE: u64 = 8;

impl SessionRequest<'_> {
    /// True when our tools would be offered if something left the view. A client that has tools of the same names keeps
    /// them to itself.
    pub(super) fn may_offer(&self) -> bool {
        let skim = &self.arrival.skim;
        self.manner.offer == Offer::WhenNeeded
            && skim.fills("tools")
            && !names(&self.request.setup).iter().any(|name| is_own(name))
    }

    /// True when they are offered now.
    pub(super) fn offers_now(&self) -> bool {
        self.has_edits() && self.own_tokens > 0
    }

    /// Tokens of our tools, where they may be offered in a window of so many; 0 where they may not.
    pub(super) fn tokens_of_tools(&self, window: u64) -> u64 {
        if !self.may_offer() {
            return 0;
        }
        let tokens = self.definitions(Dialect::Chat).map_or(0, |text| self.thread.meter().text(&text));
        if window > 0 && tokens * SHARE > window { 0 } else { tokens }
    }

    /// Their definitions in a dialect, without brackets.
    pub(super) fn definitions(&self, dialect: Dialect) -> Option<String> {
        let list = dialect.tools(&Library::offered(Setup::default()))?;
        Some(list.trim().strip_prefix('[')?.strip_suffix(']')?.to_owned())
    }

    /// `setup` with our tools behind its own.
    pub(super) fn offered(&self, setup: &Setup) -> Setup {
        let own = self.definitions(self.arrival.dialect()).unwrap_or_default();
        let list = setup.tools.as_ref().and_then(|tools| tools.get().trim().strip_suffix(']'));
        let tools = list.and_then(|list| Raw::parse(format!("{list},{own}]")).ok());
        Setup { tools: tools.or_else(|| setup.tools.clone()), ..setup.clone() }
    }

    /// Answers calls of our tools and journals the answers.
    pub(super) fn answer_own(&mut self, calls: &[Call], round: u32) -> Result<()> {
        let answers = answers(&self.thread, &mut Library, calls, round)?;
        self.thread.say_all(answers)?;
        self.notes.recalls += u32::try_from(calls.len()).unwrap_or(u32::MAX);
        Ok(())
    }

    /// The next request is ours alone: it brings `answers` that the client does not know of.
    pub(super) fn go_inside(&mut self, answers: usize) {
        let group = Group { elements: 0, entries: u32::try_from(answers).unwrap_or(u32::MAX), times: 1 };
        let end = self.mark.elements;
        self.mark = Mark {
            from: end,
            elements: end,
            groups: vec![group],
            inner: true,
            apart: true,
            digest: self.mark.digest.clone(),
        };
    }
}

/// True for a call of one of our tools.
pub(super) fn is_own(name: &str) -> bool {
    Library.knows(name)
}

/// The names of the tools of a setup.
pub(crate) fn names(setup: &Setup) -> Vec<String> {
    let tools: Vec<serde_json::Value> =
        setup.tools.as_ref().and_then(|tools| serde_json::from_str(tools.get()).ok()).unwrap_or_default();
    let name = |tool: &serde_json::Value| {
        let name = tool["function"]["name"].as_str().or_else(|| tool["name"].as_str());
        name.map(str::to_owned)
    };
    tools.iter().filter_map(name).collect()
}
