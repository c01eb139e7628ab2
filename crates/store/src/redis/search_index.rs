//! A session's index of words in Redis: one hash has all of it, and a sorted set the sheets by thread and number.

use super::scripts::{SHELF, read};
use super::{Inner, scripts};
use crate::Result;
use crate::search_index::keyed::{FieldTable, Fields};
use komado_core::SessionId;
use std::sync::Arc;

/// How many fields are asked for in one go.
const FIELDS: usize = 1000;

pub(super) struct RedisFields {
    pub(super) store: Arc<Inner>,
    pub(super) id: SessionId,
}

impl FieldTable for RedisFields {
    fn counts(&self) -> Result<(u64, u64)> {
        let said = self.store.run(&self.id, &scripts::LOOK, (SHELF, "", "version", "clearings"))?;
        Ok((said.number(0), said.number(1)))
    }

    fn fields(&self, names: &[String]) -> Result<Vec<Option<Vec<u8>>>> {
        let mut found = Vec::with_capacity(names.len());
        for some in names.chunks(FIELDS) {
            let values = self.store.run(&self.id, &scripts::LOOK, (SHELF, "", some))?.rest;
            found.extend(values.into_iter().map(read).collect::<Result<Vec<_>>>()?);
        }
        found.resize(names.len(), None);
        Ok(found)
    }

    fn sheets(&self, from: &str, to: &str, most: u32) -> Result<Vec<String>> {
        let command = if from < to { "ZRANGEBYLEX" } else { "ZREVRANGEBYLEX" };
        let args = (command, format!("({from}"), format!("({to}"), most);
        self.store.run(&self.id, &scripts::BESIDE, args)?.rest.into_iter().map(read).collect()
    }

    fn write(&self, written: u64, fields: Fields, sheets: Vec<String>) -> Result<bool> {
        let args = (written, self.store.nonce(), self.store.ttl(), fields.len(), fields, sheets);
        let said = self.store.said(self.store.about(&self.id, &scripts::FILL, args))?;
        if said.word == "again" { Ok(false) } else { said.fine(&self.id).map(|_| true) }
    }

    fn clear(&mut self) -> Result<u64> {
        Ok(self.store.write(&self.id, &scripts::CLEAR, self.store.ttl())?.number(0))
    }
}
