//! Which sessions are there?

use super::SessionRow;
use crate::page::{self, Page, USUAL};
use crate::{Context, Effect, Interfaces, Operation, Outcome, Route};
use komado_core::SessionId;
use komado_core::session::{Session, State};
use komado_store::Query;
use schemars::JsonSchema;
use serde::Deserialize;
use std::collections::VecDeque;

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
    const NAME: &'static str = "sessions";
    const TITLE: &'static str = "List sessions";
    const EFFECT: Effect = Effect::Read;
    const INTERFACES: Interfaces = Interfaces::everywhere("sessions", Route::get("sessions", "/sessions"));
    type Output = Page<SessionRow>;

    fn for_model(mut self) -> Self {
        self.newest = self.newest.or(Some(self.cursor.is_none()));
        self.limit = self.limit.or(Some(FOR_A_MODEL));
        self
    }

    fn run(self, context: &Context) -> Outcome<Page<SessionRow>> {
        let limit = self.limit.unwrap_or(USUAL) as usize;
        let after: Option<(String, String)> = page::after("sessions", self.cursor.as_deref())?;
        let after = after.map(|(at, id)| Ok::<_, crate::Fault>((at, SessionId::new(id)?))).transpose()?;
        let (status, user) = (self.status, self.user.or_else(|| context.caller.only_user()));
        let query = Query { prefix: self.prefix, status, user, after, ..Query::default() };
        if self.newest == Some(true) {
            let newest = newest(context, query, limit, |_| true)?;
            return Ok(Page::whole(newest.into_iter().map(SessionRow::from).collect()));
        }
        page_of(context, query, limit)
    }

    fn text(page: &Page<SessionRow>) -> Option<String> {
        if page.items.is_empty() {
            return Some("no sessions".to_owned());
        }
        Some(page.items.iter().map(line).collect::<Vec<_>>().join("\n"))
    }
}

/// The newest sessions of a query that the caller may see and that are `wanted`, in the order they were made.
pub fn newest(
    context: &Context,
    query: Query,
    limit: usize,
    wanted: impl Fn(&Session) -> bool,
) -> Outcome<Vec<Session>> {
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

fn page_of(context: &Context, query: Query, limit: usize) -> Outcome<Page<SessionRow>> {
    let mut items = context.visible_sessions(query, limit + 1)?;
    let has_more = items.len() > limit;
    items.truncate(limit);
    let last = items.last().filter(|_| has_more).map(|last| &last.meta);
    let next = last.map(|last| page::cursor("sessions", &(&last.created_at, &last.uuid))).transpose()?;
    Ok(Page { items: items.into_iter().map(SessionRow::from).collect(), next })
}

fn line(session: &SessionRow) -> String {
    let user = session.meta.user.as_deref().unwrap_or("-");
    let model = session.meta.config.model.as_deref().unwrap_or("-");
    let task = &session.meta.task_key;
    format!(
        "{} {}, user {user}, task {task}, model {model}, {} calls, {} tokens, made {}",
        session.id,
        session.status.name(),
        session.counters.llm_call_count,
        session.counters.total_tokens,
        session.meta.created_at
    )
}
