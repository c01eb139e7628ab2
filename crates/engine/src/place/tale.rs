//! A transcript as its client tells it: what it says is read from the spooled body, and only where something is compared.

use super::strand::{Answer, Strand};
use crate::error::Result;
use crate::relay::{BILLING, body_text};
use komado_core::journal::{Entry, Setup};
use komado_core::message::{Call, Message, Part};
use komado_provider::{By, Dialect, Skim, same_words};
use std::fs::File;
use std::ops::Range;

/// A transcript.
#[derive(Clone, Copy)]
pub(super) struct Tale<'a> {
    /// Where everything stands.
    pub(super) skim: &'a Skim,
    /// The body.
    pub(super) body: &'a File,
}

impl Tale<'_> {
    /// Its elements.
    pub(super) fn len(&self) -> usize {
        self.skim.elements.len()
    }

    /// True when the model has said something in it.
    pub(super) fn is_answered(&self) -> bool {
        self.skim.elements.iter().any(|element| element.by == By::Model)
    }

    /// The digest over the first `n` elements is this one.
    pub(super) fn begins(&self, n: usize, digest: &str) -> bool {
        self.skim.digest(n).is_some_and(|own| own == digest)
    }

    /// Beginnings that may have been a request, the longest first: none ends with words of the model, but for the whole.
    pub(super) fn beginnings(&self) -> impl Iterator<Item = usize> + '_ {
        let elements = &self.skim.elements;
        let asks = move |n: &usize| *n == elements.len() || elements[n - 1].by != By::Model;
        (1..=elements.len()).rev().filter(asks)
    }

    /// Elements from `n` on that the model said, as the client tells it; what only the dialect knows may stand between.
    pub(super) fn told(&self, n: usize) -> usize {
        let rest = self.skim.elements.get(n..).unwrap_or_default();
        let run = rest.iter().take_while(|element| matches!(element.by, By::Model | By::Other)).count();
        rest[..run].iter().rposition(|element| element.by == By::Model).map_or(0, |last| last + 1)
    }

    /// True when `count` elements from `n` on say what was answered. Our own calls are not the client's; of one that nobody
    /// has answered the client knows best whether it was shown.
    pub(super) fn tells(&self, n: usize, count: usize, answer: &Answer) -> bool {
        let Some(returned) = self.read(n..n + count, &[]) else { return false };
        let returned: Vec<&Message> = returned.iter().collect();
        let says = |is_own: &dyn Fn(&Call) -> bool| {
            let told: Vec<Message> = answer.replies.iter().map(|reply| without(reply, is_own)).collect();
            same_words(&told.iter().collect::<Vec<_>>(), &|_| false, &returned)
        };
        says(&|call| answer.is_own(call)) || says(&|call| answer.was_answered(call))
    }

    /// True when the elements from `n` on begin with these messages; `open` are the calls that wait before them.
    pub(super) fn goes_on_with(&self, n: usize, open: &[Call], messages: &[Message]) -> bool {
        // Each element is a message at the least, but for a few that say nothing.
        let end = self.len().min(n + messages.len());
        let Some(read) = self.read(n..end, open) else { return false };
        let same = |a: &Message, b: &Message| a.role == b.role && a.words() == b.words();
        read.len() >= messages.len() && messages.iter().zip(&read).all(|(a, b)| same(a, b))
    }

    /// What elements say; `None` when they cannot be read, which whoever takes them in will tell.
    fn read(&self, range: Range<usize>, open: &[Call]) -> Option<Vec<Message>> {
        let elements = self.skim.elements.get(range)?;
        if elements.is_empty() {
            return Some(Vec::new());
        }
        let texts = elements.iter().map(|element| self.text(&element.span)).collect::<Option<Vec<_>>>()?;
        let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
        Some(self.skim.dialect.read_elements(&texts, open).ok()?.messages)
    }

    fn text(&self, span: &Range<u64>) -> Option<String> {
        body_text(self.body, span).ok()
    }

    /// True for a request beside the conversation of a thread: it offers no tools where the thread has some, or none under
    /// another system prompt.
    pub(super) fn is_aside(&self, strand: &Strand<'_>) -> Result<bool> {
        if self.skim.has_tools() {
            return Ok(false);
        }
        let Some(at) = strand.view().setup() else { return Ok(false) };
        let Entry::Setup(setup) = strand.record(at)?.entry else { return Ok(false) };
        Ok(has_tools(&setup) || self.has_other_system(&setup))
    }

    /// A system prompt among the elements is part of their digest; only one in a field of its own may be another.
    fn has_other_system(&self, setup: &Setup) -> bool {
        let (Some(before), Some(now)) = (&setup.system, self.system()) else { return false };
        !is_same_prompt(unbilled(before), unbilled(&now))
    }

    fn system(&self) -> Option<String> {
        let (key, list) = match self.skim.dialect {
            Dialect::Messages => ("system", "messages"),
            Dialect::Responses => ("instructions", "input"),
            Dialect::Chat | Dialect::Ollama => return None,
        };
        let text = self.text(&self.skim.field(key)?)?;
        let alone = format!("{{\"model\":\"\",\"max_tokens\":1,\"{key}\":{text},\"{list}\":[]}}");
        self.skim.dialect.read(&alone).ok()?.setup.system
    }
}

/// A reply without some of its calls.
fn without(reply: &Message, is_out: &dyn Fn(&Call) -> bool) -> Message {
    let is_out = |part: &&Part| matches!(part, Part::Call(call) if is_out(call));
    let parts = reply.parts.iter().filter(|part| !is_out(part)).cloned().collect();
    Message { parts, ..reply.clone() }
}

fn has_tools(setup: &Setup) -> bool {
    setup.tools.as_ref().is_some_and(|tools| tools.get().trim_start_matches('[').trim_start() != "]")
}

/// True when `now` is the prompt that was there `before`, or one that differs in a few words only: a clock, a folder. So it is
/// when beginning and end that they share are half of it at the least.
fn is_same_prompt(before: &str, now: &str) -> bool {
    if before.contains(now) {
        return true;
    }
    let shared = |a: &mut dyn Iterator<Item = (u8, u8)>| a.take_while(|(a, b)| a == b).count();
    let (before, now) = (before.as_bytes(), now.as_bytes());
    let start = shared(&mut before.iter().copied().zip(now.iter().copied()));
    let (rest, other) = (&before[start..], &now[start..]);
    let end = shared(&mut rest.iter().rev().copied().zip(other.iter().rev().copied()));
    (start + end) * 2 >= before.len().max(now.len())
}

/// A system prompt without the line that is another each time.
fn unbilled(system: &str) -> &str {
    let rest = system.strip_prefix(BILLING).map(|rest| rest.split_once('\n').map_or("", |(_, rest)| rest));
    rest.unwrap_or(system).trim()
}
