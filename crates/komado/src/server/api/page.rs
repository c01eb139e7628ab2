//! Cursors: where the next page begins, in a text that means something to us alone.

use super::problem::{Answer, Problem};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::Serialize;
use serde::de::DeserializeOwned;

/// Items of a page where nothing else is said.
pub(super) const USUAL: u32 = 100;
/// Items of a page at most.
pub(super) const MOST: u32 = 1000;

/// A cursor of the list `what`.
pub(super) fn write<T: Serialize>(what: &str, place: &T) -> Answer<String> {
    Ok(URL_SAFE_NO_PAD.encode(serde_json::to_vec(&(what, place))?))
}

/// Reads a cursor of the list `what`; one of another list is refused.
pub(super) fn read<T: DeserializeOwned>(what: &str, cursor: &str) -> Answer<T> {
    let wrong = || {
        Problem::bad(format!(
            "cursor {cursor:?} is none of this list; take `next` of a page of it, or leave it out"
        ))
    };
    let bytes = URL_SAFE_NO_PAD.decode(cursor).map_err(|_| wrong())?;
    let (of, place): (String, T) = serde_json::from_slice(&bytes).map_err(|_| wrong())?;
    if of == what { Ok(place) } else { Err(wrong()) }
}

/// How many items a page has.
pub(super) fn limit(asked: Option<u32>) -> Answer<usize> {
    match asked.unwrap_or(USUAL) {
        0 => Err(Problem::bad("limit is 0: that would show nothing; give 1 to 1000")),
        n if n > MOST => {
            Err(Problem::bad(format!("limit is {n}, and {MOST} is the most; page with the cursor")))
        }
        n => Ok(n as usize),
    }
}
