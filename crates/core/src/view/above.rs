//! What a spawned thread sees of the threads above it.
//!
//! Their journals are looked up at the moments that the share names, so what is shown does not move while those threads
//! go on. System prompts are joined, the root's first; of the tools those of the nearest thread that has any are offered.

use super::View;
use super::render::pour_item;
use super::swaps::Swaps;
use crate::head::Source;
use crate::journal::{Entry, Setup, Share};
use crate::message::{Message, Role};
use crate::{Seq, ThreadId};

impl View {
    /// The share in force.
    pub fn share_in<S: Source + ?Sized>(&self, source: &S) -> Result<Option<Share>, S::Error> {
        let Some(seq) = self.share() else { return Ok(None) };
        Ok(match source.record(seq)?.entry {
            Entry::Share(share) => Some(share),
            _ => None,
        })
    }

    /// The setup that the thread itself says.
    pub fn own_setup<S: Source + ?Sized>(&self, source: &S) -> Result<Option<Setup>, S::Error> {
        let Some(seq) = self.setup() else { return Ok(None) };
        Ok(match source.record(seq)?.entry {
            Entry::Setup(setup) => Some(setup),
            _ => None,
        })
    }

    /// System prompt, tools and parameters in force, those of the threads above included.
    pub fn setup_in<S: Source + ?Sized>(&self, source: &S) -> Result<Setup, S::Error> {
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
    pub fn pour_above<S: Source + ?Sized, E: From<S::Error>>(
        &self,
        source: &S,
        pour: &mut impl FnMut(Seq, &Message) -> Result<(), E>,
    ) -> Result<(), E> {
        let (Some(seq), Some(share)) = (self.share(), self.share_in(source)?) else { return Ok(()) };
        for slice in &share.slices {
            pour(seq, &Message::text(Role::User, &slice.head))?;
            let above = source.above(&slice.thread)?;
            let view = Self::fold(&*above, slice.at)?;
            let mut swaps = Swaps::default();
            let mut onto = |item: Seq, message: &Message| match slice.replaced(item) {
                Some(swap) => pour(seq, &message.saying(&swap.text)),
                None => pour(seq, message),
            };
            let within = |thread: &ThreadId| share.is_within(thread);
            view.try_each_item(&*above, |item| match slice.keeps(item.seq) {
                true => pour_item(&*above, item, &mut swaps, Some(&within), &mut onto),
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
