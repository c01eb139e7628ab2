//! Numbers of tokens and spans of time as people write them: `12k`, `1_000`, `30d`.
//!
//! A plain number means what it always meant; what is not understood is never guessed at.

use crate::notation::grouped;

/// How a number of tokens may be written, for errors.
pub const TOKEN_FORMS: &str = "8000, 12,000, 12_000, 128k (128,000) or 1m";

/// A number of tokens: `8000`, `12,000`, `12_000`, `12k` (12,000), `1.5m`. `k` is a thousand, never 1,024: a window that is taken for
/// larger than it is makes requests fail.
pub fn tokens(text: &str) -> Option<u64> {
    let (number, unit) = match text.char_indices().last()? {
        (at, 'k' | 'K') => (&text[..at], 1_000),
        (at, 'm' | 'M') => (&text[..at], 1_000_000),
        _ => (text, 1),
    };
    let (whole, part) = number.split_once('.').unwrap_or((number, ""));
    // A part of a token is nothing, and so is a dot without digits.
    if number.contains('.') && (unit == 1 || !is_digits(part)) {
        return None;
    }
    let below = match part.trim_end_matches('0') {
        "" => 0,
        digits => {
            let scale = 10u64.checked_pow(u32::try_from(digits.len()).ok()?)?;
            let scaled = digits.parse::<u64>().ok()?.checked_mul(unit)?;
            (scaled % scale == 0).then_some(scaled / scale)?
        }
    };
    whole_number(whole)?.checked_mul(unit)?.checked_add(below)
}

/// A unit of time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TimeUnit {
    /// Seconds.
    Second,
    /// Minutes.
    Minute,
    /// Hours.
    Hour,
    /// Days.
    Day,
    /// Weeks.
    Week,
}

impl TimeUnit {
    /// Its length.
    pub const fn seconds(self) -> u64 {
        match self {
            Self::Second => 1,
            Self::Minute => 60,
            Self::Hour => 3_600,
            Self::Day => 86_400,
            Self::Week => 604_800,
        }
    }

    /// How a number of this unit may be written, for errors.
    pub const fn forms(self) -> &'static str {
        match self {
            Self::Second | Self::Minute => "90, 90s, 5m, 2h or 1d",
            _ => "30, 30d, 2w or 48h",
        }
    }

    fn of(letter: char) -> Option<Self> {
        Some(match letter {
            's' => Self::Second,
            'm' => Self::Minute,
            'h' => Self::Hour,
            'd' => Self::Day,
            'w' => Self::Week,
            _ => return None,
        })
    }
}

/// A span of time in whole `unit`s: `90` is so many of them, `90s`, `5m`, `2h`, `30d` and `1w` name their own. What is no whole number
/// of them, such as `90s` in minutes, is none.
pub fn time(text: &str, unit: TimeUnit) -> Option<u64> {
    let (at, last) = text.char_indices().last()?;
    let (number, given) = TimeUnit::of(last).map_or((text, unit), |given| (&text[..at], given));
    let seconds = whole_number(number)?.checked_mul(given.seconds())?;
    (seconds % unit.seconds() == 0).then_some(seconds / unit.seconds())
}

/// A number of things, with the word for one or many of them: `1 session`, `2,000 sessions`.
pub fn count(n: u64, one: &str) -> String {
    format!("{} {one}{}", grouped(n), if n == 1 { "" } else { "s" })
}

/// The same for a word whose plural is another one: `1 entry`, `2 entries`.
pub fn count_of(n: u64, one: &str, many: &str) -> String {
    format!("{} {}", grouped(n), if n == 1 { one } else { many })
}

/// How long a time is, or how long ago something was, in the largest unit that still tells something: `42 s`, `5 min`, `3 h`, `2 days`.
pub fn age(seconds: u64) -> String {
    match seconds {
        0..60 => format!("{seconds} s"),
        60..3_600 => format!("{} min", seconds / 60),
        3_600..86_400 => format!("{} h", seconds / 3_600),
        _ => count(seconds / 86_400, "day"),
    }
}

/// Digits; `_` between them, or a comma before each group of three.
fn whole_number(text: &str) -> Option<u64> {
    let mut groups = text.split(',');
    let first = groups.next()?;
    let is_grouped = text.contains(',');
    let are_groups = groups.all(|group| group.len() == 3 && is_digits(group));
    if !are_groups || (is_grouped && !(first.len() <= 3 && is_digits(first))) {
        return None;
    }
    if !text.starts_with(|first: char| first.is_ascii_digit()) || text.ends_with('_') {
        return None;
    }
    let digits: String = text.chars().filter(|c| !matches!(c, '_' | ',')).collect();
    is_digits(&digits).then(|| digits.parse().ok())?
}

fn is_digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_written_as_people_write_them() {
        for (text, meant) in [
            ("8000", 8_000),
            ("0", 0),
            ("1_000", 1_000),
            ("12,000", 12_000),
            ("1,234,567", 1_234_567),
            ("12k", 12_000),
            ("128K", 128_000),
            ("1m", 1_000_000),
            ("1.5M", 1_500_000),
            ("0.5k", 500),
            ("1.0k", 1_000),
        ] {
            assert_eq!(tokens(text), Some(meant), "{text}");
        }
    }

    #[test]
    fn one_thing_is_not_called_many() {
        assert_eq!([0, 1, 2_000].map(|n| count(n, "item")), ["0 items", "1 item", "2,000 items"]);
        assert_eq!([1, 2].map(|n| count_of(n, "entry", "entries")), ["1 entry", "2 entries"]);
    }

    #[test]
    fn an_age_is_told_in_the_unit_that_fits_it() {
        let ages = [0, 59, 60, 3_599, 3_600, 172_799, 172_800, 2_600_000].map(age);
        assert_eq!(ages, ["0 s", "59 s", "1 min", "59 min", "1 h", "1 day", "2 days", "30 days"]);
    }

    #[test]
    fn what_may_mean_two_things_is_no_number_of_tokens() {
        for text in [
            "",
            "k",
            "12q",
            "-1",
            "+1",
            "1,2",
            "1,2345",
            "12,00",
            ",123",
            "1,,000",
            "1_",
            "_1",
            "1.5",
            "1.k",
            ".5k",
            "1.0001k",
            "1e3",
            " 8",
            "8 k",
            "12kk",
            "１２",
            "窓",
            "1,234_567",
            "99999999999999999999",
            "99999999999999999m",
        ] {
            assert_eq!(tokens(text), None, "{text}");
        }
    }

    #[test]
    fn a_time_is_a_plain_number_of_its_unit_or_names_its_own() {
        for (text, unit, meant) in [
            ("90", TimeUnit::Second, 90),
            ("90s", TimeUnit::Second, 90),
            ("5m", TimeUnit::Second, 300),
            ("2h", TimeUnit::Second, 7_200),
            ("30", TimeUnit::Day, 30),
            ("30d", TimeUnit::Day, 30),
            ("48h", TimeUnit::Day, 2),
            ("2w", TimeUnit::Day, 14),
            ("8h", TimeUnit::Minute, 480),
            ("0", TimeUnit::Day, 0),
        ] {
            assert_eq!(time(text, unit), Some(meant), "{text}");
        }
        for text in ["", "d", "-1d", "1.5d", "1y", "47h", "30 d", "日", "99999999999999999999d"] {
            assert_eq!(time(text, TimeUnit::Day), None, "{text}");
        }
    }
}
