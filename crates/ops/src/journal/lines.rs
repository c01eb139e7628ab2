//! Messages as JSON lines, as OpenAI's chat API has them.
//!
//! They are taken in as they arrive: what has come is journaled with one write and one sync, and only then are its numbers
//! told. A slow writer gets each number at once, a fast one gets them in bulk.

use super::append::open;
use crate::{Context, Fault, Outcome, Progress};
use komado_core::message::Message;
use komado_core::{Seq, openai};
use komado_engine::Thread;
use komado_engine::engine::Found;
use std::io::{self, BufRead, BufReader, Read};

/// Bytes of lines journaled at once.
const BATCH: usize = 1 << 18;

/// Where lines come from, with what is needed to say which one was wrong.
pub struct MessageLines {
    from: BufReader<Box<dyn Read>>,
    name: String,
    number: u64,
}

impl MessageLines {
    /// The lines of a file or stream, by its name.
    pub fn new(from: Box<dyn Read>, name: String) -> Self {
        Self { from: BufReader::with_capacity(BATCH, from), name, number: 0 }
    }

    /// Reads the next message; `None` at the end. Empty lines are passed over.
    pub fn read_message(&mut self) -> io::Result<Option<Result<Message, String>>> {
        let mut line = Vec::new();
        loop {
            line.clear();
            if self.from.read_until(b'\n', &mut line)? == 0 {
                return Ok(None);
            }
            self.number += 1;
            if !line.trim_ascii().is_empty() {
                return Ok(Some(parse(&line)));
            }
        }
    }

    /// True when another whole line has already arrived.
    fn waits(&self) -> bool {
        self.from.buffer().contains(&b'\n')
    }

    /// That the line that was read last is wrong.
    pub fn wrong(&self, why: &str) -> Fault {
        Fault::input(format!("{} line {}: {why}", self.name, self.number))
    }
}

fn parse(line: &[u8]) -> Result<Message, String> {
    let text =
        std::str::from_utf8(line).map_err(|e| format!("not UTF-8: byte {} is wrong", e.valid_up_to() + 1))?;
    openai::read(text.trim_start_matches('\u{feff}').trim()).map_err(|e| e.to_string())
}

/// How lines are taken in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AppendLines {
    /// Refuse a message while calls wait, instead of answering them as interrupted.
    pub strict: bool,
    /// Pass over lines that cannot be taken in, and note which.
    pub skip_bad: bool,
}

impl AppendLines {
    /// Takes lines in; `each` is told the numbers of what is durable. A bad line ends it, and what came before is kept.
    pub fn take(
        self,
        context: &Context,
        found: &Found,
        mut lines: MessageLines,
        each: &mut dyn FnMut(&[Seq]) -> Outcome,
    ) -> Outcome {
        let mut thread = open(context, found, self.strict)?;
        let (mut skipped, mut entries) = (0, 0);
        let outcome = loop {
            let (said, more) = self.batch(context, &mut thread, &mut lines, &mut skipped);
            each(&said)?;
            entries += said.len() as u64;
            match more {
                Ok(true) => context.progress(Progress::Appending { entries })?,
                Ok(false) => break Ok(()),
                Err(fault) => break Err(fault),
            }
        };
        context.settle(&mut thread);
        if skipped > 0 {
            context.note(format!("{skipped} lines were passed over"));
        }
        outcome
    }

    /// Takes in what has arrived, up to a batch, and makes it durable; gives its numbers, and whether more may come.
    fn batch(
        self,
        context: &Context,
        thread: &mut Thread<'_>,
        lines: &mut MessageLines,
        skipped: &mut u64,
    ) -> (Vec<Seq>, Outcome<bool>) {
        let first = lines.number + 1;
        let mut batch = thread.batch();
        let mut more = Ok(true);
        while more.as_ref().is_ok_and(|more| *more) && batch.bytes() < BATCH {
            let why = match lines.read_message() {
                Ok(Some(Ok(message))) => batch.say(message, None).err().map(|e| e.to_string()),
                Ok(Some(Err(why))) => Some(why),
                Ok(None) => {
                    more = Ok(false);
                    None
                }
                Err(error) => {
                    more = Err(Fault::input(format!("cannot read {}: {error}", lines.name)));
                    None
                }
            };
            match why {
                Some(why) if self.skip_bad => {
                    context.note(format!("passed over {} line {}: {why}", lines.name, lines.number));
                    *skipped += 1;
                }
                Some(why) => more = Err(lines.wrong(&why)),
                None => {}
            }
            if !lines.waits() {
                break;
            }
        }
        let (said, work) = batch.finish();
        match thread.commit(work) {
            Ok(_) => (said, more),
            Err(error) => {
                let rest = format!("{} from line {first} on was not taken in", lines.name);
                (Vec::new(), Err(Fault::from(error).and(rest)))
            }
        }
    }
}
