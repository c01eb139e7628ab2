//! The moments on paper: headings, facts, and the window as a bar that moves where there is a terminal.

use super::agent::Result;
use crate::gauge;
use crate::paper::{Ink, Paper};
use crate::render::recall::wrap;
use komado_core::view::Weight;
use std::io::{IsTerminal, stdout};
use std::time::Duration;

pub(super) struct Screen<'p> {
    pub(super) paper: &'p mut Paper,
    /// How long a bar stays before the next is drawn over it; `None` where that cannot be done.
    pause: Option<Duration>,
    bar: Option<String>,
}

impl<'p> Screen<'p> {
    pub(super) fn new(paper: &'p mut Paper, is_fast: bool) -> Self {
        let pause = Duration::from_millis(if is_fast { 0 } else { 25 });
        Self { pause: (!paper.json && stdout().is_terminal()).then_some(pause), paper, bar: None }
    }

    /// The window after a turn.
    pub(super) fn turn(&mut self, n: u32, weight: &Weight, window: u32) -> Result {
        let cells = self.paper.width.saturating_sub(46).clamp(10, 60);
        let bar = gauge::line(self.paper, &weight.into(), Some(window), cells);
        let before = self.bar.replace(format!("  turn {n:>4} {bar}"));
        if let (Some(pause), Some(bar)) = (self.pause, &self.bar) {
            write!(self.paper.raw(), "{}", before.map_or("", |_| "\u{1b}[1A\u{1b}[J"))?;
            self.paper.line(bar)?;
            std::thread::sleep(pause);
        }
        Ok(())
    }

    /// A heading, and what is about to be seen.
    pub(super) fn moment(&mut self, title: &str, story: &str) -> Result {
        self.line("")?;
        self.line(self.paper.ink(Ink::Bold, title))?;
        self.tell("", story)
    }

    /// A word, and what there is to say about it, below the bar as it was last.
    pub(super) fn tell(&mut self, word: &str, text: impl AsRef<str>) -> Result {
        if let Some(bar) = self.bar.take().filter(|_| self.pause.is_none()) {
            self.line(bar)?;
        }
        let ink = if word == "refused" { Ink::Red } else { Ink::Cyan };
        let mut label = self.paper.ink(ink, &format!("  {word:<9} "));
        for (line, _) in wrap(text.as_ref(), &[], self.paper.width.saturating_sub(13)) {
            self.line(std::mem::replace(&mut label, " ".repeat(12)) + &line)?;
        }
        Ok(())
    }

    pub(super) fn line(&mut self, text: impl AsRef<str>) -> Result {
        if self.paper.json { Ok(()) } else { Ok(self.paper.line(text)?) }
    }
}
