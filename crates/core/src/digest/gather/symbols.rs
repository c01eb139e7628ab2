//! Names that code defines.
//!
//! Read from what a call writes, by the word before the name. It refuses to parse: a keyword and a name are enough.

use crate::digest::scan::start;

const KEYWORDS: &str = "fn|def|class|func|function|struct|enum|trait|interface|type|module|mod|\
                        macro_rules!|protocol|record";

/// Words that may stand before one of those.
const MODIFIERS: &str = "pub|export|default|async|static|public|private|abstract|final";

/// Calls `found` for every name that `code` defines.
pub(in crate::digest) fn defined<'a>(code: &'a str, mut found: impl FnMut(&'a str)) {
    for line in code.lines() {
        let mut words = unnumbered(start(line, 240)).split_whitespace().take(6);
        while let Some(word) = words.next() {
            if KEYWORDS.split('|').any(|keyword| keyword == word) {
                if let Some(name) = words.next().and_then(|next| method(line, next)) {
                    found(name);
                }
                break;
            }
            if !MODIFIERS.split('|').any(|modifier| modifier == word) && !word.starts_with("pub(") {
                break;
            }
        }
    }
}

/// A line of a file without the number that a tool wrote before it.
fn unnumbered(line: &str) -> &str {
    let rest = line.trim_start().trim_start_matches(|c: char| c.is_ascii_digit());
    rest.strip_prefix('→')
        .or_else(|| rest.strip_prefix(':'))
        .or_else(|| rest.strip_prefix('\t'))
        .unwrap_or(line)
}

/// The name in `next`, or after the receiver of a Go method.
fn method<'a>(line: &'a str, next: &'a str) -> Option<&'a str> {
    let from = if next.starts_with('(') { line.split_once(") ")?.1 } else { next };
    let end = from.find(|c: char| !(c.is_alphanumeric() || c == '_')).unwrap_or(from.len());
    let name = &from[..end];
    (name.len() >= 4 && !name.starts_with(|c: char| c.is_ascii_digit())).then_some(name)
}

#[cfg(test)]
mod tests {
    #[test]
    fn definitions_of_many_tongues_are_found() {
        let code = "pub(crate) fn parse_line<'a>(x: &str) {\n  def handle(self):\nclass Reader(Base):\n\
                    func (s *Store) Append(e Entry) {\nexport async function fetchAll() {\nlet x = fnord;\n";
        let mut found = Vec::new();
        super::defined(code, |name| found.push(name));
        assert_eq!(found, ["parse_line", "handle", "Reader", "Append", "fetchAll"]);
    }
}
