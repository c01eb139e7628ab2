//! `read`: lines of a file, with their numbers. The file may be of any size; no more of it is held than one line's part
//! that is shown.

use super::arguments::Arguments;
use super::folder::Folder;
use super::line;
use super::spool::Spool;
use crate::tools::Answer;
use std::fs::File;
use std::io::{self, BufRead, BufReader};

const LINES: u64 = 2_000;
/// An answer ends after so many bytes, whatever the limit.
const BYTES: u64 = 1 << 20;
/// A NUL among the first so many bytes makes a file binary.
const LOOKED_AT: usize = 8 << 10;

pub(super) fn read(folder: &Folder, given: &Arguments) -> Result<Answer, String> {
    let name = given.needed("path")?;
    let first = given.number("offset")?.unwrap_or(1).max(1);
    let limit = given.number("limit")?.unwrap_or(LINES).max(1);
    let file = folder.file(&folder.inside(name)?)?;
    numbered(file, name, first, limit).map_err(|error| format!("{name} cannot be read: {error}"))
}

fn numbered(file: File, name: &str, first: u64, limit: u64) -> io::Result<Answer> {
    let bytes = file.metadata()?.len();
    let mut from = BufReader::with_capacity(64 << 10, file);
    if is_binary(&mut from)? {
        return Ok(Answer::wrong(format!(
            "{name} is a binary file of {bytes} bytes, not text; a command such as file, or hexdump -C in the shell, looks into it"
        )));
    }
    let passed = pass(&mut from, first - 1)?;
    if passed < first - 1 {
        return Ok(Answer::wrong(format!("{name} has {passed} lines; there is no line {first}")));
    }
    let (mut spool, mut held, mut at) = (Spool::new(), Vec::new(), first);
    while at - first < limit && spool.written() < BYTES {
        let Some(length) = line::next(&mut from, &mut held)? else {
            spool.line(&end(name, at - 1))?;
            return spool.answer(false);
        };
        spool.line(&format!("{at}\t{}", line::shown(&held, length)))?;
        at += 1;
    }
    let rest = !from.fill_buf()?.is_empty();
    spool.line(&if rest {
        format!("[more follows: read on with offset {at}]")
    } else {
        end(name, at - 1)
    })?;
    spool.answer(false)
}

fn end(name: &str, lines: u64) -> String {
    if lines == 0 { format!("[{name} is empty]") } else { format!("[end of {name}: {lines} lines]") }
}

fn is_binary(from: &mut BufReader<File>) -> io::Result<bool> {
    let beginning = from.fill_buf()?;
    Ok(beginning[..beginning.len().min(LOOKED_AT)].contains(&0))
}

/// Leaves out so many lines; gives how many there were.
fn pass(from: &mut BufReader<File>, lines: u64) -> io::Result<u64> {
    for passed in 0..lines {
        if from.skip_until(b'\n')? == 0 {
            return Ok(passed);
        }
    }
    Ok(lines)
}
