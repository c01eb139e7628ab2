//! The binary: reads arguments, environment and clock, opens the store, runs one verb, prints.

#![deny(unsafe_code)]

#[macro_use]
mod verb;

mod app;
mod cli;
mod cli_output;
mod completion;
mod pager;
mod process;
mod prose;
mod render;
mod report;
mod server;
mod signals;
mod trust;

use komado_ops::{FaultKind, OpFault};
use std::process::ExitCode;

fn main() -> ExitCode {
    completion::answer(cli::command);
    let cli = match cli::parse() {
        Ok(cli) => cli,
        Err(error) => {
            // Help and version are answers, everything else is a mistake; clap knows which and where to print.
            if error.use_stderr() && std::env::args_os().any(|arg| arg == "--json") {
                return cli_output::report(&OpFault::usage(error.to_string().trim()), true);
            }
            if !error.use_stderr() {
                let _ = error.print();
                return ExitCode::SUCCESS;
            }
            // It quotes arguments, which may be names that others gave to files.
            cli_output::say(error.render().to_string().trim_end());
            return ExitCode::from(FaultKind::Usage as u8);
        }
    };
    let json = cli.options.json;
    match cli::run(cli) {
        Ok(()) => ExitCode::SUCCESS,
        Err(fault) => cli_output::report(&fault, json),
    }
}
