//! The `llm` node: something is said, if need be, and the model answers.

use super::Next;
use super::course::{Course, user};
use super::node::Llm;
use crate::error::Result;
use komado_core::journal::{Entry, Reply};
use komado_core::message::Message;
use komado_core::{Kind, Seq};
use komado_engine::Thread;
use serde_json::Value;

/// What the reply of a thread to itself is called, when no model could take the request.
const OVERFLOW: &str = "overflow";

impl<'p> Course<'p, '_, '_> {
    pub(super) fn llm(&mut self, llm: &'p Llm) -> Result<&'p str> {
        let prompt = llm.prompt.as_ref().map(|prompt| self.fill(prompt)).transpose()?;
        if prompt.as_ref().is_some_and(|prompt| prompt.trim().is_empty()) {
            return Err(self.wrong("its prompt is empty once its variables are put in"));
        }
        self.came_by(llm);
        match self.taken.take() {
            Some(note) => {
                if let Some((seq, message, reply)) = reply_after(self.active(), note.at)? {
                    self.heard(llm, seq, &message, &reply);
                    return Ok(&llm.next);
                }
                self.between(Next::Turn)?;
                let active = self.active();
                if let Some(prompt) = prompt
                    && !is_said_after(active, note.at, &prompt)?
                {
                    active.say(user(prompt))?;
                }
            }
            None => {
                self.between(Next::Turn)?;
                self.note(None, prompt.map(user))?;
            }
        }
        self.turn(llm)?;
        Ok(&llm.next)
    }

    fn turn(&mut self, llm: &Llm) -> Result<()> {
        let thread = self.children.last_mut().unwrap_or(&mut self.root);
        let turned = self.hands.turn(thread)?;
        self.turned();
        if turned.is_ours {
            return Err(self.wrong(format!("the model could not be asked: {}", turned.message.words())));
        }
        self.heard(llm, turned.seq, &turned.message, &turned.reply);
        Ok(())
    }

    fn heard(&mut self, llm: &Llm, seq: Seq, message: &Message, reply: &Reply) {
        let place = (self.active().id().to_string(), seq);
        self.vars.said(place, message, &reply.finish);
        if let Some(name) = &llm.save_as {
            self.vars.set(name, Value::String(message.words()));
        }
    }
}

/// What a model answered after an entry, the last of it.
fn reply_after(thread: &Thread<'_>, at: Seq) -> Result<Option<(Seq, Message, Reply)>> {
    let reply = thread.newest(
        |kind| kind == Kind::Assistant,
        |record| match record.entry {
            _ if record.seq <= at => Some(None),
            Entry::Message(message, Some(reply)) if reply.model.is_some() || reply.finish != OVERFLOW => {
                Some(Some((record.seq, message, reply)))
            }
            _ => None,
        },
    )?;
    Ok(reply.flatten())
}

/// True when somebody said exactly this after an entry.
fn is_said_after(thread: &Thread<'_>, at: Seq, words: &str) -> Result<bool> {
    let said = thread.newest(
        |kind| kind == Kind::User,
        |record| match record.entry {
            _ if record.seq <= at => Some(false),
            Entry::Message(message, _) if message.words() == words => Some(true),
            _ => None,
        },
    )?;
    Ok(said.unwrap_or(false))
}
