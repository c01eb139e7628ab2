//! What is new in a transcript becomes entries, before anything is sent.
//!
//! Only elements behind the known ones are read, a stretch at a time. When nothing stands between them and the wire, the
//! announcement of the request goes into the same append: one write, one sync.

use super::request::{differs, elements, unreadable};
use super::session_request::{Kind as RequestKind, SessionRequest};
use super::splice::{digest, waiting, whole};
use crate::error::Result;
use crate::exchange::{Purpose, sent};
use crate::place::Placed;
use crate::thread::Batch;
use komado_core::journal::{Entry, Group, Mark, Sent};
use komado_core::message::Message;
use komado_core::{Kind, Seq, View};
use komado_provider::{By, Skim};
use std::ops::Range;

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

    fn changed_setup(&self) -> Result<Option<komado_core::journal::Setup>> {
        let new = &self.request.setup;
        Ok(differs(&self.thread.setup()?, new).then(|| new.clone()))
    }

    /// Reads a stretch of elements into a batch.
    fn read_in(&self, batch: &mut Batch<'_>, stretch: Range<u32>, groups: &mut Groups) -> Result<()> {
        let texts = elements(&self.arrival.skim, &self.arrival.body, stretch)?;
        let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
        let open = &batch.view().open().calls;
        let open: Vec<_> = open.iter().map(|call| waiting(&call.id, &call.name)).collect();
        let tail = self.arrival.dialect().read_elements(&texts, &open).map_err(unreadable)?;
        let mut messages = tail.messages.into_iter();
        for group in tail.groups.iter().flat_map(|group| (0..group.times).map(move |_| group)) {
            // Calls that the client left without an answer are answered before anyone else speaks.
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
        let (view, source) = (self.thread.view(), self.thread.source());
        let mut items = Vec::new();
        let mut found = None;
        for seq in (1..=self.thread.last()).rev().filter(|seq| view.on_path(*seq)) {
            let kind = source.head(seq)?.kind;
            if kind.is_item() {
                items.push(seq);
            }
            if kind == Kind::Sent
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
