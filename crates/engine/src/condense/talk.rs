//! The conversation up to the end of what leaves, as it was last sent: for a summariser that goes on from it.

use super::Transcript;
use komado_core::head::Source;
use komado_core::journal::Setup;
use komado_core::message::Message;
use komado_core::view::{Item, What};
use komado_core::{Seq, View};
use std::cell::RefCell;
use std::io;

/// A view, up to an entry.
pub(super) struct Talk<'a, S: Source + ?Sized> {
    source: &'a S,
    view: &'a View,
    /// The items, a few bytes each.
    items: Vec<Item>,
    tokens: u64,
    /// What went wrong while reading; the trait has no room for it.
    pub(super) fault: RefCell<Option<S::Error>>,
}

impl<'a, S: Source + ?Sized> Talk<'a, S> {
    pub(super) fn upto(source: &'a S, view: &'a View, last: Seq) -> Result<Self, S::Error> {
        let all = view.items(source)?;
        let is_after = |item: &Item| !matches!(item.what, What::Shown) && item.seq > last;
        let end = all.iter().position(is_after).unwrap_or(all.len());
        let items = all[..end].to_vec();
        let before = view.weight().setup + view.weight().above;
        let tokens = items.iter().map(|item| u64::from(item.tokens)).sum::<u64>() + before;
        Ok(Self { source, view, items, tokens, fault: RefCell::new(None) })
    }

    fn note<T>(&self, result: Result<T, S::Error>) -> io::Result<T> {
        result.map_err(|fault| {
            *self.fault.borrow_mut() = Some(fault);
            io::Error::other("the conversation could not be read")
        })
    }
}

/// Where reading and handing on meet.
enum Stopped<E> {
    Read(E),
    Put(io::Error),
}

impl<E> From<E> for Stopped<E> {
    fn from(error: E) -> Self {
        Self::Read(error)
    }
}

impl<S: Source + ?Sized> Transcript for Talk<'_, S> {
    fn tokens(&self) -> u64 {
        self.tokens
    }

    fn setup(&self) -> io::Result<Setup> {
        self.note(self.view.setup_in(self.source))
    }

    fn pour(&self, each: &mut dyn FnMut(&Message) -> io::Result<()>) -> io::Result<()> {
        let mut put = |_: Seq, message: &Message| each(message).map_err(Stopped::<S::Error>::Put);
        let above = self.view.pour_above(self.source, &mut put);
        let all = above.and_then(|()| {
            self.items.iter().try_for_each(|item| self.view.pour_item(self.source, *item, &mut put))
        });
        match all {
            Ok(()) => Ok(()),
            Err(Stopped::Put(error)) => Err(error),
            Err(Stopped::Read(fault)) => self.note(Err(fault)),
        }
    }
}
