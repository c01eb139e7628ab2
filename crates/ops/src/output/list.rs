//! List the outputs that are too long to be shown.

use crate::address::AtMoment;
use crate::{Context, Effect, Interfaces, Operation, Outcome, Page, Route};
use komado_core::journal::Entry;
use komado_core::message::{Outcome as ToolOutcome, OutputRef};
use komado_core::{Kind, Seq};
use komado_store::Mode;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// List the outputs that are too long to be shown.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
pub struct ListOutputs {
    /// The thread, and up to which moment of it.
    #[serde(flatten)]
    pub at: AtMoment,
}

/// An output that is too long to be shown.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
pub struct Output {
    /// Its id.
    #[serde(rename = "ref")]
    pub ref_id: String,
    /// Its bytes.
    pub byte_size: Option<u64>,
    /// Its lines.
    pub line_count: Option<u64>,
    /// The tool that gave it.
    pub tool: Option<String>,
    /// The entry that names it.
    pub seq: Seq,
}

impl Operation for ListOutputs {
    const NAME: &'static str = "outputs";
    const TITLE: &'static str = "List long outputs";
    const EFFECT: Effect = Effect::Read;
    const INTERFACES: Interfaces = Interfaces::everywhere(
        "output",
        Route::get("outputs", "/sessions/{session}/threads/{thread}/outputs"),
    )
    .not_mcp("the view names each output where it is cut");
    type Output = Page<Output>;

    fn run(self, context: &Context) -> Outcome<Page<Output>> {
        let found = context.find(&self.at)?;
        let thread = context.engine.open(&found.session, &found.thread, Mode::Read)?;
        let mut outputs = Vec::new();
        for seq in 1..=found.seq.unwrap_or(thread.last()).min(thread.last()) {
            if thread.source().head(seq)?.kind != Kind::Tool {
                continue;
            }
            let Entry::Message(message, _) = thread.record(seq)?.entry else { continue };
            let Some(ToolOutcome { name, output_ref: Some(output), .. }) = message.outcome() else {
                continue;
            };
            let OutputRef { id, byte_size, line_count } = output.clone();
            outputs.push(Output { ref_id: id, byte_size, line_count, tool: name.clone(), seq });
        }
        Ok(Page::whole(outputs))
    }
}
