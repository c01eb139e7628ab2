//! What is counted, for operators who watch many sessions.
//!
//! Names and labels are few and fixed: no model, session or key is a label, since each of them would be a series of its
//! own for ever.

use komado_core::session::State;
use komado_engine::relay::RelayNotes;
use komado_engine::repeat::WARN_AT;
use komado_store::{Error, StoreHealthFigures};
use metrics::{
    SharedString, counter, describe_counter, describe_gauge, describe_histogram, gauge, histogram,
    with_local_recorder,
};
use metrics_exporter_prometheus::{Matcher, PrometheusBuilder, PrometheusRecorder};
use std::time::Duration;

use Kind::{Counter, Gauge, Histogram, Labelled};

/// The header on answers that are ours and not a provider's.
pub(crate) const STATUS_BY_US: &str = "x-komado-answered-by";

/// The bounds of what is measured in seconds, in the store, and in turns.
const SECONDS: &[f64] = &[0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0];
const MOMENTS: &[f64] =
    &[0.000_1, 0.000_5, 0.001, 0.002_5, 0.005, 0.01, 0.025, 0.05, 0.1, 0.5, 1.0, 5.0, 10.0];
const TURNS: &[f64] = &[1.0, 2.0, 3.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0, 500.0, 1_000.0];

/// What kind of figure it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    /// Only grows.
    Counter,
    /// The same; its labels are known only when something happens.
    Labelled,
    /// Goes up and down.
    Gauge,
    /// How many were how large.
    Histogram,
}

/// Everything that is counted: name, kind, meaning. The one list of names that dashboards and alerts may use.
const NAMES: &[(&str, Kind, &str)] = &[
    ("komado_requests_total", Labelled, "Requests, by API, status and how their session was found"),
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
    (
        "komado_repeated_calls_total",
        Counter,
        "Requests after the fifth and each later call of a tool whose answer an edit hides",
    ),
    ("komado_truncated_total", Counter, "Answers to less than was sent, without a word about it"),
    ("komado_faults_total", Labelled, "Internal faults; the requests were passed on unchanged, or stopped"),
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
    ("komado_store_connection_errors_total", Counter, "Calls that could not reach the store"),
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
/// like one that is not measured, and its first step is none that an alert could see.
fn describe() {
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

/// Counters of one server.
pub(crate) struct Metrics {
    recorder: PrometheusRecorder,
}

/// How an exchange went.
pub(crate) struct ExchangeRecord<'a> {
    /// How the client speaks.
    pub(crate) dialect: &'static str,
    /// Who was asked.
    pub(crate) upstream: &'a str,
    /// The model as the provider calls it.
    pub(crate) model: &'a str,
    /// The status; `None` when the client went before there was one.
    pub(crate) status: Option<u16>,
    /// How long it took.
    pub(crate) took: Duration,
    /// The size of the request.
    pub(crate) bytes_in: u64,
    /// The size of the answer.
    pub(crate) bytes_out: u64,
    /// The user's turns in the request.
    pub(crate) turns: usize,
    /// What was done.
    pub(crate) notes: &'a RelayNotes,
}

impl Metrics {
    /// All at zero.
    pub(crate) fn new() -> Self {
        let bounds = [
            ("komado_request_seconds", SECONDS),
            ("komado_store_seconds", MOMENTS),
            ("komado_history_turns", TURNS),
        ];
        let mut builder = PrometheusBuilder::new();
        for (name, bounds) in bounds {
            // Refused only for an empty list.
            builder = builder
                .set_buckets_for_metric(Matcher::Full(name.to_owned()), bounds)
                .unwrap_or_else(|_| PrometheusBuilder::new());
        }
        let recorder = builder.build_recorder();
        with_local_recorder(&recorder, describe);
        Self { recorder }
    }

    /// An exchange is over: it is counted, and told in the log.
    pub(crate) fn told(&self, told: &ExchangeRecord<'_>) {
        let notes = told.notes;
        let status = told.status.map_or_else(|| "gone".to_owned(), |status| status.to_string());
        let placed = if notes.placed.is_empty() { "none" } else { notes.placed };
        with_local_recorder(&self.recorder, || {
            counter!("komado_requests_total", "dialect" => told.dialect, "status" => status.clone(), "placed" => placed)
                .increment(1);
            histogram!("komado_request_seconds", "dialect" => told.dialect).record(told.took.as_secs_f64());
            counter!("komado_request_bytes_total").increment(told.bytes_in);
            counter!("komado_answer_bytes_total").increment(told.bytes_out);
            counter!("komado_tokens_before_total").increment(notes.before);
            counter!("komado_tokens_after_total").increment(notes.after);
            counter!("komado_edits_total").increment(u64::from(notes.edits));
            counter!("komado_recalls_total").increment(u64::from(notes.recalls));
            for (rung, edits) in &notes.rungs {
                counter!("komado_edits_by_rung_total", "rung" => *rung).increment(u64::from(*edits));
            }
            counter!("komado_retries_total").increment(u64::from(notes.attempts.saturating_sub(1)));
            counter!("komado_token_limit_errors_total").increment(u64::from(notes.overflows));
            counter!("komado_history_truncations_total").increment(u64::from(notes.edits > 0));
            if told.turns > 0 {
                histogram!("komado_history_turns").record(told.turns as f64);
            }
            let answered = told.status.is_some_and(|status| status < 400) && notes.cut.is_none();
            if answered && notes.session.is_some() && notes.fault.is_none() {
                counter!("komado_turns_total").increment(1);
            }
            if told.status.is_some_and(|status| status >= 400) {
                counter!("komado_upstream_errors_total", "upstream" => told.upstream.to_owned(), "status" => status)
                    .increment(1);
            }
            if notes.cut.is_some() {
                counter!("komado_cut_total").increment(1);
            }
            if notes.repeats >= WARN_AT {
                counter!("komado_repeated_calls_total").increment(1);
            }
            if notes.truncated.is_some() {
                counter!("komado_truncated_total").increment(1);
            }
        });
        self.log(told);
    }

    fn log(&self, told: &ExchangeRecord<'_>) {
        let notes = told.notes;
        let session = notes.session.as_ref().map(ToString::to_string);
        // Whatever went wrong before a place was found has been told already.
        if let (Some(why), Some(session)) = (&notes.fault, &session) {
            self.fault("journal");
            tracing::warn!(
                kind = "journal",
                why = why.as_str(),
                session,
                "an internal fault: not all of it was kept"
            );
        }
        tracing::info!(
            dialect = told.dialect,
            upstream = told.upstream,
            model = told.model,
            status = told.status.unwrap_or_default(),
            session,
            placed = notes.placed,
            before = notes.before,
            after = notes.after,
            edits = notes.edits,
            attempts = notes.attempts,
            bytes_in = told.bytes_in,
            bytes_out = told.bytes_out,
            ms = told.took.as_millis() as u64,
            cut = notes.cut,
            fault = notes.fault,
            "request"
        );
    }

    /// One more of something that has one label.
    fn count(&self, name: &'static str, label: &'static str, value: impl Into<SharedString>) {
        with_local_recorder(&self.recorder, || counter!(name, label => value.into()).increment(1));
    }

    /// Something of ours failed.
    pub(crate) fn fault(&self, kind: &'static str) {
        self.count("komado_faults_total", "kind", kind);
    }

    /// A provider could not be reached.
    pub(crate) fn away(&self, upstream: &str) {
        self.count("komado_upstream_away_total", "upstream", upstream.to_owned());
    }

    /// A request was refused because of a limit.
    pub(crate) fn turned_away(&self, why: &'static str) {
        self.count("komado_turned_away_total", "why", why);
    }

    /// Everything, as Prometheus reads it.
    pub(crate) fn render(&self, in_flight: usize) -> String {
        with_local_recorder(&self.recorder, || {
            gauge!("komado_in_flight").set(in_flight as f64);
            if let Some(bytes) = resident() {
                gauge!("komado_process_memory_bytes").set(bytes as f64);
            }
        });
        self.recorder.handle().render()
    }

    /// To be called now and then: what was measured is summed up.
    pub(crate) fn tidy(&self) {
        self.recorder.handle().run_upkeep();
    }
}

/// Memory of this process, where the system tells.
fn resident() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kilobytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kilobytes * 1024)
}

/// The kind of a failure; `None` for an answer that is only not the one hoped for (no such session, another was faster).
fn failure(error: &Error) -> Option<&'static str> {
    match error {
        Error::Away { .. } => Some("away"),
        Error::Refused { .. } => Some("refused"),
        Error::Damaged { .. } | Error::Header { .. } => Some("damaged"),
        Error::Io { .. } | Error::Table(_) | Error::Shelf(_) => Some("disk"),
        Error::TakenOver(_) => Some("taken_over"),
        Error::Poisoned | Error::TooMuch(_) => Some("other"),
        _ => None,
    }
}

impl Metrics {
    /// A call of the store is over.
    pub(crate) fn store_call(&self, call: &'static str, took: Duration, error: Option<&Error>) {
        with_local_recorder(&self.recorder, || {
            histogram!("komado_store_seconds", "call" => call).record(took.as_secs_f64());
        });
        if let Some(error) = error {
            self.store_error(call, error);
        }
    }

    /// A call of the store failed.
    pub(crate) fn store_error(&self, call: &'static str, error: &Error) {
        with_local_recorder(&self.recorder, || {
            if let Some(kind) = failure(error) {
                counter!("komado_store_errors_total", "call" => call, "kind" => kind).increment(1);
            }
            match error {
                Error::Away { .. } => counter!("komado_store_connection_errors_total").increment(1),
                Error::TakenOver(_) => counter!("komado_leases_lost_total").increment(1),
                Error::Busy { .. } => counter!("komado_store_busy_total").increment(1),
                _ => {}
            }
        });
    }

    /// A session was made, or could not be.
    pub(crate) fn created(&self, error: Option<&Error>) {
        with_local_recorder(&self.recorder, || match error {
            None => counter!("komado_sessions_created_total").increment(1),
            Some(error) if failure(error).is_some() => {
                counter!("komado_session_create_failures_total").increment(1)
            }
            Some(_) => {}
        });
    }

    /// A session entered a state from which it does not go on by itself.
    pub(crate) fn ended(&self, state: State) {
        self.count("komado_sessions_ended_total", "state", state.name());
    }

    /// A session made earlier or elsewhere was opened for the first time, or could not be.
    pub(crate) fn restored(&self, error: Option<&Error>) {
        let outcome = match error {
            None => "ok",
            Some(error) if failure(error).is_some() => "failed",
            Some(_) => return,
        };
        self.count("komado_session_restores_total", "outcome", outcome);
    }

    /// Part of a history could not be read. One that no store could be asked for, or that is another's by now, is whole.
    pub(crate) fn unread(&self, error: &Error) {
        if failure(error).is_some_and(|kind| !matches!(kind, "away" | "taken_over")) {
            with_local_recorder(&self.recorder, || counter!("komado_history_read_errors_total").increment(1));
        }
    }

    /// How the store is doing; `None` while it does not say.
    pub(crate) fn vitals(&self, vitals: Option<&StoreHealthFigures>) {
        with_local_recorder(&self.recorder, || {
            gauge!("komado_store_up").set(if vitals.is_some() { 1.0 } else { 0.0 });
            let Some(vitals) = vitals else { return };
            let gauges = [
                ("komado_sessions", vitals.sessions),
                ("komado_store_keys", vitals.keys),
                ("komado_store_memory_bytes", vitals.memory_bytes),
                ("komado_store_disk_bytes", vitals.disk_bytes),
                ("komado_store_connections", vitals.connections),
                ("komado_store_leases", vitals.leases),
            ];
            for (name, figure) in gauges {
                if let Some(figure) = figure {
                    gauge!(name).set(figure as f64);
                }
            }
            if let Some(expired) = vitals.expired {
                counter!("komado_sessions_expired_total").absolute(expired);
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn what_is_counted_is_rendered_and_two_servers_do_not_share_it() {
        let (one, other) = (Metrics::new(), Metrics::new());
        let notes = RelayNotes {
            placed: "new",
            before: 9,
            after: 4,
            edits: 3,
            rungs: vec![("clip", 2), ("condense", 1)],
            recalls: 4,
            attempts: 3,
            ..RelayNotes::default()
        };
        one.told(&ExchangeRecord {
            dialect: "openai",
            upstream: "社内",
            status: Some(500),
            model: "m",
            took: Duration::from_millis(100),
            bytes_in: 3,
            bytes_out: 5,
            turns: 7,
            notes: &notes,
        });
        one.fault("store");
        let text = one.render(2);
        for line in [
            r#"komado_requests_total{dialect="openai",status="500",placed="new"} 1"#,
            r#"komado_faults_total{kind="store"} 1"#,
            r#"komado_upstream_errors_total{upstream="社内",status="500"} 1"#,
            "komado_tokens_before_total 9",
            r#"komado_edits_by_rung_total{rung="clip"} 2"#,
            "komado_recalls_total 4",
            "komado_retries_total 2",
            "komado_in_flight 2",
        ] {
            assert!(text.contains(line), "{line}: {text}");
        }
        assert!(!other.render(0).contains("komado_faults_total{"));
    }

    /// Every name in a text that is one of ours by its beginning, without what a histogram adds to it.
    fn named(text: &str) -> BTreeSet<String> {
        let words = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
        let ours = words.filter(|word| word.starts_with("komado_"));
        let plain = |word: &str| {
            let ends = ["_bucket", "_sum", "_count"].iter().find_map(|end| word.strip_suffix(end));
            ends.unwrap_or(word).to_owned()
        };
        ours.map(plain).collect()
    }

    fn deployed(name: &str) -> String {
        std::fs::read_to_string(format!("{}/../../deploy/{name}", env!("CARGO_MANIFEST_DIR"))).unwrap()
    }

    #[test]
    fn dashboard_and_alerts_use_names_that_exist_and_the_dashboard_shows_all() {
        let known: BTreeSet<String> = NAMES.iter().map(|(name, ..)| (*name).to_owned()).collect();
        let (board, alerts) = (deployed("grafana-dashboard.json"), deployed("alerts.yaml"));
        serde_json::from_str::<serde_json::Value>(&board).unwrap();
        serde_saphyr::from_str::<serde_json::Value>(&alerts).unwrap();
        assert_eq!(named(&board).difference(&known).collect::<Vec<_>>(), Vec::<&String>::new());
        assert_eq!(named(&alerts).difference(&known).collect::<Vec<_>>(), Vec::<&String>::new());
        assert_eq!(known.difference(&named(&board)).collect::<Vec<_>>(), Vec::<&String>::new());
        assert!(named(&alerts).len() > 6);
    }

    #[test]
    fn the_manual_lists_every_name() {
        let path = format!("{}/../../docs/operate.md", env!("CARGO_MANIFEST_DIR"));
        let manual = named(&std::fs::read_to_string(path).unwrap());
        let missing: Vec<_> = NAMES.iter().filter(|(name, ..)| !manual.contains(*name)).collect();
        assert!(missing.is_empty(), "{missing:?}");
    }
}
