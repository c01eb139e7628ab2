//! Sessions as they are listed: what the table has, and what people find them by.

use crate::address::AtSession;
use crate::page::{self, USUAL};
use crate::{Interfaces, OpFault, OpResult, Operation, OperationContext, OperationLabel, Route};
use komado_core::SessionId;
use komado_core::amount::count;
use komado_core::session::{Session, State};
use komado_engine::export::unfinished;
use komado_provider::registry::{PriceTable, SessionPrice};
use komado_store::SessionQuery;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use std::ops::Deref;

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
    /// The program that talks in it, such as `claude-code`.
    pub agent: Option<String>,
    /// The folder that program works in.
    pub project: Option<String>,
    /// Why it is not whole, where an import of it did not end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unfinished: Option<String>,
    /// What its journal and the table of models say of it, where these were asked.
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub about: Option<SessionAbout>,
}

/// What a session is about, and what it cost.
#[derive(Clone, PartialEq, Debug, Serialize, JsonSchema)]
pub struct SessionAbout {
    /// The first line that the user wrote in it.
    pub title: Option<String>,
    /// The shortest name by which it is found here: a beginning of its id that no other has, or the name it was given. Left
    /// out where sessions must be named in full.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub short: Option<String>,
    /// What its tokens cost; null where no price is known for its model, and where the table has only their sum.
    pub cost: Option<SessionCost>,
}

/// What the tokens of a session cost.
#[derive(Clone, PartialEq, Debug, Serialize, JsonSchema)]
pub struct SessionCost {
    /// In US dollars, all tokens at the price of the session's model.
    pub usd: f64,
    /// The day of the prices.
    pub prices_of: String,
}

impl From<Session> for SessionRow {
    fn from(row: Session) -> Self {
        let unfinished = unfinished(&row).map(str::to_owned);
        let (agent, project) = (row.meta.config.agent.clone(), row.meta.config.project.clone());
        Self { id: row.meta.uuid.clone(), row, agent, project, unfinished, about: None }
    }
}

impl Deref for SessionRow {
    type Target = Session;

    fn deref(&self) -> &Session {
        &self.row
    }
}

impl SessionRow {
    /// A session with its title and cost.
    pub fn told(context: &OperationContext, row: Session) -> OpResult<Self> {
        let prices = context.config.models.prices()?;
        Ok(Self::of(context, &prices, row))
    }

    fn of(context: &OperationContext, prices: &PriceTable, row: Session) -> Self {
        let title = SessionId::new(row.meta.uuid.as_str()).ok().and_then(|id| context.engine.title(&id));
        let about = SessionAbout { title, short: None, cost: cost(prices, &row) };
        Self { about: Some(about), ..row.into() }
    }

    /// What the session cost, where it was asked for and is known.
    pub fn cost(&self) -> Option<&SessionCost> {
        self.about.as_ref()?.cost.as_ref()
    }

    /// True when the session has used tokens whose price is not known.
    pub fn lacks_price(&self) -> bool {
        self.row.counters.total_tokens > 0 && self.cost().is_none()
    }
}

/// What a session cost: nothing is said where no model was called, where a part of its tokens has no kind, and where the model has
/// no price.
pub fn cost(prices: &PriceTable, session: &Session) -> Option<SessionCost> {
    let (counters, config) = (&session.counters, &session.meta.config);
    let usage = counters.usage().filter(|usage| usage.total() > 0)?;
    let SessionPrice { price, of } =
        prices.price(config.llm_provider.as_deref(), config.model.as_deref()?)?;
    Some(SessionCost { usd: price.of(&usage), prices_of: of })
}

/// Sessions that a model is told of, unless it asks for more.
const FOR_A_MODEL: u32 = 50;

/// In which order sessions are listed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
pub enum SessionOrder {
    /// In the order they were made.
    #[default]
    Made,
    /// The one that changed last first.
    Activity,
}

/// List the sessions that may be seen, in the order they were made, with title, state, counters and cost.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
pub struct ListSessions {
    /// Only this user's.
    pub user: Option<String>,
    /// Only sessions in this state.
    pub status: Option<State>,
    /// Only those whose id begins so.
    pub prefix: Option<String>,
    /// Only those of this agent, such as `claude-code`.
    pub agent: Option<String>,
    /// Only those of this project folder and of folders in it.
    pub project: Option<String>,
    /// At most so many.
    #[schemars(range(min = 1, max = 1000))]
    pub limit: Option<u32>,
    /// True for the newest ones; a model gets those unless it says false.
    pub newest: Option<bool>,
    /// `made`, or `activity` for those that changed last, the last one first.
    pub order: Option<SessionOrder>,
    /// `next` of the page before; pages begin with the oldest.
    pub cursor: Option<String>,
}

/// Sessions.
#[derive(Clone, PartialEq, Debug, Serialize, JsonSchema)]
pub struct SessionList {
    /// The sessions.
    pub items: Vec<SessionRow>,
    /// The cursor of the next page; null at the end, and where the newest or the last ones were asked for.
    pub next: Option<String>,
    /// How many there are of the kind that was asked for; null where not all were looked at.
    pub total: Option<u64>,
    /// The day of the prices that are built in.
    pub prices_of: String,
    /// Where sessions are kept, for a caller on this machine.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kept_in: Option<String>,
}

impl Operation for ListSessions {
    const ABOUT: OperationLabel = OperationLabel::read("sessions", "List sessions");
    const INTERFACES: Interfaces = Interfaces::everywhere("sessions", Route::get("sessions", "/sessions"));
    type Output = SessionList;

    fn for_model(mut self) -> Self {
        self.newest = self.newest.or(Some(self.cursor.is_none()));
        self.limit = self.limit.or(Some(FOR_A_MODEL));
        self
    }

    fn run(self, context: &OperationContext) -> OpResult<SessionList> {
        let limit = self.limit.unwrap_or(USUAL) as usize;
        let order = self.order.unwrap_or_default();
        let is_newest = self.newest == Some(true);
        if order == SessionOrder::Activity && self.cursor.is_some() {
            return Err(OpFault::malformed(
                "cursor cannot be used with order `activity`, which changes between pages; leave one of them out",
            ));
        }
        let after: Option<(String, String)> = page::after("sessions", self.cursor.as_deref())?;
        let after = after.map(|(at, id)| Ok::<_, OpFault>((at, SessionId::new(id)?))).transpose()?;
        let kind = SessionKind { agent: self.agent, project: self.project };
        let (status, user) = (self.status, self.user.or_else(|| context.caller.only_user()));
        let query = SessionQuery { prefix: self.prefix, status, user, ..SessionQuery::default() };
        let (rows, next, total) = match (order, is_newest) {
            (SessionOrder::Made, false) => {
                let query = SessionQuery { after, ..query };
                let (rows, next) = page_of(context, query, limit, &kind)?;
                (rows, next, None)
            }
            _ => {
                let (rows, total) = last_of(context, query, limit, order, &kind)?;
                (rows, None, Some(total))
            }
        };
        let prices = context.config.models.prices()?;
        let mut items: Vec<SessionRow> =
            rows.into_iter().map(|row| SessionRow::of(context, &prices, row)).collect();
        shorten(context, &mut items)?;
        Ok(SessionList { items, next, total, prices_of: prices.date(), kept_in: context.kept_in() })
    }

    fn text(list: &SessionList) -> Option<String> {
        if list.items.is_empty() {
            return Some("no sessions".to_owned());
        }
        Some(list.items.iter().map(line).collect::<Vec<_>>().join("\n"))
    }
}

/// What is asked of a row that no store looks for.
struct SessionKind {
    agent: Option<String>,
    project: Option<String>,
}

impl SessionKind {
    fn fits(&self, session: &Session) -> bool {
        let config = &session.meta.config;
        let is_within = |folder: &String| {
            let rest = config.project.as_ref().and_then(|project| project.strip_prefix(folder.as_str()));
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/') || folder.ends_with('/'))
        };
        self.agent.as_ref().is_none_or(|agent| config.agent.as_ref() == Some(agent))
            && self.project.as_ref().is_none_or(is_within)
    }
}

/// The last sessions of a query in an order, and how many there are in all. Made: in that order. Activity: the last first.
fn last_of(
    context: &OperationContext,
    query: SessionQuery,
    limit: usize,
    order: SessionOrder,
    kind: &SessionKind,
) -> OpResult<(Vec<Session>, u64)> {
    let (mut last, mut total): (VecDeque<Session>, u64) = (VecDeque::new(), 0);
    context.engine.each_session(query, |session| {
        if !context.caller.may_see(session) || !kind.fits(session) {
            return Ok(());
        }
        total += 1;
        let place = match order {
            SessionOrder::Made => last.len(),
            SessionOrder::Activity => last.partition_point(|other| other.updated_at <= session.updated_at),
        };
        if last.len() < limit || place > 0 {
            last.insert(place, session.clone());
        }
        if last.len() > limit {
            last.pop_front();
        }
        Ok(())
    })?;
    let mut last = Vec::from(last);
    if order == SessionOrder::Activity {
        last.reverse();
    }
    Ok((last, total))
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
    kind: &SessionKind,
) -> OpResult<(Vec<Session>, Option<String>)> {
    let mut items = context.visible_sessions(query, limit + 1, |session| kind.fits(session))?;
    let has_more = items.len() > limit;
    items.truncate(limit);
    let last = items.last().filter(|_| has_more).map(|last| &last.meta);
    let next = last.map(|last| page::cursor("sessions", &(&last.created_at, &last.uuid))).transpose()?;
    Ok((items, next))
}

/// Fewest characters of a short id.
const SHORTEST: usize = 4;

/// Gives each row the shortest name by which it is found, where beginnings of ids are taken.
fn shorten(context: &OperationContext, rows: &mut [SessionRow]) -> OpResult {
    if rows.is_empty() || !context.takes_beginnings() {
        return Ok(());
    }
    // A beginning is looked for among all sessions, whoever may see them.
    let mut ids = Vec::new();
    context.engine.each_session(SessionQuery::default(), |session| {
        ids.push(session.meta.uuid.clone());
        Ok(())
    })?;
    ids.sort_unstable();
    for row in rows {
        if let Some(about) = &mut row.about {
            about.short = Some(short(&row.id, &ids));
        }
    }
    Ok(())
}

impl OperationContext {
    /// The id of the session that was changed last, and the shortest name by which it is found, where that is shorter.
    pub fn short_of_changed(&self) -> OpResult<Option<(String, String)>> {
        let changed = self.changed().map(|found| found.session.to_string());
        let Some(id) = changed.filter(|id| self.takes_beginnings() && uuid::Uuid::parse_str(id).is_ok())
        else {
            return Ok(None);
        };
        // Only those that begin alike can be taken for it.
        let prefix = id.get(..SHORTEST).map(str::to_owned);
        let mut ids = Vec::new();
        self.engine.each_session(SessionQuery { prefix, ..SessionQuery::default() }, |session| {
            ids.push(session.meta.uuid.clone());
            Ok(())
        })?;
        ids.sort_unstable();
        let name = short(&id, &ids);
        Ok(Some((id, name)))
    }
}

/// The shortest beginning of a generated id that no other in the sorted `ids` has; another id whole: it was given by a person.
fn short(id: &str, ids: &[String]) -> String {
    if uuid::Uuid::parse_str(id).is_err() {
        return id.to_owned();
    }
    let at = ids.partition_point(|other| other.as_str() < id);
    let same = |other: &String| id.bytes().zip(other.bytes()).take_while(|(a, b)| a == b).count();
    let neighbours = ids[..at].last().into_iter().chain(ids[at..].iter().find(|other| *other != id));
    let shared = neighbours.map(same).max().unwrap_or(0);
    id[..(shared + 1).clamp(SHORTEST, id.len())].to_owned()
}

fn line(session: &SessionRow) -> String {
    let user = session.meta.user.as_deref().unwrap_or("-");
    let model = session.meta.config.model.as_deref().unwrap_or("-");
    let task = &session.meta.task_key;
    let title = session.about.as_ref().and_then(|about| about.title.as_deref());
    format!(
        "{} {}, {}user {user}, task {task}, model {model}, {}, {}, made {}",
        session.id,
        session.status.name(),
        title.map(|title| format!("{title:?}, ")).unwrap_or_default(),
        count(session.counters.llm_call_count, "call"),
        count(session.counters.total_tokens, "token"),
        session.meta.created_at
    )
}

/// Look at one session: title, state, model, counters, cost.
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
        SessionRow::told(context, context.session(&found.session)?)
    }

    fn moment(_session: &SessionRow) -> Option<String> {
        Some("session".to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::short;

    #[test]
    fn a_short_id_is_the_shortest_beginning_that_no_other_session_has() {
        let ids = [
            "1b4e28ba-2fa1-41d2-883f-0016d3cca427",
            "1b4e28ba-2fa1-41d2-883f-0016d3cca428",
            "1b4f0000-2fa1-41d2-883f-0016d3cca427",
            "9c00",
            "9c000000-0000-4000-8000-000000000000",
            "demo",
            "f0000000-0000-4000-8000-000000000000",
        ]
        .map(str::to_owned);
        let short = |n: usize| short(&ids[n], &ids);
        assert_eq!(
            (short(0), short(1)),
            (ids[0].clone(), ids[1].clone()),
            "they differ in the last character"
        );
        assert_eq!(short(2), "1b4f");
        assert_eq!(
            short(4),
            "9c000",
            "the whole name of another session is not a beginning of this one alone"
        );
        assert_eq!((short(3), short(5)), ("9c00".to_owned(), "demo".to_owned()), "names are whole");
        assert_eq!(short(6), "f000");
    }
}
