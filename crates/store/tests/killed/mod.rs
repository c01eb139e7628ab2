//! The fault table: a store is killed at random moments under load, and nothing that was acknowledged is lost.
//!
//! Writers append to sessions of their own and note what was acknowledged, out of the store's reach. For files the writers
//! are processes and are killed; for servers the server is, or its connections are cut in mid-message. Afterwards every
//! session is read. `make soak` kills 200 times, `make test` 6 times; `KOMADO_SEED` repeats the moments of an earlier run.

mod conversation;
#[allow(dead_code)] // Others throw it in more ways.
use crate::suite::dice;
mod ledger;
mod load;
mod processes;
mod proxy;
use crate::servers;

use dice::Dice;
use komado_store::{ConnectOptions, Holder, Store, connect};
use komado_testkit::soak::times;
use ledger::Ledger;
use load::Load;
use processes::Process;
use proxy::Proxy;
use servers::{Kind, Server};
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Acknowledged between two kills, so that each hits a store at work.
const BETWEEN: u64 = 12;

fn kills() -> u32 {
    u32::try_from(times(6, 200)).unwrap()
}

fn seed() -> u64 {
    let now = || SystemTime::now().duration_since(UNIX_EPOCH).unwrap().subsec_nanos().into();
    std::env::var("KOMADO_SEED").ok().map_or_else(now, |seed| seed.parse().expect("KOMADO_SEED is a number"))
}

pub(crate) fn holder(program: &str) -> Holder {
    let (host, program, since) = ("here".into(), program.into(), "now".into());
    Holder { pid: std::process::id(), host, program, since }
}

fn server_store(url: &str) -> Arc<dyn Store> {
    let mut how = ConnectOptions::new(holder("a writer"));
    (how.patience, how.lease, how.connections) = (Duration::from_secs(5), Duration::from_secs(2), 8);
    connect(url, &how).unwrap()
}

/// Does `harm` at random moments while `ledger` fills.
fn under_fire(ledger: &Ledger, dice: &mut Dice, mut harm: impl FnMut(&mut Dice)) {
    for _ in 0..kills() {
        ledger.wait_for_more(BETWEEN);
        std::thread::sleep(Duration::from_micros(dice.below(40_000).into()));
        harm(dice);
    }
    ledger.wait_for_more(BETWEEN);
}

#[test]
fn killed_writers_of_files_lose_nothing_they_acknowledged() {
    if processes::is_one() {
        return;
    }
    let seed = seed();
    let mut dice = Dice::new(seed);
    let folder = tempfile::tempdir().unwrap();
    let ledger = Arc::new(Ledger::default());
    let store = processes::store(folder.path());
    let groups = [["f0", "f1"], ["f2", "f3"]];
    conversation::make(&store, groups.as_flattened());
    let mut writers = groups.map(|sessions| Process::start(folder.path(), &sessions, &ledger));
    under_fire(&ledger, &mut dice, |dice| {
        let at = dice.below(2) as usize;
        writers[at].kill();
        writers[at] = Process::start(folder.path(), &groups[at], &ledger);
    });
    writers.iter_mut().for_each(Process::kill);
    ledger.judge("file, writer killed", kills(), seed, &store, groups.as_flattened());
}

const SESSIONS: [&str; 4] = ["s0", "s1", "s2", "s3"];

fn a_killed_server_loses_nothing(name: &str, kind: Kind) {
    let seed = seed();
    let mut dice = Dice::new(seed);
    let server = Server::start(kind, &[]);
    let store = server_store(&server.url);
    conversation::make(&*store, &SESSIONS);
    let ledger = Arc::new(Ledger::default());
    let load = Load::start(&store, &SESSIONS, &ledger);
    under_fire(&ledger, &mut dice, |_| {
        server.tell("kill");
        server.tell("start");
    });
    load.stop();
    ledger.judge(name, kills(), seed, &*server_store(&server.url), &SESSIONS);
}

fn cut_connections_lose_nothing(name: &str, kind: Kind) {
    let seed = seed();
    let server = Server::start(kind, &[]);
    conversation::make(&*server_store(&server.url), &SESSIONS);
    let ledger = Arc::new(Ledger::default());
    let proxy = Proxy::start(&server.url, seed);
    let store = server_store(&proxy.url);
    let load = Load::start(&store, &SESSIONS, &ledger);
    proxy.cut_until(4 * kills());
    ledger.wait_for_more(BETWEEN);
    load.stop();
    ledger.judge(name, proxy.cuts(), seed, &*server_store(&server.url), &SESSIONS);
}

#[test]
fn a_killed_postgres_loses_nothing_it_acknowledged() {
    a_killed_server_loses_nothing("postgres, server killed", Kind::Postgres);
}

#[test]
fn a_killed_redis_loses_nothing_it_acknowledged() {
    a_killed_server_loses_nothing("redis, server killed", Kind::Redis);
}

#[test]
fn cut_connections_to_postgres_lose_nothing_that_was_acknowledged() {
    cut_connections_lose_nothing("postgres, connection cut", Kind::Postgres);
}

#[test]
fn cut_connections_to_redis_lose_nothing_that_was_acknowledged() {
    cut_connections_lose_nothing("redis, connection cut", Kind::Redis);
}

/// Not a test of its own: a process of the first one, when that started it.
#[test]
fn one_process_that_writes() {
    processes::write_until_killed();
}
