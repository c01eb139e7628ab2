//! When is a file used that was found in the working folder?
//!
//! The folder may be a clone of a foreign repository, and its settings could send keys to an address, run commands or speak to a
//! model. A file that holds nothing but harmless settings is taken as it is. Any other is used when the user consented to
//! exactly this content, and not at all before: half of a file is not what its author wrote. Its values are neither
//! expanded nor looked into until then.

use super::check::path;
use super::file::{self, SettingsFile, expand};
use super::origin::SettingPlace;
use super::table::{Setting, SettingKind};
use super::{ConfigError, Sources, mask};
use crate::regular;
use komado_core::notation::tamed;
use std::fmt;
use std::io::ErrorKind;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

/// Settings that name a file whose words reach a model: they belong to the content that is consented to.
const NAMING: [&str; 2] = ["agent.rules_file", "agent.playbook"];
/// Most bytes of such a file.
const MOST: u64 = 16 << 20;
/// How many settings an error names.
const NAMED: usize = 8;

/// What becomes of a settings file that is found in the working folder.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum InFolder {
    /// It is used, where it is harmless or was consented to; any other is an error.
    Used,
    /// The same, but any other is left out and told of.
    Told,
    /// It is not looked for.
    Ignored,
}

/// One setting as it is written in a file.
#[derive(Clone, Debug)]
pub struct WrittenSetting {
    /// Its key, as one may show it.
    pub key: String,
    /// Its line, from 1.
    pub line: u64,
    /// Its value as one may show it: secrets hidden, nothing expanded, on one line, nothing that a terminal acts on.
    pub value: String,
    /// True when it needs consent.
    pub needs_consent: bool,
    /// The file it names, where that belongs to the content, as it will be opened.
    file: Option<PathBuf>,
}

impl WrittenSetting {
    pub(super) fn new(
        setting: &Setting,
        key: String,
        text: &str,
        place: SettingPlace,
        sources: &Sources<'_>,
    ) -> Self {
        let line = if let SettingPlace::File { line, .. } = place { line } else { 0 };
        let named = || expand(text, sources.env).ok().and_then(|text| path(&text, sources));
        let file = NAMING.contains(&setting.path).then(named).flatten();
        Self {
            key: tamed(&key),
            line,
            value: shown(setting.kind, text),
            needs_consent: !setting.is_harmless || text.contains("${"),
            file,
        }
    }
}

/// A file of the working folder that is not used, since the user did not consent to it.
#[derive(Clone, Debug)]
pub struct Unconsented {
    /// Where it is.
    pub path: PathBuf,
    /// The digest of what it holds, and of the files it names.
    pub digest: String,
    /// Its settings.
    pub written: Vec<WrittenSetting>,
    /// The user's own file, in whose place it would be used.
    pub replaces: Option<PathBuf>,
}

/// A file of the working folder, where it needs consent and has none: an error, unless it is to be told of.
pub(super) fn check(
    found: &SettingsFile,
    sources: &Sources<'_>,
) -> Result<Option<Box<Unconsented>>, ConfigError> {
    let written = file::survey(found, sources)?;
    // A file that sets nothing of weight still takes away what the user's own file says.
    let replaces = file::own(sources).filter(|own| own.exists());
    if replaces.is_none() && !written.iter().any(|one| one.needs_consent) {
        return Ok(None);
    }
    let digest = digest(found, &written)?;
    if (sources.has_consent)(&found.path, &digest) {
        return Ok(None);
    }
    let unconsented = Box::new(Unconsented { path: found.path.clone(), digest, written, replaces });
    match sources.in_folder {
        InFolder::Told => Ok(Some(unconsented)),
        InFolder::Used | InFolder::Ignored => Err(ConfigError::NoConsent(unconsented)),
    }
}

/// The digest of a file and of the files that it names. These count wherever they seem to lie: by links, `..` and `/proc` a
/// path may lead back into the folder.
fn digest(found: &SettingsFile, written: &[WrittenSetting]) -> Result<String, ConfigError> {
    let mut hasher = blake3::Hasher::new();
    let mut add = |bytes: &[u8]| {
        hasher.update(&(bytes.len() as u64).to_le_bytes()).update(bytes);
    };
    add(&found.bytes);
    for file in written.iter().filter_map(|one| one.file.as_ref()) {
        add(file.as_os_str().as_bytes());
        match regular::read(file, MOST) {
            Ok(bytes) => {
                add(b"holds");
                add(&bytes);
            }
            // One that is not there yet is told of when it is needed; once it is there, this is another content.
            Err(why) if matches!(why.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
                add(b"missing")
            }
            Err(source) => return Err(ConfigError::Unreadable { path: file.clone(), source }),
        }
    }
    Ok(hasher.finalize().to_hex().to_string())
}

/// A value as it is written, without what is secret in it.
fn shown(kind: SettingKind, text: &str) -> String {
    let is_reference =
        text.starts_with("${") && text.find('}') == Some(text.len() - 1) && !text.contains(":-");
    let hidden = |line: &str, between: &[char]| match line.split_once(between) {
        Some((name, _)) => format!("{}=***", name.trim()),
        None => mask::SET.to_owned(),
    };
    let lines = text.lines().map(|line| match kind {
        SettingKind::Secret if is_reference => line.to_owned(),
        SettingKind::Secret => mask::SET.to_owned(),
        SettingKind::Pairs(between) => hidden(line, between),
        SettingKind::Url(_) => mask::url(line),
        _ => line.to_owned(),
    });
    lines.map(|line| tamed(&line)).collect::<Vec<_>>().join(" ⏎ ")
}

impl fmt::Display for Unconsented {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = tamed(&self.path.display().to_string());
        write!(f, "{path} was found in this folder and is not used without your consent: ")?;
        let asking: Vec<&WrittenSetting> = self.written.iter().filter(|one| one.needs_consent).collect();
        let named = asking.iter().take(NAMED).map(|one| format!("{} (line {})", one.key, one.line));
        let mut why: Vec<String> = named.collect();
        why.extend(
            asking.len().checked_sub(NAMED).filter(|more| *more > 0).map(|more| format!("{more} more")),
        );
        if !why.is_empty() {
            write!(f, "it sets {}", why.join(", "))?;
        }
        if let Some(own) = &self.replaces {
            let and = if why.is_empty() { "" } else { ", and " };
            write!(f, "{and}it takes the place of {}", own.display())?;
        }
        f.write_str(
            "; `komado admin trust` shows it and gives consent to this content, --config FILE names a file to use",
        )
    }
}
