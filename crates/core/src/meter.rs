//! How many tokens a text, a message or a setup takes.
//!
//! The default counts with the public byte-pair tables, text by text, and so is exact where a guess by length is
//! most wrong: Japanese, base64, lock files. The guesses and the padded count exist because people know sessions
//! counted that way and must be able to read them on; a session keeps the meter it began with.
//!
//! Every meter works in two steps: it adds up *units* (tokens, characters or bytes), then turns the sum into tokens.
//! Rounding happens once, at the end. No meter calls a provider, and none knows a window or a limit.

#[cfg(test)]
mod tests;

use crate::clip::Utf8Decoder;
use crate::journal::Setup;
use crate::message::{Call, ImageSource, Message, MessagePart, Opaque, ToolOutcome};
use crate::picture::{PictureRule, PictureSize};
use crate::raw::RawJson;
use bpe_openai::Tokenizer;
use std::borrow::Cow;
use std::mem;

/// A way to count tokens.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Meter {
    /// Exact for current OpenAI models, close for most others; the default.
    O200k,
    /// Exact for GPT-4, GPT-3.5 and OpenAI's embeddings.
    Cl100k,
    /// Characters divided by four, rounded down: right for English, a third of the truth for Japanese.
    Chars4,
    /// Bytes divided by four, rounded up.
    Bytes4,
    /// O200k without overhead, times one and a half, rounded up.
    O200kTimes15,
}

crate::names! {
    /// The name in settings and in a session's metadata.
    Meter {
        O200k = "o200k", Cl100k = "cl100k", Chars4 = "chars4", Bytes4 = "bytes4",
        O200kTimes15 = "o200k-1.5",
    }
}

impl Meter {
    /// The exact meter for `model`, also when a provider's path or a fine-tune's mark stands before its name.
    ///
    /// An unknown model gets the newest public table: newer tables only differ more from older ones.
    pub fn for_model(model: &str) -> Self {
        let name = model.rsplit('/').next().unwrap_or(model).to_ascii_lowercase();
        let name = name.strip_prefix("ft:").unwrap_or(&name);
        // gpt-4 and gpt-4-turbo, but neither gpt-4o nor gpt-4.1.
        let is_gpt4 = name.strip_prefix("gpt-4").is_some_and(|rest| {
            let next = rest.chars().next();
            !next.is_some_and(|c| c == '.' || c.is_ascii_alphanumeric())
        });
        // Azure spells 3.5 without the dot.
        let is_old = ["gpt-3.5", "gpt-35", "text-embedding"].iter().any(|family| name.starts_with(family));
        if is_gpt4 || is_old { Self::Cl100k } else { Self::O200k }
    }

    /// Tokens of a text by itself. Names of special tokens such as `<|endoftext|>` are plain text here.
    pub fn text(self, text: &str) -> u64 {
        self.close(self.units(text))
    }

    /// Tokens that the message adds to the view; pictures are counted by their area.
    pub fn message(self, message: &Message) -> u32 {
        self.message_for(message, PictureRule::default())
    }

    /// The same, for a model that counts pictures by `pictures`.
    pub fn message_for(self, message: &Message, pictures: PictureRule) -> u32 {
        self.tokens(self.weigh(message, pictures))
    }

    /// Tokens of what stands before the conversation: the system prompt, sent as a message, and the tool
    /// definitions as their JSON. Parameters steer the model without being read by it.
    pub fn setup(self, setup: &Setup) -> u32 {
        let system = setup.system.as_deref().map_or(0, |system| self.overhead() + self.units(system));
        let tools = setup.tools.as_ref().map_or(0, |tools| self.units(tools.get()));
        self.tokens(system + tools)
    }

    /// Tokens of a message that says just `text`: a summary, a marker, a placeholder.
    pub fn said(self, text: &str) -> u32 {
        self.tokens(self.overhead() + self.units(text))
    }

    /// True when counting needs a byte-pair table, which takes time to load and memory to keep.
    ///
    /// The first count loads it; programs that never count never pay.
    pub const fn loads_table(self) -> bool {
        matches!(self, Self::O200k | Self::Cl100k | Self::O200kTimes15)
    }

    /// Counts a text that arrives in pieces.
    pub fn counter(self) -> Counter {
        Counter::new(self)
    }

    /// The byte-pair table and its pre-tokeniser, loaded on first use.
    fn table(self) -> Option<&'static Tokenizer> {
        match self {
            Self::O200k | Self::O200kTimes15 => Some(bpe_openai::o200k_base()),
            Self::Cl100k => Some(bpe_openai::cl100k_base()),
            Self::Chars4 | Self::Bytes4 => None,
        }
    }

    /// What this meter adds up.
    fn units(self, text: &str) -> u64 {
        let units = match (self.table(), self) {
            (Some(table), _) => table.count(text),
            (None, Self::Chars4) => text.chars().count(),
            (None, _) => text.len(),
        };
        units as u64
    }

    /// From the sum of units to tokens.
    const fn close(self, units: u64) -> u64 {
        match self {
            Self::O200k | Self::Cl100k => units,
            Self::Chars4 => units / 4,
            Self::Bytes4 => units.div_ceil(4),
            Self::O200kTimes15 => units.saturating_mul(3).div_ceil(2),
        }
    }

    /// Role and separators around one message. The other meters never counted them.
    const fn overhead(self) -> u64 {
        match self {
            Self::O200k | Self::Cl100k => 4,
            Self::Chars4 | Self::Bytes4 | Self::O200kTimes15 => 0,
        }
    }

    fn tokens(self, units: u64) -> u32 {
        u32::try_from(self.close(units)).unwrap_or(u32::MAX)
    }
}

// Counts a text while it arrives, in pieces cut anywhere, to exactly what counting it whole would give.
//
// A tokeniser first splits a text into words and counts each by itself, so a word that has ended is settled.
// The last two are not: after `あ`, `AAA` an arriving `b` makes one word of both, as a line break does after a line
// break and spaces. One open word is therefore not enough, and a third is never touched: each rule of the splitter
// looks past the end of its match by one run of one class at most.
//
// A single word may be a megabyte long. Splitting again at every arrival would then cost the square of that, so the
// open end is split again only when it has doubled.

/// The open end is left alone up to this many bytes.
const FLOOR: usize = 512;

/// Counts a text that arrives in pieces; see [`Meter::counter`].
#[derive(Clone, Debug)]
pub struct Counter {
    meter: Meter,
    /// Units of all that is settled.
    settled: u64,
    /// What may still be split in another way.
    open: String,
    /// How long `open` was after it was last split.
    mark: usize,
    decoder: Utf8Decoder,
    /// How many bytes were split so far, some of them again and again.
    #[cfg(test)]
    work: usize,
}

impl Counter {
    fn new(meter: Meter) -> Self {
        Self {
            meter,
            settled: 0,
            open: String::new(),
            mark: 0,
            decoder: Utf8Decoder::default(),
            #[cfg(test)]
            work: 0,
        }
    }

    /// Takes the next piece.
    pub fn push(&mut self, text: &str) {
        if self.decoder.is_amid() { self.push_bytes(text.as_bytes()) } else { self.take(text) }
    }

    /// Takes the next piece of a stream of UTF-8, cut anywhere, also inside a character.
    ///
    /// Bytes that are no UTF-8 count as U+FFFD, as [`String::from_utf8_lossy`] reads them.
    pub fn push_bytes(&mut self, bytes: &[u8]) {
        let mut decoder = mem::take(&mut self.decoder);
        decoder.push(bytes, &mut |text| self.take(text));
        self.decoder = decoder;
    }

    /// Tokens if the text ended here. Costs as much as the open end is long, most often less than a kilobyte.
    pub fn count(&self) -> u64 {
        let mut open = Cow::Borrowed(self.open.as_str());
        if self.decoder.is_amid() {
            open.to_mut().push(char::REPLACEMENT_CHARACTER);
        }
        self.meter.close(self.settled + self.meter.units(&open))
    }

    /// Tokens of the whole text.
    pub fn finish(self) -> u64 {
        self.count()
    }

    fn take(&mut self, text: &str) {
        if !self.meter.loads_table() {
            self.settled += self.meter.units(text);
            return;
        }
        self.open.push_str(text);
        if self.open.len() >= FLOOR.max(2 * self.mark) {
            self.settle();
        }
    }

    /// Counts all words but the last two and lets go of them.
    fn settle(&mut self) {
        let Some(table) = self.meter.table() else { return };
        #[cfg(test)]
        {
            self.work += self.open.len();
        }
        let (mut held, mut done) = (["", ""], 0);
        for word in table.split(&self.open) {
            self.settled += table.bpe.count(held[0].as_bytes()) as u64;
            done += held[0].len();
            held = [held[1], word];
        }
        self.open.drain(..done);
        self.mark = self.open.len();
    }
}

// What a message weighs, part by part.
//
// The exact meters count everything a provider is sent: a view that is larger than we say fails far from here.
// Each text is counted by itself, because that is how providers join parts, and because a sum of parts can be
// checked part by part. The other meters count what their originals counted, faults included; where an original
// is silent, that is said below.

/// An image of which only the address is known.
const IMAGE_ELSEWHERE: u64 = 300;

impl Meter {
    /// The message in this meter's units.
    fn weigh(self, message: &Message, pictures: PictureRule) -> u64 {
        match self {
            Self::O200k | Self::Cl100k => self.whole(message, pictures),
            Self::O200kTimes15 => message.parts.iter().map(|part| self.known(part)).sum(),
            Self::Chars4 | Self::Bytes4 => self.length(message),
        }
    }

    /// Everything: overhead, the speaker's name, parts, and fields that only one dialect knows.
    fn whole(self, message: &Message, pictures: PictureRule) -> u64 {
        let name = message.name.as_deref().map_or(0, |name| self.units(name));
        let parts: u64 = message.parts.iter().map(|part| self.part(part, pictures)).sum();
        self.overhead() + name + parts + self.opaque(message.extra.as_ref())
    }

    fn part(self, part: &MessagePart, pictures: PictureRule) -> u64 {
        match part {
            MessagePart::Text { text, extra } => self.units(text) + self.opaque(extra.as_ref()),
            MessagePart::Image { source, detail } => picture(source, detail.as_deref(), pictures),
            MessagePart::Call(call) => self.units(&asked(call)) + self.raw(call.extra.as_ref()),
            MessagePart::Result(outcome) => {
                let content: u64 = outcome.content.iter().map(|part| self.part(part, pictures)).sum();
                self.units(&heading(outcome, " ")) + content
            }
            // The signature is left out: a provider checks its seal and takes it off; the model reads the thought.
            MessagePart::Reasoning { text, .. } => self.units(text),
            MessagePart::Opaque(opaque) => self.opaque(Some(opaque)),
        }
    }

    fn opaque(self, opaque: Option<&Opaque>) -> u64 {
        self.raw(opaque.map(|opaque| &opaque.json))
    }

    fn raw(self, raw: Option<&RawJson>) -> u64 {
        raw.map_or(0, |raw| self.units(raw.get()))
    }

    /// As the padded count's original has it: texts, images, calls and results; anything else is nothing.
    fn known(self, part: &MessagePart) -> u64 {
        match part {
            MessagePart::Text { text, .. } => self.units(text),
            MessagePart::Image { source, .. } => image(source),
            MessagePart::Call(call) => self.units(&asked(call)),
            MessagePart::Result(outcome) => self.units(&answered(outcome)),
            MessagePart::Reasoning { .. } | MessagePart::Opaque(_) => 0,
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

fn heading(outcome: &ToolOutcome, before_error: &str) -> String {
    let error = if outcome.is_error { format!("{before_error}[Error]") } else { String::new() };
    format!("Tool Result ({}){error}", outcome.call_id)
}

/// A result in one text, in which a picture is only mentioned.
fn answered(outcome: &ToolOutcome) -> String {
    let mut text = heading(outcome, "\n");
    for part in &outcome.content {
        let line = match part {
            MessagePart::Text { text, .. } => text,
            MessagePart::Image { .. } => "[Image content]",
            _ => continue,
        };
        text.push('\n');
        text.push_str(line);
    }
    text
}

/// By the rule of the model, where the size is known; one that is elsewhere is taken for a usual one. Of bytes whose size
/// cannot be read only the length says something.
fn picture(source: &ImageSource, detail: Option<&str>, rule: PictureRule) -> u64 {
    let size = match source {
        ImageSource::Blob { pixels, .. } => *pixels,
        ImageSource::Url { url } => PictureSize::read_url(url),
    };
    match size.or((encoded_length(source) == 0).then_some(PictureSize::USUAL)) {
        Some(size) => rule.tokens(size, detail),
        None => image(source),
    }
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
