//! `recall.db`: made again whatever happened to it, private, and without a trace of what was cleared.

use crate::files::room::{Room, open_store, tid};
use komado_core::{Role, SessionId};
use komado_store::search_index::{
    IndexedEntry, IndexedPassage, IndexedUpto, Passage, SearchFilter, SearchIndex,
};
use komado_store::{FileStore, Store};
use std::fs;
use std::os::unix::fs::PermissionsExt;

fn sheet(seq: u32, terms: &[&str]) -> IndexedEntry {
    let terms: Vec<(String, u32)> = terms.iter().map(|term| ((*term).to_owned(), 1)).collect();
    let docs = vec![IndexedPassage { passage: Passage::default(), words: terms.len() as u32, terms }];
    let timestamp = "2024-01-15T10:30:00.000000Z".into();
    IndexedEntry { seq, role: Role::User, tools: vec!["werkzeug".into()], files: Vec::new(), timestamp, docs }
}

fn mark(seq: u32) -> IndexedUpto {
    IndexedUpto { seq, part: 0 }
}

fn holds(shelf: &dyn SearchIndex, term: &str) -> usize {
    shelf.holding(&[term.to_owned()], &SearchFilter::default(), None).unwrap().len()
}

/// Fills the shelf with one entry and finds it again.
pub(crate) fn can_be_filled_and_searched(store: &FileStore, id: &SessionId) {
    let mut shelf = store.search_index(id).unwrap();
    shelf.add(&tid("root"), mark(0), mark(1), &[sheet(1, &["word"])]).unwrap();
    assert_eq!(holds(&*shelf, "word"), 1);
}

#[test]
fn it_is_made_in_the_sessions_folder_for_its_owner_only_and_kept() {
    let room = Room::new();
    assert!(!room.path("recall.db").exists(), "nobody has searched yet");
    can_be_filled_and_searched(&room.store, &room.id);
    assert_eq!(fs::metadata(room.path("recall.db")).unwrap().permissions().mode() & 0o777, 0o600);
    let again = open_store(&room.base());
    let shelf = again.search_index(&room.id).unwrap();
    assert_eq!((holds(&*shelf, "word"), shelf.upto(&tid("root")).unwrap()), (1, mark(1)));
    drop(shelf);
    let beside: Vec<String> = fs::read_dir(room.path(""))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name.starts_with("recall.db"))
        .collect();
    assert_eq!(beside, ["recall.db"]);
}

#[test]
fn a_file_that_is_no_shelf_of_this_version_is_made_again_without_a_word() {
    let room = Room::new();
    can_be_filled_and_searched(&room.store, &room.id);
    let path = room.path("recall.db");
    let whole = fs::read(&path).unwrap();
    let version = |sql: &str| rusqlite::Connection::open(&path).unwrap().execute_batch(sql).unwrap();
    let spoil: [(&str, &dyn Fn()); 7] = [
        ("missing", &|| fs::remove_file(&path).unwrap()),
        ("no database", &|| {
            fs::write(&path, "not a database, but long enough to be taken for one".repeat(99)).unwrap()
        }),
        ("empty", &|| fs::write(&path, "").unwrap()),
        ("cut short", &|| fs::write(&path, &whole[..whole.len() / 2]).unwrap()),
        ("of an older version", &|| version("PRAGMA user_version = 0")),
        ("of a newer version", &|| version("PRAGMA user_version = 99")),
        ("with other columns", &|| version("DROP TABLE posts; CREATE TABLE posts (a)")),
    ];
    for (what, spoil) in spoil {
        fs::write(&path, &whole).unwrap();
        spoil();
        let found = room.store.search_index(&room.id).and_then(|mut shelf| {
            if shelf.holding(&["word".to_owned()], &SearchFilter::default(), None).is_err() {
                shelf.clear()?;
            }
            shelf.upto(&tid("root"))
        });
        assert_eq!(found.unwrap(), IndexedUpto::default(), "{what}");
        can_be_filled_and_searched(&room.store, &room.id);
        assert!(room.store.take_findings().is_empty(), "{what}");
    }
}

#[test]
fn no_byte_of_what_was_cleared_is_left() {
    let room = Room::new();
    let path = room.path("recall.db");
    let mut shelf = room.store.search_index(&room.id).unwrap();
    let long = "geheimniswort".repeat(4);
    let sheets: Vec<IndexedEntry> =
        (1..=3000).map(|n| sheet(n, &["geheimnis", &long, "秘密の", &format!("filler{n}")])).collect();
    shelf.add(&tid("root"), mark(0), mark(3000), &sheets).unwrap();
    let has = |needle: &str| {
        let bytes = fs::read(&path).unwrap();
        bytes.windows(needle.len()).any(|window| window == needle.as_bytes())
    };
    assert!(has("geheimnis") && has("秘密の") && has("werkzeug"));
    let before = fs::metadata(&path).unwrap().len();
    shelf.clear().unwrap();
    for needle in ["geheimnis", "秘密の", "filler", "werkzeug", "2024-01-15"] {
        assert!(!has(needle), "{needle}");
    }
    assert!(fs::metadata(&path).unwrap().len() < before / 4);
    assert!(!room.path("recall.db-journal").exists());
}

#[test]
fn a_shelf_that_cannot_be_read_any_more_can_be_cleared() {
    let room = Room::new();
    let path = room.path("recall.db");
    let mut shelf = room.store.search_index(&room.id).unwrap();
    let sheets: Vec<IndexedEntry> = (1..=2000).map(|n| sheet(n, &["word", &format!("w{n}")])).collect();
    shelf.add(&tid("root"), mark(0), mark(2000), &sheets).unwrap();
    drop(shelf);
    let mut bytes = fs::read(&path).unwrap();
    let len = bytes.len();
    bytes[4096..len].fill(0xab);
    fs::write(&path, &bytes).unwrap();
    room.store.check(&room.id).unwrap();
    can_be_filled_and_searched(&room.store, &room.id);
}

#[test]
fn a_check_empties_one_that_has_holes_and_says_so() {
    let room = Room::new();
    let path = room.path("recall.db");
    let mut shelf = room.store.search_index(&room.id).unwrap();
    let sheets: Vec<IndexedEntry> = (1..=2000).map(|n| sheet(n, &["word", &format!("w{n}")])).collect();
    shelf.add(&tid("root"), mark(0), mark(2000), &sheets).unwrap();
    drop(shelf);
    room.store.check(&room.id).unwrap();
    assert!(room.store.take_findings().is_empty());
    let mut bytes = fs::read(&path).unwrap();
    let len = bytes.len();
    bytes[len - 4096..].fill(0xab);
    fs::write(&path, &bytes).unwrap();
    room.store.check(&room.id).unwrap();
    let told: Vec<String> = room.store.take_findings().iter().map(ToString::to_string).collect();
    assert_eq!(told, ["session s: recall.db had holes; the next search makes it again"]);
    can_be_filled_and_searched(&room.store, &room.id);
}

#[test]
fn it_moves_with_its_session_and_is_searched_where_that_has_ended() {
    let room = Room::new();
    can_be_filled_and_searched(&room.store, &room.id);
    let to = komado_core::session::State::Completed;
    let end = komado_store::SessionChange::State { to, at: "t".into(), why: None };
    room.store.change(&room.id, &end).unwrap();
    assert!(room.base().join("completed/s/recall.db").exists());
    let mut shelf = room.store.search_index(&room.id).unwrap();
    assert_eq!(holds(&*shelf, "word"), 1);
    shelf.add(&tid("root"), mark(1), mark(2), &[sheet(2, &["more"])]).unwrap();
    assert_eq!(holds(&*shelf, "more"), 1);
}
