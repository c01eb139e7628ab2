//! Past conversations again, under a budget: tokens, price, edits, and whether anything was lost.
//!
//! A conversation is a file: OpenAI chat messages, one per line. A line that cannot be read is named, with its file.

use crate::choice::one_of;
use crate::journal::MessageLines;
use crate::{Interfaces, OpFault, OpResult, Operation, OperationContext, OperationLabel, OperationProgress};
use komado_core::Meter;
use komado_core::budget::{Budget, Preset};
use komado_core::message::Message;
use komado_engine::fit::Ladder;
use komado_engine::replay::{self, ReplayReport};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

/// Replay past conversations under a budget: tokens, price, and whether anything is lost.
#[derive(Clone, Debug, clap::Args, Deserialize, JsonSchema)]
pub struct ReplayFiles {
    /// Conversations: OpenAI chat messages as JSON lines, one conversation per file; a folder stands for its *.jsonl
    #[arg(required = true, value_name = "FILES|DIR")]
    pub files: Vec<PathBuf>,
    /// The model's window in tokens
    #[arg(long, value_name = "TOKENS", value_parser = crate::choice::tokens::<u32>(1))]
    #[schemars(range(min = 1))]
    pub window: u32,
    /// The budget preset; default: the settings
    #[arg(long, value_parser = one_of(&Preset::ALL, Preset::name))]
    pub preset: Option<Preset>,
}

/// What came of conversations.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Replayed {
    /// Each conversation.
    pub items: Vec<ReplayFigures>,
    /// All of them.
    pub sum: ReplayFigures,
    /// Most tokens a request could have.
    pub usable: u64,
    /// Why the first of those that could not be replayed was not.
    #[serde(skip)]
    pub failed: Option<OpFault>,
}

/// Figures of one conversation, or of all.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct ReplayFigures {
    /// `file` or `sum`.
    pub kind: &'static str,
    /// The window in tokens.
    pub window: u64,
    /// The rule by which it was kept.
    pub preset: &'static str,
    /// The file, where it is of one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// What came of it.
    #[serde(flatten)]
    pub report: ReplayReport,
}

impl Operation for ReplayFiles {
    const ABOUT: OperationLabel = OperationLabel::read("replay", "Replay past conversations under a budget");
    const INTERFACES: Interfaces = Interfaces::only_cli(
        "replay",
        "it reads files of the machine; `fit` with dry_run says what a window does to a session",
    )
    .not_mcp("it reads files of the machine; `plan` says what a window does to a session");
    type Output = Replayed;

    fn run(self, context: &OperationContext) -> OpResult<Replayed> {
        let files = list_files(&self.files)?;
        let budget = context.config.budget(self.preset, self.window, None);
        let figures = |file: Option<&Path>, report: ReplayReport| ReplayFigures {
            kind: if file.is_some() { "file" } else { "sum" },
            window: budget.window,
            preset: budget.policy.preset.name(),
            file: file.map(|path| path.display().to_string()),
            report,
        };
        let (mut items, mut sum, mut failed) = (Vec::new(), ReplayReport::default(), None);
        for (path, report) in replay_all(context, &files, &budget) {
            match report {
                Ok(report) => {
                    sum.add(&report);
                    items.push(figures(Some(&path), report));
                }
                Err(fault) => failed = failed.or(Some(fault)),
            }
        }
        Ok(Replayed { items, sum: figures(None, sum), usable: budget.usable, failed })
    }
}

/// As many at once as there are processors; what cannot be read does not keep the others.
fn replay_all(
    context: &OperationContext,
    files: &[PathBuf],
    budget: &Budget,
) -> Vec<(PathBuf, OpResult<ReplayReport>)> {
    let (next, total) = (AtomicUsize::new(0), files.len() as u64);
    let done = Mutex::new(Vec::with_capacity(files.len()));
    let work = || {
        while let Some(path) = files.get(next.fetch_add(1, Ordering::Relaxed)) {
            let report = replay_file(context, path, budget);
            let mut done = done.lock().unwrap_or_else(PoisonError::into_inner);
            let told = context.progress(OperationProgress::Replaying { done: done.len() as u64 + 1, total });
            done.push((path.clone(), report.and_then(|report| told.map(|()| report))));
        }
    };
    let workers = std::thread::available_parallelism().map_or(1, std::num::NonZero::get).min(files.len());
    std::thread::scope(|scope| (0..workers).for_each(|_| drop(scope.spawn(work))));
    let mut done = done.into_inner().unwrap_or_else(PoisonError::into_inner);
    done.sort_by(|(a, _), (b, _)| a.cmp(b));
    done
}

fn replay_file(context: &OperationContext, path: &Path, budget: &Budget) -> OpResult<ReplayReport> {
    let talk = read_file(path)?;
    let config = &context.config;
    let meter = Meter::named(&config.meter).unwrap_or(Meter::O200k);
    let mut by = config.models.summaries.without_model(meter)?;
    let Ladder { budget, settings, by } = config.models.summaries.ladder(budget.clone(), &mut *by);
    let mut replay = replay::ReplayRun { budget, meter, clip: config.models.output_limits, settings, by };
    replay.run(talk).map_err(|e| OpFault::from(e).and(path.display().to_string()))
}

/// The files named, and those in the folders named, each once and in order.
fn list_files(given: &[PathBuf]) -> OpResult<Vec<PathBuf>> {
    let mut files = Vec::new();
    for path in given {
        let wrong = |e: std::io::Error| OpFault::not_found(format!("cannot read {}: {e}", path.display()));
        if std::fs::metadata(path).map_err(wrong)?.is_dir() {
            let before = files.len();
            for entry in std::fs::read_dir(path).map_err(wrong)? {
                let file = entry.map_err(wrong)?.path();
                if file.extension().is_some_and(|e| e == "jsonl") {
                    files.push(file);
                }
            }
            if files.len() == before {
                return Err(OpFault::usage(format!("there is no *.jsonl in {}", path.display())));
            }
        } else {
            files.push(path.clone());
        }
    }
    files.sort();
    files.dedup();
    Ok(files)
}

/// One conversation.
fn read_file(path: &Path) -> OpResult<Vec<Message>> {
    let wrong = |e: std::io::Error| OpFault::not_found(format!("cannot read {}: {e}", path.display()));
    let file = std::fs::File::open(path).map_err(wrong)?;
    let mut lines = MessageLines::new(Box::new(file), path.display().to_string());
    let mut talk = Vec::new();
    while let Some(message) = lines.read_message().map_err(wrong)? {
        talk.push(message.map_err(|why| lines.wrong(&why))?);
    }
    Ok(talk)
}
