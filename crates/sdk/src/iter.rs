//! What a conversation holds, one thing at a time.

use crate::error::{Error, Result};
use komado_core::view::ShownItem;
use komado_core::{Message, Record, Role, Seq, SessionId, View};
use komado_engine::Thread;
use komado_store::{SessionQuery, Store};
use std::collections::VecDeque;
use std::fmt;
use std::ops::RangeInclusive;

pub use komado_core::session::Session as SessionInfo;

/// Sessions that are fetched at a time.
const PAGE: usize = 100;

/// A message as the model sees it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SeenMessage {
    /// The entry it comes from; of a summary, the edit that shows it.
    pub seq: Seq,
    /// The message.
    pub message: Message,
}

impl SeenMessage {
    /// The speaker's role.
    pub fn role(&self) -> Role {
        self.message.role
    }

    /// All words, without calls and reasoning.
    pub fn text(&self) -> String {
        self.message.words()
    }
}

/// `@4 user: …`
impl fmt::Display for SeenMessage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "@{} {}: {}", self.seq, self.role().name(), self.text())
    }
}

/// The messages of a view, in order; each is read when it is its turn.
pub struct Messages<'s> {
    thread: &'s Thread<'s>,
    view: View,
    items: std::vec::IntoIter<ShownItem>,
    ready: VecDeque<SeenMessage>,
    failed: Option<Error>,
}

impl<'s> Messages<'s> {
    pub(crate) fn new(thread: &'s Thread<'s>, view: View) -> Self {
        let (ready, items) = (VecDeque::new(), Vec::new().into_iter());
        let mut messages = Self { thread, view, items, ready, failed: None };
        messages.failed = messages.begin().err();
        messages
    }

    /// What stands before the thread's own items: the system prompt, and what is seen of the threads above.
    fn begin(&mut self) -> Result<()> {
        let source = self.thread.source();
        let store = komado_engine::Error::from;
        let setup = self.view.setup().or(self.view.share());
        let system = self.view.setup_in(source).map_err(store)?.system;
        if let (Some(seq), Some(system)) = (setup, system) {
            self.ready.push_back(SeenMessage { seq, message: Message::text(Role::System, system) });
        }
        self.view.pour_above(source, &mut collect(&mut self.ready)).map_err(store)?;
        self.items = self.view.items(source).map_err(store)?.into_iter();
        Ok(())
    }
}

fn collect(ready: &mut VecDeque<SeenMessage>) -> impl FnMut(Seq, &Message) -> komado_store::Result<()> {
    |seq, message| {
        ready.push_back(SeenMessage { seq, message: message.clone() });
        Ok(())
    }
}

impl Iterator for Messages<'_> {
    type Item = Result<SeenMessage>;

    fn next(&mut self) -> Option<Self::Item> {
        if let Some(error) = self.failed.take() {
            self.items = Vec::new().into_iter();
            return Some(Err(error));
        }
        loop {
            if let Some(message) = self.ready.pop_front() {
                return Some(Ok(message));
            }
            let item = self.items.next()?;
            let poured = self.view.pour_item(self.thread.source(), item, &mut collect(&mut self.ready));
            if let Err(error) = poured {
                self.items = Vec::new().into_iter();
                return Some(Err(error.into()));
            }
        }
    }
}

/// The entries of a journal, in order; each is read when it is its turn.
pub struct Entries<'s> {
    thread: &'s Thread<'s>,
    left: RangeInclusive<Seq>,
}

impl<'s> Entries<'s> {
    pub(crate) fn new(thread: &'s Thread<'s>) -> Self {
        Self { thread, left: 1..=thread.last() }
    }
}

impl Iterator for Entries<'_> {
    type Item = Result<Record>;

    fn next(&mut self) -> Option<Self::Item> {
        self.nth(0)
    }

    /// Those that are skipped are not read.
    fn nth(&mut self, n: usize) -> Option<Self::Item> {
        Some(self.thread.record(self.left.nth(n)?).map_err(Error::from))
    }
}

impl DoubleEndedIterator for Entries<'_> {
    fn next_back(&mut self) -> Option<Self::Item> {
        Some(self.thread.record(self.left.next_back()?).map_err(Error::from))
    }
}

/// Sessions, in the order they were made; they are fetched a page at a time.
pub struct Sessions<'k> {
    store: &'k dyn Store,
    page: std::vec::IntoIter<SessionInfo>,
    after: Option<(String, SessionId)>,
    is_done: bool,
}

impl<'k> Sessions<'k> {
    pub(crate) fn new(store: &'k dyn Store) -> Self {
        Self { store, page: Vec::new().into_iter(), after: None, is_done: false }
    }

    fn fetch(&mut self) -> Result<()> {
        let query = SessionQuery { after: self.after.take(), limit: PAGE, ..SessionQuery::default() };
        let page = self.store.sessions(&query)?;
        self.is_done = page.len() < PAGE;
        if let Some(last) = page.last() {
            self.after = Some((last.meta.created_at.clone(), SessionId::new(last.meta.uuid.as_str())?));
        }
        self.page = page.into_iter();
        Ok(())
    }
}

impl Iterator for Sessions<'_> {
    type Item = Result<SessionInfo>;

    fn next(&mut self) -> Option<Self::Item> {
        if let Some(session) = self.page.next() {
            return Some(Ok(session));
        }
        if self.is_done {
            return None;
        }
        match self.fetch() {
            Ok(()) => self.page.next().map(Ok),
            Err(error) => {
                self.is_done = true;
                Some(Err(error))
            }
        }
    }
}
