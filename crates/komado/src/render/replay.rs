//! Past conversations under a budget, as a table.

use super::{Render, each};
use crate::fault::{Exit, Fault, Outcome};
use crate::paper::{Paper, number};
use crate::table::table;
use komado_engine::replay::Report;
use komado_ops::replay::{Figures, Replayed};
use std::path::Path;

impl Render for Replayed {
    fn text(&self, paper: &mut Paper) -> Outcome {
        let Figures { window, preset, report: sum, .. } = &self.sum;
        paper.line(format!(
            "{} conversations, window {}, usable {}, preset {preset}",
            number(self.items.len() as u64),
            number(*window),
            number(self.usable)
        ))?;
        let heading = ["", "calls", "sent", "raw", "peak", "edits", "breaks", "cost", "hidden", "faults"];
        let mut rows = vec![heading.map(str::to_owned).to_vec()];
        rows.extend(self.items.iter().chain([&self.sum]).map(row));
        table(&rows, &[1, 2, 3, 4, 5, 6, 7, 8, 9]).iter().try_for_each(|line| paper.line(line))?;
        paper.line(format!(
            "over the window {}, below the floor {}, invalid {}, breaks without an edit {}, not restored {}, bytes lost {}, \
             refused {}",
            sum.over_window,
            sum.below_floor,
            sum.invalid,
            sum.breaks_without_edit,
            sum.not_restored,
            sum.unrecoverable_bytes,
            sum.refused
        ))?;
        sum.refused_why.iter().try_for_each(|why| paper.line(format!("the first that was refused: {why}")))
    }

    fn json(&self, paper: &mut Paper) -> Outcome {
        each(paper, &self.items)?;
        paper.json(&self.sum)
    }

    fn fault(&self) -> Outcome {
        match &self.failed {
            Some(first) => Err(Fault::new(first.exit(), first.message())),
            None if self.sum.report.is_clean() => Ok(()),
            None => Err(Fault::new(Exit::Failed, "a promise did not hold; the figures above say which")),
        }
    }
}

fn row(Figures { file, report: r, .. }: &Figures) -> Vec<String> {
    let name = file
        .as_deref()
        .map_or("all".into(), |file| Path::new(file).file_stem().unwrap_or_default().to_string_lossy());
    vec![
        name.chars().take(24).collect(),
        number(r.calls),
        number(r.tokens_sent),
        number(r.tokens_raw),
        number(r.peak_tokens),
        number(r.edits),
        number(r.prefix_breaks),
        format!("{:.2}", r.cost_ratio),
        number(r.hidden_bytes),
        number(faults(r)),
    ]
}

/// Everything that should not be.
fn faults(r: &Report) -> u64 {
    let lost = u64::from(r.unrecoverable_bytes > 0);
    r.over_window + r.invalid + r.breaks_without_edit + r.not_restored + r.refused + lost
}
