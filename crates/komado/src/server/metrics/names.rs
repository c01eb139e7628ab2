//! Everything that is counted, with what it says: the one list of names that dashboards and alerts may use.

use metrics::{counter, describe_counter, describe_gauge, describe_histogram};

/// What kind of figure it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    /// Only grows.
    Counter,
    /// The same; its labels are known only when something happens.
    Labelled,
    /// Goes up and down.
    Gauge,
    /// How many were how large.
    Histogram,
}

use Kind::{Counter, Gauge, Histogram, Labelled};

/// Name, kind, meaning.
pub(crate) const NAMES: &[(&str, Kind, &str)] = &[
    ("komado_requests_total", Labelled, "Requests, by API, status and how they were placed"),
    (
        "komado_request_seconds",
        Histogram,
        "How long an exchange took, from the request to the end of the answer",
    ),
    ("komado_request_bytes_total", Counter, "Bytes of requests"),
    ("komado_answer_bytes_total", Counter, "Bytes of answers"),
    ("komado_tokens_before_total", Counter, "Tokens of what clients sent, as we count"),
    ("komado_tokens_after_total", Counter, "Tokens of what was sent on"),
    ("komado_edits_total", Counter, "Edits that made a window fit"),
    ("komado_edits_by_rung_total", Labelled, "The same, by rung of the ladder"),
    ("komado_recalls_total", Counter, "Calls of models that Komado answered itself"),
    ("komado_retries_total", Counter, "Requests that went out again, smaller"),
    ("komado_upstream_errors_total", Labelled, "Answers that are errors, by provider and status"),
    ("komado_upstream_away_total", Labelled, "Providers that could not be reached"),
    ("komado_cut_total", Counter, "Answers that broke off, because the provider or the client went"),
    ("komado_truncated_total", Counter, "Answers to less than was sent, without a word about it"),
    ("komado_faults_total", Labelled, "Faults of ours; the requests went through untouched, or were stopped"),
    ("komado_turned_away_total", Labelled, "Requests over a limit"),
    ("komado_in_flight", Gauge, "Exchanges under way"),
    ("komado_process_memory_bytes", Gauge, "Memory of this process (resident)"),
    ("komado_turns_total", Counter, "Exchanges that were answered and kept"),
    ("komado_history_turns", Histogram, "Turns of the user in what a client sent"),
    ("komado_history_truncations_total", Counter, "Exchanges for which something left the window"),
    ("komado_token_limit_errors_total", Counter, "Requests that a provider found too large"),
    ("komado_sessions", Gauge, "Sessions in the store"),
    ("komado_sessions_created_total", Counter, "Sessions that this process made"),
    ("komado_sessions_ended_total", Labelled, "Sessions that this process ended, by how"),
    ("komado_session_create_failures_total", Counter, "Sessions that could not be made"),
    ("komado_session_restores_total", Labelled, "First openings of sessions made earlier or elsewhere"),
    ("komado_sessions_expired_total", Counter, "Sessions whose time to live was over, as the store noticed"),
    ("komado_history_read_errors_total", Counter, "Histories, or parts of them, that could not be read"),
    ("komado_store_seconds", Histogram, "How long a call of the store took"),
    ("komado_store_errors_total", Labelled, "Calls of the store that failed, by call and kind"),
    ("komado_store_connection_errors_total", Counter, "Calls of the store that found nobody there"),
    ("komado_store_busy_total", Counter, "Times that another process held a session"),
    ("komado_leases_lost_total", Counter, "Calls refused because another process had taken the session over"),
    ("komado_store_up", Gauge, "1 while the store answers and takes what is written"),
    ("komado_store_keys", Gauge, "Keys, rows or files of the store"),
    ("komado_store_memory_bytes", Gauge, "Memory of the store"),
    ("komado_store_disk_bytes", Gauge, "Disk of the store"),
    ("komado_store_connections", Gauge, "Connections of this process to the store"),
    ("komado_store_leases", Gauge, "Sessions that this process holds for writing"),
];

/// Says what each is about, and begins at zero what has no labels, or whose labels are known: a figure that is missing looks
/// like one that nobody measures, and its first step is none that an alert could see.
pub(super) fn describe() {
    for &(name, kind, about) in NAMES {
        match kind {
            Counter => {
                describe_counter!(name, about);
                counter!(name).increment(0);
            }
            Labelled => describe_counter!(name, about),
            Gauge => describe_gauge!(name, about),
            Histogram => describe_histogram!(name, about),
        }
    }
    for outcome in ["ok", "failed"] {
        counter!("komado_session_restores_total", "outcome" => outcome).increment(0);
    }
}
