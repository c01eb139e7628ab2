//! One call: who calls, and the desk at which it is done.
//!
//! Every handler works at a [`Desk`], on a thread that may block: in the context of its caller, which decides who sees what.

use super::answers::Answers;
use super::problem::{Answer, Problem};
use super::tag;
use crate::fault::{Exit, Fault, Outcome};
use crate::server::{Caller, House};
use axum::extract::FromRequestParts;
use http::HeaderMap;
use http::request::Parts;
use komado_core::SessionId;
use komado_core::session::Session;
use komado_engine::engine::Found;
use komado_ops::session::SessionRow;
use komado_ops::{Context, Naming, Route};
use serde::Deserialize;
use std::sync::Arc;
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
        let context = self.house.context.of(self.guest.clone(), Naming::Exact);
        Desk { context, guest: self.guest, shared: self.shared, headers: self.headers }
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
}

/// Where a call is done.
pub(super) struct Desk {
    /// What operations run in: for this guest, who names sessions in full.
    pub(super) context: Context,
    pub(super) guest: Caller,
    pub(super) shared: Arc<Shared>,
    pub(super) headers: HeaderMap,
}

impl Desk {
    /// A session that the guest may see. One that is not there and one that may not be seen are told alike.
    pub(super) fn session(&self, id: &str) -> Answer<(SessionId, Session)> {
        let name = SessionId::new(id)?;
        let session = match self.context.engine.session(&name) {
            Ok(session) => session,
            Err(komado_engine::Error::Store(komado_store::Error::NoSession(_))) => {
                return Err(Problem::no_session(id));
            }
            Err(error) => return Err(error.into()),
        };
        if self.guest.may_see(&session) { Ok((name, session)) } else { Err(Problem::no_session(id)) }
    }

    /// Refuses a writer who has seen another moment of the thread.
    pub(super) fn check_thread(&self, found: &Found) -> Answer<()> {
        if !self.headers.contains_key(http::header::IF_MATCH) {
            return Ok(());
        }
        let journal =
            self.context.engine.store().open(&found.session, &found.thread, komado_store::Mode::Read)?;
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
            false => self.check_session(self.context.engine.session(&found.session)?),
        };
        checked.map_err(|problem| Fault::new(Exit::Changed, problem.detail))
    }
}
