//! Words from one thread of a session to another.
//!
//! The words are in the sender's journal, a note that they wait in the table. The receiver takes them in before its next
//! request: a mark of what was heard and the words themselves, as a user's message, in one batch. A note without words
//! (the sender's process ended in between) is thrown away once something else stands in their place, and words that were heard before the note was taken are not
//! heard twice.

use super::finish::is_passed_over;
use crate::condense::Language;
use crate::error::{Error, Result};
use crate::thread::Thread;
use komado_core::head::Source;
use komado_core::journal::Entry;
use komado_core::message::{Message, Role};
use komado_core::notation::tamed;
use komado_core::thread::Status;
use komado_core::{Kind, Seq, ThreadId};
use komado_store::{Mail, Mode};

/// What a note leads to.
enum Words {
    /// Something new.
    Said(String),
    /// Nothing, or what was heard already.
    None,
    /// It may be about to be said, or cannot be read now.
    Later,
}

impl Thread<'_> {
    /// Tells another thread of the session something; it hears it before its next request. Gives the entry.
    pub fn tell(&mut self, to: &ThreadId, text: &str) -> Result<Seq> {
        self.check_writer()?;
        if text.trim().is_empty() {
            return Err(Error::NoWords { what: "message" });
        }
        self.check_listener(to)?;
        let entry = Entry::Tell { to: to.clone(), text: text.to_owned() };
        self.stage().push(entry.clone(), String::new())?;
        let mail = Mail { from: self.id().clone(), seq: self.last() + 1 };
        self.store().post(self.session(), to, &mail)?;
        self.append(entry)
    }

    fn check_listener(&self, to: &ThreadId) -> Result<()> {
        let deaf = |why| Err(Error::NoListener { thread: to.to_string(), why });
        if to == self.id() {
            return deaf("it is the one that speaks; name another thread");
        }
        let status = self.engine().open_as_left(self.session(), to, Mode::Read)?.status()?;
        match status {
            Status::Active | Status::Paused => Ok(()),
            Status::Completed | Status::Aborted => deaf("it has ended; resume it first"),
        }
    }

    /// Takes in what other threads told this one. Nothing is taken in while calls wait for results, or after the thread was
    /// closed. Gives the messages.
    pub fn hear(&mut self) -> Result<Vec<Seq>> {
        self.check_writer()?;
        let session = self.session().clone();
        let mail = self.store().mail(&session, self.id())?;
        if mail.is_empty() || !self.view().open().calls.is_empty() || self.view().closed().is_some() {
            return Ok(Vec::new());
        }
        let (mut heard, mut taken) = (Vec::new(), Vec::new());
        let mut staged = self.stage();
        for mail in mail {
            let is_known = self.heard_upto(&mail.from)? >= mail.seq;
            let words = if is_known { Ok(Words::None) } else { self.words_of(&mail) };
            let words = match words {
                // Nobody is kept from going on by what another thread's journal has; the note waits.
                Err(error) if is_passed_over(&error) => Words::Later,
                words => words?,
            };
            match words {
                Words::Later => continue,
                Words::None => {}
                Words::Said(words) => {
                    let message = Entry::Message(Message::text(Role::User, words), None);
                    let mark = Entry::Heard { from: mail.from.clone(), upto: mail.seq };
                    staged.push(mark, self.engine().now())?;
                    heard.push(staged.push(message, self.engine().now())?);
                }
            }
            taken.push(mail);
        }
        let work = staged.finish();
        if !heard.is_empty() {
            self.commit(work)?;
        }
        for Mail { from, seq } in &taken {
            self.store().taken(&session, self.id(), from, *seq)?;
        }
        Ok(heard)
    }

    /// What a note leads to.
    fn words_of(&self, Mail { from, seq }: &Mail) -> Result<Words> {
        let journal = self.store().open(self.session(), from, Mode::Read)?;
        if *seq > journal.last() {
            return Ok(Words::Later);
        }
        Ok(match Source::record(&*journal, *seq)?.entry {
            Entry::Tell { to, text } if to == *self.id() => {
                Words::Said(headed(from, journal.header().label.as_deref(), &text))
            }
            _ => Words::None,
        })
    }

    /// The last entry of `from` that was heard; 0 for none.
    fn heard_upto(&self, from: &ThreadId) -> Result<Seq> {
        let mut seq = self.last();
        while seq > 0 {
            let head = self.source().head(seq)?;
            if head.kind == Kind::Heard
                && self.view().on_path(seq)
                && let Entry::Heard { from: whose, upto } = self.record(seq)?.entry
                && whose == *from
            {
                return Ok(upto);
            }
            seq = head.prev_op;
        }
        Ok(0)
    }
}

/// The words, under a line that says whose they are.
fn headed(from: &ThreadId, label: Option<&str>, text: &str) -> String {
    let label =
        label.map(|label| super::anchor::one_line(&tamed(label), 80)).filter(|label| !label.is_empty());
    let who = label.map_or_else(|| from.to_string(), |label| format!("{label} ({from})"));
    match Language::of(text) {
        Language::English => format!("[Message from thread {who}]\n{text}"),
        Language::Japanese => format!("[スレッド {who} からのメッセージ]\n{text}"),
    }
}
