//! Calls without ids, and the results that answer them.
//!
//! Older versions name neither, so a call is named by its place in the conversation, and a result answers the first
//! open call of its tool.

use komado_core::message::Call;
use std::collections::HashSet;

/// The calls of a conversation, in order.
#[derive(Debug, Default)]
pub(super) struct Pairing {
    taken: HashSet<String>,
    made: usize,
    open: Vec<(String, String)>,
}

impl Pairing {
    /// Goes on where the calls `open` wait. Knows the ids that are given somewhere, so that none is made up twice.
    pub(super) fn after(open: &[Call], mut taken: HashSet<String>) -> Self {
        taken.extend(open.iter().map(|call| call.id.clone()));
        let open = open.iter().map(|call| (call.id.clone(), call.name.clone())).collect();
        Self { taken, made: 0, open }
    }

    /// Whoever speaks now, calls of before wait no longer.
    pub(super) fn turn(&mut self) {
        self.open.clear();
    }

    /// The id of the next call, which may have one.
    pub(super) fn call(&mut self, given: Option<String>, name: &str) -> String {
        let id = given.unwrap_or_else(|| {
            loop {
                let id = format!("call_{}", self.made);
                self.made += 1;
                if !self.taken.contains(&id) {
                    break id;
                }
            }
        });
        self.open.push((id.clone(), name.to_owned()));
        id
    }

    /// The id and the tool of the call that a result answers.
    pub(super) fn result(&mut self, given: Option<String>, name: Option<String>) -> (String, Option<String>) {
        let by_id = given.as_ref().and_then(|id| self.open.iter().position(|(open, _)| open == id));
        let by_name = || name.as_ref().and_then(|name| self.open.iter().position(|(_, tool)| tool == name));
        let first = || (given.is_none() && !self.open.is_empty()).then_some(0);
        match by_id.or_else(|| if given.is_none() { by_name() } else { None }).or_else(first) {
            Some(at) => {
                let (id, tool) = self.open.remove(at);
                (id, name.or(Some(tool)))
            }
            None => (given.unwrap_or_default(), name),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_answer_the_first_open_call_of_their_tool() {
        let mut pairing = Pairing::after(&[], HashSet::from(["call_1".to_owned()]));
        let ids = ["read", "grep", "read"].map(|name| pairing.call(None, name));
        assert_eq!(ids, ["call_0", "call_2", "call_3"]);
        let mut answers = |name: &str| pairing.result(None, Some(name.into())).0;
        assert_eq!([answers("grep"), answers("read"), answers("read")], ["call_2", "call_0", "call_3"]);
        assert_eq!(answers("read"), "");
    }
}
