//! A guard on a spawned thread: whatever happens to its holder, the thread comes to an end.
//!
//! Dropped without a word, by an early return or by a panic, it closes the thread as aborted, with what the digest can
//! tell of it. Dropping never fails and never panics: what cannot be written now stays marked in the table of threads and
//! is put right when the session is next opened for writing.

use super::chronicle::Telling;
use super::finish::{Finish, Finished};
use crate::error::Result;
use crate::thread::Thread;
use komado_core::journal::{Entry, Share};
use komado_store::Mode;
use std::ops::{Deref, DerefMut};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Why a thread ended of which nobody said so.
const DROPPED: &str = "nobody ended it: the work broke off";

/// A spawned thread that ends with its holder.
pub struct Child<'e> {
    thread: Thread<'e>,
    /// Whether the thread is still the guard's to end.
    is_held: bool,
}

impl<'e> Child<'e> {
    pub(super) fn new(thread: Thread<'e>) -> Self {
        Self { thread, is_held: true }
    }

    /// Ends the thread and tells its parent. A handle on another thread is no reason not to end it: the parent is then told
    /// when it is next at work. Words for its parent that are none are no reason either: the digest tells in their place,
    /// and why is said in [`Finished::declined`].
    pub fn end(mut self, parent: &mut Thread<'_>, mut finish: Finish<'_>) -> Result<Finished> {
        let wordless = finish.telling.check().err().map(|why| why.to_string());
        if wordless.is_some() {
            finish.telling = Telling::Digest;
        }
        let finished = self.thread.finish(finish)?;
        self.is_held = false;
        let (session, thread) = (self.thread.session().clone(), self.thread.id().clone());
        drop(self);
        let tended = if *parent.session() == session { parent.tend()? } else { Vec::new() };
        let is_told = tended.iter().any(|tended| tended.thread == thread);
        let declined = finished.declined.or(wordless);
        Ok(Finished { is_told, declined, ..finished })
    }

    /// Breaks the thread off, with what the digest can tell of it, and tells its parent.
    pub fn abort(self, parent: &mut Thread<'_>, why: Option<String>) -> Result<Finished> {
        self.end(parent, Finish::aborted(why))
    }

    /// Lets the thread wait, held by nobody, and tells its parent.
    pub fn pause(mut self, parent: &mut Thread<'_>, why: Option<String>) -> Result<Finished> {
        self.let_go()?;
        self.end(parent, Finish::paused(why))
    }

    /// Lets go of the thread: it outlives its holder and its process.
    pub fn detach(mut self) -> Result<Thread<'e>> {
        self.let_go()?;
        self.is_held = false;
        self.thread.settle()?;
        let (id, thread) = (self.thread.session().clone(), self.thread.id().clone());
        let (engine, calls, clip) = (self.thread.engine(), self.thread.on_open_calls, self.thread.clip());
        drop(self);
        Ok(engine.open_as_left(&id, &thread, Mode::Write)?.on_open_calls(calls).clipping(clip))
    }

    /// Says that nobody holds the thread any more.
    fn let_go(&mut self) -> Result<()> {
        if let Some(share) = self.thread.share()? {
            self.thread.append(Entry::Share(Share { held_by: None, ..share }))?;
        }
        self.thread.put_row()
    }
}

impl<'e> Deref for Child<'e> {
    type Target = Thread<'e>;

    fn deref(&self) -> &Self::Target {
        &self.thread
    }
}

impl DerefMut for Child<'_> {
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.thread
    }
}

impl Drop for Child<'_> {
    fn drop(&mut self) {
        if !self.is_held {
            return;
        }
        let thread = &mut self.thread;
        // There is nobody left to hear of a failure; the table of threads remembers that something is to be put right.
        let _ = catch_unwind(AssertUnwindSafe(|| thread.finish(Finish::aborted(Some(DROPPED.to_owned())))));
    }
}
