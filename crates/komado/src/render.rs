//! How results are printed: as lines for people, or as JSON for programs.

pub(crate) mod journal;
mod operate;
mod session;
pub(crate) mod sessions;
pub(crate) mod task;
mod thread;
pub(crate) mod transcript;
pub(crate) mod window;

use crate::cli_output::{CliOutput, table};
use komado_core::amount::age;
use komado_ops::{OpResult, ResultPage};
use serde::Serialize;
use std::time::Duration;

/// A result that can be printed.
pub(crate) trait Render: Serialize {
    /// For people.
    fn text(&self, paper: &mut CliOutput) -> OpResult;

    /// For programs: one line.
    fn json(&self, paper: &mut CliOutput) -> OpResult {
        paper.json(self)
    }

    /// What went wrong although there is a result; told after it.
    fn fault(&self) -> OpResult {
        Ok(())
    }
}

/// An item of a list; for programs each is a line.
pub(crate) trait RenderList: Serialize + Sized {
    /// Prints a list for people.
    fn list(page: &ResultPage<Self>, paper: &mut CliOutput) -> OpResult;
}

impl<T: RenderList> Render for ResultPage<T> {
    fn text(&self, paper: &mut CliOutput) -> OpResult {
        T::list(self, paper)
    }

    fn json(&self, paper: &mut CliOutput) -> OpResult {
        each(paper, &self.items)
    }
}

/// Prints a table whose lines end where the terminal does; the columns at `right` are aligned to the right.
fn columns<const N: usize>(
    paper: &mut CliOutput,
    heading: [&str; N],
    right: &[usize],
    rows: impl Iterator<Item = [String; N]>,
) -> OpResult {
    let rows: Vec<Vec<String>> =
        std::iter::once(heading.map(str::to_owned)).chain(rows).map(Vec::from).collect();
    table(&rows, right).iter().try_for_each(|line| paper.fit(line))
}

/// A text, or a dash in its place.
fn or_dash<T: ToString>(text: Option<T>) -> String {
    text.map_or_else(|| "-".to_owned(), |text| text.to_string())
}

/// A time where the reader is, to the minute: `2026-11-16 13:36`.
pub(crate) fn local(at: &str) -> String {
    transcript::LocalTimes::default().tell(at, "%Y-%m-%d %H:%M").1
}

/// How long something took: `340 ms`, `1.2 s`, `3 min`.
pub(crate) fn took(milliseconds: f64) -> String {
    match milliseconds.max(0.0) {
        short if short < 1_000.0 => format!("{short:.0} ms"),
        short if short < 10_000.0 => format!("{:.1} s", short / 1_000.0),
        long => age(Duration::from_secs_f64(long / 1_000.0).as_secs()),
    }
}

/// `session` or `session/thread`, as a command line takes it.
fn address(session: &str, thread: &str) -> String {
    if thread == "root" { session.to_owned() } else { format!("{session}/{thread}") }
}

/// One line of JSON for each item of a list.
fn each<T: Serialize>(paper: &mut CliOutput, items: &[T]) -> OpResult {
    items.iter().try_for_each(|item| paper.json(item))
}

#[cfg(test)]
mod tests {
    use super::took;

    #[test]
    fn a_time_is_told_in_the_unit_that_fits_it() {
        let told = [0.0, 340.4, 1_240.0, 42_000.0, 185_000.0, 9e6].map(took);
        assert_eq!(told, ["0 ms", "340 ms", "1.2 s", "42 s", "3 min", "2 h"]);
    }
}
