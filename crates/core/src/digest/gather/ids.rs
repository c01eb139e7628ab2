//! Words that cannot be guessed again: addresses, paths, ids, versions, figures, names of the code.
//!
//! One pass cuts the text into words of ASCII, another look at each word says what it is. It refuses to understand
//! the text around the word; how often and where a word comes up decides whether it is worth a line.

use super::paths;
use crate::digest::fact::FactKind;
use crate::digest::scan::start;

/// Longest word that is looked at.
const LONGEST: usize = 240;

/// Calls `found` for every word of `text` that is a finding.
pub(in crate::digest) fn words<'a>(text: &'a str, mut found: impl FnMut(FactKind, &'a str)) {
    let bytes = text.as_bytes();
    let mut from = 0;
    while from < bytes.len() {
        if !is_inner(bytes[from]) {
            from += 1;
            continue;
        }
        let len = bytes[from..].iter().position(|b| !is_inner(*b)).unwrap_or(bytes.len() - from);
        // The number of a line in a listing; `$(dir)/name` and `<tag>/x` are pieces of something else.
        let piece = bytes[from] == b'/' && from > 0 && matches!(bytes[from - 1], b')' | b'}' | b'>' | b']');
        let rest = &text[from + len..];
        let listed =
            rest.starts_with(['\t', '→']) && text[from..from + len].bytes().all(|b| b.is_ascii_digit());
        if len <= LONGEST && !piece && !listed {
            take(&text[from..from + len], &mut found);
        }
        from += len;
    }
}

const fn is_inner(b: u8) -> bool {
    b.is_ascii_alphanumeric()
        || matches!(
            b,
            b'_' | b'-' | b'.' | b'/' | b'~' | b'@' | b'+' | b'#' | b':' | b'%' | b'$' | b'=' | b'&' | b'?'
        )
}

fn take<'a>(word: &'a str, found: &mut impl FnMut(FactKind, &'a str)) {
    let word = word.trim_end_matches(['.', ':', '?', '=', '&', '#', '+', '@']);
    if word.len() < 2 {
        return;
    }
    if let Some(at) = word.find("://") {
        let from = word[..at].rfind(|c: char| !c.is_ascii_alphanumeric()).map_or(0, |at| at + 1);
        if word.len() > at + 6 && from < at {
            found(FactKind::Url, &word[from..]);
        }
        return;
    }
    for piece in word.split([':', '=', '&', '?']) {
        if let Some((kind, piece)) = classify(piece) {
            found(kind, piece);
        }
    }
}

/// What a word is, and the word without what only stands around it.
pub(in crate::digest) fn classify(word: &str) -> Option<(FactKind, &str)> {
    let word = word.trim_end_matches(['.', '-', '/', '@', '+']);
    if word.contains("://") {
        return Some((FactKind::Url, word));
    }
    let bare = word.trim_start_matches(['+', '-', '@', '=']);
    if bare.len() < 2 {
        return None;
    }
    if is_hash(bare) || is_uuid(bare) || is_issue(bare) || is_version(bare) {
        return Some((FactKind::Id, bare));
    }
    if is_figure(bare) {
        return Some((FactKind::Number, bare));
    }
    if paths::is_path(word) {
        return Some((FactKind::Path, word));
    }
    if bare.contains(['/', '~', '%', '$']) {
        return None;
    }
    if is_name_with_digits(bare) {
        return Some((FactKind::Id, bare));
    }
    let symbol = bare.trim_matches(['.', '-', '#']);
    is_symbol(symbol).then_some((FactKind::Symbol, symbol))
}

/// `123e4567-e89b-12d3-a456-426614174000`
fn is_uuid(word: &str) -> bool {
    word.len() == 36
        && word.bytes().enumerate().all(|(i, b)| match i {
            8 | 13 | 18 | 23 => b == b'-',
            _ => b.is_ascii_hexdigit(),
        })
}

/// Seven or more hexadecimal digits with both letters and digits among them.
fn is_hash(word: &str) -> bool {
    let word = word.strip_prefix("0x").unwrap_or(word);
    (7..=64).contains(&word.len())
        && word.bytes().all(|b| b.is_ascii_digit() || matches!(b, b'a'..=b'f'))
        && word.bytes().any(|b| b.is_ascii_digit())
        && word.bytes().any(|b| b.is_ascii_alphabetic())
}

/// `#123`, `ABC-123`
fn is_issue(word: &str) -> bool {
    if let Some(number) = word.strip_prefix('#') {
        return (1..=9).contains(&number.len()) && number.bytes().all(|b| b.is_ascii_digit());
    }
    word.split_once('-').is_some_and(|(key, number)| {
        key.len() >= 2
            && key.bytes().all(|b| b.is_ascii_uppercase())
            && (1..=8).contains(&number.len())
            && number.bytes().all(|b| b.is_ascii_digit())
    })
}

/// `1.2.3`, `v0.12.0-rc1`
fn is_version(word: &str) -> bool {
    let rest = word.strip_prefix('v').unwrap_or(word);
    let mut parts = rest.splitn(3, '.');
    let number = |part: Option<&str>| {
        part.is_some_and(|part| (1..=5).contains(&part.len()) && part.bytes().all(|b| b.is_ascii_digit()))
    };
    number(parts.next())
        && number(parts.next())
        && parts.next().map_or(word.len() != rest.len(), |last| {
            last.len() <= 20 && last.starts_with(|c: char| c.is_ascii_digit())
        })
}

/// Three digits or more, or fewer with a point, a sign of money or a unit.
fn is_figure(word: &str) -> bool {
    let money = word.starts_with('$');
    let word = word.strip_prefix('$').unwrap_or(word);
    let number = word.trim_end_matches(|c: char| c.is_ascii_alphabetic() || c == '%');
    let unit = &word[number.len()..];
    let digits = number.bytes().filter(u8::is_ascii_digit).count();
    number.starts_with(|c: char| c.is_ascii_digit())
        && number.bytes().all(|b| b.is_ascii_digit() || matches!(b, b'.' | b'-' | b'/'))
        && digits >= if unit.is_empty() && !money && !number.contains('.') { 3 } else { 1 }
        && digits <= 15
        && is_unit(unit)
}

/// True for a figure that says how long something took or how large it is: `250ms`, `4.2MB`.
pub(in crate::digest) fn has_unit(word: &str) -> bool {
    let unit = word.trim_start_matches(|c: char| !c.is_ascii_alphabetic());
    !matches!(unit, "" | "x" | "X" | "px")
}

fn is_unit(unit: &str) -> bool {
    const UNITS: [&str; 24] = [
        "", "%", "ms", "s", "us", "ns", "h", "min", "kb", "mb", "gb", "tb", "kib", "mib", "gib", "b", "k",
        "m", "px", "x", "hz", "mhz", "ghz", "bytes",
    ];
    unit.len() <= 5 && UNITS.contains(&unit.to_ascii_lowercase().as_str())
}

/// `DF89BM`, `HAT079`, `gift_card_3112961`, `E0308`
fn is_name_with_digits(word: &str) -> bool {
    let digits = word.bytes().filter(u8::is_ascii_digit).count();
    if digits == 0 || word.len() < 5 || word.len() > 48 {
        return false;
    }
    let plain = word.bytes().all(|b| b.is_ascii_digit() || b.is_ascii_uppercase());
    let tail = word.bytes().rev().take_while(u8::is_ascii_digit).count();
    plain || (tail >= 3 && word.contains(['_', '-']) && word.starts_with(|c: char| c.is_ascii_alphabetic()))
}

/// A name with a hump or an underscore inside: prose has no such words.
pub(in crate::digest) fn is_symbol(word: &str) -> bool {
    let b = word.as_bytes();
    (5..=64).contains(&b.len())
        && b.iter().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'.'))
        && b.iter().filter(|b| **b == b'.').count() <= 1
        && (b[0].is_ascii_alphabetic() || b[0] == b'_')
        && (b[1..b.len() - 1].contains(&b'_')
            || b.windows(2).any(|w| w[0].is_ascii_lowercase() && w[1].is_ascii_uppercase()))
}

// Names that code defines.
//
// Read from what a call writes, by the word before the name. It refuses to parse: a keyword and a name are enough.

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
    use super::*;

    fn all(text: &str) -> Vec<(&'static str, String)> {
        let mut found = Vec::new();
        words(text, |kind, word| found.push((kind.name(), word.to_owned())));
        found
    }

    #[test]
    fn each_word_is_known_for_what_it_is() {
        for (word, kind) in [
            ("https://example.com/a?b=1#c", "url"),
            ("123e4567-e89b-12d3-a456-426614174000", "id"),
            ("deadbeef1", "id"),
            ("#4588", "id"),
            ("PROJ-17", "id"),
            ("v1.2", "id"),
            ("0.12.0-rc1", "id"),
            ("DF89BM", "id"),
            ("gift_card_3112961", "id"),
            ("8080", "number"),
            ("$100", "number"),
            ("12.5%", "number"),
            ("2024-05-17", "number"),
            ("250ms", "number"),
            ("src/main.rs", "path"),
            ("/etc/hosts", "path"),
            ("Cargo.toml", "path"),
            ("parse_line", "symbol"),
            ("CalculateAttribution", "symbol"),
        ] {
            assert_eq!(all(word), [(kind, word.to_owned())], "{word}");
        }
    }

    #[test]
    fn prose_is_no_finding() {
        assert_eq!(
            all("Either read/write or neither, I said; it is 5 and that's all. Well-known, e.g. this."),
            []
        );
    }

    #[test]
    fn a_word_ends_where_japanese_begins() {
        assert_eq!(
            all("src/main.rsの128行目を、#45で直す（v1.2.3）"),
            [
                ("path", "src/main.rs".into()),
                ("number", "128".into()),
                ("id", "#45".into()),
                ("id", "v1.2.3".into())
            ]
        );
    }

    #[test]
    fn a_place_in_a_file_is_a_path_and_a_number() {
        assert_eq!(all("   235\tlet x\n236→y"), []);
        assert_eq!(all("(src/a.go:235)"), [("path", "src/a.go".into()), ("number", "235".into())]);
    }

    #[test]
    fn a_megabyte_of_one_letter_holds_nothing() {
        assert_eq!(all(&"a".repeat(1 << 20)), []);
        assert_eq!(all(&"/".repeat(1 << 20)), []);
    }

    #[test]
    fn definitions_of_many_tongues_are_found() {
        let code = "pub(crate) fn parse_line<'a>(x: &str) {\n  def handle(self):\nclass Reader(Base):\n\
                    func (s *Store) Append(e Entry) {\nexport async function fetchAll() {\nlet x = fnord;\n";
        let mut found = Vec::new();
        super::defined(code, |name| found.push(name));
        assert_eq!(found, ["parse_line", "handle", "Reader", "Append", "fetchAll"]);
    }
}
