//! What a measured task does: it reads files, one call after the other, and says that it is done.

use super::super::dice::Dice;
use super::super::words::Words;
use super::ruler::{Ruler, Whose};
use crate::fault::{Exit, Fault, Outcome};
use komado_provider::scripted::{Options, Script, Server, Step};
use serde_json::json;
use std::path::{Path, PathBuf};

/// Files that calls take turns with.
const FILES: u64 = 16;
/// More lines than any of them has.
const LINES: u64 = 1_000_000;

/// Calls and what they bring.
pub(super) struct Course {
    /// Where the files are.
    pub(super) folder: PathBuf,
    /// Calls before the end.
    pub(super) calls: u64,
    /// The window that the model enforces; none: it reads requests without keeping them.
    pub(super) window: Option<u32>,
}

impl Course {
    /// Writes files of `least` to `most` bytes.
    pub(super) fn new(
        folder: &Path,
        calls: u64,
        (least, most): (usize, usize),
        window: Option<u32>,
    ) -> Outcome<Self> {
        std::fs::create_dir_all(folder)?;
        let words = Words::new();
        for n in 0..FILES.min(calls) {
            let mut dice = Dice::new(n);
            let bytes = dice.between(least, most);
            std::fs::write(folder.join(name(n)), words.text(&mut dice, bytes))?;
        }
        Ok(Self { folder: folder.to_owned(), calls, window })
    }

    /// A model that has the files read. Whenever it is asked, the process is looked at.
    pub(super) fn model(&self, ruler: &Ruler, whose: Whose) -> Outcome<Server> {
        let call = |n: u64| Step::call("read", json!({ "path": name(n), "limit": LINES }).to_string());
        let mut steps: Vec<Step> = (0..self.calls).map(call).collect();
        steps.push(Step::say("Every file was read. 読み終えました。").always());
        let options = Options {
            window: self.window.map(u64::from),
            script: Script::from(steps),
            keep: 0,
            discard: self.window.is_none(),
            ..Options::default()
        };
        let server = Server::start(options)?;
        let ruler = ruler.clone();
        server.watch(move |_| ruler.look(whose));
        Ok(server)
    }

    /// Bytes of the largest request; an error when not every call was made.
    pub(super) fn check(&self, server: &Server) -> Outcome<u64> {
        let seen = server.seen();
        let taken = seen.iter().filter(|request| request.status == 200).count() as u64;
        if server.left() > 0 || taken <= self.calls {
            let why = format!("the measured task ended after {taken} requests of {}", self.calls + 1);
            return Err(Fault::new(Exit::Failed, why));
        }
        Ok(seen.iter().map(|request| request.bytes).max().unwrap_or(0))
    }
}

fn name(n: u64) -> String {
    format!("part_{:02}.txt", n % FILES)
}
