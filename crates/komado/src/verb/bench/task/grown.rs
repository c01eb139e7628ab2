//! A task whose conversation grows and is sent whole with every turn, beside the same loop in Python.

use super::super::place::Place;
use super::super::request::Python;
use super::course::Course;
use super::peer::{self, Peer};
use super::worker::{Worked, work};
use crate::fault::Outcome;

/// About so many bytes are read with each call.
const READ: usize = 900_000;

/// One size.
pub(super) struct Grown {
    pub(super) mb: u64,
    pub(super) calls: u64,
    pub(super) ours: Worked,
    pub(super) peer: Option<Peer>,
}

pub(super) fn measure(place: &Place, mb: u64, python: Option<&Python>) -> Outcome<Grown> {
    let calls = (mb * 1_000_000).div_ceil(READ as u64);
    let course = Course::new(&place.path("files"), calls, (READ, READ + 1), None)?;
    let ours = work(place, &course, &format!("grown-{mb}"))?;
    let peer = python.map(|python| peer::work(python, place, &course)).transpose()?;
    Ok(Grown { mb, calls, ours, peer })
}
