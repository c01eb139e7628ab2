//! Sessions of different lengths in which the model sees the same.
//!
//! The last thousand messages are the same in each, and so is what the ladder did while they came. What differs is
//! what lies before them: nothing, or a million entries, put out of view a thousand at a time by a marker over all
//! that came before it.

use super::super::place::BenchFolder;
use super::super::words::BenchWords;
use super::{FILL_WINDOW, budget};
use crate::error::Result;
use crate::output::progress;
use komado_core::ladder::{OriginalsHint, marker};
use komado_core::message::{Message, Role};
use komado_core::{Meter, Seq, Span, ThreadId};
use komado_engine::Thread;
use komado_engine::condense::{ByDigest, CondenseSettings};
use komado_engine::fit::Ladder;
use komado_store::OpenMode;

/// Turns at the end of each session, of four messages.
const LAST: u64 = 250;
/// Turns that come at once: the ladder is asked after each lot.
const LOT: u64 = 25;
/// Bytes of a message, on the whole.
const BODY: usize = 1100;

/// A session that was made.
pub(super) struct PlanSession {
    pub(super) name: &'static str,
    /// How much longer its messages are than usual.
    pub(super) scale: u32,
    pub(super) entries: u64,
    /// Bytes of its journal.
    pub(super) bytes: u64,
    pub(super) items: u64,
    pub(super) tokens: u64,
    /// Outputs that are shown as placeholders.
    pub(super) trimmed: u64,
    /// Bytes of the longest line among those the model sees.
    pub(super) longest: u64,
}

/// Bytes that a session of `entries` will have on disk, more or less.
pub(super) fn size(entries: u64, scale: u32) -> u64 {
    entries * (BODY as u64 * u64::from(scale) + 300)
}

/// Makes a session of about `entries` entries, a thousand at least.
pub(super) fn fill(place: &BenchFolder, name: &'static str, entries: u64, scale: u32) -> Result<PlanSession> {
    let id = place.session(name, Meter::Bytes4)?;
    let mut thread = place.engine.open(&id, &ThreadId::root(), OpenMode::Write)?;
    let words = BenchWords::new();
    let first = thread.say(Message::text(Role::User, "Go through the whole of this repository."))?;
    bury(&mut thread, &words, first, entries)?;
    let mut by = ByDigest::new(thread.meter());
    let budget = budget(FILL_WINDOW * u64::from(scale));
    let mut ladder = Ladder { budget, settings: CondenseSettings::default(), by: &mut by };
    for from in (0..LAST).step_by(LOT as usize) {
        say(&mut thread, &words, from..from + LOT, BODY * scale as usize)?;
        thread.fit(&mut ladder)?;
    }
    let bytes = std::fs::metadata(place.store.folder(&id)?.join("messages.jsonl"))?.len();
    looked_at(
        &thread,
        PlanSession { name, scale, bytes, entries: 0, items: 0, tokens: 0, trimmed: 0, longest: 0 },
    )
}

/// Says what will be out of view, until only the last turns are missing.
fn bury(thread: &mut Thread<'_>, words: &BenchWords, first: Seq, entries: u64) -> Result {
    let end = entries.saturating_sub(4 * LAST + 2);
    let bar = progress("filling the session", end);
    let mut turn = LAST;
    while u64::from(thread.last()) + 5 < end {
        let turns = ((end - u64::from(thread.last()) - 1) / 4).min(LAST);
        say(thread, words, turn..turn + turns, BODY)?;
        let hide = vec![Span::new(first + 1, thread.last())];
        let marker = marker(&hide, "", OriginalsHint::Tools);
        thread.truncate(hide, &marker, "bench")?;
        turn += turns;
        bar.set_position(u64::from(thread.last()));
    }
    bar.finish_and_clear();
    Ok(())
}

/// Turns, all at once.
fn say(thread: &mut Thread<'_>, words: &BenchWords, turns: std::ops::Range<u64>, bytes: usize) -> Result {
    let mut batch = thread.batch();
    for message in turns.flat_map(|n| words.turn(n, bytes)) {
        batch.say(message, None)?;
    }
    let (_, work) = batch.finish();
    Ok(thread.commit(work)?)
}

fn looked_at(thread: &Thread<'_>, built: PlanSession) -> Result<PlanSession> {
    let (view, source) = (thread.view(), thread.source());
    let mut longest = 0;
    let mut trimmed = 0;
    for item in view.items(source)? {
        // A summary is as long as its limit, whatever the messages are.
        if item.what != komado_core::view::ItemSource::Shown {
            longest = longest.max(source.line(item.seq)?.len() as u64);
        }
        trimmed += u64::from(matches!(item.what, komado_core::view::ItemSource::Replaced(_)));
    }
    let (entries, items) = (u64::from(thread.last()), view.weight().items);
    Ok(PlanSession { entries, items, tokens: view.tokens(), trimmed, longest, ..built })
}
