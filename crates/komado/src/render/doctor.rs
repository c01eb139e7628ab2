//! What a check found: a line for each, and how much was looked at.

use super::{Render, each};
use crate::fault::{Exit, Fault, Outcome};
use crate::paper::{Paper, count, say};
use komado_ops::doctor::{Checked, Finding, StoreHealth};

impl Render for Checked {
    fn text(&self, paper: &mut Paper) -> Outcome {
        tell_rebuilt(self);
        self.items.iter().flat_map(lines).try_for_each(|line| paper.line(line))?;
        let counts = &self.counts;
        let (sessions, findings) = (count(counts.sessions, "session"), count(counts.findings, "finding"));
        say(format!("{sessions} checked, {findings}, {} cannot be read", counts.unreadable));
        if counts.jobs + counts.unreadable_jobs > 0 {
            let (jobs, stale) = (count(counts.jobs, "job"), counts.stale_jobs);
            say(format!("{jobs} in the queue, {stale} stale, {} cannot be read", counts.unreadable_jobs));
        }
        Ok(())
    }

    fn json(&self, paper: &mut Paper) -> Outcome {
        tell_rebuilt(self);
        each(paper, &self.items)?;
        paper.json(&self.counts)
    }

    fn fault(&self) -> Outcome {
        match (self.counts.unreadable, self.counts.unreadable_jobs) {
            (0, 0) => Ok(()),
            (0, _) => Err(Fault::new(Exit::Failed, "the queue has what cannot be read; see above")),
            _ => Err(Fault::new(Exit::Failed, "some sessions cannot be read; see above")),
        }
    }
}

fn tell_rebuilt(checked: &Checked) {
    if let Some(rows) = checked.rebuilt {
        say(format!("tasks.db made again from the folders: {}", count(rows, "session")));
    }
}

fn lines(finding: &Finding) -> Vec<String> {
    match finding {
        Finding::Store { store } => of_store(store),
        Finding::Repaired { finding } => vec![finding.clone()],
        Finding::Session { session, error } => vec![format!("{session}: {error}")],
        Finding::Queue { queue } => vec![format!("the queue cannot be read: {}", queue.error)],
        Finding::Job { job, task, finding, error } => {
            finding.iter().chain(error).map(|why| format!("{job} ({task}): {why}")).collect()
        }
    }
}

fn of_store(StoreHealth { vitals, round_trip_ms }: &StoreHealth) -> Vec<String> {
    let figures = [
        ("sessions", vitals.sessions),
        ("keys or rows", vitals.keys),
        ("bytes on its disk", vitals.disk_bytes),
        ("bytes in its memory", vitals.memory_bytes),
        ("sessions whose time was over", vitals.expired),
    ];
    let careful = if vitals.may_lose { "careful: " } else { "" };
    let mut lines = vec![
        format!("{} at {}: answers in {round_trip_ms} ms", vitals.kind, vitals.place),
        format!("{careful}an acknowledged entry {}", vitals.durability),
    ];
    lines.extend(vitals.warnings.iter().map(|warning| format!("warning: {warning}")));
    lines.extend(figures.iter().filter_map(|(what, figure)| Some(format!("{what}: {}", (*figure)?))));
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use komado_store::Vitals;

    #[test]
    fn what_the_store_does_not_know_is_left_out() {
        let vitals = Vitals {
            kind: "redis",
            place: "cache:6379".to_owned(),
            durability: "outlives its process".to_owned(),
            may_lose: true,
            sessions: Some(3),
            ..Vitals::default()
        };
        assert_eq!(
            of_store(&StoreHealth { vitals, round_trip_ms: 1.23 }),
            [
                "redis at cache:6379: answers in 1.23 ms",
                "careful: an acknowledged entry outlives its process",
                "sessions: 3",
            ]
        );
    }
}
