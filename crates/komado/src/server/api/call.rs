//! One call: who calls, and the desk at which it is done.
//!
//! Every handler works at a [`Desk`], on a thread that may block, and finds sessions through [`Desk::session`] alone: there it is
//! decided who sees what. The desk's verbs are those of the command line; they print JSON into memory.

use super::answers::Answers;
use super::problem::{Answer, Problem};
use super::tag;
use crate::app::App;
use crate::fault::{Exit, Fault, Outcome};
use crate::server::{Caller, House};
use axum::Json;
use axum::extract::FromRequestParts;
use http::HeaderMap;
use http::request::Parts;
use komado_core::session::Session;
use komado_core::{Address, Seq, SessionId, ThreadId};
use komado_engine::engine::Found;
use komado_ops::session::SessionRow;
use komado_ops::{Context, Naming, Route};
use serde::Deserialize;
use serde_json::Value;
use std::sync::{Arc, PoisonError};
use utoipa::IntoParams;

/// What the calls of one server share.
pub(super) struct Shared {
    /// What calls with an idempotency key were answered.
    pub(super) answers: Answers,
}

impl Shared {
    /// With the answers that are kept in `answers`.
    pub(super) fn new(answers: Answers) -> Self {
        Self { answers }
    }
}

/// A session in a path.
#[derive(Clone, Deserialize, IntoParams)]
#[into_params(parameter_in = Path)]
pub(super) struct At {
    /// The session's id, in full
    #[param(example = "demo", pattern = "^[A-Za-z0-9][A-Za-z0-9_.:-]*$", max_length = 128)]
    pub(super) session: String,
}

/// A thread in a path.
#[derive(Clone, Deserialize, IntoParams)]
#[into_params(parameter_in = Path)]
pub(super) struct In {
    /// The session's id, in full
    #[param(example = "demo", pattern = "^[A-Za-z0-9][A-Za-z0-9_.:-]*$", max_length = 128)]
    pub(super) session: String,
    /// The thread's id; every session has `root`
    #[param(example = "root", pattern = "^[A-Za-z0-9][A-Za-z0-9_.:-]*$", max_length = 128)]
    pub(super) thread: String,
}

/// Who calls, with what.
#[derive(Clone)]
pub(super) struct Call {
    pub(super) house: Arc<House>,
    pub(super) guest: Caller,
    pub(super) shared: Arc<Shared>,
    pub(super) headers: HeaderMap,
}

impl FromRequestParts<Arc<House>> for Call {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, house: &Arc<House>) -> Answer<Self> {
        let shared = parts.extensions.get::<Arc<Shared>>().cloned();
        let guest = parts.extensions.get::<Caller>().cloned();
        let (Some(shared), Some(guest)) = (shared, guest) else {
            return Err(Problem::ours(
                "nobody was asked who this is; this is a fault in komado, please report it",
            ));
        };
        Ok(Self { house: Arc::clone(house), guest, shared, headers: parts.headers.clone() })
    }
}

impl Call {
    /// A desk of its own.
    pub(super) fn desk(self) -> Desk {
        Desk { app: self.house.app.desk(), guest: self.guest, shared: self.shared, headers: self.headers }
    }

    /// Does something at a desk, where it may block. What panics there is a problem of this call alone.
    pub(super) async fn run<T: Send + 'static>(
        self,
        op: impl FnOnce(&mut Desk) -> Answer<T> + Send + 'static,
    ) -> Answer<T> {
        let done = tokio::task::spawn_blocking(move || op(&mut self.desk())).await;
        done.unwrap_or_else(|_| {
            Err(Problem::ours("the call broke off; this is a fault in komado, please report it"))
        })
    }

    /// Changes a thread: one row of JSON.
    pub(super) async fn change(
        self,
        at: In,
        op: impl FnOnce(&mut App, Address) -> Outcome + Send + 'static,
    ) -> Answer<Json<Value>> {
        self.run(move |desk| {
            let found = desk.thread(&at)?;
            let room = desk.app.lock(&found.session);
            let _held = room.lock().unwrap_or_else(PoisonError::into_inner);
            desk.check_thread(&found)?;
            desk.row(|app| op(app, address(&found, None)))
        })
        .await
        .map(Json)
    }
}

/// Where a call is done.
pub(super) struct Desk {
    /// Verbs print into its paper.
    pub(super) app: App,
    pub(super) guest: Caller,
    pub(super) shared: Arc<Shared>,
    pub(super) headers: HeaderMap,
}

impl Desk {
    /// What operations run in: for this guest, who names sessions in full.
    pub(super) fn context(&self) -> Context {
        self.app.context.of(self.guest.clone(), Naming::Exact)
    }

    /// A session that the guest may see. One that is not there and one that may not be seen are told alike.
    pub(super) fn session(&self, id: &str) -> Answer<(SessionId, Session)> {
        let name = SessionId::new(id)?;
        let session = match self.app.engine.session(&name) {
            Ok(session) => session,
            Err(komado_engine::Error::Store(komado_store::Error::NoSession(_))) => {
                return Err(Problem::no_session(id));
            }
            Err(error) => return Err(error.into()),
        };
        if self.guest.may_see(&session) { Ok((name, session)) } else { Err(Problem::no_session(id)) }
    }

    /// A thread of such a session.
    pub(super) fn thread(&self, at: &In) -> Answer<Found> {
        let (session, _) = self.session(&at.session)?;
        let thread = ThreadId::new(at.thread.as_str())?;
        self.known(&session, &thread)?;
        Ok(Found { session, thread, seq: None })
    }

    /// Refuses a thread that is not there.
    pub(super) fn known(&self, session: &SessionId, thread: &ThreadId) -> Answer<()> {
        let all = self.app.engine.store().threads(session)?;
        if all.iter().any(|header| header.thread == *thread) {
            return Ok(());
        }
        Err(Problem::missing(format!(
            "session {session} has no thread {thread}; GET /api/v1/sessions/{session}/threads lists them"
        )))
    }

    /// Refuses a writer who has seen another moment of the thread.
    pub(super) fn check_thread(&self, found: &Found) -> Answer<()> {
        if !self.headers.contains_key(http::header::IF_MATCH) {
            return Ok(());
        }
        let journal =
            self.app.engine.store().open(&found.session, &found.thread, komado_store::Mode::Read)?;
        tag::check(&self.headers, &format!("{}@{}", found.thread, journal.last()))
    }

    /// Refuses a writer who has seen another moment of the session.
    fn check_session(&self, session: Session) -> Answer<()> {
        let now = tag::of("session", &serde_json::to_vec(&SessionRow::from(session))?);
        tag::check(&self.headers, now.trim_matches('"'))
    }

    /// Refuses a writer who has seen another moment of what a route is about.
    pub(super) fn check(&self, found: &Found, route: &Route) -> Outcome {
        let about_thread = route.path.contains("{thread}");
        let checked = match about_thread {
            true => self.check_thread(found),
            false => self.check_session(self.app.engine.session(&found.session)?),
        };
        checked.map_err(|problem| Fault::new(Exit::Changed, problem.detail))
    }

    /// What a verb prints, row by row.
    pub(super) fn rows(&mut self, verb: impl FnOnce(&mut App) -> Outcome) -> Answer<Vec<Value>> {
        let done = verb(&mut self.app);
        let printed = self.app.paper.take();
        done.map_err(|fault| self.app.explained(fault))?;
        let rows = serde_json::Deserializer::from_slice(&printed).into_iter();
        rows.collect::<Result<_, _>>().map_err(Problem::from)
    }

    /// The one row that a verb prints.
    pub(super) fn row(&mut self, verb: impl FnOnce(&mut App) -> Outcome) -> Answer<Value> {
        let first = self.rows(verb)?.into_iter().next();
        first.ok_or_else(|| Problem::ours("nothing was told; this is a fault in komado, please report it"))
    }
}

/// The address of a thread, or of a moment of it.
pub(super) fn address(found: &Found, seq: Option<Seq>) -> Address {
    Address { session: found.session.clone(), thread: Some(found.thread.clone()), seq }
}

/// Which moment of which thread.
pub(super) fn moment(desk: &Desk, at: &In, seq: Option<Seq>) -> Answer<(Found, Address)> {
    let found = desk.thread(at)?;
    let address = address(&found, seq);
    Ok((found, address))
}
