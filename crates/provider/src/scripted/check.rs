//! Would a provider take this conversation? If not, what it says.
//!
//! Calls and results must stand together, an Anthropic conversation begins with a user, nothing is empty. It is as strict
//! as the strictest server of a dialect: a client that passes here passes there.

use super::errors::{ErrorStyle, RequestTrouble};
use crate::dialect::{BadRequest, Dialect, ParsedRequest};
use komado_core::grammar::{self, MessageShape, OrderFault};
use komado_core::message::{CallKind, Message};
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::value::RawValue;
use std::collections::HashSet;

/// A request that cannot be read.
pub(super) fn unreadable(dialect: Dialect, bad: &BadRequest) -> RequestTrouble {
    match dialect {
        Dialect::Messages => RequestTrouble::bad(format!("{}: {}", dotted(&bad.place), bad.why)),
        Dialect::Ollama => RequestTrouble::bad(bad.to_string()),
        Dialect::Chat | Dialect::Responses => {
            RequestTrouble::bad(format!("Invalid value for '{}': {}", bad.place, bad.why))
                .at(bad.place.clone())
        }
    }
}

/// `messages[3].content` as Anthropic writes it.
fn dotted(place: &str) -> String {
    place.replace('[', ".").replace(']', "")
}

/// What is wrong with the conversation, in the words of `who`.
pub(super) fn conversation(
    words: ErrorStyle,
    dialect: Dialect,
    body: &str,
    asked: &ParsedRequest,
) -> Result<(), RequestTrouble> {
    let who = words.to(dialect);
    let found = match dialect {
        Dialect::Messages => check_messages(body, asked),
        Dialect::Responses => check_responses(body),
        Dialect::Chat | Dialect::Ollama => chat(asked),
    };
    match (found, who) {
        (Err(Bad::Pairing(_)), ErrorStyle::Gemini) => Err(RequestTrouble::bad(
            "Please ensure that function call turn comes immediately after a user turn or after a function response \
             turn.",
        )),
        (Err(Bad::Pairing(_)), ErrorStyle::Mistral) => {
            Err(RequestTrouble::bad("Not the same number of function calls and responses"))
        }
        (Err(Bad::Pairing(trouble) | Bad::Other(trouble)), _) => Err(trouble),
        (Ok(()), ErrorStyle::LlamaCpp) => arguments(&asked.messages),
        (Ok(()), _) => Ok(()),
    }
}

/// What is wrong, in the dialect's own words.
enum Bad {
    /// Calls and results do not fit.
    Pairing(RequestTrouble),
    Other(RequestTrouble),
}

fn chat(asked: &ParsedRequest) -> Result<(), Bad> {
    if asked.messages.is_empty() && asked.setup.system.is_none() {
        let message = "Invalid 'messages': empty array. Expected an array with minimum length 1, but got an empty \
                       array instead.";
        return Err(Bad::Other(RequestTrouble {
            code: Some("empty_array"),
            ..RequestTrouble::bad(message).at("messages")
        }));
    }
    let shapes: Vec<MessageShape> = asked.messages.iter().map(MessageShape::of).collect();
    // The system prompt was the first message, and is one no more.
    let before = usize::from(asked.setup.system.is_some());
    match grammar::openai(&shapes) {
        Ok(()) => Ok(()),
        Err(OrderFault::Orphan { at, .. }) => Err(Bad::Pairing(
            RequestTrouble::bad(
                "Invalid parameter: messages with role 'tool' must be a response to a preceeding message with \
                 'tool_calls'.",
            )
            .at(format!("messages.[{}].role", at + before)),
        )),
        Err(OrderFault::Unanswered { at, .. }) => {
            let ids = unanswered(&shapes[..at]);
            let message = format!(
                "An assistant message with 'tool_calls' must be followed by tool messages responding to each \
                 'tool_call_id'. The following tool_call_ids did not have response messages: {}",
                ids.join(", ")
            );
            Err(Bad::Pairing(RequestTrouble::bad(message).at(format!("messages.[{}].role", at + before))))
        }
        Err(other) => Err(Bad::Other(RequestTrouble::bad(other.to_string()))),
    }
}

/// The calls of the last message that made some, without those that were answered since.
fn unanswered(shapes: &[MessageShape]) -> Vec<String> {
    let Some(at) = shapes.iter().rposition(|shape| !shape.calls.is_empty()) else { return Vec::new() };
    let answered: HashSet<&String> = shapes[at..].iter().filter_map(|shape| shape.answers.as_ref()).collect();
    shapes[at].calls.iter().filter(|id| !answered.contains(id)).cloned().collect()
}

/// Chat templates read the arguments, and stumble over what is not JSON.
fn arguments(messages: &[Message]) -> Result<(), RequestTrouble> {
    let calls = messages.iter().flat_map(Message::calls).filter(|call| call.kind == CallKind::Function);
    for call in calls {
        if let Err(why) = serde_json::from_str::<serde::de::IgnoredAny>(&call.arguments) {
            let message = format!("Failed to parse tool call arguments as JSON: {why}");
            return Err(RequestTrouble { status: 500, ..RequestTrouble::bad(message) });
        }
    }
    Ok(())
}

// What Anthropic asks of a conversation; read from the body itself, because it speaks of blocks and places in it.

/// The most cache marks that a request may have.
const MARKS: usize = 4;

#[derive(Deserialize)]
struct MessagesBody {
    #[serde(default)]
    messages: Vec<Turn>,
    system: Option<Content>,
    #[serde(default)]
    tools: Vec<Marked>,
    cache_control: Option<IgnoredAny>,
}

#[derive(Deserialize)]
struct Marked {
    cache_control: Option<IgnoredAny>,
}

#[derive(Deserialize)]
struct Turn {
    role: String,
    content: Content,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Content {
    Text(String),
    Blocks(Vec<Block>),
}

#[derive(Deserialize)]
struct Block {
    r#type: String,
    text: Option<String>,
    id: Option<String>,
    tool_use_id: Option<String>,
    cache_control: Option<IgnoredAny>,
}

/// Neighbours of one role, which count as one message, with where each block stands.
struct Joined<'a> {
    at: usize,
    is_user: bool,
    blocks: Vec<(usize, usize, &'a Block)>,
}

fn check_messages(body: &str, asked: &ParsedRequest) -> Result<(), Bad> {
    let body: MessagesBody = serde_json::from_str(body).map_err(|why| other(format!("messages: {why}")))?;
    match asked.max_tokens {
        None => return Err(other("max_tokens: Field required")),
        Some(0) => return Err(other("max_tokens: Input should be greater than or equal to 1")),
        Some(_) => empty(&body)?,
    }
    match body.messages.iter().find(|turn| turn.role != "system") {
        None => Err(other("messages: at least one message is required")),
        Some(turn) if turn.role != "user" => Err(other("messages: first message must use the \"user\" role")),
        Some(_) => pairs(&joined(&body.messages)),
    }
}

fn other(message: impl Into<String>) -> Bad {
    Bad::Other(RequestTrouble::bad(message))
}

fn unpaired(message: impl Into<String>) -> Bad {
    Bad::Pairing(RequestTrouble::bad(message))
}

/// Nothing may be empty, and not everything may be marked.
fn empty(body: &MessagesBody) -> Result<(), Bad> {
    let mut marks = body.tools.iter().filter(|tool| tool.cache_control.is_some()).count();
    marks += usize::from(body.cache_control.is_some());
    if let Some(Content::Blocks(blocks)) = &body.system {
        marks += marked(blocks);
        if blocks.iter().any(is_empty) {
            return Err(other("system: text content blocks must be non-empty"));
        }
    }
    let last = body.messages.len().saturating_sub(1);
    for (at, turn) in body.messages.iter().enumerate() {
        let hollow = match &turn.content {
            Content::Text(text) => text.is_empty(),
            Content::Blocks(blocks) => {
                marks += marked(blocks);
                if blocks.iter().any(is_empty) {
                    return Err(other("messages: text content blocks must be non-empty"));
                }
                blocks.is_empty()
            }
        };
        if hollow && !(at == last && turn.role == "assistant") {
            return Err(other(format!(
                "messages.{at}: all messages must have non-empty content except for the optional final assistant \
                 message"
            )));
        }
    }
    let many = || format!("A maximum of {MARKS} blocks with cache_control may be provided. Found {marks}.");
    if marks > MARKS { Err(other(many())) } else { Ok(()) }
}

fn marked(blocks: &[Block]) -> usize {
    blocks.iter().filter(|block| block.cache_control.is_some()).count()
}

fn is_empty(block: &Block) -> bool {
    block.r#type == "text" && block.text.as_deref().is_none_or(str::is_empty)
}

fn joined(messages: &[Turn]) -> Vec<Joined<'_>> {
    let mut all: Vec<Joined<'_>> = Vec::new();
    for (at, turn) in messages.iter().enumerate().filter(|(_, turn)| turn.role != "system") {
        let is_user = turn.role == "user";
        let blocks = match &turn.content {
            Content::Text(_) => &[][..],
            Content::Blocks(blocks) => blocks,
        };
        let blocks = blocks.iter().enumerate().map(|(i, block)| (at, i, block));
        match all.last_mut() {
            Some(last) if last.is_user == is_user => last.blocks.extend(blocks),
            _ => all.push(Joined { at, is_user, blocks: blocks.collect() }),
        }
    }
    all
}

fn pairs(turns: &[Joined<'_>]) -> Result<(), Bad> {
    let mut known: HashSet<&str> = HashSet::new();
    let mut open: Vec<&str> = Vec::new();
    let mut asked_at = 0;
    for turn in turns {
        if turn.is_user {
            open = results(turn, open)?;
        }
        left_open(asked_at, &open)?;
        if !turn.is_user {
            (open, asked_at) = (calls(turn, &mut known)?, turn.at);
        }
    }
    left_open(asked_at, &open)
}

fn left_open(at: usize, open: &[&str]) -> Result<(), Bad> {
    if open.is_empty() {
        return Ok(());
    }
    Err(unpaired(format!(
        "messages.{at}: `tool_use` ids were found without `tool_result` blocks immediately after: {}. Each `tool_use` \
         block must have a corresponding `tool_result` block in the next message.",
        open.join(", ")
    )))
}

/// The calls that a turn of the model makes.
fn calls<'a>(turn: &Joined<'a>, known: &mut HashSet<&'a str>) -> Result<Vec<&'a str>, Bad> {
    let mut open = Vec::new();
    for (at, i, block) in turn.blocks.iter().filter(|(_, _, block)| block.r#type == "tool_use") {
        let id = block.id.as_deref().unwrap_or_default();
        if !known.insert(id) {
            return Err(unpaired(format!("messages.{at}.content.{i}: `tool_use` ids must be unique")));
        }
        open.push(id);
    }
    Ok(open)
}

/// The calls that a turn of the user leaves without a result. Results stand first; one behind other words answers
/// nothing.
fn results<'a>(turn: &Joined<'a>, mut open: Vec<&'a str>) -> Result<Vec<&'a str>, Bad> {
    let (mut done, mut words_came): (Vec<&str>, bool) = (Vec::new(), false);
    for (at, i, block) in &turn.blocks {
        if block.r#type != "tool_result" {
            words_came = true;
            continue;
        }
        let id = block.tool_use_id.as_deref().unwrap_or_default();
        if done.contains(&id) {
            return Err(unpaired(format!(
                "messages.{at}.content.{i}: each tool_use must have a single result. Found multiple `tool_result` \
                 blocks with id: {id}"
            )));
        }
        let Some(place) = open.iter().position(|call| *call == id) else {
            return Err(unpaired(format!(
                "messages.{at}.content.{i}: unexpected `tool_use_id` found in `tool_result` blocks: {id}. Each \
                 `tool_result` block must have a corresponding `tool_use` block in the previous message."
            )));
        };
        if words_came {
            return Ok(open);
        }
        done.push(open.remove(place));
    }
    Ok(open)
}

// What the responses API asks of its items: every call has its output, and every output its call.
//
// Read from the body itself: an item that our reader does not know still pairs by its `call_id`. Other items may stand
// between the two.

#[derive(Deserialize)]
struct ResponsesBody<'a> {
    #[serde(borrow)]
    input: Option<&'a RawValue>,
    previous_response_id: Option<String>,
}

#[derive(Deserialize)]
struct Item {
    r#type: Option<String>,
    call_id: Option<String>,
}

fn check_responses(body: &str) -> Result<(), Bad> {
    let bad = |message: String| Err(Bad::Pairing(RequestTrouble::bad(message).at("input")));
    let (items, remembers) = items(body).map_err(|why| {
        Bad::Other(RequestTrouble::bad(format!("Invalid value for 'input': {why}")).at("input"))
    })?;
    let mut open: Vec<(&str, &str)> = Vec::new();
    for item in &items {
        let (Some(kind), Some(id)) = (item.r#type.as_deref(), item.call_id.as_deref()) else { continue };
        if !kind.ends_with("_output") {
            open.push((kind, id));
            continue;
        }
        match open.iter().position(|(_, call)| *call == id) {
            Some(at) => drop(open.remove(at)),
            // The call may be one that the server remembers.
            None if remembers => {}
            None => {
                return bad(format!("No tool call found for {} with call_id {id}.", kind.replace('_', " ")));
            }
        }
    }
    match open.first() {
        Some((kind, id)) => bad(format!("No tool output found for {} {id}.", kind.replace('_', " "))),
        None => Ok(()),
    }
}

/// The items of the request, and whether the server is asked to remember others.
fn items(body: &str) -> Result<(Vec<Item>, bool), serde_json::Error> {
    let body: ResponsesBody<'_> = serde_json::from_str(body)?;
    // A text is a message of the user, and pairs with nothing.
    let items = match body.input.map(RawValue::get) {
        Some(list) if list.starts_with('[') => serde_json::from_str(list)?,
        _ => Vec::new(),
    };
    Ok((items, body.previous_response_id.is_some()))
}
