//! The two nodes of the design of Stelis threads, as they are written there.

use crate::playbook::kit::{World, calls, id, words};
use komado_agent::playbook::Playbook;
use komado_core::journal::Entry;
use komado_core::thread::ThreadStatus;
use komado_core::{Kind, Meter, ThreadId};
use komado_store::{BranchFilter, BranchTable, OpenMode, Store};
use komado_testkit::Scripted;

/// A small graph around them.
pub(crate) const CODING: &str = include_str!("../../../../docs/playbooks/coding.json");

#[test]
fn the_nodes_of_the_design_run_as_they_are_written_and_the_parent_reads_the_chronicle() {
    let mut world = World::new(|news| match news {
        news if news.contains("実装してください") => {
            calls("書きます", &[("push", "{\"file\":\"src/calc.rs\"}")])
        }
        news if news.contains("push ok") => words("calculator_v2 ができました"),
        news if news.contains("報告") => words("ユーザーさん、できました"),
        _ => words("?"),
    });
    world.teller = Some(|| {
        Scripted::new(Meter::O200k).says("<summary>新しい calculator_v2 ツールを作成しました</summary>")
    });
    let playbook = Playbook::parse("coding.json", CODING).unwrap();
    let (ended, nodes) = world.run_on(&world.engine(), &playbook);
    assert_eq!(ended.unwrap().result, "ユーザーさん、できました");
    let expected = ["root:start_coding_session", "stelis_1:coding_loop", "stelis_1:look", "stelis_1:work"];
    assert_eq!(nodes[..4], expected);
    let engine = world.engine();
    let child = engine.open(&id(), &ThreadId::new("stelis_1").unwrap(), OpenMode::Read).unwrap();
    assert_eq!(child.status().unwrap(), ThreadStatus::Completed);
    assert_eq!(child.header().label.as_deref(), Some("コーディングセッション開始"));
    let share = child.share().unwrap().unwrap();
    assert_eq!(share.chronicle_prompt.as_deref(), Some("このセッションで行った作業を要約してください"));
    let row = &world.store.branches(&id(), BranchFilter::All).unwrap()[0];
    assert!((row.window_ratio - 0.8).abs() < 1e-9 && row.depth == 1);
    assert!(row.chronicle_summary.as_deref().unwrap().contains("calculator_v2"), "{row:?}");
    let root = engine.open(&id(), &ThreadId::root(), OpenMode::Read).unwrap();
    let anchor =
        (1..=root.last()).rev().find(|seq| root.source().head(*seq).unwrap().kind == Kind::AnchorUpdate);
    let text = format!("{:?}", root.record(anchor.unwrap()).unwrap().entry);
    assert!(text.contains("新しい calculator_v2 ツールを作成しました"), "{text}");
    assert!(matches!(root.record(1).unwrap().entry, Entry::Message(..)));
    // The work itself stayed in the child.
    assert!(!world.said("root").iter().any(|line| line.contains("書きます")));
}

#[test]
fn deeper_than_the_settings_allow_is_refused_before_anything_is_spawned() {
    let nested = crate::playbook::kit::playbook(serde_json::json!([
        {"id": "a", "type": "STELIS_START", "next": "b"},
        {"id": "b", "type": "STELIS_START", "next": "c"},
        {"id": "c", "type": "STELIS_START", "next": "d"},
        {"id": "d", "type": "STELIS_START", "next": "w"},
        {"id": "w", "type": "stelis_end", "next": "x"},
        {"id": "x", "type": "stelis_end", "next": "y"},
        {"id": "y", "type": "stelis_end", "next": "z"},
        {"id": "z", "type": "stelis_end", "next": "done"},
        {"id": "done", "type": "end"}
    ]));
    let world = World::new(|_| words("unasked"));
    let (ended, entered) = world.run_on(&world.engine(), &nested);
    let told = crate::playbook::kit::why(ended);
    assert!(told.contains("the playbook test, node \"d\": its thread would be 4 deep"), "{told}");
    assert_eq!(entered, Vec::<String>::new());
    assert_eq!(world.store.threads(&id()).unwrap().len(), 1);
}
