//! The way back from the end: somebody said something while the model said what it took for its last words.
//!
//! The course goes back to the `llm` node that was asked last of those that have no prompt of their own: such a node answers
//! whatever was said. One with a prompt would say that again, so a playbook that has no other cannot go back.

use super::course::Course;
use super::node::Llm;
use crate::error::Result;

/// How often a run goes back at most: whoever answers each of a task's words with words of their own never comes to an end.
const MOST: u32 = 10;

impl<'p> Course<'p, '_, '_> {
    /// Remembers an `llm` node that answers whatever was said. One in a child thread is gone with its thread.
    pub(super) fn came_by(&mut self, llm: &Llm) {
        if llm.prompt.is_none() && self.children.is_empty() {
            self.answers = Some(self.node);
        }
    }

    /// The node to go back to; `None` when this is the end, or when the journal says already that it was.
    pub(super) fn way_back(&mut self) -> Result<Option<&'p str>> {
        if self.taken.is_some() {
            return Ok(None);
        }
        let back = self.answers.filter(|_| self.children.is_empty() && self.backs < MOST);
        let thread = self.children.last_mut().unwrap_or(&mut self.root);
        let words_wait = self.hands.before_end(thread, back.is_some())?;
        self.backs += u32::from(words_wait);
        Ok(back.filter(|_| words_wait).map(|node| node.id.as_str()))
    }
}
