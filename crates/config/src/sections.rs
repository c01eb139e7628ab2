//! What the settings say of the server, of a store on a server, of traces, and of tasks.
//!
//! Each field is a row of the table; the defaults stand there and nowhere else.

use crate::check::{GivenValues, SettingsSection};
use komado_agent::limits::TaskLimits;
use komado_agent::mcp::McpServer;
use komado_agent::sandbox::{Network, ProcessLimits, Sandbox};
use komado_agent::source::{TrackerConfig, TrackerKind};
use komado_agent::worker::WorkerPace;
use komado_engine::relay::ToolOffer;
use std::path::PathBuf;
use std::time::Duration;

/// What happens to a request when something of ours fails.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum OnFault {
    /// It goes through untouched.
    #[default]
    Pass,
    /// It is refused.
    Stop,
}

komado_core::names! {
    /// The word for it.
    OnFault { Pass = "pass", Stop = "stop" }
}

/// What was wished for.
#[derive(Clone, Default)]
pub struct ServerConfig {
    /// Where it listens.
    pub listen: String,
    /// The provider that is asked where nothing names one.
    pub upstream: Option<String>,
    /// What happens to a request when something of ours fails.
    pub on_fault: OnFault,
    /// Whether the tools that lead back are offered.
    pub recall: ToolOffer,
    /// How often a model may make the same call while an edit hides its answer; 0 for as often as it likes.
    pub max_repeats: u32,
    /// Whether other paths go to the provider as they come.
    pub forward_other: bool,
    /// The largest request, in megabytes.
    pub body_limit_mb: u32,
    /// Requests under way at once.
    pub concurrency: u32,
    /// Requests a second of one key or address; 0 for as many as come.
    pub rate: u32,
    /// Seconds to wait for more of a request.
    pub timeout_seconds: u32,
    /// Seconds that answers may still take at the end.
    pub grace_seconds: u32,
}

impl ServerConfig {
    pub(super) fn of(given: &GivenValues) -> Self {
        let server = SettingsSection::of(given, "server");
        Self {
            listen: server.get("listen"),
            upstream: server.get("upstream"),
            on_fault: OnFault::named(&server.get::<String>("on_fault")).unwrap_or_default(),
            recall: if server.get::<String>("recall") == "never" {
                ToolOffer::Never
            } else {
                ToolOffer::WhenNeeded
            },
            max_repeats: server.get("max_repeats"),
            forward_other: server.get("forward_other"),
            body_limit_mb: server.get("body_limit_mb"),
            concurrency: server.get("concurrency"),
            rate: server.get("rate"),
            timeout_seconds: server.get("timeout_seconds"),
            grace_seconds: server.get("grace_seconds"),
        }
    }
}

/// How a store on a server is spoken to.
#[derive(Clone, Default)]
pub struct StoreConfig {
    /// How long one call may take.
    pub patience: Duration,
    /// How many connections are opened at the most.
    pub connections: u32,
    /// How long a session is ours without a sign of life.
    pub lease: Duration,
    /// How long a session is kept after it was last used; `None` for ever.
    pub ttl: Option<Duration>,
}

impl StoreConfig {
    pub(super) fn of(given: &GivenValues) -> Self {
        let store = SettingsSection::of(given, "store");
        let days: u32 = store.get("ttl_days");
        Self {
            patience: store.get("patience_seconds"),
            connections: store.get("connections"),
            lease: store.get("lease_seconds"),
            ttl: (days > 0).then(|| Duration::from_secs(24 * 3600) * days),
        }
    }
}

/// Where traces go.
#[derive(Clone, Default)]
pub struct TraceConfig {
    /// The collector; `None` for nowhere.
    pub endpoint: Option<String>,
    /// The service name of the traces.
    pub service: String,
    /// Headers for the collector, as `NAME=VALUE,NAME=VALUE`; may hold a key, so it is shown nowhere.
    pub headers: Option<String>,
}

impl TraceConfig {
    pub(super) fn of(given: &GivenValues) -> Self {
        let traces = SettingsSection::of(given, "telemetry");
        Self {
            endpoint: traces.get("otlp_endpoint"),
            service: traces.get("service_name"),
            headers: traces.get("headers"),
        }
    }
}

/// How the built-in tools work.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolConfig {
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
pub struct AgentConfig {
    /// How many are worked on at once.
    pub concurrency: u32,
    /// How they are taken from the queue, kept and given back.
    pub pace: WorkerPace,
    /// How much one may take.
    pub limits: TaskLimits,
    /// What the model is told first, in place of the built-in words.
    pub system_prompt: Option<String>,
    /// Rules that stand after it; unset: AGENTS.md in the working folder, when it is there.
    pub rules_file: Option<PathBuf>,
    /// The playbook; unset: the built-in one.
    pub playbook: Option<PathBuf>,
    /// The built-in tools.
    pub tools: ToolConfig,
    /// MCP servers.
    pub servers: Vec<McpServer>,
    /// Trackers, GitHub first.
    pub trackers: Vec<TrackerConfig>,
}

impl AgentConfig {
    pub(super) fn of(given: &GivenValues, servers: Vec<McpServer>) -> Self {
        let (agent, work) = (SettingsSection::of(given, "agent"), SettingsSection::of(given, "work"));
        let bound = |leaf| Some(agent.get::<u32>(leaf)).filter(|most| *most > 0);
        Self {
            concurrency: work.get("concurrency"),
            pace: WorkerPace {
                tries: work.get("tries"),
                hidden: work.get("hidden_seconds"),
                pause: work.get("pause_seconds"),
                grace: work.get("grace_seconds"),
                poll: work.get("poll_seconds"),
            },
            limits: TaskLimits {
                turns: bound("max_turns"),
                time: bound("max_minutes").map(|minutes| Duration::from_secs(60) * minutes),
                tokens: bound("max_total_tokens").map(u64::from),
                errors: agent.get("max_errors"),
                repeats: bound("max_repeats"),
            },
            system_prompt: agent.get("system_prompt"),
            rules_file: agent.get("rules_file"),
            playbook: agent.get("playbook"),
            tools: ToolConfig::of(&SettingsSection::of(given, "tools")),
            servers,
            trackers: trackers(given),
        }
    }
}

impl ToolConfig {
    fn of(tools: &SettingsSection<'_>) -> Self {
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
pub(super) fn sandbox(section: &SettingsSection<'_>) -> Option<Sandbox> {
    let word: String = section.get::<Option<_>>("sandbox")?;
    Some(if word == "off" { Sandbox::Off } else { Sandbox::Required })
}

/// The trackers that tasks come from, GitHub first. One is there when it has repositories: everything else about it has a
/// default or may be left out.
fn trackers(given: &GivenValues) -> Vec<TrackerConfig> {
    let tracker = |(kind, repos): (TrackerKind, &str)| {
        let said = SettingsSection::of(given, kind.name());
        TrackerConfig {
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
    let all = [(TrackerKind::GitHub, "repos"), (TrackerKind::GitLab, "projects")].into_iter().map(tracker);
    all.filter(|tracker| !tracker.repos.is_empty()).collect()
}
