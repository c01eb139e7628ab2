//! What hears of an answer while it comes.

use super::Answered;
use komado_engine::engine::Found;
use komado_engine::exchange::News;
use komado_provider::Cancel;

/// Hears what happens while a question is answered, and may stop it.
pub trait Listener {
    /// The thread is known, and nothing was said in it yet.
    fn begun(&mut self, _found: &Found) {}

    /// The question is in the journal.
    fn kept(&mut self) {}

    /// Something happens.
    fn news(&mut self, _news: News<'_>) {}

    /// The answer is in the journal.
    fn answered(&mut self, _answered: &Answered) {}

    /// What stops the requests that follow.
    fn cancel(&mut self) -> Cancel {
        Cancel::default()
    }
}

/// Hears nothing.
#[derive(Clone, Copy, Debug)]
pub struct Silent;

impl Listener for Silent {}
