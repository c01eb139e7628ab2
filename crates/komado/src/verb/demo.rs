//! stub
use crate::app::App;use crate::fault::Outcome;
#[derive(clap::Args,Debug)]
pub(crate) struct Args{}
pub(crate) fn run(_:&mut App,_:Args)->Outcome{Ok(())}
