//! Make a key.

use super::file::{self, Key, Sees};
use super::{KeyRow, by_owner};
use crate::clock::stamp;
use crate::{Context, Effect, Fault, Interfaces, Operation, Outcome};
use jiff::civil::Date;
use jiff::{Timestamp, tz::TimeZone};
use komado_core::SessionId;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Make a key and show it, this once.
#[derive(Clone, Debug, clap::Args, Deserialize, JsonSchema)]
pub struct AddKey {
    /// Its name, such as ann-laptop
    pub name: String,
    /// Whose sessions are made with it; the key's name when left out
    #[arg(long)]
    pub user: Option<String>,
    /// Which sessions it leads to: the user's own, or all
    #[arg(long, default_value = "own")]
    #[serde(default)]
    pub sees: Sees,
    /// Sessions it leads to beside the user's own
    #[arg(long, value_name = "ID", value_delimiter = ',')]
    #[serde(default)]
    pub sessions: Vec<String>,
    /// Requests a second at most, such as 10/s
    #[arg(long, value_name = "N/s", value_parser = rate)]
    pub rate: Option<u32>,
    /// Requests at a time at most
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub concurrency: Option<u32>,
    /// When it is of no more use: 2027-01-31 (to the end of that day, UTC) or 2027-01-31T12:00:00Z
    #[arg(long, value_name = "DATE", value_parser = expiry)]
    pub expires: Option<String>,
}

/// A key that was made, with its secret.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
pub struct Added {
    /// The key without its secret.
    #[serde(flatten)]
    pub row: KeyRow,
    /// Its secret, shown this once.
    pub key: String,
    /// The command that takes it back.
    pub undo: String,
}

impl Operation for AddKey {
    const NAME: &'static str = "key_add";
    const TITLE: &'static str = "Make a key";
    const EFFECT: Effect = Effect::Add;
    const INTERFACES: Interfaces = by_owner("key add");
    type Output = Added;

    fn run(self, context: &Context) -> Outcome<Added> {
        let secret = file::secret()?;
        let sessions = self.sessions.iter().map(|id| Ok(SessionId::new(id.as_str())?.to_string()));
        let key = Key {
            name: name(&self.name)?,
            digest: file::digest(&secret),
            user: Some(self.user.unwrap_or(self.name)),
            sees: self.sees,
            sessions: sessions.collect::<Outcome<_>>()?,
            rate: self.rate,
            concurrency: self.concurrency,
            expires: self.expires,
            created_at: context.engine.now(),
        };
        context.claim()?;
        file::add(&context.config.base_dir, key.clone())?;
        let undo = format!("komado key revoke {}", key.name);
        Ok(Added { row: KeyRow::from(key), key: secret, undo })
    }
}

/// A name that can be written on a command line and in a log.
fn name(given: &str) -> Outcome<String> {
    let ok = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | '.' | '@');
    if given.is_empty() || given.chars().count() > 64 || given.starts_with('-') || !given.chars().all(ok) {
        return Err(Fault::usage(format!(
            "{given:?} is no name for a key; use up to 64 letters, digits, and - _ . @"
        )));
    }
    Ok(given.to_owned())
}

fn rate(text: &str) -> Result<u32, String> {
    let number = text.strip_suffix("/s").unwrap_or(text).trim();
    let rate = number.parse().ok().filter(|rate| *rate > 0);
    rate.ok_or_else(|| format!("{text:?} is no rate; write such as 10/s"))
}

fn expiry(text: &str) -> Result<String, String> {
    let wrong = || format!("{text:?} is no date; write such as 2027-01-31 or 2027-01-31T12:00:00Z");
    if let Ok(time) = text.parse::<Timestamp>() {
        return Ok(stamp(time));
    }
    let day: Date = text.parse().map_err(|_| wrong())?;
    let end = day.tomorrow().and_then(|day| day.to_zoned(TimeZone::UTC)).map_err(|_| wrong())?;
    Ok(stamp(end.timestamp()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_day_ends_with_the_day_and_a_moment_is_a_moment() {
        assert_eq!(expiry("2027-01-31").unwrap(), "2027-02-01T00:00:00.000000Z");
        assert_eq!(expiry("2027-01-31T12:00:00+09:00").unwrap(), "2027-01-31T03:00:00.000000Z");
        for wrong in ["", "tomorrow", "2027-13-01", "窓"] {
            assert!(expiry(wrong).unwrap_err().contains("2027-01-31"), "{wrong}");
        }
    }

    #[test]
    fn names_and_rates_say_what_they_may_be() {
        assert_eq!(name("太郎-laptop").unwrap(), "太郎-laptop");
        for wrong in ["", "a b", "-x", "a/b", "a\n"] {
            assert!(name(wrong).is_err(), "{wrong:?}");
        }
        assert_eq!((rate("10/s"), rate("3")), (Ok(10), Ok(3)));
        assert!(rate("0/s").is_err() && rate("10/m").is_err());
    }
}
