//! A transcript as Markdown: for a repository, an issue, a note.
//!
//! What was said stands in quotes and what tools printed in fences, so that nothing in it can pass for a heading of ours.

use super::{TranscriptItem, TranscriptPart, TranscriptRole};
use komado_core::notation::{grouped, shown, tamed};
use std::io::{self, Write};

/// Begins a transcript.
pub fn begin(title: &str, about: &str, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "# {}\n\n{}", tamed(title), tamed(about))
}

/// Begins a thread of several.
pub fn thread(name: &str, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "\n## Thread {}", tamed(name))
}

/// Writes one item.
pub fn item(item: &TranscriptItem, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "\n### {}\n", heading(item))?;
    if let Some(edit) = &item.edit
        && let Some(shows) = &edit.shows
    {
        writeln!(out, "The model sees this in its place (@{}, {}):\n", edit.seq, tamed(&edit.kind))?;
        quoted(shows, out)?;
        writeln!(out, "\nWhat was said:\n")?;
    }
    for part in &item.parts {
        match part {
            TranscriptPart::Text { text } if item.role == TranscriptRole::Tool => fenced(text, out)?,
            TranscriptPart::Text { text } => quoted(text, out)?,
            TranscriptPart::Thought { text } => {
                writeln!(out, "Thought:\n")?;
                quoted(text, out)?;
            }
            TranscriptPart::Call { tool, arguments, .. } => {
                writeln!(out, "Calls {}:\n", code(tool))?;
                fenced(arguments, out)?;
            }
            TranscriptPart::Image { about } => writeln!(out, "[picture: {}]", code(about))?,
            TranscriptPart::Tools { count } => writeln!(out, "Tools offered: {count}")?,
            TranscriptPart::Other { dialect } => {
                writeln!(out, "[something only {} understands]", code(dialect))?
            }
        }
    }
    Ok(())
}

/// Ends the transcript.
pub fn end(out: &mut dyn Write) -> io::Result<()> {
    out.write_all(b"\n")
}

/// What stands over an item: who, when, how much, and whether the model sees it.
pub(super) fn heading(item: &TranscriptItem) -> String {
    let name = item.name.as_deref().map(|name| format!(" {}", tamed(name))).unwrap_or_default();
    let mut words = vec![format!("@{} {}{name}", item.seq, item.role.name())];
    words.push(minute(&item.timestamp));
    words.push(format!("{} tokens", grouped(item.tokens.into())));
    if let Some(edit) = item.edit.as_ref().filter(|edit| edit.shows.is_none()) {
        let (before, after) = (grouped(edit.before), grouped(edit.after));
        words.push(format!("in place of {}, {before} → {after} tokens", entries(&edit.covers)));
    }
    words.extend(item.pinned.then(|| "pinned".to_owned()));
    words.extend(item.result.as_ref().filter(|result| result.is_error).map(|_| "error".to_owned()));
    words.extend(item.hidden_by.map(|by| format!("hidden from the model by @{by}")));
    words.extend(item.left_behind.then(|| "left behind by a rewind".to_owned()));
    words.join(" · ")
}

/// `2..240` as `@2..@240`.
pub fn entries(covers: &str) -> String {
    let at = |span: &str| span.split("..").map(|seq| format!("@{seq}")).collect::<Vec<_>>().join("..");
    covers.split(',').map(at).collect::<Vec<_>>().join(", ")
}

/// A stamp to the minute: `2026-11-18 21:40 UTC`.
pub(super) fn minute(stamp: &str) -> String {
    match stamp.get(..16) {
        Some(start) => format!("{} UTC", tamed(start).replace('T', " ")),
        None => "no time".to_owned(),
    }
}

fn code(text: &str) -> String {
    format!("`{}`", tamed(text).replace('`', "'"))
}

fn quoted(text: &str, out: &mut dyn Write) -> io::Result<()> {
    for line in text.lines() {
        writeln!(out, "> {}", shown(line))?;
    }
    out.write_all(b"\n")
}

/// A fence is longer than any in what it holds.
fn fenced(text: &str, out: &mut dyn Write) -> io::Result<()> {
    let ticks = |line: &str| line.trim_start().chars().take_while(|c| *c == '`').count();
    let longest = text.lines().map(ticks).max().unwrap_or(0);
    let fence = "`".repeat(longest.max(2) + 1);
    writeln!(out, "{fence}")?;
    text.lines().try_for_each(|line| writeln!(out, "{}", shown(line)))?;
    writeln!(out, "{fence}\n")
}
