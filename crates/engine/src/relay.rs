//! A client's request on its way through: placed, journaled, made to fit, sent on, and what comes back handed on.
//!
//! The gateway's exchange (`exchange.rs`). Under budget the bytes that arrive are the bytes that leave; over budget the
//! edits of the ladder are put into them and nothing else is. It blocks, on a thread of its own for each request. What goes
//! wrong on our side before the answer begins is a [`RelayFault`]: the caller then sends the request on untouched
//! ([`untouched`]), or stops, as it was told. `docs/gateway.md` tells the whole story.
//!
//! Untouched means that nothing of ours is relied on: no store is asked, nothing is journaled or made smaller. A request in
//! the provider's own dialect is sent once, byte for byte but for the model's name; one of another dialect is held in memory
//! whole and translated by the codecs alone.

use crate::condense::CondenseSettings;
use crate::engine::Engine;
use crate::error::Error;
use crate::exchange::request::{MessageSink, write};
use crate::exchange::response::{SendOutcome, UnansweredReason, receive};
use crate::exchange::{ModelTarget, RecallTools, ToolAnswerer};
use crate::model::SummaryWriter;
use crate::place::TranscriptCaller;
use client_stream::{ClientReceiver, ClientStream, cut_short, pass};
use komado_core::budget::Policy;
use komado_core::harness::project_in;
use komado_core::journal::Setup;
use komado_core::message::Call;
use komado_core::openai::BlobReader;
use komado_core::raw::{RawJson, RawObject};
use komado_core::session::MetaConfig;
use komado_core::{Meter, SessionId, ThreadId};
use komado_provider::client::SendError;
use komado_provider::dialect::{ResponseStamp, TranscriptTail};
use komado_provider::{
    ApiRefusal, BadRequest, Cancel, ClientBody, Dialect, ElementAuthor, ForwardRequest, Method, ModelRequest,
    ParsedRequest, ProviderResponse, RefusalKind, ResponseForm, ScannedRequest, Splice,
};
use serde_json::Value;
use serde_json::value::RawValue;
use session_request::{SessionRequest, SessionRequestKind};
use splice::{BodyPatch, is_whole, whole};
use std::fs::File;
use std::io;
use std::io::Write;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::time::Duration;
use threads::{IdleThreads, ThreadClaims, UncertainTokens};

mod client_stream;
mod session_request;
mod splice;
mod threads;

/// A request that arrived.
#[derive(Clone, Debug)]
pub struct ClientRequest {
    /// Its skim, in the client's dialect.
    pub skim: Arc<ScannedRequest>,
    /// Its body.
    pub body: Arc<File>,
    /// Who sent it.
    pub caller: TranscriptCaller,
}

impl ClientRequest {
    /// How the client speaks.
    pub fn dialect(&self) -> Dialect {
        self.skim.dialect
    }
}

/// Where a request goes.
#[derive(Clone)]
pub struct RelayUpstream {
    /// The provider (with its dialect), the model as the provider calls it, and how large its window is: 0 while that is
    /// unknown. Its `cancel` is said when the client has gone.
    pub asking: ModelTarget,
    /// The exact address, query included, for a request in the client's own dialect.
    pub url: String,
    /// The headers to send, complete: the client's own without those of the connection, with the key that is to be used.
    pub headers: Vec<(String, String)>,
    /// The model's name is another for the provider than the client wrote: the name is replaced in the body.
    pub renames: bool,
}

impl RelayUpstream {
    /// Sends a body on with the client's headers, once.
    fn forward(&self, body: ClientBody<'_>) -> Result<ProviderResponse, SendError> {
        let forward = ForwardRequest { method: Method::POST, url: &self.url, headers: &self.headers, body };
        self.asking.client.forward(forward, &self.asking.cancel)
    }
}

/// What writes the summaries of a session.
pub trait SummariserFor: Sync {
    /// The summariser of a session; `None` where the digest is to do it.
    fn summariser(&self, id: &SessionId, meter: Meter, cancel: &Cancel) -> Option<SummaryWriter<'_>>;
}

/// The digest, for every session.
impl SummariserFor for () {
    fn summariser(&self, _: &SessionId, _: Meter, _: &Cancel) -> Option<SummaryWriter<'_>> {
        None
    }
}

/// How requests are handled; the same for all of one gateway.
pub struct RelayConfig<'a> {
    /// When something must leave the view.
    pub policy: Policy,
    /// How summaries are written.
    pub settings: CondenseSettings,
    /// Who writes them, for a session; `None` for the digest.
    pub summariser: &'a dyn SummariserFor,
    /// Whether the tools that lead back to what left the view are offered to the model once something has left.
    pub offer: ToolOffer,
    /// How often a model may make the same call while an edit hides its answer, before the request is refused; 0 for as often
    /// as it likes.
    pub max_repeats: u32,
    /// Makes the attributes of a new session, but for its name.
    pub meta: &'a (dyn Fn(&SessionId, &TranscriptCaller, MetaConfig) -> komado_core::session::Meta + Sync),
    /// How tokens are counted for a model.
    pub meter: &'a (dyn Fn(&str) -> Meter + Sync),
}

/// Whether the tools that lead back are offered.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum ToolOffer {
    /// Once the view names something that only they can read.
    #[default]
    WhenNeeded,
    /// Never.
    Never,
}

/// What was done with a request, for headers, log and metrics.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct RelayNotes {
    /// The session.
    pub session: Option<SessionId>,
    /// The thread.
    pub thread: Option<ThreadId>,
    /// How it was placed.
    pub placed: &'static str,
    /// Tokens of what the client sent, as we count.
    pub before: u64,
    /// Tokens of what was sent on, our own tools included where they were offered.
    pub after: u64,
    /// Edits that were made for this request.
    pub edits: u32,
    /// The same by rung of the ladder.
    pub rungs: Vec<(&'static str, u32)>,
    /// Calls of our own tools that were answered.
    pub recalls: u32,
    /// How often the model made its last call while an edit hides the answer: 0, or 2 and more.
    pub repeats: u32,
    /// Requests that were sent for it.
    pub attempts: u32,
    /// Those of them that the provider found too large.
    pub overflows: u32,
    /// True when the bytes that left are the bytes that arrived.
    pub untouched: bool,
    /// Why the answer broke off: the provider hung up, or the client did. What was handed on is not whole.
    pub cut: Option<String>,
    /// The server read far less than was sent, and did not say so: tokens it read, and tokens that were sent.
    pub truncated: Option<(u64, u64)>,
    /// What went wrong on our side.
    pub fault: Option<String>,
}

/// The client's end.
pub trait ClientOutlet {
    /// The answer begins. Called once, before any bytes.
    fn begin(&mut self, status: u16, headers: &[(String, String)], notes: &RelayNotes);

    /// More of the body. An error says that the client has gone.
    fn write(&mut self, bytes: &[u8]) -> Result<(), ClientGone>;

    /// Something is known only now: said to log and metrics.
    fn end(&mut self, notes: &RelayNotes);
}

/// The client closed its connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ClientGone;

/// Why a request could not be handled before its answer began.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RelayFault {
    /// Something of ours: the request can go on untouched.
    #[error(transparent)]
    Ours(#[from] Error),
    /// The provider could not be reached, or hung up before it answered.
    #[error(transparent)]
    Theirs(SendError),
}

/// What a gateway keeps between requests: who is at work, and what is still to be tidied up.
pub struct Relay {
    engine: Engine,
    claims: ThreadClaims,
    idle: IdleThreads,
    uncertain: UncertainTokens,
    /// What comes this long after the head of an answer, or later, is let go even if no words are among it. From then on an
    /// overflow inside the stream can only be handed on. A second unless set.
    pub patience: Duration,
    /// How long a request waits while another process holds its session. It goes on once that process is done, or has died
    /// and lost it; where it is still at work then, the request is a [`RelayFault`] of ours. A second unless set.
    pub waiting: Duration,
}

/// How long an answer is held back for its first words, and how long a session that is held elsewhere is waited for.
const PATIENCE: Duration = Duration::from_secs(1);

impl Relay {
    /// For the sessions of `engine`.
    pub fn new(engine: Engine) -> Self {
        let (claims, idle, uncertain) =
            (ThreadClaims::default(), IdleThreads::default(), UncertainTokens::default());
        Self { engine, claims, idle, uncertain, patience: PATIENCE, waiting: PATIENCE }
    }

    /// The engine.
    pub fn engine(&self) -> &Engine {
        &self.engine
    }

    /// True while a request is under way in a thread.
    pub fn is_busy(&self, session: &SessionId, thread: &ThreadId) -> bool {
        self.claims.is_busy(session, thread)
    }

    /// Handles a request. Once [`ClientOutlet::begin`] was called there is no fault any more: what goes wrong then is journaled
    /// if it can be, and told to [`ClientOutlet::end`].
    pub fn relay(
        &self,
        arrival: &ClientRequest,
        upstream: &RelayUpstream,
        manner: &RelayConfig<'_>,
        outlet: &mut dyn ClientOutlet,
    ) -> Result<(), RelayFault> {
        SessionRequest::open(self, arrival, upstream, manner, SessionRequestKind::Answer)?.answer(outlet)
    }

    /// Condenses a transcript and answers with what is left of it, as `POST /v1/responses/compact` does. The provider is
    /// not asked.
    pub fn compact(
        &self,
        arrival: &ClientRequest,
        upstream: &RelayUpstream,
        manner: &RelayConfig<'_>,
        outlet: &mut dyn ClientOutlet,
    ) -> Result<(), RelayFault> {
        SessionRequest::open(self, arrival, upstream, manner, SessionRequestKind::Compact)?.compact(outlet)
    }

    /// Brings what is derived up to date in threads that rested during the last `rounds` calls of this function; 0 for
    /// all of them, as before the end. Gives how many there were. What cannot be done now is tried again next time.
    pub fn settle_idle(&self, rounds: u32) -> usize {
        self.idle.settle(self, rounds)
    }
}

/// The time of an answer where no clock is read; some clients want one that can be read.
const LONG_AGO: &str = "1970-01-01T00:00:00Z";

/// Sends a request on as it came, and hands back what comes, byte for byte; only the model's name is replaced where the
/// provider has another. For a provider of another dialect both are translated. Nothing is journaled.
pub fn untouched(
    arrival: &ClientRequest,
    upstream: &RelayUpstream,
    outlet: &mut dyn ClientOutlet,
    mut notes: RelayNotes,
) -> Result<(), SendError> {
    let mut client = ClientStream::new(outlet, arrival.dialect(), arrival.skim.stream);
    if upstream.asking.provider.dialect != arrival.dialect() {
        translate(arrival, upstream, &mut client, &mut notes)?;
    } else {
        let splice = named(arrival, upstream);
        notes.untouched = is_whole(&splice, arrival.skim.len);
        let mut incoming = upstream.forward(ClientBody::Spliced(splice))?;
        client.begin(incoming.status, &incoming.headers, &notes);
        notes.cut = pass(&mut incoming, &mut client).err().map(|why| why.to_string());
    }
    client.close(&notes);
    Ok(())
}

/// The client's request with the model's name as the provider knows it.
fn named(arrival: &ClientRequest, upstream: &RelayUpstream) -> Splice {
    let mut patch = BodyPatch::new(&arrival.skim, &arrival.body);
    // A body that could not be skimmed has no place for a name.
    if upstream.renames && arrival.skim.field("model").is_some() {
        // It stands there already, so nothing has to be read for it.
        let _ = patch.model(&upstream.asking.model);
    }
    patch.finish().unwrap_or_else(|_| whole(arrival))
}

/// Sends a request on in the provider's dialect, and hands on what comes in the client's.
fn translate(
    arrival: &ClientRequest,
    upstream: &RelayUpstream,
    client: &mut ClientStream<'_>,
    notes: &mut RelayNotes,
) -> Result<(), SendError> {
    let asking = &upstream.asking;
    let (bytes, usage) = match translated(arrival, upstream) {
        Ok(written) => written,
        Err(why) => {
            // What cannot be read cannot be sent anywhere.
            let (status, body) = client.dialect().refusal(&ApiRefusal::new(RefusalKind::BadRequest, why));
            client.send_whole(status, ResponseForm::Whole, &body, notes);
            return Ok(());
        }
    };
    let incoming =
        asking.client.post(&asking.provider, ClientBody::Bytes(bytes.into()), &asking.cancel, &mut |_| {})?;
    if incoming.header("content-encoding").is_some_and(|kind| kind != "identity") {
        return Err(SendError::Broken { why: "the answer came packed and cannot be translated".to_owned() });
    }
    let form = client.form();
    client.encode(form, ResponseStamp { created: 0, created_at: LONG_AGO.to_owned(), usage }, false);
    let mut receiver = ClientReceiver::new(client, notes, PATIENCE, true, false);
    let lost = match receive(asking, Ok(incoming), form, &mut receiver) {
        SendOutcome::Answer(_) => {
            client.finish(None);
            return Ok(());
        }
        SendOutcome::TooLarge(why) if why.status >= 400 => {
            client.refuse((why.status, &why.headers, &why.body), true, notes);
            return Ok(());
        }
        SendOutcome::TooLarge(why) => {
            client.refuse_too_large(&why, true, notes);
            return Ok(());
        }
        SendOutcome::Lost(lost) => lost,
    };
    match lost.error {
        UnansweredReason::Send(error) if !client.begun() => return Err(error),
        UnansweredReason::Broken if !client.begun() => return Err(cut_short()),
        error if error.is_cut() => notes.cut = Some(error.to_string()),
        _ => {}
    }
    Ok(())
}

/// Reads the whole request and writes it as the provider wants it; gives it, and whether usage is wanted in the stream.
fn translated(arrival: &ClientRequest, upstream: &RelayUpstream) -> Result<(Vec<u8>, bool), String> {
    let body = text(&arrival.body, &(0..arrival.skim.len)).map_err(|error| error.to_string())?;
    let mut asked = arrival.dialect().read(&body).map_err(|error| error.to_string())?;
    let (messages, stream) = (std::mem::take(&mut asked.messages), asked.stream);
    let request = RequestSetup::of(asked);
    let max_tokens = request.wish;
    // Nothing is made to fit here: the server's own window is the best there is.
    let ask = ModelRequest { max_tokens, stream, window: None, ..upstream.asking.ask(&request.setup) };
    let mut bytes = Vec::new();
    let mut pour = |put: &mut MessageSink<'_>| messages.iter().try_for_each(put);
    write(upstream.asking.provider.dialect, &ask, &mut Nowhere, &mut bytes, &mut pour)
        .map_err(|error| error.to_string())?;
    Ok((bytes, request.usage))
}

/// There is no store to keep anything in: what a request brings stands in it.
struct Nowhere;

impl BlobReader for Nowhere {
    fn base64(&mut self, id: &str, _: &mut dyn Write) -> io::Result<()> {
        Err(io::Error::new(io::ErrorKind::NotFound, format!("blob {id} is not in the request")))
    }
}

// What a client's request says beside its transcript. The transcript may be large and is mostly known; everything else in a
// request is small. So the request is read as if it had no transcript at all.

/// A block of Anthropic's system prompt that begins so is for the till: it changes with each request and says nothing.
pub(crate) const BILLING: &str = "x-anthropic-billing-header";

/// A request without its transcript.
#[derive(Clone, Debug)]
struct RequestSetup {
    /// System prompt, tools, parameters.
    setup: Setup,
    /// The longest answer that the client wants.
    wish: Option<u64>,
    /// How many tokens of that the model may think, where the API wants the one below the other.
    thoughts: Option<u64>,
    /// True when the client wants to hear of usage in the stream.
    usage: bool,
}

impl RequestSetup {
    /// Reads what an arrival asks for.
    fn read(arrival: &ClientRequest) -> Result<Self, Error> {
        let (skim, body) = (&*arrival.skim, &*arrival.body);
        let text = shell(skim, body)?;
        Ok(Self::of(skim.dialect.read(&text).map_err(unreadable)?))
    }

    /// What was asked for, beside what was said.
    fn of(asked: ParsedRequest) -> Self {
        let params = asked.setup.params.as_ref().and_then(|params| RawObject::parse(params.get()).ok());
        let inside = |outer: &str, key: &str| {
            let object = RawObject::parse(params.as_ref()?.get(outer)?.get()).ok()?;
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
fn shell(skim: &ScannedRequest, body: &File) -> Result<String, Error> {
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
            RawObject::parse(block.get()).ok().and_then(|block| block.read::<String>("text").ok().flatten());
        words.is_some_and(|words| words.trim_start().starts_with(BILLING))
    };
    if !blocks.iter().any(|block| is_bill(&block)) {
        return None;
    }
    let kept: Vec<&str> = blocks.iter().filter(|block| !is_bill(block)).map(|block| block.get()).collect();
    Some(format!("[{}]", kept.join(",")))
}

/// The text at a place of a body.
pub(crate) fn text(body: &File, span: &Range<u64>) -> Result<String, Error> {
    let len = usize::try_from(span.end.saturating_sub(span.start)).map_err(io::Error::other)?;
    let mut bytes = vec![0; len];
    body.read_exact_at(&mut bytes, span.start)?;
    String::from_utf8(bytes).map_err(|error| Error::Io(io::Error::new(io::ErrorKind::InvalidData, error)))
}

/// Elements at the beginning of a transcript in which an agent may name its folder.
const OPENING: usize = 4;

/// Most bytes of a system prompt or an element that are looked through for the folder.
const PROMPT: u64 = 1 << 18;

/// The first text in a JSON value for which `look` finds something.
fn find_text(value: &Value, look: fn(&str) -> Option<String>) -> Option<String> {
    match value {
        Value::String(text) => look(text),
        Value::Array(items) => items.iter().find_map(|item| find_text(item, look)),
        Value::Object(fields) => fields.values().find_map(|field| find_text(field, look)),
        _ => None,
    }
}

impl ClientRequest {
    /// The folder the agent works in, where its system prompt or its first words name it.
    fn project(&self) -> Option<String> {
        let is_said = |by| matches!(by, ElementAuthor::System | ElementAuthor::User);
        let prompts = ["system", "instructions"].iter().filter_map(|key| self.skim.field(key));
        let said = self.skim.elements.iter().take(OPENING).filter(|element| is_said(element.by));
        let mut spans = prompts.chain(said.map(|element| element.span.clone()));
        spans.find_map(|span| {
            let is_small = span.end.saturating_sub(span.start) <= PROMPT;
            let json = is_small.then(|| text(&self.body, &span).ok()).flatten()?;
            find_text(&serde_json::from_str(&json).ok()?, project_in)
        })
    }
}

/// Reads elements that go on after open calls.
type ReadElements = fn(Dialect, &[&str], &[Call]) -> Result<TranscriptTail, BadRequest>;

impl ClientRequest {
    /// True when tools answer in a stretch of elements.
    fn has_results(&self, stretch: &Range<u32>) -> bool {
        let is_tool =
            |at| self.skim.elements.get(at as usize).is_some_and(|element| element.by == ElementAuthor::Tool);
        stretch.clone().any(is_tool)
    }

    /// Elements of the transcript as messages.
    fn messages(
        &self,
        which: Range<u32>,
        open: &[Call],
        read: ReadElements,
    ) -> Result<TranscriptTail, Error> {
        let which = which.start as usize..(which.end as usize).min(self.skim.elements.len());
        let elements = self.skim.elements.get(which).unwrap_or_default().iter();
        let texts =
            elements.map(|element| text(&self.body, &element.span)).collect::<Result<Vec<_>, Error>>()?;
        let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
        read(self.dialect(), &texts, open).map_err(unreadable)
    }
}

/// What cannot be read cannot be journaled.
fn unreadable(bad: BadRequest) -> Error {
    Error::Io(io::Error::new(io::ErrorKind::InvalidData, format!("the request cannot be taken in: {bad}")))
}

/// True for a call of one of our tools.
fn is_own(name: &str) -> bool {
    RecallTools.knows(name)
}

/// The names of the tools of a setup.
pub(crate) fn names(setup: &Setup) -> Vec<String> {
    let tools: Vec<serde_json::Value> =
        setup.tools.as_ref().and_then(|tools| serde_json::from_str(tools.get()).ok()).unwrap_or_default();
    let name = |tool: &serde_json::Value| {
        let name = tool["function"]["name"].as_str().or_else(|| tool["name"].as_str());
        name.map(str::to_owned)
    };
    tools.iter().filter_map(name).collect()
}

/// Our tools may take this share of what the client's own instructions leave of the window, as a divisor; where there is
/// less they would cost more than they bring.
const SHARE: u64 = 8;

impl SessionRequest<'_> {
    /// True when our tools would be offered if something left the view. A client that has tools of the same names keeps
    /// them to itself.
    pub(super) fn may_offer(&self) -> bool {
        let skim = &self.arrival.skim;
        self.manner.offer == ToolOffer::WhenNeeded
            && skim.fills("tools")
            && !names(&self.request.setup).iter().any(|name| is_own(name))
    }

    /// True when they are offered now.
    pub(super) fn offers_now(&self) -> bool {
        self.has_edits() && self.own_tokens > 0
    }

    /// Tokens of our tools, where they may be offered; 0 where they may not.
    pub(super) fn tokens_of_tools(&self) -> u64 {
        if !self.may_offer() {
            return 0;
        }
        let tokens = self.definitions(Dialect::Chat).map_or(0, |text| self.thread.meter().text(&text));
        let window = self.lesson.ours(self.window());
        let left = window.saturating_sub(self.thread.view().weight().instructions());
        if window > 0 && tokens * SHARE > left { 0 } else { tokens }
    }

    /// Their definitions in a dialect, without brackets.
    pub(super) fn definitions(&self, dialect: Dialect) -> Option<String> {
        let list = dialect.tools(&RecallTools::offered(Setup::default()))?;
        Some(list.trim().strip_prefix('[')?.strip_suffix(']')?.to_owned())
    }

    /// `setup` with our tools behind its own.
    pub(super) fn offered(&self, setup: &Setup) -> Setup {
        let own = self.definitions(self.arrival.dialect()).unwrap_or_default();
        let list = setup.tools.as_ref().and_then(|tools| tools.get().trim().strip_suffix(']'));
        let tools = list.and_then(|list| RawJson::parse(format!("{list},{own}]")).ok());
        Setup { tools: tools.or_else(|| setup.tools.clone()), ..setup.clone() }
    }
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
