//! How well is a window used, and what does that cost? Past conversations again, in several windows.
//!
//! Beside what `komado replay` says this tells how much of what is usable is used after an edit, and which facts the
//! model uses that it can still see: before each of its messages, those that stand in it and were said earlier. The facts
//! are found by the judge of `digest`, which shares no code with what it judges.

mod report;

use super::heading;
use super::machine::Machine;
use crate::context::BenchContext;
use crate::conversations;
use crate::error::{Error, Result};
use crate::facts::{ExpectedFact, Judge, holds, one_line, said};
use crate::output::progress;
use clap::Args as ClapArgs;
use komado_core::Meter;
use komado_core::budget::{Budget, Preset};
use komado_core::clip::ClipLimits;
use komado_core::message::{Message, Role};
use komado_engine::condense::{ByDigest, CondenseSettings};
use komado_engine::replay::{ReplayReport, ReplayRun, ReplayedRequest};
use report::WindowFigures;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

const METER: Meter = Meter::O200k;

#[derive(ClapArgs, Debug)]
pub(crate) struct Args {
    /// Conversations as OpenAI chat lines, or folders of them
    #[arg(value_name = "FILE|DIR", required = true)]
    files: Vec<PathBuf>,
    /// Windows in tokens
    #[arg(long, value_name = "TOKENS", value_delimiter = ',', default_values_t = [8_000, 16_000, 32_000, 64_000, 128_000])]
    windows: Vec<u32>,
    /// The budget preset
    #[arg(long, value_parser = preset, default_value = "komado")]
    preset: Preset,
}

fn preset(name: &str) -> std::result::Result<Preset, String> {
    Preset::named(name).ok_or_else(|| "one of komado, seed000, seed001, seed002".to_owned())
}

pub(crate) fn run(context: &mut BenchContext, args: Args) -> Result {
    let files = conversations::list(&args.files)?;
    let judge = Judge::new().map_err(|e| Error::failed(e.to_string()))?;
    let machine = Machine::here(Path::new("."))?;
    let talks = files.iter().map(|file| conversations::read(file).map(|talk| Talk::of(&judge, talk)));
    let talks = talks.collect::<Result<Vec<Talk>>>()?;
    let bar = progress("replaying", (talks.len() * args.windows.len()) as u64);
    let mut rows = Vec::new();
    for window in args.windows {
        let budget = Budget::new(args.preset.policy(), u64::from(window), &[]);
        let mut figures = WindowFigures::new(&budget);
        for replayed in replay_all(&talks, &budget, &|| bar.inc(1)) {
            figures.add(&replayed?);
        }
        rows.push(figures);
    }
    bar.finish_and_clear();
    if context.out.json {
        return context.out.write_json(&report::as_json(&rows, args.preset, &machine));
    }
    heading(&mut context.out, &machine)?;
    report::as_text(&rows, &mut context.out)
}

/// A conversation, with the facts that each message of the model takes up.
struct Talk {
    messages: Vec<Message>,
    /// By message: facts that it holds and an earlier message held.
    used: Vec<Vec<ExpectedFact>>,
}

impl Talk {
    fn of(judge: &Judge, messages: Vec<Message>) -> Self {
        let each = judge.each(&messages);
        let mut first: HashMap<&ExpectedFact, usize> = HashMap::new();
        for (at, facts) in each.iter().enumerate() {
            for fact in facts {
                first.entry(fact).or_insert(at);
            }
        }
        let used = each.iter().enumerate().map(|(at, facts)| {
            let by_model = messages[at].role == Role::Assistant;
            facts.iter().filter(|fact| by_model && first[*fact] < at).cloned().collect()
        });
        let used = used.collect();
        Self { messages, used }
    }
}

/// What came of one conversation in one window.
#[derive(Default)]
struct Replayed {
    report: ReplayReport,
    /// Tokens of its last request without management.
    raw: u64,
    /// After each request with an edit: share of what is usable that is used.
    during: Vec<f64>,
    /// The same where the whole conversation is fitted once, at its end.
    once: Option<f64>,
    /// Facts used by the model in requests that would not have fitted, and those of them that it saw.
    used: u64,
    seen: u64,
}

/// Each conversation, as many at once as there are processors.
fn replay_all(talks: &[Talk], budget: &Budget, done: &(dyn Fn() + Sync)) -> Vec<Result<Replayed>> {
    let next = AtomicUsize::new(0);
    let all = Mutex::new(Vec::with_capacity(talks.len()));
    let work = || {
        while let Some(talk) = talks.get(next.fetch_add(1, Ordering::Relaxed)) {
            let replayed = replay(talk, budget);
            all.lock().unwrap_or_else(PoisonError::into_inner).push(replayed);
            done();
        }
    };
    let workers = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    std::thread::scope(|scope| (0..workers).for_each(|_| drop(scope.spawn(work))));
    all.into_inner().unwrap_or_else(PoisonError::into_inner)
}

#[allow(clippy::cast_precision_loss)]
fn replay(talk: &Talk, budget: &Budget) -> Result<Replayed> {
    let mut by = ByDigest::new(METER);
    let mut replay = ReplayRun {
        budget: budget.clone(),
        meter: METER,
        clip: Some(ClipLimits::default()),
        settings: CondenseSettings::default(),
        by: &mut by,
    };
    let mut replayed = Replayed::default();
    let share = |tokens: u64| tokens as f64 / budget.usable as f64;
    replayed.report = replay.run_watched(talk.messages.clone(), &mut |request| {
        replayed.raw = request.raw_tokens;
        if request.edits > 0 {
            replayed.during.push(share(request.thread.view().tokens()));
        }
        let used = &talk.used[request.before];
        if request.raw_tokens > budget.usable && !used.is_empty() {
            let text = text_of(request)?;
            replayed.used += used.len() as u64;
            replayed.seen += used.iter().filter(|fact| holds(&text, fact)).count() as u64;
        }
        Ok(())
    })?;
    let once = replay.fit_once(talk.messages.clone())?;
    replayed.once = once.filter(|fitted| !fitted.done.is_empty()).map(|fitted| share(fitted.after));
    Ok(replayed)
}

/// Everything the model sees, on one line.
fn text_of(request: &ReplayedRequest<'_, '_>) -> komado_engine::Result<String> {
    let mut text = String::new();
    request.thread.view().pour(request.thread.source(), &mut |_, message: &Message| {
        text.push_str(&one_line(&said(message)));
        text.push(' ');
        Ok::<(), komado_engine::Error>(())
    })?;
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fact_is_used_by_the_model_when_it_was_said_before() {
        let messages = vec![
            Message::text(Role::User, "Look at src/a.rs"),
            Message::text(Role::Assistant, "src/a.rs names src/b.rs"),
            Message::text(Role::User, "And src/b.rs?"),
            Message::text(Role::Assistant, "src/b.rs is like src/a.rs"),
        ];
        let talk = Talk::of(&Judge::new().unwrap(), messages);
        let used = |at: usize| talk.used[at].iter().map(|fact| fact.1.as_str()).collect::<Vec<_>>();
        assert_eq!(
            [used(0), used(1), used(2), used(3)],
            [vec![], vec!["src/a.rs"], vec![], vec!["src/a.rs", "src/b.rs"]]
        );
    }

    #[test]
    fn a_conversation_that_fits_is_not_edited_and_costs_what_it_did() {
        let turn = |n: u32| {
            let role = if n.is_multiple_of(2) { Role::User } else { Role::Assistant };
            Message::text(role, format!("src/file{}.rs has line {n} of many", n / 8))
        };
        let talk = Talk::of(&Judge::new().unwrap(), (0..200).map(turn).collect());
        let budget = |window| Budget::new(Preset::Komado.policy(), window, &[]);
        let whole = replay(&talk, &budget(128_000)).unwrap();
        assert_eq!((whole.during.len(), whole.once, whole.used), (0, None, 0));
        assert!((whole.report.cost_ratio - 1.0).abs() < 1e-9, "{}", whole.report.cost_ratio);
        let cut = replay(&talk, &budget(1_000)).unwrap();
        assert!(!cut.during.is_empty() && cut.once.is_some() && cut.seen > 0 && cut.seen <= cut.used);
        assert_eq!(cut.report.over_window, 0);
    }
}
