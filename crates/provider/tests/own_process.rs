//! Tests that look at their whole process, run again in one of their own.

use std::process::Command;

/// Runs `test` again in a process of its own, with this environment. True in that process.
pub(crate) fn is_inside(test: &str, environment: &[(&str, &str)]) -> bool {
    const INSIDE: &str = "KOMADO_TEST_INSIDE";
    if std::env::var_os(INSIDE).is_some() {
        return true;
    }
    let mut again = Command::new(std::env::current_exe().unwrap());
    again.args(["--exact", test]).env(INSIDE, "1").env_remove("no_proxy").env_remove("NO_PROXY");
    let done = again.envs(environment.iter().copied()).output().unwrap();
    let said = String::from_utf8_lossy(&done.stdout);
    assert!(
        done.status.success() && said.contains("1 passed"),
        "{said}{}",
        String::from_utf8_lossy(&done.stderr)
    );
    false
}

/// The most memory this process ever held, in kilobytes.
#[cfg(target_os = "linux")]
pub(crate) fn peak() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap();
    line.split_ascii_whitespace().nth(1).unwrap().parse().unwrap()
}
