//! The view at any moment, the window, and the verbs that change either.

use super::call::{Call, Desk, In};
use super::problem::{Answer, Problem};
use super::take::{self, Body, Named, Params};
use super::{shape, stream, tag};
use crate::fault::Outcome;
use crate::verb;
use crate::verb::show::Inline;
use axum::Json;
use axum::response::Response;
use komado_core::journal::Setup;
use komado_core::message::Message;
use komado_core::raw::Raw;
use komado_core::{Seq, View, notation, openai};
use komado_engine::Thread;
use komado_engine::engine::Found;
use komado_store::Mode;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Value, json};
use std::io::Write;
use utoipa::{IntoParams, ToSchema};

/// Bytes of a view that are held in memory; a larger one lies in a file while it is sent.
const HELD: usize = 1 << 20;

/// Which moment, and how it is told.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct Shown {
    /// The moment; now when left out
    at: Option<u32>,
    /// Messages as OpenAI's chat API has them (the default), or items with their tokens
    #[param(inline)]
    format: Option<Format>,
}

/// How a view is told.
#[derive(Deserialize, Serialize, ToSchema, Clone, Copy, Default)]
#[serde(rename_all = "snake_case")]
pub(super) enum Format {
    #[default]
    Messages,
    Items,
}

/// What the model sees, or saw at any moment
#[utoipa::path(get, path = "/api/v1/sessions/{session}/threads/{thread}/view", tag = "view", params(In, Shown),
    responses((status = 200, body = shape::View, headers(("etag" = String, description = "Which moment it is of")))))]
pub(super) async fn view(call: Call, Named(at): Named<In>, Params(shown): Params<Shown>) -> Answer<Response> {
    let headers = call.headers.clone();
    let (tag, file) = call
        .run(move |desk| {
            let found = desk.thread(&at)?;
            let thread = desk.app.engine.open(&found.session, &found.thread, Mode::Read)?;
            let view = match shown.at {
                Some(seq) => thread.view_at(seq)?,
                None => thread.view().clone(),
            };
            let mut file = Digested { file: tempfile::spooled_tempfile(HELD), digest: blake3::Hasher::new() };
            pour(desk, &found, &thread, &view, shown.format.unwrap_or_default(), &mut file)?;
            Ok((
                tag::from_digest(&format!("{}@{}", found.thread, view.last()), &file.digest.finalize()),
                file.file,
            ))
        })
        .await?;
    Ok(tag::answer(&headers, &tag, stream::file(file)?))
}

/// What is written, digested on the way.
struct Digested {
    file: tempfile::SpooledTempFile,
    digest: blake3::Hasher,
}

impl Write for Digested {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let n = self.file.write(bytes)?;
        self.digest.update(&bytes[..n]);
        Ok(n)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.file.flush()
    }
}

/// Writes a view, one item at a time.
fn pour(
    desk: &Desk,
    found: &Found,
    thread: &Thread<'_>,
    view: &View,
    format: Format,
    out: &mut dyn Write,
) -> Outcome {
    let (session, name) = (json!(found.session.as_str()), json!(found.thread.as_str()));
    let (seq, tokens) = (view.last(), view.tokens());
    write!(out, "{{\"session\":{session},\"thread\":{name},\"seq\":{seq},\"tokens\":{tokens},\"items\":[")?;
    let mut comma = "";
    match format {
        Format::Messages => {
            let mut blobs = Inline { store: desk.app.engine.store(), session: &found.session };
            view.pour(thread.source(), &mut |seq: Seq, message: &Message| -> Outcome {
                write!(out, "{comma}{{\"seq\":{seq},\"message\":")?;
                openai::write(message, &mut blobs, out)?;
                comma = ",";
                Ok(out.write_all(b"}")?)
            })?;
        }
        Format::Items => {
            let mut done: Outcome = Ok(());
            view.each_item(thread.source(), |item| {
                if done.is_ok() {
                    done = notation::item(&item, thread.source(), usize::MAX).map_err(Into::into).and_then(
                        |text| {
                            let row = json!({ "seq": item.seq, "tokens": item.tokens, "text": text });
                            Ok(write!(out, "{comma}{row}")?)
                        },
                    );
                    comma = ",";
                }
            })?;
            done?;
        }
    }
    Ok(out.write_all(b"]}")?)
}

/// What stands before the conversation; what is left out stays.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({"system": "You are a careful engineer."}))]
pub(super) struct SetUp {
    /// The system prompt.
    system: Option<String>,
    /// Tool definitions.
    #[schema(value_type = Option<Vec<Object>>)]
    tools: Option<Vec<Box<RawValue>>>,
    /// Other parameters of the request.
    params: Option<serde_json::Map<String, Value>>,
    /// Whose form tools and parameters have; `openai` when left out.
    dialect: Option<String>,
}

/// Set system prompt, tools and parameters
#[utoipa::path(post, path = "/api/v1/sessions/{session}/threads/{thread}/setup", tag = "view", params(In),
    request_body = SetUp, responses((status = 200, body = shape::Change)))]
pub(super) async fn set_up(call: Call, Named(at): Named<In>, Body(body): Body<SetUp>) -> Answer<Json<Value>> {
    take::check_objects("tools", body.tools.as_deref().unwrap_or_default())?;
    let tools = body.tools.as_ref().map(raw).transpose()?;
    let params = body.params.as_ref().map(raw).transpose()?;
    if body.system.is_none() && tools.is_none() && params.is_none() {
        return Err(Problem::unusable("nothing is set up: give system, tools or params"));
    }
    let form = body.dialect.unwrap_or_else(|| openai::DIALECT.to_owned());
    let dialect = (tools.is_some() || params.is_some()).then_some(form);
    let setup = Setup { system: body.system, tools, params, dialect };
    call.change(at, move |app, address| {
        let found = app.find_now(&address)?;
        verb::setup::apply(app, &found, setup)
    })
    .await
}

/// JSON as the journal keeps it.
fn raw<T: Serialize>(given: &T) -> Answer<Raw> {
    Raw::parse(&serde_json::to_string(given)?).map_err(|error| Problem::unusable(error.to_string()))
}
