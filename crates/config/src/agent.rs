//! What the settings say of tasks: who takes them, how much they may take, what they work with, and where they come from.

use super::check::Value;
use komado_agent::limits::Limits;
use komado_agent::mcp::Server;
use komado_agent::sandbox::{Network, ProcessLimits, Sandbox};
use komado_agent::source::Tracker;
use komado_agent::worker::Pace;
use std::path::PathBuf;
use std::time::Duration;

/// How tasks are taken from the queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkWishes {
    /// How many are worked on at once.
    pub concurrency: u32,
    /// How they are tried, kept and given back.
    pub pace: Pace,
}

impl Default for WorkWishes {
    fn default() -> Self {
        let half_a_minute = Duration::from_secs(30);
        let pace = Pace {
            tries: 3,
            hidden: half_a_minute,
            pause: half_a_minute,
            grace: Duration::from_secs(20),
            poll: half_a_minute,
        };
        Self { concurrency: 1, pace }
    }
}

/// How the built-in tools work.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolWishes {
    /// Those that are offered.
    pub enabled: Vec<String>,
    /// Commands that the shell may run.
    pub allow: Vec<String>,
    /// The folder in which each task gets one of its own; unset: `work` beside the sessions.
    pub work_dir: Option<PathBuf>,
    /// How long a command may take.
    pub timeout: Duration,
    /// The most bytes of an output that are kept.
    pub most_output: u64,
    /// How commands are kept inside the folder.
    pub sandbox: Sandbox,
    /// Which hosts they reach.
    pub network: Network,
    /// What they may take.
    pub limits: ProcessLimits,
    /// A command line that is run in a new working folder before anything else.
    pub prepare: Option<String>,
}

impl Default for ToolWishes {
    fn default() -> Self {
        Self {
            enabled: Vec::new(),
            allow: Vec::new(),
            work_dir: None,
            timeout: Duration::from_secs(120),
            most_output: 64 << 20,
            sandbox: Sandbox::default(),
            network: Network::default(),
            limits: ProcessLimits::default(),
            prepare: None,
        }
    }
}

/// Everything about tasks.
#[derive(Clone, Default)]
pub struct AgentWishes {
    /// How they are taken.
    pub work: WorkWishes,
    /// How much one may take.
    pub limits: Limits,
    /// What the model is told first, in place of the built-in words.
    pub system_prompt: Option<String>,
    /// Rules that stand after it; unset: AGENTS.md in the working folder, when it is there.
    pub rules_file: Option<PathBuf>,
    /// The playbook; unset: the built-in one.
    pub playbook: Option<PathBuf>,
    /// The built-in tools.
    pub tools: ToolWishes,
    /// MCP servers.
    pub servers: Vec<Server>,
    /// Trackers, GitHub first.
    pub trackers: Vec<Tracker>,
}

impl AgentWishes {
    pub(super) fn apply(&mut self, key: &str, value: Value) {
        match (key, value) {
            ("agent.system_prompt", Value::Text(v)) => self.system_prompt = Some(v),
            ("agent.rules_file", Value::Path(v)) => self.rules_file = Some(v),
            ("agent.playbook", Value::Path(v)) => self.playbook = Some(v),
            ("agent.max_turns", Value::Count(v)) => self.limits.turns = some(v),
            ("agent.max_minutes", Value::Count(v)) => {
                self.limits.time = some(v).map(|minutes| seconds(minutes) * 60)
            }
            ("agent.max_total_tokens", Value::Count(v)) => self.limits.tokens = some(v).map(u64::from),
            ("agent.max_errors", Value::Count(v)) => self.limits.errors = v,
            (key, value) if key.starts_with("work.") => self.work.apply(key, value),
            (key, value) => self.tools.apply(key, value),
        }
    }
}

impl WorkWishes {
    fn apply(&mut self, key: &str, value: Value) {
        match (key, value) {
            ("work.concurrency", Value::Count(v)) => self.concurrency = v,
            ("work.tries", Value::Count(v)) => self.pace.tries = v,
            ("work.hidden_seconds", Value::Count(v)) => self.pace.hidden = seconds(v),
            ("work.pause_seconds", Value::Count(v)) => self.pace.pause = seconds(v),
            ("work.grace_seconds", Value::Count(v)) => self.pace.grace = seconds(v),
            ("work.poll_seconds", Value::Count(v)) => self.pace.poll = seconds(v),
            _ => {}
        }
    }
}

impl ToolWishes {
    fn apply(&mut self, key: &str, value: Value) {
        match (key, value) {
            ("tools.enabled", Value::Lines(v)) => self.enabled = v,
            ("tools.allow", Value::Lines(v)) => self.allow = v,
            ("tools.work_dir", Value::Path(v)) => self.work_dir = Some(v),
            ("tools.timeout_seconds", Value::Count(v)) => self.timeout = seconds(v),
            ("tools.max_output_mb", Value::Count(v)) => self.most_output = u64::from(v) << 20,
            ("tools.sandbox", Value::Text(v)) => {
                self.sandbox = sandbox(&v);
            }
            ("tools.network", Value::Network(v)) => self.network = v,
            ("tools.max_memory_mb", Value::Count(v)) => self.limits.memory = u64::from(v) << 20,
            ("tools.max_cpu_seconds", Value::Count(v)) => self.limits.cpu = v.into(),
            ("tools.max_processes", Value::Count(v)) => self.limits.processes = v.into(),
            ("tools.max_disk_mb", Value::Count(v)) => self.limits.disk = u64::from(v) << 20,
            ("tools.prepare", Value::Text(v)) => self.prepare = Some(v),
            // That no setting of the table falls through to here is a test.
            _ => {}
        }
    }
}

/// One of the words for whether processes are confined.
pub(super) fn sandbox(word: &str) -> Sandbox {
    if word == "off" { Sandbox::Off } else { Sandbox::Required }
}

/// A bound; none where it is 0.
fn some(count: u32) -> Option<u32> {
    Some(count).filter(|count| *count > 0)
}

fn seconds(count: u32) -> Duration {
    Duration::from_secs(u64::from(count))
}
