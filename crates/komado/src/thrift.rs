//! Memory that a server need not hold.
//!
//! A server works in many threads that each need little. The system's allocator spreads them over eight arenas for each
//! core, and what was freed in one is of no use to the others; an arena for each core is enough. The tokenisers' tables
//! stand in the program's own file, and the pages they were unpacked from stay in memory though nobody reads them
//! again; the system may have them back. Both are hints: where they are not taken, nothing changes but the memory used.
//!
//! Neither can be said without `unsafe`; this file and `heap.rs` have all of it that the binary has.
#![allow(unsafe_code)]

use komado_core::Meter;
use std::path::Path;

/// Says so, once, before the threads begin that serve requests; one that works already (a store's connections may) keeps
/// the arena it has.
pub(crate) fn few_arenas() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    {
        let cores = std::thread::available_parallelism().map_or(2, usize::from);
        let arenas = i32::try_from(cores.max(2)).unwrap_or(i32::MAX);
        // SAFETY: it only sets a number in the allocator, which is made for being set at any time.
        unsafe { libc::mallopt(libc::M_ARENA_MAX, arenas) };
    }
}

/// Unpacks what `meter` counts with, then lets go of what it was unpacked from.
pub(crate) fn unpack(meter: Meter) {
    meter.text("窓");
    #[cfg(target_os = "linux")]
    let_go();
}

/// Tells the system that the constants in the program's file are not needed in memory: they are read again if they are.
#[cfg(target_os = "linux")]
fn let_go() {
    use rustix::mm::{Advice, madvise};
    let Ok(program) = std::fs::read_link("/proc/self/exe") else { return };
    let Ok(maps) = std::fs::read_to_string("/proc/self/maps") else { return };
    for (from, to) in maps.lines().filter_map(|line| constants(line, &program)) {
        // SAFETY: this advice never changes what is read there; a page that is asked for is brought back as it was.
        let _ = unsafe { madvise(from as *mut _, to - from, Advice::LinuxPageOut) };
    }
}

/// Where a line of the system's table of mappings says that constants of `program` are.
fn constants(line: &str, program: &Path) -> Option<(usize, usize)> {
    let mut words = line.split_ascii_whitespace();
    let (range, rights) = (words.next()?, words.next()?);
    let path = line.find('/').map(|at| Path::new(&line[at..]))?;
    let (from, to) = range.split_once('-')?;
    let place = |text| usize::from_str_radix(text, 16).ok();
    (rights == "r--p" && path == program).then_some((place(from)?, place(to)?)).filter(|(from, to)| from < to)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_the_program_never_writes_is_let_go() {
        let program = Path::new("/opt/a b/komado");
        let line = |rights: &str, path: &str| format!("5600-9a00 {rights} 00000000 fe:00 1234    {path}");
        assert_eq!(constants(&line("r--p", "/opt/a b/komado"), program), Some((0x5600, 0x9a00)));
        for (rights, path) in [
            ("rw-p", "/opt/a b/komado"),
            ("r-xp", "/opt/a b/komado"),
            ("r--p", "/lib/libc.so.6"),
            ("r--p", ""),
        ] {
            assert_eq!(constants(&line(rights, path), program), None);
        }
    }

    #[test]
    fn counting_goes_on_as_before() {
        let meter = Meter::O200k;
        let before = meter.text("A window that stays small 小窓");
        unpack(meter);
        assert_eq!(meter.text("A window that stays small 小窓"), before);
    }
}
