//! A playbook while it is followed.
//!
//! Before a node acts, the root's journal says which one, where, and with which variables. What it then does is in the
//! journal of its thread. So a process that ends anywhere leaves either a node that has not acted, or one that has, or one
//! whose traces say how far it came; the next process looks, and does the rest.

use super::node::{Assignment, NodeAction, PlaybookNode};
use super::vars::{EntryPlace, Template, UnsetVariable, Variables};
use super::{Error as Bad, NextStep, NodeRunner, Playbook, PlaybookEnd};
use crate::{Error, Result};
use komado_core::journal::{Ending, Entry, Reply};
use komado_core::message::{Message, Role};
use komado_core::raw::RawJson;
use komado_core::{Kind, Seq, SessionId, ThreadId};
use komado_engine::Thread;
use komado_store::OpenMode;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Number, Value};

/// After so many nodes what is derived from the journals is brought up to date. It costs as much as the view is long.
const SETTLED_AFTER: u32 = 64;
/// And not before the journals grew by this part: so a long run pays for it as often as its length doubles, or nearly.
const SETTLED_PART: u32 = 4;
/// Most calls of the playbook's own between two turns: as many as a task may take turns. Turns and errors have limits; a
/// loop of calls that go well has only this one.
const MOST_CALLS: u32 = 5_000;

/// A playbook on its way.
pub(super) struct PlaybookRun<'p, 'h, 'e> {
    pub(super) playbook: &'p Playbook,
    pub(super) session: &'p SessionId,
    pub(super) hands: &'h mut dyn NodeRunner<'e>,
    pub(super) root: Thread<'e>,
    /// The child threads that are open, each spawned from the one before.
    pub(super) children: Vec<Thread<'e>>,
    pub(super) vars: Variables,
    vars_at: Option<Seq>,
    pub(super) node: &'p PlaybookNode,
    /// The note of another process about this node, until it has acted.
    pub(super) taken: Option<PlaybookNote>,
    /// The last node that answers whatever was said.
    pub(super) answers: Option<&'p PlaybookNode>,
    /// How often it went back to one from the end.
    pub(super) backs: u32,
    /// True while the first call that waits may have been running when another process ended.
    pub(super) in_doubt: bool,
    unsettled: u32,
    /// Calls of the playbook's own since the last turn.
    own_calls: u32,
}

/// Follows a playbook in a session, from its beginning or from where its journal says that it stopped. `vars` are there at
/// the beginning.
pub fn run<'e>(
    playbook: &Playbook,
    session: &SessionId,
    vars: &Map<String, Value>,
    hands: &mut dyn NodeRunner<'e>,
) -> Result<PlaybookEnd> {
    let mut course = PlaybookRun::begin(playbook, session, vars, hands)?;
    let ended = course.walk();
    course.settle();
    ended
}

impl<'p, 'h, 'e> PlaybookRun<'p, 'h, 'e> {
    /// At its beginning, or where the journal says.
    pub(super) fn begin(
        playbook: &'p Playbook,
        session: &'p SessionId,
        given: &Map<String, Value>,
        hands: &'h mut dyn NodeRunner<'e>,
    ) -> Result<Self> {
        let mut root = hands.open(session, &ThreadId::root())?;
        let found = PlaybookNote::last(&root)?;
        if let Some((_, note)) = &found {
            root = super::child::revive(hands, session, note, root)?;
        } else if playbook.has_children() {
            playbook.check_depth(hands.spawn(&root)?.max_depth)?;
        }
        let id = found.as_ref().map_or(&playbook.start, |(_, note)| &note.node);
        let node = playbook.node(id).ok_or_else(|| gone(playbook, id))?;
        let vars = Variables::begin(&playbook.vars, given);
        let mut course = Self {
            playbook,
            session,
            hands,
            root,
            children: Vec::new(),
            vars,
            vars_at: None,
            node,
            taken: None,
            answers: None,
            backs: 0,
            in_doubt: false,
            unsettled: 0,
            own_calls: 0,
        };
        if let Some((seq, note)) = found {
            course.take_up(seq, note, given)?;
        }
        Ok(course)
    }

    /// Goes on where a note says.
    fn take_up(&mut self, seq: Seq, note: PlaybookNote, given: &Map<String, Value>) -> Result<()> {
        if note.digest != self.playbook.digest {
            let (playbook, node) = (self.playbook.name.as_str(), note.node.as_str());
            tracing::warn!(
                playbook,
                node,
                "the playbook was changed since; it goes on at the node of the same id"
            );
        }
        self.vars = Variables::taken_up(&self.playbook.vars, given, note.vars(&self.root)?);
        self.vars_at = if note.vars.is_some() { Some(seq) } else { note.vars_at };
        for name in note.stack.iter().skip(1) {
            let thread = ThreadId::new(name.clone()).map_err(komado_engine::Error::from)?;
            self.children.push(self.hands.open(self.session, &thread)?);
        }
        self.recall(&note)?;
        self.answers = note.answers.as_deref().and_then(|id| self.playbook.node(id));
        if matches!(self.node.does, NodeAction::End { .. }) && self.was_ended_since(seq)? {
            // A user opened the session again: the work begins anew, after all that was said.
            return self.go(&self.playbook.start);
        }
        self.in_doubt = !note.resting;
        self.taken = Some(note);
        Ok(())
    }

    /// Reads again what the last turn and the last call left behind.
    fn recall(&mut self, note: &PlaybookNote) -> Result<()> {
        for (place, is_reply) in [(&note.said, true), (&note.told, false)] {
            let Some((thread, seq)) = place else { continue };
            let name = ThreadId::new(thread.clone()).map_err(komado_engine::Error::from)?;
            let thread = self.hands.engine().open(self.session, &name, OpenMode::Read)?;
            let Entry::Message(message, reply) = thread.record(*seq)?.entry else { continue };
            let place = (name.to_string(), *seq);
            match (is_reply, message.outcome()) {
                (true, _) => self.vars.said(place, &message, &reply.unwrap_or_default().finish),
                (false, Some(outcome)) => self.vars.told(place, &message.words(), outcome),
                (false, None) => {}
            }
        }
        Ok(())
    }

    /// True when the session was ended, and opened again, after the entry `seq`.
    fn was_ended_since(&self, seq: Seq) -> Result<bool> {
        for seq in seq + 1..=self.root.last() {
            if self.root.source().head(seq)?.kind == Kind::Close
                && let Entry::Close(close) = self.root.record(seq)?.entry
                && close.ending != Ending::Paused
            {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Goes from node to node, to the end.
    fn walk(&mut self) -> Result<PlaybookEnd> {
        loop {
            let node = self.node;
            let thread = self.active().id().clone();
            self.hands.entered(&node.id, node.label.as_deref(), &thread);
            let mut next = node.next.as_str();
            match &node.does {
                NodeAction::Llm(prompt) => self.llm(prompt.as_ref())?,
                NodeAction::Calls => next = self.calls()?,
                NodeAction::Tool { tool, args } => next = self.tool(tool, args)?,
                NodeAction::Branch { cases, other } => {
                    next = cases.iter().find(|(cond, _)| cond.holds(&self.vars)).map_or(other, |(_, to)| to);
                }
                NodeAction::Set(vars) => self.set(vars)?,
                NodeAction::Start(start) => self.start_child(start)?,
                NodeAction::Stop { generate_chronicle } => self.stop_child(*generate_chronicle)?,
                NodeAction::End { is_good, result } => match self.way_back()? {
                    Some(back) => next = back,
                    None => return self.end(*is_good, result.as_ref()),
                },
            }
            self.go(next)?;
        }
    }

    fn go(&mut self, id: &str) -> Result<()> {
        self.node = self.playbook.node(id).ok_or_else(|| gone(self.playbook, id))?;
        self.taken = None;
        Ok(())
    }

    fn set(&mut self, vars: &[(String, Assignment)]) -> Result<()> {
        let mut values = Vec::with_capacity(vars.len());
        for (name, assign) in vars {
            let value = match assign {
                Assignment::To(form) => form.fill(&self.vars).map_err(|unset| self.unset(unset))?,
                Assignment::Add(of, by) => self.sum(of, by)?,
            };
            values.push((name, value));
        }
        values.into_iter().for_each(|(name, value)| self.vars.set(name, value));
        // Here, and not where they are noted next: a chain of these could double a text until no memory holds it.
        self.vars.check().map_err(|why| self.wrong(why))
    }

    /// A variable, and so much more. Whole numbers stay whole.
    fn sum(&self, of: &str, by: &Number) -> Result<Value> {
        let had = self.vars.value(of).unwrap_or_else(|| Value::from(0));
        let sum = match (had.as_i64(), by.as_i64()) {
            (Some(had), Some(by)) => had.checked_add(by).map(Value::from),
            _ => had
                .as_f64()
                .zip(by.as_f64())
                .and_then(|(had, by)| Number::from_f64(had + by))
                .map(Value::Number),
        };
        sum.ok_or_else(|| self.wrong(format!("{by} cannot be added to the variable {of:?}, which is {had}")))
    }

    fn end(&mut self, is_good: bool, result: Option<&Template>) -> Result<PlaybookEnd> {
        // No order and no limit keeps from its end what is done.
        if self.taken.take().is_none() {
            self.note(None, None)?;
        }
        let result = match result {
            Some(result) => self.fill(result)?,
            None => {
                self.vars.value("last").and_then(|last| last.as_str().map(str::to_owned)).unwrap_or_default()
            }
        };
        Ok(PlaybookEnd { node: self.node.id.clone(), is_good, result, vars: self.vars.all() })
    }

    /// One more call of the playbook's own, unless it goes round and round.
    pub(super) fn count_call(&mut self) -> Result<()> {
        self.own_calls += 1;
        if self.own_calls <= MOST_CALLS {
            return Ok(());
        }
        Err(self.wrong(format!(
            "the playbook made {MOST_CALLS} calls of its own and never asked the model: it goes round; put an \"llm\" node into \
             the loop, or a condition that ends it"
        )))
    }

    /// The thread that nodes work in now.
    pub(super) fn active(&mut self) -> &mut Thread<'e> {
        self.children.last_mut().unwrap_or(&mut self.root)
    }

    /// The threads, the root first.
    fn stack(&self) -> Vec<String> {
        let all = std::iter::once(&self.root).chain(&self.children);
        all.map(|thread| thread.id().to_string()).collect()
    }

    /// Orders, limits and news, before a node acts.
    pub(super) fn between(&mut self, next: NextStep) -> Result<()> {
        let thread = self.children.last_mut().unwrap_or(&mut self.root);
        let next = if thread.view().open().calls.is_empty() { next } else { NextStep::Other };
        self.hands.between(thread, next)
    }

    /// Notes that this node is about to act, and says `message` in the active thread: in one write where that is the root.
    /// Gives the last entry before.
    pub(super) fn note(&mut self, child: Option<&ThreadId>, message: Option<Message>) -> Result<Seq> {
        self.settle_now_and_then();
        let note = self.here(child)?;
        let (at, seq) = (note.at, self.root.last() + 1);
        match (message, self.children.last_mut()) {
            (Some(message), None) => {
                self.root.say_noting(ABOUT, note.raw()?, vec![message])?;
            }
            (Some(message), Some(child)) => {
                self.root.note(ABOUT, note.raw()?)?;
                child.say(message)?;
            }
            (None, _) => {
                self.root.note(ABOUT, note.raw()?)?;
            }
        }
        if note.vars.is_some() {
            self.vars_at = Some(seq);
            self.vars.are_noted();
        }
        Ok(at)
    }

    /// Notes that the calls that wait were not begun. What goes wrong here keeps no task from resting: then the first of
    /// them is in doubt.
    pub(super) fn note_rest(&mut self) {
        let Ok(Some((_, note))) = PlaybookNote::last(&self.root) else { return };
        let note = PlaybookNote { vars: None, vars_at: self.vars_at, resting: true, ..note };
        if let Err(why) = note.raw().and_then(|raw| Ok(self.root.note(ABOUT, raw)?)) {
            tracing::warn!(why = %why, "it could not be noted that the task rests");
        }
    }

    /// The note about this node now.
    fn here(&mut self, child: Option<&ThreadId>) -> Result<PlaybookNote> {
        let vars = self.vars.to_note().map_err(|why| self.wrong(why))?;
        Ok(PlaybookNote {
            playbook: self.playbook.name.clone(),
            digest: self.playbook.digest.clone(),
            node: self.node.id.clone(),
            stack: self.stack(),
            at: self.active().last(),
            vars_at: self.vars_at.filter(|_| vars.is_none()),
            vars,
            said: self.vars.said.clone(),
            told: self.vars.told.clone(),
            child: child.map(ToString::to_string),
            answers: self.answers.map(|node| node.id.clone()),
            resting: false,
        })
    }

    fn settle_now_and_then(&mut self) {
        self.unsettled += 1;
        if self.unsettled >= SETTLED_AFTER.max(self.active().last() / SETTLED_PART) {
            self.settle();
        }
    }

    /// Brings what is derived from the journals up to date. The journals are right in any case.
    pub(super) fn settle(&mut self) {
        self.unsettled = 0;
        for thread in std::iter::once(&mut self.root).chain(&mut self.children) {
            if let Err(why) = thread.settle() {
                tracing::warn!(thread = %thread.id(), why = %why, "what is derived from the journal is behind");
            }
        }
    }

    /// A template, filled.
    pub(super) fn fill(&self, template: &Template) -> Result<String> {
        template.fill(&self.vars).map_err(|unset| self.unset(unset))
    }

    pub(super) fn unset(&self, UnsetVariable(name): UnsetVariable) -> crate::Error {
        self.wrong(format!(
            "the variable {name:?} is not set: set it in a node before, or give it when it runs"
        ))
    }

    /// Something is wrong at this node.
    pub(super) fn wrong(&self, why: impl Into<String>) -> crate::Error {
        let place = super::read::place_of(&format!("playbook {}", self.playbook.name), &self.node.id);
        Bad::bad(place, why).into()
    }
}

/// What a node says to the model.
pub(super) fn user(text: String) -> Message {
    Message::text(Role::User, text)
}

fn gone(playbook: &Playbook, id: &str) -> crate::Error {
    let why = format!(
        "the session stands at the node {id:?}, which this playbook does not have: run the one it was begun with, or put \
         the node back"
    );
    Bad::bad(format!("playbook {}", playbook.name), why).into()
}

// The `llm` node: something is said, if need be, and the model answers.

/// What the reply of a thread to itself is called, when no model could take the request.
const OVERFLOW: &str = "overflow";

impl<'p> PlaybookRun<'p, '_, '_> {
    fn llm(&mut self, prompt: Option<&Template>) -> Result<()> {
        // One that says nothing itself answers whatever was said. One in a child thread is gone with its thread.
        if prompt.is_none() && self.children.is_empty() {
            self.answers = Some(self.node);
        }
        let prompt = prompt.map(|prompt| self.fill(prompt)).transpose()?;
        if prompt.as_ref().is_some_and(|prompt| prompt.trim().is_empty()) {
            return Err(self.wrong("its prompt is empty once its variables are put in"));
        }
        match self.taken.take() {
            Some(note) => {
                if let Some((seq, message, reply)) = reply_after(self.active(), note.at)? {
                    self.heard(seq, &message, &reply);
                    return Ok(());
                }
                self.between(NextStep::Turn)?;
                let active = self.active();
                if let Some(prompt) = prompt
                    && !is_said_after(active, note.at, &prompt)?
                {
                    active.say(user(prompt))?;
                }
            }
            None => {
                self.between(NextStep::Turn)?;
                self.note(None, prompt.map(user))?;
            }
        }
        let thread = self.children.last_mut().unwrap_or(&mut self.root);
        let turned = self.hands.turn(thread)?;
        // The model was asked: its limits count.
        (self.own_calls, self.in_doubt) = (0, false);
        if turned.is_ours {
            return Err(self.wrong(format!("the model could not be asked: {}", turned.message.words())));
        }
        self.heard(turned.seq, &turned.message, &turned.reply);
        Ok(())
    }

    fn heard(&mut self, seq: Seq, message: &Message, reply: &Reply) {
        let place = (self.active().id().to_string(), seq);
        self.vars.said(place, message, &reply.finish);
        if let Some(name) = &self.node.save_as {
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

/// True when exactly this was said after an entry.
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

// The way back from the end: a comment came while the model said what it took for its last words.
//
// The course goes back to the `llm` node that was asked last of those that have no prompt of their own: such a node answers
// whatever was said. One with a prompt would say that again, so a playbook that has no other cannot go back.

/// How often a run goes back at most: an author who answers each of a task's words would keep it from ending.
const MOST: u32 = 10;

impl<'p> PlaybookRun<'p, '_, '_> {
    /// The node to go back to; `None` when this is the end, or when the journal says already that it was.
    pub(super) fn way_back(&mut self) -> Result<Option<&'p str>> {
        if self.taken.is_some() {
            return Ok(None);
        }
        let back = self.answers.filter(|_| self.children.is_empty() && self.backs < MOST);
        let thread = self.children.last_mut().unwrap_or(&mut self.root);
        let words_wait = self.hands.before_end(thread, back.is_some())?;
        self.backs += u32::from(words_wait);
        Ok(back.filter(|_| words_wait).map(|node| node.id.as_str()))
    }
}

// Where a playbook stands, as the root thread's journal has it.

/// What the notes of playbooks are about.
pub const ABOUT: &str = "playbook";

/// A note: written before a node acts.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub(super) struct PlaybookNote {
    pub(super) playbook: String,
    pub(super) digest: String,
    /// The node that is about to act.
    pub(super) node: String,
    /// The threads it works in, the root first.
    pub(super) stack: Vec<String>,
    /// The last entry of the last of them before the node acted.
    pub(super) at: Seq,
    /// The variables, when they changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) vars: Option<Map<String, Value>>,
    /// The note that has them, when they did not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) vars_at: Option<Seq>,
    /// The last reply of the model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) said: Option<EntryPlace>,
    /// The last answer of a tool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) told: Option<EntryPlace>,
    /// The thread that is about to be begun.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) child: Option<String>,
    /// The last node that answers whatever was said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) answers: Option<String>,
    /// True when the worker that wrote it rests, and has begun none of the calls that wait.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) resting: bool,
}

impl PlaybookNote {
    /// As it is kept.
    pub(super) fn raw(&self) -> Result<RawJson> {
        let text = serde_json::to_string(self).and_then(RawJson::parse);
        text.map_err(|why| Error::Io(why.into()))
    }

    /// The last one in the root thread, and its entry.
    pub(super) fn last(root: &Thread<'_>) -> Result<Option<(Seq, Self)>> {
        let Some((seq, raw)) = root.noted(ABOUT)? else { return Ok(None) };
        Ok(Some((seq, read(root, seq, &raw)?)))
    }

    /// The variables that it, or the one before it that it names, has.
    pub(super) fn vars(&self, root: &Thread<'_>) -> Result<Map<String, Value>> {
        if let Some(vars) = &self.vars {
            return Ok(vars.clone());
        }
        let Some(seq) = self.vars_at else { return Ok(Map::new()) };
        match root.record(seq)?.entry {
            komado_core::journal::Entry::Note { value, .. } => {
                Ok(read(root, seq, &value)?.vars.unwrap_or_default())
            }
            _ => Ok(Map::new()),
        }
    }
}

/// True when the worker that followed a playbook rests, and has begun none of the calls that wait.
pub(crate) fn rests(root: &Thread<'_>) -> Result<bool> {
    Ok(PlaybookNote::last(root)?.is_some_and(|(_, note)| note.resting))
}

fn read(root: &Thread<'_>, seq: Seq, raw: &RawJson) -> Result<PlaybookNote> {
    serde_json::from_str(raw.get()).map_err(|why| {
        let place = format!("{}/root@{seq}", root.session());
        let why = format!(
            "the note of where the playbook stood cannot be read ({why}); `komado rewind` goes back before it"
        );
        Bad::bad(place, why).into()
    })
}
