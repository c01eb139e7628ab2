//! What a message weighs, part by part.
//!
//! The exact meters count everything a provider is sent: a view that is larger than we say fails far from here.
//! Each text is counted by itself, because that is how providers join parts, and because a sum of parts can be
//! checked part by part. The other meters count what their originals counted, faults included; where an original
//! is silent, that is said below.

use super::Meter;
use crate::message::{Call, ImageSource, Message, Opaque, Outcome, Part};
use crate::raw::Raw;

/// An image of which only the address is known.
const IMAGE_ELSEWHERE: u64 = 300;

impl Meter {
    /// The message in this meter's units.
    pub(super) fn weigh(self, message: &Message) -> u64 {
        match self {
            Self::O200k | Self::Cl100k => self.whole(message),
            Self::O200kTimes15 => message.parts.iter().map(|part| self.known(part)).sum(),
            Self::Chars4 | Self::Bytes4 => self.length(message),
        }
    }

    /// Everything: overhead, the speaker's name, parts, and fields that only one dialect knows.
    fn whole(self, message: &Message) -> u64 {
        let name = message.name.as_deref().map_or(0, |name| self.units(name));
        let parts: u64 = message.parts.iter().map(|part| self.part(part)).sum();
        self.overhead() + name + parts + self.opaque(message.extra.as_ref())
    }

    fn part(self, part: &Part) -> u64 {
        match part {
            Part::Text { text, extra } => self.units(text) + self.opaque(extra.as_ref()),
            Part::Image { source, .. } => image(source),
            Part::Call(call) => self.units(&asked(call)) + self.raw(call.extra.as_ref()),
            Part::Result(outcome) => {
                let content: u64 = outcome.content.iter().map(|part| self.part(part)).sum();
                self.units(&heading(outcome, " ")) + content
            }
            // The signature is left out: a provider checks its seal and takes it off; the model reads the thought.
            Part::Reasoning { text, .. } => self.units(text),
            Part::Opaque(opaque) => self.opaque(Some(opaque)),
        }
    }

    fn opaque(self, opaque: Option<&Opaque>) -> u64 {
        self.raw(opaque.map(|opaque| &opaque.json))
    }

    fn raw(self, raw: Option<&Raw>) -> u64 {
        raw.map_or(0, |raw| self.units(raw.get()))
    }

    /// As the padded count's original has it: texts, images, calls and results; anything else is nothing.
    fn known(self, part: &Part) -> u64 {
        match part {
            Part::Text { text, .. } => self.units(text),
            Part::Image { source, .. } => image(source),
            Part::Call(call) => self.units(&asked(call)),
            Part::Result(outcome) => self.units(&answered(outcome)),
            Part::Reasoning { .. } | Part::Opaque(_) => 0,
        }
    }

    /// Words, and the names and arguments of calls. The original of this guess counted words only, so a message
    /// that just calls a tool weighed nothing, however long the file it wrote.
    fn length(self, message: &Message) -> u64 {
        let calls: u64 =
            message.calls().map(|call| self.units(&call.name) + self.units(&call.arguments)).sum();
        self.units(&message.words()) + calls
    }
}

fn asked(call: &Call) -> String {
    format!("Tool: {}\nArguments: {}", call.name, call.arguments)
}

fn heading(outcome: &Outcome, before_error: &str) -> String {
    let error = if outcome.is_error { format!("{before_error}[Error]") } else { String::new() };
    format!("Tool Result ({}){error}", outcome.call_id)
}

/// A result in one text, in which a picture is only mentioned.
fn answered(outcome: &Outcome) -> String {
    let mut text = heading(outcome, "\n");
    for part in &outcome.content {
        let line = match part {
            Part::Text { text, .. } => text,
            Part::Image { .. } => "[Image content]",
            _ => continue,
        };
        text.push('\n');
        text.push_str(line);
    }
    text
}

/// The square root of the image's base64 length, rounded up: grows with the picture, and is never near its bytes.
fn image(source: &ImageSource) -> u64 {
    match encoded_length(source) {
        0 => IMAGE_ELSEWHERE,
        length => {
            let root = length.isqrt();
            root + u64::from(root * root < length)
        }
    }
}

fn encoded_length(source: &ImageSource) -> u64 {
    match source {
        ImageSource::Blob { byte_size, .. } => byte_size.div_ceil(3).saturating_mul(4),
        ImageSource::Url { url } => {
            let data = url.get(..5).filter(|scheme| scheme.eq_ignore_ascii_case("data:"));
            data.and_then(|_| url.split_once(',')).map_or(0, |(_, data)| data.len() as u64)
        }
    }
}
