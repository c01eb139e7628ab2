//! Hands a response on to the client as it comes.
//!
//! Nothing reaches the client before the first words, unless they take longer than a client waits: until then a refusal is
//! still a refusal, also one inside a stream that began well.

use super::Notes;
use super::client_stream::ClientStream;
use super::offer::is_own;
use crate::exchange::response::{Lost, Receiver, Wants, Why};
use komado_provider::client::SendError;
use komado_provider::{Dialect, Event, Form, Heard, Incoming};
use std::time::{Duration, Instant};

/// Most of an answer that is held while nothing of it is understood.
const HELD: usize = 1 << 20;

/// Takes a response for a client.
pub(super) struct ClientReceiver<'e, 'o> {
    client: &'e mut ClientStream<'o>,
    notes: &'e mut Notes,
    /// How long an answer is held back for its first words.
    patience: Duration,
    /// True when the provider speaks another dialect than the client.
    translates: bool,
    /// True when calls of our tools are ours to answer: they were offered.
    offers: bool,
    has_begun: bool,
    /// What is held back.
    bytes: Vec<u8>,
    events: Vec<Event>,
    /// Since when the client hears nothing; at first, since the head of the answer came.
    quiet: Instant,
}

impl<'e, 'o> ClientReceiver<'e, 'o> {
    pub(super) fn new(
        client: &'e mut ClientStream<'o>,
        notes: &'e mut Notes,
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
    fn begin(&mut self, incoming: &Incoming) {
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
    fn is_impatient(&self, response: &Heard) -> bool {
        let is_over = response.failed.is_some() || response.finish.is_some();
        !is_over && self.quiet.elapsed() >= self.patience
    }

    /// Lets the client of an answer that is encoded anew know that something comes. One in a single piece is sent at its end.
    fn wake(&mut self, incoming: &Incoming, response: &Heard) {
        if self.client.form() == Form::Whole || !self.is_impatient(response) {
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
    fn is_for_client(&self, event: &Event) -> bool {
        match event {
            Event::Text(text) | Event::Reasoning(text) => !text.is_empty(),
            Event::Call { name, .. } => !(self.offers && is_own(name)),
            Event::Signature(_) | Event::Part(_) => true,
            _ => false,
        }
    }
}

impl Receiver for ClientReceiver<'_, '_> {
    fn take(&mut self, incoming: &Incoming, bytes: &[u8], events: Vec<Event>, response: &Heard) {
        let anew = self.is_anew();
        let is_content = |event: &Event| if anew { self.is_for_client(event) } else { event.is_content() };
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

    fn end(&mut self, incoming: &Incoming, response: &Heard) {
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

    fn wants(&self, _: &Heard) -> Wants {
        if self.client.gone() { Wants::Nothing } else { Wants::More }
    }

    fn refused(&mut self, status: u16, headers: &[(String, String)], body: &str) {
        self.client.refuse((status, headers, body), self.translates, self.notes);
    }

    fn pass_unread(&mut self, incoming: &mut Incoming) -> Option<Lost> {
        self.client.begin(incoming.status, &std::mem::take(&mut incoming.headers), self.notes);
        let (finish, error) = match pass(incoming, self.client) {
            Ok(()) => ("lost", Why::Answer("the answer came packed and could not be read".to_owned())),
            Err(Why::Gone) => ("cancelled", Why::Gone),
            Err(error) => ("lost", error),
        };
        Some(Lost { finish, error, response: Some(Box::default()) })
    }
}

/// Hands bytes on as they are, to the end.
pub(super) fn pass(incoming: &mut Incoming, client: &mut ClientStream<'_>) -> Result<(), Why> {
    while let Some(bytes) = incoming.chunk()? {
        client.write(&bytes);
        if client.gone() {
            return Err(Why::Gone);
        }
    }
    Ok(())
}

/// Why an answer without an end is none.
pub(super) fn cut_short() -> SendError {
    SendError::Broken { why: "the connection ended before the answer did".to_owned() }
}
