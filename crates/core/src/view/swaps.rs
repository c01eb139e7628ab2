//! What replaced entries say now.
//!
//! One trim replaces hundreds of outputs. Were its line read again for each of them, a view would cost the square of
//! that, so the texts of the last few edits are remembered: placeholders, a line each. No message is, and no edit
//! beyond those few, however many there are.

use crate::Seq;
use crate::head::Source;
use crate::journal::{Entry, Replace};

/// How many edits are remembered. Two trims in a row take turns: one took what was stale, the other the rest.
const FEW: usize = 4;

/// Looks up what edits say in place of entries.
#[derive(Debug, Default)]
pub struct Swaps {
    /// Edits with their texts in the order of entries, the one asked for last at the end.
    known: Vec<(Seq, Vec<Replace>)>,
}

impl Swaps {
    /// What edit `by` says in place of entry `seq`; nothing when it says nothing there.
    pub fn text<S: Source + ?Sized>(&mut self, source: &S, seq: Seq, by: Seq) -> Result<&str, S::Error> {
        match self.known.iter().rposition(|(edit, _)| *edit == by) {
            Some(i) => self.known[i..].rotate_left(1),
            None => {
                let mut replace = match source.record(by)?.entry {
                    Entry::Edit(edit) => edit.replace,
                    _ => Vec::new(),
                };
                replace.sort_by_key(|replace| replace.seq);
                if self.known.len() == FEW {
                    self.known.remove(0);
                }
                self.known.push((by, replace));
            }
        }
        let texts = self.known.last().map_or(&[][..], |(_, replace)| replace);
        let i = texts.partition_point(|replace| replace.seq < seq);
        Ok(texts.get(i).filter(|replace| replace.seq == seq).map_or("", |replace| &replace.text))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::head::Head;
    use crate::journal::{Cause, Edit, EditKind, Record};
    use std::cell::Cell;

    /// Edits that each replace every entry before the hundredth, and a count of those that were read.
    struct Edits(Cell<usize>);

    impl Source for Edits {
        type Error = std::convert::Infallible;

        fn last(&self) -> Seq {
            200
        }

        fn head(&self, _: Seq) -> Result<Head, Self::Error> {
            Ok(Head::START)
        }

        fn above(
            &self,
            _: &crate::ThreadId,
        ) -> Result<Box<dyn Source<Error = Self::Error> + '_>, Self::Error> {
            Ok(Box::new(Self(Cell::new(0))))
        }

        fn record(&self, by: Seq) -> Result<Record, Self::Error> {
            self.0.set(self.0.get() + 1);
            let replace = (1..100).map(|seq| Replace { seq, text: format!("{seq} by {by}"), tokens: 1 });
            let entry = Entry::Edit(Edit {
                kind: EditKind::Trim,
                hide: vec![],
                show: vec![],
                replace: replace.collect(),
                cause: Cause::default(),
            });
            Ok(Record { seq: by, timestamp: "t".into(), tokens: 0, entry })
        }
    }

    #[test]
    fn an_edit_is_read_once_while_a_few_take_turns() {
        let source = Edits(Cell::new(0));
        let mut swaps = Swaps::default();
        for seq in 1..100 {
            let by = 101 + seq % 3;
            let Ok(text) = swaps.text(&source, seq, by);
            assert_eq!(text, format!("{seq} by {by}"));
        }
        assert_eq!(source.0.get(), 3);
        assert_eq!(swaps.text(&source, 100, 101), Ok(""));
        for by in 110..120 {
            assert!(swaps.text(&source, 1, by).is_ok());
        }
        assert_eq!((source.0.get(), swaps.known.len()), (13, FEW));
    }
}
