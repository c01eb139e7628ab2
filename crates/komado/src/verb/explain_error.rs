//! `komado explain-error`: what a provider's error is taken for, as the gateway and the engine would take it.

use crate::app::App;
use crate::fault::{Fault, Outcome};
use crate::paper::{Ink, number};
use clap::Args as ClapArgs;
use komado_provider::overflow::{Remedy, Verdict, classify};
use serde_json::json;
use std::io::Read;

/// The largest body taken in; an error of a server is a few lines.
const LARGEST: u64 = 16 << 20;

#[derive(ClapArgs, Debug)]
pub(crate) struct Args {
    /// The HTTP status the body came with; 200 for an error inside a stream
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(100..=599))]
    status: u16,
}

pub(crate) fn run(app: &mut App, args: Args) -> Outcome {
    let mut bytes = Vec::new();
    std::io::stdin().lock().take(LARGEST + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > LARGEST {
        return Err(Fault::input(
            "standard input: more than 16 MB; give the error alone, without what came before it",
        ));
    }
    let verdict = classify(args.status, &String::from_utf8_lossy(&bytes));
    if app.paper.json {
        return app.paper.json(&json!({
            "overflow": verdict.overflow,
            "limit": verdict.limit,
            "actual": verdict.actual,
            "output": verdict.output,
            "remedy": verdict.remedy.name(),
            "why": verdict.why,
        }));
    }
    tell(app, &verdict)
}

fn tell(app: &mut App, verdict: &Verdict) -> Outcome {
    let (ink, title) =
        if verdict.overflow { (Ink::Yellow, "overflow of the window") } else { (Ink::Bold, "no overflow") };
    let title = app.paper.ink(ink, title);
    app.paper.line(title)?;
    let sizes = [("limit", verdict.limit), ("sent", verdict.actual), ("answer asked for", verdict.output)];
    for (name, size) in sizes {
        if let Some(size) = size {
            app.paper.line(format!("  {name:<17} {} tokens", number(size)))?;
        }
    }
    let remedy = match verdict.remedy {
        Remedy::Shrink => Some("make the conversation smaller: `komado fit`"),
        Remedy::LowerMaxTokens => Some("ask for a shorter answer; what was sent fits"),
        Remedy::None => None,
    };
    if let Some(remedy) = remedy {
        app.paper.line(format!("  {:<17} {remedy}", "what helps"))?;
    }
    app.paper.line(format!("  {:<17} {}", "why", verdict.why))
}
