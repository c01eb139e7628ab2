//! Sends a request and hands on what comes back.
//!
//! Nothing is handed on before the first words: until then a refusal is still a refusal, also one that comes inside a
//! stream which began well. After the first words it is too late to try again, and what breaks off is lost.

use super::{News, too_large};
use komado_core::message::{Message, Part};
use komado_provider::client::SendError;
use komado_provider::{Body, Cancel, Client, Event, Failed, Form, Heard, Provider};

/// Most of a refusal that is read.
const MOST: usize = 1 << 20;
/// Most of a refusal that is shown to people.
const SHOWN: usize = 2_000;

/// What came of a request.
pub(crate) enum Answered {
    /// An answer.
    Whole(Heard),
    /// It was too large.
    TooLarge(TooLarge),
    /// No answer, or half of one.
    Lost {
        /// How it ended: `refused`, `lost` or `cancelled`.
        finish: &'static str,
        /// Why.
        error: Why,
        /// What had been heard.
        heard: Box<Heard>,
    },
}

/// What a provider said of a request that was too large.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct TooLarge {
    /// The most it takes.
    pub(crate) limit: Option<u64>,
    /// What it counted.
    pub(crate) actual: Option<u64>,
    /// True when less room for the answer would do.
    pub(crate) lower: bool,
    /// Its words, and why we understood them so.
    pub(crate) why: String,
}

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Why {
    /// It could not be sent, or the answer not received.
    #[error(transparent)]
    Send(#[from] SendError),
    /// The provider refused.
    #[error("the provider refused (HTTP {status}): {}", shown(.body))]
    Refused {
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
    /// The answer cannot be taken in.
    #[error("{0}")]
    Answer(String),
}

/// A body, as much of it as helps.
fn shown(body: &str) -> String {
    let body = body.trim();
    if body.is_empty() {
        return "it did not say why".into();
    }
    let short: String = body.chars().take(SHOWN).collect();
    if short.len() < body.len() { format!("{short}…") } else { short }
}

/// Sends `body` and listens until there is no more.
pub(crate) fn listen(
    client: &Client,
    to: &Provider,
    body: Body<'_>,
    cancel: &Cancel,
    news: &mut dyn FnMut(News<'_>),
) -> Answered {
    let mut incoming = match client.post(to, body, cancel, &mut |waiting| news(News::Waiting(&waiting))) {
        Ok(incoming) => incoming,
        Err(error) => return lost(error, Heard::default()),
    };
    let status = incoming.status;
    if !(200..300).contains(&status) {
        return match incoming.text(MOST) {
            Ok(body) => refused(status, body),
            Err(error) => lost(error, Heard::default()),
        };
    }
    let form = if incoming.is_stream() { Form::Stream } else { Form::Whole };
    let mut ear = Ear { heard: Heard::default(), held: Vec::new(), spoken: false, news };
    let mut decoder = to.dialect.decoder(form);
    loop {
        match incoming.chunk() {
            Ok(Some(bytes)) => decoder.push(&bytes, &mut |event| ear.take(event)),
            Ok(None) => break,
            // A server that hangs up roughly after the last word has said everything.
            Err(_) if ear.heard.finish.is_some() => break,
            Err(error) => return lost(error, ear.heard),
        }
        if ear.heard.failed.is_some() {
            break;
        }
    }
    decoder.end(&mut |event| ear.take(event));
    ear.judge()
}

fn refused(status: u16, body: String) -> Answered {
    match too_large(status, &body) {
        Some(why) => Answered::TooLarge(why),
        None => {
            Answered::Lost { finish: "refused", error: Why::Refused { status, body }, heard: Box::default() }
        }
    }
}

fn lost(error: SendError, heard: Heard) -> Answered {
    let finish = if matches!(error, SendError::Cancelled) { "cancelled" } else { "lost" };
    Answered::Lost { finish, error: error.into(), heard: Box::new(heard) }
}

/// Hears, and holds back until it is sure.
struct Ear<'n> {
    heard: Heard,
    held: Vec<Event>,
    spoken: bool,
    news: &'n mut dyn FnMut(News<'_>),
}

impl Ear<'_> {
    fn take(&mut self, event: Event) {
        self.heard.take(&event);
        self.spoken |= event.is_content();
        if self.spoken {
            self.let_go();
            (self.news)(News::Said(&event));
        } else {
            self.held.push(event);
        }
    }

    fn let_go(&mut self) {
        for event in std::mem::take(&mut self.held) {
            (self.news)(News::Said(&event));
        }
    }

    fn judge(mut self) -> Answered {
        if let Some(Failed { status, body }) = self.heard.failed.take() {
            if let Some(why) = too_large(status, &body).filter(|_| !self.spoken) {
                return Answered::TooLarge(why);
            }
            let error = if self.spoken { Why::Failed(body) } else { Why::Refused { status, body } };
            return Answered::Lost { finish: "failed", error, heard: Box::new(self.heard) };
        }
        match self.heard.finish.as_deref() {
            None => Answered::Lost { finish: "lost", error: Why::Broken, heard: Box::new(self.heard) },
            Some("model_context_window_exceeded") if !self.spoken => Answered::TooLarge(TooLarge {
                limit: None,
                actual: None,
                lower: false,
                why: "the model stopped because its window is full".into(),
            }),
            Some(_) => {
                self.let_go();
                Answered::Whole(self.heard)
            }
        }
    }
}

/// What had been said, as text: words, thoughts and calls, for people.
pub(crate) fn words(message: &Message) -> String {
    let told = message.parts.iter().map(|part| match part {
        Part::Text { text, .. } | Part::Reasoning { text, .. } => text.clone(),
        Part::Call(call) => format!("{}({})", call.name, call.arguments),
        Part::Opaque(opaque) => opaque.json.get().to_owned(),
        Part::Image { .. } | Part::Result(_) => String::new(),
    });
    told.filter(|text| !text.is_empty()).collect::<Vec<_>>().join("\n")
}
