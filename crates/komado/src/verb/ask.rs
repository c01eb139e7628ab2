//! `komado ask`: one question, one answer.
//!
//! The answer goes to standard output as it comes, everything else to standard error. A question that brings no answer
//! is kept like any other, and the session goes on.

use super::append::read_stdin;
use super::chat::answer::{Answer, Stoppable};
use crate::app::App;
use crate::fault::{Exit, Fault, Outcome};
use crate::paper::say;
use crate::signals::Interrupt;
use clap::Args as ClapArgs;
use komado_core::Address;
use komado_engine::engine::Found;
use komado_ops::ask::{Ask, Beginning};
use komado_ops::choice::ModelArgs;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{FileType, fstat};
use std::io::{self, IsTerminal};

#[derive(ClapArgs, Debug)]
#[command(
    override_usage = "komado ask [OPTIONS] [SESSION] QUESTION\n       komado ask [OPTIONS] --again SESSION"
)]
pub(crate) struct Args {
    /// The session, or SESSION/THREAD (a new one when left out), and the question; `-` or a pipe for standard input
    #[arg(num_args = 0.., value_names = ["SESSION", "QUESTION"])]
    words: Vec<String>,
    /// Say nothing new: ask once more after a failure, or after results
    #[arg(long)]
    again: bool,
    #[command(flatten)]
    model: ModelArgs,
    #[command(flatten)]
    beginning: Beginning,
}

pub(crate) fn run(app: &mut App, args: Args) -> Outcome {
    let (address, question) = read(app, &args)?;
    let (session, thread) = address.map(|address| (address.session, address.thread)).unzip();
    let begun: fn(&Found) = match session {
        None => |found| say(format!("session: {}", komado_ops::change::name(found))),
        Some(_) => |_| (),
    };
    let request = Ask {
        session: session.map(|session| session.to_string()),
        thread: thread.flatten().map(|thread| thread.to_string()),
        question,
        beginning: args.beginning,
        model: args.model,
    };
    let interrupt = Interrupt::listen();
    let mut listener = Stoppable::new(Answer::onto(&app.paper), &interrupt, begun);
    match request.hear(&app.context, &mut listener) {
        Ok(answered) => {
            listener.printed?;
            answered.check()?;
            app.print(&answered)
        }
        Err(fault) => {
            // What was printed of the answer stays on its line.
            let answer = &mut listener.answer;
            answer.end()?;
            Err(match answer.name().filter(|_| answer.is_kept) {
                Some(name) => {
                    fault.and(format!("the question is kept: `komado ask --again {name}` asks once more"))
                }
                None => fault,
            })
        }
    }
}

/// Which session, and what is asked.
fn read(app: &App, args: &Args) -> Outcome<(Option<Address>, Option<String>)> {
    let named = |word: &String| word.parse::<Address>().map_err(Fault::from);
    if args.again {
        return match args.words.as_slice() {
            [session] => Ok((Some(named(session)?), None)),
            _ => Err(Fault::usage("--again takes a session and no question: komado ask --again SESSION")),
        };
    }
    let (address, question) = match args.words.as_slice() {
        [] => (None, read_stdin()?),
        [only] if only == "-" => (None, read_stdin()?),
        [only] => match piped_for(app, only)? {
            Some(question) => (Some(named(only)?), question),
            None => (None, with_pipe(only.clone())),
        },
        [session, dash] if dash == "-" => (Some(named(session)?), read_stdin()?),
        [session, rest @ ..] => {
            if !is_session(app, session) {
                return Err(Fault::new(
                    Exit::NotFound,
                    format!(
                        "there is no session {session:?}; `komado sessions` lists them, and a question of several words \
                         to a new session stands in quotes"
                    ),
                ));
            }
            (Some(named(session)?), with_pipe(rest.join(" ")))
        }
    };
    if question.trim().is_empty() {
        return Err(Fault::usage("nothing is asked: write the question, or pipe it in"));
    }
    Ok((address, Some(question)))
}

/// The question. What waits in a pipe beside it is not read, since it may be meant for whoever comes next, but it is told.
fn with_pipe(question: String) -> String {
    let input = io::stdin();
    let is_pipe = fstat(&input).is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::Fifo);
    let mut waits = [PollFd::new(&input, PollFlags::IN)];
    let now = Timespec { tv_sec: 0, tv_nsec: 0 };
    if is_pipe && poll(&mut waits, Some(&now)).is_ok() && waits[0].revents().contains(PollFlags::IN) {
        say("komado: what is in the pipe is not read; `-` in place of the question reads it");
    }
    question
}

/// What is piped in for a session of that name; `None` when there is no such session, or nothing in the pipe: then the
/// word is the question, though a session's name may begin so.
fn piped_for(app: &App, word: &str) -> Outcome<Option<String>> {
    if io::stdin().is_terminal() || !is_session(app, word) {
        return Ok(None);
    }
    Ok(Some(read_stdin()?).filter(|text| !text.trim().is_empty()))
}

fn is_session(app: &App, word: &str) -> bool {
    word.parse::<Address>().is_ok_and(|address| app.find(&address).is_ok())
}
