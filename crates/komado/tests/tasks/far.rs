//! The MCP server that is reached over HTTP, and the Python that has the official SDK.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// The Python that `make setup` makes.
pub(crate) fn python() -> PathBuf {
    let made = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/python/bin/python");
    let python = std::env::var_os("KOMADO_PYTHON").map_or_else(made, PathBuf::from);
    assert!(python.exists(), "{} is not there: run `make setup`, which makes it", python.display());
    python
}

/// The server of the tests, which is started over pipes or at an address.
pub(crate) fn program() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../agent/tests/mcp/server.py")
}

/// One at an address; it ends with this value.
pub(crate) struct Far {
    child: Child,
    pub(crate) url: String,
}

impl Far {
    pub(crate) fn start() -> Self {
        let mut command = Command::new(python());
        command.arg(program()).args(["--http", "--stateless"]).stdin(Stdio::null()).stdout(Stdio::piped());
        let mut child = command.env("PYTHONDONTWRITEBYTECODE", "1").spawn().unwrap();
        let mut port = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut port).unwrap();
        let url = format!("http://127.0.0.1:{}/mcp", port.trim());
        Self { child, url }
    }
}

impl Drop for Far {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
