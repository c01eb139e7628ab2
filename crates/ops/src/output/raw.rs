//! All bytes of an output, as they are.

use super::find;
use crate::address::AtThread;
use crate::stream::{self, Form, Piece, Sink, Streamed};
use crate::{Context, Effect, Interfaces, Outcome, Route};
use schemars::JsonSchema;
use serde::Deserialize;
use std::io;

/// Give the bytes of an output, all of them.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
pub struct RawOutput {
    /// The thread.
    #[serde(flatten)]
    pub at: AtThread,
    /// The output's id, a beginning of it, or @ and the number of an entry.
    #[schemars(regex(pattern = r"^(@[0-9]{1,8}|[0-9a-f]{1,64})$"), example = &"@1")]
    pub ref_id: String,
}

impl Streamed for RawOutput {
    const NAME: &'static str = "output_raw";
    const TITLE: &'static str = "The bytes of a long output";
    const EFFECT: Effect = Effect::Read;
    const INTERFACES: Interfaces = Interfaces::everywhere(
        "output --raw",
        Route::get("outputs", "/sessions/{session}/threads/{thread}/outputs/{ref_id}/raw"),
    )
    .not_mcp("bytes may be no text; `tool_output_cache` reads them by lines");
    const FORM: Form = Form::Bytes("application/octet-stream");
    type Head = ();
    type Item = Piece;

    fn run(self, context: &Context, to: &mut dyn Sink<Self>) -> Outcome {
        let (thread, reference, _) = find(context, (&self.at).into(), &self.ref_id)?;
        let mut bytes = komado_engine::output::open(&thread, &reference)?;
        to.begin(())?;
        stream::pieces(to, |out| Ok(io::copy(&mut bytes, out).map(|_| ())?))
    }
}
