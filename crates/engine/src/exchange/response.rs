//! What came of a request: its response, read from the first byte to the last.
//!
//! The one loop that turns a provider's bytes into events, a message and its usage. A [`ResponseReceiver`] hands them on. Until it
//! has handed on something a refusal is still a refusal, also one inside a stream that began well; after that the request
//! cannot be sent again, and what breaks off is lost.

use super::{ExchangeEvent, ModelTarget};
use crate::lesson::SizeRefusal;
use komado_core::message::{Message, MessagePart};
use komado_provider::client::SendError;
use komado_provider::overflow::Remedy;
use komado_provider::{
    ClientBody, ModelEvent, ModelResponse, ProviderFailure, ProviderResponse, ResponseForm, overflow,
};

/// Most of a refusal that is read.
const MOST: usize = 1 << 20;
/// Most of a refusal that is shown to people.
const SHOWN: usize = 2_000;

/// What came of a request.
pub(crate) enum SendOutcome {
    /// A whole answer.
    Answer(Box<ModelResponse>),
    /// The request was too large, and nothing was handed on.
    TooLarge(TooLarge),
    /// No answer, or half of one.
    Lost(LostResponse),
}

/// A request without an answer.
pub(crate) struct LostResponse {
    /// How it ended: `refused`, `failed`, `lost` or `cancelled`.
    pub(crate) finish: &'static str,
    /// Why.
    pub(crate) error: UnansweredReason,
    /// What had come; `None` when there was no response at all.
    pub(crate) response: Option<Box<ModelResponse>>,
}

impl LostResponse {
    /// A request to which no response came.
    fn unsent(asking: &ModelTarget, error: SendError) -> Self {
        let is_cancelled = matches!(error, SendError::Cancelled) || asking.cancel.is_cancelled();
        let finish = if is_cancelled { "cancelled" } else { "lost" };
        Self { finish, error: error.into(), response: None }
    }
}

/// What a provider said of a request that was too large.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct TooLarge {
    /// What can be learned from it.
    pub(crate) refusal: SizeRefusal,
    /// True when less room for the answer would do.
    pub(crate) lower: bool,
    /// Its words, and why they were understood so.
    pub(crate) why: String,
    /// The status of the response.
    pub(crate) status: u16,
    /// Its headers.
    pub(crate) headers: Vec<(String, String)>,
    /// What it said.
    pub(crate) body: String,
}

impl TooLarge {
    /// A refusal because of size, if `body` is one.
    fn read(said: u16, body: &str, status: u16, headers: &[(String, String)]) -> Option<Self> {
        let verdict = overflow::classify(said, body);
        verdict.overflow.then(|| Self {
            refusal: SizeRefusal {
                limit: verdict.limit,
                actual: verdict.input.or(verdict.actual),
                is_vague: said == 413 || speaks_of_bytes(body),
            },
            lower: verdict.remedy == Remedy::LowerMaxTokens,
            why: verdict.why,
            status,
            headers: headers.to_vec(),
            body: body.to_owned(),
        })
    }

    /// A refusal because of size inside a response that began well.
    fn within(response: &ModelResponse, incoming: &ProviderResponse) -> Option<Self> {
        if response.finish.as_deref() == Some("model_context_window_exceeded") {
            let why = "the model stopped because its window is full".to_owned();
            let (status, headers) = (incoming.status, incoming.headers.clone());
            let refusal = SizeRefusal { is_vague: true, ..SizeRefusal::default() };
            return Some(Self { refusal, why, status, headers, ..Self::default() });
        }
        let ProviderFailure { status, body } = response.failed.as_ref()?;
        Self::read(*status, body, incoming.status, &incoming.headers)
    }
}

/// True when a size in bytes or characters was too large: that says nothing about tokens.
fn speaks_of_bytes(body: &str) -> bool {
    let body = body.to_ascii_lowercase();
    ["byte", "payload", "request_too_large", "character", " mb"].iter().any(|word| body.contains(word))
}

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum UnansweredReason {
    /// It could not be sent, or the answer not received.
    #[error(transparent)]
    Send(#[from] SendError),
    /// The provider refused.
    #[error("{url} refused (HTTP {status}): {}", shown(.body))]
    Refused {
        /// Where that was.
        url: String,
        /// The HTTP status.
        status: u16,
        /// What it said.
        body: String,
    },
    /// The provider gave up in the middle.
    #[error("the provider gave up in mid-answer: {}", shown(.0))]
    Failed(String),
    /// The answer has no end.
    #[error("the connection ended before the answer did; what had come is kept in the journal")]
    Broken,
    /// The client that the answer was for closed its connection.
    #[error("the client has gone")]
    Gone,
    /// The answer cannot be taken in.
    #[error("{0}")]
    Answer(String),
}

impl UnansweredReason {
    /// True when an answer broke off, and what was handed on of it is not whole.
    pub(crate) const fn is_cut(&self) -> bool {
        matches!(self, Self::Send(_) | Self::Broken | Self::Gone)
    }
}

/// A body, as much of it as helps.
fn shown(body: &str) -> String {
    let body = body.trim();
    if body.is_empty() {
        return "it did not say why".into();
    }
    // Nothing that a terminal would obey.
    let plain = |c: char| if c.is_control() && c != '\n' { ' ' } else { c };
    let short: String = body.chars().take(SHOWN).map(plain).collect();
    if body.chars().nth(SHOWN).is_some() { format!("{short}…") } else { short }
}

/// Where a response goes while it comes.
pub(crate) trait ResponseReceiver {
    /// More of it: bytes, the events in them, and the response so far with these. At the end there are no bytes.
    fn take(
        &mut self,
        incoming: &ProviderResponse,
        bytes: &[u8],
        events: Vec<ModelEvent>,
        response: &ModelResponse,
    );

    /// All of it came, and it is no refusal because of size: what was held back is handed on.
    fn end(&mut self, incoming: &ProviderResponse, response: &ModelResponse);

    /// True once something was handed on: the request cannot be sent again.
    fn has_begun(&self) -> bool;

    /// Whether to read on.
    fn wants(&self, response: &ModelResponse) -> ReceiverWants;

    /// The provider refused, for another reason than size.
    fn refused(&mut self, _status: u16, _headers: &[(String, String)], _body: &str) {}

    /// Hands on a response whose bytes cannot be read here; `None` when that is of no use.
    fn pass_unread(&mut self, _incoming: &mut ProviderResponse) -> Option<LostResponse> {
        None
    }
}

/// Whether a receiver wants more of a response.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum ReceiverWants {
    /// It does.
    More,
    /// What came is enough.
    Enough,
    /// There is no client any more.
    Nothing,
}

/// Reads the response to a request that was `sent`, to its end. `wanted` is the form that was asked for.
pub(crate) fn receive(
    asking: &ModelTarget,
    sent: Result<ProviderResponse, SendError>,
    wanted: ResponseForm,
    to: &mut dyn ResponseReceiver,
) -> SendOutcome {
    let mut incoming = match sent {
        Ok(incoming) => incoming,
        Err(error) => return SendOutcome::Lost(LostResponse::unsent(asking, error)),
    };
    let packed = incoming.header("content-encoding").filter(|kind| *kind != "identity").map(str::to_owned);
    if let Some(lost) = packed.as_ref().and_then(|_| to.pass_unread(&mut incoming)) {
        return SendOutcome::Lost(lost);
    }
    if !(200..300).contains(&incoming.status) {
        return refused(asking, incoming, to);
    }
    if let Some(packed) = packed {
        let url = asking.provider.endpoint();
        let why = format!("{url} sent its answer packed as {packed}, which was not asked for");
        return lost("failed", UnansweredReason::Answer(why), ModelResponse::default());
    }
    let mut decoder = asking.provider.dialect.decoder(form(&incoming, wanted));
    let mut response = ModelResponse::default();
    let broken = loop {
        let (chunk, mut events) = (incoming.chunk(), Vec::new());
        let bytes: &[u8] = match &chunk {
            Ok(Some(bytes)) => bytes,
            _ => &[],
        };
        match &chunk {
            Ok(Some(bytes)) => decoder.push(bytes, &mut |event| events.push(event)),
            _ => decoder.end(&mut |event| events.push(event)),
        }
        events.iter().for_each(|event| response.take(event));
        to.take(&incoming, bytes, events, &response);
        let wants = to.wants(&response);
        let is_open = matches!(chunk, Ok(Some(_)));
        if is_open && wants == ReceiverWants::Nothing {
            return lost("cancelled", UnansweredReason::Gone, response);
        }
        if let Some(why) = TooLarge::within(&response, &incoming).filter(|_| !to.has_begun()) {
            return SendOutcome::TooLarge(why);
        }
        if !is_open || wants == ReceiverWants::Enough {
            break chunk.err();
        }
    };
    judge(asking, broken, response, &incoming, to)
}

/// Some servers do not say that they stream; one that was asked to, and does not say that it sends JSON, does.
fn form(incoming: &ProviderResponse, wanted: ResponseForm) -> ResponseForm {
    let is_json = incoming.header("content-type").is_some_and(|kind| kind.contains("json"));
    if incoming.is_stream() || wanted == ResponseForm::Stream && !is_json {
        ResponseForm::Stream
    } else {
        ResponseForm::Whole
    }
}

/// A response that says no.
fn refused(
    asking: &ModelTarget,
    mut incoming: ProviderResponse,
    to: &mut dyn ResponseReceiver,
) -> SendOutcome {
    let (status, headers) = (incoming.status, std::mem::take(&mut incoming.headers));
    let body = match incoming.text(MOST) {
        Ok(body) => body,
        Err(error) => return SendOutcome::Lost(LostResponse::unsent(asking, error)),
    };
    if let Some(why) = TooLarge::read(status, &body, status, &headers) {
        return SendOutcome::TooLarge(why);
    }
    to.refused(status, &headers, &body);
    let (url, body) = (asking.provider.endpoint(), asking.provider.without_key(body));
    lost("refused", UnansweredReason::Refused { url, status, body }, ModelResponse::default())
}

/// What a response is that came to its end, or broke off.
fn judge(
    asking: &ModelTarget,
    broken: Option<SendError>,
    mut response: ModelResponse,
    incoming: &ProviderResponse,
    to: &mut dyn ResponseReceiver,
) -> SendOutcome {
    // A server that hangs up roughly after the last word has said everything.
    let is_whole = response.finish.is_some() && response.failed.is_none();
    if let Some(error) = broken.filter(|_| !is_whole) {
        return SendOutcome::Lost(LostResponse {
            response: Some(Box::new(response)),
            ..LostResponse::unsent(asking, error)
        });
    }
    to.end(incoming, &response);
    if let Some(ProviderFailure { body, .. }) = response.failed.take() {
        let body = asking.provider.without_key(body);
        let (url, status) = (asking.provider.endpoint(), incoming.status);
        let error = if to.has_begun() {
            UnansweredReason::Failed(body)
        } else {
            UnansweredReason::Refused { url, status, body }
        };
        return lost("failed", error, response);
    }
    match response.finish {
        None => lost("lost", UnansweredReason::Broken, response),
        Some(_) => SendOutcome::Answer(Box::new(response)),
    }
}

fn lost(finish: &'static str, error: UnansweredReason, response: ModelResponse) -> SendOutcome {
    SendOutcome::Lost(LostResponse { finish, error, response: Some(Box::new(response)) })
}

/// Sends a request that was written here, and hands on its events. A provider that is busy may say so when its answer has
/// begun: before the first word that is no different from saying it at once, and it is asked again.
pub(crate) fn post(
    asking: &ModelTarget,
    body: &ClientBody<'_>,
    news: &mut dyn FnMut(ExchangeEvent<'_>),
) -> SendOutcome {
    let ModelTarget { client, cancel, .. } = asking;
    let mut tries = 0;
    loop {
        tries += 1;
        let sent = client.post(&asking.provider, body.clone(), cancel, &mut |waiting| {
            news(ExchangeEvent::Waiting(&waiting))
        });
        let mut events = Events { held: Vec::new(), has_begun: false, news: &mut *news };
        let outcome = receive(asking, sent, asking.form, &mut events);
        let SendOutcome::Lost(LostResponse {
            error: UnansweredReason::Refused { status: 200..300, body: said, .. },
            ..
        }) = &outcome
        else {
            return outcome;
        };
        if !is_busy(said) {
            return outcome;
        }
        match client.wait(tries, "busy", cancel, &mut |waiting| news(ExchangeEvent::Waiting(&waiting))) {
            Ok(true) => {}
            Ok(false) => return outcome,
            Err(error) => return SendOutcome::Lost(LostResponse::unsent(asking, error)),
        }
    }
}

/// True for an error that may pass.
fn is_busy(body: &str) -> bool {
    let body = body.to_ascii_lowercase();
    let words =
        ["overloaded", "rate_limit", "rate limit", "unavailable", "server_error", "too many requests"];
    words.iter().any(|word| body.contains(word))
}

/// Hands events on, from the first that a person would see.
struct Events<'n> {
    held: Vec<ModelEvent>,
    has_begun: bool,
    news: &'n mut dyn FnMut(ExchangeEvent<'_>),
}

impl ResponseReceiver for Events<'_> {
    fn take(&mut self, _: &ProviderResponse, _: &[u8], events: Vec<ModelEvent>, _: &ModelResponse) {
        for event in events {
            self.has_begun |= event.is_content();
            self.held.push(event);
            if self.has_begun {
                self.held.drain(..).for_each(|event| (self.news)(ExchangeEvent::Said(&event)));
            }
        }
    }

    fn end(&mut self, _: &ProviderResponse, response: &ModelResponse) {
        if response.failed.is_none() && response.finish.is_some() {
            self.held.drain(..).for_each(|event| (self.news)(ExchangeEvent::Said(&event)));
        }
    }

    fn has_begun(&self) -> bool {
        self.has_begun
    }

    fn wants(&self, response: &ModelResponse) -> ReceiverWants {
        if response.failed.is_some() { ReceiverWants::Enough } else { ReceiverWants::More }
    }
}

/// What had been said, as text: words, thoughts and calls, for people.
pub(crate) fn words(message: &Message) -> String {
    let told = message.parts.iter().map(|part| match part {
        MessagePart::Text { text, .. } | MessagePart::Reasoning { text, .. } => text.clone(),
        MessagePart::Call(call) => format!("{}({})", call.name, call.arguments),
        MessagePart::Opaque(opaque) => opaque.json.get().to_owned(),
        MessagePart::Image { .. } | MessagePart::Result(_) => String::new(),
    });
    told.filter(|text| !text.is_empty()).collect::<Vec<_>>().join("\n")
}
