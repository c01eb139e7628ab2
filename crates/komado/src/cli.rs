//! The command line: one verb per file, and nothing but the list of them here.

use crate::app::{App, Options};
use crate::fault::{Exit, Fault, Outcome};
use crate::verb;
use clap::{Parser, Subcommand};
use komado_config::InFolder;
use komado_ops::{config, doctor, edit, replay, session, thread, window};

/// Keeps an LLM agent's conversation inside its window, on disk, and never loses a word.
///
/// A session is a folder of files you can read. Addresses: SESSION, SESSION/THREAD, SESSION@SEQ; unique prefixes do.
#[derive(Parser, Debug)]
#[command(name = "komado", version, max_term_width = 100)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) options: Options,
    #[command(subcommand)]
    verb: Verb,
}

/// Lists the verbs: an operation, whose result is printed; or a module with `Args` and `run`.
macro_rules! verbs {
    (
        operations { $($(#[$op_doc:meta])* $op:ident => $request:ty),+ $(,)? }
        modules { $($(#[$doc:meta])* $name:ident => $module:ident),+ $(,)? }
    ) => {
        #[derive(Subcommand, Debug)]
        enum Verb {
            $($(#[$op_doc])* $op($request),)+
            $($(#[$doc])* $name(verb::$module::Args),)+
        }

        impl Verb {
            fn run(self, app: &mut App) -> Outcome {
                match self {
                    $(Self::$op(request) => app.show(request),)+
                    $(Self::$name(args) => verb::$module::run(app, args),)+
                }
            }
        }
    };
}

verbs! {
    operations {
        /// Make a session
        New => session::New,
        /// End a session well
        Complete => session::Complete,
        /// End a session with a reason
        Fail => session::Fail,
        /// Stop a session
        Stop => session::Stop,
        /// Let a session wait
        Pause => session::Pause,
        /// Let a session go on
        Resume => session::Resume,
        /// Remove sessions that ended long ago
        Cleanup => session::Cleanup,
        /// Count sessions, tokens and time
        Stats => session::StatsOf,
        /// Go back to a moment, as if nothing after it had happened
        Rewind => edit::Rewind,
        /// Undo one edit and keep everything said since
        Revert => edit::Revert,
        /// Keep a message in the view through every edit
        Pin => edit::Pin,
        /// Take a pin back
        Unpin => edit::Unpin,
        /// Show a marker in place of a span
        Truncate => edit::Truncate,
        /// Show a placeholder in place of what an entry says
        Trim => edit::Trim,
        /// Draw the window and what fills it
        Context => window::ReadContext,
        /// Make the view fit its window, or say what would be done
        Fit => window::Fit,
        /// Go on from a moment in another thread
        Fork => thread::Fork,
        /// Check everything, and make again what can be made again
        Doctor => doctor::Doctor,
        /// Show each setting and where it came from
        Config => config::ShowConfig,
        /// Replay past conversations under a budget: tokens, price, and whether anything is lost
        Replay => replay::Replay,
    }
    modules {
        /// Set system prompt, tools and parameters
        Setup => setup,
        /// Add messages: text, standard input, or JSON lines
        Append => append,
        /// Ask a model one question in a session, or in a new one
        Ask => ask,
        /// Talk with a model at the terminal
        Chat => chat,
        /// Serve agents: the gateway, the HTTP API and MCP
        Serve => serve,
        /// Make, list and revoke the keys of whoever may reach `komado serve`
        Key => key,
        /// Be an MCP server on standard input and output
        Mcp => mcp,
        /// Give tasks to an agent: add, fetch, list, show, pause, resume, stop, retry
        Task => task,
        /// Take tasks from the queue and work on them
        Work => work,
        /// List the entries of a journal
        Log => log,
        /// Print what the model sees
        Show => show,
        /// Read, search or list the outputs that are too long to be shown
        Output => output,
        /// Find again what was said, seen by the model or not
        Recall => recall,
        /// Compare what the model saw at two moments
        Diff => diff,
        /// Work in child threads: windows inside the window
        Thread => thread,
        /// Check, draw and follow playbooks: the course of a task as a graph
        Playbook => playbook,
        /// Show a summary in place of a span
        Condense => condense,
        /// Take a secret out for good
        Redact => redact,
        /// List sessions, or one session's threads
        Sessions => sessions,
        /// Write a session to a file or to standard output
        Export => export,
        /// Read a session that was exported
        Import => import,
        /// Copy sessions from one store into another, and check them
        Migrate => migrate,
        /// A user's standing session, messages and habits; forget a user
        User => user,
        /// Tell what happened in many sessions: usage, common questions, performance
        Report => report,
        /// Consent to the settings and sessions that are found in a folder
        Trust => trust,
        /// Say what a provider's error is taken for
        ExplainError => explain_error,
        /// List what is known about models, or find one
        Models => models,
        /// Run a model that follows a script: for tests and demonstrations, without a provider
        ModelServer => model_server,
        /// Watch a long session run in a small window
        Demo => demo,
        /// Print a completion script for a shell
        Completions => completions,
        /// Run a command that reaches one folder only
        #[command(hide = true)]
        Confine => confine,
    }
}

impl Verb {
    /// True for a verb that makes the folder of the sessions; the others make it where they need it, or not at all.
    fn keeps_sessions(&self) -> bool {
        let only_looks = matches!(self, Self::Models(_) | Self::ModelServer(_));
        !only_looks && !matches!(self, Self::Playbook(_) | Self::Migrate(_) | Self::Demo(_))
    }
}

pub(crate) fn run(cli: Cli) -> Outcome {
    if let Verb::Confine(args) = cli.verb {
        return Err(verb::confine::without_app(args));
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
    let outcome = cli.verb.run(&mut app);
    app.tell_findings();
    outcome.and_then(|()| app.paper.flush()).map_err(|fault| match fault.exit() {
        // What does not fit a schema was typed so.
        Exit::Malformed => Fault::usage(fault.message()),
        _ => app.explained(fault),
    })
}
