//! Reads the notation of [`komado_core::notation`], and writes whole journals and views in it.
//!
//! What a test states is what `komado log` prints: [`entry`] leaves nothing out but the timestamp, and [`parse`] reads it
//! back.
//!
//! ```
//! use komado_testkit::notation;
//!
//! let book = notation::book(
//!     r#"
//!     1 system "Be brief." ~3
//!     2 user "What is in main.py?" ~8
//!     3 assistant call c1 read {"path":"main.py"} ~12
//!     4 tool c1 read "def main(): ..." ~900
//!     5 assistant "One function." ~4
//!     6 trim 4 "[output left out]" ~5
//!     7 condense 2..4 summary "main.py has one function." ~7
//!     8 revert 7
//!     "#,
//! )?;
//! let Ok(seen) = notation::items(book.view(), book.rows());
//! assert_eq!(
//!     seen,
//!     r#"1 system "Be brief." ~3
//! 2 user "What is in main.py?" ~8
//! 3 assistant call c1 read {"path":"main.py"} ~12
//! 4 tool c1 read trim@6 "[output left out]" ~5
//! 5 assistant "One function." ~4
//! "#
//! );
//! # Ok::<(), notation::BadNotation>(())
//! ```

mod cursor;
mod read;
#[cfg(test)]
mod tests;

use crate::Book;
use cursor::NotationCursor;
use komado_core::head::EntrySource;
use komado_core::journal::{Entry, Record};
pub use komado_core::notation::*;
use komado_core::{Seq, View};

/// Why a text is not a journal in this notation.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}, column {column}: {why}")]
pub struct BadNotation {
    /// The line, counted from 1.
    pub line: usize,
    /// The character in it, counted from 1.
    pub column: usize,
    /// What is wrong there.
    pub why: String,
}

/// Reads a journal: its entries and their tokens, in order. Entries count from 1.
pub fn parse(text: &str) -> Result<Vec<(Entry, u32)>, BadNotation> {
    parse_after(0, text)
}

/// Reads the entries of a fork, which count on from the moment it left.
pub fn parse_after(base: Seq, text: &str) -> Result<Vec<(Entry, u32)>, BadNotation> {
    Ok(lines(base, text)?.into_iter().map(|(_, entry, tokens)| (entry, tokens)).collect())
}

/// Reads a journal and admits every entry of it; a refusal is reported with its line.
pub fn book(text: &str) -> Result<Book, BadNotation> {
    let mut book = Book::default();
    for (line, entry, tokens) in lines(0, text)? {
        book.push(entry, tokens, "").map_err(|e| BadNotation { line, column: 1, why: e.to_string() })?;
    }
    Ok(book)
}

/// The entries with the number of the line each stands on.
fn lines(base: Seq, text: &str) -> Result<Vec<(usize, Entry, u32)>, BadNotation> {
    let mut found = Vec::new();
    let mut seq = base;
    for (i, line) in text.lines().enumerate() {
        let mut cursor = NotationCursor::new(i + 1, line);
        if !cursor.at_end() {
            seq += 1;
            let (entry, tokens) = read::entry(&mut cursor, seq)?;
            found.push((i + 1, entry, tokens));
        }
    }
    Ok(found)
}

/// A whole journal, one entry per line.
pub fn journal<'a>(records: impl IntoIterator<Item = &'a Record>) -> String {
    records.into_iter().map(|record| entry(record) + "\n").collect()
}

/// What the model sees, one item per line: the lines of [`each_item`], whole.
pub fn items<S: EntrySource + ?Sized>(view: &View, source: &S) -> Result<String, S::Error> {
    brief_items(view, source, usize::MAX)
}

/// Like [`items`], with each line shortened to at most `width` columns of a terminal.
pub fn brief_items<S: EntrySource + ?Sized>(
    view: &View,
    source: &S,
    width: usize,
) -> Result<String, S::Error> {
    let mut out = String::new();
    each_item(view, source, width, |line| out.push_str(&(line + "\n")))?;
    Ok(out)
}
