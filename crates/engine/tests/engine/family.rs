//! A session with threads below threads, as its journals and tables would have them: a root with two children, of which
//! the first has a child of its own that was broken off and is done itself, and the second still works.

use crate::engine::room::{Room, call, calls, model, result_with_output, setup, thread_id, user};
use crate::engine::story::SECRET;
use komado_core::SessionId;
use komado_core::journal::{Anchor, Chronicle, Close, Ending, Entry, Ratio, Share};
use komado_core::slice::{SliceCut, SliceTools, cut};
use komado_core::thread::{Branch, Header, Moment, branch};
use komado_engine::Thread;
use komado_store::{OpenMode, ThreadMail};

/// Tells the story of the family in session `name`; the secret stands in every kind of entry.
pub(crate) fn tell(room: &Room, name: &str) -> SessionId {
    let id = room.session(name);
    let mut root = room.root(&id);
    root.set_up(setup(&format!("親切に。 {SECRET}"))).unwrap();
    root.say(user("how are you?")).unwrap();
    root.say(model("well")).unwrap();
    root.say(user(&format!("make calculator_v2 with {SECRET}"))).unwrap();
    root.say(calls(vec![call("a", "read", &serde_json::json!({ "key": SECRET }).to_string())])).unwrap();
    root.say(result_with_output(room, &id, "a", "head", format!("all {SECRET}").as_bytes())).unwrap();
    root.say(model("I begin")).unwrap();
    let first = spawn(room, &mut root, "stelis_1");
    let mut child = room.thread(&id, "stelis_1");
    child.say(user("begin")).unwrap();
    child.say(model(&format!("with {SECRET}"))).unwrap();
    let deep = spawn(room, &mut child, "stelis_1_1");
    let mut grandchild = room.thread(&id, "stelis_1_1");
    grandchild.say(user("dig")).unwrap();
    end(&mut grandchild, Ending::Aborted, "broke off near the lighthouse");
    told(&mut child, deep, "stelis_1_1", Ending::Aborted);
    let second = spawn(room, &mut root, "stelis_2");
    assert!(second > first);
    let mut sibling = room.thread(&id, "stelis_2");
    sibling.say(user("something else")).unwrap();
    for text in [format!("the parser is done, key {SECRET}"), "and the windmill turns".to_owned()] {
        let seq = child.append(Entry::Tell { to: thread_id("stelis_2"), text }).unwrap();
        let mail = ThreadMail { from: thread_id("stelis_1"), seq };
        room.engine.store().post(&id, &thread_id("stelis_2"), &mail).unwrap();
    }
    let heard = child.last() - 1;
    sibling.append(Entry::Heard { from: thread_id("stelis_1"), upto: heard }).unwrap();
    sibling.say(user("[stelis_1] the parser is done")).unwrap();
    room.engine.store().taken(&id, &thread_id("stelis_2"), &thread_id("stelis_1"), heard).unwrap();
    end(&mut child, Ending::Completed, &format!("wrote calculator_v2 with {SECRET}"));
    told(&mut root, first, "stelis_1", Ending::Completed);
    for thread in [&mut root, &mut child, &mut grandchild, &mut sibling] {
        thread.settle().unwrap();
    }
    drop((root, child, grandchild, sibling));
    for header in room.engine.store().threads(&id).unwrap().iter().filter(|header| header.parent.is_some()) {
        let row = Branch { told: true, ..row(room, &id, header) };
        room.engine.store().put_branch(&row).unwrap();
    }
    id
}

fn row(room: &Room, id: &SessionId, header: &Header) -> Branch {
    let journal = room.engine.store().open(id, &header.thread, OpenMode::Read).unwrap();
    branch(header, &*journal).unwrap()
}

/// Starts a thread below `parent`; gives its anchor.
fn spawn(room: &Room, parent: &mut Thread<'_>, name: &str) -> u32 {
    let (id, above) = (parent.session().clone(), parent.header().thread.clone());
    let anchor = parent
        .append(Entry::Anchor(Anchor {
            thread: thread_id(name),
            label: Some(format!("作業 {SECRET}")),
            ending: None,
            text: format!("{name} {SECRET} runs"),
            brief: Some(format!("{name} {SECRET} began")),
            first: None,
        }))
        .unwrap();
    let at = Moment { thread: above.clone(), seq: anchor };
    let header = Header {
        thread: thread_id(name),
        parent: Some(at),
        label: Some("作業".into()),
        ..Header::root(id.clone(), room.engine.now())
    };
    room.engine.store().spawn(&header).unwrap();
    let mut slices =
        parent.view().share_in(parent.source()).unwrap().map_or(Vec::new(), |share| share.slices);
    let line: Vec<_> = slices.iter().map(|slice| slice.thread.clone()).collect();
    let part = SliceCut {
        thread: &above,
        at: anchor,
        ratio: Ratio::new(0.8).unwrap(),
        most: 10_000,
        head: format!("[{above} {SECRET}]"),
        tools: SliceTools::Offered,
        within: &|thread| thread.as_str() == name || line.contains(thread),
    };
    slices.push(cut(parent.source(), parent.meter(), part).unwrap().unwrap());
    let share = Share {
        thread: thread_id(name),
        window: 100_000,
        slices,
        lends: true,
        anchor_tokens: None,
        chronicle_prompt: Some(format!("要約して {SECRET}")),
        held_by: None,
    };
    room.thread(&id, name).append(Entry::Share(share)).unwrap();
    anchor
}

fn end(thread: &mut Thread<'_>, ending: Ending, text: &str) {
    let partial = ending == Ending::Aborted;
    let covers = [1, thread.last()];
    thread.append(Entry::Close(Close { ending, result: None })).unwrap();
    let model = Some("digest".into());
    let chronicle = Chronicle { text: text.into(), covers, partial, model, usage: None };
    thread.append(Entry::Chronicle(chronicle)).unwrap();
}

/// The parent's anchor follows.
fn told(parent: &mut Thread<'_>, first: u32, name: &str, ending: Ending) {
    parent
        .append(Entry::Anchor(Anchor {
            thread: thread_id(name),
            label: None,
            ending: Some(ending),
            text: format!("{name} {SECRET} {}", ending.name()),
            brief: None,
            first: Some(first),
        }))
        .unwrap();
}
