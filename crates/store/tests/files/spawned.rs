//! Spawned threads on disk: what is written for people, what it costs to look up, and what a crash leaves.

use crate::files::cost::counted;
use crate::files::play::{self, NOW, said};
use crate::files::room::{Line, Room, inode, json_lines, same, tid};
use komado_core::journal::{Entry, encode};
use komado_core::session::State;
use komado_core::thread::{Header, Moment};
use komado_core::{Message, Role, Seq, View};
use komado_store::files::FileJournal;
use komado_store::{
    BranchFilter, BranchTable, Error, Journal, JournalRepair, OpenMode, SessionChange, Store,
};
use std::fs;
use std::path::PathBuf;

/// What a thread's `current.jsonl` says.
fn current(room: &Room, thread: &str) -> Vec<String> {
    let lines = json_lines(&room.path(&format!("threads/{thread}/current.jsonl")));
    lines.iter().map(|line| line["content"].as_str().unwrap().to_owned()).collect()
}

fn open(room: &Room, thread: &str) -> FileJournal {
    room.store.open_file(&room.id, &tid(thread), OpenMode::Write).unwrap()
}

/// Files of the room that this process holds open.
fn held(room: &Room) -> Vec<PathBuf> {
    let Ok(list) = fs::read_dir("/proc/self/fd") else { return Vec::new() };
    let links = list.filter_map(|entry| fs::read_link(entry.ok()?.path()).ok());
    let is_ours = |path: &PathBuf| path.starts_with(room.path("")) && !path.ends_with("lock");
    links.filter(is_ours).collect()
}

#[test]
fn the_view_of_a_child_is_written_whole_and_extended_until_its_share_changes() {
    let mut room = Room::new();
    let line = room.line(2, "話");
    let (name, mut book) = line.0[2].clone();
    let mut journal = open(&room, &name);
    let path = room.path("threads/stelis_1_1/current.jsonl");
    journal.settle(book.view()).unwrap();
    let whole = ["[root から]", "話", "[stelis_1 から]", "話 1", "話 2"];
    assert_eq!(current(&room, &name), whole);
    let file = inode(&path);
    // Words to others and from them, and the chronicle, are no reason to write it anew.
    play::write(&mut book, &mut journal, Entry::Tell { to: tid("stelis_1"), text: "できた".into() }, 3);
    journal.settle(book.view()).unwrap();
    play::write(&mut book, &mut journal, Entry::Heard { from: tid("stelis_1"), upto: 9 }, 0);
    play::write(&mut book, &mut journal, said(Role::User, "from stelis_1: good"), 5);
    journal.settle(book.view()).unwrap();
    assert_eq!(inode(&path), file);
    assert_eq!(current(&room, &name)[5..], ["from stelis_1: good"]);
    // Another share is.
    let Entry::Share(mut share) = book.records().next().unwrap().entry.clone() else { panic!() };
    share.slices[0].keep.clear();
    play::write(&mut book, &mut journal, Entry::Share(share), 0);
    play::write(&mut book, &mut journal, Entry::Tell { to: tid("stelis_1"), text: "続ける".into() }, 3);
    journal.settle(book.view()).unwrap();
    assert_eq!(
        current(&room, &name),
        ["[root から]", "[stelis_1 から]", "話 1", "話 2", "from stelis_1: good"]
    );
}

#[test]
fn a_rewritten_line_leaves_no_trace_in_threads_that_see_a_part_of_it() {
    let mut room = Room::new();
    let mut line = room.line(2, "secret 42");
    let parent = Some(Moment { thread: tid("root"), seq: 1 });
    let base = Some(Moment { thread: tid("stelis_1"), seq: 2 });
    let header = Header { thread: tid("again"), base, parent, ..Header::root(room.id.clone(), NOW) };
    room.store.spawn(&header).unwrap();
    line.0.push(("again".into(), line.0[1].1.fork(2)));
    let children = &line.0[1..];
    for (name, book) in children {
        open(&room, name).settle(book.view()).unwrap();
        assert!(current(&room, name).contains(&"secret 42".to_owned()));
    }
    let mut change = |_: Seq, line: &str| Some(line.replace("secret 42", "********").into_bytes());
    assert_eq!(room.write().rewrite(&mut change).unwrap(), 1);
    for (name, _) in children {
        assert!(!room.path(&format!("threads/{name}/current.jsonl")).exists(), "{name}");
    }
    for (name, book) in children {
        open(&room, name).settle(book.view()).unwrap();
        assert!(!current(&room, name).contains(&"secret 42".to_owned()));
        assert!(current(&room, name).contains(&"********".to_owned()));
    }
}

/// Pours a view and gives the most files held while it went.
fn pour(room: &Room, journal: &FileJournal) -> (usize, usize) {
    let view = View::fold(journal, Journal::last(journal)).unwrap();
    let (mut count, mut most) = (0, 0);
    let mut onto = |_: Seq, _: &Message| {
        (count, most) = (count + 1, most.max(held(room).len()));
        Ok::<_, Error>(())
    };
    view.pour(journal, &mut onto).unwrap();
    (count, most)
}

#[test]
fn looking_up_six_threads_above_holds_no_more_files_than_one_and_lets_go_of_them() {
    let mut room = Room::new();
    let line = room.line(6, "word");
    let mut most = Vec::new();
    for depth in [1, 6] {
        let journal = open(&room, &line.0[depth].0);
        let before = held(&room);
        let (count, held_at_once) = pour(&room, &journal);
        assert_eq!(count, 2 * depth + 1);
        assert_eq!(held(&room), before, "all are closed again");
        assert!(before.is_empty() || held_at_once > before.len(), "{held_at_once}");
        most.push(held_at_once - before.len());
    }
    assert!(most[0] == most[1] && most[1] <= 3, "{most:?}");
}

#[test]
fn looking_up_threads_above_does_not_read_their_journals() {
    let mut room = Room::new();
    let mut journal = room.write();
    let words = "window ".repeat(9_000);
    for n in 0..300 {
        let role = if n % 2 == 0 { Role::User } else { Role::Assistant };
        room.book.push(said(role, &words), 9_000, NOW).unwrap();
    }
    journal.append(0, &play::rows(&room.book, 0)).unwrap();
    drop(journal);
    let line = room.line(6, "word");
    let before = counted("rchar");
    let journal = open(&room, &line.0[6].0);
    pour(&room, &journal);
    if let (Some(before), Some(after)) = (before, counted("rchar")) {
        // What /proc says of open files is read by the test itself.
        let read = after - before;
        assert!(read < 200_000, "{read} bytes were read of {} threads", line.0.len());
    }
    let before = counted("rchar");
    assert_eq!(room.store.threads(&room.id).unwrap().len(), 7);
    if let (Some(before), Some(after)) = (before, counted("rchar")) {
        assert!(after - before < 7 * 1024 + 4096, "the first line of each: {}", after - before);
    }
}

#[test]
fn a_child_finds_those_above_it_wherever_its_session_is_by_now() {
    let mut room = Room::new();
    let line = room.line(2, "go");
    let reader = room.store.open_file(&room.id, &tid("stelis_1_1"), OpenMode::Read).unwrap();
    let enter = |to: State| {
        room.store.change(&room.id, &SessionChange::State { to, at: NOW.into(), why: None }).unwrap();
    };
    for to in [State::Completed, State::Running, State::Failed] {
        enter(to);
        let above = reader.above(&tid("stelis_1")).unwrap();
        assert_eq!((above.last(), above.line(2).unwrap()), (2, play::rows(&line.0[1].1, 1)[0].line.clone()));
        assert_eq!(pour(&room, &reader).0, 5);
    }
    // Also while it moves.
    std::thread::scope(|scope| {
        let mover = scope.spawn(|| {
            for _ in 0..20 {
                enter(State::Running);
                enter(State::Completed);
            }
        });
        while !mover.is_finished() {
            assert_eq!(reader.above(&tid("root")).unwrap().last(), 1);
        }
    });
}

#[test]
fn a_torn_child_is_put_right_when_it_is_opened_and_its_parent_is_not_touched() {
    let mut room = Room::new();
    let line = room.line(2, "go");
    let path = room.path("threads/stelis_1/messages.jsonl");
    let whole = fs::read(&path).unwrap();
    let parent = fs::read(room.path("messages.jsonl")).unwrap();
    for end in [&b"{\"seq\":3,\"role\":\"us"[..], &[0; 100]] {
        fs::write(&path, [&whole[..], end].concat()).unwrap();
        // Its own child looks it up, and sees what it saw.
        let below = room.store.open_file(&room.id, &tid("stelis_1_1"), OpenMode::Read).unwrap();
        assert_eq!(pour(&room, &below).0, 5);
        let told = room.store.take_findings();
        assert!(
            matches!(&told[..], [one] if one.starts_with("s/stelis_1: cut ") && one.contains("never finished"))
        );
        assert_eq!(fs::read(&path).unwrap(), whole);
        fs::write(&path, [&whole[..], end].concat()).unwrap();
        let journal = open(&room, "stelis_1");
        assert_eq!(journal.notes(), [JournalRepair::Torn { bytes: end.len() as u64 }]);
        same(&journal, &line.0[1].1);
    }
    // A child whose share never came to be, and one that is torn in it.
    let header = Header {
        thread: tid("early"),
        parent: Some(Moment { thread: tid("root"), seq: 1 }),
        ..Header::root(room.id.clone(), NOW)
    };
    room.store.spawn(&header).unwrap();
    let path = room.path("threads/early/messages.jsonl");
    let begun = fs::read(&path).unwrap();
    for end in [&b""[..], b"{\"seq\":1,\"op\":\"share\",\"thr"] {
        fs::write(&path, [&begun[..], end].concat()).unwrap();
        let journal = open(&room, "early");
        assert_eq!((Journal::last(&journal), pour(&room, &journal).0), (0, 0));
        drop(journal);
        room.store.check(&room.id).unwrap();
    }
    assert_eq!(fs::read(room.path("messages.jsonl")).unwrap(), parent);
    room.store.rebuild().unwrap();
    let rows = room.store.branches(&room.id, BranchFilter::All).unwrap();
    let early = rows.iter().find(|row| row.thread == tid("early")).unwrap();
    assert_eq!((early.depth, early.window_ratio, early.told), (1, 1.0, false));
}

#[test]
fn a_child_whose_folder_was_half_made_is_no_thread_and_can_be_made() {
    let mut room = Room::new();
    let line = room.line(1, "go");
    let half = room.path("threads/.new-abc");
    fs::create_dir(&half).unwrap();
    fs::write(half.join("index"), b"half").unwrap();
    assert_eq!(room.store.threads(&room.id).unwrap().len(), 2);
    let (book, journal) = room.child("stelis_2", &Line(vec![line.0[0].clone()]));
    same(&journal, &book);
    drop(journal);
    room.store.check(&room.id).unwrap();
    assert!(!half.exists());
    assert!(room.store.take_findings().iter().any(|f| f.contains("left behind") && f.contains(".new-abc")));
    // A folder with a thread's name and no journal is told by who reads it, and hinders nobody else.
    fs::create_dir(room.path("threads/empty")).unwrap();
    let why = room.store.open_file(&room.id, &tid("empty"), OpenMode::Write).err().unwrap().to_string();
    assert!(why.contains("threads/empty/messages.jsonl"), "{why}");
    same(&open(&room, "stelis_1"), &line.0[1].1);
    same(&room.write(), &room.book);
}

#[test]
fn a_child_is_read_by_whoever_only_knows_its_lines() {
    let mut room = Room::new();
    let line = room.line(1, "go");
    let text = fs::read_to_string(room.path("threads/stelis_1/messages.jsonl")).unwrap();
    let lines: Vec<String> = line.0[1].1.records().map(|r| String::from_utf8(encode(r)).unwrap()).collect();
    assert_eq!(text.split_once('\n').unwrap().1, lines.concat());
    // Without its index too.
    fs::remove_file(room.path("threads/stelis_1/index")).unwrap();
    let journal = open(&room, "stelis_1");
    same(&journal, &line.0[1].1);
    assert_eq!(pour(&room, &journal).0, 3);
}
