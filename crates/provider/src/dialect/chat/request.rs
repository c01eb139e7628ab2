//! A request for chat completions, a message at a time.
//!
//! Everything that may change from one request of a conversation to the next stands behind the messages, so that the
//! next request is this one's bytes and more, and the provider's cache knows them.

use crate::dialect::json::{JsonFields, field, kept, list, own, parsed, quoted, text};
use crate::dialect::{
    BadRequest, Dialect, ModelRequest, ParsedRequest, Read, RequestOutput, ToolUse, WriteRequest, tools,
};
use komado_core::journal::Setup;
use komado_core::message::{Call, CallKind, Message, MessagePart, Opaque, Role};
use komado_core::openai::{self, BadMessage, BlobReader, DIALECT};
use komado_core::raw::{self, RawJson, RawObject};
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::io::{self, Write};

/// What this writer writes itself.
const OWN: [&str; 6] =
    ["model", "messages", "stream", "stream_options", "max_tokens", "max_completion_tokens"];

/// Writes a request.
#[derive(Debug)]
pub struct Writer {
    /// True when a message stands before the next one.
    begun: bool,
    is_strict: bool,
    joins: bool,
    /// True when the last message is a text of the user that the next one may go on with.
    open: bool,
    tail: String,
}

impl Writer {
    /// Writes what stands before the messages of the conversation.
    pub(in crate::dialect) fn begin(ask: &ModelRequest<'_>, out: &mut dyn Write) -> io::Result<Self> {
        write!(out, "{{\"model\":{},\"messages\":[", quoted(ask.model))?;
        if let Some(system) = &ask.setup.system {
            write!(out, "{{\"role\":\"system\",\"content\":{}}}", quoted(system))?;
        }
        let (begun, is_strict, joins) = (ask.setup.system.is_some(), ask.is_strict, ask.joins);
        Ok(Self { begun, is_strict, joins, open: false, tail: tail(ask) })
    }

    /// Writes messages alone.
    pub(in crate::dialect) fn of_elements() -> Self {
        Self { begun: false, is_strict: false, joins: false, open: false, tail: String::new() }
    }

    /// Writes a text of the user and leaves it open, or goes on with the one before.
    fn join(&mut self, text: &str, out: &mut dyn Write) -> io::Result<()> {
        let quoted = quoted(text);
        let inner = &quoted.as_bytes()[1..quoted.len() - 1];
        if self.open {
            out.write_all(b"\\n\\n")?;
            return out.write_all(inner);
        }
        self.part(out)?;
        self.open = true;
        out.write_all(b"{\"role\":\"user\",\"content\":\"")?;
        out.write_all(inner)
    }

    /// Ends what is open.
    fn close(&mut self, out: &mut dyn Write) -> io::Result<()> {
        if std::mem::take(&mut self.open) { out.write_all(b"\"}") } else { Ok(()) }
    }

    /// Ends what is open and parts the next message from it.
    fn part(&mut self, out: &mut dyn Write) -> io::Result<()> {
        self.close(out)?;
        if std::mem::replace(&mut self.begun, true) { out.write_all(b",") } else { Ok(()) }
    }
}

impl WriteRequest for Writer {
    fn message(&mut self, message: &Message, out: &mut RequestOutput<'_>) -> io::Result<()> {
        if let Some(text) = plain(message).filter(|_| self.joins) {
            return self.join(text, out);
        }
        self.part(out)?;
        let message = if self.is_strict { left_out(message) } else { filled(message) };
        if let Some(old) = written(&message, out.blobs)? {
            return out.write_all(old.as_bytes());
        }
        openai::write(&message, out.blobs, out.bytes)
    }

    fn end(&mut self, out: &mut dyn Write) -> io::Result<()> {
        self.close(out)?;
        write!(out, "]{}}}", self.tail)
    }
}

/// The words of a user's message that is nothing else.
fn plain(message: &Message) -> Option<&str> {
    match message.parts.as_slice() {
        [MessagePart::Text { text, extra: None }]
            if message.role == Role::User && message.name.is_none() && message.extra.is_none() =>
        {
            Some(text)
        }
        _ => None,
    }
}

/// What stands behind the messages, with a comma before each field.
fn tail(ask: &ModelRequest<'_>) -> String {
    let given = tools::params(ask.setup, Dialect::Chat, &[]);
    let mut fields = JsonFields::default();
    if let Some(tools) = tools::tools(ask.setup, Dialect::Chat) {
        fields.put("tools", tools);
    }
    for (key, value) in given.iter().filter(|(key, _)| !OWN.contains(key)) {
        fields.suggest(key, value);
    }
    write_limit(ask, &given, &mut fields);
    if ask.tools == ToolUse::NamedOnly && has_tools(&fields) {
        fields.take("tool_choice");
        fields.say("tool_choice", "none");
    }
    if ask.stream {
        fields.put("stream", "true");
        // Those who refuse the question tell the usage without being asked.
        if !ask.is_strict {
            let mut options = JsonFields::of(given.get("stream_options").unwrap_or_default());
            options.put("include_usage", "true");
            fields.put("stream_options", options.json());
        }
    }
    if fields.is_empty() { String::new() } else { format!(",{}", fields.inner()) }
}

/// Newer models of OpenAI refuse the old name, other servers do not know the new one: the client knows which, or the
/// model's name tells.
fn write_limit(ask: &ModelRequest<'_>, given: &JsonFields, fields: &mut JsonFields) {
    let is_new = given.get("max_completion_tokens").is_some()
        || given.get("max_tokens").is_none() && refuses_max_tokens(ask.model);
    let key = if is_new { "max_completion_tokens" } else { "max_tokens" };
    let value = ask.max_tokens.map(|most| most.to_string());
    if let Some(value) = value.or_else(|| given.get(key).map(str::to_owned)) {
        fields.put(key, value);
    }
}

/// True for OpenAI's models that think: o1, o3 and their like, gpt-5 and what comes after it. Azure writes 3.5 as 35.
fn refuses_max_tokens(model: &str) -> bool {
    let name = model.rsplit('/').next().unwrap_or(model);
    let digit = |rest: &str| rest.starts_with(|c: char| c.is_ascii_digit());
    let version = |rest: &str| rest.split(|c: char| !c.is_ascii_digit()).next().unwrap_or("").parse::<u32>();
    name.strip_prefix('o').is_some_and(digit)
        || name
            .strip_prefix("gpt-")
            .is_some_and(|rest| version(rest).is_ok_and(|major| (5..35).contains(&major)))
}

fn has_tools(fields: &JsonFields) -> bool {
    let tools = fields.get("tools").unwrap_or_default();
    tools.trim().strip_prefix('[').is_some_and(|rest| !rest.trim_start().starts_with(']'))
}

// A request for chat completions, read.

/// What is not a parameter.
const KNOWN: [&str; 6] = ["model", "messages", "tools", "stream", "functions", "function_call"];

/// Reads a request.
pub(in crate::dialect) fn read(body: &str) -> Result<ParsedRequest, BadRequest> {
    let object = parsed(body, "body")?;
    let model: Option<String> = field(&object, "", "model")?;
    let model = model.ok_or_else(|| BadRequest::new("model", "is missing; name the model to ask"))?;
    let raws: Option<Vec<&RawValue>> = field(&object, "", "messages")?;
    let raws = raws.ok_or_else(|| BadRequest::new("messages", "is missing; give a list of messages"))?;
    let texts: Vec<&str> = raws.iter().map(|raw| raw.get()).collect();
    let mut messages = read_texts(&texts, ChatPairing::default())?;
    raw::check(body).map_err(|why| BadRequest::new("body", why))?;
    let setup = Setup {
        system: leading_system(&mut messages),
        tools: read_tools(&object)?,
        params: read_params(&object),
        dialect: Some(Dialect::Chat.name().into()),
    };
    let max_tokens = match limit(&object, "max_completion_tokens")? {
        None => limit(&object, "max_tokens")?,
        most => most,
    };
    let stream = field(&object, "", "stream")?.unwrap_or(false);
    Ok(ParsedRequest { model, setup, messages, max_tokens, stream })
}

/// A limit below zero is some servers' word for none.
fn limit(object: &RawObject<'_>, key: &str) -> Result<Option<u64>, BadRequest> {
    Ok(field::<i64>(object, "", key)?.and_then(|most| u64::try_from(most).ok()))
}

/// Reads messages that follow on others, of whose calls `open` wait for an answer.
pub(in crate::dialect) fn read_elements(elements: &[&str], open: &[Call]) -> Result<Read, BadRequest> {
    Ok(Read::one_by_one(read_texts(elements, ChatPairing::after(open))?))
}

fn read_texts(texts: &[&str], mut pairing: ChatPairing) -> Result<Vec<Message>, BadRequest> {
    let mut messages = Vec::with_capacity(texts.len());
    for (i, text) in texts.iter().enumerate() {
        let read = pairing.read(text).unwrap_or_else(|| openai::read(text));
        messages.push(parted(read.map_err(|bad| {
            let (inside, why) = inside(text).unwrap_or_else(|| (String::new(), bad.to_string()));
            BadRequest::new(format!("messages[{i}]{inside}"), why)
        })?));
    }
    Ok(messages)
}

/// Which element of a message is at fault, when it is one that can be tried alone.
fn inside(text: &str) -> Option<(String, String)> {
    let object = RawObject::parse(text).ok()?;
    for key in ["tool_calls", "content"] {
        for (i, element) in list(&object, key).iter().enumerate() {
            let alone = format!("{{\"role\":\"assistant\",\"{key}\":[{element}]}}");
            if let Err(bad) = openai::read(&alone) {
                return Some((format!(".{key}[{i}]"), bad.to_string()));
            }
        }
    }
    None
}

/// Takes a system prompt out that leads the conversation, when it is one message of plain words.
pub(in crate::dialect) fn leading_system(messages: &mut Vec<Message>) -> Option<String> {
    let alone = messages.get(1).is_none_or(|next| !matches!(next.role, Role::System | Role::Developer));
    let first = messages.first().filter(|first| first.role == Role::System && alone)?;
    if first.name.is_some() || first.extra.is_some() {
        return None;
    }
    let [MessagePart::Text { text, extra: None }] = first.parts.as_slice() else { return None };
    let text = text.clone();
    messages.remove(0);
    Some(text)
}

fn read_tools(object: &RawObject<'_>) -> Result<Option<RawJson>, BadRequest> {
    let tools: Option<Vec<&RawValue>> = field(object, "", "tools")?;
    let functions: Option<Vec<&RawValue>> = field(object, "", "functions")?;
    let json = match (tools, functions) {
        (None, None) => return Ok(None),
        (Some(_), None) => return Ok(object.get("tools").map(RawJson::from_value)),
        (tools, Some(functions)) => with_functions(&functions, &tools.unwrap_or_default()),
    };
    RawJson::parse(json).map(Some).map_err(|e| BadRequest::new("tools", e))
}

fn read_params(object: &RawObject<'_>) -> Option<RawJson> {
    let rest = object.rest(&KNOWN);
    let Some(old) = object.get("function_call") else { return rest };
    let mut fields = JsonFields::of(rest.as_ref().map_or("{}", RawJson::get));
    fields.suggest("tool_choice", &choice(old.get()));
    RawJson::parse(fields.json()).ok()
}

// Functions, as chat completions had them before there were tools.
//
// A call had no id and its result came from a role of its own. They are read as today's calls and results, with ids
// made up from their place, so that the rest of the program need not know there ever was another way.

/// Pairs old calls with old results, in the order of the messages.
#[derive(Debug, Default)]
pub(super) struct ChatPairing {
    made: usize,
    open: Option<String>,
}

impl ChatPairing {
    /// Goes on where the calls `open` wait; the last one is who is answered.
    pub(super) fn after(open: &[Call]) -> Self {
        Self { made: 0, open: open.last().map(|call| call.id.clone()) }
    }

    /// Reads a message of the old form; `None` when it is not one.
    pub(super) fn read(&mut self, text: &str) -> Option<Result<Message, BadMessage>> {
        let object = RawObject::parse(text).ok()?;
        let role = object.read::<String>("role").ok()??;
        match (role.as_str(), object.get("function_call")) {
            ("assistant", Some(call)) => Some(self.call(text, &object, call.get())),
            ("function", _) => Some(self.result(text)),
            _ => None,
        }
    }

    fn call(&mut self, text: &str, object: &RawObject<'_>, call: &str) -> Result<Message, BadMessage> {
        let mut rest = JsonFields::of(text);
        rest.take("function_call");
        let mut message = openai::read(&rest.json())?;
        if object.get("content").is_none() && message.calls().next().is_none() {
            message.parts.clear();
        }
        let call = RawObject::parse(call).map_err(|e| BadMessage::Shape(format!("`function_call`: {e}")))?;
        let name: Option<String> = call.read("name")?;
        let id = format!("call_{}", self.made);
        self.made += 1;
        self.open = Some(id.clone());
        message.parts.push(MessagePart::Call(Call {
            id,
            name: name.ok_or_else(|| BadMessage::Shape("`function_call` has no name".into()))?,
            arguments: call.read("arguments")?.unwrap_or_default(),
            kind: CallKind::Function,
            extra: None,
        }));
        Ok(message)
    }

    fn result(&mut self, text: &str) -> Result<Message, BadMessage> {
        let mut fields = JsonFields::of(text);
        fields.say("role", "tool");
        fields.say("tool_call_id", &self.open.take().unwrap_or_default());
        openai::read(&fields.json())
    }
}

/// Marks a message that its client wrote in the old form, to be written in it again.
pub(in crate::dialect) fn as_told(message: &mut Message, json: &str) {
    let Ok(object) = RawObject::parse(json) else { return };
    let role = text(&object, "role");
    let is_old = role.as_deref() == Some("function") || object.get("function_call").is_some();
    if let Some(role) = role.filter(|_| is_old) {
        let mut extra = own(message.extra.as_ref(), openai::DIALECT).unwrap_or_default();
        extra.say("role", &role);
        message.extra = kept(&extra, openai::DIALECT);
    }
}

/// A message of today's form in the old one, where it is marked so; `None` where it is not. Only the old form has one
/// call, and an answer without an id.
pub(super) fn written(message: &Message, blobs: &mut dyn BlobReader) -> io::Result<Option<String>> {
    let Some(mut extra) = own(message.extra.as_ref(), openai::DIALECT) else { return Ok(None) };
    let Some(role) = extra.take("role") else { return Ok(None) };
    let mut out = Vec::new();
    openai::write(&Message { extra: kept(&extra, openai::DIALECT), ..message.clone() }, blobs, &mut out)?;
    let mut fields = JsonFields::of(&String::from_utf8_lossy(&out));
    fields.put("role", role);
    fields.take("tool_call_id");
    fields.take("tool_calls");
    if let Some(name) = message.outcome().and_then(|outcome| outcome.name.as_deref()) {
        fields.say("name", name);
    }
    if let Some(call) = message.calls().last() {
        let (name, arguments) = (quoted(&call.name), quoted(&call.arguments));
        fields.put("function_call", format!("{{\"name\":{name},\"arguments\":{arguments}}}"));
    }
    Ok(Some(fields.json()))
}

/// `functions` as today's tools, behind those that are there already.
pub(super) fn with_functions(functions: &[&RawValue], tools: &[&RawValue]) -> String {
    let tools = tools.iter().map(|tool| tool.get().to_owned());
    let all: Vec<String> = tools.chain(functions.iter().map(|function| wrapped(function.get()))).collect();
    format!("[{}]", all.join(","))
}

fn wrapped(function: &str) -> String {
    format!("{{\"type\":\"function\",\"function\":{function}}}")
}

/// The parameter `function_call` as today's `tool_choice`.
pub(super) fn choice(json: &str) -> String {
    let Ok(object) = RawObject::parse(json) else { return json.to_owned() };
    wrapped(object.rest(&[]).as_ref().map_or("{}", RawJson::get))
}

// Where a model's thoughts stand in a chat message.
//
// OpenAI's own API carries none. Servers that say `reasoning_content` want it back (DeepSeek refuses a conversation
// without it), others refuse a message that has the field (Groq, Cerebras). So it goes back to whom it came from: the
// words are a part of the message, and its extra fields keep the name with `null` in place of the words.

/// The field.
pub(super) const FIELD: &str = "reasoning_content";

/// The mark of a message whose thoughts go back in [`FIELD`].
pub(super) fn mark() -> Option<Opaque> {
    let mut fields = JsonFields::default();
    fields.put(FIELD, "null");
    kept(&fields, DIALECT)
}

/// The message as it goes out: the words are back in their field.
pub(super) fn filled(message: &Message) -> Cow<'_, Message> {
    let own = own(message.extra.as_ref(), DIALECT);
    let Some(mut fields) = own.filter(|fields| fields.get(FIELD) == Some("null")) else {
        return Cow::Borrowed(message);
    };
    match thoughts(&message.parts) {
        Some(words) => fields.say(FIELD, &words),
        None => drop(fields.take(FIELD)),
    }
    Cow::Owned(Message { extra: kept(&fields, DIALECT), ..message.clone() })
}

/// The message as it goes to a server that refuses the field.
pub(super) fn left_out(message: &Message) -> Cow<'_, Message> {
    let mut fields = own(message.extra.as_ref(), DIALECT).unwrap_or_default();
    match fields.take(FIELD) {
        Some(_) => Cow::Owned(Message { extra: kept(&fields, DIALECT), ..message.clone() }),
        None => Cow::Borrowed(message),
    }
}

/// The message as it came in, with the words of the field as a part.
pub(super) fn parted(mut message: Message) -> Message {
    let own = own(message.extra.as_ref(), DIALECT).filter(|_| message.role == Role::Assistant);
    let Some(mut fields) = own else { return message };
    let words = fields.get(FIELD).and_then(|json| serde_json::from_str::<String>(json).ok());
    if let Some(text) = words.filter(|words| !words.is_empty()) {
        fields.put(FIELD, "null");
        message.extra = kept(&fields, DIALECT);
        message.parts.insert(0, MessagePart::Reasoning { text, signature: None });
    }
    message
}

/// All thoughts among `parts`.
pub(in crate::dialect) fn thoughts(parts: &[MessagePart]) -> Option<String> {
    let mut all: Option<String> = None;
    for part in parts {
        if let MessagePart::Reasoning { text, .. } = part {
            all.get_or_insert_default().push_str(text);
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::refuses_max_tokens;

    #[test]
    fn models_that_think_are_told_by_their_names() {
        assert!(
            ["o1", "o3-mini", "o4-mini", "gpt-5", "gpt-5.1", "openai/gpt-5-mini"]
                .iter()
                .all(|m| refuses_max_tokens(m))
        );
        assert!(
            ["gpt-4o", "gpt-4.1", "gpt-35-turbo", "olmo-2", "gpt-oss-20b", "qwen3"]
                .iter()
                .all(|m| !refuses_max_tokens(m))
        );
    }
}
