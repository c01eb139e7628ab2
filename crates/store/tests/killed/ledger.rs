//! What was acknowledged, kept where no store can lose it, and held against what is there afterwards.

use crate::killed::conversation::{Conversation, number, sid};
use komado_core::{Seq, ThreadId, View};
use komado_store::{Journal, OpenMode, Store};
use std::collections::HashSet;
use std::sync::{Condvar, Mutex};
use std::time::Duration;

/// Acknowledged entries, each with its session.
#[derive(Default)]
pub(crate) struct Ledger {
    noted: Mutex<Vec<(String, Seq)>>,
    more: Condvar,
}

/// What became of them.
#[derive(Default, PartialEq, Eq, Debug)]
struct Verdict {
    lost: usize,
    duplicated: usize,
    unreadable: usize,
    forks: usize,
}

impl Ledger {
    pub(crate) fn note(&self, session: &str, n: Seq) {
        self.noted.lock().unwrap().push((session.to_owned(), n));
        self.more.notify_all();
    }

    /// Waits until so many more were acknowledged: the store is at work.
    pub(crate) fn wait_for_more(&self, more: u64) {
        let noted = self.noted.lock().unwrap();
        let wanted = noted.len() + usize::try_from(more).unwrap();
        let long = Duration::from_secs(60);
        let (noted, waited) =
            self.more.wait_timeout_while(noted, long, |noted| noted.len() < wanted).unwrap();
        assert!(!waited.timed_out(), "nothing was written for a minute; so far {}", noted.len());
    }

    /// Reads every session, prints a row of the table, and refuses any figure but 0.
    pub(crate) fn judge(&self, name: &str, kills: u32, seed: u64, store: &dyn Store, sessions: &[&str]) {
        let noted = self.noted.lock().unwrap();
        let mut verdict = Verdict::default();
        let mut entries = 0;
        for session in sessions {
            let acknowledged = noted.iter().filter(|(of, _)| of == session).map(|(_, n)| *n);
            entries += verdict.read(store, session, acknowledged.collect());
        }
        let Verdict { lost, duplicated, unreadable, forks } = &verdict;
        eprintln!(
            "| {name} | {kills} kills | {entries} entries | {} acknowledged | {lost} lost | {duplicated} duplicated | \
             {unreadable} unreadable | {forks} forks | KOMADO_SEED={seed} |",
            noted.len()
        );
        assert_eq!(verdict, Verdict::default(), "{name}, KOMADO_SEED={seed}");
    }
}

impl Verdict {
    /// Reads one session; gives how many entries it has.
    fn read(&mut self, store: &dyn Store, session: &str, acknowledged: Vec<Seq>) -> Seq {
        let id = sid(session);
        let opened = store.open(&id, &ThreadId::root(), OpenMode::Read);
        let Ok(journal) = opened.inspect_err(|error| eprintln!("{session}: {error}")) else {
            self.unreadable += 1;
            self.lost += acknowledged.len();
            return 0;
        };
        self.forks += store.threads(&id).map_or(1, |threads| threads.len() - 1);
        let there = self.compare(session, &*journal);
        self.lost += acknowledged.iter().filter(|n| !there.contains(*n)).count();
        self.unreadable += usize::from(View::fold(&*journal, journal.last()).is_err());
        journal.last()
    }

    /// The entries that are where they belong.
    fn compare(&mut self, session: &str, journal: &dyn Journal) -> HashSet<Seq> {
        let mut due = Conversation::new(session);
        let (mut seen, mut there) = (HashSet::new(), HashSet::new());
        for seq in 1..=journal.last() {
            let Ok(line) = journal.line(seq) else {
                self.unreadable += 1;
                continue;
            };
            if number(&line).is_some_and(|n| !seen.insert(n)) {
                self.duplicated += 1;
            }
            let row = due.row(seq);
            let is_due = line == row.line && journal.head(seq).is_ok_and(|head| head == row.head);
            if is_due {
                there.insert(seq);
            } else {
                self.forks += 1;
            }
        }
        there
    }
}
