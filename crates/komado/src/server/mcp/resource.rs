//! Sessions as resources: what there is, what the model sees, and the journal.
//!
//! `komado://sessions`, `komado://session/ID`, `komado://session/ID/journal` and `komado://session/ID/thread/T`. A journal
//! may be larger than a client wants to have at once: its newest entries are given, and `?from=SEQ` gives others.

use super::run;
use crate::server::in_header;
use komado_core::session::Session;
use komado_core::{Seq, SessionId};
use komado_ops::address::Target;
use komado_ops::session::{SessionRow, newest};
use komado_ops::{FaultKind, OpFault, OpResult, OperationContext};
use komado_store::{OpenMode, SessionQuery};
use percent_encoding::percent_decode_str;
use rmcp::model::{Resource, ResourceContents, ResourceTemplate};
use serde_json::json;

/// Sessions on one page of the list.
const PAGE: usize = 50;
/// Sessions that `komado://sessions` gives.
const NEWEST: usize = 200;
/// Bytes of a journal in one answer; one entry is given, however long it is.
const MOST: usize = 1 << 20;

const SESSIONS: &str = "komado://sessions";
const SESSION: &str = "komado://session/";
const JSON: &str = "application/json";
const LINES: &str = "application/jsonl";
const TEXT: &str = "text/plain";

/// The place of a session in the order they were made.
type Place = (String, SessionId);

fn place(session: &Session) -> OpResult<Place> {
    Ok((session.meta.created_at.clone(), SessionId::new(session.meta.uuid.as_str())?))
}

/// A page of the list, and where the next one begins.
pub(super) fn list(
    context: &OperationContext,
    cursor: Option<&str>,
) -> OpResult<(Vec<Resource>, Option<String>)> {
    let after = cursor.map(read_cursor).transpose()?;
    let mut all = Vec::new();
    if after.is_none() {
        let about = "The newest sessions, with state and counters";
        all.push(Resource::new(SESSIONS, "sessions").with_description(about).with_mime_type(JSON));
    }
    let page = SessionQuery { after, ..SessionQuery::default() };
    let mut page = context.visible_sessions(page, PAGE + 1, |_| true)?;
    let more = page.len() > PAGE;
    page.truncate(PAGE);
    let next = page.last().filter(|_| more).map(place).transpose()?.map(|place| write_cursor(&place));
    all.extend(page.iter().map(resource));
    Ok((all, next))
}

fn resource(session: &Session) -> Resource {
    let meta = &session.meta;
    let model = meta.config.model.as_deref().unwrap_or("no model");
    let about = format!("{}, made at {}, {model}", session.status.name(), meta.created_at);
    Resource::new(format!("{SESSION}{}", in_header(&meta.uuid)), &meta.uuid)
        .with_description(about)
        .with_mime_type(TEXT)
}

fn write_cursor((at, id): &Place) -> String {
    format!("{at}|{id}")
}

fn read_cursor(text: &str) -> OpResult<Place> {
    let parts = text.split_once('|');
    let place = parts.and_then(|(at, id)| Some((at.to_owned(), SessionId::new(id).ok()?)));
    place.ok_or_else(|| OpFault::input(format!("unknown cursor {text:?}; start without one")))
}

/// The forms of addresses.
pub(super) fn templates() -> Vec<ResourceTemplate> {
    let one = |uri: &str, name: &str, about: &str, kind: &str| {
        ResourceTemplate::new(format!("{SESSION}{uri}"), name).with_description(about).with_mime_type(kind)
    };
    vec![
        one("{id}", "view", "What the model sees in a session", TEXT),
        one("{id}/thread/{thread}", "thread", "What the model sees in a thread of a session", TEXT),
        one(
            "{id}/journal{?from}",
            "journal",
            "Entries of a session's journal, the newest or from one on",
            LINES,
        ),
    ]
}

/// What a resource says.
pub(super) fn read(context: &OperationContext, uri: &str) -> OpResult<ResourceContents> {
    if uri == SESSIONS {
        let newest = newest(context, SessionQuery::default(), NEWEST, |_| true)?;
        let rows = newest.into_iter().map(|row| SessionRow::told(context, row));
        let rows = rows.collect::<OpResult<Vec<SessionRow>>>()?;
        return Ok(ResourceContents::text(json!(rows).to_string(), uri).with_mime_type(JSON));
    }
    let (path, query) = uri.split_once('?').unwrap_or((uri, ""));
    let decoded = |part| percent_decode_str(part).decode_utf8_lossy();
    let parts: Vec<_> = path.strip_prefix(SESSION).unwrap_or_default().split('/').map(decoded).collect();
    let parts: Vec<&str> = parts.iter().map(AsRef::as_ref).collect();
    match (&parts[..], query) {
        ([""], _) => Err(none(uri)),
        ([id], "") => view(context, uri, id, None),
        ([id, "thread", thread], "") => view(context, uri, id, Some(thread)),
        ([id, "journal"], query) => journal(context, uri, id, from(query)?),
        _ => Err(none(uri)),
    }
}

fn none(uri: &str) -> OpFault {
    let forms = format!("{SESSION}ID, {SESSION}ID/journal or {SESSION}ID/thread/T");
    OpFault::new(
        FaultKind::NotFound,
        format!("there is no resource {uri}: one is {forms}; {SESSIONS} lists the sessions"),
    )
}

fn view(context: &OperationContext, uri: &str, id: &str, thread: Option<&str>) -> OpResult<ResourceContents> {
    let given = json!({ "session": id, "thread": thread, "format": "lines", "full": true });
    let text = run(context, "show", given.as_object().cloned().unwrap_or_default())?.text;
    Ok(ResourceContents::text(text, uri).with_mime_type(TEXT))
}

/// `from=SEQ`, or nothing.
fn from(query: &str) -> OpResult<Option<Seq>> {
    let wrong = || OpFault::input(format!("unknown query {query:?}; read a journal with ?from=SEQ"));
    match query.strip_prefix("from=") {
        None if query.is_empty() => Ok(None),
        seq => seq.and_then(|seq| seq.parse().ok()).filter(|seq| *seq > 0).map(Some).ok_or_else(wrong),
    }
}

fn journal(context: &OperationContext, uri: &str, id: &str, from: Option<Seq>) -> OpResult<ResourceContents> {
    let found = context.find(Target { session: Some(id.to_owned()), ..Target::default() })?;
    let thread = context.engine.open(&found.session, &found.thread, OpenMode::Read)?;
    let line = |seq: Seq| thread.source().line(seq).map_err(OpFault::from);
    let (mut lines, mut bytes) = (Vec::new(), 0);
    let mut take = |seq: Seq| -> OpResult<bool> {
        let line = line(seq)?;
        bytes += line.len();
        let fits = lines.is_empty() || bytes <= MOST;
        lines.extend(fits.then(|| String::from_utf8_lossy(&line).into_owned()));
        Ok(fits)
    };
    let order: Box<dyn Iterator<Item = Seq>> = match from {
        Some(from) => Box::new(from..=thread.last()),
        None => Box::new((1..=thread.last()).rev()),
    };
    for seq in order {
        if !take(seq)? {
            break;
        }
    }
    if from.is_none() {
        lines.reverse();
    }
    Ok(ResourceContents::text(lines.concat(), uri).with_mime_type(LINES))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_leads_back_to_its_place_and_a_foreign_one_is_refused() {
        let place = ("2026-01-01T00:00:00.000000Z".to_owned(), SessionId::new("s-1").unwrap());
        assert_eq!(read_cursor(&write_cursor(&place)).unwrap(), place);
        for foreign in ["", "x", "a|../b", "|"] {
            assert!(read_cursor(foreign).is_err(), "{foreign}");
        }
    }

    #[test]
    fn a_journal_is_read_from_an_entry_on() {
        assert_eq!(from("").unwrap(), None);
        assert_eq!(from("from=7").unwrap(), Some(7));
        for wrong in ["from=0", "from=x", "to=3", "from="] {
            assert!(from(wrong).is_err(), "{wrong}");
        }
    }
}
