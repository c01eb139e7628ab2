//! What happened in many sessions: those that the guest may see, and no others.
//!
//! A report reads them all, so one is made at a time, and it ends when its reader goes away, as all do when the server
//! stops.

use super::call::{Call, Desk};
use super::problem::{Answer, Problem};
use super::take::Params;
use super::{shape, stream};
use crate::server::Caller;
use crate::verb::report::{By, Format, Lang, Look, POLICY, What, Wish, write};
use axum::response::{IntoResponse, Response};
use http::header::{ACCEPT, CONTENT_SECURITY_POLICY, CONTENT_TYPE};
use http::{HeaderMap, HeaderValue};
use komado_core::session::Session;
use komado_engine::report::{Ask, Flow, report as read};
use komado_store::Query;
use serde::Deserialize;
use std::io;
use utoipa::{IntoParams, ToSchema};

/// What to tell of.
#[derive(Deserialize, IntoParams, Default)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct Wanted {
    /// Which part; all when left out
    #[param(inline)]
    what: Option<What>,
    /// From then on: 2026-11-01, a time, today, yesterday, or 12h, 7d, 4w ago; thirty days when left out
    #[param(example = "7d")]
    from: Option<String>,
    /// Until before then; today is the last day when left out
    #[param(example = "today")]
    to: Option<String>,
    /// Where midnight is, such as +09:00; UTC when left out
    #[param(example = "Z")]
    utc_offset: Option<String>,
    /// In CSV and HTML: only usage by this
    #[param(inline)]
    by: Option<By>,
    /// Only this user's
    user: Option<String>,
    /// Only what was asked of this model
    model: Option<String>,
    /// Rows of users, models, tools and questions
    #[param(minimum = 1, maximum = 1000)]
    top: Option<u32>,
    /// The form; as `accept` says when left out
    #[param(inline)]
    format: Option<Form>,
    /// The language of headings
    #[param(inline)]
    lang: Option<Lang>,
    /// True to read no journals
    quick: Option<bool>,
}

/// In which form.
#[derive(Deserialize, ToSchema, Clone, Copy, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub(super) enum Form {
    Json,
    Csv,
    Html,
}

/// Tell what happened in the sessions you may see: usage, common questions, performance
#[utoipa::path(get, path = "/api/v1/report", tag = "report", params(Wanted),
    responses((status = 200, content((shape::Report = "application/json"), (String = "text/csv"), (String = "text/html")))))]
pub(super) async fn report(call: Call, Params(wanted): Params<Wanted>) -> Answer<Response> {
    let form = wanted.format.unwrap_or_else(|| accepted(&call.headers));
    let look = Look { format: form.format(), by: wanted.by, lang: wanted.lang.unwrap_or_default() };
    let place = call.shared.reporting_place()?;
    let (engine, guest) = (call.house.app.engine.clone(), call.guest.clone());
    let ask = call.run(move |desk| asked(desk, wanted)).await?;
    let body = stream::worked_out(move |out, gone| {
        let sees = |session: &Session| guest.may_see(session);
        let told = read(&engine, &ask, &sees, &mut |_| match gone() {
            true => Flow::Break(()),
            false => Flow::Continue(()),
        });
        // It is made: how long its reader takes is nobody else's wait.
        drop(place);
        match told.map_err(io::Error::other)? {
            Some(told) => write(&told, look, out),
            None => Err(io::Error::from(io::ErrorKind::BrokenPipe)),
        }
    });
    Ok(form.answer(body.into_response()))
}

/// What is asked for; told apart from what may not be, before anything is answered.
fn asked(desk: &mut Desk, wanted: Wanted) -> Answer<Ask> {
    let top = wanted.top.unwrap_or(20) as usize;
    let wish = Wish {
        from: wanted.from,
        to: wanted.to,
        utc_offset: wanted.utc_offset,
        user: whose(&desk.guest, wanted.user)?,
        model: wanted.model,
        top,
        quick: wanted.quick.unwrap_or(false),
    };
    let ask = wish.ask(wanted.what.unwrap_or_default(), &desk.app.engine.now())?;
    // A store that is away is told now: once the answer has begun it could only break off.
    desk.app.engine.store().sessions(&Query { limit: 1, ..Query::default() })?;
    Ok(ask)
}

/// One who sees only their own is not made to wait for everyone else's.
fn whose(guest: &Caller, asked: Option<String>) -> Answer<Option<String>> {
    match asked {
        Some(user) if !guest.sees_all && guest.user.as_ref() != Some(&user) => Err(Problem::forbidden(
            format!("this key does not see the sessions of user {user:?}; leave user out"),
        )),
        None if !guest.sees_all && guest.sessions.is_empty() => Ok(guest.user.clone()),
        asked => Ok(asked),
    }
}

/// The first form that is asked for by name; JSON where none is.
fn accepted(headers: &HeaderMap) -> Form {
    let accept =
        headers.get_all(ACCEPT).iter().filter_map(|value| value.to_str().ok()).collect::<Vec<_>>().join(",");
    let named = |one: &str| match one.split(';').next().unwrap_or_default().trim() {
        "application/json" => Some(Form::Json),
        "text/csv" => Some(Form::Csv),
        "text/html" => Some(Form::Html),
        _ => None,
    };
    accept.split(',').find_map(named).unwrap_or(Form::Json)
}

impl Form {
    const fn format(self) -> Format {
        match self {
            Self::Json => Format::Json,
            Self::Csv => Format::Csv,
            Self::Html => Format::Html,
        }
    }

    fn answer(self, mut response: Response) -> Response {
        let media = match self {
            Self::Json => "application/json",
            Self::Csv => "text/csv; charset=utf-8",
            Self::Html => "text/html; charset=utf-8",
        };
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(media));
        if self == Self::Html {
            headers.insert(CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY));
        }
        response
    }
}
