//! How a store is doing: figures for whoever watches it.

use crate::Result;
use serde::Serialize;

/// Figures of a store. What a store cannot know cheaply it leaves out.
#[derive(Clone, PartialEq, Debug, Default, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Vitals {
    /// `file`, `memory`, `postgres` or `redis`.
    pub kind: &'static str,
    /// Where it is, without secrets.
    pub place: String,
    /// What becomes of an acknowledged entry, in words for people: `outlives …`, `is lost with …`.
    pub durability: String,
    /// True when an acknowledged entry may be lost with the store's process or machine.
    pub may_lose: bool,
    /// What its settings put at risk beyond what one expects of such a store, and which setting ends it.
    pub warnings: Vec<String>,
    /// Sessions it holds.
    pub sessions: Option<u64>,
    /// Keys, rows or files it holds them in.
    pub keys: Option<u64>,
    /// Bytes on its disk.
    pub disk_bytes: Option<u64>,
    /// Bytes in its memory.
    pub memory_bytes: Option<u64>,
    /// Connections that this process has to it.
    pub connections: Option<u64>,
    /// Sessions that ended with their time to live, as far as was noticed.
    pub expired: Option<u64>,
    /// Leases that this process holds.
    #[serde(skip)]
    pub leases: Option<u64>,
}

/// A store that tells how it is doing.
pub trait Pulse: Send + Sync {
    /// Asks the store itself; an error when it is away.
    fn vitals(&self) -> Result<Vitals>;
}
