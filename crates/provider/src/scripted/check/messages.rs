//! What Anthropic asks of a conversation; read from the body itself, because it speaks of blocks and places in it.

use super::Bad;
use crate::ask::Asked;
use crate::scripted::words::Trouble;
use serde::Deserialize;
use serde::de::IgnoredAny;
use std::collections::HashSet;

/// The most cache marks that a request may have.
const MARKS: usize = 4;

#[derive(Deserialize)]
struct Body {
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

pub(super) fn check(body: &str, asked: &Asked) -> Result<(), Bad> {
    let body: Body = serde_json::from_str(body).map_err(|why| other(format!("messages: {why}")))?;
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
    Bad::Other(Trouble::bad(message))
}

fn unpaired(message: impl Into<String>) -> Bad {
    Bad::Pairing(Trouble::bad(message))
}

/// Nothing may be empty, and not everything may be marked.
fn empty(body: &Body) -> Result<(), Bad> {
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
