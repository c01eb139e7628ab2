//! A summariser that is a model at a provider: asked apart from the conversation, with no tool it may call.
//!
//! Where the provider keeps a cache of prefixes and the model is the conversation's own, the question goes out behind
//! the conversation itself: everything before the question is then read from the cache, at a tenth of the price.
//! Otherwise, and where that would not fit, the messages are handed over as text, in parts.

use super::{Answer, Failure, Request, Summariser, Transcript};
use crate::lesson;
use crate::turn::Asking;
use crate::turn::listen::{Answered, TooLarge, listen};
use crate::turn::render::{Digested, Stored, Written};
use komado_core::journal::Setup;
use komado_core::message::{Message, Part};
use komado_core::{Meter, Role, SessionId};
use komado_provider::{Ask, Body, Form, Heard, Tools};
use komado_store::{Letter, Store};
use std::io;

/// Most tokens a model may think before it writes; at most an eighth of its window.
const THOUGHTS: u64 = 2_048;

/// Hands every message of a question on.
type Pour<'p> = dyn FnMut(&mut dyn FnMut(&Message) -> io::Result<()>) -> io::Result<()> + 'p;

/// Asks a model.
pub struct ByModel<'s> {
    asking: Asking,
    store: &'s dyn Store,
    session: SessionId,
    meter: Meter,
    /// True when it is the conversation's own model, and its provider keeps a cache.
    shares: bool,
}

/// A question that is written to a file.
struct Question<'a> {
    setup: &'a Setup,
    tools: Tools,
    /// Our estimate of it.
    tokens: u64,
    max_tokens: u64,
}

impl<'s> ByModel<'s> {
    /// Asks as `asking` says, in a session kept in `store`, counting with `meter`.
    pub fn new(asking: Asking, store: &'s dyn Store, session: SessionId, meter: Meter) -> Self {
        Self { asking, store, session, meter, shares: false }
    }

    /// It is the conversation's own model: what the provider has cached of the conversation is made use of.
    #[must_use]
    pub fn sharing(mut self) -> Self {
        self.shares = self.asking.provider.caches;
        self
    }

    /// Tokens of ours that the model takes, its thoughts left out.
    fn room(&self) -> u64 {
        let lesson = lesson::known(self.store, &self.asking.about()).unwrap_or_default();
        let window = lesson.ours(self.asking.window);
        window.saturating_sub(window / 20 + self.thoughts())
    }

    fn thoughts(&self) -> u64 {
        THOUGHTS.min(self.asking.window / 8)
    }

    fn ask(&self, question: &Question<'_>, write: &mut Pour<'_>) -> Result<Answer, Failure> {
        let written = self.write(question, write).map_err(|e| Failure::new(e.to_string()))?;
        let body = Body::File { path: written.file.path(), len: written.bytes };
        match listen(&self.asking.client, &self.asking.provider, body, &self.asking.cancel, &mut |_| {}) {
            Answered::Whole(heard) => self.hear(question, &heard),
            Answered::TooLarge(why) => Err(self.too_large(question, &why)),
            Answered::Lost { error, heard, .. } => {
                Err(Failure { why: error.to_string(), usage: heard.usage })
            }
        }
    }

    fn write(&self, question: &Question<'_>, write: &mut Pour<'_>) -> crate::Result<Written> {
        let ask = Ask {
            model: &self.asking.model,
            setup: question.setup,
            max_tokens: Some(question.max_tokens + self.thoughts()),
            stream: self.asking.form == Form::Stream,
            window: Some(self.asking.window),
            tools: question.tools,
        };
        let mut out = Digested::new(Letter::passing()?);
        let mut writer = self.asking.provider.dialect.writer(&ask, &mut out)?;
        let mut blobs = Stored { store: self.store, session: &self.session };
        write(&mut |message| writer.message(message, &mut blobs, &mut out))?;
        writer.end(&mut out)?;
        out.seal()
    }

    fn hear(&self, question: &Question<'_>, heard: &Heard) -> Result<Answer, Failure> {
        if let Some(usage) = &heard.usage {
            let about = self.asking.about();
            // Not being able to note it is no reason to throw a summary away.
            let _ = lesson::learn(self.store, &about, |lesson| lesson.hear(question.tokens, usage));
        }
        let text = heard.message().map(|message| said(&message)).unwrap_or_default();
        if text.trim().is_empty() && heard.finish.as_deref() == Some("length") {
            let why = format!("{} spent its whole answer on thoughts", self.asking.model);
            return Err(Failure { why, usage: heard.usage });
        }
        Ok(Answer { text, usage: heard.usage, model: heard.model.clone() })
    }

    fn too_large(&self, question: &Question<'_>, why: &TooLarge) -> Failure {
        let _ = lesson::learn(self.store, &self.asking.about(), |lesson| {
            lesson.refused(question.tokens, why.limit, why.actual, self.asking.probed);
        });
        Failure::new(format!("the question was too large for {}: {}", self.asking.model, why.why))
    }
}

impl Summariser for ByModel<'_> {
    fn name(&self) -> &str {
        &self.asking.model
    }

    fn window(&self) -> Option<u64> {
        Some(self.room())
    }

    fn summarise(&mut self, request: &Request) -> Result<Answer, Failure> {
        let setup = Setup { system: request.system.clone(), ..Setup::default() };
        let text = Message::text(Role::User, &request.text);
        let tokens = u64::from(self.meter.setup(&setup)) + u64::from(self.meter.message(&text));
        let question =
            Question { setup: &setup, tools: Tools::AsSetUp, tokens, max_tokens: request.max_tokens };
        self.ask(&question, &mut |put| put(&text))
    }

    fn go_on(&mut self, talk: &dyn Transcript, request: &Request) -> Option<Result<Answer, Failure>> {
        if !self.shares {
            return None;
        }
        let text = Message::text(Role::User, &request.text);
        let tokens = talk.tokens() + u64::from(self.meter.message(&text));
        if tokens + request.max_tokens > self.room() {
            return None;
        }
        let setup = talk.setup().ok()?;
        let question =
            Question { setup: &setup, tools: Tools::NamedOnly, tokens, max_tokens: request.max_tokens };
        Some(self.ask(&question, &mut |put| {
            talk.pour(put)?;
            put(&text)
        }))
    }
}

/// The words of an answer, without its thoughts.
fn said(message: &Message) -> String {
    let texts = message.parts.iter().filter_map(|part| match part {
        Part::Text { text, .. } => Some(text.as_str()),
        _ => None,
    });
    texts.collect::<Vec<_>>().join("\n")
}
