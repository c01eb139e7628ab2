//! Whether a failure may pass, and how long to wait for that.
//!
//! What a provider asks for counts before what would be our own choice. Pure but for the jitter: the time is told, not
//! read.

use super::Patience;
use backon::{BackoffBuilder, ExponentialBuilder};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Longer than anyone waits, and short enough to be reckoned with.
pub(super) const DAY: Duration = Duration::from_secs(86_400);

/// True for an answer that says: not now.
pub(super) fn is_passing(status: u16) -> bool {
    matches!(status, 408 | 409 | 429 | 500 | 502 | 503 | 504 | 529)
}

/// True when the provider says itself that to try again is of no use.
pub(super) fn is_refused(headers: &[(String, String)]) -> bool {
    find(headers, "x-should-retry").is_some_and(|value| value.eq_ignore_ascii_case("false"))
}

/// Our own delays: each about twice the one before, never quite the same, so that many clients do not come back at once.
pub(super) fn delays(patience: &Patience) -> impl Iterator<Item = Duration> + use<> {
    let longest = patience.longest_delay.min(DAY);
    ExponentialBuilder::new()
        .with_min_delay(patience.delay.min(longest))
        .with_max_delay(longest)
        .without_max_times()
        .with_jitter()
        .build()
        .map(move |delay| delay.min(longest))
}

/// The delay that an answer asks for. A date is read against the answer's own, so that clocks need not agree; `now` is
/// for an answer that has none.
pub(super) fn asked(headers: &[(String, String)], now: SystemTime) -> Option<Duration> {
    let milliseconds = find(headers, "retry-after-ms").and_then(number).map(|number| number / 1000.0);
    let value = find(headers, "retry-after");
    if let Some(seconds) = milliseconds.or_else(|| value.and_then(number)) {
        return Duration::try_from_secs_f64(seconds).ok();
    }
    let until = date(value?)?;
    let now = find(headers, "date").and_then(date).unwrap_or_else(|| {
        now.duration_since(UNIX_EPOCH).map_or(0, |since| i64::try_from(since.as_secs()).unwrap_or(i64::MAX))
    });
    u64::try_from(until.saturating_sub(now)).ok().map(Duration::from_secs)
}

fn find<'a>(headers: &'a [(String, String)], name: &str) -> Option<&'a str> {
    headers.iter().find(|(other, _)| other.eq_ignore_ascii_case(name)).map(|(_, value)| value.trim())
}

fn number(text: &str) -> Option<f64> {
    text.parse::<f64>().ok().filter(|number| number.is_finite() && *number >= 0.0)
}

/// Seconds since 1970 of `Sun, 06 Nov 1994 08:49:37 GMT`, the one form of a date that servers still write.
fn date(text: &str) -> Option<i64> {
    let words: Vec<&str> = text.split_ascii_whitespace().collect();
    let [_, day, month, year, time, "GMT"] = words[..] else { return None };
    let months = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let month = i64::try_from(months.iter().position(|name| *name == month)?).ok()? + 1;
    let clock: Vec<i64> = time.split(':').map(|part| part.parse().ok()).collect::<Option<_>>()?;
    let [hour, minute, second] = clock[..] else { return None };
    let (day, year) = (day.parse::<i64>().ok()?, year.parse::<i64>().ok()?);
    let fits = (1..=31).contains(&day)
        && (1970..=9999).contains(&year)
        && (0..24).contains(&hour)
        && (0..60).contains(&minute)
        && (0..=60).contains(&second);
    fits.then(|| days(year, month, day) * 86_400 + hour * 3600 + minute * 60 + second)
}

/// Days from 1970-01-01, with years that begin in March, so that the leap day is the last of its year.
fn days(year: i64, month: i64, day: i64) -> i64 {
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let of_year = (153 * month + 2) / 5 + day - 1;
    year * 365 + year / 4 - year / 100 + year / 400 + of_year - 719_468
}

#[cfg(test)]
mod tests {
    use super::*;

    type Pairs<'a> = &'a [(&'a str, &'a str)];

    fn headers(pairs: Pairs<'_>) -> Vec<(String, String)> {
        pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn what_a_provider_asks_for_is_read_in_every_form() {
        let at = UNIX_EPOCH + Duration::from_secs(784_111_770);
        let table: [(Pairs<'_>, Option<f64>); 11] = [
            (&[("retry-after", "7")], Some(7.0)),
            (&[("Retry-After", " 0.5 ")], Some(0.5)),
            (&[("retry-after-ms", "250"), ("retry-after", "7")], Some(0.25)),
            (&[("retry-after-ms", "soon"), ("retry-after", "7")], Some(7.0)),
            (&[("retry-after", "Sun, 06 Nov 1994 08:49:37 GMT")], Some(7.0)),
            (
                &[
                    ("date", "Tue, 29 Feb 2028 23:59:50 GMT"),
                    ("retry-after", "Wed, 01 Mar 2028 00:00:00 GMT"),
                ],
                Some(10.0),
            ),
            (&[("retry-after", "Sun, 06 Nov 1994 08:49:00 GMT")], None),
            (&[("retry-after", "-1")], None),
            (&[("retry-after", "NaN")], None),
            (&[("retry-after", "Sun, 06 Foo 1994 08:49:37 GMT")], None),
            (&[], None),
        ];
        for (pairs, seconds) in table {
            assert_eq!(asked(&headers(pairs), at), seconds.map(Duration::from_secs_f64), "{pairs:?}");
        }
    }

    #[test]
    fn our_own_delays_grow_and_stay_under_the_longest() {
        let patience = Patience {
            delay: Duration::from_secs(2),
            longest_delay: Duration::from_secs(10),
            ..Patience::default()
        };
        let all: Vec<Duration> = delays(&patience).take(20).collect();
        assert!((2..4).contains(&all[0].as_secs()) && (4..8).contains(&all[1].as_secs()), "{all:?}");
        assert!(all.iter().all(|delay| *delay <= patience.longest_delay), "{all:?}");
    }

    #[test]
    fn no_patience_is_too_long_to_be_reckoned_with() {
        let patience = Patience { delay: Duration::MAX, longest_delay: Duration::MAX, ..Patience::default() };
        assert_eq!(delays(&patience).take(9).max(), Some(DAY));
    }

    #[test]
    fn a_status_that_may_pass_is_told_from_one_that_stays() {
        assert!([408, 409, 429, 500, 502, 503, 504, 529].into_iter().all(is_passing));
        assert!(![200, 301, 400, 401, 403, 404, 413, 422, 501].into_iter().any(is_passing));
        assert!(is_refused(&headers(&[("X-Should-Retry", "false")])));
        assert!(!is_refused(&headers(&[("x-should-retry", "true")])));
    }
}
