//! Learning that cannot be poisoned, and a retry that uses the numbers of the refusal.
//!
//! The server here is a socket and a rule: it counts a request in its own way, and answers, refuses or reports as the test
//! says. Every body that it got is kept.

use super::kit::{Talk, id, turn};
use komado_core::Meter;
use komado_core::journal::Setup;
use komado_core::message::{ImageSource, Message, MessagePart, Role};
use komado_core::raw::RawJson;
use komado_engine::Thread;
use komado_engine::condense::{ByDigest, CondenseSettings};
use komado_engine::fit::Ladder;
use komado_engine::lesson::AppliedLesson;
use komado_provider::scripted::ScriptedOptions;
use komado_provider::{Dialect, Provider, ResponseForm};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::sync::{Arc, Mutex};

/// What the server says to a body.
enum Said {
    /// It answers, and reports so many tokens.
    Answer(u64),
    /// It refuses, with this status and body.
    Refusal(u16, String),
}

/// The bodies that arrived, each with whether it was refused.
type Seen = Arc<Mutex<Vec<(String, bool)>>>;

/// A talk with a server that follows `rule`.
fn talk(
    dialect: Dialect,
    window: u64,
    mut rule: impl FnMut(&Value, u64) -> Said + Send + 'static,
) -> (Talk, Seen) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let seen = Seen::default();
    let kept = Arc::clone(&seen);
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut reader = BufReader::new(stream.unwrap());
            let (mut length, mut line) = (0, String::new());
            while reader.read_line(&mut line).unwrap_or(0) > 2 {
                let header = line.to_ascii_lowercase();
                if let Some(value) = header.strip_prefix("content-length:") {
                    length = value.trim().parse().unwrap();
                }
                line.clear();
            }
            let mut body = vec![0; length];
            if length == 0 || reader.read_exact(&mut body).is_err() {
                continue;
            }
            let body = String::from_utf8(body).unwrap();
            let request: Value = serde_json::from_str(&body).unwrap();
            let (status, answer) = match rule(&request, tokens_of(&request)) {
                Said::Answer(tokens) => (200, answer(dialect, tokens)),
                Said::Refusal(status, text) => (status, text),
            };
            kept.lock().unwrap().push((body, status != 200));
            let head = format!(
                "HTTP/1.1 {status} X\r\ncontent-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
                answer.len()
            );
            drop(reader.get_mut().write_all(format!("{head}{answer}").as_bytes()));
        }
    });
    let mut talk = Talk::new(dialect, window, ScriptedOptions::default());
    talk.asking.provider = Provider::at("ruled", dialect, &url).unwrap();
    talk.asking.form = ResponseForm::Whole;
    (talk, seen)
}

/// Tokens of all texts in a request.
fn tokens_of(value: &Value) -> u64 {
    match value {
        Value::String(text) if text.starts_with("data:") => 0,
        Value::String(text) => Meter::O200k.text(text),
        Value::Array(items) => items.iter().map(tokens_of).sum(),
        Value::Object(fields) => fields.values().map(|value| 2 + tokens_of(value)).sum(),
        _ => 0,
    }
}

fn answer(dialect: Dialect, tokens: u64) -> String {
    match dialect {
        Dialect::Messages => json!({
            "id": "m", "type": "message", "role": "assistant", "model": "ruled", "stop_reason": "end_turn",
            "content": [{ "type": "text", "text": "Noted." }],
            "usage": { "input_tokens": tokens, "output_tokens": 2 },
        }),
        _ => json!({
            "id": "c", "object": "chat.completion", "model": "ruled",
            "choices": [{ "index": 0, "finish_reason": "stop", "message": { "role": "assistant", "content": "Noted." } }],
            "usage": { "prompt_tokens": tokens, "completion_tokens": 2, "total_tokens": tokens + 2 },
        }),
    }
    .to_string()
}

fn over(actual: u64, limit: u64) -> Said {
    let text = format!("prompt is too long: {actual} tokens > {limit} maximum");
    Said::Refusal(400, json!({ "error": { "message": text } }).to_string())
}

fn words(n: u64, times: usize) -> String {
    format!("Line {n}: team {} meets in room {} and brings the notes. ", n % 9, n * 3).repeat(times)
}

fn say(thread: &mut Thread<'_>, n: u64, times: usize) {
    thread.say(Message::text(Role::User, words(n, times))).unwrap();
}

/// No body that was refused is sent again.
#[track_caller]
fn check_no_repeat(seen: &Seen) -> usize {
    let seen = seen.lock().unwrap();
    for pair in seen.windows(2) {
        assert!(!pair[0].1 || pair[0].0 != pair[1].0, "the same bytes after a refusal: {}", pair[0].0);
    }
    seen.iter().filter(|(_, refused)| *refused).count()
}

#[test]
fn the_retry_goes_to_the_window_that_the_refusals_numbers_show() {
    // The server counts a sixth more than we do, and takes 6,000.
    let (talk, seen) = talk(Dialect::Chat, 16_000, |_, tokens| match tokens * 7 / 6 {
        tokens if tokens > 6_000 => over(tokens, 6_000),
        tokens => Said::Answer(tokens),
    });
    let mut thread = talk.thread();
    for n in 1..=40 {
        say(&mut thread, n, 12);
        let before = thread.view().tokens();
        let mut by = ByDigest::new(thread.meter());
        let mut ladder = Ladder { budget: talk.budget(), settings: CondenseSettings::default(), by: &mut by };
        let (turned, told) = turn(&mut thread, &talk.asking, &mut ladder);
        assert!(!turned.unwrap().is_ours);
        if told.too_large.is_empty() {
            continue;
        }
        assert_eq!(told.too_large, [Some(6_000)], "one refusal is enough");
        let lesson = talk.lesson();
        // The view was kept by the budget of the true window, and of no smaller one.
        let window = lesson.ours(6_000);
        assert!((window as f64 / (6_000.0 * 6.0 / 7.0) - 1.0).abs() < 0.05, "{window}");
        // The answer behind the refusal taught the factor once more: a few tokens are between the two.
        assert!(ladder.budget.window.abs_diff(window) <= 20, "{} for {window}", ladder.budget.window);
        let usable = talk.budget().usable;
        assert!(ladder.budget.usable.abs_diff(usable) <= 20, "{} for {usable}", ladder.budget.usable);
        assert!(before > ladder.budget.usable && thread.view().tokens() <= ladder.budget.most());
        assert_eq!(check_no_repeat(&seen), 1);
        return;
    }
    panic!("nothing was refused");
}

#[test]
fn an_answer_that_leaves_no_room_gives_way_before_the_view_does_and_thoughts_with_it() {
    let (mut talk, seen) = talk(Dialect::Messages, 30_000, |request, tokens| {
        let most = request["max_tokens"].as_u64().unwrap();
        if let Some(thoughts) = request["thinking"]["budget_tokens"].as_u64() {
            assert!((1_024..most).contains(&thoughts), "the API refuses {thoughts} of {most}");
        }
        match tokens + most > 12_000 {
            true => {
                let text = format!(
                    "input length and `max_tokens` exceed context limit: {tokens} + {most} > 12000, decrease input length or `max_tokens` and try again"
                );
                Said::Refusal(400, json!({ "error": { "message": text } }).to_string())
            }
            false => Said::Answer(tokens),
        }
    });
    talk.asking.max_tokens = Some(10_000);
    let mut thread = talk.thread();
    let params = RawJson::parse(r#"{"thinking":{"type":"enabled","budget_tokens":8000}}"#).unwrap();
    let dialect = Some(Dialect::Messages.name().to_owned());
    thread.set_up(Setup { params: Some(params), dialect, ..Setup::default() }).unwrap();
    say(&mut thread, 1, 300);
    let before = thread.view().tokens();
    let (turned, told) = talk.turn(&mut thread);
    assert!(!turned.unwrap().is_ours && told.edits == 0, "{told:?}");
    assert!(thread.view().tokens() > before, "nothing left the view");
    assert_eq!(check_no_repeat(&seen), 1);
    let seen = seen.lock().unwrap();
    let sent: Value = serde_json::from_str(&seen.last().unwrap().0).unwrap();
    let most = sent["max_tokens"].as_u64().unwrap();
    assert!((1_280..8_000).contains(&most), "{most}");
    assert!(sent["thinking"]["budget_tokens"].as_u64().unwrap() <= most - 256);
}

#[test]
fn a_refusal_that_nothing_explains_is_never_answered_with_the_same_bytes() {
    for text in [
        r#"{"error":{"message":"context window exceeds limit (2013)"}}"#,
        r#"{"error":{"message":"maximum context length is 65536 tokens."}}"#,
        r#"{"error":{"message":"prompt is too long: 900 tokens > 100000 maximum"}}"#,
    ] {
        let refused = text.to_owned();
        let (talk, seen) = talk(Dialect::Chat, 16_000, move |_, tokens| match tokens > 1_500 {
            true => Said::Refusal(400, refused.clone()),
            false => Said::Answer(tokens),
        });
        let mut thread = talk.thread();
        for n in 1..=12 {
            say(&mut thread, n, 15);
            drop(talk.turn(&mut thread));
        }
        assert!(check_no_repeat(&seen) > 0, "{text}");
        let lesson = talk.lesson();
        assert!(lesson.window().is_none_or(|window| window >= 1_600), "{text}: {lesson:?}");
    }
}

#[test]
fn a_refusal_beside_pictures_leaves_the_factor_of_texts_alone() {
    let (talk, seen) = talk(Dialect::Chat, 16_000, |request, tokens| {
        let pictures = request.to_string().matches("data:image").count() as u64;
        match tokens + pictures * 7_000 {
            tokens if tokens > 16_000 => over(tokens, 16_000),
            tokens => Said::Answer(tokens),
        }
    });
    let mut thread = talk.thread();
    let url = "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAoAAAAHgCAYA".to_owned();
    for n in 1..=6 {
        let picture = MessagePart::Image { source: ImageSource::Url { url: url.clone() }, detail: None };
        let parts = vec![MessagePart::text(words(n, 30)), picture];
        thread.say(Message::of(Role::User, parts)).unwrap();
        drop(talk.turn(&mut thread));
        assert!((talk.lesson().factor() - 1.0).abs() < 0.06, "{n}: {}", talk.lesson().factor());
    }
    assert!(check_no_repeat(&seen) > 0);
}

/// Numbers that follow from a seed.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, below: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % below
    }
}

/// How a server behaves for a while.
#[derive(Clone, Copy, Debug)]
enum Mood {
    Honest,
    NoNumbers,
    OddNumbers,
    UncachedOnly,
    Heavy,
}

const MOODS: [Mood; 5] = [Mood::Honest, Mood::NoNumbers, Mood::OddNumbers, Mood::UncachedOnly, Mood::Heavy];

#[test]
fn whatever_servers_say_no_lesson_falls_below_what_was_answered_or_a_tenth_of_what_is_declared() {
    let (mut refusals, mut learned, mut tails) = (0, 0, 0);
    for seed in 0..60 {
        let mut dice = Dice(seed);
        let (declared, limit) = (16_000, 1_200 + dice.roll(4_000));
        let mood = Arc::new(Mutex::new(Mood::Honest));
        let accepted = Arc::new(Mutex::new((0_u64, 0_u64, 0_u64)));
        let (now, kept) = (Arc::clone(&mood), Arc::clone(&accepted));
        let mut odd = Dice(seed + 1_000);
        let (talk, seen) = talk(Dialect::Chat, declared, move |_, tokens| {
            let mood = *now.lock().unwrap();
            let mut kept = kept.lock().unwrap();
            let counted = if matches!(mood, Mood::Heavy) { tokens * 5 / 4 } else { tokens };
            if counted > limit {
                return match mood {
                    Mood::NoNumbers => {
                        Said::Refusal(400, r#"{"error":"context length exceeded"}"#.to_owned())
                    }
                    Mood::OddNumbers => over(counted, 1 + odd.roll(counted)),
                    _ => over(counted, limit),
                };
            }
            let reported = match mood {
                Mood::UncachedOnly => (tokens.saturating_sub(kept.1) + 8).min(tokens),
                _ => counted,
            };
            if reported < tokens / 2 {
                kept.2 += 1;
            }
            *kept = (kept.0.max(reported), tokens, kept.2);
            Said::Answer(reported)
        });
        let mut thread = talk.thread();
        for n in 1..=14 {
            if dice.roll(3) == 0 {
                *mood.lock().unwrap() = MOODS[dice.roll(5) as usize];
            }
            say(&mut thread, n, 4 + dice.roll(40) as usize);
            drop(talk.turn(&mut thread));
            let what = format!("seed {seed}, turn {n}, {:?}", *mood.lock().unwrap());
            let lesson: AppliedLesson = talk.lesson();
            let (most, _, tails_now) = *accepted.lock().unwrap();
            if let Some(window) = lesson.window() {
                learned += 1;
                assert!(window >= most, "{what}: {window} learned, {most} answered");
                assert!(window >= declared / 10, "{what}: {window} of {declared}");
            }
            let factor = lesson.factor();
            assert!((0.75..=1.40).contains(&factor), "{what}: {factor}");
            tails += tails_now;
        }
        refusals += check_no_repeat(&seen);
        assert_eq!(talk.lesson().session, id().as_str(), "seed {seed}");
    }
    assert!(refusals > 50 && learned > 100 && tails > 100, "{refusals} {learned} {tails}");
}
