//! A request, read.
//!
//! Items become messages that can be admitted: what the model said, called and thought until someone else speaks is one
//! message, so that calls made at once stay together. An item that only this API knows is kept whole, and what answers
//! it goes into the same message: an edit takes both or none.

use super::NAME;
use super::item::{Tie, beside, call_kind, kind, tie, words};
use crate::ask::{Asked, BadRequest};
use crate::dialect::json::{self, call_extra, field, kept, opaque, parsed, rest, text};
use crate::dialect::tail::Read;
use komado_core::journal::Setup;
use komado_core::message::{Call, ImageSource, Message, Outcome, Part, Role};
use komado_core::raw::{self, Object, Raw};
use serde_json::value::RawValue;
use std::ops::Range;

/// The type of an output that need not be told.
const OUTPUT: &str = "function_call_output";

const KNOWN: [&str; 6] = ["model", "input", "instructions", "tools", "max_output_tokens", "stream"];

/// Reads a request.
pub(in crate::dialect) fn read(body: &str) -> Result<Asked, BadRequest> {
    let request = parsed(body, "request")?;
    raw::check(body).map_err(|why| BadRequest::new("request", why))?;
    let setup = Setup {
        tools: json::tools(&request)?,
        system: field(&request, "", "instructions")?,
        params: request.rest(&KNOWN),
        dialect: Some(NAME.into()),
    };
    let model: Option<String> = field(&request, "", "model")?;
    Ok(Asked {
        model: model.ok_or_else(|| BadRequest::new("model", "it is missing; give it"))?,
        setup,
        messages: read_input(&request)?,
        max_tokens: field(&request, "", "max_output_tokens")?,
        stream: field(&request, "", "stream")?.unwrap_or(false),
    })
}

fn read_input(request: &Object<'_>) -> Result<Vec<Message>, BadRequest> {
    let wrong = || BadRequest::new("input", "it must be a text or a list of items");
    // A request may lean on what the server remembers alone.
    let Some(input) = request.get("input") else { return Ok(Vec::new()) };
    if let Ok(text) = serde_json::from_str::<String>(input.get()) {
        return Ok(vec![Message::text(Role::User, text)]);
    }
    let items: Vec<&RawValue> = serde_json::from_str(input.get()).map_err(|_| wrong())?;
    let items = items.into_iter().map(RawValue::get);
    Ok(read_items(items, Reader::default())?.messages)
}

/// Reads items that follow on others, of whose calls `open` wait for an answer. An input that is a text is one.
pub(in crate::dialect) fn read_elements(items: &[&str], open: &[Call]) -> Result<Read, BadRequest> {
    if let [text] = items
        && let Ok(text) = serde_json::from_str::<String>(text)
    {
        return Ok(Read::one_by_one(vec![Message::text(Role::User, text)]));
    }
    let open = open.iter().map(|call| call.id.clone()).collect();
    read_items(items.iter().copied(), Reader { open, ..Reader::default() })
}

fn read_items<'a>(items: impl Iterator<Item = &'a str>, mut reader: Reader) -> Result<Read, BadRequest> {
    for (i, item) in items.enumerate() {
        reader.item(item, &format!("input[{i}]"))?;
        match reader.touched.take() {
            Some(at) => reader.became.push(at..at + 1),
            None => reader.became.push(0..0),
        }
        reader.say_late();
    }
    reader.open.clear();
    reader.say_late();
    Ok(Read { messages: reader.messages, became: reader.became })
}

#[derive(Default)]
struct Reader {
    messages: Vec<Message>,
    /// Which message each item became, or became a part of.
    became: Vec<Range<usize>>,
    /// The message that the item at hand has become a part of.
    touched: Option<usize>,
    /// Calls without an output so far, and the message that made them; `None` when it was read before.
    open: Vec<String>,
    batch: Option<usize>,
    /// What is neither call nor output and came while calls of a message wait that was read before: it can neither
    /// join that message nor stand between its calls and their outputs.
    late: Vec<(usize, Role, Part)>,
    /// Items that may be answered, and the message that holds them.
    asked: Vec<(String, usize)>,
    /// A message that holds answers: what the model says next is a new turn.
    answered: Option<usize>,
}

impl Reader {
    fn item(&mut self, json: &str, place: &str) -> Result<(), BadRequest> {
        let bad = |why: String| BadRequest::new(place, why);
        let item = parsed(json, place)?;
        let kind = kind(&item);
        let read = match kind.as_str() {
            "message" => self.message(&item, place)?,
            "function_call" | "custom_tool_call" => self.call(&item, &kind).map_err(bad)?,
            "function_call_output" | "custom_tool_call_output" => self.output(&item, place)?,
            _ => false,
        };
        if !read {
            let json = Raw::parse(json).map_err(|e| bad(e.to_string()))?;
            self.whole(&item, Part::Opaque(opaque(NAME, json)));
        }
        Ok(())
    }

    /// Adds what the model said, called or thought.
    fn model(&mut self, part: Part) -> Option<usize> {
        let last = self.messages.len().checked_sub(1);
        let goes_on = last.filter(|at| self.messages[*at].role == Role::Assistant && self.answered != last);
        let at = match goes_on {
            Some(at) => at,
            // While calls wait, whatever comes belongs to them: no one else may speak.
            None if !self.open.is_empty() => match self.batch {
                Some(at) => at,
                None => {
                    self.late.push((self.became.len(), Role::Assistant, part));
                    return None;
                }
            },
            None => {
                self.messages.push(Message::of(Role::Assistant, Vec::new()));
                self.messages.len() - 1
            }
        };
        self.messages[at].parts.push(part);
        self.touched = Some(at);
        Some(at)
    }

    /// Adds a message of its own.
    fn push(&mut self, message: Message) {
        self.touched = Some(self.messages.len());
        self.messages.push(message);
    }

    /// Says what had to wait until no call does.
    fn say_late(&mut self) {
        if self.late.is_empty() || !self.open.is_empty() {
            return;
        }
        for (item, role, part) in std::mem::take(&mut self.late) {
            match self.messages.last_mut() {
                Some(last) if last.role == role && role == Role::Assistant => last.parts.push(part),
                _ => self.messages.push(Message::of(role, vec![part])),
            }
            let at = self.messages.len() - 1;
            if let Some(became) = self.became.get_mut(item) {
                *became = at..at + 1;
            }
        }
    }

    /// Keeps an item that only this API knows.
    fn whole(&mut self, item: &Object<'_>, part: Part) {
        match tie(item) {
            Tie::Asks(id) => {
                if let Some(at) = self.model(part) {
                    self.asked.push((id, at));
                }
            }
            Tie::Answers(id) => match self.asked.iter().rev().find(|(asked, _)| *asked == id) {
                Some((_, at)) => {
                    self.messages[*at].parts.push(part);
                    (self.answered, self.touched) = (Some(*at), Some(*at));
                }
                None if self.open.is_empty() => self.push(Message::of(Role::User, vec![part])),
                None => match self.batch {
                    Some(at) => {
                        self.messages[at].parts.push(part);
                        self.touched = Some(at);
                    }
                    None => self.late.push((self.became.len(), Role::User, part)),
                },
            },
            Tie::Free if text(item, "role").is_some_and(|role| role != "assistant") => {
                self.push(Message::of(Role::User, vec![part]));
            }
            Tie::Free => {
                self.model(part);
            }
        }
    }

    /// Reads a message; false when it holds something that no other API has.
    fn message(&mut self, item: &Object<'_>, place: &str) -> Result<bool, BadRequest> {
        let name = text(item, "role").unwrap_or_default();
        let Some(role) = Role::named(&name).filter(|role| *role != Role::Tool) else {
            let why = format!("unknown role: {name:?}; known are user, assistant, system and developer");
            return Err(BadRequest::new(place, why));
        };
        let mut fields = rest(item, &["type", "role", "content"]);
        let mut parts = Vec::new();
        for part in json::parts(item, "content", place, "parts")? {
            let part = Object::parse(&part).map_err(|e| BadRequest::new(place, e))?;
            match words(&part) {
                Some(text) if role == Role::Assistant => {
                    parts.push(Part::Text { text, extra: beside(&part, &fields) });
                    // Each text is written as an item of its own, and no two items have one id.
                    fields.take("id");
                }
                _ if role == Role::Assistant => return Ok(false),
                _ => match read_content(&part) {
                    Some(part) => parts.push(part),
                    None => return Ok(false),
                },
            }
        }
        if parts.is_empty() {
            parts.push(Part::text(""));
        }
        if role == Role::Assistant {
            parts.into_iter().for_each(|part| _ = self.model(part));
        } else {
            self.push(Message { role, name: None, parts, extra: kept(&fields, NAME) });
        }
        Ok(true)
    }

    fn call(&mut self, item: &Object<'_>, kind: &str) -> Result<bool, String> {
        let Some((kind, field)) = call_kind(kind) else { return Ok(false) };
        let need = |key: &str| text(item, key).ok_or_else(|| format!("a call has no `{key}`"));
        let (id, name, arguments) = (need("call_id")?, need("name")?, need(field)?);
        let fields = rest(item, &["type", "call_id", "name", field]);
        let extra = call_extra(&fields, NAME);
        let call = Part::Call(Call { id: id.clone(), name, arguments, kind, extra });
        if let Some(at) = self.model(call) {
            self.batch = Some(at);
            self.open.push(id);
        }
        Ok(true)
    }

    /// Reads an output; false when no call waits for it, so that it cannot be a result.
    fn output(&mut self, item: &Object<'_>, place: &str) -> Result<bool, BadRequest> {
        let id = text(item, "call_id").unwrap_or_default();
        let Some(at) = self.open.iter().position(|call| *call == id) else { return Ok(false) };
        let mut parts = Vec::new();
        for part in json::parts(item, "output", place, "parts")? {
            let object = Object::parse(&part).map_err(|e| BadRequest::new(place, e))?;
            let whole = || Raw::parse(part.as_str()).map(|json| Part::Opaque(opaque(NAME, json)));
            parts.push(read_content(&object).map_or_else(whole, Ok).map_err(|e| BadRequest::new(place, e))?);
        }
        self.open.remove(at);
        let outcome = Outcome { call_id: id, content: parts, ..Outcome::default() };
        let mut fields = rest(item, &["type", "call_id", "output"]);
        if kind(item) != OUTPUT {
            // The call may be far away when this is written again.
            fields.say("type", &kind(item));
        }
        let extra = kept(&fields, NAME);
        self.push(Message { extra, ..Message::of(Role::Tool, vec![Part::Result(outcome)]) });
        Ok(true)
    }
}

/// A part of what someone other than the model says; `None` when it stands for itself nowhere else.
fn read_content(part: &Object<'_>) -> Option<Part> {
    let kind = text(part, "type")?;
    if let Some(words) = words(part).filter(|_| kind != "refusal") {
        return Some(Part::Text { text: words, extra: kept(&rest(part, &["type", "text"]), NAME) });
    }
    if kind == "input_image" && rest(part, &["type", "image_url", "detail"]).is_empty() {
        let source = text(part, "image_url").map(|url| ImageSource::Url { url });
        if let Some(source) = source {
            return Some(Part::Image { source, detail: text(part, "detail") });
        }
    }
    let whole = || Raw::parse(json::all(part).json()).ok();
    kind.starts_with("input_").then(whole).flatten().map(|json| Part::Opaque(opaque(NAME, json)))
}
