//! A session's index of words in tables, asked with one statement each.
//!
//! The server does the sum, the filter and the order; nothing but what was asked for comes over the wire. A place is a
//! number, the entry's in its upper bits and the passage's in its lower ones.

use super::server::{PostgresServer, PostgresTransaction, StatementValues, values};
use super::{clean, seq};
use crate::search_index::{
    IndexQuery, IndexedEntry, IndexedPassage, IndexedUpto, Passage, SearchFilter, SearchFor, SearchHit,
    SearchIndex, TermCounts,
};
use crate::{Error, Result};
use komado_core::{Role, SessionId, ThreadId};
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use tokio_postgres::Row;

/// Bits of a place that number the passage.
pub(super) const PART_BITS: u32 = 20;
/// Entries of one page of [`Shelf::holding`].
const PAGE: i64 = 256;
/// A term is known by its first letters: no index holds longer ones.
const LONGEST_TERM: usize = 256;

/// What a hit is read from: entry `e`, the place `doc` in it, and its passage `p`.
macro_rules! hit {
    ($from:literal, $rest:literal) => {
        concat!(
            "SELECT e.id, e.thread, e.seq, e.role, e.tools, e.at, found.score, found.holds, found.doc, p.at, p.bytes, \
             p.in_output, found.distance FROM (",
            $from,
            ") AS found JOIN shelf_entries e ON e.session = $1 AND e.id = found.doc >> 20 \
             LEFT JOIN shelf_passages p ON p.session = $1 AND p.doc = found.doc \
             WHERE ($2::SMALLINT IS NULL OR e.role = $2) \
             AND ($3::TEXT IS NULL OR position($3 IN e.tools) > 0) \
             AND ($4::TEXT IS NULL OR position($4 IN e.files) > 0) \
             AND ($5::TEXT IS NULL OR e.at >= $5) AND ($6::TEXT IS NULL OR e.at <= $6) \
             AND ($7::TEXT[] IS NULL OR EXISTS ( \
                SELECT 1 FROM unnest($7, $8::BIGINT[], $9::BIGINT[]) AS place(thread, first, last) \
                WHERE place.thread = e.thread AND e.seq BETWEEN place.first AND place.last)) \
             AND ($10::TEXT IS NULL OR e.thread <> $10 OR e.seq < $11) \
             AND ($12::TEXT IS NULL OR e.tools = '' OR replace(e.tools, $12, '') <> E'\\n') ",
            $rest
        )
    };
}

/// The best passage of each entry, best first; of equals the latest.
const SEARCH: &str = hit!(
    "SELECT DISTINCT ON (doc >> 20) doc, score, holds, 0::BIGINT AS distance FROM ( \
        SELECT post.doc, \
            sum(wanted.worth * post.times * 2.1 \
                / (post.times + 1.1 * (0.5 + 0.5 * words.words / $15::DOUBLE PRECISION)))::REAL AS score, \
            bit_or(CASE WHEN wanted.n <= 64 THEN 1::BIGINT << (wanted.n - 1)::INT ELSE 0 END) AS holds \
        FROM unnest($13::TEXT[], $14::DOUBLE PRECISION[]) WITH ORDINALITY AS wanted(term, worth, n) \
        JOIN shelf_posts t ON t.session = $1 AND t.term = wanted.term \
        CROSS JOIN LATERAL unnest(t.docs, t.times) AS post(doc, times) \
        JOIN shelf_passages words ON words.session = $1 AND words.doc = post.doc \
        GROUP BY post.doc) AS scored ORDER BY doc >> 20, score DESC, doc",
    "ORDER BY found.score DESC, found.doc DESC LIMIT $16"
);

const ENTRIES: &str = hit!(
    "SELECT id << 20 AS doc, 0::REAL AS score, 0::BIGINT AS holds, 0::BIGINT AS distance FROM shelf_entries \
        WHERE session = $1 AND id < $13",
    "ORDER BY e.id DESC LIMIT $14"
);

/// Entries that have every term, at the last place of the rarest.
const HOLDING: &str = hit!(
    "SELECT max(post.doc) FILTER (WHERE t.term = $14) AS doc, 0::REAL AS score, 0::BIGINT AS holds, \
        0::BIGINT AS distance \
        FROM shelf_posts t CROSS JOIN LATERAL unnest(t.docs) AS post(doc) \
        WHERE t.session = $1 AND t.term = ANY($15) AND post.doc >> 20 < $13 \
        GROUP BY post.doc >> 20 HAVING count(DISTINCT t.term) = cardinality($15)",
    "ORDER BY e.id DESC LIMIT $16"
);

const AROUND: &str = hit!(
    "SELECT * FROM ((SELECT id << 20 AS doc, 0::REAL AS score, 0::BIGINT AS holds, \
            -row_number() OVER (ORDER BY seq DESC) AS distance \
            FROM shelf_entries WHERE session = $1 AND thread = $13 AND seq < $14 ORDER BY seq DESC LIMIT $15) \
        UNION ALL (SELECT id << 20, 0::REAL, 0::BIGINT, row_number() OVER (ORDER BY seq) \
            FROM shelf_entries WHERE session = $1 AND thread = $13 AND seq > $14 ORDER BY seq LIMIT $15)) AS both_sides",
    "ORDER BY found.distance"
);

const TALLY: &str = "SELECT COALESCE(sum(cardinality(t.docs)), 0)::BIGINT \
    FROM unnest($2::TEXT[]) WITH ORDINALITY AS wanted(term, n) \
    LEFT JOIN shelf_posts t ON t.session = $1 AND t.term = wanted.term GROUP BY wanted.n ORDER BY wanted.n";

const OPEN: &str = "WITH s AS (SELECT number FROM sessions WHERE uuid = $1), \
    made AS (INSERT INTO shelves (session) SELECT number FROM sessions \
        WHERE uuid = $1 AND NOT EXISTS (SELECT 1 FROM shelves WHERE session = sessions.number) \
        FOR KEY SHARE ON CONFLICT DO NOTHING) \
    SELECT s.number, COALESCE(v.clearings, 0) FROM s LEFT JOIN shelves v ON v.session = s.number";

const CLEAR: &str = "WITH a AS (DELETE FROM shelf_posts WHERE session = $1), \
    b AS (DELETE FROM shelf_passages WHERE session = $1), \
    c AS (DELETE FROM shelf_entries WHERE session = $1), \
    d AS (DELETE FROM shelf_threads WHERE session = $1) \
    UPDATE shelves SET clearings = clearings + 1, docs = 0, words = 0 WHERE session = $1 RETURNING clearings";

/// A shelf, open.
pub(super) struct PostgresSearchIndex {
    server: Arc<PostgresServer>,
    session: i64,
    clearings: i64,
}

impl PostgresSearchIndex {
    pub(super) fn open(server: &Arc<PostgresServer>, id: &SessionId) -> Result<Self> {
        let rows = server.ask(OPEN, values![id.to_string()])?;
        let row = rows.first().ok_or_else(|| Error::NoSession(id.clone()))?;
        Ok(Self { server: Arc::clone(server), session: row.get(0), clearings: row.get(1) })
    }
}

/// A term as the table knows it.
pub(super) fn known(term: &str) -> String {
    clean(term).chars().take(LONGEST_TERM).collect()
}

/// The number of a role in the table.
pub(super) fn role_number(role: Role) -> i16 {
    Role::ALL.iter().position(|known| *known == role).unwrap_or_default() as i16
}

/// A path as it stands between slashes; so its beginning, its end and a folder in it are found alike.
pub(super) fn between_slashes(path: &str) -> String {
    format!("/{}/", path.trim_start_matches("./").trim_matches('/'))
}

fn filtered(session: i64, filter: &SearchFilter) -> StatementValues {
    let places = filter.places.as_ref();
    let line = |text: &String| format!("\n{}\n", clean(text));
    // What is not a path at all is about nothing.
    let file = filter.file.as_ref().map(|file| between_slashes(&clean(file)));
    let file = file.map(|file| if file == "//" { "\n\n".to_owned() } else { file });
    values![
        session,
        filter.role.map(role_number),
        filter.tool.as_ref().map(line),
        file,
        filter.since.as_deref().map(clean),
        filter.until.as_deref().map(clean),
        places.map(|all| all.iter().map(|(thread, _)| thread.to_string()).collect::<Vec<_>>()),
        places.map(|all| all.iter().map(|(_, span)| i64::from(span.from)).collect::<Vec<_>>()),
        places.map(|all| all.iter().map(|(_, span)| i64::from(span.to)).collect::<Vec<_>>()),
        filter.before.as_ref().map(|(thread, _)| thread.to_string()),
        filter.before.as_ref().map(|(_, seq)| i64::from(*seq)),
        filter.not_tool.as_ref().map(|tool| format!("{}\n", clean(tool))),
    ]
}

fn read(row: &Row) -> Option<(i32, SearchHit)> {
    let (id, doc): (i64, i64) = (row.get(0), row.get(8));
    let tools: &str = row.get(4);
    let number = |column: usize| row.get::<_, Option<i64>>(column).unwrap_or(0);
    let hit = SearchHit {
        id: id as u64,
        thread: ThreadId::new(row.get::<_, String>(1)).ok()?,
        seq: seq(row.get(2)),
        role: Role::ALL.get(usize::try_from(row.get::<_, i16>(3)).ok()?).copied()?,
        tools: tools.lines().filter(|name| !name.is_empty()).map(str::to_owned).collect(),
        timestamp: row.get(5),
        score: row.get(6),
        holds: row.get::<_, i64>(7) as u64,
        passage: Passage {
            part: (doc & ((1 << PART_BITS) - 1)) as u32,
            at: number(9) as u64,
            bytes: u32::try_from(number(10)).unwrap_or(u32::MAX),
            in_output: row.get::<_, Option<bool>>(11).unwrap_or(false),
        },
    };
    Some((row.get::<_, i64>(12) as i32, hit))
}

impl SearchIndex for PostgresSearchIndex {
    fn upto(&self, thread: &ThreadId) -> Result<IndexedUpto> {
        let sql = "SELECT seq, part FROM shelf_threads WHERE session = $1 AND thread = $2";
        let rows = self.server.ask(sql, values![self.session, thread.to_string()])?;
        Ok(rows.first().map_or_else(IndexedUpto::default, |row| IndexedUpto {
            seq: seq(row.get(0)),
            part: seq(row.get(1)),
        }))
    }

    fn add(
        &mut self,
        thread: &ThreadId,
        after: IndexedUpto,
        upto: IndexedUpto,
        sheets: &[IndexedEntry],
    ) -> Result<()> {
        let filling = PostgresFilling { session: self.session, clearings: self.clearings, thread };
        filling.run(&self.server, (after, upto), sheets)
    }

    fn tally(&self, terms: &[String]) -> Result<TermCounts> {
        let sql = "SELECT docs, words FROM shelves WHERE session = $1";
        let sums = self.server.ask(sql, values![self.session])?;
        let sum = |column: usize| sums.first().map_or(0, |row| row.get::<_, i64>(column)) as u64;
        let terms: Vec<String> = terms.iter().map(|term| known(term)).collect();
        let rows = self.server.ask(TALLY, values![self.session, terms])?;
        let holding = rows.iter().map(|row| row.get::<_, i64>(0) as u64).collect();
        Ok(TermCounts { docs: sum(0), words: sum(1), holding })
    }

    fn hits(&self, wanted: SearchFor<'_>, filter: &SearchFilter) -> Result<Vec<(i32, SearchHit)>> {
        let (sql, others) = match wanted {
            SearchFor::Best(IndexQuery { limit: 0, .. }) => return Ok(Vec::new()),
            SearchFor::Best(IndexQuery { terms, average, limit, .. }) => {
                let worths: Vec<f64> = terms.iter().map(|(_, worth)| f64::from(*worth)).collect();
                let terms: Vec<String> = terms.iter().map(|(term, _)| known(term)).collect();
                let limit = i64::try_from(*limit).unwrap_or(i64::MAX);
                (SEARCH, values![terms, worths, f64::from(average.max(1.0)), limit])
            }
            SearchFor::Holding(terms, before) => {
                let end = before.map_or(i64::MAX, |id| i64::try_from(id).unwrap_or(i64::MAX));
                let counts = self.tally(terms)?.holding;
                let mut all: Vec<String> = terms.iter().map(|term| known(term)).collect();
                match all.iter().zip(counts).min_by_key(|(_, count)| *count).map(|(rarest, _)| rarest.clone())
                {
                    None => (ENTRIES, values![end, PAGE]),
                    Some(rarest) => {
                        all.sort_unstable();
                        all.dedup();
                        (HOLDING, values![end, rarest, all, PAGE])
                    }
                }
            }
            SearchFor::Around(thread, seq, reach) => {
                (AROUND, values![thread.to_string(), i64::from(seq), i64::from(reach)])
            }
        };
        // The filter's values come before the others.
        let mut values = filtered(self.session, filter);
        values.extend(others);
        Ok(self.server.ask(sql, values)?.iter().filter_map(read).collect())
    }

    fn clear(&mut self) -> Result<()> {
        let mut work = self.server.begin()?;
        // A filling that is under way ends first: only a statement that begins after it sees what it put in.
        work.ask("SELECT 1 FROM shelves WHERE session = $1 FOR UPDATE", values![self.session])?;
        let rows = work.ask(CLEAR, values![self.session])?;
        work.commit()?;
        if let Some(row) = rows.first() {
            self.clearings = row.get(0);
        }
        Ok(())
    }
}

// Taking sheets in on a shelf: all or none, and nothing after another process was faster.

/// Places of a term in one row.
const ROW: i64 = 400;
/// The most often that a term is counted in one passage; what one more adds is nothing anyone could tell.
const MOST: u32 = 8;
/// Places that are sent in one statement.
const PIECE: usize = 20_000;

const PUT_ENTRIES: &str = "INSERT INTO shelf_entries (session, id, thread, seq, role, at, tools, files) \
    SELECT $1, n.id, $2, n.seq, n.role, n.at, n.tools, n.files FROM unnest($3::BIGINT[], $4::BIGINT[], \
        $5::SMALLINT[], $6::TEXT[], $7::TEXT[], $8::TEXT[]) AS n(id, seq, role, at, tools, files)";

const PUT_PASSAGES: &str = "INSERT INTO shelf_passages (session, doc, at, bytes, words, in_output) \
    SELECT $1, n.doc, n.at, n.bytes, n.words, n.in_output FROM unnest($2::BIGINT[], $3::BIGINT[], $4::BIGINT[], \
        $5::BIGINT[], $6::BOOLEAN[]) AS n(doc, at, bytes, words, in_output)";

const LAST_ROWS: &str = "SELECT wanted.term, latest.first, latest.places FROM unnest($2::TEXT[]) AS wanted(term) \
    CROSS JOIN LATERAL (SELECT first, cardinality(docs)::BIGINT AS places FROM shelf_posts \
        WHERE session = $1 AND term = wanted.term ORDER BY first DESC LIMIT 1) AS latest";

const PUT_POSTS: &str = "INSERT INTO shelf_posts (session, term, first, docs, times) \
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
pub(super) struct PostgresFilling<'a> {
    pub(super) session: i64,
    pub(super) clearings: i64,
    pub(super) thread: &'a ThreadId,
}

impl PostgresFilling<'_> {
    pub(super) fn run(
        &self,
        server: &PostgresServer,
        (after, upto): (IndexedUpto, IndexedUpto),
        sheets: &[IndexedEntry],
    ) -> Result<()> {
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
    fn marks(&self, work: &mut PostgresTransaction<'_>) -> Result<(IndexedUpto, bool)> {
        let sql =
            "SELECT thread, seq, part FROM shelf_threads WHERE session = $1 AND (thread = $2 OR part > 0)";
        let rows = work.ask(sql, values![self.session, self.thread.to_string()])?;
        let is_own = |row: &&tokio_postgres::Row| row.get::<_, &str>(0) == self.thread.as_str();
        let own =
            rows.iter().find(is_own).map(|row| IndexedUpto { seq: seq(row.get(1)), part: seq(row.get(2)) });
        Ok((own.unwrap_or_default(), rows.iter().any(|row| !is_own(&row))))
    }

    /// Gives each sheet its number, and those that are new their row; gives the last number in use.
    fn put_entries(
        &self,
        work: &mut PostgresTransaction<'_>,
        sheets: &[IndexedEntry],
        mut last: i64,
    ) -> Result<(Vec<i64>, i64)> {
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
            let paths = |sheet: &IndexedEntry| lines(sheet.files.iter().map(|file| between_slashes(file)));
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
            work.ask(PUT_ENTRIES, given)?;
        }
        Ok((ids, last))
    }

    /// Puts every passage in its place; gives their number and that of their words.
    fn put_passages(
        &self,
        work: &mut PostgresTransaction<'_>,
        sheets: &[IndexedEntry],
        ids: &[i64],
    ) -> Result<(i64, i64)> {
        let all: Vec<(i64, &IndexedPassage)> = placed(sheets, ids).collect();
        for some in all.chunks(PIECE) {
            let given = values![
                self.session,
                some.iter().map(|(place, _)| *place).collect::<Vec<i64>>(),
                some.iter().map(|(_, doc)| doc.passage.at as i64).collect::<Vec<i64>>(),
                some.iter().map(|(_, doc)| i64::from(doc.passage.bytes)).collect::<Vec<i64>>(),
                some.iter().map(|(_, doc)| i64::from(doc.words)).collect::<Vec<i64>>(),
                some.iter().map(|(_, doc)| doc.passage.in_output).collect::<Vec<bool>>(),
            ];
            work.ask(PUT_PASSAGES, given)?;
        }
        Ok((all.len() as i64, all.iter().map(|(_, doc)| i64::from(doc.words)).sum()))
    }

    /// Adds the places of each term to its last row, or begins another.
    fn put_posts(
        &self,
        work: &mut PostgresTransaction<'_>,
        sheets: &[IndexedEntry],
        ids: &[i64],
    ) -> Result<()> {
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
            work.ask(PUT_POSTS, given)?;
        }
        Ok(())
    }
}

/// Each passage with its place; one that cannot be numbered is left out.
fn placed<'a>(sheets: &'a [IndexedEntry], ids: &'a [i64]) -> impl Iterator<Item = (i64, &'a IndexedPassage)> {
    let place = |id: i64, doc: &IndexedPassage| id << PART_BITS | i64::from(doc.passage.part);
    sheets.iter().zip(ids).flat_map(move |(sheet, id)| {
        let numbered = sheet.docs.iter().filter(|doc| doc.passage.part >> PART_BITS == 0);
        numbered.map(move |doc| (place(*id, doc), doc))
    })
}

/// Names in one column, each between line breaks. What holds a line break is not a name.
fn lines(names: impl Iterator<Item = String>) -> String {
    let names: Vec<String> = names.filter(|name| !name.contains('\n')).map(|name| clean(&name)).collect();
    if names.is_empty() { String::new() } else { format!("\n{}\n", names.join("\n")) }
}
