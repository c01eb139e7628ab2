//! The last rungs: what is too large is shown in part.
//!
//! First messages of the user that are older than the newest unit, then that unit itself: as much of it as fits, shared
//! fairly, the small ones whole and the large ones equally. Only when nothing else is left, the task and the latest
//! instruction, where they take more than half of what is usable. What is cut out is named, and can be read under the
//! entry's number.

use super::excerpt::Excerpt;
use super::{LadderStep, Rung, Scene};
use crate::Seq;
use crate::budget::share;
use crate::head::EntrySource;
use crate::journal::{Entry, Replace};
use crate::message::Message;
use crate::view::ShownItem;

/// How often what some texts leave of their part goes to the others.
const RAISES: u32 = 4;

/// Tokens below which nothing is cut while the request fits otherwise: some words, and what the rest is.
pub(super) const LEAST: u64 = 48;

/// What may be shown in part, and the fewest tokens that it can be shown in.
#[derive(Clone, Copy)]
struct Clippable {
    item: ShownItem,
    least: u64,
}

impl Clippable {
    fn whole(self) -> u64 {
        u64::from(self.item.tokens)
    }

    /// Tokens where none may have more than `cap`.
    fn within(self, cap: u64) -> u64 {
        cap.clamp(self.least, self.whole())
    }
}

impl<S: EntrySource + ?Sized> Scene<'_, S> {
    /// Where outputs do not become placeholders, and what is kept is counted in messages or turns: outputs that take more
    /// than a quarter of what is usable by themselves are cut first, so that one of them does not push everything else out.
    pub(super) fn clip_large(&self) -> Result<Option<LadderStep>, S::Error> {
        if self.budget.policy.rungs.trim || self.counts_movable() {
            return Ok(None);
        }
        let outputs = self.clippable(&self.blocks.outputs)?;
        Ok(replaced(self.cuts(&outputs, share(self.movable(), 0.25))?))
    }

    /// What reaches over the low mark, cut so that the view comes down to it: outputs or a reply, or else messages of the
    /// user that stay. `None` when nothing of worth would be left of them.
    pub(super) fn clip_older(&self) -> Result<Option<LadderStep>, S::Error> {
        let chosen = self.reaching_over().unwrap_or_else(|| self.blocks.recent.clone());
        let chosen = self.clippable(&chosen)?;
        let cap = level(&chosen, self.room(&chosen, self.marks.low));
        if cap < LEAST { Ok(None) } else { Ok(replaced(self.cuts(&chosen, cap)?)) }
    }

    /// What the model has not answered yet, cut to the room there is; its own words last. `None` while more than a quarter
    /// of what may move is something older that can still leave, or while parts of it would be cut to nothing.
    pub(super) fn clip_newest(&self) -> Result<Option<LadderStep>, S::Error> {
        let older = self.blocks.rest();
        if older == 0 {
            return self.clip_unanswered();
        }
        let newest = self.clippable(&self.blocks.newest)?;
        let spoken = self.clippable(self.blocks.spoken.as_slice())?;
        let unit = [newest.as_slice(), &spoken].concat();
        let fits = level(&unit, self.room(&unit, self.budget.usable)) >= LEAST;
        match fits && older <= share(self.movable(), 0.25) {
            true => Ok(replaced(self.clip_in_turn(&[&newest, &spoken])?)),
            false => Ok(None),
        }
    }

    /// The same, whatever else there is. Where that is not enough, the task and the latest instruction are cut with it,
    /// where they take more than half of what is usable. They are cut last: what a user asks for is worth more than half
    /// of the room for an answer. Where the request would still not fit, all of these are cut down to a few words.
    pub(super) fn clip_unanswered(&self) -> Result<Option<LadderStep>, S::Error> {
        let large = self.large()?;
        let newest = self.clippable(&self.blocks.newest)?;
        let spoken = self.clippable(self.blocks.spoken.as_slice())?;
        let large = self.clippable(&large)?;
        let mut cut = self.clip_in_turn(&[&newest, &spoken])?;
        let after = |cut: &[Replace]| self.tokens() - self.freed(cut);
        if after(&cut) > self.budget.stretch() && !large.is_empty() {
            cut = self.clip_in_turn(&[&newest, &spoken, &large])?;
        }
        if after(&cut) > self.budget.most() {
            let all = [newest, spoken, large].concat();
            cut = self.clip_into(&all, self.room(&all, self.budget.most()), 0)?;
        }
        Ok(replaced(cut))
    }

    /// The task and the latest instruction, once where they are one.
    pub(super) fn requests(&self) -> impl Iterator<Item = ShownItem> + '_ {
        let (task, instruction) = (self.blocks.task, self.blocks.instruction);
        task.into_iter().chain(instruction.filter(|item| Some(*item) != task))
    }

    /// Those of them that half of what is usable cannot hold, as they were said.
    pub(super) fn large(&self) -> Result<Vec<ShownItem>, S::Error> {
        let mut large = Vec::new();
        for item in self.requests() {
            if u64::from(self.source.head(item.seq)?.tokens) > self.budget.usable / 2 {
                large.push(item);
            }
        }
        Ok(large)
    }

    /// Tokens that `items` may have so that the view has no more than `most`.
    fn room(&self, items: &[Clippable], most: u64) -> u64 {
        most.saturating_sub(self.tokens() - tokens(items))
    }

    /// Groups of items cut so that the request fits, the first group before the second. The last one is cut to what the
    /// others leave when they are as short as they may be; what it leaves is theirs.
    fn clip_in_turn(&self, groups: &[&[Clippable]]) -> Result<Vec<Replace>, S::Error> {
        let mut room = self.room(&groups.concat(), self.budget.usable);
        let mut replace = Vec::new();
        for (i, group) in groups.iter().enumerate().rev() {
            let first: u64 = groups[..i].iter().copied().flatten().map(|part| part.within(LEAST)).sum();
            let cut = self.clip_into(group, room.saturating_sub(first), LEAST)?;
            room = room.saturating_sub(tokens(group) - self.freed(&cut));
            replace.extend(cut);
        }
        Ok(replace)
    }

    /// `items` cut to `room` tokens, none below `least`: the small ones whole, the large ones equally. What one cannot use
    /// of its part, the others take.
    fn clip_into(&self, items: &[Clippable], room: u64, least: u64) -> Result<Vec<Replace>, S::Error> {
        let mut cap = level(items, room).max(least);
        let mut cut = self.cuts(items, cap)?;
        for _ in 0..RAISES {
            let left = room.saturating_sub(tokens(items) - self.freed(&cut)) / (cut.len() as u64).max(1);
            cap = cap.saturating_add(left);
            let more = self.cuts(items, cap)?;
            if left == 0 || tokens(items) - self.freed(&more) > room {
                break;
            }
            cut = more;
        }
        Ok(cut)
    }

    /// Tokens that `replace` frees.
    fn freed(&self, replace: &[Replace]) -> u64 {
        let items = || self.blocks.newest.iter().copied().chain(self.blocks.spoken).chain(self.requests());
        let was = |seq| items().find(|item| item.seq == seq).map_or(0, |item| u64::from(item.tokens));
        replace.iter().map(|swap| was(swap.seq).saturating_sub(u64::from(swap.tokens))).sum()
    }

    /// Those of `items` that take more than `cap` tokens, cut to that.
    fn cuts(&self, items: &[Clippable], cap: u64) -> Result<Vec<Replace>, S::Error> {
        let mut replace = Vec::new();
        for item in items.iter().filter(|part| part.whole() > cap).map(|part| part.item) {
            let Some(message) = self.message(item)? else { continue };
            let excerpt = self.excerpt(item.seq, &message);
            let pays = |gone: &Replace| self.pays(u64::from(item.tokens), u64::from(gone.tokens));
            let swap = excerpt.words(cap).or_else(|| Some(excerpt.gone()).filter(pays));
            replace.extend(swap.filter(|swap| swap.tokens < item.tokens));
        }
        Ok(replace)
    }

    fn clippable(&self, items: &[ShownItem]) -> Result<Vec<Clippable>, S::Error> {
        items.iter().map(|&item| Ok(Clippable { item, least: self.least(item)? })).collect()
    }

    /// The fewest tokens that an item can be shown in.
    pub(super) fn least(&self, item: ShownItem) -> Result<u64, S::Error> {
        let Some(message) = self.message(item)? else { return Ok(u64::from(item.tokens)) };
        let excerpt = self.excerpt(item.seq, &message);
        let least = excerpt.least().unwrap_or_else(|| excerpt.gone()).tokens;
        Ok(u64::from(least.min(item.tokens)))
    }

    /// What was said there, whole.
    fn message(&self, item: ShownItem) -> Result<Option<Message>, S::Error> {
        Ok(match self.source.record(self.view.result(item.seq))?.entry {
            Entry::Message(message, _) => Some(message),
            _ => None,
        })
    }

    /// The message of entry `seq`, to be shown in part.
    pub(super) fn excerpt<'m>(&self, seq: Seq, message: &'m Message) -> Excerpt<'m> {
        Excerpt::of(self.meter, seq, message, self.reach)
    }
}

fn replaced(mut replace: Vec<Replace>) -> Option<LadderStep> {
    replace.sort_by_key(|swap| swap.seq);
    (!replace.is_empty()).then_some(LadderStep::Replace { rung: Rung::Clip, replace })
}

fn tokens(items: &[Clippable]) -> u64 {
    items.iter().map(|part| part.whole()).sum()
}

/// The most that each may have so that all fit into `room`: the small ones whole, the large ones equally; 0 when they do
/// not fit however short they are.
fn level(items: &[Clippable], room: u64) -> u64 {
    let taken = |cap| items.iter().map(|part| part.within(cap)).sum::<u64>();
    if taken(u64::MAX) <= room {
        return u64::MAX;
    }
    let (mut fits, mut over) = (0, items.iter().map(|part| part.whole()).max().unwrap_or(0));
    while over - fits > 1 {
        let cap = fits.midpoint(over);
        *(if taken(cap) <= room { &mut fits } else { &mut over }) = cap;
    }
    fits
}
