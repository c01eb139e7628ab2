//! `komado serve` as an agent meets it: real processes, real sockets, and a provider that does what a test says.
mod allow;
mod bytes;
mod choice;
mod door;
mod flow;
mod harm;
mod keep;
use crate::run;
pub(crate) mod stage;
mod traces;
