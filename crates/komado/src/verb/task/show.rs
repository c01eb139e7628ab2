//! `komado task show`: everything about one task.

use super::Named;
use super::found::find;
use super::standing::Standing;
use crate::app::App;
use crate::fault::Outcome;
use crate::kit::folder;
use crate::paper::{count, text_of};
use clap::Args as ClapArgs;
use komado_agent::handler::Mark;
use komado_core::journal::{Close, Entry};
use komado_core::notation::tamed;
use komado_core::{Kind, ThreadId};
use komado_engine::Thread;
use komado_store::Mode;
use serde_json::{Value, json};

/// Characters of the last words that are shown.
const SHOWN: usize = 2_000;

#[derive(ClapArgs, Debug)]
pub(crate) struct Args {
    #[command(flatten)]
    named: Named,
}

/// What the journals say.
#[derive(Default)]
struct Told {
    node: Option<String>,
    threads: usize,
    first_words: Option<String>,
    last_words: Option<String>,
    result: Option<String>,
    seen: Option<String>,
}

pub(crate) fn run(app: &mut App, args: &Args) -> Outcome {
    let task = find(app, &args.named)?.remembered(app)?;
    let told = if task.row.is_some() { told(app, &task)? } else { Told::default() };
    let files = app.context.files.as_ref().and_then(|files| files.folder(&task.session).ok());
    let (named, playbook) = task.named_paths();
    let folder = folder::there(app, named, &task.session);
    let text = task.task().map(|task| task.text).or(told.first_words.clone());
    if app.paper.json {
        let mut row = task.as_json();
        row["text"] = json!(text);
        row["node"] = json!(told.node);
        row["threads"] = json!(told.threads);
        row["last_words"] = json!(told.last_words);
        row["result"] = json!(told.result);
        row["last_comment"] = json!(told.seen);
        row["folder"] = json!(folder.as_deref().map(text_of));
        row["playbook"] = json!(playbook.as_deref().map(text_of));
        row["files"] = json!(files.as_deref().map(text_of));
        return app.paper.json(&row);
    }
    for (name, value) in lines(&task, &told) {
        app.paper.line(format!("{name:<9} {}", tamed(&value)))?;
    }
    for (name, path) in [("folder", folder), ("playbook", playbook), ("files", files)] {
        if let Some(path) = path {
            app.paper.line(format!("{name:<9} {}", path.display()))?;
        }
    }
    for (heading, words) in [("task", text), ("result", told.result), ("last words", told.last_words)] {
        if let Some(words) = words.filter(|words| !words.trim().is_empty()) {
            app.paper.line(format!("\n{heading}:\n{}", words.trim()))?;
        }
    }
    Ok(())
}

fn lines(task: &Standing, told: &Told) -> Vec<(&'static str, String)> {
    let mut lines = vec![("session", task.session.to_string()), ("key", task.key.clone())];
    let mut add = |name, value: Option<String>| lines.extend(value.map(|value| (name, value)));
    add("title", task.title());
    add("url", task.url());
    add("state", Some(task.state().to_owned()));
    // What its result says, too, is said there.
    let is_said = |why: &String| told.result.as_deref().is_some_and(|result| result.contains(why.trim()));
    add("why", task.why().filter(|why| !is_said(why)));
    add("tries", task.tries().map(|tries| tries.to_string()));
    add("worker", task.worker());
    add("node", told.node.clone());
    if let Some(row) = &task.row {
        let counters = &row.counters;
        let (turns, calls) = (counters.llm_call_count, counters.tool_call_count);
        let took = [(turns, "turn"), (calls, "tool call"), (counters.total_tokens, "token")];
        add("took", Some(took.map(|(n, one)| count(n, one)).join(", ")));
        add("threads", Some(told.threads.to_string()));
        add("started", row.started_at.clone());
        add("ended", row.completed_at.clone());
    }
    lines
}

fn told(app: &App, task: &Standing) -> Outcome<Told> {
    let root = app.context.engine.open(&task.session, &ThreadId::root(), Mode::Read)?;
    let node = root.noted("playbook")?.and_then(|(_, note)| {
        let note: Value = serde_json::from_str(note.get()).ok()?;
        note["node"].as_str().map(str::to_owned)
    });
    let result = match root.view().closed().map(|at| root.record(at)).transpose()?.map(|record| record.entry)
    {
        Some(Entry::Close(Close { result, .. })) => result,
        _ => None,
    };
    let last_words = last_words(&root)?
        .filter(|words| result.as_deref().is_none_or(|text| !text.contains(words.as_str())));
    Ok(Told {
        node,
        threads: app.context.engine.store().threads(&task.session)?.len(),
        first_words: first_words(&root)?,
        last_words,
        result,
        seen: Mark::of(&root).map_err(super::fault)?.and_then(|mark| mark.seen),
    })
}

/// What the task was told with: the first words of a user.
fn first_words(root: &Thread<'_>) -> Outcome<Option<String>> {
    for seq in 1..=root.last() {
        if root.source().head(seq)?.kind == Kind::User
            && let Entry::Message(message, _) = root.record(seq)?.entry
        {
            return Ok(Some(message.words().trim().chars().take(SHOWN).collect()));
        }
    }
    Ok(None)
}

/// What the model said last, where it said anything.
fn last_words(root: &Thread<'_>) -> Outcome<Option<String>> {
    let words = root.last_words(|kind| kind == Kind::Assistant)?;
    Ok(words.map(|words| words.trim().chars().take(SHOWN).collect()))
}
