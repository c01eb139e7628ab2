//! What did the environment and the command line say?
//!
//! Each setting has a `KOMADO_*` variable by rule, and some have a variable that the seeds named. Ours wins,
//! and then the other is not even looked at: names such as `CLEANUP_DAYS` may belong to another program. An
//! empty variable counts as unset. A `KOMADO_*` variable that sets nothing is noted, since a misspelt wish would
//! otherwise be lost; it is not an error, since others name variables, too: Kubernetes gives every container those of
//! each service, and a service may be called komado. Those are passed over in silence. An `OTEL_*` variable that
//! cannot be used is passed over and noted, since it is said to every program.
//!
//! A flag is `--set`'s `key=value`, or one of its own (`--base-dir`) that the table's short names resolve. Shells have already
//! expanded what they expand, so values are taken as they are. A secret is refused: every user who lists the processes of the
//! machine would read it.

use crate::check::{GivenValue, GivenValues, check, invalid};
use crate::origin::SettingPlace;
use crate::table::{self, SETTINGS, Setting, SettingKind, SpokenNames};
use crate::{ConfigError, Sources};
use komado_store::connect::{POSTGRES, REDIS};

/// Where seed 004 expects a Redis server unless told otherwise.
const REDIS_DEFAULT: &str = "redis://localhost:6379";

const BACKENDS: SettingKind = SettingKind::Choice(&["inmemory", "redis", "postgres", "file"]);

/// The settings that variables give, and what a person should know of those that were passed over.
pub(super) fn layer(
    sources: &Sources<'_>,
    named: &SpokenNames,
) -> Result<(GivenValues, Vec<String>), ConfigError> {
    let (mut layer, mut notes) = (GivenValues::new(), Vec::new());
    for setting in SETTINGS.iter().filter(|setting| !setting.is_family()) {
        if let Some((name, text)) = said(setting, sources)? {
            match check(setting, setting.path, &text, SettingPlace::Env(name.clone()), sources) {
                Err(why) if is_shared(&name) => {
                    notes
                        .push(format!("{name} is passed over, since it speaks to other programs too: {why}"));
                }
                given => drop(layer.insert(setting.path.to_owned(), given?)),
            }
        }
    }
    for name in sources.env_names.iter().filter(|name| !is_single(name)) {
        if table::own_env(name).is_some() {
            layer.extend(family(name, sources, named)?);
        }
    }
    Ok((layer, notes))
}

/// What a person should know of variables of ours that set nothing.
pub(super) fn unknown(sources: &Sources<'_>, named: &SpokenNames) -> Vec<String> {
    let ours = sources.env_names.iter().filter(|name| table::own_env(name).is_some() && !is_single(name));
    let mut notes = Vec::new();
    for name in ours.filter(|name| of_family(name, named).is_none()) {
        if value(name, sources).is_some_and(|text| !is_of_service(name, &text)) {
            let hint = table::env_hint(name, named);
            notes.push(format!("the environment variable {name} sets nothing; {hint}"));
        }
    }
    notes
}

/// True for a variable that Kubernetes and Docker links give a container for each service, here one whose name begins with
/// `komado`: `KOMADO_SERVICE_HOST`, `KOMADO_SERVICE_PORT[_NAME]`, `KOMADO_PORT=tcp://…`, `KOMADO_PORT_80_TCP[_ADDR]`.
fn is_of_service(name: &str, text: &str) -> bool {
    const PROTOCOLS: [&str; 3] = ["TCP", "UDP", "SCTP"];
    let is_address = || {
        PROTOCOLS.iter().any(|protocol| text.starts_with(&format!("{}://", protocol.to_ascii_lowercase())))
    };
    let is_port = |rest: &str| {
        let mut parts = rest.split('_');
        parts.next().is_some_and(|port| port.parse::<u16>().is_ok())
            && parts.next().is_some_and(|protocol| PROTOCOLS.contains(&protocol))
            && parts.next().is_none_or(|what| ["PROTO", "PORT", "ADDR"].contains(&what))
            && parts.next().is_none()
    };
    name.ends_with("_SERVICE_HOST")
        || name.ends_with("_SERVICE_PORT")
        || name.contains("_SERVICE_PORT_")
        || name.ends_with("_PORT") && is_address()
        || name.match_indices("_PORT_").any(|(at, port)| is_port(&name[at + port.len()..]))
}

/// What is said for every program at once, and may say what only others can do: traces go to a collector over gRPC too.
fn is_shared(name: &str) -> bool {
    name.starts_with("OTEL_")
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

fn family(
    name: &str,
    sources: &Sources<'_>,
    named: &SpokenNames,
) -> Result<Option<(String, GivenValue)>, ConfigError> {
    let Some((setting, key)) = of_family(name, named) else { return Ok(None) };
    let Some(text) = value(name, sources) else { return Ok(None) };
    let given = check(setting, &key, &text, SettingPlace::Env(name.to_owned()), sources)?;
    Ok(Some((key, given)))
}

/// The setting of a family that a variable speaks of, and its key.
fn of_family(name: &str, named: &SpokenNames) -> Option<(&'static Setting, String)> {
    let key = table::family_key(name, named)?;
    Some((table::resolve(&key)?, key))
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
            None => Err(ConfigError::at(
                SettingPlace::Env(choice.to_owned()),
                "postgres needs an address, and DB_URL is not set; set DB_URL or store.url".to_owned(),
            )),
        },
        _ => Err(invalid(BACKENDS, "the backend", &name, SettingPlace::Env(choice.to_owned()))),
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
    Some(Err(invalid(SettingKind::Url(starts), "store.url", &url, SettingPlace::Env(variable.to_owned()))))
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

/// The settings that flags give.
pub(super) fn flags(sources: &Sources<'_>) -> Result<GivenValues, ConfigError> {
    sources.flags.iter().map(|(name, text)| flag(name, text, sources)).collect()
}

fn flag(name: &str, text: &str, sources: &Sources<'_>) -> Result<(String, GivenValue), ConfigError> {
    let (setting, place) = match own_flag(name) {
        Some(setting) => (Some(setting), SettingPlace::Flag(name.to_owned())),
        None => (table::resolve(name), SettingPlace::Flag("--set".to_owned())),
    };
    let Some(setting) = setting else {
        return Err(ConfigError::at(place, format!("unknown key: {name}; {}", table::key_hint(name))));
    };
    let key = if setting.is_family() { name } else { setting.path };
    if setting.kind.is_secret() && !text.is_empty() {
        let file = format!("{key}_file");
        let file =
            table::resolve(&file).map_or_else(String::new, |_| format!(", or into a file that {file} names"));
        let variable = table::env_name(key);
        return Err(ConfigError::at(
            place,
            format!(
                "{key} is not taken from the command line, where everyone on this machine can read it in the list of \
                 processes; put it into the environment as {variable}{file}"
            ),
        ));
    }
    Ok((key.to_owned(), check(setting, key, text, place, sources)?))
}

fn own_flag(name: &str) -> Option<&'static Setting> {
    SETTINGS.iter().find(|setting| setting.flag().is_some_and(|flag| flag == name))
}
