//! How many tokens a text, a message or a setup takes.
//!
//! The default counts with the public byte-pair tables, text by text, and so is exact where a guess by length is
//! most wrong: Japanese, base64, lock files. The guesses and the padded count exist because people know sessions
//! counted that way and must be able to read them on; a session keeps the meter it began with.
//!
//! Every meter works in two steps: it adds up *units* (tokens, characters or bytes), then turns the sum into tokens.
//! Rounding happens once, at the end. No meter calls a provider, and none knows a window or a limit.

use crate::journal::Setup;
use crate::message::Message;
use bpe_openai::Tokenizer;

mod counter;
mod weigh;

#[cfg(test)]
mod tests;

pub use counter::Counter;

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
    /// A model nobody has heard of gets the newest public table: newer tables only differ more from older ones.
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

    /// Tokens that the message adds to the view.
    pub fn message(self, message: &Message) -> u32 {
        self.tokens(self.weigh(message))
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
