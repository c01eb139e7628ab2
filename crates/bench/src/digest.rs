//! What does a digest keep of a conversation, and does keeping its last messages keep more?
//!
//! The first four fifths of each conversation are the span, the rest shows which facts were needed again. A judge that
//! shares no code with the digest finds the facts; the digest and two peers then get the same room.

mod peers;
mod score;
mod steps;

use super::heading;
use super::machine::Machine;
use crate::context::BenchContext;
use crate::conversations;
use crate::error::{Error, Result};
use crate::facts::{Judge, one_line, said};
use crate::output::progress;
use clap::Args as ClapArgs;
use komado_core::message::Message;
use komado_core::notation::shown;
use komado_core::{Digest, Meter};
use peers::{DigestSide, both_sides, side};
use score::DigestReport;
use std::path::{Path, PathBuf};
use std::time::Instant;

const LIMITS: [u64; 3] = [500, 1000, 2000];
/// Parts of the span that are digested one after the other.
const GENERATIONS: usize = 5;

#[derive(ClapArgs, Debug)]
pub(crate) struct Args {
    /// Conversations as OpenAI chat lines, or folders of them
    #[arg(value_name = "FILE|DIR", required = true)]
    files: Vec<PathBuf>,
    /// Print each conversation's digest at its largest limit
    #[arg(long)]
    show: bool,
}

pub(crate) fn run(context: &mut BenchContext, args: Args) -> Result {
    let files = conversations::list(&args.files)?;
    let judge = Judge::new().map_err(|e| Error::failed(e.to_string()))?;
    let machine = Machine::here(Path::new("."))?;
    let mut report = DigestReport::default();
    let bar = progress("digesting", files.len() as u64);
    for file in &files {
        let messages = conversations::read(file)?;
        if args.show {
            context.out.line(shown(&format!("==== {}", file.display())))?;
            context.out.line(shown(&digest(span_of(&messages)).text(LIMITS[LIMITS.len() - 1])))?;
        }
        weigh(&mut report, &judge, &messages);
        bar.inc(1);
    }
    bar.finish_and_clear();
    if context.out.json {
        return context.out.write_json(&report.as_json(&machine));
    }
    heading(&mut context.out, &machine)?;
    report.as_text(&mut context.out)
}

/// The files named, and those with lines in the folders named.
fn span_of(messages: &[Message]) -> &[Message] {
    &messages[..messages.len() * 4 / 5]
}

fn digest(span: &[Message]) -> Digest {
    let mut digest = Digest::new(Meter::O200k);
    for (seq, message) in (1..).zip(span) {
        digest.take(seq, message);
    }
    digest
}

/// The digest of the span's last part and of the digest of all before it, and so on.
fn generations(span: &[Message], limit: u64) -> String {
    let mut text = String::new();
    let mut seq = 0;
    for part in span.chunks(span.len().div_ceil(GENERATIONS).max(1)) {
        let mut digest = Digest::new(Meter::O200k);
        digest.earlier(&text);
        for message in part {
            seq += 1;
            digest.take(seq, message);
        }
        text = digest.text(limit);
    }
    text
}

/// A digest as its reader understands it: where its title says what `./` stands for, paths are told from there.
fn rooted(page: &str) -> String {
    let title = page.lines().next().unwrap_or_default();
    let root = ["; ./ is ", "、./ は "].iter().find_map(|mark| title.split_once(mark));
    match root.and_then(|(_, rest)| rest.split_once([';', '、'])) {
        Some((root, _)) => page.replace(" ./", &format!(" {root}/")),
        None => page.to_owned(),
    }
}

/// Judges one conversation.
fn weigh(report: &mut DigestReport, judge: &Judge, messages: &[Message]) {
    let span = span_of(messages);
    let (facts, later) = (judge.facts(span), judge.facts(&messages[span.len()..]));
    let texts: Vec<String> = span.iter().map(said).collect();
    let tokens: u64 = texts.iter().map(|text| Meter::O200k.text(text)).sum();
    let start = Instant::now();
    let digest = digest(span);
    report.seconds += start.elapsed().as_secs_f64();
    report.bytes += texts.iter().map(|text| text.len() as u64).sum::<u64>();
    for (row, limit) in report.rows.iter_mut().zip(LIMITS) {
        if tokens <= limit {
            row.whole += 1;
            continue;
        }
        let text = digest.text(limit);
        row.conversations += 1;
        row.digest_tokens += Meter::O200k.text(&text);
        row.span_tokens += tokens;
        row.steps.add(&text, span);
        let pages =
            [text, generations(span, limit), side(&texts, limit, DigestSide::End), both_sides(&texts, limit)];
        row.compare(&pages.map(|page| one_line(&rooted(&page))), &facts, &later);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use komado_core::message::Role;

    #[test]
    fn a_path_below_the_root_of_a_title_is_read_whole() {
        let page =
            "[digest @1..@9: 9 messages; ./ is /w/app; look details up by @seq or ref]\n- ./src/a.rs @3";
        assert!(rooted(page).contains("- /w/app/src/a.rs @3"));
        assert_eq!(rooted("see ./src/a.rs"), "see ./src/a.rs");
    }

    #[test]
    fn a_rule_at_the_start_is_kept_by_the_digest_and_not_by_the_last_messages() {
        let mut messages = vec![Message::text(Role::User, "You must never touch Cargo.lock")];
        let talk =
            |n: u32| Message::text(Role::Assistant, format!("step {n} is done and all is well, I go on now"));
        messages.extend((0..200).map(talk));
        let mut report = DigestReport::default();
        weigh(&mut report, &Judge::new().unwrap(), &messages);
        let json = report.as_json(&Machine::here(Path::new(".")).unwrap());
        let rules = &json["limits"][0]["classes"][0];
        assert_eq!((&rules["class"], &rules["facts"]), (&"rules".into(), &1.into()));
        assert_eq!(rules["kept"], serde_json::json!([100.0, 100.0, 0.0, 100.0]));
    }
}
