//! `komado user`: a user's standing session, messages and habits; forgetting a user. `komado admin key`: the keys of clients of `komado serve`.

use crate::app::App;
use crate::cli_output::{count, say, text_of};
use komado_ops::key::{AddKey, ListKeys, RevokeKey};
use komado_ops::session::hostname;
use komado_ops::user::{
    ForgetUser, ForgottenUser, ListUsers, RecentMessages, ShowUser, UserSession, WouldForget,
};
use komado_ops::{FaultKind, OpFault, OpResult, private};
use std::io::{self, BufRead, IsTerminal};
use std::path::{Path, PathBuf};

verbs! {
    pub(crate) enum UserVerb {
        /// Open a user's standing session, or create it
        Session(UserSession),
        /// List users by name
        List(ListUsers),
        /// Show a user's latest messages in all sessions, newest first
        Recent(RecentMessages),
        /// Show how a user talks: sessions, models, tools, hours, common words
        Show(ShowUser),
        /// Export all of a user's sessions, then erase them
        Forget(ForgetArgs) => forget,
    }
}

verbs! {
    pub(crate) enum KeyVerb {
        /// Create a key and show it once
        Add(AddKey),
        /// List the keys, without their secrets
        List(ListKeys),
        /// Revoke a key, from the next request on
        Revoke(RevokeKey),
    }
}

#[derive(clap::Args, Debug)]
pub(crate) struct ForgetArgs {
    /// The user
    user: String,
    /// Where the exports go: an empty folder, or one that is made; forgotten-TIME here when left out
    #[arg(long, value_name = "DIR")]
    export: Option<PathBuf>,
    /// Erase the rest where some sessions are being written; those are named and stay
    #[arg(long)]
    force: bool,
    /// Show what would be erased, and erase nothing
    #[arg(long)]
    dry_run: bool,
    /// Do not ask for confirmation
    #[arg(long)]
    yes: bool,
}

/// Everything of a user is kept in a folder and then erased, once a person agreed.
fn forget(app: &mut App, args: ForgetArgs) -> OpResult {
    let request = ForgetUser { user: args.user.clone(), dry_run: args.dry_run, force: args.force };
    let found = request.plan(&app.context)?;
    if args.dry_run {
        return tell(app, &found);
    }
    request.check_live(&found)?;
    agree(&args, &found)?;
    let folder = folder(app, args.export)?;
    let (mut done, exported) = request.erase(&app.context, &folder, by())?;
    done.exported = Some(exported);
    done.folder = Some(text_of(&folder));
    done.undo = Some("komado import FILE".to_owned());
    end(app, &done, exported, &folder)
}

fn tell(app: &mut App, found: &WouldForget) -> OpResult {
    if app.paper.json {
        return app.paper.json(found);
    }
    let (sessions, jobs) = (count(found.would_erase, "session"), count(found.jobs, "job"));
    app.paper.line(format!("would export and erase {sessions}, and withdraw {jobs}"))?;
    for (id, holder) in found.live.iter().zip(&found.holders) {
        app.paper.prose(&format!("{id} is being written or worked on by {holder} and would stay"))?;
    }
    Ok(())
}

/// What is erased cannot be brought back: a person is asked, and a program must have said so.
fn agree(args: &ForgetArgs, found: &WouldForget) -> OpResult {
    if args.yes {
        return Ok(());
    }
    let (what, jobs) = (count(found.would_erase, "session"), count(found.jobs, "job"));
    if !io::stdin().is_terminal() {
        return Err(OpFault::new(
            FaultKind::Refused,
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
        false => Err(OpFault::new(FaultKind::Refused, "that is another name; nothing was erased")),
    }
}

/// An empty folder: what an earlier export left is never written over.
fn folder(app: &App, asked: Option<PathBuf>) -> OpResult<PathBuf> {
    let now: String = app.context.engine.now().chars().filter(|c| *c != ':').collect();
    let folder = asked.unwrap_or_else(|| PathBuf::from(format!("forgotten-{now}")));
    private::folder(&folder)?;
    let (inside, base) = (folder.canonicalize()?, app.context.config.base_dir.canonicalize());
    if app.context.files.is_some() && base.is_ok_and(|base| inside.starts_with(base)) {
        return Err(OpFault::usage(format!(
            "{} is inside the folder that is to forget; give --export another one",
            folder.display()
        )));
    }
    if std::fs::read_dir(&folder)?.next().is_some() {
        return Err(OpFault::usage(format!(
            "{} is not empty, and nothing in it is written over; give --export an empty folder, or one that is not there \
             yet",
            folder.display()
        )));
    }
    Ok(folder)
}

/// Who does it, as far as the system knows.
fn by() -> String {
    let name = std::env::var("USER").or_else(|_| std::env::var("LOGNAME"));
    let name = name.unwrap_or_else(|_| format!("uid {}", rustix::process::getuid().as_raw()));
    format!("{name}@{}", hostname())
}

fn end(app: &mut App, done: &ForgottenUser, exported: u64, folder: &Path) -> OpResult {
    if app.paper.json {
        app.paper.json(done)?;
    } else {
        app.paper.prose(&format!("exported {} to {}", count(exported, "session"), folder.display()))?;
        app.paper.line(format!(
            "erased {} and {}",
            count(done.erased, "session"),
            count(done.jobs, "job")
        ))?;
        say("undo: komado import FILE, for each file of that folder; remove it to forget for good");
    }
    for one in &done.left {
        say(format!("komado: session {} stays: {}", one.session, one.why));
    }
    for one in &done.remains {
        let (id, why) = (&one.session, &one.why);
        say(format!("komado: session {id} was erased, but something of it remains: {why}"));
    }
    for key in &done.keys {
        say(format!(
            "komado: key {key} still names this user; `komado admin key revoke {key}` takes it back"
        ));
    }
    match done.left.len() as u64 {
        0 if done.remains.is_empty() => Ok(()),
        0 => Err(OpFault::new(FaultKind::Failed, "something of what was erased remains; it is named above")),
        n => Err(OpFault::new(
            FaultKind::Busy,
            format!("{} stayed; run this again later", count(n, "session")),
        )),
    }
}
