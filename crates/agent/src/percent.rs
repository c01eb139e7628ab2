//! Words as a piece of an address: a label may hold a slash, a blank or an emoji.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

/// All but what an address holds as it is.
const PIECE: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// `words` so that they are one piece of a path or one value of a query.
pub(crate) fn encode(words: &str) -> String {
    utf8_percent_encode(words, PIECE).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whatever_is_encoded_reads_back_and_is_one_piece() {
        for words in ["komado", "in work / 作業中 🪟", "100%", "a&b=c#d?e+f", "..", ""] {
            let piece = encode(words);
            assert_eq!(percent_encoding::percent_decode_str(&piece).decode_utf8().unwrap(), words);
            assert!(!piece.contains(['/', '?', '#', '&', ' ']), "{piece}");
        }
        assert_eq!(encode("a-b.c_d~é"), "a-b.c_d~%C3%A9");
    }
}
