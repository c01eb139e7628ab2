//! How results are printed: as lines for people, or as JSON for programs.

mod ask;
mod change;
mod journal;
mod key;
mod model;
mod output;
mod playbook;
pub(crate) mod recall;
mod session;
pub(crate) mod task;
pub(crate) mod thread;
mod user;
pub(crate) mod window;

use crate::fault::Outcome;
use crate::paper::Paper;
use serde::Serialize;

/// A result that can be printed.
pub(crate) trait Render: Serialize {
    /// For people.
    fn text(&self, paper: &mut Paper) -> Outcome;

    /// For programs: one line.
    fn json(&self, paper: &mut Paper) -> Outcome {
        paper.json(self)
    }
}

/// `session` or `session/thread`, as a command line takes it.
fn address(session: &str, thread: &str) -> String {
    if thread == "root" { session.to_owned() } else { format!("{session}/{thread}") }
}

/// One line of JSON for each item of a list.
fn each<T: Serialize>(paper: &mut Paper, items: &[T]) -> Outcome {
    items.iter().try_for_each(|item| paper.json(item))
}
