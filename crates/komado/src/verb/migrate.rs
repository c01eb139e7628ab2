//! `komado migrate`: sessions from one store into another.

mod tally;

use crate::app::App;
use crate::fault::{Exit, Fault, Outcome};
use crate::paper::{count, number, say};
use crate::progress;
use crate::stores;
use clap::{Args as ClapArgs, ValueEnum};
use indicatif::ProgressBar;
use komado_core::SessionId;
use komado_core::session::Session;
use komado_engine::Engine;
use komado_engine::migrate::{Error, Left, Live, Migration, Progress, Then};
use komado_store::{Query, Store};
use serde_json::json;
use std::collections::BTreeSet;
use std::io;
use tally::Tally;

/// How often a session that is being written is gone over.
const ROUNDS: u32 = 8;

/// What to do about sessions that somebody writes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum OnLive {
    /// Name them and leave them
    Refuse,
    /// Copy them, then what came since
    CatchUp,
}

#[derive(ClapArgs, Debug)]
pub(crate) struct Args {
    /// The store to read: file:DIR, postgres://… or redis://…; file: alone is the folder of the settings
    #[arg(long, value_name = "URL")]
    from: String,
    /// The store to write
    #[arg(long, value_name = "URL")]
    to: String,
    /// Only these sessions
    #[arg(long = "session", value_name = "ID", num_args = 1.., conflicts_with = "user")]
    sessions: Vec<SessionId>,
    /// Only this user's sessions
    #[arg(long)]
    user: Option<String>,
    /// What to do about a session that somebody writes
    #[arg(long, value_enum, default_value = "refuse")]
    live: OnLive,
    /// Only say what would be copied
    #[arg(long, conflicts_with_all = ["verify_only", "delete_source"])]
    dry_run: bool,
    /// Only compare what both stores hold
    #[arg(long, conflicts_with = "delete_source")]
    verify_only: bool,
    /// Remove each session from the source once it was read back from the target and found the same
    #[arg(long)]
    delete_source: bool,
}

/// What is done with each session.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Way {
    Copy,
    Move,
    Look,
    Compare,
}

pub(crate) fn run(app: &mut App, args: Args) -> Outcome {
    if args.from == args.to {
        return Err(Fault::usage("source and target are the same store; give two different ones"));
    }
    check_lasting(app, &args)?;
    let (from, files) = stores::at(&args.from, "--from", &app.context.config)?;
    if let Some(files) = files.filter(|files| !files.base_dir().is_dir()) {
        let folder = files.base_dir().display();
        return Err(Fault::new(Exit::NotFound, format!("there is no folder {folder} to read sessions from")));
    }
    if args.to == "file:" {
        app.claim()?;
    }
    let (to, _) = stores::at(&args.to, "--to", &app.context.config)?;
    let live = match args.live {
        OnLive::Refuse => Live::Refuse,
        OnLive::CatchUp => Live::CatchUp { rounds: ROUNDS },
    };
    let way = match (args.dry_run, args.verify_only, args.delete_source) {
        (true, ..) => Way::Look,
        (_, true, _) => Way::Compare,
        (.., true) => Way::Move,
        _ => Way::Copy,
    };
    let mut run = Run {
        migration: Migration::new(&*from, &*to, live),
        source: Engine::new(from.clone(), std::sync::Arc::new(crate::clock::SystemClock)),
        bar: progress::bar("sessions", 0),
        way,
        tally: Tally::default(),
        refused: BTreeSet::new(),
    };
    run.sessions(app, &args)?;
    run.beside(app, &args)?;
    run.bar.finish_and_clear();
    run.end(app, &*to)
}

/// What is removed at the source must outlive this command at the target; what lasts only for a while is told first.
fn check_lasting(app: &App, args: &Args) -> Outcome {
    if !args.delete_source {
        return Ok(());
    }
    if args.to == "memory:" {
        return Err(Fault::usage(
            "--delete-source to memory: would lose every session, for memory is gone with this command; give --to a store \
             that stays",
        ));
    }
    let is_redis = args.to.starts_with("redis:") || args.to.starts_with("rediss:");
    if let Some(ttl) = app.context.config.store.ttl.filter(|_| is_redis) {
        let days = count(ttl.as_secs().div_ceil(24 * 3600), "day");
        say(format!(
            "komado: the target forgets a session {days} after it last changed (store.ttl_days; 0 for never), and it is \
             removed from the source"
        ));
    }
    Ok(())
}

/// A migration under way.
struct Run<'s> {
    migration: Migration<'s>,
    source: Engine,
    bar: ProgressBar,
    way: Way,
    tally: Tally,
    /// Sessions that stay at the source.
    refused: BTreeSet<SessionId>,
}

impl Run<'_> {
    /// Every session that is wanted, one after another; what goes wrong with one does not keep the others.
    fn sessions(&mut self, app: &mut App, args: &Args) -> Outcome {
        if !args.sessions.is_empty() {
            self.bar.set_length(args.sessions.len() as u64);
            return args.sessions.iter().try_for_each(|id| self.one(app, id));
        }
        let query = Query { user: args.user.clone(), ..Query::default() };
        let mut all = 0;
        self.source.each_session(query.clone(), |_| {
            all += 1;
            Ok(())
        })?;
        self.bar.set_length(all);
        let source = self.source.clone();
        let mut failed = None;
        let paged = source.each_session(query, |session: &Session| {
            let id = SessionId::new(session.meta.uuid.as_str())?;
            failed = self.one(app, &id).err();
            // What stops all others stops the paging, too; what it was is told below.
            let stop = || komado_engine::Error::Io(io::Error::from(io::ErrorKind::Interrupted));
            failed.is_none().then_some(()).ok_or_else(stop)
        });
        failed.map_or_else(|| Ok(paged?), Err)
    }

    /// One session. Only what would stop all others stops here: a store that is away, one store under two names, no paper.
    fn one(&mut self, app: &mut App, id: &SessionId) -> Outcome {
        let done = self.done(id);
        self.bar.inc(1);
        match done {
            Ok(row) => {
                if app.paper.json {
                    app.paper.json(&row)?;
                }
                // Whoever watches sees each session when it is there, not at the end.
                app.paper.flush()
            }
            Err(Error::SameStore) => Err(Fault::usage(Error::SameStore.to_string())),
            Err(Error::Store(away)) if away.is_away() => Err(away.into()),
            Err(error) => {
                self.refused.insert(id.clone());
                self.refuse(app, id.as_str(), &error.to_string())
            }
        }
    }

    fn refuse(&mut self, app: &mut App, id: &str, why: &str) -> Outcome {
        self.tally.failed += 1;
        if app.paper.json {
            return app.paper.json(&json!({ "session": id, "outcome": "left", "error": why }));
        }
        self.bar.suspend(|| say(format!("komado: {why}")));
        Ok(())
    }

    fn done(&mut self, id: &SessionId) -> Result<serde_json::Value, Error> {
        let tally = &mut self.tally;
        let outcome = |name: &str, rest: serde_json::Value| {
            let mut row = json!({ "session": id.as_str(), "outcome": name });
            if let (Some(row), serde_json::Value::Object(rest)) = (row.as_object_mut(), rest) {
                row.extend(rest);
            }
            row
        };
        Ok(match self.way {
            Way::Look => {
                let standing = self.migration.look(id)?;
                tally.looked(&standing);
                let name = if standing.there == standing.entries { "there" } else { "would copy" };
                outcome(name, tally::standing(&standing))
            }
            Way::Compare => {
                let seal = self.migration.verify(id)?;
                tally.compared(id, &seal);
                outcome("same", tally::seal(&seal))
            }
            Way::Copy | Way::Move => {
                let bar = &self.bar;
                let moved = self.migration.session(id, &mut |_: &Progress| bar.tick())?;
                tally.moved(id, &moved);
                if self.way == Way::Move && !self.migration.remove(id, &moved.seal)? {
                    return Err(Error::Growing { session: id.clone(), rounds: moved.rounds });
                }
                tally.removed += u64::from(self.way == Way::Move);
                let name = if moved.added == Progress::default() { "there" } else { "copied" };
                outcome(name, tally::moved(&moved))
            }
        })
    }

    /// What stands beside sessions: lessons, and the jobs of the sessions that were wanted and went.
    fn beside(&mut self, app: &mut App, args: &Args) -> Outcome {
        if !matches!(self.way, Way::Copy | Way::Move) {
            return Ok(());
        }
        let wrong = |error: Error| Fault::new(Exit::Failed, error.to_string());
        self.tally.lessons = self.migration.lessons().map_err(wrong)?;
        let mut left: Vec<Left> = Vec::new();
        let wanted = |job: &komado_store::Job| {
            let named = args.sessions.is_empty() || args.sessions.contains(&job.session);
            let went = !self.refused.contains(&job.session);
            Ok(named && went && (args.user.is_none() || job.user == args.user))
        };
        let then = if self.way == Way::Move { Then::Withdraw } else { Then::Keep };
        self.tally.jobs = self.migration.jobs(then, wanted, |job| left.push(job)).map_err(wrong)?;
        left.iter().try_for_each(|job| self.refuse(app, job.session.as_str(), &job.why))
    }

    fn end(self, app: &mut App, to: &dyn Store) -> Outcome {
        let kind = to.vitals().map(|vitals| vitals.kind).unwrap_or("store");
        if app.paper.json {
            app.paper.json(&self.tally.json())?;
        } else {
            self.tally.lines(self.way).into_iter().try_for_each(|line| app.paper.line(line))?;
        }
        if kind == "memory" {
            say("komado: the target is memory: it is gone with this command");
        }
        match self.tally.failed {
            0 => Ok(()),
            n => Err(Fault::new(Exit::Refused, format!("{} not moved; the reasons are above", number(n)))),
        }
    }
}
