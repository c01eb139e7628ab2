//! What an answer teaches about a model: how it counts, and how much it takes.
//!
//! Kept under the base URL and the model, because the same name means another window on another server. The factor
//! turns our tokens into the provider's; it is learned from what providers report, never assumed. The window is learned
//! from what a provider said when a request was too large, or from what it silently left out.

use crate::error::Result;
use komado_core::journal::Usage;
use komado_store::Lessons;
use serde::{Deserialize, Serialize};

/// Below so many tokens the words around a request weigh more than the request.
const FEWEST: u64 = 200;
/// How much one answer counts against all before it.
const WEIGHT: f64 = 0.3;
/// An answer that reports less than this share of what is usual is not taken for the new usual at once.
const STEADY: f64 = 0.85;
/// What no counter is off by.
const FACTORS: std::ops::RangeInclusive<f64> = 0.2..=10.0;

/// What is known about a model at a place.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Lesson {
    /// The most tokens it takes, as it said itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub window: Option<u64>,
    /// What its server said of the window when that was learned: once that changes, the lesson is old.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub probed: Option<u64>,
    /// Its tokens for one of ours.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub factor: Option<f64>,
    /// Answers the factor was learned from.
    #[serde(default)]
    pub samples: u64,
    /// The largest request it has answered, in its own tokens.
    #[serde(default)]
    pub most: u64,
}

/// What an answer's usage says about a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Read {
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

impl Lesson {
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

    /// Learns from an answer to a request of `estimated` tokens of ours. A later answer may say more than all before it:
    /// a conversation that turns to another language is counted by the newest, if that is the larger.
    pub fn hear(&mut self, estimated: u64, usage: &Usage) -> Read {
        let reported = usage.input_tokens + usage.cache_creation_tokens + usage.cache_read_tokens;
        if reported == 0 || estimated < FEWEST {
            return Read::Whole;
        }
        let expected = (estimated as f64 * self.factor().min(1.0)) as u64;
        if reported * 2 < expected {
            // Truncated at the top: what was read is about the most that ever was. Less means that only news was counted.
            if reported * 10 >= self.most * 9 && reported >= FEWEST {
                self.window = Some(self.window.map_or(reported, |window| window.min(reported)));
            }
            return Read::Truncated { reported, expected };
        }
        let ratio = (reported as f64 / estimated as f64).clamp(*FACTORS.start(), *FACTORS.end());
        if ratio < self.factor() * STEADY && reported * 50 <= self.most * 51 {
            // Less than usual, and no more than ever before: what begins like this may be a truncation.
            return Read::Whole;
        }
        let mean = self.factor.map_or(ratio, |factor| factor * (1.0 - WEIGHT) + ratio * WEIGHT);
        self.factor = Some(mean.max(ratio));
        self.samples += 1;
        self.most = self.most.max(reported);
        // What was answered was not too much, whatever was said before.
        self.window = self.window.map(|window| window.max(reported));
        Read::Whole
    }

    /// Learns from a refusal: `limit` and `actual` as the provider gave them, for a request of `estimated` tokens of ours.
    pub fn refused(&mut self, estimated: u64, limit: Option<u64>, actual: Option<u64>, probed: Option<u64>) {
        if let Some(limit) = limit.filter(|limit| *limit > 0) {
            (self.window, self.probed) = (Some(limit), probed);
        } else if estimated >= FEWEST {
            // It did not say how much it takes; certainly less than this.
            let refused = self.theirs(estimated);
            self.window = Some(self.window.map_or(refused, |window| window.min(refused)));
            self.probed = probed;
        }
        if let Some(actual) = actual.filter(|_| estimated >= FEWEST) {
            let ratio = (actual as f64 / estimated as f64).clamp(*FACTORS.start(), *FACTORS.end());
            self.factor = Some(self.factor.map_or(ratio, |factor| factor.max(ratio)));
        }
    }
}

/// The name under which lessons about a model at a place are kept.
pub fn about(place: &str, model: &str) -> String {
    format!("{place} {model}")
}

/// What is known; a lesson that cannot be read is none.
pub fn known(lessons: &(impl Lessons + ?Sized), about: &str) -> Result<Lesson> {
    let text = lessons.lesson(about)?;
    Ok(text.and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default())
}

/// Changes what is known, in one step; gives what `learn` gave.
pub fn learn<T>(
    lessons: &(impl Lessons + ?Sized),
    about: &str,
    mut learn: impl FnMut(&mut Lesson) -> T,
) -> Result<Option<T>> {
    let mut learned = None;
    lessons.learn(about, &mut |old| {
        let mut lesson: Lesson = old.and_then(|old| serde_json::from_str(old).ok()).unwrap_or_default();
        let before = lesson;
        learned = Some(learn(&mut lesson));
        (lesson != before).then(|| serde_json::to_string(&lesson).ok()).flatten()
    })?;
    Ok(learned)
}

#[cfg(test)]
mod tests {
    use super::*;
    use komado_store::MemoryStore;

    fn usage(input: u64) -> Usage {
        Usage { input_tokens: input, ..Usage::default() }
    }

    #[test]
    fn the_factor_follows_what_is_reported_and_never_falls_below_the_last_answer() {
        let mut lesson = Lesson::default();
        assert_eq!(lesson.hear(1_000, &usage(1_100)), Read::Whole);
        assert!((lesson.factor() - 1.1).abs() < 1e-9);
        lesson.hear(1_000, &usage(1_500));
        assert!((lesson.factor() - 1.5).abs() < 1e-9, "the larger, at once");
        lesson.hear(2_000, &usage(2_000));
        assert!((lesson.factor() - 1.35).abs() < 1e-9, "the smaller, slowly");
        assert_eq!(
            (lesson.ours(1_350), lesson.theirs(1_000), lesson.samples, lesson.most),
            (1_000, 1_350, 3, 2_000)
        );
        lesson.hear(100, &usage(900));
        assert_eq!(lesson.samples, 3, "a short request says little");
    }

    #[test]
    fn what_was_read_from_a_cache_was_read() {
        let mut lesson = Lesson::default();
        let cached =
            Usage { input_tokens: 10, cache_creation_tokens: 90, cache_read_tokens: 900, output_tokens: 5 };
        assert_eq!(lesson.hear(1_000, &cached), Read::Whole);
        assert!((lesson.factor() - 1.0).abs() < 1e-9);
    }

    #[test]
    fn a_silent_truncation_is_seen_and_teaches_the_window() {
        let mut lesson = Lesson::default();
        lesson.hear(1_900, &usage(2_000));
        assert_eq!(lesson.hear(9_000, &usage(2_040)), Read::Truncated { reported: 2_040, expected: 9_000 });
        assert_eq!((lesson.window, lesson.samples), (Some(2_040), 1));
        // A server that counts only what it had not cached left nothing out.
        let mut lesson = Lesson { most: 8_000, ..Lesson::default() };
        lesson.hear(9_000, &usage(40));
        assert_eq!(lesson.window, None);
    }

    #[test]
    fn a_truncation_that_sets_in_slowly_is_seen_all_the_same() {
        let (mut lesson, mut seen) = (Lesson::default(), None);
        for estimated in (300..9_000).step_by(180) {
            if let Read::Truncated { expected, .. } = lesson.hear(estimated, &usage(estimated.min(2_040))) {
                seen = seen.or(Some(expected));
            }
        }
        assert!(seen.is_some_and(|expected| expected < 4_500), "{seen:?}");
        assert_eq!(lesson.window, Some(2_040));
    }

    #[test]
    fn a_refusal_teaches_and_a_larger_answer_corrects_it() {
        let mut lesson = Lesson::default();
        lesson.refused(5_000, Some(4_096), Some(6_000), Some(4_096));
        assert_eq!((lesson.window, lesson.probed), (Some(4_096), Some(4_096)));
        assert!((lesson.factor() - 1.2).abs() < 1e-9);
        lesson.refused(5_000, None, None, None);
        assert_eq!(lesson.window, Some(4_096), "a limit that was named is better than none");
        let mut unnamed = Lesson::default();
        unnamed.refused(5_000, None, None, None);
        assert_eq!(unnamed.window, Some(5_000));
        lesson.hear(5_000, &usage(6_100));
        assert_eq!(lesson.window, Some(6_100));
    }

    #[test]
    fn lessons_are_kept_by_place_and_model() {
        let store = MemoryStore::default();
        let here = about("http://h:1/v1", "m");
        assert_eq!(known(&store, &here).unwrap(), Lesson::default());
        learn(&store, &here, |lesson| lesson.refused(0, Some(9), None, None)).unwrap();
        assert_eq!(known(&store, &here).unwrap().window, Some(9));
        assert_eq!(known(&store, &about("http://h:2/v1", "m")).unwrap().window, None);
    }
}
