//! What a command may take.

use super::{Ground, ProcessLimits};

#[test]
fn a_command_that_takes_too_much_memory_is_killed_with_the_reason() {
    let mut ground = Ground::limited(ProcessLimits { memory: 200 << 20, ..ProcessLimits::default() });
    let (text, is_error) =
        ground.shell("python3 -c 'import time; x = bytearray(300 << 20); time.sleep(60)'; echo survived");
    assert!(is_error && text.contains("more than 200 MB of memory (tools.max_memory_mb)"), "{text}");
    assert!(!text.contains("survived"), "{text}");
    let (text, is_error) = ground.shell(
        "for i in 1 2 3; do python3 -c 'import time; x = bytearray(90 << 20); time.sleep(60)' & done; wait",
    );
    assert!(is_error && text.contains("tools.max_memory_mb"), "those of all processes count: {text}");
    assert_eq!(ground.shell("echo on").0, "on\n[exit code 0]\n");
}

#[test]
fn a_command_that_starts_too_many_processes_is_killed_with_the_reason() {
    let mut ground = Ground::limited(ProcessLimits { processes: 40, ..ProcessLimits::default() });
    let (text, is_error) = ground.shell("for i in $(seq 60); do sleep 60 & done; wait; echo survived");
    assert!(is_error && text.contains("and 40 are the most (tools.max_processes)"), "{text}");
    assert!(!text.contains("survived"), "{text}");
}

#[test]
fn a_command_that_takes_too_much_processor_time_is_killed_with_the_reason() {
    let mut ground = Ground::limited(ProcessLimits { cpu: 1, ..ProcessLimits::default() });
    let (text, is_error) =
        ground.shell("sh -c 'while :; do :; done' & sh -c 'while :; do :; done'; echo survived");
    assert!(is_error && text.contains("more than 1 s of processor time (tools.max_cpu_seconds)"), "{text}");
    assert!(!text.contains("survived"), "{text}");
    // Also what has ended counts.
    let (text, is_error) = ground.shell("while :; do python3 -c 'sum(range(3000000))'; done");
    assert!(is_error && text.contains("tools.max_cpu_seconds"), "{text}");
}

#[test]
fn a_command_that_fills_the_disk_is_killed_with_the_reason_and_clearing_up_is_not() {
    let mut ground = Ground::limited(ProcessLimits { disk: 64 << 20, ..ProcessLimits::default() });
    assert_eq!(ground.shell("head -c 20000000 /dev/zero > a; echo small").0, "small\n[exit code 0]\n");
    let (text, is_error) =
        ground.shell("i=0; while :; do i=$((i+1)); head -c 20000000 /dev/zero > f$i; sleep 0.2; done");
    assert!(is_error && text.contains("more than they may (tools.max_disk_mb)"), "{text}");
    assert_eq!(ground.shell("rm f*; echo cleared").0, "cleared\n[exit code 0]\n");
}

#[test]
fn what_no_folder_and_no_mapping_shows_counts_all_the_same() {
    let mut ground =
        Ground::limited(ProcessLimits { memory: 200 << 20, disk: 64 << 20, ..ProcessLimits::default() });
    let hidden = "import os, time; f = os.memfd_create('x'); [os.write(f, bytes(1 << 20)) for _ in range(300)]; time.sleep(60)";
    let (text, is_error) = ground.shell(&format!("python3 -c \"{hidden}\""));
    assert!(is_error && text.contains("tools.max_memory_mb"), "{text}");
    let nameless = "import os, time; f = open('x', 'wb'); os.unlink('x')\nwhile True: f.write(bytes(20 << 20)); f.flush(); time.sleep(0.2)";
    let (text, is_error) = ground.shell(&format!("python3 -c \"{nameless}\""));
    assert!(is_error && text.contains("tools.max_disk_mb"), "{text}");
}

/// The keeper writes to the same pipe as the command, which may have made it small, full and impatient.
#[test]
fn a_keeper_whose_words_find_no_way_ends_all_that_was_started() {
    let mut ground = Ground::limited(ProcessLimits { memory: 150 << 20, ..ProcessLimits::default() });
    let flood = r#"
import fcntl, os, time
fcntl.fcntl(2, fcntl.F_SETFL, fcntl.fcntl(2, fcntl.F_GETFL) | os.O_NONBLOCK)
fcntl.fcntl(2, 1031, 4096)
child = os.fork()
if child == 0:
    os.setsid()
    time.sleep(3333)
open("child", "w").write(str(child))
x = bytearray(250 << 20)
for _ in range(2000):
    try:
        os.write(2, b"x" * 100)
    except BlockingIOError:
        pass
    time.sleep(0.01)
time.sleep(3333)
"#;
    std::fs::write(ground.dir.path().join("work/flood.py"), flood).unwrap();
    let (text, is_error) = ground.shell("python3 flood.py");
    assert!(is_error, "{text}");
    let child = std::fs::read_to_string(ground.dir.path().join("work/child")).unwrap();
    assert!(!std::path::Path::new("/proc").join(&child).exists(), "{child} still runs: {text}");
}
