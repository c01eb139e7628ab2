//! What a client's request says: what it asks for beside its transcript, and what is new in that, which becomes entries
//! before anything is sent.
//!
//! The transcript may be large and is mostly known; everything else in a request is small. So the request is read as if it
//! had no transcript at all, and of the transcript only the elements behind the known ones, a stretch at a time. When
//! nothing stands between them and the wire, the announcement of the request goes into the same append: one write, one
//! sync.

use super::Arrival;
use super::session_request::{Kind as RequestKind, SessionRequest};
use super::splice::{digest, waiting, whole};
use crate::error::{Error, Result};
use crate::place::Placed;
use crate::request_entries::{Purpose, sent};
use crate::thread::Batch;
use komado_core::journal::{Entry, Group, Mark, Sent, Setup};
use komado_core::message::{Call, Message};
use komado_core::raw::{Object, Raw};
use komado_core::{Kind, Seq, View};
use komado_provider::dialect::Tail;
use komado_provider::{Asked, BadRequest, By, Dialect, Skim};
use serde_json::value::RawValue;
use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;

/// A block of Anthropic's system prompt that begins so is for the till: it changes with each request and says nothing.
pub(crate) const BILLING: &str = "x-anthropic-billing-header";

/// A request without its transcript.
#[derive(Clone, Debug)]
pub(super) struct Request {
    /// System prompt, tools, parameters.
    pub(super) setup: Setup,
    /// The longest answer that the client wants.
    pub(super) wish: Option<u64>,
    /// How many tokens of that the model may think, where the API wants the one below the other.
    pub(super) thoughts: Option<u64>,
    /// True when the client wants to hear of usage in the stream.
    pub(super) usage: bool,
}

impl Request {
    /// Reads what an arrival asks for.
    pub(super) fn read(arrival: &Arrival) -> Result<Self> {
        let (skim, body) = (&*arrival.skim, &*arrival.body);
        let text = shell(skim, body)?;
        Ok(Self::of(skim.dialect.read(&text).map_err(unreadable)?))
    }

    /// What was asked for, beside what was said.
    pub(super) fn of(asked: Asked) -> Self {
        let params = asked.setup.params.as_ref().and_then(|params| Object::parse(params.get()).ok());
        let inside = |outer: &str, key: &str| {
            let object = Object::parse(params.as_ref()?.get(outer)?.get()).ok()?;
            object.get(key).map(|value| value.get().to_owned())
        };
        let number = |outer, key| inside(outer, key).and_then(|text| text.parse::<u64>().ok());
        let wish = asked.max_tokens.or_else(|| number("options", "num_predict"));
        let thoughts = number("thinking", "budget_tokens");
        let usage = inside("stream_options", "include_usage").as_deref() == Some("true");
        Self { setup: asked.setup, wish, thoughts, usage }
    }
}

/// The request with an empty transcript.
fn shell(skim: &Skim, body: &File) -> Result<String> {
    let list = skim.list();
    let mut fields = Vec::with_capacity(skim.fields.len());
    for field in &skim.fields {
        let value = match &list {
            Some(list) if *list == field.span => "[]".to_owned(),
            _ => text(body, &field.span)?,
        };
        let value = match (skim.dialect, field.key.as_str()) {
            (Dialect::Messages, "system") => unbilled(&value).unwrap_or(value),
            _ => value,
        };
        fields.push(format!("{}:{value}", serde_json::Value::from(field.key.as_str())));
    }
    Ok(format!("{{{}}}", fields.join(",")))
}

/// A list of system blocks without the one for the till.
fn unbilled(system: &str) -> Option<String> {
    let blocks: Vec<&RawValue> = serde_json::from_str(system).ok()?;
    let is_bill = |block: &&&RawValue| {
        let words =
            Object::parse(block.get()).ok().and_then(|block| block.read::<String>("text").ok().flatten());
        words.is_some_and(|words| words.trim_start().starts_with(BILLING))
    };
    if !blocks.iter().any(|block| is_bill(&block)) {
        return None;
    }
    let kept: Vec<&str> = blocks.iter().filter(|block| !is_bill(block)).map(|block| block.get()).collect();
    Some(format!("[{}]", kept.join(",")))
}

/// The text at a place of a body.
pub(crate) fn text(body: &File, span: &Range<u64>) -> Result<String> {
    let len = usize::try_from(span.end.saturating_sub(span.start)).map_err(io::Error::other)?;
    let mut bytes = vec![0; len];
    body.read_exact_at(&mut bytes, span.start)?;
    String::from_utf8(bytes).map_err(|error| Error::Io(io::Error::new(io::ErrorKind::InvalidData, error)))
}

/// Reads elements that go on after open calls.
type ReadElements = fn(Dialect, &[&str], &[Call]) -> std::result::Result<Tail, BadRequest>;

impl Arrival {
    /// Elements of the transcript as messages.
    pub(super) fn messages(&self, which: Range<u32>, open: &[Call], read: ReadElements) -> Result<Tail> {
        let which = which.start as usize..(which.end as usize).min(self.skim.elements.len());
        let elements = self.skim.elements.get(which).unwrap_or_default().iter();
        let texts = elements.map(|element| text(&self.body, &element.span)).collect::<Result<Vec<_>>>()?;
        let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
        read(self.dialect(), &texts, open).map_err(unreadable)
    }
}

/// What cannot be read cannot be journaled.
fn unreadable(bad: BadRequest) -> Error {
    Error::Io(io::Error::new(io::ErrorKind::InvalidData, format!("the request cannot be taken in: {bad}")))
}

/// True when system prompt or tools are others; parameters do not count.
fn differs(old: &Setup, new: &Setup) -> bool {
    let words = |setup: &Setup| setup.system.clone().filter(|system| !system.is_empty());
    let tools =
        |setup: &Setup| setup.tools.as_ref().map(Raw::get).filter(|tools| *tools != "[]").map(str::to_owned);
    words(old) != words(new) || tools(old) != tools(new)
}

/// How much of a transcript is read at a time.
const STRETCH: u64 = 8 << 20;

/// Groups, as they are gathered: neighbours of one shape are counted.
#[derive(Default)]
struct Groups(Vec<Group>);

impl Groups {
    fn push(&mut self, elements: u32, entries: u32, times: u32) {
        if elements + entries == 0 {
            return;
        }
        match self.0.last_mut() {
            Some(last) if (last.elements, last.entries) == (elements, entries) => last.times += times,
            _ => self.0.push(Group { elements, entries, times }),
        }
    }
}

/// What a thread shows since the last request of its client, and that request.
type Since = (Vec<Seq>, Option<(Seq, Mark)>);

/// What a thread shows and its client does not tell.
struct Unknown {
    /// Entries since the last reply.
    entries: u32,
    /// True when there is anything of that kind, now or before.
    apart: bool,
    /// Words to be said behind what the client tells now.
    later: Vec<Message>,
}

impl SessionRequest<'_> {
    /// Takes in what the journal does not know yet.
    pub(super) fn take_in(&mut self, placed: &Placed, kind: RequestKind) -> Result<()> {
        let skim = &self.arrival.skim;
        let mut groups = Groups::default();
        let all = u32::try_from(skim.elements.len()).unwrap_or(u32::MAX);
        let Unknown { entries, apart, mut later } = self.unknown_to_client(placed.known.min(all))?;
        groups.push(0, entries, 1);
        let mut stretches = stretches(skim, placed.known.min(all)..all).into_iter().peekable();
        let mut setup = self.changed_setup()?;
        loop {
            let stretch = stretches.next();
            let is_last = stretches.peek().is_none();
            let mut batch = self.thread.batch();
            if let Some(setup) = setup.take() {
                batch.enter(Entry::Setup(setup))?;
            }
            if let Some(stretch) = stretch {
                self.read_in(&mut batch, stretch, &mut groups)?;
            }
            let mut announced = None;
            if is_last {
                for message in later.drain(..) {
                    batch.say(message, None)?;
                    groups.push(0, 1, 1);
                }
                // What follows on something that only the server knows is no beginning of anything.
                let digest =
                    skim.digest(all as usize).filter(|_| skim.previous.is_none()).unwrap_or_default();
                let groups = std::mem::take(&mut groups.0);
                let from = placed.known.min(all);
                self.mark = Mark { from, elements: all, digest, groups, inner: false, apart };
                if kind == RequestKind::Answer {
                    announced = announce(self, &mut batch)?;
                }
            }
            let (_, work) = batch.finish();
            self.thread.commit(work)?;
            if is_last {
                self.announced = announced;
                break;
            }
        }
        self.notes.before = self.thread.view().unedited(self.thread.source())?;
        match self.announced {
            Some(seq) => self.noted(seq),
            None => Ok(()),
        }
    }

    /// The announcement is in the journal: the next one has nothing new to tell.
    pub(super) fn noted(&mut self, seq: Seq) -> Result<()> {
        if !self.mark.digest.is_empty() && !self.mark.inner {
            self.note(self.mark.digest.clone(), seq)?;
        }
        self.mark.from = self.mark.elements;
        self.mark.groups.clear();
        Ok(())
    }

    fn changed_setup(&self) -> Result<Option<Setup>> {
        let new = &self.request.setup;
        Ok(differs(&self.thread.setup()?, new).then(|| new.clone()))
    }

    /// Reads a stretch of elements into a batch.
    fn read_in(&self, batch: &mut Batch<'_>, stretch: Range<u32>, groups: &mut Groups) -> Result<()> {
        let open = &batch.view().open().calls;
        let open: Vec<_> = open.iter().map(|call| waiting(&call.id, &call.name)).collect();
        let tail = self.arrival.messages(stretch, &open, Dialect::read_elements)?;
        let mut messages = tail.messages.into_iter();
        for group in tail.groups.iter().flat_map(|group| (0..group.times).map(move |_| group)) {
            // Calls that the client left without an answer are answered before the next message.
            for (i, message) in messages.by_ref().take(group.entries as usize).enumerate() {
                let before = batch.view().last();
                let seq = batch.say(message, None)?;
                if i == 0 {
                    groups.push(0, seq - before - 1, 1);
                }
            }
            groups.push(group.elements, group.entries, 1);
        }
        Ok(())
    }

    /// What the thread shows behind the last reply and the client does not tell. `known` is where its new elements begin.
    fn unknown_to_client(&mut self, known: u32) -> Result<Unknown> {
        let (mut items, mark) = self.since_mark()?;
        let (sent, before) = mark.map_or((None, false), |(seq, mark)| (Some(seq), mark.apart || mark.inner));
        if let Some(first) = items.first()
            && let Entry::Message(_, Some(reply)) = self.thread.record(*first)?.entry
            && reply.to == sent
        {
            items.remove(0);
        }
        let later = self.spoken_between(&items, known)?;
        if !later.is_empty() {
            self.thread.rewind(items[0] - 1)?;
            return Ok(Unknown { entries: 0, apart: true, later });
        }
        let entries = u32::try_from(items.len()).unwrap_or(u32::MAX);
        Ok(Unknown { entries, apart: before || entries > 0, later })
    }

    /// Words that were said by hand while a tool of the client was at work: its call was given up for them, and now its
    /// answer comes. They are said again behind it.
    fn spoken_between(&self, items: &[Seq], known: u32) -> Result<Vec<Message>> {
        let mut later = Vec::new();
        if !self.arrival.skim.elements.get(known as usize).is_some_and(|element| element.by == By::Tool) {
            return Ok(later);
        }
        for (i, seq) in items.iter().enumerate() {
            let Entry::Message(message, None) = self.thread.record(*seq)?.entry else {
                return Ok(Vec::new());
            };
            match message.outcome().map(|outcome| outcome.interrupted) {
                Some(true) => {}
                None if i > 0 => later.push(message),
                _ => return Ok(Vec::new()),
            }
        }
        Ok(later)
    }

    /// What is shown since the last request of the client, and that request's mark.
    fn since_mark(&self) -> Result<Since> {
        let mut items = Vec::new();
        let mut found = None;
        for entry in self.thread.back() {
            let (seq, head) = entry?;
            if head.kind.is_item() {
                items.push(seq);
            }
            if head.kind == Kind::Sent
                && let Entry::Sent(Sent { mark: Some(mark), .. }) = self.thread.record(seq)?.entry
            {
                found = Some((seq, mark));
                break;
            }
        }
        items.reverse();
        Ok((items, found))
    }

    /// True when the client's bytes can go out as they are, with this view.
    fn goes_as_it_is(&self, view: &View) -> Result<bool> {
        if self.translates()
            || self.mark.apart
            || self.upstream.renames
            || view.edits().next().is_some()
            || self.sets_window()?
        {
            return Ok(false);
        }
        let window = self.window();
        if window == 0 {
            return Ok(true);
        }
        let tokens = view.tokens();
        let room = window.saturating_sub(self.lesson.theirs(tokens).max(tokens) + window / 50);
        let has_room = self.request.wish.is_none_or(|wish| wish <= room);
        Ok(has_room && !self.budget(window).will_manage(view).will_manage)
    }
}

/// Announces the client's own bytes, where nothing has to be done to them.
fn announce(request: &SessionRequest<'_>, batch: &mut Batch<'_>) -> Result<Option<Seq>> {
    // With calls open nothing can be announced; that is said when it is tried for good.
    if !batch.view().open().calls.is_empty() || !request.goes_as_it_is(batch.view())? {
        return Ok(None);
    }
    let digest = digest(&whole(request.arrival))?;
    let purpose = Purpose::Answer(&digest, Some(request.mark.clone()));
    batch.enter(sent(&request.upstream.asking.model, batch.view().tokens(), purpose)).map(Some)
}

/// Elements in stretches that can be read alone: each begins where a user speaks.
fn stretches(skim: &Skim, which: Range<u32>) -> Vec<Range<u32>> {
    let mut stretches = Vec::new();
    let (mut from, mut bytes) = (which.start, 0);
    for at in which.clone() {
        let Some(element) = skim.elements.get(at as usize) else { break };
        if bytes > STRETCH && element.by == By::User {
            stretches.push(from..at);
            (from, bytes) = (at, 0);
        }
        bytes += element.span.end - element.span.start;
    }
    if from < which.end {
        stretches.push(from..which.end);
    }
    stretches
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_for_the_till_is_no_part_of_the_system_prompt() {
        let system =
            r#"[{"type":"text","text":"x-anthropic-billing-header: a=1"},{"type":"text","text":"窓"}]"#;
        assert_eq!(unbilled(system).as_deref(), Some(r#"[{"type":"text","text":"窓"}]"#));
        assert_eq!(unbilled(r#"[{"type":"text","text":"窓"}]"#), None);
        assert_eq!(unbilled(r#""words""#), None);
    }
}
