//! A line of threads, each spawned from the one before, with random journals.

use crate::ladder::play::Play;
use crate::ladder::stage::{self, go_on};
use komado_core::head::EntrySource;
use komado_core::journal::{Anchor, Entry, Ratio, Setup, Share, Slice};
use komado_core::share::windows;
use komado_core::slice::{SliceCut, SliceTooLarge, SliceTools, counted, cut};
use komado_core::{Meter, Seq, ThreadId, View};
use komado_testkit::Book;

/// What protects a thread is filled so far: a tenth stays free.
pub(crate) fn most(share: u64) -> u64 {
    share * 9 / 10
}

pub(crate) fn name(depth: usize) -> ThreadId {
    let names = ["root", "stelis_1", "stelis_1_1", "stelis_1_1_1", "s4", "s5", "s6"];
    ThreadId::new(names[depth]).unwrap()
}

/// A ratio between 0.1 and 0.95.
pub(crate) fn ratio(play: &mut Play) -> Ratio {
    Ratio::new(f64::from(play.dice.between(100, 950)) / 1_000.0).unwrap()
}

/// The setup that the thread itself says.
pub(crate) fn own_setup(book: &Book, view: &View) -> Option<Setup> {
    let Ok(record) = book.rows().record(view.setup()?);
    if let Entry::Setup(setup) = record.entry { Some(setup) } else { None }
}

/// Threads above the one at play, the root first, as they were when they were left.
pub(crate) struct Line {
    pub(crate) window: u64,
    pub(crate) above: Vec<Book>,
}

impl Line {
    pub(crate) fn new(window: u64) -> Self {
        Self { window, above: Vec::new() }
    }

    /// Goes on at random; where tools changed hands, the share is said again.
    pub(crate) fn go_on(&self, play: &mut Play, meter: Meter, count: u32) {
        let share = share(&play.book);
        go_on(play, meter, count);
        let now = SliceTools::above(own_setup(&play.book, play.book.view()).as_ref());
        if let Some(share) = share {
            let Ok(slices) = counted(play.book.rows(), meter, &share, now);
            stage::push(play, meter, Entry::Share(Share { slices, ..share })).unwrap();
        }
    }

    /// Spawns a child of the thread at play, and goes on in it. `Err` when what must stay is too much; then nothing
    /// changed but for the anchor.
    pub(crate) fn descend(
        &mut self,
        play: &mut Play,
        meter: Meter,
        ratio: Ratio,
    ) -> Result<(), SliceTooLarge> {
        let depth = self.above.len();
        let (parent, child) = (name(depth), name(depth + 1));
        let anchor = Anchor {
            thread: child.clone(),
            label: None,
            ending: None,
            text: format!("[thread {child}: in progress]"),
            brief: Some(format!("[{child} が開始しました]")),
            first: None,
        };
        let at = stage::push(play, meter, Entry::Anchor(anchor)).unwrap();
        let before = share(&play.book).map_or_else(Vec::new, |share| share.slices);
        let mut ratios: Vec<Ratio> = before.iter().map(|slice| slice.ratio).collect();
        ratios.push(ratio);
        let line = windows(self.window, &ratios);
        let most = most(line[depth] - line[depth + 1]);
        let slice = slice(&play.book, meter, (&parent, &child), at, ratio, most, SliceTools::Offered)?;
        let mut book = Book::default();
        for (depth, above) in self.above.iter().enumerate() {
            book.below(name(depth), above);
        }
        book.below(parent, &play.book);
        let slices = before.into_iter().chain([slice]).collect();
        let share = Share {
            thread: child,
            window: self.window,
            slices,
            lends: play.dice.chance(70),
            chronicle_prompt: None,
            anchor_tokens: None,
            held_by: None,
        };
        book.push(Entry::Share(share), 0, "t").unwrap();
        self.above.push(std::mem::replace(&mut play.book, book));
        Ok(())
    }
}

/// A slice of `book` for the child, and for those above it.
pub(crate) fn slice(
    book: &Book,
    meter: Meter,
    (parent, child): (&ThreadId, &ThreadId),
    at: Seq,
    ratio: Ratio,
    most: u64,
    tools: SliceTools,
) -> Result<Slice, SliceTooLarge> {
    let within = |thread: &ThreadId| thread == child || thread == parent;
    let head = format!("[from {parent}]");
    let Ok(cut) =
        cut(book.rows(), meter, SliceCut { thread: parent, at, ratio, most, head, tools, within: &within });
    cut
}

/// The share in force.
pub(crate) fn share(book: &Book) -> Option<Share> {
    let Ok(share) = book.view().share_in(book.rows());
    share
}
