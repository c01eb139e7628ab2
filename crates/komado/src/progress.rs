//! How far something long has come, for whoever watches a terminal.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use komado_ops::Progress;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// A bar for less than so many entries would only flicker.
const FEWEST: u64 = 2000;

/// The bar of the operation that runs.
#[derive(Clone, Default)]
pub(crate) struct Shown(Arc<Mutex<Option<ProgressBar>>>);

impl Shown {
    /// Shows how far an operation has come.
    pub(crate) fn show(&self, at: Progress) {
        let (what, done, total) = match at {
            Progress::Indexing { total, .. } if total <= FEWEST => return,
            Progress::Indexing { done, total } => ("indexing", done, Some(total)),
            Progress::Appending { entries } => ("entries", entries, None),
            Progress::Reading { sessions, .. } => ("sessions", sessions, None),
            Progress::Checking { done, total } => ("checking", done, total),
            Progress::Migrating { done, total } => ("sessions", done, total),
            Progress::Importing { lines } => ("lines", lines, None),
            Progress::Replaying { done, total } => ("replaying", done, Some(total)),
        };
        let mut held = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let shown = held.get_or_insert_with(|| match total {
            Some(total) => bar(what, total),
            None => spinner(what),
        });
        total.into_iter().for_each(|total| shown.set_length(total));
        shown.set_position(done);
    }

    /// Takes the bar away.
    pub(crate) fn clear(&self) {
        if let Some(shown) = self.0.lock().unwrap_or_else(PoisonError::into_inner).take() {
            shown.finish_and_clear();
        }
    }
}

/// A bar on standard error; nothing at all where that is no terminal.
pub(crate) fn bar(what: &'static str, total: u64) -> ProgressBar {
    let bar = ProgressBar::with_draw_target(Some(total), ProgressDrawTarget::stderr_with_hz(8));
    let style = ProgressStyle::with_template("{msg} {wide_bar} {percent:>3}% {eta}");
    bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
    bar.set_message(what);
    bar
}

/// The same for something whose end is not known.
pub(crate) fn spinner(what: &'static str) -> ProgressBar {
    let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr_with_hz(8));
    let style = ProgressStyle::with_template("{spinner} {msg} {human_pos} {elapsed}");
    bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_spinner()));
    bar.set_message(what);
    bar.enable_steady_tick(Duration::from_millis(120));
    bar
}
