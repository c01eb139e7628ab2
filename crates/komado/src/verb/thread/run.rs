//! `komado thread run`: a task for a child thread, given or piped in; its answer is printed as it comes.

use super::start::ToolsFile;
use crate::app::App;
use crate::fault::{Fault, Outcome};
use crate::paper::say;
use crate::signals::Interrupt;
use crate::verb::append::read_stdin;
use crate::verb::chat::answer::{Answer, Stoppable};
use clap::Args as ClapArgs;
use komado_ops::address::AtThread;
use komado_ops::change;
use komado_ops::choice::ModelArgs;
use komado_ops::thread::{ChildOptions, RunThread};

#[derive(ClapArgs, Debug)]
pub(crate) struct Args {
    /// The session, or SESSION/THREAD: the thread it is started from
    #[arg(value_name = "ADDRESS")]
    at: AtThread,
    /// What is to be done; `-` for standard input
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

pub(crate) fn run(app: &mut App, args: Args) -> Outcome {
    let Args { at, task, label, child, tools, model } = args;
    let task = if task == ["-"] { read_stdin()? } else { task.join(" ") };
    if task.trim().is_empty() {
        return Err(Fault::usage("there is nothing to do: write the task, or pipe it in with -"));
    }
    let tools = tools.read()?;
    let interrupt = Interrupt::listen();
    let begun = |found: &_| say(format!("thread: {}", change::name(found)));
    let mut listener = Stoppable::new(Answer::onto(&app.paper), &interrupt, begun);
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
