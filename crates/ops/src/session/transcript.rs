//! A session as a transcript for people, thread by thread; each is read as it is written, so none is held.

use crate::change::name;
use crate::{OpResult, OperationContext};
use komado_core::View;
use komado_core::notation::grouped;
use komado_engine::Thread;
use komado_engine::engine::ResolvedAddress;
use komado_engine::transcript::html::HtmlTranscript;
use komado_engine::transcript::{TranscriptItem, markdown};
use komado_store::OpenMode;
use std::io::Write;

/// The threads of a session that are told, or the one that is named; refused where the moment is not there.
pub(super) fn threads(
    context: &OperationContext,
    found: &ResolvedAddress,
    is_whole: bool,
) -> OpResult<Vec<ResolvedAddress>> {
    if !is_whole {
        open(context, found)?;
        return Ok(vec![found.clone()]);
    }
    let all = context.engine.store().threads(&found.session)?;
    Ok(all.into_iter().map(|header| ResolvedAddress { thread: header.thread, ..found.clone() }).collect())
}

/// A thread, and its view at the moment until which it is told.
fn open<'e>(context: &'e OperationContext, told: &ResolvedAddress) -> OpResult<(Thread<'e>, View)> {
    let thread = context.engine.open(&told.session, &told.thread, OpenMode::Read)?;
    let view = told.seq.map_or_else(|| Ok(thread.view().clone()), |seq| thread.view_at(seq))?;
    Ok((thread, view))
}

/// What stands at the top of a transcript.
pub(super) struct AboutTranscript {
    title: String,
    about: String,
}

/// What is known of a session.
pub(super) fn about(context: &OperationContext, found: &ResolvedAddress) -> OpResult<AboutTranscript> {
    let row = context.session(&found.session)?;
    let moment = found.seq.map(|seq| format!("@{seq}")).unwrap_or_default();
    let mut about = vec![format!("Session {}{moment}", name(found))];
    about.extend(row.meta.config.model.map(|model| format!("model {model}")));
    about.push(format!("begun {} UTC", row.meta.created_at.get(..16).unwrap_or_default().replace('T', " ")));
    about.push(format!("{} tokens used", grouped(row.counters.total_tokens)));
    let title = context.engine.title(&found.session).unwrap_or_else(|| found.session.to_string());
    Ok(AboutTranscript { title, about: about.join(" · ") })
}

/// Hands on everything that threads say, each after its name where there are several.
fn each(
    context: &OperationContext,
    told: &[ResolvedAddress],
    each: &mut dyn FnMut(TranscriptStep<'_>) -> OpResult,
) -> OpResult {
    for found in told {
        let (thread, view) = open(context, found)?;
        // A fork tells what it shares with another thread only where it is told alone.
        let from = if told.len() > 1 { thread.header().base_seq() + 1 } else { 1 };
        if told.len() > 1 {
            each(TranscriptStep::Thread(found.thread.as_str()))?;
        }
        thread.each_said(from, &view, &mut |item| each(TranscriptStep::Item(&item)))?;
    }
    Ok(())
}

/// What comes next in a transcript.
enum TranscriptStep<'a> {
    Thread(&'a str),
    Item(&'a TranscriptItem),
}

pub(super) fn markdown(
    context: &OperationContext,
    told: &[ResolvedAddress],
    about: &AboutTranscript,
    out: &mut dyn Write,
) -> OpResult {
    markdown::begin(&about.title, &about.about, out)?;
    each(context, told, &mut |step| match step {
        TranscriptStep::Thread(name) => Ok(markdown::thread(name, out)?),
        TranscriptStep::Item(item) => Ok(markdown::item(item, out)?),
    })?;
    Ok(markdown::end(out)?)
}

pub(super) fn html(
    context: &OperationContext,
    told: &[ResolvedAddress],
    about: &AboutTranscript,
    out: &mut dyn Write,
) -> OpResult {
    let mut page = HtmlTranscript::default();
    page.begin(&about.title, &about.about, out)?;
    each(context, told, &mut |step| match step {
        TranscriptStep::Thread(name) => Ok(page.thread(name, out)?),
        TranscriptStep::Item(item) => Ok(page.item(item, out)?),
    })?;
    Ok(page.end(out)?)
}
