//! `komado replay`: past conversations again, under a budget: tokens, price, edits, and whether anything was lost.

use super::talks;
use crate::app::App;
use crate::fault::{Exit, Fault, Outcome};
use crate::paper::number;
use crate::progress;
use crate::table::table;
use clap::Args as ClapArgs;
use komado_config::Config;
use komado_core::Meter;
use komado_core::budget::Budget;
use komado_engine::fit::Ladder;
use komado_engine::replay::{Replay, Report};
use komado_ops::window::PresetName;
use serde_json::json;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

#[derive(ClapArgs, Debug)]
pub(crate) struct Args {
    /// Conversations: OpenAI chat messages as JSON lines, one conversation per file; a folder stands for its *.jsonl
    #[arg(required = true, value_name = "FILES|DIR")]
    files: Vec<PathBuf>,
    /// The model's window in tokens
    #[arg(long, value_name = "TOKENS", value_parser = clap::value_parser!(u32).range(1..))]
    window: u32,
    /// The rule by which the window is kept: komado, seed000, seed001 or seed002; else as the settings say
    #[arg(long)]
    preset: Option<PresetName>,
}

pub(crate) fn run(app: &mut App, args: Args) -> Outcome {
    let files = talks::list(&args.files)?;
    let meter = Meter::named(&app.context.config.meter).unwrap_or(Meter::O200k);
    let budget = app.context.config.budget(args.preset.map(|preset| preset.0), args.window, None);
    let (mut reports, mut faults) = (Vec::new(), Vec::new());
    for (path, report) in replay_all(&app.context.config, &files, &budget, meter) {
        match report {
            Ok(report) => reports.push((path, report)),
            Err(fault) => faults.push(fault),
        }
    }
    let mut sum = Report::default();
    reports.iter().for_each(|(_, report)| sum.add(report));
    if app.paper.json {
        for (path, report) in &reports {
            app.paper.json(&row(Some(path), &budget, report))?;
        }
        app.paper.json(&row(None, &budget, &sum))?;
    } else {
        tell(app, &budget, &reports, &sum)?;
    }
    if let Some(first) = faults.into_iter().next() {
        return Err(first);
    }
    if sum.is_clean() {
        return Ok(());
    }
    Err(Fault::new(Exit::Failed, "a promise did not hold; the figures above say which".to_owned()))
}

fn row(file: Option<&Path>, budget: &Budget, report: &Report) -> serde_json::Value {
    let kind = if file.is_some() { "file" } else { "sum" };
    let mut row = json!({ "kind": kind, "window": budget.window, "preset": budget.policy.preset.name() });
    if let Some(file) = file {
        row["file"] = json!(file.display().to_string());
    }
    if let (Some(row), Ok(serde_json::Value::Object(figures))) =
        (row.as_object_mut(), serde_json::to_value(report))
    {
        row.extend(figures);
    }
    row
}

/// As many at once as there are processors; what cannot be read does not keep the others.
fn replay_all(
    config: &Config,
    files: &[PathBuf],
    budget: &Budget,
    meter: Meter,
) -> Vec<(PathBuf, Outcome<Report>)> {
    let bar = progress::bar("replaying", files.len() as u64);
    let next = AtomicUsize::new(0);
    let done = Mutex::new(Vec::with_capacity(files.len()));
    let work = || {
        while let Some(path) = files.get(next.fetch_add(1, Ordering::Relaxed)) {
            let report = replay_file(config, path, budget, meter);
            bar.inc(1);
            if let Ok(mut done) = done.lock() {
                done.push((path.clone(), report));
            }
        }
    };
    let workers = std::thread::available_parallelism().map_or(1, std::num::NonZero::get).min(files.len());
    std::thread::scope(|scope| (0..workers).for_each(|_| drop(scope.spawn(work))));
    bar.finish_and_clear();
    let mut done = done.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
    done.sort_by(|(a, _), (b, _)| a.cmp(b));
    done
}

fn replay_file(config: &Config, path: &Path, budget: &Budget, meter: Meter) -> Outcome<Report> {
    let talk = talks::read(path)?;
    let mut by = config.models.summaries.without_model(meter)?;
    let Ladder { budget, settings, by } = config.models.summaries.ladder(budget.clone(), &mut *by);
    let mut replay = Replay { budget, meter, clip: config.models.output_limits, settings, by };
    replay.run(talk).map_err(|e| Fault::from(e).and(path.display().to_string()))
}

fn tell(app: &mut App, budget: &Budget, reports: &[(PathBuf, Report)], sum: &Report) -> Outcome {
    app.paper.line(format!(
        "{} conversations, window {}, usable {}, preset {}",
        number(reports.len() as u64),
        number(budget.window),
        number(budget.usable),
        budget.policy.preset.name()
    ))?;
    let heading = ["", "calls", "sent", "raw", "peak", "edits", "breaks", "cost", "hidden", "faults"];
    let mut rows = vec![heading.map(str::to_owned).to_vec()];
    let named = reports.iter().map(|(path, report)| {
        let name = path.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
        (name.chars().take(24).collect::<String>(), report)
    });
    for (name, r) in named.chain([("all".to_owned(), sum)]) {
        rows.push(vec![
            name,
            number(r.calls),
            number(r.tokens_sent),
            number(r.tokens_raw),
            number(r.peak_tokens),
            number(r.edits),
            number(r.prefix_breaks),
            format!("{:.2}", r.cost_ratio),
            number(r.hidden_bytes),
            number(faults(r)),
        ]);
    }
    for line in table(&rows, &[1, 2, 3, 4, 5, 6, 7, 8, 9]) {
        app.paper.line(line)?;
    }
    app.paper.line(format!(
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
    sum.refused_why.iter().try_for_each(|why| app.paper.line(format!("the first that was refused: {why}")))
}

/// Everything that should not be.
fn faults(r: &Report) -> u64 {
    let lost = u64::from(r.unrecoverable_bytes > 0);
    r.over_window + r.invalid + r.breaks_without_edit + r.not_restored + r.refused + lost
}
