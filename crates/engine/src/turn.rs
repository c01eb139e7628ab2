//! The turn: a thread's view is rendered to a file, sent from there, and answered.
//!
//! [`Thread::turn`] is an exchange (`exchange.rs`) over a rendered request. What was said before it is durable before it;
//! what comes back is handed on as it comes, and journaled when it is whole. When the provider finds even the smallest
//! request too large, the thread answers itself, shortly and honestly. Whatever happens, the thread goes on.

use crate::error::{Error, Result};
use crate::exchange::request::{OutgoingRequest, Room, Stored, uncertain, write_file};
use crate::exchange::response::{Outcome, TooLarge, post};
use crate::exchange::{Context, Exchanged, Wire, exchange};
use crate::fit::{Done, Fitted, Ladder};
use crate::lesson;
use crate::lesson::Lesson;
use crate::request_entries::reply;
use crate::thread::Thread;
use komado_core::budget::{Budget, Verdict};
use komado_core::journal::{Entry, Reply, Setup};
use komado_core::ladder::{Rung, Step};
use komado_core::message::Message;
use komado_core::raw::Object;
use komado_core::{Kind, Role, Seq, ladder};
use komado_provider::client::Waiting;
use komado_provider::{Ask, Cancel, Client, Event, Form, Provider, Tools};

pub use crate::exchange::response::Why;

/// The names of the longest answer among parameters.
pub(crate) const LIMITS: [&str; 3] = ["max_completion_tokens", "max_tokens", "max_output_tokens"];
/// The rule of a bound on turns, in the journal.
const MAX_HISTORY: &str = "max_history";

/// Who is asked, and how.
#[derive(Clone)]
pub struct Asking {
    /// Sends and receives.
    pub client: Client,
    /// Where to.
    pub provider: Provider,
    /// The place under which lessons are kept, where the address is another each time.
    pub known_as: Option<String>,
    /// The model.
    pub model: String,
    /// Its window, in its own tokens.
    pub window: u64,
    /// True when the user said so: then nothing that was learned makes it smaller.
    pub is_given: bool,
    /// What its server said of the window, when it was asked.
    pub probed: Option<u64>,
    /// The longest answer it can write, where that is known.
    pub output: Option<u64>,
    /// The longest answer wanted.
    pub max_tokens: Option<u64>,
    /// Whether the answer comes in pieces.
    pub form: Form,
    /// To which share the view shrinks after a request that was too large.
    pub shrink: f64,
    /// How often such a request is tried again.
    pub tries: u32,
    /// Most turns of the user that are shown; `None` for as many as the window holds.
    pub history: Option<u32>,
    /// Ends the turn from another thread.
    pub cancel: Cancel,
}

impl Asking {
    /// Asks `model` at `provider`, with the usual patience.
    pub fn new(client: Client, provider: Provider, model: impl Into<String>, window: u64) -> Self {
        Self {
            client,
            provider,
            known_as: None,
            model: model.into(),
            window,
            is_given: false,
            probed: None,
            output: None,
            max_tokens: None,
            form: Form::Stream,
            shrink: 0.8,
            tries: 3,
            history: None,
            cancel: Cancel::default(),
        }
    }

    /// What a request to it asks for beside its messages; how long the answer may be is still to be said.
    pub(crate) fn ask<'a>(&'a self, setup: &'a Setup) -> Ask<'a> {
        let (stream, window) = (self.form == Form::Stream, Some(self.window));
        let Provider { is_strict, joins, .. } = self.provider;
        Ask {
            model: &self.model,
            setup,
            max_tokens: None,
            stream,
            window,
            tools: Tools::AsSetUp,
            is_strict,
            joins,
        }
    }

    /// The name under which lessons about it are kept.
    pub fn about(&self) -> String {
        let place = self.known_as.clone().unwrap_or_else(|| self.provider.place());
        lesson::about(&place, &self.model)
    }
}

/// What happens during an exchange, as it happens.
#[derive(Debug)]
#[non_exhaustive]
pub enum News<'a> {
    /// The view was made to fit.
    Fitted(&'a Fitted),
    /// A request is about to leave.
    Sent {
        /// Its entry.
        seq: Seq,
        /// Tokens of the view.
        tokens: u64,
        /// Its size.
        bytes: u64,
    },
    /// The provider wants us to wait.
    Waiting(&'a Waiting),
    /// The model says something. Never before it is sure that the request was taken.
    Said(&'a Event),
    /// The request was too large; it goes out again, smaller.
    TooLarge {
        /// Which try that was, from 1.
        attempt: u32,
        /// What the provider said.
        why: &'a str,
        /// The limit it named.
        limit: Option<u64>,
    },
    /// The server read far less than was sent, and did not say so.
    Truncated {
        /// Tokens it read.
        reported: u64,
        /// Tokens that were sent.
        expected: u64,
    },
    /// Something beside the answer went wrong; the answer is there.
    Trouble(&'a Error),
    /// A hint that something will leave the view before the next request.
    Hint(Hint),
}

/// When a hint is given.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum When {
    /// A reply has come.
    AfterReply,
    /// Tools have answered.
    AfterTools,
    /// The loop is about to end.
    BeforeEnd,
}

/// What the budget says between requests. Nothing is done about it before the next one: only then everything counts.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Hint {
    /// When it was given.
    pub when: When,
    /// What the budget says.
    pub verdict: Verdict,
}

/// How a turn ended.
#[derive(Clone, Debug)]
pub struct Turned {
    /// The reply's entry.
    pub seq: Seq,
    /// What was said.
    pub message: Message,
    /// What it took, and why it stopped.
    pub reply: Reply,
    /// Requests that were sent.
    pub attempts: u32,
    /// True when no model said it: the request was too large to the end.
    pub is_ours: bool,
    /// What the budget says now.
    pub hint: Hint,
}

/// A request that is rendered from a thread's view.
struct Rendered<'w, 't, 'l> {
    thread: &'w mut Thread<'t>,
    asking: &'w Asking,
    lesson: Lesson,
    ladder: &'w mut Ladder<'l>,
    news: &'w mut dyn FnMut(News<'_>),
    /// Requests that were announced.
    attempts: u32,
}

impl<'t> Wire<'t> for Rendered<'_, 't, '_> {
    fn context(&mut self) -> Context<'_, 't> {
        let store = self.thread.store();
        Context { asking: self.asking, lesson: &mut self.lesson, store, thread: Some(&mut *self.thread) }
    }

    fn fit(&mut self, room: &mut Room) -> Result<bool> {
        if let Some(budget) = &room.budget {
            self.ladder.budget = budget.clone();
        }
        match self.thread.fit(self.ladder) {
            Ok(fitted) => (self.news)(News::Fitted(&fitted)),
            Err(error) if error.is_no_room() && self.attempts > 0 => return Ok(false),
            Err(other) => return Err(other),
        }
        // A spawned thread works in its share, whatever it was handed.
        room.budget = Some(self.ladder.budget.clone());
        Ok(true)
    }

    fn render(&mut self, room: &Room) -> Result<OutgoingRequest> {
        let (thread, asking) = (&*self.thread, self.asking);
        // A summariser may have learned something since.
        self.lesson = lesson::known(thread.store(), &asking.about())?;
        let (setup, tokens) = (thread.setup()?, thread.view().tokens());
        let wished = asking.max_tokens.or_else(|| wished(&setup));
        let max_tokens = room.longest_answer(wished, tokens, asking, &self.lesson);
        let ask = Ask { max_tokens, ..asking.ask(&setup) };
        let mut blobs = Stored { store: thread.store(), session: thread.session() };
        let mut doubtful = 0;
        let written =
            write_file(thread.source().letter()?, asking.provider.dialect, &ask, &mut blobs, &mut |put| {
                thread.view().pour_said(thread.source(), &mut |_, message: &Message| {
                    doubtful += uncertain(&message.parts, thread.meter());
                    put(message)
                })
            })?;
        let uncertain = Some(doubtful);
        Ok(OutgoingRequest { max_tokens, uncertain, ..OutgoingRequest::new(written, tokens) })
    }

    fn send(&mut self, request: &OutgoingRequest) -> Outcome {
        self.attempts += 1;
        post(self.asking, &request.body.body(), self.news)
    }

    fn tell(&mut self, news: News<'_>) -> Result<()> {
        (self.news)(news);
        Ok(())
    }
}

/// The longest answer that the parameters in force name.
fn wished(setup: &Setup) -> Option<u64> {
    let object = setup.params.as_ref().and_then(|params| Object::parse(params.get()).ok())?;
    let named = |key: &&str| object.read::<u64>(key).ok().flatten();
    let nested = || {
        let options = object.get("options")?;
        Object::parse(options.get()).ok()?.read::<u64>("num_predict").ok().flatten()
    };
    LIMITS.iter().find_map(named).or_else(nested)
}

impl Thread<'_> {
    /// Asks the model and journals what it answers. `news` is told what happens, word by word.
    pub fn turn(
        &mut self,
        asking: &Asking,
        ladder: &mut Ladder<'_>,
        news: &mut dyn FnMut(News<'_>),
    ) -> Result<Turned> {
        self.give_up_earlier()?;
        self.answer_open_calls()?;
        self.tend()?;
        self.hear()?;
        if let Some(turns) = asking.history
            && let Some(fitted) = self.bound_history(turns, &ladder.budget)?
        {
            news(News::Fitted(&fitted));
        }
        let (room, lesson) = (Room::new(ladder.budget.clone()), Lesson::default());
        let mut wire = Rendered { thread: self, asking, lesson, ladder, news, attempts: 0 };
        let exchanged = exchange(&mut wire, room)?;
        let attempts = wire.attempts;
        match exchanged {
            Exchanged::Answer { reply, journaled, .. } => {
                let seq = journaled?;
                let hint = self.hint(When::AfterReply, &ladder.budget);
                news(News::Hint(hint));
                // What was journaled has ids for calls that came without, and blobs for what is not words.
                let Entry::Message(message, _) = self.record(seq)?.entry else {
                    return Err(self.no_moment(seq));
                };
                Ok(Turned { seq, message, reply, attempts, is_ours: false, hint })
            }
            Exchanged::Lost { lost, journaled } => {
                Err(Error::Unanswered { seq: journaled?, why: lost.error })
            }
            Exchanged::TooLarge(why) => self.answer_honestly(asking, why, attempts, &ladder.budget),
        }
    }

    /// System prompt, tools and parameters in force, those of the threads above included.
    pub fn setup(&self) -> Result<Setup> {
        Ok(self.view().setup_in(self.source())?)
    }

    /// What the budget says now; nothing is done about it.
    pub fn hint(&self, when: When, budget: &Budget) -> Hint {
        Hint { when, verdict: self.will_manage(budget) }
    }

    /// Hides what was said before the last `turns` turns of the user. The first request, pins and what stands before the
    /// conversation stay, and so does what is smaller than the marker. Gives what was done, if anything was needed.
    pub fn bound_history(&mut self, turns: u32, budget: &Budget) -> Result<Option<Fitted>> {
        let verdict = self.will_manage(budget);
        let step = ladder::bound_turns(self.view(), self.source(), budget, self.meter(), turns)?;
        let Some(Step::Truncate { hide, marker }) = step else { return Ok(None) };
        let seq = self.truncate(hide, &marker, MAX_HISTORY)?;
        let Entry::Edit(edit) = self.record(seq)?.entry else { return Err(self.no_moment(seq)) };
        let done = vec![Done { seq, rung: Rung::Truncate, edit }];
        let after = self.view().tokens();
        Ok(Some(Fitted { verdict, done, declined: Vec::new(), share: None, after }))
    }

    /// Says in the conversation that the model could not be asked, and why.
    fn answer_honestly(
        &mut self,
        asking: &Asking,
        refused: Option<TooLarge>,
        attempts: u32,
        budget: &Budget,
    ) -> Result<Turned> {
        let limit = refused.as_ref().and_then(|why| why.refusal.limit);
        // In the language of what the user said last.
        let asked = self.last_words(|kind| kind == Kind::User)?.unwrap_or_default();
        let text = apology(&asked, &asking.model, self.view().tokens(), limit);
        let error = refused.map(|why| why.why);
        let reply = Reply { error, ..reply(None, None, "overflow", None) };
        let message = Message::text(Role::Assistant, text);
        let seq = self.reply(message.clone(), reply.clone())?;
        let hint = self.hint(When::AfterReply, budget);
        Ok(Turned { seq, message, reply, attempts, is_ours: true, hint })
    }
}

/// The reply when nothing helped: short, honest, and ours.
fn apology(asked: &str, model: &str, tokens: u64, limit: Option<u64>) -> String {
    let kana = |c: char| ('\u{3041}'..='\u{30ff}').contains(&c);
    if asked.chars().any(kana) {
        let limit = limit.map(|limit| format!("（上限 {limit} トークン）")).unwrap_or_default();
        return format!(
            "申し訳ありません。会話を {tokens} トークンまで短くしましたが、{model} には長すぎて{limit}お答えできませんでした。\
             会話の記録はすべて残っています。質問を短くするか、より大きなコンテキストのモデルをお使いください。"
        );
    }
    let limit = limit.map(|limit| format!(" (it takes {limit})")).unwrap_or_default();
    format!(
        "I could not answer: even cut down to {tokens} tokens, this conversation is more than {model} takes{limit}. \
         Nothing is lost. Please ask for less at once, or use a model with a larger window."
    )
}
