//! Several children of one parent at once.

use crate::stelis::kit::{anchor, begun, called, check_tree, done, status};
use crate::stelis::room::{everywhere, model, thread_id, user};
use komado_core::thread::ThreadStatus;

#[test]
fn siblings_work_in_threads_of_the_system_at_the_same_time() {
    everywhere(|room| {
        let id = begun(room);
        let mut root = room.root(&id);
        let mut children: Vec<_> =
            (0..6).map(|n| root.spawn(&called(&format!("task {n}"))).unwrap()).collect();
        std::thread::scope(|scope| {
            for (n, mut child) in children.drain(..).enumerate() {
                scope.spawn(move || {
                    for m in 0..20 {
                        child.say(user(&format!("task {n} step {m}"))).unwrap();
                        child.say(model("done")).unwrap();
                        child.tell(&thread_id("root"), &format!("{n} is at {m}")).unwrap();
                        child.hear().unwrap();
                    }
                    let mut below = child.spawn(&called("below")).unwrap();
                    below.say(user("deeper")).unwrap();
                    if n % 2 == 0 {
                        below.end(&mut child, done("went deeper")).unwrap();
                    }
                    if n % 3 == 0 {
                        child.finish(done("finished")).unwrap();
                    }
                });
            }
            for n in 0..20 {
                root.say(user(&format!("the root says {n}"))).unwrap();
                root.tend().unwrap();
                root.hear().unwrap();
            }
        });
        root.tend().unwrap();
        root.hear().unwrap();
        let heard: Vec<String> =
            crate::stelis::room::words(&root).into_iter().filter(|line| line.contains(" is at ")).collect();
        assert_eq!(heard.len(), 120);
        for n in 0..6 {
            let ended = if n % 3 == 0 { ThreadStatus::Completed } else { ThreadStatus::Aborted };
            assert_eq!(status(room, &id, &format!("stelis_{}", n + 1)), ended);
            let text = anchor(&root, &format!("stelis_{}", n + 1));
            assert!(text.contains("- Messages: 40"), "{text}");
        }
        drop(root);
        room.root(&id);
        check_tree(&room.engine, &id);
    });
}
