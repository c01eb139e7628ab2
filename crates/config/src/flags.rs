//! What did the command line say?
//!
//! A pair is `--set`'s `key=value`, or a flag of its own (`--base-dir`) that the table's short names resolve.
//! Shells have already expanded what they expand, so values are taken as they are. A secret is refused: whoever lists
//! the processes of the machine would read it.

use super::check::{Given, Values, check};
use super::origin::Place;
use super::table::{self, SETTINGS, Setting};
use super::{ConfigError, Sources, suggest};

/// The settings that flags give.
pub(super) fn layer(sources: &Sources<'_>) -> Result<Values, ConfigError> {
    sources.flags.iter().map(|(name, text)| one(name, text, sources)).collect()
}

fn one(name: &str, text: &str, sources: &Sources<'_>) -> Result<(String, Given), ConfigError> {
    let (setting, place) = match own_flag(name) {
        Some(setting) => (Some(setting), Place::Flag(name.to_owned())),
        None => (table::resolve(name), Place::Flag("--set".to_owned())),
    };
    let Some(setting) = setting else {
        return Err(ConfigError::UnknownKey { place, key: name.to_owned(), hint: suggest::key_hint(name) });
    };
    let key = if setting.is_family() { name } else { setting.path };
    if setting.kind.is_secret() && !text.is_empty() {
        let file = format!("{key}_file");
        let file =
            table::resolve(&file).map_or_else(String::new, |_| format!(", or into a file that {file} names"));
        let (key, wayout) = (key.to_owned(), format!("{}{file}", table::env_name(key)));
        return Err(ConfigError::SecretFlag { place, key, wayout });
    }
    Ok((key.to_owned(), check(setting, key, text, place, sources)?))
}

fn own_flag(name: &str) -> Option<&'static Setting> {
    SETTINGS.iter().find(|setting| setting.flag().is_some_and(|flag| flag == name))
}
