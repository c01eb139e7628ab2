//! `komado sessions`: the sessions there are, or one session's threads.

use crate::app::App;
use crate::fault::Outcome;
use clap::Args as ClapArgs;
use komado_core::Address;
use komado_core::session::State;
use komado_ops::address::AtSession;
use komado_ops::choice::one_of;
use komado_ops::session::ListSessions;
use komado_ops::thread::ListThreads;

#[derive(ClapArgs, Debug)]
pub(crate) struct Args {
    /// List this session's threads
    pub(crate) address: Option<Address>,
    /// Only sessions in this state
    #[arg(long, value_parser = one_of(&State::ALL, State::name))]
    pub(crate) status: Option<State>,
    /// Only this user's
    #[arg(long)]
    pub(crate) user: Option<String>,
    /// At most so many, the newest
    #[arg(short = 'n', long, default_value_t = 50)]
    pub(crate) limit: u32,
}

pub(crate) fn run(app: &mut App, args: Args) -> Outcome {
    if let Some(address) = &args.address {
        let at = AtSession { session: Some(address.session.to_string()) };
        return app.show(ListThreads { at });
    }
    let Args { status, user, limit, .. } = args;
    let (limit, newest) = (Some(limit), Some(true));
    app.show(ListSessions { status, user, limit, newest, ..ListSessions::default() })
}
