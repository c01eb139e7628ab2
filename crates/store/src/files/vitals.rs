//! How a folder of sessions is doing.
//!
//! Figures that cost one look each. Bytes on disk are left out: only a walk through every folder would tell.

use super::FileStore;
use crate::Result;
use crate::vitals::{Pulse, Vitals};

impl Pulse for FileStore {
    fn vitals(&self) -> Result<Vitals> {
        let sessions = match self.base().path().exists() {
            true => self.with_tasks(|tasks| tasks.count())?,
            false => 0,
        };
        Ok(Vitals {
            kind: "file",
            place: self.base().path().display().to_string(),
            durability: "is synced to this disk: it outlives the process and a power cut".into(),
            may_lose: false,
            sessions: Some(sessions),
            leases: Some(self.opener.leases.held()),
            ..Vitals::default()
        })
    }
}
