//! The figures of `komado-bench plan` side by side, for people and for programs.

use super::super::machine::Machine;
use super::super::{command, round};
use super::filling::PlanSession;
use super::run::{PlanFigures, PlanRun};
use super::{Args, PLAN_WINDOW, Report, Session, WIDE};
use crate::error::Result;
use crate::output::{BenchOutput, number};
use serde_json::{Value, json};

/// One figure of a deed: its name for programs and for people, and how it is read.
type Figure = (&'static str, &'static str, fn(&PlanFigures) -> f64);

const FIGURES: [Figure; 7] = [
    ("cpu_us", "CPU µs", |f| f.cpu_us),
    ("lookups", "entries looked up", |f| f.lookups as f64),
    ("reads", "reading calls", |f| f.reads as f64),
    ("bytes_read", "bytes read", |f| f.bytes_read as f64),
    ("allocations", "allocations", |f| f.heap.times as f64),
    ("allocated_bytes", "bytes allocated", |f| f.heap.bytes as f64),
    ("peak_bytes", "most bytes held at once", |f| f.heap.peak as f64),
];

/// What the peer is.
const PEER: &str = "a JSONL reader that parses every line and keeps the last 200,000 tokens";

/// How often `b` is in `a`.
fn ratio(a: f64, b: f64) -> f64 {
    if a == b { 1.0 } else { a / b.max(f64::MIN_POSITIVE) }
}

impl Report {
    /// By how many of the longest messages the peak of `deed` grows when messages are ten times as long.
    fn messages_held(&self, deed: PlanRun) -> f64 {
        let peak = |session: &Session| session.took(deed).heap.peak as f64;
        let longest = |session: &Session| session.built.longest as f64;
        let one = longest(&self.wide) - longest(&self.short);
        round((peak(&self.wide) - peak(&self.short)) / one.max(1.0))
    }

    /// How much more of a figure the long session takes than the short one.
    fn growth(&self, deed: PlanRun, read: fn(&PlanFigures) -> f64) -> f64 {
        ratio(read(self.long.took(deed)), read(self.short.took(deed)))
    }
}

pub(super) fn as_json(args: &Args, machine: &Machine, report: &Report) -> Value {
    let Report { short, long, wide, .. } = report;
    let (plan, peer) = (long.took(PlanRun::Plan), long.took(PlanRun::Peer));
    let sessions = [short, long, wide].map(built_json);
    let mut all = json!({
        "command": command(),
        "machine": machine,
        "entries": long.built.entries,
        "sample": args.sample,
        "window": PLAN_WINDOW,
        "rungs": plan.made.rungs,
        "tokens_after": plan.made.tokens,
        "sessions": sessions,
        "growth": round(ratio(long.whole(), short.whole())),
        "ratio_to_peer": long.whole() / peer.cpu_us,
        "peak_ratio_to_peer": round(ratio(long.peak() as f64, peer.heap.peak as f64)),
        "peer_name": PEER,
        "fill_seconds": round(report.fill_seconds),
    });
    for deed in PlanRun::ALL {
        let each = |of: &dyn Fn(fn(&PlanFigures) -> f64) -> f64| -> Value {
            FIGURES.iter().map(|(key, _, read)| ((*key).to_owned(), json!(round(of(*read))))).collect()
        };
        all[deed.name()] = json!({
            "short": each(&|read| read(short.took(deed))),
            "long": each(&|read| read(long.took(deed))),
            "wide": each(&|read| read(wide.took(deed))),
            "growth": each(&|read| report.growth(deed, read)),
            "messages_held": report.messages_held(deed),
        });
    }
    all
}

fn built_json(session: &Session) -> Value {
    let PlanSession { name, entries, bytes, items, tokens, trimmed, longest, .. } = &session.built;
    let written = session.took(PlanRun::Render).made.written;
    json!({ "name": name, "entries": entries, "bytes": bytes, "view_items": items, "view_tokens": tokens,
            "view_trimmed": trimmed, "view_bytes": written, "longest_line": longest })
}

pub(super) fn as_text(out: &mut BenchOutput, report: &Report) -> Result {
    let Report { short, long, wide, .. } = report;
    for session in [short, long, wide] {
        let PlanSession { name, entries, bytes, items, tokens, trimmed, longest, .. } = &session.built;
        out.line(format!(
            "{name:<8} {} entries, {:.1} MB; the model sees {} things, {} of them trimmed, {} tokens; longest line {} B",
            number(*entries),
            *bytes as f64 / 1e6,
            number(*items),
            number(*trimmed),
            number(*tokens),
            number(*longest)
        ))?;
    }
    let made = &long.took(PlanRun::Plan).made;
    let (window, rungs, tokens) = (number(PLAN_WINDOW), made.rungs.join(", "), number(made.tokens));
    out.line(format!("planned  for a window of {window} tokens: {rungs}; down to {tokens}"))?;
    out.line("")?;
    out.table(&rows(report), &[1, 2, 3, 4])?;
    out.line("")?;
    against(out, report)
}

fn rows(report: &Report) -> Vec<Vec<String>> {
    let Report { short, long, wide, .. } = report;
    let entries = |session: &Session| format!("{} entries", number(session.built.entries));
    let mut rows = vec![vec![
        String::new(),
        entries(short),
        entries(long),
        "growth".into(),
        format!("messages ×{WIDE}"),
    ]];
    for deed in PlanRun::ALL {
        rows.push(vec![deed.title().to_owned()]);
        for (_, name, read) in FIGURES {
            let all = [short, long, wide].map(|session| read(session.took(deed)));
            // What is nothing everywhere needs no line; a byte is what the kernel's own counters grow by.
            if all.iter().all(|n| n.fract() == 0.0 && *n < 2.0) {
                continue;
            }
            let [a, b, c] = all.map(figure);
            rows.push(vec![format!("  {name}"), a, b, format!("×{:.2}", report.growth(deed, read)), c]);
        }
    }
    rows
}

fn figure(n: f64) -> String {
    if n < 100.0 && n.fract() != 0.0 { format!("{n:.2}") } else { number(n.round() as u64) }
}

fn against(out: &mut BenchOutput, report: &Report) -> Result {
    let (long, peer) = (&report.long, report.long.took(PlanRun::Peer));
    let growth = out.bold(&format!("×{:.2}", ratio(long.whole(), report.short.whole())));
    out.line(format!(
        "growth     {growth} on the processor to open, plan and render; ×{:.0} for the peer",
        report.growth(PlanRun::Peer, |f| f.cpu_us)
    ))?;
    out.line(format!(
        "against    ×{:.4} of the peer's time, ×{:.2} of its memory; the peer is {PEER}",
        long.whole() / peer.cpu_us,
        ratio(long.peak() as f64, peer.heap.peak as f64)
    ))?;
    out.line(format!(
        "bodies     {WIDE} times as long: plan holds {:.1} of the longest messages more, render {:.1}",
        report.messages_held(PlanRun::Plan),
        report.messages_held(PlanRun::Render)
    ))?;
    out.line(format!("filling    {:.1} s", report.fill_seconds))
}
