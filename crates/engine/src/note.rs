//! Notes: where whoever works in a thread stands, kept with the words it is about.
//!
//! A worker that is killed is followed by one that knows only the journal. What it needs beside the conversation, such as
//! the node of a playbook or the last comment that was taken in, is noted there, in the same write as the words that go
//! with it: there is no moment in which one is known and the other is not. No model sees a note, and a rewind passes over
//! those that it abandons.

use crate::error::Result;
use crate::thread::Thread;
use komado_core::journal::Entry;
use komado_core::message::Message;
use komado_core::raw::Raw;
use komado_core::{Kind, Seq};

impl Thread<'_> {
    /// Notes a JSON object about something; the last one about it counts.
    pub fn note(&mut self, about: &str, value: Raw) -> Result<Seq> {
        self.append(Entry::Note { about: about.to_owned(), value })
    }

    /// Notes it and says `messages`, in one write.
    pub fn say_noting(&mut self, about: &str, value: Raw, messages: Vec<Message>) -> Result<Vec<Seq>> {
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
    pub fn noted(&self, about: &str) -> Result<Option<(Seq, Raw)>> {
        self.newest(
            |kind| kind == Kind::Note,
            |record| match record.entry {
                Entry::Note { about: of, value } if of == about => Some((record.seq, value)),
                _ => None,
            },
        )
    }
}
