//! A share of a window: in words, and for programs.

use crate::paper::number;
use komado_core::journal::Slice;
use komado_core::share::Protected;
use komado_engine::share::Portion;
use serde_json::{Value, json};

/// For programs.
pub(crate) fn json(portion: &Portion) -> Value {
    let above = above(portion).map(|(slice, protected)| {
        json!({
            "thread": slice.thread.as_str(),
            "at": slice.at,
            "window": protected.window,
            "share": protected.share,
            "used": protected.used,
        })
    });
    json!({
        "above": above.collect::<Vec<Value>>(),
        "own": portion.shares.own,
        "lent": portion.shares.lent,
        "owed": portion.shares.owed,
        "room": portion.room(),
        "lends": portion.share.lends,
    })
}

/// For people: which thread has how much, the root first.
pub(crate) fn line(portion: &Portion) -> String {
    let above =
        above(portion).map(|(slice, protected)| format!("{} {}", number(protected.share), slice.thread));
    let own = format!("{} own", number(portion.shares.own));
    format!("{}{}", above.chain([own]).collect::<Vec<_>>().join(" + "), moved(portion))
}

/// What the slices take of their shares.
pub(crate) fn seen(portion: &Portion) -> String {
    let one = above(portion).map(|(slice, protected)| {
        format!("{}@{} {} of {}", slice.thread, slice.at, number(protected.used), number(protected.share))
    });
    one.collect::<Vec<_>>().join(", ")
}

/// The threads above, each with its slice.
fn above(portion: &Portion) -> impl Iterator<Item = (&Slice, &Protected)> {
    portion.share.slices.iter().zip(&portion.shares.above)
}

/// What is lent, or owed.
fn moved(portion: &Portion) -> String {
    let (lent, owed) = (portion.shares.lent, portion.shares.owed);
    let lent = (lent > 0).then(|| format!("{} lent", number(lent)));
    let owed = (owed > 0).then(|| format!("{} owed", number(owed)));
    let moved: Vec<String> = lent.into_iter().chain(owed).collect();
    if moved.is_empty() { String::new() } else { format!(" ({})", moved.join(", ")) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use komado_core::ThreadId;
    use komado_core::journal::{Ratio, Share};

    fn slice(thread: &str, tokens: u32) -> Slice {
        let (thread, ratio) = (ThreadId::new(thread).unwrap(), Ratio::new(0.8).unwrap());
        Slice { thread, at: 3, ratio, keep: Vec::new(), replace: Vec::new(), head: String::new(), tokens }
    }

    #[test]
    fn the_example_of_the_seed_is_told_in_its_numbers() {
        let share = Share {
            thread: ThreadId::new("stelis_1_1").unwrap(),
            window: 100_000,
            slices: vec![slice("root", 5_000), slice("stelis_1", 17_000)],
            lends: true,
            anchor_tokens: None,
            chronicle_prompt: None,
            held_by: None,
        };
        let portion = Portion::new(share, None);
        assert_eq!(line(&portion), "20,000 root + 16,000 stelis_1 + 64,000 own (15,000 lent, 1,000 owed)");
        assert_eq!(seen(&portion), "root@3 5,000 of 20,000, stelis_1@3 17,000 of 16,000");
        assert_eq!((portion.room(), portion.window()), (78_000, 100_000));
        let small = Portion::new(portion.share.clone(), Some(5_000));
        assert_eq!((small.above(), small.room(), small.window()), (22_000, 0, 5_000));
        let json = json(&portion);
        assert_eq!((&json["above"][1]["share"], &json["own"]), (&json!(16_000), &json!(64_000)));
    }
}
