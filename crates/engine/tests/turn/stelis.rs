//! A whole life on the scripted server: a parent speaks, a child works far beyond its share, ends, and the parent goes on.
//!
//! What the models saw at each station stands in `snapshots/stelis.*.txt`.

use super::kit::{self, Talk, id, result, setup, turn};
use super::long::{breaks, check_prefixes, compare, short, told};
use komado_core::ThreadId;
use komado_core::budget::Preset;
use komado_core::journal::{Ending, Entry};
use komado_core::message::{Message, Role};
use komado_engine::Thread;
use komado_engine::condense::{ByDigest, ByModel, CondenseSettings};
use komado_engine::fit::Ladder;
use komado_engine::stelis::{ChronicleBy, Finish, Spawn};
use komado_provider::Dialect;
use komado_provider::scripted::{ScriptStep, ScriptedOptions, SeenRequest, StepCondition};
use komado_store::OpenMode;
use std::fmt::Write;

const WINDOW: u64 = 4_096;
/// Turns in the child: many times what its share holds.
const TURNS: usize = 40;
const CHRONICLE: &str = "calculator_v2 was made with 40 functions; all tests pass. ツールは完成しました。";

/// One turn in a thread's own share of the window.
fn ask(talk: &Talk, thread: &mut Thread<'_>, text: &str) -> komado_engine::exchange::TurnResult {
    thread.say(Message::text(Role::User, text)).unwrap();
    let mut turned = once(talk, thread);
    for call in turned.message.calls().map(|call| call.id.clone()).collect::<Vec<_>>() {
        let log = (0..60).fold(String::new(), |log, n| log + &format!("case_{n} of {text}: ok\n"));
        thread.say(result(&call, &log)).unwrap();
        turned = once(talk, thread);
    }
    turned
}

fn once(talk: &Talk, thread: &mut Thread<'_>) -> komado_engine::exchange::TurnResult {
    let mut by = ByDigest::new(thread.meter());
    let window = talk.budget().window;
    let budget = thread.budget(Preset::Komado.policy(), window, &[]).unwrap();
    let mut ladder = Ladder { budget, settings: CondenseSettings::default(), by: &mut by };
    let (turned, told) = turn(thread, &talk.asking, &mut ladder);
    assert!(told.too_large.is_empty(), "{told:?}");
    turned.unwrap()
}

/// What the model saw in the last request.
fn station(shown: &mut String, name: &str, talk: &Talk) {
    let seen = talk.server.seen().pop().unwrap();
    let asked = talk.asking.provider.dialect.read(std::str::from_utf8(&seen.body).unwrap()).unwrap();
    let _ = writeln!(shown, "== {name}; the server counted {}", seen.tokens);
    let _ = writeln!(shown, "  system     {}", short(asked.setup.system.as_deref().unwrap_or_default()));
    for message in &asked.messages {
        let _ = writeln!(shown, "  {:<10} {}", message.role.name(), short(&told(message)));
    }
}

fn script(talk: &Talk) {
    let mut summary = ScriptStep::say(format!("<summary>{CHRONICLE}</summary>")).always();
    summary.when = StepCondition { is_summary: Some(true), ..StepCondition::default() };
    talk.server.add(summary);
    for step in ["Understood: metric units only.", "I will have a tool made for that."] {
        talk.server.add(ScriptStep::say(step));
    }
    for n in 1..=TURNS {
        if n % 2 == 0 {
            talk.server.add(ScriptStep::call("read", format!("{{\"path\":\"src/f{n}.rs\"}}")));
        }
        talk.server.add(ScriptStep::say(format!("Function {n} is written in src/f{n}.rs and tested.")));
    }
    talk.server.add(ScriptStep::say("The calculator is ready, in metric units."));
}

fn work(talk: &Talk, child: &mut Thread<'_>, shown: &mut String) {
    child.say(Message::text(Role::User, "Make calculator_v2, function by function.")).unwrap();
    let (mut edits, mut stations) = (0, 0);
    for n in 1..=TURNS {
        ask(talk, child, &format!("Write function {n} of calculator_v2. 単位はメートル法です。"));
        if n == 1 {
            station(shown, "the child's first request", talk);
        }
        let now = child.view().edits().count();
        if now != std::mem::replace(&mut edits, now) && stations < 2 {
            station(shown, &format!("the child in turn {n}, after an edit"), talk);
            stations += 1;
        }
    }
    station(shown, "the child's last request", talk);
    assert!(edits > 0, "the child's work is more than its share");
}

/// Every request of the child holds the parent's rules and its newest request, whatever left the child's own part.
fn check_protected(talk: &Talk, seen: &[SeenRequest]) {
    for (n, seen) in seen.iter().enumerate() {
        let asked = talk.asking.provider.dialect.read(std::str::from_utf8(&seen.body).unwrap()).unwrap();
        let words: String = asked.messages.iter().map(|message| message.words() + "\n").collect();
        assert!(asked.setup.system.unwrap_or_default().contains("Never delete a file."), "request {n}");
        for protected in
            ["Only metric units, please.", "We need a calculator tool.", "I will have a tool made"]
        {
            assert!(words.contains(protected), "request {n} of the child lost {protected:?}");
        }
    }
}

fn a_life(dialect: Dialect) {
    let options = ScriptedOptions { window: Some(WINDOW), keep: 1_000, ..ScriptedOptions::default() };
    let talk = Talk::new(dialect, WINDOW, options);
    script(&talk);
    let mut shown = String::new();
    let mut root = talk.thread();
    root.set_up(setup()).unwrap();
    ask(&talk, &mut root, "Only metric units, please.");
    ask(&talk, &mut root, "We need a calculator tool.");
    station(&mut shown, "the parent before the child", &talk);

    let spawn = Spawn { label: Some("Coding Session".into()), ..Spawn::new(talk.budget().window) };
    let mut child = root.spawn(&spawn).unwrap();
    let begun = talk.server.seen().len();
    work(&talk, &mut child, &mut shown);
    let of_child = talk.server.seen()[begun..].to_vec();
    assert!(of_child.iter().all(|seen| seen.status == 200 && seen.tokens <= WINDOW));
    check_protected(&talk, &of_child);
    let broken = breaks(&child);
    check_prefixes(dialect, &of_child, &broken);

    let store = talk.engine.store();
    let mut by = ByModel::new(talk.asking.clone(), store, id(), child.meter());
    let telling = ChronicleBy::By { by: &mut by, settings: CondenseSettings::default() };
    let before = root.view().tokens();
    let name = child.header().thread.clone();
    let finished = child.end(&mut root, Finish { ending: Ending::Completed, result: None, telling }).unwrap();
    assert!(finished.chronicle.unwrap().text.contains("calculator_v2 was made"));
    assert!(root.view().tokens() <= before + spawn.anchor_cap, "the anchor has a cap");

    ask(&talk, &mut root, "Is the calculator ready?");
    station(&mut shown, "the parent goes on", &talk);
    let last = talk.server.seen().pop().unwrap();
    let body = String::from_utf8(last.body).unwrap();
    assert!(body.contains("calculator_v2 was made with 40 functions"), "the parent is told what was done");
    assert!(!body.contains("Write function 3 of"), "and is not burdened with how");
    reread(&talk, &name);
    assert_eq!(talk.server.left(), 0);
    compare(&format!("stelis.{}.txt", dialect.name()), &shown);
}

/// Nothing of what the child said is lost.
fn reread(talk: &Talk, name: &ThreadId) {
    let child = talk.engine.open(&id(), name, OpenMode::Read).unwrap();
    let said = kit::journaled(&child);
    assert!((1..=TURNS).all(|n| said.iter().any(|m| m.words().contains(&format!("Write function {n} of")))));
    let close = child.view().closed().unwrap();
    assert!(
        matches!(child.record(close).unwrap().entry, Entry::Close(close) if close.ending == Ending::Completed)
    );
}

#[test]
fn a_child_works_beyond_its_share_and_its_parent_goes_on_in_chat_completions() {
    a_life(Dialect::Chat);
}

#[test]
fn a_child_works_beyond_its_share_and_its_parent_goes_on_in_responses() {
    a_life(Dialect::Responses);
}

#[test]
fn a_child_works_beyond_its_share_and_its_parent_goes_on_in_messages() {
    a_life(Dialect::Messages);
}

#[test]
fn a_child_works_beyond_its_share_and_its_parent_goes_on_in_ollama() {
    a_life(Dialect::Ollama);
}
