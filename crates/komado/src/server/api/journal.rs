//! The journal: read by pages or by entry, and appended to.

use super::answers::{Answers, Planned};
use super::call::{Call, Desk, In, address};
use super::problem::{Answer, Problem};
use super::take::{self, Named, Params};
use super::{page, shape, tag};
use crate::clock::days_ago;
use axum::Json;
use axum::extract::Request;
use axum::response::{IntoResponse, Response};
use http::StatusCode;
use komado_core::message::Message;
use komado_core::{Seq, openai};
use komado_engine::engine::Found;
use komado_engine::{OnOpenCalls, Thread};
use komado_store::{Journal, Mode};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use std::sync::PoisonError;
use utoipa::{IntoParams, ToSchema};

/// Bytes of a page; it ends after the entry that goes over them.
const PAGE: usize = 4 << 20;

/// Days for which a call with an idempotency key is remembered.
const REMEMBERED: u32 = 7;

/// Which entries.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct Span {
    /// The first
    #[param(minimum = 1)]
    from: Option<u32>,
    /// The last
    #[param(minimum = 1)]
    to: Option<u32>,
    /// At most so many
    #[param(minimum = 1, maximum = 1000)]
    limit: Option<u32>,
    /// `next` of the page before
    cursor: Option<String>,
}

/// Read a journal by pages
#[utoipa::path(get, path = "/api/v1/sessions/{session}/threads/{thread}/entries", tag = "journal", params(In, Span),
    responses((status = 200, body = shape::Entries, headers(("etag" = String, description = "Which moment it is of")))))]
pub(super) async fn list(call: Call, Named(at): Named<In>, Params(span): Params<Span>) -> Answer<Response> {
    let headers = call.headers.clone();
    let (place, body) = call.run(move |desk| entries(desk, &at, span)).await?;
    Ok(tag::answer(&headers, &tag::of(&place, &body), body))
}

fn entries(desk: &mut Desk, at: &In, span: Span) -> Answer<(String, Vec<u8>)> {
    let limit = page::limit(span.limit)?;
    let found = desk.thread(at)?;
    let what = format!("entries of {}/{}", found.session, found.thread);
    let cursor = span.cursor.filter(|cursor| !cursor.is_empty());
    let cursor: Option<Seq> = cursor.map(|cursor| page::read(&what, &cursor)).transpose()?;
    let from = cursor.unwrap_or(span.from.unwrap_or(1));
    if from == 0 || span.to == Some(0) {
        return Err(Problem::bad("entries count from 1"));
    }
    let journal = desk.app.engine.store().open(&found.session, &found.thread, Mode::Read)?;
    let end = span.to.unwrap_or(Seq::MAX).min(journal.last());
    let mut body = b"{\"items\":[".to_vec();
    let (mut seq, mut count) = (from, 0);
    while seq <= end && count < limit && body.len() < PAGE {
        if count > 0 {
            body.push(b',');
        }
        body.extend_from_slice(journal.line(seq)?.trim_ascii_end());
        (seq, count) = (seq + 1, count + 1);
    }
    let next = (seq <= end).then(|| page::write(&what, &seq)).transpose()?;
    body.extend_from_slice(format!("],\"next\":{}}}", json!(next)).as_bytes());
    Ok((format!("{}@{}", found.thread, journal.last()), body))
}

/// An entry in a path.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Path)]
pub(super) struct OfEntry {
    /// The session's id, in full
    #[param(example = "demo", pattern = "^[A-Za-z0-9][A-Za-z0-9_.:-]*$", max_length = 128)]
    session: String,
    /// The thread's id
    #[param(example = "root", pattern = "^[A-Za-z0-9][A-Za-z0-9_.:-]*$", max_length = 128)]
    thread: String,
    /// The entry's number
    #[param(example = 1, minimum = 1)]
    seq: u32,
}

/// Read one entry of a journal
#[utoipa::path(get, path = "/api/v1/sessions/{session}/threads/{thread}/entries/{seq}", tag = "journal",
    params(OfEntry), responses((status = 200, body = shape::Entry,
        headers(("etag" = String, description = "Which moment it is of")))))]
pub(super) async fn one(call: Call, Named(of): Named<OfEntry>) -> Answer<Response> {
    let headers = call.headers.clone();
    let (place, body) = call
        .run(move |desk| {
            let found = desk.thread(&In { session: of.session, thread: of.thread })?;
            let journal = desk.app.engine.store().open(&found.session, &found.thread, Mode::Read)?;
            if of.seq == 0 || of.seq > journal.last() {
                let last = journal.last();
                return Err(Problem::missing(format!(
                    "{} has no entry @{}: it ends at @{last}",
                    found.thread, of.seq
                )));
            }
            Ok((format!("{}@{}", found.thread, of.seq), journal.line(of.seq)?.trim_ascii_end().to_vec()))
        })
        .await?;
    Ok(tag::answer(&headers, &tag::of(&place, &body), body))
}

/// Messages to be appended: all of them or none.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({"messages": [{"role": "user", "content": "窓を直して。"}]}))]
pub(super) struct Append {
    /// Messages as OpenAI's chat API has them.
    #[schema(value_type = Vec<Chat>, min_items = 1)]
    messages: Vec<Box<RawValue>>,
    /// True to refuse a message while calls wait, instead of answering them as interrupted.
    #[serde(default)]
    strict: bool,
}

/// A message as OpenAI's chat API has it; other fields are kept as they are.
#[derive(ToSchema)]
#[allow(dead_code, reason = "for the document alone")]
pub(super) struct Chat {
    /// Who speaks.
    role: Speaker,
    /// What is said: a text, or a list of parts.
    #[schema(value_type = String)]
    content: String,
}

/// Who speaks.
#[derive(ToSchema)]
#[schema(rename_all = "snake_case")]
#[allow(dead_code, reason = "for the document alone")]
pub(super) enum Speaker {
    System,
    Developer,
    User,
    Assistant,
}

/// Append messages, durably: all of them or none
///
/// With an `Idempotency-Key` the same call again is answered the same and done once, also over a crash of the server.
#[utoipa::path(post, path = "/api/v1/sessions/{session}/threads/{thread}/entries", tag = "journal", params(In,
        ("idempotency-key" = Option<String>, Header, description = "Names this call, so that it is done once",
            min_length = 1, max_length = 255)),
    request_body = Append, responses((status = 201, body = shape::Appended)))]
pub(super) async fn append(call: Call, Named(at): Named<In>, request: Request) -> Answer<Response> {
    let key = request.headers().get("idempotency-key").map(|key| key.as_bytes().to_vec());
    let bytes = take::json_bytes(request).await?;
    let said = call.run(move |desk| {
        let given: Append = take::parse(&bytes)?;
        let found = desk.thread(&at)?;
        let room = desk.app.lock(&found.session);
        let shared = std::sync::Arc::clone(&desk.shared);
        let Some(key) = key else {
            let _held = room.lock().unwrap_or_else(PoisonError::into_inner);
            desk.check_thread(&found)?;
            return say(desk, &found, &given, |_| Ok(()));
        };
        let place =
            format!("{} {}/{}", desk.guest.key.as_deref().unwrap_or_default(), found.session, found.thread);
        let name = Answers::name(&place, &key)?;
        let _running = shared.answers.begin(&name)?;
        let _held = room.lock().unwrap_or_else(PoisonError::into_inner);
        once(desk, &found, &given, &name, blake3::hash(&bytes).to_hex().as_str())
    });
    Ok((StatusCode::CREATED, Json(said.await?)).into_response())
}

/// Appends under a name, unless it was done before.
fn once(desk: &mut Desk, found: &Found, given: &Append, name: &str, body: &str) -> Answer<Value> {
    let shared = std::sync::Arc::clone(&desk.shared);
    if let Some(planned) = shared.answers.find(name, body)? {
        let journal = desk.app.engine.store().open(&found.session, &found.thread, Mode::Read)?;
        if stands(&*journal, &planned)? {
            return Ok(planned.answer);
        }
    }
    desk.check_thread(found)?;
    shared.answers.forget(&days_ago(REMEMBERED))?;
    let now = desk.app.engine.now();
    say(desk, found, given, |planned| shared.answers.plan(name, body, planned, &now))
}

/// True when what was planned was done: that very line is in the journal.
fn stands(journal: &dyn Journal, planned: &Planned) -> Answer<bool> {
    Ok(planned.seq <= journal.last()
        && blake3::hash(&journal.line(planned.seq)?).to_hex().as_str() == planned.line)
}

fn say(
    desk: &Desk,
    found: &Found,
    given: &Append,
    before: impl FnOnce(&Planned) -> Answer<()>,
) -> Answer<Value> {
    let messages = read(&given.messages)?;
    let choice = if given.strict { OnOpenCalls::Refuse } else { OnOpenCalls::Answer };
    let mut thread = desk.app.open(found, Mode::Write)?.on_open_calls(choice);
    let last = thread.last();
    let mut batch = thread.batch();
    for (i, message) in messages.into_iter().enumerate() {
        batch
            .say(message, None)
            .map_err(|error| Problem::from(desk.app.explained(error.into())).of(&format!("messages[{i}]")))?;
    }
    let (seqs, work) = batch.finish();
    let first = seqs.first().copied().unwrap_or_default();
    let line = work.lines().nth((first - last).saturating_sub(1) as usize).unwrap_or_default();
    let line = blake3::hash(line).to_hex().to_string();
    let undo = format!("komado rewind {}@{last}", crate::verb::name(found));
    let answer = json!({
        "session": found.session.as_str(),
        "thread": found.thread.as_str(),
        "seqs": seqs,
        "context_tokens": work.tokens(),
        "undo": undo,
    });
    before(&Planned { seq: first, line, answer: answer.clone() })?;
    thread.commit(work)?;
    settle(&mut thread);
    Ok(answer)
}

/// What is derived may be behind; what was said is safe.
fn settle(thread: &mut Thread<'_>) {
    if let Err(error) = thread.settle() {
        tracing::warn!(session = %thread.session(), %error, "what is derived from the journal is behind");
    }
}

fn read(given: &[Box<RawValue>]) -> Answer<Vec<Message>> {
    if given.is_empty() {
        return Err(Problem::bad("messages is empty; send at least one"));
    }
    let one = |(i, text): (usize, &str)| {
        openai::read(text).map_err(|error| Problem::unusable(error.to_string()).of(&format!("messages[{i}]")))
    };
    given.iter().map(|text| text.get()).enumerate().map(one).collect()
}
