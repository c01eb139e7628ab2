//! Which settings exist?
//!
//! One row per setting, and everything else is derived from it: how its text is parsed and checked, which
//! variables of the environment set it, what `komado config` lists and what the manual says. A new setting is
//! a new row here and a field in `Config`; there is no third place. How a row is named in the file, in the environment
//! and on the command line is worked out in [`names`].

mod names;

pub(crate) use names::*;

use names::STORES;

/// One setting.
pub(crate) struct Setting {
    /// Where it stands in the file; `<provider>` stands for any provider's name, `<persona>` for any persona's.
    pub(crate) path: &'static str,
    /// What its text must be.
    pub(crate) kind: Kind,
    /// Its value when nobody says anything.
    pub(crate) default: Option<&'static str>,
    /// The variables that the seeds name for it.
    pub(crate) seed_env: &'static [&'static str],
    /// A short name, which makes `KOMADO_BASE_DIR` and `--base-dir` out of `base_dir`.
    pub(crate) short: Option<&'static str>,
    /// What it does, in one line.
    pub(crate) about: &'static str,
}

/// What the text of a setting must be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Yes or no.
    Bool,
    /// A share: above 0, at most 1.
    Ratio,
    /// A share of which something is left on both sides: from 0.01 to 0.99.
    Part,
    /// A whole number within bounds.
    Count {
        /// The least that is allowed.
        min: u32,
        /// The most that is allowed.
        max: u32,
    },
    /// Any text.
    Text,
    /// A path; relative ones start from the working folder.
    Path,
    /// A text that is shown nowhere.
    Secret,
    /// An address that begins in one of these ways; a password in it is shown nowhere.
    Url(&'static [&'static str]),
    /// One of these words.
    Choice(&'static [&'static str]),
    /// A percentage from 5 to 100, or -1 for: as elsewhere.
    Percent,
    /// Texts, one per line; in the file also a list.
    Lines,
    /// Names with a percentage each: `NAME=PERCENT`, one per line; in the file also a list.
    Percents,
}

/// The providers that are known by name; any other name is allowed too.
pub(super) fn known_providers<'a>() -> impl Iterator<Item = &'a str> {
    komado_provider::ROWS.iter().map(|row| row.name).chain([SCRIPTED])
}

/// The model that is built in: no provider of the table, but one that can be named.
pub(crate) const SCRIPTED: &str = "scripted";

/// Variables that begin with `KOMADO_` and are not settings.
pub(super) const RESERVED: [&str; 5] =
    ["KOMADO_CONFIG", "KOMADO_DATA", "KOMADO_LOG", "KOMADO_PYTHON", "KOMADO_SESSION"];

/// Stands in a path for the name of a provider.
pub(super) const PROVIDER: &str = "<provider>";
/// Stands in a path for the name of a persona.
pub(super) const PERSONA: &str = "<persona>";

const METERS: &[&str] = &["o200k", "cl100k", "chars4", "bytes4", "o200k-1.5"];
const DIALECTS: &[&str] = &["openai", "responses", "anthropic", "ollama"];
const ON_FAULT: &[&str] = &["pass", "stop"];
const RECALL: &[&str] = &["when_needed", "never"];
const PRESETS: &[&str] = &["komado", "seed000", "seed001", "seed002"];
const TOKENS: Kind = Kind::Count { min: 0, max: 1_000_000_000 };
const DEPTH: Kind = Kind::Count { min: 0, max: 100 };
const MESSAGES: Kind = Kind::Count { min: 0, max: 1_000_000 };

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

const PLAIN: Setting =
    Setting { path: "", kind: Kind::Text, default: None, seed_env: &[], short: None, about: "" };

/// Every setting, in the order in which they are listed.
pub(crate) static SETTINGS: &[Setting] = &[
    Setting {
        path: "context_storage.enabled",
        kind: Kind::Bool,
        default: Some("true"),
        seed_env: &["CONTEXT_STORAGE_ENABLED"],
        about: "Whether contexts are kept on disk.",
        ..PLAIN
    },
    Setting {
        path: "context_storage.base_dir",
        kind: Kind::Path,
        default: Some("contexts"),
        short: Some("base_dir"),
        about: "The folder that holds the contexts, relative to the working folder.",
        ..PLAIN
    },
    Setting {
        path: "context_storage.compression_threshold",
        kind: Kind::Ratio,
        default: Some("0.7"),
        seed_env: &["COMPRESSION_THRESHOLD"],
        about: "The share of the window at which compression starts.",
        ..PLAIN
    },
    Setting {
        path: "context_storage.keep_recent_messages",
        kind: MESSAGES,
        default: Some("5"),
        about: "How many of the latest messages a compression leaves as they are.",
        ..PLAIN
    },
    Setting {
        path: "context_storage.min_messages_to_summarize",
        kind: Kind::Count { min: 1, max: 1_000_000 },
        default: Some("10"),
        about: "The fewest messages worth a summary.",
        ..PLAIN
    },
    Setting {
        path: "context_storage.cleanup_days",
        kind: Kind::Count { min: 0, max: 36_500 },
        default: Some("30"),
        seed_env: &["CLEANUP_DAYS"],
        about: "After how many days completed tasks may be cleaned up.",
        ..PLAIN
    },
    Setting {
        path: "context_storage.summary_prompt",
        default: Some(SUMMARY_PROMPT),
        about: "The prompt of a summary; {messages} stands for the messages.",
        ..PLAIN
    },
    Setting {
        path: "budget.preset",
        kind: Kind::Choice(PRESETS),
        default: Some("komado"),
        about: "The rule by which a window is kept; the settings below change single numbers of it.",
        ..PLAIN
    },
    Setting {
        path: "budget.reserve",
        kind: TOKENS,
        about: "Tokens kept free for the answer; unset: 8192, or a fifth of the window where that is less.",
        ..PLAIN
    },
    Setting {
        path: "budget.buffer",
        kind: Kind::Ratio,
        about: "The share of the window kept free for what no counter sees; unset: 0.1.",
        ..PLAIN
    },
    Setting {
        path: "budget.soft",
        kind: Kind::Ratio,
        about: "The share of the usable tokens above which something is done; unset: 0.8.",
        ..PLAIN
    },
    Setting {
        path: "budget.low",
        kind: Kind::Ratio,
        about: "The share of the usable tokens to come down to; unset: 0.5.",
        ..PLAIN
    },
    Setting {
        path: "budget.min_gain",
        kind: Kind::Ratio,
        about: "The share of the usable tokens that an edit must free before the window is full; unset: 0.25.",
        ..PLAIN
    },
    Setting {
        path: "budget.keep",
        kind: Kind::Ratio,
        about: "The share of the usable tokens that the newest messages keep; unset: 0.25.",
        ..PLAIN
    },
    Setting {
        path: "budget.summary",
        kind: Kind::Ratio,
        about: "The share of the usable tokens that a summary may take; unset: 0.1.",
        ..PLAIN
    },
    Setting {
        path: "budget.threshold",
        kind: Kind::Percent,
        about: "The percentage of the window at which something is done, in place of budget.soft.",
        ..PLAIN
    },
    Setting {
        path: "budget.thresholds",
        kind: Kind::Percents,
        about: "The same for single models: MODEL=PERCENT.",
        ..PLAIN
    },
    Setting {
        path: "tool_output_cache.enabled",
        kind: Kind::Bool,
        default: Some("true"),
        about: "Whether long outputs are kept whole elsewhere and shown in part.",
        ..PLAIN
    },
    Setting {
        path: "tool_output_cache.context_budget_tokens",
        kind: TOKENS,
        about: "Tokens that outputs may take together; unset: a quarter of the window, from 20000 to 60000.",
        ..PLAIN
    },
    Setting {
        path: "tool_output_cache.max_message_bytes",
        kind: Kind::Count { min: 512, max: 1_000_000_000 },
        default: Some("51200"),
        about: "The most bytes of one output that are shown.",
        ..PLAIN
    },
    Setting {
        path: "tool_output_cache.max_line_length",
        kind: Kind::Count { min: 80, max: 1_000_000_000 },
        default: Some("2000"),
        about: "The most characters of one line of an output that are shown.",
        ..PLAIN
    },
    Setting {
        path: "compaction.enabled",
        kind: Kind::Bool,
        default: Some("true"),
        about: "Whether spans are condensed.",
        ..PLAIN
    },
    Setting {
        path: "compaction.auto",
        kind: Kind::Bool,
        default: Some("true"),
        about: "Whether that happens by itself.",
        ..PLAIN
    },
    Setting {
        path: "compaction.threshold_ratio",
        kind: Kind::Ratio,
        about: "The share of the window from which on something is done, in place of budget.soft.",
        ..PLAIN
    },
    Setting {
        path: "compaction.model",
        about: "The model that writes summaries; same: the conversation's. Unset: none is asked, the digest is the summary.",
        ..PLAIN
    },
    Setting {
        path: "compaction.provider",
        about: "The provider of that model; unset: the conversation's. Without a model, its llm.<provider>.model.",
        ..PLAIN
    },
    Setting {
        path: "compaction.command",
        about: "A program that writes summaries: the request on standard input, the answer on standard output.",
        ..PLAIN
    },
    Setting { path: "compaction.summary_prompt", about: "What a summariser is asked for.", ..PLAIN },
    Setting {
        path: "compaction.summary_directives",
        kind: Kind::Lines,
        about: "Wishes that are added to what it is asked for.",
        ..PLAIN
    },
    Setting { path: "compaction.retain_prompt", about: "What it is to carry over word for word.", ..PLAIN },
    Setting {
        path: "compaction.retain_directives",
        kind: Kind::Lines,
        about: "Wishes that are added to that.",
        ..PLAIN
    },
    Setting {
        path: "compaction.retain_last_turns",
        kind: MESSAGES,
        about: "How many of the latest turns stay as they are, in place of budget.keep.",
        ..PLAIN
    },
    Setting {
        path: "overflow.retry_shrink",
        kind: Kind::Ratio,
        default: Some("0.8"),
        seed_env: &["TOKEN_LIMIT_REDUCTION_RATIO"],
        about: "The share to which the view shrinks after a request that was too large.",
        ..PLAIN
    },
    Setting {
        path: "overflow.tries",
        kind: Kind::Count { min: 0, max: 10 },
        default: Some("3"),
        seed_env: &["MAX_RETRY_ATTEMPTS"],
        about: "How often such a request goes out again, smaller.",
        ..PLAIN
    },
    Setting {
        path: "retry.tries",
        kind: Kind::Count { min: 1, max: 100 },
        default: Some("3"),
        about: "How often a request is sent while the provider is busy or away, the first time included.",
        ..PLAIN
    },
    Setting {
        path: "retry.delay_seconds",
        kind: Kind::Count { min: 0, max: 3_600 },
        default: Some("2"),
        seed_env: &["RETRY_DELAY_SECONDS"],
        about: "Seconds before the second try; it doubles from there.",
        ..PLAIN
    },
    Setting {
        path: "store.url",
        kind: Kind::Url(STORES),
        default: Some("file:"),
        seed_env: &["MEMORY_BACKEND", "REDIS_URL", "DB_URL"],
        about: "Where the history lives; file: is context_storage.base_dir.",
        ..PLAIN
    },
    Setting {
        path: "store.patience_seconds",
        kind: Kind::Count { min: 1, max: 600 },
        default: Some("10"),
        about: "Seconds that a call of a store on a server may take, connecting included.",
        ..PLAIN
    },
    Setting {
        path: "store.connections",
        kind: Kind::Count { min: 1, max: 10_000 },
        default: Some("16"),
        about: "How many connections this process opens to it at the most.",
        ..PLAIN
    },
    Setting {
        path: "store.lease_seconds",
        kind: Kind::Count { min: 1, max: 3_600 },
        default: Some("6"),
        about: "Seconds without a sign of life after which another process may take a session over.",
        ..PLAIN
    },
    Setting {
        path: "store.ttl_days",
        kind: Kind::Count { min: 0, max: 36_500 },
        default: Some("7"),
        about: "Days that Redis keeps a session after it was last used; 0: for ever. Other stores keep what they have.",
        ..PLAIN
    },
    Setting {
        path: "threads.enabled",
        kind: Kind::Bool,
        default: Some("true"),
        about: "Whether child threads may be started.",
        ..PLAIN
    },
    Setting {
        path: "threads.child_ratio",
        kind: Kind::Part,
        default: Some("0.8"),
        seed_env: &["STELIS_DEFAULT_WINDOW_RATIO"],
        about: "The share of the parent's window that a child thread gets.",
        ..PLAIN
    },
    Setting {
        path: "threads.max_depth",
        kind: DEPTH,
        default: Some("3"),
        seed_env: &["STELIS_MAX_DEPTH"],
        about: "How deep threads may nest.",
        ..PLAIN
    },
    Setting {
        path: "threads.lending",
        kind: Kind::Bool,
        default: Some("true"),
        about: "Whether a child thread may use what the threads above it leave of their shares.",
        ..PLAIN
    },
    Setting {
        path: "threads.anchor_tokens",
        kind: Kind::Count { min: 100, max: 1_000_000 },
        default: Some("1000"),
        about: "The most tokens that a child thread takes in its parent's window, chronicle included.",
        ..PLAIN
    },
    Setting {
        path: "personas.<persona>.stelis_config.enabled",
        kind: Kind::Bool,
        about: "Whether child threads may be started in this persona's sessions; unset: as threads.enabled.",
        ..PLAIN
    },
    Setting {
        path: "personas.<persona>.stelis_config.default_window_ratio",
        kind: Kind::Part,
        about: "The share of the parent's window that their child threads get; unset: as threads.child_ratio.",
        ..PLAIN
    },
    Setting {
        path: "personas.<persona>.stelis_config.max_depth",
        kind: DEPTH,
        about: "How deep their threads may nest; unset: as threads.max_depth.",
        ..PLAIN
    },
    Setting {
        path: "session.max_history",
        kind: Kind::Count { min: 1, max: 1_000_000 },
        seed_env: &["MAX_SESSION_HISTORY"],
        about: "How many turns a session keeps in view; unset: as many as fit.",
        ..PLAIN
    },
    Setting {
        path: "session.user",
        short: Some("user"),
        about: "In whose name messages are written.",
        ..PLAIN
    },
    Setting {
        path: "session.meter",
        kind: Kind::Choice(METERS),
        default: Some("o200k"),
        about: "The tokeniser that counts.",
        ..PLAIN
    },
    Setting {
        path: "server.listen",
        default: Some("127.0.0.1:4141"),
        about: "Where `komado serve` listens; beyond this machine only with keys.",
        ..PLAIN
    },
    Setting {
        path: "server.upstream",
        about: "The provider that is asked where neither path nor model name one; unset: as is found.",
        ..PLAIN
    },
    Setting {
        path: "server.on_fault",
        kind: Kind::Choice(ON_FAULT),
        default: Some("pass"),
        about: "What happens to a request when something of ours fails: it goes through untouched, or is refused.",
        ..PLAIN
    },
    Setting {
        path: "server.recall",
        kind: Kind::Choice(RECALL),
        default: Some("when_needed"),
        about: "Whether the model is offered the tools that lead back to what left its window.",
        ..PLAIN
    },
    Setting {
        path: "server.forward_other",
        kind: Kind::Bool,
        default: Some("true"),
        about: "Whether other paths under /v1 (embeddings, files) go to the provider as they come.",
        ..PLAIN
    },
    Setting {
        path: "server.body_limit_mb",
        kind: Kind::Count { min: 1, max: 4_095 },
        default: Some("256"),
        about: "The largest request that is taken, in megabytes.",
        ..PLAIN
    },
    Setting {
        path: "server.concurrency",
        kind: Kind::Count { min: 1, max: 100_000 },
        default: Some("512"),
        about: "How many requests are under way at once; one more is told to come again.",
        ..PLAIN
    },
    Setting {
        path: "server.rate",
        kind: Kind::Count { min: 0, max: 1_000_000 },
        default: Some("0"),
        about: "Requests a second of one key, or of one address where there are no keys; 0: as many as come.",
        ..PLAIN
    },
    Setting {
        path: "server.timeout_seconds",
        kind: Kind::Count { min: 1, max: 86_400 },
        default: Some("60"),
        about: "Seconds to wait for a client's headers, and for each next piece of its request.",
        ..PLAIN
    },
    Setting {
        path: "server.grace_seconds",
        kind: Kind::Count { min: 0, max: 86_400 },
        default: Some("20"),
        about: "Seconds that answers under way may still take when the server is to stop.",
        ..PLAIN
    },
    Setting {
        path: "telemetry.otlp_endpoint",
        kind: Kind::Url(&["http://", "https://"]),
        seed_env: &["OTEL_EXPORTER_OTLP_ENDPOINT"],
        about: "Where traces go (OTLP over HTTP); unset: nowhere.",
        ..PLAIN
    },
    Setting {
        path: "telemetry.service_name",
        default: Some("komado"),
        seed_env: &["OTEL_SERVICE_NAME"],
        about: "The name under which they are found there.",
        ..PLAIN
    },
    Setting {
        path: "telemetry.headers",
        kind: Kind::Secret,
        seed_env: &["OTEL_EXPORTER_OTLP_HEADERS"],
        about: "Headers for them, as NAME=VALUE, with commas between; shown nowhere.",
        ..PLAIN
    },
    Setting { path: "llm.provider", default: Some("openai"), about: "The model provider to call.", ..PLAIN },
    Setting { path: "llm.<provider>.model", about: "The model's name, as its provider spells it.", ..PLAIN },
    Setting {
        path: "llm.<provider>.models",
        kind: Kind::Lines,
        about: "Models for which the gateway asks this provider: names, or beginnings that end in *.",
        ..PLAIN
    },
    Setting {
        path: "llm.<provider>.context_length",
        kind: Kind::Count { min: 1, max: 1_000_000_000 },
        about: "The model's window, in tokens; never guessed.",
        ..PLAIN
    },
    Setting {
        path: "llm.<provider>.threshold",
        kind: Kind::Percent,
        about: "The percentage of the window at which something is done; -1: as for all.",
        ..PLAIN
    },
    Setting {
        path: "llm.<provider>.api_key",
        kind: Kind::Secret,
        about: "The provider's key; shown nowhere, and never taken from a flag.",
        ..PLAIN
    },
    Setting {
        path: "llm.<provider>.api_key_file",
        kind: Kind::Path,
        about: "A file that holds the key; nobody else should be able to read it.",
        ..PLAIN
    },
    Setting {
        path: "llm.<provider>.base_url",
        kind: Kind::Url(&["http://", "https://"]),
        about: "Where the provider listens.",
        ..PLAIN
    },
    Setting {
        path: "llm.<provider>.dialect",
        kind: Kind::Choice(DIALECTS),
        about: "How it speaks; unset: as is known of the provider, else openai.",
        ..PLAIN
    },
    Setting {
        path: "llm.<provider>.max_tokens",
        kind: Kind::Count { min: 1, max: 1_000_000_000 },
        about: "The longest answer, in tokens; unset: as long as the provider lets it be.",
        ..PLAIN
    },
    Setting {
        path: "llm.<provider>.timeout_seconds",
        kind: Kind::Count { min: 1, max: 86_400 },
        about: "Seconds to wait for the first word of an answer, and for each next one; unset: 600 and 300.",
        ..PLAIN
    },
];
