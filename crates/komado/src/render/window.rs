//! The window as people see it: a gauge and what fills it, edits that were made, and what two moments differ in.

use super::sessions::{at_home, dollars, rounded};
use super::{Render, address, each};
use crate::cli_output::{CliOutput, Style, count, number};
use komado_core::Span;
use komado_core::budget::{BudgetRule, BudgetVerdict};
use komado_core::notation::{tamed, width};
use komado_engine::fit::Resliced;
use komado_ops::OpResult;
use komado_ops::thread::WindowShare;
use komado_ops::window::{Condensed, ContextUse, Differences, FittedWindow, MadeEdit, Parts, SummaryWritten};

impl Render for ContextUse {
    fn text(&self, paper: &mut CliOutput) -> OpResult {
        let name = format!("{}/{}@{}", self.session, self.thread, self.seq);
        paper.prose(&format!("{}  {}", paper.ink(Style::Bold, &name), self.status))?;
        about(self).iter().try_for_each(|line| paper.fit(line))?;
        let cells = paper.width.saturating_sub(40).clamp(10, 60);
        paper.line(gauge(paper, &self.parts, self.window, cells))?;
        for line in legend(paper, &self.parts) {
            paper.line(line)?;
        }
        if let Some(share) = &self.share {
            paper.fit(&format!("  share: {}", share_line(share)))?;
            paper.fit(&format!("  seen of the threads above: {}", share_seen(share)))?;
        }
        self.details().iter().try_for_each(|line| paper.fit(line))
    }
}

impl Render for FittedWindow {
    fn text(&self, paper: &mut CliOutput) -> OpResult {
        if !self.reverted.is_empty() {
            let edits: Vec<String> = self.reverted.iter().map(|seq| format!("@{seq}")).collect();
            paper.prose(&format!("reverted, because there is room again: {}", edits.join(", ")))?;
            if !self.dry_run {
                paper.say(format!("undo: komado fit {}", address(&self.session, &self.thread)));
            }
        }
        paper.prose(&format!("{}: {}", verdict_words(&self.verdict), self.verdict.numbers()))?;
        self.declined.iter().for_each(|why| paper.say(format!("komado: no summary: {why}")));
        self.slices.iter().for_each(|cut| paper.say(slices_line(cut)));
        for edit in &self.edits {
            paper.prose(&edit_line(edit))?;
        }
        if !self.dry_run {
            // The newest first: one that lies under a later edit cannot be taken back alone.
            self.edits.iter().rev().for_each(|edit| paper.say(format!("undo: {}", edit.undo)));
        }
        if self.edits.is_empty() && self.slices.is_empty() {
            let nothing = match self.verdict.rule {
                BudgetRule::Fits => "there is room",
                BudgetRule::HardGate => "nothing more can leave; the answer has less room than it should",
                _ => "nothing is worth an edit yet",
            };
            let tense = if self.dry_run { "would be" } else { "was" };
            paper.prose(&format!("{nothing}; nothing {tense} changed"))?;
        } else if self.dry_run {
            paper.say("this is a dry run: nothing was changed");
        }
        Ok(())
    }
}

impl Render for Condensed {
    fn text(&self, paper: &mut CliOutput) -> OpResult {
        match self {
            Self::Given(changed) => changed.text(paper),
            Self::Written(SummaryWritten { fitted, .. }) => fitted.text(paper),
        }
    }
}

/// What the session is about, who talks in it, and what it cost.
fn about(used: &ContextUse) -> Vec<String> {
    let mut lines: Vec<String> = used.title.iter().map(|title| format!("  {}", tamed(title))).collect();
    let mut parts: Vec<String> = used.agent.iter().map(|agent| tamed(agent)).collect();
    parts.extend(used.project.iter().map(|path| tamed(&at_home(path))));
    parts.extend(used.model.iter().map(|model| tamed(model)));
    match &used.cost {
        Some(cost) => parts.push(format!("{} (prices of {})", dollars(cost.usd), cost.prices_of)),
        None if used.total_tokens > 0 => parts.push("price not known".to_owned()),
        None => {}
    }
    let saved: u64 =
        used.edits_in_force.iter().map(|edit| edit.tokens_before.saturating_sub(edit.tokens_after)).sum();
    if saved > 0 {
        parts.push(format!("edits save {} tokens", rounded(saved)));
    }
    lines.extend((!parts.is_empty()).then(|| format!("  {}", parts.join(" · "))));
    lines
}

/// What a verdict says of the window; of a mark, where it is.
fn verdict_words(verdict: &BudgetVerdict) -> String {
    match verdict.rule {
        BudgetRule::SoftMark | BudgetRule::Threshold => {
            let percent = 100.0 * verdict.act_at as f64 / verdict.window.max(1) as f64;
            format!("over the mark at {percent:.0} % of the window")
        }
        rule => rule.words().to_owned(),
    }
}

/// Slices that were cut anew, in one line.
pub(crate) fn slices_line(cut: &Resliced) -> String {
    let (before, after) = (number(u64::from(cut.before)), number(u64::from(cut.after)));
    let window = number(cut.window);
    format!("slices of the threads above: {before} → {after} tokens for a window of {window} (@{})", cut.seq)
}

/// One edit, in one line.
pub(crate) fn edit_line(edit: &MadeEdit) -> String {
    let (before, after) = (number(edit.tokens_before), number(edit.tokens_after));
    format!("@{} {:<8} {}: {before} → {after} tokens", edit.seq, edit.rung, what(edit))
}

fn what(edit: &MadeEdit) -> String {
    let n = edit.spans.len() as u64;
    match (edit.rung, &edit.spans[..]) {
        ("trim", _) => format!("{} left out", count(n, "old output")),
        ("clip", _) => format!("{} shown in part", count(n, "message")),
        (_, [[from, to]]) => format!("entries {}", Span::new(*from, *to)),
        (_, [[from, _], .., [_, to]]) => format!("entries {from}..{to} in {n} spans"),
        (_, []) => String::new(),
    }
}

impl Render for Differences {
    fn text(&self, paper: &mut CliOutput) -> OpResult {
        for one in &self.items {
            let (sign, ink) = if one.change == "gone" { ("-", Style::Red) } else { ("+", Style::Green) };
            paper.line(paper.ink(ink, &format!("{sign} {}", one.text)))?;
        }
        paper.say(format!("{} → {} tokens", number(self.tokens_before), number(self.tokens_after)));
        Ok(())
    }

    fn json(&self, paper: &mut CliOutput) -> OpResult {
        each(paper, &self.items)
    }
}

/// How each part of a window is drawn, in the order of [`Parts::named`].
const CELLS: [(char, Style); 7] = [
    ('█', Style::Cyan),
    ('▚', Style::Cyan),
    ('█', Style::Dim),
    ('▓', Style::Green),
    ('▒', Style::Yellow),
    ('░', Style::Bold),
    ('■', Style::Red),
];

/// One line: a bar, the share used, tokens of the window.
pub(crate) fn gauge(paper: &CliOutput, parts: &Parts, window: Option<u32>, cells: usize) -> String {
    let used = parts.tokens();
    let Some(window) = window.map(u64::from) else {
        return format!("{} in all; the window is not set", count(used, "token"));
    };
    let percent = 100.0 * used as f64 / window as f64;
    let share = format!("{percent:>5.1} %");
    let ink = match percent {
        p if p > 100.0 => Style::Red,
        p if p >= 80.0 => Style::Yellow,
        _ => Style::Green,
    };
    let bar = bar(paper, parts, window, cells);
    format!("▕{bar}▏ {} {} of {}", paper.ink(ink, &share), number(used), number(window))
}

/// Columns of what stands around a gauge's cells and numbers.
const GAUGE: usize = 15;

/// The most cells that leave a gauge as wide as `room`; at least one.
pub(crate) fn gauge_cells(room: usize, tokens: u64, window: Option<u32>) -> usize {
    let numbers = number(tokens).len() + window.map_or(0, |window| number(u64::from(window)).len());
    room.saturating_sub(numbers + GAUGE).max(1)
}

/// How full a window is, short enough to stand before what a person types: a bar and the share used.
pub(crate) fn short_gauge(tokens: u64, window: u64, cells: usize) -> String {
    const EIGHTHS: [char; 8] = [' ', '▏', '▎', '▍', '▌', '▋', '▊', '▉'];
    let share = tokens as f64 / window.max(1) as f64;
    let filled = ((share * cells as f64 * 8.0).floor() as usize).min(cells * 8);
    let mut bar: String = std::iter::repeat_n('█', filled / 8).collect();
    if filled < cells * 8 {
        bar.push(EIGHTHS[filled % 8]);
        bar.extend(std::iter::repeat_n(' ', cells - filled / 8 - 1));
    }
    format!("▕{bar}▏ {:.0} %", 100.0 * share)
}

/// The bar: a run of cells for each part, then what is free.
fn bar(paper: &CliOutput, parts: &Parts, window: u64, cells: usize) -> String {
    let scale = window.max(parts.tokens()).max(1);
    let mut drawn = String::new();
    let (mut sum, mut filled) = (0u64, 0usize);
    for ((_, tokens), (cell, ink)) in parts.named().into_iter().zip(CELLS) {
        sum += tokens;
        let upto = (sum as f64 / scale as f64 * cells as f64).round() as usize;
        let run: String = std::iter::repeat_n(cell, upto.saturating_sub(filled)).collect();
        filled = filled.max(upto);
        if !run.is_empty() {
            drawn.push_str(&paper.ink(ink, &run));
        }
    }
    drawn.push_str(&" ".repeat(cells.saturating_sub(filled)));
    drawn
}

/// The parts as lines: what, tokens, share of what is used.
fn legend(paper: &CliOutput, parts: &Parts) -> Vec<String> {
    let used = parts.tokens().max(1) as f64;
    let row = |((name, tokens), (cell, ink)): ((&str, u64), (char, Style))| {
        let share = 100.0 * tokens as f64 / used;
        format!("  {} {name:<18} {:>12}  {share:>5.1} %", paper.ink(ink, &cell.to_string()), number(tokens))
    };
    parts.named().into_iter().zip(CELLS).filter(|((_, tokens), _)| *tokens > 0).map(row).collect()
}

/// Which thread has how much, the root first.
pub(super) fn share_line(share: &WindowShare) -> String {
    share_line_within(share, usize::MAX)
}

/// The same in `room` columns: where it is longer, the nearest threads above are left out, and then what is lent. The own
/// share stays.
pub(super) fn share_line_within(share: &WindowShare, room: usize) -> String {
    let mut above: Vec<String> =
        share.above.iter().map(|one| format!("{} {}", number(one.share), one.thread)).collect();
    let own = format!("{} own", number(share.own));
    let line = |above: &[String], moved: &str| {
        let parts: Vec<&str> = above.iter().chain([&own]).map(String::as_str).collect();
        format!("{}{moved}", parts.join(" + "))
    };
    let moved = moved(share);
    let mut whole = line(&above, &moved);
    while width(&whole) > room && above != ["…"] {
        match above.as_slice() {
            [.., _, last] if last == "…" => drop(above.remove(above.len() - 2)),
            [.., _] => above.last_mut().into_iter().for_each(|last| "…".clone_into(last)),
            [] => break,
        }
        whole = line(&above, &moved);
    }
    if width(&whole) > room { line(&above, "") } else { whole }
}

/// What is seen of the threads above, of their shares.
pub(super) fn share_seen(share: &WindowShare) -> String {
    let one = share
        .above
        .iter()
        .map(|one| format!("{}@{} {} of {}", one.thread, one.at, number(one.used), number(one.share)));
    one.collect::<Vec<_>>().join(", ")
}

/// What is lent, or owed.
fn moved(share: &WindowShare) -> String {
    let lent = (share.lent > 0).then(|| format!("{} of it lent by the threads above", number(share.lent)));
    let owed = (share.owed > 0).then(|| format!("{} more used above than their shares", number(share.owed)));
    let moved: Vec<String> = lent.into_iter().chain(owed).collect();
    if moved.is_empty() { String::new() } else { format!(" ({})", moved.join(", ")) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use komado_core::ThreadId;
    use komado_core::journal::{Ratio, Share, Slice};
    use komado_engine::share::ThreadPortion;

    #[test]
    fn the_short_gauge_is_as_wide_whatever_it_shows() {
        for (tokens, shown) in [
            (0, "▕          ▏ 0 %"),
            (340, "▕███▍      ▏ 34 %"),
            (999, "▕█████████▉▏ 100 %"),
            (1_000, "▕██████████▏ 100 %"),
            (5_000, "▕██████████▏ 500 %"),
        ] {
            assert_eq!(short_gauge(tokens, 1_000, 10), shown);
        }
        assert_eq!(short_gauge(1, 0, 2), "▕██▏ 100 %");
    }

    fn slice(thread: &str, tokens: u32) -> Slice {
        let (thread, ratio) = (ThreadId::new(thread).unwrap(), Ratio::new(0.8).unwrap());
        Slice { thread, at: 3, ratio, keep: Vec::new(), replace: Vec::new(), head: String::new(), tokens }
    }

    #[test]
    fn the_example_of_the_seed_is_told_in_its_numbers() {
        let share = Share {
            thread: ThreadId::new("stelis_1_1").unwrap(),
            window: 100_000,
            slices: vec![slice("root", 5_000), slice("stelis_1", 17_000)],
            lends: true,
            anchor_tokens: None,
            chronicle_prompt: None,
            held_by: None,
        };
        let portion = ThreadPortion::new(share, None);
        let told = WindowShare::from(&portion);
        assert_eq!(
            share_line(&told),
            "20,000 root + 16,000 stelis_1 + 64,000 own (15,000 of it lent by the threads above, 1,000 more used above than their shares)"
        );
        assert_eq!(share_seen(&told), "root@3 5,000 of 20,000, stelis_1@3 17,000 of 16,000");
        assert_eq!((portion.room(), portion.window()), (78_000, 100_000));
        let small = ThreadPortion::new(portion.share.clone(), Some(5_000));
        assert_eq!((small.above(), small.room(), small.window()), (22_000, 0, 5_000));
        assert_eq!((told.above[1].share, told.own), (16_000, 64_000));
    }
}
