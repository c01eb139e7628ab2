//! Pages of a long list: a bounded number of items, and a cursor that leads on.

use crate::{OpFault, OpResult};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;

/// The most items of a page.
pub const MOST: u32 = 1000;
/// Items of a page, unless a request says otherwise.
pub const USUAL: u32 = 100;

/// A page of a list.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
pub struct ResultPage<T> {
    /// What is on it.
    pub items: Vec<T>,
    /// The cursor of the next page; null at the end.
    pub next: Option<String>,
}

impl<T> ResultPage<T> {
    /// A list that is whole.
    pub fn whole(items: Vec<T>) -> Self {
        Self { items, next: None }
    }
}

/// A cursor of the list `what`: a text that means something to us alone.
pub fn cursor<T: Serialize>(what: &str, place: &T) -> OpResult<String> {
    Ok(URL_SAFE_NO_PAD.encode(serde_json::to_vec(&(what, place))?))
}

/// Reads a cursor of the list `what`; one of another list is refused, and an empty one is none.
pub fn after<T: DeserializeOwned>(what: &str, cursor: Option<&str>) -> OpResult<Option<T>> {
    let Some(cursor) = cursor.filter(|cursor| !cursor.is_empty()) else { return Ok(None) };
    let wrong = || {
        OpFault::malformed(format!(
            "cursor {cursor:?} is none of this list; take what a page of it gave as `next`, or an item as `cursor`, or leave it out"
        ))
    };
    let bytes = URL_SAFE_NO_PAD.decode(cursor).map_err(|_| wrong())?;
    let (of, place): (String, T) = serde_json::from_slice(&bytes).map_err(|_| wrong())?;
    if of == what { Ok(Some(place)) } else { Err(wrong()) }
}
