//! What was learned about models, kept for next time.
//!
//! A lesson is a small JSON text under a name (a base URL and a model). What it says is the engine's business; a store
//! keeps it whole, and lets two who learn at once both be heard.

use crate::Result;

/// From the old text to the new one; `None` to leave it as it is.
pub type Learning<'a> = dyn FnMut(Option<&str>) -> Option<String> + 'a;

/// What was learned.
pub trait Lessons: Send + Sync {
    /// What is known about `about`.
    fn lesson(&self, about: &str) -> Result<Option<String>>;

    /// Changes what is known about `about`, in one step: nobody else learns between reading and writing.
    fn learn(&self, about: &str, learning: &mut Learning<'_>) -> Result<()>;

    /// Everything that is known, by name.
    fn lessons(&self) -> Result<Vec<(String, String)>>;

    /// Forgets what is known about `about`; false when nothing was.
    fn forget(&self, about: &str) -> Result<bool>;
}
