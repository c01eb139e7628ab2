//! Which time a report is about, and in which day and week a moment lies.
//!
//! A range is half open: its first moment belongs to it, its last does not, so that two ranges that touch count nothing
//! twice. Days begin at midnight of one fixed distance from UTC. What "yesterday" means is told by a time that comes from
//! outside; there is no clock here.

use jiff::civil::{Date, ISOWeekDate};
use jiff::tz::{Offset, TimeZone};
use jiff::{SignedDuration, Span, Timestamp};

/// The most days a report is about: ten years. Each has a row, so they are bounded.
pub const MOST_DAYS: i64 = 3_660;

/// Days of a report that does not say which.
const DAYS: i64 = 30;

/// From a moment to another.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Range {
    from: Timestamp,
    to: Timestamp,
    offset: Offset,
}

/// Why a range is none.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BadRange {
    /// Not a time.
    #[error(
        "{what} {given:?} is not a date; write 2026-11-01, 2026-11-01T10:30:00Z, today, yesterday, or 12h, 7d, 4w ago"
    )]
    Date {
        /// Which end of the range.
        what: &'static str,
        /// What was given.
        given: String,
    },
    /// Not a distance from UTC.
    #[error("the distance from UTC {0:?} is none; write +09:00, -05:30 or Z")]
    Offset(String),
    /// It ends before it begins.
    #[error("the report would begin at {from} and end at {to}; begin before the end")]
    Empty {
        /// Where it would begin.
        from: String,
        /// Where it would end.
        to: String,
    },
    /// More days than a report has rows for.
    #[error("a report of {0} days; {MOST_DAYS} are the most: take a part of it")]
    Long(i64),
}

impl Range {
    /// The range that two texts give; what is left out is the last thirty days, today included. `now` is RFC 3339.
    pub fn read(
        from: Option<&str>,
        to: Option<&str>,
        offset: Option<&str>,
        now: &str,
    ) -> Result<Self, BadRange> {
        let offset = offset.map_or(Ok(Offset::UTC), read_offset)?;
        let now = now.parse().map_err(|_| BadRange::Date { what: "now", given: now.to_owned() })?;
        let day = Day { offset, now };
        let to = match to {
            Some(text) => day.read("the end", text)?,
            None => day.start(1).ok_or_else(|| bad("the end", "today"))?,
        };
        let from = match from {
            Some(text) => day.read("the beginning", text)?,
            // Thirty whole days up to the end; a moment before midnight still lies in the day it ends.
            None => to.checked_sub(SignedDuration::from_hours(24 * DAYS)).unwrap_or(Timestamp::MIN),
        };
        let range = Self { from, to, offset };
        let days = i64::from(range.last_day()) - i64::from(range.first_day()) + 1;
        match () {
            () if from >= to => Err(BadRange::Empty { from: from.to_string(), to: to.to_string() }),
            () if days > MOST_DAYS => Err(BadRange::Long(days)),
            () => Ok(range),
        }
    }

    /// Its first moment, as journals write times.
    pub fn from(&self) -> String {
        format!("{:.6}", self.from)
    }

    /// The moment at which it is over.
    pub fn to(&self) -> String {
        format!("{:.6}", self.to)
    }

    /// How far its days are from UTC, such as `+09:00`.
    pub fn offset(&self) -> String {
        let minutes = self.offset.seconds() / 60;
        let sign = if minutes < 0 { '-' } else { '+' };
        format!("{sign}{:02}:{:02}", minutes.abs() / 60, minutes.abs() % 60)
    }

    /// True when the moment lies in it.
    pub(crate) fn holds(&self, time: Timestamp) -> bool {
        self.from <= time && time < self.to
    }

    /// The day of a moment, counted from 1970-01-01.
    pub(crate) fn day(&self, time: Timestamp) -> i32 {
        let seconds = time.as_second() + i64::from(self.offset.seconds());
        i32::try_from(seconds.div_euclid(86_400)).unwrap_or(i32::MAX)
    }

    /// Its first day.
    pub(crate) fn first_day(&self) -> i32 {
        self.day(self.from)
    }

    /// Its last day: that of the last moment before the end.
    pub(crate) fn last_day(&self) -> i32 {
        self.day(self.to.checked_sub(SignedDuration::from_nanos(1)).unwrap_or(self.to))
    }
}

/// The Monday of a day's week.
pub(crate) fn monday(day: i32) -> i32 {
    // 1970-01-01 was a Thursday.
    day - (day + 3).rem_euclid(7)
}

/// A day as people write it.
pub(crate) fn day_name(day: i32) -> String {
    date(day).to_string()
}

/// A week as ISO 8601 numbers it, such as `2026-W46`.
pub(crate) fn week_name(monday: i32) -> String {
    let week: ISOWeekDate = date(monday).iso_week_date();
    format!("{}-W{:02}", week.year(), week.week())
}

fn date(day: i32) -> Date {
    Date::new(1970, 1, 1)
        .ok()
        .and_then(|epoch| epoch.checked_add(Span::new().try_days(day).ok()?).ok())
        .unwrap_or_default()
}

/// `+09:00`, `-0530`, `Z`.
fn read_offset(text: &str) -> Result<Offset, BadRange> {
    let wrong = || BadRange::Offset(text.to_owned());
    if matches!(text, "Z" | "z" | "UTC" | "utc") {
        return Ok(Offset::UTC);
    }
    let sign = match text.as_bytes().first() {
        Some(b'+') => 1,
        Some(b'-') => -1,
        _ => return Err(wrong()),
    };
    let digits: String = text[1..].chars().filter(|c| *c != ':').collect();
    if digits.len() != 4 || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return Err(wrong());
    }
    let number = |part: &str| part.parse::<i32>().map_err(|_| wrong());
    let (hours, minutes) = (number(&digits[..2])?, number(&digits[2..])?);
    if hours > 14 || minutes > 59 {
        return Err(wrong());
    }
    Offset::from_seconds(sign * (hours * 3600 + minutes * 60)).map_err(|_| wrong())
}

fn bad(what: &'static str, given: &str) -> BadRange {
    BadRange::Date { what, given: given.to_owned() }
}

/// Now, and where midnight is.
struct Day {
    offset: Offset,
    now: Timestamp,
}

impl Day {
    fn read(&self, what: &'static str, text: &str) -> Result<Timestamp, BadRange> {
        let read = match text {
            "now" => Some(self.now),
            "today" => self.start(0),
            "yesterday" => self.start(-1),
            "tomorrow" => self.start(1),
            _ => text.parse().ok().or_else(|| self.date(text)).or_else(|| self.ago(text)),
        };
        read.ok_or_else(|| bad(what, text))
    }

    /// The midnight so many days after today's.
    fn start(&self, days: i32) -> Option<Timestamp> {
        let span = Span::new().try_days(days).ok()?;
        self.midnight(self.offset.to_datetime(self.now).date().checked_add(span).ok()?)
    }

    fn midnight(&self, date: Date) -> Option<Timestamp> {
        Some(date.to_zoned(TimeZone::fixed(self.offset)).ok()?.timestamp())
    }

    fn date(&self, text: &str) -> Option<Timestamp> {
        // Nothing but a date: what else could be read as one would drop a time that was meant.
        let plain = text.len() == 10 && text.bytes().all(|b| b.is_ascii_digit() || b == b'-');
        self.midnight(text.parse().ok().filter(|_| plain)?)
    }

    /// `12h` is that long ago; `7d` and `4w` are the midnight so many days ago.
    fn ago(&self, text: &str) -> Option<Timestamp> {
        let unit = text.chars().last()?;
        let count: i32 = text[..text.len() - unit.len_utf8()].parse().ok().filter(|n| *n >= 0)?;
        match unit {
            'h' => self.now.checked_sub(SignedDuration::from_hours(i64::from(count))).ok(),
            'd' => self.start(count.checked_neg()?),
            'w' => self.start(count.checked_mul(-7)?),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: &str = "2026-11-15T20:00:00.000000Z";

    fn range(from: &str, to: &str, offset: &str) -> (String, String) {
        let range = Range::read(Some(from), Some(to), Some(offset), NOW).unwrap();
        (range.from(), range.to())
    }

    #[test]
    fn dates_are_read_where_their_midnight_is() {
        let (from, to) = range("2026-11-01", "2026-11-03", "+09:00");
        assert_eq!(
            (from.as_str(), to.as_str()),
            ("2026-10-31T15:00:00.000000Z", "2026-11-02T15:00:00.000000Z")
        );
        let (from, to) = range("yesterday", "today", "Z");
        assert_eq!(
            (from.as_str(), to.as_str()),
            ("2026-11-14T00:00:00.000000Z", "2026-11-15T00:00:00.000000Z")
        );
        // It is the sixteenth already where the sun rises.
        assert_eq!(range("today", "now", "+09:00").0, "2026-11-15T15:00:00.000000Z");
        assert_eq!(range("7d", "now", "Z"), ("2026-11-08T00:00:00.000000Z".into(), NOW.into()));
        assert_eq!(range("2h", "now", "Z").0, "2026-11-15T18:00:00.000000Z");
    }

    #[test]
    fn what_is_left_out_is_the_last_thirty_days_with_today() {
        let range = Range::read(None, None, None, NOW).unwrap();
        assert_eq!(day_name(range.first_day()), "2026-10-17");
        assert_eq!(day_name(range.last_day()), "2026-11-15");
        assert_eq!(range.offset(), "+00:00");
    }

    #[test]
    fn what_is_no_range_is_named() {
        let told = |from: &str, to: &str, offset: &str| {
            Range::read(Some(from), Some(to), Some(offset), NOW).unwrap_err().to_string()
        };
        assert!(told("soon", "today", "Z").contains("\"soon\" is not a date"));
        assert!(told("2026-13-01", "today", "Z").contains("2026-13-01"));
        assert!(told("-7d", "today", "Z").contains("-7d"));
        assert!(told("7時", "today", "Z").contains("7時"));
        for far in ["99999999d", "99999999w", "2147483647d", "2147483647w", "2147483647h"] {
            assert!(told(far, "today", "Z").contains(&format!("{far:?} is not a date")), "{far}");
        }
        assert!(told("today", "yesterday", "Z").contains("begin before the end"));
        assert!(told("today", "today", "Z").contains("begin before the end"));
        assert!(told("1900-01-01", "today", "Z").contains("3660 are the most"));
        for offset in ["9", "+9", "+25:00", "JST", "+09:60", "+٠٩:00"] {
            assert!(told("yesterday", "today", offset).contains(offset), "{offset}");
        }
    }

    #[test]
    fn a_week_begins_on_monday_and_has_the_number_of_its_thursday() {
        let day = |text: &str| {
            let range = Range::read(Some(text), Some("2027-02-01"), None, NOW).unwrap();
            range.first_day()
        };
        for (date, week) in
            [("2026-11-15", "2026-W46"), ("2026-12-31", "2026-W53"), ("2027-01-03", "2026-W53")]
        {
            assert_eq!(week_name(monday(day(date))), week);
        }
        assert_eq!(day_name(monday(day("2026-11-15"))), "2026-11-09");
        assert_eq!(day_name(monday(day("2026-11-16"))), "2026-11-16");
    }

    #[test]
    fn the_end_is_not_in_it() {
        let range = Range::read(Some("2026-11-01"), Some("2026-11-02"), Some("+09:00"), NOW).unwrap();
        let holds = |text: &str| range.holds(text.parse().unwrap());
        assert!(holds("2026-10-31T15:00:00Z") && holds("2026-11-01T14:59:59.999999Z"));
        assert!(!holds("2026-10-31T14:59:59.999999Z") && !holds("2026-11-01T15:00:00Z"));
        assert_eq!(range.first_day(), range.last_day());
    }
}
