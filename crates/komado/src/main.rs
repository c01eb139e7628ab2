//! The binary: reads arguments, environment and clock, opens the store, runs one verb, prints.

#![deny(unsafe_code)]

mod app;
mod cli;
mod clock;
mod descriptors;
mod fault;
mod gauge;
mod paper;
mod progress;
mod render;
mod report;
mod server;
mod share;
mod signals;
mod stores;
mod table;
mod thrift;
mod trust;
mod verb;

use clap::Parser;
use std::process::ExitCode;

fn main() -> ExitCode {
    let cli = match cli::Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            // Help and version are answers, everything else is a mistake; clap knows which and where to print.
            if error.use_stderr() && std::env::args_os().any(|arg| arg == "--json") {
                return fault::report(&fault::Fault::usage(error.to_string().trim()), true);
            }
            if !error.use_stderr() {
                let _ = error.print();
                return ExitCode::SUCCESS;
            }
            // It quotes arguments, which may be names that others gave to files.
            paper::say(error.render().to_string().trim_end());
            return ExitCode::from(fault::Exit::Usage as u8);
        }
    };
    let json = cli.options.json;
    match cli::run(cli) {
        Ok(()) => ExitCode::SUCCESS,
        Err(fault) => fault::report(&fault, json),
    }
}
