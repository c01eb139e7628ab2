//! From a folder to PostgreSQL, on to Redis and back into a folder: the same bytes, also where it was killed on the way.

use crate::migrate::run::Place;
use crate::migrate::servers::{Kind, Server};
use crate::migrate::{exports, fill, url};
use std::io::{BufRead, BufReader};
use std::process::Stdio;

/// How many sessions travel.
fn sessions() -> usize {
    std::env::var("KOMADO_MIGRATE_SESSIONS").ok().and_then(|text| text.parse().ok()).unwrap_or(12)
}

/// Begins a migration and kills it once a third of the sessions have gone.
fn kill_on_the_way(place: &Place, args: &[&str], sessions: usize) {
    let all: Vec<&str> = args.iter().copied().chain(["--json"]).collect();
    let mut child = place.command(&all).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut out = BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    for _ in 0..sessions / 3 {
        out.read_line(&mut line).unwrap();
    }
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn sessions_travel_over_both_servers_and_come_back_as_the_same_bytes() {
    let place = Place::new();
    let (from, to) = (place.path().join("from"), place.path().join("to"));
    let ids = fill(&from, sessions());
    let (postgres, redis) = (Server::start(Kind::Postgres, &[]), Server::start(Kind::Redis, &[]));
    let stops = [url(&from), postgres.url.clone(), redis.url.clone(), url(&to)];
    let mut digests = Vec::new();
    for leg in stops.windows(2) {
        let args = ["admin", "migrate", "--from", &leg[0], "--to", &leg[1]];
        kill_on_the_way(&place, &args, ids.len());
        // The lease of one that was killed is over after a few seconds.
        let waited = run_when_free(&place, &args);
        digests.push(waited["summary"]["digest"].clone());
    }
    assert!(digests.windows(2).all(|pair| pair[0] == pair[1]), "{digests:?}");
    assert_eq!(exports(&to, &ids), exports(&from, &ids));
}

/// Runs until no session is held any more by the one that was killed; gives the last row.
fn run_when_free(place: &Place, args: &[&str]) -> serde_json::Value {
    let all: Vec<&str> = args.iter().copied().chain(["--json"]).collect();
    for _ in 0..60 {
        let said = place.run(&all);
        if said.code == 0 {
            return serde_json::from_str(said.out.lines().last().unwrap()).unwrap();
        }
        assert!(said.out.contains("is being written by"), "{}{}", said.out, said.err);
        std::thread::sleep(std::time::Duration::from_millis(500));
    }
    panic!("the lease of a process that was killed never ended");
}
