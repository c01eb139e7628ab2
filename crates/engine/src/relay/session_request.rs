//! One request in its thread, from the moment it is placed until it is answered.
//!
//! It holds its thread alone. What is journaled goes through one handle; what is left to be tidied up is noted when it
//! ends, however it ends. Calls of our own tools are answered and the model is asked again, all for one answer.
//!
//! Those tools stand behind the client's, always with the same bytes, from the first edit on. A client that brings no tools
//! is offered none: it may not expect an answer that calls some. Whether they are offered follows from the view alone, so
//! that it is the same after a restart.

use super::client_stream::{ClientReceiver, ClientStream, cut_short};
use super::splice::{is_whole, stretches, waiting, whole};
use super::threads::{ThreadClaim, find};
use super::{
    ClientOutlet, ClientRequest, Relay, RelayConfig, RelayFault, RelayNotes, RelayUpstream, RequestSetup,
    is_own, names,
};
use crate::condense::{ByDigest, CondenseSettings, OriginalsHint, Summariser};
use crate::error::{Error, Result};
use crate::exchange::request::{OutgoingRequest, RequestBody, RequestRoom, StoredBlobs, digest, window};
use crate::exchange::response::{LostResponse, SendOutcome, UnansweredReason, receive};
use crate::exchange::{
    ExchangeContext, ExchangeEvent, ExchangeOutcome, ExchangeWire, MOST_ROUNDS, RecallTools, exchange,
};
use crate::fit::{DoneEdit, FitResult, Ladder};
use crate::late;
use crate::lesson::AppliedLesson;
use crate::place::{PlacedTranscript, reply_name};
use crate::thread::{MessageBatch, Thread};
use komado_core::budget::{Budget, Policy};
use komado_core::journal::{ElementGroup, Entry, Sent, Setup, TranscriptMark};
use komado_core::message::{Call, Message};
use komado_core::raw::RawJson;
use komado_core::{Kind as EntryKind, Seq, View};
use komado_provider::dialect::ResponseStamp;
use komado_provider::{Dialect, ModelResponse, ProviderFailure, ResponseForm};
use komado_store::TranscriptPlace;
use std::ops::Range;

/// A request at work in its thread.
pub(super) struct SessionRequest<'r> {
    pub(super) relay: &'r Relay,
    pub(super) arrival: &'r ClientRequest,
    pub(super) upstream: &'r RelayUpstream,
    pub(super) manner: &'r RelayConfig<'r>,
    /// What it asks for beside its transcript.
    pub(super) request: RequestSetup,
    pub(super) thread: Thread<'r>,
    /// Behind the thread, so that it is given back after that is closed.
    _claim: ThreadClaim<'r>,
    /// The mark of the next request that is sent.
    pub(super) mark: TranscriptMark,
    /// Entries up to here are not in the client's transcript: it leans on what the server remembers.
    pub(super) floor: Seq,
    /// The entry that announces the client's own bytes, when they were announced together with what is new in them.
    pub(super) announced: Option<Seq>,
    /// Tokens of our own tools, for which room is kept; 0 when they are never offered here.
    pub(super) own_tokens: u64,
    /// What is known about the model: read once, and followed from there.
    pub(super) lesson: AppliedLesson,
    pub(super) notes: RelayNotes,
}

/// What a request came for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum SessionRequestKind {
    /// An answer of the model.
    Answer,
    /// Its own transcript, made shorter: nothing of it leaves.
    Compact,
}

impl<'r> SessionRequest<'r> {
    /// Places a request, makes or opens its thread, and takes in what is new.
    pub(super) fn open(
        relay: &'r Relay,
        arrival: &'r ClientRequest,
        upstream: &'r RelayUpstream,
        manner: &'r RelayConfig<'r>,
        kind: SessionRequestKind,
    ) -> std::result::Result<Self, RelayFault> {
        let request = RequestSetup::read(arrival)?;
        let (placed, claim, thread) = find(relay, arrival, upstream, manner)?;
        let notes = RelayNotes {
            session: Some(thread.session().clone()),
            thread: Some(thread.id().clone()),
            placed: placed.how.name(),
            ..RelayNotes::default()
        };
        let lesson = AppliedLesson::known(thread.store(), &upstream.asking.about(), thread.session())?;
        let floor = if arrival.skim.previous.is_some() { thread.last() } else { 0 };
        let mut opened = Self {
            relay,
            arrival,
            upstream,
            manner,
            request,
            thread,
            _claim: claim,
            mark: TranscriptMark::default(),
            floor,
            announced: None,
            own_tokens: 0,
            lesson,
            notes,
        };
        tracing::debug_span!("admit").in_scope(|| opened.take_in(&placed, kind))?;
        opened.own_tokens = opened.tokens_of_tools();
        Ok(opened)
    }

    /// Asks the model, as often as it takes, and answers the client.
    pub(super) fn answer(mut self, outlet: &mut dyn ClientOutlet) -> std::result::Result<(), RelayFault> {
        let mut client = ClientStream::new(outlet, self.arrival.dialect(), self.arrival.skim.stream);
        let mut round = 0;
        let ended = loop {
            match self.round(&mut client, round) {
                Ok(true) => round += 1,
                Ok(false) => break Ok(()),
                Err(fault) if !client.begun() => break Err(fault),
                Err(RelayFault::Ours(error)) => {
                    self.notes.fault = Some(error.to_string());
                    client.finish(Some("stop"));
                    break Ok(());
                }
                Err(RelayFault::Theirs(error)) => {
                    self.notes.cut = Some(error.to_string());
                    let body = serde_json::json!({"error": {"message": error.to_string()}}).to_string();
                    client.fail(ProviderFailure { status: 502, body });
                    break Ok(());
                }
            }
        };
        if client.gone() && self.notes.cut.is_none() {
            self.notes.cut = Some(UnansweredReason::Gone.to_string());
        }
        // The client may go on as soon as it reads the end: by then its thread is free.
        let notes = self.notes.clone();
        drop(self);
        ended?;
        client.close(&notes);
        Ok(())
    }

    /// One exchange. True when the model is to be asked again.
    fn round(&mut self, client: &mut ClientStream<'_>, round: u32) -> std::result::Result<bool, RelayFault> {
        let room = self.room();
        if let (0, Some(turns)) = (round, self.upstream.asking.history) {
            let budget = room.budget.clone().unwrap_or_else(|| self.budget(u64::from(u32::MAX)));
            let fitted = self.thread.bound_history(turns, &budget, Some(self.reach()))?;
            self.count(fitted.as_ref().map_or(&[], |fitted| &fitted.done));
        }
        if let Some(why) = self.guard(&room)? {
            client.refuse_ours(why, &self.notes);
            return Ok(false);
        }
        let mut wire = Spliced { request: self, client, offers: false };
        let exchanged = exchange(&mut wire, room)?;
        let offers = wire.offers;
        match exchanged {
            ExchangeOutcome::Answer { response, reply, journaled } => {
                let own = journaled.and_then(|seq| self.own_calls(seq, reply.id, offers));
                self.take_reply(own, &response, client, round)
            }
            ExchangeOutcome::Lost { lost, journaled } => self.lost(lost, journaled, client).map(|()| false),
            ExchangeOutcome::TooLarge(why) => {
                if let Some(why) = why {
                    client.refuse_too_large(&why, self.translates(), &self.notes);
                }
                Ok(false)
            }
        }
    }

    /// Looks whether the model repeats a call whose answer it is not shown; gives the reason to stop, where there is one.
    fn guard(&mut self, room: &RequestRoom) -> Result<Option<String>> {
        let Some(budget) = &room.budget else { return Ok(None) };
        let Some(repeated) = self.thread.guard(budget)? else { return Ok(None) };
        self.notes.repeats = repeated.times;
        let most = self.manner.max_repeats;
        let window = self.window();
        Ok((most > 0 && repeated.times >= most).then(|| {
            format!(
                "stopped: {}, in a window of {window} tokens (server.max_repeats = {most}). Nothing is lost: use a larger \
                 window, ask for less at once, or go on in session {}",
                repeated.told(),
                self.thread.session()
            )
        }))
    }

    /// The calls in a reply that are ours to answer.
    fn own_calls(&mut self, seq: Seq, id: Option<String>, offers: bool) -> Result<Vec<Call>> {
        if let Some(id) = id {
            self.note(id, seq)?;
        }
        if !offers {
            return Ok(Vec::new());
        }
        // What was journaled has ids for calls that came without.
        let Entry::Message(message, _) = self.thread.record(seq)?.entry else { return Ok(Vec::new()) };
        Ok(message.calls().filter(|call| is_own(&call.name)).cloned().collect())
    }

    /// Answers our own calls in a reply. True when the model is to be asked again.
    fn take_reply(
        &mut self,
        own: Result<Vec<Call>>,
        response: &ModelResponse,
        client: &mut ClientStream<'_>,
        round: u32,
    ) -> std::result::Result<bool, RelayFault> {
        let own = match own {
            Err(error) if !client.speaks() => return Err(error.into()),
            Err(error) => {
                self.notes.fault = Some(error.to_string());
                Vec::new()
            }
            Ok(own) => own,
        };
        if own.is_empty() {
            client.finish(None);
            return Ok(false);
        }
        let told = self.thread.answer_calls(&mut RecallTools, &own, round + 1);
        self.notes.recalls += told.as_ref().map_or(0, |()| u32::try_from(own.len()).unwrap_or(u32::MAX));
        if response.message().is_some_and(|message| message.calls().count() > own.len()) {
            self.notes.fault = told.err().map(|error| error.to_string());
            client.finish(None);
            return Ok(false);
        }
        // Where nothing was sent yet the request can still go on untouched.
        told?;
        if round > MOST_ROUNDS {
            client.finish(Some("stop"));
            return Ok(false);
        }
        self.go_inside(own.len());
        Ok(true)
    }

    /// No reply came. Once the client reads an answer, a journal that fails is only told.
    fn lost(
        &mut self,
        lost: LostResponse,
        journaled: Result<Seq>,
        client: &mut ClientStream<'_>,
    ) -> std::result::Result<(), RelayFault> {
        match journaled {
            Err(error) if client.speaks() => self.notes.fault = Some(error.to_string()),
            journaled => drop(journaled?),
        }
        match lost.error {
            UnansweredReason::Send(error) if lost.response.is_none() || !client.begun() => {
                return Err(RelayFault::Theirs(error));
            }
            UnansweredReason::Broken if !client.begun() => return Err(RelayFault::Theirs(cut_short())),
            // The client has all of it; only the journal could not take it.
            UnansweredReason::Answer(_) if lost.finish == "refused" => client.finish(None),
            error if error.is_cut() => self.notes.cut = Some(error.to_string()),
            _ => {}
        }
        Ok(())
    }

    /// Condenses, and answers with the items that are left.
    pub(super) fn compact(mut self, outlet: &mut dyn ClientOutlet) -> std::result::Result<(), RelayFault> {
        let window = match self.window() {
            0 => self.lesson.theirs(self.thread.view().tokens()).max(1),
            window => window,
        };
        let (mut budget, settings) = (self.budget(window), self.manner.settings.clone());
        let fitted = self.climb(&mut budget, settings, |thread, ladder| thread.condense_now(ladder))?;
        self.notes.after = fitted.after;
        let body = self.compacted()?;
        let mut client = ClientStream::new(outlet, self.arrival.dialect(), self.arrival.skim.stream);
        let notes = self.notes.clone();
        drop(self);
        client.send_whole(200, ResponseForm::Whole, &body, &notes);
        client.close(&notes);
        Ok(())
    }

    fn compacted(&self) -> Result<Vec<u8>> {
        let mut messages = Vec::new();
        self.thread.view().pour_said(self.thread.source(), &mut |_, message: &Message| {
            messages.push(message.clone());
            Ok::<(), Error>(())
        })?;
        let mut blobs = StoredBlobs { store: self.thread.store(), session: self.thread.session() };
        let items = self.arrival.dialect().write_elements(&messages, &mut blobs)?;
        let (created, last) = (seconds(&self.relay.engine.now()), self.thread.last());
        let (before, after) = (self.notes.before, self.notes.after);
        let (session, all, items) = (self.thread.session(), before + after, String::from_utf8_lossy(&items));
        let body = format!(
            "{{\"id\":\"resp_{session}_{last}\",\"object\":\"response.compaction\",\"created_at\":{created},\
             \"output\":[{items}],\"usage\":{{\"input_tokens\":{before},\"input_tokens_details\":{{\"cached_tokens\":0}},\
             \"output_tokens\":{after},\"output_tokens_details\":{{\"reasoning_tokens\":0}},\"total_tokens\":{all}}}}}"
        );
        Ok(body.into_bytes())
    }

    /// Makes edits in `budget`, with the summariser of this session, and counts them.
    pub(super) fn climb(
        &mut self,
        budget: &mut Budget,
        settings: CondenseSettings,
        climb: impl FnOnce(&mut Thread<'r>, &mut Ladder<'_>) -> Result<FitResult>,
    ) -> Result<FitResult> {
        let settings = CondenseSettings { reach: Some(self.reach()), ..settings };
        let (session, meter) = (self.thread.session().clone(), self.thread.meter());
        let mut digest = ByDigest::new(meter);
        let mut own = self.manner.summariser.summariser(&session, meter, &self.upstream.asking.cancel);
        let by: &mut dyn Summariser = match &mut own {
            Some(writer) => writer.by(),
            None => &mut digest,
        };
        let mut ladder = Ladder { budget: budget.clone(), settings, by };
        let fitted = climb(&mut self.thread, &mut ladder)?;
        *budget = ladder.budget;
        self.count(&fitted.done);
        Ok(fitted)
    }

    /// Counts the edits that were made.
    fn count(&mut self, done: &[DoneEdit]) {
        if !done.is_empty() {
            // What was announced is not what will be sent.
            self.announced = None;
        }
        for done in done {
            self.notes.edits += 1;
            let name = done.rung.name();
            match self.notes.rungs.iter_mut().find(|(other, _)| *other == name) {
                Some((_, times)) => *times += 1,
                None => self.notes.rungs.push((name, 1)),
            }
        }
    }

    /// True when the request goes out in another dialect than it came in.
    pub(super) fn translates(&self) -> bool {
        self.upstream.asking.provider.dialect != self.arrival.dialect()
    }

    /// True when the view is not just what was said.
    pub(super) fn has_edits(&self) -> bool {
        self.thread.view().edits().next().is_some()
    }

    /// True when what the client sends is not just what the view shows.
    pub(super) fn differs(&self) -> bool {
        self.mark.apart || self.has_edits()
    }

    /// What cannot be reached is not promised: the model has our tools, or the client's of the same names, or none.
    fn reach(&self) -> OriginalsHint {
        let is_theirs = || names(&self.request.setup).iter().any(|name| is_own(name));
        if self.own_tokens > 0 || is_theirs() { OriginalsHint::Tools } else { OriginalsHint::Kept }
    }

    /// The window by all that is known; 0 when nothing is.
    pub(super) fn window(&self) -> u64 {
        window(&self.upstream.asking, &self.lesson)
    }

    /// What the first try of a round may take.
    fn room(&self) -> RequestRoom {
        let policy = Policy { longest: self.request.wish, ..self.manner.policy.clone() };
        RequestRoom::known(policy, self.own_tokens, &self.upstream.asking, &self.lesson)
    }

    /// The budget in a window of so many tokens of the provider's.
    pub(super) fn budget(&self, window: u64) -> Budget {
        self.room().within(window, &self.upstream.asking, &self.lesson)
    }

    /// Notes where the transcript stands.
    pub(super) fn note(&self, name: String, seq: Seq) -> Result<()> {
        let (session, thread) = (self.thread.session().clone(), self.thread.id().clone());
        Ok(self.thread.store().note(&[TranscriptPlace { name, session, thread, seq }])?)
    }
}

/// A request of a client, with the client's end of it.
struct Spliced<'g, 'r, 'o> {
    request: &'g mut SessionRequest<'r>,
    client: &'g mut ClientStream<'o>,
    /// True when our own tools were offered in the last request.
    offers: bool,
}

impl<'r> ExchangeWire<'r> for Spliced<'_, 'r, '_> {
    fn context(&mut self) -> ExchangeContext<'_, 'r> {
        let SessionRequest { upstream, lesson, thread, .. } = &mut *self.request;
        ExchangeContext { asking: &upstream.asking, lesson, store: thread.store(), thread: Some(thread) }
    }

    fn fit(&mut self, room: &mut RequestRoom) -> Result<bool> {
        // A refusal may have shown how small the window is.
        self.request.own_tokens = self.request.tokens_of_tools();
        room.beside(self.request.own_tokens, self.request.thread.view());
        let budget = room.budget.as_mut().filter(|budget| !self.request.thread.has_room(budget));
        let Some(budget) = budget else { return Ok(true) };
        let settings = self.request.manner.settings.clone();
        match self.request.climb(budget, settings, |thread, ladder| thread.fit(ladder)) {
            Ok(_) => Ok(true),
            Err(error) if error.is_no_room() => Ok(false),
            Err(other) => Err(other),
        }
    }

    fn render(&mut self, room: &RequestRoom) -> Result<OutgoingRequest> {
        let SessionRequest { request, thread, upstream, lesson, announced, arrival, .. } = &mut *self.request;
        let (tokens, max_tokens) = (thread.view().tokens(), request.wish);
        if let Some(seq) = announced.take() {
            let written = (RequestBody::Spliced(whole(arrival)), String::new());
            let (thoughts, announced) = (request.thoughts, Some(seq));
            let whole = OutgoingRequest::new(written, tokens);
            return Ok(OutgoingRequest { max_tokens, thoughts, announced, ..whole });
        }
        // What an earlier request wished for is no wish of this one.
        let most = room.longest_answer(request.wish, request.thoughts, tokens, &upstream.asking, lesson);
        let outgoing = self.request.outgoing(most)?;
        self.offers = outgoing.added > 0;
        Ok(outgoing)
    }

    fn send(&mut self, outgoing: &OutgoingRequest) -> SendOutcome {
        let (translates, offers) = (self.request.translates(), self.offers);
        let SessionRequest { relay, arrival, upstream, request, notes, .. } = &mut *self.request;
        notes.after = outgoing.tokens + outgoing.added;
        notes.attempts += 1;
        let asking = &upstream.asking;
        let body = outgoing.body.body();
        let sent = match &outgoing.body {
            RequestBody::Spliced(splice) => {
                notes.untouched = is_whole(splice, arrival.skim.len);
                upstream.forward(body)
            }
            RequestBody::File(..) => {
                notes.untouched = false;
                asking.client.post(&asking.provider, body, &asking.cancel, &mut |_| {})
            }
        };
        let form = self.client.form();
        if translates || offers {
            let created_at = relay.engine.now();
            let stamp = ResponseStamp { created: seconds(&created_at), created_at, usage: request.usage };
            self.client.encode(form, stamp, offers);
        } else {
            self.client.repeat();
        }
        let mut receiver = ClientReceiver::new(self.client, notes, relay.patience, translates, offers);
        receive(asking, sent, form, &mut receiver)
    }

    fn tell(&mut self, news: ExchangeEvent<'_>) -> Result<()> {
        let request = &mut *self.request;
        match news {
            ExchangeEvent::Sent { seq, .. } => request.noted(seq)?,
            ExchangeEvent::TooLarge { .. } => request.notes.overflows += 1,
            ExchangeEvent::Truncated { reported, expected } => {
                request.notes.truncated = Some((reported, expected))
            }
            ExchangeEvent::Trouble(error) => request.notes.fault = Some(error.to_string()),
            _ => {}
        }
        Ok(())
    }

    fn reply_id(&self, id: &str) -> Option<String> {
        Some(reply_name(&self.request.arrival.caller, id))
    }

    fn uncertain(&self) -> Result<u64> {
        self.request.relay.uncertain.of(&self.request.thread)
    }
}

impl Drop for SessionRequest<'_> {
    fn drop(&mut self) {
        // Told while the thread is still held: a recount of the journal must not come between.
        let told = self.thread.tell_debt();
        let (counters, at) = if told.is_ok() { Default::default() } else { self.thread.debt() };
        self.relay.idle.touch(self.thread.session(), self.thread.id(), counters, at);
    }
}

/// Seconds since 1970 of a time as RFC 3339; 0 for what is none.
pub(super) fn seconds(time: &str) -> u64 {
    time.parse::<jiff::Timestamp>().map_or(0, |time| u64::try_from(time.as_second()).unwrap_or(0))
}

impl SessionRequest<'_> {
    /// The next request is ours alone: it brings `answers` that the client does not know of.
    pub(super) fn go_inside(&mut self, answers: usize) {
        let group =
            ElementGroup { elements: 0, entries: u32::try_from(answers).unwrap_or(u32::MAX), times: 1 };
        let end = self.mark.elements;
        self.mark = TranscriptMark {
            from: end,
            elements: end,
            groups: vec![group],
            inner: true,
            apart: true,
            digest: self.mark.digest.clone(),
        };
    }
}

/// True when system prompt or tools are others; parameters do not count.
fn differs(old: &Setup, new: &Setup) -> bool {
    let words = |setup: &Setup| setup.system.clone().filter(|system| !system.is_empty());
    let tools = |setup: &Setup| {
        setup.tools.as_ref().map(RawJson::get).filter(|tools| *tools != "[]").map(str::to_owned)
    };
    words(old) != words(new) || tools(old) != tools(new)
}

/// Groups, as they are gathered: neighbours of one shape are counted.
#[derive(Default)]
struct Groups(Vec<ElementGroup>);

impl Groups {
    fn push(&mut self, elements: u32, entries: u32) {
        if elements + entries == 0 {
            return;
        }
        match self.0.last_mut() {
            Some(last) if (last.elements, last.entries) == (elements, entries) => last.times += 1,
            _ => self.0.push(ElementGroup { elements, entries, times: 1 }),
        }
    }
}

impl SessionRequest<'_> {
    /// Takes in what the journal does not know yet.
    fn take_in(&mut self, placed: &PlacedTranscript, kind: SessionRequestKind) -> Result<()> {
        let skim = &self.arrival.skim;
        let mut groups = Groups::default();
        let all = u32::try_from(skim.elements.len()).unwrap_or(u32::MAX);
        let from = placed.known.min(all);
        let (entries, mut apart) = self.unknown_to_client()?;
        groups.push(0, entries);
        let mut stretches = stretches(skim, from..all).into_iter().peekable();
        let new = &self.request.setup;
        let mut setup = differs(&self.thread.setup()?, new).then(|| new.clone());
        loop {
            let stretch = stretches.next();
            let is_last = stretches.peek().is_none();
            let mut batch = self.thread.batch();
            if let Some(setup) = setup.take() {
                batch.enter(Entry::Setup(setup))?;
            }
            if let Some(stretch) = stretch {
                apart |= self.read_in(&mut batch, stretch, &mut groups)?;
            }
            let mut announced = None;
            if is_last {
                // What follows on something that only the server knows is not a beginning of anything.
                let digest =
                    skim.digest(all as usize).filter(|_| skim.previous.is_none()).unwrap_or_default();
                let groups = std::mem::take(&mut groups.0);
                self.mark = TranscriptMark { from, elements: all, digest, groups, inner: false, apart };
                if kind == SessionRequestKind::Answer {
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
    fn noted(&mut self, seq: Seq) -> Result<()> {
        if !self.mark.digest.is_empty() && !self.mark.inner {
            self.note(self.mark.digest.clone(), seq)?;
        }
        self.mark.from = self.mark.elements;
        self.mark.groups.clear();
        Ok(())
    }

    /// Reads a stretch of elements into a batch. True when calls were given up for it.
    fn read_in(
        &self,
        batch: &mut MessageBatch<'_>,
        stretch: Range<u32>,
        groups: &mut Groups,
    ) -> Result<bool> {
        let mut gave_up = false;
        let open = &batch.view().open().calls;
        let mut open: Vec<_> = open.iter().map(|call| waiting(&call.id, &call.name)).collect();
        if self.arrival.dialect() == Dialect::Responses && self.arrival.has_results(&stretch) {
            open.extend(late::given_up(self.thread.view(), self.thread.source())?);
        }
        let tail = self.arrival.messages(stretch, &open, Dialect::read_elements)?;
        let mut messages = tail.messages.into_iter();
        for group in tail.groups.iter().flat_map(|group| (0..group.times).map(move |_| group)) {
            // Calls that the client left without an answer are answered before the next message.
            for (i, message) in messages.by_ref().take(group.entries as usize).enumerate() {
                let before = batch.view().last();
                let seq = batch.say(message, None)?;
                gave_up |= seq > before + 1;
                if i == 0 {
                    groups.push(0, seq - before - 1);
                }
            }
            groups.push(group.elements, group.entries);
        }
        Ok(gave_up)
    }

    /// What the thread has behind the last reply and the client does not tell: how many entries, and whether there is anything
    /// of that kind, now or before.
    fn unknown_to_client(&self) -> Result<(u32, bool)> {
        let (mut items, sent, before) = self.since_mark()?;
        if let Some(first) = items.first()
            && let Entry::Message(_, Some(reply)) = self.thread.record(*first)?.entry
            && reply.to == sent
        {
            items.remove(0);
        }
        let entries = u32::try_from(items.len()).unwrap_or(u32::MAX);
        Ok((entries, before || entries > 0))
    }

    /// What was said since the last request of the client, that request, and whether it showed what the client does not tell.
    fn since_mark(&self) -> Result<(Vec<Seq>, Option<Seq>, bool)> {
        let (mut items, mut sent, mut apart) = (Vec::new(), None, false);
        for entry in self.thread.back() {
            let (seq, head) = entry?;
            if head.kind.is_said() {
                items.push(seq);
            }
            if head.kind == EntryKind::Sent
                && let Entry::Sent(Sent { mark: Some(mark), .. }) = self.thread.record(seq)?.entry
            {
                (sent, apart) = (Some(seq), mark.apart || mark.inner);
                break;
            }
        }
        items.reverse();
        Ok((items, sent, apart))
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
        Ok(has_room && self.budget(window).in_view(view).has_room(view))
    }
}

/// Announces the client's own bytes, where nothing has to be done to them.
fn announce(request: &SessionRequest<'_>, batch: &mut MessageBatch<'_>) -> Result<Option<Seq>> {
    // With calls open nothing can be announced; that is said when it is tried for good.
    if !batch.view().open().calls.is_empty() || !request.goes_as_it_is(batch.view())? {
        return Ok(None);
    }
    let body = whole(request.arrival);
    let digest = digest(&body)?;
    let outgoing = OutgoingRequest::new((RequestBody::Spliced(body), digest), batch.view().tokens());
    let outgoing = OutgoingRequest { mark: Some(request.mark.clone()), ..outgoing };
    batch.enter(outgoing.announcement(&request.upstream.asking.model)).map(Some)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_so_many_seconds() {
        assert_eq!(seconds("1970-01-01T00:00:00Z"), 0);
        assert_eq!(seconds("2024-02-29T12:34:56.789Z"), 1_709_210_096);
        assert_eq!(seconds("yesterday"), 0);
    }
}
