//! Files for people: they say what the view says, and cost little.

use crate::files::dice::Dice;
use crate::files::play::{self, NOW, answered, result, said};
use crate::files::room::{Room, called, condensed, inode, json_lines, tid};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use komado_core::journal::{Anchor, Edit, EditKind, Entry, Replace, Setup, encode};
use komado_core::message::{ImageSource, MessagePart, OutputRef};
use komado_core::openai::{self, BlobReader};
use komado_core::{Message, Record, Role, Seq, Span, ThreadId, View};
use komado_store::files::FileJournal;
use komado_store::{Blobs as _, Journal, OpenMode};
use serde_json::json;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

struct Outputs(PathBuf);

impl BlobReader for Outputs {
    fn base64(&mut self, id: &str, out: &mut dyn Write) -> io::Result<()> {
        out.write_all(STANDARD.encode(fs::read(self.0.join(id))?).as_bytes())
    }
}

/// What `current.jsonl` must say.
fn lines(room: &Room, journal: &FileJournal, view: &View) -> String {
    let mut text = Vec::new();
    let mut outputs = Outputs(room.path("outputs"));
    let mut pour = |_: Seq, message: &Message| {
        openai::write(message, &mut outputs, &mut text).unwrap();
        text.push(b'\n');
        Ok::<_, komado_store::Error>(())
    };
    view.pour(journal, &mut pour).unwrap();
    String::from_utf8(text).unwrap()
}

fn settled(room: &Room, journal: &mut FileJournal) -> String {
    journal.settle(room.book.view()).unwrap();
    let found = fs::read_to_string(room.path("current.jsonl")).unwrap();
    assert_eq!(found, lines(room, journal, room.book.view()));
    found
}

#[test]
fn the_view_is_extended_by_messages_and_replaced_by_everything_else() {
    let mut room = Room::new();
    let journal = &mut room.write();
    let current = room.path("current.jsonl");
    room.say(journal, Entry::Setup(Setup { system: Some("決まり".into()), ..Setup::default() }));
    room.say(journal, said(Role::User, "one"));
    assert_eq!(
        settled(&room, journal),
        "{\"role\":\"system\",\"content\":\"決まり\"}\n{\"role\":\"user\",\"content\":\"one\"}\n"
    );
    let anchor = |text: &str, first| {
        Entry::Anchor(Anchor {
            thread: tid("t"),
            label: None,
            ending: None,
            text: text.into(),
            brief: None,
            first,
        })
    };
    let trim = Entry::Edit(Edit {
        kind: EditKind::Trim,
        hide: Vec::new(),
        show: Vec::new(),
        replace: vec![Replace { seq: 3, text: "…".into(), tokens: 1 }],
        cause: komado_core::journal::Cause::default(),
    });
    let steps = [
        (said(Role::Assistant, "two\n\"quoted\""), true),
        (called("c1", "read", "{}"), true),
        (result(answered("c1", "bytes")), true),
        (anchor("a child began", None), true),
        (trim, false),
        (said(Role::User, "after the trim"), true),
        (anchor("a child ended", Some(6)), false),
        (condensed(2, 5, "in short"), false),
        (said(Role::User, "after the summary"), true),
        (Entry::Pin { span: Span::new(2, 2) }, false),
        (Entry::Revert { target: 10 }, false),
        (Entry::Rewind { to: 4 }, false),
        (result(answered("c1", "other bytes")), true),
        (Entry::Setup(Setup { system: Some("new rules".into()), ..Setup::default() }), false),
        (said(Role::User, "the end"), true),
    ];
    for (entry, extends) in steps {
        let (was, before) = (inode(&current), fs::read_to_string(&current).unwrap());
        let what = format!("{entry:?}");
        room.say(journal, entry);
        let after = settled(&room, journal);
        assert_eq!(inode(&current) == was, extends, "{what}");
        assert!(!extends || (after.starts_with(&before) && after.len() > before.len()), "{what}");
        // And what has not changed is left alone.
        let now = inode(&current);
        settled(&room, journal);
        assert_eq!(inode(&current), now);
    }
    assert!(!room.path("current.jsonl.new").exists());
}

#[test]
fn it_goes_on_where_it_was_after_the_thread_was_closed() {
    let mut room = Room::new();
    let current = room.path("current.jsonl");
    for text in ["one", "two", "three"] {
        let journal = &mut room.write();
        room.say(journal, said(Role::User, text));
        settled(&room, journal);
    }
    let was = inode(&current);
    let journal = &mut room.write();
    for text in ["four", "five"] {
        room.say(journal, said(Role::User, text));
    }
    assert_eq!(settled(&room, journal).lines().count(), 5);
    assert_eq!(inode(&current), was);
}

#[test]
fn it_says_what_the_view_says_for_any_conversation_settled_at_any_time() {
    for seed in 100..125 {
        let mut room = Room::new();
        let mut dice = Dice::new(seed);
        let mut journal = room.write();
        for _ in 0..12 {
            let before = room.book.view().last();
            play::go_on(&mut room.book, &mut dice, 4);
            journal.append(before, &play::rows(&room.book, before)).unwrap();
            if dice.chance(70) {
                settled(&room, &mut journal);
            }
            if dice.chance(20) {
                drop(journal);
                journal = room.write();
            }
        }
        settled(&room, &mut journal);
        let at = dice.below(room.book.view().last() + 1);
        let mut fork = room.book.fork(at);
        let mut branch = room.fork("fork", "root", at);
        for _ in 0..3 {
            let before = fork.view().last();
            play::go_on(&mut fork, &mut dice, 4);
            branch.append(before, &play::rows(&fork, before)).unwrap();
            branch.settle(fork.view()).unwrap();
            let found = fs::read_to_string(room.path("threads/fork/current.jsonl")).unwrap();
            assert_eq!(found, lines(&room, &branch, fork.view()), "seed {seed}");
        }
    }
}

#[test]
fn what_is_missing_or_not_as_it_was_left_is_written_anew() {
    let mut room = Room::new();
    let journal = &mut room.write();
    for n in 0..5 {
        room.say(journal, called(&format!("c{n}"), "read", "{}"));
        room.say(journal, result(answered(&format!("c{n}"), "bytes")));
        let last = room.book.view().last();
        room.say(journal, condensed(1, last, "in short"));
    }
    journal.settle(room.book.view()).unwrap();
    for name in ["current.jsonl", "tools.jsonl", "summaries.jsonl"] {
        let path = room.path(name);
        let whole = fs::read(&path).unwrap();
        assert!(whole.len() > 10, "{name}");
        let zeros = vec![0; whole.len()];
        let longer = [&whole[..], b"garbage"].concat();
        let garbage = b"garbage\n".repeat(100);
        for spoilt in [None, Some(&b""[..]), Some(&whole[..7]), Some(&zeros), Some(&longer), Some(&garbage)] {
            match spoilt {
                None => fs::remove_file(&path).unwrap(),
                Some(bytes) => fs::write(&path, bytes).unwrap(),
            }
            journal.settle(room.book.view()).unwrap();
            assert_eq!(fs::read(&path).unwrap(), whole, "{name} {:?}", spoilt.map(<[u8]>::len));
        }
    }
    // Without an index all three are made again, and are the same.
    let names = ["current.jsonl", "tools.jsonl", "summaries.jsonl"];
    let whole = names.map(|name| fs::read(room.path(name)).unwrap());
    drop(room.store.open_file(&room.id, &ThreadId::root(), OpenMode::Read).unwrap());
    let mut again = {
        let other = Room::new();
        fs::copy(room.path("messages.jsonl"), other.path("messages.jsonl")).unwrap();
        fs::remove_file(other.path("index")).unwrap();
        other
    };
    again.book = room.book.clone();
    again.write().settle(again.book.view()).unwrap();
    assert_eq!(names.map(|name| fs::read(again.path(name)).unwrap()), whole);
}

#[test]
fn images_travel_inside_the_line() {
    let mut room = Room::new();
    let journal = &mut room.write();
    let bytes: Vec<u8> = (0..100_000u32).map(|n| (n % 251) as u8).collect();
    let blob = room.store.put_blob(&room.id, &mut &bytes[..]).unwrap();
    let source = ImageSource::Blob {
        blob: blob.id,
        media_type: "image/png".into(),
        byte_size: blob.byte_size,
        pixels: None,
    };
    let parts = vec![MessagePart::text("look"), MessagePart::Image { source, detail: None }];
    room.say(journal, Entry::Message(Message::of(Role::User, parts), None));
    let line: serde_json::Value = serde_json::from_str(&settled(&room, journal)).unwrap();
    let url = line["content"][1]["image_url"]["url"].as_str().unwrap();
    assert_eq!(STANDARD.decode(url.strip_prefix("data:image/png;base64,").unwrap()).unwrap(), bytes);
}

#[test]
fn each_summary_has_a_row_with_its_numbers() {
    let mut room = Room::new();
    let journal = &mut room.write();
    for text in ["one", "two", "three"] {
        room.say(journal, said(Role::User, text));
    }
    journal.settle(room.book.view()).unwrap();
    assert_eq!(json_lines(&room.path("summaries.jsonl")), Vec::<serde_json::Value>::new());
    room.say(journal, condensed(1, 2, "Fixed 窓 bug…"));
    room.say(journal, said(Role::User, "four"));
    journal.settle(room.book.view()).unwrap();
    let first = json!({
        "id": 1, "start_seq": 1, "end_seq": 2, "summary": "Fixed 窓 bug…", "original_tokens": 100,
        "summary_tokens": 5, "ratio": 0.05, "timestamp": NOW, "seq": 4
    });
    assert_eq!(json_lines(&room.path("summaries.jsonl")), std::slice::from_ref(&first));
    let was = inode(&room.path("summaries.jsonl"));
    room.say(journal, condensed(1, 5, "All of it"));
    // What was undone was still done.
    room.say(journal, Entry::Revert { target: 6 });
    journal.settle(room.book.view()).unwrap();
    let rows = json_lines(&room.path("summaries.jsonl"));
    assert_eq!((rows.len(), &rows[0]), (2, &first));
    assert_eq!(
        (&rows[1]["id"], &rows[1]["start_seq"], &rows[1]["end_seq"]),
        (&json!(2), &json!(1), &json!(5))
    );
    assert_eq!(inode(&room.path("summaries.jsonl")), was);
    let order: Vec<&str> =
        ["id", "start_seq", "end_seq", "summary", "original_tokens", "summary_tokens", "ratio"].into();
    let text = fs::read_to_string(room.path("summaries.jsonl")).unwrap();
    let places: Vec<usize> = order.iter().map(|key| text.find(&format!("\"{key}\":")).unwrap()).collect();
    assert!(places.is_sorted(), "{text}");
}

#[test]
fn each_tool_that_answered_has_a_row() {
    let mut room = Room::new();
    let journal = &mut room.write();
    room.say(journal, called("c1", "github_get_file_contents", "{\"path\":\"main.py\",\"n\":1.0}"));
    room.say(journal, result(answered("c1", "print()")));
    room.say(journal, called("c2", "free_text", "not json"));
    let long = "窓".repeat(3000);
    let mut failed = answered("c2", &long);
    (failed.is_error, failed.duration_ms) = (true, None);
    failed.output_ref = Some(OutputRef { id: "ab12".into(), byte_size: None, line_count: None });
    room.say(journal, result(failed));
    journal.settle(room.book.view()).unwrap();
    let first = json!({
        "seq": 1, "tool": "github_get_file_contents", "args": {"path": "main.py", "n": 1.0}, "result": "print()",
        "status": "success", "duration_ms": 12, "timestamp": NOW, "message_seq": 2
    });
    let rows = json_lines(&room.path("tools.jsonl"));
    assert_eq!(rows[0], first);
    assert_eq!((&rows[1]["seq"], &rows[1]["tool"]), (&json!(2), &json!("free_text")));
    assert_eq!((&rows[1]["args"], &rows[1]["status"]), (&json!("not json"), &json!("error")));
    assert_eq!((&rows[1]["output_ref"], rows[1].get("result")), (&json!("ab12"), None));
    assert_eq!((rows[1].get("duration_ms"), rows.len()), (Some(&json!(null)), 2), "not known, and said so");
    let error = rows[1]["error"].as_str().unwrap();
    assert!(error.starts_with("窓窓") && error.ends_with("… (9000 bytes in all)") && error.len() < 4200);
    // Rows are added, never written again; also those whose call came in an earlier settlement, or in another thread.
    room.say(journal, called("c3", "late", "{}"));
    journal.settle(room.book.view()).unwrap();
    let mut fork = room.fork("fork", "root", 5);
    let mut book = room.book.fork(5);
    play::write(&mut book, &mut fork, result(answered("c3", "in the fork")), 1);
    fork.settle(book.view()).unwrap();
    let was = inode(&room.path("tools.jsonl"));
    room.say(journal, result(answered("c3", "at last")));
    journal.settle(room.book.view()).unwrap();
    let rows = json_lines(&room.path("tools.jsonl"));
    assert_eq!((rows.len(), &rows[2]["tool"], &rows[2]["result"]), (3, &json!("late"), &json!("at last")));
    assert_eq!(inode(&room.path("tools.jsonl")), was);
    let theirs = json_lines(&room.path("threads/fork/tools.jsonl"));
    assert_eq!((theirs.len(), &theirs[0]["seq"], &theirs[0]["tool"]), (1, &json!(1), &json!("late")));
}

#[test]
fn a_rewritten_line_leaves_no_trace_in_what_is_derived_also_in_forks() {
    let mut room = Room::new();
    let mut journal = room.write();
    room.say(&mut journal, called("c1", "read", "{\"key\":\"s3cret\"}"));
    room.say(&mut journal, said_result("s3cret bytes"));
    room.say(&mut journal, condensed(1, 2, "it was s3cret"));
    journal.settle(room.book.view()).unwrap();
    let mut books = vec![room.book.clone()];
    for (name, base) in [("a", "root"), ("b", "a"), ("other", "root")] {
        let at = if name == "other" { 0 } else { 2 };
        let mut fork = room.fork(name, base, at);
        let mut book = room.book.fork(at);
        play::write(&mut book, &mut fork, said(Role::User, "later"), 1);
        fork.settle(book.view()).unwrap();
        books.push(book);
    }
    let other = inode(&room.path("threads/other/current.jsonl"));
    let holds = |path: &Path| fs::read_to_string(path).is_ok_and(|text| text.contains("s3cret"));
    assert!(holds(&room.path("threads/b/current.jsonl")) && holds(&room.path("tools.jsonl")));
    // A request that was never answered is still there.
    fs::write(room.path("request.json"), "{\"content\":\"s3cret\"}").unwrap();
    let changed = journal.rewrite(&mut |_, line| Some(line.replace("s3cret", "[gone]").into_bytes()));
    assert_eq!(changed.unwrap(), 3);
    for path in crate::files::room::walk(&room.path("")) {
        assert!(!path.is_file() || !holds(&path), "{}", path.display());
    }
    assert_eq!(inode(&room.path("threads/other/current.jsonl")), other, "it shares none of those lines");
    // Whoever settles next makes them again.
    drop(journal);
    for (name, book) in ["root", "a", "b"].iter().zip(&books) {
        let mut journal = room.store.open_file(&room.id, &tid(name), OpenMode::Write).unwrap();
        journal.settle(book.view()).unwrap();
        let folder = if *name == "root" { room.path("") } else { room.path("threads").join(name) };
        let found = fs::read_to_string(folder.join("current.jsonl")).unwrap();
        assert_eq!(found, lines(&room, &journal, book.view()));
        assert!(!found.contains("s3cret"));
    }
}

fn said_result(text: &str) -> Entry {
    result(answered("c1", text))
}

#[test]
fn who_only_looks_settles_nothing() {
    let mut room = Room::new();
    let mut journal = room.write();
    room.say(&mut journal, said(Role::User, "one"));
    drop(journal);
    room.read().settle(room.book.view()).unwrap();
    assert_eq!(fs::read(room.path("current.jsonl")).unwrap(), b"");
    let line = encode(&Record { seq: 1, timestamp: NOW.into(), tokens: 10, entry: said(Role::User, "one") });
    assert_eq!(room.read().line(1).unwrap(), line);
}
