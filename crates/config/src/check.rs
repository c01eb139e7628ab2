//! What does a text mean for a setting?
//!
//! The one parser of values, wherever they were written. An empty text unsets a setting that may be unset, and is
//! refused where there is a default: `--set session.user=` is a wish, `--set llm.provider=` is a slip.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use super::origin::Place;
use super::table::{Kind, Setting};
use super::{ConfigError, Sources, mask};
use komado_agent::sandbox::Network;
use komado_core::budget::PERCENT;
use komado_core::journal::Ratio;

/// A checked value.
#[derive(Clone)]
pub(super) enum Value {
    /// Of a [`Kind::Bool`].
    Bool(bool),
    /// Of a [`Kind::Ratio`], [`Kind::Part`] or [`Kind::Percent`].
    Ratio(f64),
    /// Of [`Kind::Lines`].
    Lines(Vec<String>),
    /// Of [`Kind::Percents`].
    Percents(Vec<(String, f64)>),
    /// Of [`Kind::Hosts`].
    Network(Network),
    /// Of [`Kind::Pairs`].
    Pairs(Vec<(String, String)>),
    /// Of a [`Kind::Count`].
    Count(u32),
    /// Of a [`Kind::Path`].
    Path(PathBuf),
    /// Of every other kind.
    Text(String),
}

/// A checked value with its place. It can hold a secret, so it has no `Debug`.
#[derive(Clone)]
pub(super) struct Given {
    /// The value; `None` is unset.
    pub(super) value: Option<Value>,
    /// The value as it may be shown.
    pub(super) shown: String,
    /// Where it was said.
    pub(super) place: Place,
    /// What a person should know about it.
    pub(super) note: Option<String>,
}

impl Given {
    /// A setting that was spoken of and that stays unset.
    pub(super) fn unset(place: Place, note: Option<String>) -> Self {
        Self { value: None, shown: mask::UNSET.to_owned(), place, note }
    }
}

/// Everything that was given, by key.
pub(super) type Values = BTreeMap<String, Given>;

/// The settings under one name: a section, or what is said of one provider, persona, server or tracker.
pub(super) struct Section<'a> {
    given: &'a Values,
    name: String,
}

impl<'a> Section<'a> {
    pub(super) fn of(given: &'a Values, name: impl Into<String>) -> Self {
        Self { given, name: name.into() }
    }

    /// A setting that has a value.
    pub(super) fn given(&self, leaf: &str) -> Option<&'a Given> {
        self.given.get(&format!("{}.{leaf}", self.name)).filter(|given| given.value.is_some())
    }

    /// A setting's value; that of its type where it is unset.
    pub(super) fn get<T: Typed>(&self, leaf: &str) -> T {
        T::of(self.given(leaf).and_then(|given| given.value.as_ref()))
    }

    /// True when a setting was given.
    pub(super) fn is_given(&self, leaf: &str) -> bool {
        self.given.get(&format!("{}.{leaf}", self.name)).is_some_and(|given| given.place != Place::Default)
    }
}

/// What a setting's field may be.
pub(super) trait Typed {
    fn of(value: Option<&Value>) -> Self;
}

macro_rules! typed {
    ($($variant:ident: $type:ty),*) => {
        $(impl Typed for $type {
            fn of(value: Option<&Value>) -> Self {
                match value {
                    Some(Value::$variant(value)) => value.clone(),
                    _ => Self::default(),
                }
            }
        })*
    };
}
typed!(
    Bool: bool,
    Ratio: f64,
    Lines: Vec<String>,
    Percents: Vec<(String, f64)>,
    Network: Network,
    Pairs: Vec<(String, String)>,
    Count: u32,
    Path: PathBuf,
    Text: String
);

/// Seconds.
impl Typed for Duration {
    fn of(value: Option<&Value>) -> Self {
        Self::from_secs(u32::of(value).into())
    }
}

impl<T: Typed> Typed for Option<T> {
    fn of(value: Option<&Value>) -> Self {
        value.map(|value| T::of(Some(value)))
    }
}

/// Turns a text into a value, or says what it should have been.
pub(super) fn check(
    setting: &Setting,
    key: &str,
    text: &str,
    place: Place,
    sources: &Sources<'_>,
) -> Result<Given, ConfigError> {
    if text.is_empty() && setting.default.is_none() {
        return Ok(Given::unset(place, None));
    }
    match parse(setting.kind, text, sources) {
        Some(value) => {
            Ok(Given { shown: shown(setting.kind, text, &value), value: Some(value), place, note: None })
        }
        None => Err(invalid(setting.kind, key, text, place)),
    }
}

/// The error for a text that a kind refuses.
pub(super) fn invalid(kind: Kind, key: &str, text: &str, place: Place) -> ConfigError {
    let found = match kind {
        kind if kind.is_secret() => mask::SET.to_owned(),
        Kind::Url(_) => mask::excerpt(&mask::url(text)),
        _ => mask::excerpt(text),
    };
    let expected = match kind {
        Kind::Path if text.starts_with('~') => "a path without ~, since no home folder is known".to_owned(),
        _ => expected(kind),
    };
    ConfigError::at(place, format!("{key} must be {expected}, not: {found}"))
}

/// What a kind wants, in words that follow "must be".
pub(super) fn expected(kind: Kind) -> String {
    match kind {
        Kind::Bool => "true or false".to_owned(),
        Kind::Ratio => "a number above 0 and at most 1".to_owned(),
        Kind::Part => "a number from 0.01 to 0.99".to_owned(),
        Kind::Count { min, max } => format!("a whole number from {min} to {max}"),
        Kind::Text => "a text that is not empty".to_owned(),
        Kind::Path => "a path".to_owned(),
        Kind::Secret => "a text".to_owned(),
        Kind::Url(starts) => format!("an address that begins with {}", any_of(starts)),
        Kind::Choice(words) => any_of(words),
        Kind::Percent => "a percentage from 5 to 100, or -1".to_owned(),
        Kind::Lines => "texts, one per line".to_owned(),
        Kind::Percents => "NAME=PERCENT, one per line, from 5 to 100 or -1".to_owned(),
        Kind::Hosts => {
            "open, none, or hosts, one per line, such as example.com, *.example.com or 192.0.2.7:8443"
                .to_owned()
        }
        Kind::Pairs(between) => {
            let forms: Vec<String> = between.iter().map(|between| format!("NAME{between}VALUE")).collect();
            format!("{}, one per line", forms.join(" or "))
        }
    }
}

fn any_of(words: &[&str]) -> String {
    match words {
        [rest @ .., last] if !rest.is_empty() => format!("{} or {last}", rest.join(", ")),
        _ => words.concat(),
    }
}

fn parse(kind: Kind, text: &str, sources: &Sources<'_>) -> Option<Value> {
    let word = text.trim();
    match kind {
        Kind::Bool => switch(word).map(Value::Bool),
        Kind::Ratio => word.parse().ok().filter(|share| *share > 0.0 && *share <= 1.0).map(Value::Ratio),
        Kind::Part => word.parse().ok().filter(|part| Ratio::new(*part).is_ok()).map(Value::Ratio),
        Kind::Count { min, max } => {
            word.replace('_', "").parse().ok().filter(|n| (min..=max).contains(n)).map(Value::Count)
        }
        Kind::Text => Some(text).filter(|_| !word.is_empty()).map(own),
        Kind::Path => path(text, sources).map(Value::Path),
        // A key read from a file often ends in a newline, which no header could carry.
        Kind::Secret => Some(own(word)),
        Kind::Url(starts) => {
            Some(word).filter(|url| starts.iter().any(|start| url.starts_with(start))).map(own)
        }
        Kind::Choice(words) => Some(word).filter(|word| words.contains(word)).map(own),
        Kind::Percent => percent(word).map(Value::Ratio),
        Kind::Lines => Some(Value::Lines(lines(text).map(str::to_owned).collect())),
        Kind::Percents => {
            let one = |line: &str| {
                let (name, value) = line.rsplit_once(['=', ':'])?;
                Some((name.trim().to_owned(), percent(value.trim().trim_end_matches('%'))?))
            };
            lines(text).map(one).collect::<Option<_>>().map(Value::Percents)
        }
        Kind::Hosts => {
            let hosts: Vec<String> = lines(text).map(str::to_owned).collect();
            Network::parse(&hosts).ok().map(Value::Network)
        }
        Kind::Pairs(between) => {
            let one = |line: &str| {
                let (name, value) = line.split_once(between)?;
                Some((name.trim().to_owned(), value.trim().to_owned())).filter(|(name, _)| !name.is_empty())
            };
            lines(text).map(one).collect::<Option<_>>().map(Value::Pairs)
        }
    }
}

fn lines(text: &str) -> impl Iterator<Item = &str> {
    text.lines().map(str::trim).filter(|line| !line.is_empty())
}

fn percent(word: &str) -> Option<f64> {
    let value: f64 = word.parse().ok()?;
    (PERCENT.contains(&value) || (value + 1.0).abs() < f64::EPSILON).then_some(value)
}

fn own(text: &str) -> Value {
    Value::Text(text.to_owned())
}

fn switch(word: &str) -> Option<bool> {
    match word.to_lowercase().as_str() {
        "true" | "yes" | "on" | "1" => Some(true),
        "false" | "no" | "off" | "0" => Some(false),
        _ => None,
    }
}

/// `~` is expanded here since no shell ever saw a path from the file, and no user wants a folder named
/// `~`.
pub(super) fn path(text: &str, sources: &Sources<'_>) -> Option<PathBuf> {
    if text.is_empty() {
        return None;
    }
    match text.strip_prefix('~') {
        Some("") => sources.home.map(PathBuf::from),
        Some(rest) if rest.starts_with('/') => {
            sources.home.map(|home| home.join(rest.trim_start_matches('/')))
        }
        _ => Some(sources.cwd.join(text)),
    }
}

fn shown(kind: Kind, text: &str, value: &Value) -> String {
    match (kind, value) {
        (kind, _) if kind.is_secret() => mask::SET.to_owned(),
        (Kind::Url(_), Value::Text(url)) => mask::url(url),
        (_, Value::Bool(on)) => on.to_string(),
        (_, Value::Ratio(share)) => share.to_string(),
        (_, Value::Count(count)) => count.to_string(),
        _ => text.to_owned(),
    }
}
