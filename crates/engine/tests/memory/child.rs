//! A child of ten thousand messages: its parent grows by one anchor, and memory does not grow with the child.

use crate::heap::{held, most};
use komado_core::budget::{Budget, Preset};
use komado_core::journal::{Ending, Setup};
use komado_core::message::{Message, Role};
use komado_core::session::{Meta, MetaConfig, TaskKey};
use komado_core::{SessionId, ThreadId};
use komado_engine::condense::{ByDigest, CondenseSettings};
use komado_engine::fit::Ladder;
use komado_engine::stelis::{ChronicleBy, Finish, Spawn};
use komado_engine::{Clock, Engine, Thread};
use komado_store::{FileStore, Holder, OpenMode};
use std::sync::Arc;

const WINDOW: u64 = 16_000;
const MESSAGES: usize = 10_000;
/// What the second half of the child may hold more than the first at its most.
const BOUND: usize = 256 << 10;

struct Still;

impl Clock for Still {
    fn now(&self) -> String {
        "2026-01-15T10:00:00.000000Z".into()
    }
}

fn engine(folder: &std::path::Path) -> Engine {
    let holder = Holder { pid: 1, host: "h".into(), program: "test".into(), since: "now".into() };
    Engine::new(Arc::new(FileStore::new(folder, holder)), Arc::new(Still))
}

fn words(n: usize) -> String {
    format!("Message {n}: src/part{n}/lib.rs has {} lines; テスト {n} は成功しました。 ", n * 3).repeat(3)
}

/// Says messages `from..to`, and keeps the view inside its share.
fn work(child: &mut Thread<'_>, budget: &Budget, from: usize, to: usize) {
    let mut by = ByDigest::new(child.meter());
    for n in from..to {
        let role = if n % 2 == 0 { Role::User } else { Role::Assistant };
        child.say(Message::text(role, words(n))).unwrap();
        let mut ladder =
            Ladder { budget: budget.clone(), settings: CondenseSettings::default(), by: &mut by };
        child.fit(&mut ladder).unwrap();
        assert!(child.view().tokens() <= budget.usable);
    }
    child.settle().unwrap();
}

/// One test, so that nothing else allocates meanwhile.
#[test]
fn ten_thousand_messages_in_a_child_cost_its_parent_one_anchor_and_memory_nothing() {
    let _alone = crate::heap::alone();
    let folder = tempfile::tempdir().unwrap();
    let engine = engine(folder.path());
    let id = SessionId::new("s").unwrap();
    let config = MetaConfig { meter: "o200k".into(), ..MetaConfig::default() };
    engine
        .create(&Meta {
            uuid: "s".into(),
            task_key: TaskKey::local(&id),
            created_at: Still.now(),
            process_id: 7,
            hostname: "host".into(),
            config,
            user: None,
            queued: false,
        })
        .unwrap();
    let mut root = engine.open(&id, &ThreadId::root(), OpenMode::Write).unwrap();
    root.set_up(Setup { system: Some("Keep to the rules.".into()), ..Setup::default() }).unwrap();
    root.say(Message::text(Role::User, "Go through all parts.")).unwrap();
    let before = root.view().tokens();

    let spawn = Spawn { label: Some("All parts".into()), ..Spawn::new(WINDOW) };
    let mut child = root.spawn(&spawn).unwrap();
    let budget = child.budget(Preset::Komado.policy(), WINDOW, &[]).unwrap();
    // The table of tokens is loaded, and the first edits are made.
    work(&mut child, &budget, 0, 2_000);
    let rest = held();
    let first = most(|| work(&mut child, &budget, 2_000, 6_000));
    let second = most(|| work(&mut child, &budget, 6_000, MESSAGES));
    assert!(second < first + BOUND, "messages 2,000 to 6,000 held {first} bytes, the rest {second}");
    assert!(held() < rest + BOUND, "{} bytes were held after 2,000 messages, {} now", rest, held());

    let told = most(|| {
        let finish = Finish { ending: Ending::Completed, result: None, telling: ChronicleBy::Digest };
        child.end(&mut root, finish).unwrap();
    });
    let grown = root.view().tokens() - before;
    assert!(grown <= spawn.anchor_cap, "the parent grew by {grown} tokens");
    let read = most(|| {
        let child = engine.open(&id, &ThreadId::new("stelis_1").unwrap(), OpenMode::Read).unwrap();
        assert!(child.last() as usize > MESSAGES);
    });
    println!(
        "held at most: {first} and {second} at work, {told} to tell, {read} to open; the parent grew by {grown} tokens"
    );
    assert!(told < 8 << 20 && read < 1 << 20, "{told} bytes to tell it, {read} to open it");
}
