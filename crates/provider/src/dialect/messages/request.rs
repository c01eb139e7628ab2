//! A request, written a message at a time.

use super::NAME;
use super::system::{self, System};
use crate::dialect::json::{
    self, JsonFields, call_extra, call_fields, field, inner, kept, number, object, of, opaque, parsed,
    quoted, rest, said, splice, text, write_string,
};
use crate::dialect::{
    BadRequest, Dialect, ModelRequest, ParsedRequest, Read, RequestOutput, ToolUse, WriteRequest, tools,
};
use komado_core::journal::Setup;
use komado_core::message::{Call, CallKind, ImageSource, Message, MessagePart, Opaque, Role, ToolOutcome};
use komado_core::raw::{self, RawJson, RawObject};
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::io::{self, Write};

/// Said by the user when the model would begin.
const OPENER: &str = "(continued)";

/// The longest answer when none is asked for: the API wants a number.
const MAX_TOKENS: u64 = 4096;

/// Marks what the provider shall cache.
const MARK: &str = "\"cache_control\"";

/// A request being written.
#[derive(Debug)]
pub struct Writer {
    system: System,
    /// True when the list of messages was opened.
    begun: bool,
    /// Whose message is open: the user's, the model's, or one of instructions.
    open: Option<Role>,
    /// What stands after the messages.
    tail: String,
    /// True when someone has marked what shall be cached.
    marked: bool,
    /// True when only elements are written: who speaks before them is not known.
    alone: bool,
}

impl Writer {
    pub(in crate::dialect) fn begin(ask: &ModelRequest<'_>, out: &mut dyn Write) -> io::Result<Self> {
        write!(out, "{{\"model\":{}", quoted(ask.model))?;
        let tools = tools::tools(ask.setup, Dialect::Messages);
        if let Some(tools) = &tools {
            write!(out, ",\"tools\":{tools}")?;
        }
        let system = System::begin(ask.setup, out)?;
        let tail = tail(ask, tools.is_some());
        let list = system::raw_list(ask.setup);
        let marked =
            [Some(&tail), tools.as_ref(), list.as_ref()].into_iter().flatten().any(|s| s.contains(MARK));
        Ok(Self { system, begun: false, open: None, tail, marked, alone: false })
    }

    /// Writes messages alone.
    pub(in crate::dialect) fn of_elements() -> Self {
        let (system, tail) = (System::Absent, String::new());
        Self { system, begun: true, open: None, tail, marked: true, alone: true }
    }

    /// Writes what closes the last message.
    pub(in crate::dialect) fn close(&self, out: &mut dyn Write) -> io::Result<()> {
        if self.open.is_some() { out.write_all(b"]}") } else { Ok(()) }
    }

    fn begin_messages(&mut self, out: &mut dyn Write) -> io::Result<()> {
        if std::mem::replace(&mut self.begun, true) {
            return Ok(());
        }
        self.system.close(out)?;
        out.write_all(b",\"messages\":[")
    }

    /// Makes room for the next block of `wire`: in the open message when it is theirs, else in a new one.
    fn next_block(&mut self, wire: Role, message: Option<&Message>, out: &mut dyn Write) -> io::Result<()> {
        if self.open == Some(wire) {
            return out.write_all(b",");
        }
        if self.open.is_none() && wire == Role::Assistant && !self.alone {
            self.next_block(Role::User, None, out)?;
            write_text(OPENER, None, out)?;
        }
        out.write_all(if self.open.is_some() { b"]},{" } else { b"{" })?;
        // A tool's answer has its fields in its own block.
        let extra = message.filter(|message| message.role != Role::Tool).and_then(|m| m.extra.as_ref());
        match of(extra, NAME).filter(|extra| is_native(extra)) {
            Some(native) if wire == Role::System => {
                out.write_all(inner(native).unwrap_or_default().as_bytes())?
            }
            native => {
                write!(out, "\"role\":\"{}\"", wire.name())?;
                splice(of(extra, NAME).filter(|_| native.is_none()), out)?;
            }
        }
        self.open = Some(wire);
        out.write_all(b",\"content\":[")
    }

    /// True when the API takes a system message here. Among elements alone it was there, so it was taken.
    fn may_instruct(&self) -> bool {
        matches!(self.open, Some(Role::User | Role::System)) || self.alone && self.open.is_none()
    }

    /// Whose message it becomes. A system message in the middle stays one where this API had it so and would take it
    /// again, right after the user's.
    fn wire(&self, message: &Message) -> Role {
        let native = || of(message.extra.as_ref(), NAME).is_some_and(is_native);
        match message.role {
            Role::Assistant => Role::Assistant,
            Role::System if self.may_instruct() && native() => Role::System,
            _ => Role::User,
        }
    }
}

impl WriteRequest for Writer {
    fn message(&mut self, message: &Message, out: &mut RequestOutput<'_>) -> io::Result<()> {
        let instructs = matches!(message.role, Role::System | Role::Developer);
        let leads = instructs && !self.begun;
        // In a prompt that is one text there is no place for a mark.
        self.marked |= is_marked(message) && (!leads || self.system == System::List);
        if leads {
            return self.system.add(message, out);
        }
        self.begin_messages(out)?;
        let wire = self.wire(message);
        let mut silent = true;
        for part in message.parts.iter().filter(|part| is_shown(part)) {
            self.next_block(wire, Some(message), out)?;
            silent = false;
            match part {
                MessagePart::Text { text, extra } if instructs && wire == Role::User => {
                    write_text(&format!("<system>{text}</system>"), extra.as_ref(), out)?;
                }
                part => write_block(part, message.extra.as_ref(), out)?,
            }
        }
        if silent && self.open != Some(wire) {
            self.next_block(wire, Some(message), out)?;
            write_text(EMPTY, None, out)?;
        }
        Ok(())
    }

    fn end(&mut self, out: &mut dyn Write) -> io::Result<()> {
        self.begin_messages(out)?;
        if self.open.is_none() {
            self.next_block(Role::User, None, out)?;
            write_text(OPENER, None, out)?;
        }
        write!(out, "]}}]{}", self.tail)?;
        if !self.marked {
            out.write_all(b",\"cache_control\":{\"type\":\"ephemeral\"}")?;
        }
        out.write_all(b"}")
    }
}

/// True for the field that says: this API had it as a system message among the others.
fn is_native(extra: &str) -> bool {
    RawObject::parse(extra).is_ok_and(|extra| extra.get("role").is_some())
}

/// Everything that may change from one request to the next.
///
/// Tools that may not be called are named as ever: another `tool_choice` would cost the cached messages, for the sake of
/// which they are named at all. What is asked for says that none is to be called. Only a choice that demands a call has
/// to give way.
fn tail(ask: &ModelRequest<'_>, has_tools: bool) -> String {
    let own = ["model", "messages", "system", "tools", "stream"];
    let mut params = tools::params(ask.setup, Dialect::Messages, &own);
    let mut fields = JsonFields::default();
    fields.put("max_tokens", max_tokens(ask, &params).to_string());
    fields.put("stream", ask.stream.to_string());
    let demands = params.get("tool_choice").is_some_and(|json| !json.contains("\"auto\""));
    if ask.tools == ToolUse::NamedOnly && demands {
        params.take("tool_choice");
        if has_tools {
            fields.put("tool_choice", "{\"type\":\"none\"}");
        }
    }
    params.take("max_tokens");
    params.iter().for_each(|(key, json)| fields.put(key, json));
    format!(",{}", fields.inner())
}

/// The longest answer. The API counts thoughts into it and wants room beside them, so a shorter answer than the
/// thoughts may be long is added to them.
fn max_tokens(ask: &ModelRequest<'_>, params: &JsonFields) -> u64 {
    let Some(wanted) = ask.max_tokens else {
        return params.get("max_tokens").and_then(|json| json.parse().ok()).unwrap_or(MAX_TOKENS);
    };
    let thinking = params.get("thinking").and_then(|json| RawObject::parse(json).ok());
    match thinking.and_then(|thinking| number(&thinking, "budget_tokens")) {
        Some(thoughts) if thoughts >= wanted => thoughts.saturating_add(wanted),
        _ => wanted,
    }
}

/// True when the message carries a cache mark of this API.
fn is_marked(message: &Message) -> bool {
    of(message.extra.as_ref(), NAME).is_some_and(|extra| extra.contains(MARK)) || any_marked(&message.parts)
}

fn any_marked(parts: &[MessagePart]) -> bool {
    parts.iter().any(|part| match part {
        MessagePart::Text { extra, .. } => of(extra.as_ref(), NAME).is_some_and(|extra| extra.contains(MARK)),
        MessagePart::Opaque(opaque) => of(Some(opaque), NAME).is_some_and(|json| json.contains(MARK)),
        MessagePart::Call(call) => call.extra.as_ref().is_some_and(|extra| extra.get().contains(MARK)),
        MessagePart::Result(outcome) => any_marked(&outcome.content),
        MessagePart::Image { .. } | MessagePart::Reasoning { .. } => false,
    })
}

// A request, read.
//
// A user's message that answers calls becomes several: one for each tool, then what the user says. Blocks no other dialect
// has are kept whole.

const KNOWN: [&str; 5] = ["model", "messages", "tools", "max_tokens", "stream"];

/// Reads a request.
pub(in crate::dialect) fn read(body: &str) -> Result<ParsedRequest, BadRequest> {
    let request = parsed(body, "request")?;
    raw::check(body).map_err(|why| BadRequest::new("request", why))?;
    let missing = |key: &str| BadRequest::new(key, "it is missing; give it");
    let list: Vec<&RawValue> = field(&request, "", "messages")?.ok_or_else(|| missing("messages"))?;
    let elements: Vec<&str> = list.into_iter().map(RawValue::get).collect();
    Ok(ParsedRequest {
        messages: read_elements(&elements)?.messages,
        model: field(&request, "", "model")?.ok_or_else(|| missing("model"))?,
        setup: read_setup(&request)?,
        max_tokens: field(&request, "", "max_tokens")?,
        stream: field(&request, "", "stream")?.unwrap_or(false),
    })
}

/// Reads messages that follow on others.
pub(in crate::dialect) fn read_elements(elements: &[&str]) -> Result<Read, BadRequest> {
    let mut read = Read::default();
    for (i, element) in elements.iter().enumerate() {
        let from = read.messages.len();
        read_message(element, &format!("messages[{i}]"), &mut read.messages)?;
        read.became.push(from..read.messages.len());
    }
    Ok(read)
}

/// A system prompt that is a list of blocks is kept as it came among the parameters, beside its words.
fn read_setup(request: &RawObject<'_>) -> Result<Setup, BadRequest> {
    let mut known = KNOWN.to_vec();
    let system = match request.get("system") {
        Some(value) if value.get().starts_with('[') => system::words(value),
        Some(value) => {
            known.push("system");
            let words: Result<String, _> = serde_json::from_str(value.get());
            Some(words.map_err(|_| BadRequest::new("system", "it must be a text or a list of blocks"))?)
        }
        None => None,
    };
    let tools = json::tools(request)?;
    Ok(Setup { system, tools, params: request.rest(&known), dialect: Some(NAME.into()) })
}

fn read_message(json: &str, place: &str, messages: &mut Vec<Message>) -> Result<(), BadRequest> {
    let message = parsed(json, place)?;
    let role = text(&message, "role").unwrap_or_default();
    let role = match role.as_str() {
        "user" => Role::User,
        "assistant" => Role::Assistant,
        "system" => Role::System,
        other => {
            let why = format!("unknown role: {other:?}; known are user, assistant and system");
            return Err(BadRequest::new(place, why));
        }
    };
    // The role of a system message stays among its fields: that is how the writer knows that this API had it so.
    let known: &[&str] = if role == Role::System { &["content"] } else { &["role", "content"] };
    let extra = kept(&rest(&message, known), NAME);
    let before = messages.len();
    let mut parts = Vec::new();
    for (i, block) in json::parts(&message, "content", place, "blocks")?.into_iter().enumerate() {
        let place = format!("{place}.content[{i}]");
        match read_block(&block, role, &place)? {
            Block::Part(part) => parts.push(part),
            Block::Answer(outcome, extra) => {
                messages
                    .push(Message { extra, ..Message::of(Role::Tool, vec![MessagePart::Result(outcome)]) });
            }
        }
    }
    let answered = messages.len() > before;
    if parts.is_empty() && answered && extra.is_none() {
        return Ok(());
    }
    if parts.is_empty() {
        parts.push(MessagePart::text(""));
    }
    messages.push(Message { role, name: None, parts, extra });
    Ok(())
}

enum Block {
    Part(MessagePart),
    Answer(ToolOutcome, Option<Opaque>),
}

fn read_block(json: &str, role: Role, place: &str) -> Result<Block, BadRequest> {
    let bad = |why: String| BadRequest::new(place, why);
    let block = parsed(json, place)?;
    let kind = text(&block, "type").ok_or_else(|| bad("a block has no `type`".into()))?;
    let part = match (kind.as_str(), role) {
        ("text", _) => {
            let words: Option<String> = block.read("text").map_err(|e| bad(e.to_string()))?;
            let words = words.ok_or_else(|| bad("a text block has no `text`".into()))?;
            Some(MessagePart::Text { text: words, extra: kept(&rest(&block, &["type", "text"]), NAME) })
        }
        ("image", _) => read_image(&block),
        ("thinking", Role::Assistant) => read_thinking(&block),
        ("tool_use", Role::Assistant) => Some(MessagePart::Call(read_call(&block).map_err(bad)?)),
        ("tool_result", Role::User) => return read_answer(&block, place),
        _ => None,
    };
    let whole = || RawJson::parse(json).map(|json| MessagePart::Opaque(opaque(NAME, json)));
    part.map_or_else(whole, Ok).map(Block::Part).map_err(|e| bad(e.to_string()))
}

/// A picture with nothing but bytes or an address; anything more is kept whole.
fn read_image(block: &RawObject<'_>) -> Option<MessagePart> {
    if block.rest(&["type", "source"]).is_some() {
        return None;
    }
    let source = object(block, "source")?;
    let url = match text(&source, "type")?.as_str() {
        "base64" => format!("data:{};base64,{}", text(&source, "media_type")?, text(&source, "data")?),
        "url" => text(&source, "url")?,
        _ => return None,
    };
    Some(MessagePart::Image { source: ImageSource::Url { url }, detail: None })
}

/// A thought. An empty seal is none: so unsigned thoughts of other providers are told here.
fn read_thinking(block: &RawObject<'_>) -> Option<MessagePart> {
    if block.rest(&["type", "thinking", "signature"]).is_some() {
        return None;
    }
    Some(MessagePart::Reasoning { text: text(block, "thinking")?, signature: said(block, "signature") })
}

fn read_call(block: &RawObject<'_>) -> Result<Call, String> {
    let need = |key: &str| text(block, key).ok_or_else(|| format!("a tool_use block has no `{key}`"));
    Ok(Call {
        id: need("id")?,
        name: need("name")?,
        arguments: block.get("input").map_or_else(|| "{}".into(), arguments),
        kind: CallKind::Function,
        extra: call_extra(&rest(block, &["type", "id", "name", "input"]), NAME),
    })
}

fn read_answer(block: &RawObject<'_>, place: &str) -> Result<Block, BadRequest> {
    let call_id = text(block, "tool_use_id")
        .ok_or_else(|| BadRequest::new(place, "a tool_result block has no `tool_use_id`"))?;
    let mut content = Vec::new();
    for (i, inside) in json::parts(block, "content", place, "blocks")?.into_iter().enumerate() {
        // A tool does not call, think or answer; what looks like it is kept whole.
        if let Block::Part(part) = read_block(&inside, Role::Tool, &format!("{place}.content[{i}]"))? {
            content.push(part);
        }
    }
    let is_error = block.read("is_error").ok().flatten().unwrap_or(false);
    let outcome = ToolOutcome { call_id, content, is_error, ..ToolOutcome::default() };
    let extra = kept(&rest(block, &["type", "tool_use_id", "content", "is_error"]), NAME);
    Ok(Block::Answer(outcome, extra))
}

// One part as a content block.

/// Stands where a message or a failed tool has nothing to say: the API takes no empty text.
pub(super) const EMPTY: &str = "(empty)";

/// The field in which arguments travel that are not a JSON object.
const RAW: &str = "_raw";

/// True when `part` becomes a block.
pub(super) fn is_shown(part: &MessagePart) -> bool {
    match part {
        MessagePart::Text { text, .. } => !is_blank(text),
        MessagePart::Image { .. } | MessagePart::Call(_) | MessagePart::Result(_) => true,
        MessagePart::Reasoning { signature, .. } => signature.is_some(),
        MessagePart::Opaque(opaque) => opaque.dialect == NAME,
    }
}

/// True for a text that the API refuses.
pub(super) fn is_blank(text: &str) -> bool {
    text.trim().is_empty()
}

/// Writes a part that is shown; `extra` are the fields that a tool's answer has beside its own.
fn write_block(part: &MessagePart, extra: Option<&Opaque>, out: &mut RequestOutput<'_>) -> io::Result<()> {
    match part {
        MessagePart::Text { text, extra } => write_text(text, extra.as_ref(), out),
        MessagePart::Image { source, .. } => write_image(source, out),
        MessagePart::Call(call) => write_call(call, out),
        MessagePart::Result(outcome) => write_result(outcome, extra, out),
        MessagePart::Reasoning { text, signature } => {
            write_thinking(text, signature.as_deref().unwrap_or_default(), out)
        }
        MessagePart::Opaque(opaque) => out.write_all(opaque.json.get().as_bytes()),
    }
}

/// Writes words, with the fields beside them that are this dialect's.
pub(super) fn write_text(text: &str, extra: Option<&Opaque>, out: &mut dyn Write) -> io::Result<()> {
    out.write_all(b"{\"type\":\"text\",\"text\":")?;
    write_string(text, out)?;
    splice(of(extra, NAME), out)?;
    out.write_all(b"}")
}

/// Writes a thought. It may be signed, so it is written exactly as it was heard.
pub(super) fn write_thinking(text: &str, seal: &str, out: &mut dyn Write) -> io::Result<()> {
    let (text, seal) = (quoted(text), quoted(seal));
    write!(out, "{{\"type\":\"thinking\",\"thinking\":{text},\"signature\":{seal}}}")
}

/// An id in letters that this API takes. Another provider's may have others (`functions.read:0`); each of those becomes
/// its number, so that no two ids become one.
fn plain_id(id: &str) -> Cow<'_, str> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    if !id.is_empty() && id.chars().all(is_plain) {
        return Cow::Borrowed(id);
    }
    let spelt = id.chars().map(|c| if is_plain(c) { c.to_string() } else { format!("_{:x}", u32::from(c)) });
    Cow::Owned(format!("id_{}", spelt.collect::<String>()))
}

/// Writes a call.
pub(super) fn write_call(call: &Call, out: &mut dyn Write) -> io::Result<()> {
    let (id, name, input) = (quoted(&plain_id(&call.id)), quoted(&call.name), input(&call.arguments));
    write!(out, "{{\"type\":\"tool_use\",\"id\":{id},\"name\":{name},\"input\":{input}")?;
    splice(call_fields(call.extra.as_ref(), NAME).as_deref(), out)?;
    out.write_all(b"}")
}

fn write_result(
    outcome: &ToolOutcome,
    extra: Option<&Opaque>,
    out: &mut RequestOutput<'_>,
) -> io::Result<()> {
    out.write_all(b"{\"type\":\"tool_result\",\"tool_use_id\":")?;
    write_string(&plain_id(&outcome.call_id), out)?;
    let shown: Vec<&MessagePart> = outcome.content.iter().filter(is_content).collect();
    match shown.as_slice() {
        // An error must say something; any other answer may be silent.
        [] if outcome.is_error => write!(out, ",\"content\":{}", quoted(EMPTY))?,
        [] => {}
        [MessagePart::Text { text, extra }] if of(extra.as_ref(), NAME).is_none() => {
            out.write_all(b",\"content\":")?;
            write_string(text, out)?;
        }
        parts => {
            for (i, part) in parts.iter().enumerate() {
                out.write_all(if i == 0 { b",\"content\":[" } else { b"," })?;
                write_block(part, None, out)?;
            }
            out.write_all(b"]")?;
        }
    }
    if outcome.is_error {
        out.write_all(b",\"is_error\":true")?;
    }
    splice(of(extra, NAME), out)?;
    out.write_all(b"}")
}

/// What a tool's answer may hold.
fn is_content(part: &&MessagePart) -> bool {
    matches!(part, MessagePart::Text { .. } | MessagePart::Image { .. } | MessagePart::Opaque(_))
        && is_shown(part)
}

fn write_image(source: &ImageSource, out: &mut RequestOutput<'_>) -> io::Result<()> {
    out.write_all(b"{\"type\":\"image\",\"source\":{\"type\":")?;
    match source {
        ImageSource::Blob { blob, media_type, .. } => {
            write!(out, "\"base64\",\"media_type\":{},\"data\":\"", quoted(media_type))?;
            out.blob(blob)?;
            out.write_all(b"\"}}")
        }
        ImageSource::Url { url } => match data_url(url) {
            Some((media, bytes)) => {
                write!(out, "\"base64\",\"media_type\":{},\"data\":", quoted(media))?;
                write_string(bytes, out)?;
                out.write_all(b"}}")
            }
            None => write!(out, "\"url\",\"url\":{}}}}}", quoted(url)),
        },
    }
}

/// Media type and base64 of a `data:` URL.
fn data_url(url: &str) -> Option<(&str, &str)> {
    url.strip_prefix("data:")?.split_once(";base64,")
}

/// A call's arguments as the object the API wants.
pub(super) fn input(arguments: &str) -> Cow<'_, str> {
    let arguments = arguments.trim();
    if arguments.is_empty() {
        return Cow::Borrowed("{}");
    }
    if is_object(arguments) {
        return Cow::Borrowed(arguments);
    }
    Cow::Owned(format!("{{\"{RAW}\":{}}}", quoted(arguments)))
}

/// A call's arguments from the object the API sent; what [`input`] had to wrap is as it was.
pub(super) fn arguments(input: &RawValue) -> String {
    let json = RawJson::from_value(input).get().to_owned();
    let Ok(object) = RawObject::parse(&json) else { return json };
    let words = match object.0.as_slice() {
        [(key, value)] if key == RAW => serde_json::from_str::<String>(value.get()).ok(),
        _ => None,
    };
    words.filter(|words| !words.trim().is_empty() && !is_object(words)).unwrap_or(json)
}

fn is_object(text: &str) -> bool {
    RawObject::parse(text).is_ok() && raw::check(text).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_that_are_no_object_travel_and_come_back() {
        for arguments_in in
            ["{\"p\":1.0,\"窓\":12345678901234567890}", "{\"a\":", "[1]", "free 文", "{\"x\":\"\\ud800\"}"]
        {
            let json = input(arguments_in).into_owned();
            assert!(is_object(&json), "{json}");
            let value: Box<RawValue> = serde_json::from_str(&json).unwrap();
            assert_eq!(arguments(&value), arguments_in);
        }
        assert_eq!(input(""), "{}");
        let own: Box<RawValue> = serde_json::from_str(r#"{"_raw":"{}"}"#).unwrap();
        assert_eq!(arguments(&own), r#"{"_raw":"{}"}"#);
    }
}
