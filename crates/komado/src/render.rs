//! How results are printed: as lines for people, or as JSON for programs.

mod change;
mod journal;
mod session;

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
