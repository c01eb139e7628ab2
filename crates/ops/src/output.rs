//! Outputs of tools that are too long to be shown: listed, read by lines, searched, read by characters of a line.
//!
//! The readings are those that a model has as tools. They stream, so an output may be larger than memory.

mod cache;
mod list;
mod raw;
mod read;

pub use cache::{ToolOutputCache, ToolOutputCacheGrep, ToolOutputCacheLine};
pub use list::{ListOutputs, Output};
pub use raw::RawOutput;
pub use read::{Part, ReadOutput, Reading, ReadingCall};

use crate::address::Target;
use crate::{Context, Exit, Fault, Outcome};
use komado_engine::Thread;
use komado_engine::engine::Found;
use komado_engine::output::Reference;
use komado_store::Mode;

/// The thread and the output that a request means.
fn find<'a>(context: &'a Context, at: Target, ref_id: &str) -> Outcome<(Thread<'a>, Reference, Found)> {
    let found = context.find(at)?;
    let reference = complete(context, &found, ref_id.parse()?)?;
    Ok((context.engine.open(&found.session, &found.thread, Mode::Read)?, reference, found))
}

/// The whole id of an output, of which a beginning may have been given.
fn complete(context: &Context, found: &Found, reference: Reference) -> Outcome<Reference> {
    let Reference::Blob(given) = &reference else { return Ok(reference) };
    if context.engine.store().blob(&found.session, given).is_ok() {
        return Ok(reference);
    }
    let named = context.engine.named_blobs(&found.session)?;
    let mut fits: Vec<&String> = named.iter().filter(|id| id.starts_with(given.as_str())).collect();
    fits.sort();
    match fits[..] {
        [only] => Ok(Reference::Blob(only.clone())),
        [] => Ok(reference),
        _ => {
            let fits: Vec<&str> = fits.iter().map(|id| id.as_str()).collect();
            let message = format!("{given:?} fits several: {}; write more of it", fits.join(", "));
            Err(Fault::new(Exit::NotFound, message))
        }
    }
}
