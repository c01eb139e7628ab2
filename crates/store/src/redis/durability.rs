//! How the server is doing, and what it promises.

use super::RedisStore;
use super::link::RedisLink;
use super::scripts::{RedisCall, read};
use crate::tables::{StoreFigures, StoreHealthFigures};
use crate::{Error, Result};
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// What an acknowledged entry outlives.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Durability {
    pub(super) words: String,
    pub(super) may_lose: bool,
    /// What is to be put right.
    pub(super) warnings: Vec<String>,
}

/// Asks the server, for the first time: an error when there is none.
pub(super) fn promise(link: &Arc<RedisLink>) -> Result<Durability> {
    link.ask(RedisCall::cmd("PING").greeting())?;
    let mut settings = HashMap::new();
    for name in ["appendonly", "appendfsync", "maxmemory-policy", "save"] {
        match link.ask(RedisCall::cmd("CONFIG").arg("GET").arg(name)) {
            Ok(answer) => settings.extend(read::<HashMap<String, String>>(answer.value)?),
            // Many a hosted server does not tell.
            Err(Error::Refused { .. }) => break,
            Err(error) => return Err(error),
        }
    }
    let replicas = (link.address.wait > 0)
        .then(|| format!("; none is acknowledged before {} replicas have it", link.address.wait));
    let mut promise = promised(&settings);
    // How often the log is synced stands in the settings alone, so what is promised stays unknown without them.
    if !settings.contains_key("appendonly") && !link.is_cluster() {
        promise.warnings = warnings(&told(link));
    }
    promise.words.push_str(&replicas.unwrap_or_default());
    Ok(promise)
}

/// The settings as far as INFO names them.
fn told(link: &Arc<RedisLink>) -> HashMap<String, String> {
    let info = |section: &str| info(link, section).unwrap_or_default();
    in_info(&format!("{}\n{}", info("persistence"), info("memory")))
}

fn info(link: &Arc<RedisLink>, section: &str) -> Result<String> {
    read(link.ask(RedisCall::cmd("INFO").arg(section))?.value)
}

/// What INFO says of settings, under the settings' own names.
fn in_info(info: &str) -> HashMap<String, String> {
    let get =
        |name: &str| info.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':')).map(str::trim);
    let aof = get("aof_enabled").map(|is_on| ("appendonly", if is_on == "1" { "yes" } else { "no" }));
    let policy = get("maxmemory_policy").map(|policy| ("maxmemory-policy", policy));
    aof.into_iter().chain(policy).map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
}

/// What is to be put right in the settings of a server.
fn warnings(settings: &HashMap<String, String>) -> Vec<String> {
    let get = |name: &str| settings.get(name).map(String::as_str);
    let unlogged = get("appendonly").filter(|is_on| *is_on != "yes").map(|_| {
        "Redis writes no log of its changes (appendonly no): what was kept is lost when its process ends; set appendonly yes"
            .to_owned()
    });
    let evicting = get("maxmemory-policy").filter(|policy| *policy != "noeviction").map(|policy| {
        format!(
            "Redis removes sessions, or parts of them, when its memory is short (maxmemory-policy {policy}); set noeviction"
        )
    });
    unlogged.into_iter().chain(evicting).collect()
}

fn promised(settings: &HashMap<String, String>) -> Durability {
    let get = |name: &str| settings.get(name).map(String::as_str);
    let (mut words, mut may_lose) = match (get("appendonly"), get("appendfsync")) {
        (Some("yes"), Some("always")) => ("outlives the server's process and machine".to_owned(), false),
        (Some("yes"), Some("no")) => {
            ("outlives the server's process; its machine may lose the last half minute".to_owned(), true)
        }
        (Some("yes"), _) => {
            ("outlives the server's process; its machine may lose the last second".to_owned(), true)
        }
        (Some(_), _) if get("save").is_none_or(str::is_empty) => {
            ("is lost with the server's process: it writes nothing to its disk".to_owned(), true)
        }
        (Some(_), _) => (
            "is lost with the server's process unless a snapshot was made since; set appendonly yes"
                .to_owned(),
            true,
        ),
        (None, _) => {
            ("may be lost, it is unknown with what: the server does not tell its settings".to_owned(), true)
        }
    };
    if let Some(policy) = get("maxmemory-policy").filter(|policy| *policy != "noeviction") {
        words.push_str(&format!(
            "; WARNING: maxmemory-policy {policy} removes sessions, or parts of them, when memory is short: set noeviction"
        ));
        may_lose = true;
    }
    Durability { words, may_lose, warnings: warnings(settings) }
}

/// The figures in what INFO says.
fn figure(info: &str, name: &str) -> Option<u64> {
    info.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':')?.trim().parse().ok())
}

impl StoreFigures for RedisStore {
    fn vitals(&self) -> Result<StoreHealthFigures> {
        let store = &self.0;
        store.look_over()?;
        let sessions: u64 = read(store.link.ask(RedisCall::cmd("ZCARD").arg(store.keys.made()))?.value)?;
        let mut vitals = StoreHealthFigures {
            kind: "redis",
            place: store.link.wire.place().to_owned(),
            durability: store.promise.words.clone(),
            may_lose: store.promise.may_lose,
            warnings: store.promise.warnings.clone(),
            sessions: Some(sessions),
            connections: Some(store.link.connections() + u64::from(store.news.is_listening())),
            expired: Some(store.expired.load(Ordering::Relaxed)),
            leases: Some(store.leases.count() as u64),
            ..StoreHealthFigures::default()
        };
        // Of a cluster each node would have to be asked.
        if !store.link.is_cluster() {
            vitals.keys = Some(read(store.link.ask(RedisCall::cmd("DBSIZE"))?.value)?);
            let (memory, persistence) = (info(&store.link, "memory"), info(&store.link, "persistence"));
            // Settings may change while the server runs, and another server may have taken its place.
            if let (Ok(memory), Ok(persistence)) = (&memory, &persistence) {
                vitals.warnings = warnings(&in_info(&format!("{memory}\n{persistence}")));
            }
            vitals.memory_bytes = memory.ok().and_then(|info| figure(&info, "used_memory"));
            vitals.disk_bytes = persistence.ok().and_then(|info| figure(&info, "aof_current_size"));
        }
        Ok(vitals)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_setting_promises_what_it_can_keep() {
        let promise = |settings: &[(&str, &str)]| {
            let own = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
            promised(&settings.iter().map(own).collect())
        };
        let always = [("appendonly", "yes"), ("appendfsync", "always"), ("maxmemory-policy", "noeviction")];
        assert!(!promise(&always).may_lose);
        let everysec = promise(&[("appendonly", "yes"), ("appendfsync", "everysec")]);
        assert!(everysec.may_lose && everysec.words.contains("last second"), "{everysec:?}");
        let snapshots = promise(&[("appendonly", "no"), ("save", "3600 1")]);
        assert!(snapshots.may_lose && snapshots.words.contains("snapshot"), "{snapshots:?}");
        let nothing = promise(&[("appendonly", "no"), ("save", "")]);
        assert!(nothing.may_lose && nothing.words.contains("nothing to its disk"), "{nothing:?}");
        assert!(promise(&[]).words.contains("unknown"));
        assert!(promise(&always).warnings.is_empty() && everysec.warnings.is_empty());
        assert!(nothing.warnings[0].contains("appendonly yes"), "{nothing:?}");
        for policy in ["allkeys-lru", "volatile-ttl"] {
            let evicting = promise(&[always[0], always[1], ("maxmemory-policy", policy)]);
            assert!(evicting.may_lose && evicting.words.contains("noeviction"), "{evicting:?}");
        }
    }

    #[test]
    fn settings_that_are_not_shown_are_read_from_the_figures() {
        let info =
            "# Memory\r\nused_memory:1\r\nmaxmemory_policy:allkeys-lru\r\n# Persistence\r\naof_enabled:0\r\n";
        let found = promised(&in_info(info));
        assert_eq!(found.warnings.len(), 2, "{found:?}");
        assert!(found.warnings[1].contains("allkeys-lru"), "{found:?}");
        assert!(warnings(&in_info("aof_enabled:1\r\nmaxmemory_policy:noeviction")).is_empty());
        assert!(warnings(&in_info("")).is_empty());
    }
}
