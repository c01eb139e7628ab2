//! What a provider says, piece by piece, in words that are the same for every dialect.
//!
//! A decoder turns bytes into events, an encoder turns events into bytes, and [`ModelResponse`] adds them up to a
//! message. An event owns its words, so that it can be handed on while the next bytes arrive.

use komado_core::journal::Usage;
use komado_core::message::{Call, CallKind, Message, MessagePart, Opaque, Role};
use komado_core::raw::{RawJson, RawObject};

/// One piece of an answer.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ModelEvent {
    /// The answer began.
    Begun {
        /// The answer's id, as the provider calls it.
        id: Option<String>,
        /// The model that answers, as it calls itself.
        model: Option<String>,
    },
    /// More words; they join the text before them unless an [`ModelEvent::PartDone`] came between.
    Text(String),
    /// More of what the model thinks, before it speaks.
    Reasoning(String),
    /// The seal on the thought that just ended.
    Signature(String),
    /// A call begins.
    Call {
        /// Which one; its arguments name it by this.
        index: usize,
        /// Pairs it with its result; empty when the provider gives none.
        id: String,
        /// The tool.
        name: String,
        /// Function or custom.
        kind: CallKind,
    },
    /// More of a call's arguments, as the model writes them.
    Arguments {
        /// Which call.
        index: usize,
        /// The next piece of text.
        text: String,
    },
    /// Fields of a call that only its dialect knows, as one JSON object.
    CallExtra {
        /// Which call.
        index: usize,
        /// The fields.
        json: RawJson,
    },
    /// A whole part that only its dialect understands.
    Part(Opaque),
    /// The part before it is whole; with fields beside a text that only its dialect knows.
    PartDone(Option<Opaque>),
    /// Fields of the message that only its dialect knows, as one JSON object. A later one adds to it: lists grow, other
    /// values are replaced.
    Extra(Opaque),
    /// What it took so far; a later one replaces it.
    Usage(Usage),
    /// The model stopped: `stop`, `length`, `tool_calls`, `content_filter`, `refusal`, or the provider's own word.
    Finished(String),
    /// The provider gave up, after its answer had begun.
    Failed(ProviderFailure),
}

/// An error in place of an answer, or in the middle of one.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ProviderFailure {
    /// The HTTP status; 200 inside a stream.
    pub status: u16,
    /// The whole body, or the event's own JSON.
    pub body: String,
}

impl ModelEvent {
    /// The provider gave up in the middle of an answer, and said `body`.
    pub(crate) fn failed(body: &str) -> Self {
        Self::Failed(ProviderFailure { status: 200, body: body.to_owned() })
    }

    /// True when a person would see something of it: from here on an answer cannot be taken back.
    pub fn is_content(&self) -> bool {
        !matches!(self, Self::Begun { .. } | Self::Usage(_) | Self::Failed(_) | Self::Finished(_))
    }
}

// An answer, added up from its events.

/// What was heard so far.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ModelResponse {
    /// The answer's id.
    pub id: Option<String>,
    /// The model that answered.
    pub model: Option<String>,
    /// What it took.
    pub usage: Option<Usage>,
    /// Why it stopped; `None` while it has not.
    pub finish: Option<String>,
    /// What went wrong.
    pub failed: Option<ProviderFailure>,
    parts: Vec<MessagePart>,
    /// Where each call stands among the parts, by its index.
    calls: Vec<(usize, usize)>,
    /// Fields of the message, each with what was said of it so far, by dialect.
    extra: Vec<Field>,
    dialect: String,
    /// True when the last part is whole.
    closed: bool,
}

impl ModelResponse {
    /// Takes the next event in.
    pub fn take(&mut self, event: &ModelEvent) {
        match event {
            ModelEvent::Begun { id, model } => {
                self.id = id.clone().or(self.id.take());
                self.model = model.clone().or(self.model.take());
            }
            ModelEvent::Text(text) => self.text(text),
            ModelEvent::Reasoning(text) => self.reasoning(text, None),
            ModelEvent::Signature(seal) => self.reasoning("", Some(seal)),
            ModelEvent::Call { index, id, name, kind } => {
                self.calls.push((*index, self.parts.len()));
                self.push(MessagePart::Call(Call {
                    id: id.clone(),
                    name: name.clone(),
                    arguments: String::new(),
                    kind: *kind,
                    extra: None,
                }));
            }
            ModelEvent::Arguments { index, text } => {
                if let Some(call) = self.call(*index) {
                    call.arguments.push_str(text);
                }
            }
            ModelEvent::CallExtra { index, json } => {
                if let Some(call) = self.call(*index) {
                    call.extra = Some(json.clone());
                }
            }
            ModelEvent::Part(opaque) => {
                self.push(MessagePart::Opaque(opaque.clone()));
                self.closed = true;
            }
            ModelEvent::PartDone(extra) => {
                if let Some(MessagePart::Text { extra: place, .. }) = self.parts.last_mut() {
                    *place = extra.clone().or(place.take());
                }
                self.closed = true;
            }
            ModelEvent::Extra(more) => self.add(more),
            ModelEvent::Usage(usage) => self.usage = Some(*usage),
            ModelEvent::Finished(why) => self.finish = Some(why.clone()),
            ModelEvent::Failed(failed) => self.failed = Some(failed.clone()),
        }
    }

    /// True when nothing was said yet.
    pub fn is_empty(&self) -> bool {
        self.parts.is_empty()
    }

    /// The message; `None` when nothing was said.
    pub fn message(&self) -> Option<Message> {
        let extra = self.extra();
        if self.parts.is_empty() && extra.is_none() {
            return None;
        }
        let parts = if self.parts.is_empty() { vec![MessagePart::text("")] } else { self.parts.clone() };
        Some(Message { role: Role::Assistant, name: None, parts, extra })
    }

    /// Takes fields in. They are put together when someone wants them: they may come with every word.
    fn add(&mut self, more: &Opaque) {
        let Ok(object) = RawObject::parse(more.json.get()) else { return };
        if self.dialect != more.dialect {
            (self.extra, self.dialect) = (Vec::new(), more.dialect.clone());
        }
        for (key, value) in &object.0 {
            let value = value.get().to_owned();
            match self.extra.iter_mut().find(|field| field.key == *key) {
                Some(field) if is_list(&value) && field.values.iter().all(|v| is_list(v)) => {
                    field.values.push(value)
                }
                Some(field) => field.values = vec![value],
                None => self.extra.push(Field { key: key.to_string(), values: vec![value] }),
            }
        }
    }

    fn extra(&self) -> Option<Opaque> {
        if self.extra.is_empty() {
            return None;
        }
        let fields: Vec<String> = self.extra.iter().map(Field::json).collect();
        let json = RawJson::parse(format!("{{{}}}", fields.join(","))).ok()?;
        Some(Opaque { dialect: self.dialect.clone(), json })
    }

    fn push(&mut self, part: MessagePart) {
        self.parts.push(part);
        self.closed = false;
    }

    fn text(&mut self, more: &str) {
        match self.parts.last_mut() {
            Some(MessagePart::Text { text, .. }) if !self.closed => text.push_str(more),
            _ => self.push(MessagePart::text(more)),
        }
    }

    fn reasoning(&mut self, more: &str, seal: Option<&String>) {
        match self.parts.last_mut() {
            Some(MessagePart::Reasoning { text, signature }) if !self.closed => {
                text.push_str(more);
                if let Some(seal) = seal {
                    signature.get_or_insert_default().push_str(seal);
                }
            }
            _ => self.push(MessagePart::Reasoning { text: more.to_owned(), signature: seal.cloned() }),
        }
    }

    fn call(&mut self, index: usize) -> Option<&mut Call> {
        let at = self.calls.iter().rev().find(|(i, _)| *i == index)?.1;
        match self.parts.get_mut(at) {
            Some(MessagePart::Call(call)) => Some(call),
            _ => None,
        }
    }
}

/// A field of the message: a value, or pieces of a list.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Field {
    key: String,
    values: Vec<String>,
}

impl Field {
    fn json(&self) -> String {
        let value = match self.values.as_slice() {
            [one] => one.clone(),
            pieces => {
                let inner = |list: &'_ String| {
                    let inner = list.trim().strip_prefix('[').and_then(|list| list.strip_suffix(']'));
                    inner.unwrap_or_default().trim().to_owned()
                };
                let inner: Vec<String> = pieces.iter().map(inner).filter(|inner| !inner.is_empty()).collect();
                format!("[{}]", inner.join(","))
            }
        };
        format!("{}:{value}", serde_json::Value::from(self.key.as_str()))
    }
}

fn is_list(json: &str) -> bool {
    json.trim_start().starts_with('[')
}

#[cfg(test)]
mod tests {
    use super::*;
    use komado_core::message::CallKind;

    fn heard(events: &[ModelEvent]) -> ModelResponse {
        let mut heard = ModelResponse::default();
        events.iter().for_each(|event| heard.take(event));
        heard
    }

    #[test]
    fn pieces_join_in_the_order_in_which_they_were_said() {
        let call = |index, id: &str| ModelEvent::Call {
            index,
            id: id.into(),
            name: "read".into(),
            kind: CallKind::Function,
        };
        let arguments = |index, text: &str| ModelEvent::Arguments { index, text: text.into() };
        let heard = heard(&[
            ModelEvent::Reasoning("hm".into()),
            ModelEvent::Signature("s1".into()),
            ModelEvent::PartDone(None),
            ModelEvent::Text("窓".into()),
            ModelEvent::Text("を".into()),
            ModelEvent::PartDone(None),
            ModelEvent::Text("開ける".into()),
            call(0, "a"),
            call(1, "b"),
            arguments(1, "{\"p\":"),
            arguments(0, "{}"),
            arguments(1, "1}"),
            ModelEvent::Finished("tool_calls".into()),
        ]);
        let message = heard.message().unwrap();
        let seal = Some("s1".to_owned());
        assert_eq!(message.parts[0], MessagePart::Reasoning { text: "hm".into(), signature: seal });
        assert_eq!(message.parts[1..3], [MessagePart::text("窓を"), MessagePart::text("開ける")]);
        let calls: Vec<_> = message.calls().map(|call| (call.id.as_str(), call.arguments.as_str())).collect();
        assert_eq!(calls, [("a", "{}"), ("b", "{\"p\":1}")]);
        assert_eq!(heard.finish.as_deref(), Some("tool_calls"));
    }

    #[test]
    fn fields_of_the_message_grow_where_they_are_lists() {
        let extra = |json: &str| {
            ModelEvent::Extra(Opaque { dialect: "openai".into(), json: RawJson::parse(json).unwrap() })
        };
        let heard = heard(&[extra(r#"{"a":[1.0],"b":1}"#), extra(r#"{"a":[2],"b":null,"c":"x"}"#)]);
        let message = heard.message().unwrap();
        assert_eq!(message.extra.unwrap().json.get(), r#"{"a":[1.0,2],"b":null,"c":"x"}"#);
    }
}
