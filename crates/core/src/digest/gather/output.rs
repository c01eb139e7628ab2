//! Words of what tools print: lists count for few of their items, and lines that only show that work goes on for none.
//!
//! A list of two hundred ids is one finding and not two hundred: the first few of a place in the JSON are kept like any
//! words, the others only in case they come up elsewhere.

use super::{ENDS, FactOrigin, Gathered, commands, ids, steps};
use crate::Seq;
use crate::digest::fact::FactKind;
use crate::digest::scan;
use serde_json::Value;
use std::collections::BTreeMap;

/// Values of one place in a JSON that count.
const FEW: u32 = 3;
/// Fields by which an object is a list of its keys.
const MAP: usize = 20;
/// Words of one kind that count in JSON of which only a part is there.
const PART: u32 = 24;

impl Gathered {
    /// The words of an output.
    pub(super) fn output_words(&mut self, seq: Seq, voice: FactOrigin, output: &str) {
        let text = output.trim_start();
        if !text.starts_with(['{', '[']) || text.len() > 2 * ENDS {
            return self.lines(seq, voice, output);
        }
        let mut values = serde_json::Deserializer::from_str(text).into_iter::<Value>();
        let mut seen = BTreeMap::new();
        let mut end = 0;
        while let Some(Ok(value)) = values.next() {
            if !matches!(value, Value::Object(_) | Value::Array(_)) {
                break;
            }
            end = values.byte_offset();
            self.value(seq, voice, &value, 0, &mut seen);
        }
        let rest = &text[end..];
        if rest.trim_start().starts_with(['{', '[']) {
            self.part(seq, voice, rest);
        } else {
            self.lines(seq, voice, rest);
        }
    }

    /// The words of a value at `place`, which is the hash of the way to it; `seen` counts the values of each place.
    fn value(
        &mut self,
        seq: Seq,
        voice: FactOrigin,
        value: &Value,
        place: u64,
        seen: &mut BTreeMap<u64, u32>,
    ) {
        match value {
            Value::Array(items) => {
                let inside = steps::hash(place, "[]");
                items.iter().for_each(|item| self.value(seq, voice, item, inside, seen));
            }
            Value::Object(fields) => {
                for (key, field) in fields {
                    let inside = steps::hash(place, if fields.len() > MAP { "{}" } else { key });
                    self.sibling(seq, voice, key, steps::hash(inside, "#"), seen);
                    self.value(seq, voice, field, inside, seen);
                }
            }
            Value::String(text) => self.sibling(seq, voice, text, place, seen),
            Value::Number(number) => self.sibling(seq, voice, &number.to_string(), place, seen),
            Value::Bool(_) | Value::Null => {}
        }
    }

    fn sibling(
        &mut self,
        seq: Seq,
        voice: FactOrigin,
        text: &str,
        place: u64,
        seen: &mut BTreeMap<u64, u32>,
    ) {
        let times = seen.entry(place).or_default();
        *times += 1;
        if *times > FEW {
            self.words(seq, FactOrigin::Sibling, text);
        } else {
            self.lines(seq, voice, text);
        }
    }

    /// The words of JSON that was cut.
    fn part(&mut self, seq: Seq, voice: FactOrigin, text: &str) {
        let mut seen: BTreeMap<FactKind, u32> = BTreeMap::new();
        ids::words(text, |kind, word| {
            let times = seen.entry(kind).or_default();
            *times += 1;
            self.word(seq, if *times > PART { FactOrigin::Sibling } else { voice }, kind, word);
        });
    }

    /// The words of plain lines, save those of progress; the figures of a listing are left out.
    fn lines(&mut self, seq: Seq, voice: FactOrigin, text: &str) {
        let middle = text.len() > 2 * ENDS;
        let ends = if middle { [scan::start(text, ENDS), scan::end(text, ENDS)] } else { [text, ""] };
        for line in ends.into_iter().flat_map(str::lines) {
            let line = line.trim_end().rsplit('\r').next().unwrap_or_default();
            if commands::is_progress(line) {
                continue;
            }
            let voice = if is_listed_file(line) { FactOrigin::Shown } else { voice };
            self.words(seq, voice, line);
        }
    }
}

/// `-rw-r--r-- 1 ann staff 4711 May 17 12:30 a.rs`, `total 48`
fn is_listed_file(line: &str) -> bool {
    let mut words = line.split_ascii_whitespace();
    let first = words.next().unwrap_or_default();
    let is_mode = first.len() >= 10
        && first.starts_with(['-', 'd', 'l', 'b', 'c', 'p', 's'])
        && first
            .bytes()
            .skip(1)
            .take(9)
            .all(|b| matches!(b, b'r' | b'w' | b'x' | b's' | b'S' | b't' | b'T' | b'-'));
    is_mode || first == "total" && words.next().is_some_and(|n| n.bytes().all(|b| b.is_ascii_digit()))
}
