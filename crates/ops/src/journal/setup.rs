//! Setup: what stands before the conversation.

use crate::address::AtThread;
use crate::arguments::malformed;
use crate::change::{self, Changed};
use crate::tools::ToolDefinitions;
use crate::{Context, Effect, Fault, Interfaces, Operation, Outcome, Route};
use komado_core::journal::{Entry, Setup};
use komado_core::openai;
use komado_core::raw::Raw;
use komado_engine::Thread;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

/// Set system prompt, tools and parameters; what is left out stays.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[schemars(example = serde_json::json!({ "system": "You are a careful engineer." }))]
pub struct SetUp {
    /// The thread.
    #[serde(flatten)]
    pub at: AtThread,
    /// The system prompt.
    pub system: Option<String>,
    /// Tool definitions.
    pub tools: Option<ToolDefinitions>,
    /// Other parameters of the request.
    #[schemars(with = "Option<Map<String, Value>>")]
    pub params: Option<Box<RawValue>>,
    /// Whose form tools and parameters have; `openai` when left out.
    pub dialect: Option<String>,
}

impl Operation for SetUp {
    const NAME: &'static str = "setup";
    const TITLE: &'static str = "Set system prompt, tools and parameters";
    const EFFECT: Effect = Effect::Edit;
    const INTERFACES: Interfaces =
        Interfaces::everywhere("setup", Route::post("view", "/sessions/{session}/threads/{thread}/setup"))
            .not_mcp("what stands before the conversation is for people to say, not for the model in it");
    type Output = Changed;

    fn run(self, context: &Context) -> Outcome<Changed> {
        let found = context.find_now(&self.at)?;
        let Self { system, tools, params, dialect, .. } = self;
        if system.is_none() && tools.is_none() && params.is_none() {
            return Err(Fault::usage("nothing is set up: give system, tools or params"));
        }
        let tools = tools.map(Raw::from);
        let params = params.as_deref().map(object).transpose()?;
        let form = dialect.unwrap_or_else(|| openai::DIALECT.to_owned());
        let dialect = (tools.is_some() || params.is_some()).then_some(form);
        let changed = change::make(context, &found, Self::NAME, |thread| {
            let before = current(thread)?;
            thread.set_up(Setup {
                system: system.or(before.system),
                tools: tools.or(before.tools),
                params: params.or(before.params),
                dialect: dialect.or(before.dialect),
            })
        })?;
        let undo = change::rewind_before(&found, changed.seq);
        Ok(changed.told("set up; what was not given stays", undo))
    }
}

/// Parameters as the journal keeps them.
fn object(given: &RawValue) -> Outcome<Raw> {
    // What cannot be read whole could not be sent.
    let read: Result<Map<String, Value>, _> = serde_json::from_str(given.get());
    match read {
        Ok(_) => Ok(Raw::from_value(given)),
        Err(error) => Err(malformed(format!("params is not a JSON object: {error}"))),
    }
}

/// The setup in force; what is not given anew is carried over.
fn current(thread: &Thread<'_>) -> komado_engine::Result<Setup> {
    let Some(seq) = thread.view().setup() else { return Ok(Setup::default()) };
    match thread.record(seq)?.entry {
        Entry::Setup(setup) => Ok(setup),
        _ => Ok(Setup::default()),
    }
}
