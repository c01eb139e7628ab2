//! What the responses API asks of its items: every call has its output, and every output its call.
//!
//! Read from the body itself: an item that our reader does not know still pairs by its `call_id`. Other items may stand
//! between the two.

use super::Bad;
use crate::scripted::words::Trouble;
use serde::Deserialize;
use serde_json::value::RawValue;

#[derive(Deserialize)]
struct Body<'a> {
    #[serde(borrow)]
    input: Option<&'a RawValue>,
    previous_response_id: Option<String>,
}

#[derive(Deserialize)]
struct Item {
    r#type: Option<String>,
    call_id: Option<String>,
}

pub(super) fn check(body: &str) -> Result<(), Bad> {
    let bad = |message: String| Err(Bad::Pairing(Trouble::bad(message).at("input")));
    let (items, remembers) = items(body)
        .map_err(|why| Bad::Other(Trouble::bad(format!("Invalid value for 'input': {why}")).at("input")))?;
    let mut open: Vec<(&str, &str)> = Vec::new();
    for item in &items {
        let (Some(kind), Some(id)) = (item.r#type.as_deref(), item.call_id.as_deref()) else { continue };
        if !kind.ends_with("_output") {
            open.push((kind, id));
            continue;
        }
        match open.iter().position(|(_, call)| *call == id) {
            Some(at) => drop(open.remove(at)),
            // The call may be one that the server remembers.
            None if remembers => {}
            None => {
                return bad(format!("No tool call found for {} with call_id {id}.", kind.replace('_', " ")));
            }
        }
    }
    match open.first() {
        Some((kind, id)) => bad(format!("No tool output found for {} {id}.", kind.replace('_', " "))),
        None => Ok(()),
    }
}

/// The items of the request, and whether the server is asked to remember others.
fn items(body: &str) -> Result<(Vec<Item>, bool), serde_json::Error> {
    let body: Body<'_> = serde_json::from_str(body)?;
    // A text is a message of the user, and pairs with nothing.
    let items = match body.input.map(RawValue::get) {
        Some(list) if list.starts_with('[') => serde_json::from_str(list)?,
        _ => Vec::new(),
    };
    Ok((items, body.previous_response_id.is_some()))
}
