//! Counting what each contestant kept, and the two forms of the report.

use super::steps::StepScore;
use super::{GENERATIONS, LIMITS};
use crate::error::Result;
use crate::facts::{CLASSES, Facts, holds};
use crate::machine::Machine;
use crate::output::{BenchOutput, number};
use crate::{command, round};
use serde_json::json;

/// A digest of the whole span; a digest of a digest of a digest; the peers.
pub(super) const CONTESTANTS: [&str; 4] = ["digest", "five digests", "last N", "head+tail"];
const LAST: usize = 2;
const BOTH: usize = 3;

/// Facts found, and how many each contestant kept.
#[derive(Clone, Copy, Default)]
struct Tally {
    facts: u64,
    kept: [u64; CONTESTANTS.len()],
}

impl Tally {
    fn add(&mut self, weight: u64, kept: [bool; CONTESTANTS.len()]) {
        self.facts += weight;
        for (sum, kept) in self.kept.iter_mut().zip(kept) {
            *sum += weight * u64::from(kept);
        }
    }

    fn sum(of: &[Self]) -> Self {
        let mut sum = Self::default();
        for one in of {
            sum.facts += one.facts;
            sum.kept.iter_mut().zip(one.kept).for_each(|(sum, kept)| *sum += kept);
        }
        sum
    }

    /// Per cent kept by each.
    fn shares(&self) -> Vec<f64> {
        let share = |kept: u64| if self.facts == 0 { 0.0 } else { 100.0 * kept as f64 / self.facts as f64 };
        self.kept.iter().map(|kept| round(share(*kept))).collect()
    }
}

/// One limit over all conversations.
#[derive(Clone, Default)]
pub(super) struct ScoreRow {
    pub(super) digest_tokens: u64,
    pub(super) span_tokens: u64,
    pub(super) conversations: u64,
    /// Conversations whose span fits into the limit whole, so that no digest of it is needed.
    pub(super) whole: u64,
    all: [Tally; CLASSES.len()],
    /// Each fact as often as messages hold it.
    weighted: [Tally; CLASSES.len()],
    /// Only facts that the rest of the conversation uses again.
    later: [Tally; CLASSES.len()],
    /// Conversations in which each contestant kept no less of what was used later than its rivals.
    best: [u64; CONTESTANTS.len()],
    /// Calls and to-dos as the digest tells them.
    pub(super) steps: StepScore,
}

/// The contestants in the head of a table.
const SHORT: [&str; CONTESTANTS.len()] = ["digest", "5x", "last N", "ends"];

fn percent(tally: &Tally) -> Vec<String> {
    tally.shares().into_iter().map(|share| format!("{share:.1}")).collect()
}

impl ScoreRow {
    pub(super) fn compare(&mut self, pages: &[String; CONTESTANTS.len()], facts: &Facts, later: &Facts) {
        let mut used = Tally::default();
        for (fact, times) in facts {
            let kept = std::array::from_fn(|who| holds(&pages[who], fact));
            self.all[fact.0].add(1, kept);
            self.weighted[fact.0].add(u64::from(*times), kept);
            if later.contains_key(fact) {
                self.later[fact.0].add(1, kept);
                used.add(1, kept);
            }
        }
        // The two kinds of digest do not compete with each other.
        let peers = used.kept[LAST].max(used.kept[BOTH]);
        for (who, best) in self.best.iter_mut().enumerate() {
            let rivals = if who < LAST { peers } else { peers.max(used.kept[0]) };
            *best += u64::from(used.kept[who] >= rivals);
        }
    }

    /// Shares of all facts, then of those that were used later. What is weighted is in the JSON, and in a line of its own.
    fn cells(&self) -> Vec<Vec<String>> {
        let mut heading = vec!["  kept %".to_owned(), "facts".into()];
        heading.extend(SHORT.map(str::to_owned));
        heading.push("used later".into());
        heading.extend(SHORT.map(str::to_owned));
        let line = |name: &str, all: &Tally, later: &Tally| {
            let mut cells = vec![format!("  {name}"), number(all.facts)];
            cells.extend(percent(all));
            cells.push(number(later.facts));
            cells.extend(percent(later));
            cells
        };
        let mut rows = vec![heading];
        for (class, name) in CLASSES.iter().enumerate() {
            rows.push(line(name, &self.all[class], &self.later[class]));
        }
        rows.push(line("all", &Tally::sum(&self.all), &Tally::sum(&self.later)));
        rows
    }

    /// All facts, each as often as it occurs.
    fn weighted(&self) -> String {
        let shares = percent(&Tally::sum(&self.weighted));
        let told: Vec<String> =
            CONTESTANTS.iter().zip(shares).map(|(name, share)| format!("{name} {share}")).collect();
        format!("  each fact as often as it occurs: {}", told.join(", "))
    }

    /// Calls that the timeline names and counts, and to-dos as they are told.
    fn done(&self) -> String {
        let StepScore { calls, named, covered, open, open_told, finished, finished_as_open } = self.steps;
        let share = |part: u64| if calls == 0 { 0.0 } else { 100.0 * part as f64 / calls as f64 };
        format!(
            "  of {} calls: {:.1} % named, {:.1} % named or counted; open to-dos told {open_told} of {open}, \
             finished ones told as open {finished_as_open} of {finished}",
            number(calls),
            share(named),
            share(covered)
        )
    }

    fn as_json(&self, limit: u64) -> serde_json::Value {
        let classes = CLASSES.iter().enumerate().map(|(class, name)| {
            json!({
                "class": name,
                "facts": self.all[class].facts, "kept": self.all[class].shares(),
                "weighted": self.weighted[class].shares(),
                "used_later": self.later[class].facts, "kept_used_later": self.later[class].shares(),
            })
        });
        let (all, later) = (Tally::sum(&self.all), Tally::sum(&self.later));
        json!({
            "limit": limit, "conversations": self.conversations, "fit_whole": self.whole,
            "digest_tokens": self.digest_tokens, "span_tokens": self.span_tokens,
            "facts": all.facts, "kept": all.shares(), "weighted": Tally::sum(&self.weighted).shares(),
            "used_later": later.facts, "kept_used_later": later.shares(), "best": self.best,
            "calls": self.steps.calls, "calls_named": self.steps.named, "calls_covered": self.steps.covered,
            "open_to_dos": self.steps.open, "open_to_dos_told": self.steps.open_told,
            "finished_to_dos": self.steps.finished, "finished_to_dos_told_as_open": self.steps.finished_as_open,
            "classes": classes.collect::<Vec<_>>(),
        })
    }
}

/// Everything that was counted.
#[derive(Default)]
pub(super) struct DigestReport {
    pub(super) rows: [ScoreRow; LIMITS.len()],
    /// Bytes of all spans, and the time that digests took to read them.
    pub(super) bytes: u64,
    pub(super) seconds: f64,
}

impl DigestReport {
    pub(super) fn as_json(&self, machine: &Machine) -> serde_json::Value {
        let rows: Vec<_> = self.rows.iter().zip(LIMITS).map(|(row, limit)| row.as_json(limit)).collect();
        json!({
            "command": command(), "machine": machine, "contestants": CONTESTANTS,
            "bytes": self.bytes, "seconds": round(self.seconds), "limits": rows,
        })
    }

    pub(super) fn as_text(&self, out: &mut BenchOutput) -> Result {
        for (row, limit) in self.rows.iter().zip(LIMITS) {
            let title = out.bold(&format!("limit {} tokens", number(limit)));
            let (tokens, of) = (number(row.digest_tokens), number(row.span_tokens));
            let ratio = row.span_tokens as f64 / row.digest_tokens.max(1) as f64;
            out.line(format!(
                "{title}: {} conversations, {tokens} tokens in digests of {of} (1:{ratio:.1}); {} fit whole and are left out",
                row.conversations, row.whole
            ))?;
            out.table(&row.cells(), &(1..=14).collect::<Vec<_>>())?;
            out.line(row.weighted())?;
            out.line(row.done())?;
            let best = CONTESTANTS.iter().zip(row.best).map(|(name, best)| format!("{name} in {best}"));
            out.line(format!(
                "  kept most of what was used later, ties included: {}",
                best.collect::<Vec<_>>().join(", ")
            ))?;
            out.line("")?;
        }
        let (megabytes, seconds) = (self.bytes as f64 / 1e6, self.seconds);
        for line in [
            "Per cent of facts that stand in the text to the letter, at one limit for all.".to_owned(),
            "Used later: facts that the rest of the conversation mentions again. Ends: head and tail in as many tokens.".to_owned(),
            format!("5x, five digests: the span in {GENERATIONS} parts, each digested with the digest before it."),
            format!("Reading {megabytes:.1} MB into digests took {seconds:.2} s on one core."),
        ] {
            out.line(line)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_per_cent_of_what_was_found() {
        let mut tally = Tally::default();
        tally.add(3, [true, false, true, false]);
        tally.add(1, [true, true, false, false]);
        assert_eq!(Tally::sum(&[tally, tally]).shares(), [100.0, 25.0, 75.0, 0.0]);
        assert_eq!(Tally::default().shares(), [0.0; 4]);
    }
}
