//! From the index of a view to messages, one at a time.
//!
//! A message is read, handed on and forgotten; nothing here holds two of them.

use super::View;
use super::layout::{Item, What};
use super::swaps::Swaps;
use crate::head::Source;
use crate::journal::{Anchor, Entry, Show};
use crate::message::{Message, Role};
use crate::{Seq, ThreadId};

/// A summary or marker as the model sees it: a user's message, word for word.
pub fn shown_message(show: &Show) -> Message {
    Message::text(Role::User, &show.text)
}

impl View {
    /// Hands every message the model sees to `pour`, system prompt first.
    pub fn pour<S: Source + ?Sized, E: From<S::Error>>(
        &self,
        source: &S,
        pour: &mut impl FnMut(Seq, &Message) -> Result<(), E>,
    ) -> Result<(), E> {
        if let Some(seq) = self.setup().or(self.share())
            && let Some(system) = &self.setup_in(source)?.system
        {
            pour(seq, &Message::text(Role::System, system))?;
        }
        self.pour_said(source, pour)
    }

    /// Hands on the same without the system prompt, for whoever writes that elsewhere.
    pub fn pour_said<S: Source + ?Sized, E: From<S::Error>>(
        &self,
        source: &S,
        pour: &mut impl FnMut(Seq, &Message) -> Result<(), E>,
    ) -> Result<(), E> {
        self.pour_above(source, pour)?;
        let mut swaps = Swaps::default();
        self.try_each_item(source, |item| pour_item(source, item, &mut swaps, None, pour))
    }

    /// Hands on what one item shows.
    pub fn pour_item<S: Source + ?Sized, E: From<S::Error>>(
        &self,
        source: &S,
        item: Item,
        pour: &mut impl FnMut(Seq, &Message) -> Result<(), E>,
    ) -> Result<(), E> {
        pour_item(source, item, &mut Swaps::default(), None, pour)
    }

    /// Hands on only what was said after entry `after`. For a caller who knows that no operation came since: then this
    /// is what [`View::pour`] would add to what it gave at `after`.
    pub fn pour_since<S: Source + ?Sized, E: From<S::Error>>(
        &self,
        source: &S,
        after: Seq,
        pour: &mut impl FnMut(Seq, &Message) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut swaps = Swaps::default();
        for seq in after + 1..=self.last() {
            let kind = source.head(seq)?.kind;
            if kind.is_item() {
                let item = Item { seq, what: What::Said(kind), tokens: 0 };
                pour_item(source, item, &mut swaps, None, pour)?;
            }
        }
        Ok(())
    }
}

/// Hands on what one item shows; `within` is true for threads whose anchors are shown in brief.
pub(super) fn pour_item<S: Source + ?Sized, E: From<S::Error>>(
    source: &S,
    item: Item,
    swaps: &mut Swaps,
    within: Option<&dyn Fn(&ThreadId) -> bool>,
    pour: &mut impl FnMut(Seq, &Message) -> Result<(), E>,
) -> Result<(), E> {
    match (item.what, source.record(item.seq)?.entry) {
        (What::Said(_), Entry::Message(message, _)) => pour(item.seq, &message),
        (_, Entry::Anchor(Anchor { thread, brief: Some(brief), .. }))
            if within.is_some_and(|within| within(&thread)) =>
        {
            pour(item.seq, &Message::text(Role::System, brief))
        }
        (What::Said(_), Entry::Anchor(anchor)) => pour(item.seq, &Message::text(Role::System, anchor.text)),
        (What::Shown, Entry::Edit(edit)) => {
            edit.show.iter().try_for_each(|show| pour(item.seq, &shown_message(show)))
        }
        (What::Replaced(by), Entry::Anchor(_)) => match source.record(by)?.entry {
            Entry::Anchor(now) => pour(item.seq, &Message::text(Role::System, now.text)),
            _ => Ok(()),
        },
        (What::Replaced(by), Entry::Message(message, _)) => {
            pour(item.seq, &message.saying(swaps.text(source, item.seq, by)?))
        }
        _ => Ok(()),
    }
}
