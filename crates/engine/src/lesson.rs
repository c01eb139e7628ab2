//! What an answer teaches about a model: how it counts, and how much it takes.
//!
//! Kept under the base URL and the model, because the same name means another window on another server. The factor
//! turns our tokens into the provider's; it is learned from what providers report, never assumed. The window is learned
//! from what a provider said when a request was too large, or from what it silently left out.
//!
//! A lesson is first that of the session whose request taught it. All sessions share a limit that a server named in tokens,
//! a window below which two sessions were refused, and a factor that several answers to two sessions show. No window is
//! learned below the largest request that was answered, nor below a tenth of the one that is declared.

use crate::error::Result;
use komado_core::journal::Usage;
use komado_core::{Address, Seq, SessionId, ThreadId};
use komado_store::Lessons;
use serde::{Deserialize, Serialize};

#[cfg(test)]
mod tests;
mod window;

pub use window::{ModelWindow, WindowSource};

/// Below so many tokens the words around a request weigh more than the request.
const FEWEST: u64 = 400;
/// How much one answer counts against all before it.
const WEIGHT: f64 = 0.3;
/// So many answers are all counted; of those after them only what is new.
const YOUNG: u64 = 8;
/// So many answers, to two sessions or more, make a factor that of all sessions.
const AGREED: u64 = 4;
/// What no counter is off by.
const FACTORS: std::ops::RangeInclusive<f64> = 0.2..=10.0;
/// Sessions whose own lessons are kept, the newest.
const SESSIONS: usize = 16;
/// A window is at least this part of the declared one.
const LEAST_PART: u64 = 10;
/// Tokens that a server with a cache may read again beside what is new: the last words before it, rounded to a block.
const READ_AGAIN: f64 = 256.0;

/// What is known about a model at a place.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LearnedModel {
    /// The most tokens it takes, for all sessions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub window: Option<u64>,
    /// What showed that window.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub evidence: Option<WindowEvidence>,
    /// The request that taught it: `SESSION@SEQ`, or `SESSION/THREAD@SEQ`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request: Option<String>,
    /// What its server said of the window when that was learned: once that changes, the lesson is old.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub probed: Option<u64>,
    /// Its tokens for one of ours, for all sessions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub factor: Option<f64>,
    /// Answers that taught how it counts.
    #[serde(default)]
    pub samples: u64,
    /// The largest request it has answered, in its own tokens.
    #[serde(default)]
    pub most: u64,
    /// Its tokens for one of ours in that request, of which certainly nothing was left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usual: Option<f64>,
    /// What it read the last time that something was left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cut: Option<u64>,
    /// What single sessions learned, the newest last.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sessions: Vec<SessionLearned>,
}

/// What the requests of one session taught about a model.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SessionLearned {
    /// The session.
    pub session: String,
    /// The window as this session met it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub window: Option<u64>,
    /// What showed that window.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub evidence: Option<WindowEvidence>,
    /// The request that taught it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request: Option<String>,
    /// The model's tokens for one of ours, in this session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub factor: Option<f64>,
    /// Answers that taught the factor.
    #[serde(default)]
    pub samples: u64,
}

/// What showed how large a window is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(inline))]
pub enum WindowEvidence {
    /// A refusal that named it in tokens.
    Named,
    /// A refusal without a number: what was refused is too much.
    Refused,
    /// Answers that left out what was over it.
    Truncated,
}

/// The request that teaches something.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct LessonRequest {
    /// Its session.
    pub session: String,
    /// Its place.
    pub at: String,
    /// What the server says of the window now, where it was asked.
    pub probed: Option<u64>,
    /// The window as it is listed, probed or given.
    pub declared: Option<u64>,
}

impl LessonRequest {
    /// The place of a request: of a session alone where no entry announces it.
    pub fn place(session: &SessionId, entry: Option<(&ThreadId, Seq)>) -> String {
        let (thread, seq) = entry.unzip();
        let thread = thread.filter(|thread| !thread.is_root()).cloned();
        Address { session: session.clone(), thread, seq }.to_string()
    }
}

/// A request, as far as we can tell how large it was.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RequestSize {
    /// Tokens of the view.
    pub tokens: u64,
    /// Those among them that a provider may count otherwise, or not at all: thoughts, pictures, what only one dialect
    /// knows.
    pub uncertain: u64,
    /// Tokens behind what the server answered last in this thread, where the request extends that.
    pub fresh: Option<u64>,
}

impl RequestSize {
    /// A request of words alone.
    pub const fn certain(tokens: u64) -> Self {
        Self { tokens, uncertain: 0, fresh: None }
    }

    /// Tokens that any provider counts.
    const fn least(self) -> u64 {
        self.tokens.saturating_sub(self.uncertain)
    }

    /// True when it says something about how a provider counts.
    const fn tells(self) -> bool {
        self.tokens >= FEWEST && self.uncertain * 20 <= self.tokens
    }

    /// True when about as much was read as is new to a server with a cache: it may report only that.
    fn is_tail(self, reported: u64, factor: f64) -> bool {
        self.fresh.is_some_and(|fresh| {
            let (fresh, reported) = (fresh as f64, reported as f64);
            reported * 2.0 >= fresh && reported <= fresh * 1.25 * factor.max(1.0) + READ_AGAIN
        })
    }
}

/// A refusal because of size.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct SizeRefusal {
    /// The most it takes, as it said.
    pub limit: Option<u64>,
    /// What it counted.
    pub actual: Option<u64>,
    /// True when it was about bytes, or did not say about what: then nothing is known about tokens.
    pub is_vague: bool,
}

/// What an answer's usage says about a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum UsageVerdict {
    /// All of it was read, or what was not new was read before.
    Whole,
    /// Far less was read than was sent: the server left something out and did not say so.
    Truncated {
        /// Tokens it says it read.
        reported: u64,
        /// Tokens that were sent, by our count and what was learned.
        expected: u64,
    },
}

impl LearnedModel {
    /// Learns from an answer to a request. A conversation that turns to another language is counted by the newest
    /// answer at once if that is the larger, and slowly if it is the smaller.
    pub fn hear(&mut self, from: &LessonRequest, size: RequestSize, usage: &Usage) -> UsageVerdict {
        let reported = usage.input_tokens + usage.cache_creation_tokens + usage.cache_read_tokens;
        if reported == 0 {
            return UsageVerdict::Whole;
        }
        self.meet(from.probed);
        let is_tail = size.is_tail(reported, self.factor_in(&from.session).unwrap_or(1.0));
        let expected = (size.least() as f64 * self.usual.unwrap_or(1.0).min(1.0)) as u64;
        if size.least() >= FEWEST && reported * 2 < expected {
            if is_tail {
                return UsageVerdict::Whole;
            }
            self.was_cut(from, size, reported);
            return UsageVerdict::Truncated { reported, expected };
        }
        if size.tells() && !(is_tail && reported * 5 < size.tokens * 4) {
            let ratio = ratio(reported, size);
            let own = self.session_mut(&from.session);
            let mean = own.factor.map_or(ratio, |factor| factor * (1.0 - WEIGHT) + ratio * WEIGHT);
            own.factor = Some(mean.max(ratio));
            own.samples += 1;
            self.samples += 1;
            if reported > self.most {
                self.usual = Some(ratio);
            }
            self.agree();
        }
        if reported >= FEWEST {
            self.was_accepted(reported);
        }
        UsageVerdict::Whole
    }

    /// Learns from a refusal of a request.
    pub fn refused(&mut self, from: &LessonRequest, size: RequestSize, refusal: SizeRefusal) {
        self.meet(from.probed);
        match refusal.limit.filter(|limit| *limit > 0) {
            // What it has answered is no more than it takes, whatever one server behind a name says.
            Some(limit) if limit >= self.most && !from.is_too_small(limit) => {
                self.window = Some(limit);
                (self.evidence, self.request) = (Some(WindowEvidence::Named), Some(from.at.clone()));
                self.sessions.iter_mut().for_each(SessionLearned::forget_window);
            }
            Some(_) => {}
            // It did not say how much it takes; certainly less than this.
            None if size.tells() && !refusal.is_vague => {
                let factor = self.factor_in(&from.session).unwrap_or(1.0);
                self.claim(from, (size.tokens as f64 * factor).ceil() as u64, WindowEvidence::Refused);
            }
            None => {}
        }
        if let Some(actual) = refusal.actual.filter(|_| size.tells()) {
            let ratio = ratio(actual, size);
            let own = self.session_mut(&from.session);
            own.factor = Some(own.factor.map_or(ratio, |factor| factor.max(ratio)));
        }
    }

    /// A server that says something else of its window than before was started anew: what it took before says nothing.
    fn meet(&mut self, probed: Option<u64>) {
        if probed.is_none() || probed == self.probed {
            return;
        }
        if self.probed.is_some() {
            (self.most, self.usual, self.cut) = (0, None, None);
            self.sessions.iter_mut().for_each(SessionLearned::forget_window);
        }
        if self.window != probed {
            (self.window, self.evidence, self.request) = (None, None, None);
        }
        self.probed = probed;
    }

    /// What was answered was not too much, whatever was said before.
    fn was_accepted(&mut self, reported: u64) {
        self.cut = None;
        self.most = self.most.max(reported);
        let windows = self.sessions.iter_mut().map(|own| &mut own.window).chain([&mut self.window]);
        windows.flatten().for_each(|window| *window = reported.max(*window));
    }

    /// A server that leaves things out reads as much as ever, and no more: the window is learned when it did so twice,
    /// where what is new was less than that. One that reports other figures each time counts only what it had not cached.
    fn was_cut(&mut self, from: &LessonRequest, size: RequestSize, reported: u64) {
        let near = |other: u64| reported.abs_diff(other) * 10 <= other;
        let is_full = self.most > 0 && reported * 10 >= self.most * 9;
        if size.fresh.is_some() && is_full && self.cut.is_some_and(near) {
            self.claim(from, reported, WindowEvidence::Truncated);
        }
        self.cut = Some(reported);
    }

    /// A window that no server named: it holds for the session, and for all once another session met one as small.
    fn claim(&mut self, from: &LessonRequest, tokens: u64, evidence: WindowEvidence) {
        let tokens = tokens.max(self.most);
        if from.is_too_small(tokens) {
            return;
        }
        let own = self.session_mut(&from.session);
        if own.window.is_some_and(|window| window <= tokens) {
            return;
        }
        (own.window, own.evidence, own.request) = (Some(tokens), Some(evidence), Some(from.at.clone()));
        // Where two sessions were refused at A and at B, both would have been at the larger of the two.
        let mut claims: Vec<&SessionLearned> = self.sessions.iter().collect();
        claims.sort_by_key(|own| own.window.unwrap_or(u64::MAX));
        if let [_, second, ..] = claims[..]
            && let Some(tokens) = second.window
            && self.window.is_none_or(|window| tokens < window)
        {
            let (evidence, request) = (second.evidence, second.request.clone());
            (self.window, self.evidence, self.request) = (Some(tokens), evidence, request);
        }
    }

    /// The factor of all sessions, once two of them show one.
    fn agree(&mut self) {
        let heard = || self.sessions.iter().filter(|own| own.samples > 0);
        let samples: u64 = heard().map(|own| own.samples).sum();
        if heard().count() < 2 || samples < AGREED {
            return;
        }
        let weight = |own: &SessionLearned| own.samples.min(YOUNG) as f64;
        let sum: f64 = heard().filter_map(|own| Some(own.factor? * weight(own))).sum();
        self.factor = Some(sum / heard().map(weight).sum::<f64>());
    }

    /// What a session learned, as the newest of all.
    fn session_mut(&mut self, session: &str) -> &mut SessionLearned {
        let own = match self.sessions.iter().position(|own| own.session == session) {
            Some(at) => self.sessions.remove(at),
            None => SessionLearned { session: session.to_owned(), ..SessionLearned::default() },
        };
        if self.sessions.len() >= SESSIONS {
            self.sessions.remove(0);
        }
        let at = self.sessions.len();
        self.sessions.push(own);
        &mut self.sessions[at]
    }

    fn session(&self, session: &str) -> Option<&SessionLearned> {
        self.sessions.iter().find(|own| own.session == session)
    }

    /// The factor as a session applies it: its own, else that of all.
    fn factor_in(&self, session: &str) -> Option<f64> {
        self.session(session).and_then(|own| own.factor).or(self.factor)
    }

    /// True when a session that knows `old` would do something else for knowing this: what is off by a hair is not worth
    /// a write for each answer.
    pub fn is_news_to(&self, old: &Self, session: &str) -> bool {
        let moved = |new: Option<f64>, old: Option<f64>| match (new, old) {
            (Some(new), Some(old)) => (new / old - 1.0).abs() > 0.01,
            (new, old) => new.is_some() != old.is_some(),
        };
        let grown = |new: u64, old: u64| new.abs_diff(old) * 10 > old;
        let cut = match (self.cut, old.cut) {
            (Some(new), Some(old)) => grown(new, old),
            (new, old) => new.is_some() != old.is_some(),
        };
        let own = |learned: &Self| learned.session(session).and_then(|own| own.window);
        let named = (self.window, self.probed, own(self)) != (old.window, old.probed, own(old));
        let is_young = self.factor.is_none() && self.samples != old.samples && old.samples < YOUNG;
        let factors =
            moved(self.factor, old.factor) || moved(self.factor_in(session), old.factor_in(session));
        named || cut || is_young || factors || grown(self.most, old.most)
    }
}

impl SessionLearned {
    fn forget_window(&mut self) {
        (self.window, self.evidence, self.request) = (None, None, None);
    }
}

impl LessonRequest {
    /// True for a window far below the declared one: no error of ours explains it.
    fn is_too_small(&self, tokens: u64) -> bool {
        self.declared.is_some_and(|declared| tokens < declared / LEAST_PART)
    }
}

/// The provider's tokens for one of ours.
fn ratio(theirs: u64, size: RequestSize) -> f64 {
    (theirs as f64 / size.tokens as f64).clamp(*FACTORS.start(), *FACTORS.end())
}

/// What was learned about a model, as one session applies it.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct AppliedLesson {
    /// All that was learned.
    pub learned: LearnedModel,
    /// The session; empty for what holds for every one.
    pub session: String,
}

/// A window that was learned.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LearnedWindow {
    /// Tokens of the provider.
    pub tokens: u64,
    /// What showed it.
    pub evidence: Option<WindowEvidence>,
    /// The request that taught it: `SESSION@SEQ`, or `SESSION/THREAD@SEQ`.
    pub request: Option<String>,
    /// True when it holds for every session of the model.
    pub is_shared: bool,
}

impl AppliedLesson {
    /// A lesson as a session that taught nothing applies it.
    pub const fn for_all(learned: LearnedModel) -> Self {
        Self { learned, session: String::new() }
    }

    /// What is known, as `session` applies it.
    pub fn known(lessons: &(impl Lessons + ?Sized), about: &str, session: &SessionId) -> Result<Self> {
        Ok(Self { learned: known(lessons, about)?, session: session.to_string() })
    }

    /// The provider's tokens for one of ours.
    pub fn factor(&self) -> f64 {
        self.learned.factor_in(&self.session).unwrap_or(1.0)
    }

    /// A window of the provider's tokens in tokens of ours.
    pub fn ours(&self, tokens: u64) -> u64 {
        (tokens as f64 / self.factor()).floor() as u64
    }

    /// Tokens of ours in the provider's.
    pub fn theirs(&self, tokens: u64) -> u64 {
        (tokens as f64 * self.factor()).ceil() as u64
    }

    /// The most tokens that the model takes, as far as that was learned.
    pub fn window(&self) -> Option<u64> {
        let own = self.learned.session(&self.session).and_then(|own| own.window);
        own.into_iter().chain(self.learned.window).min()
    }

    /// That window, and where it was learned.
    pub fn learned_window(&self) -> Option<LearnedWindow> {
        let LearnedModel { window, evidence, request, .. } = &self.learned;
        let tokens = self.window()?;
        let own = self.learned.session(&self.session).filter(|own| own.window == Some(tokens));
        let (evidence, request, is_shared) = match own.filter(|_| *window != Some(tokens)) {
            Some(own) => (own.evidence, own.request.clone(), false),
            None => (*evidence, request.clone(), true),
        };
        Some(LearnedWindow { tokens, evidence, request, is_shared })
    }
}

impl LearnedWindow {
    /// How it is known, in words.
    pub const fn why(&self) -> &'static str {
        match (self.evidence, self.is_shared) {
            (Some(WindowEvidence::Named), _) => "named by the server",
            (Some(WindowEvidence::Refused), true) => "refused in two sessions",
            (Some(WindowEvidence::Truncated), true) => "cut short in two sessions",
            (Some(WindowEvidence::Refused), false) => "refused in this session alone",
            (Some(WindowEvidence::Truncated), false) => "cut short in this session alone",
            (None, _) => "learned before requests were noted",
        }
    }
}

/// The name under which lessons about a model at a place are kept.
pub fn about(place: &str, model: &str) -> String {
    format!("{place} {model}")
}

/// What is known; a lesson that cannot be read is none.
pub fn known(lessons: &(impl Lessons + ?Sized), about: &str) -> Result<LearnedModel> {
    Ok(parsed(lessons.lesson(about)?.as_deref()))
}

fn parsed(text: Option<&str>) -> LearnedModel {
    text.and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default()
}

/// Changes what is known, in one step; gives what `learn` gave, and what is known then. It is asked twice where there is
/// something to keep: what would change nothing for `session` is not written, and no caller waits for it.
pub fn learn<T>(
    lessons: &(impl Lessons + ?Sized),
    about: &str,
    session: &str,
    mut learn: impl FnMut(&mut LearnedModel) -> T,
) -> Result<(T, LearnedModel)> {
    let before = known(lessons, about)?;
    let mut now = before.clone();
    let mut learned = learn(&mut now);
    if !now.is_news_to(&before, session) {
        return Ok((learned, now));
    }
    lessons.learn(about, &mut |old| {
        let before = parsed(old);
        now = before.clone();
        learned = learn(&mut now);
        now.is_news_to(&before, session).then(|| serde_json::to_string(&now).ok()).flatten()
    })?;
    Ok((learned, now))
}
