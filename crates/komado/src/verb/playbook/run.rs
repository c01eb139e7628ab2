//! `komado playbook run`: a playbook in this process; what happens is printed as it does.

use crate::app::App;
use crate::fault::{Exit, Fault, Outcome};
use crate::paper::say;
use crate::signals::Interrupt;
use crate::verb::chat::answer::Answer as Printed;
use clap::Args as ClapArgs;
use komado_agent::playbook::Audience;
use komado_agent::tools::Answer;
use komado_core::message::Call;
use komado_core::{Address, ThreadId};
use komado_engine::engine::Found;
use komado_engine::exchange::News;
use komado_ops::change;
use komado_ops::choice::ModelArgs;
use komado_ops::playbook::{Follower, RunPlaybook};
use komado_provider::Cancel;
use serde_json::{Map, Value};
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
    let Args { file, text, vars, session, folder, system, keep_open, model } = args;
    let (vars, text) = (variables(&vars)?, text.join(" "));
    let session = session.map(|address| address.to_string());
    let interrupt = Interrupt::listen();
    let watch = interrupt.watch();
    let mut screen =
        Screen { printed: Printed::onto(&app.paper), is_quiet: app.paper.json, cancel: watch.cancel() };
    let ran = RunPlaybook { file, text, vars, session, folder, system, keep_open, model }
        .hear(&app.context, &mut screen);
    screen.printed.end()?;
    let ran = ran?;
    app.print(&ran)?;
    if ran.status == "completed" {
        return Ok(());
    }
    app.paper.flush()?;
    Err(Fault::new(Exit::Failed, format!("the playbook ended at {}, which says that it failed", ran.node)))
}

/// The variables of the command line.
fn variables(given: &[String]) -> Outcome<Map<String, Value>> {
    let is_name = |name: &str| !name.is_empty() && !name.contains(|c: char| c == '.' || c.is_whitespace());
    let read = |pair: &String| {
        let Some((name, value)) = pair.split_once('=').filter(|(name, _)| is_name(name)) else {
            let why = "a name has no dots and no spaces; an object is given as JSON";
            return Err(Fault::usage(format!("--var takes NAME=VALUE, not {pair:?}: {why}")));
        };
        let value = serde_json::from_str(value).unwrap_or_else(|_| Value::String(value.to_owned()));
        Ok((name.to_owned(), value))
    };
    given.iter().map(read).collect()
}

/// Shows what happens.
struct Screen {
    printed: Printed,
    is_quiet: bool,
    cancel: Cancel,
}

impl Follower for Screen {
    fn begun(&mut self, found: &Found, is_new: bool) {
        if is_new {
            say(format!("session: {}", change::name(found)));
        }
        self.printed.begin(found);
    }

    fn cancel(&mut self) -> Cancel {
        self.cancel.clone()
    }
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
