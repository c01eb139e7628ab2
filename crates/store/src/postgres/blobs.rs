//! Outputs: bytes in rows of 256 KiB, written and read a row at a time.
//!
//! The bytes are gathered first, in memory while they are few and in a passing file when they are many: their digest is
//! their name, and what is there under it already is not sent again.

use super::PostgresStore;
use super::server::{PostgresServer, values};
use crate::error::IoContext;
use crate::files::{copy_blob, is_blob_id};
use crate::server_calls::{CHUNK, Chunks};
use crate::{BlobRef, BlobSweep, Blobs, Error, ReadSeek, Result};
use komado_core::SessionId;
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;
use std::sync::Arc;

/// Blobs that are looked through at a time.
const PAGE: i64 = 1000;

const LOOK: &str = "SELECT s.number, b.byte_size FROM sessions s LEFT JOIN blobs b \
    ON b.session = s.number AND b.id = $2 WHERE s.uuid = $1";

const NAME: &str = "INSERT INTO blobs (session, id, byte_size, line_count) \
    SELECT number, $2, $3, $4 FROM sessions WHERE uuid = $1 \
    FOR KEY SHARE ON CONFLICT DO NOTHING RETURNING session";

const SWEEP: &str = "WITH gone AS ( \
        DELETE FROM blobs WHERE session = $1 AND id = ANY($2) RETURNING byte_size), \
    bytes AS (DELETE FROM blob_chunks WHERE session = $1 AND id = ANY($2)) \
    SELECT count(*), COALESCE(sum(byte_size), 0)::BIGINT FROM gone";

impl PostgresServer {
    /// The session's number, and the blob's size where it is there.
    fn blob_size(&self, id: &SessionId, blob: &str) -> Result<(i64, Option<i64>)> {
        let rows = self.ask(LOOK, values![id.to_string(), blob.to_owned()])?;
        let row = rows.first().ok_or_else(|| Error::NoSession(id.clone()))?;
        Ok((row.get(0), row.get(1)))
    }

    /// That a blob which was not ours to add is there: not where its session was removed, or it was swept, meanwhile.
    fn is_kept(&self, id: &SessionId, blob: &str) -> Result<()> {
        let gone = || Error::away(self.wire.place(), format!("output {blob} was swept at the same moment"));
        self.blob_size(id, blob)?.1.map(|_| ()).ok_or_else(gone)
    }

    /// Sends bytes under their name, all or none. When another sends the same, theirs are as good.
    fn send_blob(&self, id: &SessionId, blob: &BlobRef, bytes: &mut dyn Read) -> Result<()> {
        let mut work = self.begin()?;
        let (size, lines) = (blob.byte_size as i64, blob.line_count as i64);
        let rows = work.ask(NAME, values![id.to_string(), blob.id.clone(), size, lines])?;
        let Some(number) = rows.first().map(|row| row.get::<_, i64>(0)) else {
            return work.leave().and_then(|()| self.is_kept(id, &blob.id));
        };
        let sql = "INSERT INTO blob_chunks (session, id, number, bytes) VALUES ($1, $2, $3, $4)";
        for n in 0i64.. {
            let mut chunk = Vec::with_capacity(CHUNK.min(blob.byte_size) as usize);
            bytes.take(CHUNK).read_to_end(&mut chunk).tried("read", Path::new("a blob"))?;
            if chunk.is_empty() {
                break;
            }
            work.ask(sql, values![number, blob.id.clone(), n, chunk])?;
        }
        work.commit()
    }
}

impl Blobs for PostgresStore {
    fn put_blob(&self, id: &SessionId, bytes: &mut dyn Read) -> Result<BlobRef> {
        let mut gathered = tempfile::spooled_tempfile(CHUNK as usize);
        let blob = copy_blob(bytes, &mut gathered)?;
        if self.server().blob_size(id, &blob.id)?.1.is_none() {
            gathered.seek(SeekFrom::Start(0)).tried("read", Path::new("a blob"))?;
            self.server().send_blob(id, &blob, &mut gathered)?;
        }
        Ok(blob)
    }

    fn blob(&self, id: &SessionId, blob: &str) -> Result<Box<dyn ReadSeek>> {
        // What is not a name at all is not sent anywhere.
        let (session, size) = self.server().blob_size(id, if is_blob_id(blob) { blob } else { "" })?;
        let size = size.ok_or_else(|| Error::no_blob(id, blob))?;
        let (server, id, blob) = (Arc::clone(self.server()), id.clone(), blob.to_owned());
        Ok(Box::new(Chunks::new(size as u64, move |n| {
            let sql = "SELECT bytes FROM blob_chunks WHERE session = $1 AND id = $2 AND number = $3";
            let rows = server.ask(sql, values![session, blob.clone(), n as i64])?;
            rows.first().map(|row| row.get(0)).ok_or_else(|| Error::no_blob(&id, &blob))
        })))
    }

    fn sweep(&self, id: &SessionId, keep: &dyn Fn(&str) -> bool) -> Result<BlobSweep> {
        let (number, _) = self.server().blob_size(id, "")?;
        let (mut swept, mut after) = (BlobSweep::default(), String::new());
        loop {
            let sql = "SELECT id FROM blobs WHERE session = $1 AND id > $2 ORDER BY id LIMIT $3";
            let rows = self.server().ask(sql, values![number, after.clone(), PAGE])?;
            let page: Vec<String> = rows.iter().map(|row| row.get(0)).collect();
            let Some(last) = page.last() else { return Ok(swept) };
            after.clone_from(last);
            let loose: Vec<String> = page.into_iter().filter(|blob| !keep(blob)).collect();
            if !loose.is_empty() {
                let rows = self.server().once(SWEEP, values![number, loose])?;
                let count = |column: usize| rows.first().map_or(0, |row| row.get::<_, i64>(column)) as u64;
                swept.blobs += count(0);
                swept.bytes += count(1);
            }
        }
    }
}
