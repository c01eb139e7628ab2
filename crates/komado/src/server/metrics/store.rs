//! What is counted about the store.

use super::Meters;
use komado_core::session::State;
use komado_store::{Error, Vitals};
use metrics::{counter, gauge, histogram, with_local_recorder};
use std::time::Duration;

/// The kind of a failure; `None` for an answer that is only not the one hoped for (no such session, someone was faster).
pub(crate) fn failure(error: &Error) -> Option<&'static str> {
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

impl Meters {
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
        with_local_recorder(&self.recorder, || {
            counter!("komado_sessions_ended_total", "state" => state.name()).increment(1)
        });
    }

    /// A session made earlier or elsewhere was opened for the first time, or could not be.
    pub(crate) fn restored(&self, error: Option<&Error>) {
        let outcome = match error {
            None => "ok",
            Some(error) if failure(error).is_some() => "failed",
            Some(_) => return,
        };
        with_local_recorder(&self.recorder, || {
            counter!("komado_session_restores_total", "outcome" => outcome).increment(1)
        });
    }

    /// Part of a history could not be read. One that nobody could be asked for, or that is another's by now, is whole.
    pub(crate) fn unread(&self, error: &Error) {
        if failure(error).is_some_and(|kind| !matches!(kind, "away" | "taken_over")) {
            with_local_recorder(&self.recorder, || counter!("komado_history_read_errors_total").increment(1));
        }
    }

    /// How the store is doing; `None` while it does not say.
    pub(crate) fn vitals(&self, vitals: Option<&Vitals>) {
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
