//! How many tokens a picture takes: by its size, and by the rule of the model that looks at it.
//!
//! Providers publish their rules. OpenAI counts tiles or patches, Anthropic the area, Google crops. Other models are
//! counted by the area, too, which lies between the others. The size is read from the first bytes of the picture; nothing is
//! decoded beyond them.

use serde::{Deserialize, Serialize};

/// Most characters of a picture inside an address that are read for its size.
const HEADER: usize = 128 << 10;

/// A picture's size in pixels, kept as width and height.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[serde(from = "[u32; 2]", into = "[u32; 2]")]
pub struct PictureSize {
    /// From left to right.
    pub width: u32,
    /// From top to bottom.
    pub height: u32,
}

impl From<[u32; 2]> for PictureSize {
    fn from([width, height]: [u32; 2]) -> Self {
        Self { width, height }
    }
}

impl From<PictureSize> for [u32; 2] {
    fn from(size: PictureSize) -> Self {
        [size.width, size.height]
    }
}

impl PictureSize {
    /// Taken for a picture of which nothing is known.
    pub const USUAL: Self = Self { width: 1024, height: 1024 };

    /// Reads the size of a PNG, JPEG, GIF, WebP or BMP from its first bytes.
    pub fn read(bytes: &[u8]) -> Option<Self> {
        let size = match bytes {
            [0x89, b'P', b'N', b'G', ..] => Some((big(bytes, 16, 4)?, big(bytes, 20, 4)?)),
            [b'G', b'I', b'F', b'8', ..] => Some((little(bytes, 6, 2)?, little(bytes, 8, 2)?)),
            [0xff, 0xd8, ..] => jpeg(bytes),
            [b'B', b'M', ..] => {
                let height = little(bytes, 22, 4)?.cast_signed().unsigned_abs();
                Some((little(bytes, 18, 4)?, height))
            }
            [b'R', b'I', b'F', b'F', ..] if bytes.get(8..12)? == b"WEBP" => webp(bytes),
            _ => None,
        };
        let (width, height) = size.filter(|(width, height)| *width > 0 && *height > 0)?;
        Some(Self { width, height })
    }

    /// The same for a picture inside a `data:` address.
    pub fn read_url(url: &str) -> Option<Self> {
        let (kind, data) = url.split_once(',')?;
        let is_inside = kind.get(..5)?.eq_ignore_ascii_case("data:") && kind.ends_with(";base64");
        let data = &data.as_bytes()[..data.len().min(HEADER)];
        is_inside.then(|| Self::read(&decoded(data))).flatten()
    }

    /// Made smaller until neither side is longer than `most`.
    fn within(self, most: f64) -> (f64, f64) {
        let (width, height) = (f64::from(self.width), f64::from(self.height));
        let by = (most / width.max(height)).min(1.0);
        (width * by, height * by)
    }
}

/// A number of `len` bytes, the largest first.
fn big(bytes: &[u8], at: usize, len: usize) -> Option<u32> {
    Some(bytes.get(at..at + len)?.iter().fold(0, |number, byte| number << 8 | u32::from(*byte)))
}

/// A number of `len` bytes, the smallest first.
fn little(bytes: &[u8], at: usize, len: usize) -> Option<u32> {
    Some(bytes.get(at..at + len)?.iter().rev().fold(0, |number, byte| number << 8 | u32::from(*byte)))
}

/// The first frame of a JPEG, behind whatever a camera wrote before it.
fn jpeg(bytes: &[u8]) -> Option<(u32, u32)> {
    let mut at = 2;
    loop {
        let (sign, kind) = (*bytes.get(at)?, *bytes.get(at + 1)?);
        match kind {
            _ if sign != 0xff => return None,
            // Signs may be repeated, and some stand alone.
            0xff => at += 1,
            0x01 | 0xd0..=0xd9 => at += 2,
            0xc0..=0xcf if !matches!(kind, 0xc4 | 0xc8 | 0xcc) => {
                return Some((big(bytes, at + 7, 2)?, big(bytes, at + 5, 2)?));
            }
            _ => at += 2 + usize::try_from(big(bytes, at + 2, 2)?.max(2)).ok()?,
        }
    }
}

fn webp(bytes: &[u8]) -> Option<(u32, u32)> {
    match bytes.get(12..16)? {
        b"VP8X" => Some((little(bytes, 24, 3)? + 1, little(bytes, 27, 3)? + 1)),
        b"VP8L" => {
            let bits = little(bytes, 21, 4)?;
            Some(((bits & 0x3fff) + 1, (bits >> 14 & 0x3fff) + 1))
        }
        b"VP8 " => Some((little(bytes, 26, 2)? & 0x3fff, little(bytes, 28, 2)? & 0x3fff)),
        _ => None,
    }
}

/// The bytes of base64, as far as it is whole.
fn decoded(text: &[u8]) -> Vec<u8> {
    let value = |byte: u8| match byte {
        b'A'..=b'Z' => Some(byte - b'A'),
        b'a'..=b'z' => Some(byte - b'a' + 26),
        b'0'..=b'9' => Some(byte - b'0' + 52),
        b'+' => Some(62),
        b'/' => Some(63),
        _ => None,
    };
    let mut bytes = Vec::with_capacity(text.len() / 4 * 3);
    for four in text.chunks(4) {
        let digits: Vec<u32> = four.iter().map_while(|byte| value(*byte).map(u32::from)).collect();
        let bits = digits.iter().fold(0, |bits, digit| bits << 6 | digit) << (6 * (4 - digits.len()));
        let whole = (digits.len() * 6 / 8).min(3);
        bytes.extend_from_slice(&bits.to_be_bytes()[1..=whole]);
        if digits.len() < 4 {
            break;
        }
    }
    bytes
}

/// How a model counts a picture.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum PictureRule {
    /// OpenAI, most models: so many tokens, and so many more for each tile of 512 pixels.
    Tiles {
        /// For the picture; all there is at low detail.
        base: u32,
        /// For each tile.
        tile: u32,
    },
    /// OpenAI, small models: patches of 32 pixels, 1,536 at most, times so many hundredths.
    Patches {
        /// Hundredths of a token for each patch.
        hundredths: u32,
    },
    /// Google: 258 tokens for each crop of 256 to 768 pixels.
    Crops,
    /// Anthropic: a token for each 750 pixels, 1,600 at most. Models of others are counted so, too.
    #[default]
    Area,
}

impl PictureRule {
    /// The rule of `model`, also when a provider's path stands before its name.
    pub fn for_model(model: &str) -> Self {
        let name = model.rsplit('/').next().unwrap_or(model).to_ascii_lowercase();
        let is = |family: &str| name.starts_with(family);
        let tiles = |base, tile| Self::Tiles { base, tile };
        match () {
            () if name.contains("claude") => Self::Area,
            () if is("gemini") || is("gemma") => Self::Crops,
            () if is("gpt-4.1-mini") || is("gpt-5-mini") => Self::Patches { hundredths: 162 },
            () if is("gpt-4.1-nano") || is("gpt-5-nano") => Self::Patches { hundredths: 246 },
            () if is("o4-mini") => Self::Patches { hundredths: 172 },
            () if is("gpt-4o-mini") => tiles(2_833, 5_667),
            () if is("gpt-5") => tiles(70, 140),
            () if is("o1") || is("o3") => tiles(75, 150),
            () if is("computer-use") => tiles(65, 129),
            () if is("gpt-") || is("chatgpt-") => tiles(85, 170),
            () => Self::Area,
        }
    }

    /// Tokens of a picture; `detail` is how closely the model is to look.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    pub fn tokens(self, size: PictureSize, detail: Option<&str>) -> u64 {
        let parts = |width: f64, height: f64, of: f64| ((width / of).ceil() * (height / of).ceil()) as u64;
        let (width, height) = (f64::from(size.width), f64::from(size.height));
        match self {
            Self::Tiles { base, .. } if detail == Some("low") => u64::from(base),
            Self::Tiles { base, tile } => {
                let (width, height) = size.within(2_048.0);
                let by = (768.0 / width.min(height)).min(1.0);
                u64::from(base) + u64::from(tile) * parts(width * by, height * by, 512.0)
            }
            Self::Patches { hundredths } => {
                (parts(width, height, 32.0).min(1_536) * u64::from(hundredths)).div_ceil(100)
            }
            Self::Crops if width.max(height) <= 384.0 => 258,
            Self::Crops => 258 * parts(width, height, (width.min(height) / 1.5).floor().clamp(256.0, 768.0)),
            Self::Area => {
                let (width, height) = size.within(1_568.0);
                ((width * height / 750.0).ceil() as u64).clamp(1, 1_600)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn size(width: u32, height: u32) -> PictureSize {
        PictureSize { width, height }
    }

    #[test]
    fn each_model_counts_by_the_rule_of_its_maker() {
        let tokens = |model: &str, width, height, detail| {
            PictureRule::for_model(model).tokens(size(width, height), detail)
        };
        // Two by two tiles, two by three, and none.
        assert_eq!(tokens("gpt-4o", 1_024, 1_024, Some("high")), 85 + 4 * 170);
        assert_eq!(tokens("openai/gpt-4o-2024-08-06", 2_048, 4_096, None), 85 + 6 * 170);
        assert_eq!(tokens("gpt-4o", 4_096, 8_192, Some("low")), 85);
        assert_eq!(tokens("gpt-4o-mini", 512, 512, None), 2_833 + 5_667);
        assert_eq!(tokens("gpt-5", 512, 512, None), 70 + 140);
        assert_eq!(tokens("o3", 512, 512, None), 75 + 150);
        // 32 by 32 patches; as many as there may be.
        assert_eq!(tokens("gpt-4.1-mini", 1_024, 1_024, None), 1_659);
        assert_eq!(tokens("o4-mini", 4_000, 3_000, None), 2_642);
        // A token for 750 pixels.
        assert_eq!(tokens("claude-sonnet-4-5", 1_000, 750, None), 1_000);
        assert_eq!(tokens("anthropic/claude-3.5-haiku", 8_000, 8_000, None), 1_600);
        assert_eq!(tokens("claude-3-opus", 1, 1, None), 1);
        assert_eq!(tokens("gemini-2.5-pro", 384, 300, None), 258);
        assert_eq!(tokens("gemini-2.5-pro", 960, 540, None), 6 * 258);
        assert_eq!(tokens("some-model-of-ours", 1_000, 750, None), 1_000);
    }

    #[test]
    fn a_size_is_read_from_the_first_bytes_of_every_usual_format() {
        let png = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\x02\x80\0\0\x01\xe0\x08\x06";
        let gif = b"GIF89a\x80\x02\xe0\x01\xf7\0\0";
        let bmp = b"BM\0\0\0\0\0\0\0\0\x36\0\0\0\x28\0\0\0\x80\x02\0\0\x20\xfe\xff\xff\x01\0";
        let plain =
            b"\xff\xd8\xff\xe0\0\x07JFIF\0\xff\xc4\0\x03\0\xff\xc2\0\x11\x08\x01\xe0\x02\x80\x03\x01\x22\0";
        let lossy = b"RIFF\0\0\0\0WEBPVP8 \0\0\0\0\0\0\0\x9d\x01\x2a\x80\x02\xe0\x01";
        let lossless = b"RIFF\0\0\0\0WEBPVP8L\0\0\0\0\x2f\x7f\xc2\x77\0";
        let extended = b"RIFF\0\0\0\0WEBPVP8X\0\0\0\0\x10\0\0\0\x7f\x02\0\xdf\x01\0";
        for bytes in [&png[..], gif, bmp, plain, lossy, lossless, extended] {
            assert_eq!(PictureSize::read(bytes), Some(size(640, 480)), "{bytes:?}");
            for end in 0..bytes.len() {
                let part = PictureSize::read(&bytes[..end]);
                assert!(part.is_none_or(|part| part == size(640, 480)), "{end} of {bytes:?}: {part:?}");
            }
        }
        assert_eq!(PictureSize::read(b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\0\0\0\x01\xe0\x08\x06"), None);
        assert_eq!(PictureSize::read(b"plain text"), None);
    }

    #[test]
    fn so_is_one_inside_an_address() {
        let url = "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAoAAAAHgCAYA";
        assert_eq!(PictureSize::read_url(url), Some(size(640, 480)));
        for other in ["https://example.org/a,b", "data:image/png;base64,AAAA", "data:image/png,iVBO", "data:"]
        {
            assert_eq!(PictureSize::read_url(other), None, "{other}");
        }
    }
}
