//! Import: a session from its export.
//!
//! The export is a stream of any length, so this is a function and no row of the list: the command line reads it from a file,
//! HTTP from a body.

use crate::{Context, Exit, Fault, Outcome};
use komado_core::SessionId;
use komado_core::session::State;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;
use std::io::{BufRead, Read, Seek, SeekFrom};

/// Bytes of an export's first line.
const FIRST: u64 = 1 << 20;

/// A session that was read from its export.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
pub struct Imported {
    /// Its id.
    pub session: String,
    /// Where it is in its life.
    pub status: State,
}

/// Reads an export; `name` gives the session another id. `each` is told the lines read.
pub fn import(
    context: &Context,
    from: &mut dyn BufRead,
    name: Option<SessionId>,
    each: impl FnMut(u64),
) -> Outcome<Imported> {
    let id = context.engine.import(from, name, each)?;
    let status = context.session(&id)?.status;
    Ok(Imported { session: id.to_string(), status })
}

/// The same for a caller who may not see all: whose the session is, and under which name it comes, is checked first.
pub fn import_checked(
    context: &Context,
    from: &mut (impl BufRead + Seek),
    name: Option<&str>,
) -> Outcome<Imported> {
    let (id, user) = opening(from)?;
    let id = context.free_name(name.unwrap_or(&id))?;
    if !context.caller.sees_all && user != context.caller.user {
        let whose = user.unwrap_or_else(|| "no user".to_owned());
        let why = format!("the export is of a session of {whose}, which this key does not see");
        return Err(Fault::new(Exit::Forbidden, why));
    }
    from.seek(SeekFrom::Start(0))?;
    import(context, from, Some(id), |_| {})
}

/// The id and the user that an export names in its first line.
fn opening(from: &mut impl BufRead) -> Outcome<(String, Option<String>)> {
    let mut line = Vec::new();
    from.take(FIRST).read_until(b'\n', &mut line)?;
    let wrong = || Fault::input("the body is not a komado export; send what /export gave, as it is");
    let first: Value = serde_json::from_slice(&line).map_err(|_| wrong())?;
    let session = first.get("session").ok_or_else(wrong)?;
    let id = session.get("uuid").and_then(Value::as_str).ok_or_else(wrong)?;
    let user = session.get("user").and_then(Value::as_str).map(str::to_owned);
    SessionId::new(id)?;
    Ok((id.to_owned(), user))
}
