//! Tasks from end to end: issues at a stand-in for GitHub and one for GitLab, a model that follows a script, real MCP
//! servers over pipes and over HTTP, and workers that are killed at random. `KOMADO_TASKS` says how many tasks; a few
//! unless told, and then only over files.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod check;
mod course;
mod crew;
mod far;
#[path = "../run/mod.rs"]
mod run;
#[path = "../../../store/tests/servers/mod.rs"]
mod servers;
mod town;

use crew::Crew;
use servers::{Kind, Server};
use town::Town;

const FEW: usize = 10;

fn tasks() -> usize {
    std::env::var("KOMADO_TASKS").ok().and_then(|text| text.parse().ok()).unwrap_or(FEW)
}

/// Every task is done once, whoever was killed meanwhile.
fn go_on(name: &str, store: Option<&str>) {
    let town = Town::new(tasks(), store);
    town.ok(&["task", "fetch"]);
    let mut crew = Crew::new(&town, tasks());
    crew.harass();
    crew.see_it_through();
    drop(crew);
    println!("{name}: {}", check::all(&town));
}

#[test]
fn every_task_is_done_once_over_files_although_workers_are_killed() {
    go_on("file", None);
}

#[test]
fn every_task_is_done_once_over_postgres_although_workers_are_killed() {
    if tasks() > FEW {
        go_on("postgres", Some(&Server::start(Kind::Postgres, &[]).url));
    }
}

#[test]
fn every_task_is_done_once_over_redis_although_workers_are_killed() {
    if tasks() > FEW {
        go_on("redis", Some(&Server::start(Kind::Redis, &[]).url));
    }
}
