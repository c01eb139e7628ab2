//! What an anchor says, to whom, and when it changes.

use crate::stelis::kit::{anchor, begun, called, check_tree, done, sees};
use crate::stelis::room::{Room, everywhere, model, thread_id, user};
use komado_core::journal::{Ending, Entry};
use komado_core::{Meter, Seq};
use komado_engine::stelis::{ChronicleBy, Finish, Spawn};

/// How many anchor entries a thread has, updates included.
fn anchors(thread: &komado_engine::Thread<'_>) -> usize {
    let is_anchor = |seq: &Seq| matches!(thread.record(*seq).unwrap().entry, Entry::Anchor(_));
    (1..=thread.last()).filter(is_anchor).count()
}

#[test]
fn the_table_of_who_sees_which_anchor_how() {
    everywhere(|room| {
        let id = begun(room);
        let mut root = room.root(&id);
        let mut one = root.spawn(&called("first")).unwrap();
        let below = one.spawn(&called("nested")).unwrap();
        let two = root.spawn(&called("second")).unwrap();
        let brief = |name: &str, label: &str| format!("[Stelis thread {label} ({name}) has started]");
        let full = |label: &str| format!("[Stelis thread: {label}]");
        // From itself and from below: in brief. From the root and from another branch: in full.
        assert!(sees(&one, &brief("stelis_1", "first")) && !sees(&one, &full("first")));
        assert!(sees(&below, &brief("stelis_1", "first")) && !sees(&below, &full("first")));
        assert!(sees(&below, &brief("stelis_1_1", "nested")) && !sees(&below, &full("nested")));
        assert!(sees(&root, &full("first")) && !sees(&root, &brief("stelis_1", "first")));
        assert!(sees(&two, &full("first")) && !sees(&two, &brief("stelis_1", "first")));
        assert!(sees(&two, &brief("stelis_2", "second")));
    });
}

#[test]
fn an_anchor_in_full_has_the_form_of_the_design_and_is_the_same_until_the_state_changes() {
    everywhere(|room| {
        let id = begun(room);
        let mut root = room.root(&id);
        let mut child = root.spawn(&called("Coding Session")).unwrap();
        let running = anchor(&root, "stelis_1");
        assert_eq!(
            running,
            "[Stelis thread: Coding Session]\n- ID: stelis_1\n- Start: 2024-01-15 10:30:00\n- End: in progress"
        );
        for n in 0..20 {
            child.say(user(&format!("step {n}"))).unwrap();
            child.say(model("The tool is done.")).unwrap();
            root.tend().unwrap();
        }
        assert_eq!((anchor(&root, "stelis_1"), anchors(&root)), (running, 1));
        child.say(user("Thanks, I will test it")).unwrap();
        child.say(model("Tell me if you need more")).unwrap();
        let finished = child.end(&mut root, done("Made the tool calculator_v2 together.")).unwrap();
        assert!(finished.is_told);
        let ended = anchor(&root, "stelis_1");
        assert_eq!(
            ended,
            "[Stelis thread: Coding Session]\n- ID: stelis_1\n- Start: 2024-01-15 10:30:00\n\
             - End: 2024-01-15 10:30:00\n- Messages: 42\n\n## Chronicle\nMade the tool calculator_v2 together.\n\n\
             ## Latest exchanges\n[assistant]: The tool is done.\n[user]: Thanks, I will test it\n\
             [assistant]: Tell me if you need more"
        );
        root.say(user("next")).unwrap();
        root.tend().unwrap();
        assert_eq!((anchor(&root, "stelis_1"), anchors(&root)), (ended, 2));
        check_tree(&room.engine, &id);
    });
}

#[test]
fn a_japanese_label_or_conversation_makes_a_japanese_anchor() {
    everywhere(|room| {
        let id = room.session("s");
        let mut root = room.root(&id);
        root.say(user("電卓ツールを作ってください。")).unwrap();
        let mut child = root.spawn(&called("Coding Session")).unwrap();
        assert!(sees(&child, "[Stelisスレッド Coding Session (stelis_1) が開始しました]"));
        assert!(sees(&child, "[以下は、この作業の元になったスレッド root の内容です。"));
        assert!(anchor(&root, "stelis_1").ends_with("- 終了: 進行中"));
        child.say(model("ツールの作成が完了しました。")).unwrap();
        child.say(user("ありがとう、テストしてみるね")).unwrap();
        child.end(&mut root, done("新しいcalculator_v2ツールを作成しました。")).unwrap();
        assert_eq!(
            anchor(&root, "stelis_1"),
            "[Stelisスレッド: Coding Session]\n- ID: stelis_1\n- 開始: 2024-01-15 10:30:00\n\
             - 終了: 2024-01-15 10:30:00\n- メッセージ数: 2\n\n## Chronicle\n新しいcalculator_v2ツールを作成しました。\n\n\
             ## 最新のやり取り\n[assistant]: ツールの作成が完了しました。\n[user]: ありがとう、テストしてみるね"
        );
        let id = begun(&Room::memory());
        let other = Room::memory();
        assert_eq!(begun(&other), id);
        let mut root = other.root(&id);
        let child = root.spawn(&called("コーディング")).unwrap();
        child.abort(&mut root, Some("電池切れ".into())).unwrap();
        let text = anchor(&root, "stelis_1");
        assert!(text.contains("（中断）") && text.contains("- 理由: 電池切れ"), "{text}");
    });
}

#[test]
fn an_anchor_never_takes_more_than_its_cap_and_its_first_lines_are_never_cut() {
    for (words, room) in
        [("long words without an end ", Room::memory()), ("とても長い文章です。", Room::memory())]
    {
        for cap in [120, 200, 333, 1_000] {
            let id = room.session(&format!("s{cap}"));
            let mut root = room.root(&id);
            root.say(user("go")).unwrap();
            let spawn = Spawn { anchor_cap: cap, ..called(&"label ".repeat(40)) };
            let mut child = root.spawn(&spawn).unwrap();
            for _ in 0..5 {
                child.say(user(&words.repeat(300))).unwrap();
            }
            let result = Some(words.repeat(100));
            let telling = ChronicleBy::Words(words.repeat(500));
            child.end(&mut root, Finish { ending: Ending::Failed, result, telling }).unwrap();
            let text = anchor(&root, "stelis_1");
            let tokens = u64::from(Meter::Bytes4.said(&text));
            assert!(tokens <= cap, "{tokens} > {cap}: {text}");
            assert!(text.contains("- ID: stelis_1") && text.contains("(failed)"), "{text}");
            assert!(text.contains("- Messages: 5"), "{text}");
            assert!(cap < 333 || (text.contains("## Chronicle") && text.contains("## Latest")), "{text}");
            assert!(cap < 333 || tokens * 4 > cap * 3, "{tokens} of {cap}: {text}");
        }
    }
}

#[test]
fn a_rewind_of_the_parent_to_before_the_end_of_a_child_does_not_bring_back_in_progress() {
    everywhere(|room| {
        let id = begun(room);
        let mut root = room.root(&id);
        let child = root.spawn(&called("x")).unwrap();
        let at = root.last();
        child.end(&mut root, done("it is done")).unwrap();
        root.say(user("and then")).unwrap();
        root.rewind(at).unwrap();
        assert!(anchor(&root, "stelis_1").contains("it is done"));
        root.rewind(at - 1).unwrap();
        let tree = room.engine.tree(&id, None).unwrap();
        let node = tree.node(&thread_id("stelis_1")).unwrap();
        assert!(node.is_adrift && node.anchor.is_none());
    });
}

#[test]
fn a_ten_thousand_message_child_costs_its_parent_one_anchor() {
    let room = Room::memory();
    let id = begun(&room);
    let mut root = room.root(&id);
    let before = root.view().tokens();
    let mut child = root.spawn(&called("long")).unwrap();
    for n in 0..100 {
        let batch = (0..100).map(|m| (user(&format!("message {n} {m} of very many")), None)).collect();
        child.say_all(batch).unwrap();
    }
    child.abort(&mut root, None).unwrap();
    assert!(anchor(&root, "stelis_1").contains("- Messages: 10000"));
    assert!(root.view().tokens() <= before + 1_000, "{} {before}", root.view().tokens());
}
