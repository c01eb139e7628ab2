//! One part as a content block.

use super::NAME;
use crate::dialect::json::{call_fields, of, splice, write_string};
use crate::dialect::tools::fields::quoted;
use komado_core::message::{Call, ImageSource, Opaque, Outcome, Part};
use komado_core::openai::Blobs;
use komado_core::raw::{self, Object, Raw};
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::io::{self, Write};

/// Stands where a message or a failed tool has nothing to say: the API takes no empty text.
pub(super) const EMPTY: &str = "(empty)";

/// The field in which arguments travel that are not a JSON object.
const RAW: &str = "_raw";

/// True when `part` becomes a block.
pub(super) fn is_shown(part: &Part) -> bool {
    match part {
        Part::Text { text, .. } => !is_blank(text),
        Part::Image { .. } | Part::Call(_) | Part::Result(_) => true,
        Part::Reasoning { signature, .. } => signature.is_some(),
        Part::Opaque(opaque) => opaque.dialect == NAME,
    }
}

/// True for a text that the API refuses.
pub(super) fn is_blank(text: &str) -> bool {
    text.trim().is_empty()
}

/// Writes a part that is shown; `extra` are the fields that a tool's answer has beside its own.
pub(super) fn write(
    part: &Part,
    extra: Option<&Opaque>,
    blobs: &mut dyn Blobs,
    out: &mut dyn Write,
) -> io::Result<()> {
    match part {
        Part::Text { text, extra } => write_text(text, extra.as_ref(), out),
        Part::Image { source, .. } => write_image(source, blobs, out),
        Part::Call(call) => write_call(call, out),
        Part::Result(outcome) => write_result(outcome, extra, blobs, out),
        Part::Reasoning { text, signature } => {
            write_thinking(text, signature.as_deref().unwrap_or_default(), out)
        }
        Part::Opaque(opaque) => out.write_all(opaque.json.get().as_bytes()),
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
    outcome: &Outcome,
    extra: Option<&Opaque>,
    blobs: &mut dyn Blobs,
    out: &mut dyn Write,
) -> io::Result<()> {
    out.write_all(b"{\"type\":\"tool_result\",\"tool_use_id\":")?;
    write_string(&plain_id(&outcome.call_id), out)?;
    let shown: Vec<&Part> = outcome.content.iter().filter(is_content).collect();
    match shown.as_slice() {
        // An error must say something; any other answer may be silent.
        [] if outcome.is_error => write!(out, ",\"content\":{}", quoted(EMPTY))?,
        [] => {}
        [Part::Text { text, extra }] if of(extra.as_ref(), NAME).is_none() => {
            out.write_all(b",\"content\":")?;
            write_string(text, out)?;
        }
        parts => {
            for (i, part) in parts.iter().enumerate() {
                out.write_all(if i == 0 { b",\"content\":[" } else { b"," })?;
                write(part, None, blobs, out)?;
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
fn is_content(part: &&Part) -> bool {
    matches!(part, Part::Text { .. } | Part::Image { .. } | Part::Opaque(_)) && is_shown(part)
}

fn write_image(source: &ImageSource, blobs: &mut dyn Blobs, out: &mut dyn Write) -> io::Result<()> {
    out.write_all(b"{\"type\":\"image\",\"source\":{\"type\":")?;
    match source {
        ImageSource::Blob { blob, media_type, .. } => {
            write!(out, "\"base64\",\"media_type\":{},\"data\":\"", quoted(media_type))?;
            blobs.base64(blob, out)?;
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
    let json = Raw::from_value(input).get().to_owned();
    let Ok(object) = Object::parse(&json) else { return json };
    let words = match object.0.as_slice() {
        [(key, value)] if key == RAW => serde_json::from_str::<String>(value.get()).ok(),
        _ => None,
    };
    words.filter(|words| !words.trim().is_empty() && !is_object(words)).unwrap_or(json)
}

fn is_object(text: &str) -> bool {
    Object::parse(text).is_ok() && raw::check(text).is_ok()
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
