//! The client's end of an exchange: what it is sent, in its own dialect, and when.
//!
//! Bytes are handed on as they come, or encoded anew from events where something must be taken out of them or they are in
//! another dialect. Nothing reaches the client before the first words, unless they take longer than a client waits: until
//! then a refusal is still a refusal, also one inside a stream that began well. What ends an answer is held back until the
//! reply is in the journal: a client may go on at once.

use super::is_own;
use super::{ClientOutlet, RelayNotes};
use crate::exchange::response::{LostResponse, ReceiverWants, ResponseReceiver, TooLarge, UnansweredReason};
use komado_provider::client::SendError;
use komado_provider::dialect::{Encode, ResponseStamp};
use komado_provider::{
    ApiRefusal, Dialect, ModelEvent, ModelResponse, ProviderFailure, ProviderResponse, RefusalKind,
    ResponseForm,
};
use std::time::{Duration, Instant};

/// Headers that belong to a body that was encoded anew, or to the connection.
const OLD: [&str; 6] =
    ["content-type", "content-length", "content-encoding", "transfer-encoding", "connection", "keep-alive"];

/// Writes to the client.
pub(super) struct ClientStream<'o> {
    outlet: &'o mut dyn ClientOutlet,
    /// The client's dialect.
    dialect: Dialect,
    /// True when the client asked for a stream.
    stream: bool,
    begun: bool,
    /// The head of an answer in one piece that is encoded anew: it is sent with the end, and then it may be another.
    head: Option<Head>,
    gone: bool,
    /// The end of the answer, held until it may be sent.
    tail: Vec<u8>,
    encoding: Option<Encoding>,
}

type Head = (u16, Vec<(String, String)>);

/// An answer that is encoded anew.
struct Encoding {
    encoder: Box<dyn Encode>,
    form: ResponseForm,
    /// Calls of the present round: their index there, and the one that the client knows, if it is to know of them.
    calls: Vec<(usize, Option<usize>)>,
    next: usize,
    finish: Option<String>,
    /// True when calls of our own tools are not the client's: they were offered.
    offers: bool,
}

impl<'o> ClientStream<'o> {
    pub(super) fn new(outlet: &'o mut dyn ClientOutlet, dialect: Dialect, stream: bool) -> Self {
        let (begun, gone, tail) = (false, false, Vec::new());
        Self { outlet, dialect, stream, begun, head: None, gone, tail, encoding: None }
    }

    pub(super) fn dialect(&self) -> Dialect {
        self.dialect
    }

    pub(super) fn form(&self) -> ResponseForm {
        if self.stream { ResponseForm::Stream } else { ResponseForm::Whole }
    }

    pub(super) fn begun(&self) -> bool {
        self.begun
    }

    /// True when there is something for the client to read, now or at the end.
    pub(super) fn speaks(&self) -> bool {
        self.begun || self.head.is_some()
    }

    /// Takes back what was to be sent, before anything was.
    fn forget(&mut self) {
        self.head = None;
        self.encoding = None;
        self.tail.clear();
    }

    pub(super) fn gone(&self) -> bool {
        self.gone
    }

    /// Begins the answer with the provider's own head.
    pub(super) fn begin(&mut self, status: u16, headers: &[(String, String)], notes: &RelayNotes) {
        if !std::mem::replace(&mut self.begun, true) {
            self.head = None;
            self.outlet.begin(status, headers, notes);
        }
    }

    pub(super) fn write(&mut self, bytes: &[u8]) {
        if !self.gone && !bytes.is_empty() && self.outlet.write(bytes).is_err() {
            self.gone = true;
        }
    }

    /// Holds bytes until the end.
    pub(super) fn hold(&mut self, bytes: &[u8]) {
        self.tail.extend_from_slice(bytes);
    }

    /// From now on the answer is encoded anew. One that has begun goes on.
    pub(super) fn encode(&mut self, form: ResponseForm, stamp: ResponseStamp, offers: bool) {
        let speaks = self.speaks();
        match &mut self.encoding {
            Some(encoding) if speaks => {
                encoding.calls.clear();
                encoding.offers = offers;
            }
            _ => {
                let encoder = self.dialect.encoder(form, stamp);
                self.encoding =
                    Some(Encoding { encoder, form, calls: Vec::new(), next: 0, finish: None, offers });
            }
        }
    }

    /// The answer is handed on as it comes.
    pub(super) fn repeat(&mut self) {
        self.encoding = None;
    }

    /// Begins an answer that is encoded anew.
    pub(super) fn begin_anew(&mut self, status: u16, headers: &[(String, String)], notes: &RelayNotes) {
        if self.speaks() {
            return;
        }
        let headers = self.headers_anew(headers);
        if self.is_whole() {
            self.head = Some((status, headers));
        } else {
            self.begin(status, &headers, notes);
        }
    }

    fn is_whole(&self) -> bool {
        self.encoding.as_ref().is_some_and(|encoding| encoding.form == ResponseForm::Whole)
    }

    fn headers_anew(&self, headers: &[(String, String)]) -> Vec<(String, String)> {
        let form = self.encoding.as_ref().map_or(ResponseForm::Whole, |encoding| encoding.form);
        let old = |name: &str| OLD.iter().any(|old| name.eq_ignore_ascii_case(old));
        let kept = headers.iter().filter(|(name, _)| !old(name)).cloned();
        kept.chain([self.content_type(form)]).collect()
    }

    /// Sends an event; calls of our own tools are left out, and what ends the answer waits.
    pub(super) fn event(&mut self, event: &ModelEvent) {
        if let ModelEvent::Failed(failed) = event {
            return self.fail(failed.clone());
        }
        let Some(encoding) = &mut self.encoding else { return };
        let mut out = Vec::new();
        encoding.event(event, &mut out);
        self.write(&out);
    }

    /// Ends an answer that is encoded anew with an error.
    pub(super) fn fail(&mut self, failed: ProviderFailure) {
        let Some(encoding) = &mut self.encoding else { return };
        let (mut out, status) = (Vec::new(), failed.status);
        encoding.encoder.event(&ModelEvent::Failed(failed), &mut out);
        if encoding.form == ResponseForm::Stream {
            return self.write(&out);
        }
        encoding.encoder.end(&mut out);
        if let Some((head, _)) = &mut self.head {
            *head = if (400..600).contains(&status) { status } else { 502 };
        }
        self.tail = out;
    }

    /// Ends an answer that is encoded anew; `finish` is why, where the last word does not tell.
    pub(super) fn finish(&mut self, finish: Option<&str>) {
        let Some(encoding) = &mut self.encoding else { return };
        let why = finish.map(str::to_owned).or(encoding.finish.take()).unwrap_or_else(|| "stop".into());
        let mut out = Vec::new();
        encoding.encoder.event(&ModelEvent::Finished(why), &mut out);
        encoding.encoder.end(&mut out);
        self.tail.extend(out);
    }

    /// Sends the end. Whatever happened, the client has an answer then: an empty one is an error.
    pub(super) fn close(mut self, notes: &RelayNotes) {
        let tail = std::mem::take(&mut self.tail);
        if !self.begun {
            let (status, headers) = self.head.take().unwrap_or_else(|| (200, self.headers_anew(&[])));
            self.begin(if tail.is_empty() { 502 } else { status }, &headers, notes);
        }
        self.write(&tail);
        self.outlet.end(notes);
    }

    /// Hands an error of the provider on: as it is, or in the client's dialect where `translates`.
    pub(super) fn refuse(
        &mut self,
        (status, headers, body): (u16, &[(String, String)], &str),
        translates: bool,
        notes: &RelayNotes,
    ) {
        let failed = ProviderFailure { status, body: body.to_owned() };
        if self.begun {
            // The answer had begun in an earlier round: its end is an error inside it.
            return self.fail(failed);
        }
        self.forget();
        if translates {
            self.encode(ResponseForm::Whole, ResponseStamp::default(), false);
            self.begin_anew(status, headers, notes);
            self.fail(failed);
            return self.repeat();
        }
        // Its length is told anew: of a very long reason not all is handed on.
        let kept: Vec<_> = headers.iter().filter(|(name, _)| name != "content-length").cloned().collect();
        self.begin(status, &kept, notes);
        self.write(body.as_bytes());
    }

    /// Refuses a conversation that is too large, after everything was tried, in the words that clients know to look for.
    pub(super) fn refuse_too_large(&mut self, why: &TooLarge, translates: bool, notes: &RelayNotes) {
        let known = ["context_length_exceeded", "prompt is too long"];
        let is_known = known.iter().any(|words| why.body.contains(words));
        if is_known && !translates && why.status >= 400 && !self.begun {
            return self.refuse((why.status, &why.headers, &why.body), translates, notes);
        }
        let refusal = ApiRefusal {
            tokens: why.refusal.actual.or(Some(notes.after)),
            limit: why.refusal.limit,
            ..ApiRefusal::new(RefusalKind::Overflow, why.why.clone())
        };
        if !self.begun {
            self.forget();
        }
        // A client that reads a stream of responses looks for this in the stream alone.
        let in_stream = self.stream && (self.begun || self.dialect == Dialect::Responses);
        let (status, form, body) = match in_stream {
            true => (200, ResponseForm::Stream, self.dialect.refusal_event(&refusal)),
            false => {
                let (status, body) = self.dialect.refusal(&refusal);
                (status, ResponseForm::Whole, body)
            }
        };
        self.send_whole(status, form, &body, notes);
    }

    /// Answers with a refusal of ours; where the answer has begun already, it ends.
    pub(super) fn refuse_ours(&mut self, why: String, notes: &RelayNotes) {
        if self.begun {
            return self.finish(Some("stop"));
        }
        let (status, body) = self.dialect.refusal(&ApiRefusal::new(RefusalKind::BadRequest, why));
        self.send_whole(status, ResponseForm::Whole, &body, notes);
    }

    /// Begins an answer of ours, and sends its body.
    pub(super) fn send_whole(&mut self, status: u16, form: ResponseForm, body: &[u8], notes: &RelayNotes) {
        let headers = [self.content_type(form)];
        self.begin(status, &headers, notes);
        self.write(body);
    }

    fn content_type(&self, form: ResponseForm) -> (String, String) {
        let kind = match (form, self.dialect) {
            (ResponseForm::Whole, _) => "application/json",
            (ResponseForm::Stream, Dialect::Ollama) => "application/x-ndjson",
            (ResponseForm::Stream, _) => "text/event-stream",
        };
        ("content-type".to_owned(), kind.to_owned())
    }
}

impl Encoding {
    fn event(&mut self, event: &ModelEvent, out: &mut Vec<u8>) {
        match event {
            ModelEvent::Call { index, id, name, kind } => {
                let shown = (!(self.offers && is_own(name))).then_some(self.next);
                self.next += usize::from(shown.is_some());
                self.calls.push((*index, shown));
                if let Some(index) = shown {
                    let (id, name, kind) = (id.clone(), name.clone(), *kind);
                    self.encoder.event(&ModelEvent::Call { index, id, name, kind }, out);
                }
            }
            ModelEvent::Arguments { index, text } => {
                if let Some(index) = self.shown(*index) {
                    self.encoder.event(&ModelEvent::Arguments { index, text: text.clone() }, out);
                }
            }
            ModelEvent::CallExtra { index, json } => {
                if let Some(index) = self.shown(*index) {
                    self.encoder.event(&ModelEvent::CallExtra { index, json: json.clone() }, out);
                }
            }
            // The answer has one end, however often the model was asked.
            ModelEvent::Finished(why) => self.finish = Some(why.clone()),
            other => self.encoder.event(other, out),
        }
    }

    fn shown(&self, index: usize) -> Option<usize> {
        self.calls.iter().rev().find(|(own, _)| *own == index)?.1
    }
}

/// Most of an answer that is held while nothing of it is understood.
const HELD: usize = 1 << 20;

/// Takes a response for a client.
pub(super) struct ClientReceiver<'e, 'o> {
    client: &'e mut ClientStream<'o>,
    notes: &'e mut RelayNotes,
    /// How long an answer is held back for its first words.
    patience: Duration,
    /// True when the provider speaks another dialect than the client.
    translates: bool,
    /// True when calls of our tools are ours to answer: they were offered.
    offers: bool,
    has_begun: bool,
    /// What is held back.
    bytes: Vec<u8>,
    events: Vec<ModelEvent>,
    /// Since when the client hears nothing; at first, since the head of the answer came.
    quiet: Instant,
}

impl<'e, 'o> ClientReceiver<'e, 'o> {
    pub(super) fn new(
        client: &'e mut ClientStream<'o>,
        notes: &'e mut RelayNotes,
        patience: Duration,
        translates: bool,
        offers: bool,
    ) -> Self {
        let (bytes, events, quiet) = (Vec::new(), Vec::new(), Instant::now());
        Self { client, notes, patience, translates, offers, has_begun: false, bytes, events, quiet }
    }

    /// True when the answer is encoded anew.
    fn is_anew(&self) -> bool {
        self.translates || self.offers
    }

    /// The answer is taken: the client is sent what was held back.
    fn begin(&mut self, incoming: &ProviderResponse) {
        self.has_begun = true;
        self.notes.untouched &= !self.is_anew();
        if self.is_anew() {
            self.client.begin_anew(incoming.status, &incoming.headers, self.notes);
            return self.send_events();
        }
        self.client.begin(incoming.status, &incoming.headers, self.notes);
        self.client.write(&std::mem::take(&mut self.bytes));
    }

    fn send_events(&mut self) {
        for event in std::mem::take(&mut self.events) {
            self.client.event(&event);
            self.quiet = Instant::now();
        }
    }

    /// True when the client has waited long enough, and nothing says that the answer is none.
    fn is_impatient(&self, response: &ModelResponse) -> bool {
        let is_over = response.failed.is_some() || response.finish.is_some();
        !is_over && self.quiet.elapsed() >= self.patience
    }

    /// Lets the client of an answer that is encoded anew know that something comes. One in a single piece is sent at its end.
    fn wake(&mut self, incoming: &ProviderResponse, response: &ModelResponse) {
        if self.client.form() == ResponseForm::Whole || !self.is_impatient(response) {
            return;
        }
        if !self.has_begun {
            self.begin(incoming);
        } else if self.client.dialect() != Dialect::Ollama {
            self.client.write(b": \n\n");
        }
        self.quiet = Instant::now();
    }

    /// True for what the client is sent of an answer that is encoded anew: calls to us are not.
    fn is_for_client(&self, event: &ModelEvent) -> bool {
        match event {
            ModelEvent::Text(text) | ModelEvent::Reasoning(text) => !text.is_empty(),
            ModelEvent::Call { name, .. } => !(self.offers && is_own(name)),
            ModelEvent::Signature(_) | ModelEvent::Part(_) => true,
            _ => false,
        }
    }
}

impl ResponseReceiver for ClientReceiver<'_, '_> {
    fn take(
        &mut self,
        incoming: &ProviderResponse,
        bytes: &[u8],
        events: Vec<ModelEvent>,
        response: &ModelResponse,
    ) {
        let anew = self.is_anew();
        let is_content =
            |event: &ModelEvent| if anew { self.is_for_client(event) } else { event.is_content() };
        let has_content = events.iter().any(is_content);
        if anew {
            self.events.extend(events);
        }
        // An answer in one piece is taken once it is whole: its end is known with its beginning.
        if has_content && !self.has_begun {
            self.begin(incoming);
        } else if self.has_begun {
            self.send_events();
        }
        if bytes.is_empty() {
            return;
        }
        if anew {
            self.wake(incoming, response);
        } else if self.has_begun && response.finish.is_some() {
            // What ends the answer waits until the reply is in the journal.
            self.client.hold(bytes);
        } else if self.has_begun {
            self.client.write(bytes);
        } else {
            self.bytes.extend_from_slice(bytes);
            if (self.bytes.len() > HELD || self.is_impatient(response)) && response.failed.is_none() {
                self.begin(incoming);
            }
        }
    }

    fn end(&mut self, incoming: &ProviderResponse, response: &ModelResponse) {
        let is_over = response.finish.is_some() || response.failed.is_some();
        if !is_over && self.is_anew() && !self.client.begun() {
            // Nothing was sent that could be cut: the client is told that there is no answer.
            return;
        }
        // An answer of nothing but calls to us is not for the client: it is sent the next one.
        let calls = || response.message().is_some_and(|message| message.calls().next().is_some());
        if !self.has_begun && (response.failed.is_some() || !self.offers || !calls()) {
            self.begin(incoming);
        }
    }

    fn has_begun(&self) -> bool {
        self.has_begun
    }

    fn wants(&self, _: &ModelResponse) -> ReceiverWants {
        if self.client.gone() { ReceiverWants::Nothing } else { ReceiverWants::More }
    }

    fn refused(&mut self, status: u16, headers: &[(String, String)], body: &str) {
        self.client.refuse((status, headers, body), self.translates, self.notes);
    }

    fn pass_unread(&mut self, incoming: &mut ProviderResponse) -> Option<LostResponse> {
        self.client.begin(incoming.status, &std::mem::take(&mut incoming.headers), self.notes);
        let (finish, error) = match pass(incoming, self.client) {
            Ok(()) => {
                ("lost", UnansweredReason::Answer("the answer came packed and could not be read".to_owned()))
            }
            Err(UnansweredReason::Gone) => ("cancelled", UnansweredReason::Gone),
            Err(error) => ("lost", error),
        };
        Some(LostResponse { finish, error, response: Some(Box::default()) })
    }
}

/// Hands bytes on as they are, to the end.
pub(super) fn pass(
    incoming: &mut ProviderResponse,
    client: &mut ClientStream<'_>,
) -> Result<(), UnansweredReason> {
    while let Some(bytes) = incoming.chunk()? {
        client.write(&bytes);
        if client.gone() {
            return Err(UnansweredReason::Gone);
        }
    }
    Ok(())
}

/// Why an answer without an end is none.
pub(super) fn cut_short() -> SendError {
    SendError::Broken { why: "the connection ended before the answer did".to_owned() }
}
