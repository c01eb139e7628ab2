//! Whether bytes are UTF-8, however they are cut.

/// What of a character has come so far.
#[derive(Debug, Default)]
pub(super) struct Utf8 {
    held: [u8; 4],
    len: usize,
}

impl Utf8 {
    /// Takes the next bytes in, the first of which stands at `at`; gives the place of one that is wrong. Half a
    /// character at the very end needs no word: a JSON object ends with a brace.
    pub(super) fn push(&mut self, bytes: &[u8], at: u64) -> Result<(), u64> {
        let mut from = 0;
        while self.len > 0 && from < bytes.len() {
            self.held[self.len] = bytes[from];
            (self.len, from) = (self.len + 1, from + 1);
            match std::str::from_utf8(&self.held[..self.len]) {
                Ok(_) => self.len = 0,
                Err(why) if why.error_len().is_none() => {}
                Err(_) => return Err(at + from as u64 - 1),
            }
        }
        let rest = &bytes[from..];
        let Err(why) = std::str::from_utf8(rest) else { return Ok(()) };
        let upto = why.valid_up_to();
        if why.error_len().is_some() {
            return Err(at + (from + upto) as u64);
        }
        self.len = rest.len() - upto;
        self.held[..self.len].copy_from_slice(&rest[upto..]);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(bytes: &[u8], size: usize) -> Result<(), u64> {
        let mut utf8 = Utf8::default();
        let mut at = 0;
        for piece in bytes.chunks(size) {
            utf8.push(piece, at)?;
            at += piece.len() as u64;
        }
        Ok(())
    }

    #[test]
    fn a_cut_inside_a_character_is_no_mistake_and_a_mistake_is_found_at_any_cut() {
        let good = "a窓🪟é".as_bytes();
        let mut wrong = good.to_vec();
        wrong[2] = b'x';
        for size in 1..=good.len() {
            assert_eq!(check(good, size), Ok(()), "{size}");
            assert!(check(&wrong, size).is_err(), "{size}");
            assert!(check(b"\xed\xa0\x80", size).is_err(), "half of a pair, {size}");
        }
    }
}
