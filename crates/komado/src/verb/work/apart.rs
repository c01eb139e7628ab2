//! Each task in a process of its own. When all of them died, this one tells so: it does nothing of what they died of.

use crate::fault::Outcome;
use komado_agent::progress::Progress;
use komado_agent::worker::{Exit, Launch, Leash, Process};
use komado_ops::work::Runner;
use komado_store::Taken;
use std::ffi::OsString;

pub(super) struct Apart {
    runner: Runner,
    process: Process,
}

impl Apart {
    /// This program once more, with the same words: settings and wishes are those of the worker.
    pub(super) fn new(runner: Runner) -> Outcome<Self> {
        let args = std::env::args_os().skip(1).chain([OsString::from("--job")]).collect();
        Ok(Self { runner, process: Process { program: std::env::current_exe()?, args } })
    }
}

impl Launch for Apart {
    fn run(&self, taken: &Taken, leash: &Leash, tell: &(dyn Fn(Progress) + Sync)) -> Exit {
        self.process.run(taken, leash, tell)
    }

    fn give_up(&self, taken: &Taken, why: &str, tell: &(dyn Fn(Progress) + Sync)) {
        self.runner.give_up(taken, why, tell);
    }
}
