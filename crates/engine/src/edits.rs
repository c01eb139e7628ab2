//! What is done to a thread beside saying something: edits and their undoing, pins, its end, forks.
//!
//! Every verb appends an entry; nothing that was said is changed or removed. A note says where a worker stands: it is in the
//! same write as the words it goes with, so the next worker finds both or neither. No model sees it, and a rewind passes over
//! notes that it abandons.

use crate::error::{Error, Result};
use crate::lineage;
use crate::thread::{Staged, Thread};
use komado_core::journal::{
    Cause, Close, Edit, EditKind, Ending, Entry, Replace, Reply, Sent, Setup, Show, ShowKind, Usage,
};
use komado_core::message::Message;
use komado_core::raw::RawJson;
use komado_core::thread::{Header, Moment};
use komado_core::{Kind, Seq, Span, ThreadId};

impl Thread<'_> {
    /// Sets system prompt, tools and parameters.
    pub fn set_up(&mut self, setup: Setup) -> Result<Seq> {
        self.said_again(Entry::Setup(setup))
    }

    /// Goes on as if nothing after `to` had happened.
    pub fn rewind(&mut self, to: Seq) -> Result<Seq> {
        self.check_writer()?;
        self.check_moment(to)?;
        // Anchors may say what was true then: every child is looked at again.
        self.store().unsettle(self.session(), self.id())?;
        let seq = self.said_again(Entry::Rewind { to })?;
        self.elders = None;
        // The rewind stands whatever becomes of this; the children stay marked until it is done.
        let _ = self.tend();
        Ok(seq)
    }

    /// Undoes one edit (or one revert) and keeps everything said since.
    pub fn revert(&mut self, target: Seq) -> Result<Seq> {
        self.check_entry(target)?;
        self.append(Entry::Revert { target })
    }

    /// Keeps the unit around `seq` in the view through every edit.
    pub fn pin(&mut self, seq: Seq) -> Result<Seq> {
        self.check_entry(seq)?;
        let span = self.view().unit(self.source(), seq)?.unwrap_or(Span::new(seq, seq));
        self.append(Entry::Pin { span })
    }

    /// Takes the pin around `seq` back.
    pub fn unpin(&mut self, seq: Seq) -> Result<Seq> {
        self.check_entry(seq)?;
        let span = self.view().pins().iter().find(|pin| pin.holds(seq)).copied();
        self.append(Entry::Unpin { span: span.unwrap_or(Span::new(seq, seq)) })
    }

    /// Shows `text` in place of `hide`.
    pub fn condense(&mut self, hide: Vec<Span>, text: &str, rule: &str) -> Result<Seq> {
        self.hide(EditKind::Condense, ShowKind::Summary, hide, text, rule)
    }

    /// Shows a marker in place of `hide`.
    pub fn truncate(&mut self, hide: Vec<Span>, marker: &str, rule: &str) -> Result<Seq> {
        self.hide(EditKind::Truncate, ShowKind::Marker, hide, marker, rule)
    }

    fn hide(
        &mut self,
        kind: EditKind,
        shown: ShowKind,
        hide: Vec<Span>,
        text: &str,
        rule: &str,
    ) -> Result<Seq> {
        let show = vec![Show { kind: shown, text: text.to_owned(), tokens: self.meter().said(text) }];
        self.edit(Edit { kind, hide, show, replace: Vec::new(), cause: because(rule) })
    }

    /// Shows placeholders in place of what single entries say.
    pub fn trim(&mut self, places: Vec<(Seq, String)>, rule: &str) -> Result<Seq> {
        let mut replace = Vec::with_capacity(places.len());
        for (seq, text) in places {
            // A late result stands in the place of the interrupted one.
            let tokens = match self.record(self.view().result(seq))?.entry {
                Entry::Message(message, _) => self.meter().message(&message.saying(&text)),
                // Nothing else can be trimmed; the gate says so.
                _ => 0,
            };
            replace.push(Replace { seq, text, tokens });
        }
        self.edit(Edit {
            kind: EditKind::Trim,
            hide: Vec::new(),
            show: Vec::new(),
            replace,
            cause: because(rule),
        })
    }

    /// Appends an edit with its true numbers: tokens of the view before and after. One that frees nothing is refused, and
    /// so is one that hides the anchor of a child that has not ended.
    pub fn edit(&mut self, mut edit: Edit) -> Result<Seq> {
        let mut trial = self.stage();
        trial.push(Entry::Edit(edit.clone()), String::new())?;
        self.check_anchors(&edit.hide)?;
        edit.cause.before = self.view().tokens();
        edit.cause.after = trial.view().tokens();
        check_gain(&edit)?;
        self.append(Entry::Edit(edit))
    }

    /// Ends or pauses the thread, and says nothing more about it: see [`Thread::finish`] for a spawned one.
    pub fn close(&mut self, ending: Ending, result: Option<String>) -> Result<Seq> {
        if self.header().parent.is_none() {
            return self.append(Entry::Close(Close { ending, result }));
        }
        self.check_writer()?;
        self.put_row()?;
        let seq = self.append(Entry::Close(Close { ending, result }))?;
        self.put_row()?;
        Ok(seq)
    }

    /// Goes on as if the thread had never been closed. What else happened to it since (a pin, a child's end) happens
    /// again. Gives the time of the change, if one was needed.
    pub(crate) fn reopen(&mut self) -> Result<Option<String>> {
        let Some(staged) = self.reopened()? else { return Ok(None) };
        let work = staged.finish();
        let at = work.at.clone();
        self.commit(work)?;
        Ok(at)
    }

    /// The batch that reopens the thread; `None` when it is not closed.
    pub(crate) fn reopened(&self) -> Result<Option<Staged<'_>>> {
        let Some(mut first) = self.view().closed() else { return Ok(None) };
        while let Some(earlier) = self.view_at(first - 1)?.closed() {
            first = earlier;
        }
        let mut again: Vec<(Seq, Entry)> = Vec::new();
        for seq in (first + 1..=self.last()).filter(|seq| self.view().on_path(*seq)) {
            match self.record(seq)?.entry {
                Entry::Revert { target } if target > first => again.retain(|(seq, _)| *seq != target),
                entry if entry.is_op() && !matches!(entry, Entry::Close(_)) => again.push((seq, entry)),
                _ => {}
            }
        }
        let mut staged = self.stage();
        staged.push(Entry::Rewind { to: first - 1 }, self.engine().now())?;
        for (_, entry) in again {
            staged.push(entry, self.engine().now())?;
        }
        Ok(Some(staged))
    }

    /// Makes a thread that shares everything up to `at` with this one. A fork of a spawned thread gets an anchor of its own,
    /// for which its parent must be free to be written.
    pub fn fork(&self, at: Seq, name: ThreadId, label: Option<String>) -> Result<Header> {
        self.check_moment(at)?;
        let (own, store) = (self.header(), self.store());
        // A fork of the shared part goes on from the thread that owns it.
        let thread = match own.base_seq() {
            base if at <= base && base > 0 => lineage::owner(&store.threads(&own.session)?, &own.thread, at),
            _ => own.thread.clone(),
        };
        let header = Header {
            session: own.session.clone(),
            thread: name,
            base: Some(Moment { thread, seq: at }),
            parent: own.parent.clone(),
            label,
            timestamp: self.engine().now(),
        };
        if let Some(parent) = &own.parent {
            return self.fork_child(header, parent);
        }
        store.spawn(&header)?;
        Ok(header)
    }

    /// The last entry that this thread and `other` share, number for number; 0 for none.
    pub fn shared_with(&self, other: &Thread<'_>) -> Result<Seq> {
        if self.session() != other.session() {
            return Ok(0);
        }
        let now = |thread: &Thread<'_>| Moment { thread: thread.header().thread.clone(), seq: thread.last() };
        Ok(lineage::shared(&self.store().threads(self.session())?, now(self), now(other)))
    }
}

/// An edit that makes the view no smaller is none.
pub(crate) fn check_gain(edit: &Edit) -> Result<()> {
    let Cause { before, after, .. } = edit.cause;
    if after < before { Ok(()) } else { Err(Error::NoGain { edit: edit.kind.name(), before, after }) }
}

fn because(rule: &str) -> Cause {
    Cause { rule: rule.to_owned(), ..Cause::default() }
}

impl Thread<'_> {
    /// Notes a JSON object about something; the last one about it counts.
    pub fn note(&mut self, about: &str, value: RawJson) -> Result<Seq> {
        self.append(Entry::Note { about: about.to_owned(), value })
    }

    /// Notes it and says `messages`, in one write.
    pub fn say_noting(&mut self, about: &str, value: RawJson, messages: Vec<Message>) -> Result<Vec<Seq>> {
        let mut batch = self.batch();
        batch.enter(Entry::Note { about: about.to_owned(), value })?;
        for message in messages {
            batch.say(message, None)?;
        }
        let (said, work) = batch.finish();
        self.commit(work)?;
        Ok(said)
    }

    /// The last note about something that is still true, and its entry.
    pub fn noted(&self, about: &str) -> Result<Option<(Seq, RawJson)>> {
        self.newest(
            |kind| kind == Kind::Note,
            |record| match record.entry {
                Entry::Note { about: of, value } if of == about => Some((record.seq, value)),
                _ => None,
            },
        )
    }
}

/// The entry that announces requests beside the conversation: a summary, a chronicle.
pub(crate) fn asked_apart(model: &str, context_tokens: u64, purpose: &str) -> Entry {
    let (model, purpose) = (model.to_owned(), Some(purpose.to_owned()));
    Entry::Sent(Sent { digest: String::new(), model, context_tokens, purpose, mark: None })
}

/// The entry of a request that brought no message.
pub(crate) fn lost(to: Seq, model: &str, finish: &str, why: String, usage: Option<Usage>) -> Entry {
    Entry::Lost(Reply { error: Some(why), ..reply(Some(to), Some(model.to_owned()), finish, usage) })
}

/// What is said of an answer: to which request it is, by which model, how it ended and what it took.
pub(crate) fn reply(to: Option<Seq>, model: Option<String>, finish: &str, usage: Option<Usage>) -> Reply {
    Reply { to, model, usage, finish: finish.to_owned(), error: None, heard: None, id: None }
}
