//! A summariser that is a model at a provider: asked apart from the conversation, with no tool it may call.
//!
//! Where the provider keeps a cache of prefixes and the model is the conversation's own, the question goes out behind
//! the conversation itself: everything before the question is then read from the cache, at a tenth of the price.
//! Otherwise, and where that would not fit, the messages are handed over as text, in parts.

use super::{Summariser, SummaryAnswer, SummaryFailure, SummaryRequest, Transcript};
use crate::exchange::request::{MessageSink, OutgoingRequest, RequestRoom, StoredBlobs, write_file};
use crate::exchange::response::{SendOutcome, post};
use crate::exchange::{ExchangeContext, ExchangeEvent, ExchangeOutcome, ExchangeWire, ModelTarget, exchange};
use crate::lesson::AppliedLesson;
use komado_core::budget::Preset;
use komado_core::journal::Setup;
use komado_core::message::Message;
use komado_core::{Meter, Role, SessionId};
use komado_provider::{ModelRequest, ModelResponse, ToolUse};
use komado_store::{RequestFile, Store};

/// Most tokens a model may think before it writes; at most an eighth of its window.
const THOUGHTS: u64 = 2_048;

/// Asks a model.
pub struct ByModel<'s> {
    asking: ModelTarget,
    store: &'s dyn Store,
    session: SessionId,
    meter: Meter,
    /// True when it is the conversation's own model, and its provider keeps a cache.
    shares: bool,
}

/// Why there is no answer.
enum Unasked {
    TooLarge(SummaryFailure),
    Failed(SummaryFailure),
}

impl From<Unasked> for SummaryFailure {
    fn from(unasked: Unasked) -> Self {
        match unasked {
            Unasked::TooLarge(failure) | Unasked::Failed(failure) => failure,
        }
    }
}

/// A question, as a request that is written to a passing file. Its caller journals that it is asked, and no thread
/// can be reached from here.
struct Question<'a> {
    by: &'a ByModel<'a>,
    setup: &'a Setup,
    tools: ToolUse,
    /// Our estimate of it.
    tokens: u64,
    max_tokens: u64,
    pour: &'a mut dyn FnMut(&mut MessageSink<'_>) -> crate::Result<()>,
    lesson: AppliedLesson,
}

impl<'t> ExchangeWire<'t> for Question<'_> {
    fn context(&mut self) -> ExchangeContext<'_, 't> {
        ExchangeContext {
            asking: &self.by.asking,
            lesson: &mut self.lesson,
            store: self.by.store,
            thread: None,
        }
    }

    fn fit(&mut self, _: &mut RequestRoom) -> crate::Result<bool> {
        Ok(true)
    }

    fn render(&mut self, _: &RequestRoom) -> crate::Result<OutgoingRequest> {
        let asking = &self.by.asking;
        // Words and thoughts, as far as the model can write them.
        let longest = (self.max_tokens + self.by.thoughts()).min(asking.output.unwrap_or(u64::MAX));
        let ask = ModelRequest { max_tokens: Some(longest), tools: self.tools, ..asking.ask(self.setup) };
        let mut blobs = StoredBlobs { store: self.by.store, session: &self.by.session };
        let written =
            write_file(RequestFile::passing()?, asking.provider.dialect, &ask, &mut blobs, self.pour)?;
        Ok(OutgoingRequest { uncertain: Some(0), ..OutgoingRequest::new(written, self.tokens) })
    }

    fn send(&mut self, request: &OutgoingRequest) -> SendOutcome {
        post(&self.by.asking, &request.body.body(), &mut |_| {})
    }

    fn tell(&mut self, _: ExchangeEvent<'_>) -> crate::Result<()> {
        Ok(())
    }
}

impl<'s> ByModel<'s> {
    /// Asks as `asking` says, in a session kept in `store`, counting with `meter`.
    pub fn new(asking: ModelTarget, store: &'s dyn Store, session: SessionId, meter: Meter) -> Self {
        // What is too large as a whole is asked in parts, not again.
        Self { asking: ModelTarget { tries: 0, ..asking }, store, session, meter, shares: false }
    }

    /// It is the conversation's own model: what the provider has cached of the conversation is made use of.
    #[must_use]
    pub fn sharing(mut self) -> Self {
        self.shares = self.asking.provider.caches;
        self
    }

    /// Tokens of ours that the model takes, its thoughts left out.
    fn room(&self) -> u64 {
        let window = self.lesson().ours(self.asking.window);
        window.saturating_sub(window / 20 + self.thoughts())
    }

    fn thoughts(&self) -> u64 {
        THOUGHTS.min(self.asking.window / 8)
    }

    fn ask(&self, mut question: Question<'_>) -> Result<SummaryAnswer, Unasked> {
        let asked = exchange(&mut question, RequestRoom::endless(Preset::Komado.policy()));
        let failed = |why: String, usage| Err(Unasked::Failed(SummaryFailure { why, usage }));
        match asked {
            Ok(ExchangeOutcome::Answer { response, .. }) => self.answer(&response).map_err(Unasked::Failed),
            Ok(ExchangeOutcome::Lost { lost, .. }) => {
                failed(lost.error.to_string(), lost.response.and_then(|heard| heard.usage))
            }
            Ok(ExchangeOutcome::TooLarge(why)) => {
                let why = why.map(|why| why.why).unwrap_or_default();
                let why = format!("the question was too large for {}: {why}", self.asking.model);
                Err(Unasked::TooLarge(SummaryFailure::new(why)))
            }
            Err(error) => failed(error.to_string(), None),
        }
    }

    fn answer(&self, response: &ModelResponse) -> Result<SummaryAnswer, SummaryFailure> {
        let text = response.message().map(|message| message.words()).unwrap_or_default();
        if text.trim().is_empty() && response.finish.as_deref() == Some("length") {
            let why = format!("{} spent its whole answer on thoughts", self.asking.model);
            return Err(SummaryFailure { why, usage: response.usage });
        }
        Ok(SummaryAnswer { text, usage: response.usage, model: response.model.clone() })
    }

    fn lesson(&self) -> AppliedLesson {
        AppliedLesson::known(self.store, &self.asking.about(), &self.session).unwrap_or_default()
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

    fn summarise(&mut self, request: &SummaryRequest) -> Result<SummaryAnswer, SummaryFailure> {
        let setup = Setup { system: request.system.clone(), ..Setup::default() };
        let text = Message::text(Role::User, &request.text);
        let tokens = u64::from(self.meter.setup(&setup)) + u64::from(self.meter.message(&text));
        let (tools, max_tokens, lesson) = (ToolUse::AsSetUp, request.max_tokens, self.lesson());
        let pour = &mut |put: &mut MessageSink<'_>| put(&text);
        let question = Question { by: self, setup: &setup, tools, tokens, max_tokens, pour, lesson };
        self.ask(question).map_err(SummaryFailure::from)
    }

    fn go_on(
        &mut self,
        talk: &dyn Transcript,
        request: &SummaryRequest,
    ) -> Option<Result<SummaryAnswer, SummaryFailure>> {
        if !self.shares {
            return None;
        }
        let text = Message::text(Role::User, &request.text);
        let tokens = talk.tokens() + u64::from(self.meter.message(&text));
        if tokens + request.max_tokens > self.room() {
            return None;
        }
        let setup = talk.setup().ok()?;
        let (tools, max_tokens, lesson) = (ToolUse::NamedOnly, request.max_tokens, self.lesson());
        let pour = &mut |put: &mut MessageSink<'_>| {
            talk.pour(put)?;
            put(&text)
        };
        let question = Question { by: self, setup: &setup, tools, tokens, max_tokens, pour, lesson };
        match self.ask(question) {
            // What is too large as a whole may be handed over in parts.
            Err(Unasked::TooLarge(_)) => None,
            answer => Some(answer.map_err(SummaryFailure::from)),
        }
    }
}
