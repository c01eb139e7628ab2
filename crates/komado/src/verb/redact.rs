//! `komado redact`: take a secret out for good, after consent.

use crate::app::App;
use crate::fault::{Exit, Fault, Outcome};
use clap::Args as ClapArgs;
use komado_core::Address;
use komado_ops::address::AtSession;
use komado_ops::journal::Redact;

#[derive(ClapArgs, Debug)]
pub(crate) struct Args {
    /// One entry, SESSION@SEQ; or a session with --text or --pattern
    address: Address,
    /// Take out every occurrence of this text
    #[arg(long, conflicts_with = "pattern")]
    text: Option<String>,
    /// Take out everything that matches this regular expression
    #[arg(long)]
    pattern: Option<String>,
    /// Why; kept with each changed entry
    #[arg(long)]
    reason: String,
    /// Do it: what is taken out cannot be brought back
    #[arg(long)]
    yes: bool,
}

pub(crate) fn run(app: &mut App, args: Args) -> Outcome {
    let found = app.find(&args.address)?;
    let entry = found.seq.map(|seq| format!("{}@{seq}", found.thread));
    let given = [&args.text, &args.pattern, &entry].iter().filter(|one| one.is_some()).count();
    if given != 1 || args.text.as_deref() == Some("") {
        return Err(Fault::usage(
            "name one entry (komado redact SESSION@SEQ), or a session with --text or --pattern",
        ));
    }
    if !args.yes {
        return Err(Fault::new(
            Exit::Refused,
            "what is redacted cannot be brought back; say --yes to do it (`komado export` first, to keep a copy)",
        ));
    }
    let Args { text, pattern, reason, .. } = args;
    let at = AtSession { session: Some(found.session.to_string()) };
    let done = Redact { at, text, pattern, entry, reason }.take_out(&app.context)?;
    app.print(&done)?;
    match done.left.is_empty() {
        true => Ok(()),
        false => Err(Fault::new(Exit::Failed, done.still().message())),
    }
}
