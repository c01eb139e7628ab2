//! The index: whatever happens to it, the heads are the same.

use crate::files::dice::Dice;
use crate::files::play::{self, said};
use crate::files::room::{Room, open_store, same, walk};
use komado_core::{Role, ThreadId};
use komado_store::files::FileJournal;
use komado_store::{Error, Journal, JournalRepair, JournalRow, OpenMode, Store};
use komado_testkit::Book;
use std::fs;
use std::path::Path;

/// Bytes of the first page, and of a record.
const PAGE: usize = 4096;
const RECORD: usize = 80;

/// The word `n` of the marks: count, end of the journal, state, boot.
fn set_word(bytes: &mut [u8], n: usize, word: u64) {
    bytes[16 + 8 * n..24 + 8 * n].copy_from_slice(&word.to_le_bytes());
}

/// What a killed process leaves: the folder as it is at this moment.
fn crash(room: &Room) -> (tempfile::TempDir, komado_store::FileStore) {
    let dir = tempfile::tempdir().unwrap();
    for path in walk(&room.base()) {
        let to = dir.path().join(path.strip_prefix(room.base()).unwrap());
        if path.is_dir() {
            fs::create_dir_all(to).unwrap();
        } else {
            fs::copy(path, to).unwrap();
        }
    }
    let store = open_store(dir.path());
    (dir, store)
}

/// Puts `bytes` in place of the index and opens the thread both ways.
fn opens_as_before(room: &Room, what: &str, bytes: Option<&[u8]>) -> Vec<JournalRepair> {
    let path = room.path("index");
    let put = || match bytes {
        Some(bytes) => fs::write(&path, bytes).unwrap(),
        None => fs::remove_file(&path).unwrap(),
    };
    put();
    same(&room.read(), &room.book);
    put();
    let journal = room.write();
    let notes = journal.notes().to_vec();
    same(&journal, &room.book);
    drop(journal);
    same(&room.read(), &room.book);
    assert_eq!(room.write().notes(), [], "{what}: put right once");
    room.store.take_findings();
    notes
}

#[test]
fn an_index_that_is_missing_broken_behind_or_ahead_is_made_again() {
    let room = Room::with(31, 60);
    let all = vec![JournalRepair::Reindexed { entries: 60 }];
    let whole = fs::read(room.path("index")).unwrap();
    assert_eq!(whole.len(), PAGE + 60 * RECORD, "closed, it is as long as need be");
    assert_eq!(opens_as_before(&room, "missing", None), all);
    for len in [0, 1, 15, 100, PAGE - 1, PAGE, PAGE + 1, PAGE + 59 * RECORD, whole.len() - 1] {
        assert_eq!(opens_as_before(&room, "cut", Some(&whole[..len])), all, "cut to {len}");
    }
    assert_eq!(opens_as_before(&room, "zeros", Some(&vec![0; whole.len()])), all);
    assert_eq!(opens_as_before(&room, "text", Some(b"this is not an index\n")), all);
    let mut dice = Dice::new(31);
    let garbage: Vec<u8> = (0..whole.len()).map(|_| u8::try_from(dice.below(256)).unwrap()).collect();
    assert_eq!(opens_as_before(&room, "garbage", Some(&garbage)), all);
    let named = [&whole[..16], &garbage[16..]].concat();
    assert_eq!(opens_as_before(&room, "garbage under the right name", Some(&named)), all);
    let emptied = [&whole[..PAGE], &vec![0; 60 * RECORD][..]].concat();
    assert_eq!(opens_as_before(&room, "zeros after the first page", Some(&emptied)), all);
    let longer = [&whole[..], &garbage[..]].concat();
    assert_eq!(opens_as_before(&room, "longer than it says", Some(&longer)), []);
    for (word, value) in [(0, 61), (0, u64::MAX), (0, 1 << 33), (2, 2), (2, 9)] {
        let mut bytes = longer.clone();
        set_word(&mut bytes, word, value);
        assert_eq!(opens_as_before(&room, "marks", Some(&bytes)), all, "word {word} is {value}");
    }
    for count in [0, 1, 7, 59] {
        let mut bytes = whole.clone();
        set_word(&mut bytes, 0, count);
        let rest = vec![JournalRepair::Reindexed { entries: 60 - count }];
        assert_eq!(opens_as_before(&room, "older", Some(&bytes)), rest, "as it was at @{count}");
    }
}

#[test]
fn an_index_of_another_journal_is_not_believed() {
    let room = Room::with(32, 40);
    let other = Room::with(33, 40);
    let theirs = fs::read(other.path("index")).unwrap();
    assert_eq!(
        opens_as_before(&room, "another's", Some(&theirs)),
        [JournalRepair::Reindexed { entries: 40 }]
    );
    // One of a longer journal: the journal came back from a backup.
    let mut longer = Room::with(32, 40);
    let mut journal = longer.write();
    longer.say(&mut journal, said(Role::User, "more"));
    drop(journal);
    fs::copy(room.path("messages.jsonl"), longer.path("messages.jsonl")).unwrap();
    let ahead = fs::read(longer.path("index")).unwrap();
    assert_eq!(
        opens_as_before(&room, "a longer one's", Some(&ahead)),
        [JournalRepair::Reindexed { entries: 40 }]
    );
}

#[test]
fn an_index_that_was_open_counts_in_the_same_boot_only() {
    let room = Room::with(34, 30);
    let writer = room.write();
    let (dir, killed) = crash(&room);
    let open = |store: &komado_store::FileStore| {
        store.open_file(&room.id, &ThreadId::root(), OpenMode::Write).unwrap()
    };
    assert_eq!(open(&killed).notes(), [], "a killed process leaves a sound index");
    let path = dir.path().join("running/s/index");
    let mut bytes = fs::read(room.path("index")).unwrap();
    assert!(bytes.len() > 1 << 20, "room is reserved while it is open");
    set_word(&mut bytes, 3, 12345);
    fs::write(&path, bytes).unwrap();
    assert_eq!(open(&killed).notes(), [JournalRepair::Reindexed { entries: 30 }]);
    drop(writer);
}

#[test]
fn a_process_killed_between_any_two_stores_leaves_what_can_be_put_right() {
    let mut room = Room::ready(35, 30);
    let mut writer = room.write();
    let before = fs::read(room.path("index")).unwrap();
    room.say(&mut writer, said(Role::User, "the last word"));
    let after = fs::read(room.path("index")).unwrap();
    let (dir, killed) = crash(&room);
    // The record, the end of the journal, the count: any number of them may have come through.
    for through in 0..=3 {
        let mut bytes = before.clone();
        let record = PAGE + 30 * RECORD..PAGE + 31 * RECORD;
        if through >= 1 {
            bytes[record.clone()].copy_from_slice(&after[record]);
        }
        if through >= 2 {
            bytes[24..32].copy_from_slice(&after[24..32]);
        }
        if through >= 3 {
            bytes[16..24].copy_from_slice(&after[16..24]);
        }
        fs::write(dir.path().join("running/s/index"), &bytes).unwrap();
        let reader = killed.open_file(&room.id, &ThreadId::root(), OpenMode::Read).unwrap();
        assert!(Journal::last(&reader) >= 30);
        let journal = killed.open_file(&room.id, &ThreadId::root(), OpenMode::Write).unwrap();
        same(&journal, &room.book);
    }
}

#[test]
fn a_damaged_record_is_told_and_put_right_by_a_check() {
    let room = Room::with(36, 200);
    let path = room.path("index");
    let whole = fs::read(&path).unwrap();
    for at in [0, 4, 8, 40, 44, 60, 68, 72, 74, 79] {
        let mut bytes = whole.clone();
        bytes[PAGE + 17 * RECORD + at] ^= 0x10;
        fs::write(&path, &bytes).unwrap();
        let error = Journal::head(&room.read(), 18).unwrap_err();
        assert!(matches!(&error, Error::Damaged { place, .. } if place.ends_with("index")), "{error}");
        room.store.take_findings();
        room.store.check(&room.id).unwrap();
        let note = JournalRepair::Reindexed { entries: 200 };
        let repaired = format!("s/root: {note}");
        assert!(room.store.take_findings().contains(&repaired));
        same(&room.read(), &room.book);
    }
}

fn rows_of_words(count: u32) -> (Book, Vec<JournalRow>) {
    let mut book = Book::default();
    for n in 0..count {
        let role = if n % 2 == 0 { Role::User } else { Role::Assistant };
        book.push(said(role, "word"), 3, play::NOW).unwrap();
    }
    let rows = play::rows(&book, 0);
    (book, rows)
}

/// Heads here and there, and around each end of a stretch of the index.
fn spot_check(journal: &FileJournal, rows: &[JournalRow]) {
    let last = Journal::last(journal);
    let stretch = (1 << 20) / u32::try_from(RECORD).unwrap();
    let ends = (0..4).flat_map(|n| (n * stretch).saturating_sub(70)..n * stretch + 70);
    for seq in ends.chain((1..last).step_by(997)).chain(last.saturating_sub(70)..=last) {
        if (1..=last).contains(&seq) {
            assert_eq!(Journal::head(journal, seq).unwrap(), rows[seq as usize - 1].head, "@{seq}");
        }
    }
}

#[test]
fn an_index_grows_over_many_stretches_in_batches_of_any_size() {
    let mut room = Room::new();
    let (book, rows) = rows_of_words(45_000);
    room.book = book;
    let mut journal = room.write();
    let mut at = 0;
    for size in [1, 14_400, 100, 1, 62, 1, 20_000, 1, 2_000] {
        journal.append(at, &rows[at as usize..(at + size) as usize]).unwrap();
        at += size;
        spot_check(&journal, &rows);
    }
    drop(journal);
    let mut journal = room.write();
    assert_eq!((journal.notes(), Journal::last(&journal)), (&[][..], at));
    journal.append(at, &rows[at as usize..]).unwrap();
    spot_check(&journal, &rows);
    spot_check(&room.read(), &rows);
    drop(journal);
    assert_eq!(fs::metadata(room.path("index")).unwrap().len() as usize, PAGE + 45_000 * RECORD);
    let kept = fs::read(room.path("index")).unwrap();
    fs::remove_file(room.path("index")).unwrap();
    drop(room.write());
    assert!(fs::read(room.path("index")).unwrap()[PAGE..] == kept[PAGE..], "made again, it is the same");
}

#[test]
fn who_looks_while_the_index_is_away_reads_the_journal() {
    let room = Room::with(37, 50);
    let writer = room.write();
    fs::remove_file(room.path("index")).unwrap();
    same(&room.read(), &room.book);
    same(&room.elsewhere().open_file(&room.id, &ThreadId::root(), OpenMode::Read).unwrap(), &room.book);
    assert!(!room.path("index").exists(), "a reader beside a writer repairs nothing");
    drop(writer);
    same(&room.read(), &room.book);
    assert!(room.path("index").exists());
}

#[test]
fn who_had_it_open_before_a_rewrite_reads_on_as_it_was() {
    let room = Room::with(38, 50);
    let before = room.read();
    let mut writer = room.write();
    let changed = writer.rewrite(&mut |_, line| {
        let longer =
            line.replace("\"timestamp\":\"2024", "\"x\":\"longer than before\",\"timestamp\":\"2024");
        Some(longer.into_bytes())
    });
    assert_eq!(changed.unwrap(), 50);
    same(&before, &room.book);
    let after = room.read();
    for seq in 1..=50 {
        assert!(String::from_utf8(after.line(seq).unwrap()).unwrap().contains("longer than before"));
        assert_eq!(Journal::head(&after, seq).unwrap(), play::rows(&room.book, 0)[seq as usize - 1].head);
    }
}

#[test]
fn a_rewrite_cut_short_leaves_the_journal_and_no_index() {
    let room = Room::with(39, 20);
    // As if the process had ended after the index was removed and before the journal was replaced.
    fs::remove_file(room.path("index")).unwrap();
    fs::write(room.path("messages.jsonl.new"), "half of ano").unwrap();
    same(&room.write(), &room.book);
    room.store.check(&room.id).unwrap();
    assert!(!room.path("messages.jsonl.new").exists());
    same(&room.read(), &room.book);
}

#[test]
fn an_index_is_as_good_as_new_after_a_fork_of_a_fork() {
    let room = Room::with(40, 30);
    let mut dice = Dice::new(40);
    let mut book = room.book.fork(20);
    play::go_on(&mut book, &mut dice, 20);
    room.fork("a", "root", 20).append(20, &play::rows(&book, 20)).unwrap();
    let mut second = book.fork(33);
    play::go_on(&mut second, &mut dice, 20);
    room.fork("b", "a", 33).append(33, &play::rows(&second, 33)).unwrap();
    for name in ["a", "b"] {
        fs::remove_file(room.path("threads").join(name).join("index")).unwrap();
    }
    fs::remove_file(room.path("index")).unwrap();
    let open = |name: &str, mode: OpenMode| {
        room.store.open_file(&room.id, &crate::files::room::tid(name), mode).unwrap()
    };
    same(&open("b", OpenMode::Write), &second);
    same(&open("b", OpenMode::Read), &second);
    same(&open("a", OpenMode::Read), &book);
    assert_eq!(room.store.threads(&room.id).unwrap().len(), 3);
    assert!(Path::new(&room.path("threads/a/index")).exists());
}
