//! Hands a conversation to a summariser in parts that fit its own window.
//!
//! The first part gives a first summary; each later part begins with the summary so far and gives the next. One part
//! is held at a time. A message goes to the next part rather than being split, unless it is too large for any part;
//! then it is split between characters, and each piece says whose it is.
//!
//! Every request fits: instructions, messages and the answer asked for take at most the window, by the caller's meter.

use super::prompt::Prompt;
use super::retain::Retained;
use super::{Answer, Declined, Request, Summariser, answer, cut, render};
use komado_core::Meter;
use komado_core::journal::Usage;
use komado_core::meter::Counter;

/// Tokens in a part when the summariser has no bound.
const UNBOUNDED: u64 = 1_000_000;
/// Two texts side by side may take a few tokens more than each by itself.
const SEAM: u64 = 8;
/// The fewest tokens of messages that make a part worth a request.
const FEWEST: u64 = 64;

/// A text with what stands before it, also when it goes on in a later part.
pub(super) struct Piece<'a> {
    pub(super) head: &'a str,
    pub(super) again: &'a str,
    pub(super) body: &'a str,
}

/// What all parts came to.
pub(super) struct Written {
    pub(super) summary: String,
    pub(super) model: String,
    pub(super) usage: Option<Usage>,
    pub(super) parts: u32,
}

/// Asks part by part.
pub(super) struct Chunks<'a> {
    by: &'a mut dyn Summariser,
    meter: Meter,
    prompt: Prompt,
    /// Tokens of messages in one part, the summary so far included.
    capacity: u64,
    /// Tokens of an answer, and so of the summary so far.
    allowance: u64,
    retained: &'a mut Retained,
    text: String,
    counter: Counter,
    /// True when the part holds more than the summary so far.
    has_news: bool,
    summary: Option<String>,
    model: Option<String>,
    usage: Option<Usage>,
    parts: u32,
}

impl<'a> Chunks<'a> {
    /// Nothing is asked before the first part is full. `answer` is the longest answer of use.
    pub(super) fn new(
        by: &'a mut dyn Summariser,
        prompt: Prompt,
        answer: u64,
        retained: &'a mut Retained,
        meter: Meter,
    ) -> Result<Self, Declined> {
        let instructions = said(meter, &prompt, "") + SEAM;
        let (capacity, allowance) = match by.window() {
            None => (UNBOUNDED + answer, answer),
            Some(window) => {
                // The answer, the summary so far and news share what the instructions leave.
                let left = window.saturating_sub(instructions);
                let allowance = answer.min(left / 3);
                if left / 3 < FEWEST {
                    let needed = instructions + 3 * FEWEST;
                    return Err(Declined::Window { by: by.name().to_owned(), window, instructions, needed });
                }
                (left - allowance, allowance)
            }
        };
        let (text, counter) = (String::new(), meter.counter());
        let (summary, model, usage) = (None, None, None);
        let (has_news, parts) = (false, 0);
        Ok(Self {
            by,
            meter,
            prompt,
            capacity,
            allowance,
            retained,
            text,
            counter,
            has_news,
            summary,
            model,
            usage,
            parts,
        })
    }

    /// What was spent before the first part is asked for counts, too.
    pub(super) fn after(mut self, spent: Option<Usage>) -> Self {
        self.usage = spent;
        self
    }

    /// Takes the next text of the conversation.
    pub(super) fn push(&mut self, piece: &Piece<'_>) -> Result<(), Declined> {
        let (mut head, mut rest) = (piece.head, piece.body);
        let around = self.meter.text(head).max(self.meter.text(piece.again)) + SEAM;
        let anywhere = self.capacity.saturating_sub(self.allowance + around);
        let whole = cut::prefix(self.meter, rest, anywhere).len() == rest.len();
        loop {
            let room = self.capacity.saturating_sub(self.counter.count() + around);
            let (now, later) = cut::split(self.meter, rest, room);
            let fits = later.is_empty();
            if !fits && self.has_news && (whole || room < self.capacity / 4) {
                self.ask()?;
                continue;
            }
            // At least one character, or the loop would never end.
            let (now, later) = if now.is_empty() { rest.split_at(first_char(rest)) } else { (now, later) };
            [head, now, "\n\n"].iter().for_each(|text| self.add(text));
            self.has_news = true;
            if later.is_empty() {
                return Ok(());
            }
            (head, rest) = (piece.again, later);
            self.ask()?;
        }
    }

    fn add(&mut self, text: &str) {
        self.text.push_str(text);
        self.counter.push(text);
    }

    /// Asks about the part that is held and begins the next with the answer.
    fn ask(&mut self) -> Result<(), Declined> {
        self.parts += 1;
        let request = self.request();
        let answer = self.by.summarise(&request).map_err(|failure| {
            let (by, part) = (self.by.name().to_owned(), self.parts);
            Declined::Failed { by, part, why: failure.why, usage: add(self.usage, failure.usage) }
        })?;
        drop(request);
        let summary = self.hear(answer)?;
        (self.text, self.counter, self.has_news) = (String::new(), self.meter.counter(), false);
        let so_far = cut::split(self.meter, &summary, self.allowance).0.trim_end().to_owned();
        [render::SO_FAR, &so_far, "\n\n"].iter().for_each(|text| self.add(text));
        self.summary = Some(summary);
        Ok(())
    }

    fn request(&self) -> Request {
        let text = self.prompt.fill(&self.text);
        let used = said(self.meter, &self.prompt, &self.text);
        let left = self.by.window().map_or(self.allowance, |window| window.saturating_sub(used));
        // What seams took more than was set aside for them, the answer gives up.
        let max_tokens = self.allowance.min(left).max(1);
        Request { system: self.prompt.system.clone(), text, max_tokens, part: self.parts }
    }

    /// Takes an answer apart.
    fn hear(&mut self, answer: Answer) -> Result<String, Declined> {
        self.usage = add(self.usage, answer.usage);
        self.model = answer.model.or(self.model.take());
        let parsed = answer::parse(&answer.text);
        let Some(summary) = parsed.summary else {
            let (by, part) = (self.by.name().to_owned(), self.parts);
            return Err(Declined::Empty { by, part, usage: self.usage });
        };
        if let Some(retain) = parsed.retain {
            self.retained.add(&retain);
        }
        Ok(summary)
    }

    /// Asks about what is left and gives what all parts came to.
    pub(super) fn finish(mut self) -> Result<Written, Declined> {
        if self.has_news {
            self.ask()?;
        }
        let name = self.by.name();
        let Some(summary) = self.summary else {
            return Err(Declined::Empty { by: name.to_owned(), part: self.parts, usage: self.usage });
        };
        let model = self.model.unwrap_or_else(|| name.to_owned());
        Ok(Written { summary, model, usage: self.usage, parts: self.parts })
    }
}

/// Tokens of a request that holds `messages`.
fn said(meter: Meter, prompt: &Prompt, messages: &str) -> u64 {
    let system = prompt.system.as_deref().map_or(0, |system| meter.said(system));
    u64::from(system) + u64::from(meter.said(&prompt.fill(messages)))
}

/// What two answers took together; `None` only when neither reported anything.
fn add(sum: Option<Usage>, more: Option<Usage>) -> Option<Usage> {
    let (Some(a), Some(b)) = (sum, more) else { return sum.or(more) };
    Some(Usage {
        input_tokens: a.input_tokens.saturating_add(b.input_tokens),
        output_tokens: a.output_tokens.saturating_add(b.output_tokens),
        cache_creation_tokens: a.cache_creation_tokens.saturating_add(b.cache_creation_tokens),
        cache_read_tokens: a.cache_read_tokens.saturating_add(b.cache_read_tokens),
    })
}

fn first_char(text: &str) -> usize {
    text.chars().next().map_or(0, char::len_utf8)
}
