//! Placing a transcript of a hundred megabytes holds next to nothing of it, and reads only the last reply.

use crate::heap::most;
use komado_core::journal::{ElementGroup, Entry, Reply, Sent, TranscriptMark};
use komado_core::session::{Meta, MetaConfig, TaskKey};
use komado_core::{Message, Role, SessionId, ThreadId};
use komado_engine::place::{Placement, TranscriptCaller, place};
use komado_engine::{Clock, Engine};
use komado_provider::{Dialect, ElementAuthor, ScannedRequest, TranscriptElement};
use komado_store::{FileStore, Holder, OpenMode, TranscriptPlace};
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

struct Still;

impl Clock for Still {
    fn now(&self) -> String {
        "2026-01-15T10:00:00Z".into()
    }
}

const SIZE: u64 = 100 << 20;
const ELEMENTS: u64 = 20_000;
const REPLY: &str = r#"{"role":"assistant","content":"はい、開けました"}"#;
const NEXT: &str = r#"{"role":"user","content":"次"}"#;

fn digest(n: u64) -> [u8; 16] {
    (u128::from(n) << 64 | 0x9f3a).to_be_bytes()
}

/// A transcript whose known part is a hole in the file: reading any of it gives no words.
fn transcript() -> (ScannedRequest, File) {
    let body = tempfile::tempfile().unwrap();
    let each = SIZE / ELEMENTS;
    let mut elements: Vec<TranscriptElement> = (0..ELEMENTS)
        .map(|n| TranscriptElement {
            span: n * each..(n + 1) * each - 1,
            by: if n.is_multiple_of(2) { ElementAuthor::User } else { ElementAuthor::Tool },
            digest: digest(n + 1),
        })
        .collect();
    let mut at = SIZE;
    for (text, by) in [(REPLY, ElementAuthor::Model), (NEXT, ElementAuthor::User)] {
        body.write_all_at(text.as_bytes(), at).unwrap();
        let end = at + text.len() as u64;
        elements.push(TranscriptElement { span: at..end, by, digest: digest(elements.len() as u64 + 1) });
        at = end + 1;
    }
    let skim = ScannedRequest {
        dialect: Dialect::Chat,
        len: at,
        fields: Vec::new(),
        elements,
        model: Some("m".into()),
        stream: false,
        previous: None,
    };
    (skim, body)
}

fn engine(dir: &std::path::Path) -> Engine {
    let (host, program, since) = ("here".into(), "the tests".into(), "now".into());
    let holder = Holder { pid: std::process::id(), host, program, since };
    Engine::new(Arc::new(FileStore::new(dir, holder)), Arc::new(Still))
}

/// The journal knows the first part: a long one, so that walking it would show.
fn tell(engine: &Engine, skim: &ScannedRequest) {
    let id = SessionId::new("s").unwrap();
    let config = MetaConfig { meter: "bytes4".into(), ..MetaConfig::default() };
    let (task_key, created_at) = (TaskKey::local(&id), Still.now());
    let (process_id, hostname, user) = (7, "host".into(), None);
    let meta =
        Meta { uuid: "s".into(), task_key, created_at, process_id, hostname, config, user, queued: false };
    engine.create(&meta).unwrap();
    let mut root = engine.open(&id, &ThreadId::root(), OpenMode::Write).unwrap();
    let words = "長い話".repeat(500);
    let said = (0..ELEMENTS).map(|_| (Message::text(Role::User, words.as_str()), None));
    root.say_all(said.collect()).unwrap();
    let groups = vec![ElementGroup { elements: 1, entries: 1, times: ELEMENTS as u32 }];
    let name = skim.digest(ELEMENTS as usize).unwrap();
    let mark = TranscriptMark {
        from: 0,
        elements: ELEMENTS as u32,
        digest: name.clone(),
        groups,
        inner: false,
        apart: false,
    };
    let sent =
        Sent { digest: "d".into(), model: "m".into(), context_tokens: 0, purpose: None, mark: Some(mark) };
    let seq = root.append(Entry::Sent(sent)).unwrap();
    let reply = Reply { to: Some(seq), ..Reply::default() };
    root.reply(Message::text(Role::Assistant, "はい、開けました"), reply).unwrap();
    drop(root);
    engine.store().note(&[TranscriptPlace { name, session: id, thread: ThreadId::root(), seq }]).unwrap();
}

/// One test, so that nothing else allocates meanwhile.
#[test]
fn a_hundred_megabytes_are_placed_in_one() {
    let _alone = crate::heap::alone();
    let dir = tempfile::tempdir().unwrap();
    let engine = engine(dir.path());
    let (skim, body) = transcript();
    tell(&engine, &skim);
    let caller = TranscriptCaller::default();
    let find = || place(&engine, &skim, &body, &caller, &|_, _| false).unwrap();
    let mut placed = None;
    let held = most(|| placed = Some(find()));
    let placed = placed.unwrap();
    assert_eq!((placed.how, placed.known), (Placement::Extends, ELEMENTS as u32 + 1));
    assert!(held < 1 << 20, "held {held} bytes");
}
