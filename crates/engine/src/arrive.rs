//! What arrives, made fit to be journaled.
//!
//! Pictures that travel inside a message go to a blob, and so does a tool's output that is too long to be shown: the
//! message keeps the view of it and names the whole. A call without an id gets one; a result without one is given to
//! the call it fits. Nothing is lost, and what fits is not changed in any byte.

use crate::error::{Error, Result};
use crate::output::is_reader;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use komado_core::clip::{Limits, clip};
use komado_core::message::{ImageSource, Message, Opaque, Outcome, OutputRef, Part, Role};
use komado_core::view::{Open, Waiting};
use komado_core::{Seq, SessionId};
use komado_store::Store;
use std::sync::Arc;

/// What a result says when its tool never answered.
pub const INTERRUPTED: &str = "[no result: the call was interrupted]";

/// Where to keep what does not stay in the message.
pub struct Keep<'a> {
    /// The store.
    pub store: &'a dyn Store,
    /// The session.
    pub id: &'a SessionId,
    /// How much of a tool's output stays; `None` for all of it.
    pub clip: Option<Limits>,
}

/// Makes `message`, which will be entry `seq`, fit to be journaled.
pub fn arrive(keep: &Keep<'_>, seq: Seq, open: &Open, mut message: Message) -> Result<Message> {
    for (i, part) in message.parts.iter_mut().enumerate() {
        match part {
            Part::Call(call) if call.id.is_empty() => call.id = format!("call_{seq}_{i}"),
            Part::Result(outcome) => {
                pair(outcome, open)?;
                outcome.content.iter_mut().try_for_each(|part| keep_image(keep, part))?;
                keep_output(keep, outcome)?;
            }
            other => keep_image(keep, other)?,
        }
    }
    Ok(message)
}

/// Gives a result without an id to the call it fits: the first one of its tool, or the only one that waits.
fn pair(outcome: &mut Outcome, open: &Open) -> Result<()> {
    if outcome.call_id.is_empty() {
        let by_name = open.calls.iter().find(|call| outcome.name.as_ref() == Some(&call.name));
        let call = by_name.or(if open.calls.len() == 1 { open.calls.first() } else { None });
        let Some(call) = call else {
            let why = match open.calls.len() {
                0 => "no call waits for one".to_owned(),
                n => format!("{n} calls wait, none of them to {:?}", outcome.name.as_deref().unwrap_or("?")),
            };
            return Err(Error::NoCallFits { why });
        };
        outcome.call_id.clone_from(&call.id);
    }
    if outcome.name.is_none() {
        outcome.name =
            open.calls.iter().find(|call| call.id == outcome.call_id).map(|call| call.name.clone());
    }
    Ok(())
}

/// Moves a picture's bytes to a blob, when they can be written back exactly as they came.
fn keep_image(keep: &Keep<'_>, part: &mut Part) -> Result<()> {
    let Part::Image { source, .. } = part else { return Ok(()) };
    let ImageSource::Url { url } = &*source else { return Ok(()) };
    let Some((media_type, data)) = url.strip_prefix("data:").and_then(|rest| rest.split_once(";base64,"))
    else {
        return Ok(());
    };
    // What is no plain media type would have to be escaped on its way back; it stays where it is.
    let plain = |b: u8| b.is_ascii_graphic() && !matches!(b, b'"' | b'\\');
    let Ok(bytes) = STANDARD.decode(data) else { return Ok(()) };
    if !media_type.bytes().all(plain) {
        return Ok(());
    }
    let blob = keep.store.put_blob(keep.id, &mut &bytes[..])?;
    *source =
        ImageSource::Blob { blob: blob.id, media_type: media_type.to_owned(), byte_size: blob.byte_size };
    Ok(())
}

/// Moves an output that is too long to a blob; its view stands where its first text stood. Whatever is no text stays.
fn keep_output(keep: &Keep<'_>, outcome: &mut Outcome) -> Result<()> {
    let (Some(mut limits), None) = (keep.clip, &outcome.output_ref) else { return Ok(()) };
    if outcome.name.as_deref().is_some_and(is_reader) {
        // Whoever asked for a part of a line is to get it, not a part of the part.
        limits.max_line_length = usize::MAX;
    }
    let text = texts(&outcome.content).map(|(text, _)| text).collect::<Vec<_>>().join("\n");
    // The name of the blob takes no part in whether there has to be one.
    if clip(&text, &limits, "").is_none() {
        return Ok(());
    }
    let blob = keep.store.put_blob(keep.id, &mut text.as_bytes())?;
    let extra = texts(&outcome.content).find_map(|(_, extra)| extra.cloned());
    let mut view = clip(&text, &limits, &blob.id).map(|text| Part::Text { text, extra });
    outcome.content = std::mem::take(&mut outcome.content)
        .into_iter()
        .filter_map(|part| if matches!(part, Part::Text { .. }) { view.take() } else { Some(part) })
        .collect();
    let (byte_size, line_count) = (Some(blob.byte_size), Some(blob.line_count));
    outcome.output_ref = Some(OutputRef { id: blob.id, byte_size, line_count });
    Ok(())
}

fn texts(parts: &[Part]) -> impl Iterator<Item = (&str, Option<&Opaque>)> {
    parts.iter().filter_map(|part| match part {
        Part::Text { text, extra } => Some((text.as_str(), extra.as_ref())),
        _ => None,
    })
}

/// Results for the calls that nobody will answer any more.
pub fn interruptions(open: &Open) -> Vec<Message> {
    let result = |call: &Arc<Waiting>| {
        let outcome = Outcome::text(&call.id, Some(call.name.clone()), INTERRUPTED);
        let outcome = Outcome { is_error: true, interrupted: true, ..outcome };
        Message::of(Role::Tool, vec![Part::Result(outcome)])
    };
    open.calls.iter().map(result).collect()
}
