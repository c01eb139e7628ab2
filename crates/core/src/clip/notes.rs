//! What a view says about what it does not show: which lines, and the call that reads on.

use super::Limits;
use super::calls::{CHARS, Call, LINES, line_call, read_call};
use super::ends::{Head, Tail};

/// What the notes are about.
pub(super) struct Notes<'a> {
    pub(super) limits: &'a Limits,
    pub(super) reference: &'a str,
    pub(super) lines: u64,
    pub(super) bytes: u64,
}

impl Notes<'_> {
    /// The mark between head and tail, with its line break, and the last line.
    pub(super) fn write(&self, head: &Head, tail: &Tail) -> (String, String) {
        let shown = head.lines + tail.lines;
        let cuts = head.cuts.len() + tail.cuts.len();
        let first_cut = head.cuts.first().or_else(|| tail.cuts.front());
        let cut = first_cut.map(|(line, at)| (*line, line_call(self.reference, *line, *at, CHARS)));
        if shown == self.lines {
            // Nothing is left out but what lies inside of lines, so there is one.
            let call = cut.map(|(_, call)| call).unwrap_or_else(|| read_call(self.reference, 1, LINES));
            return (String::new(), self.last(shown, cuts, None, &call));
        }
        let (from, to) = (head.lines + 1, self.lines - tail.lines);
        let gap = if from == to {
            format!("[…line {from} left out…]\n")
        } else {
            format!("[…lines {from} to {to} left out…]\n")
        };
        (gap, self.last(shown, cuts, cut, &read_call(self.reference, from, LINES)))
    }

    fn last(&self, shown: u64, cuts: usize, cut: Option<(u64, Call)>, call: &Call) -> String {
        if self.limits.is_small() {
            return format!("[read on with {call}]");
        }
        let shown = if shown == self.lines { "all".to_owned() } else { format!("{shown} of") };
        let lines = if self.lines == 1 { "line" } else { "lines" };
        let inside = match cuts {
            0 => String::new(),
            n => format!(", {n} of them cut inside"),
        };
        let cut = cut.map(|(line, call)| format!("; line {line}: {call}")).unwrap_or_default();
        let bytes = self.bytes;
        format!(
            "[{shown} {} {lines} shown{inside}, {bytes} bytes in all{cut}; read on with {call}]",
            self.lines
        )
    }
}
