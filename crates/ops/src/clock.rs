//! Times: as every file of ours writes them, and as people write them.

use crate::{OpFault, OpResult};
use jiff::civil::Date;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};
use komado_core::amount;

/// A time in UTC with microseconds: all of one length, so that they sort as text.
pub fn stamp(time: jiff::Timestamp) -> String {
    format!("{time:.6}")
}

/// The time so many days ago.
pub fn days_ago(days: u32) -> String {
    let ago = jiff::SignedDuration::from_hours(24 * i64::from(days));
    stamp(jiff::Timestamp::now().checked_sub(ago).unwrap_or(jiff::Timestamp::MIN))
}

/// Seconds between two stamps, when both are times.
pub fn seconds_between(from: &str, to: &str) -> Option<f64> {
    let (from, to) = (from.parse::<jiff::Timestamp>().ok()?, to.parse::<jiff::Timestamp>().ok()?);
    Some(to.duration_since(from).as_secs_f64())
}

/// How long ago a stamp is, for people: `just now`, `5 min ago`, `3 h ago`, `2 days ago`.
pub fn age(stamp: &str, now: &str) -> String {
    let seconds = seconds_between(stamp, now).unwrap_or_default().max(0.0) as u64;
    match seconds {
        0..60 => "just now".to_owned(),
        _ => format!("{} ago", amount::age(seconds)),
    }
}

/// The first moment that is meant.
pub(crate) fn since(text: &str, now: &str) -> OpResult<String> {
    time("since", text, now, SignedDuration::ZERO)
}

/// The last moment that is meant: of a day, its end.
pub(crate) fn until(text: &str, now: &str) -> OpResult<String> {
    time("until", text, now, SignedDuration::from_hours(24) - SignedDuration::from_micros(1))
}

/// A time as entries write it; of a whole day the moment `into` it.
fn time(name: &str, text: &str, now: &str, into: SignedDuration) -> OpResult<String> {
    let wrong = || {
        let forms = "2024-01-15, 2024-01-15T10:30:00Z, today, yesterday, or 3h, 2d, 1w ago";
        OpFault::usage(format!("{name} {text:?} is not a time; write {forms}"))
    };
    if let Ok(time) = text.parse::<Timestamp>() {
        return Ok(stamp(time));
    }
    if let Ok(date) = text.parse::<Date>() {
        let day = date.to_zoned(TimeZone::UTC).map_err(|_| wrong())?.timestamp();
        return Ok(stamp(day.checked_add(into).map_err(|_| wrong())?));
    }
    if let Some(days) = ["today", "yesterday"].iter().position(|day| *day == text) {
        let now: Timestamp = now.parse().map_err(|_| wrong())?;
        let day =
            now.to_zoned(TimeZone::UTC).date().to_zoned(TimeZone::UTC).map_err(|_| wrong())?.timestamp();
        let back = SignedDuration::from_hours(24 * days as i64);
        return Ok(stamp(day.checked_sub(back).and_then(|day| day.checked_add(into)).map_err(|_| wrong())?));
    }
    let unit = match text.chars().last() {
        Some('s') => 1,
        Some('m') => 60,
        Some('h') => 3600,
        Some('d') => 24 * 3600,
        Some('w') => 7 * 24 * 3600,
        _ => return Err(wrong()),
    };
    let count: i64 = text[..text.len() - 1].parse().map_err(|_| wrong())?;
    let seconds = count.checked_mul(unit).filter(|seconds| *seconds >= 0).ok_or_else(wrong)?;
    let now: Timestamp = now.parse().map_err(|_| wrong())?;
    Ok(stamp(now.checked_sub(SignedDuration::from_secs(seconds)).map_err(|_| wrong())?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_age_is_told_in_the_largest_unit_that_it_fills() {
        let age = |then: &str| age(then, "2024-02-01T12:00:00.000000Z");
        assert_eq!(age("2024-02-01T11:59:10.000000Z"), "just now");
        assert_eq!(age("2024-02-01T12:00:10.000000Z"), "just now", "clocks differ");
        assert_eq!(age("2024-02-01T11:55:00.000000Z"), "5 min ago");
        assert_eq!(age("2024-02-01T09:00:00.000000Z"), "3 h ago");
        assert_eq!(age("2024-01-31T11:00:00.000000Z"), "1 day ago");
        assert_eq!(age("2024-01-02T12:00:00.000000Z"), "30 days ago");
    }

    #[test]
    fn times_are_days_moments_or_spans() {
        let now = "2024-02-01T00:00:00.000000Z";
        let after = |text: &str| time("since", text, now, SignedDuration::from_hours(1)).unwrap();
        assert_eq!(since("2024-01-15", now).unwrap(), "2024-01-15T00:00:00.000000Z");
        assert_eq!(after("2024-01-15"), "2024-01-15T01:00:00.000000Z");
        assert_eq!(after("2024-01-15T12:00:00+09:00"), "2024-01-15T03:00:00.000000Z");
        assert_eq!(after("2h"), "2024-01-31T22:00:00.000000Z");
        assert!(after("2h") < after("1m") && after("1m") < after("59s"));
        for wrong in ["", "tomorrow", "3x", "-1d", "99999999999999999d", "窓", "日"] {
            assert!(until(wrong, now).is_err(), "{wrong}");
        }
    }
}
