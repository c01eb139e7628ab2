//! The settings of the server, of its traces, and of model providers.

use super::{HTTP, Kind, PLAIN, Setting};

const DIALECTS: &[&str] = &["openai", "responses", "anthropic", "ollama"];
const ON_FAULT: &[&str] = &["pass", "stop"];
const RECALL: &[&str] = &["when_needed", "never"];

/// In the order in which they are listed.
pub(super) const ROWS: &[Setting] = &[
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
        kind: HTTP,
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
    Setting { path: "llm.<provider>.base_url", kind: HTTP, about: "Where the provider listens.", ..PLAIN },
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
