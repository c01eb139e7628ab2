//! How a user talks: when, how often, about what, with which models and tools, and how it goes.
//!
//! One pass over their journals; only sums are held, and of what can be anything, what comes most often.

use super::often::Often;
use super::recent::said;
use crate::engine::Engine;
use crate::error::Result;
use crate::recall::terms;
use komado_core::SessionId;
use komado_core::head::Source;
use komado_core::journal::{Entry, Record, Reply};
use komado_core::session::{Counters, Session};
use komado_store::{Journal, Mode, Query};
use serde::Serialize;
use std::collections::BTreeMap;

/// Names that are told.
const TOLD: usize = 10;
/// Names that are remembered while counting.
const REMEMBERED: usize = 2_000;
/// Characters of a question that are compared and told.
const QUESTION: usize = 80;

/// A name and how often it came.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Share {
    /// The name.
    pub name: String,
    /// How often.
    pub count: u64,
}

/// What is known of a user's conversations.
#[derive(Clone, PartialEq, Debug, Default, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Habits {
    /// The name.
    pub user: String,
    /// Sessions.
    pub sessions: u64,
    /// Sessions by state.
    pub by_status: BTreeMap<&'static str, u64>,
    /// When the first session was made.
    pub first_seen: Option<String>,
    /// When anything of theirs last changed.
    pub last_seen: Option<String>,
    /// Messages of the user.
    pub turns: u64,
    /// Messages of models.
    pub replies: u64,
    /// Answers from tools.
    pub tool_calls: u64,
    /// Tokens all calls took.
    pub total_tokens: u64,
    /// Characters of a user's message, on average.
    pub mean_turn_chars: f64,
    /// Characters of a reply, on average.
    pub mean_reply_chars: f64,
    /// Requests that were refused as too large.
    pub overflows: u64,
    /// Edits that made a view smaller.
    pub compactions: u64,
    /// Overflows for each of the user's messages.
    pub overflow_rate: f64,
    /// Compactions for each of the user's messages.
    pub compaction_rate: f64,
    /// Models that answered.
    pub models: Vec<Share>,
    /// Tools that were called.
    pub tools: Vec<Share>,
    /// The user's messages by hour of the day (UTC), from 0 to 23.
    pub hours: Vec<u64>,
    /// Words that the user says most often.
    pub words: Vec<Share>,
    /// How the user's messages begin most often, where they begin so more than once.
    pub questions: Vec<Share>,
}

struct Count {
    habits: Habits,
    turn_chars: u64,
    reply_chars: u64,
    models: Often,
    tools: Often,
    words: Often,
    questions: Often,
}

impl Engine {
    /// What is known of a user's conversations.
    pub fn habits(&self, user: &str) -> Result<Habits> {
        self.known_user(user)?;
        let mut count = Count::new(user);
        self.each_session(Query { user: Some(user.to_owned()), ..Query::default() }, |session| {
            count.session(session);
            let id = SessionId::new(session.meta.uuid.as_str())?;
            for header in self.store().threads(&id)? {
                count.journal(&*self.store().open(&id, &header.thread, Mode::Read)?)?;
            }
            Ok(())
        })?;
        Ok(count.finish())
    }
}

impl Count {
    fn new(user: &str) -> Self {
        let habits = Habits { user: user.to_owned(), hours: vec![0; 24], ..Habits::default() };
        let often = || Often::new(REMEMBERED);
        Self {
            habits,
            turn_chars: 0,
            reply_chars: 0,
            models: often(),
            tools: often(),
            words: often(),
            questions: often(),
        }
    }

    fn session(&mut self, session: &Session) {
        let habits = &mut self.habits;
        habits.sessions += 1;
        *habits.by_status.entry(session.status.name()).or_default() += 1;
        let made = &session.meta.created_at;
        if habits.first_seen.as_ref().is_none_or(|first| made < first) {
            habits.first_seen = Some(made.clone());
        }
        if habits.last_seen.as_ref().is_none_or(|last| session.updated_at > *last) {
            habits.last_seen = Some(session.updated_at.clone());
        }
    }

    fn journal(&mut self, journal: &dyn Journal) -> Result<()> {
        for seq in journal.header().base_seq() + 1..=journal.last() {
            self.record(&Source::record(journal, seq)?);
        }
        Ok(())
    }

    fn record(&mut self, record: &Record) {
        let counters = Counters::of(&record.entry);
        self.habits.total_tokens += counters.total_tokens;
        self.habits.tool_calls += counters.tool_call_count;
        self.habits.compactions += counters.compression_count;
        match &record.entry {
            Entry::Message(message, reply) => {
                message.calls().for_each(|call| self.tools.add(&call.name));
                match said(record) {
                    Some(("user", text)) => self.turn(&record.timestamp, &text),
                    Some((_, text)) => {
                        self.habits.replies += 1;
                        self.reply_chars += text.chars().count() as u64;
                    }
                    None => {}
                }
                self.model(reply.as_ref());
            }
            Entry::Lost(reply) => {
                self.habits.overflows += u64::from(reply.finish == "overflow");
            }
            _ => {}
        }
    }

    fn model(&mut self, reply: Option<&Reply>) {
        if let Some(model) = reply.and_then(|reply| reply.model.as_deref()) {
            self.models.add(model);
        }
    }

    fn turn(&mut self, at: &str, text: &str) {
        self.habits.turns += 1;
        self.turn_chars += text.chars().count() as u64;
        if let Some(hour) = at.get(11..13).and_then(|hour| hour.parse::<usize>().ok())
            && let Some(hour) = self.habits.hours.get_mut(hour)
        {
            *hour += 1;
        }
        let first = text.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
        self.questions.add(&first.to_lowercase().chars().take(QUESTION).collect::<String>());
        words(text, &mut |word| self.words.add(word));
    }

    fn finish(self) -> Habits {
        let told = |often: Often| -> Vec<Share> {
            often.top(TOLD).into_iter().map(|(name, count)| Share { name, count }).collect()
        };
        let each = |sum: u64, of: u64| if of == 0 { 0.0 } else { sum as f64 / of as f64 };
        let mut questions = told(self.questions);
        questions.retain(|share| share.count > 1);
        let habits = self.habits;
        Habits {
            mean_turn_chars: each(self.turn_chars, habits.turns),
            mean_reply_chars: each(self.reply_chars, habits.replies),
            overflow_rate: each(habits.overflows, habits.turns),
            compaction_rate: each(habits.compactions, habits.turns),
            models: told(self.models),
            tools: told(self.tools),
            words: told(self.words),
            questions,
            ..habits
        }
    }
}

/// The words of a text that carry something. Of scripts without spaces, runs of kanji or of katakana: what stands between them
/// is mostly grammar.
fn words(text: &str, put: &mut dyn FnMut(&str)) {
    terms::each(text, &mut |term| {
        if term.kind == terms::Kind::Word {
            put(&text[term.span].to_lowercase());
        }
    });
    for run in text.split(|c: char| !is_content(c)).filter(|run| run.chars().nth(1).is_some()) {
        put(run);
    }
}

fn is_content(c: char) -> bool {
    matches!(c, '々' | '\u{30a1}'..='\u{30ff}' | '\u{3400}'..='\u{4dbf}' | '\u{4e00}'..='\u{9fff}')
        && c != '・'
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_those_that_carry_something_in_japanese_too() {
        let mut found = Vec::new();
        words("the parser fails; 設定ファイルを読む、設定は正しい", &mut |word| {
            found.push(word.to_owned())
        });
        assert_eq!(found, ["parser", "fails", "設定ファイル", "設定"]);
    }
}
