//! Which file is read, and which settings does it give?
//!
//! A named file must exist; the usual places may be empty. Only the first one found is read: two files that
//! both apply would make "which line says so?" a riddle. One that was found in the working folder may have come with it;
//! [`consent`](super::consent) says when it is used.
//!
//! `${VAR}` in a value is expanded after YAML is parsed, so a variable's text can never become structure, and is done once,
//! so it can never refer to another variable. `${VAR:-default}` stands in when the variable is unset or
//! empty; `$$` is a dollar sign, and so is a `$` before anything else.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use serde_saphyr::Spanned;

use super::check::{GivenValue, GivenValues, check, expected};
use super::consent::{InFolder, WrittenSetting};
use super::mcp::SERVERS;
use super::origin::SettingPlace;
use super::table::{self, FilePosition, Setting, SettingKind};
use super::yaml::{self, YamlNode};
use super::{ConfigError, Sources, mask};
use crate::regular;

/// The name of a settings file that is looked for.
pub(super) const NAME: &str = "komado.yaml";
/// Most bytes of one that was found in the working folder.
const MOST: u64 = 1 << 20;

/// A file that was found and read.
pub(super) struct SettingsFile {
    /// Where it is.
    pub(super) path: PathBuf,
    /// How the person would name it.
    pub(super) shown: PathBuf,
    /// What it holds: what was looked at is what is used.
    pub(super) bytes: Vec<u8>,
    /// True when it was found in the working folder, and not named.
    pub(super) is_of_folder: bool,
}

/// Finds the file: `--config`, `KOMADO_CONFIG`, the working folder, the configuration folder.
pub(super) fn find(sources: &Sources<'_>) -> Result<Option<SettingsFile>, ConfigError> {
    let variable = || (sources.env)("KOMADO_CONFIG").filter(|path| !path.is_empty()).map(PathBuf::from);
    if let Some(path) = &sources.file {
        return named("--config", path, sources).map(Some);
    }
    if let Some(path) = variable() {
        return named("KOMADO_CONFIG", &path, sources).map(Some);
    }
    if let Some(found) = of_folder(sources)? {
        return Ok(Some(found));
    }
    own(sources).map_or(Ok(None), |own| read(&own, sources))
}

/// The file in the working folder: a regular one of a sensible size, since it may have come with the folder.
fn of_folder(sources: &Sources<'_>) -> Result<Option<SettingsFile>, ConfigError> {
    if sources.in_folder == InFolder::Ignored {
        return Ok(None);
    }
    let shown = Path::new(NAME);
    let found = taken(regular::read(&sources.cwd.join(shown), MOST), shown, sources)?;
    Ok(found.map(|found| SettingsFile { is_of_folder: true, ..found }))
}

/// Where the user's own file is looked for.
pub(super) fn own(sources: &Sources<'_>) -> Option<PathBuf> {
    let xdg = sources.xdg.filter(|xdg| xdg.is_absolute()).map(PathBuf::from);
    // From a home that is not absolute the way would lead into the working folder.
    let home = sources.home.filter(|home| home.is_absolute());
    let folder = xdg.or_else(|| home.map(|home| home.join(".config")));
    folder.map(|folder| folder.join("komado").join(NAME))
}

fn named(by: &'static str, path: &Path, sources: &Sources<'_>) -> Result<SettingsFile, ConfigError> {
    read(path, sources)?.ok_or_else(|| ConfigError::FileMissing { by, path: path.to_owned() })
}

fn read(shown: &Path, sources: &Sources<'_>) -> Result<Option<SettingsFile>, ConfigError> {
    taken(std::fs::read(sources.cwd.join(shown)), shown, sources)
}

fn taken(
    read: std::io::Result<Vec<u8>>,
    shown: &Path,
    sources: &Sources<'_>,
) -> Result<Option<SettingsFile>, ConfigError> {
    let path = sources.cwd.join(shown);
    match read {
        Ok(bytes) => Ok(Some(SettingsFile { path, shown: shown.to_owned(), bytes, is_of_folder: false })),
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => Ok(None),
        Err(source) => Err(ConfigError::Unreadable { path: shown.to_owned(), source }),
    }
}

/// What a file gives.
#[derive(Default)]
pub(super) struct FileSettings {
    /// Its settings.
    pub(super) given: GivenValues,
    /// The MCP servers that it names, also those of which it says nothing else, and where.
    pub(super) servers: BTreeMap<String, SettingPlace>,
}

/// The settings that a file gives.
pub(super) fn layer(found: &SettingsFile, sources: &Sources<'_>) -> Result<FileSettings, ConfigError> {
    Ok(walked(found, sources, None)?.layer)
}

/// The settings that a file speaks of, as they are written there: nothing is expanded, and no value is looked into.
pub(super) fn survey(
    found: &SettingsFile,
    sources: &Sources<'_>,
) -> Result<Vec<WrittenSetting>, ConfigError> {
    Ok(walked(found, sources, Some(Vec::new()))?.written.unwrap_or_default())
}

fn walked<'a>(
    found: &'a SettingsFile,
    sources: &'a Sources<'a>,
    written: Option<Vec<WrittenSetting>>,
) -> Result<Walk<'a>, ConfigError> {
    let source = std::str::from_utf8(&found.bytes).map_err(|error| not_utf8(found, error.valid_up_to()))?;
    let root = yaml::parse(source, &found.shown)?;
    let mut walk = Walk { file: &found.shown, source, sources, layer: FileSettings::default(), written };
    match &root.value {
        YamlNode::Null => {}
        YamlNode::Map(entries) => walk.section(&[], entries)?,
        _ => return Err(walk.wrong_shape(&[], &root)),
    }
    Ok(walk)
}

fn not_utf8(found: &SettingsFile, valid: usize) -> ConfigError {
    let good = String::from_utf8_lossy(found.bytes.get(..valid).unwrap_or_default());
    let line = good.matches('\n').count() + 1;
    let column = good.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
    let place = SettingPlace::File { path: found.shown.clone(), line: line as u64, column: column as u64 };
    ConfigError::at(place, "the file is not UTF-8 from here on; save it as UTF-8".to_owned())
}

/// A walk through the file's tree, along the table of settings.
struct Walk<'a> {
    file: &'a Path,
    source: &'a str,
    sources: &'a Sources<'a>,
    layer: FileSettings,
    /// What is written, where only that is asked for.
    written: Option<Vec<WrittenSetting>>,
}

type Entry = (Spanned<String>, yaml::Located);

impl Walk<'_> {
    fn section(&mut self, above: &[&str], entries: &[Entry]) -> Result<(), ConfigError> {
        for (name, spot) in entries {
            let mut keys = above.to_vec();
            let snake = table::snake(&name.value);
            keys.push(&name.value);
            if matches!(table::spot(&keys), FilePosition::Unknown) {
                keys.pop();
                keys.push(&snake);
            }
            if let [SERVERS, server] = keys[..] {
                self.layer.servers.insert(server.to_owned(), yaml::place(name.defined, self.file));
            }
            match (table::spot(&keys), &spot.value) {
                (FilePosition::Unknown, _) => return Err(self.unknown(above, name)),
                (_, YamlNode::Null) => {}
                (FilePosition::Section, YamlNode::Map(entries)) => self.section(&keys, entries)?,
                (FilePosition::Setting(setting), YamlNode::Text(_) | YamlNode::Typed(_)) => {
                    self.setting(setting, &keys, name, spot)?
                }
                (FilePosition::Setting(setting), YamlNode::List(_))
                    if setting.kind.is_list() && yaml::lines(spot, self.source).is_some() =>
                {
                    self.setting(setting, &keys, name, spot)?
                }
                _ => return Err(self.wrong_shape(&keys, spot)),
            }
        }
        Ok(())
    }

    fn setting(
        &mut self,
        setting: &'static Setting,
        keys: &[&str],
        name: &Spanned<String>,
        spot: &yaml::Located,
    ) -> Result<(), ConfigError> {
        let key = keys.join(".");
        // A block of text begins a line below its key, and an alias elsewhere; a person looks for the key.
        let same_line = spot.defined.line() == name.defined.line();
        let place = yaml::place(if same_line { spot.defined } else { name.defined }, self.file);
        let listed = yaml::lines(spot, self.source);
        let text = listed.as_deref().or_else(|| yaml::text(spot, self.source)).unwrap_or_default();
        if let Some(written) = &mut self.written {
            written.push(WrittenSetting::new(setting, key, text, place, self.sources));
            return Ok(());
        }
        let given = match expand(text, self.sources.env) {
            Ok(text) => check(setting, &key, &text, place, self.sources)?,
            Err(fault) => unexpanded(setting, &key, place, fault)?,
        };
        self.layer.given.insert(key, given);
        Ok(())
    }

    fn unknown(&self, above: &[&str], name: &Spanned<String>) -> ConfigError {
        let key = above.iter().copied().chain([name.value.as_str()]).collect::<Vec<_>>().join(".");
        let place = yaml::place(name.defined, self.file);
        ConfigError::at(place, format!("unknown key: {key}; {}", table::file_hint(above, &name.value)))
    }

    fn wrong_shape(&self, keys: &[&str], spot: &yaml::Located) -> ConfigError {
        let key = if keys.is_empty() { "the file".to_owned() } else { keys.join(".") };
        let place = yaml::place(spot.defined, self.file);
        let found = match &spot.value {
            YamlNode::Map(_) => "a mapping",
            YamlNode::List(_) => "a list",
            _ => "a single value",
        };
        let (expected, hint) = match table::spot(keys) {
            FilePosition::Setting(setting) => {
                (expected(setting.kind), "write the value on the key's own line".to_owned())
            }
            _ => ("a mapping".to_owned(), mapping_hint(keys)),
        };
        ConfigError::at(place, format!("{key} must be {expected}, not {found}; {hint}"))
    }
}

/// A value where a section belongs is sometimes a misspelt setting: `llm.provder: openai`.
fn mapping_hint(keys: &[&str]) -> String {
    let near = keys.split_last().and_then(|(name, above)| {
        let settings = table::names_under(above).into_iter().filter(|near| near != name);
        Some((komado_core::suggest::nearest_name(name, settings)?, above))
    });
    match near {
        Some((near, above)) => format!("did you mean {}?", [above, &[near]].concat().join(".")),
        None => format!("keys that may stand in it: {}", table::names_under(keys).join(", ")),
    }
}

/// A person without a key must still be able to run everything else, so an unset key is a note and not an
/// error.
fn unexpanded(
    setting: &'static Setting,
    key: &str,
    place: SettingPlace,
    fault: ExpandError,
) -> Result<GivenValue, ConfigError> {
    match fault {
        ExpandError::Unset(variable) if setting.kind.is_secret() => {
            let note = format!("{key} is unset: {place} refers to {variable}, which is not set");
            Ok(GivenValue::unset(place, Some(note)))
        }
        ExpandError::Unset(variable) => Err(ConfigError::at(
            place,
            format!(
                "{key} refers to an environment variable that is not set: {variable}; \
                 set it, or write ${{{variable}:-some default}}"
            ),
        )),
        ExpandError::Malformed { problem, found } => {
            let found = match setting.kind {
                kind if kind.is_secret() || matches!(kind, SettingKind::Url(_)) => "(not shown)".to_owned(),
                _ => mask::excerpt(&found),
            };
            Err(ConfigError::at(
                place,
                format!(
                    "{key} holds a ${{…}} that cannot be expanded ({problem}): {found}; write $$ for a plain $"
                ),
            ))
        }
    }
}

/// Why a text could not be expanded.
pub(super) enum ExpandError {
    /// The variable is not set and there is no default.
    Unset(String),
    /// What follows `${` is not a reference.
    Malformed {
        /// What is wrong.
        problem: &'static str,
        /// The text from `${` on.
        found: String,
    },
}

/// Replaces the references in a text.
pub(super) fn expand(text: &str, env: &dyn Fn(&str) -> Option<String>) -> Result<String, ExpandError> {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('$') {
        out.push_str(before);
        rest = match after.chars().next() {
            Some('{') => reference(&after[1..], env, &mut out)?,
            Some('$') => literal(&after[1..], &mut out),
            _ => literal(after, &mut out),
        };
    }
    out.push_str(rest);
    Ok(out)
}

fn literal<'a>(rest: &'a str, out: &mut String) -> &'a str {
    out.push('$');
    rest
}

/// Reads a reference whose `${` is already gone, and returns what follows its `}`.
fn reference<'a>(
    text: &'a str,
    env: &dyn Fn(&str) -> Option<String>,
    out: &mut String,
) -> Result<&'a str, ExpandError> {
    let (inside, rest) = text.split_once('}').ok_or_else(|| malformed("the } is missing", text))?;
    let (name, default) =
        inside.split_once(":-").map_or((inside, None), |(name, default)| (name, Some(default)));
    if !is_name(name) {
        return Err(malformed("not a variable's name", &text[..=inside.len()]));
    }
    if default.is_some_and(|default| default.contains("${")) {
        return Err(malformed("a default cannot hold another reference", &text[..=inside.len()]));
    }
    match (env(name), default) {
        (Some(value), None) => out.push_str(&value),
        (Some(value), Some(_)) if !value.is_empty() => out.push_str(&value),
        (_, Some(default)) => out.push_str(default),
        (None, None) => return Err(ExpandError::Unset(name.to_owned())),
    }
    Ok(rest)
}

fn malformed(problem: &'static str, reference: &str) -> ExpandError {
    ExpandError::Malformed { problem, found: format!("${{{reference}") }
}

fn is_name(name: &str) -> bool {
    let first = |c: char| c.is_ascii_alphabetic() || c == '_';
    name.starts_with(first) && name.chars().all(|c| first(c) || c.is_ascii_digit())
}
