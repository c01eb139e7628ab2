//! An error in place of an answer, in the form that clients of chat completions look for.

use crate::dialect::tools::fields::quoted;
use crate::event::Failed;
use komado_core::raw::{Object, Raw};

/// The error as one JSON object on one line. One that has the right form goes on as it came.
pub(super) fn body(failed: &Failed) -> String {
    let object = Object::parse(&failed.body).ok();
    let error = object.as_ref().and_then(|object| object.get("error"));
    if error.is_some_and(|error| error.get().starts_with('{'))
        && let Ok(raw) = Raw::parse(failed.body.trim())
    {
        return raw.get().to_owned();
    }
    let (words, code) = (quoted(&message(&failed.body)), failed.status);
    format!(
        "{{\"error\":{{\"message\":{words},\"type\":\"upstream_error\",\"param\":null,\"code\":{code}}}}}"
    )
}

/// The words of an error, wherever the provider put them; the whole body when they are not found.
pub(in crate::dialect) fn message(body: &str) -> String {
    found(body, 0).unwrap_or_else(|| body.trim().to_owned())
}

fn found(json: &str, depth: usize) -> Option<String> {
    if let Ok(text) = serde_json::from_str::<String>(json) {
        return Some(text);
    }
    let object = Object::parse(json).ok().filter(|_| depth < 4)?;
    let inner = ["error", "message", "detail"].into_iter().find_map(|key| object.get(key))?;
    found(inner.get(), depth + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_an_error_are_found_in_every_form() {
        for body in [
            r#"{"error":{"message":"長すぎる","code":400}}"#,
            r#"{"error":"長すぎる"}"#,
            r#"{"type":"error","error":{"type":"x","message":"長すぎる"}}"#,
            r#"{"object":"error","message":"長すぎる"}"#,
            "長すぎる\n",
        ] {
            assert_eq!(message(body), "長すぎる");
            let written = super::body(&Failed { status: 200, body: body.into() });
            assert_eq!(message(&written), "長すぎる");
            assert!(!written.contains('\n'));
        }
    }
}
