//! Outputs that were too long to be shown: listed, read, searched, taken whole.

use super::call::{Call, In, moment};
use super::problem::{Answer, Problem};
use super::take::{Named, Params};
use super::{shape, stream};
use crate::verb::output::{self, Args, complete, fault};
use axum::Json;
use axum::response::{IntoResponse, Response};
use http::HeaderValue;
use http::header::{CONTENT_TYPE, HeaderName};
use komado_store::Mode;
use serde::Deserialize;
use serde_json::{Value, json};
use std::io;
use utoipa::IntoParams;

/// Up to which moment.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct Upto {
    /// Only outputs of entries up to this one
    at: Option<u32>,
}

/// List the outputs that were too long to be shown
#[utoipa::path(get, path = "/api/v1/sessions/{session}/threads/{thread}/outputs", tag = "outputs", params(In, Upto),
    responses((status = 200, body = shape::List)))]
pub(super) async fn list(
    call: Call,
    Named(at): Named<In>,
    Params(upto): Params<Upto>,
) -> Answer<Json<Value>> {
    call.run(move |desk| {
        let found = desk.thread(&at)?;
        let rows = desk.rows(|app| {
            let engine = app.engine.clone();
            let thread = engine.open(&found.session, &found.thread, Mode::Read)?;
            output::list(app, &thread, upto.at.unwrap_or(thread.last()).min(thread.last()))
        })?;
        Ok(json!({ "items": rows }))
    })
    .await
    .map(Json)
}

/// An output in a path.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Path)]
pub(super) struct OfOutput {
    /// The session's id, in full
    #[param(example = "demo", pattern = "^[A-Za-z0-9][A-Za-z0-9_.:-]*$", max_length = 128)]
    session: String,
    /// The thread's id
    #[param(example = "root", pattern = "^[A-Za-z0-9][A-Za-z0-9_.:-]*$", max_length = 128)]
    thread: String,
    /// The output's id or a beginning of it; or @ and the number of an entry
    #[param(example = "@1", pattern = "^(@[0-9]{1,8}|[0-9a-f]{1,64})$")]
    reference: String,
}

/// What to read of it: lines, matches, or a part of one line.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct Reads {
    /// First line to read, or to search
    #[param(minimum = 1)]
    offset: Option<u64>,
    /// Lines to read at most
    #[param(minimum = 1)]
    limit: Option<u64>,
    /// Search for this text
    #[param(min_length = 1, max_length = 1000)]
    grep: Option<String>,
    /// True when the pattern is a regular expression
    regex: Option<bool>,
    /// Lines to show before each match
    before: Option<u64>,
    /// Lines to show after each match
    after: Option<u64>,
    /// Matches to show at most
    #[param(minimum = 1)]
    max_matches: Option<u64>,
    /// Read a part of this line
    #[param(minimum = 1)]
    line: Option<u64>,
    /// Characters of the line to pass over
    char_offset: Option<u64>,
    /// Characters to read at most
    #[param(minimum = 1)]
    char_limit: Option<u64>,
}

impl Reads {
    /// What stands beside something it does not go with is most likely meant otherwise.
    fn check(&self) -> Answer<()> {
        let zero = [
            ("offset", self.offset),
            ("limit", self.limit),
            ("max_matches", self.max_matches),
            ("line", self.line),
            ("char_limit", self.char_limit),
        ];
        if let Some((name, _)) = zero.iter().find(|(_, value)| *value == Some(0)) {
            return Err(Problem::bad(format!("{name} is 0; give 1 or more, or leave it out")));
        }
        if self.grep.as_deref() == Some("") {
            return Err(Problem::bad("grep is empty; say what to look for"));
        }
        let searches = [
            ("regex", self.regex.is_some()),
            ("before", self.before.is_some()),
            ("after", self.after.is_some()),
            ("max_matches", self.max_matches.is_some()),
        ];
        let lone = searches.iter().find(|(_, given)| *given && self.grep.is_none());
        if let Some((name, _)) = lone {
            return Err(Problem::unusable(format!("{name} goes with grep")));
        }
        if self.line.is_some() && (self.grep.is_some() || self.offset.is_some() || self.limit.is_some()) {
            return Err(Problem::unusable("line reads one line; leave out grep, offset and limit"));
        }
        if self.char_limit.is_some() && self.line.is_none() {
            return Err(Problem::unusable("char_limit goes with line"));
        }
        Ok(())
    }
}

/// Read lines of an output, search it, or read a part of one line
#[utoipa::path(get, path = "/api/v1/sessions/{session}/threads/{thread}/outputs/{reference}", tag = "outputs",
    params(OfOutput, Reads), responses((status = 200, body = shape::Reading)))]
pub(super) async fn read(
    call: Call,
    Named(of): Named<OfOutput>,
    Params(reads): Params<Reads>,
) -> Answer<Json<Value>> {
    call.run(move |desk| {
        reads.check()?;
        let at = In { session: of.session, thread: of.thread };
        let (_, address) = moment(desk, &at, None)?;
        let args = Args {
            address,
            reference: Some(of.reference),
            offset: reads.offset,
            limit: reads.limit,
            grep: reads.grep,
            regex: reads.regex.unwrap_or(false),
            before: reads.before,
            after: reads.after,
            max_matches: reads.max_matches,
            line: reads.line,
            char_offset: reads.char_offset,
            char_limit: reads.char_limit,
            raw: false,
        };
        desk.row(|app| output::run(app, args))
    })
    .await
    .map(Json)
}

/// The bytes of an output, all of them
#[utoipa::path(get, path = "/api/v1/sessions/{session}/threads/{thread}/outputs/{reference}/raw", tag = "outputs",
    params(OfOutput), responses((status = 200, body = String, content_type = "application/octet-stream")))]
pub(super) async fn whole(call: Call, Named(of): Named<OfOutput>) -> Answer<Response> {
    let bytes = call
        .run(move |desk| {
            let found = desk.thread(&In { session: of.session, thread: of.thread })?;
            let reference = complete(&desk.app, &found, of.reference.parse().map_err(fault)?)?;
            let thread = desk.app.engine.open(&found.session, &found.thread, Mode::Read)?;
            Ok(komado_engine::output::open(&thread, &reference).map_err(fault)?)
        })
        .await?;
    let mut bytes = bytes;
    let body = stream::written(move |out| io::copy(&mut bytes, out).map(|_| ()));
    let mut response = body.into_response();
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/octet-stream"));
    // What a tool printed is never to run in a browser.
    headers.insert(HeaderName::from_static("x-content-type-options"), HeaderValue::from_static("nosniff"));
    Ok(response)
}
