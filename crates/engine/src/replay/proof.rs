//! Nothing is lost: every byte comes back, and so does the whole view.

use super::Report;
use crate::error::Result;
use crate::output::{self, Reference};
use crate::thread::Thread;
use komado_core::Seq;
use komado_core::journal::Entry;
use komado_core::message::{ImageSource, Message, Part};
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
        if !comes_back(thread, *seq, &kept, original)? {
            report.unrecoverable_bytes += all;
        }
    }
    if !undone(thread)? {
        report.not_restored += 1;
    }
    Ok(())
}

/// Bytes of a message that a model reads: words, pictures' names, and the names and arguments of calls.
fn bytes(message: &Message) -> u64 {
    output::whole(message).len() as u64
}

/// True when the entry, read by its number as a model would read it, gives everything that was said. A picture is
/// named by its blob, which is read, too.
fn comes_back(thread: &Thread<'_>, seq: Seq, kept: &Message, original: &Message) -> Result<bool> {
    let mut read = Vec::new();
    let opened = output::open(thread, &Reference::Entry(seq));
    let Ok(mut opened) = opened else { return Ok(false) };
    opened.read_to_end(&mut read)?;
    for part in all_parts(kept) {
        if let Part::Image { source: ImageSource::Blob { blob, .. }, .. } = part {
            thread.blob(blob)?;
        }
    }
    let is_whole = kept.outcome().is_some_and(|outcome| outcome.output_ref.is_some());
    let said = if is_whole { texts(original) } else { output::whole(&like(original, kept)) };
    Ok(read == said.as_bytes())
}

fn all_parts(message: &Message) -> impl Iterator<Item = &Part> {
    let inside = message.outcome().map_or(&[][..], |outcome| &outcome.content);
    message.parts.iter().chain(inside)
}

/// The texts of a result, as they go to a blob.
fn texts(message: &Message) -> String {
    let words = message.outcome().map_or(&message.parts, |outcome| &outcome.content).iter();
    let words =
        words.filter_map(|part| if let Part::Text { text, .. } = part { Some(text.as_str()) } else { None });
    words.collect::<Vec<_>>().join("\n")
}

/// The original with the pictures of what is kept: their bytes were moved to blobs on arrival.
fn like(original: &Message, kept: &Message) -> Message {
    let mut message = original.clone();
    for (part, now) in message.parts.iter_mut().zip(&kept.parts) {
        match (part, now) {
            (part @ Part::Image { .. }, Part::Image { .. }) => *part = now.clone(),
            (Part::Result(was), Part::Result(is)) => {
                for (part, now) in was.content.iter_mut().zip(&is.content) {
                    if matches!((&*part, now), (Part::Image { .. }, Part::Image { .. })) {
                        *part = now.clone();
                    }
                }
            }
            _ => {}
        }
    }
    message
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
