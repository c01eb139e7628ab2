//! Messages as plain text, the way a summariser reads them.
//!
//! Calls and results become words, because providers refuse them in a request that has no tools. Reasoning is left
//! out: it is long, it may be sealed, and what came of it is said. Nothing is shortened here.

use super::{OriginalsHint, PromptLanguage};
use komado_core::journal::ShowKind;
use komado_core::message::{Message, MessagePart};
use komado_core::{Meter, Seq, Span};

/// What stands before a message.
pub(super) fn message_head(seq: Seq, message: &Message) -> String {
    let role = message.role.name();
    match &message.name {
        Some(name) => format!("@{seq} {role} ({name}): "),
        None => format!("@{seq} {role}: "),
    }
}

/// What stands before the rest of a message that was too long for one part.
pub(super) fn head_again(seq: Seq, message: &Message) -> String {
    format!("@{seq} {} (continued): ", message.role.name())
}

/// What stands before a text that an earlier edit shows.
pub(super) fn head_earlier(kind: ShowKind) -> &'static str {
    match kind {
        ShowKind::Summary => "[Earlier summary]\n",
        ShowKind::Retain => "[Kept from an earlier summary]\n",
        ShowKind::Marker => "[Earlier marker]\n",
    }
}

/// What stands before the summary of the parts before this one.
pub(super) const SO_FAR: &str = "[Summary so far]\n";

/// What a message says, calls and results included. Empty when only reasoning is in it.
pub(super) fn message_body(message: &Message) -> String {
    let mut lines = Vec::new();
    message.parts.iter().for_each(|part| say(part, &mut lines));
    lines.join("\n")
}

fn say(part: &MessagePart, lines: &mut Vec<String>) {
    match part {
        MessagePart::Text { text, .. } if text.trim().is_empty() => {}
        MessagePart::Text { text, .. } => lines.push(text.clone()),
        MessagePart::Image { .. } => lines.push("[Image]".into()),
        MessagePart::Call(call) => {
            lines.push(format!("[Tool Use: {}]", call.name));
            if !call.arguments.trim().is_empty() {
                lines.push(call.arguments.clone());
            }
        }
        MessagePart::Result(outcome) => {
            lines.push(if outcome.is_error { "[Tool Result (Error)]" } else { "[Tool Result]" }.into());
            outcome.content.iter().for_each(|part| say(part, lines));
        }
        MessagePart::Reasoning { .. } => {}
        MessagePart::Opaque(_) => lines.push("[Other content]".into()),
    }
}

/// The message without its calls, for one whose results lie outside the span; `None` when nothing else is in it.
///
/// A call without a result cannot be followed by anything but its result, and so not by the question for a summary:
/// a provider refuses that, and a reader takes the call for something that was done.
pub(super) fn without_calls(mut message: Message) -> Option<Message> {
    message.parts.retain(|part| !matches!(part, MessagePart::Call(_)));
    (!message_body(&message).is_empty()).then_some(message)
}

// The first line of a text that stands for a span: it tells a model what it reads and how to reach the originals.
//
// The line depends on the span alone, so that it is the same wherever the same span is hidden. It is taken off again
// when the text becomes the input of the next summary: numbers that are no longer true must not be retold.

const SUMMARY: [&str; 2] = ["[Summary of earlier messages ", "[以前のメッセージの要約: "];
const RETAIN: [&str; 2] =
    ["[Kept word for word from earlier messages ", "[以前のメッセージからそのまま残した情報: "];

/// The line for a text of `kind` that stands for `hide`.
pub(super) fn marker_line(
    kind: ShowKind,
    hide: &[Span],
    language: PromptLanguage,
    reach: OriginalsHint,
) -> String {
    let japanese = language == PromptLanguage::Japanese;
    let begin = match kind {
        ShowKind::Retain => RETAIN[usize::from(japanese)],
        ShowKind::Summary | ShowKind::Marker => SUMMARY[usize::from(japanese)],
    };
    let from = hide.iter().map(|span| span.from).min().unwrap_or_default();
    let to = hide.iter().map(|span| span.to).max().unwrap_or_default();
    let place = if from == to { format!("@{from}") } else { format!("@{from}–@{to}") };
    // The way to the originals is told once, with the summary.
    let rest = match (kind, reach, japanese) {
        (ShowKind::Retain, _, false) => ".]".to_owned(),
        (ShowKind::Retain, _, true) => "]".to_owned(),
        (_, OriginalsHint::Kept, false) => ". The originals are kept.]".to_owned(),
        (_, OriginalsHint::Kept, true) => "。原文は保存されています。]".to_owned(),
        (_, OriginalsHint::Tools, false) => format!(
            ". The originals are kept; read one with tool_output_cache({{\"ref_id\":\"@{from}\"}}) or search them with recall.]"
        ),
        (_, OriginalsHint::Tools, true) => format!(
            "。原文は保存されています。tool_output_cache({{\"ref_id\":\"@{from}\"}}) で1件を読み、recall で検索できます。]"
        ),
    };
    format!("{begin}{place}{rest}")
}

/// The text without such a line.
pub(super) fn strip_marker(text: &str) -> &str {
    let ours = SUMMARY.iter().chain(&RETAIN).any(|begin| text.starts_with(begin));
    match text.split_once('\n') {
        Some((first, rest)) if ours && first.ends_with(']') => rest.trim_start_matches('\n'),
        None if ours && text.ends_with(']') => "",
        _ => text,
    }
}

// Cutting a text to a number of tokens, between characters, and better: between lines or sentences.
//
// The work is that of the part which is kept, however long the text is. Nothing here decides whether what is kept is
// still of use.

/// How many bytes are tried at a time.
const STEP: usize = 1024;

/// The longest beginning of `text` found that takes at most `budget` tokens. Cut between characters.
pub(crate) fn cut_prefix(meter: Meter, text: &str, budget: u64) -> &str {
    let mut counter = meter.counter();
    let (mut end, mut step) = (0, STEP);
    while end < text.len() && step > 0 {
        let next = floor(text, end + step);
        // A step smaller than the character that stands there.
        if next == end {
            break;
        }
        let mut trial = counter.clone();
        trial.push(&text[end..next]);
        if trial.count() <= budget {
            (counter, end) = (trial, next);
        } else {
            step /= 2;
        }
    }
    &text[..end]
}

/// The last place between two characters at or before `at`.
fn floor(text: &str, at: usize) -> usize {
    let mut at = at.min(text.len());
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}

/// As [`cut_prefix`], but ending where a line or a sentence does when that costs less than half of it; the rest comes
/// second. The first is empty only if not one character fits.
pub(crate) fn cut_split(meter: Meter, text: &str, budget: u64) -> (&str, &str) {
    let most = cut_prefix(meter, text, budget);
    if most.len() == text.len() {
        return (text, "");
    }
    text.split_at(last_end(most).filter(|end| *end > most.len() / 2).unwrap_or(most.len()))
}

/// Where the last whole line of `text` ends, or else its last sentence, or else its last word.
fn last_end(text: &str) -> Option<usize> {
    let after = |found: Option<usize>, width: usize| found.map(|at| at + width);
    let half = text.len() / 2;
    let line = after(text.rfind('\n'), 1).filter(|end| *end > half);
    let wide = text.rfind(['。', '！', '？']).map(|at| at + '。'.len_utf8());
    let narrow = [". ", "! ", "? "].iter().filter_map(|stop| text.rfind(stop)).max().map(|at| at + 2);
    let sentence = wide.max(narrow).filter(|end| *end > half);
    line.or(sentence).or_else(|| after(text.rfind(' '), 1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use komado_core::message::{Call, CallKind, ImageSource, Opaque, Role, ToolOutcome};
    use komado_core::raw::RawJson;
    use komado_core::{Entry, EntryRefusal};
    use komado_testkit::Book;

    fn call(id: &str) -> MessagePart {
        let (id, name, arguments) = (id.into(), "read".into(), r#"{"path":"a"}"#.into());
        MessagePart::Call(Call { id, name, arguments, kind: CallKind::Function, extra: None })
    }

    fn outcome(content: Vec<MessagePart>, is_error: bool) -> Message {
        let outcome = ToolOutcome { content, is_error, ..ToolOutcome::text("a", None, "") };
        Message::of(Role::Tool, vec![MessagePart::Result(outcome)])
    }

    fn image() -> MessagePart {
        MessagePart::Image {
            source: ImageSource::Url { url: "https://example.org/a.png".into() },
            detail: None,
        }
    }

    #[test]
    fn calls_results_and_images_become_words_and_reasoning_is_left_out() {
        let thought = MessagePart::Reasoning { text: "hm".into(), signature: None };
        let opaque = MessagePart::Opaque(Opaque {
            dialect: "openai".into(),
            json: RawJson::parse(r#"{"type":"file"}"#).unwrap(),
        });
        let asked =
            Message::of(Role::Assistant, vec![thought.clone(), MessagePart::text("let me look"), call("a")]);
        assert_eq!(message_body(&asked), "let me look\n[Tool Use: read]\n{\"path\":\"a\"}");
        assert_eq!(
            message_body(&outcome(vec![MessagePart::text("出力"), image()], false)),
            "[Tool Result]\n出力\n[Image]"
        );
        assert_eq!(message_body(&outcome(vec![MessagePart::text("no")], true)), "[Tool Result (Error)]\nno");
        assert_eq!(message_body(&Message::of(Role::User, vec![image(), opaque])), "[Image]\n[Other content]");
        assert_eq!(message_body(&Message::of(Role::Assistant, vec![thought])), "");
        assert_eq!(message_head(3, &asked), "@3 assistant: ");
        let mut named = Message::text(Role::User, "hi");
        named.name = Some("ann".into());
        assert_eq!(
            (message_head(1, &named), head_again(1, &named)),
            ("@1 user (ann): ".into(), "@1 user (continued): ".into())
        );
    }

    /// What the rule is for: the question for a summary is a user's message after everything else.
    #[test]
    fn a_question_after_a_call_without_its_result_is_refused_and_without_the_call_it_is_not() {
        let ask = |last: Message| {
            let mut book = Book::default();
            for message in [Message::text(Role::User, "look"), last, Message::text(Role::User, "summarise!")]
            {
                book.push(Entry::Message(message, None), 1, "")?;
            }
            Ok(())
        };
        let last = Message::of(Role::Assistant, vec![MessagePart::text("I look"), call("a")]);
        assert!(matches!(ask(last.clone()), Err(EntryRefusal::CallsOpen { .. })));
        let kept = without_calls(last).unwrap();
        assert_eq!(message_body(&kept), "I look");
        assert_eq!(ask(kept), Ok(()));
        assert_eq!(without_calls(Message::of(Role::Assistant, vec![call("a"), call("b")])), None);
        let thought = MessagePart::Reasoning { text: "hm".into(), signature: None };
        assert_eq!(without_calls(Message::of(Role::Assistant, vec![thought, call("a")])), None);
    }
}

#[cfg(test)]
mod marker_tests {
    use super::*;

    #[test]
    fn every_line_names_its_span_and_can_be_taken_off_again() {
        let hide = [Span::new(2, 40), Span::new(50, 389)];
        for kind in [ShowKind::Retain, ShowKind::Summary] {
            for language in [PromptLanguage::English, PromptLanguage::Japanese] {
                for reach in [OriginalsHint::Tools, OriginalsHint::Kept] {
                    let marker_line = marker_line(kind, &hide, language, reach);
                    assert!(marker_line.contains("@2–@389") && !marker_line.contains('\n'), "{marker_line}");
                    assert_eq!(strip_marker(&format!("{marker_line}\nwords\nmore")), "words\nmore");
                    assert_eq!(strip_marker(&marker_line), "");
                }
            }
        }
        assert_eq!(
            marker_line(
                ShowKind::Summary,
                &[Span::new(2, 389)],
                PromptLanguage::English,
                OriginalsHint::Tools
            ),
            "[Summary of earlier messages @2–@389. The originals are kept; read one with \
             tool_output_cache({\"ref_id\":\"@2\"}) or search them with recall.]"
        );
        assert!(
            marker_line(ShowKind::Retain, &[Span::new(7, 7)], PromptLanguage::Japanese, OriginalsHint::Tools)
                .ends_with(" @7]")
        );
        for other in
            ["a summary by hand\nof two lines", "[a note]\nwords", "", "[Summary of earlier messages @2\nx"]
        {
            assert_eq!(strip_marker(other), other);
        }
    }
}

#[cfg(test)]
mod cut_tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_text_is_cut_after_a_line_a_sentence_or_a_word_and_else_between_characters() {
        let meter = Meter::Chars4;
        for (text, first) in [
            ("one line here\nanother line that does not fit", "one line here\n"),
            ("A sentence. And one more that is far too long", "A sentence. "),
            (
                "文をひとつ丁寧に書きました。そしてもうひとつ長い文を書きます。",
                "文をひとつ丁寧に書きました。",
            ),
            ("some words without an end", "some words without an "),
            ("A stop. Then nothing for so long", "A stop. Then nothing "),
            (
                "吾輩は猫である名前はまだ無いどこで生れたか見当つかぬ",
                "吾輩は猫である名前はまだ無いどこで生れたか見当",
            ),
        ] {
            assert_eq!(cut_split(meter, text, 5), (first, &text[first.len()..]));
        }
        assert_eq!(cut_split(meter, "short", 5), ("short", ""));
        assert_eq!(cut_split(Meter::O200k, "anything", 0), ("", "anything"));
    }

    proptest! {
        #[test]
        fn what_is_kept_fits_and_nothing_is_lost(text in "([a-z ]{0,40}|[あ-んア-ン。\n]{0,30}|😀){0,60}", budget in 0u64..400) {
            for meter in Meter::ALL {
                let (head, tail) = cut_split(meter, &text, budget);
                prop_assert!(meter.text(head) <= budget);
                prop_assert_eq!(format!("{head}{tail}"), text.clone());
                // Far from the budget, nothing is cut.
                if meter.text(&text) <= budget / 2 {
                    prop_assert!(tail.is_empty());
                }
            }
        }
    }
}
