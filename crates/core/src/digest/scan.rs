//! Cutting text: sentences, clipped texts, shapes and folded forms, each in one pass.
//!
//! Nothing here knows what a finding is. Everything is linear in the text, also when that is megabytes of one letter.

/// Characters a sentence may have before it is cut.
pub(super) const SENTENCE: usize = 320;

/// True for Kana, Kanji and their punctuation.
pub(super) fn is_japanese(c: char) -> bool {
    matches!(c, '\u{3040}'..='\u{30ff}' | '\u{3400}'..='\u{9fff}' | '\u{ff66}'..='\u{ff9f}')
}

/// The first `chars` characters, with `…` when something is missing.
pub(super) fn clip(text: &str, chars: usize) -> String {
    match text.char_indices().nth(chars) {
        Some((end, _)) => format!("{}…", text[..end].trim_end().trim_end_matches('…')),
        None => text.to_owned(),
    }
}

/// Two thirds of `chars` from the start and one third from the end, with ` … ` in place of the rest.
pub(super) fn head_and_tail(text: &str, chars: usize) -> String {
    let total = text.chars().count();
    if total <= chars {
        return text.to_owned();
    }
    let head = chars * 2 / 3;
    let tail = chars.saturating_sub(head + 3);
    if tail < 12 {
        return clip(text, chars);
    }
    let start = text.char_indices().nth(head).map_or(text.len(), |(at, _)| at);
    let end = text.char_indices().nth(total - tail).map_or(text.len(), |(at, _)| at);
    format!("{} … {}", text[..start].trim_end(), text[end..].trim_start())
}

/// One line: every run of white space becomes one space. At most `chars` characters are looked at, plus one.
pub(super) fn one_line(text: &str, chars: usize) -> String {
    let mut line = String::new();
    let (mut count, mut gap) = (0, false);
    for c in text.chars() {
        if c.is_whitespace() {
            gap = !line.is_empty();
            continue;
        }
        if std::mem::take(&mut gap) {
            line.push(' ');
            count += 1;
        }
        if count >= chars {
            line.truncate(line.trim_end().len());
            line.push('…');
            return line;
        }
        line.push(c);
        count += 1;
    }
    line
}

/// The start of `text`, at most `bytes` long and cut between characters.
pub(crate) fn start(text: &str, bytes: usize) -> &str {
    let mut end = bytes.min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

/// The end of `text`, at most `bytes` long and cut between characters.
pub(crate) fn end(text: &str, bytes: usize) -> &str {
    let mut from = text.len().saturating_sub(bytes);
    while !text.is_char_boundary(from) {
        from += 1;
    }
    &text[from..]
}

/// The sentences of prose, outside code fences. A line break ends one, except inside a wrapped paragraph.
pub(super) fn sentences(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut held = String::new();
    let mut fenced = false;
    for line in text.lines() {
        let line = line.trim();
        if line.starts_with("```") || line.starts_with("~~~") {
            fenced = !fenced;
            flush(&mut held, &mut found);
            continue;
        }
        if fenced || line.is_empty() {
            flush(&mut held, &mut found);
            continue;
        }
        let wraps = held.len() >= 56 && line.starts_with(|c: char| c.is_ascii_lowercase());
        if !wraps {
            flush(&mut held, &mut found);
        } else {
            held.push(' ');
        }
        split(bullet(start(line, 1 << 16)), &mut held, &mut found);
    }
    flush(&mut held, &mut found);
    found
}

/// Adds the sentences of one line; an unfinished one stays in `held`.
fn split(line: &str, held: &mut String, found: &mut Vec<String>) {
    let mut chars = line.chars().peekable();
    while let Some(c) = chars.next() {
        held.push(c);
        let ends = match c {
            '。' | '！' | '？' => true,
            '.' | '!' | '?' => {
                chars.peek().is_some_and(|next| next.is_whitespace())
                    && !held.ends_with("e.g.")
                    && !held.ends_with("i.e.")
            }
            _ => false,
        };
        if ends {
            flush(held, found);
        }
    }
}

fn flush(held: &mut String, found: &mut Vec<String>) {
    let sentence = one_line(held, SENTENCE);
    if sentence.chars().take(4).count() > 3 {
        found.push(sentence);
    }
    held.clear();
}

/// A line without the mark of a list, a heading or a quotation.
fn bullet(line: &str) -> &str {
    let mut bare = line;
    while let Some(rest) = ["- ", "* ", "+ ", "• ", "・", "> ", "# ", "## ", "### "]
        .iter()
        .find_map(|mark| bare.strip_prefix(mark))
    {
        bare = rest.trim_start();
    }
    let rest = bare.trim_start_matches(|c: char| c.is_ascii_digit());
    match rest.strip_prefix(". ").or_else(|| rest.strip_prefix(") ")) {
        Some(rest) if rest.len() < bare.len() => rest,
        _ => bare,
    }
}

/// True when `needle` stands in `text` as a word of its own; both are lower case. Japanese needs no gaps.
pub(super) fn has_word(text: &str, needle: &str) -> bool {
    if needle.is_ascii() { stands(text, needle, "_") } else { text.contains(needle) }
}

/// True when `word` stands in `text` and is no piece of a longer word, which letters, digits and `joints` make.
pub(super) fn stands(text: &str, word: &str, joints: &str) -> bool {
    let part = |c: Option<char>| c.is_some_and(|c| c.is_ascii_alphanumeric() || joints.contains(c));
    text.match_indices(word)
        .any(|(at, _)| !part(text[..at].chars().next_back()) && !part(text[at + word.len()..].chars().next()))
}

/// The line with every run of digits as `#`: two lines of one shape tell of the same thing.
pub(super) fn shape(line: &str) -> String {
    let mut shape = String::with_capacity(line.len());
    for c in line.chars() {
        if !c.is_ascii_digit() {
            shape.push(c);
        } else if !shape.ends_with('#') {
            shape.push('#');
        }
    }
    shape
}

/// What two texts are compared by: half width, lower case, single spaces, without marks that only format.
pub(super) fn fold(text: &str) -> String {
    let mut folded = String::with_capacity(text.len());
    for c in text.chars() {
        let c = match c {
            '\u{ff01}'..='\u{ff5e}' => char::from_u32(c as u32 - 0xfee0).unwrap_or(c),
            '“' | '”' | '‘' | '’' => '\'',
            c => c,
        };
        match c {
            '`' | '*' | '"' | '\'' | '「' | '」' => {}
            c if c.is_whitespace() => {
                if !folded.is_empty() && !folded.ends_with(' ') {
                    folded.push(' ');
                }
            }
            c => folded.extend(c.to_lowercase()),
        }
    }
    folded.truncate(folded.trim_end().len());
    folded
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sentences_end_at_stops_and_line_breaks_and_skip_code() {
        let text =
            "Use tabs. Never push!\n- see e.g. foo.rs\n```\nmust not count\n```\n必ず確認する。次へ進む";
        assert_eq!(
            sentences(text),
            ["Use tabs.", "Never push!", "see e.g. foo.rs", "必ず確認する。", "次へ進む"]
        );
    }

    #[test]
    fn a_wrapped_paragraph_is_joined() {
        let text = "Please make sure that every function which you touch has\na test of its own.\nNew line";
        assert_eq!(
            sentences(text),
            ["Please make sure that every function which you touch has a test of its own.", "New line"]
        );
    }

    #[test]
    fn clipping_keeps_characters_whole() {
        assert_eq!(clip("小窓は小さい", 2), "小窓…");
        assert_eq!(clip("abc", 3), "abc");
        let text = "あ".repeat(300);
        let short = head_and_tail(&text, 60);
        assert!(short.chars().count() <= 60 && short.contains(" … "));
    }

    #[test]
    fn folding_sees_through_width_marks_and_spaces() {
        assert_eq!(fold("Run  `ｃａｒｇｏ　ｔｅｓｔ`"), fold("run cargo\ntest"));
    }

    #[test]
    fn words_are_found_only_as_words() {
        assert!(has_word("you must not", "must") && !has_word("mustard", "must"));
        assert!(has_word("これは必ず守る", "必ず"));
    }
}
