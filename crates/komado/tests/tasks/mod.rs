//! Tasks from end to end: issues at a stand-in for GitHub and one for GitLab, a model that follows a script, real MCP
//! servers over pipes and over HTTP, and workers that are killed at random. `make soak` has 50 tasks, `make test` a
//! few.
mod check;
mod course;
mod crew;
mod far;
use crate::run;
use crate::servers;
mod town;

use crew::Crew;
use komado_testkit::soak::times;
use servers::{Kind, Server};
use town::Town;

/// How many tasks in `make test`.
const FEW: u64 = 4;

/// Every task is done once, whoever was killed meanwhile.
fn go_on(name: &str, few: u64, store: Option<&str>) {
    let tasks = usize::try_from(times(few, 50)).unwrap();
    let town = Town::new(tasks, store);
    town.ok(&["task", "fetch"]);
    let mut crew = Crew::new(&town, tasks);
    crew.harass();
    crew.see_it_through();
    let [workers, processes] = crew.killed;
    drop(crew);
    println!("{name}: {}; killed: {workers} workers, {processes} tasks' processes", check::all(&town));
}

#[test]
fn every_task_is_done_once_over_files_although_workers_are_killed() {
    go_on("file", 2 * FEW, None);
}

#[test]
fn every_task_is_done_once_over_postgres_although_workers_are_killed() {
    go_on("postgres", FEW, Some(&Server::start(Kind::Postgres, &[]).url));
}

#[test]
fn every_task_is_done_once_over_redis_although_workers_are_killed() {
    go_on("redis", FEW, Some(&Server::start(Kind::Redis, &[]).url));
}
