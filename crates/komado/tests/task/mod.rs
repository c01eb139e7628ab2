//! `komado task` and `komado task work` as a person meets them: the binary, a model that follows a script, real signals.
mod add;
mod ends;
mod hostile;
mod kit;
use crate::run;
mod states;
mod stopped;
mod tracker;
