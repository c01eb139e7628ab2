//! Trees of threads, up to six deep, to which anything happens in any order.
//!
//! What must hold for all of them: no view exceeds its share, every protected slice is in view, and once everybody has let
//! go, however they did, the tree is whole. A failure prints the seed and all that was done; `make soak` tries
//! ten times as many.

use crate::shares::kit::{counted, seen_above, share};
use crate::shares::room::Room;
use crate::shares::world::World;
use komado_core::grammar::{self, MessageShape};
use komado_core::journal::{Anchor, Entry};
use komado_core::thread::{Header, ThreadStatus, branch};
use komado_core::{Kind, Message, Seq, View};
use komado_engine::Thread;
use komado_store::{BranchFilter, OpenMode};
use komado_testkit::soak::times;
use std::collections::BTreeMap;

/// What was seen of the threads above, and by which share.
type Seen = BTreeMap<String, (Seq, Vec<Message>)>;

/// What a thread must see of those above it: read from their own journals.
fn expected(room: &Room, thread: &Thread<'_>) -> Vec<Message> {
    let share = share(thread);
    let mut all = Vec::new();
    for slice in &share.slices {
        all.push(Message::text(komado_core::Role::User, &slice.head));
        let above = room.look(thread.session(), slice.thread.as_str());
        let view = above.view_at(slice.at).unwrap();
        for item in view.items(above.source()).unwrap() {
            if !slice.keeps(item.seq) {
                assert!(
                    !view.is_pinned(item.seq) || item.what == komado_core::view::ItemSource::Shown,
                    "a pin is gone"
                );
                continue;
            }
            if let Entry::Anchor(Anchor { thread, brief: Some(brief), .. }) =
                above.record(item.seq).unwrap().entry
                && share.is_within(&thread)
            {
                all.push(Message::text(komado_core::Role::System, brief));
                continue;
            }
            let mut pour = |_: Seq, message: &Message| -> komado_store::Result<()> {
                all.push(
                    slice
                        .replaced(item.seq)
                        .map_or_else(|| message.clone(), |swap| message.saying(&swap.text)),
                );
                Ok(())
            };
            view.pour_item(above.source(), item, &mut pour).unwrap();
        }
    }
    all
}

fn check_thread(room: &Room, thread: &Thread<'_>, seen: &mut Seen) {
    let (view, name) = (thread.view(), thread.header().thread.to_string());
    assert_eq!(view, &View::fold(thread.source(), thread.last()).unwrap(), "{name}");
    assert_eq!(view.tokens(), counted(room, thread), "{name}: what is stated is not what is sent");
    let mut shapes = Vec::new();
    let mut pour = |_: Seq, message: &Message| -> komado_store::Result<()> {
        shapes.push(MessageShape::of(message));
        Ok(())
    };
    view.pour(thread.source(), &mut pour).unwrap();
    if view.open().calls.is_empty() {
        assert_eq!(grammar::openai(&shapes), Ok(()), "{name}");
    }
    let Some(share) = view.share() else { return };
    let above = seen_above(thread);
    assert_eq!(above, expected(room, thread), "{name}: a protected slice is not in view");
    if let Some((before, was)) = seen.get(&name)
        && *before == share
    {
        assert_eq!(above, *was, "{name}: what it sees of the threads above moved");
    }
    seen.insert(name, (share, above));
}

/// How often a thread was anchored in its parent, and what its anchor says now, if it stands in the parent's present.
fn anchored(room: &Room, header: &Header) -> (usize, Option<Anchor>) {
    let moment = header.parent.as_ref().unwrap();
    let parent = room.look(&header.session, moment.thread.as_str());
    let (mut count, mut now) = (0, None);
    for seq in 1..=parent.last() {
        if parent.source().head(seq).unwrap().kind != Kind::Anchor {
            continue;
        }
        let Entry::Anchor(anchor) = parent.record(seq).unwrap().entry else { continue };
        if anchor.thread == header.thread {
            count += 1;
            assert_eq!(seq, moment.seq, "the header names another anchor");
            if parent.view().on_path(seq)
                && let Entry::Anchor(anchor) = parent.record(parent.view().anchor(seq)).unwrap().entry
            {
                now = Some(anchor);
            }
        }
    }
    (count, now)
}

/// Once everybody has let go, the tree is whole.
fn check_tree(world: &World<'_>) {
    let (room, id) = (world.room, &world.id);
    drop(room.engine.open(id, &komado_core::ThreadId::root(), OpenMode::Write).unwrap());
    let rows: BTreeMap<String, _> = room
        .engine
        .store()
        .branches(id, BranchFilter::All)
        .unwrap()
        .into_iter()
        .map(|row| (row.thread.to_string(), row))
        .collect();
    for header in world.headers().iter().filter(|header| header.parent.is_some()) {
        let name = header.thread.to_string();
        let row = &rows[&name];
        let thread = room.look(id, &name);
        let journal = branch(header, thread.source()).unwrap();
        assert_eq!((row.status, row.depth), (journal.status, journal.depth), "{name}: the table is wrong");
        assert_eq!((&row.held_by, row.window_ratio), (&journal.held_by, journal.window_ratio), "{name}");
        assert!(row.held_by.is_none() || !row.status.is_open(), "{name}: held by nobody who lives");
        let parent = room.look(id, header.parent.as_ref().unwrap().thread.as_str());
        assert!(
            !row.status.is_open() || parent.status().unwrap().is_open(),
            "{name}: open under an ended thread"
        );
        let (count, anchor) = anchored(room, header);
        assert_eq!(count, 1, "{name}: one anchor");
        if let Some(anchor) = anchor {
            assert_eq!(ThreadStatus::from(anchor.ending), row.status, "{name}: the anchor is wrong");
            assert!(row.told, "{name}: its parent was not told");
        }
    }
}

#[test]
fn no_view_exceeds_its_share_every_slice_is_in_view_and_any_order_leaves_the_tree_whole() {
    let mut done: BTreeMap<&str, u32> = BTreeMap::new();
    let mut deepest = 0;
    for seed in 0..times(96, 960) {
        let room = Room::memory();
        let mut world = World::new(&room, seed);
        let mut seen = Seen::new();
        for _ in 0..60 {
            let (deed, ok) = world.step();
            *done.entry(deed).or_default() += u32::from(ok);
            for header in world.headers() {
                check_thread(&room, &room.look(&world.id, header.thread.as_str()), &mut seen);
            }
        }
        world.end();
        check_tree(&world);
        let depth = |header: &Header| {
            branch(header, room.look(&world.id, header.thread.as_str()).source()).unwrap().depth
        };
        deepest = deepest.max(world.headers().iter().map(depth).max().unwrap());
    }
    assert!(done.values().all(|count| *count >= 5), "hardly ever: {done:?}");
    assert_eq!(deepest, 6, "as deep as they may");
}
