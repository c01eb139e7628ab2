//! What is said in a measured session: the same words in every run.
//!
//! A message is a function of its number, so sessions of any length agree on what entry 1,000 says, and nothing has
//! to be kept to say the next one.

use super::dice::Dice;
use komado_core::message::{Call, CallKind, Message, MessagePart, Role, ToolOutcome};

const WORDS: [&str; 48] = [
    "the",
    "session",
    "opens",
    "a",
    "journal",
    "and",
    "reads",
    "its",
    "index",
    "before",
    "any",
    "entry",
    "is",
    "shown",
    "to",
    "model",
    "token",
    "window",
    "budget",
    "fold",
    "view",
    "span",
    "edit",
    "pin",
    "rewind",
    "fork",
    "thread",
    "store",
    "append",
    "write",
    "sync",
    "fn",
    "let",
    "mut",
    "self",
    "match",
    "=>",
    "->",
    "return",
    "Ok(())",
    "/src/main.rs",
    "42",
    "0x1f",
    "error:",
    "warning:",
    "line",
    "test",
    "passed",
];

/// Bytes of text that bodies are cut from.
const POOL: usize = 1 << 16;

/// Words to fill messages with.
pub(super) struct BenchWords {
    pool: String,
}

impl BenchWords {
    pub(super) fn new() -> Self {
        let mut dice = Dice::new(0x006b_6f6d_6164_6f00);
        let mut pool = String::with_capacity(POOL + 16);
        while pool.len() < POOL {
            pool.push_str(dice.pick(&WORDS).unwrap_or("the"));
            pool.push(if dice.below(12) == 0 { '\n' } else { ' ' });
        }
        Self { pool }
    }

    /// `len` bytes of text, chosen by `dice`.
    pub(super) fn text(&self, dice: &mut Dice, len: usize) -> String {
        let mut text = String::with_capacity(len);
        while text.len() < len {
            let from = dice.below(self.pool.len() / 2);
            let rest = (len - text.len()).min(self.pool.len() - from);
            // The pool is ASCII, so every place in it is a boundary.
            text.push_str(self.pool.get(from..from + rest).unwrap_or_default());
        }
        text
    }

    /// Message `n` of a short-winded conversation: someone asks, the model calls, the tool answers, the model tells.
    pub(super) fn message(&self, n: u64) -> Message {
        let mut dice = Dice::new(n);
        let len = dice.between(200, 400);
        let text = self.text(&mut dice, len);
        match n % 4 {
            0 => Message::text(Role::User, text),
            1 => call(n, text),
            2 => result(n - 1, text),
            _ => Message::text(Role::Assistant, text),
        }
    }

    /// A call and what it brought, together about `bytes` long; most of that is the result.
    pub(super) fn unit(&self, n: u64, bytes: usize) -> [Message; 2] {
        let mut dice = Dice::new(n);
        let bytes = dice.between(bytes * 3 / 4, bytes * 5 / 4);
        let (asked, told) = (self.text(&mut dice, bytes / 8), self.text(&mut dice, bytes - bytes / 8));
        [call(n, asked), result(n, told)]
    }

    /// A turn of four messages, each about `bytes` long on the whole: someone asks, the model calls, the tool answers
    /// with as much as all others together, the model tells. Every other call has its words in its arguments.
    pub(super) fn turn(&self, n: u64, bytes: usize) -> [Message; 4] {
        let mut dice = Dice::new(n);
        let mut text = |bytes: usize| {
            let len = dice.between(bytes * 3 / 4, bytes * 5 / 4);
            self.text(&mut dice, len)
        };
        let (asked, meant, found, told) = (text(bytes / 2), text(bytes / 2), text(bytes * 2), text(bytes));
        let call = if n.is_multiple_of(2) { call(n, meant) } else { command(n, &meant) };
        [Message::text(Role::User, asked), call, result(n, found), Message::text(Role::Assistant, told)]
    }
}

fn call(n: u64, text: String) -> Message {
    let arguments = format!("{{\"path\":\"src/part_{}.rs\",\"from\":{}}}", n % 97, n % 400);
    Message::of(
        Role::Assistant,
        vec![MessagePart::text(text), MessagePart::Call(function(n, "read_file", arguments))],
    )
}

fn command(n: u64, text: &str) -> Message {
    let arguments = serde_json::json!({ "command": text }).to_string();
    Message::of(Role::Assistant, vec![MessagePart::Call(function(n, "shell", arguments))])
}

fn function(n: u64, name: &str, arguments: String) -> Call {
    Call { id: format!("call_{n}"), name: name.into(), arguments, kind: CallKind::Function, extra: None }
}

fn result(call: u64, text: String) -> Message {
    let outcome = ToolOutcome::text(format!("call_{call}"), Some("read_file".into()), text);
    let outcome = ToolOutcome { duration_ms: Some(call % 50), ..outcome };
    Message::of(Role::Tool, vec![MessagePart::Result(outcome)])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_follows_from_its_number_and_has_the_length_asked_for() {
        let (a, b) = (BenchWords::new(), BenchWords::new());
        for n in 0..40 {
            assert_eq!(a.message(n), b.message(n));
            assert!((200..=400).contains(&a.message(n).words().len()));
        }
        let sizes: usize =
            (0..200).map(|n| a.unit(n, 8000).iter().map(|m| m.words().len()).sum::<usize>()).sum();
        assert!((7600..8400).contains(&(sizes / 200)), "{sizes}");
        assert_eq!(a.text(&mut Dice::new(1), 200_000).len(), 200_000);
        let said = |message: Message| {
            message.words().len() + message.calls().map(|call| call.arguments.len()).sum::<usize>()
        };
        let turns: usize = (0..200).flat_map(|n| a.turn(n, 1000)).map(said).sum();
        assert!((3800..4300).contains(&(turns / 200)), "{turns}");
    }
}
