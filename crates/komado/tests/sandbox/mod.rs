//! The sandbox, attacked through the real program: as root, as a user without rights, and where the system allows no namespaces.
//!
//! Everything is allowed to the shell here, and Python tries what a hostile repository would. Each attempt is a row of the
//! table in docs/tools.md.
mod attempts;
mod limits;
mod network;
mod server;

use komado_agent::builtin::{Builtin, BuiltinConfig};
use komado_agent::sandbox::{Confinement, Network, ProcessLimits};
use komado_agent::tools::ToolProvider;
use komado_provider::Cancel;
use std::ffi::OsString;
use std::io::Read;
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;
use tempfile::TempDir;

/// Any user that is not root.
const OTHER_USER: u32 = 65_534;
/// Where the program is, for the tests that run as another user.
const PROGRAM: &str = "KOMADO_SANDBOX_PROGRAM";

/// Where commands run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum On {
    /// This system as it is.
    This,
    /// A system that allows no namespaces.
    WithoutNamespaces,
}

const ALL: [On; 2] = [On::This, On::WithoutNamespaces];

fn program() -> PathBuf {
    std::env::var_os(PROGRAM).map_or_else(|| env!("CARGO_BIN_EXE_komado").into(), PathBuf::from)
}

/// The same tests again. What runs them may be root, as in CI, and then this is the usual case.
#[test]
fn everything_holds_for_a_user_without_rights_as_well() {
    if !rustix::process::geteuid().is_root() {
        return;
    }
    // Where every user may run it.
    let dir = tempfile::tempdir().unwrap();
    std::fs::set_permissions(dir.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
    let copied = |from: &Path, name: &str| {
        let to = dir.path().join(name);
        std::fs::hard_link(from, &to).or_else(|_| std::fs::copy(from, &to).map(drop)).unwrap();
        to
    };
    let tests = copied(&std::env::current_exe().unwrap(), "tests");
    let program = copied(&program(), "komado");
    let own = dir.path().join("own");
    std::fs::create_dir(&own).unwrap();
    chown(&own, Some(OTHER_USER), Some(OTHER_USER)).unwrap();
    let mut again = Command::new(tests);
    again
        .args(["sandbox::", "--skip", "everything_holds_for_a_user_without_rights_as_well"])
        .current_dir(&own);
    again.env(PROGRAM, program).env("TMPDIR", &own).env("HOME", &own).uid(OTHER_USER).gid(OTHER_USER);
    let said = again.output().unwrap();
    let text = String::from_utf8_lossy(&said.stdout);
    assert!(said.status.success(), "{text}{}", String::from_utf8_lossy(&said.stderr));
    assert!(!text.contains(" 0 passed"), "{text}");
}

/// What starts `komado confine` there.
fn launcher(on: On) -> Vec<OsString> {
    let before: &[&str] = match on {
        On::This => &[],
        On::WithoutNamespaces => &[
            "unshare",
            "-U",
            "-r",
            "sh",
            "-c",
            "for kind in user net mnt ipc; do echo 0 > /proc/sys/user/max_${kind}_namespaces || exit 99; done; exec \"$@\"",
            "sh",
        ],
    };
    let words = before.iter().map(OsString::from);
    words.chain([program().into(), OsString::from("confine")]).collect()
}

/// Tells of an act that the system did not refuse.
const PRELUDE: &str = "
def attempt(name, act):
    try:
        act()
        print('reached', name)
    except OSError:
        pass
";

/// A working folder with a shell in it, and a folder beside it.
struct Ground {
    dir: TempDir,
    tools: Builtin,
    on: On,
}

impl Ground {
    fn new(on: On) -> Self {
        Self::with(on, |_| {})
    }

    fn with(on: On, change: impl FnOnce(&mut Confinement)) -> Self {
        let dir = tempfile::tempdir().unwrap();
        for name in ["task", "work", "outside"] {
            std::fs::create_dir(dir.path().join(name)).unwrap();
        }
        std::fs::write(dir.path().join("outside/secret"), "SECRET").unwrap();
        let mut confinement = Confinement { launcher: launcher(on), ..Confinement::default() };
        change(&mut confinement);
        let tools = Builtin::new(BuiltinConfig {
            folder: dir.path().join("work"),
            enabled: vec!["shell".into()],
            allow: vec!["*".into()],
            timeout: Duration::from_secs(120),
            most_output: 1 << 20,
            confinement,
        });
        Self { tools: tools.unwrap(), dir, on }
    }

    fn listing(on: On, hosts: &[String]) -> Self {
        Self::with(on, |confinement| confinement.network = Network::parse(hosts).unwrap())
    }

    fn limited(limits: ProcessLimits) -> Self {
        Self::with(On::This, |confinement| confinement.limits = limits)
    }

    fn outside(&self) -> PathBuf {
        self.dir.path().join("outside")
    }

    fn shell(&mut self, line: &str) -> (String, bool) {
        let arguments = serde_json::json!({ "command": line }).to_string();
        let answer = self.tools.call("shell", &arguments, &Cancel::default());
        let mut text = String::new();
        answer.body.reader().read_to_string(&mut text).unwrap();
        (text, answer.is_error)
    }

    /// Runs a Python program that prints what it reached, and must print exactly this.
    fn python(&mut self, program: &str, expected: &str) {
        let program = format!("{PRELUDE}{program}");
        std::fs::write(self.dir.path().join("work/probe.py"), &program).unwrap();
        let (text, _) = self.shell("python3 probe.py");
        let said = text.rsplit_once("[exit code").map_or(text.as_str(), |(said, _)| said);
        assert_eq!(said.trim(), expected, "on {:?}: {program}\n{text}", self.on);
    }
}
