//! Spawned threads in a room, and what is seen in them.

use crate::shares::room::{Room, model, user};
use komado_core::budget::{Budget, Policy, Preset};
use komado_core::journal::{Entry, Ratio, Share};
use komado_core::message::Message;
use komado_core::{Seq, SessionId, ThreadId};
use komado_engine::condense::{ByDigest, CondenseSettings};
use komado_engine::fit::{FitResult, Ladder};
use komado_engine::{Result, Spawn, Thread};

/// The window of these tests.
pub(crate) const WINDOW: u64 = 20_000;

pub(crate) fn ratio(of: f64) -> Ratio {
    Ratio::new(of).unwrap()
}

pub(crate) fn policy() -> Policy {
    Preset::Komado.policy()
}

pub(crate) fn spawn(of: f64) -> Spawn {
    Spawn { ratio: ratio(of), max_depth: 6, ..Spawn::new(WINDOW) }
}

/// A root in which something was said, `exchanges` times, `bytes` bytes each.
pub(crate) fn root<'r>(room: &'r Room, exchanges: u32, bytes: usize) -> (SessionId, Thread<'r>) {
    let id = room.session("s");
    let mut root = room.root(&id);
    talk(&mut root, exchanges, bytes);
    (id, root)
}

pub(crate) fn talk(thread: &mut Thread<'_>, exchanges: u32, bytes: usize) {
    let name = thread.header().thread.clone();
    for n in 0..exchanges {
        thread.say(user(&format!("{name} asks {n} {}", "q".repeat(bytes)))).unwrap();
        thread.say(model(&format!("{name} answers {n} {}", "a".repeat(bytes)))).unwrap();
    }
}

/// Makes the thread fit, with the digest, in whatever budget it is handed; gives the budget that it then had.
pub(crate) fn fit(thread: &mut Thread<'_>, budget: Budget) -> Result<(FitResult, Budget)> {
    let mut by = ByDigest::new(thread.meter());
    let mut ladder = Ladder { budget, settings: CondenseSettings::default(), by: &mut by };
    let fitted = thread.fit(&mut ladder)?;
    Ok((fitted, ladder.budget))
}

pub(crate) fn share(thread: &Thread<'_>) -> Share {
    thread.share().unwrap().expect("a spawned thread has a share")
}

/// What is seen of the threads above, word for word.
pub(crate) fn seen_above(thread: &Thread<'_>) -> Vec<Message> {
    let Some(share) = thread.view().share() else { return Vec::new() };
    let mut all = Vec::new();
    let mut pour = |seq: Seq, message: &Message| -> komado_store::Result<()> {
        if seq == share {
            all.push(message.clone());
        }
        Ok(())
    };
    thread.view().pour_said(thread.source(), &mut pour).unwrap();
    all
}

/// What is seen of the threads above, as a text.
pub(crate) fn words_above(thread: &Thread<'_>) -> String {
    seen_above(thread).iter().map(Message::words).collect::<Vec<_>>().join("\n")
}

/// The tokens of a spawned thread's view, counted anew: every message, and each thread's part of the setup by itself.
pub(crate) fn counted(room: &Room, thread: &Thread<'_>) -> u64 {
    let meter = thread.meter();
    let mut tokens = 0;
    let mut pour = |_: Seq, message: &Message| -> komado_store::Result<()> {
        tokens += u64::from(meter.message(message));
        Ok(())
    };
    thread.view().pour_said(thread.source(), &mut pour).unwrap();
    let mut nearest = true;
    let mut part = |setup: Option<Entry>| {
        let Some(Entry::Setup(mut setup)) = setup else { return };
        setup.tools = setup.tools.filter(|_| std::mem::take(&mut nearest));
        tokens += u64::from(meter.setup(&setup));
    };
    let own = |thread: &Thread<'_>, at: Seq| {
        let view = thread.view_at(at).unwrap();
        view.setup().map(|seq| thread.record(seq).unwrap().entry)
    };
    part(own(thread, thread.last()));
    for slice in thread.share().unwrap().iter().flat_map(|share| share.slices.iter().rev()) {
        let above = room.look(thread.session(), slice.thread.as_str());
        part(own(&above, slice.at));
    }
    tokens
}

pub(crate) fn id(name: &str) -> ThreadId {
    crate::shares::room::thread_id(name)
}
