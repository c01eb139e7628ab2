//! Nobody outlives the call that started them, however they hide and however it ends.

use super::shell::{SOON, is_gone};
use super::{Bench, heard};
use komado_agent::sandbox::{Network, Sandbox};
use komado_agent::tools::ToolProvider;
use komado_provider::Cancel;
use serde_json::json;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Leaves its group, its session and its parent, as daemons do, and says who it is in the file `pid`.
const DAEMON: &str = "python3 -c '
import os, time
os.fork() and os._exit(0)
os.setsid()
os.fork() and os._exit(0)
open(\"new\", \"w\").write(str(os.getpid()))
os.rename(\"new\", \"pid\")
time.sleep(3333)'
until [ -f pid ]; do sleep 0.01; done";

/// What stands in a file as soon as it is there.
fn awaited(path: &Path) -> Option<String> {
    let began = Instant::now();
    while began.elapsed() < SOON {
        if let Ok(text) = std::fs::read_to_string(path) {
            return Some(text);
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    None
}

#[test]
fn a_daemon_ends_with_the_command_that_started_it() {
    let mut bench = Bench::new();
    let heard = bench.shell(DAEMON);
    assert_eq!((heard.text.as_str(), heard.is_error), ("[exit code 0]\n", false));
    assert!(is_gone(&bench.read("pid")));
}

#[test]
fn a_daemon_ends_with_a_command_that_has_no_wall() {
    let mut bench = Bench::with(|workshop| {
        workshop.confinement.sandbox = Sandbox::Off;
        workshop.confinement.network = Network::Open;
        workshop.allow = vec!["*".into()];
    });
    let heard = bench.shell("setsid sleep 3333 & echo $! > pid; cat ../outside/secret.txt");
    assert_eq!((heard.text.as_str(), heard.is_error), ("SECRET\n[exit code 0]\n", false));
    assert!(is_gone(bench.read("pid").trim()));
}

#[test]
fn a_daemon_ends_with_a_call_that_is_cancelled() {
    let mut bench = Bench::new();
    let (work, cancel) = (bench.work(), Cancel::default());
    let line = json!({ "command": format!("{DAEMON}; sleep 3333") }).to_string();
    let (answer, pid) = std::thread::scope(|scope| {
        let waiting = scope.spawn(|| {
            let pid = awaited(&work.join("pid"));
            cancel.cancel();
            pid
        });
        (bench.tools.call("shell", &line, &cancel), waiting.join().unwrap())
    });
    assert_eq!(heard(answer).text, "[killed: the call was cancelled]\n");
    assert!(is_gone(&pid.unwrap()));
}

#[test]
fn whoever_starts_itself_again_and_again_is_caught() {
    let mut bench = Bench::new();
    let heard = bench.shell(
        "python3 -c '
import os
os.fork() and os._exit(0)
os.setsid()
for round in range(1000000):
    os.fork() and os._exit(0)
    if round == 100:
        open(\"runs\", \"w\")
'
until [ -f runs ]; do sleep 0.01; done",
    );
    assert_eq!((heard.text.as_str(), heard.is_error), ("[exit code 0]\n", false));
    for _ in 0..20 {
        assert_eq!(who_works_in(&bench.work()), Vec::<String>::new());
    }
}

fn who_works_in(folder: &Path) -> Vec<String> {
    let folder = folder.canonicalize().unwrap();
    let processes = std::fs::read_dir("/proc").unwrap().map(|entry| entry.unwrap().path());
    let there =
        processes.filter(|process| std::fs::read_link(process.join("cwd")).is_ok_and(|cwd| cwd == folder));
    there.map(|process| process.display().to_string()).collect()
}

/// Landlock does so from Linux 6.12 on.
fn walls_stop_signals() -> bool {
    let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap();
    let mut numbers = release.split(['.', '-']).map_while(|number| number.parse::<u32>().ok());
    (numbers.next(), numbers.next()) >= (Some(6), Some(12))
}

#[test]
fn a_command_cannot_end_its_keeper() {
    let mut bench = Bench::new();
    if walls_stop_signals() {
        assert_eq!(bench.shell("kill -KILL $PPID 2> /dev/null; echo on").text, "on\n[exit code 0]\n");
    }
    let heard = bench.shell(&format!("{DAEMON}; kill -KILL 0"));
    assert_eq!(heard.text, "[ended by signal 9]\n");
    assert!(is_gone(&bench.read("pid")));
}

/// What [`a_killed_task_leaves_no_process_and_no_home_for_long`] starts; on its own it does nothing.
#[test]
fn task_child() {
    let mut words = std::env::args_os().skip_while(|word| word != "--").skip(1);
    if let (Some(folder), Some(line)) = (words.next(), words.next()) {
        let mut tools = komado_agent::builtin::Builtin::new(super::workshop(Path::new(&folder))).unwrap();
        let line = json!({ "command": line.to_str() }).to_string();
        tools.call("shell", &line, &Cancel::default());
    }
}

#[test]
fn a_killed_task_leaves_no_process_and_no_home_for_long() {
    let dir = tempfile::tempdir().unwrap();
    let (work, temporary) = (dir.path().join("work"), dir.path().join("tmp"));
    std::fs::create_dir(&work).unwrap();
    std::fs::create_dir(&temporary).unwrap();
    let task = |line: &str| {
        let mut task = Command::new(std::env::current_exe().unwrap());
        task.args(["--exact", "builtin::daemon::task_child", "--nocapture", "--"]).arg(&work).arg(line);
        task.env("TMPDIR", &temporary).stdin(Stdio::null()).stdout(Stdio::null()).spawn().unwrap()
    };
    let homes = || std::fs::read_dir(&temporary).unwrap().count();
    let mut killed = task(&format!("{DAEMON}; sleep 3333"));
    let pid = awaited(&work.join("pid"));
    killed.kill().unwrap();
    killed.wait().unwrap();
    assert!(is_gone(&pid.unwrap()));
    assert_eq!(homes(), 1);
    assert!(task("true").wait().unwrap().success());
    assert_eq!(homes(), 0);
}
