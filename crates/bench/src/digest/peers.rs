//! What a digest is compared with: the last messages word for word, or the first and the last, in the same room.
//!
//! The peers are made as strong as they can be: they fill their room to the last token by cutting one message. They
//! know nothing of facts.

use komado_core::Meter;

#[derive(Clone, Copy)]
pub(super) enum DigestSide {
    Start,
    End,
}

/// Whole messages from one side, and as much of the next as still fits.
pub(super) fn side(texts: &[String], limit: u64, side: DigestSide) -> String {
    let mut kept: Vec<String> = Vec::new();
    let mut left = limit;
    let order: Box<dyn Iterator<Item = &String>> = match side {
        DigestSide::Start => Box::new(texts.iter()),
        DigestSide::End => Box::new(texts.iter().rev()),
    };
    for text in order {
        let tokens = Meter::O200k.text(text) + 1;
        if tokens > left {
            kept.push(cut(text, left, side));
            break;
        }
        left -= tokens;
        kept.push(text.clone());
    }
    if matches!(side, DigestSide::End) {
        kept.reverse();
    }
    kept.join("\n")
}

/// Half of the room from each side.
pub(super) fn both_sides(texts: &[String], limit: u64) -> String {
    format!("{}\n{}", side(texts, limit / 2, DigestSide::Start), side(texts, limit / 2, DigestSide::End))
}

/// The start or the end of `text` that takes at most `limit` tokens.
fn cut(text: &str, limit: u64, side: DigestSide) -> String {
    let chars: Vec<char> = text.chars().collect();
    let take = |n: usize| -> String {
        match side {
            DigestSide::Start => chars[..n].iter().collect(),
            DigestSide::End => chars[chars.len() - n..].iter().collect(),
        }
    };
    let (mut low, mut high) = (0, chars.len().min(limit as usize * 12));
    while low < high {
        let middle = (low + high).div_ceil(2);
        if Meter::O200k.text(&take(middle)) <= limit { low = middle } else { high = middle - 1 }
    }
    take(low)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_messages_fill_their_room_from_the_end() {
        let texts: Vec<String> = (0..50).map(|n| format!("message number {n} says something")).collect();
        let kept = side(&texts, 40, DigestSide::End);
        assert!(kept.ends_with(&texts[49]) && !kept.contains("number 3 says"));
        let tokens = Meter::O200k.text(&kept);
        assert!((36..=40).contains(&tokens), "{tokens}");
        assert!(both_sides(&texts, 40).starts_with(&texts[0]));
    }
}
