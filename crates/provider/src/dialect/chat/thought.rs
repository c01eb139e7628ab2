//! Where a model's thoughts stand in a chat message.
//!
//! OpenAI's own API carries none. Servers that say `reasoning_content` want it back (DeepSeek refuses a conversation
//! without it), others refuse a message that has the field (Groq, Cerebras). So it goes back to whom it came from: the
//! words are a part of the message, and its extra fields keep the name with `null` in place of the words.

use crate::dialect::tools::fields::{Fields, quoted};
use komado_core::message::{Message, Opaque, Part, Role};
use komado_core::openai::DIALECT;
use komado_core::raw::Raw;
use std::borrow::Cow;

/// The field.
pub(super) const FIELD: &str = "reasoning_content";

/// The mark of a message whose thoughts go back in [`FIELD`].
pub(super) fn mark() -> Option<Opaque> {
    let mut fields = Fields::default();
    fields.put(FIELD, "null");
    opaque(&fields)
}

/// The message as it goes out: the words are back in their field.
pub(super) fn filled(message: &Message) -> Cow<'_, Message> {
    let Some(mut fields) = own(message).filter(|fields| fields.get(FIELD) == Some("null")) else {
        return Cow::Borrowed(message);
    };
    match words(&message.parts) {
        Some(words) => fields.put(FIELD, quoted(&words)),
        None => drop(fields.take(FIELD)),
    }
    let mut message = message.clone();
    message.extra = opaque(&fields);
    Cow::Owned(message)
}

/// The message as it goes to a server that refuses the field.
pub(super) fn left_out(message: &Message) -> Cow<'_, Message> {
    let Some(mut fields) = own(message).filter(|fields| fields.get(FIELD).is_some()) else {
        return Cow::Borrowed(message);
    };
    fields.take(FIELD);
    Cow::Owned(Message { extra: opaque(&fields), ..message.clone() })
}

/// The message as it came in, with the words of the field as a part.
pub(super) fn parted(mut message: Message) -> Message {
    let Some(mut fields) = own(&message).filter(|_| message.role == Role::Assistant) else { return message };
    let words = fields.get(FIELD).and_then(|json| serde_json::from_str::<String>(json).ok());
    if let Some(text) = words.filter(|words| !words.is_empty()) {
        fields.put(FIELD, "null");
        message.extra = opaque(&fields);
        message.parts.insert(0, Part::Reasoning { text, signature: None });
    }
    message
}

/// All thoughts among `parts`.
pub(super) fn words(parts: &[Part]) -> Option<String> {
    let mut all: Option<String> = None;
    for part in parts {
        if let Part::Reasoning { text, .. } = part {
            all.get_or_insert_default().push_str(text);
        }
    }
    all
}

fn own(message: &Message) -> Option<Fields> {
    let extra = message.extra.as_ref().filter(|extra| extra.dialect == DIALECT)?;
    Some(Fields::of(extra.json.get()))
}

/// Fields that only this dialect knows; `None` when there are none.
pub(super) fn opaque(fields: &Fields) -> Option<Opaque> {
    if fields.is_empty() {
        return None;
    }
    Some(Opaque { dialect: DIALECT.into(), json: Raw::parse(fields.json()).ok()? })
}
