//! Sends a request and hands on what comes back.
//!
//! Nothing is handed on before the first words: until then a refusal is still a refusal, also one that comes inside a
//! stream which began well. After the first words it is too late to try again, and what breaks off is lost.

use super::{Asking, News, too_large};
use crate::lesson::Refusal;
use komado_core::message::{Message, Part};
use komado_provider::client::SendError;
use komado_provider::{Body, Event, Failed, Form, Heard, Incoming};

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
    /// True when it says nothing about tokens.
    pub(crate) is_vague: bool,
    /// Its words, and why we understood them so.
    pub(crate) why: String,
}

impl TooLarge {
    /// What can be learned from it.
    pub(crate) fn refusal(&self) -> Refusal {
        Refusal { limit: self.limit, actual: self.actual, is_vague: self.is_vague }
    }
}

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Why {
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
    // Nothing that a terminal would obey.
    let plain = |c: char| if c.is_control() && c != '\n' { ' ' } else { c };
    let short: String = body.chars().take(SHOWN).map(plain).collect();
    if body.chars().nth(SHOWN).is_some() { format!("{short}…") } else { short }
}

/// Sends `body` and listens until there is no more. A provider that is busy may say so when its answer has begun: before
/// the first word that is no different from saying it at once, and it is asked again.
pub(crate) fn listen(asking: &Asking, body: Body<'_>, news: &mut dyn FnMut(News<'_>)) -> Answered {
    let Asking { client, cancel, .. } = asking;
    let mut tries = 0;
    loop {
        tries += 1;
        let answered = once(asking, body.clone(), news);
        let Answered::Lost { error: Why::Refused { status: 200..300, body: said, .. }, .. } = &answered
        else {
            return answered;
        };
        let again = is_busy(said)
            && match client.wait(tries, "busy", cancel, &mut |waiting| news(News::Waiting(&waiting))) {
                Ok(again) => again,
                Err(error) => return lost(error, Heard::default()),
            };
        if !again {
            return answered;
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

fn once(asking: &Asking, body: Body<'_>, news: &mut dyn FnMut(News<'_>)) -> Answered {
    let Asking { client, provider, cancel, .. } = asking;
    let mut incoming = match client.post(provider, body, cancel, &mut |waiting| news(News::Waiting(&waiting)))
    {
        Ok(incoming) => incoming,
        Err(error) => return lost(error, Heard::default()),
    };
    let status = incoming.status;
    if !(200..300).contains(&status) {
        return match incoming.text(MOST) {
            Ok(body) => refused(asking, status, body),
            Err(error) => lost(error, Heard::default()),
        };
    }
    if let Some(packed) = incoming.header("content-encoding").filter(|kind| *kind != "identity") {
        let why =
            format!("{} sent its answer packed as {packed}, which was not asked for", provider.endpoint());
        return Answered::Lost { finish: "failed", error: Why::Answer(why), heard: Box::default() };
    }
    let form = form(asking, &incoming);
    let mut ear = Ear { asking, status, heard: Heard::default(), held: Vec::new(), spoken: false, news };
    let mut decoder = provider.dialect.decoder(form);
    let mut broken = None;
    loop {
        match incoming.chunk() {
            Ok(Some(bytes)) => decoder.push(&bytes, &mut |event| ear.take(event)),
            Ok(None) => break,
            Err(error) => {
                broken = Some(error);
                break;
            }
        }
        if ear.heard.failed.is_some() {
            break;
        }
    }
    decoder.end(&mut |event| ear.take(event));
    match broken {
        // A server that hangs up roughly after the last word has said everything.
        Some(error) if ear.heard.finish.is_none() => lost(error, ear.heard),
        _ => ear.judge(),
    }
}

/// Some servers do not say that they stream; one that was asked to, and does not say that it sends JSON, does.
fn form(asking: &Asking, incoming: &Incoming) -> Form {
    let is_json = incoming.header("content-type").is_some_and(|kind| kind.contains("json"));
    if incoming.is_stream() || asking.form == Form::Stream && !is_json { Form::Stream } else { Form::Whole }
}

fn refused(asking: &Asking, status: u16, body: String) -> Answered {
    if let Some(why) = too_large(status, &body) {
        return Answered::TooLarge(why);
    }
    let (url, body) = (asking.provider.endpoint(), asking.provider.without_key(body));
    Answered::Lost { finish: "refused", error: Why::Refused { url, status, body }, heard: Box::default() }
}

fn lost(error: SendError, heard: Heard) -> Answered {
    let finish = if matches!(error, SendError::Cancelled) { "cancelled" } else { "lost" };
    Answered::Lost { finish, error: error.into(), heard: Box::new(heard) }
}

/// Hears, and holds back until it is sure.
struct Ear<'n> {
    asking: &'n Asking,
    status: u16,
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
            let body = self.asking.provider.without_key(body);
            let (url, status) = (self.asking.provider.endpoint(), self.status);
            let error = if self.spoken { Why::Failed(body) } else { Why::Refused { url, status, body } };
            return Answered::Lost { finish: "failed", error, heard: Box::new(self.heard) };
        }
        match self.heard.finish.as_deref() {
            None => Answered::Lost { finish: "lost", error: Why::Broken, heard: Box::new(self.heard) },
            Some("model_context_window_exceeded") if !self.spoken => Answered::TooLarge(TooLarge {
                limit: None,
                actual: None,
                lower: false,
                is_vague: true,
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
