//! A request for Ollama's chat, a message at a time.
//!
//! The model's window is asked for with every request, and nothing may be dropped behind our back: a conversation
//! that does not fit must be an error here, not a hole in what the model knows.

use super::DIALECT;
use crate::dialect::chat::{leading_system, thoughts};
use crate::dialect::json::{
    self, JsonFields, array, field, list, objects, opaque, own, parsed, quoted, said, splice,
};
use crate::dialect::{
    BadRequest, Dialect, ModelRequest, ParsedRequest, Read, RequestOutput, ToolUse, WriteRequest, tools,
};
use komado_core::journal::Setup;
use komado_core::message::{Call, CallKind, ImageSource, Message, MessagePart, Role, ToolOutcome};
use komado_core::raw::{self, RawJson, RawObject};
use serde_json::value::RawValue;
use std::collections::HashSet;
use std::io::{self, Write};

/// What this writer writes itself.
const OWN: [&str; 4] = ["model", "messages", "tools", "stream"];

/// Writes a request.
#[derive(Debug)]
pub struct Writer {
    begun: bool,
    tail: String,
    /// The calls whose results come next, for results that do not say whose they are.
    open: Vec<(String, String)>,
}

impl Writer {
    /// Writes what stands before the messages of the conversation.
    pub(in crate::dialect) fn begin(ask: &ModelRequest<'_>, out: &mut dyn Write) -> io::Result<Self> {
        write!(out, "{{\"model\":{},\"messages\":[", quoted(ask.model))?;
        if let Some(system) = &ask.setup.system {
            write!(out, "{{\"role\":\"system\",\"content\":{}}}", quoted(system))?;
        }
        Ok(Self { begun: ask.setup.system.is_some(), tail: tail(ask), open: Vec::new() })
    }

    /// Writes messages alone.
    pub(in crate::dialect) fn of_elements() -> Self {
        Self { begun: false, tail: String::new(), open: Vec::new() }
    }
}

impl WriteRequest for Writer {
    fn message(&mut self, message: &Message, out: &mut RequestOutput<'_>) -> io::Result<()> {
        if std::mem::replace(&mut self.begun, true) {
            out.write_all(b",")?;
        }
        let mut fields = JsonFields::default();
        match message.outcome() {
            Some(outcome) => {
                self.result(outcome, &mut fields);
                write!(out, "{{{}", fields.inner())?;
            }
            None => {
                self.speech(message, &mut fields);
                write!(out, "{{{}", fields.inner())?;
                write_images(&message.parts, out)?;
            }
        }
        let extra = own(message.extra.as_ref(), DIALECT).map(|extra| extra.json());
        splice(extra.as_deref(), out)?;
        out.write_all(b"}")
    }

    fn end(&mut self, out: &mut dyn Write) -> io::Result<()> {
        write!(out, "],{}}}", self.tail)
    }
}

impl Writer {
    fn speech(&mut self, message: &Message, fields: &mut JsonFields) {
        let role = if message.role == Role::Developer { Role::System } else { message.role };
        fields.say("role", role.name());
        fields.say("content", &words(&message.parts, false));
        put_thoughts(fields, &message.parts);
        let calls: Vec<String> = message.calls().map(|each| call(None, each)).collect();
        array(&calls).into_iter().for_each(|calls| fields.put("tool_calls", calls));
        self.open = message.calls().map(|call| (call.id.clone(), call.name.clone())).collect();
    }

    fn result(&self, outcome: &ToolOutcome, fields: &mut JsonFields) {
        fields.say("role", Role::Tool.name());
        fields.say("content", &words(&outcome.content, true));
        let is_named = !outcome.call_id.is_empty();
        let asked = || self.open.iter().find(|(id, _)| is_named && *id == outcome.call_id);
        let asked = || asked().map(|(_, name)| name.as_str());
        if let Some(name) = outcome.name.as_deref().or_else(asked) {
            fields.say("tool_name", name);
        }
        // Without one it answers the next call of its tool, as its client had it.
        if is_named {
            fields.say("tool_call_id", &outcome.call_id);
        }
    }
}

/// All thoughts among `parts` as one text.
pub(super) fn put_thoughts(fields: &mut JsonFields, parts: &[MessagePart]) {
    if let Some(thoughts) = thoughts(parts).filter(|thoughts| !thoughts.is_empty()) {
        fields.say("thinking", &thoughts);
    }
}

/// A call with its id: versions that know no ids do not look at it. An answer numbers its calls.
pub(super) fn call(index: Option<usize>, call: &Call) -> String {
    let index = index.map(|index| format!("\"index\":{index},")).unwrap_or_default();
    let (name, arguments) = (quoted(&call.name), write_arguments(&call.arguments));
    let mut fields = JsonFields::default();
    if !call.id.is_empty() {
        fields.say("id", &call.id);
    }
    fields.put("function", format!("{{{index}\"name\":{name},\"arguments\":{arguments}}}"));
    if let Some(extra) = &call.extra {
        JsonFields::of(extra.get()).iter().for_each(|(key, value)| fields.suggest(key, value));
    }
    fields.json()
}

/// What is said as one text; pictures that cannot travel are named. None travels in a tool's answer, which keeps instead
/// what only others know.
fn words(parts: &[MessagePart], of_tool: bool) -> String {
    let said = parts.iter().filter_map(|part| match part {
        MessagePart::Text { text, .. } => Some(text.clone()),
        MessagePart::Image { source, .. } if of_tool || carried(source).is_none() => Some(named(source)),
        MessagePart::Opaque(opaque) if of_tool => Some(opaque.json.get().to_owned()),
        _ => None,
    });
    said.collect::<Vec<_>>().join("\n")
}

fn named(source: &ImageSource) -> String {
    match source {
        ImageSource::Blob { blob, media_type, byte_size, .. } => {
            format!("[image: {media_type}, {byte_size} bytes, ref={blob}]")
        }
        ImageSource::Url { url } => {
            let head = url.split_once(',').filter(|_| url.starts_with("data:")).map(|(head, _)| head);
            format!("[image: {}]", head.unwrap_or(url))
        }
    }
}

/// An image whose bytes can go along.
enum Carried<'a> {
    Blob(&'a str),
    Base64(&'a str),
}

fn carried(source: &ImageSource) -> Option<Carried<'_>> {
    match source {
        ImageSource::Blob { blob, .. } => Some(Carried::Blob(blob)),
        ImageSource::Url { url } => {
            let (head, bytes) = url.strip_prefix("data:")?.split_once(',')?;
            // What is not base64 would break the request's own quotes.
            let plain = bytes.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'/' | b'='));
            (head.ends_with(";base64") && plain).then_some(Carried::Base64(bytes))
        }
    }
}

fn write_images(parts: &[MessagePart], out: &mut RequestOutput<'_>) -> io::Result<()> {
    let images = parts.iter().filter_map(|part| match part {
        MessagePart::Image { source, .. } => carried(source),
        _ => None,
    });
    let mut any = false;
    for image in images {
        out.write_all(if any { b",\"" } else { b",\"images\":[\"" })?;
        match image {
            Carried::Blob(id) => out.blob(id)?,
            Carried::Base64(bytes) => out.write_all(bytes.as_bytes())?,
        }
        out.write_all(b"\"")?;
        any = true;
    }
    if any { out.write_all(b"]") } else { Ok(()) }
}

/// What stands behind the messages.
fn tail(ask: &ModelRequest<'_>) -> String {
    let mut fields = JsonFields::default();
    // There is no way to name tools and forbid their use; of the two, that none is called matters more.
    if let Some(tools) = tools::tools(ask.setup, Dialect::Ollama).filter(|_| ask.tools == ToolUse::AsSetUp) {
        fields.put("tools", tools);
    }
    let mut params = tools::params(ask.setup, Dialect::Ollama, &OWN);
    let mut options = params.take("options").map(|json| JsonFields::of(&json)).unwrap_or_default();
    params.iter().for_each(|(key, value)| fields.put(key, value));
    fields.suggest("truncate", "false");
    fields.suggest("shift", "false");
    if let Some(window) = ask.window {
        options.put("num_ctx", window.to_string());
    }
    if let Some(most) = ask.max_tokens {
        options.put("num_predict", most.to_string());
    }
    if !options.is_empty() {
        fields.put("options", options.json());
    }
    fields.put("stream", ask.stream.to_string());
    fields.inner()
}

// A request for Ollama's chat, read.

/// What is not a parameter.
const KNOWN: [&str; 4] = ["model", "messages", "tools", "stream"];

/// The fields of a message that are understood.
const OF_MESSAGE: [&str; 7] =
    ["role", "content", "thinking", "images", "tool_calls", "tool_name", "tool_call_id"];

/// Reads a request.
pub(in crate::dialect) fn read(body: &str) -> Result<ParsedRequest, BadRequest> {
    let object = parsed(body, "body")?;
    let model: Option<String> = field(&object, "", "model")?;
    let model = model.ok_or_else(|| BadRequest::new("model", "is missing; name the model to ask"))?;
    // Without messages it is a request to load the model.
    let raws: Vec<&RawValue> = field(&object, "", "messages")?.unwrap_or_default();
    let texts: Vec<&str> = raws.iter().map(|raw| raw.get()).collect();
    let mut messages = read_texts(&texts, &[])?;
    raw::check(body).map_err(|why| BadRequest::new("body", why))?;
    let tools: Option<Vec<&RawValue>> = field(&object, "", "tools")?;
    let setup = Setup {
        system: leading_system(&mut messages),
        tools: tools.and_then(|_| object.get("tools")).map(RawJson::from_value),
        params: object.rest(&KNOWN),
        dialect: Some(DIALECT.into()),
    };
    let stream = field(&object, "", "stream")?.unwrap_or(true);
    Ok(ParsedRequest { model, setup, messages, max_tokens: limit(&object)?, stream })
}

/// `num_predict`, where a number below zero means that there is no limit.
fn limit(object: &RawObject<'_>) -> Result<Option<u64>, BadRequest> {
    let Some(options) = object.get("options") else { return Ok(None) };
    let options = RawObject::parse(options.get()).map_err(|e| BadRequest::new("options", e))?;
    let most: Option<i64> = field(&options, "options", "num_predict")?;
    Ok(most.and_then(|most| u64::try_from(most).ok()))
}

/// Reads messages that follow on others, of whose calls `open` wait for an answer. Calls without an id get one that is
/// new among those and here.
pub(in crate::dialect) fn read_elements(elements: &[&str], open: &[Call]) -> Result<Read, BadRequest> {
    Ok(Read::one_by_one(read_texts(elements, open)?))
}

fn read_texts(texts: &[&str], open: &[Call]) -> Result<Vec<Message>, BadRequest> {
    let given = texts.iter().flat_map(|text| given_ids(text)).collect();
    let mut pairing = OllamaPairing::after(open, given);
    let read = |(i, text): (usize, &&str)| read_message(text, &format!("messages[{i}]"), &mut pairing);
    texts.iter().enumerate().map(read).collect()
}

/// Takes the ids and names from a message that were made up for it.
pub(in crate::dialect) fn as_told(message: &mut Message, text: &str) {
    let Ok(object) = RawObject::parse(text) else { return };
    let mut calls = list(&object, "tool_calls").into_iter();
    for part in &mut message.parts {
        match part {
            MessagePart::Result(outcome) => {
                if said(&object, "tool_call_id").is_none() {
                    outcome.call_id.clear();
                }
                if said(&object, "tool_name").is_none() {
                    outcome.name = None;
                }
            }
            MessagePart::Call(call) => {
                let given = calls.next().and_then(|json| RawObject::parse(json).ok());
                if given.and_then(|given| said(&given, "id")).is_none() {
                    call.id.clear();
                }
            }
            _ => {}
        }
    }
}

/// The ids that a message's calls bring along.
fn given_ids(text: &str) -> HashSet<String> {
    let Ok(object) = RawObject::parse(text) else { return HashSet::new() };
    objects(&object, "tool_calls").filter_map(|call| json::text(&call, "id")).collect()
}

fn read_message(text: &str, place: &str, pairing: &mut OllamaPairing) -> Result<Message, BadRequest> {
    let object = parsed(text, place)?;
    let role: Option<String> = field(&object, place, "role")?;
    let role = role.ok_or_else(|| BadRequest::new(place, "has no role"))?;
    let known = Role::named(&role.to_lowercase());
    let role = known.ok_or_else(|| {
        let why = format!("unknown role: {role:?}; known are system, user, assistant and tool");
        BadRequest::new(format!("{place}.role"), why)
    })?;
    let content: Option<String> = field(&object, place, "content")?;
    let parts = if role == Role::Tool {
        vec![read_result(&object, content, place, pairing)?]
    } else {
        pairing.turn();
        read_parts(&object, content, place, pairing)?
    };
    let extra = object.rest(&OF_MESSAGE).map(|json| opaque(DIALECT, json));
    Ok(Message { role, name: None, parts, extra })
}

fn read_result(
    object: &RawObject<'_>,
    content: Option<String>,
    place: &str,
    pairing: &mut OllamaPairing,
) -> Result<MessagePart, BadRequest> {
    let given: Option<String> = field(object, place, "tool_call_id")?;
    let name: Option<String> = field(object, place, "tool_name")?;
    let (call_id, name) = pairing.result(given.filter(|id| !id.is_empty()), name);
    let mut content = vec![MessagePart::text(content.unwrap_or_default())];
    content.extend(read_images(object, place)?);
    Ok(MessagePart::Result(ToolOutcome { call_id, name, content, ..ToolOutcome::default() }))
}

fn read_parts(
    object: &RawObject<'_>,
    content: Option<String>,
    place: &str,
    pairing: &mut OllamaPairing,
) -> Result<Vec<MessagePart>, BadRequest> {
    let mut parts = Vec::new();
    let thoughts: Option<String> = field(object, place, "thinking")?;
    if let Some(text) = thoughts.filter(|text| !text.is_empty()) {
        parts.push(MessagePart::Reasoning { text, signature: None });
    }
    let words = content.filter(|text| !text.is_empty()).map(MessagePart::text);
    parts.extend(words);
    parts.extend(read_images(object, place)?);
    let calls: Vec<&RawValue> = field(object, place, "tool_calls")?.unwrap_or_default();
    for (i, call) in calls.iter().enumerate() {
        parts.push(MessagePart::Call(read_call(call.get(), &format!("{place}.tool_calls[{i}]"), pairing)?));
    }
    if parts.is_empty() {
        parts.push(MessagePart::text(""));
    }
    Ok(parts)
}

fn read_call(text: &str, place: &str, pairing: &mut OllamaPairing) -> Result<Call, BadRequest> {
    let object = parsed(text, place)?;
    let function = object.get("function").ok_or_else(|| BadRequest::new(place, "has no `function`"))?;
    let inside = format!("{place}.function");
    let function = RawObject::parse(function.get()).map_err(|e| BadRequest::new(&*inside, e))?;
    let name: Option<String> = field(&function, &inside, "name")?;
    let name = name.ok_or_else(|| BadRequest::new(&*inside, "has no name"))?;
    let given: Option<String> = field(&object, place, "id")?;
    Ok(Call {
        id: pairing.call(given.filter(|id| !id.is_empty()), &name),
        name,
        arguments: function.get("arguments").map_or_else(|| "{}".into(), |json| read_arguments(json.get())),
        kind: CallKind::Function,
        extra: object.rest(&["id", "type", "function"]),
    })
}

fn read_images(object: &RawObject<'_>, place: &str) -> Result<Vec<MessagePart>, BadRequest> {
    let images: Vec<String> = field(object, place, "images")?.unwrap_or_default();
    let part = |bytes: &String| {
        let url = format!("data:{};base64,{bytes}", media_type(bytes));
        MessagePart::Image { source: ImageSource::Url { url }, detail: None }
    };
    Ok(images.iter().map(part).collect())
}

/// What kind of picture it is, as its first bytes tell through their base64.
fn media_type(base64: &str) -> &'static str {
    match base64 {
        bytes if bytes.starts_with("/9j/") => "image/jpeg",
        bytes if bytes.starts_with("R0lG") => "image/gif",
        bytes if bytes.starts_with("UklG") => "image/webp",
        _ => "image/png",
    }
}

// Calls without ids, and the results that answer them.
//
// Older versions name neither, so a call is named by its place in the conversation, and a result answers the first
// open call of its tool.

/// The calls of a conversation, in order.
#[derive(Debug, Default)]
pub(super) struct OllamaPairing {
    taken: HashSet<String>,
    made: usize,
    open: Vec<(String, String)>,
}

impl OllamaPairing {
    /// Goes on where the calls `open` wait. Knows the ids that are given somewhere, so that none is made up twice.
    pub(super) fn after(open: &[Call], mut taken: HashSet<String>) -> Self {
        taken.extend(open.iter().map(|call| call.id.clone()));
        let open = open.iter().map(|call| (call.id.clone(), call.name.clone())).collect();
        Self { taken, made: 0, open }
    }

    /// A new message: calls of before wait no longer.
    pub(super) fn turn(&mut self) {
        self.open.clear();
    }

    /// The id of the next call, which may have one.
    pub(super) fn call(&mut self, given: Option<String>, name: &str) -> String {
        let id = given.unwrap_or_else(|| {
            loop {
                let id = format!("call_{}", self.made);
                self.made += 1;
                if !self.taken.contains(&id) {
                    break id;
                }
            }
        });
        self.open.push((id.clone(), name.to_owned()));
        id
    }

    /// The id and the tool of the call that a result answers.
    pub(super) fn result(&mut self, given: Option<String>, name: Option<String>) -> (String, Option<String>) {
        let by_id = given.as_ref().and_then(|id| self.open.iter().position(|(open, _)| open == id));
        let by_name = || name.as_ref().and_then(|name| self.open.iter().position(|(_, tool)| tool == name));
        let first = || (given.is_none() && !self.open.is_empty()).then_some(0);
        match by_id.or_else(|| if given.is_none() { by_name() } else { None }).or_else(first) {
            Some(at) => {
                let (id, tool) = self.open.remove(at);
                (id, name.or(Some(tool)))
            }
            None => (given.unwrap_or_default(), name),
        }
    }
}

// Arguments of a call: an object on this wire, the model's own text everywhere else.
//
// A text that is not a JSON object is wrapped in one, and our own wrap is taken off again when it comes back.

/// The key under which a text stands that is not an object.
const RAW: &str = "_raw";

/// The text as an object. Nothing said is an object without fields: that is how this API says it.
pub(super) fn write_arguments(text: &str) -> String {
    let bare = text.trim();
    if bare.is_empty() {
        return "{}".into();
    }
    match RawObject::parse(bare) {
        // An object that looks like our wrap is wrapped, too, or it would come back as something else.
        Ok(object) if wrapped(&object).is_none() => bare.to_owned(),
        _ => format!("{{\"{RAW}\":{}}}", quoted(text)),
    }
}

/// The text of the arguments that came; a server or client that sends a text is taken by its word.
pub(super) fn read_arguments(json: &str) -> String {
    if let Ok(text) = serde_json::from_str::<String>(json) {
        return text;
    }
    RawObject::parse(json).ok().and_then(|object| wrapped(&object)).unwrap_or_else(|| json.to_owned())
}

fn wrapped(object: &RawObject<'_>) -> Option<String> {
    if object.0.len() != 1 {
        return None;
    }
    object.read(RAW).ok().flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_answer_the_first_open_call_of_their_tool() {
        let mut pairing = OllamaPairing::after(&[], HashSet::from(["call_1".to_owned()]));
        let ids = ["read", "grep", "read"].map(|name| pairing.call(None, name));
        assert_eq!(ids, ["call_0", "call_2", "call_3"]);
        let mut answers = |name: &str| pairing.result(None, Some(name.into())).0;
        assert_eq!([answers("grep"), answers("read"), answers("read")], ["call_2", "call_0", "call_3"]);
        assert_eq!(answers("read"), "");
    }
}

#[cfg(test)]
mod arguments_tests {
    use super::*;

    #[test]
    fn a_text_that_is_no_object_comes_back_as_it_was() {
        for text in
            ["{\"p\":1.0}", "{\n \"窓\": 12345678901234567890}", "[1]", "half {", "\"x\"", "{\"_raw\":\"x\"}"]
        {
            let object = write_arguments(text);
            assert!(object.starts_with('{') && RawObject::parse(&object).is_ok(), "{object}");
            assert_eq!(read_arguments(&object), text);
        }
        assert_eq!(write_arguments("{\"p\":1.0}"), "{\"p\":1.0}");
        assert_eq!(write_arguments(" "), "{}");
    }
}
