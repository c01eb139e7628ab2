//! Operations on whole sessions: make, list, end, remove, count.

mod new;
mod state;
mod stats;
mod transcript;
mod transfer;

pub use new::{ChildSettings, New, NewSession, hostname, make, meter};
pub(crate) use new::{create, meta};
pub use state::{Complete, FailSession, Pause, ResumeSession, StateChange, StopSession};
pub use stats::{FailedSession, RunningSession, Stats, StatsOf, UserCount};
pub use transfer::{Export, ExportFormat, Exported, Import, Imported};

use crate::address::AtSession;
use crate::choice::time;
use crate::clock::days_ago;
use crate::page::{self, USUAL};
use crate::{Interfaces, OpResult, Operation, OperationContext, OperationLabel, ResultPage, Route};
use komado_core::SessionId;
use komado_core::amount::TimeUnit;
use komado_core::amount::count;
use komado_core::session::{Session, State};
use komado_engine::cleanup::CleanupMode;
use komado_engine::export::unfinished;
use komado_store::SessionQuery;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use std::ops::Deref;

/// An operation that ends a session or lets it go on: a verb, and a route of the same name.
const fn by_people(verb: &'static str, path: &'static str) -> Interfaces {
    Interfaces::everywhere(verb, Route::post("sessions", path))
        .not_mcp("whether a session ends is for its user to say, not for the model in it")
}

/// A session.
#[derive(Clone, PartialEq, Debug, Serialize, JsonSchema)]
#[schemars(rename = "Session")]
pub struct SessionRow {
    /// Its id; also in `uuid`, as older readers know it.
    #[serde(rename = "session")]
    pub id: String,
    /// What the table of sessions knows of it.
    #[serde(flatten)]
    pub row: Session,
    /// Why it is not whole, where an import of it did not end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unfinished: Option<String>,
}

impl From<Session> for SessionRow {
    fn from(row: Session) -> Self {
        let unfinished = unfinished(&row).map(str::to_owned);
        Self { id: row.meta.uuid.clone(), row, unfinished }
    }
}

impl Deref for SessionRow {
    type Target = Session;

    fn deref(&self) -> &Session {
        &self.row
    }
}

/// Sessions that a model is told of, unless it asks for more.
const FOR_A_MODEL: u32 = 50;

/// List the sessions that may be seen, in the order they were made, with state and counters.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
pub struct ListSessions {
    /// Only this user's.
    pub user: Option<String>,
    /// Only sessions in this state.
    pub status: Option<State>,
    /// Only those whose id begins so.
    pub prefix: Option<String>,
    /// At most so many.
    #[schemars(range(min = 1, max = 1000))]
    pub limit: Option<u32>,
    /// True for the newest ones; a model gets those unless it says false.
    pub newest: Option<bool>,
    /// `next` of the page before; pages begin with the oldest.
    pub cursor: Option<String>,
}

impl Operation for ListSessions {
    const ABOUT: OperationLabel = OperationLabel::read("sessions", "List sessions");
    const INTERFACES: Interfaces = Interfaces::everywhere("sessions", Route::get("sessions", "/sessions"));
    type Output = ResultPage<SessionRow>;

    fn for_model(mut self) -> Self {
        self.newest = self.newest.or(Some(self.cursor.is_none()));
        self.limit = self.limit.or(Some(FOR_A_MODEL));
        self
    }

    fn run(self, context: &OperationContext) -> OpResult<ResultPage<SessionRow>> {
        let limit = self.limit.unwrap_or(USUAL) as usize;
        let after: Option<(String, String)> = page::after("sessions", self.cursor.as_deref())?;
        let after = after.map(|(at, id)| Ok::<_, crate::OpFault>((at, SessionId::new(id)?))).transpose()?;
        let (status, user) = (self.status, self.user.or_else(|| context.caller.only_user()));
        let query = SessionQuery { prefix: self.prefix, status, user, after, ..SessionQuery::default() };
        if self.newest == Some(true) {
            let newest = newest(context, query, limit, |_| true)?;
            return Ok(ResultPage::whole(newest.into_iter().map(SessionRow::from).collect()));
        }
        page_of(context, query, limit)
    }

    fn text(page: &ResultPage<SessionRow>) -> Option<String> {
        if page.items.is_empty() {
            return Some("no sessions".to_owned());
        }
        Some(page.items.iter().map(line).collect::<Vec<_>>().join("\n"))
    }
}

/// The newest sessions of a query that the caller may see and that are `wanted`, in the order they were made.
pub fn newest(
    context: &OperationContext,
    query: SessionQuery,
    limit: usize,
    wanted: impl Fn(&Session) -> bool,
) -> OpResult<Vec<Session>> {
    let mut newest = VecDeque::new();
    context.engine.each_session(query, |session| {
        if context.caller.may_see(session) && wanted(session) {
            newest.push_back(session.clone());
        }
        if newest.len() > limit {
            newest.pop_front();
        }
        Ok(())
    })?;
    Ok(newest.into())
}

fn page_of(
    context: &OperationContext,
    query: SessionQuery,
    limit: usize,
) -> OpResult<ResultPage<SessionRow>> {
    let mut items = context.visible_sessions(query, limit + 1)?;
    let has_more = items.len() > limit;
    items.truncate(limit);
    let last = items.last().filter(|_| has_more).map(|last| &last.meta);
    let next = last.map(|last| page::cursor("sessions", &(&last.created_at, &last.uuid))).transpose()?;
    Ok(ResultPage { items: items.into_iter().map(SessionRow::from).collect(), next })
}

fn line(session: &SessionRow) -> String {
    let user = session.meta.user.as_deref().unwrap_or("-");
    let model = session.meta.config.model.as_deref().unwrap_or("-");
    let task = &session.meta.task_key;
    format!(
        "{} {}, user {user}, task {task}, model {model}, {}, {}, made {}",
        session.id,
        session.status.name(),
        count(session.counters.llm_call_count, "call"),
        count(session.counters.total_tokens, "token"),
        session.meta.created_at
    )
}

/// Look at one session: state, model, counters.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
pub struct GetSession {
    /// The session.
    #[serde(flatten)]
    pub at: AtSession,
}

impl Operation for GetSession {
    const ABOUT: OperationLabel = OperationLabel::read("session", "Look at one session");
    const INTERFACES: Interfaces = Interfaces::only_http(
        Route::get("sessions", "/sessions/{session}").tagged(),
        "`sessions` lists it, and `context` tells what is in it",
    )
    .not_mcp("`sessions` has the same row, and `context` tells what is in it");
    type Output = SessionRow;

    fn run(self, context: &OperationContext) -> OpResult<SessionRow> {
        let found = context.find(&self.at)?;
        Ok(context.session(&found.session)?.into())
    }

    fn moment(_session: &SessionRow) -> Option<String> {
        Some("session".to_owned())
    }
}

/// Remove a session with everything in it; this cannot be undone.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
pub struct RemoveSession {
    /// The session.
    #[serde(flatten)]
    pub at: AtSession,
}

/// A session that is gone.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
pub struct Removed {
    /// Its id.
    pub session: String,
}

impl Operation for RemoveSession {
    const ABOUT: OperationLabel = OperationLabel::remove("remove_session", "Remove a session");
    const INTERFACES: Interfaces = Interfaces::only_http(
        Route::remove("sessions", "/sessions/{session}"),
        "the command line removes with `admin cleanup`, which takes only what has ended",
    )
    .not_mcp("what cannot be undone is for people to do");
    type Output = Removed;

    fn run(self, context: &OperationContext) -> OpResult<Removed> {
        let found = context.find(&self.at)?;
        context.engine.store().remove(&found.session)?;
        Ok(Removed { session: found.session.to_string() })
    }
}

/// Remove sessions that ended long ago, and outputs that no entry names; this cannot be undone.
#[derive(Clone, Debug, Default, clap::Args, Deserialize, JsonSchema)]
pub struct Cleanup {
    /// Sessions that ended before so many days, such as 30d; context_storage.cleanup_days when left out
    #[arg(long, value_name = "DAYS", value_parser = time::<u32>(TimeUnit::Day, 0))]
    pub days: Option<u32>,
    /// Only say what would be removed
    #[arg(long)]
    #[serde(default)]
    pub dry_run: bool,
}

/// What was removed, or would be.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
pub struct CleanedSessions {
    /// The sessions.
    pub items: Vec<CleanedSession>,
    /// Outputs that no entry named.
    pub outputs: u64,
    /// How many days ago they had to have ended.
    pub days: u32,
    /// True when nothing was removed, only looked for.
    pub dry_run: bool,
}

impl CleanedSessions {
    /// Sessions that could not be removed.
    pub fn failures(&self) -> u64 {
        self.items.iter().filter(|one| one.error.is_some()).count() as u64
    }
}

/// A session that ended long ago.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
pub struct CleanedSession {
    /// Its id.
    pub session: String,
    /// How it ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<State>,
    /// When it ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub completed_at: Option<String>,
    /// True when it is gone.
    pub removed: bool,
    /// Why it could not be removed or read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

impl Operation for Cleanup {
    const ABOUT: OperationLabel = OperationLabel::remove("cleanup", "Remove sessions that ended long ago");
    const INTERFACES: Interfaces =
        Interfaces::everywhere("admin cleanup", Route::post("sessions", "/cleanup"))
            .not_mcp("what cannot be undone is for people to do");
    type Output = CleanedSessions;

    fn run(self, context: &OperationContext) -> OpResult<CleanedSessions> {
        context.check_sees_all()?;
        let days = self.days.unwrap_or(context.config.cleanup_days);
        let run = if self.dry_run { CleanupMode::Dry } else { CleanupMode::Real };
        let cleaned = context.engine.cleanup(&days_ago(days), run, |_| {})?;
        let gone = |session: Session| CleanedSession {
            session: session.meta.uuid,
            status: Some(session.status),
            completed_at: session.completed_at,
            removed: !self.dry_run,
            error: None,
        };
        let stays = |(session, why)| CleanedSession {
            session,
            status: None,
            completed_at: None,
            removed: false,
            error: Some(why),
        };
        let items = cleaned.sessions.into_iter().map(gone).chain(cleaned.failed.into_iter().map(stays));
        Ok(CleanedSessions {
            items: items.collect(),
            outputs: cleaned.swept.blobs,
            days,
            dry_run: self.dry_run,
        })
    }
}
