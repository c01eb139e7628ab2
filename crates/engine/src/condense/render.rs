//! Messages as plain text, the way a summariser reads them.
//!
//! Calls and results become words, because providers refuse them in a request that has no tools. Reasoning is left
//! out: it is long, it may be sealed, and what came of it is said. Nothing is shortened here.

use komado_core::Seq;
use komado_core::journal::ShowKind;
use komado_core::message::{Message, Part};

/// What stands before a message.
pub(super) fn head(seq: Seq, message: &Message) -> String {
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
pub(super) fn body(message: &Message) -> String {
    let mut lines = Vec::new();
    message.parts.iter().for_each(|part| say(part, &mut lines));
    lines.join("\n")
}

fn say(part: &Part, lines: &mut Vec<String>) {
    match part {
        Part::Text { text, .. } if text.trim().is_empty() => {}
        Part::Text { text, .. } => lines.push(text.clone()),
        Part::Image { .. } => lines.push("[Image]".into()),
        Part::Call(call) => {
            lines.push(format!("[Tool Use: {}]", call.name));
            if !call.arguments.trim().is_empty() {
                lines.push(call.arguments.clone());
            }
        }
        Part::Result(outcome) => {
            lines.push(if outcome.is_error { "[Tool Result (Error)]" } else { "[Tool Result]" }.into());
            outcome.content.iter().for_each(|part| say(part, lines));
        }
        Part::Reasoning { .. } => {}
        Part::Opaque(_) => lines.push("[Other content]".into()),
    }
}

/// The message without its calls, for one whose results lie outside the span; `None` when nothing else is in it.
///
/// A call without a result cannot be followed by anything but its result, and so not by the question for a summary:
/// a provider refuses that, and a reader takes the call for something that was done.
pub(super) fn without_calls(mut message: Message) -> Option<Message> {
    message.parts.retain(|part| !matches!(part, Part::Call(_)));
    (!body(&message).is_empty()).then_some(message)
}

#[cfg(test)]
mod tests {
    use super::*;
    use komado_core::message::{Call, CallKind, ImageSource, Opaque, Outcome, Role};
    use komado_core::raw::Raw;
    use komado_core::{Entry, Refusal};
    use komado_testkit::Book;

    fn call(id: &str) -> Part {
        let (id, name, arguments) = (id.into(), "read".into(), r#"{"path":"a"}"#.into());
        Part::Call(Call { id, name, arguments, kind: CallKind::Function, extra: None })
    }

    fn outcome(content: Vec<Part>, is_error: bool) -> Message {
        let (call_id, name) = ("a".into(), None);
        let (output_ref, duration_ms, interrupted) = (None, None, false);
        let outcome = Outcome { call_id, name, content, is_error, output_ref, duration_ms, interrupted };
        Message::of(Role::Tool, vec![Part::Result(outcome)])
    }

    fn image() -> Part {
        Part::Image { source: ImageSource::Url { url: "https://example.org/a.png".into() }, detail: None }
    }

    #[test]
    fn calls_results_and_images_become_words_and_reasoning_is_left_out() {
        let thought = Part::Reasoning { text: "hm".into(), signature: None };
        let opaque = Part::Opaque(Opaque {
            dialect: "openai".into(),
            json: Raw::parse(r#"{"type":"file"}"#).unwrap(),
        });
        let asked = Message::of(Role::Assistant, vec![thought.clone(), Part::text("let me look"), call("a")]);
        assert_eq!(body(&asked), "let me look\n[Tool Use: read]\n{\"path\":\"a\"}");
        assert_eq!(body(&outcome(vec![Part::text("出力"), image()], false)), "[Tool Result]\n出力\n[Image]");
        assert_eq!(body(&outcome(vec![Part::text("no")], true)), "[Tool Result (Error)]\nno");
        assert_eq!(body(&Message::of(Role::User, vec![image(), opaque])), "[Image]\n[Other content]");
        assert_eq!(body(&Message::of(Role::Assistant, vec![thought])), "");
        assert_eq!(head(3, &asked), "@3 assistant: ");
        let mut named = Message::text(Role::User, "hi");
        named.name = Some("ann".into());
        assert_eq!(
            (head(1, &named), head_again(1, &named)),
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
        let last = Message::of(Role::Assistant, vec![Part::text("I look"), call("a")]);
        assert!(matches!(ask(last.clone()), Err(Refusal::CallsOpen { .. })));
        let kept = without_calls(last).unwrap();
        assert_eq!(body(&kept), "I look");
        assert_eq!(ask(kept), Ok(()));
        assert_eq!(without_calls(Message::of(Role::Assistant, vec![call("a"), call("b")])), None);
        let thought = Part::Reasoning { text: "hm".into(), signature: None };
        assert_eq!(without_calls(Message::of(Role::Assistant, vec![thought, call("a")])), None);
    }
}
