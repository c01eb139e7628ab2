//! Texts inside JSON, changed without touching any other byte.
//!
//! A secret in the arguments of a call is escaped twice; a search over the line would miss it. So texts are taken out
//! of their quotes, cleaned, and put back; texts that are JSON themselves are cleaned inside.

use komado_core::raw;
use serde_json::value::RawValue;

/// Cleans every text and number in a JSON document; `None` when nothing changes. `clean` gives a text without the
/// secret, `None` when it has none.
pub(super) fn clean_json(json: &str, clean: &dyn Fn(&str) -> Option<String>) -> Option<String> {
    let mut out = String::with_capacity(json.len());
    let mut changed = false;
    let mut rest = json;
    while let Some(start) = rest.find(|c: char| c == '"' || c == '-' || c.is_ascii_digit()) {
        let (before, from) = rest.split_at(start);
        let (token, after) = from.split_at(token_len(from)?);
        out.push_str(before);
        let cleaned = match serde_json::from_str::<String>(token) {
            Ok(text) => clean_text(&text, clean),
            Err(_) => clean(token),
        };
        changed |= cleaned.is_some();
        match cleaned {
            Some(text) => out.push_str(&serde_json::Value::from(text).to_string()),
            None => out.push_str(token),
        }
        rest = after;
    }
    out.push_str(rest);
    changed.then_some(out)
}

/// Cleans a text, inside when it is JSON, then as a whole; `None` when nothing changes.
pub(super) fn clean_text(text: &str, clean: &dyn Fn(&str) -> Option<String>) -> Option<String> {
    let inside = is_json(text).then(|| clean_json(text, clean)).flatten();
    let whole = clean(inside.as_deref().unwrap_or(text));
    whole.or(inside)
}

/// True for a JSON object or array.
pub(super) fn is_json(text: &str) -> bool {
    text.trim_start().starts_with(['{', '[']) && serde_json::from_str::<&RawValue>(text).is_ok()
}

/// Length of the string or number that `text` begins with, quotes included; `None` for a string without an end.
fn token_len(text: &str) -> Option<usize> {
    if !text.starts_with('"') {
        let end = text.find(|c: char| !c.is_ascii_alphanumeric() && !matches!(c, '-' | '+' | '.'));
        return Some(end.unwrap_or(text.len()));
    }
    raw::string_len(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn without_secret(text: &str) -> Option<String> {
        text.contains("s3cret\"x")
            .then(|| text.replace("s3cret\"x", "-"))
            .or_else(|| text.contains("4711").then(|| text.replace("4711", "-")))
    }

    #[test]
    fn only_texts_and_numbers_that_match_change_and_every_other_byte_stays() {
        let json = r#"{"n": 1.0, "content":"a s3cret\"x b" ,"pin":47110,"args":"{\"k\":\"s3cret\\\"x\",\"n\" :1.50}"}"#;
        assert_eq!(
            clean_json(json, &without_secret).unwrap(),
            r#"{"n": 1.0, "content":"a - b" ,"pin":"-0","args":"{\"k\":\"-\",\"n\" :1.50}"}"#
        );
    }

    #[test]
    fn what_holds_no_secret_is_not_touched() {
        for json in [r#"{"a":"b","n":-1.5e+10}"#, "[]", r#"["\u00e9\\",null]"#, "true", "\"open"] {
            assert_eq!(clean_json(json, &without_secret), None, "{json}");
        }
    }
}
