//! A session as one stream of lines, and back.

use crate::address::AtSession;
use crate::stream::{self, StreamBytes, StreamForm, StreamSink};
use crate::{
    Interfaces, OpFault, OpResult, Operation, OperationContext, OperationLabel, OperationProgress, Route,
    Streamed,
};
use komado_core::SessionId;
use komado_core::address::ID_PATTERN;
use komado_core::session::State;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::io::{BufRead, Read};

/// Write a session as one stream of JSON lines, which `import` reads.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
pub struct Export {
    /// The session.
    #[serde(flatten)]
    pub at: AtSession,
}

/// A session that is exported.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
pub struct Exported {
    /// Its id.
    pub session: String,
}

impl Streamed for Export {
    const ABOUT: OperationLabel = OperationLabel::read("export", "Export a session");
    const INTERFACES: Interfaces =
        Interfaces::everywhere("export", Route::get("sessions", "/sessions/{session}/export"))
            .not_mcp("a whole session is more than a window holds; `log` and `recall` read it in parts");
    const FORM: StreamForm = StreamForm::Bytes("application/x-ndjson");
    type Head = Exported;
    type Item = StreamBytes;

    fn run(self, context: &OperationContext, to: &mut dyn StreamSink<Self>) -> OpResult {
        let id = context.find(&self.at)?.session;
        to.begin(Exported { session: id.to_string() })?;
        stream::pieces(to, |mut out| Ok(context.engine.export(&id, &mut out, |_| {})?))
    }

    fn file_name(head: &Exported) -> Option<String> {
        Some(format!("{}.jsonl", head.session.replace(':', "_")))
    }
}

/// Bytes of an export's first line.
const FIRST: u64 = 1 << 20;

/// Read a session that was exported. The export is the input of the call ([`OperationContext::reading`]).
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[schemars(description = "Read a session that was exported.")]
pub struct Import {
    /// Another id for the session.
    #[serde(rename = "as")]
    #[schemars(length(max = 128), regex(pattern = ID_PATTERN))]
    pub name: Option<String>,
}

/// A session that was read from its export.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
pub struct Imported {
    /// Its id.
    pub session: String,
    /// Where it is in its life.
    pub status: State,
}

impl Operation for Import {
    const ABOUT: OperationLabel = OperationLabel::add("import", "Import a session");
    const INTERFACES: Interfaces = Interfaces::everywhere(
        "import",
        Route { body: Some("application/x-ndjson"), ..Route::make("sessions", "/import") },
    )
    .not_mcp("a whole session is more than a window holds");
    type Output = Imported;

    fn run(self, context: &OperationContext) -> OpResult<Imported> {
        let mut from = context.input()?;
        let name = self.name.map(|name| context.free_name(&name)).transpose()?;
        let each = |lines| {
            // Only people watch; an import is not broken off by them.
            let _ = context.progress(OperationProgress::Importing { lines });
        };
        let id = match context.caller.sees_all {
            true => context.engine.import(&mut *from, name, each)?,
            false => {
                let (first, own) = opening(context, &mut *from)?;
                let name = name.map_or_else(|| context.free_name(&own), Ok)?;
                context.engine.import(&mut first.chain(from), Some(name), each)?
            }
        };
        let status = context.session(&id)?.status;
        Ok(Imported { session: id.to_string(), status })
    }

    fn location(imported: &Imported) -> Option<String> {
        Some(format!("/sessions/{}", imported.session))
    }
}

/// The first line of an export and the id that it names, if it is of a session of the caller's user.
fn opening(
    context: &OperationContext,
    from: &mut dyn BufRead,
) -> OpResult<(std::io::Cursor<Vec<u8>>, String)> {
    let mut line = Vec::new();
    from.take(FIRST).read_until(b'\n', &mut line)?;
    let wrong = || OpFault::input("this is not a komado export; give what `export` wrote, as it is");
    let first: Value = serde_json::from_slice(&line).map_err(|_| wrong())?;
    let session = first.get("session").ok_or_else(wrong)?;
    let id = SessionId::new(session.get("uuid").and_then(Value::as_str).ok_or_else(wrong)?)?;
    let user = session.get("user").and_then(Value::as_str);
    if user != context.caller.user.as_deref() {
        let whose = user.unwrap_or("no user");
        let why = format!("the export is of a session of {whose}, which this key does not see");
        return Err(OpFault::forbidden(why));
    }
    Ok((std::io::Cursor::new(line), id.to_string()))
}
