//! Reading on in an output of which the model was shown a part.
//!
//! A [`Reference`] names an output: by the id of its blob, or by the entry that holds or names it. [`read`](read::read)
//! gives numbered lines, [`grep`](grep::grep) finds, [`line`](line::line) gives characters of one line. All of them stream:
//! memory is bounded, whether the output is a gigabyte of lines or one line of a gigabyte, and so is what they give
//! back. They only look; nothing here changes a thread, but for [`say`], the door by which a long output comes in.

pub mod error;
pub mod grep;
pub mod line;
pub mod read;
pub mod say;
mod scan;
pub mod tools;

pub use error::{Error, Result};
pub use say::Output;

use crate::thread::Thread;
use komado_core::clip::Call;
use komado_core::journal::Entry;
use komado_core::message::{ImageSource, Message, Part};
use komado_core::{Kind, Seq, ThreadId};
use komado_store::Mode;
use std::fmt::{Display, Formatter};
use std::io::{Cursor, Read};

/// What a reading gives: text that ends with a note, and how to read on.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Reading {
    /// What the model is given.
    pub text: String,
    /// The call that gives what follows, when something does.
    pub next: Option<Call>,
}

/// Names an output.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Reference {
    /// A blob, by its id.
    Blob(String),
    /// An entry: the output it names, or else its own words.
    Entry(Seq),
    /// An entry of another thread of the session.
    Elsewhere(ThreadId, Seq),
}

impl Display for Reference {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Blob(id) => f.write_str(id),
            Self::Entry(seq) => write!(f, "@{seq}"),
            Self::Elsewhere(thread, seq) => write!(f, "{thread}@{seq}"),
        }
    }
}

impl std::str::FromStr for Reference {
    type Err = Error;

    fn from_str(given: &str) -> Result<Self> {
        let text = given.trim();
        let bad = || Error::BadReference { given: given.chars().take(80).collect() };
        match text.split_once('@') {
            Some((thread, seq)) => {
                let seq = seq.parse().map_err(|_| bad())?;
                match thread {
                    "" => Ok(Self::Entry(seq)),
                    thread => Ok(Self::Elsewhere(ThreadId::new(thread).map_err(|_| bad())?, seq)),
                }
            }
            None if text.is_empty() => Err(bad()),
            None => Ok(Self::Blob(text.to_owned())),
        }
    }
}

/// The bytes of an output, from the beginning.
pub type Bytes = Box<dyn Read + Send>;

/// Opens what `reference` names.
pub fn open(thread: &Thread<'_>, reference: &Reference) -> Result<Bytes> {
    let seq = match reference {
        Reference::Blob(id) => {
            let none = || Error::NoOutput { id: id.chars().take(80).collect() };
            return Ok(Box::new(thread.engine().blob(thread.session(), id)?.ok_or_else(none)?));
        }
        Reference::Entry(seq) => *seq,
        Reference::Elsewhere(name, seq) if *name == thread.header().thread => *seq,
        Reference::Elsewhere(name, seq) => {
            let other = thread.engine().open(thread.session(), name, Mode::Read)?;
            return open(&other, &Reference::Entry(*seq));
        }
    };
    let record = thread.record(seq)?;
    let Entry::Message(message, _) = record.entry else {
        return Err(Error::NoWords { seq, kind: format!("{:?}", Kind::of(&record.entry)).to_lowercase() });
    };
    let named = message.outcome().and_then(|outcome| outcome.output_ref.as_ref());
    let kept = named.map(|output| thread.engine().blob(thread.session(), &output.id)).transpose()?.flatten();
    // Of an output that never was here the words are all there is.
    Ok(kept
        .map_or_else(|| Box::new(Cursor::new(whole(&message).into_bytes())) as Bytes, |kept| Box::new(kept)))
}

/// Everything a message says, as text: words, calls with their arguments, and the names of pictures.
pub fn whole(message: &Message) -> String {
    let mut lines = Vec::new();
    message.parts.iter().for_each(|part| tell(part, &mut lines));
    lines.join("\n")
}

fn tell(part: &Part, lines: &mut Vec<String>) {
    match part {
        Part::Text { text, .. } | Part::Reasoning { text, .. } => lines.push(text.clone()),
        Part::Call(call) => lines.push(format!("[Tool Use: {}]\n{}", call.name, call.arguments)),
        Part::Result(outcome) => outcome.content.iter().for_each(|part| tell(part, lines)),
        Part::Image { source: ImageSource::Blob { blob, media_type, byte_size }, .. } => {
            lines.push(format!("[Image {media_type}, {byte_size} bytes; ref={blob}]"));
        }
        Part::Image { source: ImageSource::Url { url }, .. } => lines.push(format!("[Image {url}]")),
        Part::Opaque(opaque) => lines.push(opaque.json.get().to_owned()),
    }
}
