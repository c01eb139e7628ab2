//! Any conversation, any window: every request fits, and every message is read once.

use super::{model, result, session, user};
use crate::engine::room::{Room, call, calls};
use komado_core::message::{Message, MessagePart};
use komado_core::{Meter, Span};
use komado_engine::condense::{CondenseSettings, Declined, compose};
use komado_testkit::Scripted;
use proptest::prelude::*;

fn body() -> impl Strategy<Value = String> {
    prop_oneof![
        6 => "[a-z ,.\n]{0,120}",
        3 => "[あ-んア-ン一-龥。\n]{0,80}",
        1 => "[A-Za-z0-9+/]{200,900}",
        1 => ("[a-z猫 ]{1,9}", 50_usize..1500).prop_map(|(word, times)| word.repeat(times)),
        1 => "(😀|👩‍💻| {1,40}|\n{1,9}){1,60}",
    ]
}

/// A message that begins and ends with its own number; every third is a tool's result.
fn messages(bodies: &[String]) -> Vec<Message> {
    let mut messages = Vec::new();
    for (n, body) in bodies.iter().enumerate() {
        let text = format!("<b{n}> {body} <e{n}>");
        match n % 3 {
            0 => messages.push(user(&text)),
            1 => messages.push(model(&text)),
            _ => {
                messages.push(calls(vec![MessagePart::text("look"), call("a", "read", "{}")]));
                messages.push(result("a", &text));
            }
        }
    }
    messages
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn the_summary_request_fits_the_summarisers_own_window(
        bodies in prop::collection::vec(body(), 12..40),
        window in 1000_u64..6000,
        meter in prop::sample::select(Meter::ALL.to_vec()),
        answer in prop_oneof!["[a-z ]{1,200}", "[a-z猫。]{2000,4000}"],
        japanese in any::<bool>(),
    ) {
        let room = Room::memory();
        let mut root = room.root(&session(&room));
        root.say_all(messages(&bodies).into_iter().map(|message| (message, None)).collect()).unwrap();
        let hide = [Span::new(1, root.last())];
        let language = japanese.then_some(komado_engine::condense::PromptLanguage::Japanese);
        let settings = CondenseSettings { language, ..CondenseSettings::default() };
        // Answers that are far longer than asked for, too; over its window it fails.
        let mut by = Scripted::new(meter).within(window).always(format!("<summary>s{answer}</summary>"));
        let composed = compose(root.source(), root.view(), &hide, &settings, &mut by, meter, 500).unwrap();
        match &composed {
            Ok(composed) => prop_assert!(composed.tokens() <= 500),
            Err(Declined::Larger { .. }) => {}
            Err(declined) => prop_assert!(false, "{declined}"),
        }
        let asked: Vec<&str> = by.requests.iter().map(|request| request.text.as_str()).collect();
        let asked = asked.concat();
        for n in 0..bodies.len() {
            for mark in [format!("<b{n}>"), format!("<e{n}>")] {
                prop_assert_eq!(asked.matches(&mark).count(), 1, "{}", mark);
            }
        }
        for (i, request) in by.requests.iter().enumerate() {
            prop_assert_eq!(request.part as usize, i + 1);
            // Room for an answer is never given up for messages.
            prop_assert!(request.max_tokens >= 64, "{}", request.max_tokens);
            prop_assert_eq!(i > 0, request.text.contains("[Summary so far]\ns"));
        }
    }
}

#[test]
fn a_message_larger_than_a_part_is_split_between_characters_and_says_whose_it_is() {
    let room = Room::memory();
    let mut root = room.root(&session(&room)).clipping(None);
    root.say(user("読んで")).unwrap();
    root.say(calls(vec![call("a", "read", "{}")])).unwrap();
    let text: String = (0..1500).map(|n| format!("{n}行目の吾輩は猫である。")).collect();
    root.say(result("a", &text)).unwrap();
    let hide = [Span::new(1, 3)];
    let mut by = Scripted::new(root.meter()).within(3000).always("<summary>猫の話。</summary>");
    let settings = CondenseSettings::default().by_hand();
    let composed = compose(root.source(), root.view(), &hide, &settings, &mut by, root.meter(), 400);
    assert!(composed.unwrap().unwrap().chunks > 3);
    let mut heard = String::new();
    for request in &by.requests {
        let (_, after) = request.text.split_once("@3 tool").unwrap();
        let (_, piece) = after.split_once(": ").unwrap();
        heard.push_str(piece.split_once("\n\n</conversation>").unwrap().0);
    }
    assert_eq!(heard, format!("[Tool Result]\n{text}"));
    assert!(by.requests[1].text.contains("@3 tool (continued): "));
}

#[test]
fn a_message_that_fits_a_part_is_never_split() {
    let room = Room::memory();
    let mut root = room.root(&session(&room));
    for n in 0..80 {
        let text = format!("message {n} says the same as all the others, only with its own number. ");
        root.say(user(&text.repeat(12 + n % 12))).unwrap();
    }
    let mut by = Scripted::new(root.meter()).within(1500).always("<summary>Numbers.</summary>");
    let hide = [Span::new(1, 80)];
    let composed =
        compose(root.source(), root.view(), &hide, &CondenseSettings::default(), &mut by, root.meter(), 400);
    assert_eq!(composed.unwrap().unwrap().chunks as usize, by.requests.len());
    assert!(by.requests.len() > 2);
    assert!(by.requests.iter().all(|request| !request.text.contains("(continued)")));
}
