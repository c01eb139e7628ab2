//! The `tool` node: calls of the model, or one of the playbook's own.
//!
//! Calls are carried out one after the other, and each answer is in the journal before the next one is begun. So when a
//! process ends, at most one call is in doubt: the first that waits. Where making it twice does no harm it is made again;
//! else the model is told, and looks for itself.

use super::NextStep;
use super::run::PlaybookRun;
use super::vars::JsonTemplate;
use crate::Result;
use komado_core::journal::Entry;
use komado_core::message::{Call, CallKind, Message, MessagePart, OWN_CALL, Role, ToolOutcome};
use komado_core::{Kind, Seq};
use komado_engine::Thread;
use komado_engine::output::ToolOutput;
use serde_json::Value;
use std::time::Instant;

/// What a call is told that was running when its process ended.
const IN_DOUBT: &str = "[no result: the process that made this call ended before it answered. It may have taken \
                        effect: look before you make it again.]";

impl<'p> PlaybookRun<'p, '_, '_> {
    /// Carries out the calls of the model's last reply.
    pub(super) fn calls(&mut self) -> Result<&'p str> {
        let mut is_wrong = false;
        while let Some(call) = waiting(self.active())? {
            let thread = self.children.last_mut().unwrap_or(&mut self.root);
            if let Err(why) = self.hands.between(thread, NextStep::Other) {
                if !self.in_doubt {
                    self.note_rest();
                }
                return Err(why);
            }
            is_wrong = self.carry_out(&call)?;
        }
        self.in_doubt = false;
        Ok(self.after(is_wrong))
    }

    /// Makes one call of the playbook's own.
    pub(super) fn tool(&mut self, name: &str, args: &JsonTemplate) -> Result<&'p str> {
        let taken = self.taken.take();
        let arguments = args.fill(&self.vars).map_err(|unset| self.unset(unset))?.to_string();
        let at = match &taken {
            Some(note) => note.at,
            None => {
                self.between(NextStep::Other)?;
                self.count_call()?;
                self.active().last()
            }
        };
        let (id, name) = (self.call_id(at), name.to_owned());
        let call = Call { id, name, arguments, kind: CallKind::Function, extra: None };
        let message = Message::of(Role::Assistant, vec![MessagePart::Call(call.clone())]);
        match taken {
            None => {
                self.in_doubt = false;
                self.note(None, Some(message))?;
            }
            Some(note) => {
                if let Some((seq, answer)) = answer_to(self.active(), note.at, &call.id)? {
                    let is_wrong = self.answered(seq, &answer);
                    return Ok(self.after(is_wrong));
                }
                if !self.active().view().open().waits_for(&call.id) {
                    self.in_doubt = false;
                    self.active().say(message)?;
                }
            }
        }
        let is_wrong = self.carry_out(&call)?;
        Ok(self.after(is_wrong))
    }

    /// Where to go after calls.
    fn after(&mut self, is_wrong: bool) -> &'p str {
        let node = self.node;
        if let Some(name) = &node.save_as {
            let output = self.vars.value("output").unwrap_or(Value::Null);
            self.vars.set(name, output);
        }
        node.on_error.as_deref().filter(|_| is_wrong).unwrap_or(&node.next)
    }

    /// The id of a call of this node: the same for the next worker, another one each time the node is come to.
    fn call_id(&mut self, at: Seq) -> String {
        let node = self.node.id.clone();
        let whole = format!("{}\n{}\n{node}\n{at}", self.playbook.name, self.active().id());
        format!("{OWN_CALL}{}", &blake3::hash(whole.as_bytes()).to_hex()[..24])
    }

    /// Makes a call and journals what it answers. True when that says that something went wrong.
    fn carry_out(&mut self, call: &Call) -> Result<bool> {
        let in_doubt = std::mem::take(&mut self.in_doubt);
        let thread = self.children.last_mut().unwrap_or(&mut self.root);
        let seq = if in_doubt && !self.hands.may_repeat(&call.name) {
            thread.say(no_result(call, IN_DOUBT, None))?
        } else {
            let begun = Instant::now();
            let answer = self.hands.call(thread, call)?;
            let output = ToolOutput {
                call_id: call.id.clone(),
                name: Some(call.name.clone()),
                is_error: answer.is_error,
                duration_ms: u64::try_from(begun.elapsed().as_millis()).ok(),
            };
            thread.say_output(&output, &mut *answer.body.reader())?
        };
        let Entry::Message(message, _) = thread.record(seq)?.entry else { return Ok(false) };
        Ok(self.answered(seq, &message))
    }

    fn answered(&mut self, seq: Seq, message: &Message) -> bool {
        let Some(outcome) = message.outcome() else { return false };
        let place = (self.active().id().to_string(), seq);
        self.vars.told(place, &message.words(), outcome);
        outcome.is_error
    }
}

/// The first call that waits.
fn waiting(thread: &Thread<'_>) -> Result<Option<Call>> {
    let open = thread.view().open();
    let Some(first) = open.calls.first() else { return Ok(None) };
    let Entry::Message(message, _) = thread.record(open.unit)?.entry else { return Ok(None) };
    Ok(message.calls().find(|call| call.id == first.id).cloned())
}

/// What was answered to a call after an entry.
fn answer_to(thread: &Thread<'_>, at: Seq, id: &str) -> Result<Option<(Seq, Message)>> {
    for seq in (at + 1..=thread.last()).filter(|seq| thread.view().on_path(*seq)) {
        if thread.source().head(seq).map_err(komado_engine::Error::from)?.kind == Kind::Tool
            && let Entry::Message(message, _) = thread.record(seq)?.entry
            && message.outcome().is_some_and(|outcome| outcome.call_id == id)
        {
            return Ok(Some((seq, message)));
        }
    }
    Ok(None)
}

/// The answer to a call that has no result, and why.
pub(crate) fn no_result(call: &Call, why: &str, duration_ms: Option<u64>) -> Message {
    let outcome = ToolOutcome::text(&call.id, Some(call.name.clone()), why);
    let outcome = ToolOutcome { is_error: true, duration_ms, interrupted: true, ..outcome };
    Message::of(Role::Tool, vec![MessagePart::Result(outcome)])
}
