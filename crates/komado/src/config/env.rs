//! What did the environment say?
//!
//! Each setting has a `KOMADO_*` variable by rule, and some have a variable that the seeds named. Ours wins,
//! and then the other is not even looked at: names such as `CLEANUP_DAYS` may belong to another program. An
//! empty variable counts as unset. A `KOMADO_*` variable that sets nothing is an error, since a misspelt wish
//! would otherwise be lost; an `OTEL_*` variable that cannot be used is passed over, since it is said to every
//! program, and noted.

use komado_store::connect::{POSTGRES, REDIS};
use std::collections::BTreeMap;

use super::check::{Given, check, invalid};
use super::origin::Place;
use super::table::{self, Kind, Named, SETTINGS, Setting};
use super::{ConfigError, Sources, suggest};

/// Where seed 004 expects a Redis server unless told otherwise.
const REDIS_DEFAULT: &str = "redis://localhost:6379";

const BACKENDS: Kind = Kind::Choice(&["inmemory", "redis", "postgres", "file"]);

/// The settings that variables give.
pub(super) fn layer(sources: &Sources<'_>, named: &Named) -> Result<BTreeMap<String, Given>, ConfigError> {
    let mut layer = BTreeMap::new();
    for setting in SETTINGS.iter().filter(|setting| !setting.is_family()) {
        if let Some((name, text)) = said(setting, sources)? {
            match check(setting, setting.path, &text, Place::Env(name.clone()), sources) {
                Err(_) if is_shared(&name) => {}
                given => drop(layer.insert(setting.path.to_owned(), given?)),
            }
        }
    }
    for name in sources.env_names.iter().filter(|name| !is_single(name)) {
        if table::own_env(name).is_some() {
            layer.extend(family(name, sources, named)?);
        }
    }
    Ok(layer)
}

/// What is said for every program at once, and may say what only others can do: traces go to a collector over gRPC too.
fn is_shared(name: &str) -> bool {
    name.starts_with("OTEL_")
}

/// What a person should know of variables that were passed over.
pub(super) fn passed_over(sources: &Sources<'_>) -> Vec<String> {
    let mut notes = Vec::new();
    for setting in SETTINGS.iter().filter(|setting| !setting.is_family()) {
        let Ok(Some((name, text))) = said(setting, sources) else { continue };
        if is_shared(&name)
            && let Err(why) = check(setting, setting.path, &text, Place::Env(name.clone()), sources)
        {
            notes.push(format!("{name} is passed over, since it speaks to other programs too: {why}"));
        }
    }
    notes
}

/// The variable that speaks for a setting, and its text.
fn said(setting: &Setting, sources: &Sources<'_>) -> Result<Option<(String, String)>, ConfigError> {
    let ours = setting.env().into_iter().find_map(|name| Some((value(&name, sources)?, name)));
    if let Some((text, name)) = ours {
        return Ok(Some((name, text)));
    }
    match setting.seed_env {
        ["MEMORY_BACKEND", ..] => backend(sources),
        names => Ok(names.iter().find_map(|name| Some(((*name).to_owned(), value(name, sources)?)))),
    }
}

fn family(name: &str, sources: &Sources<'_>, named: &Named) -> Result<Option<(String, Given)>, ConfigError> {
    let resolved = table::family_key(name, named).and_then(|key| Some((table::resolve(&key)?, key)));
    let Some((setting, key)) = resolved else {
        let hint = suggest::env_hint(name, named);
        return Err(ConfigError::UnknownVariable { name: name.to_owned(), hint });
    };
    let Some(text) = value(name, sources) else { return Ok(None) };
    let given = check(setting, &key, &text, Place::Env(name.to_owned()), sources)?;
    Ok(Some((key, given)))
}

/// Seed 004 chooses a backend by name and keeps its address apart; without the choice, the addresses mean
/// nothing.
fn backend(sources: &Sources<'_>) -> Result<Option<(String, String)>, ConfigError> {
    let choice = "MEMORY_BACKEND";
    let here = |url: &str| Ok(Some((choice.to_owned(), url.to_owned())));
    let Some(name) = value(choice, sources) else { return Ok(None) };
    match name.trim() {
        "file" => here("file:"),
        "inmemory" => here("memory:"),
        "redis" => {
            address("REDIS_URL", &REDIS, sources).map_or_else(|| here(REDIS_DEFAULT), |url| url.map(Some))
        }
        "postgres" => match address("DB_URL", &POSTGRES, sources) {
            Some(url) => url.map(Some),
            None => Err(ConfigError::BackendWithoutUrl { backend: "postgres", variable: "DB_URL" }),
        },
        _ => Err(invalid(BACKENDS, "the backend", &name, Place::Env(choice.to_owned()))),
    }
}

/// A backend's address, which must be of that backend.
fn address(
    variable: &str,
    starts: &'static [&'static str],
    sources: &Sources<'_>,
) -> Option<Result<(String, String), ConfigError>> {
    let url = value(variable, sources)?;
    if starts.iter().any(|start| url.trim().starts_with(start)) {
        return Some(Ok((variable.to_owned(), url)));
    }
    Some(Err(invalid(Kind::Url(starts), "store.url", &url, Place::Env(variable.to_owned()))))
}

fn value(name: &str, sources: &Sources<'_>) -> Option<String> {
    (sources.env)(name).filter(|text| !text.is_empty())
}

fn is_single(name: &str) -> bool {
    SETTINGS
        .iter()
        .filter(|setting| !setting.is_family())
        .any(|setting| setting.env().iter().any(|own| own == name))
}
