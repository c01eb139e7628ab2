//! Which part of a thread its children see: chosen once, when they start, and never taken from them.
//!
//! First what must stay: system prompt, tools, system messages at the beginning, pins, and the anchors that say how the
//! child came to be. Then the newest request of the user, because it says what all is about: in part, when it does not fit
//! whole. Then the newest units, one after the other, as long as they fit: a call with its results comes whole or not at
//! all, and calls that still wait do not come. A unit that would fill a large part of the room by itself and does not fit
//! is passed over, so that one long output does not leave the child blind.

use crate::head::{EntrySource, Kind};
use crate::journal::{Entry, Ratio, Replace, Setup, Share, Slice};
use crate::ladder::clipped;
use crate::view::{ItemSource, ShownItem};
use crate::{Message, Meter, Seq, Span, ThreadId, View};

/// Whose tools are offered.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SliceTools {
    /// Those of this thread: they count.
    Offered,
    /// Those of a thread further down.
    Left,
}

/// What a slice is cut from, and how large it may be.
pub struct SliceCut<'a> {
    /// The thread.
    pub thread: &'a ThreadId,
    /// Its last entry that counts.
    pub at: Seq,
    /// What the next thread down has of its window.
    pub ratio: Ratio,
    /// Most tokens of the slice.
    pub most: u64,
    /// Says, before the items, whose they are.
    pub head: String,
    /// Whose tools are offered.
    pub tools: SliceTools,
    /// True for the thread that will see the slice, and those above it.
    pub within: &'a dyn Fn(&ThreadId) -> bool,
}

/// What must stay is more than the share holds.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "what must be seen of thread {thread} (system prompt, tools, pins, and a heading that says whose they are) takes {must} \
     tokens, and there is room for {most}: give the child less of the window, unpin something, or shorten the setup"
)]
pub struct SliceTooLarge {
    /// The thread.
    pub thread: ThreadId,
    /// Tokens of what must stay.
    pub must: u64,
    /// Most tokens of the slice.
    pub most: u64,
}

/// A unit of more than this part of the room, in which it does not fit, is passed over; a smaller one ends the slice.
const LARGE: u64 = 4;

/// Items that are shown together or not at all.
struct Unit {
    items: std::ops::Range<usize>,
    tokens: u64,
    is_user: bool,
    taken: bool,
}

/// Cuts a slice.
pub fn cut<S: EntrySource + ?Sized>(
    source: &S,
    meter: Meter,
    cut: SliceCut<'_>,
) -> Result<Result<Slice, SliceTooLarge>, S::Error> {
    let view = View::fold(source, cut.at)?;
    let items = view.items(source)?;
    let mut units = units(source, &view, meter, &items, cut.within)?;
    let setup = view.own_setup(source)?.map_or(0, |setup| weigh(meter, &setup, cut.tools));
    let before = setup + u64::from(meter.said(&cut.head));
    let must = before + units.iter().filter(|unit| unit.taken).map(|unit| unit.tokens).sum::<u64>();
    if must > cut.most {
        return Ok(Err(SliceTooLarge { thread: cut.thread.clone(), must, most: cut.most }));
    }
    let replace = clip_request(source, &view, meter, &items, &mut units, cut.most - must)?;
    let tokens = fill(&mut units, must, cut.most);
    Ok(Ok(Slice {
        thread: cut.thread.clone(),
        at: cut.at,
        ratio: cut.ratio,
        keep: spans(&items, &units),
        replace: replace.into_iter().collect(),
        head: cut.head,
        tokens: u32::try_from(tokens).unwrap_or(u32::MAX),
    }))
}

/// The slices of `share`, counted anew: after the tools that are offered changed hands, or for a thread that sees other
/// anchors in brief. `tools` says whether those of the threads above are offered, or the thread's own.
pub fn counted<S: EntrySource + ?Sized>(
    source: &S,
    meter: Meter,
    share: &Share,
    mut tools: SliceTools,
) -> Result<Vec<Slice>, S::Error> {
    let within = |thread: &ThreadId| share.is_within(thread);
    let mut slices = share.slices.clone();
    for slice in slices.iter_mut().rev() {
        let above = source.above(&slice.thread)?;
        let view = View::fold(&*above, slice.at)?;
        let mut tokens = u64::from(meter.said(&slice.head));
        for item in view.items(&*above)?.iter().filter(|item| slice.keeps(item.seq)) {
            if let Some(swap) = slice.replaced(item.seq) {
                tokens += u64::from(swap.tokens);
                continue;
            }
            let brief = brief(&*above, item, above.head(item.seq)?.kind, &within)?;
            tokens += u64::from(brief.map_or(item.tokens, |brief| meter.said(&brief)));
        }
        if let Some(setup) = view.own_setup(&*above)? {
            tokens += weigh(meter, &setup, tools);
            if setup.tools.is_some() {
                tools = SliceTools::Left;
            }
        }
        slice.tokens = u32::try_from(tokens).unwrap_or(u32::MAX);
    }
    Ok(slices)
}

impl SliceTools {
    /// Whose tools are offered to the threads above one with this setup.
    pub fn above(setup: Option<&Setup>) -> Self {
        match setup.and_then(|setup| setup.tools.as_ref()) {
            Some(_) => Self::Left,
            None => Self::Offered,
        }
    }
}

/// The newest request in part, when it is larger than the room: at most half of it, so that something newer fits beside
/// it. None when it fits whole, or when not even a line in its place does.
fn clip_request<S: EntrySource + ?Sized>(
    source: &S,
    view: &View,
    meter: Meter,
    items: &[ShownItem],
    units: &mut [Unit],
    room: u64,
) -> Result<Option<Replace>, S::Error> {
    let request = units.iter_mut().rev().find(|unit| unit.is_user);
    let Some(request) = request.filter(|unit| !unit.taken && unit.tokens > room) else { return Ok(None) };
    let item = items[request.items.start];
    let mut said: Option<Message> = None;
    view.pour_item(source, item, &mut |_: Seq, message: &Message| {
        said = Some(message.clone());
        Ok::<(), S::Error>(())
    })?;
    let swap = said.map(|message| clipped(meter, item.seq, &message, room / 2));
    let swap = swap.filter(|swap| u64::from(swap.tokens) <= room);
    if let Some(swap) = &swap {
        request.tokens = u64::from(swap.tokens);
    }
    Ok(swap)
}

/// Takes the newest request, then the newest units; gives the tokens then.
fn fill(units: &mut [Unit], mut tokens: u64, most: u64) -> u64 {
    let mut take = |unit: &mut Unit| {
        let fits = unit.taken || tokens + unit.tokens <= most;
        if fits && !unit.taken {
            tokens += unit.tokens;
            unit.taken = true;
        }
        fits || unit.tokens > most / LARGE
    };
    if let Some(request) = units.iter_mut().rev().find(|unit| unit.is_user) {
        take(request);
    }
    for unit in units.iter_mut().rev() {
        if !take(unit) {
            break;
        }
    }
    tokens
}

/// The items of a view as units, without the one that still waits for results; those that must stay are taken.
fn units<S: EntrySource + ?Sized>(
    source: &S,
    view: &View,
    meter: Meter,
    items: &[ShownItem],
    within: &dyn Fn(&ThreadId) -> bool,
) -> Result<Vec<Unit>, S::Error> {
    let mut units: Vec<(Seq, Unit)> = Vec::new();
    let mut leading = true;
    for (i, item) in items.iter().enumerate() {
        let head = source.head(item.seq)?;
        let shown = item.what == ItemSource::Shown;
        leading &= head.kind == Kind::System && !shown;
        let of = if shown { item.seq } else { head.unit };
        if !shown && of == view.open().unit {
            continue;
        }
        let mut taken = leading || (!shown && view.is_pinned(item.seq));
        let mut tokens = u64::from(item.tokens);
        if let Some(brief) = brief(source, item, head.kind, within)? {
            // It says how the thread that sees the slice came to be.
            (taken, tokens) = (true, u64::from(meter.said(&brief)));
        }
        match units.last_mut() {
            Some((last, unit)) if *last == of && !shown => {
                unit.items.end = i + 1;
                unit.tokens += tokens;
                unit.taken |= taken;
            }
            _ => {
                let is_user = head.kind == Kind::User && !shown;
                units.push((of, Unit { items: i..i + 1, tokens, is_user, taken }));
            }
        }
    }
    Ok(units.into_iter().map(|(_, unit)| unit).collect())
}

/// What an anchor says to those below it, when it is one of theirs.
fn brief<S: EntrySource + ?Sized>(
    source: &S,
    item: &ShownItem,
    kind: Kind,
    within: &dyn Fn(&ThreadId) -> bool,
) -> Result<Option<String>, S::Error> {
    if kind != Kind::Anchor {
        return Ok(None);
    }
    Ok(match source.record(item.seq)?.entry {
        Entry::Anchor(anchor) if within(&anchor.thread) => anchor.brief,
        _ => None,
    })
}

/// Tokens of what a thread adds to the setup.
fn weigh(meter: Meter, setup: &Setup, tools: SliceTools) -> u64 {
    let tools = setup.tools.clone().filter(|_| tools == SliceTools::Offered);
    u64::from(meter.setup(&Setup { tools, system: setup.system.clone(), ..Setup::default() }))
}

/// The numbers of what is taken, as few spans as hold nothing else that is shown.
fn spans(items: &[ShownItem], units: &[Unit]) -> Vec<Span> {
    let mut taken = vec![false; items.len()];
    for unit in units.iter().filter(|unit| unit.taken) {
        taken[unit.items.clone()].fill(true);
    }
    let mut rows: Vec<(Seq, bool)> = items.iter().map(|item| item.seq).zip(taken).collect();
    rows.sort_unstable();
    let mut spans: Vec<Span> = Vec::new();
    let mut open = false;
    for (seq, taken) in rows {
        match spans.last_mut() {
            Some(span) if taken && open => span.to = seq,
            _ if taken => spans.push(Span::new(seq, seq)),
            _ => {}
        }
        open = taken;
    }
    spans
}
