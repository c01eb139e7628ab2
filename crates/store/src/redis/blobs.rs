//! Outputs in chunks, under their digest.
//!
//! What comes in is first laid aside, in memory while it is small and in a passing file when it is not: so its digest is
//! known before anything is sent, what is there already is not sent again, and a chunk whose answer was lost can be. The
//! digest is written last; until then there is no such output.

use super::scripts::{OUTPUTS, ScriptReply, read};
use super::{Inner, RedisStore, scripts};
use crate::error::IoContext;
use crate::files::{copy_blob, is_blob_id};
use crate::server_calls::{CHUNK, Chunks};
use crate::{BlobRef, BlobSweep, Blobs, Error, ReadSeek, Result};
use komado_core::SessionId;
use std::collections::HashMap;
use std::io::{Read, Seek};
use std::sync::Arc;
use tempfile::SpooledTempFile;

/// How much is laid aside in memory.
const SMALL: usize = 1 << 20;

fn chunks(size: u64) -> u64 {
    size.div_ceil(CHUNK)
}

impl Blobs for RedisStore {
    fn put_blob(&self, id: &SessionId, bytes: &mut dyn Read) -> Result<BlobRef> {
        let mut aside = SpooledTempFile::new(SMALL);
        let blob = copy_blob(bytes, &mut aside)?;
        if self.0.size_of(id, &blob.id)?.is_some() {
            return Ok(blob);
        }
        loop {
            self.0.send(id, &blob, &mut aside)?;
            let facts = format!("{} {} {}", blob.byte_size, blob.line_count, chunks(blob.byte_size));
            let args = (&blob.id, chunks(blob.byte_size), facts, self.0.ttl());
            let said = self.0.said(self.0.about(id, &scripts::FINISH, args).spread())?;
            // A sweep may have taken what had no name yet; then it is sent again.
            if said.word != "again" {
                return said.fine(id).map(|_| blob);
            }
        }
    }

    fn blob(&self, id: &SessionId, blob: &str) -> Result<Box<dyn ReadSeek>> {
        let name = if is_blob_id(blob) { blob } else { "" };
        let size = self.0.size_of(id, name)?.ok_or_else(|| Error::no_blob(id, blob))?;
        let (store, id, blob) = (Arc::clone(&self.0), id.clone(), blob.to_owned());
        Ok(Box::new(Chunks::new(size, move |n| {
            let said = store.output(&id, &format!("{blob}:{n}"))?;
            let found: Option<Vec<u8>> = said.rest.into_iter().next().map(read).transpose()?.flatten();
            found.ok_or_else(|| Error::no_blob(&id, &blob))
        })))
    }

    fn sweep(&self, id: &SessionId, keep: &dyn Fn(&str) -> bool) -> Result<BlobSweep> {
        let mut parts: HashMap<String, (bool, Vec<String>)> = HashMap::new();
        for value in self.0.run(id, &scripts::NAMES, (OUTPUTS, ""))?.rest {
            let name: String = read(value)?;
            let whole = name.split(':').next().unwrap_or_default().to_owned();
            let (is_named, fields) = parts.entry(whole.clone()).or_default();
            *is_named |= name == whole;
            fields.push(name);
        }
        let mut swept = BlobSweep::default();
        for (blob, (is_named, fields)) in parts {
            if is_named && keep(&blob) {
                continue;
            }
            if is_named {
                swept.blobs += 1;
                swept.bytes += self.0.size_of(id, &blob)?.unwrap_or_default();
                // What has no name is not there.
                self.0.run(id, &scripts::DROP, (OUTPUTS, &blob))?;
            }
            // Takes out the chunks of an output that has no name, and none of one that just got it.
            for some in fields.chunks(1000) {
                self.0.run(id, &scripts::UNNAMED, (&blob, some))?;
            }
        }
        Ok(swept)
    }
}

impl Inner {
    fn output(&self, id: &SessionId, field: &str) -> Result<ScriptReply> {
        self.run(id, &scripts::LOOK, (OUTPUTS, self.ttl(), field))
    }

    /// An output's size, when it is there.
    fn size_of(&self, id: &SessionId, blob: &str) -> Result<Option<u64>> {
        let facts = self.output(id, blob)?.text(0);
        Ok(facts.split(' ').next().and_then(|size| size.parse().ok()))
    }

    fn send(&self, id: &SessionId, blob: &BlobRef, from: &mut SpooledTempFile) -> Result<()> {
        let aside = std::env::temp_dir();
        from.rewind().tried("read what was laid aside in", &aside)?;
        for n in 0..chunks(blob.byte_size) {
            let mut chunk = Vec::new();
            from.by_ref().take(CHUNK).read_to_end(&mut chunk).tried("read what was laid aside in", &aside)?;
            self.run(id, &scripts::PUT, (OUTPUTS, self.ttl(), format!("{}:{n}", blob.id), chunk))?;
        }
        Ok(())
    }
}
