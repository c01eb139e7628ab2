//! Finding again what was said: ranked search over every entry of a session, seen by the model or not.
//!
//! What leaves the view stays in the journal, and this is the way back to it. A shelf of the store says where words
//! stand; here is what a word is, what it is worth, and what of an entry is told. Nothing is asked of a model, nothing
//! is changed, and nothing that is found is given whole: a result is a few words and the number to read on at.

use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::lineage;
use komado_core::thread::{Header, Moment};
use komado_core::view::Piece;
use komado_core::{Meter, Role, Seq, SessionId, Span, ThreadId, View};
use komado_store::{Journal, Mode, Query};
use std::collections::HashMap;

mod ask;
mod catch_up;
mod exact;
mod language;
mod search;
mod snippet;
pub(crate) mod terms;
mod text;
pub(crate) mod tool;

pub use ask::{Ask, How};
pub use komado_store::shelf::Filter;
pub use snippet::Snippet;
pub(crate) use tool::NAME;
pub use tool::{TOOL, call};

/// Where to look.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Scope {
    /// Every thread of a session, each entry once.
    Session(SessionId),
    /// What one thread knows: its own entries, and those of the threads it goes on from, up to a moment of it.
    Thread {
        /// The session.
        session: SessionId,
        /// The thread.
        thread: ThreadId,
        /// The last entry that counts; all of them when left out.
        upto: Option<Seq>,
    },
    /// Every session of a user.
    User(String),
    /// Every session there is.
    All,
}

/// An entry beside a result.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Beside {
    /// Its number.
    pub seq: Seq,
    /// Who speaks.
    pub role: Role,
    /// How it begins.
    pub snippet: String,
}

/// A result.
#[derive(Clone, PartialEq, Debug)]
pub struct Found {
    /// The session.
    pub session: SessionId,
    /// The thread whose own entry it is.
    pub thread: ThreadId,
    /// The entry.
    pub seq: Seq,
    /// How well it fits; comparable within one search, also over sessions.
    pub score: f32,
    /// Who speaks.
    pub role: Role,
    /// The tools it calls, or the one that answers.
    pub tools: Vec<String>,
    /// When it was said.
    pub timestamp: String,
    /// The words around what was found.
    pub snippet: Snippet,
    /// True when it stands in the output that the entry names, and not in what the model was shown.
    pub in_output: bool,
    /// True when the model does not see the entry as it was said: hidden, replaced, or left behind by a rewind.
    pub hidden: bool,
    /// Entries before and after it, when they were asked for.
    pub around: Vec<Beside>,
}

impl Found {
    /// The result as a line for a model at work in thread `here`: `@12 user: …`. An entry of another thread says which.
    pub fn line(&self, here: &ThreadId) -> String {
        let place = if self.thread == *here { String::new() } else { self.thread.to_string() };
        let mut line = format!("{place}@{} {}", self.seq, self.role.name());
        if let Some(tool) = self.tools.first().filter(|tool| !tool.is_empty()) {
            line.push_str(&format!(" ({tool})"));
        }
        line.push_str(&format!(": {}\n", self.snippet.text));
        for beside in &self.around {
            line.push_str(&format!("  {place}@{} {}: {}\n", beside.seq, beside.role.name(), beside.snippet));
        }
        line
    }

    /// Tells it in at most `width` characters.
    pub(crate) fn shorten(&mut self, width: usize) {
        self.snippet = snippet::around_match(&self.snippet.text, &self.snippet.marks, width);
    }
}

impl Engine {
    /// The entries of `scope` that fit what is asked, best first.
    pub fn recall(&self, scope: &Scope, ask: &Ask) -> Result<Vec<Found>> {
        if ask.query.trim().is_empty() {
            return Err(Error::NoQuery);
        }
        let wanted = ask::terms_of(&ask.query);
        let mut found = match ask.how {
            // A query of nothing but words that carry nothing is looked for as it stands.
            How::Ranked if wanted.is_empty() => self.exact(scope, &Ask { how: How::Exact, ..ask.clone() })?,
            How::Ranked => self.ranked(scope, ask, wanted)?,
            How::Exact | How::Regex => self.exact(scope, ask)?,
        };
        self.see(scope, &mut found)?;
        match ask.budget {
            Some(budget) => Ok(pack(found, budget, self.meter_of(scope)?)),
            None => Ok(found),
        }
    }

    /// The sessions of a scope, the newest first.
    fn sessions_of(&self, scope: &Scope) -> Result<Vec<SessionId>> {
        let query = match scope {
            Scope::Session(session) | Scope::Thread { session, .. } => return Ok(vec![session.clone()]),
            Scope::User(user) => Query { user: Some(user.clone()), ..Query::default() },
            Scope::All => Query::default(),
        };
        let mut ids = Vec::new();
        self.each_session(query, |session| {
            ids.push(SessionId::new(session.meta.uuid.as_str())?);
            Ok(())
        })?;
        ids.reverse();
        Ok(ids)
    }

    /// What is asked, narrowed to the entries of the scope.
    fn narrowed(&self, scope: &Scope, filter: &Filter) -> Result<Filter> {
        let Scope::Thread { session, thread, upto } = scope else { return Ok(filter.clone()) };
        let headers = self.store().threads(session)?;
        let moment = Moment { thread: thread.clone(), seq: upto.unwrap_or(Seq::MAX) };
        let places = lineage::line(&headers, moment).into_iter().map(|moment| {
            let own =
                headers.iter().find(|header| header.thread == moment.thread).map_or(0, Header::base_seq);
            (moment.thread, Span::new(own + 1, moment.seq))
        });
        Ok(Filter { places: Some(places.collect()), ..filter.clone() })
    }

    fn meter_of(&self, scope: &Scope) -> Result<Meter> {
        let named = match scope {
            Scope::Session(session) | Scope::Thread { session, .. } => {
                Meter::named(&self.session(session)?.meta.config.meter)
            }
            Scope::User(_) | Scope::All => None,
        };
        Ok(named.unwrap_or(Meter::O200k))
    }

    /// Says of each result whether the model sees it now: that of the thread asked about, or of the entry's own.
    fn see(&self, scope: &Scope, found: &mut [Found]) -> Result<()> {
        let mut views: HashMap<(SessionId, ThreadId), (View, Box<dyn Journal>)> = HashMap::new();
        for one in found {
            let thread = match scope {
                Scope::Thread { thread, .. } => thread,
                _ => &one.thread,
            };
            let key = (one.session.clone(), thread.clone());
            if !views.contains_key(&key) {
                let journal = self.store().open(&one.session, thread, Mode::Read)?;
                views.insert(key.clone(), (View::fold(&*journal, journal.last())?, journal));
            }
            let Some((view, journal)) = views.get(&key) else { continue };
            let shown = |piece: &Piece| matches!(piece, Piece::Run(span) if span.holds(one.seq));
            // A chronicle is seen by the parent, and what is told by whom it is for.
            let is_item = one.seq <= journal.last() && journal.head(one.seq)?.kind.is_item();
            one.hidden = !(is_item && view.pieces().iter().any(shown));
        }
        Ok(())
    }
}

/// Below this nothing more fits.
const LEAST: u64 = 8;
/// Characters of a result that is told in fewer words.
const SHORT: usize = 80;

/// Those of `found` that fit into `budget` tokens as [`Found::line`] writes them.
pub(crate) fn pack(found: Vec<Found>, budget: u64, meter: Meter) -> Vec<Found> {
    let here = ThreadId::root();
    let mut left = budget;
    let mut packed = Vec::new();
    for mut one in found {
        if left < LEAST {
            break;
        }
        let mut cost = meter.text(&one.line(&here));
        if cost > left {
            one.around.clear();
            one.shorten(SHORT);
            cost = meter.text(&one.line(&here));
        }
        if cost <= left {
            left -= cost;
            packed.push(one);
        }
    }
    packed
}
