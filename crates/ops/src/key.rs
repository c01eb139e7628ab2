//! Keys of clients that may reach a server: made, listed, revoked.

pub mod file;

use crate::clock::stamp;
use crate::{Interfaces, OpFault, OpResult, Operation, OperationContext, OperationLabel, ResultPage};
use file::{KeyFile, Sees, StoredKey};
use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use komado_core::SessionId;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A verb of the owner of the machine.
const fn by_owner(verb: &'static str) -> Interfaces {
    Interfaces::only_cli(verb, "who may reach a server is for the owner of its machine to say")
}

/// Create a key and show it once.
#[derive(Clone, Debug, clap::Args, Deserialize, JsonSchema)]
pub struct AddKey {
    /// Its name, such as ann-laptop
    pub name: String,
    /// The user that owns sessions made with this key; the key's name when left out
    #[arg(long)]
    pub user: Option<String>,
    /// Which sessions the key can read: the user's own, or all
    #[arg(long, default_value = "own")]
    #[serde(default)]
    pub sees: Sees,
    /// Further sessions the key can read
    #[arg(long, value_name = "ID", value_delimiter = ',')]
    #[serde(default)]
    pub sessions: Vec<String>,
    /// Maximum requests per second, such as 10/s
    #[arg(long, value_name = "N/s", value_parser = rate)]
    pub rate: Option<u32>,
    /// Maximum requests at the same time
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub concurrency: Option<u32>,
    /// When it expires: 2027-01-31 (the end of that day, UTC) or 2027-01-31T12:00:00Z
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
    const ABOUT: OperationLabel = OperationLabel::add("key_add", "Create a key");
    const INTERFACES: Interfaces = by_owner("admin key add");
    type Output = Added;

    fn run(self, context: &OperationContext) -> OpResult<Added> {
        let secret = file::secret()?;
        let sessions = self.sessions.iter().map(|id| Ok(SessionId::new(id.as_str())?.to_string()));
        let key = StoredKey {
            name: name(&self.name)?,
            digest: file::digest(&secret),
            user: Some(self.user.unwrap_or(self.name)),
            sees: self.sees,
            sessions: sessions.collect::<OpResult<_>>()?,
            rate: self.rate,
            concurrency: self.concurrency,
            expires: self.expires,
            created_at: context.engine.now(),
        };
        context.claim()?;
        file::add(&context.config.base_dir, key.clone())?;
        let undo = format!("komado admin key revoke {}", key.name);
        Ok(Added { row: KeyRow::from(key), key: secret, undo })
    }
}

/// A name that can be written on a command line and in a log.
fn name(given: &str) -> OpResult<String> {
    let ok = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | '.' | '@');
    if given.is_empty() || given.chars().count() > 64 || given.starts_with('-') || !given.chars().all(ok) {
        return Err(OpFault::usage(format!(
            "{given:?} is not a name for a key; use up to 64 letters, digits, and - _ . @"
        )));
    }
    Ok(given.to_owned())
}

fn rate(text: &str) -> Result<u32, String> {
    let number = text.strip_suffix("/s").unwrap_or(text).trim();
    let rate = number.parse().ok().filter(|rate| *rate > 0);
    rate.ok_or_else(|| format!("{text:?} is not a rate; write such as 10/s"))
}

fn expiry(text: &str) -> Result<String, String> {
    let wrong = || format!("{text:?} is not a date; write such as 2027-01-31 or 2027-01-31T12:00:00Z");
    if let Ok(time) = text.parse::<Timestamp>() {
        return Ok(stamp(time));
    }
    let day: Date = text.parse().map_err(|_| wrong())?;
    let end = day.tomorrow().and_then(|day| day.to_zoned(TimeZone::UTC)).map_err(|_| wrong())?;
    Ok(stamp(end.timestamp()))
}

/// List the keys, without their secrets.
#[derive(Clone, Copy, Debug, Default, clap::Args, Deserialize, JsonSchema)]
pub struct ListKeys {}

/// A key, without its secret.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
pub struct KeyRow {
    /// Its name.
    pub name: String,
    /// Whose sessions are made with it.
    pub user: Option<String>,
    /// Which sessions it leads to.
    pub sees: Sees,
    /// Further sessions the key can read.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub sessions: Vec<String>,
    /// Requests a second, at most.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate: Option<u32>,
    /// Requests at a time, at most.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub concurrency: Option<u32>,
    /// When it is of no more use.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expires: Option<String>,
    /// When it was made.
    pub created_at: String,
}

impl From<StoredKey> for KeyRow {
    fn from(key: StoredKey) -> Self {
        let StoredKey { name, digest: _, user, sees, sessions, rate, concurrency, expires, created_at } = key;
        Self { name, user, sees, sessions, rate, concurrency, expires, created_at }
    }
}

impl Operation for ListKeys {
    const ABOUT: OperationLabel = OperationLabel::read("key_list", "List the keys");
    const INTERFACES: Interfaces = by_owner("admin key list");
    type Output = ResultPage<KeyRow>;

    fn run(self, context: &OperationContext) -> OpResult<ResultPage<KeyRow>> {
        let keys = KeyFile::read(&file::place(&context.config.base_dir))?;
        Ok(ResultPage::whole(keys.iter().cloned().map(KeyRow::from).collect()))
    }
}

/// Revoke a key, from the next request on.
#[derive(Clone, Debug, clap::Args, Deserialize, JsonSchema)]
pub struct RevokeKey {
    /// Its name
    pub name: String,
}

/// A key that was taken back.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
pub struct Revoked {
    /// Its name.
    pub name: String,
    /// True.
    pub revoked: bool,
    /// Nothing undoes it: the secret is gone.
    pub undo: Option<String>,
    /// Keys that are left.
    pub left: u64,
}

impl Operation for RevokeKey {
    const ABOUT: OperationLabel = OperationLabel::remove("key_revoke", "Revoke a key");
    const INTERFACES: Interfaces = by_owner("admin key revoke");
    type Output = Revoked;

    fn run(self, context: &OperationContext) -> OpResult<Revoked> {
        let base_dir = &context.config.base_dir;
        file::revoke(base_dir, &self.name)?;
        let left = KeyFile::read(&file::place(base_dir))?.iter().count() as u64;
        Ok(Revoked { name: self.name, revoked: true, undo: None, left })
    }
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
