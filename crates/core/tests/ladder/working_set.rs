//! What an edit must never hide: the working set, tried on random conversations in random windows.
//!
//! Every clause of the law is checked by itself and counted by itself. A failure names each broken clause with how many
//! conversations broke it, and prints the smallest conversation that was found to break it.

mod case;
mod law;

use crate::ladder::stage::Fitted;
use case::Case;
use komado_testkit::notation;
use komado_testkit::soak::times;
use law::{Broken, Clause, Sight, Tight, count};
use std::collections::BTreeMap;
use std::thread::available_parallelism;

/// The first seed; each conversation has the next one.
const SEED: u64 = 19_000_000;

/// What must have happened, or the conversations prove nothing: at least once in so many of them.
const REACHED: [(&str, u64); 6] = [
    ("requests after an edit", 2),
    ("requests with pins", 20),
    ("newest shown in part", 100),
    ("parallel results share the room", 200),
    ("task or latest instruction shown in part", 200),
    ("refused: what must stay does not fit", 200),
];

/// Shortfalls that are left in the first 100,000 conversations, to be brought to 0; no clause may break more often, and those
/// that are not named here never.
const KNOWN: [(Clause, u64); 3] = [(Clause::Task, 1), (Clause::Room, 2), (Clause::Legal, 2)];

/// Goes through a conversation; gives what the first bad request broke.
fn broken(case: &Case, tight: &mut Tight) -> Broken {
    let (mut broken, mut least) = (Vec::new(), u64::MAX);
    case.play(|play, budget, before, fitted| {
        least = least.min(budget.usable);
        broken = Sight::new(play, budget, case.meter, before, least).broken(fitted, tight);
        !broken.is_empty()
    });
    broken
}

/// The conversation in the notation, in a window, and what is wrong with it.
fn print(case: &Case, clause: Clause) {
    let small = case.clone().shrunk(|less| broken(less, &mut Tight::new()).iter().any(|(c, _)| *c == clause));
    let mut window = String::new();
    let play = small.play(|_, budget, _, fitted| {
        let (own, usable) = (budget.window, budget.usable);
        let floor = if let Fitted::Floor(floor) = fitted { format!("; {floor}") } else { String::new() };
        window = format!("window {own}, usable {usable}{floor}");
        false
    });
    let why = broken(&small, &mut Tight::new());
    let why: Vec<String> = why.iter().map(|(clause, why)| format!("{clause:?}: {why}")).collect();
    let (seed, preset) = (case.seed, case.preset.name());
    eprintln!("\n{clause:?}: seed {seed}, made smaller; {preset}, {window}\n{}", why.join("\n"));
    for record in play.book.records() {
        eprintln!("{}", notation::brief(record, 160));
    }
    let Ok(seen) = notation::items(play.book.view(), play.book.rows());
    eprintln!("sees:");
    seen.lines().for_each(|line| eprintln!("{}", notation::clipped(line, 160)));
}

/// What was tight, and for each clause that was broken how often, and the smallest conversation.
type Found = (Tight, BTreeMap<Clause, (u64, Case)>);

/// Goes through the conversations of these seeds.
fn tried(seeds: impl Iterator<Item = u64>) -> Found {
    let (mut tight, mut wrong) = (Tight::new(), BTreeMap::new());
    for case in seeds.map(Case::of) {
        let mut clauses: Vec<Clause> = broken(&case, &mut tight).into_iter().map(|(c, _)| c).collect();
        clauses.sort_unstable();
        clauses.dedup();
        count(&mut tight, "conversations");
        let found: Found = (Tight::new(), clauses.into_iter().map(|c| (c, (1, case.clone()))).collect());
        (tight, wrong) = joined((tight, wrong), found);
    }
    (tight, wrong)
}

fn joined((mut tight, mut wrong): Found, (more_tight, more_wrong): Found) -> Found {
    more_tight.into_iter().for_each(|(what, times)| *tight.entry(what).or_default() += times);
    for (clause, (times, case)) in more_wrong {
        let found = wrong.entry(clause).or_insert_with(|| (0, case.clone()));
        found.0 += times;
        if case.weight() < found.1.weight() {
            found.1 = case;
        }
    }
    (tight, wrong)
}

#[test]
fn every_request_holds_its_working_set() {
    let count_of = times(100_000, 1_000_000);
    let threads = available_parallelism().map_or(1, |count| count.get() as u64);
    let (tight, mut wrong) = std::thread::scope(|scope| {
        let tried = |of| move || tried((SEED..SEED + count_of).filter(|seed| seed % threads == of));
        let parts: Vec<_> = (0..threads).map(|of| scope.spawn(tried(of))).collect();
        let parts = parts.into_iter().map(|part| part.join().unwrap());
        parts.reduce(joined).unwrap()
    });
    println!("| working set, seeds from {SEED} on | times |");
    println!("|---|---|");
    tight.iter().for_each(|(what, times)| println!("| {what} | {times} |"));
    let failed: Vec<String> =
        wrong.iter().map(|(clause, (times, _))| format!("{clause:?} {times}")).collect();
    let known =
        |clause: &Clause| KNOWN.iter().find(|(known, _)| known == clause).map_or(0, |(_, times)| *times);
    wrong.retain(|clause, (times, _)| *times > known(clause) * count_of.div_ceil(100_000));
    wrong.iter().for_each(|(clause, (_, case))| print(case, *clause));
    assert!(wrong.is_empty(), "of {count_of} conversations from seed {SEED} on: {}", failed.join(", "));
    for (what, least) in REACHED {
        let times = tight.get(what).copied().unwrap_or_default();
        assert!(times >= count_of / least, "only {times} times: {what}");
    }
}
