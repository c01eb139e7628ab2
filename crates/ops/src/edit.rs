//! Operations that change what the model sees. None of them removes anything: each is an entry, and each can be undone.

use crate::address::{AtEntry, AtThread, Spans};
use crate::change;
use crate::{ChangedView, Interfaces, OpFault, OpResult, Operation, OperationContext, OperationLabel, Route};
use komado_core::amount::count_of;
use komado_core::journal::Entry;
use komado_store::OpenMode;
use schemars::JsonSchema;
use serde::Deserialize;

/// An edit of a thread: a verb, a route of the same name, a tool.
const fn everywhere(verb: &'static str, path: &'static str) -> Interfaces {
    Interfaces::everywhere(verb, Route::post("view", path))
}

/// The same for edits that a model makes better with `condense`.
const fn not_for_models(verb: &'static str, path: &'static str) -> Interfaces {
    everywhere(verb, path).not_mcp("a model has `condense`, which says what it hides")
}

/// Keep a message in the view through every edit, word for word. A call is pinned with its results.
#[derive(Clone, Debug, clap::Args, Deserialize, JsonSchema)]
pub struct Pin {
    /// The message, SESSION@SEQ; a call is pinned with its results
    #[arg(value_name = "SESSION@SEQ")]
    #[serde(flatten)]
    pub at: AtEntry,
}

impl Operation for Pin {
    const ABOUT: OperationLabel = OperationLabel::add("pin", "Pin a message");
    const INTERFACES: Interfaces = everywhere("edit pin", "/sessions/{session}/threads/{thread}/pin");
    type Output = ChangedView;

    fn run(self, context: &OperationContext) -> OpResult<ChangedView> {
        let (found, seq) = (context.find(&self.at)?, self.at.seq);
        let changed = change::make(context, &found, Self::ABOUT.name, |thread| thread.pin(seq))?;
        let undo = format!("komado edit unpin {}@{seq}", change::name(&found));
        Ok(changed.told(format!("pinned @{seq}: no edit hides it now"), undo))
    }
}

/// Remove a pin: edits may hide the message again.
#[derive(Clone, Debug, clap::Args, Deserialize, JsonSchema)]
pub struct Unpin {
    /// The pinned message, SESSION@SEQ
    #[arg(value_name = "SESSION@SEQ")]
    #[serde(flatten)]
    pub at: AtEntry,
}

impl Operation for Unpin {
    const ABOUT: OperationLabel = OperationLabel::add("unpin", "Remove a pin");
    const INTERFACES: Interfaces = everywhere("edit unpin", "/sessions/{session}/threads/{thread}/unpin");
    type Output = ChangedView;

    fn run(self, context: &OperationContext) -> OpResult<ChangedView> {
        let (found, seq) = (context.find(&self.at)?, self.at.seq);
        let changed = change::make(context, &found, Self::ABOUT.name, |thread| thread.unpin(seq))?;
        let undo = format!("komado edit pin {}@{seq}", change::name(&found));
        Ok(changed.told(format!("unpinned @{seq}: edits may hide it again"), undo))
    }
}

/// Go back to a moment, as if nothing after it had happened. Nothing is removed, and a rewind can be rewound.
#[derive(Clone, Debug, clap::Args, Deserialize, JsonSchema)]
pub struct Rewind {
    /// The moment to go back to, SESSION@SEQ
    #[arg(value_name = "SESSION@SEQ")]
    #[serde(flatten)]
    pub at: AtEntry,
}

impl Operation for Rewind {
    const ABOUT: OperationLabel = OperationLabel::edit("rewind", "Go back to a moment");
    const INTERFACES: Interfaces = everywhere("rewind", "/sessions/{session}/threads/{thread}/rewind");
    type Output = ChangedView;

    fn run(self, context: &OperationContext) -> OpResult<ChangedView> {
        let (found, to) = (context.find(&self.at)?, self.at.seq);
        let changed = change::make(context, &found, Self::ABOUT.name, |thread| thread.rewind(to))?;
        let undo = change::rewind_before(&found, changed.seq);
        Ok(changed.told(format!("went back to @{to}; nothing was removed"), undo))
    }
}

/// Undo one edit of the view, and keep everything that was said since.
#[derive(Clone, Debug, clap::Args, Deserialize, JsonSchema)]
pub struct Revert {
    /// The edit (or the revert) to undo, SESSION@SEQ; `context` lists them
    #[arg(value_name = "SESSION@SEQ")]
    #[serde(flatten)]
    pub at: AtEntry,
}

impl Operation for Revert {
    const ABOUT: OperationLabel = OperationLabel::edit("revert", "Undo an edit");
    const INTERFACES: Interfaces = everywhere("revert", "/sessions/{session}/threads/{thread}/revert");
    type Output = ChangedView;

    fn run(self, context: &OperationContext) -> OpResult<ChangedView> {
        let (found, target) = (context.find(&self.at)?, self.at.seq);
        // Undoing an undo brings an edit back; what undoes that is reverting the edit itself.
        let edit =
            match context.engine.open(&found.session, &found.thread, OpenMode::Read)?.record(target)?.entry {
                Entry::Revert { target: edit } => Some(edit),
                _ => None,
            };
        let changed = change::make(context, &found, Self::ABOUT.name, |thread| thread.revert(target))?;
        let undo = change::revert(&found, edit.unwrap_or(changed.seq));
        Ok(changed.told(format!("undid @{target}; everything said since stays"), undo))
    }
}

/// Show a marker in place of entries.
#[derive(Clone, Debug, clap::Args, Deserialize, JsonSchema)]
pub struct TruncateSpan {
    /// The session, or SESSION/THREAD
    #[arg(value_name = "ADDRESS")]
    #[serde(flatten)]
    pub at: AtThread,
    /// The entries to hide, such as 3..50 or 3..10,12..50
    #[schemars(example = &"1..2")]
    pub span: Spans,
    /// The marker; one that counts the entries when left out
    #[arg(long)]
    pub text: Option<String>,
}

impl Operation for TruncateSpan {
    const ABOUT: OperationLabel = OperationLabel::edit("truncate", "Show a marker in place of a span");
    const INTERFACES: Interfaces =
        not_for_models("edit truncate", "/sessions/{session}/threads/{thread}/truncate");
    type Output = ChangedView;

    fn run(self, context: &OperationContext) -> OpResult<ChangedView> {
        let (found, span) = (context.find_now(&self.at)?, self.span);
        span.check()?;
        let text = self.text.unwrap_or_else(|| {
            format!("[{} not shown: {span}]", count_of(span.entries(), "entry", "entries"))
        });
        let changed = change::make(context, &found, Self::ABOUT.name, |thread| {
            thread.truncate(span.0.clone(), &text, "by_hand")
        })?;
        let undo = change::revert(&found, changed.seq);
        Ok(changed.told(format!("showing a marker in place of {span}"), undo))
    }
}

/// Entries that one call may trim: each is named in the edit.
const MOST: u64 = 10_000;

/// Show a placeholder in place of what entries say.
#[derive(Clone, Debug, clap::Args, Deserialize, JsonSchema)]
pub struct Trim {
    /// The session, or SESSION/THREAD
    #[arg(value_name = "ADDRESS")]
    #[serde(flatten)]
    pub at: AtThread,
    /// The entries, such as 7 or 7,9,12
    #[schemars(example = &"1..2")]
    pub span: Spans,
    /// The placeholder; one that names the entry when left out
    #[arg(long)]
    pub text: Option<String>,
}

impl Operation for Trim {
    const ABOUT: OperationLabel =
        OperationLabel::edit("trim", "Show a placeholder in place of what entries say");
    const INTERFACES: Interfaces = not_for_models("edit trim", "/sessions/{session}/threads/{thread}/trim");
    type Output = ChangedView;

    fn run(self, context: &OperationContext) -> OpResult<ChangedView> {
        let (found, span) = (context.find_now(&self.at)?, self.span);
        span.check()?;
        if span.entries() > MOST {
            let named = span.entries();
            return Err(OpFault::usage(format!(
                "{named} entries are named, and {MOST} is the most at a time"
            )));
        }
        let seqs = span.0.iter().flat_map(|span| span.from..=span.to);
        let usual = |seq| format!("[output trimmed; entry @{seq} keeps it]");
        let places: Vec<_> = seqs.map(|seq| (seq, self.text.clone().unwrap_or_else(|| usual(seq)))).collect();
        let changed =
            change::make(context, &found, Self::ABOUT.name, |thread| thread.trim(places, "by_hand"))?;
        let undo = change::revert(&found, changed.seq);
        Ok(changed.told(format!("showing placeholders for {span}"), undo))
    }
}
