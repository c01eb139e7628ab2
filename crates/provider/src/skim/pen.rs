//! Bytes on their way into a digest: small ones are gathered, large ones go straight in.

/// What is gathered before it is worked in: as much as the digest takes in one stride.
const GATHERED: usize = 8 << 10;

/// Writes a digest.
#[derive(Default)]
pub(super) struct Pen {
    gathered: Vec<u8>,
    /// What was worked in already, when it was more than could be gathered.
    hash: blake3::Hasher,
    is_long: bool,
}

impl Pen {
    pub(super) fn write(&mut self, bytes: &[u8]) {
        if self.gathered.len() + bytes.len() <= GATHERED {
            return self.gathered.extend_from_slice(bytes);
        }
        self.is_long = true;
        self.hash.update(&self.gathered);
        self.gathered.clear();
        if bytes.len() < GATHERED {
            self.gathered.extend_from_slice(bytes);
        } else {
            self.hash.update(bytes);
        }
    }

    /// The digest of what was written; the next one begins.
    pub(super) fn digest(&mut self) -> [u8; 32] {
        let digest = if self.is_long {
            let digest = self.hash.update(&self.gathered).finalize();
            self.hash.reset();
            digest
        } else {
            blake3::hash(&self.gathered)
        };
        self.clear();
        *digest.as_bytes()
    }

    /// Hands what was written on into `other`, so that it cannot be taken for anything else: as it is with its length
    /// when it is short, as its digest when it is long. The next one begins.
    pub(super) fn pour(&mut self, tag: u8, other: &mut Self) {
        if self.is_long {
            other.write(&[tag, u8::MAX]);
            other.write(&self.digest());
            return;
        }
        let [low, high, ..] = self.gathered.len().to_le_bytes();
        other.write(&[tag, high, low]);
        other.write(&self.gathered);
        self.clear();
    }

    /// Forgets what was written.
    pub(super) fn clear(&mut self) {
        if std::mem::take(&mut self.is_long) {
            self.hash.reset();
        }
        self.gathered.clear();
    }
}

impl std::fmt::Debug for Pen {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Pen").field("gathered", &self.gathered.len()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_digest_is_that_of_all_the_bytes_however_they_came() {
        let bytes: Vec<u8> = (0..100_000u32).map(|i| i as u8).collect();
        let mut pen = Pen::default();
        for size in [1000, 8191, 8192, 8193, 100_000] {
            bytes.chunks(size).for_each(|piece| pen.write(piece));
            assert_eq!(pen.digest(), *blake3::hash(&bytes).as_bytes(), "{size}");
        }
        pen.write(&bytes);
        let mut other = Pen::default();
        pen.pour(1, &mut other);
        assert_eq!(other.gathered.len(), 34);
        pen.write(&bytes[..GATHERED]);
        pen.pour(1, &mut other);
        assert!(other.is_long, "what is short goes over as it is");
        pen.write(&bytes);
        pen.clear();
        pen.write(b"x");
        assert_eq!(pen.digest(), *blake3::hash(b"x").as_bytes());
    }
}
