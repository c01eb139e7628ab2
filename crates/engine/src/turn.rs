//! The turn: journal, plan, render, send, relay, journal.
//!
//! [`Thread::turn`] is the program in twenty lines. What is said before a request is durable before it; the request is
//! rendered to a file and sent from there; what comes back is handed on as it comes, and journaled when it is whole. A
//! provider that finds the request too large is believed: the view gets smaller and the request goes out again, before
//! anyone has heard a word of it. After the last try the thread answers itself, shortly and honestly. Whatever happens,
//! the thread goes on.

use crate::error::{Error, Result};
use crate::fit::{Fitted, Ladder};
use crate::lesson::{self, Lesson, Read, Size};
use crate::thread::Thread;
use komado_core::budget::{Budget, Verdict};
use komado_core::journal::{Entry, Reply, Sent};
use komado_core::message::Message;
use komado_core::{Kind, Role, Seq};
use komado_provider::client::Waiting;
use komado_provider::overflow::{self, Remedy};
use komado_provider::{Body, Cancel, Client, Event, Form, Heard, Provider};
use komado_store::Letter;

mod history;
mod honest;
pub(crate) mod listen;
pub(crate) mod render;
pub(crate) mod room;

pub use listen::Why;
use listen::{Answered, TooLarge, listen};
use render::Written;
use room::Room;

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

    /// The name under which lessons about it are kept.
    pub fn about(&self) -> String {
        let place = self.known_as.clone().unwrap_or_else(|| self.provider.place());
        lesson::about(&place, &self.model)
    }
}

/// What happens during a turn, for whoever watches.
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

/// A request that was sent, and what came of it.
struct Trip {
    sent: Seq,
    size: Size,
    file: Letter,
    answered: Answered,
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
        let mut room = Room::new(ladder.budget.clone());
        let (mut refused, mut attempts) = (None, 0);
        for attempt in 1..=asking.tries + 1 {
            ladder.budget = room.budget.clone();
            match self.fit(ladder) {
                Ok(fitted) => news(News::Fitted(&fitted)),
                Err(Error::Floor(_) | Error::NoRoom(_) | Error::TooMuch(_)) if refused.is_some() => break,
                Err(other) => return Err(other),
            }
            // A spawned thread works in its share, whatever it was handed.
            room.budget = ladder.budget.clone();
            let max_tokens = room.max_tokens(self, asking, &self.lesson(asking)?)?;
            let trip = self.send(asking, max_tokens, news)?;
            attempts = attempt;
            match trip.answered {
                Answered::Whole(heard) => {
                    let turned =
                        self.take_in(asking, (trip.sent, trip.size, attempt), heard, &ladder.budget, news)?;
                    told(trip.file.answered().map_err(Error::from), news);
                    return Ok(turned);
                }
                Answered::TooLarge(why) => {
                    self.lose(trip.sent, &asking.model, "overflow", &why.why, None)?;
                    told(self.learn_refusal(asking, trip.size, &why), news);
                    news(News::TooLarge { attempt, why: &why.why, limit: why.limit });
                    room.shrink(&why, asking, (trip.size.tokens, max_tokens), &self.lesson(asking)?);
                    refused = Some(why);
                }
                Answered::Lost { finish, error, heard } => {
                    let seq =
                        self.lose(trip.sent, &asking.model, finish, &error.to_string(), Some(&heard))?;
                    return Err(Error::Unanswered { seq, why: error });
                }
            }
        }
        self.answer_honestly(asking, refused, attempts, &ladder.budget)
    }

    /// One request: rendered, announced in the journal, sent from disk, heard.
    fn send(
        &mut self,
        asking: &Asking,
        max_tokens: Option<u64>,
        news: &mut dyn FnMut(News<'_>),
    ) -> Result<Trip> {
        let Written { file, bytes, digest, uncertain } = self.write_letter(asking, max_tokens)?;
        let tokens = self.view().tokens();
        let model = asking.model.clone();
        let sent = self.append(Entry::Sent(Sent {
            digest,
            model,
            context_tokens: tokens,
            purpose: None,
            mark: None,
        }))?;
        news(News::Sent { seq: sent, tokens, bytes });
        let mut answered = listen(asking, Body::File { path: file.path(), len: bytes }, news);
        if let Answered::TooLarge(why) = &mut answered {
            // Without numbers it may be the room for the answer that was too much: that says nothing of the window.
            why.is_vague |= why.limit.is_none() && max_tokens.is_some();
        }
        Ok(Trip { sent, size: Size { tokens, uncertain }, file, answered })
    }

    /// What the budget says now; nothing is done about it.
    pub fn hint(&self, when: When, budget: &Budget) -> Hint {
        Hint { when, verdict: self.will_manage(budget) }
    }

    /// A request whose process ended before the answer came is given up: the journal says so before the next one.
    pub(crate) fn give_up_earlier(&mut self) -> Result<()> {
        for seq in (1..=self.last()).rev() {
            if !self.view().on_path(seq) {
                continue;
            }
            match self.source().head(seq)?.kind {
                Kind::Sent => {
                    let Entry::Sent(Sent { model, .. }) = self.record(seq)?.entry else { return Ok(()) };
                    let why = "the process ended before an answer came";
                    return self.lose(seq, &model, "lost", why, None).map(|_| ());
                }
                Kind::User | Kind::Tool | Kind::System | Kind::Setup | Kind::Pin | Kind::Unpin => {}
                Kind::Share | Kind::Tell | Kind::Heard | Kind::Anchor | Kind::AnchorUpdate | Kind::Note => {}
                _ => return Ok(()),
            }
        }
        Ok(())
    }

    /// What is known about the model.
    pub(crate) fn lesson(&self, asking: &Asking) -> Result<Lesson> {
        lesson::known(self.store(), &asking.about())
    }

    /// Journals a whole answer, and learns from it.
    fn take_in(
        &mut self,
        asking: &Asking,
        (sent, size, attempts): (Seq, Size, u32),
        heard: Heard,
        budget: &Budget,
        news: &mut dyn FnMut(News<'_>),
    ) -> Result<Turned> {
        let message = heard.message().unwrap_or_else(|| Message::text(Role::Assistant, ""));
        let reply = Reply {
            to: Some(sent),
            model: heard.model.clone().or_else(|| Some(asking.model.clone())),
            usage: heard.usage,
            finish: heard.finish.clone().unwrap_or_default(),
            error: None,
            heard: None,
            id: None,
        };
        let seq = match self.reply(message, reply.clone()) {
            Ok(seq) => seq,
            Err(Error::Refused(why)) => {
                let why = format!("the answer cannot be taken in: {why}");
                let seq = self.lose(sent, &asking.model, "refused", &why, Some(&heard))?;
                return Err(Error::Unanswered { seq, why: Why::Answer(why) });
            }
            Err(other) => return Err(other),
        };
        if let Some(usage) = &heard.usage {
            let learned = lesson::learn(self.store(), &asking.about(), |lesson| {
                lesson.hear(size, usage, asking.probed)
            });
            if let Some(Some(Read::Truncated { reported, expected })) = told(learned, news) {
                news(News::Truncated { reported, expected });
            }
        }
        let hint = self.hint(When::AfterReply, budget);
        news(News::Hint(hint));
        // What was journaled has ids for calls that came without, and blobs for what is not words.
        let message = match self.record(seq)?.entry {
            Entry::Message(message, _) => message,
            _ => return Err(self.no_moment(seq)),
        };
        Ok(Turned { seq, message, reply, attempts, is_ours: false, hint })
    }

    /// Journals that a request brought no message, and what had been heard of one.
    pub(crate) fn lose(
        &mut self,
        sent: Seq,
        model: &str,
        finish: &str,
        why: &str,
        heard: Option<&Heard>,
    ) -> Result<Seq> {
        self.append(Entry::Lost(Reply {
            to: Some(sent),
            model: Some(model.to_owned()),
            usage: heard.and_then(|heard| heard.usage),
            finish: finish.to_owned(),
            error: Some(why.to_owned()),
            heard: heard.and_then(Heard::message).map(|message| listen::words(&message)),
            id: None,
        }))
    }

    pub(crate) fn learn_refusal(&self, asking: &Asking, size: Size, why: &TooLarge) -> Result<()> {
        let learned = lesson::learn(self.store(), &asking.about(), |lesson| {
            lesson.refused(size, why.refusal(), asking.probed);
        });
        learned.map(|_| ())
    }
}

/// What is learned and tidied up beside an answer is no reason to lose it: what goes wrong there is only told.
fn told<T>(result: Result<T>, news: &mut dyn FnMut(News<'_>)) -> Option<T> {
    result.inspect_err(|error| news(News::Trouble(error))).ok()
}

/// What a refusal says, and whether less room for the answer would do.
pub(crate) fn too_large(status: u16, body: &str) -> Option<TooLarge> {
    let verdict = overflow::classify(status, body);
    verdict.overflow.then(|| TooLarge {
        limit: verdict.limit,
        actual: verdict.input.or(verdict.actual),
        lower: verdict.remedy == Remedy::LowerMaxTokens,
        is_vague: status == 413 || speaks_of_bytes(body),
        why: verdict.why,
    })
}

/// True when a size in bytes or characters was too large: that says nothing about tokens.
fn speaks_of_bytes(body: &str) -> bool {
    let body = body.to_ascii_lowercase();
    ["byte", "payload", "request_too_large", "character", " mb"].iter().any(|word| body.contains(word))
}
