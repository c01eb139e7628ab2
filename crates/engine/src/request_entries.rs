//! The journal's entries about requests to a model: that one is about to leave, and that it brought no answer.
//!
//! The only place where they are made. It knows no wire: a summary that another program writes is announced, too.

use crate::error::Result;
use crate::thread::Thread;
use komado_core::journal::{Entry, Mark, Record, Reply, Sent, Usage};
use komado_core::{Kind, Seq};

/// What a request is for.
pub(crate) enum Purpose<'a> {
    /// The next message of the conversation: the digest of the request, and where its client's transcript stands.
    Answer(&'a str, Option<Mark>),
    /// Something else, asked in as many requests as it takes.
    Apart(&'a str),
}

/// The entry that announces a request which shows `tokens`.
pub(crate) fn sent(model: &str, tokens: u64, purpose: Purpose<'_>) -> Entry {
    let (digest, purpose, mark) = match purpose {
        Purpose::Answer(digest, mark) => (digest.to_owned(), None, mark),
        Purpose::Apart(purpose) => (String::new(), Some(purpose.to_owned()), None),
    };
    Entry::Sent(Sent { digest, model: model.to_owned(), context_tokens: tokens, purpose, mark })
}

/// The entry of a request that brought no message.
pub(crate) fn lost(to: Seq, model: &str, finish: &str, why: String, usage: Option<Usage>) -> Entry {
    Entry::Lost(Reply { error: Some(why), ..reply(Some(to), Some(model.to_owned()), finish, usage) })
}

/// What is said of an answer: to which request it is, by which model, how it ended and what it took.
pub(crate) fn reply(to: Option<Seq>, model: Option<String>, finish: &str, usage: Option<Usage>) -> Reply {
    Reply { to, model, usage, finish: finish.to_owned(), error: None, heard: None, id: None }
}

impl Thread<'_> {
    /// A request whose process ended before the answer came is given up: the journal says so before the next one.
    pub(crate) fn give_up_earlier(&mut self) -> Result<()> {
        use Kind::{Anchor, AnchorUpdate, Heard, Note, Pin, Setup, Share, System, Tell, Tool, Unpin, User};
        let is_between = |kind| {
            matches!(kind, User | Tool | System | Setup | Pin | Unpin | Share | Tell | Heard)
                || matches!(kind, Anchor | AnchorUpdate | Note)
        };
        let last = self.newest(|kind| !is_between(kind), Some)?;
        let Some(Record { seq, entry: Entry::Sent(Sent { model, .. }), .. }) = last else { return Ok(()) };
        let why = "the process ended before an answer came".to_owned();
        self.append(lost(seq, &model, "lost", why, None)).map(|_| ())
    }
}
