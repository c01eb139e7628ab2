//! Operations on what was said: append it, read it, show what the model sees of it, take a secret out.

mod append;
mod entries;
mod entry;
mod lines;
mod log;
mod redact;
mod setup;
mod show;

pub use append::{Append, Appended, append_output};
pub use entries::{Entries, EntriesOf};
pub use entry::{Entry, GetEntry};
pub use lines::{AppendLines, MessageLines};
pub use log::{Log, Logged};
pub use redact::{Redact, Redacted};
pub use setup::SetUp;
pub use show::{Format, Show, ViewItem, Viewed};

/// Columns of a line, unless a request says otherwise.
const WIDTH: u32 = 160;

/// Columns that a line may have.
fn columns(full: bool, width: Option<u32>) -> usize {
    match full {
        true => usize::MAX,
        false => width.unwrap_or(WIDTH) as usize,
    }
}
