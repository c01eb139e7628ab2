//! The time and the names that a program does not bring itself. They are the only ones in the library, and both can be
//! replaced: see [`Builder::clock`](crate::Builder::clock) and [`Builder::ids`](crate::Builder::ids).

use komado_engine::Clock;
use komado_store::Holder;
use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};

/// Tells the time by calling a function.
pub(crate) struct ClockFn<F>(pub(crate) F);

impl<F: Fn() -> String + Send + Sync> Clock for ClockFn<F> {
    fn now(&self) -> String {
        (self.0)()
    }
}

/// Now, by the system's clock: RFC 3339 in UTC with microseconds.
pub(crate) fn system_time() -> String {
    format!("{:.6}", jiff::Timestamp::now())
}

/// A random UUID.
pub(crate) fn random_id() -> String {
    // Each state has keys of its own, which come from the system's randomness.
    let random = || RandomState::new().build_hasher().finish();
    let (high, low) = (random(), random());
    format!(
        "{:08x}-{:04x}-4{:03x}-{:04x}-{:012x}",
        high >> 32,
        (high >> 16) & 0xffff,
        high & 0x0fff,
        (low >> 48) & 0x3fff | 0x8000,
        low & 0xffff_ffff_ffff
    )
}

/// The machine's name.
pub(crate) fn host() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

/// What other processes are told while this one writes.
pub(crate) fn holder(since: String) -> Holder {
    let program = std::env::current_exe().ok();
    let program = program.as_deref().and_then(|path| path.file_name());
    let program = program.map_or_else(String::new, |name| name.to_string_lossy().into_owned());
    Holder { pid: std::process::id(), host: host(), program, since }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_uuids_and_no_two_are_the_same() {
        let (one, other) = (random_id(), random_id());
        assert_ne!(one, other);
        assert_eq!(one.len(), 36, "{one}");
        assert_eq!(&one[14..15], "4", "{one}");
        assert!(matches!(&one[19..20], "8" | "9" | "a" | "b"), "{one}");
    }

    #[test]
    fn times_have_one_length_so_that_they_sort_as_text() {
        let time = system_time();
        assert_eq!((time.len(), &time[26..]), (27, "Z"), "{time}");
    }
}
