//! What a scripted server is to answer: steps, one JSON object a line, used in order.
//!
//! A step without conditions answers the next request. One with conditions waits for a request that meets them, and
//! does not keep those behind it. A line that cannot be read is named by its number and its field; nothing is guessed.

use komado_core::message::{Message, Role};
use komado_core::raw::{RawJson, RawObject};
use regex::Regex;
use serde::de::Deserialize;
use serde_json::value::RawValue;

/// Steps in order.
#[derive(Clone, Debug, Default)]
pub struct ScriptedSteps {
    /// The steps.
    pub steps: Vec<ScriptStep>,
}

impl ScriptedSteps {
    /// Reads a script: a step a line; empty lines and those that begin with `#` are passed over.
    pub fn read(text: &str) -> Result<Self, BadScript> {
        script(text)
    }
}

impl From<Vec<ScriptStep>> for ScriptedSteps {
    fn from(steps: Vec<ScriptStep>) -> Self {
        Self { steps }
    }
}

/// One answer, or one failure.
#[derive(Clone, Debug, Default)]
pub struct ScriptStep {
    /// Which requests it is for; any when left empty.
    pub when: StepCondition,
    /// What is said.
    pub reply: ScriptedReply,
    /// How often it is used.
    pub repeat: Repeat,
    /// Milliseconds before anything is sent.
    pub delay_ms: u64,
    /// Characters in each piece of a stream; 16 when left out.
    pub chunk: Option<usize>,
    /// Milliseconds between two pieces.
    pub chunk_delay_ms: u64,
    /// An error in place of the reply.
    pub fail: Option<ScriptedFailure>,
    /// The connection is cut after so many bytes of the answer's body.
    pub break_after: Option<u64>,
    /// Why the model stopped: `stop`, `length`, `tool_calls`, `content_filter`, or any word.
    pub finish: Option<String>,
}

impl ScriptStep {
    /// Says `text`.
    pub fn say(text: impl Into<String>) -> Self {
        Self { reply: ScriptedReply { text: text.into(), ..ScriptedReply::default() }, ..Self::default() }
    }

    /// Calls the tool `name`; `arguments` is JSON.
    pub fn call(name: impl Into<String>, arguments: impl Into<String>) -> Self {
        let call = ToolCall { id: None, name: name.into(), arguments: arguments.into() };
        Self { reply: ScriptedReply { calls: vec![call], ..ScriptedReply::default() }, ..Self::default() }
    }

    /// Fails with `status`, and with `body` as it is; in the words of the provider when there is none.
    pub fn fail(status: u16, body: Option<&str>) -> Self {
        let body = body.map(str::to_owned);
        Self { fail: Some(ScriptedFailure { status, body, ..ScriptedFailure::default() }), ..Self::default() }
    }

    /// Says that the request is too large, whatever its size.
    pub fn overflow() -> Self {
        Self {
            fail: Some(ScriptedFailure { overflow: true, ..ScriptedFailure::default() }),
            ..Self::default()
        }
    }

    /// Reads one step from one JSON object.
    pub fn read(line: &str) -> Result<Self, BadScript> {
        step(1, line)
    }

    /// The same step, for every request that meets its conditions.
    pub fn always(mut self) -> Self {
        self.repeat = Repeat::Always;
        self
    }

    /// The same step, for a request that contains `text` in any of its messages.
    pub fn when_anywhere(mut self, text: impl Into<String>) -> Self {
        self.when.anywhere = Some(text.into());
        self
    }

    /// The same step, for a request whose news contain `text`.
    pub fn when_contains(mut self, text: impl Into<String>) -> Self {
        self.when.contains = Some(text.into());
        self
    }
}

/// How often a step is used.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Repeat {
    /// So many times.
    Times(u64),
    /// For every request that meets its conditions.
    Always,
}

impl Default for Repeat {
    fn default() -> Self {
        Self::Times(1)
    }
}

/// Conditions of a step; all that are given must hold.
#[derive(Clone, Debug, Default)]
pub struct StepCondition {
    /// The news contain this text. News are all messages after the last one of the model.
    pub contains: Option<String>,
    /// Some message of the request contains this text.
    pub anywhere: Option<String>,
    /// The news match this expression.
    pub regex: Option<Regex>,
    /// The model has spoken one time less than this in the request: 1 is the first turn.
    pub turn: Option<u64>,
    /// The news hold the result of a tool, or none.
    pub has_tool_result: Option<bool>,
    /// The request asks for a summary, or not.
    pub is_summary: Option<bool>,
}

impl StepCondition {
    /// True when it is for this request.
    pub(super) fn holds(&self, news: &NewMessages<'_>) -> bool {
        let text = &news.text;
        let is_said = |part: &String| news.all.iter().any(|message| message.words().contains(part.as_str()));
        self.anywhere.as_ref().is_none_or(is_said)
            && self.contains.as_ref().is_none_or(|part| text.contains(part))
            && self.regex.as_ref().is_none_or(|regex| regex.is_match(text))
            && self.turn.is_none_or(|turn| turn == news.turn)
            && self.has_tool_result.is_none_or(|has| has == news.has_tool_result)
            && self.is_summary.is_none_or(|is| is == news.is_summary)
    }
}

/// What a step looks at in a request.
#[derive(Clone, Debug, Default)]
pub(super) struct NewMessages<'a> {
    /// Every message of the request.
    pub(super) all: &'a [Message],
    /// The words of all messages after the last one of the model.
    pub(super) text: String,
    /// The words of the last message of a user.
    pub(super) last: String,
    pub(super) turn: u64,
    pub(super) has_tool_result: bool,
    pub(super) is_summary: bool,
}

impl<'a> NewMessages<'a> {
    /// What is new in `messages`.
    pub(super) fn of(messages: &'a [Message], is_summary: bool) -> Self {
        let spoken = messages.iter().rposition(|message| message.role == Role::Assistant);
        let fresh = &messages[spoken.map_or(0, |at| at + 1)..];
        let words: Vec<String> = fresh.iter().map(Message::words).collect();
        let user = messages.iter().rfind(|message| message.role == Role::User);
        let answers = messages.iter().filter(|message| message.role == Role::Assistant).count();
        Self {
            all: messages,
            text: words.join("\n"),
            last: user.map(Message::words).unwrap_or_default(),
            turn: answers as u64 + 1,
            has_tool_result: fresh.iter().any(|message| message.outcome().is_some()),
            is_summary,
        }
    }
}

/// What is said.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ScriptedReply {
    /// The words. `{{turn}}`, `{{tokens}}`, `{{last}}` and `{{n}}` are filled in.
    pub text: String,
    /// What is thought before; filled in likewise.
    pub reasoning: Option<String>,
    /// The seal on the thought.
    pub signature: Option<String>,
    /// Tools that are called after the words.
    pub calls: Vec<ToolCall>,
}

/// A call of a tool.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ToolCall {
    /// Its id; one made from the request when left out.
    pub id: Option<String>,
    /// The tool.
    pub name: String,
    /// The arguments, as JSON; filled in like the words.
    pub arguments: String,
}

/// An error in place of a reply.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ScriptedFailure {
    /// The HTTP status; 400 for an overflow, else 500 when left at 0.
    pub status: u16,
    /// The body, as it is; in the words of the provider when there is none.
    pub body: Option<String>,
    /// Seconds to wait before another try, told in the header.
    pub retry_after: Option<u64>,
    /// The request is said to be too large.
    pub overflow: bool,
    /// A stream begins with status 200, and the error is an event in it.
    pub in_stream: bool,
}

// Reads the lines of a script, strictly: an unknown field is a mistake, not a comment.

/// Why a script cannot be read.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("line {line}{}: {why}", place(field))]
pub struct BadScript {
    /// The line, counted from 1.
    pub line: usize,
    /// The field, such as `when.turn`; empty when it is the whole line.
    pub field: String,
    /// What is wrong there.
    pub why: String,
}

fn place(field: &str) -> String {
    if field.is_empty() { String::new() } else { format!(", field `{field}`") }
}

fn script(text: &str) -> Result<ScriptedSteps, BadScript> {
    let lines = text.strip_prefix('\u{feff}').unwrap_or(text).lines().enumerate();
    let lines = lines.map(|(at, line)| (at + 1, line.trim()));
    let lines = lines.filter(|(_, line)| !line.is_empty() && !line.starts_with('#'));
    Ok(ScriptedSteps { steps: lines.map(|(number, line)| step(number, line)).collect::<Result<_, _>>()? })
}

fn step(line: usize, text: &str) -> Result<ScriptStep, BadScript> {
    const KNOWN: &[&str] =
        &["when", "reply", "repeat", "delay_ms", "chunk", "chunk_delay_ms", "fail", "break_after", "finish"];
    let fields = Fields::parse(line, "", text, KNOWN)?;
    let step = ScriptStep {
        delay_ms: fields.read("delay_ms")?.unwrap_or(0),
        chunk: fields.read("chunk")?,
        chunk_delay_ms: fields.read("chunk_delay_ms")?.unwrap_or(0),
        break_after: fields.read("break_after")?,
        finish: fields.read("finish")?,
        when: fields.get("when").map(|value| when(line, value)).transpose()?.unwrap_or_default(),
        repeat: fields.get("repeat").map(|value| repeat(&fields, value)).transpose()?.unwrap_or_default(),
        reply: fields.get("reply").map(|value| reply(line, value)).transpose()?.unwrap_or_default(),
        fail: fields.get("fail").map(|value| fail(line, value)).transpose()?,
    };
    if step.chunk == Some(0) {
        return Err(fields.bad("chunk", "0; at least one character"));
    }
    match (fields.get("reply"), &step.fail) {
        (Some(_), Some(_)) => Err(fields.bad("fail", "a step has either `reply` or `fail`, not both")),
        (None, None) => {
            Err(BadScript { line, field: String::new(), why: "neither `reply` nor `fail`".into() })
        }
        _ => Ok(step),
    }
}

fn when(line: usize, value: &RawValue) -> Result<StepCondition, BadScript> {
    const KNOWN: &[&str] = &["anywhere", "contains", "regex", "turn", "has_tool_result", "is_summary"];
    let fields = Fields::parse(line, "when", value.get(), KNOWN)?;
    let regex = fields.read::<String>("regex")?.map(|text| Regex::new(&text)).transpose();
    let regex = regex.map_err(|e| fields.bad("regex", one_line(&e.to_string())))?;
    Ok(StepCondition {
        anywhere: fields.read("anywhere")?,
        contains: fields.read("contains")?,
        regex,
        turn: fields.read("turn")?,
        has_tool_result: fields.read("has_tool_result")?,
        is_summary: fields.read("is_summary")?,
    })
}

fn repeat(fields: &Fields<'_>, value: &RawValue) -> Result<Repeat, BadScript> {
    match value.get() {
        "\"always\"" => Ok(Repeat::Always),
        number => match number.parse::<u64>() {
            Ok(times) if times > 0 => Ok(Repeat::Times(times)),
            _ => Err(fields.bad("repeat", format!("{number}; a number from 1 on, or \"always\""))),
        },
    }
}

fn reply(line: usize, value: &RawValue) -> Result<ScriptedReply, BadScript> {
    if value.get().starts_with('"') {
        let text = serde_json::from_str(value.get());
        let text = text.map_err(|e| BadScript { line, field: "reply".into(), why: e.to_string() })?;
        return Ok(ScriptedReply { text, ..ScriptedReply::default() });
    }
    const KNOWN: &[&str] = &["text", "reasoning", "signature", "calls"];
    let fields = Fields::parse(line, "reply", value.get(), KNOWN)?;
    let calls: Vec<&RawValue> = fields.read("calls")?.unwrap_or_default();
    let calls = calls.iter().enumerate().map(|(at, value)| call(line, at, value));
    let reply = ScriptedReply {
        text: fields.read("text")?.unwrap_or_default(),
        reasoning: fields.read("reasoning")?,
        signature: fields.read("signature")?,
        calls: calls.collect::<Result<_, _>>()?,
    };
    if reply.signature.is_some() && reply.reasoning.is_none() {
        return Err(fields.bad("signature", "there is no `reasoning` to sign"));
    }
    Ok(reply)
}

fn call(line: usize, at: usize, value: &RawValue) -> Result<ToolCall, BadScript> {
    let fields =
        Fields::parse(line, &format!("reply.calls[{at}]"), value.get(), &["id", "name", "arguments"])?;
    let name: Option<String> = fields.read("name")?;
    let name = name.filter(|name| !name.is_empty()).ok_or_else(|| fields.bad("name", "missing"))?;
    let arguments = match fields.get("arguments") {
        // A text is taken as it is: models do write arguments that are no JSON.
        Some(value) if value.get().starts_with('"') => fields.read("arguments")?.unwrap_or_default(),
        Some(value) if value.get().starts_with('{') => RawJson::from_value(value).get().to_owned(),
        Some(value) => {
            return Err(fields.bad("arguments", format!("{}; an object, or a text", value.get())));
        }
        None => "{}".to_owned(),
    };
    Ok(ToolCall { id: fields.read("id")?, name, arguments })
}

fn fail(line: usize, value: &RawValue) -> Result<ScriptedFailure, BadScript> {
    const KNOWN: &[&str] = &["status", "body", "retry_after", "overflow", "in_stream"];
    let fields = Fields::parse(line, "fail", value.get(), KNOWN)?;
    let status: Option<u16> = fields.read("status")?;
    if let Some(status) = status.filter(|status| !(400..=599).contains(status)) {
        return Err(fields.bad("status", format!("{status}; from 400 to 599")));
    }
    let body = match fields.get("body") {
        Some(value) if value.get().starts_with('"') => fields.read("body")?,
        // JSON may be written as it is, without a text around it.
        other => other.map(|value| value.get().to_owned()),
    };
    Ok(ScriptedFailure {
        status: status.unwrap_or(0),
        body,
        retry_after: fields.read("retry_after")?,
        overflow: fields.read("overflow")?.unwrap_or(false),
        in_stream: fields.read("in_stream")?.unwrap_or(false),
    })
}

/// The fields of one object, and where it stands.
struct Fields<'a> {
    line: usize,
    within: String,
    object: RawObject<'a>,
}

impl<'a> Fields<'a> {
    fn parse(line: usize, within: &str, text: &'a str, known: &[&str]) -> Result<Self, BadScript> {
        let bad = |field: &str, why: String| BadScript { line, field: field.into(), why };
        let object = RawObject::parse(text)
            .map_err(|e| bad(within, format!("not a JSON object: {}", without_place(&e))))?;
        let fields = Self { line, within: within.into(), object };
        match fields.object.0.iter().find(|(key, _)| !known.contains(&key.as_ref())) {
            Some((key, _)) => Err(fields.bad(key, format!("unknown; known are {}", known.join(", ")))),
            None => Ok(fields),
        }
    }

    fn get(&self, key: &str) -> Option<&'a RawValue> {
        self.object.get(key)
    }

    fn read<T: Deserialize<'a>>(&self, key: &str) -> Result<Option<T>, BadScript> {
        let Some(value) = self.get(key) else { return Ok(None) };
        serde_json::from_str(value.get()).map(Some).map_err(|e| self.bad(key, without_place(&e)))
    }

    fn bad(&self, key: &str, why: impl Into<String>) -> BadScript {
        let dot = if self.within.is_empty() { "" } else { "." };
        BadScript { line: self.line, field: format!("{}{dot}{key}", self.within), why: why.into() }
    }
}

/// The reason alone: the parser counts lines from the start of the field, which would mislead.
fn without_place(error: &serde_json::Error) -> String {
    let text = error.to_string();
    match text.rfind(" at line ") {
        Some(at) => format!("{} at column {}", &text[..at], error.column()),
        None => text,
    }
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_script_is_read_line_by_line_and_field_by_field() {
        let text = "\u{feff}# 台本\n\n\
            {\"reply\":\"hi\"}\n\
            {\"when\":{\"contains\":\"窓\",\"regex\":\"^a\",\"turn\":2,\"has_tool_result\":false,\"is_summary\":true},\
             \"reply\":{\"text\":\"t\",\"reasoning\":\"r\",\"signature\":\"s\",\"calls\":[{\"id\":\"c\",\"name\":\"read\",\"arguments\":{\"n\":1.0}},{\"name\":\"ls\"},{\"name\":\"x\",\"arguments\":\"{bad\"}]},\
             \"repeat\":\"always\",\"delay_ms\":1,\"chunk\":3,\"chunk_delay_ms\":2,\"break_after\":9,\"finish\":\"length\"}\n\
            {\"fail\":{\"status\":429,\"body\":{\"error\":1.0},\"retry_after\":1},\"repeat\":3}\n\
            {\"fail\":{\"overflow\":true,\"in_stream\":true}}\n";
        let steps = script(text).unwrap().steps;
        assert_eq!((steps.len(), steps[0].reply.text.as_str()), (4, "hi"));
        let step = &steps[1];
        assert_eq!(step.when.contains.as_deref(), Some("窓"));
        assert_eq!((step.when.turn, step.when.is_summary), (Some(2), Some(true)));
        assert_eq!(step.reply.calls[0].arguments, r#"{"n":1.0}"#, "numbers stay as they are written");
        assert_eq!(
            (step.reply.calls[1].arguments.as_str(), step.reply.calls[2].arguments.as_str()),
            ("{}", "{bad")
        );
        assert_eq!((step.repeat, step.chunk, step.break_after), (Repeat::Always, Some(3), Some(9)));
        let fail = steps[2].fail.as_ref().unwrap();
        assert_eq!(
            (fail.status, fail.body.as_deref(), fail.retry_after),
            (429, Some(r#"{"error":1.0}"#), Some(1))
        );
        assert!(steps[3].fail.as_ref().is_some_and(|fail| fail.overflow && fail.in_stream));
    }

    #[test]
    fn a_bad_line_is_named_by_its_number_and_its_field() {
        for (line, place, why) in [
            ("nonsense", "line 3:", "JSON object"),
            ("[1]", "line 3:", "JSON object"),
            ("{}", "line 3:", "neither"),
            (r#"{"reply":{"text":1}}"#, "line 3, field `reply.text`:", "string"),
            (r#"{"reply":{"texts":"a"}}"#, "line 3, field `reply.texts`:", "known are text"),
            (r#"{"reply":"a","when":{"turn":-1}}"#, "line 3, field `when.turn`:", "-1"),
            (r#"{"reply":"a","when":{"regex":"("}}"#, "line 3, field `when.regex`:", "unclosed group"),
            (r#"{"reply":"a","repeat":0}"#, "line 3, field `repeat`:", "0; a number"),
            (r#"{"reply":"a","repeat":"ever"}"#, "line 3, field `repeat`:", "always"),
            (r#"{"reply":"a","chunk":0}"#, "line 3, field `chunk`:", "at least"),
            (r#"{"reply":"a","fail":{"status":429}}"#, "line 3, field `fail`:", "not both"),
            (r#"{"fail":{"status":200}}"#, "line 3, field `fail.status`:", "200"),
            (r#"{"reply":{"signature":"s"}}"#, "line 3, field `reply.signature`:", "reasoning"),
            (r#"{"reply":{"calls":[{"name":"a"},{}]}}"#, "line 3, field `reply.calls[1].name`:", "missing"),
            (r#"{"reply":{"calls":[{"name":"a","arguments":[]}]}}"#, "`reply.calls[0].arguments`:", "object"),
        ] {
            let error = script(&format!("# one\n{{\"reply\":\"a\"}}\n{line}\n")).unwrap_err().to_string();
            assert!(error.contains(place) && error.contains(why), "{line}: {error}");
        }
    }
}
