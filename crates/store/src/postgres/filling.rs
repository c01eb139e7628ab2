//! Taking sheets in on a shelf: all or none, and nothing after somebody else was faster.

use super::link::values;
use super::server::{Server, Work};
use super::shelf::{PART_BITS, between_slashes, known, role_number};
use super::{clean, seq};
use crate::shelf::{Doc, Mark, Sheet};
use crate::{Error, Result};
use komado_core::ThreadId;
use std::collections::{BTreeMap, HashMap};

/// Places of a term in one row.
const ROW: i64 = 400;
/// The most often that a term is counted in one passage; what one more adds is nothing anyone could tell.
const MOST: u32 = 8;
/// Places that are sent in one statement.
const PIECE: usize = 20_000;

const ENTRIES: &str = "INSERT INTO shelf_entries (session, id, thread, seq, role, at, tools, files) \
    SELECT $1, n.id, $2, n.seq, n.role, n.at, n.tools, n.files FROM unnest($3::BIGINT[], $4::BIGINT[], \
        $5::SMALLINT[], $6::TEXT[], $7::TEXT[], $8::TEXT[]) AS n(id, seq, role, at, tools, files)";

const PASSAGES: &str = "INSERT INTO shelf_passages (session, doc, at, bytes, words, in_output) \
    SELECT $1, n.doc, n.at, n.bytes, n.words, n.in_output FROM unnest($2::BIGINT[], $3::BIGINT[], $4::BIGINT[], \
        $5::BIGINT[], $6::BOOLEAN[]) AS n(doc, at, bytes, words, in_output)";

const LAST_ROWS: &str = "SELECT wanted.term, latest.first, latest.places FROM unnest($2::TEXT[]) AS wanted(term) \
    CROSS JOIN LATERAL (SELECT first, cardinality(docs)::BIGINT AS places FROM shelf_posts \
        WHERE session = $1 AND term = wanted.term ORDER BY first DESC LIMIT 1) AS latest";

const POSTS: &str = "INSERT INTO shelf_posts (session, term, first, docs, times) \
    SELECT $1, n.term, n.first, array_agg(n.doc ORDER BY n.doc), array_agg(n.times ORDER BY n.doc) \
    FROM unnest($2::TEXT[], $3::BIGINT[], $4::BIGINT[], $5::SMALLINT[]) AS n(term, first, doc, times) \
    GROUP BY n.term, n.first \
    ON CONFLICT (session, term, first) DO UPDATE SET docs = shelf_posts.docs || excluded.docs, \
        times = shelf_posts.times || excluded.times";

const MARK: &str = "WITH sums AS (UPDATE shelves SET docs = docs + $5, words = words + $6, entries = $7 \
        WHERE session = $1) \
    INSERT INTO shelf_threads (session, thread, seq, part) VALUES ($1, $2, $3, $4) \
    ON CONFLICT (session, thread) DO UPDATE SET seq = excluded.seq, part = excluded.part";

/// One filling.
pub(super) struct Filling<'a> {
    pub(super) session: i64,
    pub(super) clearings: i64,
    pub(super) thread: &'a ThreadId,
}

impl Filling<'_> {
    pub(super) fn run(&self, server: &Server, (after, upto): (Mark, Mark), sheets: &[Sheet]) -> Result<()> {
        let mut work = server.begin()?;
        let moved = |found| Error::Moved { expected: after.seq, found };
        let look = "SELECT clearings, entries FROM shelves WHERE session = $1 FOR UPDATE";
        let rows = work.ask(look, values![self.session])?;
        let facts: Option<(i64, i64)> = rows.first().map(|row| (row.get(0), row.get(1)));
        let Some((_, last)) = facts.filter(|(clearings, _)| *clearings == self.clearings) else {
            return work.leave().and(Err(moved(0)));
        };
        let (found, is_unfinished) = self.marks(&mut work)?;
        // Places are kept in order: an entry that is half in is finished before another begins.
        if found != after || is_unfinished {
            return work.leave().and(Err(moved(found.seq)));
        }
        let (ids, last) = self.put_entries(&mut work, sheets, last)?;
        let (docs, words) = self.put_passages(&mut work, sheets, &ids)?;
        self.put_posts(&mut work, sheets, &ids)?;
        let (thread, seq, part) = (self.thread.to_string(), i64::from(upto.seq), i64::from(upto.part));
        work.ask(MARK, values![self.session, thread, seq, part, docs, words, last])?;
        work.commit()
    }

    /// How far the thread is in, and whether another one has an entry that is half in.
    fn marks(&self, work: &mut Work<'_>) -> Result<(Mark, bool)> {
        let sql =
            "SELECT thread, seq, part FROM shelf_threads WHERE session = $1 AND (thread = $2 OR part > 0)";
        let rows = work.ask(sql, values![self.session, self.thread.to_string()])?;
        let is_own = |row: &&tokio_postgres::Row| row.get::<_, &str>(0) == self.thread.as_str();
        let own = rows.iter().find(is_own).map(|row| Mark { seq: seq(row.get(1)), part: seq(row.get(2)) });
        Ok((own.unwrap_or_default(), rows.iter().any(|row| !is_own(&row))))
    }

    /// Gives each sheet its number, and those that are new their row; gives the last number in use.
    fn put_entries(&self, work: &mut Work<'_>, sheets: &[Sheet], mut last: i64) -> Result<(Vec<i64>, i64)> {
        let sql = "SELECT seq, id FROM shelf_entries WHERE session = $1 AND thread = $2 AND seq = ANY($3)";
        let seqs: Vec<i64> = sheets.iter().map(|sheet| i64::from(sheet.seq)).collect();
        let rows = work.ask(sql, values![self.session, self.thread.to_string(), seqs])?;
        let mut known: HashMap<i64, i64> = rows.iter().map(|row| (row.get(0), row.get(1))).collect();
        let (mut ids, mut new) = (Vec::new(), Vec::new());
        for sheet in sheets {
            let id = *known.entry(i64::from(sheet.seq)).or_insert_with(|| {
                last += 1;
                new.push((last, sheet));
                last
            });
            ids.push(id);
        }
        if !new.is_empty() {
            let tools = new.iter().map(|(_, sheet)| lines(sheet.tools.iter().cloned())).collect::<Vec<_>>();
            let paths = |sheet: &Sheet| lines(sheet.files.iter().map(|file| between_slashes(file)));
            let given = values![
                self.session,
                self.thread.to_string(),
                new.iter().map(|(id, _)| *id).collect::<Vec<i64>>(),
                new.iter().map(|(_, sheet)| i64::from(sheet.seq)).collect::<Vec<i64>>(),
                new.iter().map(|(_, sheet)| role_number(sheet.role)).collect::<Vec<i16>>(),
                new.iter().map(|(_, sheet)| clean(&sheet.timestamp)).collect::<Vec<String>>(),
                tools,
                new.iter().map(|(_, sheet)| paths(sheet)).collect::<Vec<String>>(),
            ];
            work.ask(ENTRIES, given)?;
        }
        Ok((ids, last))
    }

    /// Puts every passage in its place; gives their number and that of their words.
    fn put_passages(&self, work: &mut Work<'_>, sheets: &[Sheet], ids: &[i64]) -> Result<(i64, i64)> {
        let all: Vec<(i64, &Doc)> = placed(sheets, ids).collect();
        for some in all.chunks(PIECE) {
            let given = values![
                self.session,
                some.iter().map(|(place, _)| *place).collect::<Vec<i64>>(),
                some.iter().map(|(_, doc)| doc.passage.at as i64).collect::<Vec<i64>>(),
                some.iter().map(|(_, doc)| i64::from(doc.passage.bytes)).collect::<Vec<i64>>(),
                some.iter().map(|(_, doc)| i64::from(doc.words)).collect::<Vec<i64>>(),
                some.iter().map(|(_, doc)| doc.passage.in_output).collect::<Vec<bool>>(),
            ];
            work.ask(PASSAGES, given)?;
        }
        Ok((all.len() as i64, all.iter().map(|(_, doc)| i64::from(doc.words)).sum()))
    }

    /// Adds the places of each term to its last row, or begins another.
    fn put_posts(&self, work: &mut Work<'_>, sheets: &[Sheet], ids: &[i64]) -> Result<()> {
        let mut terms: BTreeMap<String, BTreeMap<i64, u32>> = BTreeMap::new();
        for (place, doc) in placed(sheets, ids) {
            for (term, times) in &doc.terms {
                *terms.entry(known(term)).or_default().entry(place).or_default() += times;
            }
        }
        let names: Vec<String> = terms.keys().cloned().collect();
        let rows = work.ask(LAST_ROWS, values![self.session, names])?;
        let mut open: HashMap<&str, (i64, i64)> =
            rows.iter().map(|row| (row.get(0), (row.get(1), row.get(2)))).collect();
        let mut posts = Vec::new();
        for (term, places) in &terms {
            for (place, times) in places {
                let row = open.entry(term).or_insert((*place, 0));
                if row.1 >= ROW {
                    *row = (*place, 0);
                }
                row.1 += 1;
                posts.push((term, row.0, *place, (*times).clamp(1, MOST) as i16));
            }
        }
        for some in posts.chunks(PIECE) {
            let given = values![
                self.session,
                some.iter().map(|post| post.0.clone()).collect::<Vec<String>>(),
                some.iter().map(|post| post.1).collect::<Vec<i64>>(),
                some.iter().map(|post| post.2).collect::<Vec<i64>>(),
                some.iter().map(|post| post.3).collect::<Vec<i16>>(),
            ];
            work.ask(POSTS, given)?;
        }
        Ok(())
    }
}

/// Each passage with its place; one that cannot be numbered is left out.
fn placed<'a>(sheets: &'a [Sheet], ids: &'a [i64]) -> impl Iterator<Item = (i64, &'a Doc)> {
    let place = |id: i64, doc: &Doc| id << PART_BITS | i64::from(doc.passage.part);
    sheets.iter().zip(ids).flat_map(move |(sheet, id)| {
        let numbered = sheet.docs.iter().filter(|doc| doc.passage.part >> PART_BITS == 0);
        numbered.map(move |doc| (place(*id, doc), doc))
    })
}

/// Names in one column, each between line breaks. What holds a line break is no name.
fn lines(names: impl Iterator<Item = String>) -> String {
    let names: Vec<String> = names.filter(|name| !name.contains('\n')).map(|name| clean(&name)).collect();
    if names.is_empty() { String::new() } else { format!("\n{}\n", names.join("\n")) }
}
