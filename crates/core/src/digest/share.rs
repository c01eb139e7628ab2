//! Who gets how much room: every section its share, none more than it can use.
//!
//! When shares become too small to hold anything, the least important section gives its room to the others. It
//! refuses to look at what a section holds.

use super::fact::Section;

/// Tokens below which a section is not worth its heading.
const LEAST: u64 = 22;

/// What a section would take, in tokens.
#[derive(Clone, Copy, Debug)]
pub(super) struct Demand {
    pub(super) section: Section,
    pub(super) tokens: u64,
}

/// The parts of the room that sections take when all want more than there is.
const fn part(section: Section) -> u64 {
    match section {
        Section::Earlier => 30,
        Section::Newest | Section::Changed | Section::Commands => 13,
        Section::Rules | Section::First | Section::Read => 11,
        Section::Errors => 10,
        Section::Open | Section::Ids => 9,
        Section::Decisions => 7,
        Section::Symbols | Section::Seen => 6,
        Section::Results | Section::Outputs | Section::Requests => 4,
    }
}

/// Tokens for each demand, in the order given, which is the order of importance; 0 for those that get nothing.
pub(super) fn shares(demands: &[Demand], room: u64) -> Vec<u64> {
    for kept in (1..=demands.len()).rev() {
        let mut given = fill(&demands[..kept], room);
        let fits = given.iter().zip(demands).all(|(given, demand)| *given >= demand.tokens.min(LEAST));
        if fits || kept == 1 {
            given.resize(demands.len(), 0);
            return given;
        }
    }
    vec![0; demands.len()]
}

/// Small demands are met in full; the others share what is left by their parts.
fn fill(demands: &[Demand], room: u64) -> Vec<u64> {
    let mut given: Vec<Option<u64>> = vec![None; demands.len()];
    loop {
        let left = room.saturating_sub(given.iter().flatten().sum());
        let waiting = || demands.iter().enumerate().filter(|(i, _)| given[*i].is_none());
        let parts: u64 = waiting().map(|(_, demand)| part(demand.section)).sum();
        let share = |demand: &Demand| left * part(demand.section) / parts.max(1);
        let met: Vec<usize> = waiting().filter(|(_, d)| d.tokens <= share(d)).map(|(i, _)| i).collect();
        if met.is_empty() {
            return demands
                .iter()
                .zip(&given)
                .map(|(demand, given)| given.unwrap_or(share(demand)))
                .collect();
        }
        for i in met {
            given[i] = Some(demands[i].tokens);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn demands(of: &[(Section, u64)]) -> Vec<Demand> {
        of.iter().map(|(section, tokens)| Demand { section: *section, tokens: *tokens }).collect()
    }

    #[test]
    fn small_demands_are_met_and_the_rest_is_shared() {
        let demands = demands(&[(Section::Newest, 1000), (Section::Rules, 30), (Section::Read, 1000)]);
        let given = shares(&demands, 500);
        assert_eq!(given[1], 30);
        assert!(given[0] > given[2] && given.iter().sum::<u64>() <= 500 && given.iter().sum::<u64>() > 480);
    }

    #[test]
    fn when_room_is_short_the_least_important_get_nothing() {
        let demands = demands(&[(Section::Newest, 1000), (Section::Rules, 1000), (Section::Requests, 1000)]);
        assert_eq!(shares(&demands, 40), [40, 0, 0]);
        assert_eq!(shares(&demands, 60)[2], 0);
    }
}
