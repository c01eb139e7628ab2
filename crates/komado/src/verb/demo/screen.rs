//! The window, moving: redrawn in place on a terminal, told in lines everywhere else.

use crate::fault::Outcome;
use crate::gauge;
use crate::paper::{Ink, Paper, number};
use komado_core::SessionId;
use komado_core::notation::width;
use komado_core::view::Weight;
use std::io::{IsTerminal, stdout};
use std::path::Path;
use std::time::Duration;

/// Turns between lines where nothing can be redrawn.
const EVERY: u32 = 20;
/// How long a turn stays on the screen.
const PAUSE: Duration = Duration::from_millis(15);

/// Where the session is shown while it runs.
pub(super) struct Screen<'p> {
    paper: &'p mut Paper,
    window: u32,
    turns: u32,
    /// True when what was drawn can be drawn over.
    live: bool,
    pause: Option<Duration>,
    drawn: usize,
}

impl<'p> Screen<'p> {
    pub(super) fn new(paper: &'p mut Paper, window: u32, turns: u32, fast: bool) -> Self {
        let live = !paper.json && stdout().is_terminal();
        let pause = (live && !fast).then_some(PAUSE);
        Self { paper, window, turns, live, pause, drawn: 0 }
    }

    /// Says what is about to happen.
    pub(super) fn opening(&mut self, base: &Path, id: &SessionId) -> Outcome {
        if self.paper.json {
            return Ok(());
        }
        let (turns, window) = (number(u64::from(self.turns)), number(u64::from(self.window)));
        let title = self
            .paper
            .ink(Ink::Bold, &format!("{turns} turns of a coding agent in a window of {window} tokens"));
        self.paper.line(title)?;
        let place =
            self.paper.ink(Ink::Dim, &format!("session {id} in {}", super::tour::near(base).display()));
        self.paper.line(place)?;
        self.paper.line("")?;
        self.paper.flush()
    }

    /// A turn is over.
    pub(super) fn turn(&mut self, n: u32, weight: &Weight, says: &str) -> Outcome {
        if self.paper.json || !(self.live || n.is_multiple_of(EVERY) || n == self.turns) {
            return Ok(());
        }
        let cells = self.paper.width.saturating_sub(52).clamp(10, 60);
        let gauge = gauge::line(self.paper, &weight.into(), Some(self.window), cells);
        let turn = format!("turn {n:>4}");
        if !self.live {
            return self.paper.line(format!("{turn}  {gauge}"));
        }
        self.clear()?;
        let says = fit(&says.replace('\n', " "), self.paper.width.saturating_sub(2));
        let says = self.paper.ink(Ink::Dim, &says);
        self.paper.line(format!("{turn}  {gauge}"))?;
        self.paper.line(says)?;
        self.drawn = 2;
        self.paper.flush()?;
        if let Some(pause) = self.pause {
            std::thread::sleep(pause);
        }
        Ok(())
    }

    /// Something happened to the window; this stays on the screen.
    pub(super) fn tell(&mut self, ink: Ink, what: &str, detail: &str) -> Outcome {
        if self.paper.json {
            return Ok(());
        }
        self.clear()?;
        let detail = fit(detail, self.paper.width.saturating_sub(12));
        let what = self.paper.ink(ink, &format!("{what:<9}"));
        self.paper.line(format!("{what}  {detail}"))?;
        self.paper.flush()
    }

    /// Leaves the last picture where it is.
    pub(super) fn done(&mut self) -> Outcome {
        self.drawn = 0;
        self.paper.flush()
    }

    fn clear(&mut self) -> Outcome {
        if self.drawn > 0 {
            write!(self.paper.raw(), "\u{1b}[{}A\u{1b}[J", self.drawn)?;
            self.drawn = 0;
        }
        Ok(())
    }
}

/// As much of `text` as fits in `columns`.
fn fit(text: &str, columns: usize) -> String {
    if width(text) <= columns {
        return text.to_owned();
    }
    let mut fitted = String::new();
    for c in text.chars() {
        fitted.push(c);
        if width(&fitted) >= columns {
            fitted.pop();
            break;
        }
    }
    fitted.push('…');
    fitted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_cut_to_the_columns_there_are() {
        assert_eq!(fit("short", 10), "short");
        assert_eq!(fit("much too long", 6), "much …");
        assert!(width(&fit("小さな窓から見る", 7)) <= 7);
    }
}
