//! Tasks from end to end: issues at a stand-in for GitHub and one for GitLab, a model that follows a script, real MCP
//! servers over pipes and over HTTP, and workers that are killed at random. `KOMADO_TASKS` says how many tasks; a few
//! unless told.
mod check;
mod course;
mod crew;
mod far;
use crate::run;
use crate::servers;
mod town;

use crew::Crew;
use servers::{Kind, Server};
use town::Town;

/// How many tasks, unless `KOMADO_TASKS` says otherwise.
const FEW: usize = 4;

/// Every task is done once, whoever was killed meanwhile.
fn go_on(name: &str, few: usize, store: Option<&str>) {
    let tasks = std::env::var("KOMADO_TASKS").ok().and_then(|text| text.parse().ok()).unwrap_or(few);
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
