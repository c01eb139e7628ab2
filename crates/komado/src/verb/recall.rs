//! `komado recall`: find again what was said, whether or not the model still sees it.

use crate::app::App;
use crate::fault::{Fault, Outcome};
use crate::paper::say;
use crate::render;
use clap::Args as ClapArgs;
use komado_engine::recall::How;
use komado_ops::Page;
use komado_ops::address::AtMoment;
use komado_ops::recall::{Recall, RecallSession, Recalled, Search};

#[derive(ClapArgs, Debug)]
#[command(
    override_usage = "komado recall [OPTIONS] ADDRESS QUERY...\n       komado recall [OPTIONS] (--user NAME | --all) QUERY..."
)]
pub(crate) struct Args {
    /// The session, SESSION/THREAD or SESSION@SEQ, and what to look for; with --user or --all only that
    #[arg(required = true, num_args = 1.., value_names = ["ADDRESS", "QUERY"])]
    words: Vec<String>,
    #[command(flatten)]
    search: Search,
    /// Look for the text as it stands, the last entry first
    #[arg(long, conflicts_with = "regex")]
    exact: bool,
    /// Look for a regular expression, the last entry first
    #[arg(long)]
    regex: bool,
    /// Search all sessions of this user
    #[arg(long, value_name = "NAME", conflicts_with = "all")]
    user: Option<String>,
    /// Search every session
    #[arg(long)]
    all: bool,
}

pub(crate) fn run(app: &mut App, mut args: Args) -> Outcome {
    let is_wide = args.all || args.user.is_some();
    let address = (!is_wide).then(|| args.words.remove(0));
    if args.words.is_empty() {
        return Err(Fault::usage("say where to look and what for: komado recall SESSION QUERY"));
    }
    let mode = match (args.exact, args.regex) {
        (true, _) => How::Exact,
        (_, true) => How::Regex,
        _ => How::Ranked,
    };
    let search = Search { query: args.words.join(" "), mode: Some(mode), ..args.search };
    match address {
        Some(address) => in_session(app, address.parse().map_err(Fault::input)?, search),
        None => {
            let found = app.run(Recall { search, user: args.user, ..Recall::default() })?;
            print(app, &found, is_wide, mode == How::Ranked)
        }
    }
}

/// Searches one session.
pub(super) fn in_session(app: &mut App, at: AtMoment, search: Search) -> Outcome {
    let is_ranked = search.mode.is_none_or(|mode| mode == How::Ranked);
    let found = app.run(RecallSession { at, search })?;
    print(app, &found, false, is_ranked)
}

fn print(app: &mut App, found: &Page<Recalled>, is_wide: bool, is_ranked: bool) -> Outcome {
    render::recall::print(&mut app.paper, found, is_wide)?;
    match found.items.first() {
        _ if app.paper.json => {}
        Some(best) => say(format!("read one in full: komado log {} -n 1 --full", best.address)),
        None if is_ranked => say("nothing was found; try other words, or fewer filters"),
        None => say("nothing was found as it stands; without --exact or --regex words are enough"),
    }
    Ok(())
}
