//! One task, one process: started with the job on its standard input, which stays open for as long as it shall work.

use super::{ChildHandle, JobExit, write_taken};
use crate::progress::TaskProgress;
use komado_store::TakenJob;
use rustix::process::{Pid, Signal, kill_process_group};
use std::ffi::OsString;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};

/// Most bytes of a line of progress: a process that prints nonsense does not fill our memory.
const MOST: u64 = 1 << 20;

/// How a task's process is started.
pub struct TaskProcess {
    /// The program.
    pub program: PathBuf,
    /// Its arguments.
    pub args: Vec<OsString>,
}

impl TaskProcess {
    /// Has a job worked on by a process, until that ended.
    pub fn run(
        &self,
        taken: &TakenJob,
        leash: &ChildHandle,
        tell: &(dyn Fn(TaskProgress) + Sync),
    ) -> JobExit {
        let died = |what: &str, why: &dyn std::fmt::Display| {
            JobExit::Died(format!("{what} {}: {why}", self.program.display()))
        };
        let (mut child, input, output) = match self.start() {
            Ok(started) => started,
            Err(why) => return died("cannot start", &why),
        };
        if let Err(why) = tie(leash, &child, input, taken) {
            let _ = child.kill();
            let _ = child.wait();
            return died("cannot hand the job to", &why);
        }
        listen(output, tell);
        let ended = child.wait();
        leash.untie();
        match ended {
            Ok(status) if status.success() => JobExit::Finished,
            Ok(status) => JobExit::Died(how(status)),
            Err(why) => died("cannot wait for", &why),
        }
    }

    /// In a process group of its own: Ctrl-C at a terminal reaches the worker, which asks it to rest.
    fn start(&self) -> std::io::Result<(Child, ChildStdin, ChildStdout)> {
        let mut command = Command::new(&self.program);
        command.args(&self.args).stdin(Stdio::piped()).stdout(Stdio::piped()).process_group(0);
        let mut child = command.spawn()?;
        match (child.stdin.take(), child.stdout.take()) {
            (Some(input), Some(output)) => Ok((child, input, output)),
            _ => Err(std::io::Error::other("it has no standard input or output")),
        }
    }
}

/// Hands the job over. The end of the input asks the process to rest; its whole group is ended, with whatever it runs.
fn tie(leash: &ChildHandle, child: &Child, mut input: ChildStdin, taken: &TakenJob) -> std::io::Result<()> {
    input.write_all(write_taken(taken)?.as_bytes())?;
    input.flush()?;
    let group = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    let mut input = Some(input);
    leash.tie(
        move || drop(input.take()),
        move || {
            if let Some(group) = group {
                let _ = kill_process_group(group, Signal::KILL);
            }
        },
    );
    Ok(())
}

/// Hands on each line of progress, to the end. What is no progress is passed over.
fn listen(output: ChildStdout, tell: &(dyn Fn(TaskProgress) + Sync)) {
    let mut output = BufReader::new(output);
    let mut line = Vec::new();
    loop {
        line.clear();
        match output.by_ref().take(MOST).read_until(b'\n', &mut line) {
            Ok(0) | Err(_) => return,
            Ok(_) => {
                if let Ok(progress) = serde_json::from_slice(&line) {
                    tell(progress);
                }
            }
        }
    }
}

fn how(status: ExitStatus) -> String {
    match (status.signal(), status.code()) {
        (Some(signal), _) => format!("its process was killed by signal {signal}"),
        (None, Some(code)) => format!("its process ended with code {code}"),
        (None, None) => "its process ended".to_owned(),
    }
}
