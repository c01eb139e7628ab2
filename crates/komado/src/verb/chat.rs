//! `komado chat`: a conversation at the terminal, inside its window.
//!
//! The thread is open only while a question is answered: between questions any other command may change the session,
//! and everything a slash command does is done by the verb of the same name.

pub(super) mod answer;
mod command;
mod input;

use crate::app::App;
use crate::fault::{Exit, Fault, Outcome};
use crate::gauge;
use crate::paper::{Ink, count, say};
use crate::render::Render;
use crate::signals::Interrupt;
use answer::{Answer, Stoppable, Undo};
use clap::Args as ClapArgs;
use command::{Command, Next};
use input::{Input, Said};
use komado_core::Address;
use komado_ops::address::Target;
use komado_ops::ask::{Beginning, Conversation};
use komado_ops::choice::ModelArgs;
use komado_store::Mode;

/// Cells of the gauge in the prompt.
const CELLS: usize = 10;

#[derive(ClapArgs, Debug)]
pub(crate) struct Args {
    /// The session, or SESSION/THREAD; a new one when left out
    address: Option<Address>,
    #[command(flatten)]
    model: ModelArgs,
    #[command(flatten)]
    beginning: Beginning,
}

pub(crate) fn run(app: &mut App, args: Args) -> Outcome {
    if app.paper.json {
        return Err(Fault::usage("chat is for people; `komado ask --json` is for programs"));
    }
    let mut talk = Conversation::open(
        &app.context,
        args.address.as_ref().map(Target::from),
        args.model.into(),
        args.beginning,
    )?;
    let mut input = Input::new(app.context.files.as_ref().map(|_| app.context.config.base_dir.clone()));
    say(format!("{} · {}", talk.name(), talk.model));
    if input.is_terminal() {
        say("/help lists the commands; Ctrl-C stops an answer, Ctrl-D ends");
    }
    let interrupt = Interrupt::listen();
    let (mut asked, mut lost) = (0u64, 0u64);
    loop {
        let (raw, styled) = prompt(app, &talk)?;
        let next = match input.next(&raw, &styled)? {
            Said::Nothing => continue,
            Said::End => break,
            Said::Line(line) => step(app, &mut talk, &line),
        };
        match next {
            Ok(Next::Listen) => {}
            Ok(Next::Ask(question)) => {
                asked += 1;
                lost += u64::from(!ask(app, &talk, &interrupt, question)?);
            }
            Ok(Next::End) => break,
            Err(fault) if fault.is_gone() => return Err(fault),
            Err(fault) => drop(crate::fault::report(&fault, false)),
        }
        app.paper.flush()?;
    }
    input.keep();
    say(format!("go on with: komado chat {}", talk.name()));
    if lost > 0 && !input.is_terminal() {
        let message = format!("{lost} of {} brought no answer", count(asked, "question"));
        return Err(Fault::new(Exit::Failed, message));
    }
    Ok(())
}

/// What one line asks for.
fn step(app: &mut App, talk: &mut Conversation, line: &str) -> Outcome<Next> {
    match Command::parse(line) {
        None => Ok(Next::Ask(Some(line.trim_start_matches(' ').to_owned()))),
        Some(command) => command?.run(app, talk),
    }
}

/// Asks, and prints the answer; false when there was none. The conversation goes on all the same.
fn ask(app: &mut App, talk: &Conversation, interrupt: &Interrupt, question: Option<String>) -> Outcome<bool> {
    let mut listener = Stoppable::new(Answer::new(Undo::Slash), interrupt, |_| ());
    match talk.ask(&app.context, question, &mut listener) {
        Ok(answered) => {
            listener.printed?;
            answered.text(&mut app.paper)?;
            Ok(true)
        }
        Err(fault) if fault.is_gone() => Err(fault),
        Err(fault) => {
            listener.answer.end()?;
            let _ = crate::fault::report(&fault, false);
            if listener.answer.is_kept {
                say("komado: what you said is kept; /again asks once more, /rewind takes it back");
            }
            Ok(false)
        }
    }
}

/// The prompt: how full the window is. Plain, and in colour.
fn prompt(app: &App, talk: &Conversation) -> Outcome<(String, String)> {
    let thread = app.context.engine.open(&talk.found.session, &talk.found.thread, Mode::Read)?;
    let budget = app.models().budget(&thread, &talk.model)?;
    let tokens = thread.view().tokens();
    let raw = gauge::short(tokens, budget.room + budget.above, CELLS);
    let ink = match tokens {
        n if n > budget.usable => Ink::Red,
        n if n >= budget.act_at => Ink::Yellow,
        _ => Ink::Green,
    };
    Ok((format!("{raw} ❯ "), format!("{} ❯ ", app.paper.painted(ink, &raw))))
}
