//! The gate: what may be appended.
//!
//! Every view can be sent. That is checked here, when an entry comes in, and never repaired when a view goes out: a
//! result needs its call, a call its results before anyone else speaks, an edit may not split the two, and nothing
//! pretends to change what it does not.

use crate::head::{EntrySource, Head, Kind};
use crate::journal::{Close, Edit, EditKind, Ending, Entry, Replace, Share};
use crate::message::{Message, MessagePart, Role};
use crate::{Seq, Span, View};

/// Why an entry may not be appended.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EntryRefusal {
    /// A message without a part.
    #[error("the message is empty; give it at least one part")]
    Empty,
    /// A part that this role does not have.
    #[error("a message from {role} cannot hold {what}; take that out, or change the role")]
    Misplaced {
        /// Who speaks.
        role: &'static str,
        /// What they cannot say.
        what: &'static str,
    },
    /// Someone else speaks while calls wait.
    #[error(
        "calls still wait for their results: {}; append those first, or rewind to @{before}",
        .calls.join(", ")
    )]
    CallsOpen {
        /// Their ids.
        calls: Vec<String>,
        /// The moment before they were made.
        before: Seq,
    },
    /// A result without an open call.
    #[error(
        "result for call {id:?}, but {}",
        if .open.is_empty() { "no call waits for a result; append the call first".into() }
        else { format!("only these wait; answer one of them: {}", .open.join(", ")) }
    )]
    NoSuchCall {
        /// The id it answers.
        id: String,
        /// The ids that wait.
        open: Vec<String>,
    },
    /// Two calls of one message with one id, or a call with none.
    #[error("call id {id:?} stands twice in one message; give each call its own")]
    DoubleCall {
        /// The id.
        id: String,
    },
    /// A call that cannot be paired.
    #[error("a call to {name:?} has no id; give it one, so that its result can be paired with it")]
    NoCallId {
        /// The tool.
        name: String,
    },
    /// The thread has ended.
    #[error("the thread was closed at @{at}; resume it, or rewind to @{}", .at - 1)]
    Closed {
        /// The entry that closed it.
        at: Seq,
    },
    /// A share for a thread that was not spawned.
    #[error(
        "a share stands first in the journal of a spawned thread, and this one has begun without; spawn a thread \
         from it instead"
    )]
    NotSpawned,
    /// Not an entry of this thread's present.
    #[error("entry @{seq} cannot be used here: {why}")]
    NoEntry {
        /// What was named.
        seq: Seq,
        /// What is wrong with it.
        why: &'static str,
    },
    /// A span that is none.
    #[error("span {span}: {why}")]
    BadSpan {
        /// The span.
        span: Span,
        /// What is wrong with it.
        why: &'static str,
    },
    /// A span that would part a call from its result.
    #[error("span {span} would split the call and results at {unit}..; widen or narrow it")]
    Splits {
        /// The span.
        span: Span,
        /// The first entry of the unit it splits.
        unit: Seq,
    },
    /// Two edits that overlap without one holding the other.
    #[error("the edit overlaps edit @{other} without covering it; cover all of it, or revert it first")]
    Overlaps {
        /// The edit in the way.
        other: Seq,
    },
    /// An edit that a later one covers can neither go nor come back.
    #[error("nothing would change: it lies under a later edit; revert that one first{}", .by.map(|by| format!(": @{by}")).unwrap_or_default())]
    Under {
        /// The later edit, where it is known.
        by: Option<Seq>,
    },
    /// It would change nothing.
    #[error("nothing would change: {why}")]
    NoEffect {
        /// Why not.
        why: &'static str,
    },
}

/// Says whether `entry` may follow what `view` has taken in. Costs nothing that grows with the conversation.
pub fn admit<S: EntrySource + ?Sized>(
    view: &View,
    entry: &Entry,
    source: &S,
) -> Result<Result<(), EntryRefusal>, S::Error> {
    let gate = Gate { view, source };
    Ok(match entry {
        Entry::Message(message, reply) => match gate.message(message, reply.is_some()) {
            Ok(()) => return gate.late(message),
            refused => refused,
        },
        Entry::Setup(_) => gate.not_closed(),
        Entry::Edit(edit) => return gate.edit(edit),
        Entry::Revert { target } => return gate.revert(*target),
        Entry::Rewind { to } => return gate.rewind(*to),
        Entry::Pin { span } => return gate.pin(*span),
        Entry::Unpin { span } => gate.unpin(*span),
        Entry::Anchor(anchor) => match anchor.first {
            Some(first) => return gate.anchor(first),
            None => gate.not_closed().and_then(|()| gate.no_calls_open()),
        },
        Entry::Sent(sent) if sent.purpose.is_none() => gate.not_closed().and_then(|()| gate.no_calls_open()),
        Entry::Share(share) => gate.share(share),
        Entry::Tell { .. } | Entry::Note { .. } => gate.not_closed(),
        Entry::Sent(_) | Entry::Lost(_) | Entry::Chronicle(_) | Entry::Heard { .. } => Ok(()),
        Entry::Close(close) => return gate.close(close),
    })
}

struct Gate<'a, S: ?Sized> {
    view: &'a View,
    source: &'a S,
}

type Verdict<E> = Result<Result<(), EntryRefusal>, E>;

/// Passes a refusal on from inside a look-up that can fail by itself.
macro_rules! hold {
    ($refusal:expr) => {
        return Ok(Err($refusal))
    };
}

impl<S: EntrySource + ?Sized> Gate<'_, S> {
    fn not_closed(&self) -> Result<(), EntryRefusal> {
        self.view.closed().map_or(Ok(()), |at| Err(EntryRefusal::Closed { at }))
    }

    fn no_calls_open(&self) -> Result<(), EntryRefusal> {
        let open = self.view.open();
        if open.calls.is_empty() {
            return Ok(());
        }
        let calls = open.calls.iter().map(|call| call.to_string()).collect();
        Err(EntryRefusal::CallsOpen { calls, before: open.unit - 1 })
    }

    fn message(&self, message: &Message, is_reply: bool) -> Result<(), EntryRefusal> {
        self.not_closed()?;
        let role = message.role;
        let misplaced = |what| Err(EntryRefusal::Misplaced { role: role.name(), what });
        if message.parts.is_empty() {
            return Err(EntryRefusal::Empty);
        }
        if is_reply && role != Role::Assistant {
            return misplaced("a provider's reply");
        }
        if role == Role::Tool {
            return self.result(message);
        }
        self.no_calls_open()?;
        for part in &message.parts {
            match part {
                MessagePart::Result(_) => return misplaced("a tool's result"),
                MessagePart::Call(_) if role != Role::Assistant => return misplaced("a tool call"),
                MessagePart::Reasoning { .. } if role != Role::Assistant => return misplaced("reasoning"),
                _ => {}
            }
        }
        check_ids(message)
    }

    fn result(&self, message: &Message) -> Result<(), EntryRefusal> {
        let (Some(outcome), [_]) = (message.outcome(), &message.parts[..]) else {
            return Err(EntryRefusal::Misplaced { role: "tool", what: "anything but one result" });
        };
        let odd = |part: &MessagePart| {
            matches!(part, MessagePart::Call(_) | MessagePart::Result(_) | MessagePart::Reasoning { .. })
        };
        if outcome.content.iter().any(odd) {
            let what = "a call, a result or reasoning inside its result";
            return Err(EntryRefusal::Misplaced { role: "tool", what });
        }
        if outcome.replaces.is_some() || self.view.open().waits_for(&outcome.call_id) {
            return Ok(());
        }
        let open = self.view.open().calls.iter().map(|call| call.id.clone()).collect();
        Err(EntryRefusal::NoSuchCall { id: outcome.call_id.clone(), open })
    }

    /// A result that came late takes the place of one that answers the same call: so pairs and order stay as they are.
    fn late(&self, message: &Message) -> Verdict<S::Error> {
        let Some(outcome) = message.outcome() else { return Ok(Ok(())) };
        let Some(first) = outcome.replaces else { return Ok(Ok(())) };
        let is_result = self.view.on_path(first) && self.source.head(first)?.kind == Kind::Tool;
        let answers_it = is_result
            && match self.source.record(first)?.entry {
                Entry::Message(before, _) => {
                    before.outcome().is_some_and(|before| before.call_id == outcome.call_id)
                }
                _ => false,
            };
        let why = "no result of this call stands there; name the one whose place it takes";
        Ok(if answers_it { Ok(()) } else { Err(EntryRefusal::NoEntry { seq: first, why }) })
    }

    /// What was kept of the threads above is found by halving, so it must stand in order. A thread that waits is given
    /// its share like any other, and goes on with it.
    fn share(&self, share: &Share) -> Result<(), EntryRefusal> {
        if self.view.share().is_none() && !self.view.is_blank() {
            return Err(EntryRefusal::NotSpawned);
        }
        let unordered = share.slices.iter().find_map(|slice| unordered(&slice.keep));
        let why = "what a slice keeps must be ascending and apart";
        unordered.map_or(Ok(()), |span| Err(EntryRefusal::BadSpan { span, why }))
    }

    fn rewind(&self, to: Seq) -> Verdict<S::Error> {
        match to.cmp(&self.view.last()) {
            std::cmp::Ordering::Less => {}
            std::cmp::Ordering::Equal => {
                hold!(EntryRefusal::NoEffect { why: "that is where the thread is; name an earlier moment" })
            }
            std::cmp::Ordering::Greater => {
                hold!(EntryRefusal::NoEntry {
                    seq: to,
                    why: "the thread is not that long; name an earlier entry"
                })
            }
        }
        // What a spawned thread sees of those above it is not its own to take back.
        if self.view.share().is_some() && View::fold(self.source, to)?.share().is_none() {
            hold!(EntryRefusal::NoEntry { seq: to, why: "the thread began after that; name a later entry" });
        }
        Ok(Ok(()))
    }

    fn pin(&self, span: Span) -> Verdict<S::Error> {
        if self.view.pins().iter().any(|pin| pin.meets(span)) {
            hold!(EntryRefusal::NoEffect { why: "it is pinned already; to change the pin, unpin it first" });
        }
        match self.view.unit(self.source, span.from)? {
            // Results still to come would not be held by the pin.
            Some(unit) if unit.from == self.view.open().unit => Ok(self.no_calls_open()),
            Some(unit) if unit == span => Ok(Ok(())),
            Some(unit) => hold!(EntryRefusal::Splits { span, unit: unit.from }),
            None => {
                let why = "only messages on the present path can be pinned";
                hold!(EntryRefusal::NoEntry { seq: span.from, why })
            }
        }
    }

    fn unpin(&self, span: Span) -> Result<(), EntryRefusal> {
        let why = "no pin has this span; name one that is in force";
        if self.view.pins().contains(&span) { Ok(()) } else { Err(EntryRefusal::NoEffect { why }) }
    }

    fn anchor(&self, first: Seq) -> Verdict<S::Error> {
        let is_anchor = self.view.on_path(first) && self.source.head(first)?.kind == Kind::Anchor;
        let why = "no anchor stands there; name the thread's first one";
        Ok(if is_anchor { Ok(()) } else { Err(EntryRefusal::NoEntry { seq: first, why }) })
    }

    fn close(&self, close: &Close) -> Verdict<S::Error> {
        let Some(at) = self.view.closed() else { return Ok(Ok(())) };
        let paused =
            matches!(self.source.record(at)?.entry, Entry::Close(Close { ending: Ending::Paused, .. }));
        Ok(if paused && close.ending != Ending::Paused { Ok(()) } else { Err(EntryRefusal::Closed { at }) })
    }

    fn edit(&self, edit: &Edit) -> Verdict<S::Error> {
        if let Err(refusal) = self.not_closed() {
            hold!(refusal);
        }
        match edit.kind {
            EditKind::Trim => {
                if !edit.hide.is_empty() || !edit.show.is_empty() || edit.replace.is_empty() {
                    hold!(EntryRefusal::NoEffect { why: "a trim must replace entries and hide none" });
                }
                self.replaces(&edit.replace)
            }
            EditKind::Condense | EditKind::Truncate => {
                if edit.hide.is_empty() || edit.show.is_empty() || !edit.replace.is_empty() {
                    let why = "an edit of this kind must hide something and show something in its place";
                    hold!(EntryRefusal::NoEffect { why });
                }
                self.hides(&edit.hide)
            }
        }
    }

    fn replaces(&self, replace: &[Replace]) -> Verdict<S::Error> {
        let mut before = 0;
        for &Replace { seq, .. } in replace {
            let why = if seq <= before {
                "replaced entries must come once and in order"
            } else if !self.view.shows(seq) || !self.source.head(seq)?.kind.is_item() {
                "it is not shown; name an entry that is"
            } else if self.source.head(seq)?.kind == Kind::Anchor {
                "an anchor is changed by its thread alone; leave it out"
            } else if self.view.is_pinned(seq) {
                "it is pinned; unpin it first"
            } else {
                before = seq;
                continue;
            };
            hold!(EntryRefusal::NoEntry { seq, why });
        }
        Ok(Ok(()))
    }

    fn hides(&self, hide: &[Span]) -> Verdict<S::Error> {
        if let Some(span) = unordered(hide) {
            hold!(EntryRefusal::BadSpan { span, why: "spans must be ascending and apart" });
        }
        for &span in hide {
            if span.to > self.view.last() {
                hold!(EntryRefusal::BadSpan {
                    span,
                    why: "it ends after the last entry; end it there or before"
                });
            }
            if let Err(refusal) = self.aligned(span)? {
                hold!(refusal);
            }
        }
        if let Some(other) = self.view.overlapped(hide) {
            hold!(EntryRefusal::Overlaps { other });
        }
        let why = "nothing in the span is shown; choose one where something is";
        let shows = self.view.shows_within(self.source, hide)?;
        Ok(if shows { Ok(()) } else { Err(EntryRefusal::NoEffect { why }) })
    }

    /// A span may not begin or end inside a unit, nor hold a unit that is still open.
    fn aligned(&self, span: Span) -> Verdict<S::Error> {
        let open = self.view.open();
        if open.unit > 0 && open.unit <= span.to {
            return Ok(self.no_calls_open());
        }
        for next in [span.from, span.to + 1] {
            if let Some((_, Head { unit, .. })) = self.view.item_from(self.source, next)?
                && unit < next
            {
                hold!(EntryRefusal::Splits { span, unit });
            }
        }
        Ok(Ok(()))
    }

    fn revert(&self, target: Seq) -> Verdict<S::Error> {
        let missing = |why| EntryRefusal::NoEntry { seq: target, why };
        if target == 0 || !self.view.on_path(target) {
            hold!(missing("it is not on the present path; rewind to where it is, or name another"));
        }
        let head = self.source.head(target)?;
        if self.view.is_cancelled(target) {
            hold!(EntryRefusal::NoEffect {
                why: "it is reverted already; to have it back, revert the revert"
            });
        }
        if head.kind == Kind::Revert {
            return self.redo(head.operand.from);
        }
        if head.kind == Kind::LateResult {
            return Ok(Ok(()));
        }
        if !head.kind.is_edit() {
            hold!(missing("only edits, late results and reverts can be reverted"));
        }
        if !self.view.edits().any(|edit| edit == target) {
            let by = match self.source.record(target)?.entry {
                Entry::Edit(edit) => self.view.buried_by(target, &edit),
                _ => None,
            };
            hold!(EntryRefusal::Under { by });
        }
        Ok(Ok(()))
    }

    /// An edit that comes back in force must still fit between the others. Under a later one it may not come back:
    /// what else lies there is not known, and might overlap it.
    fn redo(&self, edit: Seq) -> Verdict<S::Error> {
        let back = match self.source.record(edit)?.entry {
            Entry::Edit(back) => back,
            // A late result goes to one place, whatever else is in force.
            Entry::Message(..) => return Ok(Ok(())),
            _ => hold!(EntryRefusal::NoEntry {
                seq: edit,
                why: "that revert undid a revert; revert the edit itself"
            }),
        };
        if let Some(other) = self.view.conflicts(edit, &back.hide) {
            hold!(EntryRefusal::Overlaps { other });
        }
        Ok(match self.view.buried_by(edit, &back) {
            Some(by) => Err(EntryRefusal::Under { by: Some(by) }),
            None => Ok(()),
        })
    }
}

/// The first of some spans that does not come after the one before it.
fn unordered(spans: &[Span]) -> Option<Span> {
    let mut before = 0;
    let mut is_after =
        |span: &Span| span.from > std::mem::replace(&mut before, span.to) && span.from <= span.to;
    spans.iter().copied().find(|span| !is_after(span))
}

fn check_ids(message: &Message) -> Result<(), EntryRefusal> {
    let mut ids: Vec<&str> = Vec::new();
    for call in message.calls() {
        if call.id.is_empty() {
            return Err(EntryRefusal::NoCallId { name: call.name.clone() });
        }
        if ids.contains(&call.id.as_str()) {
            return Err(EntryRefusal::DoubleCall { id: call.id.clone() });
        }
        ids.push(&call.id);
    }
    Ok(())
}
