//! A past conversation, gone through again call by call under a budget: what would have been sent, and at what price.
//!
//! Before each message of the model there was a request. Here each of them is made again: the view is fitted, checked as
//! a provider would, compared with the one before, and priced beside a run without any management. At the end every
//! byte that was hidden is fetched back and compared, and all edits are undone. Nothing is estimated; the same fold,
//! ladder and store run as live.

use crate::condense::{Settings, Summariser};
use crate::error::{Error, Result};
use crate::fit::Ladder;
use crate::thread::Thread;
use crate::{Clock, Engine};
use komado_core::budget::Budget;
use komado_core::message::{Message, Role};
use komado_core::session::{Meta, MetaConfig, TaskKey};
use komado_core::{Meter, Seq, SessionId, ThreadId};
use komado_store::{MemoryStore, Mode};
use serde::Serialize;
use std::sync::Arc;

mod proof;
mod request;

use request::{Request, Seen};

/// What a cached token costs, beside one that is read for the first time without a cache.
const CACHED: f64 = 0.1;

/// What a token costs that is read and put into the cache.
const WRITTEN: f64 = 1.25;

/// What came of a conversation, or of many.
#[derive(Clone, Debug, Default, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Report {
    /// Requests made.
    pub calls: u64,
    /// Tokens of all requests.
    pub tokens_sent: u64,
    /// Tokens they would have had without management.
    pub tokens_raw: u64,
    /// Tokens of the largest request.
    pub peak_tokens: u64,
    /// Requests larger than the window.
    pub over_window: u64,
    /// Requests that OpenAI or Anthropic would refuse.
    pub invalid: u64,
    /// Edits made.
    pub edits: u64,
    /// Requests that do not begin with all of the one before.
    pub prefix_breaks: u64,
    /// Those of them without an edit in between; none, if all is well.
    pub breaks_without_edit: u64,
    /// Price of the input beside that without management.
    pub cost_ratio: f64,
    /// Bytes that the last request does not show.
    pub hidden_bytes: u64,
    /// Bytes of those that neither a ref nor an entry's number brings back.
    pub unrecoverable_bytes: u64,
    /// Conversations whose full view did not come back byte for byte when all edits were undone.
    pub not_restored: u64,
    /// Requests below the floor: what must stay is more than the window holds. They are sent as they are.
    pub below_floor: u64,
    /// Messages that could not be taken in.
    pub refused: u64,
    /// Why the first of them could not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub refused_why: Option<String>,
    #[serde(skip)]
    cost: Cost,
}

#[derive(Clone, Copy, Debug, Default)]
struct Cost {
    managed: f64,
    raw: f64,
}

impl Report {
    /// Adds another.
    pub fn add(&mut self, other: &Self) {
        self.calls += other.calls;
        self.tokens_sent += other.tokens_sent;
        self.tokens_raw += other.tokens_raw;
        self.peak_tokens = self.peak_tokens.max(other.peak_tokens);
        self.over_window += other.over_window;
        self.invalid += other.invalid;
        self.edits += other.edits;
        self.prefix_breaks += other.prefix_breaks;
        self.breaks_without_edit += other.breaks_without_edit;
        self.hidden_bytes += other.hidden_bytes;
        self.unrecoverable_bytes += other.unrecoverable_bytes;
        self.not_restored += other.not_restored;
        self.below_floor += other.below_floor;
        self.refused += other.refused;
        self.refused_why = self.refused_why.take().or_else(|| other.refused_why.clone());
        self.cost.managed += other.cost.managed;
        self.cost.raw += other.cost.raw;
        self.price();
    }

    fn price(&mut self) {
        self.cost_ratio = if self.cost.raw > 0.0 { self.cost.managed / self.cost.raw } else { 1.0 };
    }

    /// True when every promise held.
    pub fn is_clean(&self) -> bool {
        self.over_window == 0
            && self.invalid == 0
            && self.breaks_without_edit == 0
            && self.unrecoverable_bytes == 0
            && self.not_restored == 0
            && self.refused == 0
    }
}

struct Still;

impl Clock for Still {
    fn now(&self) -> String {
        "2000-01-01T00:00:00.000000Z".into()
    }
}

/// How to replay.
pub struct Replay<'a> {
    /// The budget of every request.
    pub budget: Budget,
    /// How tokens are counted.
    pub meter: Meter,
    /// Limits of an output on arrival.
    pub clip: Option<komado_core::clip::Limits>,
    /// How a span is condensed.
    pub settings: Settings,
    /// Who writes summaries.
    pub by: &'a mut dyn Summariser,
}

impl Replay<'_> {
    /// Goes through one conversation.
    pub fn run(&mut self, talk: Vec<Message>) -> Result<Report> {
        let engine = Engine::new(Arc::new(MemoryStore::default()), Arc::new(Still));
        let id = SessionId::new("replay")?;
        engine.create(&meta(&id, self.meter))?;
        let mut thread = engine
            .open(&id, &ThreadId::root(), Mode::Write)?
            .clipping(self.clip.as_ref().map(|limits| self.budget.limits(limits)));
        let mut run = Run::default();
        let mut said: Vec<(Seq, Message)> = Vec::with_capacity(talk.len());
        for message in talk {
            if message.role == Role::Assistant {
                self.call(&mut thread, &mut run)?;
            }
            match thread.say(message.clone()) {
                Ok(seq) => {
                    run.hear(&message, self.meter);
                    said.push((seq, message));
                }
                Err(error @ (Error::Refused(_) | Error::NoCallFits { .. })) => {
                    run.report.refused += 1;
                    run.report.refused_why.get_or_insert_with(|| error.to_string());
                }
                Err(error) => return Err(error),
            }
        }
        proof::prove(&mut thread, &said, &mut run.report)?;
        run.report.price();
        Ok(run.report)
    }

    /// One request: fitted, checked, priced.
    fn call(&mut self, thread: &mut Thread<'_>, run: &mut Run) -> Result<()> {
        thread.answer_open_calls()?;
        let mut ladder =
            Ladder { budget: self.budget.clone(), settings: self.settings.clone(), by: &mut *self.by };
        let before = thread.last();
        match thread.fit(&mut ladder) {
            Ok(fitted) => run.report.edits += fitted.done.len() as u64,
            Err(Error::Floor(_)) => run.report.below_floor += 1,
            Err(error) => return Err(error),
        }
        run.edited = thread.last() > before;
        run.send(thread, self.budget.window)
    }
}

fn meta(id: &SessionId, meter: Meter) -> Meta {
    Meta {
        uuid: id.to_string(),
        task_key: TaskKey::local(id),
        created_at: Still.now(),
        process_id: 0,
        hostname: String::new(),
        config: MetaConfig { meter: meter.name().into(), ..MetaConfig::default() },
        user: None,
        queued: false,
    }
}

/// A conversation on its way.
#[derive(Default)]
struct Run {
    report: Report,
    before: Request,
    seen: Seen,
    /// Tokens of everything said so far.
    raw: u64,
    /// Those of them that a run without management has sent already.
    raw_sent: u64,
    edited: bool,
    /// Who spoke first, beside the system.
    begun_by: Option<Role>,
}

impl Run {
    fn hear(&mut self, message: &Message, meter: Meter) {
        self.raw += u64::from(meter.message(message));
        if !matches!(message.role, Role::System | Role::Developer) {
            self.begun_by.get_or_insert(message.role);
        }
    }

    fn send(&mut self, thread: &Thread<'_>, window: u64) -> Result<()> {
        let request = Request::of(thread, &mut self.seen)?;
        let report = &mut self.report;
        let tokens = request.tokens();
        report.calls += 1;
        report.tokens_sent += tokens;
        report.tokens_raw += self.raw;
        report.peak_tokens = report.peak_tokens.max(tokens);
        report.over_window += u64::from(tokens > window);
        report.invalid += u64::from(!request.is_valid(self.begun_by));
        let shared = request.shared_with(&self.before);
        if shared.messages < self.before.len() {
            report.prefix_breaks += 1;
            report.breaks_without_edit += u64::from(!self.edited);
        }
        report.cost.managed += price(shared.tokens, tokens - shared.tokens);
        report.cost.raw += price(self.raw_sent, self.raw - self.raw_sent);
        self.raw_sent = self.raw;
        self.before = request;
        Ok(())
    }
}

#[allow(clippy::cast_precision_loss)]
fn price(cached: u64, written: u64) -> f64 {
    CACHED * cached as f64 + WRITTEN * written as f64
}
