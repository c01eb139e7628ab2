//! Ranked search: which entries best fit the words of a query.
//!
//! BM25 over the terms of [`terms`](super::terms), with what it lacks for conversations. An answer often shares no
//! word with its question, but stands beside it: entries get a share of what their neighbours are worth. People ask in
//! other words than they once used: the best results lend the query a few of theirs. And of entries with the same
//! words the one that has more of them, closer together, comes first. Of equals the latest wins; age counts for
//! nothing else.
//!
//! How common a word is is counted over all sessions that are searched, so that their results can be compared.

use super::index::{said_by, text_of};
use super::{RecallHit, RecallMode, RecallNeighbour, RecallPattern, RecallQuery, RecallScope, needed, terms};
use crate::engine::Engine;
use crate::error::Result;
use komado_core::head::EntrySource;
use komado_core::{Message, Seq, SessionId, ThreadId};
use komado_store::search_index::{IndexQuery, Passage, SearchFilter, SearchFor, SearchHit, TermCounts};
use komado_store::{Journal, OpenMode, SearchIndex};
use std::collections::{BTreeMap, HashMap};
use std::io::{Read, Seek, SeekFrom};
use std::ops::Range;

/// Entries that are looked at more closely.
const CANDIDATES: usize = 100;
/// Entries whose neighbours get a share.
const GENEROUS: usize = 40;
/// What the first and the second neighbour get: answers come after questions more often than before them.
const AFTER: [f32; 2] = [0.65, 0.25];
const BEFORE: [f32; 2] = [0.3, 0.1];
/// Entries that lend the query words, and how many they lend.
const LENDERS: usize = 4;
const LENT: usize = 8;
/// What lent words are worth, all of them together, against the query's own.
const LOAN: f32 = 0.15;
/// Entries whose words are looked at one by one.
const READ: usize = 30;
/// How much it counts that more of the query is there, and that it stands close together.
const COVERAGE: f32 = 0.3;
const CLOSENESS: f32 = 0.25;
/// Characters of an entry that stands beside a result.
const BESIDE: usize = 120;

/// An entry on its way to becoming a result.
struct Candidate {
    session: SessionId,
    hit: SearchHit,
    score: f32,
}

/// Indexes of the sessions searched; the last one used stays open.
struct Shelves<'e> {
    engine: &'e Engine,
    open: Option<(SessionId, Box<dyn SearchIndex>)>,
}

impl Shelves<'_> {
    fn get(&mut self, id: &SessionId) -> Result<&dyn SearchIndex> {
        let kept = self.open.take().filter(|(open, _)| open == id);
        let open = match kept {
            Some(open) => open,
            None => (id.clone(), self.engine.shelf(id, &mut |_, _| {})?),
        };
        Ok(&*self.open.insert(open).1)
    }
}

/// One search.
struct Search<'e> {
    sessions: Vec<SessionId>,
    shelves: Shelves<'e>,
    reader: PassageReader<'e>,
    filter: SearchFilter,
    average: f32,
}

impl Engine {
    pub(super) fn ranked(
        &self,
        scope: &RecallScope,
        ask: &RecallQuery,
        wanted: Vec<(String, f32)>,
    ) -> Result<Vec<RecallHit>> {
        let mut search = Search {
            sessions: self.sessions_of(scope)?,
            shelves: Shelves { engine: self, open: None },
            reader: PassageReader::new(self),
            filter: self.narrowed(scope, &ask.filter)?,
            average: 1.0,
        };
        let own = search.weigh(wanted)?;
        let limit = CANDIDATES.max(2 * ask.k);
        let mut candidates = search.gather(&own, limit)?;
        let lent = search.borrow(&candidates, &own)?;
        if !lent.is_empty() {
            candidates = search.gather(&[&own[..], &lent].concat(), limit)?;
        }
        search.share(&mut candidates)?;
        search.look_closely(&mut candidates, &own)?;
        candidates.truncate(ask.k);
        search.tell(candidates, ask, &own)
    }
}

impl Search<'_> {
    /// Gives each term what it is worth: the rarer, the more.
    fn weigh(&mut self, wanted: Vec<(String, f32)>) -> Result<Vec<(String, f32)>> {
        let names: Vec<String> = wanted.iter().map(|(term, _)| term.clone()).collect();
        let mut sum = TermCounts { holding: vec![0; names.len()], ..TermCounts::default() };
        for id in self.sessions.clone() {
            let tally = self.shelves.get(&id)?.tally(&names)?;
            sum.docs += tally.docs;
            sum.words += tally.words;
            sum.holding.iter_mut().zip(&tally.holding).for_each(|(sum, n)| *sum += n);
        }
        self.average = sum.words as f32 / sum.docs.max(1) as f32;
        let rarity = |holding: u64| {
            let (docs, holding) = (sum.docs.max(holding) as f32, holding as f32);
            (1.0 + (docs - holding + 0.5) / (holding + 0.5)).ln()
        };
        let weighed = wanted.into_iter().zip(&sum.holding).filter(|(_, holding)| **holding > 0);
        Ok(weighed.map(|((term, share), holding)| (term, share * rarity(*holding))).collect())
    }

    /// The best entries of all sessions, best first.
    fn gather(&mut self, terms: &[(String, f32)], limit: usize) -> Result<Vec<Candidate>> {
        let sought =
            IndexQuery { terms: terms.to_vec(), average: self.average, filter: self.filter.clone(), limit };
        let mut all: Vec<Candidate> = Vec::new();
        for session in self.sessions.clone() {
            let hits = self.shelves.get(&session)?.search(&sought)?;
            all.extend(hits.into_iter().map(|hit| Candidate {
                session: session.clone(),
                score: hit.score,
                hit,
            }));
            sort(&mut all);
            all.truncate(limit);
        }
        Ok(all)
    }

    /// Words of the best entries that the query does not have, worth little each.
    fn borrow(&mut self, best: &[Candidate], own: &[(String, f32)]) -> Result<Vec<(String, f32)>> {
        let Some(top) = best.first().map(|best| best.score) else { return Ok(Vec::new()) };
        let mut offers: BTreeMap<String, f32> = BTreeMap::new();
        for candidate in best.iter().take(LENDERS) {
            let text = self.reader.passage(&candidate.session, &candidate.hit)?;
            let mut counts: BTreeMap<String, f32> = BTreeMap::new();
            let mut length = 0.0;
            terms::each(&text, &mut |term| {
                length += f32::from(u8::from(term.kind.is_counted()));
                if matches!(term.kind, terms::TermKind::Word | terms::TermKind::Pair) {
                    *counts.entry(term.text.into_owned()).or_default() += 1.0;
                }
            });
            for (term, count) in counts.into_iter().filter(|(term, _)| !own.iter().any(|(o, _)| o == term)) {
                *offers.entry(term).or_default() += candidate.score / top * count / f32::max(length, 8.0);
            }
        }
        let mut offers: Vec<(String, f32)> = offers.into_iter().collect();
        offers.sort_by(|a, b| b.1.total_cmp(&a.1));
        offers.truncate(8 * LENT);
        let mut lent = self.weigh(offers)?;
        lent.sort_by(|a, b| b.1.total_cmp(&a.1));
        lent.truncate(LENT);
        let (ours, theirs): (f32, f32) =
            (own.iter().map(|(_, worth)| worth).sum(), lent.iter().map(|(_, worth)| worth).sum());
        lent.iter_mut().for_each(|(_, worth)| *worth *= LOAN * ours / theirs.max(f32::EPSILON));
        Ok(lent)
    }

    /// Entries beside a good one get a share of its worth, whether or not they have a word of the query.
    fn share(&mut self, candidates: &mut Vec<Candidate>) -> Result<()> {
        let mut places: HashMap<(SessionId, ThreadId, Seq), usize> = HashMap::new();
        for (i, candidate) in candidates.iter().enumerate() {
            places.insert(place(candidate), i);
        }
        let mut gains: Vec<[f32; 2]> = vec![[0.0; 2]; candidates.len()];
        let givers: Vec<(SessionId, ThreadId, Seq, f32)> = candidates
            .iter()
            .take(GENEROUS)
            .map(|c| (c.session.clone(), c.hit.thread.clone(), c.hit.seq, c.hit.score))
            .collect();
        let filter = self.filter.clone();
        for (session, thread, seq, worth) in givers {
            let reach = AFTER.len() as u32;
            let beside = self.shelves.get(&session)?.hits(SearchFor::Around(&thread, seq, reach), &filter)?;
            for (distance, hit) in beside {
                let candidate = Candidate { session: session.clone(), hit, score: 0.0 };
                let at = *places.entry(place(&candidate)).or_insert_with(|| {
                    candidates.push(candidate);
                    gains.push([0.0; 2]);
                    candidates.len() - 1
                });
                // The better neighbour of each side counts; many poor ones do not add up.
                let side = &mut gains[at][usize::from(distance > 0)];
                let shares = if distance > 0 { AFTER } else { BEFORE };
                let share = shares.get(distance.unsigned_abs() as usize - 1).copied().unwrap_or_default();
                *side = side.max(share * worth);
            }
        }
        for (candidate, [before, after]) in candidates.iter_mut().zip(gains) {
            candidate.score += before + after;
        }
        sort(candidates);
        Ok(())
    }

    /// Of the best, those come first that have more of the query, closer together.
    fn look_closely(&mut self, candidates: &mut [Candidate], own: &[(String, f32)]) -> Result<()> {
        let all: f32 = own.iter().map(|(_, worth)| worth).sum();
        for candidate in candidates.iter_mut().take(READ).filter(|candidate| candidate.hit.holds != 0) {
            let there = own.iter().enumerate().filter(|(i, _)| *i < 64 && candidate.hit.holds >> i & 1 == 1);
            let covered: f32 = there.map(|(_, (_, worth))| worth).sum();
            let text = self.reader.passage(&candidate.session, &candidate.hit)?;
            candidate.score += candidate.hit.score
                * (COVERAGE * covered / all.max(f32::EPSILON) + CLOSENESS * closeness(&text, own));
        }
        sort(candidates);
        Ok(())
    }

    fn tell(
        &mut self,
        best: Vec<Candidate>,
        ask: &RecallQuery,
        own: &[(String, f32)],
    ) -> Result<Vec<RecallHit>> {
        let filter = self.filter.clone();
        let mut results = Vec::with_capacity(best.len());
        for Candidate { session, hit, score } in best {
            let text = self.reader.passage(&session, &hit)?;
            let snippet = around_terms(&text, own, ask.snippet);
            let shelf = self.shelves.get(&session)?;
            let around = beside(shelf, &mut self.reader, &session, &hit, ask, &filter)?;
            results.push(found(&session, hit, score, snippet, around));
        }
        // What has a word of the query stands before what was found for standing beside it.
        results.sort_by_key(RecallHit::is_beside);
        Ok(results)
    }
}

fn place(candidate: &Candidate) -> (SessionId, ThreadId, Seq) {
    (candidate.session.clone(), candidate.hit.thread.clone(), candidate.hit.seq)
}

/// Best first; of equals the latest.
fn sort(candidates: &mut [Candidate]) {
    candidates.sort_by(|a, b| {
        let latest = || (&b.hit.timestamp, b.hit.id).cmp(&(&a.hit.timestamp, a.hit.id));
        b.score.total_cmp(&a.score).then_with(latest)
    });
}

/// How close words that follow one another in the query stand in the text: 1 when side by side, 0 when nowhere.
fn closeness(text: &str, own: &[(String, f32)]) -> f32 {
    if own.len() < 2 {
        return 0.0;
    }
    let mut last: Vec<Option<usize>> = vec![None; own.len()];
    let pairs = own.len() - 1;
    let mut nearest: Vec<f32> = vec![0.0; pairs];
    let mut at = 0;
    terms::each(text, &mut |term| {
        at += usize::from(term.kind.is_counted());
        let Some(which) = own.iter().position(|(known, _)| *known == term.text) else { return };
        last[which] = Some(at);
        for pair in [which.checked_sub(1), Some(which)].into_iter().flatten().filter(|pair| *pair < pairs) {
            if let (Some(a), Some(b)) = (last[pair], last[pair + 1]) {
                nearest[pair] = nearest[pair].max(1.0 / (a.abs_diff(b).max(1)) as f32);
            }
        }
    });
    nearest.iter().sum::<f32>() / pairs as f32
}

/// What stands beside a result, when that was asked for.
pub(super) fn beside(
    shelf: &dyn SearchIndex,
    reader: &mut PassageReader<'_>,
    session: &SessionId,
    hit: &SearchHit,
    ask: &RecallQuery,
    filter: &SearchFilter,
) -> Result<Vec<RecallNeighbour>> {
    if ask.neighbours == 0 {
        return Ok(Vec::new());
    }
    // Any speaker counts: only what lies outside of the thread that is searched is left out.
    let filter = SearchFilter {
        places: filter.places.clone(),
        before: filter.before.clone(),
        ..SearchFilter::default()
    };
    let mut found = Vec::new();
    for (_, hit) in shelf.hits(SearchFor::Around(&hit.thread, hit.seq, ask.neighbours), &filter)? {
        let text = reader.message(session, &hit.thread, hit.seq)?.map(|m| text_of(&m)).unwrap_or_default();
        let snippet = around_match(&text, &[], ask.snippet.min(BESIDE)).text;
        found.push(RecallNeighbour { seq: hit.seq, role: hit.role, snippet });
    }
    Ok(found)
}

/// A hit as a result; whether the model sees it is found out at the end.
pub(super) fn found(
    session: &SessionId,
    hit: SearchHit,
    score: f32,
    snippet: Snippet,
    around: Vec<RecallNeighbour>,
) -> RecallHit {
    let SearchHit { thread, seq, role, tools, timestamp, passage, .. } = hit;
    let (session, in_output) = (session.clone(), passage.in_output);
    RecallHit {
        session,
        thread,
        seq,
        score,
        role,
        tools,
        timestamp,
        snippet,
        in_output,
        hidden: false,
        around,
    }
}

/// Journals that are held open at once.
const MOST: usize = 16;

/// Reads passages; keeps a few journals open on the way.
pub(super) struct PassageReader<'e> {
    engine: &'e Engine,
    open: HashMap<(SessionId, ThreadId), Box<dyn Journal>>,
}

impl<'e> PassageReader<'e> {
    pub(super) fn new(engine: &'e Engine) -> Self {
        Self { engine, open: HashMap::new() }
    }

    /// What one entry says; `None` for what says nothing.
    pub(super) fn message(
        &mut self,
        session: &SessionId,
        thread: &ThreadId,
        seq: Seq,
    ) -> Result<Option<Message>> {
        let key = (session.clone(), thread.clone());
        if self.open.len() >= MOST && !self.open.contains_key(&key) {
            self.open.clear();
        }
        // Others may have put entries into the index that came after the journal was opened here.
        if self.open.get(&key).is_none_or(|journal| journal.last() < seq) {
            self.open.insert(key.clone(), self.engine.store().open(session, thread, OpenMode::Read)?);
        }
        let Some(journal) = self.open.get(&key) else { return Ok(None) };
        Ok(said_by(EntrySource::record(&**journal, seq)?.entry))
    }

    /// The words of a passage.
    pub(super) fn passage(&mut self, session: &SessionId, hit: &SearchHit) -> Result<String> {
        let Some(message) = self.message(session, &hit.thread, hit.seq)? else { return Ok(String::new()) };
        let Passage { at, bytes, in_output, .. } = hit.passage;
        if !in_output {
            let text = text_of(&message);
            let from = usize::try_from(at).unwrap_or(usize::MAX);
            let piece = text.get(from..from.saturating_add(bytes as usize));
            return Ok(piece.map_or(text.clone(), str::to_owned));
        }
        let Some(whole) = message.outcome().and_then(|outcome| outcome.output_ref.as_ref()) else {
            return Ok(String::new());
        };
        let Some(mut blob) = self.engine.blob(session, &whole.id)? else { return Ok(String::new()) };
        let mut piece = Vec::with_capacity(bytes as usize);
        blob.seek(SeekFrom::Start(at))?;
        blob.take(u64::from(bytes)).read_to_end(&mut piece)?;
        Ok(String::from_utf8_lossy(&piece).into_owned())
    }
}

// Looking for something as it stands: a phrase, or a regular expression.
//
// Entries are read one at a time, the last first, until enough were found. Of a phrase the index may know terms that
// must be there; entries without them are passed over unread. An output is read in pieces that overlap, so a match
// longer than a few kilobytes may be missed in it.

/// Bytes of an output that are searched at once.
const PIECE: usize = 256 << 10;
/// The most matches that are marked in one result.
const MARKS: usize = 16;

impl Engine {
    pub(super) fn exact(&self, scope: &RecallScope, ask: &RecallQuery) -> Result<Vec<RecallHit>> {
        let pattern = RecallPattern::of(&ask.query, ask.how)?;
        let needed = if ask.how == RecallMode::Exact { needed(&ask.query) } else { Vec::new() };
        let filter = self.narrowed(scope, &ask.filter)?;
        let mut all: Vec<RecallHit> = Vec::new();
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
        ask: &RecallQuery,
        pattern: &RecallPattern,
        (needed, filter): (&[String], &SearchFilter),
    ) -> Result<Vec<RecallHit>> {
        let shelf = self.shelf(id, &mut |_, _| {})?;
        let mut reader = PassageReader::new(self);
        let (mut results, mut before) = (Vec::new(), None);
        loop {
            let page = shelf.holding(needed, filter, before)?;
            let Some(last) = page.last() else { return Ok(results) };
            before = Some(last.id);
            for hit in page {
                let Some(message) = reader.message(id, &hit.thread, hit.seq)? else { continue };
                let text = text_of(&message);
                let spans: Vec<Range<usize>> =
                    pattern.text.find_iter(&text).take(MARKS).map(|m| m.range()).collect();
                let shown = match spans.is_empty() {
                    true => self.look_into_output(id, &message, ask, pattern)?,
                    false => Some(around_match(&text, &spans, ask.snippet)),
                };
                if let Some(snippet) = shown {
                    let in_output = spans.is_empty();
                    let around = beside(&*shelf, &mut reader, id, &hit, ask, filter)?;
                    results.push(RecallHit { in_output, ..found(id, hit, 1.0, snippet, around) });
                }
                if results.len() >= ask.k {
                    return Ok(results);
                }
            }
        }
    }

    fn look_into_output(
        &self,
        id: &SessionId,
        message: &Message,
        ask: &RecallQuery,
        pattern: &RecallPattern,
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

// A few words around what was found: enough to know whether to read on, never the whole.
//
// Line breaks and whatever a terminal would act on become spaces, so that a result is one line wherever it is shown.

/// A piece of a text with the places of what was found in it.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Snippet {
    /// The piece; `…` stands where the text goes on.
    pub text: String,
    /// Where in it the matches are, in bytes.
    pub marks: Vec<Range<usize>>,
}

/// The best stretch of at most `width` characters of `text` for these terms.
pub(crate) fn around_terms(text: &str, wanted: &[(String, f32)], width: usize) -> Snippet {
    let mut places: Vec<(Range<usize>, usize)> = Vec::new();
    terms::each(text, &mut |term| {
        if let Some(which) = wanted.iter().position(|(known, _)| *known == term.text) {
            places.push((term.span, which));
        }
    });
    let chosen = densest(text, &places, wanted, width);
    let spans: Vec<Range<usize>> = places.into_iter().map(|(span, _)| span).collect();
    cut_out(text, chosen, &spans, width)
}

/// The stretch of at most `width` characters around the match at `span`.
pub(crate) fn around_match(text: &str, spans: &[Range<usize>], width: usize) -> Snippet {
    cut_out(text, spans.first().cloned().unwrap_or(0..0), spans, width)
}

/// From the first to the last of those places that fit into `width` and are worth most together.
fn densest(
    text: &str,
    places: &[(Range<usize>, usize)],
    wanted: &[(String, f32)],
    width: usize,
) -> Range<usize> {
    let mut best = (0.0, 0..0);
    for (i, (first, _)) in places.iter().enumerate() {
        let mut seen = vec![false; wanted.len()];
        let (mut worth, mut end) = (0.0, first.end);
        for (span, which) in &places[i..] {
            if span.start < first.start || span.end < end {
                continue;
            }
            // No character is more than four bytes; counting them is only worth it where it may matter.
            let fits =
                span.end - first.start <= width || text[first.start..span.end].chars().count() <= width;
            if !fits {
                break;
            }
            if !std::mem::replace(&mut seen[*which], true) {
                (worth, end) = (worth + wanted[*which].1, span.end);
            }
        }
        if worth > best.0 {
            best = (worth, first.start..end);
        }
    }
    best.1
}

/// `width` characters of `text` with `inner` in their middle.
fn cut_out(text: &str, inner: Range<usize>, spans: &[Range<usize>], width: usize) -> Snippet {
    let used = text[inner.clone()].chars().take(width + 1).count();
    let spare = width.saturating_sub(used);
    let before =
        text[..inner.start].char_indices().rev().take(spare / 3).last().map_or(inner.start, |(i, _)| i);
    let start = word_start(text, before, inner.start);
    let end = text[start..].char_indices().nth(width).map_or(text.len(), |(i, _)| start + i);
    let end = word_end(text, end, inner.end);
    let mut out = Snippet::default();
    if !text[..start].trim().is_empty() {
        out.text.push('…');
    }
    let goes_on = !text[end..].trim().is_empty();
    copy(&text[start..end], start, spans, &mut out);
    if goes_on {
        out.text.push('…');
    }
    out
}

/// The next beginning of a word at or after `at`, but not after `limit`.
fn word_start(text: &str, at: usize, limit: usize) -> usize {
    if at == 0 || text[..at].ends_with(char::is_whitespace) {
        return at;
    }
    match text[at..limit].char_indices().take(24).find(|(_, c)| c.is_whitespace()) {
        Some((i, c)) => at + i + c.len_utf8(),
        None => at,
    }
}

/// The last end of a word at or before `at`, but not before `limit`.
fn word_end(text: &str, at: usize, limit: usize) -> usize {
    if at >= text.len() || at <= limit {
        return at;
    }
    match text[limit..at].char_indices().rev().take(24).find(|(_, c)| c.is_whitespace()) {
        Some((i, _)) => limit + i,
        None => at,
    }
}

/// Copies a piece that begins at `from`, with runs of blanks as one, and notes where the matches went.
fn copy(piece: &str, from: usize, spans: &[Range<usize>], out: &mut Snippet) {
    let mut open: Option<Range<usize>> = None;
    for (i, c) in piece.char_indices() {
        let at = from + i;
        let c = if is_blank(c) { ' ' } else { c };
        if c == ' ' && (out.text.is_empty() || out.text.ends_with([' ', '…'])) {
            continue;
        }
        let begin = out.text.len();
        out.text.push(c);
        if spans.iter().any(|span| span.contains(&at)) {
            open = Some(open.map_or(begin, |mark| mark.start)..out.text.len());
        } else if let Some(mark) = open.take() {
            out.marks.push(mark);
        }
    }
    out.marks.extend(open);
    while out.text.ends_with(' ') {
        out.text.pop();
    }
    let end = out.text.len();
    out.marks.iter_mut().for_each(|mark| mark.end = mark.end.min(end));
    out.marks.retain(|mark| mark.start < mark.end);
}

/// Blanks, and what a terminal would act on: control characters and changes of writing direction.
fn is_blank(c: char) -> bool {
    c.is_whitespace()
        || c.is_control()
        || matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}')
}

#[cfg(test)]
mod snippet_tests {
    use super::*;

    fn wanted(terms: &[&str]) -> Vec<(String, f32)> {
        terms.iter().map(|term| ((*term).to_owned(), 1.0)).collect()
    }

    fn marked(snippet: &Snippet) -> Vec<&str> {
        snippet.marks.iter().map(|mark| &snippet.text[mark.clone()]).collect()
    }

    #[test]
    fn the_stretch_with_most_of_the_terms_is_shown() {
        let text = format!(
            "{} window {} a small window opens {}",
            "x ".repeat(90),
            "y ".repeat(90),
            "z ".repeat(90)
        );
        let snippet = around_terms(&text, &wanted(&["window", "small", "open"]), 60);
        assert_eq!(marked(&snippet), ["small", "window", "opens"]);
        assert!(snippet.text.starts_with('…') && snippet.text.ends_with('…'), "{}", snippet.text);
        assert!(snippet.text.chars().count() <= 62);
        let wide = around_terms(&text, &wanted(&["window", "small"]), 10_000);
        assert_eq!(wide.text, text.split_whitespace().collect::<Vec<_>>().join(" "));
    }

    #[test]
    fn no_character_is_split_and_no_line_broken() {
        let text = format!("{}\n小窓\tを\u{1b}[31m開ける\n{}", "あ".repeat(400), "🪟".repeat(400));
        for width in 0..80 {
            let snippet = around_terms(&text, &wanted(&["小窓"]), width);
            assert!(!snippet.text.contains(['\n', '\t', '\u{1b}']), "{}", snippet.text);
            assert!(snippet.text.chars().count() <= width + 2, "{width}: {}", snippet.text);
        }
        assert_eq!(marked(&around_terms(&text, &wanted(&["小窓"]), 40)), ["小窓"]);
    }

    #[test]
    fn without_a_match_it_is_the_beginning() {
        let snippet = around_terms("one two three four five", &wanted(&["none"]), 9);
        assert_eq!((snippet.text.as_str(), snippet.marks.len()), ("one two…", 0));
        assert_eq!(around_terms("", &[], 9).text, "");
        assert_eq!(marked(&around_match("a match here", &[2..7, 8..12], 100)), ["match", "here"]);
    }
}
