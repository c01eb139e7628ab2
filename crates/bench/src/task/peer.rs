//! What people do today: the same loop in Python, with its messages in a list.

use super::super::place::BenchFolder;
use super::super::request::Python;
use super::course::TaskCourse;
use super::ruler::{Memory, Ruler, Whose, ended};
use crate::error::Result;
use serde::Deserialize;
use std::process::Command;
use std::time::Instant;

const PROGRAM: &str = include_str!("peer.py");

/// What the peer took.
pub(super) struct TaskPeer {
    pub(super) name: String,
    pub(super) seen: Vec<Memory>,
    pub(super) request: u64,
    pub(super) seconds: f64,
}

/// What the peer tells of itself.
#[derive(Deserialize)]
struct Told {
    name: String,
}

/// Has Python go the same course.
pub(super) fn work(python: &Python, place: &BenchFolder, course: &TaskCourse) -> Result<TaskPeer> {
    let ruler = Ruler::default();
    let server = course.model(&ruler, Whose::Own)?;
    let program = place.path("peer.py");
    std::fs::write(&program, PROGRAM)?;
    let mut command = Command::new(python.path());
    command.arg(&program).arg(format!("{}/v1", server.url())).arg(&course.folder);
    // Whatever the machine is set to, requests go straight to the model.
    command.env("NO_PROXY", "127.0.0.1");
    let start = Instant::now();
    let out = ended(command, &ruler, "the Python peer")?;
    let seconds = start.elapsed().as_secs_f64();
    let told: Told = serde_json::from_slice(&out)?;
    Ok(TaskPeer { name: told.name, seen: ruler.looks().seen, request: course.check(&server)?, seconds })
}
