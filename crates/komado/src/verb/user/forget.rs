//! `komado user forget`: everything of a user, kept outside and then erased.
//!
//! First every session is exported and read back; only then is anything erased, and nothing that changed meanwhile. What is
//! to be done and what was is written to `erasures.jsonl` in the base folder, also where it broke off: when, who did it, how
//! much, digests; no name and no content.

use super::erasures::Erasures;
use crate::app::{App, hostname};
use crate::fault::{Exit, Fault, Outcome};
use crate::paper::{count, say, text_of};
use crate::private;
use crate::server::access::keys::{self, Keys};
use crate::server::api;
use clap::Args as ClapArgs;
use komado_core::SessionId;
use komado_store::Stage;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::io::{self, BufRead, IsTerminal};
use std::path::{Path, PathBuf};

#[derive(ClapArgs, Debug)]
pub(crate) struct Args {
    /// The user
    user: String,
    /// Where the exports go: an empty folder, or one that is made; forgotten-TIME here when left out
    #[arg(long, value_name = "DIR")]
    export: Option<PathBuf>,
    /// Erase the rest where some sessions are being written; those are named and stay
    #[arg(long)]
    force: bool,
    /// Only say what would be erased
    #[arg(long)]
    dry_run: bool,
    /// Do not ask
    #[arg(long)]
    yes: bool,
}

/// What there is of a user.
struct Found {
    sessions: u64,
    jobs: u64,
    /// Sessions that somebody writes or works on, each with who.
    live: Vec<(SessionId, String)>,
}

pub(crate) fn run(app: &mut App, args: Args) -> Outcome {
    let found = look(app, &args.user)?;
    if args.dry_run {
        return tell(app, &found);
    }
    check_live(&found, args.force, "--force")?;
    agree(&args, &found)?;
    let folder = folder(app, args.export)?;
    let base_dir = app.context.config.base_dir.clone();
    let answers = |id: &SessionId| api::forget_session(&base_dir, id);
    let mut erasing = Erasing::new(app, &args.user, &found, by(), &answers)?;
    let exported = erasing.forget(app, &args.user, &folder)?;
    end(app, &args.user, &erasing, exported, &folder)
}

/// One who is to be forgotten, as asked for over HTTP.
pub(crate) struct Asked<'a> {
    pub(crate) user: &'a str,
    pub(crate) force: bool,
    pub(crate) dry_run: bool,
    /// Who asks.
    pub(crate) by: String,
    /// Forgets what calls about a session were answered.
    pub(crate) answers: &'a dyn Fn(&SessionId) -> Outcome,
}

/// Forgets whom somebody elsewhere asks to forget. The exports only show that nothing changes while it is erased: they are
/// gone with it, for whoever asks has no folder here.
pub(crate) fn asked(app: &App, asked: &Asked<'_>) -> Outcome<Value> {
    let found = look(app, asked.user)?;
    if asked.dry_run {
        return Ok(found.json());
    }
    check_live(&found, asked.force, "force=true")?;
    let folder = private::temporary("komado-", &std::env::temp_dir())?;
    let mut erasing = Erasing::new(app, asked.user, &found, asked.by.clone(), asked.answers)?;
    erasing.forget(app, asked.user, folder.path())?;
    Ok(erasing.json(&keys_of(app, asked.user)?))
}

/// Refuses to begin where somebody is at a session; `way` is how to erase the rest.
fn check_live(found: &Found, force: bool, way: &str) -> Outcome {
    if found.live.is_empty() || force {
        return Ok(());
    }
    let named: Vec<String> = found.live.iter().map(|(id, who)| format!("{id} by {who}")).collect();
    Err(Fault::new(
        Exit::Busy,
        format!(
            "nothing was erased: {} being written or worked on: {}; wait for them to end, or erase the rest with {way}",
            count(named.len() as u64, "session"),
            named.join(", ")
        ),
    ))
}

/// Counts a user's sessions and jobs; whoever writes one, or works on its job, is named.
fn look(app: &App, user: &str) -> Outcome<Found> {
    let mut found = Found { sessions: 0, jobs: 0, live: Vec::new() };
    app.context.engine.each_of_user(user, |id| {
        found.sessions += 1;
        if let Some(holder) = app.context.engine.store().writer(id)? {
            found.live.push((id.clone(), holder.to_string()));
        }
        Ok(())
    })?;
    app.context.engine.each_job_of(user, |queued| {
        found.jobs += 1;
        if let Stage::Held(holder) = &queued.stage
            && !found.live.iter().any(|(id, _)| *id == queued.job.session)
        {
            found.live.push((queued.job.session.clone(), holder.to_string()));
        }
    })?;
    if found.sessions == 0 && found.jobs == 0 {
        let hint = "`komado user list` lists them";
        return Err(Fault::new(Exit::NotFound, format!("there is no user {user:?}; {hint}")));
    }
    Ok(found)
}

impl Found {
    /// What would be erased.
    fn json(&self) -> Value {
        let live: Vec<&str> = self.live.iter().map(|(id, _)| id.as_str()).collect();
        json!({ "would_erase": self.sessions, "jobs": self.jobs, "live": live, "erased": 0 })
    }
}

fn tell(app: &mut App, found: &Found) -> Outcome {
    if app.paper.json {
        return app.paper.json(&found.json());
    }
    let (sessions, jobs) = (count(found.sessions, "session"), count(found.jobs, "job"));
    app.paper.line(format!("would export and erase {sessions}, and withdraw {jobs}"))?;
    for (id, who) in &found.live {
        app.paper.line(format!("{id} is being written or worked on by {who} and would stay"))?;
    }
    Ok(())
}

/// What is erased cannot be brought back: a person is asked, and a program must have said so.
fn agree(args: &Args, found: &Found) -> Outcome {
    if args.yes {
        return Ok(());
    }
    let (what, jobs) = (count(found.sessions, "session"), count(found.jobs, "job"));
    if !io::stdin().is_terminal() {
        return Err(Fault::new(
            Exit::Refused,
            format!(
                "this exports {what} and erases them for good, and withdraws {jobs}; say --yes to do it, or --dry-run to look"
            ),
        ));
    }
    say(format!(
        "This exports {what} of {:?} and erases them for good, and withdraws {jobs}. Type the user's name to go on:",
        args.user
    ));
    let mut typed = String::new();
    io::stdin().lock().read_line(&mut typed)?;
    match typed.trim() == args.user {
        true => Ok(()),
        false => Err(Fault::new(Exit::Refused, "that is another name; nothing was erased")),
    }
}

/// An empty folder: what an earlier export left is never written over.
fn folder(app: &App, asked: Option<PathBuf>) -> Outcome<PathBuf> {
    let now: String = app.context.engine.now().chars().filter(|c| *c != ':').collect();
    let folder = asked.unwrap_or_else(|| PathBuf::from(format!("forgotten-{now}")));
    private::folder(&folder)?;
    let (inside, base) = (folder.canonicalize()?, app.context.config.base_dir.canonicalize());
    if app.context.files.is_some() && base.is_ok_and(|base| inside.starts_with(base)) {
        return Err(Fault::usage(format!(
            "{} is inside the folder that is to forget; give --export another one",
            folder.display()
        )));
    }
    if std::fs::read_dir(&folder)?.next().is_some() {
        return Err(Fault::usage(format!(
            "{} is not empty, and nothing in it is written over; give --export an empty folder, or one that is not there \
             yet",
            folder.display()
        )));
    }
    Ok(folder)
}

/// A user being forgotten.
struct Erasing<'a> {
    /// Where it is written down.
    record: Erasures,
    /// What stands for the user there.
    user: String,
    /// Who does it.
    by: String,
    /// Forgets what calls about a session were answered.
    answers: &'a dyn Fn(&SessionId) -> Outcome,
    live: BTreeSet<SessionId>,
    erased: u64,
    jobs: u64,
    /// Sessions that stay, each with why.
    left: Vec<(SessionId, String)>,
    /// Sessions that were erased, each with why something of them remains elsewhere.
    remains: Vec<(SessionId, String)>,
}

impl<'a> Erasing<'a> {
    fn new(
        app: &App,
        user: &str,
        found: &Found,
        by: String,
        answers: &'a dyn Fn(&SessionId) -> Outcome,
    ) -> Outcome<Self> {
        app.claim()?;
        let record = Erasures::open(&app.context.config.base_dir)?;
        Ok(Self {
            user: record.digest(user),
            record,
            by,
            answers,
            live: found.live.iter().map(|(id, _)| id.clone()).collect(),
            erased: 0,
            jobs: 0,
            left: Vec::new(),
            remains: Vec::new(),
        })
    }

    /// Exports everything into `folder`, then erases it; gives how many sessions were exported.
    fn forget(&mut self, app: &App, user: &str, folder: &Path) -> Outcome<u64> {
        let exported = self.export(app, user, folder)?;
        self.note(app, &json!({ "erasing": exported }))?;
        let done = self.erase(app, user, folder);
        // What was erased is noted also where the store went away in the middle.
        self.note(app, &self.done(done.is_ok()))?;
        done.map(|()| exported)
    }

    /// Exports every session; what goes wrong here stops everything, and nothing was erased.
    fn export(&self, app: &App, user: &str, folder: &Path) -> Outcome<u64> {
        let mut exported = 0;
        let mut failed = None;
        app.context.engine.each_of_user(user, |id| {
            if self.live.contains(id) || failed.is_some() {
                return Ok(());
            }
            let kept = app.context.engine.keep(id, folder)?;
            exported += 1;
            failed = self.note(app, &json!({ "export": kept.digest, "bytes": kept.bytes })).err();
            Ok(())
        })?;
        failed.map_or(Ok(exported), Err)
    }

    /// Erases what was exported, and withdraws jobs.
    fn erase(&mut self, app: &App, user: &str, folder: &Path) -> Outcome {
        app.context.engine.each_of_user(user, |id| {
            if self.live.contains(id) {
                self.left.push((id.clone(), "somebody writes it or works on it".to_owned()));
                return Ok(());
            }
            match app.context.engine.erase(id, folder) {
                Ok(true) => self.gone(app, id),
                Ok(false) => self.left.push((id.clone(), "it changed since it was exported".to_owned())),
                Err(error) => self.left.push((id.clone(), error.to_string())),
            }
            Ok(())
        })?;
        let left = &mut self.left;
        self.jobs += app.context.engine.withdraw_jobs(user, |id| {
            if !left.iter().any(|(known, _)| known == id) {
                left.push((id.clone(), "somebody works on its job".to_owned()));
            }
        })?;
        Ok(())
    }

    /// Counts a session that is gone, and takes away what stands beside it.
    fn gone(&mut self, app: &App, id: &SessionId) {
        self.erased += 1;
        match app.context.engine.store().withdraw(id) {
            Ok(was_there) => self.jobs += u64::from(was_there),
            Err(error) => self.remains.push((id.clone(), format!("its job: {error}"))),
        }
        if let Err(fault) = (self.answers)(id) {
            self.remains.push((id.clone(), format!("answers to calls: {}", fault.message())));
        }
    }

    /// What was done, and what was not, for programs.
    fn json(&self, keys: &[String]) -> Value {
        let rows = |all: &[(SessionId, String)]| -> Vec<Value> {
            all.iter().map(|(id, why)| json!({ "session": id.as_str(), "why": why })).collect()
        };
        json!({
            "erased": self.erased, "jobs": self.jobs, "left": rows(&self.left),
            "remains": rows(&self.remains), "keys": keys,
        })
    }

    /// What was done, for the record; `broke_off` where not all was tried.
    fn done(&self, is_whole: bool) -> Value {
        let mut line = json!({ "erased": self.erased, "left": self.left.len(), "jobs": self.jobs });
        if !is_whole {
            line["broke_off"] = json!(true);
        }
        line
    }

    /// Adds a line to the record of erasures; durable when it returns.
    fn note(&self, app: &App, what: &Value) -> Outcome {
        let mut line =
            json!({ "at": app.context.engine.now(), "by": self.by, "user_digest": self.user, "keyed": true });
        if let (Some(line), Some(what)) = (line.as_object_mut(), what.as_object()) {
            line.extend(what.clone());
        }
        self.record.add(&line)
    }
}

/// Who does it, as far as the system knows.
fn by() -> String {
    let name = std::env::var("USER").or_else(|_| std::env::var("LOGNAME"));
    let name = name.unwrap_or_else(|_| format!("uid {}", rustix::process::getuid().as_raw()));
    format!("{name}@{}", hostname())
}

/// The names of the keys that still name the user.
fn keys_of(app: &App, user: &str) -> Outcome<Vec<String>> {
    let all = Keys::read(&keys::place(&app.context.config.base_dir))?;
    let theirs = all.iter().filter(|key| key.user.as_deref() == Some(user));
    Ok(theirs.map(|key| key.name.clone()).collect())
}

fn end(app: &mut App, user: &str, erasing: &Erasing<'_>, exported: u64, folder: &Path) -> Outcome {
    let keys = keys_of(app, user)?;
    if app.paper.json {
        let mut row = erasing.json(&keys);
        row["exported"] = json!(exported);
        row["folder"] = json!(text_of(folder));
        row["undo"] = json!("komado import FILE");
        app.paper.json(&row)?;
    } else {
        app.paper.line(format!("exported {} to {}", count(exported, "session"), folder.display()))?;
        app.paper.line(format!(
            "erased {} and {}",
            count(erasing.erased, "session"),
            count(erasing.jobs, "job")
        ))?;
        say("undo: komado import FILE, for each file of that folder; remove it to forget for good");
    }
    for (id, why) in &erasing.left {
        say(format!("komado: session {id} stays: {why}"));
    }
    for (id, why) in &erasing.remains {
        say(format!("komado: session {id} was erased, but something of it remains: {why}"));
    }
    for key in keys {
        say(format!("komado: key {key} still names this user; `komado key revoke {key}` takes it back"));
    }
    match erasing.left.len() as u64 {
        0 if erasing.remains.is_empty() => Ok(()),
        0 => Err(Fault::new(Exit::Failed, "something of what was erased remains; it is named above")),
        n => Err(Fault::new(Exit::Busy, format!("{} stayed; run this again later", count(n, "session")))),
    }
}
