//! Paths that would lead out of the folder, in every tool that takes one.

use super::Bench;
use serde_json::json;
use std::os::unix::fs::symlink;
use std::sync::atomic::{AtomicBool, Ordering};

#[test]
fn a_path_that_leads_out_is_refused_and_named() {
    let mut bench = Bench::new();
    symlink("../outside", bench.work().join("dir_link")).unwrap();
    symlink("../outside/secret.txt", bench.work().join("file_link")).unwrap();
    symlink(bench.outside(), bench.work().join("far_link")).unwrap();
    symlink("/proc/self/root", bench.work().join("root_link")).unwrap();
    bench.write("sub/x", "x");
    let outside = bench.outside().join("secret.txt");
    let paths = [
        "../outside/secret.txt",
        "sub/../../outside/secret.txt",
        outside.to_str().unwrap(),
        "dir_link/secret.txt",
        "file_link",
        "far_link/secret.txt",
        "root_link/etc/passwd",
        "/proc/self/root/etc/passwd",
        "/proc/self/cwd/x",
        "/etc/passwd",
        "//etc/passwd",
        "..",
    ];
    for path in paths {
        for (tool, order) in [
            ("read", json!({ "path": path })),
            ("list", json!({ "path": path })),
            ("grep", json!({ "path": path, "pattern": "SECRET" })),
            ("edit", json!({ "path": path, "old": "SECRET", "new": "x" })),
            ("edit", json!({ "path": path, "content": "x" })),
        ] {
            let why = bench.wrong(tool, &order);
            assert!(why.contains("leads out of the working folder"), "{tool} {path}: {why}");
            assert!(!why.contains("SECRET"));
        }
    }
    assert_eq!(std::fs::read_to_string(outside).unwrap(), "SECRET\n");
    assert_eq!(std::fs::read_dir(bench.outside()).unwrap().count(), 1);
}

#[test]
fn a_new_file_is_not_made_behind_a_link() {
    let mut bench = Bench::new();
    symlink("../outside", bench.work().join("link")).unwrap();
    symlink("../outside/new", bench.work().join("dangling")).unwrap();
    bench.wrong("edit", &json!({ "path": "link/new.txt", "content": "x" }));
    bench.wrong("edit", &json!({ "path": "link/a/b/new.txt", "content": "x" }));
    bench.wrong("edit", &json!({ "path": "dangling", "content": "x" }));
    assert_eq!(std::fs::read_dir(bench.outside()).unwrap().count(), 1);
}

#[test]
fn a_walk_shows_links_and_follows_none() {
    let mut bench = Bench::new();
    symlink("../outside", bench.work().join("link")).unwrap();
    symlink(".", bench.work().join("loop")).unwrap();
    assert_eq!(bench.well("list", &json!({ "depth": 9 })), "link (a link)\nloop (a link)\n");
    assert_eq!(bench.well("grep", &json!({ "pattern": "SECRET" })), "no line in . matches");
}

#[test]
fn a_hard_link_to_a_file_outside_is_cut_not_written_through() {
    let mut bench = Bench::new();
    let secret = bench.outside().join("secret.txt");
    std::fs::hard_link(&secret, bench.work().join("hard")).unwrap();
    bench.well("edit", &json!({ "path": "hard", "content": "mine" }));
    assert_eq!(std::fs::read_to_string(secret).unwrap(), "SECRET\n");
}

#[test]
fn a_link_swapped_in_while_tools_run_never_leads_out() {
    let mut bench = Bench::new();
    bench.write("sub/secret.txt", "INSIDE\n");
    let (work, done) = (bench.work(), AtomicBool::new(false));
    symlink("../outside", work.join("other")).unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Ordering::SeqCst) {
                let swap = rustix::fs::RenameFlags::EXCHANGE;
                let here = rustix::fs::CWD;
                rustix::fs::renameat_with(here, work.join("sub"), here, work.join("other"), swap).unwrap();
            }
        });
        for round in 0..300 {
            let read = bench.call("read", &json!({ "path": "sub/secret.txt" }));
            let found = bench.call("grep", &json!({ "pattern": "S", "path": "sub" }));
            let list = bench.call("list", &json!({ "path": "." }));
            bench.call("edit", &json!({ "path": "sub/new.txt", "content": round.to_string() }));
            for heard in [read, found, list] {
                assert!(!heard.text.contains("SECRET"), "{}", heard.text);
            }
        }
        done.store(true, Ordering::SeqCst);
    });
    assert_eq!(std::fs::read_dir(bench.outside()).unwrap().count(), 1);
}
