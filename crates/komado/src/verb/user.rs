//! `komado user`: a user's standing session, messages and habits; and forgetting a user.

mod forget;

use crate::app::App;
use crate::fault::Outcome;
use clap::{Args as ClapArgs, Subcommand};
use komado_ops::user::{ListUsers, RecentMessages, ShowUser, UserSession};

#[derive(ClapArgs, Debug)]
pub(crate) struct Args {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand, Debug)]
enum Verb {
    /// Open a user's standing session; it is made where it is not there
    Session(UserSession),
    /// List the users there are, by name
    List {
        /// At most so many
        #[arg(short = 'n', long, default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..))]
        limit: u32,
        /// Only those after this one by name
        #[arg(long, value_name = "USER")]
        after: Option<String>,
    },
    /// Show what was said lately over all of a user's sessions, the newest first
    Recent {
        /// The user
        user: String,
        /// At most so many
        #[arg(short = 'n', long, default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..))]
        limit: u32,
        /// Only what was said before this: the `cursor` of the last message shown with --json
        #[arg(long, value_name = "CURSOR")]
        before: Option<String>,
    },
    /// Show how a user talks: sessions, models, tools, hours, common words
    Show(ShowUser),
    /// Export everything of a user, then erase it
    Forget(forget::Args),
}

pub(crate) fn run(app: &mut App, args: Args) -> Outcome {
    match args.verb {
        Verb::Session(request) => app.show(request),
        Verb::List { limit, after } => app.show(ListUsers::after(after.as_deref(), limit)?),
        Verb::Recent { user, limit, before } => {
            app.show(RecentMessages { user, limit: Some(limit), cursor: before })
        }
        Verb::Show(request) => app.show(request),
        Verb::Forget(args) => forget::run(app, args),
    }
}
