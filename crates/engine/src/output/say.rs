//! The door by which a long output comes in: one pass over its bytes, never all of them in memory.
//!
//! What fits is a message like any other. What does not fit goes to a blob while it is read, and the message holds the
//! view of it. The journal is asked first whether it would take the message at all, so that a refusal does not cost a
//! gigabyte.

use crate::error::Result;
use crate::thread::Thread;
use komado_core::Seq;
use komado_core::clip::{Clipper, Limits, clip};
use komado_core::message::{Message, Outcome, OutputRef, Part, Role};
use std::io::{self, Read};

/// What is known of an output besides its bytes.
#[derive(Clone, Debug, Default)]
pub struct Output {
    /// The call it answers; empty when there is only one it can be.
    pub call_id: String,
    /// The tool, when known.
    pub name: Option<String>,
    /// True when the tool reported an error.
    pub is_error: bool,
    /// How long the tool ran.
    pub duration_ms: Option<u64>,
}

impl Output {
    /// The message that says `text` of it.
    fn saying(&self, text: String, output_ref: Option<OutputRef>) -> Message {
        let (is_error, duration_ms) = (self.is_error, self.duration_ms);
        let outcome = Outcome::text(&self.call_id, self.name.clone(), text);
        let outcome = Outcome { is_error, output_ref, duration_ms, ..outcome };
        Message::of(Role::Tool, vec![Part::Result(outcome)])
    }
}

impl Thread<'_> {
    /// Journals what a tool printed. Bytes that are no UTF-8 are kept as they are and shown as U+FFFD.
    pub fn say_output(&mut self, output: &Output, bytes: &mut dyn Read) -> Result<Seq> {
        // Where nothing is clipped all of it is to be in the message, and so in memory.
        let all = Limits { max_message_bytes: usize::MAX, max_line_length: usize::MAX };
        let limits = self.clip().unwrap_or(all);
        let mut begun = Vec::new();
        bytes.take((limits.bytes() as u64).saturating_add(1)).read_to_end(&mut begun)?;
        if let Ok(text) = std::str::from_utf8(&begun)
            && clip(text, &limits, "").is_none()
        {
            return self.say(output.saying(text.to_owned(), None));
        }
        self.batch().say(output.saying(String::new(), None), None)?;
        let mut tee = Tee { from: (&begun[..]).chain(bytes), clipper: Clipper::new(limits) };
        let blob = self.store().put_blob(self.session(), &mut tee)?;
        let view = tee.clipper.finish(&blob.id);
        let text = view.unwrap_or_else(|| String::from_utf8_lossy(&begun).into_owned());
        let whole =
            OutputRef { id: blob.id, byte_size: Some(blob.byte_size), line_count: Some(blob.line_count) };
        self.say(output.saying(text, Some(whole)))
    }
}

/// Shows the clipper what the store reads.
struct Tee<R> {
    from: R,
    clipper: Clipper,
}

impl<R: Read> Read for Tee<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let n = self.from.read(buffer)?;
        self.clipper.push(&buffer[..n]);
        Ok(n)
    }
}
