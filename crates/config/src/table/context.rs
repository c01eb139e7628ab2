//! The settings of a conversation: where it is kept, how its window is kept, and what child threads get.

use super::names::STORES;
use super::{HARMLESS, Kind, PLAIN, Setting};

const METERS: &[&str] = &["o200k", "cl100k", "chars4", "bytes4", "o200k-1.5"];
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

/// In the order in which they are listed.
pub(super) const ROWS: &[Setting] = &[
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
        ..HARMLESS
    },
    Setting {
        path: "context_storage.keep_recent_messages",
        kind: MESSAGES,
        default: Some("5"),
        about: "How many of the latest messages a compression leaves as they are.",
        ..HARMLESS
    },
    Setting {
        path: "context_storage.min_messages_to_summarize",
        kind: Kind::Count { min: 1, max: 1_000_000 },
        default: Some("10"),
        about: "The fewest messages worth a summary.",
        ..HARMLESS
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
        ..HARMLESS
    },
    Setting {
        path: "budget.reserve",
        kind: TOKENS,
        about: "Tokens kept free for the answer; unset: 8192, or a fifth of the window where that is less.",
        ..HARMLESS
    },
    Setting {
        path: "budget.buffer",
        kind: Kind::Ratio,
        about: "The share of the window kept free for what no counter sees; unset: 0.1.",
        ..HARMLESS
    },
    Setting {
        path: "budget.soft",
        kind: Kind::Ratio,
        about: "The share of the usable tokens above which something is done; unset: 0.8.",
        ..HARMLESS
    },
    Setting {
        path: "budget.low",
        kind: Kind::Ratio,
        about: "The share of the usable tokens to come down to; unset: 0.5.",
        ..HARMLESS
    },
    Setting {
        path: "budget.min_gain",
        kind: Kind::Ratio,
        about: "The share of the usable tokens that an edit must free before the window is full; unset: 0.25.",
        ..HARMLESS
    },
    Setting {
        path: "budget.keep",
        kind: Kind::Ratio,
        about: "The share of the usable tokens that the newest messages keep; unset: 0.25.",
        ..HARMLESS
    },
    Setting {
        path: "budget.summary",
        kind: Kind::Ratio,
        about: "The share of the usable tokens that a summary may take; unset: 0.1.",
        ..HARMLESS
    },
    Setting {
        path: "budget.threshold",
        kind: Kind::Percent,
        about: "The percentage of the window at which something is done, in place of budget.soft.",
        ..HARMLESS
    },
    Setting {
        path: "budget.thresholds",
        kind: Kind::Percents,
        about: "The same for single models: MODEL=PERCENT.",
        ..HARMLESS
    },
    Setting {
        path: "tool_output_cache.enabled",
        kind: Kind::Bool,
        default: Some("true"),
        about: "Whether long outputs are kept whole elsewhere and shown in part.",
        ..HARMLESS
    },
    Setting {
        path: "tool_output_cache.context_budget_tokens",
        kind: TOKENS,
        about: "Tokens that outputs may take together; unset: a quarter of the window, from 20000 to 60000.",
        ..HARMLESS
    },
    Setting {
        path: "tool_output_cache.max_message_bytes",
        kind: Kind::Count { min: 512, max: 1_000_000_000 },
        default: Some("51200"),
        about: "The most bytes of one output that are shown.",
        ..HARMLESS
    },
    Setting {
        path: "tool_output_cache.max_line_length",
        kind: Kind::Count { min: 80, max: 1_000_000_000 },
        default: Some("2000"),
        about: "The most characters of one line of an output that are shown.",
        ..HARMLESS
    },
    Setting {
        path: "compaction.enabled",
        kind: Kind::Bool,
        default: Some("true"),
        about: "Whether spans are condensed.",
        ..HARMLESS
    },
    Setting {
        path: "compaction.auto",
        kind: Kind::Bool,
        default: Some("true"),
        about: "Whether that happens by itself.",
        ..HARMLESS
    },
    Setting {
        path: "compaction.threshold_ratio",
        kind: Kind::Ratio,
        about: "The share of the window from which on something is done, in place of budget.soft.",
        ..HARMLESS
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
        ..HARMLESS
    },
    Setting {
        path: "overflow.retry_shrink",
        kind: Kind::Ratio,
        default: Some("0.8"),
        seed_env: &["TOKEN_LIMIT_REDUCTION_RATIO"],
        about: "The share to which the view shrinks after a request that was too large.",
        ..HARMLESS
    },
    Setting {
        path: "overflow.tries",
        kind: Kind::Count { min: 0, max: 10 },
        default: Some("3"),
        seed_env: &["MAX_RETRY_ATTEMPTS"],
        about: "How often such a request goes out again, smaller.",
        ..HARMLESS
    },
    Setting {
        path: "retry.tries",
        kind: Kind::Count { min: 1, max: 100 },
        default: Some("3"),
        about: "How often a request is sent while the provider is busy or away, the first time included.",
        ..HARMLESS
    },
    Setting {
        path: "retry.delay_seconds",
        kind: Kind::Count { min: 0, max: 3_600 },
        default: Some("2"),
        seed_env: &["RETRY_DELAY_SECONDS"],
        about: "Seconds before the second try; it doubles from there.",
        ..HARMLESS
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
        ..HARMLESS
    },
    Setting {
        path: "threads.child_ratio",
        kind: Kind::Part,
        default: Some("0.8"),
        seed_env: &["STELIS_DEFAULT_WINDOW_RATIO"],
        about: "The share of the parent's window that a child thread gets.",
        ..HARMLESS
    },
    Setting {
        path: "threads.max_depth",
        kind: DEPTH,
        default: Some("3"),
        seed_env: &["STELIS_MAX_DEPTH"],
        about: "How deep threads may nest.",
        ..HARMLESS
    },
    Setting {
        path: "threads.lending",
        kind: Kind::Bool,
        default: Some("true"),
        about: "Whether a child thread may use what the threads above it leave of their shares.",
        ..HARMLESS
    },
    Setting {
        path: "threads.anchor_tokens",
        kind: Kind::Count { min: 100, max: 1_000_000 },
        default: Some("1000"),
        about: "The most tokens that a child thread takes in its parent's window, chronicle included.",
        ..HARMLESS
    },
    Setting {
        path: "personas.<persona>.stelis_config.enabled",
        kind: Kind::Bool,
        about: "Whether child threads may be started in this persona's sessions; unset: as threads.enabled.",
        ..HARMLESS
    },
    Setting {
        path: "personas.<persona>.stelis_config.default_window_ratio",
        kind: Kind::Part,
        about: "The share of the parent's window that their child threads get; unset: as threads.child_ratio.",
        ..HARMLESS
    },
    Setting {
        path: "personas.<persona>.stelis_config.max_depth",
        kind: DEPTH,
        about: "How deep their threads may nest; unset: as threads.max_depth.",
        ..HARMLESS
    },
    Setting {
        path: "session.max_history",
        kind: Kind::Count { min: 1, max: 1_000_000 },
        seed_env: &["MAX_SESSION_HISTORY"],
        about: "How many turns a session keeps in view; unset: as many as fit.",
        ..HARMLESS
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
        ..HARMLESS
    },
];
