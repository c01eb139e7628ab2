//! The threads of a session.

use super::link::values;
use super::seq;
use super::server::Server;
use crate::{Error, Result, by_age};
use komado_core::SessionId;
use komado_core::thread::Header;
use std::path::PathBuf;

/// Threads of one page.
const PAGE: i64 = 1000;

const LIST: &str = "SELECT t.thread, t.header FROM sessions s LEFT JOIN threads t \
    ON t.session = s.number AND t.thread > $2 WHERE s.uuid = $1 ORDER BY t.thread LIMIT $3";

/// Adds a thread where those it names are there, and the moment it goes on from has come. Gives what was found of them.
const SPAWN: &str = "WITH s AS (SELECT number FROM sessions WHERE uuid = $1 FOR SHARE), \
    base AS (SELECT last FROM threads WHERE session = (SELECT number FROM s) AND thread = $4), \
    parent AS (SELECT 1 FROM threads WHERE session = (SELECT number FROM s) AND thread = $6), \
    made AS ( \
        INSERT INTO threads (session, thread, header, base_thread, base_seq, last) \
        SELECT number, $2, $3, $4, $5, $5 FROM s \
        WHERE ($4::TEXT IS NULL OR EXISTS (SELECT 1 FROM base WHERE last >= $5)) \
            AND ($6::TEXT IS NULL OR EXISTS (SELECT 1 FROM parent)) \
        ON CONFLICT DO NOTHING RETURNING 1) \
    SELECT EXISTS (SELECT 1 FROM made), (SELECT last FROM base), EXISTS (SELECT 1 FROM parent), \
        EXISTS (SELECT 1 FROM threads WHERE session = s.number AND thread = $2) FROM s";

impl Server {
    pub(super) fn threads(&self, id: &SessionId) -> Result<Vec<Header>> {
        let (mut headers, mut after) = (Vec::new(), String::new());
        loop {
            let rows = self.ask(LIST, values![id.to_string(), after, PAGE])?;
            if rows.is_empty() {
                return Err(Error::NoSession(id.clone()));
            }
            let mut last = None;
            for row in &rows {
                let (Some(thread), Some(header)) = (row.get::<_, Option<String>>(0), row.get(1)) else {
                    break;
                };
                headers.push(read_header(&format!("{id}/{thread}"), header)?);
                last = Some(thread);
            }
            match last.filter(|_| rows.len() as i64 == PAGE) {
                Some(thread) => after = thread,
                None => return Ok(by_age(headers)),
            }
        }
    }

    pub(super) fn spawn(&self, header: &Header) -> Result<()> {
        let (id, thread) = (&header.session, &header.thread);
        let base = header.base.as_ref();
        let values = values![
            id.to_string(),
            thread.to_string(),
            header.encode(),
            base.map(|moment| moment.thread.to_string()),
            i64::from(header.base_seq()),
            header.parent.as_ref().map(|moment| moment.thread.to_string()),
        ];
        let rows = self.once(SPAWN, values)?;
        let row = rows.first().ok_or_else(|| Error::NoSession(id.clone()))?;
        let (is_made, last, has_parent, is_known): (bool, Option<i64>, bool, bool) =
            (row.get(0), row.get(1), row.get(2), row.get(3));
        if is_made {
            self.teller.ring(id, thread, header.base_seq());
            return Ok(());
        }
        if is_known {
            return Err(Error::ThreadExists(id.clone(), thread.clone()));
        }
        match (base, last, &header.parent) {
            (Some(moment), None, _) => Err(Error::NoThread(id.clone(), moment.thread.clone())),
            (_, _, Some(moment)) if !has_parent => Err(Error::NoThread(id.clone(), moment.thread.clone())),
            (Some(moment), Some(last), _) if seq(last) < moment.seq => {
                Err(Error::no_entry(id, &moment.thread, moment.seq))
            }
            // Made by another at the same moment.
            _ => Err(Error::ThreadExists(id.clone(), thread.clone())),
        }
    }
}

/// Reads a thread's first line.
pub(super) fn read_header(place: &str, line: &[u8]) -> Result<Header> {
    let text = std::str::from_utf8(line).map_err(|e| Error::damaged(place, e))?;
    Header::decode(text).map_err(|source| Error::Header { path: PathBuf::from(place), source })
}
