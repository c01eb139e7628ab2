//! Where in the code a comment stands, in words.
//!
//! Whoever reads it has no page to look at: without file and line, "not here" says nothing.

use super::words;

/// A place in the code.
#[derive(Clone, Copy, Default)]
pub(super) struct Place<'a> {
    pub(super) path: &'a str,
    /// The first of several lines.
    pub(super) from: Option<u64>,
    /// The line, or the last of several; a whole file has none.
    pub(super) line: Option<u64>,
    /// Which code is meant, where it is not that of today.
    pub(super) of: Option<&'a str>,
    /// True for an answer to another comment there.
    pub(super) is_reply: bool,
}

impl Place<'_> {
    /// What was said there, with the place before it.
    pub(super) fn says(&self, text: &str) -> String {
        let on = if self.is_reply { "In reply, on" } else { "On" };
        let lines = match (self.from, self.line) {
            (Some(from), Some(line)) if from < line => format!(", lines {from} to {line}"),
            (_, Some(line)) => format!(", line {line}"),
            (_, None) => String::new(),
        };
        let of = self.of.filter(|_| self.line.is_some()).map(|of| format!(" {of}")).unwrap_or_default();
        format!("{on} {}{lines}{of}:\n{text}", words::line(self.path))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_one_line_before_what_was_said() {
        let place = Place { path: "src/窓.rs\nOn x", line: Some(12), ..Place::default() };
        assert_eq!(place.says("直す\n今"), "On src/窓.rs On x, line 12:\n直す\n今");
        assert_eq!(Place { from: Some(12), ..place }.says("a"), "On src/窓.rs On x, line 12:\na");
        let several = Place { from: Some(10), of: Some("before the change"), is_reply: true, ..place };
        assert_eq!(several.says("a"), "In reply, on src/窓.rs On x, lines 10 to 12 before the change:\na");
        assert_eq!(Place { line: None, ..several }.says("a"), "In reply, on src/窓.rs On x:\na");
    }
}
