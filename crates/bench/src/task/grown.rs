//! A task whose conversation grows and is sent whole with every turn, beside the same loop in Python.

use super::super::place::BenchFolder;
use super::super::request::Python;
use super::course::TaskCourse;
use super::peer::{self, TaskPeer};
use super::worker::{Worked, work};
use crate::context::BenchEngine;
use crate::error::Result;

/// Bytes of a file, read with one call: with its numbers a little less than what is shown of an output.
const READ: (usize, usize) = (36_000, 44_000);
/// Turns in which the context grows to its size.
const TURNS: u64 = 12;

/// One size.
pub(super) struct Grown {
    pub(super) mb: u64,
    pub(super) calls: u64,
    pub(super) ours: Worked,
    pub(super) peer: Option<TaskPeer>,
}

pub(super) fn measure(
    komado: &BenchEngine,
    place: &BenchFolder,
    mb: u64,
    python: Option<&Python>,
) -> Result<Grown> {
    let mean = ((READ.0 + READ.1) / 2) as u64;
    let each = (mb * 1_000_000).div_ceil(TURNS * mean);
    let course = TaskCourse::new(&place.path("files"), (TURNS, each), READ, None)?;
    let ours = work(komado, place, &course, &format!("grown-{mb}"))?;
    let peer = python.map(|python| peer::work(python, place, &course)).transpose()?;
    Ok(Grown { mb, calls: TURNS * each, ours, peer })
}
