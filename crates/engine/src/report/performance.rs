//! How well agents do: how many turns they take, how long, what fails, and what is saved.
//!
//! Only what was journaled is told. A time is known where a request was journaled with its answer; where words were brought in
//! from elsewhere, the time says when they were brought, and is left out.

use super::table::{Distribution, FigureSpread, TableRow, TopTable, add_fields, round};
use super::{EntryCounter, ReportQuery, SeenEntry, SessionCoverage, UNNAMED};
use crate::recall::NAME as RECALL;
use jiff::Timestamp;
use komado_core::journal::{Edit, EditKind, Entry, Reply};
use komado_core::message::{Message, Role};
use komado_core::session::{Session, State};
use komado_core::{Seq, ThreadId};
use serde::Serialize;
use std::collections::HashMap;

/// Models that are counted each by themselves.
const MODELS: usize = 64;
/// Tools.
const TOOLS: usize = 512;
/// Calls of one message whose tools are remembered.
const CALLS: usize = 256;

/// What a model, or all of them, did: the counts as they are told, and times still to be summed up.
#[derive(Clone, Debug, Default)]
struct Deeds {
    counts: ModelPerformance,
    turns: FigureSpread,
    seconds: FigureSpread,
    first_seconds: FigureSpread,
}

impl TableRow for Deeds {
    fn merge(&mut self, other: &Self) {
        self.turns.merge(&other.turns);
        self.seconds.merge(&other.seconds);
        self.first_seconds.merge(&other.first_seconds);
        let (ours, theirs) = (&mut self.counts, &other.counts);
        add_fields!(ours, theirs; completed, failed, stopped, requests, retries, overflows, failures, recalls);
        add_fields!(ours, theirs; tool_calls, tool_errors, condensed, truncated, trimmed);
        add_fields!(ours, theirs; tokens_before, tokens_after);
    }

    fn weight(&self) -> u64 {
        let ModelPerformance { requests, tool_calls, completed, failed, stopped, .. } = self.counts;
        requests + tool_calls + completed + failed + stopped
    }
}

/// What is told of a model. A rate without anything to count is absent, and so is a time that was not journaled.
#[derive(Clone, PartialEq, Debug, Default, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ModelPerformance {
    /// The model; `all` for all of them.
    pub model: String,
    /// Sessions that ended well in this time.
    pub completed: u64,
    /// Sessions that failed.
    pub failed: u64,
    /// Sessions that were stopped or broken off.
    pub stopped: u64,
    /// Turns of the sessions that ended well.
    pub turns_to_finish: Option<Distribution>,
    /// Seconds from what a person said to the last answer to it.
    pub seconds_per_turn: Option<Distribution>,
    /// Seconds to the first answer.
    pub seconds_to_first_answer: Option<Distribution>,
    /// Requests to models.
    pub requests: u64,
    /// Requests that were sent again after one was lost.
    pub retries: u64,
    /// Retries for each request.
    pub retry_rate: Option<f64>,
    /// Requests that were too large for the model.
    pub overflows: u64,
    /// Overflows for each request.
    pub overflow_rate: Option<f64>,
    /// Requests that brought nothing for another reason.
    pub failures: u64,
    /// Answers from tools.
    pub tool_calls: u64,
    /// Those that were errors.
    pub tool_errors: u64,
    /// Errors for each answer.
    pub tool_error_rate: Option<f64>,
    /// Summaries in place of spans.
    pub condensed: u64,
    /// Markers in place of spans.
    pub truncated: u64,
    /// Placeholders in place of contents.
    pub trimmed: u64,
    /// Tokens of views before they were made smaller.
    pub tokens_before: u64,
    /// Tokens of the same views after.
    pub tokens_after: u64,
    /// What was left of each token.
    pub compression_ratio: Option<f64>,
    /// Times that a model looked something up that it no longer saw.
    pub recalls: u64,
}

impl Deeds {
    fn told(self, model: String) -> ModelPerformance {
        let rate = |part: u64, whole: u64| (whole > 0).then(|| round(part as f64 / whole as f64));
        let counts = self.counts;
        ModelPerformance {
            model,
            turns_to_finish: self.turns.told().map(whole),
            seconds_per_turn: self.seconds.told(),
            seconds_to_first_answer: self.first_seconds.told(),
            retry_rate: rate(counts.retries, counts.requests),
            overflow_rate: rate(counts.overflows, counts.requests),
            tool_error_rate: rate(counts.tool_errors, counts.tool_calls),
            compression_ratio: rate(counts.tokens_after, counts.tokens_before),
            ..counts
        }
    }
}

/// Turns are whole; a sketch is not.
fn whole(spread: Distribution) -> Distribution {
    Distribution { p50: spread.p50.round(), p90: spread.p90.round(), p99: spread.p99.round(), ..spread }
}

/// What a tool did.
#[derive(Clone, Copy, Debug, Default)]
struct ToolDeeds {
    calls: u64,
    errors: u64,
    interrupted: u64,
    timed: u64,
    millis: u64,
}

impl TableRow for ToolDeeds {
    fn merge(&mut self, other: &Self) {
        add_fields!(self, other; calls, errors, interrupted, timed, millis);
    }

    fn weight(&self) -> u64 {
        self.calls
    }
}

/// What is told of a tool.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ToolUsage {
    /// Its name.
    pub tool: String,
    /// Answers.
    pub calls: u64,
    /// Answers that were errors.
    pub errors: u64,
    /// Calls without a result.
    pub interrupted: u64,
    /// Errors for each answer.
    pub error_rate: f64,
    /// How long it ran on average, where that was journaled.
    pub mean_ms: Option<f64>,
}

impl ToolDeeds {
    fn told(self, tool: String) -> ToolUsage {
        ToolUsage {
            tool,
            calls: self.calls,
            errors: self.errors,
            interrupted: self.interrupted,
            error_rate: round(self.errors as f64 / self.calls.max(1) as f64),
            mean_ms: (self.timed > 0).then(|| round(self.millis as f64 / self.timed as f64)),
        }
    }
}

/// The part of a report about performance.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Performance {
    /// All models together.
    pub overall: ModelPerformance,
    /// Each of the most used.
    pub by_model: Vec<ModelPerformance>,
    /// All others together.
    pub other_models: Option<ModelPerformance>,
    /// The most used tools.
    pub tools: Vec<ToolUsage>,
    /// All others together.
    pub other_tools: Option<ToolUsage>,
}

/// A turn that goes on.
struct Turn {
    began: Timestamp,
    model: String,
    first: Option<Timestamp>,
    last: Option<Timestamp>,
    asked: bool,
    counts: bool,
}

/// Counts what was done.
pub(crate) struct PerformanceCounts {
    overall: Deeds,
    models: TopTable<Deeds>,
    tools: TopTable<ToolDeeds>,
    /// Where one is in the session at hand.
    thread: Option<ThreadId>,
    turn: Option<Turn>,
    turns: u64,
    lost: Option<Seq>,
    calls: HashMap<String, String>,
}

impl PerformanceCounts {
    pub(crate) fn new() -> Self {
        Self {
            overall: Deeds::default(),
            models: TopTable::new(MODELS),
            tools: TopTable::new(TOOLS),
            thread: None,
            turn: None,
            turns: 0,
            lost: None,
            calls: HashMap::new(),
        }
    }

    pub(crate) fn told(self, ask: &ReportQuery) -> Performance {
        let (models, others) = self.models.top(ask.top);
        let (tools, other_tools) = self.tools.top(ask.top);
        Performance {
            overall: self.overall.told("all".to_owned()),
            by_model: models.into_iter().map(|(model, deeds)| deeds.told(model)).collect(),
            other_models: others.map(|deeds| deeds.told("others".to_owned())),
            tools: tools.into_iter().map(|(tool, deeds)| deeds.told(tool)).collect(),
            other_tools: other_tools.map(|deeds| deeds.told("others".to_owned())),
        }
    }

    fn note(&mut self, model: &str, note: impl Fn(&mut Deeds)) {
        note(&mut self.overall);
        note(self.models.row(model));
    }

    fn message(&mut self, seen: &SeenEntry<'_>, message: &Message, reply: Option<&Reply>) {
        self.lost = None;
        match message.role {
            Role::Assistant => {
                self.remember(message);
                if let (Some(turn), Some(time), Some(_)) = (&mut self.turn, seen.time, reply) {
                    turn.first = turn.first.or(Some(time));
                    turn.last = Some(time);
                }
                let recalls = message.calls().filter(|call| is_recall(&call.name)).count() as u64;
                if seen.counts && recalls > 0 {
                    self.note(seen.model, |deeds| deeds.counts.recalls += recalls);
                }
            }
            Role::Tool => self.tool(seen, message),
            _ => {}
        }
    }

    fn remember(&mut self, message: &Message) {
        let mut calls = message.calls().take(CALLS).peekable();
        if calls.peek().is_some() {
            self.calls = calls.map(|call| (call.id.clone(), call.name.clone())).collect();
        }
    }

    fn tool(&mut self, seen: &SeenEntry<'_>, message: &Message) {
        let Some(outcome) = message.outcome().filter(|_| seen.counts) else { return };
        let named = outcome.name.as_deref().or(message.name.as_deref());
        let name =
            named.or(self.calls.get(&outcome.call_id).map(String::as_str)).unwrap_or(UNNAMED).to_owned();
        let deeds = ToolDeeds {
            calls: 1,
            errors: u64::from(outcome.is_error),
            interrupted: u64::from(outcome.interrupted),
            timed: u64::from(outcome.duration_ms.is_some()),
            millis: outcome.duration_ms.unwrap_or(0),
        };
        self.tools.row(&name).merge(&deeds);
        self.note(seen.model, |all| {
            all.counts.tool_calls += 1;
            all.counts.tool_errors += deeds.errors;
        });
    }

    fn request(&mut self, seen: &SeenEntry<'_>) {
        if let Some(turn) = &mut self.turn {
            turn.asked = true;
            seen.model.clone_into(&mut turn.model);
        }
        let again = u64::from(self.lost.take().is_some());
        if seen.counts {
            self.note(seen.model, |deeds| {
                deeds.counts.requests += 1;
                deeds.counts.retries += again;
            });
        }
    }

    fn lose(&mut self, seen: &SeenEntry<'_>, reply: &Reply) {
        // What was asked for a summary or a chronicle in vain is not a request of the conversation.
        if matches!(reply.finish.as_str(), "declined" | "untold") {
            return;
        }
        self.lost = Some(seen.record.seq);
        let overflow = u64::from(reply.finish == "overflow");
        if seen.counts {
            self.note(seen.model, |deeds| {
                deeds.counts.overflows += overflow;
                deeds.counts.failures += 1 - overflow;
            });
        }
    }

    fn edit(&mut self, seen: &SeenEntry<'_>, edit: &Edit) {
        let at = EditKind::ALL.iter().position(|kind| *kind == edit.kind).unwrap_or(0);
        self.note(seen.model, |deeds| {
            let ModelPerformance { condensed, truncated, trimmed, .. } = &mut deeds.counts;
            *[condensed, truncated, trimmed][at] += 1;
            deeds.counts.tokens_before += edit.cause.before;
            deeds.counts.tokens_after += edit.cause.after;
        });
    }

    fn open_turn(&mut self, seen: &SeenEntry<'_>) {
        self.close_turn();
        self.turns += u64::from(seen.header.thread.is_root());
        self.turn = seen.time.map(|began| Turn {
            began,
            model: seen.model.to_owned(),
            first: None,
            last: None,
            asked: false,
            counts: seen.counts,
        });
    }

    fn close_turn(&mut self) {
        let Some(turn) = self.turn.take().filter(|turn| turn.counts && turn.asked) else { return };
        let (Some(first), Some(last)) = (turn.first, turn.last) else { return };
        let seconds = |time: Timestamp| time.duration_since(turn.began).as_secs_f64();
        self.note(&turn.model, |deeds| {
            deeds.seconds.add(seconds(last));
            deeds.first_seconds.add(seconds(first));
        });
    }
}

fn is_recall(name: &str) -> bool {
    name == RECALL || name.strip_suffix(RECALL).is_some_and(|before| before.ends_with("__"))
}

impl EntryCounter for PerformanceCounts {
    fn begin(&mut self, _: &Session, _: &ReportQuery) {
        (self.thread, self.turn, self.turns, self.lost) = (None, None, 0, None);
        self.calls.clear();
    }

    fn take(&mut self, seen: &SeenEntry<'_>, _: &ReportQuery) {
        if self.thread.as_ref() != Some(&seen.header.thread) {
            self.close_turn();
            self.thread = Some(seen.header.thread.clone());
            self.lost = None;
        }
        if seen.opens_turn {
            self.open_turn(seen);
        }
        match &seen.record.entry {
            Entry::Message(message, reply) => self.message(seen, message, reply.as_ref()),
            Entry::Sent(sent) if sent.purpose.is_none() => self.request(seen),
            Entry::Lost(reply) => self.lose(seen, reply),
            Entry::Edit(edit) if seen.counts => self.edit(seen, edit),
            _ => {}
        }
    }

    fn end(&mut self, session: &Session, ask: &ReportQuery, told: SessionCoverage) {
        // How the last turn of a session that broke off went on is not known, nor how many there were.
        if told == SessionCoverage::Part {
            self.turn = None;
        }
        self.close_turn();
        let model = session.meta.config.model.as_deref().unwrap_or(UNNAMED);
        let ended = session.completed_at.as_deref().and_then(|time| time.parse().ok());
        if !ended.is_some_and(|time| ask.range.holds(time)) || !ask.is_about(model) {
            return;
        }
        let Some(at) =
            [State::Completed, State::Failed, State::Stopped].iter().position(|s| *s == session.status)
        else {
            return;
        };
        let turns = (at == 0 && told == SessionCoverage::Whole).then_some(self.turns as f64);
        self.note(model, |deeds| {
            let ModelPerformance { completed, failed, stopped, .. } = &mut deeds.counts;
            *[completed, failed, stopped][at] += 1;
            turns.iter().for_each(|turns| deeds.turns.add(*turns));
        });
    }
}
