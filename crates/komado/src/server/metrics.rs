//! What is counted, for whoever watches many sessions.
//!
//! Names and labels are few and fixed: no model, session or key is a label, since each of them would be a series of its
//! own for ever.

mod names;
mod store;

use komado_engine::relay::Notes;
use metrics::{counter, gauge, histogram, with_local_recorder};
use metrics_exporter_prometheus::{Matcher, PrometheusBuilder, PrometheusRecorder};
use std::time::Duration;

/// The header on answers that are ours and not a provider's.
pub(crate) const STATUS_BY_US: &str = "x-komado-answered-by";

/// The bounds of what is measured in seconds, in the store, and in turns.
const SECONDS: &[f64] = &[0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0];
const MOMENTS: &[f64] =
    &[0.000_1, 0.000_5, 0.001, 0.002_5, 0.005, 0.01, 0.025, 0.05, 0.1, 0.5, 1.0, 5.0, 10.0];
const TURNS: &[f64] = &[1.0, 2.0, 3.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0, 500.0, 1_000.0];

/// Counters of one server.
pub(crate) struct Meters {
    recorder: PrometheusRecorder,
}

/// How an exchange went.
pub(crate) struct Told<'a> {
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
    pub(crate) notes: &'a Notes,
}

impl Meters {
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
        with_local_recorder(&recorder, names::describe);
        Self { recorder }
    }

    /// An exchange is over: it is counted, and told in the log.
    pub(crate) fn told(&self, told: &Told<'_>) {
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
            if notes.truncated.is_some() {
                counter!("komado_truncated_total").increment(1);
            }
        });
        self.log(told);
    }

    fn log(&self, told: &Told<'_>) {
        let notes = told.notes;
        let session = notes.session.as_ref().map(ToString::to_string);
        // Whatever went wrong before a place was found has been told already.
        if let (Some(why), Some(session)) = (&notes.fault, &session) {
            self.fault("journal");
            tracing::warn!(
                kind = "journal",
                why = why.as_str(),
                session,
                "a fault of ours: not all of it was kept"
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

    /// Something of ours failed.
    pub(crate) fn fault(&self, kind: &'static str) {
        with_local_recorder(&self.recorder, || counter!("komado_faults_total", "kind" => kind).increment(1));
    }

    /// A provider could not be reached.
    pub(crate) fn away(&self, upstream: &str) {
        let upstream = upstream.to_owned();
        with_local_recorder(&self.recorder, || {
            counter!("komado_upstream_away_total", "upstream" => upstream).increment(1)
        });
    }

    /// A request was turned away at the door.
    pub(crate) fn turned_away(&self, why: &'static str) {
        with_local_recorder(&self.recorder, || {
            counter!("komado_turned_away_total", "why" => why).increment(1)
        });
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn what_is_counted_is_rendered_and_two_servers_do_not_share_it() {
        let (one, other) = (Meters::new(), Meters::new());
        let notes = Notes {
            placed: "new",
            before: 9,
            after: 4,
            edits: 3,
            rungs: vec![("clip", 2), ("condense", 1)],
            recalls: 4,
            attempts: 3,
            ..Notes::default()
        };
        one.told(&Told {
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
        let known: BTreeSet<String> = names::NAMES.iter().map(|(name, ..)| (*name).to_owned()).collect();
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
        let missing: Vec<_> = names::NAMES.iter().filter(|(name, ..)| !manual.contains(*name)).collect();
        assert!(missing.is_empty(), "{missing:?}");
    }
}
