//! `kill -9` at random moments: what was acknowledged is there, and the session opens by itself.
use crate::run;

use komado_core::head::EntrySource;
use komado_core::{SessionId, ThreadId, View};
use komado_store::{FileStore, Holder, OpenMode, Store};
use komado_testkit::soak::times;
use run::Place;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Stdio};
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

const HANDS: u64 = 4;

/// How many writers are killed.
fn killed() -> u64 {
    times(100, 500)
}

/// A small generator, so that a failure can be had again.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % sides
    }
}

/// Message number `n` of the endless conversation that is written: every third one calls, the next one answers.
fn message(n: u64, dice: &mut Dice) -> String {
    let filler = "窓 window ".repeat(dice.roll(60) as usize);
    match n % 3 {
        0 => format!(r#"{{"role":"user","content":"message {n} {filler}"}}"#),
        1 => format!(
            r#"{{"role":"assistant","content":"message {n}","tool_calls":[{{"id":"c{n}","type":"function","function":{{"name":"read","arguments":"{{}}"}}}}]}}"#
        ),
        _ => format!(r#"{{"role":"tool","tool_call_id":"c{}","content":"message {n} {filler}"}}"#, n - 1),
    }
}

fn start(place: &Place, session: &str) -> Child {
    let mut command = place.command(&["append", session, "--jsonl", "-"]);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap()
}

/// Feeds an endless conversation until the process is killed; gives every number it acknowledged.
fn write_and_kill(place: &Place, session: &str, from: u64, dice: &mut Dice) -> Vec<u32> {
    let mut child = start(place, session);
    let (mut stdin, stdout) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
    let acknowledged = Arc::new(Mutex::new(Vec::new()));
    let heard = Arc::clone(&acknowledged);
    let (acknowledges, begun) = mpsc::channel();
    let reader = std::thread::spawn(move || {
        let mut stdout = BufReader::new(stdout);
        let mut line = String::new();
        // A number that the kill cut short has no line break and acknowledges nothing.
        while stdout.read_line(&mut line).is_ok_and(|n| n > 0) && line.ends_with('\n') {
            heard.lock().unwrap().push(line.trim().to_owned());
            line.clear();
            let _ = acknowledges.send(());
        }
    });
    let seed = dice.roll(u64::MAX) | 1;
    let writer = std::thread::spawn(move || {
        let mut dice = Dice(seed);
        for n in from..from + 100_000 {
            if writeln!(stdin, "{}", message(n, &mut dice)).is_err() {
                return;
            }
        }
    });
    // One in four is killed at its start, however long that takes here; the others while they write.
    if dice.roll(4) > 0 {
        let _ = begun.recv();
    }
    std::thread::sleep(Duration::from_micros(dice.roll(40_000)));
    child.kill().unwrap();
    child.wait().unwrap();
    reader.join().unwrap();
    writer.join().unwrap();
    let lines = acknowledged.lock().unwrap();
    lines.iter().map(|line| line.parse().unwrap()).collect()
}

fn store(place: &Place) -> FileStore {
    let holder = Holder { pid: 0, host: "here".into(), program: "test".into(), since: "now".into() };
    FileStore::new(&place.base(), holder)
}

/// Opens the session and gives the next message's number: everything acknowledged must be there, in order.
fn check(place: &Place, session: &str, before: u32, acknowledged: &[u32]) -> (u32, u64) {
    let store = store(place);
    let id = SessionId::new(session).unwrap();
    let journal = store.open(&id, &ThreadId::root(), OpenMode::Read).unwrap();
    let last = journal.last();
    let want: Vec<u32> = (before + 1..).take(acknowledged.len()).collect();
    assert_eq!(acknowledged, want, "numbers are given in order, without gaps");
    assert!(
        acknowledged.last().is_none_or(|seq| *seq <= last),
        "acknowledged {acknowledged:?}, journal ends at {last}"
    );
    let view = View::fold(&*journal, last).unwrap();
    for seq in before + 1..=last {
        let line = String::from_utf8(journal.line(seq).unwrap()).unwrap();
        assert!(line.contains(&format!("message {}", seq - 1)), "@{seq}: {line}");
    }
    assert_eq!(view.last(), last);
    assert_eq!(u64::from(EntrySource::head(&*journal, last).unwrap().items), u64::from(last));
    (last, u64::from(last))
}

#[test]
fn killed_writers_lose_nothing_they_acknowledged() {
    let counts: Vec<(u64, u64)> = std::thread::scope(|scope| {
        let hands: Vec<_> = (0..HANDS).map(|hand| scope.spawn(move || one_hand(hand))).collect();
        hands.into_iter().map(|hand| hand.join().unwrap()).collect()
    });
    let (kills, entries) = counts.iter().fold((0, 0), |(k, e), (kills, entries)| (k + kills, e + entries));
    assert_eq!(kills, killed());
    assert!(entries > kills, "the writers wrote too little for this to mean anything: {entries} entries");
}

fn one_hand(hand: u64) -> (u64, u64) {
    let place = Place::new();
    let session = place.session();
    let mut dice = Dice(0x9e37_79b9_7f4a_7c15 ^ (hand + 1));
    let (mut last, mut next, mut kills) = (0, 0, 0);
    for _ in 0..killed() / HANDS {
        let acknowledged = write_and_kill(&place, &session, next, &mut dice);
        (last, next) = check(&place, &session, last, &acknowledged);
        kills += 1;
    }
    let said = place.run(&["admin", "doctor"]);
    assert_eq!(said.code, 0, "{}{}", said.out, said.err);
    assert_eq!(place.json_lines(&["log", &session]).len() as u32, last);
    (kills, u64::from(last))
}

#[test]
fn a_session_killed_while_it_ends_can_be_ended_or_resumed_without_repair() {
    let place = Place::new();
    let mut dice = Dice(77);
    for _ in 0..20 {
        let session = place.session();
        place.ok(&["append", &session, "hello"]);
        let mut command = place.command(&["session", "complete", &session]);
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        std::thread::sleep(Duration::from_micros(dice.roll(12_000)));
        child.kill().unwrap();
        child.wait().unwrap();
        let ended = place.run(&["session", "complete", &session]);
        assert!(
            ended.code == 0 || ended.err.contains("ended") || ended.err.contains("closed"),
            "{}",
            ended.err
        );
        place.ok(&["admin", "doctor", &session]);
        let status = &place.json_lines(&["sessions", "--status", "completed"]);
        assert!(status.iter().any(|row| row["session"] == session.as_str()), "{status:?}");
        place.ok(&["session", "resume", &session]);
        place.ok(&["append", &session, "and on"]);
    }
}
