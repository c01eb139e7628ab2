//! An append, also where the answer to it is lost.
//!
//! The statement compares and adds, so sending it again can never add anything twice: when it was done, the thread has
//! moved on, and whether by us is seen from the lines themselves. So after a lost connection it is sent again, until the
//! store's patience ends; and an append that was given up is settled by the next one with the same lines.

use super::lease::Ticket;
use super::link::{Values, pause, values};
use super::server::Server;
use super::{pages, seq};
use crate::files::head_bytes;
use crate::{Error, Result, Row};
use komado_core::Seq;
use komado_core::thread::Header;
use std::time::{Duration, Instant};

/// Adds rows after entry $4 under token $3, or none. Gives how many were added, whether the token is good, and the last
/// entry that was there before.
const APPEND: &str = "WITH lease AS ( \
        SELECT session FROM leases WHERE session = $1 AND token = $3 FOR SHARE), \
    grown AS ( \
        UPDATE threads SET last = $4 + cardinality($5::SMALLINT[]) \
        WHERE session = (SELECT session FROM lease) AND thread = $2 AND last = $4 RETURNING session), \
    added AS ( \
        INSERT INTO entries (session, thread, seq, kind, size, head, line) \
        SELECT grown.session, $2, $4 + n.number, n.kind, octet_length(n.line), n.head, n.line \
        FROM grown, unnest($5::SMALLINT[], $6::BYTEA[], $7::BYTEA[]) WITH ORDINALITY AS n(kind, head, line, number) \
        RETURNING 1) \
    SELECT (SELECT count(*) FROM added), EXISTS (SELECT 1 FROM lease), \
        (SELECT last FROM threads WHERE session = $1 AND thread = $2)";

/// What goes to the server in one statement.
const MOST_ROWS: usize = 4096;
const MOST_BYTES: usize = 8 << 20;

/// What an append came to.
pub(super) enum Outcome {
    /// Its lines are there.
    There,
    /// The thread is somewhere else.
    Moved(Seq),
}

/// An append to a thread.
pub(super) struct Append<'a> {
    pub(super) server: &'a Server,
    pub(super) ticket: &'a Ticket,
    pub(super) header: &'a Header,
    pub(super) after: Seq,
}

/// What one try came to.
enum Tried {
    Added,
    NotOurs,
    At(Seq),
}

impl Append<'_> {
    /// Appends `rows`; `is_unsure` when an earlier append may have left its lines there.
    pub(super) fn run(&self, rows: &[Row], mut is_unsure: bool) -> Result<Outcome> {
        let until = Instant::now() + self.server.how.patience;
        for tries in 0.. {
            let left = until.saturating_duration_since(Instant::now());
            let tried = match batches(rows).len() {
                1 => self.try_at_once(rows, left),
                _ => self.try_in_steps(rows),
            };
            match tried {
                Ok(Tried::Added) => return Ok(Outcome::There),
                Ok(tried) => match self.settled(tried, rows, is_unsure) {
                    Err(error) if error.is_away() && Instant::now() < until => is_unsure = true,
                    settled => return settled,
                },
                Err(error) if !error.is_away() || Instant::now() + pause(tries) >= until => {
                    return Err(error);
                }
                Err(_) => is_unsure = true,
            }
            std::thread::sleep(pause(tries));
        }
        Err(Error::Poisoned)
    }

    /// What it means that nothing was added.
    fn settled(&self, tried: Tried, rows: &[Row], is_unsure: bool) -> Result<Outcome> {
        if is_unsure && self.has(rows)? {
            return Ok(Outcome::There);
        }
        match tried {
            Tried::At(found) if found == self.after => {
                // An append of our own that was given up was done between the look and the locks.
                let place = self.server.wire.place();
                Err(Error::away(place, "another append was under way".to_owned()))
            }
            Tried::At(found) => Ok(Outcome::Moved(found)),
            Tried::NotOurs | Tried::Added => Err(Error::TakenOver(self.header.session.clone())),
        }
    }

    fn try_at_once(&self, rows: &[Row], left: Duration) -> Result<Tried> {
        let answer = self.server.once_for(left, APPEND, self.values(self.after, rows))?;
        Ok(tried(&answer, rows.len()))
    }

    /// Many rows, or long ones: several statements, one commit.
    fn try_in_steps(&self, rows: &[Row]) -> Result<Tried> {
        let mut work = self.server.begin()?;
        let mut after = self.after;
        for batch in batches(rows) {
            let answer = work.ask(APPEND, self.values(after, batch))?;
            match tried(&answer, batch.len()) {
                Tried::Added => after += batch.len() as Seq,
                other => return work.leave().map(|()| other),
            }
        }
        work.commit().map(|()| Tried::Added)
    }

    fn values(&self, after: Seq, rows: &[Row]) -> Values {
        let kinds: Vec<i16> = rows.iter().map(|row| row.head.kind as i16).collect();
        let heads: Vec<Vec<u8>> = rows.iter().map(|row| head_bytes(&row.head).to_vec()).collect();
        let lines: Vec<Vec<u8>> = rows.iter().map(|row| row.line.clone()).collect();
        let thread = self.header.thread.to_string();
        values![self.ticket.number, thread, self.ticket.token, i64::from(after), kinds, heads, lines]
    }

    /// True when exactly these lines stand after entry `after`.
    fn has(&self, rows: &[Row]) -> Result<bool> {
        let mut at = 0;
        while at < rows.len() {
            let from = i64::from(self.after) + 1 + at as i64;
            let thread = self.header.thread.to_string();
            let found = self.server.ask(pages::AHEAD, values![self.ticket.number, thread, from, 256i64])?;
            let same = found.iter().zip(&rows[at..]).all(|(found, row)| found.get::<_, &[u8]>(1) == row.line);
            if found.is_empty() || !same {
                return Ok(false);
            }
            at += found.len();
        }
        Ok(true)
    }
}

fn tried(answer: &[tokio_postgres::Row], rows: usize) -> Tried {
    let Some(row) = answer.first() else { return Tried::NotOurs };
    let (added, is_ours, last): (i64, bool, Option<i64>) = (row.get(0), row.get(1), row.get(2));
    match last {
        _ if added == rows as i64 => Tried::Added,
        Some(last) if is_ours => Tried::At(seq(last)),
        _ => Tried::NotOurs,
    }
}

/// Rows in as few pieces as the bounds allow.
fn batches(rows: &[Row]) -> Vec<&[Row]> {
    let (mut pieces, mut begin, mut bytes) = (Vec::new(), 0, 0);
    for (i, row) in rows.iter().enumerate() {
        if i > begin && (i - begin >= MOST_ROWS || bytes + row.line.len() > MOST_BYTES) {
            pieces.push(&rows[begin..i]);
            (begin, bytes) = (i, 0);
        }
        bytes += row.line.len();
    }
    pieces.push(&rows[begin..]);
    pieces
}
