//! What the tests stand on: a Python that has the SDK, servers from it, and answers in words.

use komado_agent::mcp::{McpServer, McpServers, McpTransport};
use komado_agent::sandbox::{Confinement, Network, Sandbox};
use komado_agent::tools::{ToolAnswer, ToolProvider};
use komado_provider::Cancel;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use tempfile::TempDir;

/// The Python that `make setup` makes.
pub(crate) fn python() -> PathBuf {
    let made = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/python/bin/python");
    let python = std::env::var_os("KOMADO_PYTHON").map_or_else(made, PathBuf::from);
    assert!(python.exists(), "{} is not there: run `make setup`, which makes it", python.display());
    python
}

pub(crate) fn program(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/mcp").join(name);
    path.to_str().unwrap().to_owned()
}

/// A server that is a Python program.
pub(crate) fn by_command(name: &str, args: &[&str]) -> McpServer {
    let how = McpTransport::Command {
        program: python().to_str().unwrap().to_owned(),
        args: args.iter().map(ToString::to_string).collect(),
        env: vec![("PYTHONDONTWRITEBYTECODE".to_owned(), "1".to_owned())],
        folder: None,
        work: None,
        confinement: Confinement { sandbox: Sandbox::Off, network: Network::Open, ..Confinement::default() },
    };
    server(name, how)
}

/// A server at an address.
pub(crate) fn at(url: &str) -> McpServer {
    server("far", McpTransport::Http { url: url.to_owned(), headers: Vec::new() })
}

fn server(name: &str, how: McpTransport) -> McpServer {
    let long = Duration::from_secs(60);
    McpServer { name: name.to_owned(), how, start: long, call: long, only: Vec::new() }
}

pub(crate) fn open(servers: &[McpServer]) -> McpServers {
    McpServers::open(servers, &Cancel::default()).unwrap_or_else(|why| panic!("{why}"))
}

/// Why servers cannot be opened.
pub(crate) fn refusal(servers: &[McpServer]) -> String {
    match McpServers::open(servers, &Cancel::default()) {
        Ok(_) => panic!("they open"),
        Err(why) => why.to_string(),
    }
}

/// What a call is answered with.
pub(crate) fn said(servers: &mut McpServers, name: &str, arguments: &str) -> (String, bool) {
    words(servers.call(name, arguments, &Cancel::default()))
}

pub(crate) fn words(answer: ToolAnswer) -> (String, bool) {
    (std::io::read_to_string(answer.body.reader()).unwrap(), answer.is_error)
}

/// What an answer that must be right says.
pub(crate) fn right(servers: &mut McpServers, name: &str, arguments: &str) -> String {
    let (text, is_error) = said(servers, name, arguments);
    assert!(!is_error, "{name}: {text}");
    text
}

/// What an answer that must be wrong says.
pub(crate) fn wrong(servers: &mut McpServers, name: &str, arguments: &str) -> String {
    let (text, is_error) = said(servers, name, arguments);
    assert!(is_error, "{name}: {text}");
    text
}

/// The server that misbehaves, and its notes.
pub(crate) struct Rogue {
    pub(crate) server: McpServer,
    folder: TempDir,
}

impl Rogue {
    pub(crate) fn new(how: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let notes = folder.path().join("notes");
        let server = by_command("rogue", &[&program("rogue.py"), how, notes.to_str().unwrap()]);
        Self { server, folder }
    }

    pub(crate) fn open(&self) -> McpServers {
        open(std::slice::from_ref(&self.server))
    }

    pub(crate) fn refusal(&self) -> String {
        refusal(std::slice::from_ref(&self.server))
    }

    pub(crate) fn notes(&self) -> String {
        std::fs::read_to_string(self.folder.path().join("notes")).unwrap_or_default()
    }

    /// How often it was started.
    pub(crate) fn starts(&self) -> usize {
        self.pids().len()
    }

    pub(crate) fn pids(&self) -> Vec<u32> {
        let notes = self.notes();
        notes.lines().filter_map(|line| line.strip_prefix("pid ")).map(|pid| pid.parse().unwrap()).collect()
    }

    /// Nothing that it started is left.
    pub(crate) fn assert_gone(&self) {
        assert!(self.starts() > 0, "it was never there");
        for pid in self.pids() {
            await_end(pid);
        }
    }
}

/// Waits until a process is gone: one that was killed may still be on its way.
pub(crate) fn await_end(pid: u32) {
    let until = std::time::Instant::now() + Duration::from_secs(60);
    while is_there(pid) {
        assert!(std::time::Instant::now() < until, "process {pid} is left");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// One that has ended counts as gone, also where nobody has waited for it: its parent may be gone as well.
fn is_there(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with(['Z', 'X']))
}

/// Runs a test once more in a process of its own, where `ALONE` is set: what it looks at is the whole process's.
pub(crate) fn alone(test: &str, environment: &[(&str, &str)]) {
    let mut again = Command::new(std::env::current_exe().unwrap());
    again.args(["--exact", test, "--nocapture"]).env(ALONE, "1").envs(environment.iter().copied());
    let out = again.output().unwrap();
    let said = String::from_utf8_lossy(&out.stdout);
    assert!(out.status.success(), "{said}{}", String::from_utf8_lossy(&out.stderr));
    assert!(said.contains("1 passed"), "{said}");
    print!("{said}");
}

pub(crate) const ALONE: &str = "KOMADO_MCP_ALONE";

/// The server of the SDK at an address, ended with the test.
pub(crate) struct Served {
    child: Child,
    pub(crate) port: u16,
}

impl Served {
    pub(crate) fn start(options: &[&str], port: u16) -> Self {
        let mut command = Command::new(python());
        command.arg(program("server.py")).arg("--http").args(options);
        command.env("PORT", port.to_string());
        Self::run(command)
    }

    /// Over https, with a certificate in this folder.
    pub(crate) fn start_secure(folder: &Path) -> Self {
        let mut command = Command::new(python());
        command.arg(program("server.py")).arg("--http").env("TLS", folder);
        Self::run(command)
    }

    fn run(mut command: Command) -> Self {
        command.env("PYTHONDONTWRITEBYTECODE", "1");
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        Self { port: line.trim().parse().unwrap(), child }
    }

    pub(crate) fn server(&self) -> McpServer {
        at(&format!("http://127.0.0.1:{}/mcp", self.port))
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
