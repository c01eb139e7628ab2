//! What something costs, measured many times: time on the wall, time on the processor.

use crate::error::Result;
use rustix::time::{ClockId, clock_gettime};
use std::time::Instant;

/// Microseconds of every run.
#[derive(Default)]
pub(super) struct Costs {
    wall: Vec<f64>,
    cpu: Vec<f64>,
}

impl Costs {
    /// Runs `run` and notes what it took.
    pub(super) fn time<T>(&mut self, run: impl FnOnce() -> Result<T>) -> Result<T> {
        let (cpu, wall) = (cpu_us(), Instant::now());
        let made = run()?;
        let wall = wall.elapsed();
        self.cpu.push(cpu_us() - cpu);
        self.wall.push(wall.as_secs_f64() * 1e6);
        Ok(made)
    }

    /// The median time on the wall, in microseconds.
    pub(super) fn wall(&self) -> f64 {
        median(&self.wall)
    }

    /// The median time on the processor, user and system, in microseconds.
    pub(super) fn cpu(&self) -> f64 {
        median(&self.cpu)
    }
}

/// Processor time this thread has taken, in the program and in the kernel for it.
fn cpu_us() -> f64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as f64 * 1e6 + time.tv_nsec as f64 / 1e3
}

/// The middle one; 0 of none.
pub(super) fn median(of: &[f64]) -> f64 {
    let mut sorted = of.to_vec();
    sorted.sort_by(f64::total_cmp);
    match sorted.len() {
        0 => 0.0,
        n if n % 2 == 1 => sorted[n / 2],
        n => f64::midpoint(sorted[n / 2 - 1], sorted[n / 2]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_the_middle_one() {
        assert_eq!(median(&[]), 0.0);
        assert_eq!(median(&[3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median(&[4.0, 1.0, 2.0, 3.0]), 2.5);
    }

    #[test]
    fn work_takes_time_on_both_clocks() {
        let mut costs = Costs::default();
        for _ in 0..5 {
            let sum = costs.time(|| Ok((0..200_000u64).fold(0, |a, n| std::hint::black_box(a ^ n)))).unwrap();
            std::hint::black_box(sum);
        }
        assert!(costs.wall() > 0.0 && costs.cpu() > 0.0);
    }
}
