//! The tree in numbers.

use crate::stelis::kit::{WINDOW, begun, called, done};
use crate::stelis::room::{everywhere, thread_id, user};
use komado_core::thread::ThreadStatus;

#[test]
fn the_tree_shows_shares_status_and_words_of_every_thread_and_forks_beside_what_they_left() {
    everywhere(|room| {
        let id = begun(room);
        let mut root = room.root(&id);
        let mut one = root.spawn_free(&called("autonomous")).unwrap();
        one.spawn_free(&called("with an agent")).unwrap().say(user("deep")).unwrap();
        let two = root.spawn(&called("another task")).unwrap();
        two.end(&mut root, done("was done")).unwrap();
        drop((root, one));
        let ended = room.look(&id, "stelis_1");
        ended.fork(ended.last(), thread_id("other"), None).unwrap();
        let tree = room.engine.tree(&id, Some(WINDOW)).unwrap();
        let node = |name: &str| tree.node(&thread_id(name)).unwrap();
        assert_eq!(tree.nodes.len(), 1);
        let names: Vec<&str> = tree.nodes[0].children.iter().map(|n| n.header.thread.as_str()).collect();
        assert_eq!(names, ["stelis_1", "stelis_2", "other"]);
        let own = |name: &str| node(name).shares.as_ref().map(|shares| shares.own);
        // The windows of the seed's example.
        assert_eq!(
            [own("root"), own("stelis_1"), own("stelis_1_1"), own("stelis_2")],
            [None, Some(80_000), Some(64_000), Some(80_000)]
        );
        assert_eq!(["root", "stelis_1", "stelis_1_1"].map(|name| node(name).depth), [0, 1, 2]);
        assert_eq!((node("stelis_1_1").messages, node("stelis_2").status), (1, ThreadStatus::Completed));
        assert_eq!(node("stelis_2").chronicle.as_ref().unwrap().text, "was done");
        assert!(node("stelis_2").anchor.as_ref().unwrap().contains("was done"));
        assert!(node("other").header.base.is_some() && !node("other").is_adrift);
        let deep = node("stelis_1_1");
        assert!(deep.above > 0 && deep.tokens > 0 && deep.tokens < deep.above);
    });
}
