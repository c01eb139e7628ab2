//! `komado thread run`: a task for a child thread, from its start to its chronicle.
//!
//! The child is held by this process: whatever ends it early, an error, Ctrl-C or `kill -9`, ends the child as aborted with
//! as much of a chronicle as there is, now or when the session is opened next. The parent goes on.

use super::ended;
use super::spawned::Wanted;
use crate::app::App;
use crate::connect::ModelArgs;
use crate::fault::{Exit, Fault, Outcome};
use crate::paper::say;
use crate::verb::append::read_stdin;
use crate::verb::ask;
use crate::verb::chat::answer::{Answer, Undo};
use crate::verb::chat::interrupt::Interrupt;
use crate::verb::chat::talk::Talk;
use clap::Args as ClapArgs;
use komado_core::Address;
use komado_core::journal::Ending;
use komado_core::thread::Status;
use komado_engine::Thread;
use komado_engine::converse::{Conversed, Library};
use komado_engine::engine::Found;
use komado_engine::model::ModelChoice;
use komado_engine::stelis::{Child, Finish, Finished, Telling};
use komado_store::Mode;
use serde_json::json;

/// Most characters of a task that serve as a label.
const LABEL: usize = 40;

#[derive(ClapArgs, Debug)]
pub(crate) struct Args {
    /// The session, or SESSION/THREAD: the thread it is started from
    address: Address,
    /// What is to be done; `-` for standard input
    #[arg(required = true)]
    task: Vec<String>,
    /// What it is about, for people and for the model; the beginning of the task when left out
    #[arg(long, value_name = "TEXT")]
    label: Option<String>,
    #[command(flatten)]
    wanted: Wanted,
    #[command(flatten)]
    model: ModelArgs,
}

pub(crate) fn run(app: &mut App, args: Args) -> Outcome {
    let found = app.find_now(&args.address)?;
    let task = if args.task == ["-"] { read_stdin()? } else { args.task.join(" ") };
    if task.trim().is_empty() {
        return Err(Fault::usage("there is nothing to do: write the task, or pipe it in with -"));
    }
    let own = app.context.session(&found.session)?.meta.config;
    app.context.config.threads(&own).check()?;
    let choice = ModelChoice::from(args.model);
    let model = app.models().resolve(&own, &choice)?;
    let setup = Library::offered(args.wanted.setup()?.unwrap_or_default());
    let label = args.label.unwrap_or_else(|| label(&task));
    let spawn = args.wanted.spawn(app, &own, app.models().our_window(&model)?, Some(label), Some(setup))?;
    let mut parent = app.context.open(&found, Mode::Write)?;
    let refused = |error| app.too_deep(&own, error, args.wanted.max_depth);
    let mut child = parent.spawn(&spawn).map_err(refused)?;
    app.settle(&mut parent);
    let here = Found { thread: child.header().thread.clone(), ..found };
    let talk = Talk::with(here, choice, model);
    say(format!("thread: {}", talk.name()));
    let mut answer = match app.paper.json {
        true => Answer::for_program(talk.found()),
        false => Answer::new(talk.found(), Undo::Shell),
    };
    let interrupt = Interrupt::listen();
    let asked = talk.ask_in(app, &mut child, Some(task), &interrupt, &mut answer);
    let asked = asked.and_then(|conversed| whole(&talk, conversed));
    let conversed = match asked {
        Ok(conversed) => conversed,
        Err(fault) => {
            answer.end()?;
            return Err(broken_off(app, &talk, child, &mut parent, fault));
        }
    };
    answer.own_words(&conversed.turned);
    // A reader that went away does not undo the work.
    let printed = answer.end();
    let finished = finish(app, &talk, child, &mut parent, &interrupt)?;
    app.settle(&mut parent);
    drop(parent);
    printed?;
    tell(app, &talk, &conversed, &answer, &finished)
}

/// The beginning of a task.
fn label(task: &str) -> String {
    let line = task.lines().find(|line| !line.trim().is_empty()).unwrap_or_default().trim();
    let mut label: String = line.chars().take(LABEL).collect();
    if label.len() < line.len() {
        label.push('…');
    }
    label
}

/// A conversation that came to an answer; an error says why it did not.
fn whole(talk: &Talk, conversed: Conversed) -> Outcome<Conversed> {
    if let Some(call) = conversed.open.first() {
        return Err(Fault::new(
            Exit::Failed,
            format!(
                "the model waits for {}, and nobody answers that here; `komado thread start` and `komado ask` let you",
                call.name
            ),
        ));
    }
    if conversed.gave_up {
        let (name, turns) = (&talk.found().thread, conversed.turns);
        return Err(Fault::new(
            Exit::Failed,
            format!("the model called tools for {turns} turns in {name} and said nothing"),
        ));
    }
    Ok(conversed)
}

/// Ends the child well, and tells its parent. Ctrl-C now stops only whoever writes the chronicle; the digest stands in.
fn finish(
    app: &App,
    talk: &Talk,
    child: Child<'_>,
    parent: &mut Thread<'_>,
    interrupt: &Interrupt,
) -> Outcome<Finished> {
    let result = None;
    if !app.context.config.models.summaries.has_writer() {
        let finish = Finish { ending: Ending::Completed, result, telling: Telling::Digest };
        return Ok(child.end(parent, finish)?);
    }
    let (session, watch) = (&talk.found().session, interrupt.watch());
    let with = Some(&talk.model);
    let mut writer = app.models().summariser(session, child.meter(), &talk.choice, with, &watch.cancel())?;
    let telling =
        Telling::By { by: writer.by(), settings: app.context.config.models.summaries.settings.clone() };
    Ok(child.end(parent, Finish { ending: Ending::Completed, result, telling })?)
}

/// Ends the child as aborted; what went wrong, and what became of it.
fn broken_off(app: &App, talk: &Talk, child: Child<'_>, parent: &mut Thread<'_>, fault: Fault) -> Fault {
    let aborted = child.abort(parent, Some(fault.message().to_owned()));
    app.settle(parent);
    let name = talk.name();
    let what = match aborted {
        Ok(_) => format!("{name} is aborted, with a partial chronicle"),
        Err(error) => format!("{name} is aborted when the session is opened next ({error})"),
    };
    fault.and(format!("{what}; `komado thread resume {name}` goes on with it"))
}

fn tell(app: &mut App, talk: &Talk, conversed: &Conversed, answer: &Answer, finished: &Finished) -> Outcome {
    let again = ended::again(&talk.found().session, finished.aborted.iter().rev());
    if app.paper.json {
        let mut row = ask::row(talk, conversed, answer);
        let ended = ended::as_json(talk.found(), Status::Completed, finished);
        for key in ["status", "chronicle", "aborted", "declined", "told"] {
            row[key] = ended[key].clone();
        }
        row["undo"] = json!(format!("komado thread resume {}", talk.name()));
        row["undo_aborted"] = json!(again);
        return app.paper.json(&row);
    }
    say(format!("{} is completed", talk.name()));
    ended::beside(finished);
    say(format!("undo: komado thread resume {}", talk.name()));
    again.iter().for_each(|undo| say(format!("      {undo}")));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::label;

    #[test]
    fn a_label_is_the_beginning_of_the_task_cut_between_characters() {
        assert_eq!(label("\n 直して \nmore"), "直して");
        assert_eq!(label(&"窓".repeat(41)), format!("{}…", "窓".repeat(40)));
    }
}
