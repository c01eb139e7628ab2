//! Where a client's transcript may go on, and what was learned about models.

use super::link::values;
use super::{PostgresStore, clean, seq};
use crate::Result;
use crate::lesson::Lessons;
use crate::places::{MOST_SPOTS, Places, Spot};
use komado_core::{SessionId, ThreadId};
use tokio_postgres::Row;

/// Moments that are noted in one statement.
const MOST: usize = 4096;

const NOTE: &str = "INSERT INTO places (name, session, thread, seq) \
    SELECT n.name, s.number, n.thread, n.seq \
    FROM unnest($1::TEXT[], $2::TEXT[], $3::TEXT[], $4::BIGINT[]) WITH ORDINALITY AS n(name, uuid, thread, seq, n) \
    JOIN sessions s ON s.uuid = n.uuid ORDER BY n.n FOR KEY SHARE OF s ON CONFLICT DO NOTHING";

const SPOTS: &str = "SELECT p.name, s.uuid, p.thread, p.seq FROM places p JOIN sessions s ON s.number = p.session \
    WHERE p.name = $1 ORDER BY p.number DESC LIMIT $2";

impl Places for PostgresStore {
    fn note(&self, spots: &[Spot]) -> Result<()> {
        for some in spots.chunks(MOST) {
            let names: Vec<String> = some.iter().map(|spot| clean(&spot.name)).collect();
            let sessions: Vec<String> = some.iter().map(|spot| spot.session.to_string()).collect();
            let threads: Vec<String> = some.iter().map(|spot| spot.thread.to_string()).collect();
            let seqs: Vec<i64> = some.iter().map(|spot| i64::from(spot.seq)).collect();
            self.server().ask(NOTE, values![names, sessions, threads, seqs])?;
        }
        Ok(())
    }

    fn spots(&self, name: &str) -> Result<Vec<Spot>> {
        let rows = self.server().ask(SPOTS, values![clean(name), MOST_SPOTS as i64])?;
        let read = |row: &Row| {
            Some(Spot {
                name: row.get(0),
                session: SessionId::new(row.get::<_, String>(1)).ok()?,
                thread: ThreadId::new(row.get::<_, String>(2)).ok()?,
                seq: seq(row.get(3)),
            })
        };
        Ok(rows.iter().filter_map(read).collect())
    }
}

impl Lessons for PostgresStore {
    fn lesson(&self, about: &str) -> Result<Option<String>> {
        let rows = self.server().ask("SELECT lesson FROM lessons WHERE about = $1", values![clean(about)])?;
        Ok(rows.first().map(|row| row.get(0)))
    }

    fn put_lesson(&self, about: &str, old: Option<&str>, new: &str) -> Result<bool> {
        // Asked again after a lost answer, both find the new one there.
        let rows = match old {
            None => {
                let sql = "INSERT INTO lessons VALUES ($1, $2) ON CONFLICT (about) DO UPDATE \
                    SET lesson = excluded.lesson WHERE lessons.lesson = excluded.lesson RETURNING 1";
                self.server().ask(sql, values![clean(about), clean(new)])?
            }
            Some(old) => {
                let sql =
                    "UPDATE lessons SET lesson = $2 WHERE about = $1 AND lesson IN ($2, $3) RETURNING 1";
                self.server().ask(sql, values![clean(about), clean(new), old.to_owned()])?
            }
        };
        Ok(!rows.is_empty())
    }

    fn lessons(&self) -> Result<Vec<(String, String)>> {
        let rows = self.server().ask("SELECT about, lesson FROM lessons ORDER BY about", values![])?;
        Ok(rows.iter().map(|row| (row.get(0), row.get(1))).collect())
    }

    fn forget(&self, about: &str) -> Result<bool> {
        let sql = "DELETE FROM lessons WHERE about = $1 RETURNING 1";
        Ok(!self.server().once(sql, values![clean(about)])?.is_empty())
    }
}
