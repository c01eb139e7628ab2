//! Finding again what was said: ranked search over every entry of a session, seen by the model or not.
//!
//! What leaves the view stays in the journal, and this is the way back to it. An index in the store says where words
//! stand; here is what a word is, what it is worth, and what of an entry is told. Nothing is asked of a model, nothing
//! is changed, and nothing that is found is given whole: a result is a few words and the number to read on at.

use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::lineage;
use komado_core::thread::{Header, Moment};
use komado_core::view::ViewPiece;
use komado_core::{Meter, Role, Seq, SessionId, Span, ThreadId, View};
use komado_store::{Journal, OpenMode, SessionQuery};
use regex::bytes::{Regex as BytesRegex, RegexBuilder as BytesRegexBuilder};
use regex::{Regex, RegexBuilder};
use serde::Deserialize;
use std::collections::HashMap;
use terms::{TermKind, is_script};
use unicode_normalization::is_nfkc;

mod index;
mod search;
pub(crate) mod terms;

pub use komado_store::search_index::SearchFilter;
pub use search::Snippet;

/// Where to look.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum RecallScope {
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
pub struct RecallNeighbour {
    /// Its number.
    pub seq: Seq,
    /// Who speaks.
    pub role: Role,
    /// How it begins.
    pub snippet: String,
}

/// A result.
#[derive(Clone, PartialEq, Debug)]
pub struct RecallHit {
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
    pub around: Vec<RecallNeighbour>,
}

impl RecallHit {
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

    /// True when it has no word of the query and was found for standing beside an entry that has.
    pub fn is_beside(&self) -> bool {
        self.snippet.marks.is_empty()
    }

    /// Tells it in at most `width` characters.
    pub(crate) fn shorten(&mut self, width: usize) {
        self.snippet = search::around_match(&self.snippet.text, &self.snippet.marks, width);
    }
}

impl Engine {
    /// The entries of `scope` that fit what is asked, best first.
    pub fn recall(&self, scope: &RecallScope, ask: &RecallQuery) -> Result<Vec<RecallHit>> {
        if ask.query.trim().is_empty() {
            return Err(Error::NoQuery);
        }
        let wanted = terms_of(&ask.query);
        let mut found = match ask.how {
            // A query of nothing but words that carry nothing is looked for as it stands.
            RecallMode::Ranked if wanted.is_empty() => {
                self.exact(scope, &RecallQuery { how: RecallMode::Exact, ..ask.clone() })?
            }
            RecallMode::Ranked => self.ranked(scope, ask, wanted)?,
            RecallMode::Exact | RecallMode::Regex => self.exact(scope, ask)?,
        };
        self.see(scope, &mut found)?;
        match ask.budget {
            Some(budget) => Ok(pack(found, budget, self.meter_of(scope)?)),
            None => Ok(found),
        }
    }

    /// The sessions of a scope, the newest first.
    pub fn sessions_of(&self, scope: &RecallScope) -> Result<Vec<SessionId>> {
        let query = match scope {
            RecallScope::Session(session) | RecallScope::Thread { session, .. } => {
                return Ok(vec![session.clone()]);
            }
            RecallScope::User(user) => SessionQuery { user: Some(user.clone()), ..SessionQuery::default() },
            RecallScope::All => SessionQuery::default(),
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
    fn narrowed(&self, scope: &RecallScope, filter: &SearchFilter) -> Result<SearchFilter> {
        let RecallScope::Thread { session, thread, upto } = scope else { return Ok(filter.clone()) };
        let headers = self.store().threads(session)?;
        let moment = Moment { thread: thread.clone(), seq: upto.unwrap_or(Seq::MAX) };
        let places = lineage::line(&headers, moment).into_iter().map(|moment| {
            let own =
                headers.iter().find(|header| header.thread == moment.thread).map_or(0, Header::base_seq);
            (moment.thread, Span::new(own + 1, moment.seq))
        });
        Ok(SearchFilter { places: Some(places.collect()), ..filter.clone() })
    }

    fn meter_of(&self, scope: &RecallScope) -> Result<Meter> {
        let named = match scope {
            RecallScope::Session(session) | RecallScope::Thread { session, .. } => {
                Meter::named(&self.session(session)?.meta.config.meter)
            }
            RecallScope::User(_) | RecallScope::All => None,
        };
        Ok(named.unwrap_or(Meter::O200k))
    }

    /// Says of each result whether the model sees it now: that of the thread asked about, or of the entry's own.
    fn see(&self, scope: &RecallScope, found: &mut [RecallHit]) -> Result<()> {
        let mut views: HashMap<(SessionId, ThreadId), (View, Box<dyn Journal>)> = HashMap::new();
        for one in found {
            let thread = match scope {
                RecallScope::Thread { thread, .. } => thread,
                _ => &one.thread,
            };
            let key = (one.session.clone(), thread.clone());
            if !views.contains_key(&key) {
                let journal = self.store().open(&one.session, thread, OpenMode::Read)?;
                views.insert(key.clone(), (View::fold(&*journal, journal.last())?, journal));
            }
            let Some((view, journal)) = views.get(&key) else { continue };
            let shown = |piece: &ViewPiece| matches!(piece, ViewPiece::Run(span) if span.holds(one.seq));
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
pub(crate) fn pack(found: Vec<RecallHit>, budget: u64, meter: Meter) -> Vec<RecallHit> {
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

// What is asked, and the terms it comes down to.

/// How the query is meant.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(inline))]
pub enum RecallMode {
    /// As words: the entries that best fit them, best first.
    #[default]
    Ranked,
    /// As it stands, byte for byte; the last entry first.
    Exact,
    /// As a regular expression; the last entry first.
    Regex,
}

impl RecallMode {
    /// The way called `name`.
    pub fn named(name: &str) -> Option<Self> {
        match name {
            "ranked" => Some(Self::Ranked),
            "exact" => Some(Self::Exact),
            "regex" => Some(Self::Regex),
            _ => None,
        }
    }
}

/// What is asked.
#[derive(Clone, Debug)]
pub struct RecallQuery {
    /// What to look for.
    pub query: String,
    /// How that is meant.
    pub how: RecallMode,
    /// Which entries count.
    pub filter: SearchFilter,
    /// At most so many results.
    pub k: usize,
    /// At most so many tokens in all.
    pub budget: Option<u64>,
    /// So many entries before and after each result are told, too.
    pub neighbours: u32,
    /// Characters of a result's text.
    pub snippet: usize,
}

impl RecallQuery {
    /// The ten best entries for `query`.
    pub fn new(query: impl Into<String>) -> Self {
        Self {
            query: query.into(),
            how: RecallMode::Ranked,
            filter: SearchFilter::default(),
            k: 10,
            budget: None,
            neighbours: 0,
            snippet: 240,
        }
    }
}

/// The most terms that one query comes down to.
const MOST_TERMS: usize = 48;

/// The terms of a query, each with what it counts for before its rarity; none when it has none.
pub(crate) fn terms_of(query: &str) -> Vec<(String, f32)> {
    let mut found: Vec<(String, f32)> = Vec::new();
    terms::each(query, &mut |term| {
        let share = share(term.kind, &term.text);
        if let Some((_, most)) = found.iter_mut().find(|(known, _)| *known == term.text) {
            *most = most.max(share);
        } else if share > 0.0 && found.len() < 4 * MOST_TERMS {
            found.push((term.text.into_owned(), share));
        }
    });
    if found.len() > MOST_TERMS {
        found.sort_by(|a, b| b.1.total_cmp(&a.1));
        found.truncate(MOST_TERMS);
    }
    found
}

/// What a term of a query counts for. Pairs of endings and particles say little; a single ideograph says something,
/// because the same verb is written with it in all its forms.
fn share(kind: TermKind, text: &str) -> f32 {
    let is_hiragana = |c: char| matches!(c, '\u{3041}'..='\u{309f}');
    let is_kana = |c: char| matches!(c, '\u{3041}'..='\u{30ff}');
    match kind {
        TermKind::Word | TermKind::Alone => 1.0,
        TermKind::Whole => 1.2,
        TermKind::Part => 0.7,
        TermKind::Pair => match text.chars().filter(|c| is_hiragana(*c)).count() {
            0 => 1.0,
            1 => 0.4,
            _ => 0.15,
        },
        TermKind::Single if text.chars().any(is_kana) => 0.0,
        TermKind::Single => 0.35,
    }
}

/// Terms that an entry must have to hold `phrase` as it stands; few, but none of them in doubt.
///
/// A word at either end of the phrase may be the middle of another one, so only those between spaces count. A pair of
/// a script without spaces counts wherever it stands, unless a mark that is still to come could change its last
/// character.
pub(crate) fn needed(phrase: &str) -> Vec<String> {
    let mut needed: Vec<String> = Vec::new();
    let mut add = |text: &str| {
        if !needed.iter().any(|known| known == text) {
            needed.push(text.to_owned());
        }
    };
    if !is_nfkc(phrase) {
        return needed;
    }
    let words: Vec<&str> = phrase.split(char::is_whitespace).collect();
    let inner = words.get(1..words.len().saturating_sub(1)).unwrap_or_default();
    for word in inner.iter().filter(|word| !word.chars().any(is_script)) {
        terms::each(word, &mut |term| {
            if term.kind == TermKind::Word {
                add(&term.text);
            }
        });
    }
    let is_fixed = |c: char| matches!(c, '\u{3400}'..='\u{4dbf}' | '\u{4e00}'..='\u{9fff}');
    terms::each(phrase, &mut |term| {
        let settled = term.span.end < phrase.len() || term.text.chars().all(is_fixed);
        if term.kind == TermKind::Pair && settled {
            add(&term.text);
        }
    });
    needed
}

/// A pattern for texts, and the same for bytes.
pub(crate) struct RecallPattern {
    pub(crate) text: Regex,
    pub(crate) bytes: BytesRegex,
    /// Bytes that a match is expected to fit into.
    pub(crate) reach: usize,
}

impl RecallPattern {
    /// The pattern of a query that is not ranked.
    pub(crate) fn of(query: &str, how: RecallMode) -> Result<Self> {
        let source = if how == RecallMode::Regex { query.to_owned() } else { regex::escape(query) };
        let text = RegexBuilder::new(&source).multi_line(true).build().map_err(Error::BadPattern)?;
        let bytes = BytesRegexBuilder::new(&source).multi_line(true).build().map_err(Error::BadPattern)?;
        Ok(Self { text, bytes, reach: query.len().max(4096) })
    }
}

// Recall as a tool that a model can call.
//
// Results are lines with the number to read on at. What the model gets wrong is answered in words it can act on, as a
// tool's answer, never as a failure of the conversation.

/// The tool's definition, in the form that chat APIs take.
pub const TOOL: &str = r#"{"type":"function","function":{"name":"recall","description":"Search all that was said in this session, also what is hidden from you now: messages, calls, whole outputs. Each result begins with its @number.","parameters":{"type":"object","properties":{"query":{"type":"string","description":"A name, a path, an error message, or your own words."},"k":{"type":"integer","minimum":1,"maximum":50,"description":"Most results, 8."},"mode":{"type":"string","enum":["ranked","exact","regex"]},"role":{"type":"string","enum":["system","developer","user","assistant","tool"],"description":"Who said it."},"tool":{"type":"string","description":"Which tool."},"file":{"type":"string","description":"About which file."}},"required":["query"],"additionalProperties":false}}}"#;

/// The tool's name.
pub(crate) const NAME: &str = "recall";

/// Results when the model does not say.
const K: usize = 8;
/// The most it may ask for.
const MOST: usize = 50;
/// Tokens of an answer.
const BUDGET: u64 = 2000;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Arguments {
    query: String,
    k: Option<usize>,
    mode: Option<String>,
    role: Option<String>,
    tool: Option<String>,
    file: Option<String>,
}

impl Arguments {
    fn ask(self) -> std::result::Result<RecallQuery, String> {
        let mut ask = RecallQuery::new(self.query);
        ask.k = self.k.unwrap_or(K).clamp(1, MOST);
        ask.budget = Some(BUDGET);
        if let Some(mode) = &self.mode {
            ask.how = RecallMode::named(mode)
                .ok_or(format!("no mode {mode:?}; there are ranked, exact and regex"))?;
        }
        if let Some(role) = &self.role {
            let known = Role::ALL.map(Role::name).join(", ");
            ask.filter.role = Some(Role::named(role).ok_or(format!("no role {role:?}; there are {known}"))?);
        }
        (ask.filter.tool, ask.filter.file) = (self.tool, self.file);
        Ok(ask)
    }
}

/// Answers a call of the tool, `arguments` as the model wrote them, that stands in entry `at` of thread `here`: it finds
/// neither itself nor what comes with it, and no other search either, whose words are those of what it looked for. One that
/// stands nowhere is at [`Seq::MAX`].
pub fn call(
    engine: &Engine,
    scope: &RecallScope,
    (here, at): (&ThreadId, Seq),
    arguments: &str,
) -> Result<String> {
    let parsed = serde_json::from_str::<Arguments>(arguments).map_err(|e| e.to_string());
    let mut ask = match parsed.and_then(Arguments::ask) {
        Ok(ask) => ask,
        Err(why) => return Ok(format!("recall: {why}. Call it as recall({{\"query\":\"…\"}}).")),
    };
    if at < Seq::MAX {
        ask.filter.before = Some((here.clone(), at));
        ask.filter.not_tool = Some(NAME.to_owned()).filter(|name| ask.filter.tool.as_ref() != Some(name));
    }
    match engine.recall(scope, &ask) {
        Ok(found) => Ok(answer(&ask, here, &found)),
        Err(error @ (Error::NoQuery | Error::BadPattern(_))) => Ok(format!("recall: {error}.")),
        Err(other) => Err(other),
    }
}

fn answer(ask: &RecallQuery, here: &ThreadId, found: &[RecallHit]) -> String {
    let Some(best) = found.first() else {
        let hint = match ask.how {
            RecallMode::Ranked => "Try other words, or fewer filters.",
            RecallMode::Exact | RecallMode::Regex => "Try mode ranked, or a shorter text.",
        };
        return format!("Nothing was found for {:?}. {hint}", ask.query);
    };
    let mut text: String = found.iter().map(|one| one.line(here)).collect();
    let place = if best.thread == *here { "" } else { best.thread.as_str() };
    let call = serde_json::json!({ "ref_id": format!("{place}@{}", best.seq) });
    text.push_str(&format!("To read one in full: tool_output_cache({call})"));
    text
}

#[cfg(test)]
mod ask_tests {
    use super::*;

    #[test]
    fn only_words_that_must_be_there_are_needed() {
        assert_eq!(needed("open the window slowly please now"), ["window", "slowli"]);
        assert!(needed("window").is_empty() && needed("open window").is_empty());
        assert_eq!(needed("小窓"), ["小窓"]);
        assert_eq!(needed("窓を開けた"), ["窓を", "を開", "開け"]);
        assert!(needed("ｶﾞﾗｽ").is_empty());
    }

    #[test]
    fn particles_count_for_less_than_names() {
        let terms = terms_of("窓を開けた");
        let share = |text: &str| terms.iter().find(|(term, _)| term == text).map_or(0.0, |(_, share)| *share);
        assert!(share("開け") > share("けた") && share("窓") > 0.0 && share("を") == 0.0);
        assert_eq!(terms_of("を"), [("を".to_owned(), 1.0)]);
        assert!(terms_of("what did they do").is_empty());
        assert!(terms_of(&"word1 word2 word3 ".repeat(500)).len() <= 3);
        let many: String = (0..1000).map(|n| format!("word{n} ")).collect();
        assert_eq!(terms_of(&many).len(), MOST_TERMS);
    }
}
