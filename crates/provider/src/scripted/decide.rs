//! From a request to its answer: read, check, count, look into the script. No socket is seen here, and nothing waits.

use super::errors::{HttpRefusal, OverflowFigures};
use super::reply::{self, CutReply, RequestTokens, system, tools};
use super::script::{NewMessages, Repeat, ScriptStep, ScriptedFailure, ScriptedReply, ScriptedSteps};
use super::{Host, OnOverflow, check, fallback};
use crate::dialect::{Dialect, ParsedRequest, ResponseForm, ResponseStamp};
use crate::event::ModelEvent;
use axum::body::Body;
use bytes::Bytes;
use http_body_util::BodyExt;
use komado_core::journal::Usage;
use komado_core::message::{Message, MessagePart, Role};
use komado_core::raw::RawObject;
use std::collections::{HashSet, VecDeque};
use std::fmt::{self, Write};

/// The moment of every answer: a clock would make each run another one.
const CREATED: u64 = 1_700_000_000;
const CREATED_AT: &str = "2023-11-14T22:13:20Z";

/// A request as it arrived.
pub(super) struct ScriptedRequest {
    pub(super) dialect: Dialect,
    pub(super) path: String,
    pub(super) headers: Vec<(String, String)>,
    pub(super) body: Bytes,
}

/// What is done about it.
pub(super) struct ScriptedDecision {
    pub(super) answer: ScriptedAnswer,
    /// The step it follows, with its pauses and where the connection is cut.
    pub(super) step: ScriptStep,
}

/// What is sent.
pub(super) enum ScriptedAnswer {
    /// An error.
    Refused(HttpRefusal),
    /// Status 200, and the error as an event.
    RefusedInStream { refusal: HttpRefusal, begun: Vec<ModelEvent>, stamp: ResponseStamp },
    /// An answer.
    Said { form: ResponseForm, events: Vec<ModelEvent>, stamp: ResponseStamp },
}

/// Decides about a request, and writes down what was decided.
pub(super) fn decide(host: &Host, request: ScriptedRequest) -> ScriptedDecision {
    let n = host.ledger().number();
    let digest = Fnv::of(&request.body);
    let mut turn = Turn { host, n, digest, dialect: request.dialect, tokens: 0, cached: 0, stream: false };
    let (answer, step) = turn.answer(&request.body);
    let status = match &answer {
        ScriptedAnswer::Refused(refusal) => refusal.status,
        ScriptedAnswer::RefusedInStream { .. } | ScriptedAnswer::Said { .. } => 200,
    };
    let seen = SeenRequest {
        n,
        dialect: request.dialect,
        path: request.path,
        headers: request.headers,
        bytes: request.body.len() as u64,
        body: if host.options.keep > 0 { request.body.to_vec() } else { Vec::new() },
        digest,
        tokens: turn.tokens,
        status,
        stream: turn.stream,
        cached: turn.cached,
    };
    host.record(seen);
    ScriptedDecision { answer, step: step.unwrap_or_default() }
}

/// How many tokens a request has: what Anthropic's own count is asked for.
pub(super) fn count(host: &Host, request: &ScriptedRequest) -> Result<u64, HttpRefusal> {
    let turn = Turn { host, n: 0, digest: 0, dialect: request.dialect, tokens: 0, cached: 0, stream: false };
    let text = turn.text(&request.body)?;
    let mut asked = turn.read(text)?;
    // Only an answer needs a length.
    asked.max_tokens.get_or_insert(1);
    turn.check(text, &asked)?;
    Ok(RequestTokens::of(host.options.meter, &asked).total())
}

/// One request on its way to an answer.
struct Turn<'a> {
    host: &'a Host,
    n: u64,
    digest: u64,
    dialect: Dialect,
    tokens: u64,
    cached: u64,
    stream: bool,
}

impl Turn<'_> {
    fn answer(&mut self, body: &[u8]) -> (ScriptedAnswer, Option<ScriptStep>) {
        match self.weigh(body) {
            Err(refusal) => (ScriptedAnswer::Refused(refusal), None),
            Ok(Weighed { asked, over: Some(over), .. }) => (self.overflow(&asked, &over), None),
            Ok(Weighed { asked, prompt, text, room, over: None }) => self.spoken(&asked, text, prompt, room),
        }
    }

    /// Reads, checks and counts.
    fn weigh<'b>(&mut self, body: &'b [u8]) -> Result<Weighed<'b>, HttpRefusal> {
        let options = &self.host.options;
        let text = self.text(body)?;
        let mut asked = self.read(text)?;
        self.stream = asked.stream;
        self.check(text, &asked)?;
        let mut count = RequestTokens::of(options.meter, &asked);
        self.tokens = count.total();
        let window = self.window(&asked);
        let (mut room, mut over) = (None, None);
        match window {
            Some(window) if options.overflow == OnOverflow::Truncate => {
                drop_oldest(&mut asked, &mut count, window);
            }
            Some(window) => {
                over = options.words.too_large(self.dialect, self.tokens, asked.max_tokens, window);
                room = Some(window.saturating_sub(self.tokens));
            }
            None => {}
        }
        self.cached = self.host.ledger().cached(&asked, &count);
        Ok(Weighed { prompt: count.total(), asked, text, room, over })
    }

    /// The script's answer, or the model's own.
    fn spoken(
        &mut self,
        asked: &ParsedRequest,
        text: &str,
        prompt: u64,
        room: Option<u64>,
    ) -> (ScriptedAnswer, Option<ScriptStep>) {
        let news = NewMessages::of(&asked.messages, fallback::is_asked(asked));
        let step = self.host.ledger().step(&news);
        if let Some(fail) = step.as_ref().and_then(|step| step.fail.as_ref()) {
            return (self.fail(asked, fail), step);
        }
        self.host.ledger().remember(asked);
        let meter = self.host.options.meter;
        let mut reply = match &step {
            Some(step) => {
                let mut reply = step.reply.clone();
                reply::fill(&mut reply, &news, prompt, self.n);
                reply
            }
            None => fallback::reply(meter, asked, &news, prompt),
        };
        if forbids_calls(asked) {
            reply.calls.clear();
        }
        reply::name_calls(&mut reply.calls, self.dialect, self.digest);
        let most = [asked.max_tokens, room].into_iter().flatten().min();
        let speech = CutReply::new(meter, reply, most, step.as_ref().and_then(|step| step.finish.clone()));
        let usage = self.usage(text, prompt, speech.tokens);
        let begun = reply::begun(self.dialect, &asked.model, self.digest);
        let events = speech.events(begun, usage, step.as_ref().and_then(|step| step.chunk));
        let form = if asked.stream { ResponseForm::Stream } else { ResponseForm::Whole };
        (ScriptedAnswer::Said { form, events, stamp: stamp(asked) }, step)
    }

    fn fail(&self, asked: &ParsedRequest, fail: &ScriptedFailure) -> ScriptedAnswer {
        let words = self.host.options.words;
        let mut refusal = match &fail.body {
            Some(body) => HttpRefusal::new(if fail.status == 0 { 500 } else { fail.status }, body.clone()),
            None if fail.overflow => {
                let window = self.window(asked).unwrap_or(u64::MAX).min(self.tokens.saturating_sub(1));
                let (prompt, answer) = (self.tokens, asked.max_tokens);
                words.overflow(self.dialect, &OverflowFigures { prompt, answer, window })
            }
            None => words.plain(self.dialect, if fail.status == 0 { 500 } else { fail.status }),
        };
        if fail.overflow && fail.status > 0 {
            refusal.status = fail.status;
        }
        refusal.retry_after = fail.retry_after;
        let in_stream =
            fail.in_stream || (fail.overflow && self.host.options.overflow == OnOverflow::RefuseInStream);
        self.refused(asked, refusal, in_stream)
    }

    fn overflow(&self, asked: &ParsedRequest, over: &OverflowFigures) -> ScriptedAnswer {
        let refusal = self.host.options.words.overflow(self.dialect, over);
        self.refused(asked, refusal, self.host.options.overflow == OnOverflow::RefuseInStream)
    }

    /// Responses and Anthropic begin before they fail; the others fail at once.
    fn refused(&self, asked: &ParsedRequest, refusal: HttpRefusal, in_stream: bool) -> ScriptedAnswer {
        if !(in_stream && asked.stream) {
            return ScriptedAnswer::Refused(refusal);
        }
        let begun = match self.dialect {
            Dialect::Responses | Dialect::Messages => {
                let usage = Usage { input_tokens: self.tokens, ..Usage::default() };
                vec![reply::begun(self.dialect, &asked.model, self.digest), ModelEvent::Usage(usage)]
            }
            Dialect::Chat | Dialect::Ollama => Vec::new(),
        };
        ScriptedAnswer::RefusedInStream { refusal, begun, stamp: stamp(asked) }
    }

    fn text<'b>(&self, body: &'b [u8]) -> Result<&'b str, HttpRefusal> {
        let bad = |why: String| self.host.options.words.no_json(self.dialect, &why);
        let text = std::str::from_utf8(body).map_err(|e| bad(format!("not UTF-8: {e}")))?;
        serde_json::from_str::<serde::de::IgnoredAny>(text).map_err(|e| bad(e.to_string()))?;
        Ok(text)
    }

    fn read(&self, text: &str) -> Result<ParsedRequest, HttpRefusal> {
        let words = self.host.options.words;
        let read = self.dialect.read(text);
        read.map_err(|bad| words.refuse(self.dialect, &check::unreadable(self.dialect, &bad)))
    }

    fn check(&self, text: &str, asked: &ParsedRequest) -> Result<(), HttpRefusal> {
        let words = self.host.options.words;
        let checked = check::conversation(words, self.dialect, text, asked);
        checked.map_err(|trouble| words.refuse(self.dialect, &trouble))
    }

    /// The window of this request: Ollama's clients may ask for a smaller one.
    fn window(&self, asked: &ParsedRequest) -> Option<u64> {
        let wanted = if self.dialect == Dialect::Ollama { num_ctx(asked) } else { None };
        [self.host.options.window, wanted].into_iter().flatten().min()
    }

    /// What it took. Anthropic caches only what is marked, and Ollama does not say.
    fn usage(&self, body: &str, prompt: u64, output_tokens: u64) -> Usage {
        let cached = self.cached.min(prompt);
        let plain = Usage { input_tokens: prompt, output_tokens, ..Usage::default() };
        match self.dialect {
            Dialect::Ollama => plain,
            Dialect::Messages if !body.contains("\"cache_control\"") => plain,
            Dialect::Messages => {
                let fresh = prompt - cached;
                let input_tokens = fresh.min(3);
                let cache_creation_tokens = fresh - input_tokens;
                Usage { input_tokens, output_tokens, cache_creation_tokens, cache_read_tokens: cached }
            }
            Dialect::Chat | Dialect::Responses => {
                Usage { input_tokens: prompt - cached, cache_read_tokens: cached, ..plain }
            }
        }
    }
}

/// A request that was read, checked and counted.
struct Weighed<'a> {
    asked: ParsedRequest,
    text: &'a str,
    /// Tokens that the model reads.
    prompt: u64,
    /// Tokens that the window leaves for the answer.
    room: Option<u64>,
    over: Option<OverflowFigures>,
}

/// Drops the oldest messages until the rest fits; system messages and the last one stay.
fn drop_oldest(asked: &mut ParsedRequest, count: &mut RequestTokens, window: u64) {
    let mut at = 0;
    while count.total() > window && at + 1 < asked.messages.len() {
        if matches!(asked.messages[at].role, Role::System | Role::Developer) {
            at += 1;
        } else {
            asked.messages.remove(at);
            count.messages.remove(at);
        }
    }
}

/// The parameter `key`, as JSON.
fn param<'a>(asked: &'a ParsedRequest, key: &str) -> Option<&'a str> {
    Some(RawObject::parse(asked.setup.params.as_ref()?.get()).ok()?.get(key)?.get())
}

fn num_ctx(asked: &ParsedRequest) -> Option<u64> {
    RawObject::parse(param(asked, "options")?).ok()?.read("num_ctx").ok()?
}

fn stamp(asked: &ParsedRequest) -> ResponseStamp {
    let options = param(asked, "stream_options").and_then(|options| RawObject::parse(options).ok());
    fixed_stamp(options.and_then(|options| options.read("include_usage").ok()?).unwrap_or(false))
}

/// The stamp of an answer; only whether usage is told in a stream differs.
pub(super) fn fixed_stamp(usage: bool) -> ResponseStamp {
    ResponseStamp { created: CREATED, created_at: CREATED_AT.into(), usage }
}

/// True when the request says that no tool may be called, as every model then does.
fn forbids_calls(asked: &ParsedRequest) -> bool {
    param(asked, "tool_choice").is_some_and(|choice| choice.contains("\"none\""))
}

// Reads a request without keeping it: what a client's memory and speed are measured against.
//
// However large the body is, only its ends are held, to see whether the answer is to come in pieces. What is answered
// cannot depend on it: steps of the script are used in order as far as they have no conditions, else a short fixed text.

/// Bytes that are held at each end.
const END: usize = 4096;

/// What the answer says.
const WORDS: &str = "ok";

/// Reads `body` to its end and answers the next step, or a short fixed text. `None` when the client went away.
pub(super) async fn take(
    host: &Host,
    dialect: Dialect,
    path: String,
    headers: Vec<(String, String)>,
    mut body: Body,
) -> Option<ScriptedDecision> {
    let (mut sum, mut bytes) = (Fnv::default(), 0u64);
    let (mut head, mut tail) = (Vec::new(), Vec::new());
    while let Some(frame) = body.frame().await {
        let Ok(data) = frame.ok()?.into_data() else { continue };
        sum.bytes(&data);
        bytes += data.len() as u64;
        head.extend_from_slice(&data[..data.len().min(END - head.len())]);
        tail.extend_from_slice(&data[data.len().saturating_sub(END)..]);
        tail.drain(..tail.len().saturating_sub(END));
    }
    let stream = streams(dialect, &head, &tail);
    let n = host.ledger().number();
    let seen = SeenRequest {
        n,
        dialect,
        path,
        headers,
        body: Vec::new(),
        bytes,
        digest: sum.0,
        tokens: 0,
        status: 200,
        stream,
        cached: 0,
    };
    host.record(seen);
    let speech = next_speech(host, dialect, sum.0);
    // A guess, so that the answer is not taken for one to a shortened request.
    let usage = Usage { input_tokens: bytes / 4, output_tokens: speech.tokens, ..Usage::default() };
    let events = speech.events(reply::begun(dialect, "scripted", sum.0), usage, None);
    let form = if stream { ResponseForm::Stream } else { ResponseForm::Whole };
    let answer = ScriptedAnswer::Said { form, events, stamp: fixed_stamp(true) };
    Some(ScriptedDecision { answer, step: ScriptStep::default() })
}

/// The reply of the next step, as it stands there; the fixed text when there is none.
fn next_speech(host: &Host, dialect: Dialect, digest: u64) -> CutReply {
    let Some(step) = host.ledger().step(&NewMessages::default()) else {
        let reply = ScriptedReply { text: WORDS.into(), ..ScriptedReply::default() };
        return CutReply { reply, finish: "stop".into(), tokens: 1 };
    };
    let mut reply = step.reply;
    reply::name_calls(&mut reply.calls, dialect, digest);
    CutReply::new(host.options.meter, reply, None, step.finish)
}

/// Whether the request asks for pieces, as far as its ends tell.
fn streams(dialect: Dialect, head: &[u8], tail: &[u8]) -> bool {
    let says = |word: &str| [head, tail].iter().any(|end| String::from_utf8_lossy(end).contains(word));
    let (yes, no) = (
        says("\"stream\":true") || says("\"stream\": true"),
        says("\"stream\":false") || says("\"stream\": false"),
    );
    yes || (dialect == Dialect::Ollama && !no)
}

// What a scripted server was asked so far, and what of its script is left.

/// A request that was seen.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SeenRequest {
    /// Which one, counted from 1.
    pub n: u64,
    /// The dialect it was in.
    pub dialect: Dialect,
    /// Where it went, query included.
    pub path: String,
    /// Its headers, in the order in which they came.
    pub headers: Vec<(String, String)>,
    /// Its body; empty when it was not kept.
    pub body: Vec<u8>,
    /// Bytes of the body, also when it was not kept.
    pub bytes: u64,
    /// FNV-1a of the body: two requests with the same one are the same.
    pub digest: u64,
    /// Its true size, before anything was dropped; 0 when it could not be read.
    pub tokens: u64,
    /// The status it was answered with.
    pub status: u16,
    /// True when the answer came in pieces.
    pub stream: bool,
    /// Tokens of the longest beginning that an earlier request had, too: what a prompt cache would have spared.
    pub cached: u64,
}

/// What was asked, and what is left to say.
pub(super) struct RequestLog {
    count: u64,
    seen: VecDeque<SeenRequest>,
    steps: Vec<ScriptStep>,
    /// A fingerprint for each beginning of each request that was answered.
    beginnings: HashSet<u64>,
}

impl RequestLog {
    pub(super) fn new(script: ScriptedSteps) -> Self {
        Self { count: 0, seen: VecDeque::new(), steps: script.steps, beginnings: HashSet::new() }
    }

    /// The number of the next request.
    pub(super) fn number(&mut self) -> u64 {
        self.count += 1;
        self.count
    }

    pub(super) fn record(&mut self, seen: SeenRequest, keep: usize) {
        // Answers overtake each other; the list is in the order of asking.
        let at = self.seen.partition_point(|other| other.n < seen.n);
        self.seen.insert(at, seen);
        if let Some(old) = self.seen.len().checked_sub(keep + 1).and_then(|at| self.seen.get_mut(at)) {
            old.body = Vec::new();
        }
    }

    pub(super) fn seen(&self) -> Vec<SeenRequest> {
        self.seen.iter().cloned().collect()
    }

    pub(super) fn add(&mut self, step: ScriptStep) {
        self.steps.push(step);
    }

    pub(super) fn left(&self) -> usize {
        self.steps.iter().filter(|step| step.repeat != Repeat::Always).count()
    }

    /// The first step that is for this request; used up when that was its last time.
    pub(super) fn step(&mut self, news: &NewMessages<'_>) -> Option<ScriptStep> {
        let at = self.steps.iter().position(|step| step.when.holds(news))?;
        match &mut self.steps[at].repeat {
            Repeat::Times(times) if *times > 1 => *times -= 1,
            Repeat::Times(_) => return Some(self.steps.remove(at)),
            Repeat::Always => {}
        }
        Some(self.steps[at].clone())
    }

    /// Tokens of the longest beginning that an earlier request had.
    pub(super) fn cached(&self, asked: &ParsedRequest, count: &RequestTokens) -> u64 {
        let sizes = std::iter::once(count.setup).chain(count.messages.iter().copied());
        let known = beginnings(asked).into_iter().zip(sizes);
        known.take_while(|(mark, _)| self.beginnings.contains(mark)).map(|(_, tokens)| tokens).sum()
    }

    /// Remembers the beginnings of a request that was answered.
    pub(super) fn remember(&mut self, asked: &ParsedRequest) {
        self.beginnings.extend(beginnings(asked));
    }
}

/// A fingerprint of the setup, then of everything up to each message.
fn beginnings(asked: &ParsedRequest) -> Vec<u64> {
    let mut sum = Fnv::default();
    let setup = (&asked.model, system(&asked.setup), tools(&asked.setup));
    sum.add(&format_args!("{setup:?}"));
    let mut marks = vec![sum.0];
    for message in &asked.messages {
        add_message(message, &mut sum);
        marks.push(sum.0);
    }
    marks
}

/// Marks beside a text are left out: a cache mark moves with each request, and the words stay the same.
fn add_message(message: &Message, sum: &mut Fnv) {
    sum.add(&format_args!("{:?}{:?}", message.role, message.name));
    for part in &message.parts {
        match part {
            MessagePart::Text { text, .. } => sum.add(text),
            other => sum.add(&format_args!("{other:?}")),
        }
    }
}

/// FNV-1a: the same on every machine and in every version.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fnv(pub(super) u64);

impl Default for Fnv {
    fn default() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }
}

impl Fnv {
    pub(super) fn of(bytes: &[u8]) -> u64 {
        let mut sum = Self::default();
        sum.bytes(bytes);
        sum.0
    }

    pub(super) fn bytes(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
    }

    fn add(&mut self, what: &dyn fmt::Display) {
        // Writing to a number cannot fail.
        let _ = write!(self, "{what}\u{1f}");
    }
}

impl Write for Fnv {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.bytes(text.as_bytes());
        Ok(())
    }
}
