//! Results that come late: after somebody else has spoken, or a second time.
//!
//! While calls run, the user may speak. The calls are then answered with a result that says they were interrupted, and when
//! the true result comes it takes that one's place ([`ToolOutcome::replaces`]): pairs and order stay as they are, and the
//! journal keeps both. A second result for one call does the same to the first.

use komado_core::head::EntrySource;
use komado_core::journal::Entry;
use komado_core::message::{Call, CallKind, Message, MessagePart, ToolOutcome};
use komado_core::{Kind, Seq, View};
use komado_store::Error as StoreError;

/// Most entries, the newest first, among which the result is looked for whose place a late one takes.
const MOST_ENTRIES: usize = 2_048;

/// Most of them that are read.
const MOST_RESULTS: usize = 128;

/// Marks a result that no call waits for with the entry whose place it takes, if there is one. Anything else stays as it is.
pub(crate) fn place<S>(view: &View, source: &S, message: &mut Message) -> Result<(), StoreError>
where
    S: EntrySource<Error = StoreError> + ?Sized,
{
    let [MessagePart::Result(outcome)] = &mut message.parts[..] else { return Ok(()) };
    let open = view.open();
    let waits = match outcome.call_id.as_str() {
        "" => !open.calls.is_empty(),
        id => open.waits_for(id),
    };
    if waits || outcome.interrupted || outcome.replaces.is_some() {
        return Ok(());
    }
    if let Some((seq, before)) = earlier(view, source, outcome)? {
        outcome.replaces = Some(seq);
        outcome.name = outcome.name.take().or(before.name);
        outcome.call_id = before.call_id;
    }
    Ok(())
}

/// Entries among which a call that was given up is still answered, where it must be known before it is read.
const LATELY: usize = 256;

/// Most tokens of a result that only says that its call was given up.
const GIVEN_UP: u32 = 64;

/// The calls that were given up lately and are still without a result. They have no name: nothing waits for them.
pub(crate) fn given_up<S>(view: &View, source: &S) -> Result<Vec<Call>, StoreError>
where
    S: EntrySource<Error = StoreError> + ?Sized,
{
    let mut calls = Vec::new();
    let mut results = 0;
    for entry in view.back(source, view.last()).take(LATELY) {
        let (seq, head) = entry?;
        if head.kind != Kind::Tool || head.tokens > GIVEN_UP || view.result(seq) != seq {
            continue;
        }
        if let Entry::Message(message, _) = source.record(seq)?.entry
            && let Some(outcome) = message.outcome().filter(|outcome| outcome.interrupted)
        {
            let (id, name, arguments) = (outcome.call_id.clone(), String::new(), String::new());
            calls.push(Call { id, name, arguments, kind: CallKind::Function, extra: None });
        }
        results += 1;
        if results == MOST_RESULTS {
            break;
        }
    }
    Ok(calls)
}

/// The newest result of the same call. One that names no call takes the place of one that was interrupted.
fn earlier<S>(view: &View, source: &S, late: &ToolOutcome) -> Result<Option<(Seq, ToolOutcome)>, StoreError>
where
    S: EntrySource<Error = StoreError> + ?Sized,
{
    let is_same = |before: &ToolOutcome| match late.call_id.as_str() {
        "" => before.interrupted && (late.name.is_none() || late.name == before.name),
        id => before.call_id == id,
    };
    let mut results = 0;
    for entry in view.back(source, view.last()).take(MOST_ENTRIES) {
        let (seq, head) = entry?;
        if head.kind != Kind::Tool {
            continue;
        }
        if let Entry::Message(message, _) = source.record(seq)?.entry
            && let Some(before) = message.outcome().filter(|before| is_same(before))
        {
            return Ok(Some((seq, before.clone())));
        }
        results += 1;
        if results == MOST_RESULTS {
            break;
        }
    }
    Ok(None)
}
