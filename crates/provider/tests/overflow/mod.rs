//! What is taken for an overflow, what is not, and which numbers are read.
mod again;
mod left;
mod taken;
mod twisted;
mod unseen;

use komado_provider::overflow::{Remedy, classify};

fn some(n: u64) -> Option<u64> {
    (n > 0).then_some(n)
}

fn check(rows: &[taken::Row]) {
    let mut wrong = Vec::new();
    for (status, body, [limit, actual, output], remedy) in rows {
        let verdict = classify(*status, body);
        let expected = (true, some(*limit), some(*actual), some(*output), *remedy);
        let found = (verdict.overflow, verdict.limit, verdict.actual, verdict.output, verdict.remedy);
        if found != expected {
            wrong.push(format!(
                "{status} {body}\n  expected {expected:?}\n  found    {found:?}: {}",
                verdict.why
            ));
        }
    }
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), rows.len(), wrong.join("\n"));
}

fn check_left(rows: &[left::Row]) {
    let mut wrong = Vec::new();
    for (status, body) in rows {
        let verdict = classify(*status, body);
        let numbers = (verdict.limit, verdict.actual, verdict.output);
        if verdict.overflow || numbers != (None, None, None) || verdict.remedy != Remedy::None {
            wrong.push(format!("{status} {body}\n  taken for: {}", verdict.why));
        }
    }
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), rows.len(), wrong.join("\n"));
}

#[test]
fn the_large_clouds_are_understood() {
    check(taken::CLOUDS);
}

#[test]
fn smaller_houses_and_routers_are_understood() {
    check(taken::HOUSES);
}

#[test]
fn servers_people_run_themselves_are_understood() {
    check(taken::LOCAL);
}

#[test]
fn every_form_of_a_body_is_read() {
    check(taken::FORMS);
}

#[test]
fn japanese_chinese_and_korean_are_understood() {
    check(taken::TONGUES);
}

#[test]
fn rates_and_quotas_are_no_overflow() {
    check_left(left::RATES);
}

#[test]
fn time_keys_and_broken_servers_are_no_overflow() {
    check_left(left::SERVERS);
}

#[test]
fn other_values_that_are_too_large_are_no_overflow() {
    check_left(left::VALUES);
}

#[test]
fn other_mistakes_and_good_answers_are_no_overflow() {
    check_left(left::OTHERS);
}

#[test]
fn wordings_nobody_has_met_yet_are_understood() {
    check(unseen::TAKEN);
    check(again::TAKEN);
}

#[test]
fn overflows_in_disguise_are_understood() {
    check(twisted::TAKEN);
}

#[test]
fn languages_of_western_europe_are_understood() {
    check(twisted::WEST);
}

#[test]
fn what_only_sounds_like_an_overflow_is_left_alone() {
    check_left(twisted::LEFT);
}

/// A complaint about the length of a field, in every shape it is sent in.
fn complaints(field: &str) -> Vec<String> {
    let said = format!(
        "Invalid '{field}': string too long. Expected a string with maximum length 64, but got a string with length 80 instead."
    );
    let code = r#""code":"string_above_max_length""#;
    vec![
        said.clone(),
        said.replace('\'', "`"),
        format!(r#"{{"error":{{"message":"{said}"}}}}"#),
        format!(r#"{{"error":{{"message":"{said}","param":null}}}}"#),
        format!(r#"{{"error":{{"message":"{said}",{code}}}}}"#),
        format!(r#"{{"error":{{"message":"{said}","param":null,{code}}}}}"#),
        format!(r#"{{"error":{{"message":"{said}","param":"",{code}}}}}"#),
        format!(r#"{{"error":{{"message":"{said}","param":"{field}",{code}}}}}"#),
        format!(r#"{{"error":{{"message":"string too long","param":"{field}",{code}}}}}"#),
        format!("{field}: string too long, maximum length 64"),
    ]
}

#[test]
fn too_long_a_field_is_an_overflow_only_where_it_holds_the_conversation() {
    let judged = |fields: &[&str], overflow: bool| -> Vec<String> {
        let all = fields.iter().flat_map(|field| complaints(field));
        all.filter(|body| classify(400, body).overflow != overflow).collect()
    };
    assert_eq!(judged(twisted::HOLDING, true), Vec::<String>::new());
    assert_eq!(judged(twisted::BESIDE, false), Vec::<String>::new());
    let numbers = |body: &String| classify(400, body).limit.or(classify(400, body).actual);
    let all: Vec<String> = twisted::HOLDING.iter().flat_map(|field| complaints(field)).collect();
    assert_eq!(all.iter().filter_map(numbers).next(), None);
}

#[test]
fn wordings_nobody_has_met_yet_are_left_alone() {
    check_left(unseen::LEFT);
    check_left(again::LEFT);
}

#[test]
fn there_is_enough_to_judge_by() {
    let taken = [
        taken::CLOUDS,
        taken::HOUSES,
        taken::LOCAL,
        taken::FORMS,
        taken::TONGUES,
        unseen::TAKEN,
        again::TAKEN,
        twisted::TAKEN,
        twisted::WEST,
    ];
    let left = [left::RATES, left::SERVERS, left::VALUES, left::OTHERS, unseen::LEFT, again::LEFT];
    assert!(taken.iter().map(|rows| rows.len()).sum::<usize>() >= 120);
    assert!(left.iter().map(|rows| rows.len()).sum::<usize>() >= 80);
}

#[test]
fn what_was_sent_is_told_apart_from_the_answer() {
    let verdict = classify(
        400,
        "you requested 9000 tokens (7000 in the messages, 2000 in the completion); the limit is 8192",
    );
    assert_eq!((verdict.actual, verdict.input, verdict.output), (Some(9000), Some(7000), Some(2000)));
    assert_eq!(verdict.remedy, Remedy::LowerMaxTokens);
}

#[test]
fn a_code_outweighs_a_status_about_rates_and_a_text_does_not() {
    assert!(classify(429, r#"{"error":{"code":"context_length_exceeded"}}"#).overflow);
    assert!(!classify(429, "the prompt is too long").overflow);
}

#[test]
fn a_verdict_says_which_rule_held_and_for_which_words() {
    let verdict = classify(400, "Input is too long for requested model.");
    assert_eq!(verdict.why, "what was sent is too long: Input is too long for requested model.");
    assert_eq!(classify(429, "slow down").why, "the status is about rates");
    let long = format!("prompt is too long {}", "窓".repeat(500));
    assert!(classify(400, &long).why.chars().count() < 250);
}

#[test]
fn a_large_body_is_judged_by_its_ends() {
    let noise = "x ".repeat(1 << 20);
    assert!(classify(400, &format!("prompt is too long {noise}")).overflow);
    assert!(classify(400, &format!("{noise} prompt is too long")).overflow);
    assert!(!classify(400, &noise).overflow);
    assert!(!classify(400, &"窓".repeat(1 << 20)).overflow);
}

proptest::proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig { cases: 300, failure_persistence: None, ..Default::default() })]

    #[test]
    fn nothing_makes_it_panic(status: u16, words in proptest::collection::vec(proptest::sample::select(WORDS), 0..24)) {
        let verdict = classify(status, &words.concat());
        proptest::prop_assert!(verdict.overflow || verdict.limit.is_none());
        proptest::prop_assert_eq!(verdict.overflow, verdict.remedy != Remedy::None);
    }

    #[test]
    fn any_bytes_are_judged(status: u16, text in ".{0,200}") {
        let _ = classify(status, &text);
    }
}

const WORDS: &[&str] = &[
    "context ",
    "window",
    " too ",
    "long",
    "8192",
    ",192",
    ".5",
    "k",
    "M ",
    "(",
    ")",
    "[",
    "]",
    " > ",
    ">=",
    " + ",
    "トークン",
    "を超え",
    "最大",
    "max_tokens",
    "tokens",
    " by ",
    "\"",
    "{",
    "}",
    ":",
    "\\n",
    "messages[",
    "0].",
    "data: ",
    "\n",
    "<",
    "</a>",
    "99999999999999999999",
    "exceeds ",
    "than",
    "limit",
    "…",
    "\u{feff}",
    "\u{0}",
    "=",
    " -5",
    "−",
    "Die Eingabe ",
    "L’entrée est ",
    " of ",
    "Invalid '",
    "': string ",
];

#[test]
fn a_number_in_brackets_without_a_unit_is_no_limit() {
    for body in [
        r#"{"type":"error","error":{"type":"invalid_params","message":"context window exceeds limit (1999)"}}"#,
        r#"{"base_resp":{"status_code":2013,"status_msg":"invalid params, context window exceeds limit (2013)"}}"#,
        "context length exceeded (code 4711)",
        "the prompt is too long (4004)",
    ] {
        let verdict = classify(400, body);
        assert!(verdict.overflow, "{body}: {}", verdict.why);
        assert_eq!((verdict.limit, verdict.actual, verdict.output), (None, None, None), "{body}");
    }
    // One of which the text says what it counts, or beside another number, is one.
    for (body, limit, actual) in [
        ("context window exceeds limit (8000 tokens)", Some(8_000), None),
        ("prompt has 9001 tokens, which exceeds the limit (8000)", Some(8_000), Some(9_001)),
        ("prompt token count (9001) exceeds the maximum (8000)", Some(8_000), Some(9_001)),
    ] {
        let verdict = classify(400, body);
        assert!(verdict.overflow, "{body}: {}", verdict.why);
        assert_eq!((verdict.limit, verdict.actual), (limit, actual), "{body}");
    }
}

#[test]
fn a_window_that_is_only_named_is_the_limit() {
    check(&[
        (
            400,
            r#"{"error":{"message":"maximum context length is 65536 tokens."}}"#,
            [65536, 0, 0],
            Remedy::Shrink,
        ),
        (400, "This model's maximum context length is 30000 tokens.", [30000, 0, 0], Remedy::Shrink),
        (
            400,
            r#"{"error":{"message":"Your messages have 4200 tokens. Maximum is 4096","type":"invalid_request_error"}}"#,
            [4096, 4200, 0],
            Remedy::Shrink,
        ),
        (400, "prompt too long: 4200 tokens. Maximum is 4096.", [4096, 4200, 0], Remedy::Shrink),
    ]);
    // Of a model that is merely described, or of an answer, nothing is too much.
    for (status, body) in [
        (404, "no such model; its maximum context length is 65536 tokens"),
        (500, "maximum context length is 65536 tokens."),
        (400, "max_tokens: maximum is 4096"),
        (200, "The maximum context length is 65536 tokens."),
    ] {
        assert!(!classify(status, body).overflow, "{status} {body}");
    }
}

#[test]
fn a_sum_is_read_by_its_parts_and_a_shorter_answer_helps_only_where_the_prompt_fits() {
    check(&[
        (
            400,
            "prompt tokens (9012) + max tokens (512) exceed the context length (8192)",
            [8192, 9012, 512],
            Remedy::Shrink,
        ),
        (
            400,
            "input tokens (7900) + max_tokens (512) exceed the model's context length (8192)",
            [8192, 7900, 512],
            Remedy::LowerMaxTokens,
        ),
        (
            400,
            r#"{"error":{"message":"prompt (7900) plus max_tokens (512) exceeds context window (8192)"}}"#,
            [8192, 7900, 512],
            Remedy::LowerMaxTokens,
        ),
    ]);
}
