//! A place with a queue and a model that follows a script.

use crate::task::run::{Place, Said};
use komado_provider::scripted::{
    ScriptStep, ScriptedOptions, ScriptedReply, ScriptedServer as Model, ScriptedSteps, StepCondition,
    ToolCall,
};
use komado_store::{FileStore, Holder};
use serde_json::{Value, json};
use std::io::ErrorKind;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Long enough for a slow machine; what hangs would hang for ever.
const PATIENCE: Duration = Duration::from_secs(120);

pub(crate) struct Shop {
    pub(crate) place: Place,
    model: Model,
}

impl Shop {
    /// With what the model does, and settings beside the usual ones.
    pub(crate) fn new(steps: Vec<ScriptStep>, more: &str) -> Self {
        let script = ScriptedSteps::from(steps.into_iter().map(ScriptStep::always).collect::<Vec<_>>());
        let model =
            Model::start(ScriptedOptions { script, window: Some(32_000), ..ScriptedOptions::default() })
                .unwrap();
        let shop = Self { place: Place::new(), model };
        shop.set(more);
        shop
    }

    /// Writes the settings anew.
    pub(crate) fn set(&self, more: &str) {
        let url = self.model.url();
        let settings = format!(
            "llm:\n  provider: here\n  here: {{dialect: openai, base_url: '{url}/v1', model: m, context_length: 32000}}\n\
             work: {{hidden_seconds: 3, pause_seconds: 0, poll_seconds: 1, tries: 3, grace_seconds: 1}}\n\
             tools: {{sandbox: 'off', network: open, allow: ['*'], timeout_seconds: 2}}\n{more}"
        );
        self.place.settings(&settings);
    }

    /// Writes the settings anew, with another sandbox.
    pub(crate) fn set_sandbox(&self, sandbox: &str) {
        let settings = std::fs::read_to_string(self.place.path().join("komado.yaml")).unwrap();
        self.place.settings(&settings.replace("sandbox: 'off'", &format!("sandbox: '{sandbox}'")));
    }

    /// Queues a task that works in the folder of the place; gives its session.
    pub(crate) fn add(&self, text: &str) -> String {
        let folder = self.place.path().display().to_string();
        self.place.ok(&["task", "add", text, "--folder", &folder]).trim().to_owned()
    }

    /// Works until nothing is left to take.
    pub(crate) fn work(&self) -> String {
        self.place.ok(&["task", "work", "--once"])
    }

    pub(crate) fn show(&self, task: &str) -> Value {
        self.place.json(&["task", "show", task])
    }

    pub(crate) fn state(&self, task: &str) -> String {
        self.show(task)["state"].as_str().unwrap().to_owned()
    }

    /// Runs a verb that is refused with this code; gives what it says.
    pub(crate) fn refused(&self, args: &[&str], code: i32) -> String {
        let Said { code: was, out, err } = self.place.run(args);
        assert_eq!((was, out.as_str()), (code, ""), "{args:?}: {err}");
        err
    }

    /// A worker that ends with this value.
    pub(crate) fn worker(&self) -> Worker {
        self.worker_with(&[])
    }

    /// One with these options.
    pub(crate) fn worker_with(&self, options: &[&str]) -> Worker {
        let mut command = self.place.command(&[&["task", "work"], options].concat());
        Worker(command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap())
    }

    /// The store of the place, to look into its queue.
    pub(crate) fn store(&self) -> FileStore {
        let (host, program, since) = ("here".to_owned(), "test".to_owned(), "now".to_owned());
        FileStore::new(&self.place.base(), Holder { pid: 0, host, program, since })
    }

    /// Waits until the call of [`long`] is under way.
    pub(crate) fn await_begun(&self) {
        let begun = self.place.path().join("begun");
        await_that("the task begins", || begun.exists());
        std::fs::remove_file(begun).unwrap();
    }

    pub(crate) fn await_state(&self, task: &str, state: &str) {
        await_that(state, || self.state(task) == state);
    }

    /// The messages of the last request.
    pub(crate) fn last_seen(&self) -> Vec<Value> {
        self.seen_with("")
    }

    /// The messages of the last request that has these words in it.
    pub(crate) fn seen_with(&self, words: &str) -> Vec<Value> {
        let asked = self.asked().into_iter().rfind(|body| body.to_string().contains(words)).unwrap();
        asked["messages"].as_array().unwrap().clone()
    }

    /// The bodies of what the model was asked.
    pub(crate) fn asked(&self) -> Vec<Value> {
        let bodies = self.model.seen().into_iter().map(|seen| seen.body);
        bodies.filter_map(|body| serde_json::from_slice(&body).ok()).collect()
    }
}

pub(crate) fn await_that(what: &str, is_so: impl Fn() -> bool) {
    let start = Instant::now();
    while !is_so() {
        assert!(start.elapsed() < PATIENCE, "{what}: not after {PATIENCE:?}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Starts a program that was only just written: a process that another test starts may hold it open for a moment longer.
pub(crate) fn started(command: &mut Command) -> Child {
    let start = Instant::now();
    loop {
        match command.spawn() {
            Err(why) if why.kind() == ErrorKind::ExecutableFileBusy && start.elapsed() < PATIENCE => {
                std::thread::sleep(Duration::from_millis(20));
            }
            child => return child.unwrap(),
        }
    }
}

/// Does a call that outlives every test, once; goes on when it was broken off.
pub(crate) fn long() -> Vec<ScriptStep> {
    let command = json!({ "command": "touch begun; sleep 600", "timeout_seconds": 600 }).to_string();
    let after = StepCondition {
        anywhere: Some("(long)".into()),
        has_tool_result: Some(true),
        ..StepCondition::default()
    };
    vec![
        ScriptStep { when: after, ..ScriptStep::say("went on to the end") },
        ScriptStep::call("shell", command).when_anywhere("(long)"),
    ]
}

/// Says `words` where `task` is told.
pub(crate) fn says(task: &str, words: &str) -> ScriptStep {
    ScriptStep::say(words).when_anywhere(task)
}

/// Calls all of these at once.
pub(crate) fn calls(calls: &[(&str, &str)]) -> ScriptStep {
    let call = |(name, arguments): &(&str, &str)| ToolCall {
        id: None,
        name: (*name).to_owned(),
        arguments: (*arguments).to_owned(),
    };
    ScriptStep {
        reply: ScriptedReply { calls: calls.iter().map(call).collect(), ..ScriptedReply::default() },
        ..ScriptStep::default()
    }
}

pub(crate) struct Worker(pub(crate) Child);

impl Worker {
    /// Asks it to end, and waits for that.
    pub(crate) fn stop(mut self) {
        signal(self.0.id(), rustix::process::Signal::TERM);
        assert!(self.0.wait().unwrap().success());
    }

    /// Kills it; what it started is left alone.
    pub(crate) fn kill(mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }

    /// Kills the processes of its tasks.
    pub(crate) fn kill_children(&self) {
        let children = children_of(self.0.id());
        assert!(!children.is_empty());
        children.into_iter().for_each(|child| signal(child, rustix::process::Signal::KILL));
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        if let Ok(None) = self.0.try_wait() {
            signal(self.0.id(), rustix::process::Signal::TERM);
            let _ = self.0.wait();
        }
    }
}

fn signal(pid: u32, signal: rustix::process::Signal) {
    let pid = rustix::process::Pid::from_raw(i32::try_from(pid).unwrap()).unwrap();
    // It may have ended meanwhile.
    let _ = rustix::process::kill_process(pid, signal);
}

fn children_of(parent: u32) -> Vec<u32> {
    let entries = std::fs::read_dir("/proc").unwrap().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let parent_of = |pid: &u32| {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        stat.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse::<u32>().ok()
    };
    pids.filter(|pid| parent_of(pid) == Some(parent)).collect()
}
