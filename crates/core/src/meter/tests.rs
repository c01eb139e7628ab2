//! Counts against the reference, on what breaks guesses: Japanese, base64, lock files, megabytes of one word.
//!
//! The numbers in tables were counted by OpenAI's own `tiktoken`. Where a text is random, the reference is the merge
//! algorithm run literally, lowest rank first, which shares no code with the counter that the meter uses.

use super::*;
use crate::message::{Call, CallKind, ImageSource, MessagePart, Opaque, Role, ToolOutcome};
use crate::picture::{PictureRule, PictureSize};
use crate::raw::RawJson;
use proptest::prelude::*;

const EXACT: [Meter; 2] = [Meter::O200k, Meter::Cl100k];
const BASE64: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

fn pick(alphabet: &[char], length: usize) -> String {
    let mut state = 7_u64;
    let next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        alphabet[(state >> 33) as usize % alphabet.len()]
    };
    std::iter::repeat_with(next).take(length).collect()
}

fn chars(text: &str) -> Vec<char> {
    text.chars().collect()
}

fn lock_file() -> String {
    let hex = pick(&chars("0123456789abcdef"), 6400);
    let package = |i: usize| {
        let (minor, patch, sum) = (i % 13, i % 7, &hex[i * 64..][..64]);
        format!(
            "[[package]]\nname = \"crate-{i}\"\nversion = \"0.{minor}.{patch}\"\n\
             source = \"registry+https://github.com/rust-lang/crates.io-index\"\nchecksum = \"{sum}\"\n\n"
        )
    };
    (0..100).map(package).collect()
}

fn reference(meter: Meter, text: &str) -> u64 {
    let table = meter.table().unwrap();
    table.split(text).map(|word| table.bpe.encode_via_bitfield(word.as_bytes()).len() as u64).sum()
}

fn check_text(text: &str, o200k: u64, cl100k: u64) {
    assert_eq!((Meter::O200k.text(text), Meter::Cl100k.text(text)), (o200k, cl100k));
    for meter in EXACT {
        assert_eq!(meter.text(text), reference(meter, text));
        assert!(u64::from(meter.message(&Message::text(Role::User, text))) >= meter.text(text));
    }
}

fn outcome(content: Vec<MessagePart>, is_error: bool) -> Message {
    let outcome = ToolOutcome { content, is_error, ..ToolOutcome::text("call_1", None, "") };
    Message::of(Role::Tool, vec![MessagePart::Result(outcome)])
}

fn call() -> Message {
    let call = Call {
        id: "call_1".into(),
        name: "read_file".into(),
        arguments: r#"{"path":"/src/main.ts"}"#.into(),
        kind: CallKind::Function,
        extra: None,
    };
    Message::of(Role::Assistant, vec![MessagePart::Call(call)])
}

fn picture(url: &str) -> MessagePart {
    MessagePart::Image { source: ImageSource::Url { url: url.into() }, detail: None }
}

fn stored(byte_size: u64) -> MessagePart {
    let source =
        ImageSource::Blob { blob: "b".into(), media_type: "image/png".into(), byte_size, pixels: None };
    MessagePart::Image { source, detail: None }
}

fn check_message(message: &Message, expect: [u32; 5]) {
    assert_eq!(Meter::ALL.map(|meter| meter.message(message)), expect);
}

#[test]
fn every_meter_has_one_name() {
    for meter in Meter::ALL {
        assert_eq!(Meter::named(meter.name()), Some(meter));
        assert_eq!(meter.loads_table(), meter.table().is_some());
    }
    assert_eq!(Meter::named("o200k_base"), None);
}

#[test]
fn only_the_older_families_count_with_the_older_table() {
    let older = ["gpt-4", "gpt-4-turbo", "openai/gpt-4-0613", "GPT-4", "gpt-3.5-turbo", "gpt-35-turbo"];
    let older_too = ["ft:gpt-3.5-turbo:acme", "ft:gpt-4:acme", "text-embedding-3-small"];
    for model in older.into_iter().chain(older_too) {
        assert_eq!(Meter::for_model(model), Meter::Cl100k, "{model}");
    }
    for model in
        ["gpt-4o", "gpt-4.1-mini", "gpt-4.5-preview", "ft:gpt-4o:acme", "gpt-5", "o3", "claude", "", "qwen/"]
    {
        assert_eq!(Meter::for_model(model), Meter::O200k, "{model}");
    }
}

#[test]
fn texts_count_as_tiktoken_counts_them() {
    check_text("", 0, 0);
    check_text("Hello world", 2, 2);
    check_text("a<|endoftext|>b", 9, 9);
    check_text(&"吾輩は猫である。名前はまだ無い。".repeat(500), 7000, 10500);
    check_text(&pick(&('\u{4e00}'..).take(20_000).collect::<Vec<_>>(), 4000), 7577, 9293);
    check_text(&pick(&chars(BASE64), 8000), 5424, 5710);
    check_text(&lock_file(), 7645, 7636);
}

#[test]
fn guesses_by_length_round_as_their_originals_do() {
    let texts = ["", "abc", "abcd", "猫である", "猫"];
    assert_eq!(texts.map(|text| Meter::Chars4.text(text)), [0, 0, 1, 1, 0]);
    assert_eq!(texts.map(|text| Meter::Bytes4.text(text)), [0, 1, 1, 3, 1]);
    assert_eq!(Meter::O200kTimes15.text("a<|endoftext|>b"), 14);
}

#[test]
fn messages_count_part_by_part() {
    check_message(&Message::of(Role::User, vec![]), [4, 4, 0, 0, 0]);
    check_message(&Message::text(Role::User, "Hello world"), [6, 6, 2, 3, 3]);
    check_message(&call(), [19, 18, 8, 8, 23]);
    check_message(&outcome(vec![MessagePart::text("no such file")], false), [14, 14, 3, 3, 15]);
    let failed = outcome(vec![MessagePart::text("no such file"), stored(6)], true);
    check_message(&failed, [20, 20, 3, 3, 27]);
}

#[test]
fn pictures_of_unknown_size_count_as_usual_ones_or_by_the_root_of_their_encoded_length() {
    let kilobyte = format!("data:image/png;base64,{}", "X".repeat(1000));
    let seen = vec![picture(&kilobyte), picture("https://example.org/cat.png")];
    check_message(&Message::of(Role::User, seen), [1_435, 1_435, 0, 0, 498]);
    check_message(&Message::of(Role::User, vec![stored(750)]), [36, 36, 0, 0, 48]);
    check_message(&Message::of(Role::User, vec![picture("data:,"), stored(0)]), [2_802, 2_802, 0, 0, 900]);
    assert_eq!(Meter::O200k.message(&Message::of(Role::User, vec![stored(u64::MAX)])), u32::MAX);
}

#[test]
fn pictures_of_known_size_count_by_the_rule_of_the_model() {
    let pixels = Some(PictureSize { width: 1_024, height: 1_024 });
    let source = ImageSource::Blob { blob: "b".into(), media_type: "image/png".into(), byte_size: 9, pixels };
    let seen = |detail: Option<&str>| {
        let detail = detail.map(str::to_owned);
        Message::of(Role::User, vec![MessagePart::Image { source: source.clone(), detail }])
    };
    let tokens = |model, detail| Meter::O200k.message_for(&seen(detail), PictureRule::for_model(model));
    assert_eq!(tokens("gpt-4o", None), 4 + 765);
    assert_eq!(tokens("gpt-4o", Some("low")), 4 + 85);
    assert_eq!(tokens("claude-opus-4", None), 4 + 1_399);
    assert_eq!(Meter::O200k.message(&seen(None)), 4 + 1_399, "of which model is not known");
    let shown = outcome(vec![MessagePart::Image { source: source.clone(), detail: None }], false);
    let words = u32::try_from(Meter::O200k.text("Tool Result (call_1)")).unwrap();
    assert!(Meter::O200k.message_for(&shown, PictureRule::Crops) >= words + 4 * 258);
}

#[test]
fn what_only_a_dialect_knows_is_counted_by_the_exact_meters_alone() {
    let opaque = || Opaque { dialect: "x".into(), json: RawJson::parse(r#"{"a":1}"#).unwrap() };
    let json = Meter::O200k.text(r#"{"a":1}"#) as u32;
    let thought = MessagePart::Reasoning { text: "Hello world".into(), signature: Some("QUJD".repeat(99)) };
    let text = MessagePart::Text { text: String::new(), extra: Some(opaque()) };
    let mut message = Message::of(Role::Assistant, vec![thought, text, MessagePart::Opaque(opaque())]);
    message.extra = Some(opaque());
    check_message(&message, [4 + 2 + 3 * json, 4 + 2 + 3 * json, 0, 0, 0]);
    message.name = Some("Hello world".into());
    assert_eq!(Meter::O200k.message(&message), 4 + 4 + 3 * json);
}

#[test]
fn a_setup_is_its_system_prompt_and_its_tools() {
    let raw = |text: &str| Some(RawJson::parse(text).unwrap());
    let params = raw(r#"{"temperature":0.2}"#);
    let setup = Setup { params: params.clone(), ..Setup::default() };
    assert_eq!(Meter::ALL.map(|meter| meter.setup(&setup)), [0; 5]);
    let setup = Setup { system: Some("Hello world".into()), tools: raw("[{}]"), params, dialect: None };
    let tools = Meter::O200k.text("[{}]") as u32;
    assert_eq!(Meter::O200k.setup(&setup), 6 + tools);
    assert_eq!(Meter::O200kTimes15.setup(&setup), (3 * (2 + tools)).div_ceil(2));
    assert_eq!((Meter::Chars4.setup(&setup), Meter::Bytes4.setup(&setup)), (3, 4));
}

#[test]
fn a_text_said_is_a_message_of_that_text() {
    for (meter, text) in Meter::ALL.into_iter().flat_map(|meter| [(meter, "猫である。"), (meter, "")]) {
        assert_eq!(meter.said(text), meter.message(&Message::text(Role::User, text)));
    }
}

/// A million letters and the like: what makes the naive merge quadratic. The reference is not, and agrees.
#[test]
fn a_megabyte_without_a_break_is_counted_right() {
    let letters = pick(&chars("abcdefghijklmnopqrstuvwxyz"), 1 << 20);
    let texts = ["a".repeat(1 << 20), " ".repeat(1 << 20), "猫".repeat(350_000), letters];
    for (meter, text) in EXACT.into_iter().flat_map(|meter| texts.iter().map(move |text| (meter, text))) {
        assert_eq!(meter.text(text), reference(meter, text));
    }
}

#[test]
fn a_long_word_that_arrives_by_letters_is_split_a_few_times_not_at_every_letter() {
    for (unit, times) in [("a", 1 << 18), ("猫", 1 << 16), (" ", 1 << 18), ("a ", 1 << 17)] {
        let mut counter = Meter::O200k.counter();
        (0..times).for_each(|_| counter.push(unit));
        let length = unit.len() * times;
        assert!(counter.work <= 3 * length, "{unit:?}: {} bytes split for {length}", counter.work);
        assert_eq!(counter.finish(), Meter::O200k.text(&unit.repeat(times)));
    }
}

#[test]
fn broken_characters_count_as_a_lossy_reading_does() {
    let bytes = b"a\xE7\x8Cb\xFF\xE7\x8C\xABx\xF0\x9F\x98";
    for (meter, at) in Meter::ALL.into_iter().flat_map(|meter| (0..bytes.len()).map(move |at| (meter, at))) {
        let mut counter = meter.counter();
        let (head, tail) = bytes.split_at(at);
        counter.push_bytes(head);
        assert_eq!(counter.count(), meter.text(&String::from_utf8_lossy(head)));
        counter.push_bytes(tail);
        counter.push("e");
        let whole = format!("{}e", String::from_utf8_lossy(bytes));
        assert_eq!(counter.finish(), meter.text(&whole), "{meter:?} cut at {at}");
    }
}

/// One stretch of text of one sort; ends of words, runs of space and capitals after kana are the traps.
fn stretch() -> impl Strategy<Value = String> {
    prop_oneof![
        "[a-zA-Z]{1,9}",
        "[ \t\r\n\u{a0}\u{3000}]{1,6}",
        "[ \n]{1,4}",
        "[あ-んア-ヴー一-龥]{1,8}",
        "[A-Zあ]{1,5}",
        "[0-9²Ⅷ]{1,7}",
        "'([sdmtSDMTſ]|ll|ve|RE|r|l|v)?",
        "[-!-/:-@{}]{1,5}",
        "(😀|👩‍💻|🇯🇵|e\u{301}|\u{301}|ǅ|ʰ|हि|\u{200d}){1,4}",
        "[A-Za-z0-9+/]{8,40}={0,2}",
        "(<\\|endoftext\\|>|\u{fffd}|\u{0}|https://)",
        any::<char>().prop_map(String::from),
    ]
}

fn text_and_cuts() -> impl Strategy<Value = (String, Vec<usize>)> {
    let text = prop::collection::vec(stretch(), 0..30).prop_map(|parts| parts.concat());
    text.prop_flat_map(|text| {
        let cuts = prop::collection::vec(0..=text.len(), 0..12);
        (Just(text), cuts)
    })
}

/// The text in pieces, cut between bytes.
fn pieces<'a>(text: &'a str, cuts: &[usize]) -> Vec<&'a [u8]> {
    let mut cuts = cuts.to_vec();
    cuts.extend([0, text.len()]);
    cuts.sort_unstable();
    cuts.windows(2).map(|pair| &text.as_bytes()[pair[0]..pair[1]]).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4000))]

    /// Settles after every piece, far more often than a counter does by itself.
    #[test]
    fn a_text_in_pieces_counts_as_the_whole((text, cuts) in text_and_cuts()) {
        for meter in Meter::ALL {
            let mut counter = meter.counter();
            for piece in pieces(&text, &cuts) {
                counter.push_bytes(piece);
                counter.settle();
            }
            prop_assert_eq!(counter.count(), meter.text(&text), "{:?}", meter);
        }
    }

    /// By single characters, settling at each, and with the whole count asked for on the way.
    #[test]
    fn a_text_by_characters_counts_as_the_whole(text in prop::collection::vec(stretch(), 0..12)) {
        let text = text.concat();
        for meter in EXACT {
            let mut counter = meter.counter();
            for (at, char) in text.char_indices() {
                counter.push(&text[at..][..char.len_utf8()]);
                counter.settle();
                prop_assert_eq!(counter.count(), meter.text(&text[..at + char.len_utf8()]), "{:?}", meter);
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    /// Long enough that the counter settles when it sees fit.
    #[test]
    fn a_long_text_in_pieces_counts_as_the_whole((text, cuts) in text_and_cuts(), times in 1_usize..40) {
        for meter in EXACT {
            let mut counter = meter.counter();
            for piece in (0..times).flat_map(|_| pieces(&text, &cuts)) {
                counter.push_bytes(piece);
            }
            prop_assert_eq!(counter.finish(), meter.text(&text.repeat(times)), "{:?}", meter);
        }
    }
}
