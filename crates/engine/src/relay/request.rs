//! What a client asks for beside its transcript, read from where it lies.
//!
//! The transcript may be large and is mostly known; everything else in a request is small. So the request is read as if
//! it had no transcript at all.

use super::Arrival;
use crate::error::{Error, Result};
use komado_core::journal::Setup;
use komado_core::raw::{Object, Raw};
use komado_provider::{Asked, BadRequest, Dialect, Skim};
use serde_json::value::RawValue;
use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;

/// A block of Anthropic's system prompt that begins so is for the till: it changes with each request and says nothing.
pub(crate) const BILLING: &str = "x-anthropic-billing-header";

/// A request without its transcript.
#[derive(Clone, Debug)]
pub(super) struct Request {
    /// System prompt, tools, parameters.
    pub(super) setup: Setup,
    /// The longest answer that the client wants.
    pub(super) wish: Option<u64>,
    /// How many tokens of that the model may think, where the API wants the one below the other.
    pub(super) thoughts: Option<u64>,
    /// True when the client wants to hear of usage in the stream.
    pub(super) usage: bool,
}

impl Request {
    /// Reads what an arrival asks for.
    pub(super) fn read(arrival: &Arrival) -> Result<Self> {
        let (skim, body) = (&*arrival.skim, &*arrival.body);
        let text = shell(skim, body)?;
        Ok(Self::of(skim.dialect.read(&text).map_err(unreadable)?))
    }

    /// What was asked for, beside what was said.
    pub(super) fn of(asked: Asked) -> Self {
        let params = asked.setup.params.as_ref().and_then(|params| Object::parse(params.get()).ok());
        let inside = |outer: &str, key: &str| {
            let object = Object::parse(params.as_ref()?.get(outer)?.get()).ok()?;
            object.get(key).map(|value| value.get().to_owned())
        };
        let number = |outer, key| inside(outer, key).and_then(|text| text.parse::<u64>().ok());
        let wish = asked.max_tokens.or_else(|| number("options", "num_predict"));
        let thoughts = number("thinking", "budget_tokens");
        let usage = inside("stream_options", "include_usage").as_deref() == Some("true");
        Self { setup: asked.setup, wish, thoughts, usage }
    }
}

/// The request with an empty transcript.
fn shell(skim: &Skim, body: &File) -> Result<String> {
    let list = skim.list();
    let mut fields = Vec::with_capacity(skim.fields.len());
    for field in &skim.fields {
        let value = match &list {
            Some(list) if *list == field.span => "[]".to_owned(),
            _ => text(body, &field.span)?,
        };
        let value = match (skim.dialect, field.key.as_str()) {
            (Dialect::Messages, "system") => unbilled(&value).unwrap_or(value),
            _ => value,
        };
        fields.push(format!("{}:{value}", serde_json::Value::from(field.key.as_str())));
    }
    Ok(format!("{{{}}}", fields.join(",")))
}

/// A list of system blocks without the one for the till.
fn unbilled(system: &str) -> Option<String> {
    let blocks: Vec<&RawValue> = serde_json::from_str(system).ok()?;
    let is_bill = |block: &&&RawValue| {
        let words =
            Object::parse(block.get()).ok().and_then(|block| block.read::<String>("text").ok().flatten());
        words.is_some_and(|words| words.trim_start().starts_with(BILLING))
    };
    if !blocks.iter().any(|block| is_bill(&block)) {
        return None;
    }
    let kept: Vec<&str> = blocks.iter().filter(|block| !is_bill(block)).map(|block| block.get()).collect();
    Some(format!("[{}]", kept.join(",")))
}

/// The text at a place of a body.
pub(super) fn text(body: &File, span: &Range<u64>) -> Result<String> {
    let len = usize::try_from(span.end.saturating_sub(span.start)).map_err(io::Error::other)?;
    let mut bytes = vec![0; len];
    body.read_exact_at(&mut bytes, span.start)?;
    String::from_utf8(bytes).map_err(|error| Error::Io(io::Error::new(io::ErrorKind::InvalidData, error)))
}

/// The texts of elements.
pub(super) fn elements(skim: &Skim, body: &File, which: Range<u32>) -> Result<Vec<String>> {
    let which = which.start as usize..(which.end as usize).min(skim.elements.len());
    skim.elements.get(which).unwrap_or_default().iter().map(|element| text(body, &element.span)).collect()
}

/// What cannot be read cannot be journaled.
pub(super) fn unreadable(bad: BadRequest) -> Error {
    Error::Io(io::Error::new(io::ErrorKind::InvalidData, format!("the request cannot be taken in: {bad}")))
}

/// True when system prompt or tools are others; parameters do not count.
pub(super) fn differs(old: &Setup, new: &Setup) -> bool {
    let words = |setup: &Setup| setup.system.clone().filter(|system| !system.is_empty());
    let tools =
        |setup: &Setup| setup.tools.as_ref().map(Raw::get).filter(|tools| *tools != "[]").map(str::to_owned);
    words(old) != words(new) || tools(old) != tools(new)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_for_the_till_is_no_part_of_the_system_prompt() {
        let system =
            r#"[{"type":"text","text":"x-anthropic-billing-header: a=1"},{"type":"text","text":"窓"}]"#;
        assert_eq!(unbilled(system).as_deref(), Some(r#"[{"type":"text","text":"窓"}]"#));
        assert_eq!(unbilled(r#"[{"type":"text","text":"窓"}]"#), None);
        assert_eq!(unbilled(r#""words""#), None);
    }
}
