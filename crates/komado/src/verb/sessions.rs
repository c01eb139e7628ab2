//! `komado sessions`: the sessions there are, or one session's threads.

use crate::app::App;
use crate::fault::{Fault, Outcome};
use crate::paper::{number, say};
use crate::table::table;
use clap::Args as ClapArgs;
use komado_core::Address;
use komado_core::session::{Session, State};
use komado_engine::import::unfinished;
use komado_store::{Mode, Query};
use serde_json::{Value, json};

#[derive(ClapArgs, Debug)]
pub(crate) struct Args {
    /// List this session's threads
    pub(crate) address: Option<Address>,
    /// Only sessions in this state: queued, running, paused, completed, failed or stopped
    #[arg(long)]
    pub(crate) status: Option<String>,
    /// Only this user's
    #[arg(long)]
    pub(crate) user: Option<String>,
    /// At most so many, the newest
    #[arg(short = 'n', long, default_value_t = 50)]
    pub(crate) limit: usize,
}

pub(crate) fn run(app: &mut App, args: Args) -> Outcome {
    if let Some(address) = &args.address {
        return threads(app, address);
    }
    let status = args.status.as_deref().map(state).transpose()?;
    let query = Query { status, user: args.user, ..Query::default() };
    let newest = newest(app, query, args.limit, |_| true)?;
    if app.paper.json {
        return newest.iter().try_for_each(|session| app.paper.json(&as_json(session)));
    }
    lines(&newest).into_iter().try_for_each(|line| app.paper.fit(&line))?;
    newest.iter().for_each(tell_unfinished);
    Ok(())
}

/// Tells of a session that looks whole and is not.
pub(crate) fn tell_unfinished(session: &Session) {
    if let Some(why) = unfinished(session) {
        say(format!("komado: session {}: {why}", session.meta.uuid));
    }
}

/// The newest sessions of a query, among those that `sees` lets pass.
pub(crate) fn newest(
    app: &App,
    query: Query,
    limit: usize,
    sees: impl Fn(&Session) -> bool,
) -> Outcome<Vec<Session>> {
    let mut newest = std::collections::VecDeque::new();
    app.context.engine.each_session(query, |session| {
        if sees(session) {
            newest.push_back(session.clone());
        }
        if newest.len() > limit {
            newest.pop_front();
        }
        Ok(())
    })?;
    Ok(newest.into())
}

/// A session for programs.
pub(crate) fn as_json(session: &Session) -> Value {
    let mut row = json!(session);
    row["session"] = json!(session.meta.uuid);
    row
}

/// Sessions for people, in a table.
pub(crate) fn lines(sessions: &[Session]) -> Vec<String> {
    if sessions.is_empty() {
        return vec!["no sessions".to_owned()];
    }
    let mut rows = vec![
        ["session", "status", "user", "task", "model", "calls", "tools", "tokens", "created"]
            .map(str::to_owned)
            .to_vec(),
    ];
    rows.extend(sessions.iter().map(row));
    table(&rows, &[5, 6, 7])
}

pub(crate) fn state(name: &str) -> Outcome<State> {
    State::named(name).ok_or_else(|| {
        let known = State::ALL.map(State::name).join(", ");
        Fault::usage(format!("unknown state: {name:?}; known are {known}"))
    })
}

fn row(session: &Session) -> Vec<String> {
    let key = &session.meta.task_key;
    let task = if key.task_source == "local" { "-".into() } else { key.to_string() };
    vec![
        session.meta.uuid.clone(),
        session.status.name().into(),
        session.meta.user.clone().unwrap_or_else(|| "-".into()),
        task,
        session.meta.config.model.clone().unwrap_or_else(|| "-".into()),
        number(session.counters.llm_call_count),
        number(session.counters.tool_call_count),
        number(session.counters.total_tokens),
        session.meta.created_at.chars().take(19).collect(),
    ]
}

fn threads(app: &mut App, address: &Address) -> Outcome {
    let found = app.find(address)?;
    let mut rows = vec![
        ["thread", "status", "started at", "goes on from", "entries", "tokens", "label"]
            .map(str::to_owned)
            .to_vec(),
    ];
    for header in app.context.engine.store().threads(&found.session)? {
        let thread = app.context.engine.open(&found.session, &header.thread, Mode::Read)?;
        let base = header.base.as_ref().map(|base| format!("{}@{}", base.thread, base.seq));
        let parent = header.parent.as_ref().map(|parent| format!("{}@{}", parent.thread, parent.seq));
        let status = thread.status()?.name();
        let own = thread.last() - header.base_seq();
        let tokens = thread.view().tokens();
        if app.paper.json {
            app.paper.json(&json!({
                "session": found.session.as_str(),
                "thread": header.thread.as_str(),
                "status": status,
                "parent": parent,
                "base": base,
                "entries": own,
                "last": thread.last(),
                "context_tokens": tokens,
                "label": header.label,
                "created_at": header.timestamp,
            }))?;
            continue;
        }
        rows.push(vec![
            header.thread.to_string(),
            status.to_owned(),
            parent.unwrap_or_else(|| "-".into()),
            base.unwrap_or_else(|| "-".into()),
            number(u64::from(own)),
            number(tokens),
            header.label.unwrap_or_default(),
        ]);
    }
    if app.paper.json {
        return Ok(());
    }
    table(&rows, &[4, 5]).into_iter().try_for_each(|line| app.paper.fit(&line))
}
