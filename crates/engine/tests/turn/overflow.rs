//! A provider whose window is smaller than we believe: it is believed, and the caller hears only the answer.

use super::kit::{MODEL, Talk, journaled, setup};
use komado_core::journal::Entry;
use komado_core::message::{Message, Role};
use komado_engine::Thread;
use komado_provider::Dialect;
use komado_provider::scripted::{ErrorStyle, OnOverflow, ScriptStep, ScriptedFailure, ScriptedOptions};

const TRUE: u64 = 4_096;
const BELIEVED: u64 = 16_384;

fn words(n: usize) -> String {
    format!(
        "Item {n}: the meeting with team {} moved to room {}; bring the notes of week {n}. ",
        n % 9,
        n * 3
    )
    .repeat(6)
}

/// A conversation that outgrows the true window while the believed one is half empty.
fn outgrow(talk: &Talk, thread: &mut Thread<'_>) -> (usize, usize) {
    let (mut refused, mut said) = (0, 0);
    thread.set_up(setup()).unwrap();
    for n in 1..=60 {
        let (turned, told) = talk.ask(thread, &words(n));
        assert!(!turned.is_ours, "turn {n}");
        assert!(!told.said_too_early, "turn {n}: words of a refused request were handed on");
        assert_eq!(told.said, turned.message.words(), "turn {n}: heard once, and whole");
        refused += told.too_large.len();
        said += 1;
    }
    (refused, said)
}

fn recovers(dialect: Dialect, words: ErrorStyle, overflow: OnOverflow) -> u64 {
    let talk = Talk::new(
        dialect,
        BELIEVED,
        ScriptedOptions { window: Some(TRUE), words, overflow, ..ScriptedOptions::default() },
    );
    let mut thread = talk.thread();
    let (refused, said) = outgrow(&talk, &mut thread);
    assert!((1..=3).contains(&refused), "{dialect:?} {words:?}: refused {refused} times");
    assert_eq!(journaled(&thread).len(), 2 * said);
    let lost = (1..=thread.last()).filter(
        |seq| matches!(thread.record(*seq).unwrap().entry, Entry::Lost(reply) if reply.finish == "overflow"),
    );
    assert_eq!(lost.count(), refused, "each refusal is in the journal");
    talk.lesson().window().unwrap()
}

#[test]
fn a_refusal_teaches_the_window_in_every_dialect_and_is_never_seen_by_the_caller() {
    for dialect in Dialect::ALL {
        let learned = recovers(dialect, ErrorStyle::default(), OnOverflow::Refuse);
        // Ollama names no number: then it is what was refused, and that is a little more than the truth.
        let named = dialect != Dialect::Ollama && dialect != Dialect::Responses;
        assert!(
            learned == TRUE || !named && (TRUE..TRUE * 5 / 4).contains(&learned),
            "{dialect:?}: {learned}"
        );
    }
}

#[test]
fn so_does_one_inside_a_stream_that_began_well() {
    for dialect in Dialect::ALL {
        recovers(dialect, ErrorStyle::default(), OnOverflow::RefuseInStream);
    }
}

#[test]
fn so_does_one_in_the_words_of_any_provider() {
    for words in ErrorStyle::ALL {
        recovers(Dialect::Chat, words, OnOverflow::Refuse);
    }
}

#[test]
fn less_room_for_the_answer_comes_before_less_of_the_conversation() {
    let options =
        ScriptedOptions { window: Some(TRUE), words: ErrorStyle::OpenAi, ..ScriptedOptions::default() };
    let mut talk = Talk::new(Dialect::Chat, BELIEVED, options);
    talk.asking.max_tokens = Some(3_000);
    let mut thread = talk.thread();
    let mut lowered = 0;
    for n in 1..=14 {
        let before = thread.view().tokens();
        let (turned, told) = talk.ask(&mut thread, &words(n));
        assert!(!turned.is_ours);
        if !told.too_large.is_empty() && told.edits == 0 {
            assert!(thread.view().tokens() > before);
            lowered += 1;
        }
    }
    assert!(lowered > 0, "the complaint was about the room for the answer");
    let seen = talk.server.seen();
    let max = |body: &[u8]| serde_json::from_slice::<serde_json::Value>(body).unwrap()["max_tokens"].as_u64();
    assert!(seen.iter().any(|seen| seen.status == 200 && max(&seen.body).is_some_and(|max| max < 3_000)));
}

#[test]
fn a_refusal_without_numbers_costs_the_room_for_the_answer_first_and_teaches_nothing() {
    let options =
        ScriptedOptions { window: Some(3_000), words: ErrorStyle::Groq, ..ScriptedOptions::default() };
    let mut talk = Talk::new(Dialect::Chat, 50_000, options);
    talk.asking.max_tokens = Some(2_800);
    let mut thread = talk.thread();
    let question = "one more word ".repeat(150);
    let (turned, told) = talk.ask(&mut thread, &question);
    assert!(!turned.is_ours && told.too_large.len() == 1 && told.edits == 0, "{told:?}");
    assert_eq!(journaled(&thread)[0].words(), question, "nothing of it was left out");
    assert_eq!(talk.lesson().window(), None);
}

#[test]
fn after_the_last_try_the_thread_answers_itself_and_goes_on() {
    let talk = Talk::new(Dialect::Chat, BELIEVED, ScriptedOptions::default());
    let mut thread = talk.thread();
    (1..=20).for_each(|n| drop(talk.ask(&mut thread, &words(n))));
    (0..4).for_each(|_| talk.server.add(ScriptStep::overflow()));
    let (turned, told) = talk.ask(&mut thread, "What now?");
    assert!(turned.is_ours && turned.reply.finish == "overflow");
    assert_eq!((told.too_large.len(), told.said.as_str()), (4, ""));
    let text = turned.message.words();
    assert!(text.contains(MODEL) && text.len() >= 50 && text.contains("Nothing is lost"), "{text}");
    talk.server.add(ScriptStep::say("better"));
    let (turned, _) = talk.ask(&mut thread, "短く答えて");
    assert_eq!(turned.message.words(), "better");
    (0..4).for_each(|_| talk.server.add(ScriptStep::overflow()));
    let (turned, _) = talk.ask(&mut thread, "どうして？");
    assert!(turned.is_ours && turned.message.words().contains("申し訳ありません"));
}

#[test]
fn what_is_not_an_overflow_is_told_and_the_thread_goes_on() {
    let talk = Talk::new(Dialect::Chat, BELIEVED, ScriptedOptions::default());
    let mut thread = talk.thread();
    talk.server.add(ScriptStep::fail(401, Some(r#"{"error":{"message":"invalid key"}}"#)));
    thread.say(Message::text(Role::User, "hello")).unwrap();
    let (refused, told) = talk.turn(&mut thread);
    let why = refused.unwrap_err().to_string();
    assert!(why.contains("401") && why.contains("invalid key"), "{why}");
    assert!(told.too_large.is_empty());
    let (turned, _) = talk.turn(&mut thread);
    assert!(turned.is_ok());
}

#[test]
fn a_provider_that_says_in_a_stream_that_it_is_busy_is_asked_again() {
    for dialect in Dialect::ALL {
        let talk = Talk::new(dialect, BELIEVED, ScriptedOptions::default());
        let mut thread = talk.thread();
        let fail = ScriptedFailure { status: 503, in_stream: true, ..ScriptedFailure::default() };
        talk.server.add(ScriptStep { fail: Some(fail), ..ScriptStep::default() });
        let (turned, told) = talk.ask(&mut thread, "hello");
        assert_eq!((told.waits, turned.attempts, told.said_too_early), (1, 1, false), "{dialect:?}");
        assert!(!turned.message.words().is_empty(), "{dialect:?}");
    }
}

#[test]
fn a_request_that_may_come_later_is_sent_again_in_the_client_alone() {
    let talk = Talk::new(Dialect::Chat, BELIEVED, ScriptedOptions::default());
    let mut thread = talk.thread();
    talk.server.add(ScriptStep::fail(503, Some("busy")));
    let (turned, told) = talk.ask(&mut thread, "hello");
    assert_eq!((told.waits, turned.attempts), (1, 1));
    let sent = (1..=thread.last()).filter(|seq| matches!(thread.record(*seq).unwrap().entry, Entry::Sent(_)));
    assert_eq!(sent.count(), 1, "one request, though it went out twice");
    assert_eq!(talk.server.seen().len(), 2);
    let seen = talk.server.seen();
    assert_eq!(seen[0].body, seen[1].body);
}
