//! Where a client's transcript may go on: a running digest leads to the moments at which it stood.
//!
//! An index, like the other tables: every mark stands in a journal, and the table is made again from them. It may be
//! behind, or name what is no more; whoever looks something up checks it against the journal.

use crate::Result;
use komado_core::journal::Entry;
use komado_core::{Seq, SessionId, ThreadId};
use std::collections::BTreeMap;

/// A moment that a transcript came to.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Spot {
    /// The name it is found by: a running digest, or the digest of a name that a client gave its session.
    pub name: String,
    /// The session.
    pub session: SessionId,
    /// The thread.
    pub thread: ThreadId,
    /// The entry with the mark or the reply; 0 for a session's own name.
    pub seq: Seq,
}

/// Most moments that are given for one name. A batch may begin with the same words any number of times; what is asked for
/// is among the newest.
pub const MOST_SPOTS: usize = 256;

/// The table of moments.
pub trait Places: Send + Sync {
    /// Notes moments; one that is there already is there once.
    fn note(&self, spots: &[Spot]) -> Result<()>;

    /// The moments called `name`, the newest first; [`MOST_SPOTS`] at the most.
    fn spots(&self, name: &str) -> Result<Vec<Spot>>;
}

/// The name by which an entry is found: the digest of a client's request, or the name of a reply. A request that only the
/// gateway knows of has none, nor has one whose elements are not the whole transcript.
pub fn spot_of(entry: &Entry) -> Option<&str> {
    let name = match entry {
        Entry::Sent(sent) => sent.mark.as_ref().filter(|mark| !mark.inner).map(|mark| &mark.digest),
        Entry::Message(_, Some(reply)) => reply.id.as_ref(),
        _ => None,
    };
    name.map(String::as_str).filter(|name| !name.is_empty())
}

/// The table in memory.
#[derive(Clone, Debug, Default)]
pub(crate) struct Signposts(BTreeMap<String, Vec<Spot>>);

impl Signposts {
    pub(crate) fn note(&mut self, spots: &[Spot]) {
        for spot in spots {
            let known = self.0.entry(spot.name.clone()).or_default();
            if !known.contains(spot) {
                known.push(spot.clone());
            }
        }
    }

    pub(crate) fn spots(&self, name: &str) -> Vec<Spot> {
        self.0
            .get(name)
            .map(|spots| spots.iter().rev().take(MOST_SPOTS).cloned().collect())
            .unwrap_or_default()
    }

    pub(crate) fn forget(&mut self, session: &SessionId) {
        for spots in self.0.values_mut() {
            spots.retain(|spot| spot.session != *session);
        }
    }
}
