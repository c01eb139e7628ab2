//! Looking for something as it stands: a phrase, or a regular expression.
//!
//! Entries are read one at a time, the last first, until enough were found. Of a phrase the shelf may know terms that
//! must be there; entries without them are passed over unread. An output is read in pieces that overlap, so a match
//! longer than a few kilobytes may be missed in it.

use super::ask::{Ask, How, Pattern, needed};
use super::search::Reader;
use super::search::{beside, found};
use super::snippet::{Snippet, around_match};
use super::text::text_of;
use super::{Found, Scope};
use crate::engine::Engine;
use crate::error::Result;
use komado_core::{Message, SessionId};
use komado_store::shelf::{Filter, Hit};
use std::io::Read;
use std::ops::Range;

/// Bytes of an output that are searched at once.
const PIECE: usize = 256 << 10;
/// The most matches that are marked in one result.
const MARKS: usize = 16;

impl Engine {
    pub(super) fn exact(&self, scope: &Scope, ask: &Ask) -> Result<Vec<Found>> {
        let pattern = Pattern::of(&ask.query, ask.how)?;
        let needed = if ask.how == How::Exact { needed(&ask.query) } else { Vec::new() };
        let filter = self.narrowed(scope, &ask.filter)?;
        let mut all: Vec<Found> = Vec::new();
        for id in self.sessions_of(scope)? {
            all.extend(self.exact_in(&id, ask, &pattern, (&needed, &filter))?);
            all.sort_by(|a, b| b.timestamp.cmp(&a.timestamp));
            all.truncate(ask.k);
        }
        Ok(all)
    }

    fn exact_in(
        &self,
        id: &SessionId,
        ask: &Ask,
        pattern: &Pattern,
        (needed, filter): (&[String], &Filter),
    ) -> Result<Vec<Found>> {
        let shelf = self.shelf(id, &mut |_, _| {})?;
        let mut reader = Reader::new(self);
        let (mut results, mut before) = (Vec::new(), None);
        loop {
            let page = shelf.holding(needed, filter, before)?;
            let Some(last) = page.last() else { return Ok(results) };
            before = Some(last.id);
            for hit in page {
                if let Some((snippet, in_output)) = self.look_into(id, &hit, ask, pattern, &mut reader)? {
                    let around = beside(&*shelf, &mut reader, id, &hit, ask, filter)?;
                    results.push(Found { in_output, ..found(id, hit, 1.0, snippet, around) });
                }
                if results.len() >= ask.k {
                    return Ok(results);
                }
            }
        }
    }

    fn look_into(
        &self,
        id: &SessionId,
        hit: &Hit,
        ask: &Ask,
        pattern: &Pattern,
        reader: &mut Reader<'_>,
    ) -> Result<Option<(Snippet, bool)>> {
        let Some(message) = reader.message(id, &hit.thread, hit.seq)? else { return Ok(None) };
        let text = text_of(&message);
        let spans: Vec<Range<usize>> = pattern.text.find_iter(&text).take(MARKS).map(|m| m.range()).collect();
        if !spans.is_empty() {
            return Ok(Some((around_match(&text, &spans, ask.snippet), false)));
        }
        Ok(self.look_into_output(id, &message, ask, pattern)?.map(|snippet| (snippet, true)))
    }

    fn look_into_output(
        &self,
        id: &SessionId,
        message: &Message,
        ask: &Ask,
        pattern: &Pattern,
    ) -> Result<Option<Snippet>> {
        let Some(whole) = message.outcome().and_then(|outcome| outcome.output_ref.as_ref()) else {
            return Ok(None);
        };
        let Some(mut blob) = self.blob(id, &whole.id)? else { return Ok(None) };
        let mut buffer = Vec::new();
        loop {
            let kept = buffer.len();
            let read = blob.by_ref().take(PIECE as u64).read_to_end(&mut buffer)?;
            if let Some(place) = pattern.bytes.find(&buffer) {
                return Ok(Some(window(&buffer, place.range(), ask.snippet)));
            }
            if read == 0 {
                return Ok(None);
            }
            let overlap = pattern.reach.min(kept + read);
            buffer.drain(..buffer.len() - overlap);
        }
    }
}

/// The words around a match among bytes.
fn window(bytes: &[u8], place: Range<usize>, width: usize) -> Snippet {
    let from = place.start.saturating_sub(4 * width);
    let end = place.end.min(place.start + 8 * width + 64);
    let before = String::from_utf8_lossy(&bytes[from..place.start]).into_owned();
    let inside = String::from_utf8_lossy(&bytes[place.start..end]);
    let after = String::from_utf8_lossy(&bytes[end..bytes.len().min(end + 4 * width)]);
    let span = before.len()..before.len() + inside.len();
    around_match(&(before + &inside + &after), &[span], width)
}
