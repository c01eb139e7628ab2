//! Export: a session as one stream.

use crate::address::AtSession;
use crate::stream::{Form, Piece, Sink, Streamed};
use crate::{Context, Effect, Interfaces, Outcome, Route};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::io::{self, Write};

/// Bytes handed on at a time.
const PIECE: usize = 64 << 10;

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
    const NAME: &'static str = "export";
    const TITLE: &'static str = "Export a session";
    const EFFECT: Effect = Effect::Read;
    const INTERFACES: Interfaces =
        Interfaces::everywhere("export", Route::get("sessions", "/sessions/{session}/export"))
            .not_mcp("a whole session is more than a window holds; `log` and `recall` read it in parts");
    const FORM: Form = Form::Bytes("application/x-ndjson");
    type Head = Exported;
    type Item = Piece;

    fn run(self, context: &Context, to: &mut dyn Sink<Self>) -> Outcome {
        let id = context.find(&self.at)?.session;
        to.begin(Exported { session: id.to_string() })?;
        let mut out = io::BufWriter::with_capacity(PIECE, Pieces { to, failed: None });
        let done = context.engine.export(&id, &mut out, |_| {});
        let flushed = done.map_err(Into::into).and_then(|()| Ok(out.flush()?));
        let (pieces, _) = out.into_parts();
        match pieces.failed {
            Some(fault) => Err(fault),
            None => flushed,
        }
    }

    fn file_name(head: &Exported) -> Option<String> {
        Some(format!("{}.jsonl", head.session.replace(':', "_")))
    }
}

/// Hands on what is written.
struct Pieces<'a> {
    to: &'a mut dyn Sink<Export>,
    failed: Option<crate::Fault>,
}

impl Write for Pieces<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if let Err(fault) = self.to.item(Piece(bytes.to_vec())) {
            self.failed.get_or_insert(fault);
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
