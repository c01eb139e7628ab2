//! What does a text mean for a setting?
//!
//! The one parser of values, wherever they were written. An empty text unsets a setting that may be unset, and is
//! refused where there is a default: `--set session.user=` is a wish, `--set llm.provider=` is a slip.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use super::origin::SettingPlace;
use super::table::{Setting, SettingKind};
use super::{BaseDirFrom, ConfigError, Sources, mask};
use komado_agent::sandbox::Network;
use komado_core::amount::{self, TimeUnit};
use komado_core::budget::PERCENT;
use komado_core::journal::Ratio;

/// A checked value.
#[derive(Clone)]
pub(super) enum SettingValue {
    /// Of a [`SettingKind::Bool`].
    Bool(bool),
    /// Of a [`SettingKind::Ratio`], [`Kind::Part`] or [`Kind::Percent`].
    Ratio(f64),
    /// Of [`SettingKind::Lines`].
    Lines(Vec<String>),
    /// Of [`SettingKind::Percents`].
    Percents(Vec<(String, f64)>),
    /// Of [`SettingKind::Hosts`].
    Network(Network),
    /// Of [`SettingKind::Pairs`].
    Pairs(Vec<(String, String)>),
    /// Of a [`SettingKind::Count`], [`SettingKind::Tokens`] or [`SettingKind::Time`].
    Count(u32),
    /// Of a [`SettingKind::Path`].
    Path(PathBuf),
    /// Of every other kind.
    Text(String),
}

/// A checked value with its place. It can hold a secret, so it has no `Debug`.
#[derive(Clone)]
pub(super) struct GivenValue {
    /// The value; `None` is unset.
    pub(super) value: Option<SettingValue>,
    /// The value as it may be shown.
    pub(super) shown: String,
    /// Where it was said.
    pub(super) place: SettingPlace,
    /// What a person should know about it.
    pub(super) note: Option<String>,
}

impl GivenValue {
    /// Why the contexts are in this folder.
    pub(super) fn base_dir_from(&self) -> BaseDirFrom {
        match self.place {
            SettingPlace::BaseDir(from) => from,
            _ => BaseDirFrom::Setting,
        }
    }

    /// A setting that was spoken of and that stays unset.
    pub(super) fn unset(place: SettingPlace, note: Option<String>) -> Self {
        Self { value: None, shown: mask::UNSET.to_owned(), place, note }
    }
}

/// Everything that was given, by key.
pub(super) type GivenValues = BTreeMap<String, GivenValue>;

/// The settings under one name: a section, or what is said of one provider, persona, server or tracker.
pub(super) struct SettingsSection<'a> {
    given: &'a GivenValues,
    name: String,
}

impl<'a> SettingsSection<'a> {
    pub(super) fn of(given: &'a GivenValues, name: impl Into<String>) -> Self {
        Self { given, name: name.into() }
    }

    /// A setting that has a value.
    pub(super) fn given(&self, leaf: &str) -> Option<&'a GivenValue> {
        self.given.get(&format!("{}.{leaf}", self.name)).filter(|given| given.value.is_some())
    }

    /// A setting's value; that of its type where it is unset.
    pub(super) fn get<T: FromSetting>(&self, leaf: &str) -> T {
        T::of(self.given(leaf).and_then(|given| given.value.as_ref()))
    }

    /// True when a setting was given.
    pub(super) fn is_given(&self, leaf: &str) -> bool {
        self.given.get(&format!("{}.{leaf}", self.name)).is_some_and(|given| !given.place.is_default())
    }
}

/// What a setting's field may be.
pub(super) trait FromSetting {
    fn of(value: Option<&SettingValue>) -> Self;
}

macro_rules! typed {
    ($($variant:ident: $type:ty),*) => {
        $(impl FromSetting for $type {
            fn of(value: Option<&SettingValue>) -> Self {
                match value {
                    Some(SettingValue::$variant(value)) => value.clone(),
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
impl FromSetting for Duration {
    fn of(value: Option<&SettingValue>) -> Self {
        Self::from_secs(u32::of(value).into())
    }
}

impl<T: FromSetting> FromSetting for Option<T> {
    fn of(value: Option<&SettingValue>) -> Self {
        value.map(|value| T::of(Some(value)))
    }
}

/// Turns a text into a value, or says what it should have been.
pub(super) fn check(
    setting: &Setting,
    key: &str,
    text: &str,
    place: SettingPlace,
    sources: &Sources<'_>,
) -> Result<GivenValue, ConfigError> {
    if text.is_empty() && setting.default.is_none() {
        return Ok(GivenValue::unset(place, None));
    }
    match parse(setting.kind, text, sources) {
        Some(value) => {
            Ok(GivenValue { shown: shown(setting.kind, text, &value), value: Some(value), place, note: None })
        }
        None => Err(invalid(setting.kind, key, text, place)),
    }
}

/// The error for a text that a kind refuses.
pub(super) fn invalid(kind: SettingKind, key: &str, text: &str, place: SettingPlace) -> ConfigError {
    let found = match kind {
        kind if kind.is_secret() => mask::SET.to_owned(),
        SettingKind::Url(_) => mask::excerpt(&mask::url(text)),
        _ => mask::excerpt(text),
    };
    let expected = match kind {
        SettingKind::Path if text.starts_with('~') => {
            "a path without ~, since no home folder is known".to_owned()
        }
        _ => expected(kind),
    };
    ConfigError::at(place, format!("{key} must be {expected}, not: {found}"))
}

/// What a kind wants, in words that follow "must be".
pub(super) fn expected(kind: SettingKind) -> String {
    match kind {
        SettingKind::Bool => "true or false".to_owned(),
        SettingKind::Ratio => "a number above 0 and at most 1".to_owned(),
        SettingKind::Part => "a number from 0.01 to 0.99".to_owned(),
        SettingKind::Count { min, max } => format!("a whole number from {min} to {max}"),
        SettingKind::Tokens { min, max } => {
            format!("a whole number from {min} to {max}, such as 8000 or 128k")
        }
        SettingKind::Time { unit, min, max } => {
            format!("a whole number from {min} to {max}, or a time such as {}", time_forms(unit))
        }
        SettingKind::Text => "a text that is not empty".to_owned(),
        SettingKind::Path => "a path".to_owned(),
        SettingKind::Secret => "a text".to_owned(),
        SettingKind::Url(starts) => format!("an address that begins with {}", any_of(starts)),
        SettingKind::Choice(words) => any_of(words),
        SettingKind::Percent => "a percentage from 5 to 100, or -1".to_owned(),
        SettingKind::Lines => "texts, one per line".to_owned(),
        SettingKind::Percents => "NAME=PERCENT, one per line, from 5 to 100 or -1".to_owned(),
        SettingKind::Hosts => {
            "open, none, or hosts, one per line, such as example.com, *.example.com or 192.0.2.7:8443"
                .to_owned()
        }
        SettingKind::Pairs(between) => {
            let forms: Vec<String> = between.iter().map(|between| format!("NAME{between}VALUE")).collect();
            format!("{}, one per line", forms.join(" or "))
        }
    }
}

/// Forms that name their unit.
fn time_forms(unit: TimeUnit) -> &'static str {
    unit.forms().split_once(", ").map_or("", |(_, forms)| forms)
}

fn any_of(words: &[&str]) -> String {
    match words {
        [rest @ .., last] if !rest.is_empty() => format!("{} or {last}", rest.join(", ")),
        _ => words.concat(),
    }
}

fn parse(kind: SettingKind, text: &str, sources: &Sources<'_>) -> Option<SettingValue> {
    let word = text.trim();
    match kind {
        SettingKind::Bool => switch(word).map(SettingValue::Bool),
        SettingKind::Ratio => {
            word.parse().ok().filter(|share| *share > 0.0 && *share <= 1.0).map(SettingValue::Ratio)
        }
        SettingKind::Part => {
            word.parse().ok().filter(|part| Ratio::new(*part).is_ok()).map(SettingValue::Ratio)
        }
        SettingKind::Count { min, max } => {
            word.replace('_', "").parse().ok().filter(|n| (min..=max).contains(n)).map(SettingValue::Count)
        }
        SettingKind::Tokens { min, max } => bounded(amount::tokens(word)?, min, max),
        SettingKind::Time { unit, min, max } => bounded(amount::time(word, unit)?, min, max),
        SettingKind::Text => Some(text).filter(|_| !word.is_empty()).map(own),
        SettingKind::Path => path(text, sources).map(SettingValue::Path),
        // A key read from a file often ends in a newline, which no header could carry.
        SettingKind::Secret => Some(own(word)),
        SettingKind::Url(starts) => {
            Some(word).filter(|url| starts.iter().any(|start| url.starts_with(start))).map(own)
        }
        SettingKind::Choice(words) => Some(word).filter(|word| words.contains(word)).map(own),
        SettingKind::Percent => percent(word).map(SettingValue::Ratio),
        SettingKind::Lines => Some(SettingValue::Lines(lines(text).map(str::to_owned).collect())),
        SettingKind::Percents => {
            let one = |line: &str| {
                let (name, value) = line.rsplit_once(['=', ':'])?;
                Some((name.trim().to_owned(), percent(value.trim().trim_end_matches('%'))?))
            };
            lines(text).map(one).collect::<Option<_>>().map(SettingValue::Percents)
        }
        SettingKind::Hosts => {
            let hosts: Vec<String> = lines(text).map(str::to_owned).collect();
            Network::parse(&hosts).ok().map(SettingValue::Network)
        }
        SettingKind::Pairs(between) => {
            let one = |line: &str| {
                let (name, value) = line.split_once(between)?;
                Some((name.trim().to_owned(), value.trim().to_owned())).filter(|(name, _)| !name.is_empty())
            };
            lines(text).map(one).collect::<Option<_>>().map(SettingValue::Pairs)
        }
    }
}

fn bounded(n: u64, min: u32, max: u32) -> Option<SettingValue> {
    u32::try_from(n).ok().filter(|n| (min..=max).contains(n)).map(SettingValue::Count)
}

fn lines(text: &str) -> impl Iterator<Item = &str> {
    text.lines().map(str::trim).filter(|line| !line.is_empty())
}

fn percent(word: &str) -> Option<f64> {
    let value: f64 = word.parse().ok()?;
    (PERCENT.contains(&value) || (value + 1.0).abs() < f64::EPSILON).then_some(value)
}

fn own(text: &str) -> SettingValue {
    SettingValue::Text(text.to_owned())
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

fn shown(kind: SettingKind, text: &str, value: &SettingValue) -> String {
    match (kind, value) {
        (kind, _) if kind.is_secret() => mask::SET.to_owned(),
        (SettingKind::Url(_), SettingValue::Text(url)) => mask::url(url),
        (_, SettingValue::Bool(on)) => on.to_string(),
        (_, SettingValue::Ratio(share)) => share.to_string(),
        (_, SettingValue::Count(count)) => count.to_string(),
        _ => text.to_owned(),
    }
}
