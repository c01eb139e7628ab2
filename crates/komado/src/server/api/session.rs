//! Sessions: list, make, look at, end, remove, count.

use super::call::{At, Call, Desk};
use super::problem::{Answer, Problem};
use super::take::{Body, Maybe, Named, Params};
use super::{page, shape, tag};
use crate::app::App;
use crate::fault::Outcome;
use crate::verb;
use axum::Json;
use axum::response::{IntoResponse, Response};
use http::StatusCode;
use http::header::LOCATION;
use komado_core::Address;
use komado_core::SessionId;
use komado_core::session::{Session, State};
use komado_store::Query;
use serde::Deserialize;
use serde_json::{Value, json};
use std::sync::PoisonError;
use utoipa::{IntoParams, ToSchema};

/// Which sessions to list.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct Filter {
    /// Only this user's
    user: Option<String>,
    /// Only sessions in this state
    #[param(value_type = Option<shape::State>)]
    status: Option<String>,
    /// Only those whose id begins so
    prefix: Option<String>,
    /// At most so many
    #[param(minimum = 1, maximum = 1000)]
    limit: Option<u32>,
    /// `next` of the page before
    cursor: Option<String>,
}

/// List the sessions you may see, in the order they were made
#[utoipa::path(get, path = "/api/v1/sessions", tag = "sessions", params(Filter),
    responses((status = 200, body = shape::Sessions)))]
pub(super) async fn list(call: Call, Params(filter): Params<Filter>) -> Answer<Json<Value>> {
    call.run(move |desk| listed(desk, filter)).await.map(Json)
}

fn listed(desk: &mut Desk, filter: Filter) -> Answer<Value> {
    let limit = page::limit(filter.limit)?;
    let cursor = filter.cursor.filter(|cursor| !cursor.is_empty());
    let after: Option<(String, String)> = cursor.map(|cursor| page::read("sessions", &cursor)).transpose()?;
    let after = after.map(|(at, id)| Ok::<_, Problem>((at, SessionId::new(id)?))).transpose()?;
    // One who sees only their own is not made to wait for everyone else's.
    let own =
        (!desk.guest.sees_all && desk.guest.sessions.is_empty()).then(|| desk.guest.user.clone()).flatten();
    let mut query = Query {
        prefix: filter.prefix,
        status: filter.status.as_deref().map(state).transpose()?,
        user: filter.user.clone().or(own),
        after,
        limit: page::MOST as usize,
        ..Query::default()
    };
    let (mut items, mut more) = (Vec::new(), None::<(String, String)>);
    'pages: loop {
        let page = desk.app.engine.store().sessions(&query)?;
        let Some(last) = page.last() else { break };
        query.after = Some((last.meta.created_at.clone(), SessionId::new(last.meta.uuid.as_str())?));
        let is_last = page.len() < query.limit;
        for session in page.iter().filter(|session| desk.guest.may_see(session)) {
            if items.len() == limit {
                let last: &Session = &items[limit - 1];
                more = Some((last.meta.created_at.clone(), last.meta.uuid.clone()));
                break 'pages;
            }
            items.push(session.clone());
        }
        if is_last {
            break;
        }
    }
    let next = more.map(|place| page::write("sessions", &place)).transpose()?;
    Ok(json!({ "items": items.iter().map(row).collect::<Vec<_>>(), "next": next }))
}

fn state(name: &str) -> Answer<State> {
    State::named(name).ok_or_else(|| {
        let known = State::ALL.map(State::name).join(", ");
        Problem::bad(format!("unknown status: {name:?}; known are {known}"))
    })
}

/// A session for programs, as `komado sessions --json` prints it.
pub(super) fn row(session: &Session) -> Value {
    let mut row = json!(session);
    row["session"] = json!(session.meta.uuid);
    row
}

/// A session to be made; what is left out is as the settings say.
#[derive(Deserialize, ToSchema, Default)]
#[serde(deny_unknown_fields, default)]
#[schema(example = json!({"window": 8000, "system": "You are a careful engineer."}))]
pub(super) struct New {
    /// Its id; a new UUID when left out.
    #[schema(pattern = "^[A-Za-z0-9][A-Za-z0-9_.:-]*$", max_length = 128)]
    id: Option<String>,
    /// The model it will talk to.
    model: Option<String>,
    /// The provider of the model.
    provider: Option<String>,
    /// The model's window in tokens.
    #[schema(minimum = 1)]
    window: Option<u32>,
    /// Whose session it is.
    user: Option<String>,
    /// What it works on, such as github:ann/tool/issue/27.
    task: Option<String>,
    /// How tokens are counted.
    meter: Option<String>,
    /// The system prompt.
    system: Option<String>,
    /// True to let it wait in a queue.
    queued: bool,
    /// The name of a persona in the settings.
    persona: Option<String>,
    /// What its child threads get, such as {"default_window_ratio": 0.7}.
    stelis: Option<Value>,
}

/// Make a session
#[utoipa::path(post, path = "/api/v1/sessions", tag = "sessions", request_body = Option<New>,
    responses((status = 201, body = shape::Made, headers(("location" = String, description = "The session")))))]
pub(super) async fn create(call: Call, Maybe(new): Maybe<New>) -> Answer<Response> {
    let made = call.run(move |desk| make(desk, new)).await?;
    let place = format!("/api/v1/sessions/{}", made["session"].as_str().unwrap_or_default());
    Ok((StatusCode::CREATED, [(LOCATION, place)], Json(made)).into_response())
}

fn make(desk: &mut Desk, new: New) -> Answer<Value> {
    if new.window == Some(0) {
        return Err(Problem::bad("window is 0; give the model's window in tokens, or leave it out"));
    }
    let id = new.id.map(|id| desk.free_name(&id)).transpose()?;
    let stelis = new.stelis.map(|given| verb::new::stelis::parse(&given.to_string())).transpose();
    let args = verb::new::Args {
        id: id.map(|id| id.to_string()),
        model: new.model,
        provider: new.provider,
        window: new.window,
        user: desk.owner(new.user)?,
        task: new.task,
        meter: new.meter,
        system: new.system,
        queued: new.queued,
        persona: new.persona,
        stelis: stelis.map_err(|why| Problem::unusable(format!("stelis: {why}")))?,
    };
    let mut made = desk.row(|app| verb::new::run(app, args))?;
    hide_folder(&mut made);
    Ok(made)
}

/// Where things lie on the server's disk is nobody's business.
fn hide_folder(row: &mut Value) {
    if let Value::Object(fields) = row {
        fields.remove("folder");
    }
}

/// Look at one session
#[utoipa::path(get, path = "/api/v1/sessions/{session}", tag = "sessions", params(At),
    responses((status = 200, body = shape::Session, headers(("etag" = String, description = "Which moment it is of")))))]
pub(super) async fn one(call: Call, Named(at): Named<At>) -> Answer<Response> {
    let headers = call.headers.clone();
    let body = call.run(move |desk| Ok(row(&desk.session(&at.session)?.1).to_string())).await?;
    Ok(tag::answer(&headers, &tag::of("session", body.as_bytes()), body))
}

/// Remove a session with everything in it; this cannot be undone
#[utoipa::path(delete, path = "/api/v1/sessions/{session}", tag = "sessions", params(At),
    responses((status = 204, description = "It is gone")))]
pub(super) async fn remove(call: Call, Named(at): Named<At>) -> Answer<StatusCode> {
    call.run(move |desk| {
        let (id, session) = desk.session(&at.session)?;
        let room = desk.shared.room(&id);
        let _held = room.lock().unwrap_or_else(PoisonError::into_inner);
        check_session(desk, &session)?;
        desk.app.engine.store().remove(&id)?;
        Ok(StatusCode::NO_CONTENT)
    })
    .await
}

/// Refuses a writer who has seen another moment of the session.
pub(super) fn check_session(desk: &Desk, session: &Session) -> Answer<()> {
    let now = tag::of("session", row(session).to_string().as_bytes());
    tag::check(&desk.headers, now.trim_matches('"'))
}

/// Why, for people.
#[derive(Deserialize, ToSchema, Default)]
#[serde(deny_unknown_fields, default)]
#[schema(example = json!({"reason": "waits for review"}))]
pub(super) struct Reason {
    /// Why.
    reason: Option<String>,
}

/// Its result, for people.
#[derive(Deserialize, ToSchema, Default)]
#[serde(deny_unknown_fields, default)]
#[schema(example = json!({"result": "all tests pass"}))]
pub(super) struct Outcomes {
    /// The result.
    result: Option<String>,
}

/// Why it failed.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({"reason": "the build never passed"}))]
pub(super) struct Failure {
    /// Why.
    reason: String,
}

async fn enter(
    call: Call,
    at: At,
    op: impl FnOnce(&mut App, Address) -> Outcome + Send + 'static,
) -> Answer<Json<Value>> {
    let done = call.run(move |desk| {
        let (id, session) = desk.session(&at.session)?;
        let room = desk.shared.room(&id);
        let _held = room.lock().unwrap_or_else(PoisonError::into_inner);
        check_session(desk, &session)?;
        let mut row = desk.row(|app| op(app, Address { session: id, thread: None, seq: None }))?;
        hide_folder(&mut row);
        Ok(row)
    });
    done.await.map(Json)
}

/// End a session well
#[utoipa::path(post, path = "/api/v1/sessions/{session}/complete", tag = "sessions", params(At),
    request_body = Option<Outcomes>, responses((status = 200, body = shape::Entered)))]
pub(super) async fn complete(
    call: Call,
    Named(at): Named<At>,
    Maybe(body): Maybe<Outcomes>,
) -> Answer<Json<Value>> {
    let result = body.result;
    enter(call, at, |app, address| verb::complete::run(app, verb::complete::Args { address, result })).await
}

/// End a session with a reason
#[utoipa::path(post, path = "/api/v1/sessions/{session}/fail", tag = "sessions", params(At),
    request_body = Failure, responses((status = 200, body = shape::Entered)))]
pub(super) async fn fail(call: Call, Named(at): Named<At>, Body(body): Body<Failure>) -> Answer<Json<Value>> {
    let reason = body.reason;
    enter(call, at, |app, address| verb::fail::run(app, verb::fail::Args { address, reason })).await
}

/// End a session because its user wants it so
#[utoipa::path(post, path = "/api/v1/sessions/{session}/stop", tag = "sessions", params(At),
    request_body = Option<Reason>, responses((status = 200, body = shape::Entered)))]
pub(super) async fn stop(
    call: Call,
    Named(at): Named<At>,
    Maybe(body): Maybe<Reason>,
) -> Answer<Json<Value>> {
    let reason = body.reason;
    enter(call, at, |app, address| verb::stop::run(app, verb::stop::Args { address, reason })).await
}

/// Let a session wait
#[utoipa::path(post, path = "/api/v1/sessions/{session}/pause", tag = "sessions", params(At),
    request_body = Option<Reason>, responses((status = 200, body = shape::Entered)))]
pub(super) async fn pause(
    call: Call,
    Named(at): Named<At>,
    Maybe(body): Maybe<Reason>,
) -> Answer<Json<Value>> {
    let reason = body.reason;
    enter(call, at, |app, address| verb::pause::run(app, verb::pause::Args { address, reason })).await
}

/// Let a session go on, also one that has ended
#[utoipa::path(post, path = "/api/v1/sessions/{session}/resume", tag = "sessions", params(At),
    responses((status = 200, body = shape::Entered)))]
pub(super) async fn resume(call: Call, Named(at): Named<At>) -> Answer<Json<Value>> {
    enter(call, at, |app, address| verb::resume::run(app, verb::resume::Args { address })).await
}

/// What to count.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct Counted {
    /// Only this user's
    user: Option<String>,
    /// How many running and failed sessions to list
    #[param(minimum = 0, maximum = 1000)]
    limit: Option<u32>,
}

/// Count sessions, tokens and time; of your own sessions, unless your key sees all
#[utoipa::path(get, path = "/api/v1/stats", tag = "sessions", params(Counted),
    responses((status = 200, body = shape::Stats)))]
pub(super) async fn stats(call: Call, Params(asked): Params<Counted>) -> Answer<Json<Value>> {
    call.run(move |desk| {
        let limit = asked.limit.unwrap_or(10);
        if limit > page::MOST {
            return Err(Problem::bad(format!("limit is {limit}, and {} is the most", page::MOST)));
        }
        let user = match asked.user {
            Some(user) if !desk.guest.sees_all && desk.guest.user.as_ref() != Some(&user) => {
                return Err(Problem::forbidden(format!(
                    "this key does not see the sessions of user {user:?}"
                )));
            }
            None if !desk.guest.sees_all => desk.guest.user.clone(),
            asked => asked,
        };
        desk.row(|app| verb::stats::run(app, verb::stats::Args { user, limit: limit as usize }))
    })
    .await
    .map(Json)
}

/// Which sessions are old.
#[derive(Deserialize, ToSchema, Default)]
#[serde(deny_unknown_fields, default)]
#[schema(example = json!({"days": 30, "dry_run": true}))]
pub(super) struct Old {
    /// Those that ended before so many days; as the settings say when left out.
    days: Option<u32>,
    /// True to only say what would be removed.
    dry_run: bool,
}

/// Remove sessions that ended long ago; for keys that see all
#[utoipa::path(post, path = "/api/v1/cleanup", tag = "sessions", request_body = Option<Old>,
    responses((status = 200, body = shape::List)))]
pub(super) async fn cleanup(call: Call, Maybe(old): Maybe<Old>) -> Answer<Json<Value>> {
    call.run(move |desk| {
        desk.check_all()?;
        let args = verb::cleanup::Args { days: old.days, dry_run: old.dry_run };
        Ok(json!({ "items": desk.rows(|app| verb::cleanup::run(app, args))? }))
    })
    .await
    .map(Json)
}
