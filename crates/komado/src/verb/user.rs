//! `komado user`: a user's standing session, messages and habits; and forgetting a user.

mod erasures;
pub(crate) mod forget;
mod show;

use crate::app::App;
use crate::fault::{Fault, Outcome};
use crate::paper::{number, say};
use crate::table::table;
use clap::{Args as ClapArgs, Subcommand};
use komado_core::notation::tamed;
use komado_core::session::Session;
use komado_engine::user::Place;
use komado_ops::session::SessionRow;
use serde_json::json;

#[derive(ClapArgs, Debug)]
pub(crate) struct Args {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand, Debug)]
enum Verb {
    /// Open a user's standing session; it is made where it is not there
    Session(Standing),
    /// List the users there are, by name
    List(List),
    /// Show what was said lately over all of a user's sessions, the newest first
    Recent(Recent),
    /// Show how a user talks: sessions, models, tools, hours, common words
    Show {
        /// The user
        user: String,
    },
    /// Export everything of a user, then erase it
    Forget(forget::Args),
}

#[derive(ClapArgs, Debug)]
struct Standing {
    /// The user
    user: String,
    /// The model it will talk to, where it is made
    #[arg(long)]
    model: Option<String>,
    /// The model's window in tokens, where it is made
    #[arg(long, value_name = "TOKENS", value_parser = clap::value_parser!(u32).range(1..))]
    window: Option<u32>,
}

#[derive(ClapArgs, Debug)]
struct List {
    /// At most so many
    #[arg(short = 'n', long, default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..))]
    limit: u32,
    /// Only those after this one by name
    #[arg(long, value_name = "USER")]
    after: Option<String>,
}

#[derive(ClapArgs, Debug)]
struct Recent {
    /// The user
    user: String,
    /// At most so many
    #[arg(short = 'n', long, default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..))]
    limit: u32,
    /// Only what was said before this: the `cursor` of the last message shown with --json
    #[arg(long, value_name = "CURSOR")]
    before: Option<String>,
}

pub(crate) fn run(app: &mut App, args: Args) -> Outcome {
    match args.verb {
        Verb::Session(args) => session(app, args),
        Verb::List(args) => list(app, &args),
        Verb::Recent(args) => recent(app, &args),
        Verb::Show { user } => show::run(app, &user),
        Verb::Forget(args) => forget::run(app, args),
    }
}

/// A user's standing session, and whether it was made now.
pub(crate) fn open(
    app: &mut App,
    user: &str,
    model: Option<String>,
    window: Option<u32>,
) -> Outcome<(Session, bool)> {
    let (id, found) = app.context.engine.standing(user)?;
    if let Some(session) = found {
        return Ok((session, false));
    }
    match komado_ops::session::make(app, &id, user, model, window) {
        Ok(()) => Ok((app.context.session(&id)?, true)),
        // Somebody was faster.
        Err(fault) => match app.context.engine.standing(user)? {
            (_, Some(session)) => Ok((session, false)),
            (_, None) => Err(fault),
        },
    }
}

fn session(app: &mut App, args: Standing) -> Outcome {
    let (session, is_new) = open(app, &args.user, args.model, args.window)?;
    if app.paper.json {
        let mut row = json!(SessionRow::from(session));
        row["made"] = json!(is_new);
        return app.paper.json(&row);
    }
    app.paper.line(&session.meta.uuid)?;
    let what = if is_new { "made" } else { "there since" };
    say(format!("{what} {}; {}", session.meta.created_at, session.status.name()));
    if session.status.is_ended() {
        say(format!("`komado resume {}` opens it again", session.meta.uuid));
    }
    Ok(())
}

fn list(app: &mut App, args: &List) -> Outcome {
    let users = app.context.engine.users(args.after.as_deref(), args.limit as usize)?;
    if app.paper.json {
        return users.iter().try_for_each(|user| app.paper.json(user));
    }
    let mut rows =
        vec![["user", "sessions", "tokens", "first seen", "last seen"].map(str::to_owned).to_vec()];
    rows.extend(users.iter().map(|user| {
        let date = |at: &str| at.chars().take(19).collect::<String>();
        vec![
            user.user.clone(),
            number(user.sessions),
            number(user.total_tokens),
            date(&user.first_seen),
            date(&user.last_seen),
        ]
    }));
    table(&rows, &[1, 2]).into_iter().try_for_each(|line| app.paper.fit(&line))?;
    if let Some(last) = users.last().filter(|_| users.len() == args.limit as usize) {
        say(format!("more: komado user list --after {:?}", last.user));
    }
    Ok(())
}

fn recent(app: &mut App, args: &Recent) -> Outcome {
    let before = args.before.as_deref().map(cursor).transpose()?;
    for place in app.context.engine.recent(&args.user, before.as_ref(), args.limit as usize)? {
        let cursor = json!(place).to_string();
        let spoken = app.context.engine.spoken(place)?;
        if app.paper.json {
            let mut row = json!(spoken);
            row["cursor"] = json!(cursor);
            app.paper.json(&row)?;
            continue;
        }
        let place = &spoken.place;
        let at = tamed(&place.timestamp.chars().take(19).collect::<String>());
        let address = format!("{}/{}@{}", place.session, place.thread, place.seq);
        let text = tamed(&spoken.text.split_whitespace().collect::<Vec<_>>().join(" "));
        app.paper.fit(&format!("{at}  {:<9}  {address}  {text}", spoken.role))?;
    }
    Ok(())
}

fn cursor(text: &str) -> Outcome<Place> {
    serde_json::from_str(text).map_err(|_| {
        Fault::usage(format!("not a cursor: {text:?}; take `cursor` of a message shown with --json"))
    })
}
