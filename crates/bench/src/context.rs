//! What every measurement is given: where it prints, and the `komado` that it starts.

use crate::error::{Error, Result};
use crate::output::BenchOutput;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The options that all sub-commands share, as they were given.
pub(crate) struct BenchContext {
    /// Where the report goes.
    pub(crate) out: BenchOutput,
    program: Option<PathBuf>,
}

impl BenchContext {
    pub(crate) fn new(json: bool, program: Option<PathBuf>) -> Self {
        Self { out: BenchOutput::new(json), program }
    }

    /// The binary under measurement: the one that `--komado` names, or the one beside this executable.
    pub(crate) fn komado(&self) -> Result<BenchEngine> {
        let path = match &self.program {
            Some(path) => path.clone(),
            None => std::env::current_exe()?.with_file_name("komado"),
        };
        // Measured processes are started in other folders.
        match std::path::absolute(&path)? {
            path if path.is_file() => Ok(BenchEngine(path)),
            path => Err(Error::usage(format!(
                "there is no komado at {}: `cargo build -p komado` makes one beside this program (with --release, if it has \
                 that), --komado PATH names another",
                path.display()
            ))),
        }
    }
}

/// A `komado` binary.
#[derive(Clone, Debug)]
pub(crate) struct BenchEngine(PathBuf);

impl BenchEngine {
    /// A command of it, still without arguments.
    pub(crate) fn command(&self) -> Command {
        Command::new(&self.0)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }
}
