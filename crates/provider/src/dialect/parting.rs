//! One answer made of several: where the next one begins.
//!
//! A gateway that answers some of the model's calls itself asks again, and the client is to see one answer. It begins
//! once, and where content is one text for all of it, words of the next answer are parted from those before.

use crate::event::Event;
use std::borrow::Cow;

/// Between the words of two answers.
const BETWEEN: &str = "\n\n";

/// What was said so far, for answers whose content is one text.
#[derive(Debug, Default)]
pub(super) struct Parting {
    begun: bool,
    spoke: bool,
    due: bool,
}

impl Parting {
    /// The event as it is to be told; `None` when it is not: an answer begins once.
    pub(super) fn told<'a>(&mut self, event: &'a Event) -> Option<Cow<'a, Event>> {
        match event {
            Event::Begun { .. } if self.begun => {
                self.due = self.spoke;
                return None;
            }
            Event::Begun { .. } => self.begun = true,
            Event::Text(text) if !text.is_empty() => {
                self.spoke = true;
                if std::mem::take(&mut self.due) {
                    return Some(Cow::Owned(Event::Text(format!("{BETWEEN}{text}"))));
                }
            }
            _ => {}
        }
        Some(Cow::Borrowed(event))
    }
}
