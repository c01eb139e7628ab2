//! What is left when the session is over: the counts, the proof that nothing is lost, and what to try next.

use super::hand::{Done, digest, digest_text};
use super::{Args, Played};
use crate::clock::seconds_between;
use crate::fault::{Exit, Fault, Outcome};
use crate::paper::{Ink, Paper, number, text_of};
use komado_core::SessionId;
use komado_core::journal::Entry;
use komado_core::view::What;
use komado_engine::Engine;
use komado_store::{FileStore, Mode};
use serde_json::json;
use std::collections::BTreeSet;
use std::io::Read;
use std::path::{Path, PathBuf};

/// What was found when everything was read back.
#[derive(Default)]
struct Kept {
    entries: u64,
    /// Tokens of everything said.
    said: u64,
    messages: u64,
    /// Messages that the model does not see, or not as they were said.
    hidden: u64,
    hidden_bytes: u64,
    blobs: u64,
}

/// Ends the demo: reads everything back, and tells.
pub(super) fn tell(
    engine: &Engine,
    files: &FileStore,
    id: &SessionId,
    args: &Args,
    played: &Played,
    paper: &mut Paper,
) -> Outcome {
    let mut kept = Kept::default();
    let errand = played.errand.iter().map(|errand| &errand.done);
    for done in std::iter::once(&played.root).chain(&played.fork).chain(errand) {
        read_back(engine, id, done, &mut kept)?;
    }
    let folder = files.folder(id)?;
    if paper.json {
        return paper.json(&as_json(engine, id, args, played, &kept, &folder)?);
    }
    counts(args, played, &kept, paper)?;
    let base = near(files.base_dir());
    let line = format!("folder    {}", near(&folder).display());
    paper.line(line)?;
    paper.line("")?;
    let heading = paper.ink(Ink::Bold, "try next");
    paper.line(heading)?;
    for (command, what) in commands(id, &base, args, played) {
        let what = paper.ink(Ink::Dim, &format!("  # {what}"));
        paper.line(what)?;
        paper.line(format!("  {command}"))?;
    }
    Ok(())
}

/// Reads every message and every blob of a thread, and compares it with what was said.
fn read_back(engine: &Engine, id: &SessionId, done: &Done, kept: &mut Kept) -> Outcome {
    let thread = engine.open(id, &done.thread, Mode::Read)?;
    let mut seen = BTreeSet::new();
    thread.view().each_item(thread.source(), |item| {
        if matches!(item.what, What::Said(_)) {
            seen.insert(item.seq);
        }
    })?;
    for &(seq, said) in &done.said {
        let record = thread.record(seq)?;
        let Entry::Message(message, _) = &record.entry else { return Err(lost(seq)) };
        if digest(message) != said {
            return Err(lost(seq));
        }
        kept.messages += 1;
        kept.said += u64::from(record.tokens);
        if !seen.contains(&seq) {
            kept.hidden += 1;
            kept.hidden_bytes += message.words().len() as u64;
        }
    }
    for (blob, said) in &done.blobs.iter().collect::<BTreeSet<_>>() {
        let mut text = String::new();
        engine.store().blob(id, blob)?.read_to_string(&mut text)?;
        if digest_text(&text) != *said {
            return Err(Fault::new(Exit::Failed, format!("output {blob} is not what it was; this is a bug")));
        }
        kept.blobs += 1;
        kept.hidden_bytes += text.len() as u64;
    }
    kept.entries += u64::from(thread.last() - thread.header().base_seq());
    Ok(())
}

fn lost(seq: u32) -> Fault {
    Fault::new(Exit::Failed, format!("entry @{seq} is not what was said; this is a bug"))
}

/// The path as seen from the working folder, where that is shorter.
pub(super) fn near(path: &Path) -> PathBuf {
    let here = std::env::current_dir().ok();
    here.and_then(|here| path.strip_prefix(here).ok())
        .filter(|near| near.components().next().is_some())
        .unwrap_or(path)
        .to_owned()
}

fn counts(args: &Args, played: &Played, kept: &Kept, paper: &mut Paper) -> Outcome {
    let Done { usage, trims, condenses, reverts, rewinds, .. } = &played.root;
    let read = usage.input_tokens + usage.cache_read_tokens;
    let cached = 100.0 * usage.cache_read_tokens as f64 / read.max(1) as f64;
    let forks = u32::from(played.fork.is_some());
    paper.line("")?;
    let line = format!(
        "said      {} tokens in {} messages; in the window of {} never more than {}",
        number(kept.said),
        number(kept.messages),
        number(u64::from(args.window)),
        number(played.peak())
    );
    let line = paper.ink(Ink::Bold, &line);
    paper.line(line)?;
    paper.line(format!(
        "read      {} tokens by the model in all requests, {cached:.0} % of them from the provider's cache",
        number(read)
    ))?;
    paper.line(format!("changed   {trims} trims, {condenses} condensed, {reverts} reverted, {rewinds} rewound, {forks} forked"))?;
    if let Some(errand) = &played.errand {
        paper.line(format!(
            "child     {} tokens said in a thread of its own, {} of them seen here: its anchor",
            number(errand.said),
            number(errand.anchor)
        ))?;
    }
    paper.line(format!(
        "kept      {} bytes in {} messages and {} outputs are out of sight; all were read back now, none has changed",
        number(kept.hidden_bytes),
        number(kept.hidden),
        number(kept.blobs)
    ))
}

/// Commands, as they can be typed here, with what they show.
fn commands(id: &SessionId, base: &Path, args: &Args, played: &Played) -> Vec<(String, &'static str)> {
    let program = std::env::args().next().unwrap_or_else(|| "komado".into());
    let named = args.keep.is_some() || std::env::args().any(|arg| arg.starts_with("--base-dir"));
    let komado = if named { format!("{program} --base-dir {}", base.display()) } else { program };
    let folder = format!("{}/completed/{id}", base.display());
    let mut rows = vec![
        (format!("{komado} context {id}"), "the window and what fills it"),
        (format!("{komado} show {id}"), "exactly what the model saw last"),
        (format!("{komado} log {id} -n 30"), "the journal, one line per entry"),
    ];
    if let Some(edit) = played.condensed {
        rows.push((
            format!("{komado} diff {id}@{} {id}@{edit}", edit - 1),
            "what one edit took out, and what it put there",
        ));
    }
    if let Some(edit) = played.edited {
        let undo = format!("{komado} resume {id} && {komado} revert {id}@{edit}");
        rows.push((undo, "open it again and take the last edit back"));
    }
    rows.push((
        format!("jq -r .summary {folder}/summaries.jsonl"),
        "the texts that stand for what is hidden",
    ));
    if played.errand.is_some() {
        rows.push((format!("{komado} thread tree {id}"), "the threads, and what each had of the window"));
    }
    let fork = if played.fork.is_some() || played.errand.is_some() {
        format!(" {folder}/threads/*/messages.jsonl")
    } else {
        String::new()
    };
    let sum = format!("jq -s 'map(select(.role).tokens) | add' {folder}/messages.jsonl{fork}");
    rows.push((sum, "the tokens said in all, from the journals themselves"));
    let sql =
        format!("SELECT status, llm_call_count, tool_call_count, total_tokens FROM tasks WHERE uuid='{id}'");
    rows.push((
        format!("sqlite3 {}/tasks.db \"{sql}\"", base.display()),
        "the session in the table of all sessions",
    ));
    rows
}

fn as_json(
    engine: &Engine,
    id: &SessionId,
    args: &Args,
    played: &Played,
    kept: &Kept,
    folder: &Path,
) -> Outcome<serde_json::Value> {
    let session = engine.session(id)?;
    let Done { usage, trims, condenses, reverts, rewinds, .. } = &played.root;
    let ended = session.completed_at.as_deref().unwrap_or_default();
    Ok(json!({
        "session": id.as_str(),
        "folder": text_of(folder),
        "status": session.status.name(),
        "turns": args.turns,
        "window": args.window,
        "entries": kept.entries,
        "messages": kept.messages,
        "said_tokens": kept.said,
        "peak_tokens": played.peak(),
        "usage": usage,
        "usage_total": session.counters.total_tokens,
        "trims": trims,
        "condenses": condenses,
        "reverts": reverts,
        "rewinds": rewinds,
        "forks": u32::from(played.fork.is_some()),
        "child_said_tokens": played.errand.as_ref().map(|errand| errand.said),
        "child_anchor_tokens": played.errand.as_ref().map(|errand| errand.anchor),
        "hidden_messages": kept.hidden,
        "hidden_outputs": kept.blobs,
        "hidden_bytes": kept.hidden_bytes,
        "recovered": true,
        "seconds": seconds_between(&session.meta.created_at, ended),
    }))
}
