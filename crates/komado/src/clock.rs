//! The one clock of the program.

use komado_engine::Clock;
pub(crate) use komado_ops::clock::stamp;

/// The system's clock, in UTC with microseconds.
pub(crate) struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> String {
        stamp(jiff::Timestamp::now())
    }
}
