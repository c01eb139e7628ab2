//! What is allocated while someone asks: how often, how much, and how much of it at once.
//!
//! Only `komado-bench plan` asks, in a process of its own. Until it does, an allocation costs one look at a flag more
//! than the system's own. It counts bytes as they were asked for, in every thread, and what is freed is taken off
//! again; it refuses to place, pool or limit anything: every call goes on to the system as it came.
//!
//! An allocator cannot be written without `unsafe`. This file has all of it that the
//! program has.
#![allow(unsafe_code)]

use serde::{Deserialize, Serialize};
use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering::Relaxed};

#[global_allocator]
static HEAP: Heap = Heap;

static WATCHED: AtomicBool = AtomicBool::new(false);
static TIMES: AtomicU64 = AtomicU64::new(0);
static BYTES: AtomicU64 = AtomicU64::new(0);
static LIVE: AtomicI64 = AtomicI64::new(0);
static PEAK: AtomicI64 = AtomicI64::new(0);

/// The system's allocator, looked at.
struct Heap;

/// What was allocated.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Allocated {
    /// How often memory was asked for; making a piece longer counts.
    pub(crate) times: u64,
    /// How many bytes, all together.
    pub(crate) bytes: u64,
    /// The most that was held at once, beyond what was there before.
    pub(crate) peak: u64,
}

/// Counts what `run` allocates, and what other threads allocate meanwhile.
pub(crate) fn watch<T>(run: impl FnOnce() -> T) -> (T, Allocated) {
    [&TIMES, &BYTES].iter().for_each(|count| count.store(0, Relaxed));
    [&LIVE, &PEAK].iter().for_each(|count| count.store(0, Relaxed));
    WATCHED.store(true, Relaxed);
    let made = run();
    WATCHED.store(false, Relaxed);
    let peak = PEAK.load(Relaxed).unsigned_abs();
    (made, Allocated { times: TIMES.load(Relaxed), bytes: BYTES.load(Relaxed), peak })
}

/// Notes that `bytes` were asked for where `before` were held.
#[cold]
fn note(before: usize, bytes: usize) {
    if bytes > 0 {
        TIMES.fetch_add(1, Relaxed);
        BYTES.fetch_add(bytes as u64, Relaxed);
    }
    let change = bytes as i64 - before as i64;
    PEAK.fetch_max(LIVE.fetch_add(change, Relaxed) + change, Relaxed);
}

// SAFETY: every call goes to the system's allocator with the arguments it came with, and what that gives is given back;
// counting neither allocates nor touches the memory.
unsafe impl GlobalAlloc for Heap {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if WATCHED.load(Relaxed) {
            note(0, layout.size());
        }
        // SAFETY: the caller keeps the contract of `GlobalAlloc`, which is the system's.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        if WATCHED.load(Relaxed) {
            note(layout.size(), 0);
        }
        // SAFETY: as above; `at` came from the system's allocator.
        unsafe { System.dealloc(at, layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        if WATCHED.load(Relaxed) {
            note(0, layout.size());
        }
        // SAFETY: as above.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, at: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        if WATCHED.load(Relaxed) {
            note(layout.size(), size);
        }
        // SAFETY: as above; `at` came from the system's allocator.
        unsafe { System.realloc(at, layout, size) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Much more than other tests hold, which may run at the same time.
    const MUCH: usize = 64 << 20;

    #[test]
    fn what_is_allocated_is_counted_and_what_is_freed_is_taken_off() {
        let (kept, took) = watch(|| {
            (0..15).for_each(|_| drop(std::hint::black_box(vec![0u8; MUCH])));
            vec![0u8; MUCH]
        });
        let much = MUCH as u64;
        assert_eq!(kept.len(), MUCH);
        assert!(took.times >= 16 && took.bytes >= 16 * much, "{took:?}");
        assert!((much / 2..8 * much).contains(&took.peak), "{took:?}");
        let mut grown: Vec<u8> = Vec::with_capacity(MUCH);
        let ((), took) = watch(|| grown.reserve_exact(4 * MUCH));
        assert!((2 * much..8 * much).contains(&took.peak), "{took:?}");
    }
}
