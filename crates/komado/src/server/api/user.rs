//! Users: who there are, their standing sessions, what was said lately, habits; and forgetting one.
//!
//! A key that does not see all sees one user, its own; any other is told not to be there, in the same words as one that is
//! not. Whoever may remove each of a user's sessions may have the user forgotten; nothing of it is kept here.

use super::call::{Call, Desk};
use super::problem::{Answer, Problem};
use super::take::{Maybe, Named, Params};
use super::{page, shape};
use crate::fault::Exit;
use crate::verb;
use crate::verb::user::forget::Asked;
use axum::Json;
use axum::response::{IntoResponse, Response};
use http::StatusCode;
use http::header::LOCATION;
use komado_core::SessionId;
use komado_engine::user::Place;
use komado_ops::session::SessionRow;
use serde::Deserialize;
use serde_json::{Value, json};
use utoipa::{IntoParams, ToSchema};

/// A user in a path.
#[derive(Clone, Deserialize, IntoParams)]
#[into_params(parameter_in = Path)]
pub(super) struct Whose {
    /// The user's name
    #[param(example = "ann", min_length = 1)]
    user: String,
}

/// Which page.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct Turned {
    /// At most so many
    #[param(minimum = 1, maximum = 1000)]
    limit: Option<u32>,
    /// `next` of the page before
    cursor: Option<String>,
}

impl Turned {
    fn place<T: serde::de::DeserializeOwned>(&self, what: &str) -> Answer<Option<T>> {
        let cursor = self.cursor.as_deref().filter(|cursor| !cursor.is_empty());
        cursor.map(|cursor| page::read(what, cursor)).transpose()
    }
}

impl Desk {
    /// Refuses a user whom the guest may not see.
    fn check_user(&self, user: &str) -> Answer<()> {
        if self.guest.sees_all || self.guest.user.as_deref() == Some(user) {
            return Ok(());
        }
        Err(no_user(user))
    }
}

fn no_user(user: &str) -> Problem {
    Problem::missing(format!("there is no user {user:?} that you may see; GET /api/v1/users lists yours"))
}

/// A user of whom nothing is known is not there.
fn known<T>(user: &str, found: komado_engine::Result<T>) -> Answer<T> {
    found.map_err(|error| match error {
        komado_engine::Error::Unknown { .. } => no_user(user),
        other => other.into(),
    })
}

/// List the users you may see, by name
#[utoipa::path(get, path = "/api/v1/users", tag = "users", params(Turned),
    responses((status = 200, body = shape::Users)))]
pub(super) async fn list(call: Call, Params(turned): Params<Turned>) -> Answer<Json<Value>> {
    call.run(move |desk| listed(desk, &turned)).await.map(Json)
}

fn listed(desk: &Desk, turned: &Turned) -> Answer<Value> {
    let limit = page::limit(turned.limit)?;
    let after: Option<String> = turned.place("users")?;
    if !desk.guest.sees_all {
        let own = desk.guest.user.as_deref().map(|user| desk.app.engine.user(user)).transpose()?.flatten();
        let own = own.filter(|own| after.as_ref().is_none_or(|after| own.user > *after));
        return Ok(json!({ "items": own.as_slice(), "next": null }));
    }
    let items = desk.app.engine.users(after.as_deref(), limit)?;
    let last = items.last().filter(|_| items.len() == limit);
    let next = last.map(|last| page::write("users", &last.user)).transpose()?;
    Ok(json!({ "items": items, "next": next }))
}

/// Look at how a user talks: sessions, models, tools, hours, common words
#[utoipa::path(get, path = "/api/v1/users/{user}", tag = "users", params(Whose),
    responses((status = 200, body = shape::Habits)))]
pub(super) async fn one(call: Call, Named(whose): Named<Whose>) -> Answer<Json<Value>> {
    let habits = call.run(move |desk| {
        desk.check_user(&whose.user)?;
        // Like a report, it reads every session of the user.
        let _place = desk.shared.reporting_place()?;
        Ok(json!(known(&whose.user, desk.app.engine.habits(&whose.user))?))
    });
    habits.await.map(Json)
}

/// How a user is forgotten.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct Way {
    /// Only say what would be erased
    #[serde(default)]
    dry_run: bool,
    /// Erase the rest where somebody is at some sessions; those are named and stay
    #[serde(default)]
    force: bool,
}

/// Erase everything of a user; this cannot be undone, so export first what is to be kept
#[utoipa::path(delete, path = "/api/v1/users/{user}", tag = "users", params(Whose, Way),
    responses((status = 200, body = shape::Forgotten)))]
pub(super) async fn forget(
    call: Call,
    Named(whose): Named<Whose>,
    Params(way): Params<Way>,
) -> Answer<Json<Value>> {
    call.run(move |desk| forgotten(desk, &whose.user, &way)).await.map(Json)
}

fn forgotten(desk: &Desk, user: &str, way: &Way) -> Answer<Value> {
    desk.check_user(user)?;
    // It reads every session of the user, and two at once would find each other's halves.
    let _place = desk.shared.reporting_place()?;
    let answers = |id: &SessionId| desk.shared.answers.forget_session(id);
    let by = desk.guest.key.as_ref().map_or_else(|| "no key".to_owned(), |key| format!("key {key}"));
    let asked = Asked { user, force: way.force, dry_run: way.dry_run, by, answers: &answers };
    verb::user::forget::asked(&desk.app, &asked).map_err(|fault| match fault.exit() {
        Exit::NotFound => no_user(user),
        _ => fault.into(),
    })
}

/// Read what was said lately over all of a user's sessions, the newest first
#[utoipa::path(get, path = "/api/v1/users/{user}/messages", tag = "users", params(Whose, Turned),
    responses((status = 200, body = shape::Recent)))]
pub(super) async fn recent(
    call: Call,
    Named(whose): Named<Whose>,
    Params(turned): Params<Turned>,
) -> Answer<Json<Value>> {
    call.run(move |desk| lately(desk, &whose.user, &turned)).await.map(Json)
}

fn lately(desk: &Desk, user: &str, turned: &Turned) -> Answer<Value> {
    desk.check_user(user)?;
    let limit = page::limit(turned.limit)?;
    let before: Option<Place> = turned.place("messages")?;
    let places = known(user, desk.app.engine.recent(user, before.as_ref(), limit))?;
    let last = places.last().filter(|_| places.len() == limit);
    let next = last.map(|last| page::write("messages", last)).transpose()?;
    let items = places.into_iter().map(|place| desk.app.engine.spoken(place));
    let items = items.collect::<komado_engine::Result<Vec<_>>>()?;
    Ok(json!({ "items": items, "next": next }))
}

/// What a standing session is made with, where it is not there yet; what is left out is as the settings say.
#[derive(Deserialize, ToSchema, Default)]
#[serde(deny_unknown_fields, default)]
#[schema(example = json!({"window": 8000}))]
pub(super) struct Wanted {
    /// The model it will talk to.
    model: Option<String>,
    /// The model's window in tokens.
    #[schema(minimum = 1)]
    window: Option<u32>,
}

/// Open a user's standing session; it is made where it is not there
#[utoipa::path(post, path = "/api/v1/users/{user}/session", tag = "users", params(Whose),
    request_body = Option<Wanted>,
    responses((status = 200, body = shape::Session, description = "It was there"),
        (status = 201, body = shape::Session, headers(("location" = String, description = "The session")))))]
pub(super) async fn session(
    call: Call,
    Named(whose): Named<Whose>,
    Maybe(wanted): Maybe<Wanted>,
) -> Answer<Response> {
    let opened = call.run(move |desk| {
        desk.check_user(&whose.user)?;
        if wanted.window == Some(0) {
            return Err(Problem::bad("window is 0; give the model's window in tokens, or leave it out"));
        }
        let (model, window) = (wanted.model, wanted.window);
        Ok(verb::user::open(&mut desk.app, &whose.user, model, window)?)
    });
    let (session, is_new) = opened.await?;
    let place = format!("/api/v1/sessions/{}", session.meta.uuid);
    let status = if is_new { StatusCode::CREATED } else { StatusCode::OK };
    Ok((status, [(LOCATION, place)], Json(SessionRow::from(session))).into_response())
}
