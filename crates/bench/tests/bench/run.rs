//! The binary in a folder of its own: fixed environment, nothing from the machine.

use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

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

    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_komado-bench"));
        command.args(args).current_dir(self.path()).env_clear();
        command.env("PATH", std::env::var_os("PATH").unwrap_or_default()).env("HOME", self.home.path());
        command
    }

    pub(crate) fn run(&self, args: &[&str]) -> Said {
        ended(self.command(args))
    }

    /// Runs what must succeed; gives standard output.
    pub(crate) fn ok(&self, args: &[&str]) -> String {
        let said = self.run(args);
        assert_eq!(said.code, 0, "{args:?}: {}{}", said.out, said.err);
        said.out
    }

    pub(crate) fn json(&self, args: &[&str]) -> Value {
        serde_json::from_str(&self.ok(&[args, &["--json"]].concat())).unwrap()
    }
}

pub(crate) fn ended(mut command: Command) -> Said {
    let out = command.stdin(Stdio::null()).output().unwrap();
    Said {
        code: out.status.code().unwrap_or(-1),
        out: String::from_utf8(out.stdout).unwrap(),
        err: String::from_utf8(out.stderr).unwrap(),
    }
}

/// The Python that `make setup` makes.
pub(crate) fn python() -> PathBuf {
    let made = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/python/bin/python");
    std::env::var_os("KOMADO_PYTHON").map_or_else(made, PathBuf::from)
}
