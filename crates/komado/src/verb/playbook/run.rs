//! `komado playbook run`: a playbook in this process, with the model of the settings.
//!
//! What it does is journaled like everything else: interrupted by Ctrl-C or by a power cut, `--session` goes on where it
//! stopped. What was given on the command line is noted with the first words, so that going on needs none of it again.
//! The model has what it has in a task: the built-in tools in a folder, those of the MCP servers, those that lead back to
//! what left its view, and the rules of the folder. The session ends with the playbook.

use super::right;
use crate::app::App;
use crate::connect::{ROOMY, Wishes};
use crate::fault::{Exit, Fault, Outcome};
use crate::kit;
use crate::mind::AppMind;
use crate::paper::say;
use crate::verb::change;
use crate::verb::chat::answer::{Answer as Printed, Undo};
use crate::verb::chat::interrupt::Interrupt;
use crate::verb::chat::talk::{Beginning, Talk};
use clap::Args as ClapArgs;
use komado_agent::handler::{self, Brief};
use komado_agent::playbook::{self, Audience, Ended, Playbook, Solo};
use komado_agent::progress::Order;
use komado_agent::tools::{Answer, Toolbox};
use komado_core::journal::Setup;
use komado_core::message::{Call, Message};
use komado_core::raw::Raw;
use komado_core::{Address, Role, ThreadId};
use komado_engine::turn::News;
use komado_provider::Cancel;
use komado_store::Mode;
use serde_json::{Map, Value, json};
use std::path::PathBuf;

/// What the note of the command line is about.
const GIVEN: &str = "playbook_run";

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
    /// The folder that the tools work in; one of the session's own when left out
    #[arg(long, value_name = "FOLDER")]
    folder: Option<PathBuf>,
    /// The system prompt of a new session; the one for tasks when left out
    #[arg(long, value_name = "TEXT", conflicts_with = "session")]
    system: Option<String>,
    /// Leave the session running when the playbook has ended
    #[arg(long)]
    keep_open: bool,
    #[command(flatten)]
    wishes: Wishes,
}

pub(crate) fn run(app: &mut App, mut args: Args) -> Outcome {
    args.wishes.built_in = Some(ROOMY);
    let playbook = right(Some(&args.file))?;
    let given = variables(&args.vars)?;
    let interrupt = Interrupt::listen();
    let watch = interrupt.watch();
    let cancel = watch.cancel();
    if let Some(folder) = args.folder.as_ref().filter(|folder| !folder.is_dir()) {
        return Err(Fault::input(format!("--folder {}: there is no such folder", folder.display())));
    }
    let talk = Talk::open(app, args.session.as_ref(), args.wishes, Beginning::default())?;
    if args.session.is_none() {
        say(format!("session: {}", talk.name()));
    }
    let folder = match &args.folder {
        Some(folder) => std::path::absolute(folder)?,
        None => kit::folder::own(app, &talk.found().session, |_| Ok(()))?,
    };
    let mut tools = kit::tools(app, &folder, &cancel)?;
    let brief = kit::brief(app, &folder)?;
    let brief = Brief { system: args.system.or(brief.system), ..brief };
    let vars = begin(app, &talk, &handler::setup(&brief, &tools), &args.text.join(" "), given)?;
    let ended = follow(app, &talk, &playbook, &vars, &mut tools, &cancel).map_err(|fault| {
        fault.and(format!("`komado playbook run {} --session {}` goes on", args.file.display(), talk.name()))
    })?;
    if !args.keep_open {
        end(app, &talk, &ended)?;
    }
    tell(app, &talk, &ended)
}

/// The variables of the command line.
fn variables(given: &[String]) -> Outcome<Map<String, Value>> {
    let mut vars = Map::new();
    for pair in given {
        let is_name =
            |name: &str| !name.is_empty() && !name.contains(|c: char| c == '.' || c.is_whitespace());
        let Some((name, value)) = pair.split_once('=').filter(|(name, _)| is_name(name)) else {
            let why = "a name has no dots and no spaces; an object is given as JSON";
            return Err(Fault::usage(format!("--var takes NAME=VALUE, not {pair:?}: {why}")));
        };
        let value = serde_json::from_str(value).unwrap_or_else(|_| Value::String(value.to_owned()));
        vars.insert(name.to_owned(), value);
    }
    Ok(vars)
}

/// Says the first words and notes what was given, in one write, unless that was done; gives all variables, also those that
/// were given to the process that began.
fn begin(
    app: &App,
    talk: &Talk,
    setup: &Setup,
    text: &str,
    given: Map<String, Value>,
) -> Outcome<Map<String, Value>> {
    let mut root = app.open(talk.found(), Mode::Write)?;
    if !root.id().is_root() {
        return Err(Fault::usage(
            "a playbook is followed from the root thread: name a session, without a thread",
        ));
    }
    let mut vars = match root.noted(GIVEN)? {
        Some(_) if !text.trim().is_empty() => {
            return Err(Fault::usage("the session goes on where its playbook stopped: leave the text out"));
        }
        Some((_, noted)) => serde_json::from_str(noted.get())
            .map_err(|why| Fault::input(format!("what was given to the playbook cannot be read: {why}")))?,
        None => {
            if root.last() == 0 {
                root.set_up(setup.clone())?;
            }
            let mut vars = given.clone();
            let title = text.lines().next().unwrap_or_default();
            vars.entry("task").or_insert_with(|| json!({ "title": title, "text": text }));
            let first = (!text.trim().is_empty()).then(|| Message::text(Role::User, text));
            let noted = Raw::parse(Value::Object(vars.clone()).to_string());
            let noted = noted.map_err(|why| Fault::input(format!("--var: {why}")))?;
            root.say_noting(GIVEN, noted, first.into_iter().collect())?;
            change::settle(&mut root);
            vars
        }
    };
    vars.extend(given);
    Ok(vars)
}

fn follow(
    app: &App,
    talk: &Talk,
    playbook: &Playbook,
    vars: &Map<String, Value>,
    tools: &mut Toolbox,
    cancel: &Cancel,
) -> Outcome<Ended> {
    let mut mind = AppMind::new(app, &talk.connection, talk.wishes.clone());
    let printed = match app.paper.json {
        true => Printed::for_program(talk.found()),
        false => Printed::new(talk.found(), Undo::Shell),
    };
    let mut screen = Screen { printed, is_quiet: app.paper.json };
    let limits = app.config.agent.limits;
    let mut hands = Solo::new(&mut mind, tools, limits, cancel.clone(), &mut screen);
    let ended = playbook::run(playbook, &talk.found().session, vars, &mut hands);
    screen.printed.end()?;
    ended.map_err(fault)
}

/// Ends the session as the playbook says.
fn end(app: &App, talk: &Talk, ended: &Ended) -> Outcome {
    let session = &talk.found().session;
    match ended.is_good {
        true => app.engine.complete(session, Some(ended.result.clone()))?,
        false => app.engine.fail(session, &ended.result)?,
    };
    Ok(())
}

fn fault(error: komado_agent::Error) -> Fault {
    match error {
        komado_agent::Error::Engine(error) => error.into(),
        komado_agent::Error::Order(Order::Leave(why)) => Fault::new(Exit::Failed, why),
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
        // What the model said last was printed as it came.
        if ended.vars.get("last").and_then(Value::as_str) != Some(ended.result.as_str()) {
            app.paper.line(&ended.result)?;
        }
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
            self.printed.line_end();
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
