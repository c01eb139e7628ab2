//! Journals that are not as they should be.

use crate::files::dice::Dice;
use crate::files::play::said;
use crate::files::room::{Room, same};
use komado_core::Role;
use komado_store::{Error, FileStore, Journal, JournalRepair, OpenMode, Store};
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

/// The journal without its last `cut` bytes, and then `end`.
fn spoil(path: &Path, whole: &[u8], keep: usize, end: &[u8]) {
    fs::write(path, [&whole[..keep], end].concat()).unwrap();
}

fn findings(store: &FileStore) -> String {
    store.take_findings().iter().map(|finding| format!("{finding}\n")).collect()
}

#[test]
fn a_last_line_cut_anywhere_is_taken_off_and_told() {
    let mut room = Room::ready(21, 6);
    let before = room.book.clone();
    let index = fs::read(room.path("index")).unwrap();
    let mut journal = room.write();
    room.say(&mut journal, said(Role::User, "窓を開けて 🪟"));
    drop(journal);
    let path = room.path("messages.jsonl");
    let whole = fs::read(&path).unwrap();
    let start = whole[..whole.len() - 1].iter().rposition(|b| *b == b'\n').unwrap() + 1;
    for keep in start + 1..whole.len() {
        spoil(&path, &whole, keep, b"");
        fs::write(room.path("index"), &index).unwrap();
        let journal = room.write();
        assert_eq!(journal.notes(), [JournalRepair::Torn { bytes: (keep - start) as u64 }], "cut at {keep}");
        same(&journal, &before);
        drop(journal);
        assert_eq!(fs::read(&path).unwrap(), whole[..start], "cut at {keep}");
        assert_eq!(room.write().notes(), []);
    }
    // Where the index is gone as well, all is read and the same is cut.
    for keep in [start + 1, whole.len() - 6, whole.len() - 1] {
        spoil(&path, &whole, keep, b"");
        fs::remove_file(room.path("index")).unwrap();
        let journal = room.write();
        let notes =
            [JournalRepair::Torn { bytes: (keep - start) as u64 }, JournalRepair::Reindexed { entries: 6 }];
        assert_eq!(journal.notes(), notes);
        same(&journal, &before);
    }
    // And the conversation goes on from there.
    room.book = before;
    let mut journal = room.write();
    room.say(&mut journal, said(Role::User, "again"));
    drop(journal);
    same(&room.read(), &room.book);
}

#[test]
fn a_reader_cuts_it_off_when_nobody_writes_and_tells_once() {
    let room = Room::with(22, 6);
    let path = room.path("messages.jsonl");
    let whole = fs::read(&path).unwrap();
    spoil(&path, &whole, whole.len(), b"{\"seq\":7,\"ro");
    let reader = room.read();
    same(&reader, &room.book);
    assert_eq!(findings(&room.store), "s/root: cut 12 bytes of a last line that was never finished\n");
    drop(room.read());
    assert_eq!(findings(&room.store), "");
    assert_eq!(fs::read(&path).unwrap(), whole);
    // While someone writes, what is unfinished is theirs.
    let writer = room.write();
    let mut file = OpenOptions::new().append(true).open(&path).unwrap();
    file.write_all(b"{\"seq\":7,\"ro").unwrap();
    same(&room.read(), &room.book);
    same(
        &room.elsewhere().open_file(&room.id, &komado_core::ThreadId::root(), OpenMode::Read).unwrap(),
        &room.book,
    );
    assert_eq!(fs::metadata(&path).unwrap().len(), whole.len() as u64 + 12);
    // So is what is written and may not be durable yet.
    file.set_len(whole.len() as u64).unwrap();
    file.write_all(b"{\"seq\":7,\"role\":\"user\",\"content\":\"x\",\"timestamp\":\"\",\"tokens\":1}\n")
        .unwrap();
    same(&room.read(), &room.book);
    drop(writer);
    assert_eq!(Journal::last(&room.read()), 7);
}

#[test]
fn holes_of_zeros_at_the_end_are_cut_off_too() {
    let room = Room::with(23, 6);
    let path = room.path("messages.jsonl");
    let whole = fs::read(&path).unwrap();
    for end in [
        &[0; 4096][..],
        &[0; 1],
        b"{\"seq\":7,\"role\":\0\0\0\0\0\0\"}\n",
        &[&[0; 512][..], b"\"}\n"].concat(),
    ] {
        spoil(&path, &whole, whole.len(), end);
        let journal = room.write();
        assert_eq!(journal.notes(), [JournalRepair::Torn { bytes: end.len() as u64 }]);
        same(&journal, &room.book);
        drop(journal);
        assert_eq!(fs::read(&path).unwrap(), whole);
    }
}

#[test]
fn a_whole_last_line_that_cannot_be_read_is_never_cut() {
    let room = Room::with(24, 6);
    let path = room.path("messages.jsonl");
    let whole = fs::read(&path).unwrap();
    for (line, why) in [
        ("{\"seq\":7,\"op\":\"transmogrify\",\"timestamp\":\"\",\"tokens\":0}\n", "newer version of komado"),
        ("{\"seq\":7,\"role\":\"wizard\"}\n", "wizard"),
        ("{\"seq\":9,\"role\":\"user\",\"content\":\"x\"}\n", "it has seq 9, expected 7"),
        ("half a line\"}\n", "not a JSON object"),
    ] {
        spoil(&path, &whole, whole.len(), line.as_bytes());
        for mode in [OpenMode::Write, OpenMode::Read, OpenMode::Amend] {
            let error = room.open(mode).err().unwrap();
            assert!(matches!(&error, Error::Damaged { .. }));
            let text = error.to_string();
            assert!(text.contains(why) && text.contains("messages.jsonl line 8 "), "{text}");
        }
        assert_eq!(fs::read(&path).unwrap().len(), whole.len() + line.len());
    }
}

#[test]
fn garbage_in_the_middle_is_named_by_file_line_and_byte() {
    let room = Room::with(25, 8);
    let path = room.path("messages.jsonl");
    let whole = fs::read(&path).unwrap();
    let starts: Vec<usize> =
        whole.iter().enumerate().filter(|(_, b)| **b == b'\n').map(|(i, _)| i + 1).collect();
    for (line, garbage) in [(2, &b"\xff\xfe\x00"[..]), (5, b"}"), (8, b"\n"), (6, b"{\"seq\":1,")] {
        let start = starts[line - 2];
        let mut bytes = whole.clone();
        bytes.splice(start..start + garbage.len(), garbage.iter().copied());
        fs::write(&path, &bytes).unwrap();
        let _ = fs::remove_file(room.path("index"));
        for mode in [OpenMode::Read, OpenMode::Write] {
            let text = room.open(mode).err().unwrap().to_string();
            let place = format!("{} line {line} (byte {start}) is damaged: ", path.display());
            assert!(text.starts_with(&place), "{text}\n{place}");
            assert!(text.contains("komado admin doctor"), "{text}");
        }
        assert_eq!(fs::read(&path).unwrap(), bytes, "nothing was cut");
    }
    // With its index whole a session opens without reading; the check reads all.
    fs::write(&path, &whole).unwrap();
    drop(room.write());
    let mut bytes = whole;
    bytes[starts[3] + 3] = 0xff;
    fs::write(&path, &bytes).unwrap();
    drop(room.write());
    let text = room.store.check(&room.id).unwrap_err().to_string();
    assert!(text.contains(&format!("line 5 (byte {})", starts[3])), "{text}");
}

#[test]
fn a_header_that_is_none_or_from_the_future_is_told() {
    let room = Room::with(26, 3);
    let path = room.path("messages.jsonl");
    let whole = fs::read_to_string(&path).unwrap();
    let newer = whole.replacen("\"version\":1", "\"version\":99", 1);
    let no_end = whole.lines().next().unwrap().to_owned();
    for (text, why) in [
        (newer.as_str(), "format version 99, this komado reads up to version 1; use a newer komado"),
        (no_end.as_str(), "the first line has no end"),
        ("", "the first line has no end"),
        ("{\"seq\":1,\"role\":\"user\",\"content\":\"x\"}\n", "not a journal header"),
        ("\u{0}\u{0}\u{0}\n", "not a journal header"),
    ] {
        fs::write(&path, text).unwrap();
        for mode in [OpenMode::Read, OpenMode::Write] {
            let error = room.open(mode).err().unwrap();
            assert!(matches!(&error, Error::Header { .. }));
            let told = error.to_string();
            assert!(told.contains(why) && told.contains("messages.jsonl"), "{told}");
        }
        assert!(room.store.threads(&room.id).is_err());
        assert_eq!(fs::read_to_string(&path).unwrap(), text);
    }
}

#[test]
fn whatever_is_in_the_files_opening_them_never_panics() {
    let room = Room::with(27, 25);
    let paths = ["messages.jsonl", "index"].map(|name| room.path(name));
    let whole = paths.clone().map(|path| fs::read(path).unwrap());
    let mut dice = Dice::new(27);
    let mut opened = 0;
    for round in 0..400u32 {
        for (path, bytes) in paths.iter().zip(&whole) {
            fs::write(path, bytes).unwrap();
        }
        let which = usize::from(dice.chance(30));
        let mut bytes = whole[which].clone();
        for _ in 0..=dice.below(4) {
            let at = dice.below(u32::try_from(bytes.len()).unwrap()) as usize;
            match dice.below(4) {
                0 => bytes[at] ^= 1 << dice.below(8),
                1 => bytes[at] = b'0' + u8::try_from(dice.below(10)).unwrap(),
                2 => drop(bytes.drain(at..(at + dice.below(40) as usize).min(bytes.len()))),
                _ => bytes.truncate(at.max(200)),
            }
        }
        fs::write(&paths[which], &bytes).unwrap();
        if which == 0 {
            let _ = fs::remove_file(&paths[1]);
        }
        let run = AssertUnwindSafe(|| {
            for mode in [OpenMode::Read, OpenMode::Write] {
                let Ok(mut journal) = room.open(mode) else { continue };
                opened += 1;
                let last = Journal::last(&journal);
                if let Ok(view) = komado_core::View::fold(&journal, last) {
                    let _ = journal.settle(&view);
                }
                for seq in 0..=last + 1 {
                    let _ = (Journal::head(&journal, seq), journal.line(seq));
                }
            }
            let _ = room.store.check(&room.id);
        });
        assert!(catch_unwind(run).is_ok(), "round {round}:\n{}", String::from_utf8_lossy(&bytes));
    }
    assert!(opened > 50, "{opened}");
}
