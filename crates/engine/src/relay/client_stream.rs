//! The client's end of an exchange: what it is sent, in its own dialect, and when.
//!
//! Bytes are handed on as they come, or encoded anew from events where something must be taken out of them or they are in
//! another dialect. What ends an answer is held back until the reply is in the journal: a client may go on at once.

use super::offer::is_own;
use super::{Fault, Notes, Outlet};
use crate::exchange::response::TooLarge;
use komado_provider::dialect::{Encode, Stamp};
use komado_provider::{Dialect, Event, Failed, Form, Refusal, RefusalKind};

/// Headers that belong to a body that was encoded anew, or to the connection.
const OLD: [&str; 6] =
    ["content-type", "content-length", "content-encoding", "transfer-encoding", "connection", "keep-alive"];

/// Writes to the client.
pub(super) struct ClientStream<'o> {
    outlet: &'o mut dyn Outlet,
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

/// Proof that the client has an answer: only a stream that was closed gives it.
pub(super) struct Answered(());

impl From<Answered> for Result<(), Fault> {
    fn from(_: Answered) -> Self {
        Ok(())
    }
}

/// An answer that is encoded anew.
struct Encoding {
    encoder: Box<dyn Encode>,
    form: Form,
    /// Calls of the present round: their index there, and the one that the client knows, if it is to know of them.
    calls: Vec<(usize, Option<usize>)>,
    next: usize,
    finish: Option<String>,
    /// True when calls of our own tools are not the client's: they were offered.
    offers: bool,
}

impl<'o> ClientStream<'o> {
    pub(super) fn new(outlet: &'o mut dyn Outlet, dialect: Dialect, stream: bool) -> Self {
        let (begun, gone, tail) = (false, false, Vec::new());
        Self { outlet, dialect, stream, begun, head: None, gone, tail, encoding: None }
    }

    pub(super) fn dialect(&self) -> Dialect {
        self.dialect
    }

    pub(super) fn form(&self) -> Form {
        if self.stream { Form::Stream } else { Form::Whole }
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
    pub(super) fn begin(&mut self, status: u16, headers: &[(String, String)], notes: &Notes) {
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
    pub(super) fn encode(&mut self, form: Form, stamp: Stamp, offers: bool) {
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
    pub(super) fn begin_anew(&mut self, status: u16, headers: &[(String, String)], notes: &Notes) {
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
        self.encoding.as_ref().is_some_and(|encoding| encoding.form == Form::Whole)
    }

    fn headers_anew(&self, headers: &[(String, String)]) -> Vec<(String, String)> {
        let form = self.encoding.as_ref().map_or(Form::Whole, |encoding| encoding.form);
        let old = |name: &str| OLD.iter().any(|old| name.eq_ignore_ascii_case(old));
        let kept = headers.iter().filter(|(name, _)| !old(name)).cloned();
        kept.chain([self.content_type(form)]).collect()
    }

    /// Sends an event; calls of our own tools are left out, and what ends the answer waits.
    pub(super) fn event(&mut self, event: &Event) {
        if let Event::Failed(failed) = event {
            return self.fail(failed.clone());
        }
        let Some(encoding) = &mut self.encoding else { return };
        let mut out = Vec::new();
        encoding.event(event, &mut out);
        self.write(&out);
    }

    /// Ends an answer that is encoded anew with an error.
    pub(super) fn fail(&mut self, failed: Failed) {
        let Some(encoding) = &mut self.encoding else { return };
        let (mut out, status) = (Vec::new(), failed.status);
        encoding.encoder.event(&Event::Failed(failed), &mut out);
        if encoding.form == Form::Stream {
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
        encoding.encoder.event(&Event::Finished(why), &mut out);
        encoding.encoder.end(&mut out);
        self.tail.extend(out);
    }

    /// Sends the end. Whatever happened, the client has an answer then: an empty one is an error.
    pub(super) fn close(mut self, notes: &Notes) -> Answered {
        let tail = std::mem::take(&mut self.tail);
        if !self.begun {
            let (status, headers) = self.head.take().unwrap_or_else(|| (200, self.headers_anew(&[])));
            self.begin(if tail.is_empty() { 502 } else { status }, &headers, notes);
        }
        self.write(&tail);
        self.outlet.end(notes);
        Answered(())
    }

    /// Hands an error of the provider on: as it is, or in the client's dialect where `translates`.
    pub(super) fn refuse(
        &mut self,
        (status, headers, body): (u16, &[(String, String)], &str),
        translates: bool,
        notes: &Notes,
    ) {
        let failed = Failed { status, body: body.to_owned() };
        if self.begun {
            // The answer had begun in an earlier round: its end is an error inside it.
            return self.fail(failed);
        }
        self.forget();
        if translates {
            self.encode(Form::Whole, Stamp::default(), false);
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
    pub(super) fn refuse_too_large(&mut self, why: &TooLarge, translates: bool, notes: &Notes) {
        let known = ["context_length_exceeded", "prompt is too long"];
        let is_known = known.iter().any(|words| why.body.contains(words));
        if is_known && !translates && why.status >= 400 && !self.begun {
            return self.refuse((why.status, &why.headers, &why.body), translates, notes);
        }
        let refusal = Refusal {
            tokens: why.actual.or(Some(notes.after)),
            limit: why.limit,
            ..Refusal::new(RefusalKind::Overflow, why.why.clone())
        };
        if !self.begun {
            self.forget();
        }
        // A client that reads a stream of responses looks for this in the stream alone.
        let in_stream = self.stream && (self.begun || self.dialect == Dialect::Responses);
        let (status, form, body) = match in_stream {
            true => (200, Form::Stream, self.dialect.refusal_event(&refusal)),
            false => {
                let (status, body) = self.dialect.refusal(&refusal);
                (status, Form::Whole, body)
            }
        };
        self.send_whole(status, form, &body, notes);
    }

    /// Begins an answer of ours, and sends its body.
    pub(super) fn send_whole(&mut self, status: u16, form: Form, body: &[u8], notes: &Notes) {
        let headers = [self.content_type(form)];
        self.begin(status, &headers, notes);
        self.write(body);
    }

    fn content_type(&self, form: Form) -> (String, String) {
        let kind = match (form, self.dialect) {
            (Form::Whole, _) => "application/json",
            (Form::Stream, Dialect::Ollama) => "application/x-ndjson",
            (Form::Stream, _) => "text/event-stream",
        };
        ("content-type".to_owned(), kind.to_owned())
    }
}

impl Encoding {
    fn event(&mut self, event: &Event, out: &mut Vec<u8>) {
        match event {
            Event::Call { index, id, name, kind } => {
                let shown = (!(self.offers && is_own(name))).then_some(self.next);
                self.next += usize::from(shown.is_some());
                self.calls.push((*index, shown));
                if let Some(index) = shown {
                    let (id, name, kind) = (id.clone(), name.clone(), *kind);
                    self.encoder.event(&Event::Call { index, id, name, kind }, out);
                }
            }
            Event::Arguments { index, text } => {
                if let Some(index) = self.shown(*index) {
                    self.encoder.event(&Event::Arguments { index, text: text.clone() }, out);
                }
            }
            Event::CallExtra { index, json } => {
                if let Some(index) = self.shown(*index) {
                    self.encoder.event(&Event::CallExtra { index, json: json.clone() }, out);
                }
            }
            // The answer has one end, however often the model was asked.
            Event::Finished(why) => self.finish = Some(why.clone()),
            other => self.encoder.event(other, out),
        }
    }

    fn shown(&self, index: usize) -> Option<usize> {
        self.calls.iter().rev().find(|(own, _)| *own == index)?.1
    }
}
