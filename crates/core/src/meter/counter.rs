//! Counts a text while it arrives, in pieces cut anywhere, to exactly what counting it whole would give.
//!
//! A tokeniser first splits a text into words and counts each by itself, so a word that has ended is settled.
//! The last two are not: after `あ`, `AAA` an arriving `b` makes one word of both, as a line break does after a line
//! break and spaces. One open word is therefore not enough, and a third is never touched: each rule of the splitter
//! looks past the end of its match by one run of one class at most.
//!
//! A single word may be a megabyte long. Splitting again at every arrival would then cost the square of that, so the
//! open end is split again only when it has doubled.

use super::Meter;
use crate::clip::Decoder;
use std::borrow::Cow;
use std::mem;

/// The open end is left alone up to this many bytes.
const FLOOR: usize = 512;

/// Counts a text that arrives in pieces; see [`Meter::counter`].
#[derive(Clone, Debug)]
pub struct Counter {
    meter: Meter,
    /// Units of all that is settled.
    settled: u64,
    /// What may still be split in another way.
    open: String,
    /// How long `open` was after it was last split.
    mark: usize,
    decoder: Decoder,
    /// How many bytes were split so far, some of them again and again.
    #[cfg(test)]
    pub(super) work: usize,
}

impl Counter {
    pub(super) fn new(meter: Meter) -> Self {
        Self {
            meter,
            settled: 0,
            open: String::new(),
            mark: 0,
            decoder: Decoder::default(),
            #[cfg(test)]
            work: 0,
        }
    }

    /// Takes the next piece.
    pub fn push(&mut self, text: &str) {
        if self.decoder.is_amid() { self.push_bytes(text.as_bytes()) } else { self.take(text) }
    }

    /// Takes the next piece of a stream of UTF-8, cut anywhere, also inside a character.
    ///
    /// Bytes that are no UTF-8 count as U+FFFD, as [`String::from_utf8_lossy`] reads them.
    pub fn push_bytes(&mut self, bytes: &[u8]) {
        let mut decoder = mem::take(&mut self.decoder);
        decoder.push(bytes, &mut |text| self.take(text));
        self.decoder = decoder;
    }

    /// Tokens if the text ended here. Costs as much as the open end is long, most often less than a kilobyte.
    pub fn count(&self) -> u64 {
        let mut open = Cow::Borrowed(self.open.as_str());
        if self.decoder.is_amid() {
            open.to_mut().push(char::REPLACEMENT_CHARACTER);
        }
        self.meter.close(self.settled + self.meter.units(&open))
    }

    /// Tokens of the whole text.
    pub fn finish(self) -> u64 {
        self.count()
    }

    fn take(&mut self, text: &str) {
        if !self.meter.loads_table() {
            self.settled += self.meter.units(text);
            return;
        }
        self.open.push_str(text);
        if self.open.len() >= FLOOR.max(2 * self.mark) {
            self.settle();
        }
    }

    /// Counts all words but the last two and lets go of them.
    pub(super) fn settle(&mut self) {
        let Some(table) = self.meter.table() else { return };
        #[cfg(test)]
        {
            self.work += self.open.len();
        }
        let (mut held, mut done) = (["", ""], 0);
        for word in table.split(&self.open) {
            self.settled += table.bpe.count(held[0].as_bytes()) as u64;
            done += held[0].len();
            held = [held[1], word];
        }
        self.open.drain(..done);
        self.mark = self.open.len();
    }
}
