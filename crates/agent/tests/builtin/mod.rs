//! The built-in tools in a real folder, with what a hostile model would try. The sandbox is the kernel's: where there is
//! no Landlock, the tests of the shell fail.

mod daemon;
mod edit;
mod escape;
mod find;
mod flat;
mod read;
mod sandbox;
mod shell;

use komado_agent::builtin::{ALLOW, Builtin, BuiltinConfig, ENABLED};
use komado_agent::sandbox::{Confinement, run};
use komado_agent::tools::{ToolBody, ToolProvider};
use komado_provider::Cancel;
use serde_json::Value;
use std::ffi::OsString;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tempfile::TempDir;

/// A folder with tools, and a folder beside it that they must not reach.
struct Bench {
    dir: TempDir,
    tools: Builtin,
}

struct Heard {
    text: String,
    is_error: bool,
    is_file: bool,
}

impl Bench {
    fn new() -> Self {
        Self::with(|_| {})
    }

    fn with(change: impl FnOnce(&mut BuiltinConfig)) -> Self {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("work")).unwrap();
        std::fs::create_dir(dir.path().join("outside")).unwrap();
        std::fs::write(dir.path().join("outside/secret.txt"), "SECRET\n").unwrap();
        let mut workshop = workshop(&dir.path().join("work"));
        change(&mut workshop);
        Self { tools: Builtin::new(workshop).unwrap(), dir }
    }

    fn work(&self) -> PathBuf {
        self.dir.path().join("work")
    }

    fn outside(&self) -> PathBuf {
        self.dir.path().join("outside")
    }

    fn write(&self, name: &str, content: impl AsRef<[u8]>) {
        let path = self.work().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
    }

    fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.work().join(name)).unwrap()
    }

    fn call(&mut self, name: &str, arguments: &Value) -> Heard {
        heard(self.tools.call(name, &arguments.to_string(), &Cancel::default()))
    }

    /// Answers well, with these words.
    fn well(&mut self, name: &str, arguments: &Value) -> String {
        let heard = self.call(name, arguments);
        assert!(!heard.is_error, "{name} {arguments}: {}", heard.text);
        heard.text
    }

    /// Answers what went wrong.
    fn wrong(&mut self, name: &str, arguments: &Value) -> String {
        let heard = self.call(name, arguments);
        assert!(heard.is_error, "{name} {arguments}: {}", heard.text);
        heard.text
    }

    fn shell(&mut self, line: &str) -> Heard {
        self.call("shell", &serde_json::json!({ "command": line }))
    }
}

fn workshop(folder: &Path) -> BuiltinConfig {
    BuiltinConfig {
        folder: folder.to_owned(),
        enabled: ENABLED.iter().map(|name| (*name).to_owned()).collect(),
        allow: ALLOW.iter().map(|name| (*name).to_owned()).collect(),
        timeout: Duration::from_secs(60),
        most_output: 1 << 20,
        confinement: Confinement { launcher: launcher(), ..Confinement::default() },
    }
}

/// This very program, which then runs nothing but [`confine_child`].
fn launcher() -> Vec<OsString> {
    let program = std::env::current_exe().unwrap().into_os_string();
    let words = ["--exact", "builtin::confine_child", "--nocapture", "--"];
    std::iter::once(program).chain(words.map(OsString::from)).collect()
}

/// What the shell tool starts; on its own it does nothing.
#[test]
fn confine_child() {
    let words: Vec<OsString> = std::env::args_os().skip_while(|word| word != "--").skip(1).collect();
    if !words.is_empty() {
        let code = run(&launcher(), &words).unwrap_or_else(|why| {
            eprintln!("{why}");
            125
        });
        std::process::exit(code.into());
    }
}

fn heard(answer: komado_agent::tools::ToolAnswer) -> Heard {
    let is_file = matches!(answer.body, ToolBody::File(_));
    let mut text = String::new();
    answer.body.reader().read_to_string(&mut text).unwrap();
    // What the test program says as the keeper, and again before it becomes the command.
    let mut rest = text.as_str();
    while let Some(own) = rest.strip_prefix("\nrunning 1 test\n") {
        rest = own.strip_prefix("test builtin::confine_child ... ").unwrap_or(own);
    }
    let text = rest.to_owned();
    Heard { text, is_error: answer.is_error, is_file }
}

#[test]
fn the_tools_are_offered_in_one_order_and_only_those_that_are_enabled() {
    let all = Bench::new();
    let names: Vec<&str> = all.tools.definitions().iter().map(|tool| tool.name.as_str()).collect();
    assert_eq!(names, ENABLED);
    assert!(all.tools.definitions().iter().all(|tool| tool.schema["type"] == "object"));
    let mut some = Bench::with(|workshop| workshop.enabled = vec!["grep".into(), "read".into()]);
    let names: Vec<&str> = some.tools.definitions().iter().map(|tool| tool.name.as_str()).collect();
    assert_eq!(names, ["read", "grep"]);
    let why = some.wrong("shell", &serde_json::json!({ "command": "ls" }));
    assert_eq!(why, "there is no tool \"shell\"; there are: read, grep");
}

#[test]
fn a_folder_that_is_missing_and_a_tool_that_is_not_known_are_named() {
    let dir = tempfile::tempdir().unwrap();
    let missing = workshop(&dir.path().join("gone"));
    assert!(Builtin::new(missing).err().unwrap().to_string().contains("gone cannot be used"));
    let mut odd = workshop(dir.path());
    odd.enabled.push("fly".into());
    assert!(Builtin::new(odd).err().unwrap().to_string().contains("\"fly\""));
}

#[test]
fn the_manual_lists_every_command_that_may_run() {
    let manual = include_str!("../../../../docs/tools.md");
    let list = manual.split("```text\n").nth(1).unwrap().split("```").next().unwrap();
    assert_eq!(list.split_whitespace().collect::<Vec<_>>(), ALLOW);
}
