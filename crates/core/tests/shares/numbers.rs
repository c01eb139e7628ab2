//! The numbers: every share of a window, and what remains.

use crate::shares::dice::Dice;
use komado_core::ThreadId;
use komado_core::budget::{Budget, Preset};
use komado_core::journal::{Ratio, Share, Slice};
use komado_core::share::{Shares, windows};

fn ratio(of: f64) -> Ratio {
    Ratio::new(of).unwrap()
}

/// A share with slices of these ratios and tokens.
fn share(slices: &[(Ratio, u64)]) -> Share {
    let thread = |n: usize| ThreadId::new(format!("t{n}")).unwrap();
    let slice = |(n, &(ratio, tokens)): (usize, &(Ratio, u64))| Slice {
        thread: thread(n),
        at: 1,
        ratio,
        keep: Vec::new(),
        replace: Vec::new(),
        head: String::new(),
        tokens: u32::try_from(tokens).unwrap(),
    };
    Share {
        thread: thread(slices.len()),
        window: 100_000,
        slices: slices.iter().enumerate().map(slice).collect(),
        lends: true,
        chronicle_prompt: None,
        anchor_tokens: None,
        held_by: None,
    }
}

#[test]
fn a_hundred_thousand_at_four_fifths_twice_are_twenty_sixteen_and_sixty_four_thousand() {
    let full = share(&[(ratio(0.8), 20_000), (ratio(0.8), 16_000)]);
    let shares = Shares::of(&full, 100_000);
    let protected: Vec<(u64, u64)> = shares.above.iter().map(|above| (above.window, above.share)).collect();
    assert_eq!(protected, [(100_000, 20_000), (80_000, 16_000)]);
    assert_eq!((shares.own, shares.lent, shares.owed, shares.room()), (64_000, 0, 0, 64_000));
}

#[test]
fn the_windows_of_the_seed_are_those_of_its_table() {
    let line = |ratios: &[f64]| {
        let ratios: Vec<Ratio> = ratios.iter().map(|of| ratio(*of)).collect();
        *windows(100_000, &ratios).last().unwrap()
    };
    assert_eq!(line(&[]), 100_000, "root");
    assert_eq!(line(&[0.8]), 80_000, "stelis_1");
    assert_eq!(line(&[0.8, 0.8]), 64_000, "stelis_1_1");
    assert_eq!(line(&[0.8]), 80_000, "stelis_2");
}

#[test]
fn what_slices_leave_is_lent_and_what_they_take_too_much_is_owed() {
    let mut half = share(&[(ratio(0.8), 5_000), (ratio(0.8), 18_000)]);
    let shares = Shares::of(&half, 100_000);
    assert_eq!((shares.lent, shares.owed, shares.room(), shares.used()), (15_000, 2_000, 77_000, 23_000));
    half.lends = false;
    assert_eq!(Shares::of(&half, 100_000).room(), 62_000);
    // A window so small that nothing is left.
    assert_eq!(Shares::of(&half, 10_000).room(), 0);
}

#[test]
fn a_ratio_is_between_a_hundredth_and_ninety_nine_and_says_so_otherwise() {
    for (of, whole, part) in
        [(0.8, 100_000, 80_000), (0.1, 99, 9), (0.95, 10_000_000, 9_500_000), (0.333_333, 3, 0), (0.99, 1, 0)]
    {
        assert_eq!(ratio(of).of(whole), part, "{of} of {whole}");
    }
    assert_eq!((ratio(0.8).to_string(), ratio(0.01).get(), ratio(0.99).get()), ("0.8".into(), 0.01, 0.99));
    for bad in [0.0, 0.009, 0.991, 1.0, 80.0, -0.5, f64::NAN, f64::INFINITY] {
        let why = Ratio::new(bad).unwrap_err().to_string();
        assert!(why.contains(&format!("cannot have {bad} of")) && why.contains("such as 0.8"), "{why}");
    }
    let read = serde_json::from_str::<Ratio>("2").unwrap_err().to_string();
    assert!(read.contains("0.01 and 0.99"), "{read}");
    assert_eq!(serde_json::to_string(&ratio(0.725)).unwrap(), "0.725");
}

/// A line of threads with random ratios, in a random window, each slice as its share allows or beyond.
fn random(dice: &mut Dice) -> (Share, u64) {
    let window = match dice.below(3) {
        0 => u64::from(dice.between(1, 100)),
        1 => u64::from(dice.between(1, 100_000)),
        _ => u64::from(dice.between(1, 10_000_000)),
    };
    let depth = dice.between(1, 6);
    let ratios: Vec<Ratio> = (0..depth).map(|_| ratio(f64::from(dice.between(100, 950)) / 1_000.0)).collect();
    let line = windows(window, &ratios);
    let over = dice.chance(20);
    let slices: Vec<(Ratio, u64)> = ratios
        .iter()
        .zip(line.windows(2))
        .map(|(ratio, pair)| {
            let most = (pair[0] - pair[1]) * 9 / 10 * if over { 2 } else { 1 };
            (*ratio, u64::from(dice.below(u32::try_from(most).unwrap() + 1)))
        })
        .collect();
    (Share { lends: dice.chance(70), ..share(&slices) }, window)
}

#[test]
fn shares_add_up_to_the_window_whatever_is_rounded() {
    for seed in 0..200_000 {
        let (share, window) = random(&mut Dice::new(seed));
        let shares = Shares::of(&share, window);
        let protected: u64 = shares.above.iter().map(|above| above.share).sum();
        assert_eq!(protected + shares.own, window, "seed {seed}");
        assert!(shares.above.windows(2).all(|pair| pair[1].window <= pair[0].window), "seed {seed}");
        if shares.room() > 0 {
            assert!(shares.used() + shares.room() <= window, "seed {seed}: {shares:?}");
        }
        if shares.owed == 0 {
            assert!(shares.room() >= shares.own, "seed {seed}: {shares:?}");
        }
    }
}

#[test]
fn the_budget_of_a_share_keeps_the_buffer_of_the_whole_window_free() {
    for seed in 0..100_000 {
        let mut dice = Dice::new(seed);
        let (share, window) = random(&mut dice);
        let shares = Shares::of(&share, window);
        let mut policy = dice.pick(&Preset::ALL).unwrap().policy();
        policy.reserve = if dice.chance(30) { Some(u64::from(dice.below(70_000))) } else { None };
        let budget = Budget::shared(policy.clone(), &shares, window, &[]);
        let whole = Budget::new(policy, window, &[]);
        assert_eq!((budget.window, budget.above), (window, shares.used()), "seed {seed}");
        assert!(budget.room <= shares.room(), "seed {seed}");
        if budget.own() > 0 {
            assert!(
                budget.usable + budget.reserve <= whole.usable + whole.reserve,
                "seed {seed}: {budget:?}"
            );
            assert!(budget.low < budget.act_at && budget.act_at <= budget.usable + 1, "seed {seed}");
            assert!(budget.low >= budget.above, "seed {seed}");
            assert!(budget.most() <= window && budget.stretch() <= window, "seed {seed}: {budget:?}");
            // Sharing out the same again changes nothing.
            assert_eq!(budget.reshared(&shares), budget, "seed {seed}");
        }
        // A refusal because of size makes all of it smaller, and never the marks of the threads above negative.
        let smaller = budget.shrunk(0.8);
        assert!(smaller.usable <= budget.usable && smaller.window <= budget.window, "seed {seed}");
        assert!(
            smaller.act_at <= smaller.usable + 1 && smaller.low < smaller.act_at,
            "seed {seed}: {smaller:?}"
        );
    }
}

#[test]
fn a_thread_without_slices_has_the_budget_of_the_whole_window() {
    let whole = Budget::new(Preset::Komado.policy(), 128_000, &[]);
    assert_eq!(
        Budget::shared(Preset::Komado.policy(), &Shares::of(&share(&[]), 128_000), 128_000, &[]),
        whole
    );
    assert_eq!((whole.above, whole.room, whole.own()), (0, 128_000, whole.usable));
    // The seed's child with slices that are full but for the buffer: as if its window were its own.
    let full = share(&[(ratio(0.8), 18_000), (ratio(0.8), 14_400)]);
    let child = Budget::shared(Preset::Komado.policy(), &Shares::of(&full, 100_000), 100_000, &[]);
    assert_eq!((child.room, child.own()), (64_000, Budget::new(Preset::Komado.policy(), 64_000, &[]).usable));
}
