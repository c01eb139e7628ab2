//! Arguments of a call: an object on this wire, the model's own text everywhere else.
//!
//! A text that is no JSON object is wrapped in one, and our own wrap is taken off again when it comes back.

use crate::dialect::tools::fields::quoted;
use komado_core::raw::Object;

/// The key under which a text stands that is no object.
const RAW: &str = "_raw";

/// The text as an object. Nothing said is an object without fields: that is how this API says it.
pub(super) fn write(text: &str) -> String {
    let bare = text.trim();
    if bare.is_empty() {
        return "{}".into();
    }
    match Object::parse(bare) {
        // An object that looks like our wrap is wrapped, too, or it would come back as something else.
        Ok(object) if wrapped(&object).is_none() => bare.to_owned(),
        _ => format!("{{\"{RAW}\":{}}}", quoted(text)),
    }
}

/// The text of the arguments that came; a server or client that sends a text is taken by its word.
pub(super) fn read(json: &str) -> String {
    if let Ok(text) = serde_json::from_str::<String>(json) {
        return text;
    }
    Object::parse(json).ok().and_then(|object| wrapped(&object)).unwrap_or_else(|| json.to_owned())
}

fn wrapped(object: &Object<'_>) -> Option<String> {
    if object.0.len() != 1 {
        return None;
    }
    object.read(RAW).ok().flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_that_is_no_object_comes_back_as_it_was() {
        for text in
            ["{\"p\":1.0}", "{\n \"窓\": 12345678901234567890}", "[1]", "half {", "\"x\"", "{\"_raw\":\"x\"}"]
        {
            let object = write(text);
            assert!(object.starts_with('{') && Object::parse(&object).is_ok(), "{object}");
            assert_eq!(read(&object), text);
        }
        assert_eq!(write("{\"p\":1.0}"), "{\"p\":1.0}");
        assert_eq!(write(" "), "{}");
    }
}
