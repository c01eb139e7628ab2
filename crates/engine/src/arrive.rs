//! What arrives, made fit to be journaled.
//!
//! Pictures that travel inside a message go to a blob. A call without an id gets one; a result without one is given
//! to the call it fits. Nothing is dropped and no word is changed.

use crate::error::{Error, Result};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use komado_core::message::{ImageSource, Message, Outcome, Part, Role};
use komado_core::view::{Open, Waiting};
use komado_core::{Seq, SessionId};
use komado_store::Store;
use std::sync::Arc;

/// What a result says when its tool never answered.
pub const INTERRUPTED: &str = "[no result: the call was interrupted]";

/// Makes `message`, which will be entry `seq`, fit to be journaled.
pub fn arrive(
    store: &dyn Store,
    id: &SessionId,
    seq: Seq,
    open: &Open,
    mut message: Message,
) -> Result<Message> {
    for (i, part) in message.parts.iter_mut().enumerate() {
        match part {
            Part::Call(call) if call.id.is_empty() => call.id = format!("call_{seq}_{i}"),
            Part::Result(outcome) => {
                pair(outcome, open)?;
                outcome.content.iter_mut().try_for_each(|part| keep_image(store, id, part))?;
            }
            other => keep_image(store, id, other)?,
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
fn keep_image(store: &dyn Store, id: &SessionId, part: &mut Part) -> Result<()> {
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
    let blob = store.put_blob(id, &mut &bytes[..])?;
    *source =
        ImageSource::Blob { blob: blob.id, media_type: media_type.to_owned(), byte_size: blob.byte_size };
    Ok(())
}

/// Results for the calls that nobody will answer any more.
pub fn interruptions(open: &Open) -> Vec<Message> {
    let result = |call: &Arc<Waiting>| {
        Message::of(
            Role::Tool,
            vec![Part::Result(Outcome {
                call_id: call.id.clone(),
                name: Some(call.name.clone()),
                content: vec![Part::text(INTERRUPTED)],
                is_error: true,
                output_ref: None,
                duration_ms: None,
                interrupted: true,
            })],
        )
    };
    open.calls.iter().map(result).collect()
}
