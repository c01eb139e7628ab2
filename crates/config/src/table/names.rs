//! How is a setting called in the file, in the environment and on the command line?
//!
//! A path of the table is the one name; all others follow from it by rule. A family is a row that stands for one setting
//! per name: of a provider, of a persona, or of an MCP server. A hint says which one an unknown name may have meant.

use super::{PERSONA, PROVIDER, RESERVED, SERVER, SETTINGS, Setting};
use komado_core::suggest::{nearest as near, nearest_name};
use std::collections::BTreeSet;

/// How the address of a store begins.
pub(super) const STORES: &[&str] = &[
    "file:",
    "memory:",
    "redis://",
    "rediss://",
    "redis+cluster://",
    "redis+sentinel://",
    "postgres://",
    "postgresql://",
];

const PREFIX: &str = "KOMADO_";

/// Names that were spoken of, each with what it stands in for.
pub type SpokenNames = BTreeSet<(&'static str, String)>;

impl Setting {
    /// What stands in the path of a family for a name; `None` for a single setting.
    pub fn stand_in(&self) -> Option<&'static str> {
        [PROVIDER, PERSONA, SERVER].into_iter().find(|stand_in| self.path.contains(stand_in))
    }

    /// Whether this row stands for one setting per name.
    pub fn is_family(&self) -> bool {
        self.stand_in().is_some()
    }

    /// What stands before and after a name.
    fn around(&self) -> Option<(&'static str, &'static str)> {
        self.path.split_once(self.stand_in()?)
    }

    /// The last part of the path.
    pub fn leaf(&self) -> &'static str {
        self.path.rsplit('.').next().unwrap_or(self.path)
    }

    /// The key for one name.
    pub fn key_for(&self, name: &str) -> String {
        self.stand_in().map_or_else(|| self.path.to_owned(), |stand_in| self.path.replace(stand_in, name))
    }

    /// Our variables for this setting, strongest first; for a family, with `<PROVIDER>`, `<PERSONA>` or `<SERVER>` in it.
    pub fn env(&self) -> Vec<String> {
        let full = match (self.around(), self.stand_in()) {
            (Some((before, after)), Some(stand_in)) => {
                format!("{}{}{}", env_name(before), stand_in.to_uppercase(), env_form(after))
            }
            _ => env_name(self.path),
        };
        std::iter::once(full).chain(self.short.map(env_name)).collect()
    }

    /// The command-line flag that the short name makes.
    pub fn flag(&self) -> Option<String> {
        self.short.map(|short| format!("--{}", short.replace('_', "-")))
    }
}

/// The variable that sets a key.
pub fn env_name(key: &str) -> String {
    format!("{PREFIX}{}", env_form(key))
}

/// A variable's name without our prefix; `None` for the variables of others.
pub fn own_env(name: &str) -> Option<&str> {
    name.strip_prefix(PREFIX).filter(|_| !RESERVED.contains(&name))
}

/// The setting that a full key speaks of.
pub fn resolve(key: &str) -> Option<&'static Setting> {
    SETTINGS.iter().find(|setting| setting.path == key || name_in(setting, key).is_some())
}

/// The name in a key of a family; a name that is itself a setting (`llm.provider`) is none.
pub fn name_in<'a>(setting: &Setting, key: &'a str) -> Option<&'a str> {
    let (before, after) = setting.around()?;
    let name = key.strip_prefix(before)?.strip_suffix(after)?;
    let taken = SETTINGS.iter().any(|other| other.path.strip_prefix(before) == Some(name));
    (!name.is_empty() && !taken).then_some(name)
}

/// The names that some keys of families speak of.
pub fn named<'a>(keys: impl Iterator<Item = &'a String>) -> SpokenNames {
    let one = |key: &'a String| {
        let setting = resolve(key)?;
        Some((setting.stand_in()?, name_in(setting, key)?.to_owned()))
    };
    keys.filter_map(one).collect()
}

/// Every setting with its key: single ones, then those of families for some names, in their order.
pub fn keys<'n>(
    named: impl Iterator<Item = (&'static str, &'n str)>,
) -> impl Iterator<Item = (&'static Setting, String)> {
    let single = SETTINGS.iter().filter(|setting| !setting.is_family());
    let of_families = named.flat_map(|(stand_in, name)| {
        let same = SETTINGS.iter().filter(move |setting| setting.stand_in() == Some(stand_in));
        same.map(move |setting| (setting, setting.key_for(name)))
    });
    single.map(|setting| (setting, setting.path.to_owned())).chain(of_families)
}

/// The key of a family that a variable sets. A name already known keeps its spelling, else it is lower case.
pub fn family_key(variable: &str, known: &SpokenNames) -> Option<String> {
    let (setting, middle) = SETTINGS.iter().find_map(|setting| {
        let (before, after) = setting.around()?;
        let middle = variable.strip_prefix(&env_name(before))?.strip_suffix(&env_form(after))?;
        Some((setting, middle)).filter(|_| !middle.is_empty())
    })?;
    let mut same = known.iter().filter(|(stand_in, _)| Some(*stand_in) == setting.stand_in());
    let name = same
        .find(|(_, name)| env_form(name) == middle)
        .map_or_else(|| middle.to_lowercase(), |(_, name)| name.clone());
    let key = setting.key_for(&name);
    name_in(setting, &key).is_some().then_some(key)
}

/// A name as the table spells it: `thresholdRatio` is `threshold_ratio`.
pub fn snake(name: &str) -> String {
    let mut out = String::with_capacity(name.len() + 4);
    for (i, c) in name.char_indices() {
        if c.is_ascii_uppercase() && i > 0 {
            out.push('_');
        }
        out.push(c.to_ascii_lowercase());
    }
    out
}

/// What the file may hold at a place.
pub enum FilePosition {
    /// A setting's value.
    Setting(&'static Setting),
    /// A mapping of further keys.
    Section,
    /// Nothing.
    Unknown,
}

/// What belongs at a path of keys in the file. Keys are compared one by one, so a name may hold dots.
pub fn spot(keys: &[&str]) -> FilePosition {
    if let Some(setting) =
        SETTINGS.iter().find(|setting| parts_match(setting, keys) && depth(setting) == keys.len())
    {
        return FilePosition::Setting(setting);
    }
    let inside = SETTINGS.iter().any(|setting| parts_match(setting, keys) && depth(setting) > keys.len());
    if inside { FilePosition::Section } else { FilePosition::Unknown }
}

/// The names that may stand directly under a path of keys, in order, each once.
pub fn names_under(keys: &[&str]) -> Vec<&'static str> {
    let mut names = Vec::new();
    for setting in SETTINGS.iter().filter(|setting| parts_match(setting, keys)) {
        names.extend(setting.path.split('.').nth(keys.len()).filter(|name| !names.contains(name)));
    }
    names
}

fn parts_match(setting: &Setting, keys: &[&str]) -> bool {
    let parts = setting.path.split('.');
    depth(setting) >= keys.len()
        && parts.zip(keys).all(|(part, key)| part == *key || setting.stand_in() == Some(part))
}

fn depth(setting: &Setting) -> usize {
    setting.path.split('.').count()
}

fn env_form(path: &str) -> String {
    path.chars().flat_map(char::to_uppercase).map(|c| if c.is_alphanumeric() { c } else { '_' }).collect()
}

/// The providers whose keys are suggested where none was named: all of them would drown the likely ones.
const USUAL: [&str; 4] = ["openai", "anthropic", "ollama", "lmstudio"];

/// The hint for an unknown key that was given in full, as with `--set`.
pub fn key_hint(key: &str) -> String {
    let known = likely_keys(&SpokenNames::new());
    near(key, known.iter().map(|(key, leaf)| (key.as_str(), *leaf))).map_or_else(
        || "`komado admin config` lists the keys".to_owned(),
        |near| format!("did you mean {near}?"),
    )
}

/// The hint for an unknown key under a section of the file.
pub fn file_hint(section: &[&str], name: &str) -> String {
    let mut path = section.to_vec();
    let here = names_under(section);
    if let Some(near) = nearest_name(name, here.iter().copied()) {
        path.push(near);
        return format!("did you mean {}?", path.join("."));
    }
    if let Some((parents, leaf)) = name.rsplit_once('.').filter(|_| resolve(name).is_some()) {
        return format!("write {leaf} on a line of its own under {parents}");
    }
    let known = likely_keys(&SpokenNames::new());
    near(name, known.iter().map(|(key, leaf)| (key.as_str(), *leaf)))
        .map_or_else(|| format!("known here: {}", here.join(", ")), |near| format!("did you mean {near}?"))
}

/// The hint for an unknown variable of ours.
pub fn env_hint(name: &str, named: &SpokenNames) -> String {
    let known = likely_keys(named).into_iter().map(|(key, leaf)| (env_name(&key), env_name(leaf)));
    let short = SETTINGS.iter().filter_map(|setting| setting.short).map(env_name);
    let known: Vec<_> = known.chain(short.map(|name| (name.clone(), name))).collect();
    let bare = |name| own_env(name).unwrap_or(name);
    near(bare(name), known.iter().map(|(full, leaf)| (bare(full), bare(leaf)))).map_or_else(
        || "each is KOMADO_ and a key of `komado admin config` in capitals".to_owned(),
        |near| format!("did you mean {}?", env_name(near)),
    )
}

/// Every key with its last part; families for the given names and for the usual providers.
fn likely_keys(named: &SpokenNames) -> Vec<(String, &'static str)> {
    let named = named.iter().map(|(stand_in, name)| (*stand_in, name.as_str()));
    let named = named.chain(USUAL.map(|name| (PROVIDER, name)));
    keys(named).map(|(setting, key)| (key, setting.leaf())).collect()
}
