//! The command line: the list of the verbs, which stand in `verb/`, and those that are about the program itself.

use crate::app::{App, GlobalOptions};
use crate::verb::{
    ask, chat, demo, models, playbook, read, report, serve, session as sessions, shell, task,
    thread as threads, trust, user, write,
};
use clap::error::{ContextKind, ContextValue};
use clap::{CommandFactory, FromArgMatches, Parser};
use komado_config::InFolder;
use komado_core::suggest::nearest_name;
use komado_ops::work::launcher;
use komado_ops::{
    FaultKind, Missing, OpFault, OpResult, config, doctor, edit, replay, session, thread, window,
};
use std::ffi::OsString;

/// Keeps an LLM agent's conversation inside its window, on disk, and never loses a word.
///
/// A session is a folder of files you can read. Addresses: SESSION, SESSION/THREAD, SESSION@SEQ; the beginning of an
/// id is enough where no other id begins so.
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
        /// Run the gateway for agents, with the HTTP API and MCP
        Serve(serve::ServeArgs) => serve::serve,
        /// Run an MCP server over stdio
        Mcp(serve::McpArgs) => serve::mcp,
        /// Talk with a model at the terminal
        Chat(chat::ChatArgs) => chat::chat,
        /// Ask a model one question in a session, or in a new one
        Ask(ask::AskArgs) => ask::ask,
        /// List sessions, or one session's threads
        Sessions(sessions::SessionsArgs) => sessions::sessions,
        /// Make a session
        New(session::New),
        /// Add messages: text, standard input, or JSON lines
        Append(write::AppendArgs) => write::append,
        /// Print what the model sees
        Show(read::ShowArgs) => read::show,
        /// List the entries of a journal
        Log(read::LogArgs) => read::log,
        /// Show how full the window is and what fills it
        Context(window::ReadContext),
        /// Search everything that was said, whether the model sees it or not
        Recall(read::RecallArgs) => read::recall,
        /// Write a session to a file or to standard output
        Export(sessions::ExportArgs) => sessions::export,
        /// Import a session from an export
        Import(sessions::ImportArgs) => sessions::import,
        /// Make the view fit its window, or show what would be done
        Fit(window::Fit),
        /// Go back to a moment, as if nothing after it had happened
        Rewind(edit::Rewind),
        /// Undo one edit and keep everything said since
        Revert(edit::Revert),
        /// Continue from a moment in a new thread
        Fork(thread::Fork),
        /// Edit by hand: condense, truncate, trim, pin, unpin, setup, redact
        #[command(subcommand)]
        Edit(EditVerb) => EditVerb::run,
        /// One session: output, diff, complete, fail, stop, pause, resume
        #[command(subcommand)]
        Session(SessionVerb) => SessionVerb::run,
        /// Child threads with windows of their own: start, run, end, tree, …
        #[command(subcommand)]
        Thread(threads::ThreadVerb) => threads::ThreadVerb::run,
        /// Tasks for an agent: add, fetch, list, show, stop, retry, work, …
        #[command(subcommand)]
        Task(task::TaskVerb) => task::TaskVerb::run,
        /// Playbooks, the course of a task as a graph: check, graph, run
        #[command(subcommand)]
        Playbook(playbook::PlaybookVerb) => playbook::PlaybookVerb::run,
        /// Users: their sessions, messages and habits; forget a user
        #[command(subcommand)]
        User(user::UserVerb) => user::UserVerb::run,
        /// Known models, their windows and prices; what was learned about them
        Models(models::ModelsArgs) => models::models,
        /// Operate: config, trust, doctor, cleanup, stats, report, migrate, …
        #[command(subcommand)]
        Admin(AdminVerb) => AdminVerb::run,
        /// Develop agents: demo, model-server, replay, explain-error
        #[command(subcommand)]
        Dev(DevVerb) => DevVerb::run,
        /// The same as `dev replay`
        #[command(hide = true)]
        Replay(replay::ReplayFiles),
        /// The same as `dev explain-error`
        #[command(hide = true)]
        ExplainError(models::ExplainErrorArgs) => models::explain_error,
        /// Run a command that reaches one folder only
        #[command(hide = true)]
        Confine(ConfineArgs) => confine,
    }
}

verbs! {
    enum EditVerb {
        /// Show a summary in place of a span
        Condense(window::Condense) => write::condense,
        /// Show a marker in place of a span
        Truncate(edit::TruncateSpan),
        /// Show a placeholder in place of an entry's content
        Trim(edit::Trim),
        /// Keep a message in the view through every edit
        Pin(edit::Pin),
        /// Remove a pin
        Unpin(edit::Unpin),
        /// Set system prompt, tools and parameters
        Setup(write::SetupArgs) => write::setup,
        /// Remove a secret for good
        Redact(write::RedactArgs) => write::redact,
    }
}

verbs! {
    enum SessionVerb {
        /// Read, search or list tool outputs that are too long to show
        Output(read::OutputArgs) => read::output,
        /// Compare what the model saw at two moments
        Diff(read::DiffArgs) => read::diff,
        /// Mark a session as completed
        Complete(session::Complete),
        /// Mark a session as failed, with a reason
        Fail(session::FailSession),
        /// Stop a session
        Stop(session::StopSession),
        /// Pause a session
        Pause(session::Pause),
        /// Resume a session that was paused, stopped or ended
        Resume(session::ResumeSession),
    }
}

verbs! {
    enum AdminVerb {
        /// Show each setting and where it came from
        Config(config::ShowConfig),
        /// Trust the settings and sessions found in a folder
        Trust(trust::TrustArgs) => trust::trust,
        /// Check sessions, queue and store, and repair what can be rebuilt
        Doctor(doctor::Doctor),
        /// Remove sessions that ended long ago
        Cleanup(session::Cleanup),
        /// Count sessions, tokens and time
        Stats(session::StatsOf),
        /// Report on many sessions: usage, common questions, performance
        Report(report::ReportArgs) => report::report,
        /// Copy sessions from one store into another, and check them
        Migrate(komado_ops::migrate::Migrate) => sessions::migrate,
        /// Create, list and revoke keys for clients of `komado serve`
        #[command(subcommand)]
        Key(user::KeyVerb) => user::KeyVerb::run,
        /// Print the line that lets a shell complete verbs, options and ids
        Completions(shell::CompletionsArgs) => shell::completions,
        /// Print the manual's first page, or write a page for each verb
        Man(shell::ManArgs) => shell::man,
    }
}

verbs! {
    enum DevVerb {
        /// Play a long coding session in a small window, without a key or a network
        Demo(demo::DemoArgs) => demo::demo,
        /// Run a model server that follows a script, for tests and demonstrations
        ModelServer(models::ModelServerArgs) => models::model_server,
        /// Replay past conversations under a budget: tokens, price, and whether anything is lost
        Replay(replay::ReplayFiles),
        /// Explain how Komado reads a provider's error
        ExplainError(models::ExplainErrorArgs) => models::explain_error,
    }
}

/// The verbs of the first help page by what people look for. A test checks that it lists all of them.
const SECTIONS: &[(&str, &[&str])] = &[
    ("Models and agents", &["serve", "mcp", "chat", "ask"]),
    ("Sessions", &["sessions", "new", "append", "show", "log", "context", "recall", "export", "import"]),
    ("What the model sees", &["fit", "rewind", "revert", "fork"]),
    ("More, in groups", &["edit", "session", "thread", "task", "playbook", "user", "models", "admin", "dev"]),
];

/// The command line with its first help page: the verbs under headings, which clap does not do by itself.
pub(crate) fn command() -> clap::Command {
    let command = Cli::command();
    let mut verbs = String::new();
    for (heading, names) in SECTIONS {
        verbs.push_str(&format!("\n\n{}{heading}:{}", bold(), bold().render_reset()));
        for name in *names {
            let about = command.find_subcommand(name).and_then(|verb| verb.get_about()).cloned();
            let about = about.unwrap_or_default().to_string();
            verbs.push_str(&format!("\n  {name:<10}{about}"));
        }
    }
    let (on, off) = (bold(), bold().render_reset());
    let template = format!(
        "{{about-with-newline}}\n{{usage-heading}} {{usage}}{verbs}\n\n{on}Global options:{off}\n{{options}}"
    );
    command.help_template(template)
}

/// Reads the command line.
pub(crate) fn parse() -> Result<Cli, clap::Error> {
    let matches = command().try_get_matches().map_err(|error| with_path(error, &command()))?;
    let mut names = vec!["komado"];
    let mut level = &matches;
    while let Some((name, below)) = level.subcommand() {
        names.push(name);
        level = below;
    }
    crate::app::PROGRAM.get_or_init(|| names.join(" "));
    Cli::from_arg_matches(&matches)
}

/// Names the group of a verb that was looked for elsewhere: `komado pin` is `komado edit pin`.
fn with_path(mut error: clap::Error, command: &clap::Command) -> clap::Error {
    let Some(ContextValue::String(name)) = error.get(ContextKind::InvalidSubcommand).cloned() else {
        return error;
    };
    let mut paths = Vec::new();
    verb_paths(command, "", &mut paths);
    let last = |path: &String| path.rsplit(' ').next().unwrap_or_default().to_owned();
    let mut meant: Vec<String> = paths.iter().filter(|path| last(path) == name).cloned().collect();
    if meant.is_empty() {
        let names: Vec<String> = paths.iter().map(last).collect();
        let near = nearest_name(&name, names.iter().map(String::as_str));
        meant = paths.iter().filter(|path| Some(last(path).as_str()) == near).cloned().collect();
    }
    if !meant.is_empty() {
        error.remove(ContextKind::SuggestedSubcommand);
        let meant: Vec<String> = meant.iter().map(|path| format!("`komado {path}`")).collect();
        let tip = format!("did you mean {}?", meant.join(" or "));
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip.into()]));
    }
    error
}

/// Every verb that can be run, as it is written after `komado`.
fn verb_paths(command: &clap::Command, above: &str, paths: &mut Vec<String>) {
    for verb in command.get_subcommands().filter(|verb| !verb.is_hide_set()) {
        let path = format!("{above}{}", verb.get_name());
        match verb.is_subcommand_required_set() {
            true => verb_paths(verb, &format!("{path} "), paths),
            false => {
                verb_paths(verb, &format!("{path} "), paths);
                paths.push(path);
            }
        }
    }
}

fn bold() -> clap::builder::styling::Style {
    clap::builder::styling::Style::new().bold().underline()
}

/// What a verb does with the folder of the sessions.
enum FolderUse {
    /// It looks at sessions, or changes some that are there.
    Reads,
    /// It may begin one, or keeps something else there.
    Begins,
    /// It leaves it alone.
    Unused,
}

impl Verb {
    fn folder_use(&self) -> FolderUse {
        let begins = match self {
            Self::Serve(_) | Self::Mcp(_) | Self::Chat(_) | Self::Ask(_) | Self::New(_) | Self::Import(_) => {
                true
            }
            Self::Task(verb) => {
                matches!(verb, task::TaskVerb::Add(_) | task::TaskVerb::Fetch(_) | task::TaskVerb::Work(_))
            }
            Self::Playbook(verb) => matches!(verb, playbook::PlaybookVerb::Run(_)),
            Self::User(verb) => matches!(verb, user::UserVerb::Session(_)),
            Self::Models(args) => args.is_update(),
            Self::Admin(AdminVerb::Key(verb)) => matches!(verb, user::KeyVerb::Add(_)),
            Self::Dev(verb) => matches!(verb, DevVerb::Demo(_)),
            _ => false,
        };
        match self {
            _ if begins => FolderUse::Begins,
            Self::Models(args) if args.is_learned() => FolderUse::Reads,
            _ if self.keeps_sessions() => FolderUse::Reads,
            _ => FolderUse::Unused,
        }
    }

    /// True for a verb that makes the folder of the sessions; the others make it where they need it, or not at all.
    fn keeps_sessions(&self) -> bool {
        let only_looks = matches!(self, Self::Models(_) | Self::Dev(_) | Self::Replay(_) | Self::Playbook(_));
        !only_looks && !matches!(self, Self::Admin(AdminVerb::Migrate(_)))
    }
}

pub(crate) fn run(cli: Cli) -> OpResult {
    if let Verb::Confine(args) = cli.verb {
        return Err(without_app(args));
    }
    let mut app = match &cli.verb {
        Verb::Admin(AdminVerb::Config(_)) => App::storeless(&cli.options, InFolder::Told)?,
        Verb::Admin(AdminVerb::Completions(_) | AdminVerb::Man(_) | AdminVerb::Trust(_))
        | Verb::Dev(DevVerb::ExplainError(_))
        | Verb::ExplainError(_) => App::storeless(&cli.options, InFolder::Ignored)?,
        _ => App::new(&cli.options)?,
    };
    match cli.verb.folder_use() {
        FolderUse::Reads => app.want_folder()?,
        FolderUse::Begins => app.tell_of_new_folder(),
        FolderUse::Unused => {}
    }
    if cli.verb.keeps_sessions() && app.files.is_some() {
        app.claim()?;
    }
    let outcome = Verb::run(&mut app, cli.verb);
    let printed = app.paper.finish();
    app.tell_findings();
    outcome.and(printed).map_err(|fault| match fault.exit() {
        // What does not fit a schema was typed so.
        FaultKind::Malformed => OpFault::usage(fault.message()),
        _ => listed(app.explained(fault)),
    })
}

/// A name that is not there, with the command that lists those that are.
fn listed(fault: OpFault) -> OpFault {
    let lists = match fault.what_is_missing() {
        Some(Missing::Session { .. }) => "`komado sessions` lists them".to_owned(),
        Some(Missing::Thread { session, .. }) => format!("`komado sessions {session}` lists its threads"),
        Some(Missing::User(_)) | None => return fault,
    };
    fault.and(lists)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_help_page_lists_every_verb_once_and_fits_80_columns() {
        let listed: Vec<&str> = SECTIONS.iter().flat_map(|(_, names)| *names).copied().collect();
        let command = command();
        let verbs = command.get_subcommands().filter(|verb| !verb.is_hide_set()).map(|verb| verb.get_name());
        let mut sorted = (listed.clone(), verbs.collect::<Vec<_>>());
        sorted.0.sort_unstable();
        sorted.1.sort_unstable();
        assert_eq!(sorted.0, sorted.1);
        let help = command.clone().term_width(80).render_help().to_string();
        for line in help.lines() {
            assert!(line.chars().count() <= 80, "{line}");
        }
        listed.iter().for_each(|name| assert!(help.contains(&format!("\n  {name:<10}")), "{name}: {help}"));
    }

    /// Every command below this one, itself included, with its whole name.
    fn each(command: &clap::Command, name: String, found: &mut Vec<(String, clap::Command)>) {
        found.push((name.clone(), command.clone()));
        let below =
            command.get_subcommands().filter(|below| !below.is_hide_set() && below.get_name() != "help");
        below.for_each(|below| each(below, format!("{name} {}", below.get_name()), found));
    }

    #[test]
    fn every_help_page_fits_80_columns_and_sets_the_global_options_apart() {
        let mut command = command().term_width(80);
        command.build();
        let mut all = Vec::new();
        each(&command, "komado".to_owned(), &mut all);
        assert!(all.len() > 80, "{}", all.len());
        for (name, command) in all {
            let mut command = command.term_width(80);
            for help in [command.render_help().to_string(), command.render_long_help().to_string()] {
                let wide: Vec<&str> = help.lines().filter(|line| line.chars().count() > 80).collect();
                assert!(wide.is_empty(), "{name}: {wide:?}");
                let (own, global) =
                    help.split_once("Global options:").unwrap_or_else(|| panic!("{name}: {help}"));
                for option in ["--json", "--base-dir <DIR>", "--config <FILE>", "--set <KEY=VALUE>"] {
                    assert!(global.contains(option), "{name}: {option}: {help}");
                }
                assert!(!own.contains("--base-dir <"), "{name}: {help}");
            }
        }
    }

    #[test]
    fn a_verb_that_stands_in_a_group_is_found_by_its_name() {
        let tip = |line: &str| {
            let error = command().try_get_matches_from(line.split(' ')).unwrap_err();
            with_path(error, &command()).to_string()
        };
        for (line, meant) in [
            ("komado pin x@1", "did you mean `komado edit pin`?"),
            ("komado doctor", "did you mean `komado admin doctor`?"),
            ("komado edit complete", "did you mean `komado session complete`?"),
            ("komado revoke", "did you mean `komado admin key revoke`?"),
            ("komado condens", "did you mean `komado edit condense`?"),
            ("komado list", "`komado task list`"),
        ] {
            let said = tip(line);
            assert!(said.contains(meant), "{line}: {said}");
        }
        assert!(tip("komado sesions").contains("sessions") && !tip("komado zzzzzz").contains("did you mean"));
    }
}
