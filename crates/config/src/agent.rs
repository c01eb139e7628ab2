//! What the settings say of tasks: who takes them, how much they may take, what they work with, and where they come from.

use super::check::{Section, Values};
use komado_agent::limits::Limits;
use komado_agent::mcp::Server;
use komado_agent::sandbox::{Network, ProcessLimits, Sandbox};
use komado_agent::source::{Kind, Tracker};
use komado_agent::worker::Pace;
use std::path::PathBuf;
use std::time::Duration;

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

/// Everything about tasks.
#[derive(Clone)]
pub struct AgentWishes {
    /// How many are worked on at once.
    pub concurrency: u32,
    /// How they are taken from the queue, kept and given back.
    pub pace: Pace,
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
    pub(super) fn of(given: &Values, servers: Vec<Server>) -> Self {
        let (agent, work) = (Section::of(given, "agent"), Section::of(given, "work"));
        let bound = |leaf| Some(agent.get::<u32>(leaf)).filter(|most| *most > 0);
        Self {
            concurrency: work.get("concurrency"),
            pace: Pace {
                tries: work.get("tries"),
                hidden: work.get("hidden_seconds"),
                pause: work.get("pause_seconds"),
                grace: work.get("grace_seconds"),
                poll: work.get("poll_seconds"),
            },
            limits: Limits {
                turns: bound("max_turns"),
                time: bound("max_minutes").map(|minutes| Duration::from_secs(60) * minutes),
                tokens: bound("max_total_tokens").map(u64::from),
                errors: agent.get("max_errors"),
            },
            system_prompt: agent.get("system_prompt"),
            rules_file: agent.get("rules_file"),
            playbook: agent.get("playbook"),
            tools: ToolWishes::of(&Section::of(given, "tools")),
            servers,
            trackers: trackers(given),
        }
    }
}

impl ToolWishes {
    fn of(tools: &Section<'_>) -> Self {
        let number = |leaf| u64::from(tools.get::<u32>(leaf));
        Self {
            enabled: tools.get("enabled"),
            allow: tools.get("allow"),
            work_dir: tools.get("work_dir"),
            timeout: tools.get("timeout_seconds"),
            most_output: number("max_output_mb") << 20,
            sandbox: sandbox(tools).unwrap_or_default(),
            network: tools.get("network"),
            limits: ProcessLimits {
                memory: number("max_memory_mb") << 20,
                cpu: number("max_cpu_seconds"),
                processes: number("max_processes"),
                disk: number("max_disk_mb") << 20,
            },
            prepare: tools.get("prepare"),
        }
    }
}

/// What is said of whether processes are confined.
pub(super) fn sandbox(section: &Section<'_>) -> Option<Sandbox> {
    let word: String = section.get::<Option<_>>("sandbox")?;
    Some(if word == "off" { Sandbox::Off } else { Sandbox::Required })
}

/// The trackers that tasks come from, GitHub first. One is there when it has repositories: everything else about it has a
/// default or may be left out.
fn trackers(given: &Values) -> Vec<Tracker> {
    let tracker = |(kind, repos): (Kind, &str)| {
        let said = Section::of(given, kind.name());
        Tracker {
            kind,
            base_url: said.get::<String>("base_url").trim_end_matches('/').to_owned(),
            token: said.get("token"),
            repos: said.get(repos),
            user: said.get("user"),
            label: said.get("label"),
            running: said.get("label_running"),
            done: said.get("label_done"),
            failed: said.get("label_failed"),
            paused: said.get("label_paused"),
            patience: said.get("patience_seconds"),
        }
    };
    let all = [(Kind::GitHub, "repos"), (Kind::GitLab, "projects")].into_iter().map(tracker);
    all.filter(|tracker| !tracker.repos.is_empty()).collect()
}
