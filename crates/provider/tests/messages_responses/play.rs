//! What the tests of these dialects share: writing, decoding and encoding in one call each.

use komado_core::journal::Setup;
use komado_core::message::{Call, CallKind, Message, MessagePart, Opaque, Role, ToolOutcome};
use komado_core::openai::BlobReader;
use komado_core::raw::RawJson;
use komado_provider::dialect::{RequestOutput, ResponseStamp};
use komado_provider::{
    Dialect, ModelEvent, ModelRequest, ModelResponse, ParsedRequest, ResponseForm, ToolUse,
};
use std::io::{self, Write};

/// The dialects under test.
pub(crate) const BOTH: [Dialect; 2] = [Dialect::Messages, Dialect::Responses];

/// Every blob is its own name.
pub(crate) struct Named;

impl BlobReader for Named {
    fn base64(&mut self, id: &str, out: &mut dyn Write) -> io::Result<()> {
        out.write_all(id.as_bytes())
    }
}

/// What is asked with `setup`.
pub(crate) fn ask(setup: &Setup) -> ModelRequest<'_> {
    ModelRequest {
        model: "m",
        setup,
        max_tokens: Some(100),
        stream: true,
        window: None,
        tools: ToolUse::AsSetUp,
        is_strict: false,
        joins: false,
    }
}

/// The bytes before the end, and the whole request.
pub(crate) fn written(dialect: Dialect, ask: &ModelRequest<'_>, messages: &[Message]) -> (String, String) {
    let mut out = Vec::new();
    let mut writer = dialect.writer(ask, &mut out).unwrap();
    for message in messages {
        writer.message(message, &mut RequestOutput { bytes: &mut out, blobs: &mut Named }).unwrap();
    }
    let open = String::from_utf8(out.clone()).unwrap();
    writer.end(&mut out).unwrap();
    (open, String::from_utf8(out).unwrap())
}

/// The whole request.
pub(crate) fn request(dialect: Dialect, setup: &Setup, messages: &[Message]) -> String {
    written(dialect, &ask(setup), messages).1
}

/// What was read, written again.
pub(crate) fn again(dialect: Dialect, asked: &ParsedRequest) -> String {
    let ask = ModelRequest {
        model: &asked.model,
        setup: &asked.setup,
        max_tokens: asked.max_tokens,
        stream: asked.stream,
        window: None,
        tools: ToolUse::AsSetUp,
        is_strict: false,
        joins: false,
    };
    written(dialect, &ask, &asked.messages).1
}

/// The events of `bytes`, given in `pieces`.
pub(crate) fn decoded<'a>(
    dialect: Dialect,
    form: ResponseForm,
    pieces: impl IntoIterator<Item = &'a [u8]>,
) -> Vec<ModelEvent> {
    let (mut decoder, mut events) = (dialect.decoder(form), Vec::new());
    let mut each = |event| events.push(event);
    pieces.into_iter().for_each(|bytes| decoder.push(bytes, &mut each));
    decoder.end(&mut each);
    events
}

/// Everything that was heard.
pub(crate) fn heard(events: &[ModelEvent]) -> ModelResponse {
    let mut heard = ModelResponse::default();
    events.iter().for_each(|event| heard.take(event));
    heard
}

/// The answer that `events` make.
pub(crate) fn encoded(dialect: Dialect, form: ResponseForm, events: &[ModelEvent]) -> String {
    let stamp =
        ResponseStamp { created: 1_700_000_000, created_at: "2023-11-14T22:13:20Z".into(), usage: true };
    let (mut encoder, mut out) = (dialect.encoder(form, stamp), Vec::new());
    events.iter().for_each(|event| encoder.event(event, &mut out));
    encoder.end(&mut out);
    String::from_utf8(out).unwrap()
}

/// A fixture.
pub(crate) fn fixture(path: &str) -> String {
    let dir = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/");
    std::fs::read_to_string(format!("{dir}{path}")).unwrap()
}

/// Every recorded answer: dialect, form, name.
pub(crate) fn fixtures() -> Vec<(Dialect, ResponseForm, &'static str)> {
    let messages = ["tools", "search", "cut", "overloaded", "llama"].map(|name| (Dialect::Messages, name));
    let responses = ["tools", "incomplete", "failed", "error", "refusal", "llama"];
    let responses = responses.map(|name| (Dialect::Responses, name));
    let streams =
        messages.into_iter().chain(responses).map(|(dialect, name)| (dialect, ResponseForm::Stream, name));
    let wholes = [
        (Dialect::Messages, ResponseForm::Whole, "whole"),
        (Dialect::Messages, ResponseForm::Whole, "error"),
        (Dialect::Messages, ResponseForm::Whole, "llama_error"),
        (Dialect::Responses, ResponseForm::Whole, "whole"),
        (Dialect::Responses, ResponseForm::Whole, "error"),
    ];
    streams.chain(wholes).collect()
}

/// The text of a recorded answer.
pub(crate) fn recorded((dialect, form, name): (Dialect, ResponseForm, &str)) -> String {
    let dir = if dialect == Dialect::Messages { "messages" } else { "responses" };
    let end = if form == ResponseForm::Stream { "sse" } else { "json" };
    fixture(&format!("{dir}/{name}.{end}"))
}

/// A call.
pub(crate) fn call(id: &str, arguments: &str) -> MessagePart {
    let (id, name, arguments) = (id.to_owned(), "read".to_owned(), arguments.to_owned());
    MessagePart::Call(Call { id, name, arguments, kind: CallKind::Function, extra: None })
}

/// A tool's answer of `content`.
pub(crate) fn result(id: &str, content: Vec<MessagePart>) -> Message {
    Message::of(
        Role::Tool,
        vec![MessagePart::Result(ToolOutcome {
            call_id: id.to_owned(),
            name: None,
            content,
            is_error: false,
            output_ref: None,
            duration_ms: None,
            interrupted: false,
            replaces: None,
        })],
    )
}

/// Something that only `dialect` knows.
pub(crate) fn opaque(dialect: &str, json: &str) -> Opaque {
    Opaque { dialect: dialect.into(), json: RawJson::parse(json).unwrap() }
}
