//! Would a provider take this conversation? If not, what it says.
//!
//! Calls and results must stand together, an Anthropic conversation begins with a user, nothing is empty. It is as strict
//! as the strictest server of a dialect: a client that passes here passes there.

mod messages;
mod responses;

use super::words::{Trouble, Words};
use crate::ask::{Asked, BadRequest};
use crate::dialect::Dialect;
use komado_core::grammar::{self, Shape, Wrong};
use komado_core::message::{CallKind, Message};
use std::collections::HashSet;

/// A request that cannot be read.
pub(super) fn unreadable(dialect: Dialect, bad: &BadRequest) -> Trouble {
    match dialect {
        Dialect::Messages => Trouble::bad(format!("{}: {}", dotted(&bad.place), bad.why)),
        Dialect::Ollama => Trouble::bad(bad.to_string()),
        Dialect::Chat | Dialect::Responses => {
            Trouble::bad(format!("Invalid value for '{}': {}", bad.place, bad.why)).at(bad.place.clone())
        }
    }
}

/// `messages[3].content` as Anthropic writes it.
fn dotted(place: &str) -> String {
    place.replace('[', ".").replace(']', "")
}

/// What is wrong with the conversation, in the words of `who`.
pub(super) fn conversation(words: Words, dialect: Dialect, body: &str, asked: &Asked) -> Result<(), Trouble> {
    let who = words.to(dialect);
    let found = match dialect {
        Dialect::Messages => messages::check(body, asked),
        Dialect::Responses => responses::check(body),
        Dialect::Chat | Dialect::Ollama => chat(asked),
    };
    match (found, who) {
        (Err(Bad::Pairing(_)), Words::Gemini) => Err(Trouble::bad(
            "Please ensure that function call turn comes immediately after a user turn or after a function response \
             turn.",
        )),
        (Err(Bad::Pairing(_)), Words::Mistral) => {
            Err(Trouble::bad("Not the same number of function calls and responses"))
        }
        (Err(Bad::Pairing(trouble) | Bad::Other(trouble)), _) => Err(trouble),
        (Ok(()), Words::LlamaCpp) => arguments(&asked.messages),
        (Ok(()), _) => Ok(()),
    }
}

/// What is wrong, in the dialect's own words.
enum Bad {
    /// Calls and results do not fit.
    Pairing(Trouble),
    Other(Trouble),
}

fn chat(asked: &Asked) -> Result<(), Bad> {
    if asked.messages.is_empty() && asked.setup.system.is_none() {
        let message = "Invalid 'messages': empty array. Expected an array with minimum length 1, but got an empty \
                       array instead.";
        return Err(Bad::Other(Trouble {
            code: Some("empty_array"),
            ..Trouble::bad(message).at("messages")
        }));
    }
    let shapes: Vec<Shape> = asked.messages.iter().map(Shape::of).collect();
    // The system prompt was the first message, and is one no more.
    let before = usize::from(asked.setup.system.is_some());
    match grammar::openai(&shapes) {
        Ok(()) => Ok(()),
        Err(Wrong::Orphan { at, .. }) => Err(Bad::Pairing(
            Trouble::bad(
                "Invalid parameter: messages with role 'tool' must be a response to a preceeding message with \
                 'tool_calls'.",
            )
            .at(format!("messages.[{}].role", at + before)),
        )),
        Err(Wrong::Unanswered { at, .. }) => {
            let ids = unanswered(&shapes[..at]);
            let message = format!(
                "An assistant message with 'tool_calls' must be followed by tool messages responding to each \
                 'tool_call_id'. The following tool_call_ids did not have response messages: {}",
                ids.join(", ")
            );
            Err(Bad::Pairing(Trouble::bad(message).at(format!("messages.[{}].role", at + before))))
        }
        Err(other) => Err(Bad::Other(Trouble::bad(other.to_string()))),
    }
}

/// The calls of the last message that made some, without those that were answered since.
fn unanswered(shapes: &[Shape]) -> Vec<String> {
    let Some(at) = shapes.iter().rposition(|shape| !shape.calls.is_empty()) else { return Vec::new() };
    let answered: HashSet<&String> = shapes[at..].iter().filter_map(|shape| shape.answers.as_ref()).collect();
    shapes[at].calls.iter().filter(|id| !answered.contains(id)).cloned().collect()
}

/// Chat templates read the arguments, and stumble over what is no JSON.
fn arguments(messages: &[Message]) -> Result<(), Trouble> {
    let calls = messages.iter().flat_map(Message::calls).filter(|call| call.kind == CallKind::Function);
    for call in calls {
        if let Err(why) = serde_json::from_str::<serde::de::IgnoredAny>(&call.arguments) {
            let message = format!("Failed to parse tool call arguments as JSON: {why}");
            return Err(Trouble { status: 500, ..Trouble::bad(message) });
        }
    }
    Ok(())
}
