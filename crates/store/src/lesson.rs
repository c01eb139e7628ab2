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

    /// Everything that is known, by name.
    fn lessons(&self) -> Result<Vec<(String, String)>>;

    /// Puts `new` in the place of `old`, in one step; false when something else is known by now.
    fn put_lesson(&self, about: &str, old: Option<&str>, new: &str) -> Result<bool>;

    /// Forgets what is known about `about`; false when nothing was.
    fn forget(&self, about: &str) -> Result<bool>;

    /// Changes what is known about `about`. What another process learned in between is read, and learned on top of.
    fn learn(&self, about: &str, learning: &mut Learning<'_>) -> Result<()> {
        loop {
            let old = self.lesson(about)?;
            let Some(new) = learning(old.as_deref()) else { return Ok(()) };
            if self.put_lesson(about, old.as_deref(), &new)? {
                return Ok(());
            }
        }
    }
}
