//! Words as a piece of an address, and back: a label may hold a slash, a blank or an emoji.

/// `words` so that they are one piece of a path or one value of a query.
pub(crate) fn encode(words: &str) -> String {
    let mut out = String::with_capacity(words.len());
    for byte in words.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => out.push(char::from(byte)),
            _ => out.push_str(&format!("%{byte:02X}")),
        }
    }
    out
}

/// What was encoded. A percent sign that encodes nothing stands for itself.
pub(crate) fn decode(piece: &str) -> String {
    let (mut out, mut rest) = (Vec::with_capacity(piece.len()), piece.as_bytes());
    while let Some((first, after)) = rest.split_first() {
        let pair = (*first == b'%').then(|| after.get(..2)).flatten();
        let byte = pair
            .and_then(|pair| std::str::from_utf8(pair).ok())
            .and_then(|pair| u8::from_str_radix(pair, 16).ok());
        out.push(byte.unwrap_or(*first));
        rest = if byte.is_some() { &after[2..] } else { after };
    }
    String::from_utf8_lossy(&out).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whatever_is_encoded_reads_back_and_is_one_piece() {
        for words in ["komado", "in work / 作業中 🪟", "100%", "a&b=c#d?e+f", "..", ""] {
            let piece = encode(words);
            assert_eq!(decode(&piece), words);
            assert!(!piece.contains(['/', '?', '#', '&', ' ']), "{piece}");
        }
        assert_eq!(decode("100%"), "100%");
    }
}
