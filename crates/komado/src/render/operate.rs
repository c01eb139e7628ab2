//! What operators look at: models and what was learned about them, settings, keys, checks of the store, replays.

use super::sessions::at_home;
use super::{Render, RenderList, columns, each, local, or_dash};
use crate::cli_output::{CliOutput, Style, clip, count, number, table};
use komado_core::notation::{tamed, width};
use komado_engine::lesson::{AppliedLesson, LearnedWindow};
use komado_engine::replay::ReplayReport;
use komado_ops::config::ShownSettings;
use komado_ops::doctor::{CheckFinding, CheckResult, StoreHealth};
use komado_ops::key::file::Sees;
use komado_ops::key::{Added, KeyRow, Revoked};
use komado_ops::model::{ForgottenLesson, Learned, ListedModel, ModelChange, ModelDifference, Updated};
use komado_ops::replay::{ReplayFigures, Replayed};
use komado_ops::{FaultKind, OpFault, OpResult, ResultPage};
use komado_provider::overflow::{OverflowVerdict, Remedy};
use std::path::Path;

/// So many changes are told one by one.
const TOLD: usize = 10;

impl RenderList for ListedModel {
    fn list(page: &ResultPage<Self>, paper: &mut CliOutput) -> OpResult {
        let heading = ["window", "input", "output", "$in", "$out", "cached"].map(str::to_owned);
        let rows: Vec<Vec<String>> =
            std::iter::once(heading).chain(page.items.iter().map(cells)).map(Vec::from).collect();
        let names = std::iter::once("model".to_owned()).chain(page.items.iter().map(full_name));
        for (line, name) in table(&rows, &[0, 1, 2, 3, 4, 5]).iter().zip(names) {
            paper.named(line, &tamed(&name))?;
        }
        paper.flush()?;
        let kept = page.items.iter().filter(|model| model.source == "file").count() as u64;
        paper.say("k, M: thousands and millions of tokens; $: US dollars for a million tokens");
        if kept > 0 {
            paper.say(format!("*: {} from `komado models update`", count(kept, "row")));
        }
        Ok(())
    }
}

fn full_name(model: &ListedModel) -> String {
    let mark = if model.source == "file" { " *" } else { "" };
    format!("{}/{}{mark}", model.provider, model.id)
}

fn cells(model: &ListedModel) -> [String; 6] {
    [
        short(model.context),
        short(model.input_limit),
        or_dash(model.output.map(short)),
        or_dash(model.price.map(|price| price.input)),
        or_dash(model.price.map(|price| price.output)),
        or_dash(model.price.and_then(|price| price.cache_read)),
    ]
}

/// A number of tokens in few columns: `128k`, `1.05M`; `komado models NAME` gives it in full.
fn short(tokens: u64) -> String {
    let scaled = |unit: f64, digits: usize| {
        let text = format!("{:.digits$}", tokens as f64 / unit);
        if digits == 0 { text } else { text.trim_end_matches('0').trim_end_matches('.').to_owned() }
    };
    match tokens {
        0..1_000 => tokens.to_string(),
        1_000..10_000 => scaled(1e3, 1) + "k",
        10_000..999_500 => scaled(1e3, 0) + "k",
        _ => scaled(1e6, 2) + "M",
    }
}

impl Render for ListedModel {
    fn text(&self, paper: &mut CliOutput) -> OpResult {
        paper.line(paper.ink(Style::Bold, &format!("{}/{}", self.provider, self.id)))?;
        let tokens = |n: Option<u64>| n.map_or_else(|| "not known".to_owned(), |n| count(n, "token"));
        let lines = [
            ("window", tokens(Some(self.context))),
            ("may be sent", tokens(Some(self.input_limit))),
            ("longest answer", tokens(self.output)),
            ("price", price(self)),
            ("source", self.source.to_owned()),
        ];
        lines.iter().try_for_each(|(name, value)| paper.field(&format!("  {name:<15} "), value))
    }
}

fn price(model: &ListedModel) -> String {
    let Some(price) = model.price else { return "not known".to_owned() };
    let more = |name: &str, amount: Option<f64>| {
        amount.map(|amount| format!(", {name} {amount}")).unwrap_or_default()
    };
    format!(
        "US dollars per million tokens: input {}, output {}{}{}",
        price.input,
        price.output,
        more("cache read", price.cache_read),
        more("cache write", price.cache_write)
    )
}

impl RenderList for Learned {
    fn list(page: &ResultPage<Self>, paper: &mut CliOutput) -> OpResult {
        if page.items.is_empty() {
            paper.say("nothing was learned yet");
            return Ok(());
        }
        let heading = ["window", "factor", "answers", "most answered", "how sure", "from", "about"];
        let rows =
            std::iter::once(heading.map(str::to_owned)).chain(page.items.iter().flat_map(learned_rows));
        // What it is about is a name that `--forget` takes.
        let (rows, names): (Vec<_>, Vec<_>) = rows.map(|[rest @ .., about]| (Vec::from(rest), about)).unzip();
        let lines = table(&rows, &[0, 1, 2, 3]);
        lines.iter().zip(names).try_for_each(|(line, about)| paper.named(line, &tamed(&about)))
    }
}

/// What holds for every session of a model, and what single ones met that is as yet theirs alone.
fn learned_rows(learned: &Learned) -> Vec<[String; 7]> {
    let Learned { about, lesson } = learned;
    let row = |window: Option<LearnedWindow>, factor: Option<f64>, samples, most, why: &str| {
        let factor = or_dash(factor.map(|factor| format!("{factor:.2}")));
        let sure = window.as_ref().map_or_else(|| why.to_owned(), |window| window.why().to_owned());
        let tokens = or_dash(window.as_ref().map(|window| number(window.tokens)));
        let request = or_dash(window.and_then(|window| window.request));
        [tokens, factor, number(samples), most, sure, request, about.clone()]
    };
    let all = AppliedLesson::for_all(lesson.clone());
    let why = if lesson.factor.is_some() { "every session" } else { "not sure yet" };
    let most = number(lesson.most);
    let mut rows = vec![row(all.learned_window(), lesson.factor, lesson.samples, most, why)];
    for own in &lesson.sessions {
        let applied = AppliedLesson { learned: lesson.clone(), session: own.session.clone() };
        let window = applied.learned_window().filter(|window| !window.is_shared);
        if window.is_some() || lesson.factor.is_none() {
            let why = format!("{} alone", own.session);
            rows.push(row(window, own.factor, own.samples, or_dash(None::<u64>), &why));
        }
    }
    rows
}

impl RenderList for ForgottenLesson {
    fn list(page: &ResultPage<Self>, paper: &mut CliOutput) -> OpResult {
        let line = |one: &Self| format!("forgot what was learned about {}", one.forgotten);
        page.items.iter().try_for_each(|one| paper.prose(&line(one)))
    }
}

impl Render for Updated {
    fn text(&self, paper: &mut CliOutput) -> OpResult {
        paper.line(format!(
            "{}: {} new, {} changed, {} as before",
            count(self.rows, "model"),
            number(self.added),
            number(self.changed),
            number(self.same)
        ))?;
        for change in self.changes.iter().take(TOLD) {
            paper.field("  ", &told(change))?;
        }
        if let Some(more) = self.changes.len().checked_sub(TOLD).filter(|more| *more > 0) {
            paper.line(format!("  and {} more", number(more as u64)))?;
        }
        paper.say(format!("kept in {}; remove it to go back to what is built in", self.path));
        Ok(())
    }
}

fn told(change: &ModelChange) -> String {
    let tokens = |n: &Option<u64>| n.map_or_else(|| "none".to_owned(), number);
    let differences = change.differences.iter().map(|difference| match difference {
        ModelDifference::Tokens { name, before, after } => {
            format!("{name} {} → {}", tokens(before), tokens(after))
        }
        ModelDifference::Price => "price".to_owned(),
    });
    format!("{}: {}", change.model, differences.collect::<Vec<_>>().join(", "))
}

impl Render for OverflowVerdict {
    fn text(&self, paper: &mut CliOutput) -> OpResult {
        let (ink, title) = if self.overflow {
            (Style::Yellow, "overflow of the window")
        } else {
            (Style::Bold, "no overflow")
        };
        paper.line(paper.ink(ink, title))?;
        let sizes = [("limit", self.limit), ("sent", self.actual), ("answer asked for", self.output)];
        for (name, size) in sizes {
            if let Some(size) = size {
                paper.line(format!("  {name:<17} {}", count(size, "token")))?;
            }
        }
        let remedy = match self.remedy {
            Remedy::Shrink => Some("make the conversation smaller: `komado fit`"),
            Remedy::LowerMaxTokens => Some("ask for a shorter answer; what was sent fits"),
            Remedy::None => None,
        };
        if let Some(remedy) = remedy {
            paper.field(&format!("  {:<17} ", "what helps"), remedy)?;
        }
        paper.field(&format!("  {:<17} ", "why"), &self.why.to_string())
    }
}

impl Render for ShownSettings {
    fn text(&self, paper: &mut CliOutput) -> OpResult {
        if let Some(table) = &self.reference {
            return paper.line(table.trim_end());
        }
        say_file(paper, self);
        for one in &self.items {
            let first = tamed(one.value.lines().next().unwrap_or_default());
            let more = if one.value.lines().count() > 1 { " …" } else { "" };
            let origin = paper.ink(Style::Dim, &tamed(&one.origin));
            paper.named(&format!("{:<43}", tamed(&one.key)), &format!("{first}{more}  {origin}"))?;
        }
        Ok(())
    }

    fn json(&self, paper: &mut CliOutput) -> OpResult {
        match self.reference {
            Some(_) => self.text(paper),
            None => {
                say_file(paper, self);
                each(paper, &self.items)
            }
        }
    }
}

fn say_file(paper: &mut CliOutput, settings: &ShownSettings) {
    paper.say(match (&settings.file, &settings.left_out) {
        (Some(path), _) => format!("settings file: {path}"),
        (None, Some(left_out)) => format!("settings file: none is used below; {left_out}"),
        (None, None) => {
            "settings file: none; ./komado.yaml or ~/.config/komado/komado.yaml would be read".to_owned()
        }
    });
}

impl Render for CheckResult {
    fn text(&self, paper: &mut CliOutput) -> OpResult {
        tell_rebuilt(paper, self);
        self.items.iter().flat_map(lines).try_for_each(|line| paper.prose(&line))?;
        let counts = &self.counts;
        let (sessions, findings) = (count(counts.sessions, "session"), count(counts.findings, "finding"));
        let place = self.kept_in.as_ref().map(|place| format!(" in {}", at_home(place))).unwrap_or_default();
        paper.say(format!("{sessions} checked{place}, {findings}, {} cannot be read", counts.unreadable));
        if counts.jobs + counts.unreadable_jobs > 0 {
            let (jobs, stale) = (count(counts.jobs, "job"), counts.stale_jobs);
            paper.say(format!(
                "{jobs} in the queue, {stale} stale, {} cannot be read",
                counts.unreadable_jobs
            ));
        }
        Ok(())
    }

    fn json(&self, paper: &mut CliOutput) -> OpResult {
        tell_rebuilt(paper, self);
        each(paper, &self.items)?;
        paper.json(&self.counts)
    }

    fn fault(&self) -> OpResult {
        match (self.counts.unreadable, self.counts.unreadable_jobs) {
            (0, 0) => Ok(()),
            (0, _) => Err(OpFault::new(FaultKind::Failed, "the queue has what cannot be read; see above")),
            _ => Err(OpFault::new(FaultKind::Failed, "some sessions cannot be read; see above")),
        }
    }
}

fn tell_rebuilt(paper: &mut CliOutput, checked: &CheckResult) {
    if let Some(rows) = checked.rebuilt {
        paper.say(format!("tasks.db made again from the folders: {}", count(rows, "session")));
    }
}

fn lines(finding: &CheckFinding) -> Vec<String> {
    match finding {
        CheckFinding::Store { store } => of_store(store),
        CheckFinding::Repaired { finding } => vec![finding.clone()],
        CheckFinding::Session { session, error } => vec![format!("{session}: {error}")],
        CheckFinding::Queue { queue } => vec![format!("the queue cannot be read: {}", queue.error)],
        CheckFinding::Job { job, task, finding, error } => {
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

impl Render for Added {
    fn text(&self, paper: &mut CliOutput) -> OpResult {
        paper.line(&self.key)?;
        let (name, user) = (&self.row.name, or_dash(self.row.user.as_ref()));
        paper.say(format!("key {name} of user {user}: shown this once, and kept as a digest only"));
        paper.say(
            "send it as Authorization: Bearer, x-api-key or x-komado-key; from now on every request needs one",
        );
        paper.say(format!("undo: {}", self.undo));
        Ok(())
    }
}

impl RenderList for KeyRow {
    fn list(page: &ResultPage<Self>, paper: &mut CliOutput) -> OpResult {
        if page.items.is_empty() {
            return paper.line("no keys: only this machine is served");
        }
        let heading = ["name", "user", "sees", "rate", "at a time", "expires", "made"];
        columns(paper, heading, &[], page.items.iter().map(key_cells))
    }
}

impl Render for Revoked {
    fn text(&self, paper: &mut CliOutput) -> OpResult {
        paper.line(format!("revoked {}", self.name))?;
        if self.left == 0 {
            paper.say(
                "that was the last one: programs on this machine need none now, and others are not served",
            );
        }
        Ok(())
    }
}

fn key_cells(key: &KeyRow) -> [String; 7] {
    let sees = match key.sees {
        Sees::All => "all".to_owned(),
        Sees::Own if key.sessions.is_empty() => "own".to_owned(),
        Sees::Own => format!("own, {}", key.sessions.join(", ")),
    };
    [
        key.name.clone(),
        or_dash(key.user.as_ref()),
        sees,
        or_dash(key.rate.map(|rate| format!("{rate}/s"))),
        or_dash(key.concurrency),
        or_dash(key.expires.as_deref().map(local)),
        local(&key.created_at),
    ]
}

impl Render for Replayed {
    fn text(&self, paper: &mut CliOutput) -> OpResult {
        let ReplayFigures { window, preset, report: sum, .. } = &self.sum;
        paper.prose(&format!(
            "{}, window {}, usable {}, preset {preset}",
            count(self.items.len() as u64, "conversation"),
            number(*window),
            number(self.usable)
        ))?;
        replay_table(self, paper.width).iter().try_for_each(|line| paper.fit(line))?;
        paper.prose(&format!(
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
        sum.refused_why.iter().try_for_each(|why| paper.prose(&format!("the first that was refused: {why}")))
    }

    fn json(&self, paper: &mut CliOutput) -> OpResult {
        each(paper, &self.items)?;
        paper.json(&self.sum)
    }

    fn fault(&self) -> OpResult {
        match &self.failed {
            Some(first) => Err(OpFault::new(first.exit(), first.message())),
            None if self.sum.report.is_clean() => Ok(()),
            None => {
                Err(OpFault::new(FaultKind::Failed, "a promise did not hold; the figures above say which"))
            }
        }
    }
}

/// Columns that the name of a conversation has at least.
const CONVERSATION: usize = 8;

/// A row for each conversation, and one for all; a name has the columns that the figures leave.
fn replay_table(replayed: &Replayed, room: usize) -> Vec<String> {
    let heading = ["calls", "sent", "raw", "peak", "edits", "breaks", "cost", "hidden", "faults"];
    let all = || replayed.items.iter().chain([&replayed.sum]);
    let figures = std::iter::once(heading.map(str::to_owned)).chain(all().map(figures));
    let figures = table(&figures.map(Vec::from).collect::<Vec<_>>(), &[0, 1, 2, 3, 4, 5, 6, 7, 8]);
    let taken = figures.iter().map(|line| width(line) + 2).max().unwrap_or(0);
    let names = all().map(|one| clip(&conversation(one), room.saturating_sub(taken).max(CONVERSATION)));
    let names = std::iter::once(String::new()).chain(names);
    table(&names.zip(figures).map(|(name, figures)| vec![name, figures]).collect::<Vec<_>>(), &[])
}

/// The name of its file.
fn conversation(figures: &ReplayFigures) -> String {
    let stem = |file: &str| Path::new(file).file_stem().unwrap_or_default().to_string_lossy().into_owned();
    tamed(&figures.file.as_deref().map_or_else(|| "all".to_owned(), stem))
}

fn figures(ReplayFigures { report: r, .. }: &ReplayFigures) -> [String; 9] {
    [
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
fn faults(r: &ReplayReport) -> u64 {
    let lost = u64::from(r.unrecoverable_bytes > 0);
    r.over_window + r.invalid + r.breaks_without_edit + r.not_restored + r.refused + lost
}

#[cfg(test)]
mod tests {
    use super::*;
    use komado_store::StoreHealthFigures;

    #[test]
    fn tokens_take_few_columns_in_a_list_of_models() {
        let written =
            [512, 4_096, 8_000, 16_385, 128_000, 999_999, 1_048_576, 2_000_000, 10_000_000].map(short);
        assert_eq!(written, ["512", "4.1k", "8k", "16k", "128k", "1M", "1.05M", "2M", "10M"]);
    }

    #[test]
    fn what_the_store_does_not_know_is_left_out() {
        let vitals = StoreHealthFigures {
            kind: "redis",
            place: "cache:6379".to_owned(),
            durability: "outlives its process".to_owned(),
            may_lose: true,
            sessions: Some(3),
            ..StoreHealthFigures::default()
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
