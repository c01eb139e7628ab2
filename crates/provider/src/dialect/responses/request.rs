//! A request, written a message at a time.

use super::{NAME, Tie, apart, beside, call_kind, call_words, is_hollow, kind, tie, words};
use crate::dialect::json::{
    self, JsonFields, call_extra, call_fields, field, kept, of, opaque, parsed, quoted, rest, splice, text,
    write_string,
};
use crate::dialect::{
    BadRequest, Dialect, ModelRequest, ParsedRequest, Read, RequestOutput, ToolUse, WriteRequest, tools,
};
use komado_core::journal::Setup;
use komado_core::message::{Call, CallKind, ImageSource, Message, MessagePart, Opaque, Role, ToolOutcome};
use komado_core::raw::{self, RawJson, RawObject};
use serde_json::value::RawValue;
use std::io::{self, Write};
use std::ops::Range;

/// A request being written.
#[derive(Debug)]
pub struct Writer {
    /// True when an item was written.
    begun: bool,
    /// True when the server keeps what it answers.
    stores: bool,
    /// Ids of the custom calls made last: their outputs are of another type.
    custom: Vec<String>,
    /// What stands after the input.
    tail: String,
}

impl Writer {
    pub(in crate::dialect) fn begin(ask: &ModelRequest<'_>, out: &mut dyn Write) -> io::Result<Self> {
        write!(out, "{{\"model\":{}", quoted(ask.model))?;
        if let Some(system) = ask.setup.system.as_deref().filter(|system| !system.is_empty()) {
            write!(out, ",\"instructions\":{}", quoted(system))?;
        }
        let tools = tools::tools(ask.setup, Dialect::Responses);
        if let Some(tools) = &tools {
            write!(out, ",\"tools\":{tools}")?;
        }
        out.write_all(b",\"input\":[")?;
        let (tail, stores) = tail(ask, tools.is_some());
        Ok(Self { begun: false, stores, custom: Vec::new(), tail })
    }

    /// Writes items alone. What the server keeps is not known here, so no thought is taken for hollow.
    pub(in crate::dialect) fn of_elements() -> Self {
        Self { begun: false, stores: true, custom: Vec::new(), tail: String::new() }
    }

    fn next_item(&mut self, out: &mut dyn Write) -> io::Result<()> {
        if std::mem::replace(&mut self.begun, true) { out.write_all(b",") } else { Ok(()) }
    }

    fn assistant(&mut self, message: &Message, out: &mut dyn Write) -> io::Result<()> {
        if message.calls().next().is_some() {
            let custom = message.calls().filter(|call| call.kind == CallKind::Custom);
            self.custom = custom.map(|call| call.id.clone()).collect();
        }
        for part in &message.parts {
            match part {
                MessagePart::Text { text, .. } if text.is_empty() => {}
                MessagePart::Text { text, extra } => {
                    self.next_item(out)?;
                    write_answer(text, extra.as_ref(), out)?;
                }
                MessagePart::Call(call) => {
                    self.next_item(out)?;
                    write_call(call, out)?;
                }
                MessagePart::Opaque(opaque) => self.opaque(opaque, out)?,
                MessagePart::Image { .. } | MessagePart::Result(_) | MessagePart::Reasoning { .. } => {}
            }
        }
        Ok(())
    }

    /// A message of anyone but the model: its parts are one item, unless one of them is an item itself.
    fn spoken(&mut self, message: &Message, out: &mut RequestOutput<'_>) -> io::Result<()> {
        let mut open = false;
        for part in &message.parts {
            if is_content(part) {
                if open {
                    out.write_all(b",")?;
                } else {
                    self.next_item(out)?;
                    write!(out, "{{\"type\":\"message\",\"role\":\"{}\"", message.role.name())?;
                    splice(of(message.extra.as_ref(), NAME), out)?;
                    out.write_all(b",\"content\":[")?;
                    open = true;
                }
                write_content(part, out)?;
            } else if let MessagePart::Opaque(opaque) = part {
                if std::mem::take(&mut open) {
                    out.write_all(b"]}")?;
                }
                self.opaque(opaque, out)?;
            }
        }
        if open { out.write_all(b"]}") } else { Ok(()) }
    }

    fn opaque(&mut self, opaque: &Opaque, out: &mut dyn Write) -> io::Result<()> {
        let Some(json) = of(Some(opaque), NAME) else { return Ok(()) };
        if !self.stores && RawObject::parse(json).is_ok_and(|item| is_hollow(&item)) {
            return Ok(());
        }
        self.next_item(out)?;
        out.write_all(json.as_bytes())
    }

    fn result(
        &mut self,
        outcome: &ToolOutcome,
        extra: Option<&Opaque>,
        out: &mut RequestOutput<'_>,
    ) -> io::Result<()> {
        let kind = if self.custom.contains(&outcome.call_id) { CallKind::Custom } else { CallKind::Function };
        self.next_item(out)?;
        let mut fields = JsonFields::of(of(extra, NAME).unwrap_or_default());
        let told = fields.take("type");
        let (kind, id) = (quoted(&format!("{}_output", call_words(kind).0)), quoted(&outcome.call_id));
        write!(out, "{{\"type\":{},\"call_id\":{id},\"output\":", told.unwrap_or(kind))?;
        let own = |part: &&MessagePart| matches!(part, MessagePart::Opaque(opaque) if opaque.dialect == NAME);
        let shown: Vec<&MessagePart> = outcome.content.iter().filter(|p| is_content(p) || own(p)).collect();
        match shown.as_slice() {
            [] => out.write_all(b"\"\"")?,
            [MessagePart::Text { text, extra }] if of(extra.as_ref(), NAME).is_none() => {
                write_string(text, out)?
            }
            parts => {
                for (i, part) in parts.iter().enumerate() {
                    out.write_all(if i == 0 { b"[" } else { b"," })?;
                    write_content(part, out)?;
                }
                out.write_all(b"]")?;
            }
        }
        splice(Some(&fields.json()), out)?;
        out.write_all(b"}")
    }
}

impl WriteRequest for Writer {
    fn message(&mut self, message: &Message, out: &mut RequestOutput<'_>) -> io::Result<()> {
        match (message.role, message.outcome()) {
            (Role::Assistant, _) => self.assistant(message, out),
            (_, Some(outcome)) => self.result(outcome, message.extra.as_ref(), out),
            (_, None) => self.spoken(message, out),
        }
    }

    fn end(&mut self, out: &mut dyn Write) -> io::Result<()> {
        write!(out, "]{}}}", self.tail)
    }
}

/// Everything that may change from one request to the next, and whether the server keeps its answers.
fn tail(ask: &ModelRequest<'_>, has_tools: bool) -> (String, bool) {
    let own = ["model", "input", "instructions", "tools", "stream"];
    let mut params = tools::params(ask.setup, Dialect::Responses, &own);
    let mut fields = JsonFields::default();
    fields.put("stream", ask.stream.to_string());
    if let Some(most) = ask.max_tokens {
        params.take("max_output_tokens");
        fields.put("max_output_tokens", most.to_string());
    }
    if ask.tools == ToolUse::NamedOnly {
        params.take("tool_choice");
        if has_tools {
            fields.say("tool_choice", "none");
        }
    }
    params.iter().for_each(|(key, json)| fields.put(key, json));
    fields.suggest("store", "false");
    (format!(",{}", fields.inner()), fields.get("store") == Some("true"))
}

/// True for what stands inside a message or an output; anything else opaque is an item.
fn is_content(part: &MessagePart) -> bool {
    match part {
        MessagePart::Text { .. } | MessagePart::Image { .. } => true,
        MessagePart::Opaque(opaque) => of(Some(opaque), NAME)
            .and_then(|json| text(&RawObject::parse(json).ok()?, "type"))
            .is_some_and(|kind| kind.starts_with("input_")),
        MessagePart::Call(_) | MessagePart::Result(_) | MessagePart::Reasoning { .. } => false,
    }
}

fn write_content(part: &MessagePart, out: &mut RequestOutput<'_>) -> io::Result<()> {
    match part {
        MessagePart::Text { text, extra } => {
            out.write_all(b"{\"type\":\"input_text\",\"text\":")?;
            write_string(text, out)?;
            splice(of(extra.as_ref(), NAME), out)?;
            out.write_all(b"}")
        }
        MessagePart::Image { source, detail } => {
            out.write_all(b"{\"type\":\"input_image\",\"image_url\":")?;
            match source {
                ImageSource::Url { url } => write_string(url, out)?,
                ImageSource::Blob { blob, media_type, .. } => {
                    // The opening quote is ours, the closing one comes after the bytes.
                    let media = quoted(&format!("data:{media_type};base64,"));
                    out.write_all(&media.as_bytes()[..media.len() - 1])?;
                    out.blob(blob)?;
                    out.write_all(b"\"")?;
                }
            }
            if let Some(detail) = detail {
                write!(out, ",\"detail\":{}", quoted(detail))?;
            }
            out.write_all(b"}")
        }
        MessagePart::Opaque(opaque) => out.write_all(opaque.json.get().as_bytes()),
        MessagePart::Call(_) | MessagePart::Result(_) | MessagePart::Reasoning { .. } => Ok(()),
    }
}

/// What the model said, as an item of its own.
fn write_answer(text: &str, extra: Option<&Opaque>, out: &mut dyn Write) -> io::Result<()> {
    let beside = apart(extra);
    let (kind, field) = if beside.refusal { ("refusal", "refusal") } else { ("output_text", "text") };
    out.write_all(b"{\"type\":\"message\",\"role\":\"assistant\"")?;
    splice(Some(&beside.item.json()), out)?;
    write!(out, ",\"content\":[{{\"type\":\"{kind}\",\"{field}\":")?;
    write_string(text, out)?;
    splice(Some(&beside.part.json()), out)?;
    out.write_all(b"}]}")
}

fn write_call(call: &Call, out: &mut dyn Write) -> io::Result<()> {
    let (kind, field) = call_words(call.kind);
    let (id, name) = (quoted(&call.id), quoted(&call.name));
    write!(out, "{{\"type\":\"{kind}\",\"call_id\":{id},\"name\":{name},\"{field}\":")?;
    write_string(&call.arguments, out)?;
    splice(call_fields(call.extra.as_ref(), NAME).as_deref(), out)?;
    out.write_all(b"}")
}

// A request, read.
//
// Items become messages that can be admitted: what the model said, called and thought until someone else speaks is one
// message, so that calls made at once stay together. An item that only this API knows is kept whole, and what answers
// it goes into the same message: an edit takes both or none.

/// The type of an output that need not be told.
const OUTPUT: &str = "function_call_output";

const KNOWN: [&str; 6] = ["model", "input", "instructions", "tools", "max_output_tokens", "stream"];

/// Reads a request.
pub(in crate::dialect) fn read(body: &str) -> Result<ParsedRequest, BadRequest> {
    let request = parsed(body, "request")?;
    raw::check(body).map_err(|why| BadRequest::new("request", why))?;
    let setup = Setup {
        tools: json::tools(&request)?,
        system: field(&request, "", "instructions")?,
        params: request.rest(&KNOWN),
        dialect: Some(NAME.into()),
    };
    let model: Option<String> = field(&request, "", "model")?;
    Ok(ParsedRequest {
        model: model.ok_or_else(|| BadRequest::new("model", "it is missing; give it"))?,
        setup,
        messages: read_input(&request)?,
        max_tokens: field(&request, "", "max_output_tokens")?,
        stream: field(&request, "", "stream")?.unwrap_or(false),
    })
}

fn read_input(request: &RawObject<'_>) -> Result<Vec<Message>, BadRequest> {
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
    let (given_up, open): (Vec<&Call>, Vec<&Call>) = open.iter().partition(|call| call.name.is_empty());
    let ids = |calls: Vec<&Call>| calls.into_iter().map(|call| call.id.clone()).collect();
    let reader = Reader { open: ids(open), given_up: ids(given_up), ..Reader::default() };
    read_items(items.iter().copied(), reader)
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
    /// Calls that wait no more, and may be answered late.
    given_up: Vec<String>,
    batch: Option<usize>,
    /// What is neither call nor output and came while calls of a message wait that was read before: it can neither
    /// join that message nor stand between its calls and their outputs.
    late: Vec<(usize, Role, MessagePart)>,
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
            let json = RawJson::parse(json).map_err(|e| bad(e.to_string()))?;
            self.whole(&item, MessagePart::Opaque(opaque(NAME, json)));
        }
        Ok(())
    }

    /// Adds what the model said, called or thought.
    fn model(&mut self, part: MessagePart) -> Option<usize> {
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
    fn whole(&mut self, item: &RawObject<'_>, part: MessagePart) {
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
    fn message(&mut self, item: &RawObject<'_>, place: &str) -> Result<bool, BadRequest> {
        let name = text(item, "role").unwrap_or_default();
        let Some(role) = Role::named(&name).filter(|role| *role != Role::Tool) else {
            let why = format!("unknown role: {name:?}; known are user, assistant, system and developer");
            return Err(BadRequest::new(place, why));
        };
        let mut fields = rest(item, &["type", "role", "content"]);
        let mut parts = Vec::new();
        for part in json::parts(item, "content", place, "parts")? {
            let part = RawObject::parse(&part).map_err(|e| BadRequest::new(place, e))?;
            match words(&part) {
                Some(text) if role == Role::Assistant => {
                    parts.push(MessagePart::Text { text, extra: beside(&part, &fields) });
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
            parts.push(MessagePart::text(""));
        }
        if role == Role::Assistant {
            parts.into_iter().for_each(|part| _ = self.model(part));
        } else {
            self.push(Message { role, name: None, parts, extra: kept(&fields, NAME) });
        }
        Ok(true)
    }

    fn call(&mut self, item: &RawObject<'_>, kind: &str) -> Result<bool, String> {
        let Some((kind, field)) = call_kind(kind) else { return Ok(false) };
        let need = |key: &str| text(item, key).ok_or_else(|| format!("a call has no `{key}`"));
        let (id, name, arguments) = (need("call_id")?, need("name")?, need(field)?);
        let fields = rest(item, &["type", "call_id", "name", field]);
        let extra = call_extra(&fields, NAME);
        let call = MessagePart::Call(Call { id: id.clone(), name, arguments, kind, extra });
        if let Some(at) = self.model(call) {
            self.batch = Some(at);
            self.open.push(id);
        }
        Ok(true)
    }

    /// Reads an output; false when no call waits for it, so that it cannot be a result.
    fn output(&mut self, item: &RawObject<'_>, place: &str) -> Result<bool, BadRequest> {
        let id = text(item, "call_id").unwrap_or_default();
        let open = if self.open.contains(&id) { &mut self.open } else { &mut self.given_up };
        let Some(at) = open.iter().position(|call| *call == id) else { return Ok(false) };
        open.remove(at);
        let mut parts = Vec::new();
        for part in json::parts(item, "output", place, "parts")? {
            let object = RawObject::parse(&part).map_err(|e| BadRequest::new(place, e))?;
            let whole = || RawJson::parse(part.as_str()).map(|json| MessagePart::Opaque(opaque(NAME, json)));
            parts.push(read_content(&object).map_or_else(whole, Ok).map_err(|e| BadRequest::new(place, e))?);
        }
        let outcome = ToolOutcome { call_id: id, content: parts, ..ToolOutcome::default() };
        let mut fields = rest(item, &["type", "call_id", "output"]);
        if kind(item) != OUTPUT {
            // The call may be far away when this is written again.
            fields.say("type", &kind(item));
        }
        let extra = kept(&fields, NAME);
        self.push(Message { extra, ..Message::of(Role::Tool, vec![MessagePart::Result(outcome)]) });
        Ok(true)
    }
}

/// A part of what someone other than the model says; `None` when it stands for itself nowhere else.
fn read_content(part: &RawObject<'_>) -> Option<MessagePart> {
    let kind = text(part, "type")?;
    if let Some(words) = words(part).filter(|_| kind != "refusal") {
        return Some(MessagePart::Text { text: words, extra: kept(&rest(part, &["type", "text"]), NAME) });
    }
    if kind == "input_image" && rest(part, &["type", "image_url", "detail"]).is_empty() {
        let source = text(part, "image_url").map(|url| ImageSource::Url { url });
        if let Some(source) = source {
            return Some(MessagePart::Image { source, detail: text(part, "detail") });
        }
    }
    let whole = || RawJson::parse(json::all(part).json()).ok();
    kind.starts_with("input_").then(whole).flatten().map(|json| MessagePart::Opaque(opaque(NAME, json)))
}
