//! Secrets: gone from every byte, and nothing else changed.

use crate::engine::room::{
    Room, call, calls, check, everywhere, model, result, result_with_output, thread_id, user, words,
};
use crate::engine::story::{SECRET, tell};
use komado_core::journal::{Entry, Reply};
use komado_core::message::{Message, MessagePart, Opaque, Role};
use komado_core::raw::RawJson;
use komado_core::thread::Branch;
use komado_core::{Seq, SessionId};
use komado_engine::Error;
use komado_engine::redact::{REDACTED, RedactTarget};
use komado_store::BranchFilter;
use regex::Regex;
use std::path::{Path, PathBuf};

fn exactly(text: &str) -> RedactTarget {
    RedactTarget::Matching(Regex::new(&regex::escape(text)).unwrap())
}

fn files_with(folder: &Path, needle: &[u8]) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files_with(&path, needle));
        } else if std::fs::read(&path).unwrap().windows(needle.len()).any(|bytes| bytes == needle) {
            found.push(path);
        }
    }
    found
}

/// Everything about a session that a redaction must leave alone.
fn frame(room: &Room, id: &SessionId) -> Vec<String> {
    let mut frame = Vec::new();
    for header in room.engine.store().threads(id).unwrap() {
        let thread = room.look(id, header.thread.as_str());
        check_pairs_and_fold(&thread);
        let view = thread.view();
        frame.push(format!("{} {:?} {:?} {:?}", header.thread, view.pieces(), view.weight(), view.pins()));
        for seq in 1..=thread.last() {
            let record = thread.record(seq).unwrap();
            frame.push(format!(
                "{seq} {} {} {:?}",
                record.timestamp,
                record.tokens,
                thread.source().head(seq).unwrap()
            ));
        }
    }
    frame
}

/// Like `check`, but for the token count, which stays that of the words that were there.
fn check_pairs_and_fold(thread: &komado_engine::Thread<'_>) {
    let folded = komado_core::View::fold(thread.source(), thread.last()).unwrap();
    assert_eq!(thread.view(), &folded);
}

#[test]
fn a_secret_is_gone_from_every_file_of_the_session_and_nothing_else_has_changed() {
    everywhere(|room| {
        let id = tell(room, "s");
        room.engine.fail(&id, &format!("cannot use {SECRET}")).unwrap();
        let before = frame(room, &id);
        let lines_before = String::from_utf8(crate::engine::export::export(room, &id)).unwrap();
        if room.files.is_some() {
            let seen: Vec<String> = files_with(&room.folder(&id), b"s3cr")
                .iter()
                .map(|path| path.strip_prefix(room.folder(&id)).unwrap().display().to_string())
                .collect();
            assert!(seen.len() == 10, "{seen:?}");
        }
        let done = room.engine.redact(&id, &exactly(SECRET), &format!("{SECRET} leaked")).unwrap();
        assert_eq!((done.entries, done.blobs), (7, 1));
        assert_eq!(frame(room, &id), before);
        assert_eq!(room.engine.session(&id).unwrap().error_message.unwrap(), "cannot use [redacted]");
        let text = String::from_utf8(crate::engine::export::export(room, &id)).unwrap();
        for (old, new) in
            lines_before.lines().zip(text.lines()).filter(|(old, _)| old.starts_with("{\"seq\""))
        {
            assert_eq!(old == new, !old.contains("s3cr"), "{new}");
        }
        assert!(!text.contains("s3cr"), "{text}");
        assert_eq!(text.matches(r#""reason":"[redacted] leaked"}]}"#).count(), 7);
        assert!(
            text.contains(r#"\"n\":1.0"#)
                && text.contains(r#"{"refusal": 1.50}"#)
                && text.contains("\"limit\":1.0")
        );
        if room.files.is_some() {
            assert_eq!(files_with(&room.folder(&id), b"s3cr"), Vec::<PathBuf>::new());
            let room = room.again();
            assert_eq!(frame(&room, &id), before);
            assert_eq!(words(&room.look(&id, "c"))[0], format!("system: 親切に。 {REDACTED}"));
        }
        let again = room.engine.redact(&id, &exactly(SECRET), "again").unwrap();
        assert_eq!((again.entries, again.blobs), (0, 0));
        let copy = Room::memory();
        copy.engine.import(&mut text.as_bytes(), None, |_| {}).unwrap();
    });
}

#[test]
fn a_secret_is_gone_from_every_thread_that_saw_a_part_of_where_it_stood() {
    everywhere(|room| {
        let id = crate::engine::family::tell(room, "s");
        let rows = || room.engine.store().branches(&id, BranchFilter::All).unwrap();
        let (before, rows_before) = (frame(room, &id), rows());
        let holds = |row: &Branch| row.chronicle_summary.as_ref().is_some_and(|text| text.contains(SECRET));
        assert_eq!(rows_before.iter().filter(|row| holds(row)).count(), 1);
        let threads = ["root", "stelis_1", "stelis_1_1", "stelis_2"];
        for name in threads {
            assert!(words(&room.look(&id, name)).concat().contains(SECRET), "{name}");
        }
        if room.files.is_some() {
            let folder = room.folder(&id).join("threads");
            std::fs::write(folder.join("stelis_1_1").join("request.json"), SECRET).unwrap();
            assert!(files_with(&folder.join("stelis_2"), b"s3cr").len() > 1);
        }
        room.engine.redact(&id, &exactly(SECRET), "leaked").unwrap();
        assert_eq!(frame(room, &id), before);
        for name in threads {
            let seen = words(&room.look(&id, name));
            assert!(seen[0].starts_with(&format!("system: 親切に。 {REDACTED}")), "{name}: {seen:?}");
            assert!(!seen.concat().contains("s3cr"), "{name}: {seen:?}");
        }
        let text = String::from_utf8(crate::engine::export::export(room, &id)).unwrap();
        assert!(!text.contains("s3cr"), "{text}");
        for (now, was) in rows().iter().zip(&rows_before) {
            let summary = was.chronicle_summary.as_ref().map(|text| text.replace(SECRET, REDACTED));
            assert_eq!(*now, Branch { chronicle_summary: summary, ..was.clone() });
        }
        if room.files.is_some() {
            // In the tables as well, their logs included.
            assert_eq!(files_with(room.base(), b"s3cr"), Vec::<PathBuf>::new());
            for name in ["stelis_1", "stelis_1_1", "stelis_2"] {
                let current = room.folder(&id).join("threads").join(name).join("current.jsonl");
                let shown = std::fs::read_to_string(current).unwrap();
                assert!(shown.contains(&format!("make calculator_v2 with {REDACTED}")), "{name}: {shown}");
            }
        }
    });
}

/// The secret stands in the parent alone; none of the child's own lines is changed.
#[test]
fn what_a_child_saw_of_its_parent_goes_with_the_line_of_the_parent() {
    everywhere(|room| {
        let id = crate::engine::family::tell(room, "s");
        let what = RedactTarget::Entry(thread_id("root"), 4);
        assert_eq!(room.engine.redact(&id, &what, "r").unwrap().entries, 1);
        for name in ["root", "stelis_1", "stelis_1_1", "stelis_2"] {
            let seen = words(&room.look(&id, name));
            assert!(!seen.concat().contains("calculator_v2 with") || name == "root", "{name}: {seen:?}");
            assert!(seen.contains(&format!("user: {REDACTED}")), "{name}: {seen:?}");
            if room.files.is_some() && name != "root" {
                let current = room.folder(&id).join("threads").join(name).join("current.jsonl");
                let shown = std::fs::read_to_string(current).unwrap();
                assert!(!shown.contains("make calculator_v2"), "{name}: {shown}");
            }
        }
    });
}

#[test]
fn what_passes_between_threads_can_be_emptied() {
    everywhere(|room| {
        let id = crate::engine::family::tell(room, "s");
        let before = frame(room, &id);
        for name in ["stelis_1", "stelis_1_1", "stelis_2"] {
            for seq in 1..=room.look(&id, name).last() {
                // The label of a child goes with the anchor that says it.
                let labelled = match room.look(&id, name).record(seq).unwrap().entry {
                    Entry::Anchor(anchor) => room.look(&id, anchor.thread.as_str()).header().label.is_some(),
                    _ => false,
                };
                let done = room.engine.redact(&id, &RedactTarget::Entry(thread_id(name), seq), "r").unwrap();
                let entry = room.look(&id, name).record(seq).unwrap().entry;
                let wordless = matches!(entry, Entry::Heard { .. });
                let expected = u64::from(!wordless) + u64::from(labelled);
                assert_eq!(done.entries, expected, "{name}@{seq}");
            }
        }
        assert_eq!(frame(room, &id), before);
        let rows = room.engine.store().branches(&id, BranchFilter::All).unwrap();
        assert_eq!(rows.iter().filter(|row| row.chronicle_summary.as_deref() == Some(REDACTED)).count(), 2);
        assert!(rows.iter().all(|row| row.told));
        if room.files.is_some() {
            let folder = room.folder(&id).join("threads");
            for name in ["stelis_1", "stelis_1_1", "stelis_2"] {
                let journal = std::fs::read_to_string(folder.join(name).join("messages.jsonl")).unwrap();
                assert!(!journal.contains("s3cr"), "{journal}");
            }
        }
    });
}

#[test]
fn the_line_says_when_and_why_and_a_second_time_too() {
    let room = Room::files();
    let id = room.session("s");
    room.root(&id).say(user("one two")).unwrap();
    room.engine.redact(&id, &exactly("one"), "\"first\"").unwrap();
    room.engine.redact(&id, &exactly("two"), "second").unwrap();
    let journal = std::fs::read_to_string(room.folder(&id).join("messages.jsonl")).unwrap();
    let line: serde_json::Value = serde_json::from_str(journal.lines().nth(1).unwrap()).unwrap();
    assert_eq!(line["content"], "[redacted] [redacted]");
    assert_eq!(line["redacted"][0]["reason"], "\"first\"");
    assert_eq!(line["redacted"][1]["reason"], "second");
    assert!(line["redacted"][0]["at"].as_str().unwrap() < line["redacted"][1]["at"].as_str().unwrap());
}

#[test]
fn a_pattern_never_touches_what_holds_the_conversation_together() {
    everywhere(|room| {
        let id = tell(room, "s");
        let before = frame(room, &id);
        // Matches roles, ops, times, keys, digests, ids of calls and names of tools.
        let wide = Regex::new("[a-z]+|[0-9]+").unwrap();
        room.engine.redact(&id, &RedactTarget::Matching(wide), "all").unwrap();
        let room = room.again();
        assert_eq!(frame(&room, &id), before);
        for name in ["root", "a", "b", "c"] {
            let thread = room.look(&id, name);
            let mut waiting: Vec<String> = Vec::new();
            for line in words(&thread) {
                assert!(!line.contains("read") && !line.contains("looking"), "{line}");
                if let Some(answered) = line.strip_prefix("tool #") {
                    let call = answered.split_once(':').unwrap().0;
                    assert!(waiting.iter().any(|w| w == call), "{line}: {waiting:?}");
                }
                waiting.extend(line.split('#').skip(1).map(|w| w.split(' ').next().unwrap().to_owned()));
            }
        }
    });
}

#[test]
fn arguments_stay_json_and_only_what_matches_in_them_goes() {
    everywhere(|room| {
        let id = room.session("s");
        let mut root = room.root(&id);
        let arguments = [
            r#"{"k": "say \"hunter2\"", "n": 1.0, "big": 12345678901234567890}"#,
            r#"{"pin":4711,"hunter2":"key"}"#,
            r#"{"nested":"{\"deep\":\"{\\\"er\\\":\\\"hunter2\\\"}\"}"}"#,
            r#"{"a":"x","password":"y"}"#,
            "free hunter2 text",
        ];
        let parts = arguments.iter().enumerate().map(|(i, a)| call(&format!("c{i}"), "f", a)).collect();
        root.say(calls(parts)).unwrap();
        for i in 0..arguments.len() {
            root.say(result(&format!("c{i}"), "ok")).unwrap();
        }
        root.settle().unwrap();
        drop(root);
        let pattern = Regex::new(r#"hunter2|4711|"password":"y""#).unwrap();
        assert_eq!(room.engine.redact(&id, &RedactTarget::Matching(pattern), "r").unwrap().entries, 1);
        let Entry::Message(message, _) = room.look(&id, "root").record(1).unwrap().entry else { panic!() };
        let now: Vec<&str> = message.calls().map(|call| call.arguments.as_str()).collect();
        assert_eq!(
            now,
            [
                r#"{"k": "say \"[redacted]\"", "n": 1.0, "big": 12345678901234567890}"#,
                r#"{"pin":"[redacted]","[redacted]":"key"}"#,
                r#"{"nested":"{\"deep\":\"{\\\"er\\\":\\\"[redacted]\\\"}\"}"}"#,
                "{}",
                "free [redacted] text",
            ]
        );
        if room.files.is_some() {
            assert_eq!(files_with(&room.folder(&id), b"hunter2"), Vec::<PathBuf>::new());
        }
    });
}

#[test]
fn one_entry_can_be_emptied_with_the_outputs_that_only_it_names() {
    everywhere(|room| {
        let id = room.session("s");
        let mut root = room.root(&id);
        root.say(calls(vec![call("a", "read", r#"{"key":"hunter2"}"#), call("b", "read", "{}")])).unwrap();
        root.say(result_with_output(room, &id, "a", "hunter2 …", b"hunter2, the whole of it")).unwrap();
        root.say(result_with_output(room, &id, "b", "fine", b"shared")).unwrap();
        let thought = MessagePart::Reasoning { text: "hunter2".into(), signature: Some("hunter2".into()) };
        let extra = Some(Opaque { dialect: "x".into(), json: RawJson::parse(r#"{"x":"hunter2"}"#).unwrap() });
        let parts = vec![thought, MessagePart::text("hunter2"), call("c", "read", "hunter2")];
        let reply = Reply { error: Some("hunter2".into()), ..Reply::default() };
        root.reply(Message { extra, ..Message::of(Role::Assistant, parts) }, reply).unwrap();
        root.say(result_with_output(room, &id, "c", "fine", b"shared")).unwrap();
        root.settle().unwrap();
        drop(root);
        let before = frame(room, &id);
        let empty = |seq: Seq| {
            room.engine.redact(&id, &RedactTarget::Entry(thread_id("root"), seq), "leaked").unwrap()
        };
        for (seq, blobs) in [(1, 0), (2, 1), (4, 0), (5, 0)] {
            let done = empty(seq);
            assert_eq!((done.entries, done.blobs), (1, blobs), "@{seq}");
        }
        assert_eq!(frame(room, &id), before);
        assert_eq!(
            words(&room.look(&id, "root")),
            [
                "assistant: [redacted] read({})#a read({})#b",
                "tool #a: [redacted]",
                "tool #b: fine",
                "assistant: [redacted] read({})#c",
                "tool #c: [redacted]",
            ]
        );
        assert_eq!(room.engine.named_blobs(&id).unwrap().len(), 1);
        if room.files.is_some() {
            assert_eq!(files_with(&room.folder(&id), b"hunter2"), Vec::<PathBuf>::new());
        }
    });
}

#[test]
fn every_kind_of_entry_can_be_emptied() {
    everywhere(|room| {
        let id = tell(room, "s");
        room.engine.fail(&id, SECRET).unwrap();
        let before = frame(room, &id);
        let last = room.look(&id, "root").last();
        for seq in 1..=last {
            let done = room.engine.redact(&id, &RedactTarget::Entry(thread_id("root"), seq), "r").unwrap();
            let wordless = matches!(
                room.look(&id, "root").record(seq).unwrap().entry,
                Entry::Pin { .. } | Entry::Revert { .. } | Entry::Rewind { .. } | Entry::Sent(_)
            );
            assert_eq!(done.entries, u64::from(!wordless), "@{seq}");
        }
        assert_eq!(frame(room, &id), before);
        assert_eq!(room.engine.session(&id).unwrap().error_message.as_deref(), Some(REDACTED));
        if room.files.is_some() {
            assert_eq!(files_with(&room.folder(&id), b"s3cr"), Vec::<PathBuf>::new());
        }
    });
}

#[test]
fn an_entry_that_a_fork_shares_is_emptied_where_it_is_and_in_all_that_show_it() {
    everywhere(|room| {
        let id = tell(room, "s");
        let what = RedactTarget::Entry(thread_id("b"), 4);
        assert_eq!(room.engine.redact(&id, &what, "r").unwrap().entries, 1);
        for (name, at) in [("root", 4), ("a", 4), ("b", 4), ("idle", 4)] {
            let Entry::Message(message, _) = room.look(&id, name).record(at).unwrap().entry else { panic!() };
            assert_eq!(message.words(), REDACTED, "{name}");
        }
        if room.files.is_some() {
            for name in ["a", "b", "idle"] {
                let current = room.folder(&id).join("threads").join(name).join("current.jsonl");
                assert!(!std::fs::read_to_string(current).unwrap().contains("head s3cr"), "{name}");
            }
        }
        for missing in [0, 99] {
            let why =
                room.engine.redact(&id, &RedactTarget::Entry(thread_id("a"), missing), "r").unwrap_err();
            assert!(matches!(why, Error::NoMoment { .. }), "{why}");
        }
    });
}

#[test]
fn a_secret_of_many_lines_and_one_among_bytes_that_are_no_text_are_found_in_outputs() {
    everywhere(|room| {
        let id = room.session("s");
        let mut root = room.root(&id);
        root.say(calls(vec![call("a", "cat", "{}"), call("b", "cat", "{}")])).unwrap();
        let key = b"before\n-----BEGIN KEY-----\nAAAA\nBBBB\n-----END KEY-----\nafter\n";
        root.say(result_with_output(room, &id, "a", "…", key)).unwrap();
        root.say(result_with_output(
            room,
            &id,
            "b",
            "…",
            b"\xff\xfe AAAA \xff -----BEGIN KEY-----x-----END KEY-----\xff",
        ))
        .unwrap();
        drop(root);
        let pattern = Regex::new("(?s)-----BEGIN KEY-----.*?-----END KEY-----").unwrap();
        let done = room.engine.redact(&id, &RedactTarget::Matching(pattern), "r").unwrap();
        assert_eq!((done.entries, done.blobs), (2, 2));
        let root = room.look(&id, "root");
        let output = |seq| {
            let Entry::Message(message, _) = root.record(seq).unwrap().entry else { panic!() };
            let whole = message.outcome().unwrap().output_ref.clone().unwrap();
            let mut bytes = Vec::new();
            std::io::Read::read_to_end(&mut room.engine.store().blob(&id, &whole.id).unwrap(), &mut bytes)
                .unwrap();
            assert_eq!(whole.byte_size, Some(bytes.len() as u64));
            (bytes, whole.line_count)
        };
        assert_eq!(output(2), (b"before\n[redacted]\nafter\n".to_vec(), Some(3)));
        assert_eq!(output(3), (b"\xff\xfe AAAA \xff [redacted]\xff".to_vec(), Some(1)));
    });
}

#[test]
fn a_seal_on_words_that_changed_goes_with_them() {
    let room = Room::memory();
    let id = room.session("s");
    let thought = |text: &str| MessagePart::Reasoning { text: text.into(), signature: Some("seal".into()) };
    let parts = vec![thought("hunter2"), thought("fine"), MessagePart::text("so")];
    room.root(&id).say(Message::of(Role::Assistant, parts)).unwrap();
    room.engine.redact(&id, &exactly("hunter2"), "r").unwrap();
    let Entry::Message(message, _) = room.look(&id, "root").record(1).unwrap().entry else { panic!() };
    assert_eq!(message.parts[0], MessagePart::Reasoning { text: REDACTED.into(), signature: None });
    assert_eq!(message.parts[1], thought("fine"));
}

#[test]
fn a_pattern_that_matches_nothing_at_all_or_everything_changes_nothing() {
    everywhere(|room| {
        let id = room.session("s");
        room.root(&id).say(model("words")).unwrap();
        let done = room.engine.redact(&id, &exactly("absent"), "r").unwrap();
        assert_eq!((done.entries, done.blobs), (0, 0));
        let error =
            room.engine.redact(&id, &RedactTarget::Matching(Regex::new("x*").unwrap()), "r").unwrap_err();
        assert!(matches!(error, Error::MatchesAll { .. }), "{error}");
        assert_eq!(words(&room.look(&id, "root")), ["assistant: words"]);
        check(&room.look(&id, "root"));
    });
}

#[test]
fn nobody_may_write_meanwhile() {
    everywhere(|room| {
        let id = room.session("s");
        let mut root = room.root(&id);
        root.say(user("words")).unwrap();
        let error = room.engine.redact(&id, &exactly("words"), "r").unwrap_err();
        assert!(matches!(error, Error::Store(komado_store::Error::Busy { .. })), "{error}");
        assert_eq!(words(&root), ["user: words"]);
    });
}
