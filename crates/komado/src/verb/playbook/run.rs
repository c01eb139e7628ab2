//! `komado playbook run`: a playbook in this process, with the model of the settings.
//!
//! What it does is journaled like everything else: interrupted by Ctrl-C or by a power cut, `--session` goes on where it
//! stopped. The tools are those that lead back to what left the view, and those of the MCP servers of the settings.

use super::right;
use crate::app::App;
use crate::connect::Wishes;
use crate::fault::{Exit, Fault, Outcome};
use crate::mind::AppMind;
use crate::paper::say;
use crate::verb::change;
use crate::verb::chat::answer::{Answer as Printed, Undo};
use crate::verb::chat::interrupt::Interrupt;
use crate::verb::chat::talk::{Beginning, Talk};
use clap::Args as ClapArgs;
use komado_agent::mcp::Servers;
use komado_agent::playbook::{self, ABOUT, Audience, Ended, Playbook, Solo};
use komado_agent::tools::{Answer, Toolbox};
use komado_core::message::{Call, Message};
use komado_core::{Address, Role, ThreadId};
use komado_engine::turn::News;
use komado_provider::Cancel;
use komado_store::Mode;
use serde_json::{Map, Value, json};
use std::path::PathBuf;

#[derive(ClapArgs, Debug)]
pub(crate) struct Args {
    /// The playbook
    file: PathBuf,
    /// What is said first; a session that goes on needs nothing
    text: Vec<String>,
    /// A variable: JSON, or else text
    #[arg(long = "var", value_name = "NAME=VALUE")]
    vars: Vec<String>,
    /// The session to go on with; a new one when left out
    #[arg(long, value_name = "SESSION")]
    session: Option<Address>,
    #[command(flatten)]
    wishes: Wishes,
    #[command(flatten)]
    beginning: Beginning,
}

pub(crate) fn run(app: &mut App, args: Args) -> Outcome {
    let playbook = right(Some(&args.file))?;
    let text = args.text.join(" ");
    let vars = variables(&args.vars, &text)?;
    let talk = Talk::open(app, args.session.as_ref(), args.wishes, args.beginning)?;
    if args.session.is_none() {
        say(format!("session: {}", talk.name()));
    }
    say_first(app, &talk, text)?;
    let ended = follow(app, &talk, &playbook, &vars).map_err(|fault| {
        fault.and(format!("`komado playbook run {} --session {}` goes on", args.file.display(), talk.name()))
    })?;
    tell(app, &talk, &ended)
}

/// The variables that are given: those of the command line, and the task.
fn variables(given: &[String], text: &str) -> Outcome<Map<String, Value>> {
    let title = text.lines().next().unwrap_or_default();
    let mut vars = Map::new();
    vars.insert("task".into(), json!({ "title": title, "text": text }));
    for pair in given {
        let Some((name, value)) = pair.split_once('=').filter(|(name, _)| !name.is_empty()) else {
            return Err(Fault::usage(format!("--var takes NAME=VALUE, not {pair:?}")));
        };
        let value = serde_json::from_str(value).unwrap_or_else(|_| Value::String(value.to_owned()));
        vars.insert(name.to_owned(), value);
    }
    Ok(vars)
}

/// Says the first words, unless the playbook was begun already.
fn say_first(app: &App, talk: &Talk, text: String) -> Outcome {
    if text.trim().is_empty() {
        return Ok(());
    }
    let mut thread = app.open(talk.found(), Mode::Write)?;
    if thread.noted(ABOUT)?.is_some() {
        return Err(Fault::usage("the session goes on where its playbook stopped: leave the text out"));
    }
    thread.say(Message::text(Role::User, text))?;
    change::settle(&mut thread);
    Ok(())
}

fn follow(app: &App, talk: &Talk, playbook: &Playbook, vars: &Map<String, Value>) -> Outcome<Ended> {
    let interrupt = Interrupt::listen();
    let watch = interrupt.watch();
    let cancel = watch.cancel();
    let mut tools = toolbox(app, &cancel)?;
    let mut mind = AppMind::new(app, &talk.connection, talk.wishes.clone());
    let printed = match app.paper.json {
        true => Printed::for_program(talk.found()),
        false => Printed::new(talk.found(), Undo::Shell),
    };
    let mut screen = Screen { printed, is_quiet: app.paper.json };
    let limits = app.config.agent.limits;
    let mut hands = Solo::new(&mut mind, &mut tools, limits, cancel, &mut screen);
    let ended = playbook::run(playbook, &talk.found().session, vars, &mut hands);
    screen.printed.end()?;
    ended.map_err(fault)
}

/// The tools of the MCP servers of the settings.
fn toolbox(app: &App, cancel: &Cancel) -> Outcome<Toolbox> {
    let servers = &app.config.agent.servers;
    if servers.is_empty() {
        return Ok(Toolbox::default());
    }
    let servers =
        Servers::open(servers, cancel).map_err(|error| Fault::new(Exit::Failed, error.to_string()))?;
    Ok(Toolbox::default().with(servers))
}

fn fault(error: komado_agent::Error) -> Fault {
    match error {
        komado_agent::Error::Engine(error) => error.into(),
        komado_agent::Error::Playbook(error) => Fault::input(error.to_string()),
        other => Fault::new(Exit::Failed, other.to_string()),
    }
}

fn tell(app: &mut App, talk: &Talk, ended: &Ended) -> Outcome {
    if app.paper.json {
        app.paper.json(&json!({
            "session": talk.found().session.as_str(),
            "node": ended.node,
            "status": if ended.is_good { "completed" } else { "failed" },
            "result": ended.result,
            "vars": ended.vars,
        }))?;
    } else {
        say(format!("ended at {}", ended.node));
        app.paper.line(&ended.result)?;
    }
    if ended.is_good {
        return Ok(());
    }
    app.paper.flush()?;
    Err(Fault::new(Exit::Failed, format!("the playbook ended at {}, which says that it failed", ended.node)))
}

/// Shows what happens.
struct Screen {
    printed: Printed,
    is_quiet: bool,
}

impl Audience for Screen {
    fn node(&mut self, id: &str, label: Option<&str>, thread: &ThreadId) {
        if !self.is_quiet {
            let label = label.map(|label| format!("  {label}")).unwrap_or_default();
            say(format!("[{thread}] {id}{label}"));
        }
    }

    fn news(&mut self, news: News<'_>) {
        self.printed.take(news);
    }

    fn tool(&mut self, call: &Call, answer: &Answer) {
        if !self.is_quiet {
            say(format!("  {} {}", call.name, if answer.is_error { "went wrong" } else { "answered" }));
        }
    }
}
