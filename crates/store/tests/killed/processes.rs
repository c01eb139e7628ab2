//! Writers as processes of their own: this binary once more, told what to write by its environment.
//!
//! A line on standard output acknowledges an entry. One that the kill cut short has no line break and acknowledges nothing.

use crate::killed::holder;
use crate::killed::ledger::Ledger;
use crate::killed::load;
use komado_store::FileStore;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::thread::JoinHandle;

/// Where such a process writes, and to which sessions.
const FOLDER: &str = "KOMADO_TEST_FOLDER";
const SESSIONS: &str = "KOMADO_TEST_SESSIONS";

/// True in such a process.
pub(crate) fn is_one() -> bool {
    std::env::var_os(FOLDER).is_some()
}

pub(crate) fn store(folder: &Path) -> FileStore {
    FileStore::new(folder, holder("a writer"))
}

/// Writes for as long as it lives; nothing at all in a process that was not started for it.
pub(crate) fn write_until_killed() {
    let (Some(folder), Ok(sessions)) = (std::env::var_os(FOLDER), std::env::var(SESSIONS)) else { return };
    let (store, never) = (store(Path::new(&folder)), AtomicBool::new(false));
    std::thread::scope(|scope| {
        for session in sessions.split(' ') {
            let told = move |n| println!("acknowledged {session} {n}");
            let (store, never) = (&store, &never);
            scope.spawn(move || load::write(store, session, never, &mut { told }).unwrap());
        }
    });
}

/// A process that writes.
pub(crate) struct Process {
    child: Child,
    heard: Option<JoinHandle<()>>,
}

impl Process {
    pub(crate) fn start(folder: &Path, sessions: &[&str], ledger: &Arc<Ledger>) -> Self {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", "killed::one_process_that_writes", "--nocapture"]);
        command.env(FOLDER, folder).env(SESSIONS, sessions.join(" "));
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let (stdout, ledger) = (child.stdout.take().unwrap(), Arc::clone(ledger));
        let heard = std::thread::spawn(move || hear(stdout, &ledger));
        Self { child, heard: Some(heard) }
    }

    /// Kills it, and waits for the last that it said.
    pub(crate) fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
        if let Some(heard) = self.heard.take() {
            heard.join().unwrap();
        }
    }
}

fn hear(stdout: ChildStdout, ledger: &Ledger) {
    let mut stdout = BufReader::new(stdout);
    let mut line = String::new();
    while stdout.read_line(&mut line).is_ok_and(|n| n > 0) && line.ends_with('\n') {
        if let Some((session, n)) =
            line.trim_end().strip_prefix("acknowledged ").and_then(|said| said.split_once(' '))
        {
            ledger.note(session, n.parse().unwrap());
        }
        line.clear();
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
