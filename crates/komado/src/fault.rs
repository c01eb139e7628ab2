//! What went wrong, as the command line tells it: a line on standard error, and an exit code.

use crate::paper::say;
pub(crate) use komado_ops::fault::{Exit, Fault, Outcome};
use std::process::ExitCode;

/// Prints a failure and gives the exit code. A reader that went away is no failure.
pub(crate) fn report(fault: &Fault, json: bool) -> ExitCode {
    if fault.is_gone() {
        return ExitCode::SUCCESS;
    }
    if json {
        let error =
            serde_json::json!({ "error": { "kind": fault.exit().name(), "message": fault.message() } });
        say(error.to_string());
    } else {
        say(format!("komado: {}", fault.message()));
    }
    ExitCode::from(fault.exit() as u8)
}
