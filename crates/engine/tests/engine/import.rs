//! What is not a whole, unchanged export is refused, and leaves nothing behind.

use crate::engine::export::export;
use crate::engine::room::{Room, everywhere, user};
use crate::engine::story::tell;
use komado_core::SessionId;
use komado_core::session::State;
use komado_engine::Error;
use komado_engine::export::unfinished;
use komado_store::SessionQuery;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Refuses `bytes`; nothing is left. Gives the reason.
fn refused(room: &Room, bytes: &[u8]) -> String {
    let error = room.engine.import(&mut &bytes[..], None, |_| {}).unwrap_err();
    assert_eq!(room.engine.store().sessions(&SessionQuery::default()).unwrap().len(), 0);
    if room.files.is_some() {
        for half in ["running", "completed"] {
            let left = std::fs::read_dir(room.base().join(half)).map_or(0, Iterator::count);
            assert_eq!(left, 0, "{half} after: {error}");
        }
    }
    error.to_string()
}

fn story() -> Vec<u8> {
    let room = Room::memory();
    let id = tell(&room, "s");
    room.engine.fail(&id, "why").unwrap();
    export(&room, &id)
}

/// A few words and an end.
fn failed_talk() -> Vec<u8> {
    let room = Room::memory();
    let id = room.session("s");
    room.root(&id).say(user("窓")).unwrap();
    room.engine.fail(&id, "why").unwrap();
    export(&room, &id)
}

/// Where each line begins.
fn starts(bytes: &[u8]) -> Vec<usize> {
    let breaks = bytes.iter().enumerate().filter(|(_, b)| **b == b'\n').map(|(i, _)| i + 1);
    std::iter::once(0).chain(breaks).filter(|at| *at < bytes.len()).collect()
}

/// Gives some bytes, then takes the reader down with it.
struct Dying<'a>(&'a [u8]);

impl std::io::Read for Dying<'_> {
    fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
        assert!(!self.0.is_empty(), "killed here");
        self.0.read(into)
    }
}

#[test]
fn an_import_that_was_broken_off_is_unfinished_until_it_is_run_again() {
    everywhere(|room| {
        let bytes = failed_talk();
        // Behind the last word of the first thread, which says how the session ended.
        let starts = starts(&bytes);
        for cut in [2, starts.len() - 1] {
            let mut dying = std::io::BufReader::new(Dying(&bytes[..starts[cut]]));
            let import = AssertUnwindSafe(|| room.engine.import(&mut dying, None, |_| {}));
            catch_unwind(import).unwrap_err();
            let id = SessionId::new("s").unwrap();
            if let Some(files) = &room.files {
                files.check(&id).unwrap();
                files.rebuild().unwrap();
            }
            let session = room.engine.session(&id).unwrap();
            assert!(unfinished(&session).is_some_and(|why| why.contains("again")), "{session:?}");
            room.engine.import(&mut &bytes[..], None, |_| {}).unwrap();
            let session = room.engine.session(&id).unwrap();
            assert!(session.status == State::Failed && unfinished(&session).is_none(), "{session:?}");
            assert_eq!(export(room, &id), bytes);
            room.engine.store().remove(&id).unwrap();
        }
    });
}

#[test]
fn a_changed_byte_in_any_line_is_noticed() {
    let bytes = story();
    let room = Room::memory();
    let starts = starts(&bytes);
    assert!(starts.len() > 40);
    for (n, &start) in starts.iter().enumerate() {
        let end = starts.get(n + 1).copied().unwrap_or(bytes.len());
        for at in [start, start + (end - start) / 3, start + (end - start) / 2, end - 2, end - 1] {
            for flip in [0x01, 0x10, 0x80] {
                let mut changed = bytes.clone();
                changed[at] ^= flip;
                refused(&room, &changed);
            }
        }
    }
    room.engine.import(&mut &bytes[..], None, |_| {}).unwrap();
}

#[test]
fn a_missing_doubled_or_moved_line_is_noticed() {
    let text = String::from_utf8(story()).unwrap();
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    let room = Room::memory();
    for n in 0..lines.len() {
        let mut missing = lines.clone();
        missing.remove(n);
        refused(&room, missing.concat().as_bytes());
        let mut doubled = lines.clone();
        doubled.insert(n, lines[n]);
        refused(&room, doubled.concat().as_bytes());
        let mut moved = lines.clone();
        moved.swap(n, (n + 1) % lines.len());
        refused(&room, moved.concat().as_bytes());
    }
}

#[test]
fn a_cut_export_is_refused_wherever_it_is_cut() {
    let bytes = story();
    everywhere(|room| {
        // A folder for each try costs syncs; in memory every line is tried, on disk some.
        let step = if room.files.is_some() { 9 } else { 1 };
        for start in starts(&bytes).into_iter().step_by(step) {
            refused(room, &bytes[..start]);
            refused(room, &bytes[..start + 5]);
        }
        let why = refused(room, &bytes[..bytes.len() - 1]);
        assert!(why.contains("ends here") && why.contains("nothing was imported"), "{why}");
    });
}

#[test]
fn the_reason_names_the_line() {
    let room = Room::memory();
    assert!(refused(&room, b"").starts_with("line 1 of the export: the export ends here"));
    assert!(
        refused(&room, b"{\"role\":\"user\"}\n")
            .starts_with("line 1 of the export: this is not a komado export")
    );
    let text = String::from_utf8(story()).unwrap();
    let newer = text.replacen("\"komado_export\":1", "\"komado_export\":9", 1);
    assert!(refused(&room, newer.as_bytes()).contains("version 9 is newer"));
    let why = refused(&room, format!("{text}more").as_bytes());
    assert!(why.contains("something follows the last line"), "{why}");
    let why = refused(&room, format!("{text}{text}").as_bytes());
    assert!(why.contains("something follows the last line"), "{why}");
}

/// Gives `text` the digest it would have.
fn sealed(text: &str) -> Vec<u8> {
    let body: String = text.split_inclusive('\n').filter(|line| !line.starts_with("{\"end\"")).collect();
    let digest = blake3::hash(body.as_bytes()).to_hex();
    format!("{body}{{\"end\":\"{digest}\"}}\n").into_bytes()
}

#[test]
fn a_forged_export_may_not_bring_in_what_the_gate_refuses() {
    let text = String::from_utf8(story()).unwrap();
    let room = Room::memory();
    room.engine.import(&mut &sealed(&text)[..], None, |_| {}).unwrap();
    room.engine.store().remove(&"s".parse().unwrap()).unwrap();
    let forged = [
        ("\"tool_call_id\":\"a\"", "\"tool_call_id\":\"z\"", "only these wait"),
        ("\"hide\":[[3,6]]", "\"hide\":[[0,6]]", "span 0..6"),
        ("\"hide\":[[3,6]]", "\"hide\":[[3,4]]", "split the call"),
        ("\"op\":\"rewind\",\"to\":17", "\"op\":\"rewind\",\"to\":99", "not that long"),
        ("\"base\":{\"thread\":\"root\",\"seq\":8}", "\"base\":{\"thread\":\"root\",\"seq\":99}", ""),
        ("\"base\":{\"thread\":\"root\",\"seq\":8}", "\"base\":{\"thread\":\"b\",\"seq\":8}", "no thread b"),
        ("\"thread\":\"a\",\"base\"", "\"thread\":\"..\",\"base\"", "thread id"),
        ("\"uuid\":\"s\"", "\"uuid\":\"../s\"", "session id"),
    ];
    for (honest, lie, why) in forged {
        let changed = text.replacen(honest, lie, 1);
        assert_ne!(changed, text, "{honest}");
        let told = refused(&room, &sealed(&changed));
        assert!(told.contains(why), "{told}");
    }
}

#[test]
fn a_forged_family_is_refused() {
    let room = Room::memory();
    let id = crate::engine::family::tell(&room, "s");
    let text = String::from_utf8(export(&room, &id)).unwrap();
    let other = Room::memory();
    let parent = r#""parent":{"thread":"root""#;
    for (honest, lie, why) in [
        (r#""ratio":0.8"#, r#""ratio":8"#, "field `slices[0].ratio`: a thread cannot have 8 of its parent's"),
        (
            r#""op":"heard","from":"stelis_1""#,
            r#""op":"heard","from":"../x""#,
            "field `from`: not a valid thread id",
        ),
        (r#""op":"chronicle","text""#, r#""op":"chronicle","words""#, "field `text` is missing"),
        (r#""op":"share","thread":"stelis_1""#, r#""op":"share","thread":"""#, "field `thread`: not a valid"),
        (r#""at":8,"ratio":0.8,"keep":[["#, r#""at":8,"ratio":0.8,"keep":[[9,8],["#, "ascending and apart"),
        (parent, r#""parent":{"thread":"nobody""#, "nobody"),
    ] {
        let changed = text.replacen(honest, lie, 1);
        assert_ne!(changed, text, "{honest}");
        let told = refused(&other, &sealed(&changed));
        assert!(told.contains(why), "{lie}: {told}");
    }
}

#[test]
fn a_blob_that_is_not_what_its_name_says_is_refused() {
    let text = String::from_utf8(story()).unwrap();
    let line = text.lines().find(|line| line.starts_with("{\"blob\"") && line.ends_with("=\"}")).unwrap();
    let other = line.replace("\"base64\":\"", "\"base64\":\"AAAA");
    let why = refused(&Room::memory(), &sealed(&text.replace(line, &other)));
    assert!(why.contains("does not fit its name"), "{why}");
    let broken = line.replace("\"base64\":\"", "\"base64\":\"?");
    let why = refused(&Room::memory(), &sealed(&text.replace(line, &broken)));
    assert!(why.contains("base64"), "{why}");
}

#[test]
fn a_reader_that_fails_leaves_nothing_behind() {
    struct Broken(usize, Vec<u8>);
    impl std::io::Read for Broken {
        fn read(&mut self, out: &mut [u8]) -> std::io::Result<usize> {
            let left = &self.1[self.0..];
            if left.len() < 1000 {
                return Err(std::io::Error::other("the cable fell out"));
            }
            let n = left.len().min(out.len()).min(997);
            out[..n].copy_from_slice(&left[..n]);
            self.0 += n;
            Ok(n)
        }
    }
    everywhere(|room| {
        let mut from = std::io::BufReader::new(Broken(0, story()));
        let error = room.engine.import(&mut from, None, |_| {}).unwrap_err();
        assert!(matches!(error, Error::Io(_)), "{error}");
        refused(room, b"");
    });
}
