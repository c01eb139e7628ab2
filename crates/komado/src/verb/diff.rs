//! `komado diff`: two moments by their addresses.

use crate::app::App;
use crate::fault::{Fault, Outcome};
use clap::Args as ClapArgs;
use komado_core::Address;
use komado_engine::engine::Found;
use komado_ops::address::AtSession;
use komado_ops::window::Diff;

#[derive(ClapArgs, Debug)]
pub(crate) struct Args {
    /// The earlier moment, SESSION@SEQ
    before: Address,
    /// The later moment; now when left out
    after: Option<Address>,
}

pub(crate) fn run(app: &mut App, args: Args) -> Outcome {
    let before = app.find(&args.before)?;
    let after = args.after.as_ref().map(|address| app.find(address)).transpose()?;
    if after.as_ref().is_some_and(|after| after.session != before.session) {
        return Err(Fault::usage("two sessions share nothing to compare; name two moments of one"));
    }
    let columns = app.paper.width.saturating_sub(2);
    app.show(Diff {
        at: AtSession { session: Some(before.session.to_string()) },
        from: moment(&before),
        to: after.as_ref().map(moment),
        columns: (!app.paper.json).then(|| u32::try_from(columns).unwrap_or(u32::MAX)),
    })
}

fn moment(found: &Found) -> String {
    let at = found.seq.map(|seq| format!("@{seq}")).unwrap_or_default();
    format!("{}{at}", found.thread)
}
