//! Steps that are only counted: how often each kind of work was done, and where.

use super::line::{noun, under};
use super::{Step, StepKind};
use crate::Seq;
use crate::digest::words::Language;
use std::collections::BTreeMap;

/// Places of one group that are kept apart.
const PLACES: usize = 24;

/// How often something was done, and how often it failed.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(in crate::digest) struct StepCount {
    pub(in crate::digest) times: u64,
    pub(in crate::digest) failed: u64,
}

/// Steps between two entries, counted by kind and place.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(in crate::digest) struct StepGroup {
    pub(in crate::digest) from: Seq,
    pub(in crate::digest) to: Seq,
    pub(in crate::digest) counts: BTreeMap<(StepKind, String), StepCount>,
}

impl StepGroup {
    pub(in crate::digest) fn of(steps: &[Step]) -> Self {
        let from = steps.iter().map(|step| step.seq).min().unwrap_or_default();
        let to = steps.iter().map(|step| step.seq).max().unwrap_or_default();
        let mut group = Self { from, to, counts: BTreeMap::new() };
        for step in steps {
            let times = u64::from(step.count);
            let failed = if step.end.is_bad() { times } else { 0 };
            group.add(step.kind, step.place(), StepCount { times, failed });
        }
        group
    }

    pub(in crate::digest) fn add(&mut self, kind: StepKind, place: String, count: StepCount) {
        let known = self.counts.entry((kind, place)).or_default();
        known.times = known.times.saturating_add(count.times);
        known.failed = known.failed.saturating_add(count.failed);
        if self.counts.len() > PLACES {
            self.counts = self.fewer(PLACES / 2);
        }
    }

    pub(in crate::digest) fn joined(groups: &[Self]) -> Self {
        let from = groups.iter().map(|group| group.from).min().unwrap_or_default();
        let to = groups.iter().map(|group| group.to).max().unwrap_or_default();
        let mut all = Self { from, to, counts: BTreeMap::new() };
        for group in groups {
            for ((kind, place), count) in &group.counts {
                all.add(*kind, place.clone(), *count);
            }
        }
        all
    }

    /// The counts with the most in `places` lines, and the others of each kind as one.
    fn fewer(&self, places: usize) -> BTreeMap<(StepKind, String), StepCount> {
        let mut order: Vec<&(StepKind, String)> = self.counts.keys().collect();
        order.sort_by_key(|key| (std::cmp::Reverse(self.counts[*key].times), key.0, &key.1));
        let (apart, together) = order.split_at(places.min(order.len()));
        let mut fewer: BTreeMap<_, _> = apart.iter().map(|key| ((*key).clone(), self.counts[*key])).collect();
        for key in together {
            let folder = together
                .iter()
                .filter(|other| other.0 == key.0)
                .map(|other| folder(&other.1))
                .reduce(shared)
                .unwrap_or_default();
            let known: &mut StepCount = fewer.entry((key.0, folder.to_owned())).or_default();
            known.times = known.times.saturating_add(self.counts[*key].times);
            known.failed = known.failed.saturating_add(self.counts[*key].failed);
        }
        fewer
    }

    /// `@12-@40: 9 reads in ./src/, 3 edits of ./src/a.rs, 4 runs of cargo test (2 failed)`
    pub(super) fn line(&self, language: Language, root: &str, places: usize) -> String {
        let counts = self.fewer(places);
        let told: Vec<String> = counts
            .iter()
            .map(|((kind, place), count)| noun(*kind, &under(root, place), *count, language))
            .collect();
        let to = if self.from == self.to { String::new() } else { format!("-@{}", self.to) };
        format!("- @{}{to}: {}", self.from, told.join(", "))
    }
}

/// The folder of a path, with its slash; nothing for what is no path.
fn folder(place: &str) -> &str {
    place.rfind('/').filter(|_| !place.contains(' ')).map_or("", |at| &place[..=at])
}

/// What two folders have in common.
fn shared<'a>(a: &'a str, b: &'a str) -> &'a str {
    let same = a.bytes().zip(b.bytes()).take_while(|(a, b)| a == b).count();
    a.as_bytes()[..same].iter().rposition(|b| *b == b'/').map_or("", |at| &a[..=at])
}

impl Step {
    /// What it is counted under: the file of an edit, the folder of what is read, the program that ran, the tool.
    fn place(&self) -> String {
        let word = |text: &str| text.split(' ').next().unwrap_or_default().replace(',', "");
        match self.kind {
            StepKind::Edit => word(&self.target),
            StepKind::Read => folder(&word(&self.target)).to_owned(),
            StepKind::Search => String::new(),
            StepKind::Run => crate::digest::gather::program(&self.target),
            StepKind::Call => word(&self.target),
        }
    }
}
