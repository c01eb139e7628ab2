//! Every setting, in the order in which they are listed.
//!
//! A row is its path in the file, its default, what its text must be, and what else is to be said of it; the words above it
//! say what it does, here and in the manual.

use super::names::STORES;
use super::{PLAIN, Setting, SettingKind};
use komado_agent::builtin;
use komado_core::amount::TimeUnit;

const METERS: &[&str] = &["o200k", "cl100k", "chars4", "bytes4", "o200k-1.5"];
const PRESETS: &[&str] = &["komado", "seed000", "seed001", "seed002"];
const DIALECTS: &[&str] = &["openai", "responses", "anthropic", "ollama"];
const ON_FAULT: &[&str] = &["pass", "stop"];
const RECALL: &[&str] = &["when_needed", "never"];
const SANDBOX: &[&str] = &["required", "off"];
const TOKENS: SettingKind = tokens(0, 1_000_000_000);
const DEPTH: SettingKind = count(0, 100);
const MESSAGES: SettingKind = count(0, 1_000_000);
const SECONDS: SettingKind = seconds(1, 86_400);
const LIMIT: SettingKind = count(0, 1_000_000_000);
/// An address of the web.
const HTTP: SettingKind = SettingKind::Url(&["http://", "https://"]);

const fn count(min: u32, max: u32) -> SettingKind {
    SettingKind::Count { min, max }
}

const fn tokens(min: u32, max: u32) -> SettingKind {
    SettingKind::Tokens { min, max }
}

const fn seconds(min: u32, max: u32) -> SettingKind {
    SettingKind::Time { unit: TimeUnit::Second, min, max }
}

const fn days(min: u32, max: u32) -> SettingKind {
    SettingKind::Time { unit: TimeUnit::Day, min, max }
}

/// Seed 000's prompt, word for word.
const SUMMARY_PROMPT: &str = "\
あなたは会話履歴を要約するアシスタントです。
以下のメッセージ履歴を簡潔かつ包括的に要約してください。

要約には以下を含めてください：
1. 重要な決定事項
2. 実施したコード変更
3. 発生した問題とその解決
4. 残存タスク

元の30-40%の長さを目標としてください。

=== 要約対象メッセージ ===
{messages}

要約のみを出力してください。
";

/// `/// ABOUT` and `"PATH" = DEFAULT => KIND, FIELD: VALUE;` for each setting.
macro_rules! rows {
    ($(#[doc = $about:literal] $path:literal $(= $default:expr)? => $kind:expr $(, $field:ident: $value:expr)*;)*) => {
        &[$(Setting {
            path: $path,
            kind: $kind,
            about: $about.trim_ascii(),
            $(default: Some(&[$default]),)?
            $($field: $value,)*
            ..PLAIN
        }),*]
    };
}

/// Every setting, in the order in which they are listed.
pub static SETTINGS: &[Setting] = rows! {
    // A conversation: where it is kept, how its window is kept, and what child threads get.
    /// Whether contexts are kept on disk.
    "context_storage.enabled" = "true" => SettingKind::Bool, seed_env: &["CONTEXT_STORAGE_ENABLED"];
    /// The folder that holds the contexts, relative to the working folder. Left out: contexts in the working folder where it is there and yours, otherwise komado/contexts in your data folder ($XDG_DATA_HOME, else ~/.local/share).
    "context_storage.base_dir" = "contexts" => SettingKind::Path, short: Some("base_dir");
    /// The share of the window at which compression starts.
    "context_storage.compression_threshold" = "0.7" => SettingKind::Ratio, seed_env: &["COMPRESSION_THRESHOLD"], is_harmless: true;
    /// How many of the latest messages a compression leaves as they are.
    "context_storage.keep_recent_messages" = "5" => MESSAGES, is_harmless: true;
    /// The fewest messages worth a summary.
    "context_storage.min_messages_to_summarize" = "10" => count(1, 1_000_000), is_harmless: true;
    /// Days after which `komado admin cleanup` removes completed tasks.
    "context_storage.cleanup_days" = "30" => days(0, 36_500), seed_env: &["CLEANUP_DAYS"];
    /// The prompt for a summary; {messages} is replaced with the messages.
    "context_storage.summary_prompt" = SUMMARY_PROMPT => SettingKind::Text;
    /// The budget preset; the settings below change single numbers of it.
    "budget.preset" = "komado" => SettingKind::Choice(PRESETS), is_harmless: true;
    /// Tokens kept free for the answer; unset: 8192, or a fifth of the window where that is less.
    "budget.reserve" => TOKENS, is_harmless: true;
    /// The share of the window kept free for what no counter sees; unset: 0.1.
    "budget.buffer" => SettingKind::Ratio, is_harmless: true;
    /// The share of what may move (usable, less set-up, task, latest instruction and pins) above which something is done; unset: 0.9.
    "budget.soft" => SettingKind::Ratio, is_harmless: true;
    /// The share of what may move to come down to; unset: 0.6.
    "budget.low" => SettingKind::Ratio, is_harmless: true;
    /// The share of what may move that an edit must free before the window is full; unset: 0.25.
    "budget.min_gain" => SettingKind::Ratio, is_harmless: true;
    /// The share of the usable tokens that the newest messages keep; unset: as much as budget.low has room for.
    "budget.keep" => SettingKind::Ratio, is_harmless: true;
    /// The share of what may move that a summary may take; unset: 0.1.
    "budget.summary" => SettingKind::Ratio, is_harmless: true;
    /// The percentage of the window at which something is done, in place of budget.soft.
    "budget.threshold" => SettingKind::Percent, is_harmless: true;
    /// The same for single models: MODEL=PERCENT.
    "budget.thresholds" => SettingKind::Percents, is_harmless: true;
    /// Whether long outputs are kept whole elsewhere and shown in part.
    "tool_output_cache.enabled" = "true" => SettingKind::Bool, is_harmless: true;
    /// Tokens that outputs may take together; unset: a quarter of the window, from 20000 to 60000.
    "tool_output_cache.context_budget_tokens" => TOKENS, is_harmless: true;
    /// The most bytes of one output that are shown.
    "tool_output_cache.max_message_bytes" = "51200" => count(512, 1_000_000_000), is_harmless: true;
    /// The most characters of one line of an output that are shown.
    "tool_output_cache.max_line_length" = "2000" => count(80, 1_000_000_000), is_harmless: true;
    /// Whether spans are condensed.
    "compaction.enabled" = "true" => SettingKind::Bool, is_harmless: true;
    /// Whether that happens by itself.
    "compaction.auto" = "true" => SettingKind::Bool, is_harmless: true;
    /// The share of the window from which on something is done, in place of budget.soft.
    "compaction.threshold_ratio" => SettingKind::Ratio, is_harmless: true;
    /// The model that writes summaries; same: the conversation's. Unset: none is asked, the digest is the summary.
    "compaction.model" => SettingKind::Text;
    /// The provider of that model; unset: the conversation's. Without a model, its llm.<provider>.model.
    "compaction.provider" => SettingKind::Text;
    /// A program that writes summaries: the request on standard input, the answer on standard output.
    "compaction.command" => SettingKind::Text;
    /// The instructions for a summary.
    "compaction.summary_prompt" => SettingKind::Text;
    /// Additions to these instructions.
    "compaction.summary_directives" => SettingKind::Lines;
    /// What a summary must carry over word for word.
    "compaction.retain_prompt" => SettingKind::Text;
    /// Additions to that list.
    "compaction.retain_directives" => SettingKind::Lines;
    /// How many of the latest turns stay as they are, in place of budget.keep.
    "compaction.retain_last_turns" => MESSAGES, is_harmless: true;
    /// The share to which the view shrinks after a request that was too large.
    "overflow.retry_shrink" = "0.8" => SettingKind::Ratio, seed_env: &["TOKEN_LIMIT_REDUCTION_RATIO"], is_harmless: true;
    /// How often such a request goes out again, smaller.
    "overflow.tries" = "3" => count(0, 10), seed_env: &["MAX_RETRY_ATTEMPTS"], is_harmless: true;
    /// How often a request is sent while the provider is busy or away, the first time included.
    "retry.tries" = "3" => count(1, 100), is_harmless: true;
    /// Seconds before the second try; it doubles from there.
    "retry.delay_seconds" = "2" => seconds(0, 3_600), seed_env: &["RETRY_DELAY_SECONDS"], is_harmless: true;
    /// Where sessions are kept; file: means context_storage.base_dir.
    "store.url" = "file:" => SettingKind::Url(STORES), seed_env: &["MEMORY_BACKEND", "REDIS_URL", "DB_URL"];
    /// Seconds that a call of a store on a server may take, connecting included.
    "store.patience_seconds" = "10" => seconds(1, 600);
    /// How many connections this process opens to it at the most.
    "store.connections" = "16" => count(1, 10_000);
    /// Seconds without a heartbeat after which another process may take a session over.
    "store.lease_seconds" = "6" => seconds(1, 3_600);
    /// Days that Redis keeps a session after its last use; 0: for ever. Other stores keep sessions until they are removed.
    "store.ttl_days" = "7" => days(0, 36_500);
    /// Whether child threads may be started.
    "threads.enabled" = "true" => SettingKind::Bool, is_harmless: true;
    /// The share of the parent's window that a child thread gets.
    "threads.child_ratio" = "0.8" => SettingKind::Part, seed_env: &["STELIS_DEFAULT_WINDOW_RATIO"], is_harmless: true;
    /// How deep threads may nest.
    "threads.max_depth" = "3" => DEPTH, seed_env: &["STELIS_MAX_DEPTH"], is_harmless: true;
    /// Whether a child thread may use what the threads above it leave of their shares.
    "threads.lending" = "true" => SettingKind::Bool, is_harmless: true;
    /// The most tokens that a child thread takes in its parent's window, chronicle included.
    "threads.anchor_tokens" = "1000" => tokens(100, 1_000_000), is_harmless: true;
    /// Whether child threads may be started in this persona's sessions; unset: as threads.enabled.
    "personas.<persona>.stelis_config.enabled" => SettingKind::Bool, is_harmless: true;
    /// The share of the parent's window that their child threads get; unset: as threads.child_ratio.
    "personas.<persona>.stelis_config.default_window_ratio" => SettingKind::Part, is_harmless: true;
    /// How deep their threads may nest; unset: as threads.max_depth.
    "personas.<persona>.stelis_config.max_depth" => DEPTH, is_harmless: true;
    /// How many turns a session keeps in view; unset: as many as fit.
    "session.max_history" => count(1, 1_000_000), seed_env: &["MAX_SESSION_HISTORY"], is_harmless: true;
    /// The user that messages are written for.
    "session.user" => SettingKind::Text, short: Some("user");
    /// The tokeniser that counts.
    "session.meter" = "o200k" => SettingKind::Choice(METERS), is_harmless: true;

    // The server, its traces, and model providers.
    /// Where `komado serve` listens; beyond this machine only with keys.
    "server.listen" = "127.0.0.1:4141" => SettingKind::Text;
    /// The provider to ask when neither the path nor the model names one; unset: as is found.
    "server.upstream" => SettingKind::Text;
    /// When Komado itself fails: pass the request on unchanged, or stop it.
    "server.on_fault" = "pass" => SettingKind::Choice(ON_FAULT);
    /// Whether the model gets tools that read what is hidden from its view.
    "server.recall" = "when_needed" => SettingKind::Choice(RECALL);
    /// How often a model may make the same call while an edit hides its answer, before the request is refused; 0: as often as it likes.
    "server.max_repeats" = "0" => count(0, 1_000_000);
    /// Whether other paths under /v1 (embeddings, files) go to the provider as they come.
    "server.forward_other" = "true" => SettingKind::Bool;
    /// The largest request accepted, in megabytes.
    "server.body_limit_mb" = "256" => count(1, 4_095);
    /// How many requests may run at once; further ones are told to retry.
    "server.concurrency" = "512" => count(1, 100_000);
    /// Requests per second for one key, or for one address where there are no keys; 0: no limit.
    "server.rate" = "0" => count(0, 1_000_000);
    /// Seconds to wait for a client's headers, and for each next piece of its request.
    "server.timeout_seconds" = "60" => seconds(1, 86_400);
    /// Seconds that running answers may still take when the server stops.
    "server.grace_seconds" = "20" => seconds(0, 86_400);
    /// The endpoint for traces (OTLP over HTTP); unset: no traces.
    "telemetry.otlp_endpoint" => HTTP, seed_env: &["OTEL_EXPORTER_OTLP_ENDPOINT"];
    /// The service name of the traces.
    "telemetry.service_name" = "komado" => SettingKind::Text, seed_env: &["OTEL_SERVICE_NAME"];
    /// Headers for them, as NAME=VALUE, with commas between; shown nowhere.
    "telemetry.headers" => SettingKind::Secret, seed_env: &["OTEL_EXPORTER_OTLP_HEADERS"];
    /// The model provider to call.
    "llm.provider" = "openai" => SettingKind::Text;
    /// The model's name, as its provider spells it.
    "llm.<provider>.model" => SettingKind::Text;
    /// Models for which the gateway asks this provider: names, or beginnings that end in *.
    "llm.<provider>.models" => SettingKind::Lines;
    /// The model's window, in tokens; never guessed.
    "llm.<provider>.context_length" => tokens(1, 1_000_000_000);
    /// The percentage of the window at which something is done; -1: as for all.
    "llm.<provider>.threshold" => SettingKind::Percent;
    /// The provider's key; shown nowhere, and never taken from a flag.
    "llm.<provider>.api_key" => SettingKind::Secret;
    /// A file that holds the key; only its owner should be able to read it.
    "llm.<provider>.api_key_file" => SettingKind::Path;
    /// Where the provider listens.
    "llm.<provider>.base_url" => HTTP;
    /// The dialect of its API; unset: the known one of the provider, else openai.
    "llm.<provider>.dialect" => SettingKind::Choice(DIALECTS);
    /// The longest answer, in tokens; unset: the provider's own limit.
    "llm.<provider>.max_tokens" => tokens(1, 1_000_000_000);
    /// Seconds to wait for the first word of an answer, and for each next one; unset: 600 and 300.
    "llm.<provider>.timeout_seconds" => seconds(1, 86_400);

    // Tasks: who takes them, how much they may take, what they work with, and where they come from.
    /// How many tasks a worker works on at once, each in a process of its own.
    "work.concurrency" = "1" => count(1, 1000);
    /// How often a task is tried before it is given up.
    "work.tries" = "3" => count(1, 100);
    /// Seconds without a heartbeat after which another worker may take a task.
    "work.hidden_seconds" = "30" => SECONDS;
    /// Seconds before a task is tried again; it doubles from there.
    "work.pause_seconds" = "30" => seconds(0, 86_400);
    /// Seconds that running tasks may take to stop when their worker ends.
    "work.grace_seconds" = "20" => seconds(0, 86_400);
    /// Seconds between two looks at a running task's tracker.
    "work.poll_seconds" = "30" => SECONDS;
    /// The system prompt; unset: the built-in one.
    "agent.system_prompt" => SettingKind::Text;
    /// A file of rules added to it; unset: AGENTS.md in the working folder, if there is one.
    "agent.rules_file" => SettingKind::Path;
    /// The playbook that a task follows; unset: the built-in one.
    "agent.playbook" => SettingKind::Path;
    /// The most requests to the model for one task; 0: as many as it takes.
    "agent.max_turns" = "5000" => count(0, 1_000_000_000);
    /// The most minutes of work on one task, of all workers together; 0: as long as it takes.
    "agent.max_minutes" = "480" => SettingKind::Time { unit: TimeUnit::Minute, min: 0, max: 1_000_000 };
    /// The most tokens of all requests and answers of one task; 0: as many as it takes.
    "agent.max_total_tokens" = "50000000" => tokens(0, 4_000_000_000);
    /// How many calls in a row may go wrong before the task is ended.
    "agent.max_errors" = "8" => count(1, 1_000_000);
    /// How often a task may make the same call while an edit hides its answer, before it is ended; 0: as often as it likes.
    "agent.max_repeats" = "8" => count(0, 1_000_000);
    /// The built-in tools that are offered.
    "tools.enabled" => SettingKind::Lines, default: Some(builtin::ENABLED);
    /// Commands that the shell tool may run; *: any.
    "tools.allow" => SettingKind::Lines, default: Some(builtin::ALLOW);
    /// The folder in which each task gets one of its own; unset: work beside the sessions.
    "tools.work_dir" => SettingKind::Path;
    /// Seconds that a command may take.
    "tools.timeout_seconds" = "120" => SECONDS;
    /// The most megabytes of a command's output that are kept; it is ended when it prints more.
    "tools.max_output_mb" = "64" => count(1, 1_000_000);
    /// How commands are kept inside the folder: by the kernel, or by the allow-list alone.
    "tools.sandbox" = "required" => SettingKind::Choice(SANDBOX);
    /// Hosts that commands may reach, such as example.com, *.example.com or 192.0.2.7:8443; none; open: all.
    "tools.network" = "none" => SettingKind::Hosts;
    /// The most megabytes of memory of a command, with all it started; 0: as many as there are.
    "tools.max_memory_mb" = "8192" => LIMIT;
    /// The most seconds of processor time of a command, with all it started; 0: as many as it takes.
    "tools.max_cpu_seconds" = "3600" => seconds(0, 1_000_000_000);
    /// The most processes of a command at a time; 0: as many as it starts.
    "tools.max_processes" = "1024" => LIMIT;
    /// The most megabytes by which commands may let the working folder and their home grow; 0: no bound.
    "tools.max_disk_mb" = "20480" => LIMIT;
    /// A command line that is run in a new working folder before anything else.
    "tools.prepare" => SettingKind::Text;
    /// The program of an MCP server over stdio; without args a whole command line.
    "mcp_servers.<server>.command" => SettingKind::Text;
    /// Its arguments. {folder}: the working folder of the task.
    "mcp_servers.<server>.args" => SettingKind::Lines;
    /// Variables of its environment, beside the few that commands have; shown nowhere. {folder}: the working folder.
    "mcp_servers.<server>.env" => SettingKind::Pairs(&['=']);
    /// Where it runs; unset: in a private folder.
    "mcp_servers.<server>.folder" => SettingKind::Path;
    /// How it is confined; unset: like commands (tools.sandbox). off: not at all, with an open network.
    "mcp_servers.<server>.sandbox" => SettingKind::Choice(SANDBOX);
    /// Hosts that it may reach; unset: those of commands (tools.network).
    "mcp_servers.<server>.network" => SettingKind::Hosts;
    /// The URL of a remote MCP server (streamable HTTP).
    "mcp_servers.<server>.url" => HTTP;
    /// Headers of each request to it; shown nowhere.
    "mcp_servers.<server>.headers" => SettingKind::Pairs(&[':', '=']);
    /// The tools of it that are offered; unset: all.
    "mcp_servers.<server>.tools" => SettingKind::Lines;
    /// Seconds that a call may take; unset: 60.
    "mcp_servers.<server>.timeout_seconds" => SECONDS;
    /// Seconds that it may take to start and to say what it has; unset: 30.
    "mcp_servers.<server>.start_seconds" => SECONDS;
    /// The URL of GitHub's API.
    "github.base_url" = "https://api.github.com" => HTTP;
    /// The token for GitHub; never shown.
    "github.token" => SettingKind::Secret, seed_env: &["GITHUB_TOKEN"];
    /// Repositories (owner/name) whose issues become tasks; unset: none.
    "github.repos" => SettingKind::Lines;
    /// The user whose assignment makes an issue a task; unset: any user.
    "github.user" => SettingKind::Text;
    /// The label that makes an issue a task.
    "github.label" = "coding agent" => SettingKind::Text;
    /// The label while it is worked on.
    "github.label_running" = "coding agent processing" => SettingKind::Text;
    /// The label once it is done.
    "github.label_done" = "coding agent done" => SettingKind::Text;
    /// The label once it failed.
    "github.label_failed" = "coding agent failed" => SettingKind::Text;
    /// The label while it is paused.
    "github.label_paused" = "coding agent paused" => SettingKind::Text;
    /// The longest wait, in seconds, when GitHub limits the rate.
    "github.patience_seconds" = "300" => seconds(0, 86_400);
    /// The URL of GitLab's API.
    "gitlab.base_url" = "https://gitlab.com/api/v4" => HTTP;
    /// The token for GitLab; never shown.
    "gitlab.token" => SettingKind::Secret, seed_env: &["GITLAB_TOKEN"];
    /// Projects (group/name) whose issues become tasks; unset: none.
    "gitlab.projects" => SettingKind::Lines;
    /// The user whose assignment makes an issue a task; unset: any user.
    "gitlab.user" => SettingKind::Text;
    /// The label that makes an issue a task.
    "gitlab.label" = "coding agent" => SettingKind::Text;
    /// The label while it is worked on.
    "gitlab.label_running" = "coding agent processing" => SettingKind::Text;
    /// The label once it is done.
    "gitlab.label_done" = "coding agent done" => SettingKind::Text;
    /// The label once it failed.
    "gitlab.label_failed" = "coding agent failed" => SettingKind::Text;
    /// The label while it is paused.
    "gitlab.label_paused" = "coding agent paused" => SettingKind::Text;
    /// The longest wait, in seconds, when GitLab limits the rate.
    "gitlab.patience_seconds" = "300" => seconds(0, 86_400);
};
