//! Going on with a conversation: which ones there are, and what was said last in one.

use crate::app::App;
use crate::cli_output::{CliOutput, Style, clip, count};
use komado_core::amount::age;
use komado_core::message::Message;
use komado_core::notation::tamed;
use komado_core::session::Session;
use komado_core::{Entry, Kind, Role, SessionId, ThreadId};
use komado_engine::Thread;
use komado_ops::ask::latest_conversations;
use komado_ops::clock::seconds_between;
use komado_ops::{FaultKind, OpFault, OpResult};
use komado_store::OpenMode;

/// Exchanges that are shown when a conversation is taken up.
const EXCHANGES: usize = 3;
/// The most lines of one message.
const LINES: usize = 4;
/// Entries in which the first words of a session are looked for.
const FIRST: u32 = 8;

/// Conversations that can go on, the last one that changed first.
pub(in crate::verb) fn recent(app: &App, most: usize) -> OpResult<Vec<Session>> {
    latest_conversations(&app.context, most, |session| is_of_user(app, session))
}

/// The conversation that `--continue` means: the last one that changed.
pub(in crate::verb) fn latest(app: &App) -> OpResult<SessionId> {
    let latest =
        latest_conversations(&app.context, 1, |session| is_of_user(app, session) && is_here(session))?;
    match latest.into_iter().next() {
        Some(session) => Ok(SessionId::new(session.meta.uuid)?),
        None => Err(OpFault::new(
            FaultKind::NotFound,
            "there is no conversation to go on with: `komado chat` begins one, `komado sessions` lists all sessions",
        )),
    }
}

/// Of the user in the settings; all, where none is named there.
fn is_of_user(app: &App, session: &Session) -> bool {
    app.context.config.user.as_ref().is_none_or(|user| session.meta.user.as_ref() == Some(user))
}

/// True when a session belongs to the working folder.
fn is_here(_: &Session) -> bool {
    // Sessions do not say yet where they were begun.
    true
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
        let words = first_words(app, &meta.uuid).unwrap_or_default();
        let id: String = meta.uuid.chars().take(13).collect();
        format!("{mark} {:>2}  {id:<13}  {age:>7}  {:<16}  {words}", n + 1, clip(&model, 16))
    };
    sessions.iter().enumerate().map(line).collect()
}

/// How the first message of the user begins.
fn first_words(app: &App, id: &str) -> Option<String> {
    let thread =
        app.context.engine.open(&SessionId::new(id).ok()?, &ThreadId::root(), OpenMode::Read).ok()?;
    (1..=thread.last().min(FIRST)).find_map(|seq| match thread.record(seq).ok()?.entry {
        Entry::Message(message, _) if message.role == Role::User => Some(one_line(&message.words())),
        _ => None,
    })
}

fn one_line(text: &str) -> String {
    tamed(&text.split_whitespace().collect::<Vec<_>>().join(" "))
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
