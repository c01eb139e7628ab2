//! Nothing is lost: every byte comes back, and so does the whole view.

use super::Report;
use crate::error::Result;
use crate::thread::Thread;
use komado_core::Seq;
use komado_core::journal::Entry;
use komado_core::message::{Message, Outcome, Part};
use std::io::Read;

/// Compares what was said with what can be fetched, then undoes every edit.
pub(super) fn prove(thread: &mut Thread<'_>, said: &[(Seq, Message)], report: &mut Report) -> Result<()> {
    let shown: std::collections::HashSet<Seq> = {
        let mut shown = std::collections::HashSet::new();
        thread.view().each_item(thread.source(), |item| {
            if matches!(item.what, komado_core::view::What::Said(_)) {
                shown.insert(item.seq);
            }
        })?;
        shown
    };
    for (seq, original) in said {
        let Entry::Message(kept, _) = thread.record(*seq)?.entry else { continue };
        let (all, visible) = (bytes(original), if shown.contains(seq) { bytes(&kept) } else { 0 });
        report.hidden_bytes += all.saturating_sub(visible);
        if !comes_back(thread, &kept, original)? {
            report.unrecoverable_bytes += all;
        }
    }
    if !undone(thread)? {
        report.not_restored += 1;
    }
    Ok(())
}

/// Bytes of a message that a model reads: words, and the names and arguments of calls.
fn bytes(message: &Message) -> u64 {
    let calls: usize = message.calls().map(|call| call.name.len() + call.arguments.len()).sum();
    (message.words().len() + calls) as u64
}

/// True when the entry, with its blob, says every word that was said.
fn comes_back(thread: &Thread<'_>, kept: &Message, original: &Message) -> Result<bool> {
    if !kept
        .calls()
        .map(|call| (&call.name, &call.arguments))
        .eq(original.calls().map(|c| (&c.name, &c.arguments)))
    {
        return Ok(false);
    }
    let Some(Outcome { output_ref: Some(output), .. }) = kept.outcome() else {
        return Ok(kept.words() == original.words());
    };
    let mut whole = String::new();
    thread.blob(&output.id)?.read_to_string(&mut whole)?;
    Ok(whole == words_of(original))
}

fn words_of(message: &Message) -> String {
    let texts = |parts: &[Part]| {
        let words = parts.iter().filter_map(|part| match part {
            Part::Text { text, .. } => Some(text.as_str()),
            _ => None,
        });
        words.collect::<Vec<_>>().join("\n")
    };
    message.outcome().map_or_else(|| message.words(), |outcome| texts(&outcome.content))
}

/// Undoes every edit, newest first; true when every message is then shown as it was said.
fn undone(thread: &mut Thread<'_>) -> Result<bool> {
    while let Some(edit) = thread.view().edits().last() {
        thread.revert(edit)?;
    }
    let mut said = Vec::new();
    for seq in 1..=thread.last() {
        if thread.source().head(seq)?.kind.is_item() {
            said.push(thread.record(seq)?);
        }
    }
    let mut said = said.into_iter();
    let mut same = true;
    thread.view().pour(thread.source(), &mut |seq: Seq, message: &Message| -> Result<()> {
        let expected = said.next();
        same &= expected.is_some_and(|record| {
            record.seq == seq && matches!(record.entry, Entry::Message(was, _) if was == *message)
        });
        Ok(())
    })?;
    Ok(same && said.next().is_none())
}
