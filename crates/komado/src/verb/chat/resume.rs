//! Going on with a conversation: which ones there are, and what was said last in one.

use crate::app::App;
use crate::cli_output::{CliOutput, Style, clip, count};
use komado_core::amount::age;
use komado_core::message::Message;
use komado_core::notation::tamed;
use komado_core::session::Session;
use komado_core::{Entry, Kind, Role, SessionId};
use komado_engine::Thread;
use komado_ops::ask::latest_conversations;
use komado_ops::clock::seconds_between;
use komado_ops::{FaultKind, OpFault, OpResult};
use std::path::Path;

/// Exchanges that are shown when a conversation is taken up.
const EXCHANGES: usize = 3;
/// The most lines of one message.
const LINES: usize = 4;

/// Conversations that can go on, the last one that changed first.
pub(in crate::verb) fn recent(app: &App, most: usize) -> OpResult<Vec<Session>> {
    latest_conversations(&app.context, most, |session| is_of_user(app, session))
}

/// The conversation that `--continue` means: of those begun in the working folder, the one that changed last.
pub(in crate::verb) fn latest(app: &App) -> OpResult<SessionId> {
    let latest =
        latest_conversations(&app.context, 1, |session| is_of_user(app, session) && is_here(app, session))?;
    match latest.into_iter().next() {
        Some(session) => Ok(SessionId::new(session.meta.uuid)?),
        None => Err(OpFault::new(
            FaultKind::NotFound,
            "no conversation was begun in the working folder: `komado chat` begins one, `komado sessions` lists all sessions, \
             and `komado chat SESSION` goes on with one of them",
        )),
    }
}

/// Of the user in the settings; all, where none is named there.
fn is_of_user(app: &App, session: &Session) -> bool {
    app.context.config.user.as_ref().is_none_or(|user| session.meta.user.as_ref() == Some(user))
}

/// True when a session was begun in the working folder.
fn is_here(app: &App, session: &Session) -> bool {
    let begun_in = session.meta.config.project.as_deref();
    begun_in.is_some_and(|folder| app.context.working_folder() == Some(Path::new(folder)))
}

/// One line for each of some conversations, with the number by which it is chosen.
pub(super) fn lines(app: &App, sessions: &[Session], current: &SessionId) -> Vec<String> {
    let now = app.context.engine.now();
    let line = |(n, session): (usize, &Session)| {
        let meta = &session.meta;
        let mark = if meta.uuid == current.as_str() { "*" } else { " " };
        let seconds = seconds_between(&session.updated_at, &now).unwrap_or(0.0).max(0.0);
        let age = age(std::time::Duration::from_secs_f64(seconds).as_secs());
        let model = tamed(meta.config.model.as_deref().unwrap_or("-"));
        let title = SessionId::new(meta.uuid.as_str())
            .ok()
            .and_then(|id| app.context.engine.title(&id))
            .unwrap_or_default();
        let id: String = meta.uuid.chars().take(13).collect();
        format!("{mark} {:>2}  {id:<13}  {age:>7}  {:<16}  {title}", n + 1, clip(&model, 16))
    };
    sessions.iter().enumerate().map(line).collect()
}

/// The last exchanges of a thread, each message clipped: a line that says how many came before, then the words.
pub(super) fn exchanges(paper: &CliOutput, thread: &Thread<'_>) -> OpResult<Vec<String>> {
    let (mut told, mut before, mut asked) = (Vec::new(), 0u64, 0);
    for found in thread.back() {
        let (seq, head) = found?;
        if !matches!(head.kind, Kind::User | Kind::Assistant) {
            continue;
        }
        if asked == EXCHANGES {
            before += 1;
            continue;
        }
        asked += usize::from(head.kind == Kind::User);
        if let Entry::Message(message, _) = thread.record(seq)?.entry {
            told.push(said(paper, &message));
        }
    }
    told.reverse();
    let mut lines = Vec::new();
    if before > 0 {
        lines.push(format!("… {} before; /log lists them", count(before, "message")));
    }
    lines.extend(told.into_iter().flatten());
    Ok(lines)
}

/// A message in a few lines of the terminal's width.
fn said(paper: &CliOutput, message: &Message) -> Vec<String> {
    let mark = if message.role == Role::User { "❯" } else { " " };
    let words = message.words();
    let calls = message.calls().count() as u64;
    let mut texts: Vec<&str> = words.lines().filter(|line| !line.trim().is_empty()).collect();
    let more = texts.len().saturating_sub(LINES);
    texts.truncate(LINES);
    let line = |(n, text): (usize, &&str)| {
        let mark = if n == 0 { mark } else { " " };
        format!("{mark} {}", clip(&tamed(text), paper.width.saturating_sub(2)))
    };
    let mut lines: Vec<String> = texts.iter().enumerate().map(line).collect();
    if more > 0 {
        lines.push(format!("  … {}", count(more as u64, "more line")));
    }
    if calls > 0 {
        lines.push(format!("  ({})", count(calls, "tool call")));
    }
    lines
}

/// Says lines beside the answers, dimmed where there are colours.
pub(super) fn tell(paper: &CliOutput, lines: &[String]) {
    use std::io::{IsTerminal, Write};
    for line in lines {
        match std::io::stderr().is_terminal() {
            // Nothing can be done when even this cannot be said.
            true => drop(writeln!(std::io::stderr(), "{}", paper.painted(Style::Dim, line))),
            false => crate::cli_output::say(line),
        }
    }
}
