//! The three tools that let a model read on, as a provider takes them, and the door by which their calls come in.
//!
//! The definitions are one constant text: a request that offers them stays the same from turn to turn. A call is read
//! generously, because models write numbers as strings and add fields of their own; what cannot be meant is refused in
//! words that say what to write instead.

use super::error::{Error, Result};
use super::grep::{Pattern, Search};
use super::line::Stretch;
use super::read::Page;
use super::{Reading, Reference, grep, line, open, read};
use crate::thread::Thread;
use komado_core::clip::{CHARS, GREP, LINE, LINES, READ};
use serde_json::{Map, Value};

/// The definitions, in the form of OpenAI's functions.
pub const DEFINITIONS: &str = include_str!("tools.json");

/// True for the name of one of the three tools.
pub fn is_reader(name: &str) -> bool {
    [READ, GREP, LINE].contains(&name)
}

/// Makes a call of one of the three tools: `arguments` is the JSON the model wrote.
pub fn call(thread: &Thread<'_>, name: &str, arguments: &str) -> Result<String> {
    let request = Request::parse(name, arguments)?;
    Ok(request.answer(thread)?.text)
}

/// A call, understood.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Request {
    /// The output.
    pub reference: Reference,
    /// What to do with it.
    pub ask: Ask,
}

/// What to do with an output.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Ask {
    /// Read lines.
    Read(Page),
    /// Search.
    Grep(Search),
    /// Read characters of a line.
    Line(Stretch),
}

impl Request {
    /// Understands a call.
    pub fn parse(name: &str, arguments: &str) -> Result<Self> {
        let tool = [READ, GREP, LINE].into_iter().find(|tool| *tool == name);
        let Some(tool) = tool else {
            return Err(Error::NoTool { name: name.chars().take(80).collect() });
        };
        let given = Arguments::parse(tool, arguments)?;
        let reference = given.text("ref_id")?.parse()?;
        let ask = match tool {
            READ => Ask::Read(Page {
                offset: given.number("offset")?.unwrap_or(1),
                limit: given.number("limit")?.unwrap_or(LINES),
            }),
            GREP => Ask::Grep(given.search()?),
            _ => Ask::Line(Stretch {
                line_number: given.number("line_number")?.ok_or_else(|| given.lacks("line_number"))?,
                char_offset: given.number("char_offset")?.unwrap_or(0),
                char_limit: given.number("char_limit")?.unwrap_or(CHARS),
            }),
        };
        Ok(Self { reference, ask })
    }

    /// Carries it out.
    pub fn answer(&self, thread: &Thread<'_>) -> Result<Reading> {
        let mut bytes = open(thread, &self.reference)?;
        let limits = thread.clip().unwrap_or_default();
        let name = self.reference.to_string();
        match &self.ask {
            Ask::Read(page) => read::read(&mut bytes, page, &limits, &name),
            Ask::Grep(search) => grep::grep(&mut bytes, search, &limits, &name),
            Ask::Line(stretch) => line::line(&mut bytes, stretch, &limits, &name),
        }
    }
}

/// The arguments of a call.
struct Arguments {
    tool: &'static str,
    given: Map<String, Value>,
}

impl Arguments {
    fn parse(tool: &'static str, text: &str) -> Result<Self> {
        let bad = |why: String| Error::BadArguments { tool, why };
        match serde_json::from_str(text) {
            Ok(Value::Object(given)) => Ok(Self { tool, given }),
            Ok(_) => {
                Err(bad("the arguments are no JSON object; write one, such as {\"ref_id\":\"@12\"}".into()))
            }
            Err(error) => Err(bad(format!("the arguments are no JSON: {error}"))),
        }
    }

    fn bad(&self, why: String) -> Error {
        Error::BadArguments { tool: self.tool, why }
    }

    fn lacks(&self, name: &str) -> Error {
        self.bad(format!("{name} is missing"))
    }

    /// What was given as `name`; `null` is nothing.
    fn get(&self, name: &str) -> Option<&Value> {
        self.given.get(name).filter(|value| !value.is_null())
    }

    fn text(&self, name: &str) -> Result<&str> {
        let value = self.get(name).ok_or_else(|| self.lacks(name))?;
        value.as_str().ok_or_else(|| self.bad(format!("{name} must be a text, not {}", brief(value))))
    }

    /// A whole number, also as `"12"` or `12.0`.
    fn number(&self, name: &str) -> Result<Option<u64>> {
        let Some(value) = self.get(name) else { return Ok(None) };
        let number = match value {
            Value::Number(number) => number.as_u64().or_else(|| number.as_f64().and_then(whole)),
            Value::String(text) => {
                let text = text.trim();
                text.parse().ok().or_else(|| text.parse().ok().and_then(whole))
            }
            _ => None,
        };
        match number {
            Some(number) => Ok(Some(number)),
            None => Err(self.bad(format!("{name} must be a whole number, 0 or more, not {}", brief(value)))),
        }
    }

    /// Yes or no, also as `"true"`.
    fn flag(&self, name: &str) -> Result<bool> {
        match self.get(name) {
            None => Ok(false),
            Some(Value::Bool(flag)) => Ok(*flag),
            Some(Value::String(text)) if text.trim().eq_ignore_ascii_case("true") => Ok(true),
            Some(Value::String(text)) if ["false", ""].contains(&text.trim().to_lowercase().as_str()) => {
                Ok(false)
            }
            Some(other) => Err(self.bad(format!("{name} must be true or false, not {}", brief(other)))),
        }
    }

    fn search(&self) -> Result<Search> {
        let text = self.text("pattern")?.to_owned();
        let pattern = if self.flag("regex")? { Pattern::Regex(text) } else { Pattern::Literal(text) };
        Ok(Search {
            pattern,
            before: self.number("before")?.unwrap_or(0),
            after: self.number("after")?.unwrap_or(0),
            max_matches: self.number("max_matches")?.unwrap_or(Search::MATCHES),
            offset: self.number("offset")?.unwrap_or(1),
            char_offset: self.number("char_offset")?.unwrap_or(0),
        })
    }
}

/// A float that is a whole number, as far as floats can tell.
fn whole(number: f64) -> Option<u64> {
    (number.fract() == 0.0 && (0.0..=9e15).contains(&number)).then_some(number as u64)
}

fn brief(value: &Value) -> String {
    let text = value.to_string();
    if text.chars().count() <= 60 { text } else { text.chars().take(60).chain(['…']).collect() }
}
