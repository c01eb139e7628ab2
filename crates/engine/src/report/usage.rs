//! How much was used: by day, by week, by user and by model, in one pass.

use super::range::{day_name, monday, week_name};
use super::table::{TableRow, TopTable, add_fields};
use super::{EntryCounter, ReportDepth, ReportQuery, SeenEntry, SessionCoverage, UNNAMED};
use jiff::Timestamp;
use komado_core::journal::{Entry, Usage as Took};
use komado_core::message::Role;
use komado_core::session::{Counters, Session};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// Users that are counted each by themselves, and models.
const ROOM: usize = 4_096;
/// Models of one session that are told apart.
const MODELS: usize = 64;

/// What was used.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Sums {
    made: u64,
    active: u64,
    turns: u64,
    messages: u64,
    calls: u64,
    tokens: u64,
    tokens_in: u64,
    tokens_out: u64,
    counted: u64,
    tools: u64,
    compactions: u64,
    bytes: u64,
}

impl TableRow for Sums {
    fn merge(&mut self, other: &Self) {
        add_fields!(self, other; made, active, turns, messages, calls, tokens, tokens_in, tokens_out);
        add_fields!(self, other; counted, tools, compactions, bytes);
    }

    fn weight(&self) -> u64 {
        self.active.max(self.made)
    }
}

impl Sums {
    /// What one entry adds.
    fn of(seen: &SeenEntry<'_>) -> Self {
        let counters = Counters::of(&seen.record.entry);
        let mut sums = Self {
            turns: u64::from(seen.opens_turn),
            messages: u64::from(matches!(seen.record.entry, Entry::Message(..))),
            calls: counters.llm_call_count,
            tools: counters.tool_call_count,
            compactions: counters.compression_count,
            bytes: seen.bytes,
            ..Self::default()
        };
        match (took(&seen.record.entry), &seen.record.entry) {
            (Some(usage), _) => {
                sums.tokens_out = usage.output_tokens;
                sums.tokens_in = usage.total() - usage.output_tokens;
            }
            // The provider did not say what it took: what we count ourselves is the next best.
            (None, Entry::Message(message, _)) if message.role == Role::Assistant => {
                sums.tokens_out = u64::from(seen.record.tokens);
                sums.tokens_in = seen.asked.unwrap_or(0);
                sums.counted = sums.tokens_out + sums.tokens_in;
            }
            _ => {}
        }
        sums.tokens = sums.tokens_in + sums.tokens_out;
        sums
    }

    /// What a session's row says of its whole life.
    fn of_row(session: &Session) -> Self {
        let counters = &session.counters;
        Self {
            calls: counters.llm_call_count,
            tokens: counters.total_tokens,
            tools: counters.tool_call_count,
            compactions: counters.compression_count,
            ..Self::default()
        }
    }

    fn told(&self, key: String, depth: ReportDepth) -> UsageRow {
        let known = |figure: u64| (depth == ReportDepth::Journals).then_some(figure);
        UsageRow {
            key,
            sessions_made: self.made,
            sessions_active: self.active,
            turns: known(self.turns),
            messages: known(self.messages),
            model_calls: self.calls,
            tokens: self.tokens,
            tokens_in: known(self.tokens_in),
            tokens_out: known(self.tokens_out),
            tokens_counted: known(self.counted),
            tool_calls: self.tools,
            compactions: self.compactions,
            bytes: known(self.bytes),
        }
    }
}

/// What the provider said an entry took.
fn took(entry: &Entry) -> Option<Took> {
    match entry {
        Entry::Message(_, Some(reply)) | Entry::Lost(reply) => reply.usage,
        Entry::Edit(edit) => edit.cause.usage,
        Entry::Chronicle(chronicle) => chronicle.usage,
        _ => None,
    }
}

/// A row of the report. What only journals know is absent where none was read.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct UsageRow {
    /// The day, the week, the user or the model; `total` for all.
    pub key: String,
    /// Sessions that were made.
    pub sessions_made: u64,
    /// Sessions in which something was said or done.
    pub sessions_active: u64,
    /// Times that a person began to speak.
    pub turns: Option<u64>,
    /// Messages of anyone, tools too.
    pub messages: Option<u64>,
    /// Calls to models.
    pub model_calls: u64,
    /// Tokens in and out.
    pub tokens: u64,
    /// Tokens read by models.
    pub tokens_in: Option<u64>,
    /// Tokens written by models.
    pub tokens_out: Option<u64>,
    /// How many of them we counted, where no provider said.
    pub tokens_counted: Option<u64>,
    /// Answers from tools.
    pub tool_calls: u64,
    /// Edits that made a view smaller.
    pub compactions: u64,
    /// Bytes of the journals.
    pub bytes: Option<u64>,
}

/// The part of a report about usage.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct UsageReport {
    /// All together.
    pub total: UsageRow,
    /// Every day, also those on which nothing was.
    pub by_day: Vec<UsageRow>,
    /// Every ISO week.
    pub by_week: Vec<UsageRow>,
    /// The busiest users; a session without a user is one of `-`.
    pub by_user: Vec<UsageRow>,
    /// All other users together.
    pub other_users: Option<UsageRow>,
    /// The most used models.
    pub by_model: Vec<UsageRow>,
    /// All other models together.
    pub other_models: Option<UsageRow>,
    /// By how many sessions a single row of users or models may be short; the others have them.
    pub short_by: u64,
}

/// Counts usage.
pub(crate) struct UsageCounts {
    total: Sums,
    days: BTreeMap<i32, Sums>,
    weeks: BTreeMap<i32, Sums>,
    users: TopTable<Sums>,
    models: TopTable<Sums>,
    /// What the session at hand was active on.
    on_days: BTreeSet<i32>,
    of_models: BTreeMap<String, Sums>,
}

impl UsageCounts {
    pub(crate) fn new(ask: &ReportQuery) -> Self {
        let days: BTreeMap<i32, Sums> =
            (ask.range.first_day()..=ask.range.last_day()).map(|day| (day, Sums::default())).collect();
        let weeks = days.keys().map(|day| (monday(*day), Sums::default())).collect();
        Self {
            total: Sums::default(),
            days,
            weeks,
            users: TopTable::new(ROOM),
            models: TopTable::new(ROOM),
            on_days: BTreeSet::new(),
            of_models: BTreeMap::new(),
        }
    }

    fn on_day(&mut self, day: i32, sums: &Sums) {
        if let Some(row) = self.days.get_mut(&day) {
            row.merge(sums);
        }
        if let Some(row) = self.weeks.get_mut(&monday(day)) {
            row.merge(sums);
        }
    }

    fn of_model(&mut self, model: &str) -> &mut Sums {
        let known = self.of_models.contains_key(model) || self.of_models.len() < MODELS;
        self.of_models.entry(if known { model } else { UNNAMED }.to_owned()).or_default()
    }

    fn add(&mut self, user: &str, model: &str, day: i32, sums: &Sums) {
        self.total.merge(sums);
        self.on_day(day, sums);
        self.users.row(user).merge(sums);
        self.of_model(model).merge(sums);
    }

    /// The table as rows.
    pub(crate) fn told(self, ask: &ReportQuery) -> UsageReport {
        let told = |name: String, sums: &Sums| sums.told(name, ask.depth);
        let short_by = self.users.short_by().max(self.models.short_by());
        let split = |table: TopTable<Sums>| {
            let (rows, others) = table.top(ask.top);
            let rows = rows.into_iter().map(|(name, sums)| told(name, &sums)).collect();
            (rows, others.map(|sums| told("others".to_owned(), &sums)))
        };
        let ((by_user, other_users), (by_model, other_models)) = (split(self.users), split(self.models));
        UsageReport {
            total: told("total".to_owned(), &self.total),
            by_day: self.days.iter().map(|(day, sums)| told(day_name(*day), sums)).collect(),
            by_week: self.weeks.iter().map(|(monday, sums)| told(week_name(*monday), sums)).collect(),
            by_user,
            other_users,
            by_model,
            other_models,
            short_by,
        }
    }
}

fn user(session: &Session) -> &str {
    session.meta.user.as_deref().unwrap_or(UNNAMED)
}

fn model(session: &Session) -> &str {
    session.meta.config.model.as_deref().unwrap_or(UNNAMED)
}

impl EntryCounter for UsageCounts {
    fn begin(&mut self, session: &Session, ask: &ReportQuery) {
        let at = |text: &str| text.parse::<Timestamp>().ok().filter(|time| ask.range.holds(*time));
        let made = at(&session.meta.created_at).filter(|_| ask.is_about(model(session)));
        if let Some(made) = made {
            let mut sums = Sums { made: 1, ..Sums::default() };
            if ask.depth == ReportDepth::Rows {
                sums.merge(&Sums::of_row(session));
            }
            self.add(user(session), model(session), ask.range.day(made), &sums);
        }
        if ask.depth == ReportDepth::Rows && ask.is_about(model(session)) {
            let days = made.into_iter().chain(at(&session.updated_at)).map(|time| ask.range.day(time));
            self.on_days.extend(days);
            self.of_model(model(session));
        }
    }

    fn take(&mut self, seen: &SeenEntry<'_>, ask: &ReportQuery) {
        let Some(time) = seen.time.filter(|_| seen.counts) else { return };
        let day = ask.range.day(time);
        self.on_days.insert(day);
        self.add(user(seen.session), seen.model, day, &Sums::of(seen));
    }

    fn end(&mut self, session: &Session, ask: &ReportQuery, _: SessionCoverage) {
        let days = std::mem::take(&mut self.on_days);
        for (model, mut sums) in std::mem::take(&mut self.of_models) {
            // A model for which the session was made and which was never asked was not at work.
            let worked = sums.bytes > 0 || ask.depth == ReportDepth::Rows;
            sums.active = u64::from(worked && !days.is_empty());
            self.models.row(&model).merge(&sums);
        }
        if days.is_empty() {
            return;
        }
        self.total.active += 1;
        self.users.row(user(session)).active += 1;
        let weeks: BTreeSet<i32> = days.iter().map(|day| monday(*day)).collect();
        for day in days {
            self.days.entry(day).or_default().active += 1;
        }
        for week in weeks {
            self.weeks.entry(week).or_default().active += 1;
        }
    }
}
