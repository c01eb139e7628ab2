//! From the index of a view to messages, one at a time.
//!
//! A message is read, handed on and forgotten; nothing here holds two of them.

use super::View;
use super::layout::{ItemSource, ReplacedTexts, ShownItem};
use crate::head::EntrySource;
use crate::journal::{Anchor, Entry, Setup, Share, Show};
use crate::message::{Message, Role};
use crate::{Seq, ThreadId};

/// A summary or marker as the model sees it: a user's message, word for word.
pub fn shown_message(show: &Show) -> Message {
    Message::text(Role::User, &show.text)
}

impl View {
    /// Hands every message the model sees to `pour`, system prompt first.
    pub fn pour<S: EntrySource + ?Sized, E: From<S::Error>>(
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

    /// Hands on the same without the system prompt, for callers that write that elsewhere.
    pub fn pour_said<S: EntrySource + ?Sized, E: From<S::Error>>(
        &self,
        source: &S,
        pour: &mut impl FnMut(Seq, &Message) -> Result<(), E>,
    ) -> Result<(), E> {
        self.pour_above(source, pour)?;
        let mut swaps = ReplacedTexts::default();
        self.try_each_item(source, |item| pour_item(self, source, item, &mut swaps, None, pour))
    }

    /// Hands on what one item shows.
    pub fn pour_item<S: EntrySource + ?Sized, E: From<S::Error>>(
        &self,
        source: &S,
        item: ShownItem,
        pour: &mut impl FnMut(Seq, &Message) -> Result<(), E>,
    ) -> Result<(), E> {
        pour_item(self, source, item, &mut ReplacedTexts::default(), None, pour)
    }

    /// Hands on only what was said after entry `after`. For a caller who knows that no operation came since: then this
    /// is what [`View::pour`] would add to what it gave at `after`.
    pub fn pour_since<S: EntrySource + ?Sized, E: From<S::Error>>(
        &self,
        source: &S,
        after: Seq,
        pour: &mut impl FnMut(Seq, &Message) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut swaps = ReplacedTexts::default();
        for seq in after + 1..=self.last() {
            let kind = source.head(seq)?.kind;
            if kind.is_item() {
                let item = ShownItem { seq, what: ItemSource::Said(kind), tokens: 0 };
                pour_item(self, source, item, &mut swaps, None, pour)?;
            }
        }
        Ok(())
    }
}

/// Hands on what one item shows; `within` is true for threads whose anchors are shown in brief.
pub(super) fn pour_item<S: EntrySource + ?Sized, E: From<S::Error>>(
    view: &View,
    source: &S,
    item: ShownItem,
    swaps: &mut ReplacedTexts,
    within: Option<&dyn Fn(&ThreadId) -> bool>,
    pour: &mut impl FnMut(Seq, &Message) -> Result<(), E>,
) -> Result<(), E> {
    match (item.what, source.record(item.seq)?.entry) {
        (ItemSource::Said(_), Entry::Message(message, _)) => pour(item.seq, &message),
        (_, Entry::Anchor(Anchor { thread, brief: Some(brief), .. }))
            if within.is_some_and(|within| within(&thread)) =>
        {
            pour(item.seq, &Message::text(Role::System, brief))
        }
        (ItemSource::Said(_), Entry::Anchor(anchor)) => {
            pour(item.seq, &Message::text(Role::System, anchor.text))
        }
        (ItemSource::Shown, Entry::Edit(edit)) => {
            edit.show.iter().try_for_each(|show| pour(item.seq, &shown_message(show)))
        }
        (ItemSource::Replaced(by), Entry::Anchor(_)) => match source.record(by)?.entry {
            Entry::Anchor(now) => pour(item.seq, &Message::text(Role::System, now.text)),
            _ => Ok(()),
        },
        (ItemSource::Replaced(by), Entry::Message(said, _)) => {
            let last = view.result(item.seq);
            let message = match last == item.seq {
                true => said,
                false => message_at(source, last)?.unwrap_or(said),
            };
            if by == last {
                return pour(item.seq, &message);
            }
            pour(item.seq, &message.saying(swaps.text(source, item.seq, by)?))
        }
        _ => Ok(()),
    }
}

fn message_at<S: EntrySource + ?Sized>(source: &S, seq: Seq) -> Result<Option<Message>, S::Error> {
    Ok(match source.record(seq)?.entry {
        Entry::Message(message, _) => Some(message.in_place()),
        _ => None,
    })
}

// What a spawned thread sees of the threads above it.
//
// Their journals are looked up at the moments that the share names, so what is shown does not move while those threads
// go on. System prompts are joined, the root's first; of the tools those of the nearest thread that has any are offered.

impl View {
    /// The share in force.
    pub fn share_in<S: EntrySource + ?Sized>(&self, source: &S) -> Result<Option<Share>, S::Error> {
        let Some(seq) = self.share() else { return Ok(None) };
        Ok(match source.record(seq)?.entry {
            Entry::Share(share) => Some(share),
            _ => None,
        })
    }

    /// The setup that the thread itself says.
    pub fn own_setup<S: EntrySource + ?Sized>(&self, source: &S) -> Result<Option<Setup>, S::Error> {
        let Some(seq) = self.setup() else { return Ok(None) };
        Ok(match source.record(seq)?.entry {
            Entry::Setup(setup) => Some(setup),
            _ => None,
        })
    }

    /// System prompt, tools and parameters in force, those of the threads above included.
    pub fn setup_in<S: EntrySource + ?Sized>(&self, source: &S) -> Result<Setup, S::Error> {
        let mut setup = Setup::default();
        if let Some(share) = self.share_in(source)? {
            for slice in &share.slices {
                let above = source.above(&slice.thread)?;
                let view = Self::fold(&*above, slice.at)?;
                join(&mut setup, view.own_setup(&*above)?.unwrap_or_default());
            }
        }
        join(&mut setup, self.own_setup(source)?.unwrap_or_default());
        Ok(setup)
    }

    /// Hands on what the share keeps of the threads above.
    pub fn pour_above<S: EntrySource + ?Sized, E: From<S::Error>>(
        &self,
        source: &S,
        pour: &mut impl FnMut(Seq, &Message) -> Result<(), E>,
    ) -> Result<(), E> {
        let (Some(seq), Some(share)) = (self.share(), self.share_in(source)?) else { return Ok(()) };
        for slice in &share.slices {
            pour(seq, &Message::text(Role::User, &slice.head))?;
            let above = source.above(&slice.thread)?;
            let view = Self::fold(&*above, slice.at)?;
            let mut swaps = ReplacedTexts::default();
            let mut onto = |item: Seq, message: &Message| match slice.replaced(item) {
                Some(swap) => pour(seq, &message.saying(&swap.text)),
                None => pour(seq, message),
            };
            let within = |thread: &ThreadId| share.is_within(thread);
            view.try_each_item(&*above, |item| match slice.keeps(item.seq) {
                true => pour_item(&view, &*above, item, &mut swaps, Some(&within), &mut onto),
                false => Ok(()),
            })?;
        }
        Ok(())
    }
}

/// Takes in the setup of a thread further down.
fn join(setup: &mut Setup, below: Setup) {
    setup.system = match (setup.system.take(), below.system) {
        (Some(above), Some(own)) => Some(format!("{above}\n\n{own}")),
        (above, own) => own.or(above),
    };
    if below.tools.is_some() {
        (setup.tools, setup.dialect) = (below.tools, below.dialect);
    } else if setup.tools.is_none() && below.dialect.is_some() {
        setup.dialect = below.dialect;
    }
    if below.params.is_some() {
        setup.params = below.params;
    }
}
