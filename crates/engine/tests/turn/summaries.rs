//! Summaries by a model: apart from the conversation, behind it where the provider has it cached, and never in its way.

use super::kit::{Talk, setup, turn};
use komado_core::journal::{EditKind, Entry};
use komado_core::message::{Message, Role};
use komado_engine::Thread;
use komado_engine::condense::{ByModel, CondenseSettings};
use komado_engine::fit::Ladder;
use komado_provider::Dialect;
use komado_provider::scripted::{ScriptStep, ScriptedOptions, SeenRequest, StepCondition};

const WINDOW: u64 = 4_096;

fn words(n: usize) -> String {
    format!("Order {n} goes to dock {}; the driver is number {}. ", n % 5, 700 + n).repeat(8)
}

fn talk(dialect: Dialect) -> Talk {
    Talk::new(
        dialect,
        WINDOW,
        ScriptedOptions { window: Some(WINDOW), keep: 1_000, ..ScriptedOptions::default() },
    )
}

/// A step for every request for a summary.
fn summary(text: &str) -> ScriptStep {
    let mut step = ScriptStep::say(text).always();
    step.when = StepCondition { is_summary: Some(true), ..StepCondition::default() };
    step
}

/// Forty turns with summaries by the model itself.
fn converse(talk: &Talk, thread: &mut Thread<'_>, shares: bool) {
    thread.set_up(setup()).unwrap();
    for n in 1..=40 {
        thread.say(Message::text(Role::User, words(n))).unwrap();
        let store = talk.engine.store();
        let mut asking = talk.asking.clone();
        asking.provider.caches = shares;
        let mut by = ByModel::new(asking, store, super::kit::id(), thread.meter()).sharing();
        let mut ladder = Ladder { budget: talk.budget(), settings: CondenseSettings::default(), by: &mut by };
        let (turned, told) = turn(thread, &talk.asking, &mut ladder);
        assert!(!turned.unwrap().is_ours && told.too_large.is_empty(), "turn {n}");
    }
}

fn edits(thread: &Thread<'_>, kind: EditKind) -> Vec<komado_core::journal::Edit> {
    let all = (1..=thread.last()).filter_map(|seq| match thread.record(seq).unwrap().entry {
        Entry::Edit(edit) if edit.kind == kind => Some(edit),
        _ => None,
    });
    all.collect()
}

fn asked_for_summaries(talk: &Talk) -> Vec<SeenRequest> {
    let is_one = |seen: &SeenRequest| {
        let body = String::from_utf8_lossy(&seen.body);
        body.contains("summary></summary>") || body.contains("&lt;summary&gt;")
    };
    talk.server.seen().into_iter().filter(is_one).collect()
}

#[test]
fn a_model_writes_the_summary_apart_from_the_conversation() {
    let talk = talk(Dialect::Chat);
    talk.server.add(summary("<summary>Orders went to the docks, drivers from 701 on.</summary>"));
    let mut thread = talk.thread();
    converse(&talk, &mut thread, false);
    let edits = edits(&thread, EditKind::Condense);
    assert!(!edits.is_empty());
    for edit in &edits {
        assert_eq!(edit.cause.model.as_deref(), Some(super::kit::MODEL));
        assert!(edit.cause.usage.unwrap().input_tokens > 0, "its cost is journaled");
        assert!(edit.show.iter().any(|show| show.text.contains("drivers from 701")));
    }
    let requests = asked_for_summaries(&talk);
    assert!(!requests.is_empty());
    for seen in &requests {
        assert!(seen.status == 200 && seen.tokens <= WINDOW, "the question fits the window of its own");
        let body: serde_json::Value = serde_json::from_slice(&seen.body).unwrap();
        assert!(body.get("tools").is_none(), "no tools");
    }
    // Neither the question nor the answer is part of the conversation.
    let last = talk.server.seen().pop().unwrap().body;
    assert!(!String::from_utf8_lossy(&last).contains("Carry over what is still true"));
}

#[test]
fn where_the_provider_has_the_conversation_cached_the_question_stands_behind_it() {
    for dialect in [Dialect::Chat, Dialect::Messages] {
        let talk = talk(dialect);
        talk.server.add(summary("<summary>Orders went to the docks.</summary>"));
        let mut thread = talk.thread();
        converse(&talk, &mut thread, true);
        let requests = asked_for_summaries(&talk);
        let cached: Vec<_> = requests.iter().filter(|seen| seen.cached * 2 > seen.tokens).collect();
        assert!(
            !cached.is_empty(),
            "{dialect:?}: {} questions, none behind the conversation",
            requests.len()
        );
        for seen in cached {
            let body: serde_json::Value = serde_json::from_slice(&seen.body).unwrap();
            assert!(body.get("tools").is_some(), "named, so that the prefix is the same");
            // Anthropic would forget the cached messages for the sake of another choice: there the question says it.
            let forbids = body["tool_choice"].to_string().contains("none");
            assert_eq!(forbids, dialect == Dialect::Chat, "and none may be called");
        }
        assert!(!edits(&thread, EditKind::Condense).is_empty());
    }
}

#[test]
fn a_model_that_fails_leaves_everything_as_it_was_and_the_digest_stands_in() {
    let talk = talk(Dialect::Chat);
    let mut broken = ScriptStep::fail(400, Some(r#"{"error":{"message":"no such model"}}"#)).always();
    broken.when = StepCondition { is_summary: Some(true), ..StepCondition::default() };
    talk.server.add(broken);
    let mut thread = talk.thread();
    converse(&talk, &mut thread, false);
    let lost = (1..=thread.last()).filter(
        |seq| matches!(thread.record(*seq).unwrap().entry, Entry::Lost(reply) if reply.finish == "declined"),
    );
    assert!(lost.count() > 0, "the attempt is journaled");
    let edits = edits(&thread, EditKind::Condense);
    assert!(edits.iter().all(|edit| edit.cause.model.as_deref() == Some("digest")) && !edits.is_empty());
}
