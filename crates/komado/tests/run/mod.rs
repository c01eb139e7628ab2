//! The binary in a folder of its own: fixed environment, nothing from the machine.
#![allow(dead_code, clippy::unwrap_used, clippy::expect_used)]

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use std::fs::File;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// A folder to run in, and a home elsewhere.
pub(crate) struct Place {
    folder: tempfile::TempDir,
    home: tempfile::TempDir,
}

/// What a run gave.
pub(crate) struct Said {
    pub(crate) code: i32,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Place {
    pub(crate) fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap(), home: tempfile::tempdir().unwrap() }
    }

    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }

    /// The user's home.
    pub(crate) fn home(&self) -> &Path {
        self.home.path()
    }

    /// Where sessions are kept: in the user's data folder.
    pub(crate) fn base(&self) -> PathBuf {
        self.home().join(".local/share/komado/contexts")
    }

    /// A folder of sessions in the working folder, which may have come with it.
    pub(crate) fn contexts(&self) -> PathBuf {
        self.path().join("contexts")
    }

    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = self.program(env!("CARGO_BIN_EXE_komado"));
        command.args(args);
        command
    }

    /// Any program, here and with the same environment.
    pub(crate) fn program(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command.current_dir(self.path()).env_clear();
        command.env("PATH", std::env::var_os("PATH").unwrap_or_default()).env("HOME", self.home());
        command
    }

    /// Writes the folder's settings, and consents to them.
    pub(crate) fn settings(&self, yaml: &str) {
        std::fs::write(self.path().join("komado.yaml"), yaml).unwrap();
        self.ok(&["admin", "trust", "komado.yaml"]);
    }

    pub(crate) fn run(&self, args: &[&str]) -> Said {
        self.feed(args, b"")
    }

    pub(crate) fn feed(&self, args: &[&str], input: &[u8]) -> Said {
        feed(self.command(args), input)
    }

    /// Runs what must succeed; gives standard output.
    pub(crate) fn ok(&self, args: &[&str]) -> String {
        let said = self.run(args);
        assert_eq!(said.code, 0, "{args:?}: {}{}", said.out, said.err);
        said.out
    }

    pub(crate) fn json(&self, args: &[&str]) -> serde_json::Value {
        let all: Vec<&str> = args.iter().copied().chain(["--json"]).collect();
        serde_json::from_str(&self.ok(&all)).unwrap()
    }

    pub(crate) fn json_lines(&self, args: &[&str]) -> Vec<serde_json::Value> {
        let all: Vec<&str> = args.iter().copied().chain(["--json"]).collect();
        self.ok(&all).lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// A session that counts cheaply.
    pub(crate) fn session(&self) -> String {
        self.session_with(&["--meter", "bytes4", "--window", "8000"])
    }

    pub(crate) fn session_with(&self, options: &[&str]) -> String {
        let args: Vec<&str> = ["new"].iter().chain(options).copied().collect();
        self.json(&args)["session"].as_str().unwrap().to_owned()
    }

    pub(crate) fn append(&self, session: &str, lines: &str) -> Said {
        self.feed(&["append", session, "--jsonl", "-"], lines.as_bytes())
    }

    pub(crate) fn folder(&self, session: &str) -> PathBuf {
        let halves = ["running", "completed"].map(|half| self.base().join(half).join(session));
        halves.into_iter().find(|path| path.exists()).unwrap()
    }
}

/// A terminal: our end, and the one that a program gets.
pub(crate) fn terminal() -> (File, File) {
    let ours = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&ours).unwrap();
    unlockpt(&ours).unwrap();
    let name = ptsname(&ours, Vec::new()).unwrap();
    let flags = rustix::fs::OFlags::RDWR | rustix::fs::OFlags::NOCTTY;
    let theirs = rustix::fs::open(name.as_c_str(), flags, rustix::fs::Mode::empty()).unwrap();
    (File::from(ours), File::from(theirs))
}

/// Runs a command at a terminal of its own; gives its exit code and what came to the terminal.
pub(crate) fn at_terminal(mut command: Command) -> (i32, String) {
    let (mut ours, theirs) = terminal();
    command.env("TERM", "xterm").stdin(Stdio::null());
    command.stdout(Stdio::from(theirs.try_clone().unwrap())).stderr(Stdio::from(theirs));
    let mut child = command.spawn().unwrap();
    // The other end is closed here with the command, so that reading ends when the program does.
    drop(command);
    let (mut text, mut bytes) = (Vec::new(), [0; 4096]);
    // A terminal that was left is an error to read from.
    while let Ok(n @ 1..) = ours.read(&mut bytes) {
        text.extend_from_slice(&bytes[..n]);
    }
    (child.wait().unwrap().code().unwrap_or(-1), String::from_utf8(text).unwrap())
}

pub(crate) fn feed(mut command: Command, input: &[u8]) -> Said {
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let input = input.to_vec();
    let writer = std::thread::spawn(move || {
        let _ = stdin.write_all(&input);
    });
    let Output { status, stdout, stderr } = child.wait_with_output().unwrap();
    writer.join().unwrap();
    Said {
        code: status.code().unwrap_or(-1),
        out: String::from_utf8(stdout).unwrap(),
        err: String::from_utf8(stderr).unwrap(),
    }
}

/// A small conversation with calls.
pub(crate) const TALK: &str = r#"{"role":"user","content":"バグを直して main.py"}
{"role":"assistant","content":"I look","tool_calls":[{"id":"c1","type":"function","function":{"name":"read","arguments":"{\"path\":\"main.py\"}"}},{"id":"c2","type":"function","function":{"name":"ls","arguments":"{}"}}]}
{"role":"tool","tool_call_id":"c1","content":"def main():\n    print(\"hello, small window\")\n\nif __name__ == \"__main__\":\n    main()"}
{"role":"tool","tool_call_id":"c2","content":"README.md\nmain.py\ntests/test_main.py\ntests/test_window.py\npyproject.toml"}
{"role":"assistant","content":"Done."}
{"role":"user","content":"Thanks"}
"#;
