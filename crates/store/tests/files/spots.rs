//! The table of places: made again from the journals, and used by many at once.

use crate::files::play::{self, said};
use crate::files::room::{Room, meta, open_store, sid};
use komado_core::journal::{ElementGroup, Entry, Reply, Sent, TranscriptMark};
use komado_core::session::Meta;
use komado_core::thread::{Header, Moment};
use komado_core::{Message, Role, Seq, SessionId, ThreadId};
use komado_store::{FileStore, OpenMode, Store, TranscriptPlace, TranscriptPlaces};
use komado_testkit::Book;
use rusqlite::Connection;
use std::fs;

fn sent(mark: Option<TranscriptMark>) -> Entry {
    let (digest, model) = ("d".into(), "m".into());
    Entry::Sent(Sent { digest, model, context_tokens: 3, purpose: None, mark })
}

fn mark(digest: &str, inner: bool) -> Option<TranscriptMark> {
    let groups = vec![ElementGroup { elements: 1, entries: 1, times: 1 }];
    Some(TranscriptMark { from: 0, elements: 1, digest: digest.into(), groups, inner, apart: false })
}

fn spot(name: &str, session: &str, thread: &str, seq: Seq) -> TranscriptPlace {
    TranscriptPlace { name: name.into(), session: sid(session), thread: ThreadId::new(thread).unwrap(), seq }
}

fn reply(id: Option<&str>) -> Entry {
    let reply = Reply { to: Some(2), id: id.map(str::to_owned), ..Reply::default() };
    Entry::Message(Message::text(Role::Assistant, "はい"), Some(reply))
}

fn write(store: &FileStore, id: &SessionId, thread: &str, entries: Vec<Entry>) {
    let mut journal = store.open(id, &ThreadId::new(thread).unwrap(), OpenMode::Write).unwrap();
    let mut book = Book::default();
    for entry in entries {
        play::write(&mut book, &mut *journal, entry, 1);
    }
}

/// Two sessions: one with a name of its own, a request, an inner one, one of part of a transcript, a reply, and a fork from
/// the beginning that was sent the same; the other with that same request.
fn spoken_room() -> (Room, Vec<TranscriptPlace>) {
    let room = Room::new();
    let mut named = Meta { created_at: "2024-01-15T11:00:00Z".into(), ..meta("t") };
    named.config.alias = Some("alias".into());
    room.store.create(&named).unwrap();
    let talk = || {
        vec![
            said(Role::User, "窓"),
            sent(mark("n", false)),
            reply(Some("r")),
            sent(mark("n", true)),
            sent(mark("", false)),
            sent(None),
        ]
    };
    write(&room.store, &room.id, "root", talk());
    write(&room.store, &sid("t"), "root", talk());
    let base = Some(Moment { thread: ThreadId::root(), seq: 0 });
    let thread = ThreadId::new("fork_1").unwrap();
    let header = Header { thread, base, ..Header::root(sid("t"), "2024-01-15T12:00:00Z") };
    room.store.spawn(&header).unwrap();
    write(&room.store, &sid("t"), "fork_1", vec![said(Role::User, "窓"), sent(mark("n", false))]);
    let all = vec![
        spot("alias", "t", "root", 0),
        spot("n", "t", "fork_1", 2),
        spot("n", "t", "root", 2),
        spot("n", "s", "root", 2),
        spot("r", "t", "root", 3),
        spot("r", "s", "root", 3),
    ];
    (room, all)
}

fn sorted(store: &FileStore) -> Vec<TranscriptPlace> {
    let mut all: Vec<TranscriptPlace> =
        ["alias", "n", "", "r"].iter().flat_map(|name| store.spots(name).unwrap()).collect();
    all.sort_by_key(|spot| (spot.name.clone(), spot.session != sid("t"), spot.thread.clone()));
    all
}

#[test]
fn a_table_made_again_leads_to_every_moment_that_the_journals_name() {
    let (room, all) = spoken_room();
    assert_eq!(sorted(&room.store), []);
    room.store.rebuild().unwrap();
    assert_eq!(sorted(&room.store), all);
    room.store.rebuild().unwrap();
    assert_eq!(sorted(&room.store), all, "nothing is noted twice");
    let of_one_name = room.store.spots("n").unwrap();
    assert_eq!(of_one_name.last().unwrap().session, sid("s"), "the session made first is the oldest");
    let base = room.base();
    drop(room.store);
    for name in ["tasks.db", "tasks.db-wal", "tasks.db-shm"] {
        let _ = fs::remove_file(base.join(name));
    }
    assert_eq!(sorted(&open_store(&base)), all);
}

#[test]
fn a_check_puts_back_what_the_table_lacks_and_says_so() {
    let (room, all) = spoken_room();
    room.store.rebuild().unwrap();
    let base = room.base();
    Connection::open(base.join("tasks.db"))
        .unwrap()
        .execute("DELETE FROM places WHERE name = 'n'", [])
        .unwrap();
    room.store.take_findings();
    for id in room.store.folders().unwrap() {
        room.store.check(&id).unwrap();
    }
    let found: Vec<String> = room.store.take_findings().iter().map(ToString::to_string).collect();
    assert_eq!(found.len(), 2, "{found:?}");
    assert!(found[1].contains("lacked 2"), "{found:?}");
    assert_eq!(sorted(&room.store), all);
    room.store.check(&sid("t")).unwrap();
    assert_eq!(room.store.take_findings(), Vec::<String>::new());
}

#[test]
fn two_hundred_threads_note_and_find_at_once() {
    let (room, _) = spoken_room();
    let store = &room.store;
    std::thread::scope(|scope| {
        for n in 0..200_u32 {
            scope.spawn(move || {
                for i in 0..5 {
                    let own = spot(&format!("{n}-{i}"), "s", "root", n);
                    store.note(&[own.clone(), spot("all", "s", "root", n)]).unwrap();
                    assert_eq!(store.spots(&own.name).unwrap(), [own]);
                }
            });
        }
    });
    assert_eq!(store.spots("all").unwrap().len(), 200);
}
