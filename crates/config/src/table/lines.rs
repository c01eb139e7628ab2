//! Words as one text with a line for each, made before the program begins: the default of a setting stands in its row,
//! and what the built-in tools are is said where they are.

/// Bytes of the text.
pub(super) const fn length(words: &[&str]) -> usize {
    let (mut at, mut bytes) = (0, words.len().saturating_sub(1));
    while at < words.len() {
        bytes += words[at].len();
        at += 1;
    }
    bytes
}

/// The text as bytes; `N` is their [`length`].
pub(super) const fn joined<const N: usize>(words: &[&str]) -> [u8; N] {
    let mut all = [b'\n'; N];
    let (mut word, mut at, mut filled) = (0, 0, 0);
    while word < words.len() {
        let bytes = words[word].as_bytes();
        if at < bytes.len() {
            all[filled] = bytes[at];
            at += 1;
        } else {
            (word, at) = (word + 1, 0);
        }
        filled += 1;
    }
    all
}

/// The bytes as a text, which they are.
pub(super) const fn text(bytes: &'static [u8]) -> &'static str {
    match std::str::from_utf8(bytes) {
        Ok(text) => text,
        Err(_) => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_joined_by_line_breaks() {
        const WORDS: &[&str] = &["./", "窓", "", "z"];
        const BYTES: [u8; length(WORDS)] = joined(WORDS);
        assert_eq!(text(&BYTES), WORDS.join("\n"));
    }
}
