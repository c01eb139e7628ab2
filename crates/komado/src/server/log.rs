//! The log: what happens, on standard error, a line each.
//!
//! Bodies, headers and queries are never written: they may hold secrets.

use crate::fault::{Fault, Outcome};
use std::io::IsTerminal;
use tracing_subscriber::EnvFilter;

/// The form of a line.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Lines {
    /// For people.
    Text,
    /// For programs.
    Json,
}

/// The variable that sets how much is written.
const VARIABLE: &str = "KOMADO_LOG";

/// Begins to write; `level` as on the command line, else as the environment says, else what matters.
pub(crate) fn begin(level: Option<&str>, lines: Lines) -> Outcome {
    let given = level.map(str::to_owned).or_else(|| std::env::var(VARIABLE).ok());
    let text = given.filter(|text| !text.trim().is_empty()).unwrap_or_else(|| "info".to_owned());
    let filter = EnvFilter::try_new(&text).map_err(|why| {
        Fault::usage(format!(
            "--log or {VARIABLE}: {text:?} is no level ({why}); write error, warn, info, debug or trace"
        ))
    })?;
    let base =
        tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).with_target(false);
    let begun = match lines {
        Lines::Text => base.with_ansi(std::io::stderr().is_terminal()).try_init(),
        Lines::Json => base.json().flatten_event(true).try_init(),
    };
    begun.map_err(|why| Fault::usage(format!("the log cannot begin: {why}")))
}
