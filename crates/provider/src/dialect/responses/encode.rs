//! An answer, encoded.

use super::{NAME, apart, call_words};
use crate::dialect::json::{call_fields, complaint, frame, inner, of, quoted, text};
use crate::dialect::{Encode, ResponseForm, ResponseStamp};
use crate::event::{ModelEvent, ModelResponse, ProviderFailure};
use komado_core::journal::Usage;
use komado_core::message::{Call, CallKind, Opaque};
use komado_core::raw::{RawJson, RawObject};

/// An answer being written. The form that comes in one piece is what the other one ends with.
#[derive(Debug, Default)]
pub struct Encoder {
    form: ResponseForm,
    stamp: ResponseStamp,
    heard: ModelResponse,
    begun: bool,
    /// The next event's number.
    sequence: u64,
    /// Every item so far: `None` while it is not whole.
    items: Vec<Option<String>>,
    open: Option<OpenPart>,
    calls: Vec<OpenCall>,
    /// True when an answer has said that it begins: another one goes on with it.
    told: bool,
    /// Calls so far.
    made: usize,
}

/// A text or a thought that is not whole.
#[derive(Debug)]
struct OpenPart {
    is_thought: bool,
    place: usize,
    said: String,
}

#[derive(Debug)]
struct OpenCall {
    index: usize,
    place: usize,
    call: Call,
}

impl Encoder {
    pub(in crate::dialect) fn new(form: ResponseForm, stamp: ResponseStamp) -> Self {
        Self { form, stamp, ..Self::default() }
    }

    /// Adds an event; `fields` are those beside its type and number.
    fn send(&mut self, kind: &str, fields: &str, out: &mut Vec<u8>) {
        let number = self.sequence;
        self.sequence += 1;
        if self.form == ResponseForm::Stream {
            frame(kind, &format!("{{\"type\":\"{kind}\",\"sequence_number\":{number},{fields}}}"), out);
        }
    }

    fn begin(&mut self, out: &mut Vec<u8>) {
        if std::mem::replace(&mut self.begun, true) {
            return;
        }
        let response = self.response("in_progress", ("null", "null"), "null");
        for kind in ["response.created", "response.in_progress"] {
            self.send(kind, &format!("\"response\":{response}"), out);
        }
    }

    fn id(&self) -> String {
        self.heard.id.clone().unwrap_or_else(|| format!("resp_{}", self.stamp.created))
    }

    fn response(&self, status: &str, (error, cut): (&str, &str), usage: &str) -> String {
        let output: Vec<&str> = self.items.iter().flatten().map(String::as_str).collect();
        let (output, created) = (output.join(","), self.stamp.created);
        let (id, model) = (quoted(&self.id()), quoted(self.heard.model.as_deref().unwrap_or_default()));
        format!(
            "{{\"id\":{id},\"object\":\"response\",\"created_at\":{created},\"status\":\"{status}\",\
             \"error\":{error},\"incomplete_details\":{cut},\"instructions\":null,\"metadata\":{{}},\
             \"model\":{model},\"output\":[{output}],\"parallel_tool_calls\":true,\
             \"previous_response_id\":null,\"store\":false,\"tool_choice\":\"auto\",\"tools\":[],\
             \"usage\":{usage}}}"
        )
    }

    /// An id for the item at `place`: the item is not kept, so it need only be its own within the conversation.
    fn item_id(&self, kind: &str, place: usize) -> String {
        let id = self.id();
        let own = id.split_once('_').map_or(id.as_str(), |(_, own)| own);
        quoted(&format!("{kind}_{own}_{place}"))
    }

    fn add(&mut self, item: &str, out: &mut Vec<u8>) -> usize {
        let place = self.items.len();
        self.items.push(None);
        self.send("response.output_item.added", &format!("\"output_index\":{place},\"item\":{item}"), out);
        place
    }

    fn done(&mut self, place: usize, item: String, out: &mut Vec<u8>) {
        self.send("response.output_item.done", &format!("\"output_index\":{place},\"item\":{item}"), out);
        self.items[place] = Some(item);
    }

    /// The id of the text or thought at `place`, and the fields by which events name it.
    fn part_at(&self, is_thought: bool, place: usize) -> (String, String) {
        let (kind, index) = if is_thought { ("rs", "summary_index") } else { ("msg", "content_index") };
        let id = self.item_id(kind, place);
        let at = format!("\"item_id\":{id},\"output_index\":{place},\"{index}\":0");
        (id, at)
    }

    /// Says more of a text or of a thought.
    fn say(&mut self, is_thought: bool, text: &str, out: &mut Vec<u8>) {
        if self.open.as_ref().is_none_or(|open| open.is_thought != is_thought) {
            self.settle(None, out);
            let place = self.items.len();
            let (id, at) = self.part_at(is_thought, place);
            let (item, kind, part) = if is_thought {
                (thought_item(&id, ""), "reasoning_summary_part", summary_part(""))
            } else {
                (message_item(&id, "in_progress", "", ""), "content_part", text_part("", ""))
            };
            self.add(&item, out);
            self.send(&format!("response.{kind}.added"), &format!("{at},\"part\":{part}"), out);
            self.open = Some(OpenPart { is_thought, place, said: String::new() });
        }
        let Some(open) = &mut self.open else { return };
        open.said.push_str(text);
        let place = open.place;
        let ((_, at), delta) = (self.part_at(is_thought, place), quoted(text));
        let (kind, more) =
            if is_thought { ("reasoning_summary_text", "") } else { ("output_text", ",\"logprobs\":[]") };
        self.send(&format!("response.{kind}.delta"), &format!("{at},\"delta\":{delta}{more}"), out);
    }

    fn close_text(&mut self, place: usize, said: &str, extra: Option<&Opaque>, out: &mut Vec<u8>) {
        let beside = apart(extra);
        let ((id, at), words) = (self.part_at(false, place), quoted(said));
        self.send("response.output_text.done", &format!("{at},\"text\":{words},\"logprobs\":[]"), out);
        let part = text_part(said, &beside.part.inner());
        self.send("response.content_part.done", &format!("{at},\"part\":{part}"), out);
        // A refusal is only told as one where all of it is told at once: its pieces were words like any other.
        let part = if beside.refusal && self.form == ResponseForm::Whole {
            format!("{{\"type\":\"refusal\",\"refusal\":{words}}}")
        } else {
            part
        };
        self.done(place, message_item(&id, "completed", &part, &beside.item.inner()), out);
    }

    fn close_thought(&mut self, place: usize, said: &str, out: &mut Vec<u8>) {
        let ((id, at), text, part) = (self.part_at(true, place), quoted(said), summary_part(said));
        self.send("response.reasoning_summary_text.done", &format!("{at},\"text\":{text}"), out);
        self.send("response.reasoning_summary_part.done", &format!("{at},\"part\":{part}"), out);
        self.done(place, thought_item(&id, &part), out);
    }

    fn call(&mut self, index: usize, (id, name): (&str, &str), kind: CallKind, out: &mut Vec<u8>) {
        self.settle(None, out);
        // A client pairs by the id, so there must be one.
        let made = format!("call_{}_{}", self.stamp.created, self.made);
        self.made += 1;
        let id = if id.is_empty() { made } else { id.to_owned() };
        let call = Call { id, name: name.to_owned(), arguments: String::new(), kind, extra: None };
        let item = call_item(&self.item_id(short(kind), self.items.len()), "in_progress", &call);
        let place = self.add(&item, out);
        self.calls.push(OpenCall { index, place, call });
    }

    fn arguments(&mut self, index: usize, text: &str, out: &mut Vec<u8>) {
        let Some(open) = self.calls.iter_mut().rev().find(|open| open.index == index) else { return };
        open.call.arguments.push_str(text);
        let (place, kind) = (open.place, open.call.kind);
        let (id, delta) = (self.item_id(short(kind), place), quoted(text));
        let fields = format!("\"item_id\":{id},\"output_index\":{place},\"delta\":{delta}");
        self.send(&format!("response.{}.delta", arguments_event(kind)), &fields, out);
    }

    fn close_call(&mut self, open: &OpenCall, out: &mut Vec<u8>) {
        let OpenCall { place, call, .. } = open;
        let id = self.item_id(short(call.kind), *place);
        let (field, whole) = (call_words(call.kind).1, quoted(&call.arguments));
        let fields = format!("\"item_id\":{id},\"output_index\":{place},\"{field}\":{whole}");
        self.send(&format!("response.{}.done", arguments_event(call.kind)), &fields, out);
        self.done(*place, call_item(&id, "completed", call), out);
    }

    /// Closes the text or thought that is open. Calls stay open to the end: some providers write several at once, and
    /// each piece names its item.
    fn settle(&mut self, extra: Option<&Opaque>, out: &mut Vec<u8>) {
        match self.open.take() {
            Some(OpenPart { is_thought: false, place, said }) => self.close_text(place, &said, extra, out),
            Some(OpenPart { place, said, .. }) => self.close_thought(place, &said, out),
            None => {}
        }
    }

    fn close_all(&mut self, out: &mut Vec<u8>) {
        self.settle(None, out);
        for open in std::mem::take(&mut self.calls) {
            self.close_call(&open, out);
        }
    }

    fn fail(&mut self, failed: &ProviderFailure, out: &mut Vec<u8>) {
        let (code, words) = complaint(&failed.body);
        let (code, words) = (quoted(code.as_deref().unwrap_or("server_error")), quoted(&words));
        if self.form == ResponseForm::Whole {
            let own = RawObject::parse(&failed.body).is_ok_and(|body| body.get("error").is_some());
            let body = RawJson::parse(failed.body.as_str()).ok().filter(|_| own);
            let error = format!(
                "{{\"error\":{{\"message\":{words},\"type\":\"server_error\",\"param\":null,\"code\":{code}}}}}"
            );
            return out.extend_from_slice(body.map_or(error, |body| body.get().to_owned()).as_bytes());
        }
        let own = RawObject::parse(&failed.body).ok().and_then(|body| text(&body, "type"));
        let own = own.filter(|kind| kind == "response.failed" || kind == "error");
        match (own, RawJson::parse(failed.body.as_str())) {
            (Some(kind), Ok(body)) => frame(&kind, body.get(), out),
            _ => {
                self.begin(out);
                let error = format!("{{\"code\":{code},\"message\":{words}}}");
                let response = self.response("failed", (&error, "null"), "null");
                self.send("response.failed", &format!("\"response\":{response}"), out);
            }
        }
    }
}

impl Encode for Encoder {
    fn event(&mut self, event: &ModelEvent, out: &mut Vec<u8>) {
        let again = matches!(event, ModelEvent::Begun { .. }) && std::mem::replace(&mut self.told, true);
        if again {
            self.close_all(out);
        }
        match event {
            // The id must stay what it was.
            ModelEvent::Begun { model, .. } if self.begun => {
                self.heard.model = self.heard.model.take().or_else(|| model.clone());
                return;
            }
            ModelEvent::Begun { .. } | ModelEvent::Usage(_) | ModelEvent::Finished(_) => {
                self.heard.take(event)
            }
            ModelEvent::Failed(failed) => {
                self.heard.take(event);
                return self.fail(failed, out);
            }
            _ => {}
        }
        self.begin(out);
        match event {
            ModelEvent::Text(text) if text.is_empty() => {}
            ModelEvent::Text(text) => self.say(false, text, out),
            ModelEvent::Reasoning(text) => self.say(true, text, out),
            ModelEvent::Call { index, id, name, kind } => self.call(*index, (id, name), *kind, out),
            ModelEvent::Arguments { index, text } => self.arguments(*index, text, out),
            ModelEvent::CallExtra { index, json } => {
                if let Some(open) = self.calls.iter_mut().rev().find(|open| open.index == *index) {
                    open.call.extra = Some(json.clone());
                }
            }
            ModelEvent::Part(part) => {
                if let Some(json) = of(Some(part), NAME) {
                    self.settle(None, out);
                    let place = self.add(json, out);
                    self.done(place, json.to_owned(), out);
                }
            }
            ModelEvent::PartDone(extra) => self.settle(extra.as_ref(), out),
            ModelEvent::Finished(_) => self.close_all(out),
            ModelEvent::Signature(_) | ModelEvent::Extra(_) => {}
            ModelEvent::Begun { .. } | ModelEvent::Usage(_) | ModelEvent::Failed(_) => {}
        }
    }

    fn end(&mut self, out: &mut Vec<u8>) {
        if self.heard.failed.is_some() {
            return;
        }
        self.begin(out);
        self.close_all(out);
        let (status, cut) = match self.heard.finish.as_deref() {
            Some("length") => ("incomplete", "{\"reason\":\"max_output_tokens\"}"),
            Some("content_filter") => ("incomplete", "{\"reason\":\"content_filter\"}"),
            _ => ("completed", "null"),
        };
        let usage = self.heard.usage.map_or_else(|| "null".into(), usage);
        let response = self.response(status, ("null", cut), &usage);
        match self.form {
            ResponseForm::Stream => {
                self.send(&format!("response.{status}"), &format!("\"response\":{response}"), out)
            }
            ResponseForm::Whole => out.extend_from_slice(response.as_bytes()),
        }
    }
}

/// `fields`, each after a comma.
fn more(fields: &str) -> String {
    if fields.is_empty() { String::new() } else { format!(",{fields}") }
}

fn text_part(said: &str, fields: &str) -> String {
    let empty = if fields.contains("\"annotations\":") { "" } else { ",\"annotations\":[]" };
    format!("{{\"type\":\"output_text\",\"text\":{}{empty}{}}}", quoted(said), more(fields))
}

fn message_item(id: &str, status: &str, part: &str, fields: &str) -> String {
    format!(
        "{{\"id\":{id},\"type\":\"message\",\"status\":\"{status}\",\"role\":\"assistant\",\"content\":[{part}]{}}}",
        more(fields)
    )
}

fn summary_part(said: &str) -> String {
    format!("{{\"type\":\"summary_text\",\"text\":{}}}", quoted(said))
}

fn thought_item(id: &str, part: &str) -> String {
    format!("{{\"id\":{id},\"type\":\"reasoning\",\"summary\":[{part}]}}")
}

fn call_item(id: &str, status: &str, call: &Call) -> String {
    let (kind, field) = call_words(call.kind);
    let extra = call_fields(call.extra.as_ref(), NAME);
    let extra = more(extra.as_deref().and_then(inner).unwrap_or_default());
    let (call_id, name, arguments) = (quoted(&call.id), quoted(&call.name), quoted(&call.arguments));
    format!(
        "{{\"id\":{id},\"type\":\"{kind}\",\"status\":\"{status}\",\"call_id\":{call_id},\"name\":{name},\
         \"{field}\":{arguments}{extra}}}"
    )
}

/// How ids of such items begin.
const fn short(kind: CallKind) -> &'static str {
    match kind {
        CallKind::Function => "fc",
        CallKind::Custom => "ctc",
    }
}

const fn arguments_event(kind: CallKind) -> &'static str {
    match kind {
        CallKind::Function => "function_call_arguments",
        CallKind::Custom => "custom_tool_call_input",
    }
}

fn usage(usage: Usage) -> String {
    let Usage { input_tokens, output_tokens, cache_creation_tokens: written, cache_read_tokens: read } =
        usage;
    let (input, total) = (input_tokens + written + read, usage.total());
    format!(
        "{{\"input_tokens\":{input},\"input_tokens_details\":{{\"cached_tokens\":{read},\"cache_write_tokens\":{written}}},\
         \"output_tokens\":{output_tokens},\"output_tokens_details\":{{\"reasoning_tokens\":0}},\"total_tokens\":{total}}}"
    )
}
