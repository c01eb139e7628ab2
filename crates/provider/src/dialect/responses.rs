//! OpenAI's responses API.
//!
//! A conversation is a list of items: messages, calls, outputs, thoughts, and whatever the API grows next. Items that no
//! other dialect has are kept whole at their place, with the output beside its call, so that no edit can part the two. A request
//! is `model`, `instructions`, `tools`, `input` and then everything that may change from one request to the next. It
//! refuses to lean on what the server remembers: `store` is false unless the parameters say otherwise.

mod decode;
mod encode;
mod request;

pub(in crate::dialect) use decode::ResponsesDecoder;
pub use encode::Encoder;
pub use request::Writer;
pub(super) use request::{read, read_elements};

use super::json::{JsonFields, all, kept, list, number, object, of, rest, said, text};
use komado_core::message::{CallKind, Opaque};
use komado_core::raw::RawObject;

/// The dialect's name in what is kept for it alone.
const NAME: &str = super::Dialect::Responses.name();

// What an item is, as far as it must be known: whose it is, and what it answers.
//
// The fields of a message item (such as its phase) have no place of their own in a message that may hold several, so
// they are kept beside the text, under `item`.

/// Where the fields of a message item are kept among those of its text.
const ITEM: &str = "item";

/// The type of an item; a message need not say that it is one.
fn kind(item: &RawObject<'_>) -> String {
    let unsaid = || if item.get("role").is_some() { "message".into() } else { String::new() };
    text(item, "type").unwrap_or_else(unsaid)
}

/// How a call of this type is made, and the field that holds its arguments; `None` for calls only this API knows.
fn call_kind(kind: &str) -> Option<(CallKind, &'static str)> {
    match kind {
        "function_call" => Some((CallKind::Function, "arguments")),
        "custom_tool_call" => Some((CallKind::Custom, "input")),
        _ => None,
    }
}

/// Type and argument field of a call that was made so.
const fn call_words(kind: CallKind) -> (&'static str, &'static str) {
    match kind {
        CallKind::Function => ("function_call", "arguments"),
        CallKind::Custom => ("custom_tool_call", "input"),
    }
}

/// The words of a content part and the type to be told when it is not the usual one; `None` when it is no text.
fn words(part: &RawObject<'_>) -> Option<String> {
    match text(part, "type")?.as_str() {
        "input_text" | "output_text" | "text" => text(part, "text"),
        "refusal" => text(part, "refusal"),
        _ => None,
    }
}

/// The fields beside a text: those of its part and those of its item.
fn beside(part: &RawObject<'_>, item: &JsonFields) -> Option<Opaque> {
    let mut fields = rest(part, &["type", "text", "refusal"]);
    if text(part, "type").as_deref() == Some("refusal") {
        fields.say("type", "refusal");
    }
    if !item.is_empty() {
        fields.put(ITEM, item.json());
    }
    kept(&fields, NAME)
}

/// The fields beside a text, taken apart again: those of its part, those of its item, and whether it is a refusal.
fn apart(extra: Option<&Opaque>) -> Beside {
    let extra = of(extra, NAME).and_then(|extra| RawObject::parse(extra).ok());
    let Some(mut part) = extra.as_ref().map(all) else { return Beside::default() };
    let refusal = part.take("type").is_some();
    let item = part.take(ITEM).map(|json| JsonFields::of(&json)).unwrap_or_default();
    Beside { part, item, refusal }
}

/// Fields beside a text.
#[derive(Clone, Debug, Default)]
struct Beside {
    part: JsonFields,
    item: JsonFields,
    refusal: bool,
}

/// True for a thought that a server could make nothing of, unless it remembers it: it has only a name and a summary.
fn is_hollow(item: &RawObject<'_>) -> bool {
    let sealed = said(item, "encrypted_content").is_some();
    kind(item) == "reasoning" && !sealed && list(item, "content").is_empty()
}

/// What an item is to other items of its kind.
#[derive(Debug, PartialEq, Eq)]
enum Tie {
    /// It may be answered under this id.
    Asks(String),
    /// It answers the item with this id.
    Answers(String),
    /// Neither.
    Free,
}

/// How an item that only this API knows is tied to another.
fn tie(item: &RawObject<'_>) -> Tie {
    let kind = kind(item);
    let id = |key: &str| text(item, key);
    if let Some(id) = id("approval_request_id") {
        return Tie::Answers(id);
    }
    match id("call_id") {
        Some(call) if kind.ends_with("_output") => Tie::Answers(call),
        Some(call) => Tie::Asks(call),
        None if kind == "mcp_approval_request" => id("id").map_or(Tie::Free, Tie::Asks),
        None => Tie::Free,
    }
}

/// What the API counted; it counts what was cached into what was read.
fn usage(response: &RawObject<'_>) -> Option<komado_core::journal::Usage> {
    let told = object(response, "usage")?;
    let details = object(&told, "input_tokens_details");
    let detail = |key: &str| details.as_ref().and_then(|details| number(details, key)).unwrap_or(0);
    let (read, written) = (detail("cached_tokens"), detail("cache_write_tokens"));
    Some(komado_core::journal::Usage {
        input_tokens: number(&told, "input_tokens")?.saturating_sub(read).saturating_sub(written),
        output_tokens: number(&told, "output_tokens").unwrap_or(0),
        cache_creation_tokens: written,
        cache_read_tokens: read,
    })
}
