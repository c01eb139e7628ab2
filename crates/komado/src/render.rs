//! How results are printed: as lines for people, or as JSON for programs.

mod change;
mod journal;
mod key;
mod model;
mod output;
pub(crate) mod recall;
mod session;
mod user;

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

/// One line of JSON for each item of a list.
fn each<T: Serialize>(paper: &mut Paper, items: &[T]) -> Outcome {
    items.iter().try_for_each(|item| paper.json(item))
}
