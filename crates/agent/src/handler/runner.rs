//! The hands that carry a playbook's nodes out: between two steps orders are followed, bounds kept and comments taken in.

use super::mark::{ABOUT, TaskMark, later};
use super::orders::ask;
use super::{Begun, TaskContext};
use crate::limits::{LimitsUsed, count};
use crate::model_session::ModelSession;
use crate::playbook::{NextStep, NodeRunner, PlaybookEnd};
use crate::progress::TaskProgress;
use crate::source::TaskComment;
use crate::tools::ToolAnswer;
use crate::{Error, Result};
use komado_core::journal::Entry;
use komado_core::message::{Call, Message};
use komado_core::{Kind, Role, ThreadId};
use komado_engine::Thread;
use komado_engine::exchange::{ExchangeEvent, TurnResult};
use komado_engine::stelis::ChronicleBy;
use std::collections::BTreeSet;
use std::sync::TryLockError;
use std::time::{Duration, Instant};

/// How often what is derived from the journal follows it.
const SETTLE: Duration = Duration::from_secs(5);
/// How often people who follow a task hear that it goes on.
const REPORT: Duration = Duration::from_secs(600);
/// Characters of what the model said that progress tells.
const SHOWN: usize = 120;

/// A worker at work on a task.
pub(super) struct TaskRunner<'a, 'k, 'e> {
    mind: &'a mut dyn ModelSession<'e>,
    kit: &'a mut TaskContext<'k>,
    mark: TaskMark,
    toll: LimitsUsed,
    settled: Instant,
    reported: u64,
    node: String,
}

impl<'a, 'k, 'e> TaskRunner<'a, 'k, 'e> {
    pub(super) fn new(
        mind: &'a mut dyn ModelSession<'e>,
        kit: &'a mut TaskContext<'k>,
        begun: &Begun,
    ) -> Self {
        let toll = LimitsUsed::after(kit.limits, &begun.mark, &begun.answered);
        let reported = toll.spent().as_secs() / REPORT.as_secs();
        let mark = begun.mark.clone();
        Self { mind, kit, mark, toll, settled: Instant::now(), reported, node: String::new() }
    }

    /// Notes how long it took, for the next worker; a task that came to its end needs no note.
    pub(super) fn rest(&mut self, ended: &Result<PlaybookEnd>) {
        if ended.is_ok() {
            return;
        }
        let noted = self.mind.open(self.kit.session, &ThreadId::root()).and_then(|mut root| {
            root.note(ABOUT, self.marked().raw()?)?;
            Ok(root.settle()?)
        });
        if let Err(why) = noted {
            self.tell(TaskProgress::Trouble { why: why.to_string() });
        }
    }

    fn tell(&self, progress: TaskProgress) {
        (self.kit.tell)(progress);
    }

    /// The mark as it is now.
    fn marked(&self) -> TaskMark {
        let spent_ms = u64::try_from(self.toll.spent().as_millis()).unwrap_or(u64::MAX);
        TaskMark { spent_ms, ..self.mark.clone() }
    }

    fn follow_orders(&self) -> Result<()> {
        match self.kit.orders.now() {
            Some(order) => Err(Error::Order(order)),
            None => Ok(()),
        }
    }

    /// Says the comments that came, and `more` where any did, and notes that they were heard, in one write.
    fn take_comments(&mut self, thread: &mut Thread<'_>, more: Option<Message>) -> Result<()> {
        let came = self.kit.orders.comments();
        if came.is_empty() {
            return Ok(());
        }
        let mut messages: Vec<Message> = came.iter().map(message).collect();
        messages.extend(more);
        let mut mark = self.marked();
        for comment in &came {
            mark.seen = later(mark.seen.take(), Some(comment.id.clone()));
        }
        thread.say_noting(ABOUT, mark.raw()?, messages)?;
        // Not before they are said: the process that goes on after a write that failed must hear them again.
        self.mark.seen = mark.seen;
        for TaskComment { author, .. } in came {
            self.tell(TaskProgress::Comment { author });
        }
        Ok(())
    }

    /// The table of sessions hears at once what was counted: people look at it, and a process may be killed. What is
    /// derived from the journal follows now and then.
    fn settle(&mut self, thread: &mut Thread<'_>) -> Result<()> {
        if self.settled.elapsed() < SETTLE {
            return Ok(thread.tell_debt()?);
        }
        thread.settle()?;
        self.settled = Instant::now();
        Ok(())
    }

    /// Now and then people who follow the task hear that it goes on. Not while the watch asks the tracker.
    fn report(&mut self) {
        let due = self.toll.spent().as_secs() / REPORT.as_secs();
        if due <= self.reported {
            return;
        }
        let mut source = match self.kit.source.try_lock() {
            Ok(source) => source,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => return,
        };
        let minutes = due * REPORT.as_secs() / 60;
        let LimitsUsed { turns, calls, .. } = self.toll;
        let (turns, calls) = (count(turns, "turn"), count(calls, "tool call"));
        let words = format!("Still at work after {minutes} minutes: {turns}, {calls}, now at {}.", self.node);
        let mark = format!("{}:progress:{due}", self.kit.session);
        if let Err(why) = source.say(self.kit.task, &mark, &words) {
            self.tell(TaskProgress::Trouble { why: why.to_string() });
        }
        drop(source);
        self.reported = due;
    }
}

impl<'e> NodeRunner<'e> for TaskRunner<'_, '_, 'e> {
    fn mind(&self) -> &dyn ModelSession<'e> {
        self.mind
    }

    fn between(&mut self, thread: &mut Thread<'_>, next: NextStep) -> Result<()> {
        self.follow_orders()?;
        if let Some(reached) = self.toll.reached() {
            return Err(Error::Limit(reached));
        }
        self.report();
        self.settle(thread)?;
        match next {
            NextStep::Turn => self.take_comments(thread, None),
            NextStep::Other => Ok(()),
        }
    }

    /// The tracker is asked once more. One that is away keeps no task from ending; nor does a comment keep one that was told
    /// to end, or that has reached its bounds. An issue that was closed meanwhile does not undo what was done: the task itself
    /// may have closed it.
    fn before_end(&mut self, thread: &mut Thread<'_>, may_answer: bool) -> Result<bool> {
        if let Err(why) = ask(self.kit.source, self.kit.task, self.kit.orders) {
            self.tell(TaskProgress::Trouble { why: why.to_string() });
        }
        let is_kept = self.kit.orders.now().is_some() || self.toll.reached().is_some();
        if !may_answer || is_kept || !thread.view().open().calls.is_empty() {
            return Ok(false);
        }
        self.take_comments(thread, Some(late()))?;
        wait_in(thread)
    }

    fn entered(&mut self, node: &str, label: Option<&str>, thread: &ThreadId) {
        self.node = label.unwrap_or(node).to_owned();
        let (id, label) = (node.to_owned(), label.map(str::to_owned));
        self.tell(TaskProgress::Node { id, label, thread: thread.to_string() });
    }

    fn turn(&mut self, thread: &mut Thread<'_>) -> Result<TurnResult> {
        let (mut tokens, mut repeated) = (0, None);
        let (tell, cancel) = (self.kit.tell, self.kit.orders.cancel().clone());
        let turned = self.mind.turn(thread, &cancel, &mut |news| match news {
            ExchangeEvent::Sent { tokens: sent, .. } => tokens = sent,
            ExchangeEvent::Fitted(fitted) if !fitted.done.is_empty() => {
                tell(TaskProgress::Fitted { before: fitted.verdict.tokens, after: fitted.after });
            }
            ExchangeEvent::Repeated(again) => repeated = Some((again.times, again.tool.clone())),
            ExchangeEvent::Waiting(waiting) => tell(TaskProgress::Trouble { why: waiting.why.clone() }),
            ExchangeEvent::Trouble(why) => tell(TaskProgress::Trouble { why: why.to_string() }),
            _ => {}
        });
        let turned = match turned {
            // What ended the request is the order, not what the request says of it.
            Err(_) if cancel.is_cancelled() => {
                return Err(self.follow_orders().err().unwrap_or_else(cancelled));
            }
            other => other?,
        };
        let (times, tool) = repeated.unwrap_or_default();
        self.toll.repeat(times, &tool);
        self.toll.turn(turned.reply.usage.map_or(0, |usage| usage.total()));
        let said = turned.message.words().trim().chars().take(SHOWN).collect();
        let calls = u32::try_from(turned.message.calls().count()).unwrap_or(u32::MAX);
        let turn = u32::try_from(self.toll.turns).unwrap_or(u32::MAX);
        self.tell(TaskProgress::Turn { turn, tokens, said, calls });
        Ok(turned)
    }

    fn call(&mut self, thread: &Thread<'_>, call: &Call) -> Result<ToolAnswer> {
        let began = Instant::now();
        let answer = self.kit.tools.answer(thread, call, self.kit.orders.cancel())?;
        // A call that was broken off stays open: the next worker makes it again, or tells the model.
        if self.kit.orders.cancel().is_cancelled() {
            self.follow_orders()?;
        }
        self.toll.call(answer.fault(&call.name));
        let duration_ms = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.tell(TaskProgress::Tool { name: call.name.clone(), is_error: answer.is_error, duration_ms });
        Ok(answer)
    }

    fn may_repeat(&self, name: &str) -> bool {
        self.kit.tools.may_repeat(name)
    }

    fn telling(
        &mut self,
        thread: &Thread<'_>,
        tell: &mut dyn FnMut(ChronicleBy<'_>) -> Result<()>,
    ) -> Result<()> {
        let cancel = self.kit.orders.cancel().clone();
        self.mind.telling(thread, &cancel, tell)
    }
}

fn cancelled() -> Error {
    Error::Surroundings { what: "a turn".into(), why: "it was cancelled without a reason".into() }
}

// What people say about a task while it is worked on: how the model hears it, and what becomes of words that came too late.

/// How a comment begins; the model is told of it in its brief.
const BEGIN: &str = "[comment by ";

/// What the model is told with comments that came while it wrote its last words.
const LATE: &str = "[These comments came before your last answer was sent to anybody. Take them into account; then write the \
                    summary of the whole task again, with what they changed: only your last words are sent.]";

/// A comment as the model hears it.
pub(super) fn message(comment: &TaskComment) -> Message {
    Message::text(Role::User, format!("{BEGIN}{}]\n{}", comment.author, comment.text))
}

/// What is said after comments that came late.
pub(super) fn late() -> Message {
    Message::text(Role::User, LATE)
}

/// True when a comment was said in a thread after the model's last words. Told by the journal, not by who took it in:
/// they may have been killed in between.
pub(super) fn wait_in(thread: &Thread<'_>) -> Result<bool> {
    let is_said = |kind| matches!(kind, Kind::Assistant | Kind::User);
    let waits = thread.newest(is_said, |record| match record.entry {
        Entry::Message(message, None) if message.role == Role::User => {
            message.words().starts_with(BEGIN).then_some(true)
        }
        Entry::Message(_, Some(_)) => Some(false),
        _ => None,
    })?;
    Ok(waits.unwrap_or(false))
}

/// What came of a task, with a word about comments that were not taken in.
pub(super) fn with_unheard(kit: &TaskContext<'_>, result: &str) -> String {
    let authors: BTreeSet<String> = kit.orders.comments().into_iter().map(|comment| comment.author).collect();
    match authors.is_empty() {
        true => result.to_owned(),
        false => format!(
            "{}\n\nNot taken into account: what {} wrote while this was being finished.",
            result.trim_end(),
            authors.into_iter().collect::<Vec<_>>().join(", ")
        ),
    }
}
