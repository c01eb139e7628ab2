//! A share of a window, in words.

use crate::paper::number;
use komado_ops::thread::WindowShare;

/// Which thread has how much, the root first.
pub(crate) fn line(share: &WindowShare) -> String {
    let above = share.above.iter().map(|one| format!("{} {}", number(one.share), one.thread));
    let own = format!("{} own", number(share.own));
    format!("{}{}", above.chain([own]).collect::<Vec<_>>().join(" + "), moved(share))
}

/// What is seen of the threads above, of their shares.
pub(crate) fn seen(share: &WindowShare) -> String {
    let one = share
        .above
        .iter()
        .map(|one| format!("{}@{} {} of {}", one.thread, one.at, number(one.used), number(one.share)));
    one.collect::<Vec<_>>().join(", ")
}

/// What is lent, or owed.
fn moved(share: &WindowShare) -> String {
    let lent = (share.lent > 0).then(|| format!("{} lent", number(share.lent)));
    let owed = (share.owed > 0).then(|| format!("{} owed", number(share.owed)));
    let moved: Vec<String> = lent.into_iter().chain(owed).collect();
    if moved.is_empty() { String::new() } else { format!(" ({})", moved.join(", ")) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use komado_core::ThreadId;
    use komado_core::journal::{Ratio, Share, Slice};
    use komado_engine::share::Portion;

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
        let told = WindowShare::from(&portion);
        assert_eq!(line(&told), "20,000 root + 16,000 stelis_1 + 64,000 own (15,000 lent, 1,000 owed)");
        assert_eq!(seen(&told), "root@3 5,000 of 20,000, stelis_1@3 17,000 of 16,000");
        assert_eq!((portion.room(), portion.window()), (78_000, 100_000));
        let small = Portion::new(portion.share.clone(), Some(5_000));
        assert_eq!((small.above(), small.room(), small.window()), (22_000, 0, 5_000));
        assert_eq!((told.above[1].share, told.own), (16_000, 64_000));
    }
}
