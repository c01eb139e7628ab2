//! `komado task fetch`: put what waits at the trackers into the queue, once or again and again.

use crate::app::App;
use crate::fault::Outcome;
use clap::Args as ClapArgs;
use komado_ops::task::FetchTasks;
use std::time::Duration;

#[derive(ClapArgs, Debug)]
pub(crate) struct Args {
    /// Only from this tracker
    #[arg(long, value_name = "NAME", value_parser = ["github", "gitlab"])]
    source: Option<String>,
    /// Fetch again after so many seconds, until stopped
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..))]
    watch: Option<u64>,
}

pub(crate) fn run(app: &mut App, args: &Args) -> Outcome {
    loop {
        app.show(FetchTasks { source: args.source.clone() })?;
        app.paper.flush()?;
        let Some(seconds) = args.watch else { return Ok(()) };
        std::thread::sleep(Duration::from_secs(seconds));
    }
}
