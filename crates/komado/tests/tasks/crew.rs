//! Workers, and whoever kills them.

use crate::tasks::town::Town;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

const WORKERS: usize = 2;
/// Long enough for a slow machine; a task that hangs would wait for ever.
const PATIENCE: Duration = Duration::from_secs(600);

/// A small generator, so that a failure can be had again.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % sides as u64).unwrap()
    }
}

/// Workers; those that are left end with this value.
pub(crate) struct Crew<'t> {
    town: &'t Town,
    workers: Vec<Child>,
    dice: Dice,
    kills: usize,
    /// Workers and tasks' processes that were killed.
    pub(crate) killed: [usize; 2],
}

impl<'t> Crew<'t> {
    pub(crate) fn new(town: &'t Town, kills: usize) -> Self {
        let workers = (0..WORKERS).map(|_| worker(town)).collect();
        Self { town, workers, dice: Dice(0x6b6f_6d61_646f), kills, killed: [0; 2] }
    }

    /// Kills workers and tasks' processes, one after the other, and hires new workers. It waits for turns and not for the
    /// clock, so that something was begun each time.
    pub(crate) fn harass(&mut self) {
        for _ in 0..self.kills {
            let seen = self.town.turns() + 1 + self.dice.roll(4);
            self.await_that("something happens", |town| town.turns() >= seen || town.done() == town.tasks);
            std::thread::sleep(Duration::from_millis(self.dice.roll(40) as u64));
            let at = self.dice.roll(self.workers.len());
            let children = children_of(self.workers[at].id());
            match children.is_empty() || self.dice.roll(3) == 0 {
                true => self.replace(at),
                false => {
                    let child = children[self.dice.roll(children.len())];
                    kill(child);
                    self.killed[1] += 1;
                }
            }
        }
    }

    fn replace(&mut self, at: usize) {
        let mut old = std::mem::replace(&mut self.workers[at], worker(self.town));
        old.kill().unwrap();
        old.wait().unwrap();
        self.killed[0] += 1;
    }

    /// Until every task is done and nothing is in the queue.
    pub(crate) fn see_it_through(&mut self) {
        self.await_that("every task is done", |town| town.done() == town.tasks);
        self.await_that("the queue is empty", |town| town.json_lines(&["task", "list"]).is_empty());
        assert!(self.killed.iter().sum::<usize>() == self.kills, "{:?}", self.killed);
    }

    fn await_that(&mut self, what: &str, is_so: impl Fn(&Town) -> bool) {
        let start = Instant::now();
        while !is_so(self.town) {
            assert!(start.elapsed() < PATIENCE, "{what}: not after {PATIENCE:?}; {} done", self.town.done());
            for worker in &mut self.workers {
                assert!(worker.try_wait().unwrap().is_none(), "a worker ended by itself");
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

impl Drop for Crew<'_> {
    fn drop(&mut self) {
        for worker in &mut self.workers {
            let pid = rustix::process::Pid::from_raw(i32::try_from(worker.id()).unwrap()).unwrap();
            let _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
            let _ = worker.wait();
        }
    }
}

fn worker(town: &Town) -> Child {
    let mut command = town.command(&["task", "work", "--concurrency", "3"]);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
}

fn kill(pid: u32) {
    let pid = rustix::process::Pid::from_raw(i32::try_from(pid).unwrap()).unwrap();
    // It may have ended meanwhile.
    let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
}

/// The processes that `parent` started.
fn children_of(parent: u32) -> Vec<u32> {
    let entries = std::fs::read_dir("/proc").unwrap().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let parent_of = |pid: &u32| {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        stat.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse::<u32>().ok()
    };
    pids.filter(|pid| parent_of(pid) == Some(parent)).collect()
}
