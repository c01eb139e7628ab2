//! `komado thread`: child threads, windows inside the window.
//!
//! A child has a share of its parent's window and works there as long as it likes; the parent keeps one anchor of it.

use super::ask::{AnswerPrinter, StoppablePrinter};
use super::write::{read_stdin, read_tools};
use crate::app::App;
use crate::cli_output::{read_text, say};
use crate::signals::Interrupt;
use komado_core::Seq;
use komado_ops::address::AtThread;
use komado_ops::choice::ModelArgs;
use komado_ops::thread::{
    AbortThread, BalanceThread, ChildOptions, ChronicleWriter, DrawThreads, EndThread, PauseThread,
    ReadChronicle, ResumeThread, RunThread, StartThread, TellThread, WriteChronicle,
};
use komado_ops::tools::ToolDefinitions;
use komado_ops::{OpFault, OpResult, change};
use std::path::PathBuf;

verbs! {
    pub(crate) enum ThreadVerb {
        /// Complete a child thread and report the result to its parent
        End(EndThread),
        /// Abort a child thread; its parent gets a partial chronicle
        Abort(AbortThread),
        /// Pause a child thread
        Pause(PauseThread),
        /// Resume a child thread, even days after it ended
        Resume(ResumeThread),
        /// Show a session's threads as a tree: their shares of the window and their states
        Tree(DrawThreads),
        /// Change how the window is shared among threads
        Balance(BalanceThread),
        /// Start a child thread that outlives this command
        Start(StartThreadArgs) => start,
        /// Give a task to a child thread and wait for the answer: start, ask, end
        Run(RunThreadArgs) => run_task,
        /// Send a message from one thread to another
        Tell(TellArgs) => tell,
        /// Show a child thread's chronicle, or write a new one
        Chronicle(ChronicleArgs) => chronicle,
    }
}

#[derive(clap::Args, Debug)]
pub(crate) struct StartThreadArgs {
    #[command(flatten)]
    request: StartThread,
    #[command(flatten)]
    tools: ToolsFile,
}

/// Tools of a child thread.
#[derive(clap::Args, Debug)]
struct ToolsFile {
    /// Tool definitions of its own, in place of those above: a file with a JSON array
    #[arg(long, value_name = "FILE")]
    tools: Option<PathBuf>,
}

impl ToolsFile {
    /// Reads them.
    fn read(&self) -> OpResult<Option<ToolDefinitions>> {
        self.tools.as_deref().map(read_tools).transpose()
    }
}

fn start(app: &mut App, args: StartThreadArgs) -> OpResult {
    let tools = args.tools.read()?;
    app.show(StartThread { tools, ..args.request })
}

#[derive(clap::Args, Debug)]
pub(crate) struct RunThreadArgs {
    /// The session, or SESSION/THREAD: the thread it is started from
    #[arg(value_name = "ADDRESS")]
    at: AtThread,
    /// What to do; `-` for standard input
    #[arg(required = true)]
    task: Vec<String>,
    /// What it is about, for people and for the model; the beginning of the task when left out
    #[arg(long, value_name = "TEXT")]
    label: Option<String>,
    #[command(flatten)]
    child: ChildOptions,
    #[command(flatten)]
    tools: ToolsFile,
    #[command(flatten)]
    model: ModelArgs,
}

fn run_task(app: &mut App, args: RunThreadArgs) -> OpResult {
    let RunThreadArgs { at, task, label, child, tools, model } = args;
    let task = if task == ["-"] { read_stdin()? } else { task.join(" ") };
    if task.trim().is_empty() {
        return Err(OpFault::usage("there is no task: write it, or pipe it in with -"));
    }
    let tools = tools.read()?;
    let interrupt = Interrupt::listen();
    let begun = |found: &_| say(format!("thread: {}", change::name(found)));
    let mut listener = StoppablePrinter::new(AnswerPrinter::onto(&app.paper), &interrupt, begun);
    let ran = RunThread { at, task, label, child, tools, model }.hear(&app.context, &mut listener);
    match ran {
        Ok(ran) => {
            // A reader that went away does not undo the work.
            listener.printed?;
            app.print(&ran)
        }
        Err(fault) => {
            listener.answer.end()?;
            Err(fault)
        }
    }
}

#[derive(clap::Args, Debug)]
pub(crate) struct TellArgs {
    /// The sender: the session, or SESSION/THREAD
    from: AtThread,
    /// The receiver: a thread of the same session, by name, or SESSION/THREAD
    to: String,
    /// The words; standard input when left out
    words: Vec<String>,
}

fn tell(app: &mut App, args: TellArgs) -> OpResult {
    let is_piped = args.words.is_empty() || args.words == ["-"];
    let text = if is_piped { read_stdin()? } else { args.words.join(" ") };
    app.show(TellThread { at: args.from, to: args.to, text })
}

#[derive(clap::Args, Debug)]
pub(crate) struct ChronicleArgs {
    /// The thread, SESSION/THREAD
    #[arg(value_name = "ADDRESS")]
    at: AtThread,
    /// Write it by hand
    #[arg(long, value_name = "TEXT", group = "what")]
    text: Option<String>,
    /// The same from a file
    #[arg(long, value_name = "FILE", group = "what")]
    file: Option<PathBuf>,
    /// Have it written again
    #[arg(long, group = "what")]
    again: bool,
    /// Restore the chronicle of entry SEQ
    #[arg(long, value_name = "SEQ", group = "what")]
    restore: Option<Seq>,
    #[command(flatten)]
    writer: ChronicleWriter,
}

fn chronicle(app: &mut App, args: ChronicleArgs) -> OpResult {
    let ChronicleArgs { at, text, file, again, restore, writer } = args;
    let text = text.map(Ok).or_else(|| file.as_deref().map(read_text)).transpose()?;
    match again || text.is_some() || restore.is_some() {
        true => app.show(WriteChronicle { at, text, restore, writer }),
        false => app.show(ReadChronicle { at }),
    }
}
