//! Find again what was said, whether or not the model still sees it.

use crate::address::AtMoment;
use crate::choice::{one_of, tokens};
use crate::{
    Interfaces, Naming, OpFault, OpResult, Operation, OperationContext, OperationLabel, OperationProgress,
    ResultPage, Route, clock,
};
use komado_core::{Role, Seq, SessionId};
use komado_engine::recall::{RecallHit, RecallMode, RecallQuery, RecallScope};
use komado_store::OpenMode;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::ops::Range;

/// Results, unless a request says otherwise.
const USUAL: u32 = 10;

/// What to look for, and among what.
#[derive(Clone, Debug, Default, clap::Args, Deserialize, JsonSchema)]
pub struct RecallSearch {
    /// What to look for; a name, a path or an error message is best
    #[arg(skip)]
    #[schemars(length(min = 1))]
    pub query: String,
    /// ranked: best fit first; exact: the text as it stands; regex: a regular expression. ranked when left out
    #[arg(skip)]
    pub mode: Option<RecallMode>,
    /// Results at most; 10 when left out
    #[arg(short = 'k', long, value_name = "N")]
    #[schemars(range(min = 1, max = 1000))]
    pub limit: Option<u32>,
    /// Only what this speaker said
    #[arg(long, value_parser = one_of(&Role::ALL, Role::name))]
    pub role: Option<Role>,
    /// Only calls and results of this tool
    #[arg(long)]
    pub tool: Option<String>,
    /// Only calls and results about this file or folder
    #[arg(long)]
    pub file: Option<String>,
    /// Only what was said then or later: 2024-01-15, 2024-01-15T10:30:00Z, yesterday, or 3h, 2d, 1w ago
    #[arg(long, value_name = "TIME")]
    #[schemars(example = &"2d")]
    pub since: Option<String>,
    /// Only what was said then or earlier
    #[arg(long, value_name = "TIME")]
    #[schemars(example = &"2030-01-01")]
    pub until: Option<String>,
    /// As many results as fit into so many tokens
    #[arg(long, value_name = "TOKENS", value_parser = tokens::<u64>(0))]
    pub budget: Option<u64>,
    /// Also show so many entries before and after each result
    #[arg(long, alias = "neighbors", value_name = "N")]
    #[schemars(range(max = 20))]
    pub neighbours: Option<u32>,
}

impl RecallSearch {
    fn ask(&self, now: &str) -> OpResult<RecallQuery> {
        let mut ask = RecallQuery::new(self.query.as_str());
        ask.how = self.mode.unwrap_or_default();
        ask.k = self.most();
        (ask.budget, ask.neighbours) = (self.budget, self.neighbours.unwrap_or(0));
        ask.filter.role = self.role;
        (ask.filter.tool, ask.filter.file) = (self.tool.clone(), self.file.clone());
        ask.filter.since = self.since.as_deref().map(|text| clock::since(text, now)).transpose()?;
        ask.filter.until = self.until.as_deref().map(|text| clock::until(text, now)).transpose()?;
        Ok(ask)
    }

    fn most(&self) -> usize {
        self.limit.unwrap_or(USUAL) as usize
    }
}

/// Looks in each scope, and gives the best results of all of them.
fn look(
    context: &OperationContext,
    scopes: &[RecallScope],
    search: &RecallSearch,
) -> OpResult<ResultPage<Recalled>> {
    let ask = search.ask(&context.engine.now())?;
    let mut found = Vec::new();
    catch_up(context, scopes)?;
    for scope in scopes {
        found.extend(context.engine.recall(scope, &ask)?);
    }
    if scopes.len() > 1 {
        found.sort_by(|a, b| a.is_beside().cmp(&b.is_beside()).then_with(|| b.score.total_cmp(&a.score)));
        found.truncate(search.most());
    }
    Ok(ResultPage::whole(found.into_iter().map(Recalled::from).collect()))
}

/// Brings the index up to date: of one session entry by entry, of many session by session.
fn catch_up(context: &OperationContext, scopes: &[RecallScope]) -> OpResult {
    if let [scope @ (RecallScope::Session(_) | RecallScope::Thread { .. })] = scopes {
        return catch_up_one(context, scope);
    }
    let mut sessions = Vec::new();
    for scope in scopes {
        sessions.extend(context.engine.sessions_of(scope)?);
    }
    let total = sessions.len() as u64;
    context.progress(OperationProgress::Searching { done: 0, total })?;
    for (done, session) in (1..).zip(sessions) {
        context.engine.index(&RecallScope::Session(session), &mut |_, _| {})?;
        context.progress(OperationProgress::Searching { done, total })?;
    }
    Ok(())
}

fn catch_up_one(context: &OperationContext, scope: &RecallScope) -> OpResult {
    let mut told = Ok(());
    context.engine.index(scope, &mut |done, total| {
        if told.is_ok() {
            told = context.progress(OperationProgress::Indexing { done, total });
        }
    })?;
    told
}

/// The results as lines for a model.
fn lines(page: &ResultPage<Recalled>) -> String {
    match page.items.is_empty() {
        true => "nothing was found; try other words, or fewer filters".to_owned(),
        false => page.items.iter().map(Recalled::line).collect::<Vec<_>>().join("\n"),
    }
}

/// Find again what was said, whether or not the model still sees it: in one session, or in all that may be seen.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
pub struct Recall {
    /// What to look for.
    #[serde(flatten)]
    pub search: RecallSearch,
    /// The session or its address; all sessions when left out and none is set
    #[schemars(length(max = 300))]
    pub session: Option<String>,
    /// Only what this thread knows
    #[schemars(length(max = 128))]
    pub thread: Option<String>,
    /// Only sessions of this user
    pub user: Option<String>,
}

impl Operation for Recall {
    const ABOUT: OperationLabel = OperationLabel::read("recall", "Search everything that was said");
    const INTERFACES: Interfaces = Interfaces::everywhere("recall", Route::get("recall", "/recall"));
    type Output = ResultPage<Recalled>;

    fn run(self, context: &OperationContext) -> OpResult<ResultPage<Recalled>> {
        let has_default = matches!(context.naming, Naming::Prefix { default: Some(_) });
        let Self { search, session, thread, user } = self;
        match (&session, &thread, user) {
            (None, None, None) if has_default => {}
            (None, None, user) => return look(context, &everywhere(context, user)?, &search),
            (_, _, Some(_)) => {
                return Err(OpFault::usage("user goes with a search over sessions; leave session out"));
            }
            _ => {}
        }
        look(context, &[scope(context, &AtMoment { session, thread, seq: None })?], &search)
    }

    fn text(output: &ResultPage<Recalled>) -> Option<String> {
        Some(lines(output))
    }
}

/// All sessions that the caller may see: all there are, or the user's own and those that the key lists.
fn everywhere(context: &OperationContext, user: Option<String>) -> OpResult<Vec<RecallScope>> {
    let caller = &context.caller;
    if caller.sees_all {
        return Ok(vec![user.map_or(RecallScope::All, RecallScope::User)]);
    }
    let own = caller.user.as_ref();
    if user.is_some() && user.as_ref() != own {
        return Err(OpFault::forbidden("this key does not see the sessions of that user; leave user out"));
    }
    let mut scopes: Vec<RecallScope> = own.cloned().map(RecallScope::User).into_iter().collect();
    if user.is_none() {
        for id in &caller.sessions {
            let Ok(id) = SessionId::new(id.as_str()) else { continue };
            let Ok(session) = context.session(&id) else { continue };
            // The user's own are searched already.
            if own.is_none() || session.meta.user.as_ref() != own {
                scopes.push(RecallScope::Session(id));
            }
        }
    }
    Ok(scopes)
}

/// Find again what was said in one session, seen by the model or not.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
pub struct RecallSession {
    /// The session; with a thread only what this thread knows, up to a moment of it.
    #[serde(flatten)]
    pub at: AtMoment,
    /// What to look for.
    #[serde(flatten)]
    pub search: RecallSearch,
}

impl Operation for RecallSession {
    const ABOUT: OperationLabel = OperationLabel::read("recall_session", "Search one session");
    const INTERFACES: Interfaces =
        Interfaces::everywhere("recall", Route::get("recall", "/sessions/{session}/recall"))
            .not_mcp("`recall` with a session does the same");
    type Output = ResultPage<Recalled>;

    fn run(self, context: &OperationContext) -> OpResult<ResultPage<Recalled>> {
        look(context, &[scope(context, &self.at)?], &self.search)
    }
}

/// The session, or where a thread or a moment is named, what that thread knows.
pub(super) fn scope(context: &OperationContext, at: &AtMoment) -> OpResult<RecallScope> {
    let found = context.find(at)?;
    let names_thread = at.thread.is_some() || at.session.as_deref().is_some_and(|text| text.contains('/'));
    if let Some(seq) = found.seq {
        // A moment that is not there is an error, not a search in what came before it.
        context.engine.open(&found.session, &found.thread, OpenMode::Read)?.view_at(seq)?;
    }
    Ok(match (names_thread, found.seq) {
        (false, None) => RecallScope::Session(found.session),
        (_, upto) => RecallScope::Thread { session: found.session, thread: found.thread, upto },
    })
}

/// An entry that was found.
#[derive(Clone, PartialEq, Debug, Serialize, JsonSchema)]
pub struct Recalled {
    /// The session.
    pub session: String,
    /// The thread whose own entry it is.
    pub thread: String,
    /// The entry.
    pub seq: Seq,
    /// Its address.
    pub address: String,
    /// How well it fits; comparable within one search, also over sessions.
    pub score: f64,
    /// Who speaks.
    pub role: &'static str,
    /// The tools it calls, or the one that answers.
    pub tools: Vec<String>,
    /// When it was said.
    pub timestamp: String,
    /// The words around what was found.
    pub snippet: String,
    /// What was found in them.
    pub matches: Vec<String>,
    /// True when it stands in the output that the entry names, and not in what the model was shown.
    pub in_output: bool,
    /// True when the model does not see the entry as it was said: hidden, replaced, or left behind by a rewind.
    pub hidden: bool,
    /// Entries before and after it, when they were asked for.
    pub around: Vec<NeighbourEntry>,
    /// Where in the snippet the matches are, in bytes.
    #[serde(skip)]
    pub marks: Vec<Range<usize>>,
}

/// An entry beside a result.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
pub struct NeighbourEntry {
    /// Its number.
    pub seq: Seq,
    /// Who speaks.
    pub role: &'static str,
    /// How it begins.
    pub snippet: String,
}

impl From<RecallHit> for Recalled {
    fn from(found: RecallHit) -> Self {
        let thread = if found.thread.is_root() { String::new() } else { format!("/{}", found.thread) };
        let (text, marks) = (found.snippet.text, found.snippet.marks);
        let beside = |one: komado_engine::recall::RecallNeighbour| NeighbourEntry {
            seq: one.seq,
            role: one.role.name(),
            snippet: one.snippet,
        };
        Self {
            address: format!("{}{thread}@{}", found.session, found.seq),
            session: found.session.to_string(),
            thread: found.thread.to_string(),
            seq: found.seq,
            score: (f64::from(found.score) * 1e4).round() / 1e4,
            role: found.role.name(),
            tools: found.tools,
            timestamp: found.timestamp,
            matches: marks.iter().filter_map(|mark| text.get(mark.clone())).map(str::to_owned).collect(),
            snippet: text,
            in_output: found.in_output,
            hidden: found.hidden,
            around: found.around.into_iter().map(beside).collect(),
            marks,
        }
    }
}

impl Recalled {
    /// True when it has no word of the query and was found for standing beside an entry that has.
    pub fn is_beside(&self) -> bool {
        self.marks.is_empty()
    }

    /// A line for a model.
    pub(super) fn line(&self) -> String {
        let beside = if self.is_beside() { ", beside a match" } else { "" };
        let hidden = if self.hidden { ", not in the view" } else { "" };
        format!("{} ({}{beside}{hidden}): {}", self.address, self.role, self.snippet)
    }
}
