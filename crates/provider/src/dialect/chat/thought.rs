//! Where a model's thoughts stand in a chat message.
//!
//! OpenAI's own API carries none. Servers that say `reasoning_content` want it back (DeepSeek refuses a conversation
//! without it), others refuse a message that has the field (Groq, Cerebras). So it goes back to whom it came from: the
//! words are a part of the message, and its extra fields keep the name with `null` in place of the words.

use crate::dialect::json::{kept, own};
use crate::dialect::tools::fields::Fields;
use komado_core::message::{Message, Opaque, Part, Role};
use komado_core::openai::DIALECT;
use std::borrow::Cow;

/// The field.
pub(super) const FIELD: &str = "reasoning_content";

/// The mark of a message whose thoughts go back in [`FIELD`].
pub(super) fn mark() -> Option<Opaque> {
    let mut fields = Fields::default();
    fields.put(FIELD, "null");
    kept(&fields, DIALECT)
}

/// The message as it goes out: the words are back in their field.
pub(super) fn filled(message: &Message) -> Cow<'_, Message> {
    let own = own(message.extra.as_ref(), DIALECT);
    let Some(mut fields) = own.filter(|fields| fields.get(FIELD) == Some("null")) else {
        return Cow::Borrowed(message);
    };
    match words(&message.parts) {
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
        message.parts.insert(0, Part::Reasoning { text, signature: None });
    }
    message
}

/// All thoughts among `parts`.
pub(in crate::dialect) fn words(parts: &[Part]) -> Option<String> {
    let mut all: Option<String> = None;
    for part in parts {
        if let Part::Reasoning { text, .. } = part {
            all.get_or_insert_default().push_str(text);
        }
    }
    all
}
