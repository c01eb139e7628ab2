//! What these tests share: decoding in pieces, an answer as text, requests as text.

use komado_core::journal::Setup;
use komado_core::message::{Message, MessagePart};
use komado_core::openai::BlobReader;
use komado_core::raw::RawJson;
use komado_provider::dialect::{RequestOutput, ResponseStamp};
use komado_provider::{Dialect, ModelEvent, ModelRequest, ModelResponse, ResponseForm, ToolUse};
use std::io::{self, Write};

/// The events of an answer that comes in `pieces`.
pub(crate) fn decoded(dialect: Dialect, form: ResponseForm, pieces: &[&[u8]]) -> Vec<ModelEvent> {
    let (mut decoder, mut events) = (dialect.decoder(form), Vec::new());
    pieces.iter().for_each(|piece| decoder.push(piece, &mut |event| events.push(event)));
    decoder.end(&mut |event| events.push(event));
    events
}

/// The events added up.
pub(crate) fn heard(events: &[ModelEvent]) -> ModelResponse {
    let mut heard = ModelResponse::default();
    events.iter().for_each(|event| heard.take(event));
    heard
}

/// The bytes of `events`.
pub(crate) fn encoded(dialect: Dialect, form: ResponseForm, events: &[ModelEvent]) -> Vec<u8> {
    let stamp =
        ResponseStamp { created: 1_763_200_000, created_at: "2025-11-15T09:46:40Z".into(), usage: true };
    let (mut encoder, mut out) = (dialect.encoder(form, stamp), Vec::new());
    events.iter().for_each(|event| encoder.event(event, &mut out));
    encoder.end(&mut out);
    out
}

/// An answer as text, a line for each thing it holds.
pub(crate) fn shown(heard: &ModelResponse) -> String {
    let mut lines =
        vec![format!("{} {}", heard.id.as_deref().unwrap_or("-"), heard.model.as_deref().unwrap_or("-"))];
    let message = heard.message();
    for part in message.iter().flat_map(|message| &message.parts) {
        lines.push(match part {
            MessagePart::Text { text, .. } => format!("text {text:?}"),
            MessagePart::Reasoning { text, .. } => format!("thought {text:?}"),
            MessagePart::Call(call) => {
                let extra = call.extra.as_ref().map(|extra| format!(" {}", extra.get())).unwrap_or_default();
                format!("call {} {} {}{extra}", or_dash(&call.id), call.name, call.arguments)
            }
            MessagePart::Opaque(opaque) => format!("part {}", opaque.json.get()),
            part => format!("{part:?}"),
        });
    }
    if let Some(extra) = message.and_then(|message| message.extra) {
        lines.push(format!("extra {}", extra.json.get()));
    }
    if let Some(u) = heard.usage {
        let four = [u.input_tokens, u.output_tokens, u.cache_creation_tokens, u.cache_read_tokens];
        lines.push(format!("usage {four:?}"));
    }
    lines.extend(heard.finish.as_ref().map(|why| format!("finished {why}")));
    lines.extend(
        heard.failed.as_ref().map(|failed| format!("failed {} {}", failed.status, failed.body.trim())),
    );
    lines.join("\n")
}

/// Blobs whose bytes are their name.
pub(crate) struct Names;

impl BlobReader for Names {
    fn base64(&mut self, id: &str, out: &mut dyn Write) -> io::Result<()> {
        out.write_all(id.as_bytes())
    }
}

/// A question with nothing set but the model.
pub(crate) fn ask(setup: &Setup) -> ModelRequest<'_> {
    ModelRequest {
        model: "m",
        setup,
        max_tokens: None,
        stream: false,
        window: None,
        tools: ToolUse::AsSetUp,
        is_strict: false,
        joins: false,
    }
}

/// A request, and where each of its messages ends.
pub(crate) fn written(
    dialect: Dialect,
    ask: &ModelRequest<'_>,
    messages: &[Message],
) -> (String, Vec<usize>) {
    let (mut out, mut ends) = (Vec::new(), Vec::new());
    let mut writer = dialect.writer(ask, &mut out).unwrap();
    for message in messages {
        writer.message(message, &mut RequestOutput { bytes: &mut out, blobs: &mut Names }).unwrap();
        ends.push(out.len());
    }
    writer.end(&mut out).unwrap();
    let text = String::from_utf8(out).unwrap();
    serde_json::from_str::<&serde_json::value::RawValue>(&text).unwrap();
    (text, ends)
}

/// A setup in `dialect`'s form.
pub(crate) fn setup(
    dialect: Dialect,
    system: Option<&str>,
    tools: Option<&str>,
    params: Option<&str>,
) -> Setup {
    Setup {
        system: system.map(Into::into),
        tools: tools.map(|tools| RawJson::parse(tools).unwrap()),
        params: params.map(|params| RawJson::parse(params).unwrap()),
        dialect: Some(dialect.name().into()),
    }
}

fn or_dash(id: &str) -> &str {
    if id.is_empty() { "-" } else { id }
}
