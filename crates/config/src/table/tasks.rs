//! The settings of tasks: who takes them, how much they may take, what they work with, and where they come from.

use super::lines::{joined, length, text};
use super::{HTTP, Kind, PLAIN, Setting};
use komado_agent::builtin;

const SECONDS: Kind = Kind::Count { min: 1, max: 86_400 };
const LIMIT: Kind = Kind::Count { min: 0, max: 1_000_000_000 };
const SANDBOX: &[&str] = &["required", "off"];
static ENABLED: [u8; length(builtin::ENABLED)] = joined(builtin::ENABLED);
static ALLOW: [u8; length(builtin::ALLOW)] = joined(builtin::ALLOW);

/// In the order in which they are listed.
pub(super) const ROWS: &[Setting] = &[
    Setting {
        path: "work.concurrency",
        kind: Kind::Count { min: 1, max: 1000 },
        default: Some("1"),
        about: "How many tasks a worker works on at once, each in a process of its own.",
        ..PLAIN
    },
    Setting {
        path: "work.tries",
        kind: Kind::Count { min: 1, max: 100 },
        default: Some("3"),
        about: "How often a task is tried before it is laid aside.",
        ..PLAIN
    },
    Setting {
        path: "work.hidden_seconds",
        kind: SECONDS,
        default: Some("30"),
        about: "Seconds without a sign of life after which another worker may take a task.",
        ..PLAIN
    },
    Setting {
        path: "work.pause_seconds",
        kind: Kind::Count { min: 0, max: 86_400 },
        default: Some("30"),
        about: "Seconds before a task is tried again; it doubles from there.",
        ..PLAIN
    },
    Setting {
        path: "work.grace_seconds",
        kind: Kind::Count { min: 0, max: 86_400 },
        default: Some("20"),
        about: "Seconds that tasks under way may take to come to rest when their worker is to end.",
        ..PLAIN
    },
    Setting {
        path: "work.poll_seconds",
        kind: SECONDS,
        default: Some("30"),
        about: "Seconds between two looks at a running task's tracker.",
        ..PLAIN
    },
    Setting {
        path: "agent.system_prompt",
        about: "What the model is told first; unset: the built-in words.",
        ..PLAIN
    },
    Setting {
        path: "agent.rules_file",
        kind: Kind::Path,
        about: "A file of rules that stand after it; unset: AGENTS.md in the working folder, when it is there.",
        ..PLAIN
    },
    Setting {
        path: "agent.playbook",
        kind: Kind::Path,
        about: "The playbook that a task follows; unset: the built-in one.",
        ..PLAIN
    },
    Setting {
        path: "agent.max_turns",
        kind: Kind::Count { min: 0, max: 1_000_000_000 },
        default: Some("5000"),
        about: "The most requests to the model for one task; 0: as many as it takes.",
        ..PLAIN
    },
    Setting {
        path: "agent.max_minutes",
        kind: Kind::Count { min: 0, max: 1_000_000 },
        default: Some("480"),
        about: "The most minutes of work on one task, of all workers together; 0: as long as it takes.",
        ..PLAIN
    },
    Setting {
        path: "agent.max_total_tokens",
        kind: Kind::Count { min: 0, max: 4_000_000_000 },
        default: Some("50000000"),
        about: "The most tokens of all requests and answers of one task; 0: as many as it takes.",
        ..PLAIN
    },
    Setting {
        path: "agent.max_errors",
        kind: Kind::Count { min: 1, max: 1_000_000 },
        default: Some("8"),
        about: "How many calls in a row may go wrong before the task is ended.",
        ..PLAIN
    },
    Setting {
        path: "tools.enabled",
        kind: Kind::Lines,
        default: Some(text(&ENABLED)),
        about: "The built-in tools that are offered.",
        ..PLAIN
    },
    Setting {
        path: "tools.allow",
        kind: Kind::Lines,
        default: Some(text(&ALLOW)),
        about: "Commands that the shell may run; *: any.",
        ..PLAIN
    },
    Setting {
        path: "tools.work_dir",
        kind: Kind::Path,
        about: "The folder in which each task gets one of its own; unset: work beside the sessions.",
        ..PLAIN
    },
    Setting {
        path: "tools.timeout_seconds",
        kind: SECONDS,
        default: Some("120"),
        about: "Seconds that a command may take.",
        ..PLAIN
    },
    Setting {
        path: "tools.max_output_mb",
        kind: Kind::Count { min: 1, max: 1_000_000 },
        default: Some("64"),
        about: "The most megabytes of a command's output that are kept; it is ended when it prints more.",
        ..PLAIN
    },
    Setting {
        path: "tools.sandbox",
        kind: Kind::Choice(SANDBOX),
        default: Some("required"),
        about: "How commands are kept inside the folder: by the kernel, or by the allow-list alone.",
        ..PLAIN
    },
    Setting {
        path: "tools.network",
        kind: Kind::Hosts,
        default: Some("none"),
        about: "Hosts that commands may reach, such as example.com, *.example.com or 192.0.2.7:8443; none; open: all.",
        ..PLAIN
    },
    Setting {
        path: "tools.max_memory_mb",
        kind: LIMIT,
        default: Some("8192"),
        about: "The most megabytes of memory of a command, with all it started; 0: as many as there are.",
        ..PLAIN
    },
    Setting {
        path: "tools.max_cpu_seconds",
        kind: LIMIT,
        default: Some("3600"),
        about: "The most seconds of processor time of a command, with all it started; 0: as many as it takes.",
        ..PLAIN
    },
    Setting {
        path: "tools.max_processes",
        kind: LIMIT,
        default: Some("1024"),
        about: "The most processes of a command at a time; 0: as many as it starts.",
        ..PLAIN
    },
    Setting {
        path: "tools.max_disk_mb",
        kind: LIMIT,
        default: Some("20480"),
        about: "The most megabytes by which commands may let the working folder and their home grow; 0: no bound.",
        ..PLAIN
    },
    Setting {
        path: "tools.prepare",
        about: "A command line that is run in a new working folder before anything else.",
        ..PLAIN
    },
    Setting {
        path: "mcp_servers.<server>.command",
        about: "The program that is spoken to over its standard input and output; without args a whole command line.",
        ..PLAIN
    },
    Setting {
        path: "mcp_servers.<server>.args",
        kind: Kind::Lines,
        about: "Its arguments. {folder}: the working folder of the task.",
        ..PLAIN
    },
    Setting {
        path: "mcp_servers.<server>.env",
        kind: Kind::Pairs(&['=']),
        about: "Variables of its environment, beside the few that commands have; shown nowhere. {folder}: the working folder.",
        ..PLAIN
    },
    Setting {
        path: "mcp_servers.<server>.folder",
        kind: Kind::Path,
        about: "Where it runs; unset: in a private folder.",
        ..PLAIN
    },
    Setting {
        path: "mcp_servers.<server>.sandbox",
        kind: Kind::Choice(SANDBOX),
        about: "How it is confined; unset: like commands (tools.sandbox). off: not at all, with an open network.",
        ..PLAIN
    },
    Setting {
        path: "mcp_servers.<server>.network",
        kind: Kind::Hosts,
        about: "Hosts that it may reach; unset: those of commands (tools.network).",
        ..PLAIN
    },
    Setting {
        path: "mcp_servers.<server>.url",
        kind: HTTP,
        about: "The address of a server that is not started here (streamable HTTP).",
        ..PLAIN
    },
    Setting {
        path: "mcp_servers.<server>.headers",
        kind: Kind::Pairs(&[':', '=']),
        about: "Headers of each request to it; shown nowhere.",
        ..PLAIN
    },
    Setting {
        path: "mcp_servers.<server>.tools",
        kind: Kind::Lines,
        about: "The only tools of it that are offered; unset: all.",
        ..PLAIN
    },
    Setting {
        path: "mcp_servers.<server>.timeout_seconds",
        kind: SECONDS,
        about: "Seconds that a call may take; unset: 60.",
        ..PLAIN
    },
    Setting {
        path: "mcp_servers.<server>.start_seconds",
        kind: SECONDS,
        about: "Seconds that it may take to start and to say what it has; unset: 30.",
        ..PLAIN
    },
    Setting {
        path: "github.base_url",
        kind: HTTP,
        default: Some("https://api.github.com"),
        about: "Where the API of GitHub is.",
        ..PLAIN
    },
    Setting {
        path: "github.token",
        kind: Kind::Secret,
        seed_env: &["GITHUB_TOKEN"],
        about: "The key for GitHub; shown nowhere.",
        ..PLAIN
    },
    Setting {
        path: "github.repos",
        kind: Kind::Lines,
        about: "Repositories (owner/name) whose issues become tasks; unset: none.",
        ..PLAIN
    },
    Setting {
        path: "github.user",
        about: "Whose assignment makes an issue a task; unset: anybody's.",
        ..PLAIN
    },
    Setting {
        path: "github.label",
        default: Some("coding agent"),
        about: "The label that makes an issue a task.",
        ..PLAIN
    },
    Setting {
        path: "github.label_running",
        default: Some("coding agent processing"),
        about: "The label while it is worked on.",
        ..PLAIN
    },
    Setting {
        path: "github.label_done",
        default: Some("coding agent done"),
        about: "The label once it is done.",
        ..PLAIN
    },
    Setting {
        path: "github.label_failed",
        default: Some("coding agent failed"),
        about: "The label once it failed.",
        ..PLAIN
    },
    Setting {
        path: "github.label_paused",
        default: Some("coding agent paused"),
        about: "The label while it is paused.",
        ..PLAIN
    },
    Setting {
        path: "github.patience_seconds",
        kind: Kind::Count { min: 0, max: 86_400 },
        default: Some("300"),
        about: "The most seconds to wait when GitHub says that it was asked too often.",
        ..PLAIN
    },
    Setting {
        path: "gitlab.base_url",
        kind: HTTP,
        default: Some("https://gitlab.com/api/v4"),
        about: "Where the API of GitLab is.",
        ..PLAIN
    },
    Setting {
        path: "gitlab.token",
        kind: Kind::Secret,
        seed_env: &["GITLAB_TOKEN"],
        about: "The key for GitLab; shown nowhere.",
        ..PLAIN
    },
    Setting {
        path: "gitlab.projects",
        kind: Kind::Lines,
        about: "Projects (group/name) whose issues become tasks; unset: none.",
        ..PLAIN
    },
    Setting {
        path: "gitlab.user",
        about: "Whose assignment makes an issue a task; unset: anybody's.",
        ..PLAIN
    },
    Setting {
        path: "gitlab.label",
        default: Some("coding agent"),
        about: "The label that makes an issue a task.",
        ..PLAIN
    },
    Setting {
        path: "gitlab.label_running",
        default: Some("coding agent processing"),
        about: "The label while it is worked on.",
        ..PLAIN
    },
    Setting {
        path: "gitlab.label_done",
        default: Some("coding agent done"),
        about: "The label once it is done.",
        ..PLAIN
    },
    Setting {
        path: "gitlab.label_failed",
        default: Some("coding agent failed"),
        about: "The label once it failed.",
        ..PLAIN
    },
    Setting {
        path: "gitlab.label_paused",
        default: Some("coding agent paused"),
        about: "The label while it is paused.",
        ..PLAIN
    },
    Setting {
        path: "gitlab.patience_seconds",
        kind: Kind::Count { min: 0, max: 86_400 },
        default: Some("300"),
        about: "The most seconds to wait when GitLab says that it was asked too often.",
        ..PLAIN
    },
];
