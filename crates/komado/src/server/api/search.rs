//! Finding again what was said, comparing two moments, and taking a secret out.

use super::call::{At, Call, Desk, In};
use super::problem::{Answer, Problem};
use super::shape;
use super::take::{Named, Params};
use crate::server::Speaker;
use crate::verb;
use crate::verb::recall::Args;
use axum::Json;
use komado_core::{Address, ThreadId};
use serde::Deserialize;
use serde_json::{Value, json};
use utoipa::{IntoParams, ToSchema};

/// Results at most.
const MOST: u32 = 1000;

/// What to look for.
#[derive(Deserialize, IntoParams, Clone)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct Ask {
    /// What to look for
    #[param(min_length = 1)]
    q: String,
    /// Words (the default), the text as it stands, or a regular expression
    #[param(inline)]
    how: Option<How>,
    /// At most so many results
    #[param(minimum = 1, maximum = 1000)]
    limit: Option<u32>,
    /// Only what this speaker said
    #[param(inline)]
    role: Option<Speaker>,
    /// Only calls and results of this tool
    tool: Option<String>,
    /// Only calls and results about this file or folder
    file: Option<String>,
    /// Only what was said then or later: a date, a time, or 3h, 2d, 1w ago
    #[param(example = "2d")]
    since: Option<String>,
    /// Only what was said then or earlier
    #[param(example = "2030-01-01")]
    until: Option<String>,
    /// As many results as fit into so many tokens
    budget: Option<u64>,
    /// Also show so many entries before and after each result
    #[param(maximum = 20)]
    neighbours: Option<u32>,
    /// Of one session: only what this thread knows
    #[param(pattern = "^[A-Za-z0-9][A-Za-z0-9_.:-]*$", max_length = 128)]
    thread: Option<String>,
    /// Of one thread: only up to this entry
    upto: Option<u32>,
    /// Over sessions: only those of this user
    user: Option<String>,
}

/// How to look.
#[derive(Deserialize, ToSchema, Clone, Copy, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub(super) enum How {
    Words,
    Exact,
    Regex,
}

/// Where to look.
enum Scope {
    Place(Address),
    User(String),
    All,
}

impl Ask {
    fn check(&self) -> Answer<()> {
        if self.q.is_empty() {
            return Err(Problem::bad("q is empty; say what to look for"));
        }
        match self.limit {
            Some(0) => Err(Problem::bad("limit is 0; give 1 to 1000")),
            Some(n) if n > MOST => Err(Problem::bad(format!("limit is {n}, and {MOST} is the most"))),
            _ if self.neighbours.is_some_and(|n| n > 20) => Err(Problem::bad("neighbours is more than 20")),
            _ => Ok(()),
        }
    }

    fn args(&self, scope: Scope) -> Args {
        let (place, user, all) = match scope {
            Scope::Place(address) => (Some(address.to_string()), None, false),
            Scope::User(user) => (None, Some(user), false),
            Scope::All => (None, None, true),
        };
        Args {
            words: place.into_iter().chain([self.q.clone()]).collect(),
            k: self.limit.unwrap_or(10) as usize,
            exact: self.how == Some(How::Exact),
            regex: self.how == Some(How::Regex),
            role: self.role.map(|role| role.name().to_owned()),
            tool: self.tool.clone(),
            file: self.file.clone(),
            since: self.since.clone(),
            until: self.until.clone(),
            budget: self.budget,
            neighbours: self.neighbours.unwrap_or(0),
            user,
            all,
        }
    }
}

fn look(desk: &mut Desk, ask: &Ask, scope: Scope) -> Answer<Vec<Value>> {
    let args = ask.args(scope);
    desk.rows(|app| verb::recall::run(app, args))
}

/// Find again what was said in one session, seen by the model or not
#[utoipa::path(get, path = "/api/v1/sessions/{session}/recall", tag = "recall", params(At, Ask),
    responses((status = 200, body = shape::Recalled)))]
pub(super) async fn recall(
    call: Call,
    Named(at): Named<At>,
    Params(ask): Params<Ask>,
) -> Answer<Json<Value>> {
    call.run(move |desk| {
        ask.check()?;
        if ask.user.is_some() {
            return Err(Problem::unusable("user goes with /api/v1/recall, over sessions"));
        }
        let (session, _) = desk.session(&at.session)?;
        let named = ask.thread.as_deref().or(ask.upto.map(|_| "root"));
        let thread = named.map(ThreadId::new).transpose()?;
        thread.iter().try_for_each(|thread| desk.known(&session, thread))?;
        let items = look(desk, &ask, Scope::Place(Address { session, thread, seq: ask.upto }))?;
        Ok(json!({ "items": items }))
    })
    .await
    .map(Json)
}

/// Find again what was said in any session you may see
#[utoipa::path(get, path = "/api/v1/recall", tag = "recall", params(Ask),
    responses((status = 200, body = shape::Recalled)))]
pub(super) async fn recall_all(call: Call, Params(ask): Params<Ask>) -> Answer<Json<Value>> {
    call.run(move |desk| {
        ask.check()?;
        if ask.thread.is_some() || ask.upto.is_some() {
            return Err(Problem::unusable("thread and upto go with /api/v1/sessions/{session}/recall"));
        }
        Ok(json!({ "items": everywhere(desk, &ask)? }))
    })
    .await
    .map(Json)
}

/// Over all sessions that the guest may see: all of them, or the guest's own and those that are listed.
fn everywhere(desk: &mut Desk, ask: &Ask) -> Answer<Vec<Value>> {
    if desk.guest.sees_all {
        let scope = ask.user.clone().map_or(Scope::All, Scope::User);
        return look(desk, ask, scope);
    }
    let own = desk.guest.user.clone();
    if ask.user.is_some() && ask.user != own {
        return Err(Problem::forbidden("this key does not see the sessions of that user; leave user out"));
    }
    let mut found = match own.clone() {
        Some(user) => look(desk, ask, Scope::User(user))?,
        None => Vec::new(),
    };
    if ask.user.is_none() {
        for id in desk.guest.sessions.clone() {
            let Ok((session, row)) = desk.session(&id) else { continue };
            // One's own were searched already.
            if own.is_none() || row.meta.user != own {
                found.extend(look(desk, ask, Scope::Place(Address { session, thread: None, seq: None }))?);
            }
        }
    }
    let score = |row: &Value| row["score"].as_f64().unwrap_or_default();
    found.sort_by(|a, b| score(b).total_cmp(&score(a)));
    found.truncate(ask.limit.unwrap_or(10) as usize);
    Ok(found)
}

/// Two moments.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct Moments {
    /// The earlier moment, THREAD@SEQ or THREAD
    #[param(example = "root@1", pattern = "^[A-Za-z0-9][A-Za-z0-9_.:-]{0,127}(@[0-9]{1,8})?$")]
    from: String,
    /// The later moment; now when left out
    #[param(example = "root", pattern = "^[A-Za-z0-9][A-Za-z0-9_.:-]{0,127}(@[0-9]{1,8})?$")]
    to: Option<String>,
}

/// Compare what the model saw at two moments
#[utoipa::path(get, path = "/api/v1/sessions/{session}/diff", tag = "view", params(At, Moments),
    responses((status = 200, body = shape::List)))]
pub(super) async fn diff(
    call: Call,
    Named(at): Named<At>,
    Params(moments): Params<Moments>,
) -> Answer<Json<Value>> {
    call.run(move |desk| {
        let before = moment(desk, &at, &moments.from)?;
        let after = moments.to.map(|to| moment(desk, &at, &to)).transpose()?;
        let rows = desk.rows(|app| verb::diff::run(app, verb::diff::Args { before, after }))?;
        Ok(json!({ "items": rows }))
    })
    .await
    .map(Json)
}

/// A moment of a thread of the session: never of another one.
fn moment(desk: &Desk, at: &At, text: &str) -> Answer<Address> {
    let (thread, seq) = match text.split_once('@') {
        Some((thread, seq)) => {
            let wrong = |_| Problem::bad(format!("{text:?} is no moment; write THREAD@SEQ, such as root@12"));
            (thread, Some(seq.parse().map_err(wrong)?))
        }
        None => (text, None),
    };
    let found = desk.thread(&In { session: at.session.clone(), thread: thread.to_owned() })?;
    Ok(Address { session: found.session, thread: Some(found.thread), seq })
}
