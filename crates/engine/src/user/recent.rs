//! What was said lately, over all of a user's sessions.
//!
//! The sessions that changed last are read first, each thread from its end, and no further back than what can still be among
//! the newest; a session that has not changed since the oldest of those is not opened, nor any that changed before it. What
//! is held of a session is its name and when it changed; of what was said only places: the words are read when they are
//! shown.

use crate::engine::Engine;
use crate::error::Result;
use komado_core::head::{Kind, Source};
use komado_core::journal::{Entry, Record};
use komado_core::message::{Message, Part, Role};
use komado_core::{Seq, SessionId, ThreadId};
use komado_store::{Journal, Mode, Query};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// Where and when something was said. They sort by time.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Place {
    /// When.
    pub timestamp: String,
    /// The session.
    pub session: String,
    /// The thread.
    pub thread: String,
    /// The entry.
    pub seq: Seq,
}

/// Something that was said.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Spoken {
    /// Where and when.
    #[serde(flatten)]
    pub place: Place,
    /// `user` or `assistant`.
    pub role: &'static str,
    /// The words.
    pub text: String,
}

impl Engine {
    /// Where the newest words of a user and of their models stand, the newest first: at most `limit`, those before `before`.
    pub fn recent(&self, user: &str, before: Option<&Place>, limit: usize) -> Result<Vec<Place>> {
        self.known_user(user)?;
        let mut newest = BTreeSet::new();
        for (changed, id) in self.by_change(user)? {
            let is_full = newest.len() >= limit;
            if is_full && newest.first().is_none_or(|oldest: &Place| changed < oldest.timestamp) {
                break;
            }
            for header in self.store().threads(&id)? {
                let journal = self.store().open(&id, &header.thread, Mode::Read)?;
                look_back(&*journal, before, limit, &mut newest)?;
            }
        }
        Ok(newest.into_iter().rev().collect())
    }

    /// A user's sessions and when each changed, the last to change first.
    fn by_change(&self, user: &str) -> Result<Vec<(String, SessionId)>> {
        let mut all = Vec::new();
        self.each_session(Query { user: Some(user.to_owned()), ..Query::default() }, |session| {
            all.push((session.updated_at.clone(), SessionId::new(session.meta.uuid.as_str())?));
            Ok(())
        })?;
        all.sort_unstable_by(|a, b| b.cmp(a));
        Ok(all)
    }

    /// What was said at a place.
    pub fn spoken(&self, place: Place) -> Result<Spoken> {
        let (id, thread) = (SessionId::new(place.session.as_str())?, ThreadId::new(place.thread.as_str())?);
        let journal = self.store().open(&id, &thread, Mode::Read)?;
        let record = Source::record(&*journal, place.seq)?;
        let (role, text) = said(&record).unwrap_or_default();
        Ok(Spoken { place, role, text })
    }
}

fn look_back(
    journal: &dyn Journal,
    before: Option<&Place>,
    limit: usize,
    newest: &mut BTreeSet<Place>,
) -> Result<()> {
    let header = journal.header();
    for seq in (header.base_seq() + 1..=journal.last()).rev() {
        if !matches!(journal.head(seq)?.kind, Kind::User | Kind::Assistant) {
            continue;
        }
        let record = Source::record(journal, seq)?;
        if said(&record).is_none() {
            continue;
        }
        let (session, thread) = (header.session.to_string(), header.thread.to_string());
        let place = Place { timestamp: record.timestamp, session, thread, seq };
        if before.is_some_and(|before| place >= *before) {
            continue;
        }
        let is_full = newest.len() >= limit;
        if is_full && newest.first().is_none_or(|oldest| place < *oldest) {
            return Ok(());
        }
        newest.insert(place);
        if is_full {
            newest.pop_first();
        }
    }
    Ok(())
}

/// Who said what in an entry, in words; `None` where no words were said.
pub(super) fn said(record: &Record) -> Option<(&'static str, String)> {
    let Entry::Message(message, _) = &record.entry else { return None };
    let role = match message.role {
        Role::User => "user",
        Role::Assistant => "assistant",
        _ => return None,
    };
    Some((role, words(message))).filter(|(_, text)| !text.is_empty())
}

fn words(message: &Message) -> String {
    let texts = message.parts.iter().filter_map(|part| match part {
        Part::Text { text, .. } => Some(text.as_str()),
        _ => None,
    });
    texts.collect::<Vec<_>>().join("\n")
}
