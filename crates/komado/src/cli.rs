//! The command line: the list of the verbs, which stand in `verb/`, and those that are about the program itself.

use crate::app::{App, GlobalOptions};
use crate::verb::{
    ask, chat, demo, models, playbook, read, report, serve, session as sessions, task, thread as threads,
    trust, user, work, write,
};
use clap::{CommandFactory, Parser};
use komado_config::InFolder;
use komado_ops::work::launcher;
use komado_ops::{FaultKind, OpFault, OpResult, config, doctor, edit, replay, session, thread, window};
use std::ffi::OsString;

/// Keeps an LLM agent's conversation inside its window, on disk, and never loses a word.
///
/// A session is a folder of files you can read. Addresses: SESSION, SESSION/THREAD, SESSION@SEQ; unique prefixes do.
#[derive(Parser, Debug)]
#[command(name = "komado", version, max_term_width = 100)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) options: GlobalOptions,
    #[command(subcommand)]
    verb: Verb,
}

verbs! {
    enum Verb {
        /// Make a session
        New(session::New),
        /// End a session well
        Complete(session::Complete),
        /// End a session with a reason
        Fail(session::FailSession),
        /// Stop a session
        Stop(session::StopSession),
        /// Let a session wait
        Pause(session::Pause),
        /// Let a session go on
        Resume(session::ResumeSession),
        /// Remove sessions that ended long ago
        Cleanup(session::Cleanup),
        /// Count sessions, tokens and time
        Stats(session::StatsOf),
        /// Go back to a moment, as if nothing after it had happened
        Rewind(edit::Rewind),
        /// Undo one edit and keep everything said since
        Revert(edit::Revert),
        /// Keep a message in the view through every edit
        Pin(edit::Pin),
        /// Take a pin back
        Unpin(edit::Unpin),
        /// Show a marker in place of a span
        Truncate(edit::TruncateSpan),
        /// Show a placeholder in place of what an entry says
        Trim(edit::Trim),
        /// Draw the window and what fills it
        Context(window::ReadContext),
        /// Make the view fit its window, or say what would be done
        Fit(window::Fit),
        /// Go on from a moment in another thread
        Fork(thread::Fork),
        /// Check everything, and make again what can be made again
        Doctor(doctor::Doctor),
        /// Show each setting and where it came from
        Config(config::ShowConfig),
        /// Replay past conversations under a budget: tokens, price, and whether anything is lost
        Replay(replay::ReplayFiles),
        /// Set system prompt, tools and parameters
        Setup(write::SetupArgs) => write::setup,
        /// Add messages: text, standard input, or JSON lines
        Append(write::AppendArgs) => write::append,
        /// Ask a model one question in a session, or in a new one
        Ask(ask::AskArgs) => ask::ask,
        /// Talk with a model at the terminal
        Chat(chat::ChatArgs) => chat::chat,
        /// Serve agents: the gateway, the HTTP API and MCP
        Serve(serve::ServeArgs) => serve::serve,
        /// Make, list and revoke the keys of clients that may reach `komado serve`
        #[command(subcommand)]
        Key(user::KeyVerb) => user::KeyVerb::run,
        /// Be an MCP server on standard input and output
        Mcp(serve::McpArgs) => serve::mcp,
        /// Give tasks to an agent: add, fetch, list, show, pause, resume, stop, retry
        #[command(subcommand)]
        Task(task::TaskVerb) => task::TaskVerb::run,
        /// Take tasks from the queue and work on them
        Work(work::WorkArgs) => work::work,
        /// List the entries of a journal
        Log(read::LogArgs) => read::log,
        /// Print what the model sees
        Show(read::ShowArgs) => read::show,
        /// Read, search or list the outputs that are too long to be shown
        Output(read::OutputArgs) => read::output,
        /// Find again what was said, seen by the model or not
        Recall(read::RecallArgs) => read::recall,
        /// Compare what the model saw at two moments
        Diff(read::DiffArgs) => read::diff,
        /// Work in child threads: windows inside the window
        #[command(subcommand)]
        Thread(threads::ThreadVerb) => threads::ThreadVerb::run,
        /// Check, draw and follow playbooks: the course of a task as a graph
        #[command(subcommand)]
        Playbook(playbook::PlaybookVerb) => playbook::PlaybookVerb::run,
        /// Show a summary in place of a span
        Condense(window::Condense) => write::condense,
        /// Take a secret out for good
        Redact(write::RedactArgs) => write::redact,
        /// List sessions, or one session's threads
        Sessions(sessions::SessionsArgs) => sessions::sessions,
        /// Write a session to a file or to standard output
        Export(sessions::ExportArgs) => sessions::export,
        /// Read a session that was exported
        Import(sessions::ImportArgs) => sessions::import,
        /// Copy sessions from one store into another, and check them
        Migrate(komado_ops::migrate::Migrate) => sessions::migrate,
        /// A user's standing session, messages and habits; forget a user
        #[command(subcommand)]
        User(user::UserVerb) => user::UserVerb::run,
        /// Tell what happened in many sessions: usage, common questions, performance
        Report(report::ReportArgs) => report::report,
        /// Consent to the settings and sessions that are found in a folder
        Trust(trust::TrustArgs) => trust::trust,
        /// Say what a provider's error is taken for
        ExplainError(models::ExplainErrorArgs) => models::explain_error,
        /// List what is known about models, or find one
        Models(models::ModelsArgs) => models::models,
        /// Run a model that follows a script: for tests and demonstrations, without a provider
        ModelServer(models::ModelServerArgs) => models::model_server,
        /// Watch a long session run in a small window
        Demo(demo::DemoArgs) => demo::demo,
        /// Print a completion script for a shell
        Completions(CompletionsArgs) => completions,
        /// Run a command that reaches one folder only
        #[command(hide = true)]
        Confine(ConfineArgs) => confine,
    }
}

impl Verb {
    /// True for a verb that makes the folder of the sessions; the others make it where they need it, or not at all.
    fn keeps_sessions(&self) -> bool {
        let only_looks = matches!(self, Self::Models(_) | Self::ModelServer(_));
        !only_looks && !matches!(self, Self::Playbook(_) | Self::Migrate(_) | Self::Demo(_))
    }
}

pub(crate) fn run(cli: Cli) -> OpResult {
    if let Verb::Confine(args) = cli.verb {
        return Err(without_app(args));
    }
    let mut app = match &cli.verb {
        Verb::Config(_) => App::storeless(&cli.options, InFolder::Told)?,
        Verb::Completions(_) | Verb::ExplainError(_) | Verb::Trust(_) => {
            App::storeless(&cli.options, InFolder::Ignored)?
        }
        _ => App::new(&cli.options)?,
    };
    if cli.verb.keeps_sessions() && app.files.is_some() {
        app.claim()?;
    }
    let outcome = Verb::run(&mut app, cli.verb);
    app.tell_findings();
    outcome.and_then(|()| app.paper.flush()).map_err(|fault| match fault.exit() {
        // What does not fit a schema was typed so.
        FaultKind::Malformed => OpFault::usage(fault.message()),
        _ => app.explained(fault),
    })
}

#[derive(clap::Args, Debug)]
struct CompletionsArgs {
    /// The shell
    shell: clap_complete::Shell,
}

/// Prints a script that lets a shell complete verbs and options.
fn completions(app: &mut App, args: CompletionsArgs) -> OpResult {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "komado", &mut script);
    Ok(app.paper.raw().write_all(&script)?)
}

#[derive(clap::Args, Debug)]
struct ConfineArgs {
    /// What may be reached, then `--` and the command
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, required = true)]
    words: Vec<OsString>,
}

fn confine(_: &mut App, args: ConfineArgs) -> OpResult {
    Err(without_app(args))
}

/// Runs a command shut in, and ends all it started; the shell tool and MCP servers are started so. It opens no store and reads no
/// settings: whatever it opened would be open inside. Ends as the command does, and comes back only when it could not be run.
fn without_app(args: ConfineArgs) -> OpFault {
    crate::process::keep_to_oneself();
    let ended = launcher().map_err(|why| why.to_string()).and_then(|launcher| {
        komado_agent::sandbox::run(&launcher, &args.words).map_err(|why| why.to_string())
    });
    match ended {
        Ok(code) => std::process::exit(code.into()),
        Err(why) => OpFault::new(FaultKind::Failed, why),
    }
}
