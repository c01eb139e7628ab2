//! Names by which things are found again, and names of what is to be made.
//!
//! What a client calls its session, and what a provider calls its answer, is kept as a digest together with who said it: so
//! no one comes upon another's session by its name, and no name of a client stands in a table.

use super::{Caller, How};
use crate::engine::Engine;
use crate::error::{Error, Result};
use komado_core::{SessionId, ThreadId};
use komado_store::{Error as StoreError, Mode};

/// What requests beside a conversation are called.
const SIDE: &str = "side";

/// The name by which a client's session is found again: `MetaConfig::alias` of a new one, and its spot at entry 0.
pub fn alias(caller: &Caller) -> Option<String> {
    caller.named.as_ref().map(|named| digest(&["session", &caller.salt, named]))
}

/// The name by which a reply is found again when a client only gives the provider's id of it: `Reply::id`, and the spot of the
/// reply's entry.
pub fn reply_name(caller: &Caller, id: &str) -> String {
    digest(&["reply", &caller.salt, id])
}

fn digest(words: &[&str]) -> String {
    let mut hasher = blake3::Hasher::new();
    for word in words {
        hasher.update(&(word.len() as u64).to_le_bytes()).update(word.as_bytes());
    }
    hasher.finalize().to_hex().chars().take(32).collect()
}

/// The name of the `n`-th request beside.
pub(super) fn side(n: usize) -> Result<ThreadId> {
    Ok(ThreadId::new(format!("{SIDE}_{n}"))?)
}

/// True for the thread of a request beside.
pub(super) fn is_side(thread: &ThreadId) -> bool {
    thread.as_str().strip_prefix(SIDE).is_some_and(|rest| rest.starts_with('_'))
}

/// A free name for a thread to be made, the next of its row; `None` where none is to be made.
pub(super) fn fork(engine: &Engine, session: &SessionId, how: How) -> Result<Option<ThreadId>> {
    let row = match how {
        How::Forks => "fork",
        How::Beside => SIDE,
        How::New | How::Extends | How::Again | How::Rewinds => return Ok(None),
    };
    let nth = |n: usize| ThreadId::new(format!("{row}_{n}"));
    let is_free = |n: usize| match engine.store().open(session, &nth(n)?, Mode::Read) {
        Err(StoreError::NoThread(..)) => Ok(true),
        Err(other) => Err(Error::from(other)),
        Ok(_) => Ok(false),
    };
    // A row has no gaps: a few looks find its end, however long it is. Were there one, a name in it would be as good.
    let (mut taken, mut free) = (0, 1);
    while !is_free(free)? {
        (taken, free) = (free, free * 2);
    }
    while free - taken > 1 {
        let between = taken + (free - taken) / 2;
        *(if is_free(between)? { &mut free } else { &mut taken }) = between;
    }
    Ok(Some(nth(free)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_name_given_by_two_is_two_names() {
        let by = |salt: &str, named: &str| {
            alias(&Caller { salt: salt.into(), named: Some(named.into()), ..Caller::default() }).unwrap()
        };
        assert_eq!(by("ann", "session-id: 窓"), by("ann", "session-id: 窓"));
        assert_ne!(by("ann", "session-id: 窓"), by("bob", "session-id: 窓"));
        assert_ne!(by("ann", "x"), by("an", "nx"));
        assert_eq!(by("ann", "x").len(), 32);
        let caller = Caller { salt: "ann".into(), ..Caller::default() };
        assert_eq!(alias(&caller), None);
        assert_ne!(reply_name(&caller, "x"), by("ann", "x"));
    }
}
