//! How long a tracker wants to be left alone, and how long one is ready to.
//!
//! No clock is read here: what a tracker says about a time is read against the date of its own answer, so that clocks
//! need not agree.

use jiff::Timestamp;
use jiff::fmt::rfc2822;
use komado_provider::Cancel;
use std::thread;
use std::time::Duration;

/// How often something is tried at most.
const TRIES: u32 = 5;
/// The first pause where the tracker asks for none; each is twice the one before.
const PAUSE: Duration = Duration::from_millis(500);
/// For a tracker that says only that it was too much.
const UNSAID: Duration = Duration::from_secs(60);
/// How often a wait looks whether it is still wanted.
const LOOK: Duration = Duration::from_millis(50);

/// A pause that a tracker asks for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct RequestedPause {
    /// From now.
    pub(super) length: Duration,
    /// Until when, by its own clock.
    pub(super) until: Option<Timestamp>,
}

/// What the headers of a refusal ask for; `None` when they do not speak of it.
pub(super) fn asked(headers: &[(String, String)]) -> Option<RequestedPause> {
    let now = find(headers, "date").and_then(date);
    let later = find(headers, "retry-after");
    if let Some(seconds) = later.and_then(|value| value.parse::<u32>().ok()) {
        let length = Duration::from_secs(seconds.into());
        return Some(RequestedPause { length, until: now.and_then(|now| now.checked_add(length).ok()) });
    }
    let is_spent = ["x-ratelimit-remaining", "ratelimit-remaining"]
        .iter()
        .any(|name| find(headers, name).is_some_and(|left| left == "0"));
    let reset = || find(headers, "x-ratelimit-reset").or_else(|| find(headers, "ratelimit-reset"));
    let spent = || is_spent.then(reset)?.and_then(|at| Timestamp::from_second(at.parse().ok()?).ok());
    let until = later.and_then(date).or_else(spent)?;
    let length = now.map_or(UNSAID, |now| Duration::try_from(until.duration_since(now)).unwrap_or_default());
    Some(RequestedPause { length, until: Some(until) })
}

/// For a tracker that says only in words that it was too much.
pub(super) fn unsaid() -> RequestedPause {
    RequestedPause { length: UNSAID, until: None }
}

fn find<'a>(headers: &'a [(String, String)], name: &str) -> Option<&'a str> {
    headers.iter().find(|(other, _)| other == name).map(|(_, value)| value.trim())
}

fn date(text: &str) -> Option<Timestamp> {
    rfc2822::parse(text).ok().map(|zoned| zoned.timestamp())
}

/// Something that may pass.
#[derive(Debug)]
pub(super) struct TransientFailure {
    /// What.
    pub(super) why: String,
    /// The pause that was asked for.
    pub(super) wait: Option<RequestedPause>,
}

/// How often it was tried, and how much patience is left.
pub(super) struct RetryState {
    count: u32,
    left: Duration,
    patience: Duration,
}

impl RetryState {
    pub(super) fn new(patience: Duration) -> Self {
        Self { count: 0, left: patience, patience }
    }

    /// Waits until the next try; why there is none, in words. The wait ends when `cancel` is said.
    pub(super) fn rest(&mut self, passing: &TransientFailure, cancel: &Cancel) -> Result<(), String> {
        self.count += 1;
        let why = &passing.why;
        let length = match &passing.wait {
            Some(wait) if wait.length > self.left => return Err(self.too_long(why, wait)),
            Some(wait) => wait.length,
            None => PAUSE.saturating_mul(1 << (self.count - 1).min(8)).min(self.left),
        };
        if self.count >= TRIES {
            return Err(format!("{why}; it was tried {TRIES} times"));
        }
        self.left = self.left.saturating_sub(length);
        if !slept(length, cancel) {
            return Err(format!("{why}; the wait for it was broken off"));
        }
        Ok(())
    }

    fn too_long(&self, why: &str, wait: &RequestedPause) -> String {
        let until = wait.until.map(|until| format!(" at {until}")).unwrap_or_default();
        format!(
            "{why}; it wants to be asked again{until}, in {} s, which is longer than the {} s of its \
             patience_seconds",
            wait.length.as_secs(),
            self.patience.as_secs()
        )
    }
}

/// Sleeps; false when it was broken off.
fn slept(length: Duration, cancel: &Cancel) -> bool {
    let mut left = length;
    while !left.is_zero() && !cancel.is_cancelled() {
        let step = left.min(LOOK);
        thread::sleep(step);
        left -= step;
    }
    !cancel.is_cancelled()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
        pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn a_pause_is_read_against_the_answers_own_clock() {
        let date = ("date", "Thu, 01 Jan 2026 00:00:00 GMT");
        for (pairs, seconds) in [
            (vec![date, ("retry-after", "7")], 7),
            (vec![("retry-after", "7")], 7),
            (vec![date, ("retry-after", "Thu, 01 Jan 2026 00:00:09 GMT")], 9),
            (vec![date, ("x-ratelimit-remaining", "0"), ("x-ratelimit-reset", "1767225605")], 5),
            (vec![date, ("ratelimit-remaining", "0"), ("ratelimit-reset", "1767225605")], 5),
            // A time that has passed is now; a time without a clock to read it by is a minute.
            (vec![date, ("x-ratelimit-remaining", "0"), ("x-ratelimit-reset", "1")], 0),
            (vec![("x-ratelimit-remaining", "0"), ("x-ratelimit-reset", "1767225605")], 60),
        ] {
            let wait = asked(&headers(&pairs));
            assert_eq!(wait.map(|wait| wait.length.as_secs()), Some(seconds), "{pairs:?}");
        }
    }

    #[test]
    fn a_quota_that_is_not_used_up_asks_for_nothing() {
        let pairs = [("x-ratelimit-remaining", "12"), ("x-ratelimit-reset", "1767225605")];
        assert_eq!(asked(&headers(&pairs)), None);
        assert_eq!(asked(&headers(&[("retry-after", "soon")])), None);
    }

    #[test]
    fn patience_ends_with_the_number_of_tries_or_with_the_time() {
        let mut tries = RetryState::new(Duration::ZERO);
        let broken = TransientFailure { why: "it broke".into(), wait: None };
        let ends = (0..TRIES).map(|_| tries.rest(&broken, &Cancel::default())).find_map(Result::err);
        assert_eq!(ends.as_deref(), Some("it broke; it was tried 5 times"));

        let until = Timestamp::from_second(1_767_225_600).ok();
        let busy = TransientFailure {
            why: "busy".into(),
            wait: Some(RequestedPause { length: Duration::from_secs(90), until }),
        };
        let why = RetryState::new(Duration::from_secs(60)).rest(&busy, &Cancel::default()).unwrap_err();
        assert!(
            why.contains("2026-01-01T00:00:00Z") && why.contains("90 s") && why.contains("60 s"),
            "{why}"
        );
    }
}
