//! One long task in a small window: what its process holds at an early call, and at the last one.

use super::super::place::BenchFolder;
use super::course::TaskCourse;
use super::ruler::Memory;
use super::worker::work;
use crate::context::BenchEngine;
use crate::error::{Error, Result};

/// Bytes of an output.
const OUTPUT: (usize, usize) = (20_000, 200_000);
/// Shares of the calls at which is told what was held; the first one is what the last one is compared with.
const TOLD: [(u64, u64); 5] = [(1, 20), (1, 4), (1, 2), (3, 4), (1, 1)];

/// What was held.
pub(super) struct Long {
    pub(super) calls: u64,
    pub(super) window: u32,
    /// A call, and what was held when its output was sent.
    pub(super) at: Vec<(u64, Memory)>,
    pub(super) peak: u64,
    pub(super) worker: Memory,
    pub(super) request: u64,
    pub(super) seconds: f64,
}

impl Long {
    /// How much more was held at the last call than at the first one told.
    pub(super) fn growth(&self) -> f64 {
        let held = |at: Option<&(u64, Memory)>| at.map_or(0.0, |(_, memory)| memory.rss as f64);
        held(self.at.last()) - held(self.at.first())
    }
}

pub(super) fn measure(komado: &BenchEngine, place: &BenchFolder, calls: u64, window: u32) -> Result<Long> {
    let course = TaskCourse::new(&place.path("files"), (calls, 1), OUTPUT, Some(window))?;
    let worked = work(komado, place, &course, "long")?;
    // The request after call n has its output; the first request has none.
    let held = |call: u64| worked.seen.get(usize::try_from(call).ok()?).map(|memory| (call, *memory));
    let at: Vec<_> = TOLD.iter().filter_map(|(part, of)| held((calls * part).div_ceil(*of))).collect();
    if at.len() != TOLD.len() {
        return Err(Error::failed("the measured process could not be looked at (/proc)"));
    }
    let peak = worked.seen.iter().map(|memory| memory.peak).max().unwrap_or(0);
    let (worker, request, seconds) = (worked.worker, worked.request, worked.seconds);
    Ok(Long { calls, window, at, peak, worker, request, seconds })
}
