//! Which setting may have been meant? The hint that ends an error about an unknown one.

use komado_core::suggest::{nearest as near, nearest_name};

use super::table::{self, Named, PROVIDER, SETTINGS};

/// The providers whose keys are suggested where none was named: all of them would drown the likely ones.
const USUAL: [&str; 4] = ["openai", "anthropic", "ollama", "lmstudio"];

/// The hint for an unknown key that was given in full, as with `--set`.
pub(super) fn key_hint(key: &str) -> String {
    let known = keys(&Named::new());
    near(key, known.iter().map(|(key, leaf)| (key.as_str(), *leaf)))
        .map_or_else(|| "`komado config` lists the keys".to_owned(), |near| format!("did you mean {near}?"))
}

/// The hint for an unknown key under a section of the file.
pub(super) fn file_hint(section: &[&str], name: &str) -> String {
    let mut path = section.to_vec();
    let here = table::names_under(section);
    if let Some(near) = nearest_name(name, here.iter().copied()) {
        path.push(near);
        return format!("did you mean {}?", path.join("."));
    }
    if let Some((parents, leaf)) = name.rsplit_once('.').filter(|_| table::resolve(name).is_some()) {
        return format!("write {leaf} on a line of its own under {parents}");
    }
    let known = keys(&Named::new());
    near(name, known.iter().map(|(key, leaf)| (key.as_str(), *leaf)))
        .map_or_else(|| format!("known here: {}", here.join(", ")), |near| format!("did you mean {near}?"))
}

/// The hint for an unknown variable of ours.
pub(super) fn env_hint(name: &str, named: &Named) -> String {
    let known = keys(named).into_iter().map(|(key, leaf)| (table::env_name(&key), table::env_name(leaf)));
    let short = SETTINGS.iter().filter_map(|setting| setting.short).map(table::env_name);
    let known: Vec<_> = known.chain(short.map(|name| (name.clone(), name))).collect();
    let bare = |name| table::own_env(name).unwrap_or(name);
    near(bare(name), known.iter().map(|(full, leaf)| (bare(full), bare(leaf)))).map_or_else(
        || "each is KOMADO_ and a key of `komado config` in capitals".to_owned(),
        |near| format!("did you mean {}?", table::env_name(near)),
    )
}

/// Every key with its last part; families for the given names and for the usual providers.
fn keys(named: &Named) -> Vec<(String, &'static str)> {
    let named = named.iter().map(|(stand_in, name)| (*stand_in, name.as_str()));
    let named = named.chain(USUAL.map(|name| (PROVIDER, name)));
    table::keys(named).map(|(setting, key)| (key, setting.leaf())).collect()
}
