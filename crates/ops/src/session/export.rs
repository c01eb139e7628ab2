//! Export: a session as one stream.

use crate::address::AtSession;
use crate::stream::{self, Form, Piece, Sink, Streamed};
use crate::{Context, Effect, Interfaces, Outcome, Route};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

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
        stream::pieces(to, |mut out| Ok(context.engine.export(&id, &mut out, |_| {})?))
    }

    fn file_name(head: &Exported) -> Option<String> {
        Some(format!("{}.jsonl", head.session.replace(':', "_")))
    }
}
