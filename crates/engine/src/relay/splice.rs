//! From the view to what is sent on: the client's own bytes wherever they still say what the view shows.
//!
//! An element that is shown whole is kept where it lies. One that is shown in part, or with other words, is read from
//! the client's bytes of this request (marks and fields may have moved since it was journaled), changed and written
//! again. What only the journal knows is written from there. Outside the transcript (the model's name, our tools, the room
//! for the answer) the least that will do is changed. For another dialect the whole view is written.

use super::session_request::SessionRequest;
use super::text;
use crate::error::{Error, Result};
use crate::exchange::request::{
    LIMITS, OutgoingRequest, RequestBody, StoredBlobs, digest, fewer_thoughts, lowered_thoughts, write_file,
};
use crate::thread::Thread;
use komado_core::journal::{ElementGroup, Entry, Sent, TranscriptMark};
use komado_core::message::{Call, CallKind, Message};
use komado_core::raw::{RawJson, RawObject};
use komado_core::view::{ItemSource, ReplacedTexts, ShownItem};
use komado_core::{Head, Kind, Role, Seq};
use komado_provider::{Dialect, ElementAuthor, ModelRequest, ScannedRequest, Splice, SplicePiece};
use std::fs::File;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

/// A stretch of the list of elements.
enum Page {
    Kept(Range<u32>),
    New(Vec<Message>),
}

/// The pages of a list, neighbours joined.
#[derive(Default)]
struct Pages(Vec<Page>);

impl Pages {
    fn keep(&mut self, range: Range<u32>) {
        match self.0.last_mut() {
            Some(Page::Kept(before)) if before.end == range.start => before.end = range.end,
            _ => self.0.push(Page::Kept(range)),
        }
    }

    fn say(&mut self, messages: Vec<Message>) {
        match self.0.last_mut() {
            Some(Page::New(before)) => before.extend(messages),
            _ => self.0.push(Page::New(messages)),
        }
    }

    fn is_all(&self, elements: usize) -> bool {
        matches!(self.0.as_slice(), [Page::Kept(range)] if range.start == 0 && range.end as usize == elements)
    }
}

impl SessionRequest<'_> {
    /// Writes the request as it is to be sent on; `most` is the longest answer that there is room for.
    pub(super) fn outgoing(&self, most: Option<u64>) -> Result<OutgoingRequest> {
        let tokens = self.thread.view().tokens();
        let (offers, max_tokens) = (self.offers_now(), self.limit(most));
        let written = if self.translates() {
            self.write_view(max_tokens, offers)?
        } else {
            let splice = self.splice(max_tokens, offers)?;
            let digest = digest(&splice)?;
            (RequestBody::Spliced(splice), digest)
        };
        let (mark, added) = (Some(self.mark.clone()), if offers { self.own_tokens } else { 0 });
        let thoughts = self.request.thoughts;
        Ok(OutgoingRequest { max_tokens, thoughts, mark, added, ..OutgoingRequest::new(written, tokens) })
    }

    /// The longest answer to ask for, where that is another than the client wants.
    fn limit(&self, most: Option<u64>) -> Option<u64> {
        match (most, self.request.wish) {
            (Some(most), Some(wish)) => Some(most.min(wish)),
            (most, wish) => most.or(wish),
        }
    }

    /// The client's request with what the view shows.
    fn splice(&self, max_tokens: Option<u64>, offers: bool) -> Result<Splice> {
        let (skim, body) = (&*self.arrival.skim, &self.arrival.body);
        let mut patch = BodyPatch::new(skim, body);
        if self.differs() {
            self.list(&mut patch)?;
        }
        if self.upstream.renames {
            patch.model(&self.upstream.asking.model)?;
        }
        if let Some(definitions) = self.definitions(skim.dialect).filter(|_| offers) {
            patch.tools(&definitions);
        }
        if let Some(most) = max_tokens.filter(|most| self.request.wish.is_none_or(|wish| *most < wish)) {
            patch.limit(most)?;
            patch.thoughts(most)?;
        }
        if self.sets_window()? {
            patch.option("num_ctx", self.upstream.asking.window);
        }
        patch.finish()
    }

    /// True when Ollama is to be told how large the window is, because its client does not.
    pub(super) fn sets_window(&self) -> Result<bool> {
        let (asking, arrival) = (&self.upstream.asking, self.arrival);
        let may = arrival.dialect() == Dialect::Ollama && asking.is_given && asking.window > 0;
        Ok(may && !names_window(&arrival.skim, &arrival.body)?)
    }

    /// Puts what the view shows in place of the list.
    fn list(&self, patch: &mut BodyPatch<'_>) -> Result<()> {
        let (skim, body) = (&*self.arrival.skim, &*self.arrival.body);
        let Some(list) = skim.list() else { return Ok(()) };
        let pages = self.pages()?;
        if pages.is_all(skim.elements.len()) && skim.previous.is_none() {
            return Ok(());
        }
        let is_list = text(body, &(list.start..list.start + 1))? == "[";
        let mut pieces = vec![SplicePiece::New(b"[".to_vec())];
        for (i, page) in pages.0.into_iter().enumerate() {
            if i > 0 {
                pieces.push(SplicePiece::New(b",".to_vec()));
            }
            pieces.push(match page {
                // A text in place of a list is one element, and no element of a list.
                Page::Kept(range) if is_list => {
                    let (first, last) = (range.start as usize, range.end as usize - 1);
                    SplicePiece::Kept(skim.elements[first].span.start..skim.elements[last].span.end)
                }
                Page::Kept(range) => SplicePiece::New(self.write(&self.read(range)?)?),
                Page::New(messages) => SplicePiece::New(self.write(&messages)?),
            });
        }
        pieces.push(SplicePiece::New(b"]".to_vec()));
        patch.put(list, pieces);
        if skim.previous.is_some() {
            patch.set("previous_response_id", "null")?;
        }
        Ok(())
    }

    fn write(&self, messages: &[Message]) -> Result<Vec<u8>> {
        let mut blobs = StoredBlobs { store: self.thread.store(), session: self.thread.session() };
        Ok(self.arrival.dialect().write_elements(messages, &mut blobs)?)
    }

    fn read(&self, range: Range<u32>) -> Result<Vec<Message>> {
        Ok(self.arrival.messages(range, &[], Dialect::read_elements)?.messages)
    }

    /// The calls that entries answer: without them some dialects cannot tell what an answer is.
    fn answered(&self, entries: &[Seq]) -> Result<Vec<Call>> {
        let mut calls = Vec::new();
        for &seq in entries {
            if !matches!(self.thread.source().head(seq)?.kind, Kind::Tool | Kind::LateResult) {
                continue;
            }
            if let Entry::Message(message, _) = self.thread.record(seq)?.entry
                && let Some(outcome) = message.outcome()
            {
                calls.push(waiting(&outcome.call_id, outcome.name.as_deref().unwrap_or_default()));
            }
        }
        Ok(calls)
    }

    /// What the view shows, element by element.
    fn pages(&self) -> Result<Pages> {
        let (view, source) = (self.thread.view(), self.thread.source());
        let items = view.items(source)?;
        let mut map = EntryMap::new(&self.thread, &self.mark, self.floor);
        let (mut pages, mut swaps, mut at) = (Pages::default(), ReplacedTexts::default(), 0);
        while let Some(item) = items.get(at) {
            if item.what == ItemSource::Shown {
                pages.say(self.journaled(*item)?);
                at += 1;
                continue;
            }
            let late = self.late(item)?;
            let block = map.block(late.unwrap_or(item.seq))?;
            let mut run = &items[at..=at];
            while let Some(next) = items.get(at + run.len())
                && late.is_none()
                && next.what != ItemSource::Shown
                && block.entries.contains(&next.seq)
                && self.late(next)?.is_none()
            {
                run = &items[at..=at + run.len()];
            }
            let is_said = |item: &ShownItem| matches!(item.what, ItemSource::Said(_));
            let is_whole = run.len() == block.entries.len() && (late.is_some() || run.iter().all(is_said));
            let answers = block.is_tied && (late.is_some() || run[0].what == ItemSource::Said(Kind::Tool));
            match &block.elements {
                Some(range) if is_whole && !answers => pages.keep(range.clone()),
                _ => pages.say(self.rewritten(&block, run, &mut swaps)?),
            }
            at += run.len();
        }
        Ok(pages)
    }

    /// The result that came late and is shown as this item.
    fn late(&self, item: &ShownItem) -> Result<Option<Seq>> {
        let ItemSource::Replaced(by) = item.what else { return Ok(None) };
        Ok((self.thread.source().head(by)?.kind == Kind::LateResult).then_some(by))
    }

    /// What the journal has for an item.
    fn journaled(&self, item: ShownItem) -> Result<Vec<Message>> {
        let mut messages = Vec::new();
        self.thread.view().pour_item(self.thread.source(), item, &mut |_, message: &Message| {
            messages.push(message.clone());
            Ok::<(), Error>(())
        })?;
        Ok(messages)
    }

    /// A part of a block, or all of it with other words: from the client's bytes where they can be read alone.
    fn rewritten(
        &self,
        block: &EntryBlock,
        run: &[ShownItem],
        swaps: &mut ReplacedTexts,
    ) -> Result<Vec<Message>> {
        let told = match &block.elements {
            Some(range) => {
                // What stands beside the journal's own words is named as those are; else what the client does not name by
                // an id has none.
                let read = if block.is_tied { Dialect::read_elements } else { Dialect::read_told };
                self.arrival.messages(range.clone(), &self.answered(&block.entries)?, read)?.messages
            }
            None => Vec::new(),
        };
        let mut messages = Vec::new();
        for item in run {
            let late = self.late(item)?;
            let place = block.entries.iter().position(|seq| *seq == late.unwrap_or(item.seq));
            let told = place.and_then(|at| told.get(at)).filter(|_| told.len() == block.entries.len());
            let kind = self.thread.source().head(item.seq)?.kind;
            match (told.filter(|told| is_of(told.role, kind)), item.what) {
                (Some(told), ItemSource::Replaced(by)) if late.is_none() => {
                    messages.push(told.saying(swaps.text(self.thread.source(), item.seq, by)?));
                }
                (Some(told), _) => messages.push(told.clone()),
                (None, _) => messages.extend(self.journaled(*item)?),
            }
        }
        Ok(messages)
    }

    /// The system prompts at the head of the transcript, as the client says them now: there may be a clock in them.
    fn prompts(&self) -> Result<Vec<Message>> {
        let skim = &self.arrival.skim;
        let is_prompt = |element: &&komado_provider::TranscriptElement| {
            element.by == komado_provider::ElementAuthor::System
        };
        let count = skim.elements.iter().take_while(is_prompt).count();
        if count == 0 || skim.previous.is_some() {
            return Ok(Vec::new());
        }
        self.read(0..u32::try_from(count).unwrap_or(u32::MAX))
    }

    /// The whole view as a request in the provider's dialect, and its digest.
    fn write_view(&self, max_tokens: Option<u64>, offers: bool) -> Result<(RequestBody, String)> {
        let asking = &self.upstream.asking;
        let mut setup = if offers { self.offered(&self.request.setup) } else { self.request.setup.clone() };
        if let (Some(most), Some(params)) = (max_tokens, &setup.params)
            && let Some(lowered) = lowered_thoughts(params.get(), most)
        {
            setup.params = RawJson::parse(lowered).ok();
        }
        let window = Some(asking.window).filter(|window| *window > 0);
        let stream = self.arrival.skim.stream;
        let ask = ModelRequest { max_tokens, stream, window, ..asking.ask(&setup) };
        let mut blobs = StoredBlobs { store: self.thread.store(), session: self.thread.session() };
        let mut current = self.prompts()?.into_iter();
        write_file(
            self.thread.source().request_file()?,
            asking.provider.dialect,
            &ask,
            &mut blobs,
            &mut |put| {
                self.thread.view().pour_said(self.thread.source(), &mut |_, message: &Message| {
                    let own = current.next().filter(|own| own.role == message.role);
                    put(own.as_ref().unwrap_or(message))
                })
            },
        )
    }
}

/// A call that waits for its answer, as far as that matters.
pub(super) fn waiting(id: &str, name: &str) -> Call {
    let (id, name) = (id.to_owned(), name.to_owned());
    Call { id, name, arguments: String::new(), kind: CallKind::Function, extra: None }
}

fn is_of(role: Role, kind: Kind) -> bool {
    let own = match role {
        Role::System | Role::Developer => Kind::System,
        Role::User => Kind::User,
        Role::Assistant => Kind::Assistant,
        Role::Tool => Kind::Tool,
    };
    own == kind
}

/// True when it is the client's request, byte for byte.
pub(super) fn is_whole(splice: &Splice, len: u64) -> bool {
    *splice.pieces() == [SplicePiece::Kept(0..len)]
}

/// The client's request, untouched.
pub(super) fn whole(arrival: &super::ClientRequest) -> Splice {
    Splice::whole(Arc::clone(&arrival.body), arrival.skim.len)
}

/// Changes to a body, each in its place.
pub(super) struct BodyPatch<'a> {
    skim: &'a ScannedRequest,
    body: &'a Arc<File>,
    changes: Vec<(Range<u64>, Vec<SplicePiece>)>,
    /// Ollama's options that are set: however many, they are one change.
    options: Vec<(&'static str, u64)>,
}

impl<'a> BodyPatch<'a> {
    pub(super) fn new(skim: &'a ScannedRequest, body: &'a Arc<File>) -> Self {
        Self { skim, body, changes: Vec::new(), options: Vec::new() }
    }

    /// Puts pieces in place of a range.
    pub(super) fn put(&mut self, range: Range<u64>, pieces: Vec<SplicePiece>) {
        self.changes.push((range, pieces));
    }

    fn say(&mut self, range: Range<u64>, text: String) {
        self.put(range, vec![SplicePiece::New(text.into_bytes())]);
    }

    /// Sets a field to a JSON value; one that is not there is added behind all others.
    pub(super) fn set(&mut self, key: &str, json: &str) -> Result<()> {
        match self.skim.field(key) {
            Some(range) => self.say(range, json.to_owned()),
            None => {
                let end = self.end()?;
                self.say(end..end, format!(",\"{key}\":{json}"));
            }
        }
        Ok(())
    }

    /// Where the request's own brace closes.
    fn end(&self) -> Result<u64> {
        let (mut at, mut byte) = (self.skim.len, [0]);
        while at > 0 {
            at -= 1;
            self.body.read_exact_at(&mut byte, at)?;
            if byte[0] == b'}' {
                break;
            }
        }
        Ok(at)
    }

    /// Another name for the model.
    pub(super) fn model(&mut self, name: &str) -> Result<()> {
        self.set("model", &serde_json::Value::from(name).to_string())
    }

    /// Tools behind the client's own, whose list must have some.
    pub(super) fn tools(&mut self, definitions: &str) {
        if let Some(range) = self.skim.field("tools") {
            self.say(range.end - 1..range.end - 1, format!(",{definitions}"));
        }
    }

    /// The longest answer.
    pub(super) fn limit(&mut self, most: u64) -> Result<()> {
        if self.skim.dialect == Dialect::Ollama {
            self.option("num_predict", most);
            return Ok(());
        }
        let given = LIMITS.into_iter().find(|key| self.skim.field(key).is_some());
        let usual = if self.skim.dialect == Dialect::Responses { "max_output_tokens" } else { "max_tokens" };
        self.set(given.unwrap_or(usual), &most.to_string())
    }

    /// Fewer thoughts, where an answer of `most` tokens has no room for as many as the client wants.
    pub(super) fn thoughts(&mut self, most: u64) -> Result<()> {
        let Some(range) = self.skim.field("thinking") else { return Ok(()) };
        if let Some(fewer) = fewer_thoughts(&text(self.body, &range)?, most) {
            self.say(range, fewer);
        }
        Ok(())
    }

    /// One of Ollama's options.
    pub(super) fn option(&mut self, key: &'static str, value: u64) {
        self.options.retain(|(other, _)| *other != key);
        self.options.push((key, value));
    }

    /// Writes the options that are set behind those that the client has.
    fn set_options(&mut self) -> Result<()> {
        let set = std::mem::take(&mut self.options);
        if set.is_empty() {
            return Ok(());
        }
        let place = self.skim.field("options");
        let old = place.map(|range| text(self.body, &range)).transpose()?.unwrap_or_default();
        let object = RawObject::parse(&old).ok();
        let is_kept = |name: &str| set.iter().all(|(key, _)| *key != name);
        let kept = object.iter().flat_map(|object| &object.0).filter(|(name, _)| is_kept(name));
        let kept =
            kept.map(|(name, json)| format!("{}:{}", serde_json::Value::from(name.as_ref()), json.get()));
        let fields: Vec<String> =
            kept.chain(set.iter().map(|(key, value)| format!("\"{key}\":{value}"))).collect();
        self.set("options", &format!("{{{}}}", fields.join(",")))
    }

    /// The request with its changes; whole and untouched when there are none.
    pub(super) fn finish(mut self) -> Result<Splice> {
        self.set_options()?;
        if self.changes.is_empty() {
            return Ok(Splice::whole(Arc::clone(self.body), self.skim.len));
        }
        self.changes.sort_by_key(|(range, _)| (range.start, range.end));
        let (mut at, mut pieces) = (0, Vec::new());
        for (range, new) in self.changes {
            pieces.push(SplicePiece::Kept(at..range.start));
            pieces.extend(new);
            at = range.end;
        }
        pieces.push(SplicePiece::Kept(at..self.skim.len));
        Ok(Splice::new(Arc::clone(self.body), joined(pieces)))
    }
}

/// Neighbours that were neighbours before are one piece; empty ones are none.
fn joined(pieces: Vec<SplicePiece>) -> Vec<SplicePiece> {
    let mut joined: Vec<SplicePiece> = Vec::with_capacity(pieces.len());
    for piece in pieces.into_iter().filter(|piece| !piece.is_empty()) {
        match (joined.last_mut(), piece) {
            (Some(SplicePiece::Kept(before)), SplicePiece::Kept(range)) if before.end == range.start => {
                before.end = range.end
            }
            (Some(SplicePiece::New(before)), SplicePiece::New(bytes)) => before.extend(bytes),
            (_, piece) => joined.push(piece),
        }
    }
    joined
}

/// True when Ollama's client says how large the window is to be.
pub(super) fn names_window(skim: &ScannedRequest, body: &File) -> Result<bool> {
    let Some(range) = skim.field("options") else { return Ok(false) };
    let options = text(body, &range)?;
    Ok(RawObject::parse(&options).is_ok_and(|options| options.get("num_ctx").is_some()))
}

// Which entry of a thread is which element of the client's transcript.
//
// Every request that was sent on left a mark: how far the transcript went, and how its new elements became entries. By
// the marks around an entry its elements are found, without reading what is hidden: the cost is that of what is shown.

/// Entries that stand for elements, or for none.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct EntryBlock {
    /// The entries, in order.
    pub(super) entries: Vec<Seq>,
    /// The elements; `None` for what only the journal knows, or tells better.
    pub(super) elements: Option<Range<u32>>,
    /// True when the elements answer calls beside answers that the client does not know of: then both are written anew, as one.
    pub(super) is_tied: bool,
}

/// The entries between two marks.
struct Turn {
    span: (Seq, Seq),
    blocks: Vec<EntryBlock>,
}

/// Looks entries up, in the order of the view.
pub(super) struct EntryMap<'a> {
    thread: &'a Thread<'a>,
    /// The mark of the request that is being written; its entry is still to come.
    now: &'a TranscriptMark,
    /// Entries up to here are not in this transcript at all.
    floor: Seq,
    turn: Option<Turn>,
}

impl<'a> EntryMap<'a> {
    pub(super) fn new(thread: &'a Thread<'a>, now: &'a TranscriptMark, floor: Seq) -> Self {
        Self { thread, now, floor, turn: None }
    }

    /// The block that holds an entry.
    pub(super) fn block(&mut self, seq: Seq) -> Result<EntryBlock> {
        let is_near = self.turn.as_ref().is_some_and(|turn| turn.span.0 < seq && seq < turn.span.1);
        if !is_near {
            self.turn = Some(self.turn_around(seq)?);
        }
        let found = self.turn.as_ref().and_then(|turn| {
            let ends = |block: &EntryBlock| block.entries.last().is_some_and(|last| *last < seq);
            turn.blocks.get(turn.blocks.partition_point(ends)).filter(|block| block.entries.contains(&seq))
        });
        let alone = || EntryBlock { entries: vec![seq], elements: None, is_tied: false };
        Ok(found.filter(|_| seq > self.floor).cloned().unwrap_or_else(alone))
    }

    fn turn_around(&self, seq: Seq) -> Result<Turn> {
        let (view, source) = (self.thread.view(), self.thread.source());
        let before = self.mark(view.back(source, seq.saturating_sub(1)))?;
        let after = self.mark(view.forth(source, seq))?;
        let from = before.as_ref().map_or(0, |(seq, _)| *seq);
        let (to, mark) = after.unwrap_or_else(|| (self.thread.last() + 1, self.now.clone()));
        let mut items = Vec::new();
        for entry in view.forth(source, from + 1) {
            let (seq, head) = entry?;
            if seq >= to {
                break;
            }
            items.extend(head.kind.is_said().then_some(seq));
        }
        let ours = self.begins_with_answers(&mark, &items)?;
        let blocks = blocks(before.map(|(_, mark)| mark), &mark, items, ours);
        Ok(Turn { span: (from, to), blocks })
    }

    /// True when what was taken in begins with answers that the client does not know of: the reply before them has calls
    /// that it does not know of either.
    fn begins_with_answers(&self, mark: &TranscriptMark, items: &[Seq]) -> Result<bool> {
        let Some(ElementGroup { elements: 0, .. }) = mark.groups.first() else { return Ok(false) };
        match items.get(items.len().saturating_sub(taken(mark))) {
            Some(first) => Ok(match self.thread.record(*first)?.entry {
                // One that only says that a call was given up is no answer of ours.
                Entry::Message(message, _) => message.outcome().is_some_and(|outcome| !outcome.interrupted),
                _ => false,
            }),
            None => Ok(false),
        }
    }

    /// The first mark among these entries.
    fn mark(
        &self,
        entries: impl Iterator<Item = komado_store::Result<(Seq, Head)>>,
    ) -> Result<Option<(Seq, TranscriptMark)>> {
        for entry in entries {
            let (seq, head) = entry?;
            if head.kind == Kind::Sent
                && let Entry::Sent(Sent { mark: Some(mark), .. }) = self.thread.record(seq)?.entry
            {
                return Ok(Some((seq, mark)));
            }
        }
        Ok(None)
    }
}

/// Entries that were taken in with a mark.
fn taken(mark: &TranscriptMark) -> usize {
    mark.groups.iter().map(|group| (group.entries as usize) * group.times as usize).sum()
}

/// The blocks between two marks. The first entry is the reply to the request before, unless that brought none. `ours`
/// says that answers of ours to its calls come next.
fn blocks(
    before: Option<TranscriptMark>,
    mark: &TranscriptMark,
    items: Vec<Seq>,
    ours: bool,
) -> Vec<EntryBlock> {
    let taken = taken(mark);
    let mut items = items.into_iter();
    let mut blocks = Vec::new();
    while items.len() > taken {
        let Some(seq) = items.next() else { break };
        let is_reply = blocks.is_empty();
        let told = before.as_ref().filter(|before| is_reply && !ours && !mark.inner && !before.inner);
        let elements = told.map(|before| before.elements..mark.from).filter(|range| !range.is_empty());
        blocks.push(EntryBlock { entries: vec![seq], elements, is_tied: false });
    }
    // Elements that became no entry of their own go with the entries around them.
    let (mut at, mut begun) = (mark.from, mark.from);
    for group in mark.groups.iter().flat_map(|group| (0..group.times).map(move |_| group)) {
        let ElementGroup { elements, entries, .. } = *group;
        at += elements;
        let entries: Vec<Seq> = items.by_ref().take(entries as usize).collect();
        let last = blocks.last_mut().and_then(|block: &mut EntryBlock| block.elements.as_mut());
        match last.filter(|range| entries.is_empty() && range.end == begun) {
            Some(range) => (range.end, begun) = (at, at),
            None if entries.is_empty() => {}
            None if elements == 0 => blocks.push(EntryBlock { entries, elements: None, is_tied: false }),
            None => {
                blocks.push(EntryBlock { entries, elements: Some(begun..at), is_tied: ours });
                begun = at;
            }
        }
    }
    blocks
}

/// How much of a transcript is read at a time.
const STRETCH: u64 = 8 << 20;

/// Elements in stretches that can be read alone: each begins where a user speaks.
pub(super) fn stretches(skim: &ScannedRequest, which: Range<u32>) -> Vec<Range<u32>> {
    let mut stretches = Vec::new();
    let (mut from, mut bytes) = (which.start, 0);
    for at in which.clone() {
        let Some(element) = skim.elements.get(at as usize) else { break };
        if bytes > STRETCH && element.by == ElementAuthor::User {
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
mod entry_map_tests {
    use super::*;

    fn mark(from: u32, elements: u32, groups: &[[u32; 3]]) -> TranscriptMark {
        let groups = groups.iter().copied().map(ElementGroup::from).collect();
        TranscriptMark { from, elements, digest: String::new(), groups, inner: false, apart: false }
    }

    fn told(blocks: &[EntryBlock]) -> Vec<(Vec<Seq>, Option<Range<u32>>)> {
        blocks.iter().map(|block| (block.entries.clone(), block.elements.clone())).collect()
    }

    #[test]
    fn the_reply_is_what_the_client_tells_between_two_marks() {
        let found =
            blocks(Some(mark(0, 3, &[])), &mark(4, 6, &[[1, 1, 1], [1, 2, 1]]), vec![7, 8, 9, 10], false);
        let expected = [(vec![7], Some(3..4)), (vec![8], Some(4..5)), (vec![9, 10], Some(5..6))];
        assert_eq!(told(&found), expected);
    }

    #[test]
    fn a_request_without_a_reply_leaves_none_behind() {
        let found = blocks(Some(mark(0, 3, &[])), &mark(3, 4, &[[1, 1, 1]]), vec![7], false);
        assert_eq!(told(&found), [(vec![7], Some(3..4))]);
    }

    #[test]
    fn an_inner_exchange_is_told_from_the_journal() {
        let inner = TranscriptMark { inner: true, ..mark(3, 3, &[[0, 1, 1]]) };
        let first = blocks(Some(mark(0, 3, &[])), &inner, vec![7, 8], true);
        assert_eq!(told(&first), [(vec![7], None), (vec![8], None)]);
        let second = blocks(Some(inner), &mark(4, 5, &[[1, 1, 1]]), vec![9, 10], false);
        assert_eq!(told(&second), [(vec![9], None), (vec![10], Some(4..5))]);
    }

    #[test]
    fn an_answer_of_ours_beside_the_clients_ties_the_two() {
        let found = blocks(Some(mark(0, 3, &[])), &mark(4, 5, &[[0, 1, 1], [1, 1, 1]]), vec![7, 8, 9], true);
        assert_eq!(told(&found), [(vec![7], None), (vec![8], None), (vec![9], Some(4..5))]);
        assert!(found[2].is_tied && !found[1].is_tied);
    }

    #[test]
    fn words_that_the_client_does_not_know_stand_between_its_own() {
        let found = blocks(Some(mark(0, 3, &[])), &mark(4, 5, &[[0, 1, 1], [1, 1, 1]]), vec![7, 8, 9], false);
        assert_eq!(told(&found), [(vec![7], Some(3..4)), (vec![8], None), (vec![9], Some(4..5))]);
        assert!(found.iter().all(|block| !block.is_tied));
    }
}
