//! A summariser that is a model at a provider: asked apart from the conversation, with no tool it may call.
//!
//! Where the provider keeps a cache of prefixes and the model is the conversation's own, the question goes out behind
//! the conversation itself: everything before the question is then read from the cache, at a tenth of the price.
//! Otherwise, and where that would not fit, the messages are handed over as text, in parts.

use super::{Answer, Failure, Request, Summariser, Transcript};
use crate::lesson::{self, Size};
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

/// Why there is no answer.
enum Unasked {
    TooLarge(Failure),
    Failed(Failure),
}

impl From<Unasked> for Failure {
    fn from(unasked: Unasked) -> Self {
        match unasked {
            Unasked::TooLarge(failure) | Unasked::Failed(failure) => failure,
        }
    }
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

    /// The longest answer: words and thoughts, as far as the model can write them.
    fn longest(&self, question: &Question<'_>) -> u64 {
        (question.max_tokens + self.thoughts()).min(self.asking.output.unwrap_or(u64::MAX))
    }

    fn thoughts(&self) -> u64 {
        THOUGHTS.min(self.asking.window / 8)
    }

    fn ask(&self, question: &Question<'_>, write: &mut Pour<'_>) -> Result<Answer, Unasked> {
        let failed = |error: crate::Error| Unasked::Failed(Failure::new(error.to_string()));
        let written = self.write(question, write).map_err(failed)?;
        let body = Body::File { path: written.file.path(), len: written.bytes };
        match listen(&self.asking, body, &mut |_| {}) {
            Answered::Whole(heard) => self.hear(question, &heard).map_err(Unasked::Failed),
            Answered::TooLarge(why) => Err(Unasked::TooLarge(self.too_large(question, &why))),
            Answered::Lost { error, heard, .. } => {
                Err(Unasked::Failed(Failure { why: error.to_string(), usage: heard.usage }))
            }
        }
    }

    fn write(&self, question: &Question<'_>, write: &mut Pour<'_>) -> crate::Result<Written> {
        let ask = Ask {
            model: &self.asking.model,
            setup: question.setup,
            max_tokens: Some(self.longest(question)),
            stream: self.asking.form == Form::Stream,
            window: Some(self.asking.window),
            tools: question.tools,
            is_strict: self.asking.provider.is_strict,
            joins: self.asking.provider.joins,
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
            let _ = lesson::learn(self.store, &about, |lesson| {
                lesson.hear(Size::certain(question.tokens), usage, self.asking.probed)
            });
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
            lesson.refused(Size::certain(question.tokens), why.refusal(), self.asking.probed);
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

    fn is_cancelled(&self) -> bool {
        self.asking.cancel.is_cancelled()
    }

    fn summarise(&mut self, request: &Request) -> Result<Answer, Failure> {
        let setup = Setup { system: request.system.clone(), ..Setup::default() };
        let text = Message::text(Role::User, &request.text);
        let tokens = u64::from(self.meter.setup(&setup)) + u64::from(self.meter.message(&text));
        let question =
            Question { setup: &setup, tools: Tools::AsSetUp, tokens, max_tokens: request.max_tokens };
        self.ask(&question, &mut |put| put(&text)).map_err(Failure::from)
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
        let answer = self.ask(&question, &mut |put| {
            talk.pour(put)?;
            put(&text)
        });
        match answer {
            // What is too large as a whole may be handed over in parts.
            Err(Unasked::TooLarge(_)) => None,
            answer => Some(answer.map_err(Failure::from)),
        }
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
