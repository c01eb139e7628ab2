//! What a scripted server is to answer: steps, one JSON object a line, used in order.
//!
//! A step without conditions answers the next request. One with conditions waits for a request that meets them, and
//! does not keep those behind it. A line that cannot be read is named by its number and its field; nothing is guessed.

mod read;

pub use read::BadScript;

use komado_core::message::Message;
use komado_core::message::Role;
use regex::Regex;

/// Steps in order.
#[derive(Clone, Debug, Default)]
pub struct Script {
    /// The steps.
    pub steps: Vec<Step>,
}

impl Script {
    /// Reads a script: a step a line; empty lines and those that begin with `#` are passed over.
    pub fn read(text: &str) -> Result<Self, BadScript> {
        read::script(text)
    }
}

impl From<Vec<Step>> for Script {
    fn from(steps: Vec<Step>) -> Self {
        Self { steps }
    }
}

/// One answer, or one failure.
#[derive(Clone, Debug, Default)]
pub struct Step {
    /// Which requests it is for; any when left empty.
    pub when: When,
    /// What is said.
    pub reply: Reply,
    /// How often it is used.
    pub repeat: Repeat,
    /// Milliseconds before anything is sent.
    pub delay_ms: u64,
    /// Characters in each piece of a stream; 16 when left out.
    pub chunk: Option<usize>,
    /// Milliseconds between two pieces.
    pub chunk_delay_ms: u64,
    /// An error in place of the reply.
    pub fail: Option<Fail>,
    /// The connection is cut after so many bytes of the answer's body.
    pub break_after: Option<u64>,
    /// Why the model stopped: `stop`, `length`, `tool_calls`, `content_filter`, or any word.
    pub finish: Option<String>,
}

impl Step {
    /// Says `text`.
    pub fn say(text: impl Into<String>) -> Self {
        Self { reply: Reply { text: text.into(), ..Reply::default() }, ..Self::default() }
    }

    /// Calls the tool `name`; `arguments` is JSON.
    pub fn call(name: impl Into<String>, arguments: impl Into<String>) -> Self {
        let call = ToolCall { id: None, name: name.into(), arguments: arguments.into() };
        Self { reply: Reply { calls: vec![call], ..Reply::default() }, ..Self::default() }
    }

    /// Fails with `status`, and with `body` as it is; in the words of the provider when there is none.
    pub fn fail(status: u16, body: Option<&str>) -> Self {
        let body = body.map(str::to_owned);
        Self { fail: Some(Fail { status, body, ..Fail::default() }), ..Self::default() }
    }

    /// Says that the request is too large, whatever its size.
    pub fn overflow() -> Self {
        Self { fail: Some(Fail { overflow: true, ..Fail::default() }), ..Self::default() }
    }

    /// Reads one step from one JSON object.
    pub fn read(line: &str) -> Result<Self, BadScript> {
        read::step(1, line)
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
pub struct When {
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

impl When {
    /// True when it is for this request.
    pub(super) fn holds(&self, news: &News<'_>) -> bool {
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
pub(super) struct News<'a> {
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

impl<'a> News<'a> {
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
pub struct Reply {
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
pub struct Fail {
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
