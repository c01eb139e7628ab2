//! How the server is doing, by its own account.

use super::PostgresStore;
use super::link::values;
use crate::Result;
use crate::vitals::{Pulse, Vitals};

/// Few sessions are counted, many are estimated; so are all other rows.
const LOOK: &str = "SELECT (SELECT count(*) FROM (SELECT 1 FROM sessions LIMIT 10000) AS few)::BIGINT, \
    COALESCE((SELECT reltuples FROM pg_class WHERE oid = 'sessions'::REGCLASS), 0)::BIGINT, \
    (SELECT sum(pg_stat_get_live_tuples(c.oid)) FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace \
        WHERE n.nspname = $1::TEXT AND c.relkind = 'r')::BIGINT, \
    (SELECT sum(pg_total_relation_size(c.oid)) FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace \
        WHERE n.nspname = $1::TEXT AND c.relkind = 'r')::BIGINT, \
    COALESCE(current_setting('synchronous_commit', TRUE), 'on'), \
    COALESCE(current_setting('fsync', TRUE), 'on'), \
    COALESCE(current_setting('synchronous_standby_names', TRUE), '') <> ''";

impl Pulse for PostgresStore {
    fn vitals(&self) -> Result<Vitals> {
        let server = self.server();
        let rows = server.ask(LOOK, values![server.schema.clone()])?;
        let mut vitals = Vitals {
            kind: "postgres",
            place: server.wire.place().to_owned(),
            connections: Some(server.link.connections() as u64),
            leases: Some(server.leases.count() as u64),
            ..Vitals::default()
        };
        let Some(row) = rows.first() else { return Ok(vitals) };
        let number = |column: usize| row.get::<_, Option<i64>>(column).map(|n| n.max(0) as u64);
        let counted = number(0);
        vitals.sessions = if counted < Some(10_000) { counted } else { number(1).max(counted) };
        (vitals.keys, vitals.disk_bytes) = (number(2), number(3));
        let (commit, sync): (&str, &str) = (row.get(4), row.get(5));
        (vitals.durability, vitals.may_lose) = durability((commit, sync), row.get(6));
        Ok(vitals)
    }
}

/// What an acknowledged entry outlives, and whether it may be lost with the server's machine.
fn durability((commit, sync): (&str, &str), has_standby: bool) -> (String, bool) {
    match (commit, sync) {
        (_, "off") => ("outlives the server's process, not its machine (fsync is off)".to_owned(), true),
        ("off", _) => ("outlives nothing for a moment (synchronous_commit is off)".to_owned(), true),
        ("on" | "remote_apply" | "remote_write", _) if has_standby => {
            (format!("outlives the loss of one machine (synchronous_commit is {commit})"), false)
        }
        _ => {
            (format!("outlives the server's process and a power cut (synchronous_commit is {commit})"), false)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::durability;

    #[test]
    fn what_may_be_lost_is_said_to_be() {
        assert!(durability(("on", "off"), true).1 && durability(("off", "on"), true).1);
        for commit in ["on", "local", "remote_apply"] {
            let (words, may_lose) = durability((commit, "on"), false);
            assert!(!may_lose && words.contains(commit) && words.contains("power cut"), "{words}");
        }
        assert!(durability(("remote_apply", "on"), true).0.contains("loss of one machine"));
        assert!(durability(("local", "on"), true).0.contains("power cut"));
    }
}
