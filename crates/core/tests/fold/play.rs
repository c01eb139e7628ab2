//! Random journals: entries of every kind are proposed, and the gate keeps what may follow.
//!
//! Proposals lean towards what is admissible (spans of whole units, results that someone waits for), or a random
//! journal would be nothing but refusals; some are plain nonsense, because the gate must stand that too.

use crate::fold::dice::Dice;
use crate::fold::sayings;
use komado_core::journal::{Anchor, Close, Edit, EditKind, Ending, Entry, Replace, Sent, Show, ShowKind};
use komado_core::message::{MessagePart, Role};
use komado_core::view::ShownItem;
use komado_core::{Message, Seq, Span, ThreadId, View};
use komado_testkit::soak::times;
use komado_testkit::{Book, notation};

/// A journal in the making. When a test fails, it prints itself and the seed that makes it again.
pub(crate) struct Play {
    pub(crate) seed: u64,
    pub(crate) dice: Dice,
    pub(crate) book: Book,
}

impl Drop for Play {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("seed {}:\n{}", self.seed, notation::journal(self.book.records()));
            let Ok(seen) = notation::items(self.book.view(), self.book.rows());
            eprintln!("sees:\n{seen}");
        }
    }
}

/// Runs `check` on a fresh play for each of `count` seeds; under `make soak` for ten times as many.
pub(crate) fn each(from: u64, count: u64, check: impl Fn(&mut Play)) {
    for seed in from..from + times(count, 10 * count) {
        check(&mut Play { seed, dice: Dice::new(seed), book: Book::default() });
    }
}

impl Play {
    /// Appends entries up to this play's length, and looks at it after each.
    pub(crate) fn go_on(&mut self, mut look: impl FnMut(&mut Self)) {
        let length = 5 + u32::try_from(self.seed % 56).unwrap();
        for _ in 0..4 * length {
            if self.last() >= length {
                break;
            }
            let (entry, tokens) = propose(&self.book, &mut self.dice);
            if self.push(entry, tokens).is_some() {
                look(self);
            }
        }
    }

    /// Appends `entry` if the gate lets it.
    pub(crate) fn push(&mut self, entry: Entry, tokens: u32) -> Option<Seq> {
        self.book.push(entry, tokens, "2024-01-15T10:30:00Z").ok()
    }

    pub(crate) fn last(&self) -> Seq {
        self.book.view().last()
    }

    /// The first moment that can be gone back to: that of a spawned thread is after its share.
    pub(crate) fn floor(&self) -> Seq {
        Seq::from(matches!(entry(&self.book, 1), Some(Entry::Share(_))))
    }

    /// A moment that can be gone back to, before the last.
    pub(crate) fn past(&mut self) -> Seq {
        let floor = self.floor();
        floor + self.dice.below(self.last() - floor)
    }

    pub(crate) fn items(&self) -> Vec<ShownItem> {
        items(&self.book, self.book.view())
    }
}

pub(crate) fn items(book: &Book, view: &View) -> Vec<ShownItem> {
    let Ok(items) = view.items(book.rows());
    items
}

/// What the model is handed, with the entry each message comes from.
pub(crate) fn poured(book: &Book, view: &View) -> Vec<(Seq, Message)> {
    let mut all = Vec::new();
    let mut pour = |seq: Seq, message: &Message| -> Result<(), std::convert::Infallible> {
        all.push((seq, message.clone()));
        Ok(())
    };
    let Ok(()) = view.pour(book.rows(), &mut pour);
    all
}

/// Something that may or may not follow.
pub(crate) fn propose(book: &Book, dice: &mut Dice) -> (Entry, u32) {
    let view = book.view();
    if let Some(at) = view.closed()
        && dice.chance(60)
    {
        if dice.chance(10) {
            return kin(book, dice);
        }
        let to = if dice.chance(60) { at - 1 } else { dice.below(at) };
        return (Entry::Rewind { to }, 0);
    }
    if !view.open().calls.is_empty() && dice.chance(60) {
        return (say(book, dice), dice.below(500));
    }
    if view.share().is_some() && dice.chance(8) {
        return kin(book, dice);
    }
    match dice.below(100) {
        0..8 => (late(book, dice), dice.below(500)),
        8..44 => (say(book, dice), dice.below(500)),
        44..69 => edit(book, dice),
        69..77 => (Entry::Revert { target: revertible(book, dice) }, 0),
        77..83 => (Entry::Rewind { to: moment(book, dice) }, 0),
        83..88 => (Entry::Pin { span: unit(book, dice) }, 0),
        88..90 => {
            let span = dice.pick(view.pins()).copied().unwrap_or(Span::new(1, 1));
            (Entry::Unpin { span }, 0)
        }
        90..94 => (anchor(book, dice), dice.below(50)),
        _ => aside(book, dice),
    }
}

/// What somebody says next.
pub(crate) fn say(book: &Book, dice: &mut Dice) -> Entry {
    let (view, seq) = (book.view(), book.view().last() + 1);
    if let Some(call) = dice.pick(&view.open().calls).filter(|_| dice.chance(90)) {
        return Entry::Message(sayings::result(dice, seq, &call.id), None);
    }
    match dice.below(20) {
        0 => Entry::Message(sayings::plain(dice, Role::System, seq), None),
        1 => Entry::Message(sayings::plain(dice, Role::Developer, seq), None),
        2 => Entry::Message(sayings::result(dice, seq, "c1"), None),
        3..9 => Entry::Message(sayings::plain(dice, Role::User, seq), None),
        _ => {
            let calls = dice.below(4);
            let message = sayings::assistant(dice, seq, calls);
            let reply = if dice.chance(40) { Some(sayings::reply(dice, seq)) } else { None };
            Entry::Message(message, reply)
        }
    }
}

/// A result in the place of an earlier one, or of something that is none.
pub(crate) fn late(book: &Book, dice: &mut Dice) -> Entry {
    let seq = book.view().last() + 1;
    let outcome_at = |at: Seq| match entry(book, at) {
        Some(Entry::Message(message, _)) => message.outcome().map(|outcome| (at, outcome.call_id.clone())),
        _ => None,
    };
    let answered: Vec<(Seq, String)> = (1..seq).filter_map(outcome_at).collect();
    let (place, call) = dice.pick(&answered).cloned().unwrap_or((1, "c1".into()));
    let place = if dice.chance(95) { place } else { dice.below(seq + 1) };
    let mut message = sayings::result(dice, seq, &call);
    if let [MessagePart::Result(outcome)] = &mut message.parts[..] {
        outcome.replaces = Some(place);
    }
    Entry::Message(message, None)
}

/// A random edit, and its tokens: mostly those of its texts, but nothing holds a writer to that.
pub(crate) fn edit(book: &Book, dice: &mut Dice) -> (Entry, u32) {
    let seq = book.view().last() + 1;
    let cause = sayings::cause(dice, seq);
    let (kind, hide, show, replace) = match dice.below(10) {
        0..4 => (EditKind::Condense, spans(book, dice), shows(dice, seq), Vec::new()),
        4..6 => (EditKind::Truncate, spans(book, dice), shows(dice, seq), Vec::new()),
        _ => (EditKind::Trim, Vec::new(), Vec::new(), swaps(book, dice)),
    };
    let edit = Edit { kind, hide, show, replace, cause };
    let tokens = if dice.chance(80) { edit.shown_tokens() } else { dice.below(99) };
    (Entry::Edit(edit), tokens)
}

fn shows(dice: &mut Dice, seq: Seq) -> Vec<Show> {
    const KINDS: [ShowKind; 3] = [ShowKind::Retain, ShowKind::Summary, ShowKind::Marker];
    let count = if dice.chance(75) { 1 } else { dice.below(4) };
    let show = |dice: &mut Dice| Show {
        kind: *dice.pick(&KINDS).unwrap(),
        text: sayings::words(dice, seq),
        tokens: dice.below(60),
    };
    (0..count).map(|_| show(dice)).collect()
}

fn swaps(book: &Book, dice: &mut Dice) -> Vec<Replace> {
    let seq = book.view().last() + 1;
    let mut seqs: Vec<Seq> = (0..dice.between(1, 3)).map(|_| visible(book, dice)).collect();
    seqs.sort_unstable();
    if dice.chance(95) {
        seqs.dedup();
    }
    let swap = |at: Seq, dice: &mut Dice| Replace {
        seq: at,
        text: sayings::words(dice, seq),
        tokens: dice.below(20),
    };
    seqs.into_iter().map(|at| swap(at, dice)).collect()
}

/// One to three spans, mostly ascending and apart; sometimes what an earlier edit hides, and more.
fn spans(book: &Book, dice: &mut Dice) -> Vec<Span> {
    let edits: Vec<Seq> = book.view().edits().collect();
    if let Some(&old) = dice.pick(&edits)
        && dice.chance(40)
        && let Some(Entry::Edit(edit)) = entry(book, old)
        && let Some(hull) = edit.hull()
    {
        if dice.chance(20) && !edit.hide.is_empty() {
            return edit.hide.clone();
        }
        let more = stretch(book, dice);
        return vec![Span::new(hull.from.min(more.from), hull.to.max(more.to))];
    }
    let count = if dice.chance(75) { 1 } else { dice.between(2, 3) };
    let mut spans: Vec<Span> = (0..count).map(|_| stretch(book, dice)).collect();
    spans.sort_unstable();
    if dice.chance(95) {
        let mut end = 0;
        spans.retain(|span| {
            let apart = span.from > end;
            end = if apart { span.to } else { end };
            apart
        });
    }
    spans
}

/// From the beginning of one unit to the end of another; sometimes from anywhere to anywhere.
fn stretch(book: &Book, dice: &mut Dice) -> Span {
    let last = book.view().last();
    if dice.chance(10) {
        let (a, b) = (dice.below(last + 2), dice.below(last + 2));
        return Span::new(a.min(b), a.max(b));
    }
    let (a, b) = (unit(book, dice), if dice.chance(50) { unit(book, dice) } else { Span::new(Seq::MAX, 0) });
    Span::new(a.from.min(b.from), a.to.max(b.to))
}

/// Mostly a whole unit on the path.
fn unit(book: &Book, dice: &mut Dice) -> Span {
    for _ in 0..4 {
        let seq = dice.between(1, book.view().last());
        let Ok(unit) = book.view().unit(book.rows(), seq);
        if let Some(unit) = unit {
            return if dice.chance(95) { unit } else { Span::new(seq, seq) };
        }
    }
    Span::new(1, dice.between(1, 3))
}

fn visible(book: &Book, dice: &mut Dice) -> Seq {
    let items = items(book, book.view());
    dice.pick(&items).map_or(1, |item| item.seq)
}

/// An entry of a random journal, by number.
pub(crate) fn entry(book: &Book, seq: Seq) -> Option<&Entry> {
    book.records().nth(seq.checked_sub(1)? as usize).map(|record| &record.entry)
}

fn revertible(book: &Book, dice: &mut Dice) -> Seq {
    let is_late = |entry: &Entry| matches!(entry, Entry::Message(message, _) if message.replaces().is_some());
    let late: Vec<Seq> = book.records().filter(|r| is_late(&r.entry)).map(|r| r.seq).collect();
    if let Some(&seq) = dice.pick(&late).filter(|_| dice.chance(25)) {
        return seq;
    }
    let ops = book.records().filter(|r| matches!(r.entry, Entry::Edit(_) | Entry::Revert { .. }));
    let ops: Vec<Seq> = ops.map(|r| r.seq).collect();
    match dice.pick(&ops) {
        Some(&seq) if dice.chance(95) => seq,
        _ => dice.below(book.view().last() + 2),
    }
}

/// Any moment, with a leaning towards the last few.
fn moment(book: &Book, dice: &mut Dice) -> Seq {
    let last = book.view().last();
    match dice.below(10) {
        0 => 0,
        1..6 => last.saturating_sub(dice.between(1, 8)),
        _ => dice.below(last + 2),
    }
}

fn anchor(book: &Book, dice: &mut Dice) -> Entry {
    let seq = book.view().last() + 1;
    let anchors = book.records().filter(|r| matches!(&r.entry, Entry::Anchor(a) if a.first.is_none()));
    let anchors: Vec<Seq> = anchors.map(|r| r.seq).collect();
    let first = dice.pick(&anchors).copied().filter(|_| dice.chance(70));
    let first = first.or_else(|| if dice.chance(5) { Some(dice.below(seq)) } else { None });
    Entry::Anchor(Anchor {
        thread: ThreadId::new(format!("t{}", first.unwrap_or(seq))).unwrap(),
        label: if dice.chance(50) { Some(sayings::words(dice, seq)) } else { None },
        ending: dice.pick(&Ending::ALL).copied().filter(|_| first.is_some()),
        text: sayings::words(dice, seq),
        brief: if dice.chance(50) { Some(sayings::words(dice, seq)) } else { None },
        first,
    })
}

/// What passes between threads.
fn kin(book: &Book, dice: &mut Dice) -> (Entry, u32) {
    let seq = book.view().last() + 1;
    let tokens = dice.below(50);
    let entry = match dice.below(10) {
        // Only a spawned thread has one, and it has one from the beginning.
        0..4 if book.view().share().is_some() => {
            let share = sayings::share(dice, seq);
            let tokens = if dice.chance(80) { share.tokens() } else { tokens };
            return (Entry::Share(share), tokens);
        }
        0..6 => sayings::chronicle(dice, seq),
        6..8 => Entry::Tell { to: sayings::thread(dice), text: sayings::words(dice, seq) },
        8 => Entry::Note { about: "playbook".into(), value: sayings::note(dice, seq) },
        _ => Entry::Heard { from: sayings::thread(dice), upto: dice.below(40) },
    };
    (entry, tokens)
}

/// What nobody says: setup, requests, the end.
fn aside(book: &Book, dice: &mut Dice) -> (Entry, u32) {
    if dice.chance(30) {
        return kin(book, dice);
    }
    let seq = book.view().last() + 1;
    let entry = match dice.below(10) {
        0..4 => return (Entry::Setup(sayings::setup(dice, seq)), dice.below(900)),
        4..7 => Entry::Sent(Sent {
            digest: (*dice.pick(&["ab12", ""]).unwrap()).into(),
            model: (*dice.pick(&["gpt-4o", "my model"]).unwrap()).into(),
            context_tokens: dice.roll() >> 48,
            purpose: if dice.chance(30) { Some("condense".into()) } else { None },
            mark: sayings::mark(dice),
        }),
        7..9 => Entry::Lost(sayings::reply(dice, seq)),
        _ => Entry::Close(Close {
            ending: *dice.pick(&Ending::ALL).unwrap(),
            result: if dice.chance(50) { Some(sayings::words(dice, seq)) } else { None },
        }),
    };
    (entry, 0)
}
