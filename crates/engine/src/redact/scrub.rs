//! One entry without its secret.
//!
//! Words go; what holds the conversation together stays: roles, numbers, times, digests. Ids of calls and names of
//! tools are changed only when they match, and then to something a provider still takes, the same in the call and in
//! its result.
//!
//! A secret in the arguments of a call is escaped twice; a search over the line would miss it. So texts are taken out
//! of their quotes, cleaned, and put back; texts that are JSON themselves are cleaned inside.

use super::REDACTED;
use komado_core::journal::{Entry, Record, Reply, encode};
use komado_core::message::{Call, ImageSource, Message, MessagePart, Opaque, ToolOutcome};
use komado_core::raw;
use komado_core::raw::{RawJson, RawObject};
use komado_store::BlobRef;
use regex::Regex;
use serde_json::value::RawValue;
use std::collections::BTreeMap;

/// Takes out what matches, entry by entry.
pub(super) struct Scrub<'a> {
    pattern: &'a Regex,
    /// Blobs that were written again, by the name they had.
    blobs: &'a BTreeMap<String, BlobRef>,
    /// New ids of calls, by the ids they had.
    ids: BTreeMap<String, String>,
    changed: bool,
}

impl<'a> Scrub<'a> {
    pub(super) fn new(pattern: &'a Regex, blobs: &'a BTreeMap<String, BlobRef>) -> Self {
        Self { pattern, blobs, ids: BTreeMap::new(), changed: false }
    }

    /// Takes the secret out of `record`; true when there was one.
    pub(super) fn record(&mut self, record: &mut Record) -> bool {
        self.changed = false;
        match &mut record.entry {
            Entry::Message(message, reply) => {
                self.message(record.seq, message);
                reply.iter_mut().for_each(|reply| self.reply(reply));
            }
            Entry::Setup(setup) => {
                self.maybe(&mut setup.system);
                setup.tools.iter_mut().chain(&mut setup.params).for_each(|json| self.json(json));
            }
            Entry::Edit(edit) => {
                edit.show.iter_mut().for_each(|show| self.text(&mut show.text));
                edit.replace.iter_mut().for_each(|swap| self.text(&mut swap.text));
                self.text(&mut edit.cause.rule);
                self.maybe(&mut edit.cause.model);
                self.maybe(&mut edit.cause.note);
            }
            Entry::Anchor(anchor) => {
                self.maybe(&mut anchor.label);
                self.text(&mut anchor.text);
                self.maybe(&mut anchor.brief);
            }
            Entry::Sent(sent) => {
                self.text(&mut sent.model);
                self.maybe(&mut sent.purpose);
            }
            Entry::Lost(reply) => self.reply(reply),
            Entry::Close(close) => self.maybe(&mut close.result),
            Entry::Share(share) => {
                for slice in &mut share.slices {
                    self.text(&mut slice.head);
                    slice.replace.iter_mut().for_each(|swap| self.text(&mut swap.text));
                }
                self.maybe(&mut share.chronicle_prompt);
            }
            Entry::Chronicle(chronicle) => {
                self.text(&mut chronicle.text);
                self.maybe(&mut chronicle.model);
            }
            Entry::Tell { text, .. } => self.text(text),
            Entry::Note { value, .. } => self.json(value),
            Entry::Revert { .. }
            | Entry::Rewind { .. }
            | Entry::Pin { .. }
            | Entry::Unpin { .. }
            | Entry::Heard { .. } => {}
        }
        self.changed
    }

    /// A text without the secret, and with the new names of blobs; `None` when it stays as it is.
    fn clean(&self, text: &str) -> Option<String> {
        let mut clean = self.pattern.replace_all(text, REDACTED).into_owned();
        for (old, new) in self.blobs {
            if clean.contains(old.as_str()) {
                clean = clean.replace(old.as_str(), &new.id);
            }
        }
        (clean != text).then_some(clean)
    }

    fn set<T>(&mut self, place: &mut T, value: Option<T>) {
        if let Some(value) = value {
            *place = value;
            self.changed = true;
        }
    }

    fn text(&mut self, text: &mut String) {
        let clean = clean_text(text, &|text| self.clean(text));
        self.set(text, clean);
    }

    fn maybe(&mut self, text: &mut Option<String>) {
        text.iter_mut().for_each(|text| self.text(text));
    }

    fn json(&mut self, json: &mut RawJson) {
        let clean = clean_json(json.get(), &|text| self.clean(text));
        self.set(json, clean.and_then(|clean| RawJson::parse(clean).ok()));
    }

    fn opaque(&mut self, opaque: &mut Option<Opaque>) {
        opaque.iter_mut().for_each(|opaque| self.json(&mut opaque.json));
    }

    fn reply(&mut self, reply: &mut Reply) {
        self.maybe(&mut reply.model);
        self.maybe(&mut reply.error);
        self.maybe(&mut reply.heard);
    }

    fn message(&mut self, seq: u32, message: &mut Message) {
        self.maybe(&mut message.name);
        self.opaque(&mut message.extra);
        for (i, part) in message.parts.iter_mut().enumerate() {
            match part {
                MessagePart::Call(call) => {
                    if self.pattern.is_match(&call.id) {
                        self.ids.insert(call.id.clone(), format!("redacted_{seq}_{i}"));
                    }
                    self.call(call);
                }
                MessagePart::Result(outcome) => self.outcome(outcome),
                other => self.part(other),
            }
        }
    }

    fn call(&mut self, call: &mut Call) {
        let id = self.ids.get(&call.id).cloned();
        self.set(&mut call.id, id);
        self.tool(&mut call.name);
        let was_json = is_json(&call.arguments);
        self.text(&mut call.arguments);
        if was_json && !is_json(&call.arguments) {
            // The secret held a piece of the structure; a provider takes nothing but JSON here.
            call.arguments = "{}".into();
        }
        call.extra.iter_mut().for_each(|extra| self.json(extra));
    }

    fn outcome(&mut self, outcome: &mut ToolOutcome) {
        let id = self.ids.get(&outcome.call_id).cloned();
        self.set(&mut outcome.call_id, id);
        outcome.name.iter_mut().for_each(|name| self.tool(name));
        outcome.content.iter_mut().for_each(|part| self.part(part));
        if let Some(whole) = &mut outcome.output_ref
            && let Some(new) = self.blobs.get(&whole.id)
        {
            whole.id.clone_from(&new.id);
            whole.byte_size = whole.byte_size.map(|_| new.byte_size);
            whole.line_count = whole.line_count.map(|_| new.line_count);
            self.changed = true;
        }
    }

    /// A tool's name: providers take letters, digits and `_` only.
    fn tool(&mut self, name: &mut String) {
        if self.pattern.is_match(name) {
            let clean = self.pattern.replace_all(name, "redacted").into_owned();
            self.set(name, Some(clean));
        }
    }

    fn part(&mut self, part: &mut MessagePart) {
        match part {
            MessagePart::Text { text, extra } => {
                self.text(text);
                self.opaque(extra);
            }
            MessagePart::Image { source: ImageSource::Url { url }, .. } => self.text(url),
            MessagePart::Image { source: ImageSource::Blob { blob, byte_size, .. }, .. } => {
                if let Some(new) = self.blobs.get(blob) {
                    (*blob, *byte_size) = (new.id.clone(), new.byte_size);
                    self.changed = true;
                }
            }
            MessagePart::Reasoning { text, signature } => {
                let sealed = signature.clone();
                let before = text.clone();
                self.text(text);
                self.maybe(signature);
                // A seal on other words would be refused.
                if *text != before || *signature != sealed {
                    *signature = None;
                }
            }
            MessagePart::Opaque(opaque) => self.json(&mut opaque.json),
            MessagePart::Call(_) | MessagePart::Result(_) => {}
        }
    }
}

/// The same entry, saying nothing; `None` for an entry without words.
pub(super) fn emptied(mut record: Record) -> Option<Record> {
    let empty = || REDACTED.to_owned();
    match &mut record.entry {
        Entry::Message(message, reply) => {
            *message = emptied_message(message);
            reply.iter_mut().for_each(|reply| (reply.error, reply.heard) = (None, None));
        }
        Entry::Setup(setup) => {
            setup.system = setup.system.as_ref().map(|_| empty());
            (setup.tools, setup.params) = (None, None);
        }
        Entry::Edit(edit) => {
            edit.show.iter_mut().for_each(|show| show.text = empty());
            edit.replace.iter_mut().for_each(|swap| swap.text = empty());
            edit.cause.note = None;
        }
        Entry::Anchor(anchor) => {
            (anchor.text, anchor.label) = (empty(), None);
            anchor.brief = anchor.brief.as_ref().map(|_| empty());
        }
        Entry::Share(share) => {
            for slice in &mut share.slices {
                slice.head = empty();
                slice.replace.iter_mut().for_each(|swap| swap.text = empty());
            }
            share.chronicle_prompt = None;
        }
        Entry::Chronicle(chronicle) => chronicle.text = empty(),
        Entry::Tell { text, .. } => *text = empty(),
        Entry::Note { value, .. } => {
            if let Ok(nothing) = RawJson::parse("{}") {
                *value = nothing;
            }
        }
        Entry::Lost(reply) => {
            reply.error = reply.error.as_ref().map(|_| empty());
            reply.heard = reply.heard.as_ref().map(|_| empty());
        }
        Entry::Close(close) => close.result = close.result.as_ref().map(|_| empty()),
        Entry::Sent(_)
        | Entry::Revert { .. }
        | Entry::Rewind { .. }
        | Entry::Pin { .. }
        | Entry::Unpin { .. }
        | Entry::Heard { .. } => {
            return None;
        }
    }
    Some(record)
}

fn emptied_message(message: &Message) -> Message {
    let mut empty = message.saying(REDACTED);
    empty.extra = None;
    empty.parts.retain(|part| !matches!(part, MessagePart::Reasoning { .. } | MessagePart::Opaque(_)));
    for part in &mut empty.parts {
        match part {
            MessagePart::Call(call) => (call.arguments, call.extra) = ("{}".into(), None),
            MessagePart::Result(outcome) => outcome.output_ref = None,
            _ => {}
        }
    }
    empty
}

/// The line of a changed record: its fields, what a later version may have added, and the notes.
pub(super) fn line(record: &Record, old: &str, scrub: Option<&Scrub<'_>>, note: &str) -> Vec<u8> {
    let mut line = encode(record);
    let mut notes = String::new();
    let mut more = String::new();
    let fresh = String::from_utf8_lossy(&line);
    if let (Ok(old), Ok(new)) = (RawObject::parse(old), RawObject::parse(&fresh)) {
        for (key, value) in &old.0 {
            if key == "redacted" {
                notes = value.get().trim_matches(['[', ']']).to_owned() + ",";
            } else if let (Some(scrub), false) = (scrub, new.0.iter().any(|(known, _)| known == key)) {
                let clean = clean_json(value.get(), &|text| scrub.clean(text));
                let key = serde_json::Value::from(key.as_ref());
                more.push_str(&format!(",{key}:{}", clean.as_deref().unwrap_or(value.get())));
            }
        }
    }
    line.truncate(line.len().saturating_sub(2));
    line.extend_from_slice(format!("{more},\"redacted\":[{notes}{note}]}}\n").as_bytes());
    line
}

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
