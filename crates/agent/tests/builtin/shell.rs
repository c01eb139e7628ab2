//! `shell`: how commands run and how they end.

use super::{Bench, heard};
use komado_agent::sandbox::{Confinement, Network, Sandbox};
use komado_agent::tools::ToolProvider;
use komado_provider::Cancel;
use serde_json::json;
use std::time::{Duration, Instant};

/// Far longer than anything here takes, far shorter than what it must not wait for.
pub(super) const SOON: Duration = Duration::from_secs(60);

#[test]
fn output_errors_and_exit_code_come_together() {
    let mut bench = Bench::new();
    let good = bench.shell("echo 窓; echo 誤り >&2; printf 終わり");
    assert_eq!((good.text.as_str(), good.is_error), ("窓\n誤り\n終わり\n[exit code 0]\n", false));
    let bad = bench.shell("exit 3");
    assert_eq!((bad.text.as_str(), bad.is_error), ("[exit code 3]\n", true));
    let signal = bench.shell("kill -TERM $$");
    assert_eq!((signal.text.as_str(), signal.is_error), ("[ended by signal 15]\n", true));
    let fault = bench.shell("kill -SEGV $$");
    assert_eq!((fault.text.as_str(), fault.is_error), ("[ended by signal 11]\n", true));
    let input = bench.shell("cat; echo end");
    assert_eq!(input.text, "end\n[exit code 0]\n");
}

#[test]
fn it_works_in_the_folder_with_a_home_and_temporary_files_of_its_own() {
    let mut bench = Bench::new();
    let heard = bench.shell("pwd; echo x > 新.txt; mktemp > /dev/null && touch \"$HOME/y\" && ls -A");
    let work = bench.work().canonicalize().unwrap();
    assert_eq!(heard.text, format!("{}\n新.txt\n[exit code 0]\n", work.display()));
}

#[test]
fn bytes_that_are_no_text_come_as_marks() {
    let mut bench = Bench::new();
    assert_eq!(bench.shell("printf 'a\\377\\000b'").text, "a\u{fffd}\u{fffd}b\n[exit code 0]\n");
}

#[test]
fn endless_output_ends_at_its_bound() {
    let mut bench = Bench::with(|workshop| workshop.most_output = 300_000);
    let heard = bench.shell("yes");
    assert!(heard.is_error && heard.is_file);
    assert!(
        heard
            .text
            .ends_with("[killed: it printed more than 300000 bytes; narrow it down, or write to a file]\n")
    );
    assert!(heard.text.len() < 300_200, "{}", heard.text.len());
}

#[test]
fn a_command_that_hangs_is_killed_with_all_it_started() {
    let mut bench = Bench::with(|workshop| workshop.timeout = Duration::from_secs(1));
    let began = Instant::now();
    let heard = bench.shell("(sleep 600; echo late > late) & echo $! ; sleep 600");
    assert!(heard.is_error && heard.text.ends_with("[killed: it took longer than 1 s]\n"), "{}", heard.text);
    let sleeper = heard.text.lines().next().unwrap();
    assert!(is_gone(sleeper), "{sleeper} still runs");
    let deaf = bench.shell(
        "python3 -c '\nimport signal, time\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\ntime.sleep(600)'",
    );
    assert!(deaf.text.contains("longer than 1 s"), "{}", deaf.text);
    assert!(began.elapsed() < SOON);
}

#[test]
fn a_shorter_time_can_be_asked_for_but_not_a_longer_one() {
    let mut bench = Bench::with(|workshop| workshop.timeout = Duration::from_secs(1));
    let heard = bench.call("shell", &json!({ "command": "sleep 600", "timeout_seconds": "9999" }));
    assert!(heard.text.contains("longer than 1 s"), "{}", heard.text);
}

#[test]
fn what_runs_in_the_background_ends_with_the_command_and_keeps_nobody_waiting() {
    let mut bench = Bench::new();
    let began = Instant::now();
    let heard = bench.shell("sleep 600 & echo $!");
    assert!(!heard.is_error);
    assert!(is_gone(heard.text.lines().next().unwrap()));
    let fled = bench.shell(
        "python3 -c '\nimport os, time\nif os.fork() == 0:\n    os.setsid()\n    time.sleep(5)\n'; echo done",
    );
    assert_eq!((fled.text.as_str(), fled.is_error), ("done\n[exit code 0]\n", false));
    assert!(began.elapsed() < SOON);
}

#[test]
fn a_cancelled_call_ends_at_once() {
    let mut bench = Bench::new();
    let cancel = Cancel::default();
    cancel.cancel();
    let answer = bench.tools.call("shell", &json!({ "command": "sleep 600" }).to_string(), &cancel);
    assert_eq!(heard(answer).text.lines().last(), Some("[killed: the call was cancelled]"));
}

#[test]
fn a_command_that_closes_its_output_is_waited_for() {
    let mut bench = Bench::new();
    let heard = bench.shell("bash -c 'sleep 0.2; touch made' > /dev/null 2>&1; test -f made");
    assert_eq!(heard.text, "[exit code 0]\n");
    let closed = bench.shell(
        "python3 -c 'import os, time; os.close(1); os.close(2); time.sleep(0.3); open(\"later\", \"w\")'",
    );
    assert_eq!(closed.text, "[exit code 0]\n");
    assert!(bench.work().join("later").exists());
}

#[test]
fn a_command_that_is_not_allowed_is_refused_before_it_runs() {
    let mut bench = Bench::new();
    let heard = bench.shell("touch made; curl https://example.com");
    assert!(heard.is_error && heard.text.contains("\"curl\" is not among the commands"), "{}", heard.text);
    assert!(!bench.work().join("made").exists());
    assert!(bench.shell("  ").text.contains("command is empty"));
}

#[test]
fn without_a_sandbox_a_command_runs_all_the_same() {
    let mut bench = Bench::with(|workshop| {
        workshop.confinement =
            Confinement { sandbox: Sandbox::Off, network: Network::Open, ..Confinement::default() };
    });
    assert_eq!(bench.shell("echo free").text, "free\n[exit code 0]\n");
    let mut stuck = Bench::with(|workshop| workshop.confinement = Confinement::default());
    assert!(stuck.shell("echo free").text.contains("tools.sandbox: off"));
}

/// True as soon as no process has this number, or only its last word is left to be taken: a killed one takes a moment.
pub(super) fn is_gone(pid: &str) -> bool {
    let began = Instant::now();
    while began.elapsed() < SOON {
        if has_ended(pid) {
            return true;
        }
        std::thread::yield_now();
    }
    false
}

fn has_ended(pid: &str) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let state = stat.rsplit(')').next().unwrap_or_default().trim_start().chars().next();
    matches!(state, None | Some('Z' | 'X'))
}
