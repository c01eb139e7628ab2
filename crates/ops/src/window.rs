//! The window: what fills it, what makes the view fit, and how two moments differ.

mod context;
mod fit;

pub use context::{ContextUse, EditInForce, OpenCall, Parts, ReadContext, learned_line};
pub use fit::{
    Condense, Condensed, Fit, FittedWindow, MadeEdit, PlanFit, SummaryWritten, WindowRule, condense_now,
    window,
};

use crate::address::{self, AtSession, Target};
use crate::{Interfaces, OpResult, Operation, OperationContext, OperationLabel, Route};
use komado_core::{Seq, notation};
use komado_engine::diff::{ViewChange, diff};
use komado_engine::engine::ResolvedAddress;
use komado_store::OpenMode;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Compare what the model saw at two moments of a session.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
pub struct Diff {
    /// The session.
    #[serde(flatten)]
    pub at: AtSession,
    /// The earlier moment, THREAD@SEQ or THREAD.
    #[schemars(regex(pattern = MOMENT), example = &"root@1")]
    pub from: String,
    /// The later moment; the thread of the earlier one as it is now when left out.
    #[schemars(regex(pattern = MOMENT), example = &"root")]
    pub to: Option<String>,
    /// Shorten what is shown of each message to so many columns; whole when left out.
    #[schemars(range(min = 1))]
    pub columns: Option<u32>,
}

/// How a moment is written.
const MOMENT: &str = concat!("^", komado_core::id_pattern!(), "(@[0-9]{1,8})?$");

/// What differs between two moments.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Differences {
    /// What is gone and what is new, in order.
    pub items: Vec<ViewDifference>,
    /// Tokens of the view at the earlier moment.
    pub tokens_before: u64,
    /// Tokens of the view at the later moment.
    pub tokens_after: u64,
}

/// Something that is seen at one moment and not at the other.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
pub struct ViewDifference {
    /// `gone` or `new`.
    pub change: &'static str,
    /// The entry.
    pub seq: Seq,
    /// Its tokens.
    pub tokens: u32,
    /// What it says, in one line.
    pub text: String,
}

impl Operation for Diff {
    const ABOUT: OperationLabel = OperationLabel::read("diff", "Compare two moments");
    const INTERFACES: Interfaces =
        Interfaces::everywhere("session diff", Route::get("view", "/sessions/{session}/diff"))
            .not_mcp("a model reads what it no longer sees with `log` and `show`");
    type Output = Differences;

    fn run(self, context: &OperationContext) -> OpResult<Differences> {
        let session = context.find(&self.at)?.session.to_string();
        let before = moment(context, &session, &self.from)?;
        let after = match &self.to {
            Some(to) => moment(context, &session, to)?,
            None => ResolvedAddress { seq: None, ..before.clone() },
        };
        let old = context.engine.open(&before.session, &before.thread, OpenMode::Read)?;
        let new = context.engine.open(&after.session, &after.thread, OpenMode::Read)?;
        let was = old.view_at(before.seq.unwrap_or(old.last()))?;
        let is = new.view_at(after.seq.unwrap_or(new.last()))?;
        let shared = old.shared_with(&new)?;
        let width = self.columns.map_or(usize::MAX, |columns| columns as usize);
        let mut items = Vec::new();
        for change in diff((&was, old.source()), (&is, new.source()), shared)? {
            let (change, item, source) = match change {
                ViewChange::Gone(item) => ("gone", item, old.source()),
                ViewChange::New(item) => ("new", item, new.source()),
            };
            let text = notation::item(&item, source, width)?;
            items.push(ViewDifference { change, seq: item.seq, tokens: item.tokens, text });
        }
        Ok(Differences { items, tokens_before: was.tokens(), tokens_after: is.tokens() })
    }
}

/// A moment of a thread of the session.
fn moment(context: &OperationContext, session: &str, text: &str) -> OpResult<ResolvedAddress> {
    let (thread, seq) = address::moment(text)?;
    context.find(Target { session: Some(session.to_owned()), thread: Some(thread.to_string()), seq })
}
