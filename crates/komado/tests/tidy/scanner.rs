//! Code alone: a text without comments, strings and tests, and the functions in it.

/// The text with comments, strings and character literals replaced by blanks, line for line.
pub(crate) fn mask(text: &str) -> String {
    let mut code = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let after_word = code.ends_with(|c: char| c.is_alphanumeric() || c == '_');
        let (kept, length) = match skip(rest, after_word) {
            0 => (true, first.len_utf8()),
            length => (false, length),
        };
        let (taken, left) = rest.split_at(length);
        if kept {
            code.push_str(taken);
        } else {
            code.extend(taken.bytes().map(|byte| if byte == b'\n' { '\n' } else { ' ' }));
        }
        rest = left;
    }
    code
}

/// How many bytes at the start of `rest` are not code; 0 when the next character is.
fn skip(rest: &str, after_word: bool) -> usize {
    if rest.starts_with("//") {
        rest.find('\n').unwrap_or(rest.len())
    } else if rest.starts_with("/*") {
        block_comment(rest)
    } else if rest.starts_with('"') {
        quoted(rest, '"')
    } else if rest.starts_with('\'') {
        let mut next = rest.chars().skip(1);
        match (next.next(), next.next()) {
            (Some('\\'), _) | (Some(_), Some('\'')) => quoted(rest, '\''),
            _ => 0, // a lifetime or a label
        }
    } else if !after_word {
        raw_string(rest)
    } else {
        0
    }
}

fn block_comment(rest: &str) -> usize {
    let bytes = rest.as_bytes();
    let (mut at, mut depth) = (0, 0usize);
    while at < bytes.len() {
        match &bytes[at..bytes.len().min(at + 2)] {
            b"/*" => (at, depth) = (at + 2, depth + 1),
            b"*/" => (at, depth) = (at + 2, depth - 1),
            _ => at += 1,
        }
        if depth == 0 {
            return at;
        }
    }
    rest.len()
}

fn quoted(rest: &str, quote: char) -> usize {
    let mut escaped = false;
    for (at, c) in rest.char_indices().skip(1) {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            _ if c == quote => return at + c.len_utf8(),
            _ => {}
        }
    }
    rest.len()
}

fn raw_string(rest: &str) -> usize {
    let Some(after) = ["r", "br", "cr"].iter().find_map(|prefix| rest.strip_prefix(prefix)) else { return 0 };
    let body = after.trim_start_matches('#');
    if !body.starts_with('"') {
        return 0; // a raw identifier, or a word that begins with r
    }
    let end = format!("\"{}", "#".repeat(after.len() - body.len()));
    let start = rest.len() - body.len() + 1;
    body[1..].find(&end).map_or(rest.len(), |at| start + at + end.len())
}

pub(crate) struct Function {
    pub(crate) name: String,
    pub(crate) line: usize,
    pub(crate) body_lines: usize,
}

/// Every function that has a body. Lines are counted between its braces.
pub(crate) fn functions(code: &str) -> Vec<Function> {
    let mut found = Vec::new();
    for (at, _) in code.match_indices("fn ") {
        if code[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_' || c == '#') {
            continue;
        }
        let signature = &code[at + 3..];
        let name: String = signature.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
        if let Some((open, close)) = body(signature) {
            let lines = signature[open..close].matches('\n').count();
            let line = code[..at].matches('\n').count() + 1;
            found.push(Function { name, line, body_lines: lines.saturating_sub(1) });
        }
    }
    found
}

/// Code with every item under `#[cfg(test)]` blanked out.
pub(crate) fn without_tests(code: &str) -> String {
    let mut kept = code.to_string();
    for attribute in ["#[cfg(test)]", "#[cfg(all(test,"] {
        while let Some(start) = kept.find(attribute) {
            let from = start + kept[start..].find(']').unwrap_or(attribute.len() - 1) + 1;
            let item = &kept[from..];
            let length = match body(item) {
                Some((_, close)) => close + 1,
                None => item.find(';').map_or(item.len(), |at| at + 1),
            };
            let blank: String =
                kept[start..from + length].chars().map(|c| if c == '\n' { c } else { ' ' }).collect();
            kept.replace_range(start..from + length, &blank);
        }
    }
    kept
}

/// Where the braces of the item at the start of `code` open and close; `None` when a `;` ends it first.
pub(crate) fn body(code: &str) -> Option<(usize, usize)> {
    let (mut nested, mut braces, mut open) = (0usize, 0usize, None);
    for (at, byte) in code.bytes().enumerate() {
        match byte {
            b'(' | b'[' => nested += 1,
            b')' | b']' => nested = nested.saturating_sub(1),
            b';' if nested == 0 && open.is_none() => return None,
            b'{' if nested == 0 || open.is_some() => {
                open.get_or_insert(at);
                braces += 1;
            }
            b'}' if open.is_some() => {
                braces -= 1;
                if braces == 0 {
                    return open.map(|open| (open, at));
                }
            }
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    //! A scanner that sees nothing would pass everything.

    use super::*;

    #[test]
    fn the_scanner_is_not_fooled_by_strings_comments_or_lifetimes() {
        for (text, expect) in [
            ("a // { b\nc", "a       \nc"),
            ("a /* { /* } */ { */ b", "a                   b"),
            (r#"a "{ \" {" b"#, "a          b"),
            (r##"a r#"{ " {"# b"##, "a            b"),
            (r"a '{' b", "a     b"),
            (r"a '\'' b", "a      b"),
            (r"a '\u{7b}' b", "a          b"),
            ("a '窓' b", "a       b"),
            ("fn f<'a>(x: &'a str) {}", "fn f<'a>(x: &'a str) {}"),
            ("let r#fn = 'l: loop {}", "let r#fn = 'l: loop {}"),
        ] {
            assert_eq!(mask(text), expect, "masking: {text}");
        }
    }

    #[test]
    fn the_scanner_finds_each_function_with_the_lines_of_its_body() {
        let text =
            "trait T {\n fn a(&self, x: [u8; 2]);\n}\nfn b(f: fn(u8) -> u8) {\n  {\n  }\n}\nfn c() {}\n";
        let found: Vec<_> = functions(text).into_iter().map(|f| (f.name, f.line, f.body_lines)).collect();
        assert_eq!(found, [("b".to_string(), 4, 2), ("c".to_string(), 8, 0)]);
    }

    #[test]
    fn the_scanner_takes_out_tests_and_leaves_what_follows_them() {
        let text = "a\n#[cfg(test)]\nmod tests {\n  b {}\n}\nc\n#[cfg(test)]\nuse d;\ne\n";
        let left: Vec<_> = without_tests(text).split_whitespace().map(str::to_string).collect();
        assert_eq!(left, ["a", "c", "e"]);
    }
}
