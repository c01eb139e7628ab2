//! `komado playbook run`: a playbook in this process, with the model of the settings.
//!
//! What it does is journaled like everything else: interrupted by Ctrl-C or by a power cut, `--session` goes on where it
//! stopped. What was given on the command line is noted with the first words, so that going on needs none of it again.
//! The model has what it has in a task: the built-in tools in a folder, those of the MCP servers, those that lead back to
//! what left its view, and the rules of the folder. The session ends with the playbook.

use super::given::Given;
use super::{most_depth, right};
use crate::app::App;
use crate::connect::ModelArgs;
use crate::fault::{Exit, Fault, Outcome};
use crate::kit;
use crate::paper::{number, say};
use crate::verb::chat::answer::Answer as Printed;
use crate::verb::chat::interrupt::Interrupt;
use clap::Args as ClapArgs;
use komado_agent::Error;
use komado_agent::handler::{self, Brief};
use komado_agent::mind::of;
use komado_agent::playbook::{self, Audience, Ended, Playbook, Solo};
use komado_agent::progress::Order;
use komado_agent::tools::{Answer, Toolbox};
use komado_core::journal::Setup;
use komado_core::message::{Call, Message};
use komado_core::{Address, Role, ThreadId};
use komado_engine::Error as EngineError;
use komado_engine::model::{ModelChoice, SCRIPTED_TOOL_WINDOW};
use komado_engine::turn::News;
use komado_engine::window::{Told, Window};
use komado_ops::address::Target;
use komado_ops::ask::{Beginning, Conversation};
use komado_ops::thread::spawn_settings;
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

pub(crate) fn run(app: &mut App, args: Args) -> Outcome {
    // A session that is there has a say in how deep its threads may nest: it is asked when the course begins.
    let most = if args.session.is_none() { most_depth(app) } else { u32::MAX };
    let playbook = right(Some(&args.file), most)?;
    let given = Given::new(&args.vars, args.folder.as_deref())?;
    let before = args.session.as_ref().map(|address| Given::of_session(app, address)).transpose()?.flatten();
    let interrupt = Interrupt::listen();
    let watch = interrupt.watch();
    let cancel = watch.cancel();
    // A folder that is refused is no reason to make a session.
    let named = given.folder(before.as_ref())?;
    let named =
        named.map(|folder| kit::tools(app, &folder, &cancel).map(|tools| (folder, tools))).transpose()?;
    let choice = ModelChoice { scripted_window: Some(SCRIPTED_TOOL_WINDOW), ..args.model.into() };
    let talk = Conversation::open(
        &app.context,
        args.session.as_ref().map(Target::from),
        choice,
        Beginning::default(),
    )?;
    if args.session.is_none() {
        say(format!("session: {}", talk.name()));
    }
    let (folder, mut tools) = match named {
        Some(named) => named,
        None => in_own_folder(app, &talk, &cancel)?,
    };
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

/// A folder of the session's own, and the tools in it.
fn in_own_folder(app: &App, talk: &Conversation, cancel: &Cancel) -> Outcome<(PathBuf, Toolbox)> {
    let folder = kit::folder::own(app, &talk.found.session, |_| Ok(()))?;
    let tools = kit::tools(app, &folder, cancel)?;
    Ok((folder, tools))
}

/// Says the first words and notes what was given, in one write, unless that was done; gives all variables, also those that
/// were given to the process that began.
fn begin(
    app: &App,
    talk: &Conversation,
    setup: &Setup,
    text: &str,
    given: Given,
) -> Outcome<Map<String, Value>> {
    let mut root = app.context.open(&talk.found, Mode::Write)?;
    let before = Given::of(&root)?;
    let is_silent = text.trim().is_empty();
    if before.is_some() && !is_silent {
        return Err(Fault::usage("the session goes on where its playbook stopped: leave the text out"));
    }
    if root.last() == 0 {
        root.set_up(setup.clone())?;
    } else {
        // Whoever worked on it may have been killed before it could say what it took.
        app.context.engine.recount(&talk.found.session)?;
    }
    let mut now = given.after(before.clone().unwrap_or_default());
    let title = text.lines().next().unwrap_or_default();
    now.vars.entry("task").or_insert_with(|| json!({ "title": title, "text": text }));
    if before.as_ref() != Some(&now) {
        let (about, note) = now.note()?;
        let first = (!is_silent).then(|| Message::text(Role::User, text));
        root.say_noting(about, note, first.into_iter().collect())?;
        app.settle(&mut root);
    }
    Ok(now.vars)
}

fn follow(
    app: &App,
    talk: &Conversation,
    playbook: &Playbook,
    vars: &Map<String, Value>,
    tools: &mut Toolbox,
    cancel: &Cancel,
) -> Outcome<Ended> {
    let spawn = |own: &_, window| {
        spawn_settings(&app.context, own, window).map_err(of("the settings of child threads"))
    };
    let mut mind = app.mind(&talk.model, talk.choice.clone(), &spawn);
    let mut printed = Printed::onto(&app.paper);
    printed.begin(&talk.found);
    let mut screen = Screen { printed, is_quiet: app.paper.json };
    let limits = app.context.config.agent.limits;
    let mut hands = Solo::new(&mut mind, tools, limits, cancel.clone(), &mut screen);
    let ended = playbook::run(playbook, &talk.found.session, vars, &mut hands);
    screen.printed.end()?;
    ended.map_err(|error| with_way_out(error, talk))
}

/// What went wrong. A window that is nobody's limit may be made larger.
fn with_way_out(error: Error, talk: &Conversation) -> Fault {
    let is_tight = matches!(error, Error::Engine(EngineError::TooMuch(_)));
    let Window { tokens, told } = talk.model.window;
    let fault = fault(error);
    match is_tight && told == Told::Given {
        true => fault.and(format!("or give more than {} tokens with --window", number(tokens))),
        false => fault,
    }
}

/// Ends the session as the playbook says.
fn end(app: &App, talk: &Conversation, ended: &Ended) -> Outcome {
    let session = &talk.found.session;
    match ended.is_good {
        true => app.context.engine.complete(session, Some(ended.result.clone()))?,
        false => app.context.engine.fail(session, &ended.result)?,
    };
    Ok(())
}

fn fault(error: Error) -> Fault {
    match error {
        Error::Engine(error) => error.into(),
        Error::Order(Order::Leave(why)) => Fault::new(Exit::Failed, why),
        Error::Playbook(error) => Fault::input(error.to_string()),
        other => Fault::new(Exit::Failed, other.to_string()),
    }
}

fn tell(app: &mut App, talk: &Conversation, ended: &Ended) -> Outcome {
    if app.paper.json {
        app.paper.json(&json!({
            "session": talk.found.session.as_str(),
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
