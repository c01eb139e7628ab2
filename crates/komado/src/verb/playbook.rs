//! `komado playbook`: look at the course of a task before it is followed, and follow it.

use super::ask::AnswerPrinter as Printed;
use crate::app::App;
use crate::cli_output::{count, say, text_of};
use crate::signals::Interrupt;
use komado_agent::playbook::RunListener;
use komado_agent::tools::ToolAnswer;
use komado_core::message::Call;
use komado_core::{Address, ThreadId};
use komado_engine::engine::ResolvedAddress;
use komado_engine::exchange::ExchangeEvent;
use komado_ops::choice::ModelArgs;
use komado_ops::playbook::{CheckPlaybooks, Follower, GraphPlaybook, RunPlaybook};
use komado_ops::{FaultKind, OpFault, OpResult, change};
use komado_provider::Cancel;
use serde::Serialize;
use serde_json::{Map, Value};
use std::path::PathBuf;

verbs! {
    pub(crate) enum PlaybookVerb {
        /// Check playbooks and list every problem
        Check(CheckPlaybooks) => check,
        /// Draw a playbook
        Graph(GraphArgs) => graph,
        /// Run a playbook in a new session, or continue one that stopped
        Run(RunPlaybookArgs) => follow,
    }
}

/// Prints what is wrong; an error when anything is.
fn check(app: &mut App, request: CheckPlaybooks) -> OpResult {
    let checked = app.run(request)?;
    app.print(&checked)?;
    let wrong = checked.items.iter().filter(|one| !one.ok).count();
    if wrong == 0 {
        return Ok(());
    }
    app.paper.flush()?;
    let all = count(checked.items.len() as u64, "playbook");
    Err(OpFault::input(match wrong {
        1 => format!("1 of {all} has problems"),
        _ => format!("{wrong} of {all} have problems"),
    }))
}

#[derive(clap::Args, Debug)]
pub(crate) struct GraphArgs {
    /// The playbook; the built-in one when left out
    file: Option<PathBuf>,
    /// Write a picture to this file; `-` for standard output
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
    /// Print a Mermaid flowchart, which GitHub and many editors draw
    #[arg(long, conflicts_with = "svg")]
    mermaid: bool,
}

/// A picture that was written.
#[derive(Serialize)]
struct Picture {
    name: String,
    svg: String,
}

fn graph(app: &mut App, args: GraphArgs) -> OpResult {
    let is_printed = args.svg.as_ref().is_some_and(|path| path.as_os_str() == "-");
    if is_printed && app.paper.json {
        return Err(OpFault::usage(
            "--json and --svg - both want standard output: write the picture to a file, or leave --json out",
        ));
    }
    let drawn = app.run(GraphPlaybook { file: args.file, mermaid: args.mermaid })?;
    if let Some(chart) = drawn.mermaid.as_ref().filter(|_| !app.paper.json) {
        return app.paper.line(chart);
    }
    let Some(path) = args.svg else { return app.print(&drawn) };
    if is_printed {
        return app.paper.line(drawn.svg.trim_end());
    }
    let svg = text_of(&path);
    std::fs::write(&path, drawn.svg)
        .map_err(|why| OpFault::new(FaultKind::Failed, format!("{svg}: {why}")))?;
    if app.paper.json {
        return app.paper.json(&Picture { name: drawn.name, svg });
    }
    say(format!("written: {svg}"));
    Ok(())
}

#[derive(clap::Args, Debug)]
pub(crate) struct RunPlaybookArgs {
    /// The playbook
    file: PathBuf,
    /// The first message; not needed when a session continues
    text: Vec<String>,
    /// A variable: JSON, or else text
    #[arg(long = "var", value_name = "NAME=VALUE")]
    vars: Vec<String>,
    /// The session to go on with; a new one when left out
    #[arg(long, value_name = "SESSION")]
    session: Option<Address>,
    /// The folder that the tools work in; when left out the one it began in, or one of the session's own
    #[arg(long, value_name = "FOLDER")]
    folder: Option<PathBuf>,
    /// The system prompt of a new session; the one for tasks when left out
    #[arg(long, value_name = "TEXT", conflicts_with = "session")]
    system: Option<String>,
    /// Leave the session running when the playbook has ended
    #[arg(long)]
    keep_open: bool,
    #[command(flatten)]
    model: ModelArgs,
}

fn follow(app: &mut App, args: RunPlaybookArgs) -> OpResult {
    let RunPlaybookArgs { file, text, vars, session, folder, system, keep_open, model } = args;
    let (vars, text) = (variables(&vars)?, text.join(" "));
    let session = session.map(|address| address.to_string());
    let interrupt = Interrupt::listen();
    let watch = interrupt.watch();
    let mut screen = PlaybookScreen {
        printed: Printed::onto(&app.paper),
        is_quiet: app.paper.json,
        cancel: watch.cancel(),
    };
    let ran = RunPlaybook { file, text, vars, session, folder, system, keep_open, model }
        .hear(&app.context, &mut screen);
    screen.printed.end()?;
    let ran = ran?;
    app.print(&ran)?;
    if ran.status == "completed" {
        return Ok(());
    }
    app.paper.flush()?;
    Err(OpFault::new(
        FaultKind::Failed,
        format!("the playbook ended at node {}, which means that it failed", ran.node),
    ))
}

/// The variables of the command line.
fn variables(given: &[String]) -> OpResult<Map<String, Value>> {
    let is_name = |name: &str| !name.is_empty() && !name.contains(|c: char| c == '.' || c.is_whitespace());
    let read = |pair: &String| {
        let Some((name, value)) = pair.split_once('=').filter(|(name, _)| is_name(name)) else {
            let why = "a name has no dots and no spaces; an object is given as JSON";
            return Err(OpFault::usage(format!("--var takes NAME=VALUE, not {pair:?}: {why}")));
        };
        let value = serde_json::from_str(value).unwrap_or_else(|_| Value::String(value.to_owned()));
        Ok((name.to_owned(), value))
    };
    given.iter().map(read).collect()
}

/// Shows what happens.
struct PlaybookScreen {
    printed: Printed,
    is_quiet: bool,
    cancel: Cancel,
}

impl Follower for PlaybookScreen {
    fn begun(&mut self, found: &ResolvedAddress, is_new: bool) {
        if is_new {
            say(format!("session: {}", change::name(found)));
        }
        self.printed.begin(found);
    }

    fn cancel(&mut self) -> Cancel {
        self.cancel.clone()
    }
}

impl RunListener for PlaybookScreen {
    fn node(&mut self, id: &str, label: Option<&str>, thread: &ThreadId) {
        if !self.is_quiet {
            self.printed.line_end();
            let label = label.map(|label| format!("  {label}")).unwrap_or_default();
            say(format!("[{thread}] {id}{label}"));
        }
    }

    fn news(&mut self, news: ExchangeEvent<'_>) {
        self.printed.take(news);
    }

    fn tool(&mut self, call: &Call, answer: &ToolAnswer) {
        if !self.is_quiet {
            say(format!("  {} {}", call.name, if answer.is_error { "went wrong" } else { "answered" }));
        }
    }
}
