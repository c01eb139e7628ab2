//! What is counted, for whoever watches many sessions.
//!
//! Names and labels are few and fixed: no model, session or key is a label, since each of them would be a series of its
//! own for ever.

use komado_engine::relay::Notes;
use metrics::{
    counter, describe_counter, describe_gauge, describe_histogram, gauge, histogram, with_local_recorder,
};
use metrics_exporter_prometheus::{Matcher, PrometheusBuilder, PrometheusRecorder};

/// The header on answers that are ours and not a provider's.
pub(crate) const STATUS_BY_US: &str = "x-komado-answered-by";

const SECONDS: &[f64] = &[0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0];

/// Counters of one server.
pub(crate) struct Meters(PrometheusRecorder);

/// How an exchange went.
pub(crate) struct Told<'a> {
    /// How the client speaks.
    pub(crate) dialect: &'static str,
    /// Who was asked.
    pub(crate) upstream: &'a str,
    /// The status; `None` when the client went before there was one.
    pub(crate) status: Option<u16>,
    /// How long it took.
    pub(crate) seconds: f64,
    /// The size of the request.
    pub(crate) bytes_in: u64,
    /// The size of the answer.
    pub(crate) bytes_out: u64,
    /// What was done.
    pub(crate) notes: &'a Notes,
}

impl Meters {
    /// All at zero.
    pub(crate) fn new() -> Self {
        let builder = PrometheusBuilder::new();
        let matcher = Matcher::Full("komado_request_seconds".to_owned());
        // Refused only for an empty list.
        let builder =
            builder.set_buckets_for_metric(matcher, SECONDS).unwrap_or_else(|_| PrometheusBuilder::new());
        let recorder = builder.build_recorder();
        with_local_recorder(&recorder, describe);
        Self(recorder)
    }

    /// An exchange is over.
    pub(crate) fn told(&self, told: &Told<'_>) {
        let notes = told.notes;
        let status = told.status.map_or_else(|| "gone".to_owned(), |status| status.to_string());
        let placed = if notes.placed.is_empty() { "none" } else { notes.placed };
        with_local_recorder(&self.0, || {
            counter!("komado_requests_total", "dialect" => told.dialect, "status" => status.clone(), "placed" => placed)
                .increment(1);
            histogram!("komado_request_seconds", "dialect" => told.dialect).record(told.seconds);
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
    }

    /// Something of ours failed.
    pub(crate) fn fault(&self, kind: &'static str) {
        with_local_recorder(&self.0, || counter!("komado_faults_total", "kind" => kind).increment(1));
    }

    /// A provider could not be reached.
    pub(crate) fn away(&self, upstream: &str) {
        let upstream = upstream.to_owned();
        with_local_recorder(&self.0, || {
            counter!("komado_upstream_away_total", "upstream" => upstream).increment(1)
        });
    }

    /// A request was turned away at the door.
    pub(crate) fn turned_away(&self, why: &'static str) {
        with_local_recorder(&self.0, || counter!("komado_turned_away_total", "why" => why).increment(1));
    }

    /// Everything, as Prometheus reads it.
    pub(crate) fn render(&self, in_flight: usize) -> String {
        with_local_recorder(&self.0, || gauge!("komado_in_flight").set(in_flight as f64));
        self.0.handle().render()
    }

    /// To be called now and then: what was measured is summed up.
    pub(crate) fn tidy(&self) {
        self.0.handle().run_upkeep();
    }
}

fn describe() {
    describe_counter!("komado_requests_total", "Requests, by API, status and how they were placed");
    describe_histogram!(
        "komado_request_seconds",
        "How long an exchange took, from the request to the end of the answer"
    );
    describe_counter!("komado_request_bytes_total", "Bytes of requests");
    describe_counter!("komado_answer_bytes_total", "Bytes of answers");
    describe_counter!("komado_tokens_before_total", "Tokens of what clients sent, as we count");
    describe_counter!("komado_tokens_after_total", "Tokens of what was sent on");
    describe_counter!("komado_edits_total", "Edits that made a window fit");
    describe_counter!("komado_edits_by_rung_total", "The same, by rung of the ladder");
    describe_counter!("komado_recalls_total", "Calls of models that Komado answered itself");
    describe_counter!("komado_retries_total", "Requests that went out again, smaller");
    describe_counter!("komado_upstream_errors_total", "Answers that are errors, by provider and status");
    describe_counter!("komado_upstream_away_total", "Providers that could not be reached");
    describe_counter!("komado_cut_total", "Answers that broke off, because the provider or the client went");
    describe_counter!("komado_truncated_total", "Answers to less than was sent, without a word about it");
    describe_counter!(
        "komado_faults_total",
        "Faults of ours; the requests went through untouched, or were stopped"
    );
    describe_counter!("komado_turned_away_total", "Requests over a limit");
    describe_gauge!("komado_in_flight", "Exchanges under way");
}

#[cfg(test)]
mod tests {
    use super::*;

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
            seconds: 0.1,
            bytes_in: 3,
            bytes_out: 5,
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
}
