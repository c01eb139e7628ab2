//! What this process tells the system about itself: memory that it need not hold, and descriptors that are not passed on.
//!
//! A server works in many threads that each need little. The system's allocator spreads them over eight arenas for each
//! core, and what was freed in one is of no use to the others; an arena for each core is enough. The tokenisers' tables
//! stand in the program's own file, and the pages they were unpacked from stay in memory though they are not read
//! again; the system may have them back. Both are hints: where they are not taken, nothing changes but the memory used.
//!
//! None of this can be said without `unsafe`; this file has all of it that the binary has.

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

/// Gives the memory of the constants in the program's file back: they are read from the file again if they are needed.
///
/// To ask for them to be written out would do less: the system keeps the pages of a program that was just built or copied,
/// and those that another process has too.
#[cfg(target_os = "linux")]
fn let_go() {
    use rustix::mm::{Advice, madvise};
    let Ok(program) = std::fs::read_link("/proc/self/exe") else { return };
    let Ok(maps) = std::fs::read_to_string("/proc/self/smaps") else { return };
    for (from, to) in constants(&maps, &program) {
        // SAFETY: nothing in there differs from the file and nothing can be written there, so what is read next is what
        // was there before.
        let _ = unsafe { madvise(from as *mut _, to - from, Advice::LinuxDontNeed) };
    }
}

/// Where the system's table of mappings says that constants of `program` are, as they stand in its file.
///
/// What the loader wrote and then closed (addresses of functions, say) has the same rights, but pages of its own.
fn constants(maps: &str, program: &Path) -> Vec<(usize, usize)> {
    let (mut found, mut here) = (Vec::new(), None);
    for line in maps.lines() {
        let mut words = line.split_ascii_whitespace();
        let (Some(first), Some(second)) = (words.next(), words.next()) else { continue };
        match first {
            "Anonymous:" | "Swap:" if second != "0" => here = None,
            // The last line of a mapping.
            "VmFlags:" => found.extend(here.take()),
            _ if !first.ends_with(':') => here = mapping(line, program),
            _ => {}
        }
    }
    found
}

/// The mapping that a line begins, if it is of `program` and only to be read.
fn mapping(line: &str, program: &Path) -> Option<(usize, usize)> {
    let mut words = line.split_ascii_whitespace();
    let (range, rights) = (words.next()?, words.next()?);
    let path = line.find('/').map(|at| Path::new(&line[at..]))?;
    let (from, to) = range.split_once('-')?;
    let place = |text| usize::from_str_radix(text, 16).ok();
    (rights == "r--p" && path == program).then_some((place(from)?, place(to)?)).filter(|(from, to)| from < to)
}

/// Lets no descriptor beyond standard input, output and error pass on to other programs. Those that were open when we were
/// started, by a shell or a service manager, would be open in every command.
pub(crate) fn keep_to_oneself() {
    // SAFETY: with this flag the call closes nothing; it only marks descriptors to be closed when another program begins.
    // The numbers cover all there can be. Where the kernel does not know the call, it fails and changes nothing.
    let _ = unsafe { libc::syscall(libc::SYS_close_range, 3u32, u32::MAX, libc::CLOSE_RANGE_CLOEXEC) };
}

#[cfg(test)]
mod tests {
    use super::*;

    const PROGRAM: &str = "/opt/a b/komado";

    fn table(rights: &str, path: &str, own: &str, swapped: &str) -> String {
        format!(
            "5600-9a00 {rights} 00000000 fe:00 1234    {path}\nSize: 16 kB\nRss: 8 kB\nAnonymous: {own} kB\n\
             Swap: {swapped} kB\nVmFlags: rd mr\n"
        )
    }

    #[test]
    fn only_what_is_as_it_stands_in_the_file_is_let_go() {
        let program = Path::new(PROGRAM);
        let good = table("r--p", PROGRAM, "0", "0");
        assert_eq!(constants(&good, program), [(0x5600, 0x9a00)]);
        let others = [
            table("rw-p", PROGRAM, "0", "0"),
            table("r-xp", PROGRAM, "0", "0"),
            table("r--p", "/lib/libc.so.6", "0", "0"),
            table("r--p", "", "0", "0"),
            table("r--p", PROGRAM, "4", "0"),
            table("r--p", PROGRAM, "0", "4"),
        ];
        for other in &others {
            assert_eq!(constants(other, program), [], "{other}");
        }
        assert_eq!(
            constants(&others.concat().replace("VmFlags: rd mr\n", ""), program),
            [],
            "a table without its end"
        );
        assert_eq!(constants(&format!("{}{good}{}", others[4], others[1]), program), [(0x5600, 0x9a00)]);
    }

    /// The packed table alone has 31,400 kB; what other tests of this process read is far less.
    #[cfg(target_os = "linux")]
    #[test]
    fn what_was_let_go_is_no_longer_held_and_counting_goes_on_as_before() {
        let meter = Meter::O200k;
        let before = meter.text("A window that stays small 小窓");
        unpack(meter);
        assert!(held() < 31_000, "{} kB of constants are still held", held());
        assert_eq!(meter.text("A window that stays small 小窓"), before);
    }

    /// kB of the program's constants in memory.
    #[cfg(target_os = "linux")]
    fn held() -> u64 {
        let program = std::fs::read_link("/proc/self/exe").unwrap();
        let maps = std::fs::read_to_string("/proc/self/smaps").unwrap();
        let ours = constants(&maps, &program);
        let mut inside = false;
        let sizes = maps.lines().filter_map(|line| {
            if !line.split(' ').next()?.ends_with(':') {
                inside = mapping(line, &program).is_some_and(|range| ours.contains(&range));
            }
            let size = line.strip_prefix("Rss:").filter(|_| inside)?;
            size.split_whitespace().next()?.parse::<u64>().ok()
        });
        sizes.sum()
    }
}
