//! One try: sent on, and what comes back is handed on as it comes.
//!
//! Nothing reaches the client before the first words, unless they take longer than a client waits: until then a refusal is
//! still a refusal, also one inside a stream that began well. A decoder listens beside the bytes for the journal's sake.

use super::GONE;
use super::letter::{Freight, Parcel};
use super::mouth::Mouth;
use super::offer::is_own;
use super::visit::Visit;
use crate::turn::listen::TooLarge;
use crate::turn::too_large;
use komado_provider::client::SendError;
use komado_provider::dialect::{Decode, Stamp};
use komado_provider::{Dialect, Event, Failed, Form, Forward, Heard, Incoming, Method};
use std::time::Instant;

/// Most of a refusal that is read.
const MOST: usize = 1 << 20;
/// Most of an answer that is held while nothing of it is understood.
const HELD: usize = 1 << 20;
/// Why an answer without an end is none.
const ENDED: &str = "the connection ended before the answer did";

/// What came of a try.
pub(super) enum Came {
    /// A whole answer; the client has heard all but its end.
    Whole(Box<Heard>),
    /// Too large; the client has heard nothing.
    TooLarge(Refused),
    /// It is over: the client has heard all there is.
    Over {
        /// How it ended: `refused`, `failed`, `lost` or `cancelled`.
        finish: &'static str,
        /// Why.
        why: String,
        /// What had been heard.
        heard: Box<Heard>,
        /// True when the client's answer is not whole.
        is_cut: bool,
    },
    /// No answer, or not all of one, and the client has heard nothing.
    Unsent(SendError, Option<Box<Heard>>),
}

/// A refusal because of size, as it came.
pub(super) struct Refused {
    pub(super) why: TooLarge,
    pub(super) status: u16,
    pub(super) headers: Vec<(String, String)>,
    pub(super) body: String,
}

fn over(finish: &'static str, why: impl Into<String>, heard: Heard, is_cut: bool) -> Came {
    Came::Over { finish, why: why.into(), heard: Box::new(heard), is_cut }
}

impl Visit<'_> {
    /// Sends a request and hands on what comes.
    pub(super) fn listen(&mut self, parcel: &Parcel, mouth: &mut Mouth<'_>) -> Came {
        let mut incoming = match self.send(parcel) {
            Ok(incoming) => incoming,
            Err(error) => return Came::Unsent(error, None),
        };
        let packed = incoming.header("content-encoding").is_some_and(|kind| kind != "identity");
        if packed {
            return self.pass_unread(&mut incoming, mouth);
        }
        if !(200..300).contains(&incoming.status) {
            return self.refused(incoming, mouth);
        }
        let form = self.form(&incoming);
        if self.translates() || parcel.offers {
            let stamp = self.stamp();
            let wanted = if self.arrival.skim.stream { Form::Stream } else { Form::Whole };
            mouth.translate(self.arrival.dialect(), wanted, stamp, parcel.offers);
        } else {
            mouth.repeat();
        }
        let anew = self.translates() || parcel.offers;
        let decoder = self.upstream.asking.provider.dialect.decoder(form);
        Ear {
            visit: self,
            mouth,
            decoder,
            heard: Heard::default(),
            spoken: false,
            anew,
            offers: parcel.offers,
            bytes: Vec::new(),
            events: Vec::new(),
            quiet: Instant::now(),
        }
        .listen(incoming)
    }

    fn send(&self, parcel: &Parcel) -> Result<Incoming, SendError> {
        let asking = &self.upstream.asking;
        let body = parcel.freight.body();
        match &parcel.freight {
            Freight::Spliced(_) => {
                let (url, headers) = (&self.upstream.url, &self.upstream.headers);
                let forward = Forward { method: Method::POST, url, headers, body };
                asking.client.forward(forward, &asking.cancel)
            }
            Freight::Written(..) => asking.client.post(&asking.provider, body, &asking.cancel, &mut |_| {}),
        }
    }

    fn stamp(&self) -> Stamp {
        let created_at = self.relay.engine.now();
        Stamp { created: super::refusal::seconds(&created_at), created_at, usage: self.request.usage }
    }

    /// Some servers do not say that they stream; one that was asked to, and does not say that it sends JSON, does.
    fn form(&self, incoming: &Incoming) -> Form {
        let is_json = incoming.header("content-type").is_some_and(|kind| kind.contains("json"));
        if incoming.is_stream() || self.arrival.skim.stream && !is_json { Form::Stream } else { Form::Whole }
    }

    /// An answer that says no.
    fn refused(&mut self, mut incoming: Incoming, mouth: &mut Mouth<'_>) -> Came {
        let (status, headers) = (incoming.status, std::mem::take(&mut incoming.headers));
        let body = match incoming.text(MOST) {
            Ok(body) => body,
            Err(error) => return Came::Unsent(error, None),
        };
        if let Some(why) = too_large(status, &body) {
            return Came::TooLarge(Refused { why, status, headers, body });
        }
        self.tell_refusal(mouth, status, &headers, &body);
        let body = self.upstream.asking.provider.without_key(body);
        over("refused", format!("HTTP {status}: {body}"), Heard::default(), false)
    }

    /// An answer that cannot be read here: handed on as it is.
    fn pass_unread(&mut self, incoming: &mut Incoming, mouth: &mut Mouth<'_>) -> Came {
        let (status, headers) = (incoming.status, std::mem::take(&mut incoming.headers));
        mouth.begin(status, &headers, &self.notes);
        let why = "the answer came packed and could not be read";
        loop {
            match incoming.chunk() {
                Ok(Some(bytes)) => mouth.write(&bytes),
                Ok(None) => return over("lost", why, Heard::default(), false),
                Err(error) => return over("lost", error.to_string(), Heard::default(), true),
            }
            if mouth.gone() {
                return over("cancelled", GONE, Heard::default(), true);
            }
        }
    }
}

/// Listens to an answer.
struct Ear<'e, 'v, 'o> {
    visit: &'e mut Visit<'v>,
    mouth: &'e mut Mouth<'o>,
    decoder: Box<dyn Decode>,
    heard: Heard,
    /// True when the client has heard of it, or may.
    spoken: bool,
    /// True when the answer is said anew.
    anew: bool,
    /// True when calls of our tools are ours to answer: they were offered.
    offers: bool,
    /// What is held back.
    bytes: Vec<u8>,
    events: Vec<Event>,
    /// Since when the client hears nothing; at first, since the head of the answer came.
    quiet: Instant,
}

impl Ear<'_, '_, '_> {
    fn listen(mut self, mut incoming: Incoming) -> Came {
        let mut broken = None;
        loop {
            match incoming.chunk() {
                Ok(Some(bytes)) => self.take(&bytes, &incoming),
                Ok(None) => break,
                Err(error) => {
                    broken = Some(error);
                    break;
                }
            }
            if self.mouth.gone() {
                return over("cancelled", GONE, self.heard, true);
            }
            if let Some(refused) = self.refusal(&incoming) {
                return Came::TooLarge(refused);
            }
        }
        let mut last = Vec::new();
        self.decoder.end(&mut |event| last.push(event));
        self.hear(last, &incoming);
        if let Some(refused) = self.refusal(&incoming) {
            return Came::TooLarge(refused);
        }
        self.judge(broken, &incoming)
    }

    fn take(&mut self, bytes: &[u8], incoming: &Incoming) {
        let was_over = self.heard.finish.is_some();
        let mut events = Vec::new();
        self.decoder.push(bytes, &mut |event| events.push(event));
        self.hear(events, incoming);
        if self.anew {
            return self.wake(incoming);
        }
        // What ends the answer waits until the reply is in the journal.
        if self.spoken && (was_over || self.heard.finish.is_some()) {
            self.mouth.hold(bytes);
        } else if self.spoken {
            self.mouth.write(bytes);
        } else {
            self.bytes.extend_from_slice(bytes);
            if (self.bytes.len() > HELD || self.is_impatient()) && self.heard.failed.is_none() {
                self.speak(incoming);
            }
        }
    }

    /// True when the client has waited long enough, and nothing says that the answer is none.
    fn is_impatient(&self) -> bool {
        let is_over = self.heard.failed.is_some() || self.heard.finish.is_some();
        !is_over && self.quiet.elapsed() >= self.visit.relay.patience
    }

    /// Lets the client of an answer that is said anew hear that something comes. One in a single piece is said at its end.
    fn wake(&mut self, incoming: &Incoming) {
        if !self.visit.arrival.skim.stream || !self.is_impatient() {
            return;
        }
        if !self.spoken {
            self.speak(incoming);
            let events = std::mem::take(&mut self.events);
            events.iter().for_each(|event| self.mouth.say(event));
        } else if self.visit.arrival.dialect() != Dialect::Ollama {
            self.mouth.write(b": \n\n");
        }
        self.quiet = Instant::now();
    }

    fn hear(&mut self, events: Vec<Event>, incoming: &Incoming) {
        let mut content = false;
        for event in events {
            self.heard.take(&event);
            content |= if self.anew { self.is_for_client(&event) } else { event.is_content() };
            if self.anew {
                self.events.push(event);
            }
        }
        // An answer in one piece is taken once it is whole: its end is known with its beginning.
        if content && !self.spoken {
            self.speak(incoming);
        }
        if self.spoken {
            for event in std::mem::take(&mut self.events) {
                self.mouth.say(&event);
                self.quiet = Instant::now();
            }
        }
    }

    /// The answer is taken: the client hears what was held back.
    fn speak(&mut self, incoming: &Incoming) {
        self.spoken = true;
        self.visit.notes.untouched &= !self.anew;
        if self.anew {
            self.mouth.begin_anew(incoming.status, &incoming.headers, &self.visit.notes);
            return;
        }
        self.mouth.begin(incoming.status, &incoming.headers, &self.visit.notes);
        let held = std::mem::take(&mut self.bytes);
        self.mouth.write(&held);
    }

    /// A refusal because of size, before anyone has heard anything.
    fn refusal(&self, incoming: &Incoming) -> Option<Refused> {
        if self.spoken {
            return None;
        }
        let (status, headers) = (incoming.status, incoming.headers.clone());
        if self.heard.finish.as_deref() == Some("model_context_window_exceeded") {
            let why = "the model stopped because its window is full".to_owned();
            let why = TooLarge { limit: None, actual: None, lower: false, is_vague: true, why };
            return Some(Refused { why, status, headers, body: String::new() });
        }
        let Failed { status: said, body } = self.heard.failed.as_ref()?;
        let why = too_large(*said, body)?;
        Some(Refused { why, status, headers, body: body.clone() })
    }

    fn judge(mut self, broken: Option<SendError>, incoming: &Incoming) -> Came {
        if let Some(error) = broken {
            // A server that hangs up roughly after the last word has said everything.
            if self.heard.finish.is_none() || self.heard.failed.is_some() {
                if !self.mouth.begun() {
                    return Came::Unsent(error, Some(Box::new(self.heard)));
                }
                let finish = if matches!(error, SendError::Cancelled) { "cancelled" } else { "lost" };
                return over(finish, error.to_string(), self.heard, true);
            }
        }
        let is_over = self.heard.finish.is_some() || self.heard.failed.is_some();
        if !is_over && self.anew && !self.mouth.begun() {
            // Nothing was said that could be cut: the client hears that there is no answer.
            let error = SendError::Broken { why: ENDED.to_owned() };
            return Came::Unsent(error, Some(Box::new(self.heard)));
        }
        // An answer of nothing but calls to us is none of the client's: it hears the next one.
        let calls_us =
            self.offers && self.heard.message().is_some_and(|message| message.calls().next().is_some());
        if !self.spoken && (!calls_us || self.heard.failed.is_some()) {
            self.speak(incoming);
            for event in std::mem::take(&mut self.events) {
                self.mouth.say(&event);
            }
        }
        if let Some(Failed { body, .. }) = self.heard.failed.take() {
            let body = self.visit.upstream.asking.provider.without_key(body);
            return over("failed", body, self.heard, false);
        }
        if self.heard.finish.is_none() {
            return over("lost", ENDED, self.heard, true);
        }
        Came::Whole(Box::new(self.heard))
    }

    /// True for what the client hears of an answer that is said anew: calls to us are none of it.
    fn is_for_client(&self, event: &Event) -> bool {
        match event {
            Event::Text(text) | Event::Reasoning(text) => !text.is_empty(),
            Event::Call { name, .. } => !(self.offers && is_own(name)),
            Event::Signature(_) | Event::Part(_) => true,
            _ => false,
        }
    }
}
