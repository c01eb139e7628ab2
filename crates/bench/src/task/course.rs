//! What a measured task does: it reads files, one call after the other, and says that it is done.

use super::super::dice::Dice;
use super::super::words::BenchWords;
use super::ruler::{Ruler, Whose};
use crate::error::{Error, Result};
use komado_provider::scripted::{
    ScriptStep, ScriptedOptions, ScriptedReply, ScriptedServer, ScriptedSteps, ToolCall,
};
use serde_json::json;
use std::path::{Path, PathBuf};

/// Files that calls take turns with.
const FILES: u64 = 16;
/// More lines than any of them has.
const LINES: u64 = 1_000_000;

/// Calls and what they bring.
pub(super) struct TaskCourse {
    /// Where the files are.
    pub(super) folder: PathBuf,
    /// Turns before the last one.
    pub(super) turns: u64,
    /// Calls of each of them.
    pub(super) calls: u64,
    /// The window that the model enforces; none: it reads requests without keeping them.
    pub(super) window: Option<u32>,
}

impl TaskCourse {
    /// Writes files of `least` to `most` bytes.
    pub(super) fn new(
        folder: &Path,
        (turns, calls): (u64, u64),
        (least, most): (usize, usize),
        window: Option<u32>,
    ) -> Result<Self> {
        std::fs::create_dir_all(folder)?;
        let words = BenchWords::new();
        for n in 0..FILES.min(turns * calls) {
            let mut dice = Dice::new(n);
            let bytes = dice.between(least, most);
            std::fs::write(folder.join(name(n)), words.text(&mut dice, bytes))?;
        }
        Ok(Self { folder: folder.to_owned(), turns, calls, window })
    }

    /// A model that has the files read. Whenever it is asked, the process is looked at.
    pub(super) fn model(&self, ruler: &Ruler, whose: Whose) -> Result<ScriptedServer> {
        let mut steps: Vec<ScriptStep> = (0..self.turns).map(|turn| self.step(turn)).collect();
        steps.push(ScriptStep::say("Every file was read. 読み終えました。").always());
        let options = ScriptedOptions {
            window: self.window.map(u64::from),
            script: ScriptedSteps::from(steps),
            keep: 0,
            discard: self.window.is_none(),
            ..ScriptedOptions::default()
        };
        let server = ScriptedServer::start(options)?;
        let ruler = ruler.clone();
        server.watch(move |_| ruler.look(whose));
        Ok(server)
    }

    /// One turn: so many calls at once.
    fn step(&self, turn: u64) -> ScriptStep {
        let call = |n: u64| ToolCall {
            id: Some(format!("call_{n}")),
            name: "read".into(),
            arguments: json!({ "path": name(n), "limit": LINES }).to_string(),
        };
        let calls = (turn * self.calls..(turn + 1) * self.calls).map(call).collect();
        ScriptStep { reply: ScriptedReply { calls, ..ScriptedReply::default() }, ..ScriptStep::default() }
    }

    /// Bytes of the largest request; an error when not every call was made.
    pub(super) fn check(&self, server: &ScriptedServer) -> Result<u64> {
        let seen = server.seen();
        let taken = seen.iter().filter(|request| request.status == 200).count() as u64;
        if server.left() > 0 || taken <= self.turns {
            let why = format!("the measured task ended after {taken} requests of {}", self.turns + 1);
            return Err(Error::failed(why));
        }
        Ok(seen.iter().map(|request| request.bytes).max().unwrap_or(0))
    }
}

fn name(n: u64) -> String {
    format!("part_{:02}.txt", n % FILES)
}
