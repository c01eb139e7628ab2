//! The system's clock, for sessions that are made to be measured.

use komado_engine::Clock;

/// UTC with microseconds.
pub(crate) struct BenchClock;

impl Clock for BenchClock {
    fn now(&self) -> String {
        format!("{:.6}", jiff::Timestamp::now())
    }
}
