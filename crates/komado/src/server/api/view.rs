//! The window, and the verbs that change what is in it.

use super::call::{Call, In, moment};
use super::problem::{Answer, Problem};
use super::shape;
use super::take::{Maybe, Named, Params};
use super::thread::positive;
use crate::verb;
use crate::verb::fit::Room;
use axum::Json;
use komado_core::budget::Preset;
use komado_core::{Seq, Span};
use komado_ops::span::Spans;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::{IntoParams, ToSchema};

/// Which moment, in which window.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct Gauged {
    /// The moment; now when left out
    at: Option<u32>,
    /// The model's window in tokens, in place of the session's own
    #[param(minimum = 1)]
    window: Option<u32>,
}

/// The window and what fills it
#[utoipa::path(get, path = "/api/v1/sessions/{session}/threads/{thread}/context", tag = "view", params(In, Gauged),
    responses((status = 200, body = shape::Context)))]
pub(super) async fn context(
    call: Call,
    Named(at): Named<In>,
    Params(asked): Params<Gauged>,
) -> Answer<Json<Value>> {
    call.run(move |desk| {
        let window = positive("window", asked.window)?;
        let (_, address) = moment(desk, &at, asked.at)?;
        desk.row(|app| verb::context::run(app, verb::context::Args { address, window }))
    })
    .await
    .map(Json)
}

/// Which window, and by which rule.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct Planned {
    /// The model's window in tokens, in place of the session's own
    #[param(minimum = 1)]
    window: Option<u32>,
    /// The rule by which the window is kept; as the settings say when left out
    #[param(inline)]
    preset: Option<Rule>,
    /// True to first take back edits for which the window has room again
    relax: Option<bool>,
}

/// A rule by which a window is kept.
#[derive(Deserialize, Serialize, ToSchema, Clone, Copy)]
#[serde(rename_all = "snake_case")]
pub(super) enum Rule {
    Komado,
    Seed000,
    Seed001,
    Seed002,
}

impl Rule {
    fn preset(self) -> Option<Preset> {
        Preset::named(match self {
            Self::Komado => "komado",
            Self::Seed000 => "seed000",
            Self::Seed001 => "seed001",
            Self::Seed002 => "seed002",
        })
    }
}

fn room(window: Option<u32>, preset: Option<Rule>) -> Answer<Room> {
    Ok(Room { window: positive("window", window)?, preset: preset.and_then(Rule::preset) })
}

/// What would be done to make the view fit its window; nothing is changed
#[utoipa::path(get, path = "/api/v1/sessions/{session}/threads/{thread}/plan", tag = "view", params(In, Planned),
    responses((status = 200, body = shape::Fitted)))]
pub(super) async fn plan(
    call: Call,
    Named(at): Named<In>,
    Params(asked): Params<Planned>,
) -> Answer<Json<Value>> {
    let room = room(asked.window, asked.preset)?;
    call.run(move |desk| {
        let (_, address) = moment(desk, &at, None)?;
        let args = verb::fit::Args { address, dry_run: true, relax: asked.relax.unwrap_or(false), room };
        desk.row(|app| verb::fit::run(app, args))
    })
    .await
    .map(Json)
}

/// How to fit.
#[derive(Deserialize, ToSchema, Default)]
#[serde(deny_unknown_fields, default)]
#[schema(example = json!({"window": 8000}))]
pub(super) struct Fit {
    /// The model's window in tokens, in place of the session's own.
    #[schema(minimum = 1)]
    window: Option<u32>,
    /// The rule by which the window is kept.
    #[schema(inline)]
    preset: Option<Rule>,
    /// True to first take back edits for which the window has room again.
    relax: bool,
}

/// Make the view fit its window
#[utoipa::path(post, path = "/api/v1/sessions/{session}/threads/{thread}/fit", tag = "view", params(In),
    request_body = Option<Fit>, responses((status = 200, body = shape::Fitted)))]
pub(super) async fn fit(call: Call, Named(at): Named<In>, Maybe(body): Maybe<Fit>) -> Answer<Json<Value>> {
    let (room, relax) = (room(body.window, body.preset)?, body.relax);
    call.change(at, move |app, address| {
        verb::fit::run(app, verb::fit::Args { address, dry_run: false, relax, room })
    })
    .await
}

/// Entries from one to another, both included.
#[derive(Deserialize, Serialize, ToSchema, Clone, Copy)]
#[serde(try_from = "serde_json::Map<String, Value>", deny_unknown_fields)]
pub(super) struct Stretch {
    /// The first.
    #[schema(minimum = 1)]
    from: u32,
    /// The last.
    #[schema(minimum = 1)]
    to: u32,
}

impl TryFrom<serde_json::Map<String, Value>> for Stretch {
    type Error = String;

    fn try_from(mut fields: serde_json::Map<String, Value>) -> Result<Self, String> {
        let mut take = |name: &str| {
            let seq = fields.remove(name).and_then(|value| Seq::try_from(value.as_u64()?).ok());
            seq.ok_or_else(|| {
                format!("a span has `from` and `to`, and `{name}` is not the number of an entry")
            })
        };
        let (from, to) = (take("from")?, take("to")?);
        match fields.keys().next() {
            Some(other) => Err(format!("a span has `from` and `to`, not `{other}`")),
            None => Ok(Self { from, to }),
        }
    }
}

fn spans(given: &[Stretch]) -> Answer<Spans> {
    if given.is_empty() {
        return Err(Problem::bad("spans is empty; name at least one, such as [{\"from\": 3, \"to\": 50}]"));
    }
    if given.iter().any(|span| span.from == 0 || span.to == 0) {
        return Err(Problem::bad("entries count from 1"));
    }
    if let Some(Stretch { from, to }) = given.iter().find(|span| span.to < span.from) {
        return Err(Problem::unusable(format!("the span from {from} to {to} ends before it begins")));
    }
    Ok(Spans(given.iter().map(|span| Span::new(span.from, span.to)).collect()))
}

/// A summary in place of entries.
#[derive(Deserialize, ToSchema, Default)]
#[serde(deny_unknown_fields, default)]
#[schema(example = json!({"spans": [{"from": 1, "to": 2}], "text": "They agreed on the plan."}))]
pub(super) struct Condense {
    /// The entries to hide; left out: all but what is kept, in a summary written now.
    #[schema(min_items = 1)]
    spans: Option<Vec<Stretch>>,
    /// The summary for the spans.
    text: Option<String>,
    /// The model's window in tokens, in place of the session's own.
    #[schema(minimum = 1)]
    window: Option<u32>,
    /// The rule by which the window is kept.
    #[schema(inline)]
    preset: Option<Rule>,
}

/// Show a summary in place of entries: one you wrote, or one that is written now
#[utoipa::path(post, path = "/api/v1/sessions/{session}/threads/{thread}/condense", tag = "view", params(In),
    request_body = Option<Condense>, responses((status = 200, body = shape::Said)))]
pub(super) async fn condense(
    call: Call,
    Named(at): Named<In>,
    Maybe(body): Maybe<Condense>,
) -> Answer<Json<Value>> {
    let span = body.spans.as_deref().map(spans).transpose()?;
    if span.is_some() != body.text.is_some() {
        return Err(Problem::unusable("give spans and text together, or neither to have a summary written"));
    }
    let (text, room) = (body.text, room(body.window, body.preset)?);
    let change = call.change(at, move |app, address| {
        verb::condense::run(app, verb::condense::Args { address, span, text, room })
    });
    let mut done = change.await?;
    // One that was written now is told as a fit is; its edit names the entry.
    if done.0.get("seq").is_none() {
        let seq = done.0.pointer("/edits/0/seq").cloned().unwrap_or_default();
        done.0["seq"] = seq;
    }
    Ok(done)
}
