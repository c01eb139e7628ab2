//! What an answer teaches about a model: how it counts, and how much it takes.
//!
//! Kept under the base URL and the model, because the same name means another window on another server. The factor
//! turns our tokens into the provider's; it is learned from what providers report, never assumed. The window is learned
//! from what a provider said when a request was too large, or from what it silently left out.

use crate::error::Result;
use komado_core::journal::Usage;
use komado_store::Lessons;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Below so many tokens the words around a request weigh more than the request.
const FEWEST: u64 = 400;
/// How much one answer counts against all before it.
const WEIGHT: f64 = 0.3;
/// So many answers are all counted; of those after them only what is new.
const YOUNG: u64 = 8;
/// What no counter is off by.
const FACTORS: std::ops::RangeInclusive<f64> = 0.2..=10.0;

/// What is known about a model at a place.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LearnedModel {
    /// The most tokens it takes, as it said itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub window: Option<u64>,
    /// What its server said of the window when that was learned: once that changes, the lesson is old.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub probed: Option<u64>,
    /// Its tokens for one of ours.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub factor: Option<f64>,
    /// Answers the factor was learned from, as far as they taught something.
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
    /// A limit it named once although it had answered more: believed when it says so again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub doubt: Option<u64>,
}

/// A request, as far as we can tell how large it was.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RequestSize {
    /// Tokens of the view.
    pub tokens: u64,
    /// Those among them that a provider may count otherwise, or not at all: thoughts, pictures, what only one dialect
    /// knows.
    pub uncertain: u64,
}

impl RequestSize {
    /// A request of words alone.
    pub const fn certain(tokens: u64) -> Self {
        Self { tokens, uncertain: 0 }
    }

    /// Tokens that any provider counts.
    const fn least(self) -> u64 {
        self.tokens.saturating_sub(self.uncertain)
    }

    /// True when it says something about how a provider counts.
    const fn tells(self) -> bool {
        self.tokens >= FEWEST && self.uncertain * 20 <= self.tokens
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
    /// All of it was read.
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
    /// The provider's tokens for one of ours.
    pub fn factor(&self) -> f64 {
        self.factor.unwrap_or(1.0)
    }

    /// A window of the provider's tokens in tokens of ours.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::cast_precision_loss)]
    pub fn ours(&self, tokens: u64) -> u64 {
        (tokens as f64 / self.factor()).floor() as u64
    }

    /// Tokens of ours in the provider's.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::cast_precision_loss)]
    pub fn theirs(&self, tokens: u64) -> u64 {
        (tokens as f64 * self.factor()).ceil() as u64
    }

    /// Learns from an answer to a request. A conversation that turns to another language is counted by the newest
    /// answer at once if that is the larger, and slowly if it is the smaller.
    pub fn hear(&mut self, size: RequestSize, usage: &Usage, probed: Option<u64>) -> UsageVerdict {
        let reported = usage.input_tokens + usage.cache_creation_tokens + usage.cache_read_tokens;
        if reported == 0 || size.least() < FEWEST {
            return UsageVerdict::Whole;
        }
        let expected = (size.least() as f64 * self.usual.unwrap_or(1.0).min(1.0)) as u64;
        if reported * 2 < expected {
            self.was_cut(reported, probed);
            return UsageVerdict::Truncated { reported, expected };
        }
        self.cut = None;
        self.doubt = self.doubt.filter(|doubt| reported <= *doubt);
        // What was answered was not too much, whatever was said before.
        self.window = self.window.map(|window| window.max(reported));
        if size.tells() {
            let ratio = (reported as f64 / size.tokens as f64).clamp(*FACTORS.start(), *FACTORS.end());
            let mean = self.factor.map_or(ratio, |factor| factor * (1.0 - WEIGHT) + ratio * WEIGHT);
            self.factor = Some(mean.max(ratio));
            self.samples += 1;
            if reported > self.most {
                self.usual = Some(ratio);
            }
        }
        self.most = self.most.max(reported);
        UsageVerdict::Whole
    }

    /// True when someone who knows `old` would do something else for knowing this: what is off by a hair is not worth a
    /// write for each answer.
    pub fn is_news_to(&self, old: &Self) -> bool {
        let moved = |new: Option<f64>, old: Option<f64>| match (new, old) {
            (Some(new), Some(old)) => (new / old - 1.0).abs() > 0.01,
            (new, old) => new.is_some() != old.is_some(),
        };
        let grown = |new: u64, old: u64| new.abs_diff(old) * 10 > old;
        let cut = match (self.cut, old.cut) {
            (Some(new), Some(old)) => grown(new, old),
            (new, old) => new.is_some() != old.is_some(),
        };
        let is_young = self.samples != old.samples && old.samples < YOUNG;
        let named = (self.window, self.probed, self.doubt) != (old.window, old.probed, old.doubt);
        named || cut || is_young || grown(self.most, old.most) || moved(self.factor, old.factor)
    }

    /// A server that leaves things out reads as much as ever, and no more: the window is learned when it did so twice.
    /// Less than that means that it counts only what is new to it.
    fn was_cut(&mut self, reported: u64, probed: Option<u64>) {
        let near = |other: u64| reported.abs_diff(other) * 10 <= other;
        if self.cut.is_some_and(near) && self.most > 0 && reported * 10 >= self.most * 9 {
            let most = self.most.max(reported);
            self.window = Some(self.window.map_or(most, |window| window.min(most)));
            self.probed = probed;
        }
        self.cut = Some(reported);
    }

    /// A limit below what it has answered is a slip of one server behind a name, or a server that was started anew: only
    /// who says it twice, and answers no more in between, means it.
    fn was_named(&mut self, limit: u64, probed: Option<u64>) {
        if limit < self.most && self.doubt != Some(limit) {
            self.doubt = Some(limit);
            return;
        }
        (self.window, self.probed, self.doubt) = (Some(limit), probed, None);
        self.most = self.most.min(limit);
    }

    /// Learns from a refusal of a request.
    pub fn refused(&mut self, size: RequestSize, refusal: SizeRefusal, probed: Option<u64>) {
        if let Some(limit) = refusal.limit.filter(|limit| *limit > 0) {
            self.was_named(limit, probed);
        } else if size.tells() && !refusal.is_vague {
            // It did not say how much it takes; certainly less than this, and no less than what it has answered.
            let refused = self.theirs(size.tokens).max(self.most);
            self.window = Some(self.window.map_or(refused, |window| window.min(refused)));
            self.probed = probed;
        }
        if let Some(actual) = refusal.actual.filter(|_| size.tells()) {
            let ratio = (actual as f64 / size.tokens as f64).clamp(*FACTORS.start(), *FACTORS.end());
            self.factor = Some(self.factor.map_or(ratio, |factor| factor.max(ratio)));
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
/// something to keep: what would change nothing is not written, and no caller waits for it.
pub fn learn<T>(
    lessons: &(impl Lessons + ?Sized),
    about: &str,
    mut learn: impl FnMut(&mut LearnedModel) -> T,
) -> Result<(T, LearnedModel)> {
    let before = known(lessons, about)?;
    let mut now = before;
    let mut learned = learn(&mut now);
    if !now.is_news_to(&before) {
        return Ok((learned, now));
    }
    lessons.learn(about, &mut |old| {
        let before = parsed(old);
        now = before;
        learned = learn(&mut now);
        now.is_news_to(&before).then(|| serde_json::to_string(&now).ok()).flatten()
    })?;
    Ok((learned, now))
}

// How large is the window?
//
// Four may know: the table of models, the server itself when asked, what a refusal taught, and the user. Each is
// trusted over those before it. Nothing is guessed: when no source knows, the window is unknown, and that is an error where a
// session opens.

/// Who said how large a window is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum WindowSource {
    /// The user.
    Given,
    /// The provider, when a request was too large.
    Learned,
    /// The server, when asked.
    Probed,
    /// The table of models.
    Listed,
}

komado_core::names! {
    /// The word for it.
    WindowSource { Given = "given", Learned = "learned", Probed = "probed", Listed = "listed" }
}

impl fmt::Display for WindowSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Given => "as you said",
            Self::Learned => "learned from a refusal",
            Self::Probed => "as its server says",
            Self::Listed => "from the table of models",
        })
    }
}

/// A window, in the provider's tokens.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ModelWindow {
    /// Tokens of request and answer together.
    pub tokens: u64,
    /// Who said so.
    pub told: WindowSource,
}

impl ModelWindow {
    /// The window by all that is known; `None` when it is not known.
    pub fn known(
        given: Option<u64>,
        lesson: &LearnedModel,
        probed: Option<u64>,
        listed: Option<u64>,
    ) -> Option<Self> {
        let told = |told| move |tokens| Self { tokens, told };
        // A server that now says something else than when the lesson was learned was started anew.
        let is_old = probed.is_some() && ![lesson.probed, lesson.window].contains(&probed);
        let learned = lesson.window.filter(|_| !is_old);
        given
            .map(told(WindowSource::Given))
            .or(learned.map(told(WindowSource::Learned)))
            .or(probed.map(told(WindowSource::Probed)))
            .or(listed.map(told(WindowSource::Listed)))
            .filter(|window| window.tokens > 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use komado_store::MemoryStore;

    fn usage(input: u64) -> Usage {
        Usage { input_tokens: input, ..Usage::default() }
    }

    fn hear(lesson: &mut LearnedModel, tokens: u64, reported: u64) -> UsageVerdict {
        lesson.hear(RequestSize::certain(tokens), &usage(reported), None)
    }

    #[test]
    fn the_factor_follows_what_is_reported_up_at_once_and_down_slowly() {
        let mut lesson = LearnedModel::default();
        assert_eq!(hear(&mut lesson, 1_000, 1_100), UsageVerdict::Whole);
        assert!((lesson.factor() - 1.1).abs() < 1e-9);
        hear(&mut lesson, 1_000, 1_500);
        assert!((lesson.factor() - 1.5).abs() < 1e-9, "the larger, at once");
        hear(&mut lesson, 1_000, 1_000);
        assert!((lesson.factor() - 1.35).abs() < 1e-9, "the smaller, slowly");
        assert_eq!((lesson.ours(1_350), lesson.theirs(1_000), lesson.samples), (1_000, 1_350, 3));
        (0..20).for_each(|_| assert_eq!(hear(&mut lesson, 1_000, 1_000), UsageVerdict::Whole));
        assert!(lesson.factor() < 1.01, "one odd request is forgotten");
        hear(&mut lesson, 300, 900);
        assert_eq!(lesson.samples, 23, "a short request says little");
    }

    #[test]
    fn what_was_read_from_a_cache_was_read() {
        let mut lesson = LearnedModel::default();
        let cached =
            Usage { input_tokens: 10, cache_creation_tokens: 90, cache_read_tokens: 900, output_tokens: 5 };
        assert_eq!(lesson.hear(RequestSize::certain(1_000), &cached, None), UsageVerdict::Whole);
        assert!((lesson.factor() - 1.0).abs() < 1e-9);
    }

    #[test]
    fn thoughts_that_are_not_sent_back_are_no_truncation() {
        let mut lesson = LearnedModel::default();
        for _ in 0..5 {
            let size = RequestSize { tokens: 9_000, uncertain: 8_000 };
            assert_eq!(lesson.hear(size, &usage(1_020), None), UsageVerdict::Whole);
        }
        assert_eq!((lesson.window, lesson.factor, lesson.most), (None, None, 1_020));
    }

    #[test]
    fn a_silent_truncation_is_seen_and_teaches_the_window_when_it_happens_again() {
        let mut lesson = LearnedModel::default();
        hear(&mut lesson, 1_900, 2_000);
        assert_eq!(
            hear(&mut lesson, 9_000, 2_040),
            UsageVerdict::Truncated { reported: 2_040, expected: 9_000 }
        );
        assert_eq!((lesson.window, lesson.samples), (None, 1));
        hear(&mut lesson, 9_100, 2_038);
        assert_eq!(lesson.window, Some(2_038));
        // A server that counts only what it had not cached left nothing out.
        let mut lesson = LearnedModel { most: 8_000, ..LearnedModel::default() };
        hear(&mut lesson, 9_000, 40);
        hear(&mut lesson, 9_000, 41);
        assert_eq!(lesson.window, None);
        // One that was never asked before has no usual.
        let mut lesson = LearnedModel::default();
        hear(&mut lesson, 9_000, 420);
        hear(&mut lesson, 9_000, 430);
        assert_eq!(lesson.window, None);
    }

    #[test]
    fn a_truncation_that_sets_in_slowly_is_seen_all_the_same() {
        let (mut lesson, mut seen) = (LearnedModel::default(), None);
        for estimated in (300..9_000).step_by(180) {
            if let UsageVerdict::Truncated { expected, .. } =
                hear(&mut lesson, estimated, estimated.min(2_040))
            {
                seen = seen.or(Some(expected));
            }
        }
        assert!(seen.is_some_and(|expected| expected < 4_500), "{seen:?}");
        assert_eq!(lesson.window, Some(2_040));
    }

    #[test]
    fn a_refusal_teaches_and_a_larger_answer_corrects_it() {
        let mut lesson = LearnedModel::default();
        let size = RequestSize::certain(5_000);
        let named = SizeRefusal { limit: Some(4_096), actual: Some(6_000), is_vague: false };
        lesson.refused(size, named, Some(4_096));
        assert_eq!((lesson.window, lesson.probed), (Some(4_096), Some(4_096)));
        assert!((lesson.factor() - 1.2).abs() < 1e-9);
        lesson.refused(size, SizeRefusal::default(), None);
        assert_eq!(lesson.window, Some(4_096), "a limit that was named is better than none");
        hear(&mut lesson, 5_000, 6_100);
        assert_eq!(lesson.window, Some(6_100));
        let mut unnamed = LearnedModel::default();
        unnamed.refused(size, SizeRefusal { is_vague: true, ..SizeRefusal::default() }, None);
        assert_eq!(unnamed.window, None, "bytes are not tokens");
        unnamed.refused(size, SizeRefusal::default(), None);
        assert_eq!(unnamed.window, Some(5_000));
        let mut proven = LearnedModel { most: 7_000, ..LearnedModel::default() };
        proven.refused(size, SizeRefusal::default(), None);
        assert_eq!(proven.window, Some(7_000), "it has answered more than that");
    }

    /// Counts what is written.
    #[derive(Default)]
    struct Counted(MemoryStore, std::sync::atomic::AtomicU32);

    impl Lessons for Counted {
        fn lesson(&self, about: &str) -> komado_store::Result<Option<String>> {
            self.0.lesson(about)
        }

        fn put_lesson(&self, about: &str, old: Option<&str>, new: &str) -> komado_store::Result<bool> {
            self.1.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            self.0.put_lesson(about, old, new)
        }

        fn lessons(&self) -> komado_store::Result<Vec<(String, String)>> {
            self.0.lessons()
        }

        fn forget(&self, about: &str) -> komado_store::Result<bool> {
            self.0.forget(about)
        }
    }

    #[test]
    fn what_teaches_nothing_new_is_not_written() {
        let store = Counted::default();
        let say = |tokens, reported| {
            learn(&store, "m", |lesson| lesson.hear(RequestSize::certain(tokens), &usage(reported), None))
                .unwrap();
            store.1.load(std::sync::atomic::Ordering::Relaxed)
        };
        let first = (0..50).fold(0, |_, n| say(10_000 + n, 11_000 + n));
        assert_eq!(u64::from(first), YOUNG, "the first few, and then none");
        assert_eq!(say(10_000, 11_050), first, "a hair more");
        assert_eq!(say(10_000, 12_500), first + 1, "another factor");
        assert_eq!(say(50_000, 62_500), first + 2, "far more was answered");
        assert_eq!(say(50_000, 9_000), first + 3, "something was left out");
    }

    #[test]
    fn a_limit_below_what_was_answered_is_believed_when_it_is_said_again() {
        let named = SizeRefusal { limit: Some(2_000), ..SizeRefusal::default() };
        let size = RequestSize::certain(9_000);
        let mut lesson = LearnedModel::default();
        hear(&mut lesson, 9_000, 9_063);
        lesson.refused(size, named, None);
        assert_eq!((lesson.window, lesson.doubt, lesson.most), (None, Some(2_000), 9_063));
        // The smaller request that follows says nothing about it; a large one that is answered does.
        hear(&mut lesson, 1_500, 1_510);
        assert_eq!(lesson.doubt, Some(2_000));
        hear(&mut lesson, 9_000, 9_063);
        assert_eq!(lesson.doubt, None);
        lesson.refused(size, named, None);
        assert_eq!(lesson.window, None, "what was answered since takes the first one back");
        lesson.refused(size, named, Some(2_048));
        assert_eq!((lesson.window, lesson.doubt, lesson.most), (Some(2_000), None, 2_000));
        assert_eq!(lesson.probed, Some(2_048));
    }

    #[test]
    fn lessons_are_kept_by_place_and_model() {
        let store = MemoryStore::default();
        let here = about("http://h:1/v1", "m");
        assert_eq!(known(&store, &here).unwrap(), LearnedModel::default());
        let named = SizeRefusal { limit: Some(9), ..SizeRefusal::default() };
        learn(&store, &here, |lesson| lesson.refused(RequestSize::certain(0), named, None)).unwrap();
        assert_eq!(known(&store, &here).unwrap().window, Some(9));
        assert_eq!(known(&store, &about("http://h:2/v1", "m")).unwrap().window, None);
    }
}

#[cfg(test)]
mod window_tests {
    use super::*;

    #[test]
    fn who_knows_better_is_trusted_over_who_knows_less() {
        let listed = Some(128_000);
        let lesson = LearnedModel { window: Some(4_096), probed: Some(8_192), ..LearnedModel::default() };
        let known = |given, lesson: &LearnedModel, probed, listed| {
            ModelWindow::known(given, lesson, probed, listed).map(|window| (window.tokens, window.told))
        };
        let none = LearnedModel::default();
        assert_eq!(known(None, &none, None, None), None);
        assert_eq!(known(None, &none, None, listed), Some((128_000, WindowSource::Listed)));
        assert_eq!(known(None, &none, Some(8_192), listed), Some((8_192, WindowSource::Probed)));
        assert_eq!(known(None, &lesson, Some(8_192), listed), Some((4_096, WindowSource::Learned)));
        assert_eq!(known(Some(2_048), &lesson, Some(8_192), listed), Some((2_048, WindowSource::Given)));
    }

    #[test]
    fn a_lesson_from_before_the_server_was_started_anew_is_forgotten() {
        let lesson = LearnedModel { window: Some(2_000), probed: Some(2_048), ..LearnedModel::default() };
        let known = |probed| ModelWindow::known(None, &lesson, probed, None).unwrap();
        assert_eq!(known(Some(2_048)).told, WindowSource::Learned);
        assert_eq!(known(None).told, WindowSource::Learned);
        assert_eq!(known(Some(8_192)), ModelWindow { tokens: 8_192, told: WindowSource::Probed });
    }
}
