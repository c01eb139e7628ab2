//! An answer of chat completions, from events to bytes, as OpenAI itself would send it.
//!
//! What has no place in this API (a seal on a thought, parts of other dialects) is left out.

use super::{decode, request};
use crate::dialect::json::{JsonFields, array, error_words, own, quoted};
use crate::dialect::{Encode, Parting, ResponseForm, ResponseStamp};
use crate::event::{ModelEvent, ModelResponse, ProviderFailure};
use komado_core::message::{Call, CallKind, MessagePart};
use komado_core::openai::DIALECT;
use komado_core::raw::{RawJson, RawObject};

/// Encodes an answer.
#[derive(Debug, Default)]
pub struct Encoder {
    form: ResponseForm,
    stamp: ResponseStamp,
    heard: ModelResponse,
    /// The index of each call in the events, in the order of the wire.
    calls: Vec<(usize, CallKind)>,
    /// True when the first chunk is out.
    begun: bool,
    refused: bool,
    failed: bool,
    parting: Parting,
    /// Calls so far.
    made: usize,
}

impl Encoder {
    /// An encoder for an answer in `form`.
    pub(in crate::dialect) fn new(form: ResponseForm, stamp: ResponseStamp) -> Self {
        Self { form, stamp, ..Self::default() }
    }
}

impl Encode for Encoder {
    fn event(&mut self, event: &ModelEvent, out: &mut Vec<u8>) {
        let Some(event) = self.parting.told(event) else { return };
        let named = self.named(&event);
        let event = named.as_ref().unwrap_or(&event);
        self.note(event);
        match (self.form, event) {
            (_, ModelEvent::Failed(failed)) => {
                self.failed = true;
                self.line(&error_body(failed), out);
            }
            (ResponseForm::Whole, _) => self.heard.take(event),
            (ResponseForm::Stream, _) => self.stream(event, out),
        }
    }

    fn end(&mut self, out: &mut Vec<u8>) {
        if self.failed {
            return;
        }
        match self.form {
            ResponseForm::Whole => self.line(&self.whole(), out),
            ResponseForm::Stream => {
                if let Some(usage) = self.heard.usage.filter(|_| self.stamp.usage) {
                    self.line(&self.frame(".chunk", "", Some(decode::write_usage(&usage))), out);
                }
                self.line("[DONE]", out);
            }
        }
    }
}

impl Encoder {
    /// A call that came without an id, with one: a client pairs by it.
    fn named(&mut self, event: &ModelEvent) -> Option<ModelEvent> {
        let ModelEvent::Call { index, id, name, kind } = event else { return None };
        self.made += 1;
        let id = if id.is_empty() { format!("call_{}", self.made - 1) } else { return None };
        Some(ModelEvent::Call { index: *index, id, name: name.clone(), kind: *kind })
    }

    /// Remembers what later bytes depend on.
    fn note(&mut self, event: &ModelEvent) {
        match event {
            ModelEvent::Begun { .. } | ModelEvent::Usage(_) if self.form == ResponseForm::Stream => {
                self.heard.take(event)
            }
            ModelEvent::Extra(extra) => {
                self.refused |= own(Some(extra), DIALECT).is_some_and(|f| f.get("refusal").is_some())
            }
            _ => {}
        }
    }

    fn line(&self, json: &str, out: &mut Vec<u8>) {
        match self.form {
            ResponseForm::Whole => out.extend_from_slice(json.as_bytes()),
            ResponseForm::Stream => out.extend_from_slice(format!("data: {json}\n\n").as_bytes()),
        }
    }

    /// The object around `choices`; `kind` is what its name ends with.
    fn frame(&self, kind: &str, choices: &str, usage: Option<String>) -> String {
        let created = self.stamp.created;
        let id = self.heard.id.clone().unwrap_or_else(|| format!("chatcmpl-{created}"));
        let (id, model) = (quoted(&id), quoted(self.heard.model.as_deref().unwrap_or_default()));
        let usage = usage.map(|usage| format!(",\"usage\":{usage}")).unwrap_or_default();
        format!(
            "{{\"id\":{id},\"object\":\"chat.completion{kind}\",\"created\":{created},\"model\":{model},\
             \"choices\":[{choices}]{usage}}}"
        )
    }

    fn chunk(&self, delta: &JsonFields, finish: Option<&str>, out: &mut Vec<u8>) {
        let choice = choice("delta", delta, finish);
        self.line(&self.frame(".chunk", &choice, self.stamp.usage.then(|| "null".into())), out);
    }

    fn stream(&mut self, event: &ModelEvent, out: &mut Vec<u8>) {
        let (delta, finish) = match event {
            ModelEvent::Finished(why) => (JsonFields::default(), Some(self.word(why))),
            // The first chunk says who speaks; everything else waits for it.
            ModelEvent::Begun { .. } => (JsonFields::default(), None),
            _ => match self.delta(event) {
                Some(delta) => (delta, None),
                None => return,
            },
        };
        if !std::mem::replace(&mut self.begun, true) {
            let mut first = JsonFields::default();
            first.say("role", "assistant");
            first.say("content", "");
            self.chunk(&first, None, out);
        }
        if finish.is_some() || !delta.is_empty() {
            self.chunk(&delta, finish.as_deref(), out);
        }
    }

    /// What one event changes; `None` when this API has no word for it.
    fn delta(&mut self, event: &ModelEvent) -> Option<JsonFields> {
        let mut delta = JsonFields::default();
        match event {
            ModelEvent::Text(text) => delta.say("content", text),
            ModelEvent::Reasoning(text) => delta.say(request::FIELD, text),
            ModelEvent::Part(part) if part.dialect == DIALECT => {
                delta.put("content", format!("[{}]", part.json.get()));
            }
            ModelEvent::Extra(extra) => {
                // Thoughts were told as they came; what is left of them here is where they stood.
                delta = own(Some(extra), DIALECT)?;
                delta.take(request::FIELD);
            }
            ModelEvent::Call { index, id, name, kind } => {
                self.calls.push((*index, *kind));
                let at = self.calls.len() - 1;
                let mut call = JsonFields::default();
                call.put("index", at.to_string());
                put_call(&mut call, id, name, "", *kind);
                delta.put("tool_calls", format!("[{}]", call.json()));
            }
            ModelEvent::Arguments { index, text } => {
                let (at, kind) = self.place(*index)?;
                let ((holder, argument), text) = (kind.fields(), quoted(text));
                let call = format!("[{{\"index\":{at},\"{holder}\":{{\"{argument}\":{text}}}}}]");
                delta.put("tool_calls", call);
            }
            ModelEvent::CallExtra { index, json } => {
                let mut call = JsonFields::default();
                call.put("index", self.place(*index)?.0.to_string());
                call.put_all(json.get());
                delta.put("tool_calls", format!("[{}]", call.json()));
            }
            _ => return None,
        }
        Some(delta)
    }

    fn place(&self, index: usize) -> Option<(usize, CallKind)> {
        let at = self.calls.iter().rposition(|(known, _)| *known == index)?;
        Some((at, self.calls[at].1))
    }

    /// OpenAI's word for why the model stopped.
    fn word(&self, why: &str) -> String {
        match why {
            "refusal" if self.refused => "stop".into(),
            "refusal" => "content_filter".into(),
            why => why.into(),
        }
    }

    fn whole(&self) -> String {
        let finish = self.word(self.heard.finish.as_deref().unwrap_or("stop"));
        let choice = choice("message", &self.message(), Some(&finish));
        self.frame("", &choice, self.heard.usage.as_ref().map(decode::write_usage))
    }

    fn message(&self) -> JsonFields {
        let heard = self.heard.message();
        let parts = heard.as_ref().map_or(&[][..], |message| &message.parts);
        let mut message = JsonFields::default();
        message.say("role", "assistant");
        message.put("content", content(parts));
        message.put("refusal", "null");
        if let Some(words) = request::thoughts(parts) {
            message.say(request::FIELD, &words);
        }
        let calls: Vec<String> = parts.iter().filter_map(call).collect();
        array(&calls).into_iter().for_each(|calls| message.put("tool_calls", calls));
        let extra = heard.as_ref().and_then(|message| own(message.extra.as_ref(), DIALECT));
        let extra = extra.unwrap_or_default();
        let kept = extra.iter().filter(|(key, _)| *key != request::FIELD);
        kept.for_each(|(key, value)| message.put(key, value));
        message
    }
}

/// A choice that says `said` under `key`.
fn choice(key: &str, said: &JsonFields, finish: Option<&str>) -> String {
    let (said, finish) = (said.json(), finish.map_or_else(|| "null".into(), quoted));
    format!("{{\"index\":0,\"{key}\":{said},\"logprobs\":null,\"finish_reason\":{finish}}}")
}

/// All words as one text, which is what clients expect; a list only where there are parts that are no words.
fn content(parts: &[MessagePart]) -> String {
    let odd = |part: &MessagePart| matches!(part, MessagePart::Opaque(opaque) if opaque.dialect == DIALECT);
    if parts.iter().any(odd) {
        let shown: Vec<String> = parts.iter().filter_map(content_part).collect();
        return format!("[{}]", shown.join(","));
    }
    let texts = parts.iter().filter_map(|part| match part {
        MessagePart::Text { text, .. } => Some(text.as_str()),
        _ => None,
    });
    texts.map(str::to_owned).reduce(|all, text| all + &text).map_or_else(|| "null".into(), |all| quoted(&all))
}

fn content_part(part: &MessagePart) -> Option<String> {
    match part {
        MessagePart::Text { text, .. } => Some(format!("{{\"type\":\"text\",\"text\":{}}}", quoted(text))),
        MessagePart::Opaque(opaque) if opaque.dialect == DIALECT => Some(opaque.json.get().to_owned()),
        _ => None,
    }
}

fn call(part: &MessagePart) -> Option<String> {
    let MessagePart::Call(Call { id, name, arguments, kind, extra }) = part else { return None };
    let mut call = JsonFields::default();
    put_call(&mut call, id, name, arguments, *kind);
    extra.iter().for_each(|extra| call.put_all(extra.get()));
    Some(call.json())
}

fn put_call(call: &mut JsonFields, id: &str, name: &str, arguments: &str, kind: CallKind) {
    let ((holder, argument), name, arguments) = (kind.fields(), quoted(name), quoted(arguments));
    call.say("id", id);
    call.say("type", holder);
    call.put(holder, format!("{{\"name\":{name},\"{argument}\":{arguments}}}"));
}

// An error in place of an answer, in the form that clients of chat completions look for.

/// The error as one JSON object on one line. One that has the right form goes on as it came.
fn error_body(failed: &ProviderFailure) -> String {
    let object = RawObject::parse(&failed.body).ok();
    let error = object.as_ref().and_then(|object| object.get("error"));
    if error.is_some_and(|error| error.get().starts_with('{'))
        && let Ok(raw) = RawJson::parse(failed.body.trim())
    {
        return raw.get().to_owned();
    }
    let (words, code) = (quoted(&error_words(&failed.body)), failed.status);
    format!(
        "{{\"error\":{{\"message\":{words},\"type\":\"upstream_error\",\"param\":null,\"code\":{code}}}}}"
    )
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
            assert_eq!(error_words(body), "長すぎる");
            let written = error_body(&ProviderFailure { status: 200, body: body.into() });
            assert_eq!(error_words(&written), "長すぎる");
            assert!(!written.contains('\n'));
        }
    }
}
