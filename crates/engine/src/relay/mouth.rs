//! The client's ear: what it hears, in its own dialect, and when.
//!
//! Bytes are handed on as they come, or said anew from events where something must be taken out of them or they are in
//! another dialect. What ends an answer is held back until the reply is in the journal: a client may go on at once.

use super::offer::is_own;
use super::{Fault, Notes, Outlet};
use komado_provider::dialect::{Encode, Stamp};
use komado_provider::{Dialect, Event, Failed, Form};

/// Headers that belong to a body that was said anew, or to the connection.
const OLD: [&str; 6] =
    ["content-type", "content-length", "content-encoding", "transfer-encoding", "connection", "keep-alive"];

/// Speaks to the client.
pub(super) struct Mouth<'o> {
    outlet: &'o mut dyn Outlet,
    begun: bool,
    /// The head of an answer in one piece that is said anew: nobody hears of it before its end, and then it may be another.
    head: Option<Head>,
    gone: bool,
    /// The end of the answer, held until it may be heard.
    tail: Vec<u8>,
    speech: Option<Speech>,
}

type Head = (u16, Vec<(String, String)>);

/// Proof that the client has an answer: only a mouth that began gives it.
pub(super) struct Answered(());

impl From<Answered> for Result<(), Fault> {
    fn from(_: Answered) -> Self {
        Ok(())
    }
}

/// An answer that is said anew.
struct Speech {
    encoder: Box<dyn Encode>,
    form: Form,
    dialect: Dialect,
    /// Calls of the present round: their index there, and the one that the client knows, if it is to know of them.
    calls: Vec<(usize, Option<usize>)>,
    next: usize,
    finish: Option<String>,
    /// True when calls of our own tools are none of the client's: they were offered.
    offers: bool,
}

impl<'o> Mouth<'o> {
    pub(super) fn new(outlet: &'o mut dyn Outlet) -> Self {
        Self { outlet, begun: false, head: None, gone: false, tail: Vec::new(), speech: None }
    }

    pub(super) fn begun(&self) -> bool {
        self.begun
    }

    /// True when there is something for the client to hear, now or at the end.
    pub(super) fn speaks(&self) -> bool {
        self.begun || self.head.is_some()
    }

    /// Nothing was heard yet, and what was to be is taken back.
    pub(super) fn forget(&mut self) {
        self.head = None;
        self.speech = None;
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

    /// From now on the answer is said anew. One that is being said goes on.
    pub(super) fn translate(&mut self, dialect: Dialect, form: Form, stamp: Stamp, offers: bool) {
        let speaks = self.speaks();
        match &mut self.speech {
            Some(speech) if speaks => {
                speech.calls.clear();
                speech.offers = offers;
            }
            _ => {
                let encoder = dialect.encoder(form, stamp);
                let (calls, next, finish) = (Vec::new(), 0, None);
                self.speech = Some(Speech { encoder, form, dialect, calls, next, finish, offers });
            }
        }
    }

    /// The answer is handed on as it comes.
    pub(super) fn repeat(&mut self) {
        self.speech = None;
    }

    /// Begins an answer that is said anew.
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
        self.speech.as_ref().is_some_and(|speech| speech.form == Form::Whole)
    }

    fn headers_anew(&self, headers: &[(String, String)]) -> Vec<(String, String)> {
        let kind =
            self.speech.as_ref().map_or("application/json", |speech| kind(speech.dialect, speech.form));
        let old = |name: &str| OLD.iter().any(|old| name.eq_ignore_ascii_case(old));
        let kept = headers.iter().filter(|(name, _)| !old(name)).cloned();
        kept.chain([("content-type".to_owned(), kind.to_owned())]).collect()
    }

    /// Says an event; calls of our own tools are left out, and what ends the answer waits.
    pub(super) fn say(&mut self, event: &Event) {
        if let Event::Failed(failed) = event {
            return self.fail(failed.clone());
        }
        let Some(speech) = &mut self.speech else { return };
        let mut out = Vec::new();
        speech.say(event, &mut out);
        self.write(&out);
    }

    /// Ends an answer that is said anew with an error.
    pub(super) fn fail(&mut self, failed: Failed) {
        let Some(speech) = &mut self.speech else { return };
        let (mut out, status) = (Vec::new(), failed.status);
        speech.encoder.event(&Event::Failed(failed), &mut out);
        if speech.form == Form::Stream {
            return self.write(&out);
        }
        speech.encoder.end(&mut out);
        if let Some((head, _)) = &mut self.head {
            *head = if (400..600).contains(&status) { status } else { 502 };
        }
        self.tail = out;
    }

    /// Ends an answer that is said anew; `finish` is why, where the last word does not tell.
    pub(super) fn finish(&mut self, finish: Option<&str>) {
        let Some(speech) = &mut self.speech else { return };
        let why = finish.map(str::to_owned).or(speech.finish.take()).unwrap_or_else(|| "stop".into());
        let mut out = Vec::new();
        speech.encoder.event(&Event::Finished(why), &mut out);
        speech.encoder.end(&mut out);
        self.tail.extend(out);
    }

    /// Lets the end be heard. Whatever happened, the client has an answer then: one of which nothing was said says that.
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
}

impl Speech {
    fn say(&mut self, event: &Event, out: &mut Vec<u8>) {
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

/// What an answer is, for its head.
pub(super) fn kind(dialect: Dialect, form: Form) -> &'static str {
    match (form, dialect) {
        (Form::Whole, _) => "application/json",
        (Form::Stream, Dialect::Ollama) => "application/x-ndjson",
        (Form::Stream, _) => "text/event-stream",
    }
}
