//! Memory stays flat: whatever the length of an output, whatever the length of its lines.
//!
//! An allocator counts what is held and remembers the most; the outputs are made as they are read, so that nothing but
//! the reading itself can hold them.

use crate::heap::most;
use komado_core::clip::{ClipLimits, Clipper};
use komado_engine::output::grep::{GrepPattern, GrepSearch, grep};
use komado_engine::output::read::{LineStretch, line};
use komado_engine::output::read::{OutputPage, read};
use std::io::Read;

/// So many bytes of `unit` over and over, then an end.
struct Endless {
    unit: &'static [u8],
    at: usize,
    left: usize,
    end: &'static [u8],
}

impl Read for Endless {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        if self.left == 0 {
            return self.end.read(buffer);
        }
        let n = (self.unit.len() - self.at).min(buffer.len()).min(self.left);
        buffer[..n].copy_from_slice(&self.unit[self.at..self.at + n]);
        self.at = (self.at + n) % self.unit.len();
        self.left -= n;
        Ok(n)
    }
}

const SIZE: usize = 256 << 20;
const BOUND: usize = 4 << 20;

/// One test, so that nothing else allocates meanwhile.
#[test]
fn a_quarter_of_a_gigabyte_is_read_searched_and_clipped_in_four_megabytes() {
    let _alone = crate::heap::alone();
    const LINES: &[u8] = "2024-01-15 INFO 小窓 looks at a line of a log and finds nothing\n".as_bytes();
    const ONE_LINE: &[u8] = b"QUJDREVGR0hJSktMTU5PUFFSU1RVVldYWVo0NTY3ODkw".as_slice();
    let limits = ClipLimits::default();
    for unit in [LINES, ONE_LINE] {
        let output = || Endless { unit, at: 0, left: SIZE / unit.len() * unit.len(), end: b"the needle" };
        let lines = if unit == LINES { SIZE / unit.len() } else { 0 } as u64;
        let searched = most(|| {
            let search = GrepSearch {
                before: 3,
                after: 3,
                ..GrepSearch::of(GrepPattern::Literal("the needle".into()))
            };
            let reading = grep(&mut output(), &search, &limits, "@1").unwrap();
            assert!(reading.text.contains("the needle\n[1 match"), "{}", reading.text);
        });
        let paged = most(|| {
            let page = OutputPage { offset: lines.max(1), limit: 10 };
            let reading = read(&mut output(), &page, &limits, "@1").unwrap();
            assert!(reading.text.contains("the needle\n["), "{}", reading.text);
        });
        let stretched = most(|| {
            let at = if unit == LINES { 0 } else { SIZE as u64 / 2 };
            let stretch = LineStretch { char_offset: at, ..LineStretch::of(lines + 1) };
            line(&mut output(), &stretch, &limits, "@1").unwrap();
        });
        let clipped = most(|| {
            let mut clipper = Clipper::new(limits);
            let (mut buffer, mut from) = (vec![0; 64 * 1024], output());
            while let n @ 1.. = from.read(&mut buffer).unwrap() {
                clipper.push(&buffer[..n]);
            }
            assert!(clipper.finish("@1").unwrap().contains("the needle\n["));
        });
        for (what, held) in [("grep", searched), ("read", paged), ("line", stretched), ("clip", clipped)] {
            assert!(held < BOUND, "{what} held {held} bytes");
        }
    }
}
