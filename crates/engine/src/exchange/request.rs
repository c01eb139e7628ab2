//! A request on its way out: how much it may take, and what it is made of.
//!
//! It is written to a file, one message in memory at a time, or spliced from a client's bytes. How much room it gets, and
//! how much its answer, changes from try to try.

use super::response::TooLarge;
use crate::error::{Error, Result};
use crate::lesson::{self, AppliedLesson};
use komado_core::budget::{Budget, Policy, Thresholds};
use komado_core::journal::{Entry, Sent, Setup, TranscriptMark};
use komado_core::message::{Message, MessagePart};
use komado_core::openai::BlobReader;
use komado_core::raw::RawObject;
use komado_core::{Meter, Seq, SessionId, View};
use komado_provider::dialect::RequestOutput;
use komado_provider::{
    Cancel, Client, ClientBody, Dialect, ModelRequest, Provider, ResponseForm, Splice, ToolUse,
};
use komado_store::{RequestFile, Store, write_base64};
use std::io;
use std::io::Write;

/// The names of the longest answer among parameters.
pub(crate) const LIMITS: [&str; 3] = ["max_completion_tokens", "max_tokens", "max_output_tokens"];
/// The shortest answer that is of use; below it the view has to give way instead.
const SHORTEST: u64 = 256;
/// The fewest tokens that a model may be told to think.
const LEAST_THOUGHTS: u64 = 1_024;
/// The longest answer asked for where one must be named and none is wished.
const USUAL: u64 = 8_192;
/// What is read at a time to take a digest.
const BLOCK: usize = 64 << 10;
/// A window that never fills, while its size is unknown.
const ENDLESS: u64 = u64::MAX / 8;

/// Who is asked, and how.
#[derive(Clone)]
pub struct ModelTarget {
    /// Sends and receives.
    pub client: Client,
    /// Where to.
    pub provider: Provider,
    /// The place under which lessons are kept, where the address is another each time.
    pub known_as: Option<String>,
    /// The model.
    pub model: String,
    /// Its window, in its own tokens.
    pub window: u64,
    /// The window as it is listed, probed or given, whatever was learned.
    pub declared: Option<u64>,
    /// True when the user said so: then nothing that was learned makes it smaller.
    pub is_given: bool,
    /// What its server said of the window, when it was asked.
    pub probed: Option<u64>,
    /// The longest answer it can write, where that is known.
    pub output: Option<u64>,
    /// The longest answer wanted.
    pub max_tokens: Option<u64>,
    /// Whether the answer comes in pieces.
    pub form: ResponseForm,
    /// To which share the view shrinks after a request that was too large.
    pub shrink: f64,
    /// How often such a request is tried again.
    pub tries: u32,
    /// Most turns of the user that are shown; `None` for as many as the window holds.
    pub history: Option<u32>,
    /// Ends the turn from another thread.
    pub cancel: Cancel,
}

impl ModelTarget {
    /// Asks `model` at `provider`, with the usual patience.
    pub fn new(client: Client, provider: Provider, model: impl Into<String>, window: u64) -> Self {
        Self {
            client,
            provider,
            known_as: None,
            model: model.into(),
            window,
            declared: Some(window).filter(|window| *window > 0),
            is_given: false,
            probed: None,
            output: None,
            max_tokens: None,
            form: ResponseForm::Stream,
            shrink: 0.8,
            tries: 3,
            history: None,
            cancel: Cancel::default(),
        }
    }

    /// What a request to it asks for beside its messages; how long the answer may be is still to be said.
    pub(crate) fn ask<'a>(&'a self, setup: &'a Setup) -> ModelRequest<'a> {
        let (stream, window) = (self.form == ResponseForm::Stream, Some(self.window));
        let Provider { is_strict, joins, .. } = self.provider;
        ModelRequest {
            model: &self.model,
            setup,
            max_tokens: None,
            stream,
            window,
            tools: ToolUse::AsSetUp,
            is_strict,
            joins,
        }
    }

    /// The name under which lessons about it are kept.
    pub fn about(&self) -> String {
        let place = self.known_as.clone().unwrap_or_else(|| self.provider.place());
        lesson::about(&place, &self.model)
    }
}

/// The window by all that is known, in the provider's tokens; 0 when nothing is.
pub(crate) fn window(asking: &ModelTarget, lesson: &AppliedLesson) -> u64 {
    let learned = lesson.window().filter(|_| !asking.is_given);
    match (asking.window, learned) {
        (0, learned) => learned.unwrap_or(0),
        (window, learned) => window.min(learned.unwrap_or(u64::MAX)),
    }
}

/// What the next request may take.
pub(crate) struct RequestRoom {
    /// The budget of the view; `None` while the window is unknown.
    pub(crate) budget: Option<Budget>,
    policy: Policy,
    /// Tokens of ours that are kept free for our own tools.
    reserved: u64,
    /// The longest answer the provider has room for, as it said.
    lowered: Option<u64>,
    /// What it said it takes, for this request: a lesson it becomes only where it is believed.
    named: Option<u64>,
}

impl RequestRoom {
    /// Room in a budget.
    pub(crate) fn new(budget: Budget) -> Self {
        Self { budget: Some(budget.clone()), ..Self::endless(budget.policy) }
    }

    /// Room without a bound, until the provider names one.
    pub(crate) fn endless(policy: Policy) -> Self {
        Self { budget: None, policy, reserved: 0, lowered: None, named: None }
    }

    /// Room in the window by all that is known, with `reserved` tokens kept free.
    pub(crate) fn known(policy: Policy, reserved: u64, asking: &ModelTarget, lesson: &AppliedLesson) -> Self {
        let mut room = Self { reserved, ..Self::endless(policy) };
        match window(asking, lesson) {
            0 => {}
            window => room.budget = Some(room.within(window, asking, lesson)),
        }
        room
    }

    /// The budget in a window of so many tokens of the provider's.
    pub(crate) fn within(&self, window: u64, asking: &ModelTarget, lesson: &AppliedLesson) -> Budget {
        let window = lesson.ours(window).saturating_sub(self.reserved);
        Budget::new(self.policy.clone(), window, &[asking.model.as_str()])
    }

    /// From now on for `view`, with so many tokens kept free for our own tools.
    pub(crate) fn beside(&mut self, reserved: u64, view: &View) {
        let before = std::mem::replace(&mut self.reserved, reserved);
        if let Some(budget) = &mut self.budget {
            if before != reserved {
                *budget = resized(budget, (budget.window + before).saturating_sub(reserved));
            }
            *budget = budget.in_view(view);
        }
    }

    /// A window of so many tokens of ours at most.
    pub(crate) fn keep_within(&mut self, window: u64) {
        if let Some(budget) = self.budget.as_mut().filter(|budget| (1..budget.window).contains(&window)) {
            *budget = resized(budget, window);
        }
    }

    /// The longest answer to ask for: as `wished`, as far as there is room beside `tokens`. `None` leaves it to the
    /// provider. `thoughts` are part of it; they give way only where the provider said that there is too little room.
    pub(crate) fn longest_answer(
        &self,
        wished: Option<u64>,
        thoughts: Option<u64>,
        tokens: u64,
        asking: &ModelTarget,
        lesson: &AppliedLesson,
    ) -> Option<u64> {
        self.budget.as_ref()?;
        let must = asking.provider.dialect == Dialect::Messages;
        if wished.is_none() && self.lowered.is_none() && !must {
            return None;
        }
        let window = match window(asking, lesson) {
            0 => ENDLESS,
            window => window.saturating_sub(lesson.theirs(self.reserved)),
        };
        let window = window.min(self.named.unwrap_or(u64::MAX));
        // Where they count less than we do, that may be over with the next text: room for an answer is not worth a refusal.
        let left = window.saturating_sub(lesson.theirs(tokens).max(tokens) + window / 50);
        // Where there is hardly room, the provider is to say so: an answer of a few words would be no answer.
        let least = match (thoughts, self.lowered) {
            (Some(thoughts), None) => thoughts + 1,
            _ => shortest(thoughts),
        };
        let most = self.lowered.unwrap_or(u64::MAX).min(left.max(least));
        Some(wished.unwrap_or(USUAL).min(most))
    }

    /// Makes the next request smaller: first the room for the answer, where that was the complaint; then the view, to the
    /// window that the refusal's numbers show.
    pub(crate) fn shrink(
        &mut self,
        why: &TooLarge,
        request: &OutgoingRequest,
        asking: &ModelTarget,
        lesson: &AppliedLesson,
    ) {
        let sent = request.tokens + request.added;
        // An unknown window is what was learned or named, or at most what was refused.
        let budget = self.budget.take().unwrap_or_else(|| {
            let refused = || why.refusal.limit.unwrap_or_else(|| lesson.theirs(sent)).max(1);
            let known = Some(window(asking, lesson)).filter(|window| *window > 0);
            self.within(known.unwrap_or_else(refused), asking, lesson)
        });
        self.named = why.refusal.limit.filter(|limit| *limit > 0).or(self.named);
        self.budget = Some(budget);
        if self.lower_answer(why, request) {
            return;
        }
        if let Some(limit) = self.named.filter(|_| why.refusal.limit.is_some()) {
            // It counted `actual` where we count `sent`: so much of ours is its limit.
            let ours = match why.refusal.actual.filter(|actual| *actual > limit) {
                Some(actual) => share_of(limit, sent, actual),
                None => lesson.ours(limit),
            };
            self.keep_within(ours.saturating_sub(self.reserved).max(1));
        }
        if self.budget.as_ref().is_none_or(|budget| budget.usable >= request.tokens) {
            self.tighten(request, asking);
        }
    }

    /// Makes room for a share of what was refused, and for less than that where there was less room already.
    pub(crate) fn tighten(&mut self, request: &OutgoingRequest, asking: &ModelTarget) {
        if let Some(budget) = &mut self.budget {
            let to = request.tokens as f64 * asking.shrink / budget.usable.max(1) as f64;
            *budget = budget.shrunk(to.min(asking.shrink));
        }
    }

    /// True when a shorter answer may do.
    fn lower_answer(&mut self, why: &TooLarge, request: &OutgoingRequest) -> bool {
        let least = shortest(request.thoughts);
        let asked = request.max_tokens;
        let (limit, actual) = (why.refusal.limit, why.refusal.actual);
        let much = asked.filter(|asked| *asked > least && request.asks_for_much());
        if let (None, None, Some(asked)) = (limit, self.lowered, much) {
            // The provider did not say which of the two was too much.
            self.lowered = Some((asked / 4).max(least));
            return true;
        }
        let (Some(limit), Some(actual)) = (limit, actual) else { return false };
        if !(why.lower || actual < limit && asked.is_some()) {
            return false;
        }
        let left = limit.saturating_sub(actual + limit / 100 + 1);
        let now = self.lowered.into_iter().chain(asked).min();
        let helps = left >= least && now.is_none_or(|now| left < now);
        if helps {
            self.lowered = Some(left);
        }
        helps
    }
}

/// The shortest answer worth asking for: beside thoughts the API wants room for some of these.
const fn shortest(thoughts: Option<u64>) -> u64 {
    match thoughts {
        Some(_) => LEAST_THOUGHTS + SHORTEST,
        None => SHORTEST,
    }
}

/// `whole * part / of`, rounded down.
fn share_of(whole: u64, part: u64, of: u64) -> u64 {
    u64::try_from(u128::from(whole) * u128::from(part) / u128::from(of.max(1))).unwrap_or(u64::MAX)
}

/// The same rule in another window, as if that had been known from the beginning. Where the budget was a spawned thread's,
/// the window is shared out anew when the view is made to fit.
fn resized(budget: &Budget, window: u64) -> Budget {
    let thresholds = Thresholds { global: budget.threshold, ..Thresholds::default() };
    Budget::new(Policy { thresholds, ..budget.policy.clone() }, window, &[]).beside(budget.instructions)
}

/// Parameters with fewer thoughts, where these would not leave room for words in an answer of `most` tokens: the API
/// takes only a budget below the longest answer. `None` where nothing has to change.
pub(crate) fn lowered_thoughts(params: &str, most: u64) -> Option<String> {
    with_field(
        params,
        "thinking",
        &fewer_thoughts(RawObject::parse(params).ok()?.get("thinking")?.get(), most)?,
    )
}

/// What `thinking` is to be in an answer of `most` tokens, where that is something else.
pub(crate) fn fewer_thoughts(thinking: &str, most: u64) -> Option<String> {
    let budget = RawObject::parse(thinking).ok()?.read::<u64>("budget_tokens").ok().flatten()?;
    let lower = most.saturating_sub(SHORTEST).max(LEAST_THOUGHTS);
    if budget < most || lower >= budget {
        return None;
    }
    with_field(thinking, "budget_tokens", &lower.to_string())
}

/// A JSON object with another value for a field.
fn with_field(object: &str, name: &str, json: &str) -> Option<String> {
    let object = RawObject::parse(object).ok()?;
    let fields = object.0.iter().map(|(key, value)| {
        let value = if key == name { json } else { value.get() };
        format!("{}:{value}", serde_json::Value::from(key.as_ref()))
    });
    Some(format!("{{{}}}", fields.collect::<Vec<_>>().join(",")))
}

/// A request, ready to be sent.
pub(crate) struct OutgoingRequest {
    pub(crate) body: RequestBody,
    /// Digest of all its bytes.
    pub(crate) digest: String,
    /// The longest answer that it asks for.
    pub(crate) max_tokens: Option<u64>,
    /// How many tokens of that the model may think, as it was asked for; it may be lowered.
    pub(crate) thoughts: Option<u64>,
    /// Tokens of what it shows.
    pub(crate) tokens: u64,
    /// Tokens of our own tools, where they are offered.
    pub(crate) added: u64,
    /// Those of `tokens` that a provider may count in its own way, or not at all; `None` while they were not counted.
    pub(crate) uncertain: Option<u64>,
    /// Where the client's transcript stands.
    pub(crate) mark: Option<TranscriptMark>,
    /// The entry that announces it, when it is in the journal already.
    pub(crate) announced: Option<Seq>,
}

impl OutgoingRequest {
    /// True when the room that it asks for its answer may be what was too much: an eighth of what it shows, or more.
    pub(crate) fn asks_for_much(&self) -> bool {
        self.max_tokens.is_some_and(|most| most * 8 >= self.tokens)
    }

    /// A request that shows `tokens`; what else there is to say of it is filled in.
    pub(crate) fn new((body, digest): (RequestBody, String), tokens: u64) -> Self {
        let (max_tokens, thoughts, uncertain, mark, announced) = (None, None, None, None, None);
        Self { body, digest, max_tokens, thoughts, tokens, added: 0, uncertain, mark, announced }
    }

    /// The digest of its bytes, taken now where it was announced with what is new in it.
    pub(crate) fn digest(&self) -> Result<String> {
        match &self.body {
            RequestBody::Spliced(splice) if self.digest.is_empty() => digest(splice),
            _ => Ok(self.digest.clone()),
        }
    }

    /// The entry that says that it is about to leave.
    pub(crate) fn announcement(&self, model: &str) -> Entry {
        Entry::Sent(Sent {
            digest: self.digest.clone(),
            model: model.to_owned(),
            context_tokens: self.tokens,
            purpose: None,
            mark: self.mark.clone(),
        })
    }
}

/// What is sent.
pub(crate) enum RequestBody {
    /// A file, and its length.
    File(RequestFile, u64),
    /// A client's request, in pieces.
    Spliced(Splice),
}

impl RequestBody {
    pub(crate) fn body(&self) -> ClientBody<'_> {
        match self {
            Self::File(file, len) => ClientBody::File { path: file.path(), len: *len },
            Self::Spliced(splice) => ClientBody::Spliced(splice.clone()),
        }
    }

    pub(crate) fn len(&self) -> u64 {
        match self {
            Self::File(_, len) => *len,
            Self::Spliced(splice) => splice.len(),
        }
    }

    /// It was answered: a file is not needed any more.
    pub(crate) fn remove(self) -> Result<()> {
        match self {
            Self::File(file, _) => Ok(file.answered()?),
            Self::Spliced(_) => Ok(()),
        }
    }
}

/// Digest of all bytes.
pub(crate) fn digest(splice: &Splice) -> Result<String> {
    let (mut hasher, mut bytes, mut at) = (blake3::Hasher::new(), vec![0; BLOCK], 0);
    loop {
        let read = splice.read_at(at, &mut bytes)?;
        if read == 0 {
            return Ok(hasher.finalize().to_hex().to_string());
        }
        hasher.update(&bytes[..read]);
        at += read as u64;
    }
}

/// Takes one message.
pub(crate) type MessageSink<'p> = dyn FnMut(&Message) -> Result<()> + 'p;

/// Writes a request in a dialect; `pour` hands over its messages, without the system prompt.
pub(crate) fn write(
    dialect: Dialect,
    ask: &ModelRequest<'_>,
    blobs: &mut dyn BlobReader,
    out: &mut dyn Write,
    pour: &mut dyn FnMut(&mut MessageSink<'_>) -> Result<()>,
) -> Result<()> {
    let mut writer = dialect.writer(ask, out)?;
    let mut to = RequestOutput { bytes: out, blobs };
    pour(&mut |message| writer.message(message, &mut to).map_err(Error::from))?;
    Ok(writer.end(out)?)
}

/// Writes a request to a file; gives it with its digest.
pub(crate) fn write_file(
    file: RequestFile,
    dialect: Dialect,
    ask: &ModelRequest<'_>,
    blobs: &mut dyn BlobReader,
    pour: &mut dyn FnMut(&mut MessageSink<'_>) -> Result<()>,
) -> Result<(RequestBody, String)> {
    let mut out = Digested { file, hasher: blake3::Hasher::new() };
    write(dialect, ask, blobs, &mut out, pour)?;
    let len = out.file.seal()?;
    Ok((RequestBody::File(out.file, len), out.hasher.finalize().to_hex().to_string()))
}

/// Tokens of a message that a provider may leave out, or count in its own way.
pub(crate) fn uncertain(parts: &[MessagePart], meter: Meter) -> u64 {
    let tokens = |part: &MessagePart| match part {
        MessagePart::Reasoning { text, .. } => meter.text(text),
        MessagePart::Opaque(opaque) => meter.text(opaque.json.get()),
        // No counter knows its size in tokens: nothing is learned beside a picture.
        MessagePart::Image { .. } => u64::from(u32::MAX),
        MessagePart::Result(outcome) => uncertain(&outcome.content, meter),
        MessagePart::Text { .. } | MessagePart::Call(_) => 0,
    };
    parts.iter().map(tokens).sum()
}

/// Reads blobs where they are kept.
pub(crate) struct StoredBlobs<'a> {
    pub(crate) store: &'a dyn Store,
    pub(crate) session: &'a SessionId,
}

impl BlobReader for StoredBlobs<'_> {
    fn base64(&mut self, id: &str, out: &mut dyn Write) -> io::Result<()> {
        let mut bytes = self.store.blob(self.session, id).map_err(io::Error::other)?;
        write_base64(&mut *bytes, out)
    }
}

/// Takes the digest of what passes through it.
struct Digested {
    file: RequestFile,
    hasher: blake3::Hasher,
}

impl Write for Digested {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.file.write(bytes)?;
        self.hasher.update(&bytes[..written]);
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lesson::{LearnedModel, LessonRequest, RequestSize, SizeRefusal};
    use komado_core::budget::Preset;
    use komado_provider::ClientTimeouts;

    fn target(window: u64) -> ModelTarget {
        let provider = Provider::at("p", Dialect::Messages, "http://127.0.0.1:1").unwrap();
        ModelTarget::new(Client::new(ClientTimeouts::default()).unwrap(), provider, "m", window)
    }

    fn request(tokens: u64, max_tokens: Option<u64>) -> OutgoingRequest {
        let body = RequestBody::File(RequestFile::passing().unwrap(), 0);
        OutgoingRequest { max_tokens, ..OutgoingRequest::new((body, String::new()), tokens) }
    }

    fn refusal(limit: u64, actual: u64) -> TooLarge {
        let refusal = SizeRefusal { limit: Some(limit), actual: Some(actual), is_vague: false };
        TooLarge { refusal, ..TooLarge::default() }
    }

    /// What is known after a refusal of text.
    fn taught(tokens: u64, why: &TooLarge) -> AppliedLesson {
        let (mut learned, from) = (LearnedModel::default(), LessonRequest::default());
        learned.refused(&from, RequestSize::certain(tokens), why.refusal);
        AppliedLesson::for_all(learned)
    }

    fn room(window: u64) -> RequestRoom {
        RequestRoom::new(Budget::new(Preset::Komado.policy(), window, &[]))
    }

    #[test]
    fn what_was_found_for_a_view_stays_when_the_window_turns_out_smaller() {
        let view = View::default();
        let mut room = room(60_000);
        room.beside(500, &view);
        assert_eq!(room.budget.as_ref().unwrap().window, 59_500);
        room.beside(0, &view);
        assert_eq!(room.budget.as_ref().unwrap().window, 60_000);
        room.budget = room.budget.map(|budget| budget.beside(20_000));
        room.keep_within(26_000);
        let budget = room.budget.unwrap();
        assert_eq!((budget.instructions, budget.reserve, budget.usable), (20_000, 1_500, 23_900));
    }

    #[test]
    fn a_short_answer_is_not_what_was_too_much() {
        assert!(!request(8_000, Some(400)).asks_for_much() && !request(8_000, None).asks_for_much());
        assert!(request(8_000, Some(1_000)).asks_for_much());
    }

    #[test]
    fn the_numbers_of_a_refusal_give_the_window_and_are_applied_once() {
        let (asking, why) = (target(60_000), refusal(42_000, 51_825));
        let lesson = taught(44_472, &why);
        let mut room = room(60_000);
        room.shrink(&why, &request(44_472, None), &asking, &lesson);
        let budget = room.budget.clone().unwrap();
        assert_eq!(budget, Budget::new(Preset::Komado.policy(), 36_040, &[]), "42,000 × 44,472 / 51,825");
        assert_eq!(lesson.ours(42_000), 36_040);
        // The same window is not taken twice.
        room.shrink(&refusal(42_000, 42_000), &request(30_000, None), &asking, &lesson);
        assert_eq!(room.budget.clone().unwrap(), budget);
    }

    #[test]
    fn numbers_that_do_not_help_shrink_by_the_usual_share() {
        let (asking, why) = (target(60_000), refusal(100_000, 900));
        let mut room = room(60_000);
        room.shrink(&why, &request(20_000, None), &asking, &AppliedLesson::default());
        assert!(room.budget.unwrap().usable <= 16_000);
    }

    #[test]
    fn the_answer_gives_way_first_and_its_thoughts_only_when_there_is_no_room_for_them() {
        let asking = target(60_000);
        let (lesson, mut room) = (AppliedLesson::default(), room(60_000));
        let asked = OutgoingRequest { thoughts: Some(16_000), ..request(20_000, Some(20_000)) };
        let longest = |room: &RequestRoom| {
            room.longest_answer(Some(20_000), Some(16_000), 20_000, &asking, &lesson).unwrap()
        };
        assert_eq!(longest(&room), 20_000);
        let before = room.budget.clone();
        room.shrink(&refusal(30_000, 20_000), &asked, &asking, &lesson);
        assert_eq!((longest(&room), room.budget.clone()), (9_400, before.clone()));
        let fewer = fewer_thoughts(r#"{"type":"enabled","budget_tokens":16000}"#, 9_400).unwrap();
        assert_eq!(fewer, r#"{"type":"enabled","budget_tokens":9144}"#);
        assert_eq!(fewer_thoughts(&fewer, 9_400), None);
        // Where there is no room for thoughts at all, the view has to give way.
        room.shrink(&refusal(21_000, 20_000), &asked, &asking, &lesson);
        assert_ne!(room.budget, before);
    }
}
