//! Reading on in an output of which the model was shown a part.
//!
//! An [`OutputReference`] names an output: by the id of its blob, or by the entry that holds or names it. [`read`](read::read)
//! gives numbered lines, [`grep`](grep::grep) finds, [`line`](fn@line) gives characters of one line. All of them stream:
//! memory is bounded, whether the output is a gigabyte of lines or one line of a gigabyte, and so is what they give
//! back. They only look; nothing here changes a thread, but for `say`, by which a long output comes in.

use crate::thread::Thread;
use arguments::{BadArgument, ToolArguments};
use grep::{GrepPattern, GrepSearch};
use komado_core::clip::{CHARS, ClipLimits, Clipper, GREP, LINE, LINES, READ, ReadOnCall, clip};
use komado_core::journal::Entry;
use komado_core::message::{ImageSource, Message, MessagePart, OutputRef, Role, ToolOutcome};
use komado_core::{Kind, Seq, ThreadId};
use komado_store::OpenMode;
use read::{LineStretch, OutputPage, line};
use std::fmt::{Display, Formatter};
use std::io;
use std::io::{Cursor, Read};

pub mod arguments;
pub mod grep;
pub mod read;

/// What a reading gives: text that ends with a note, and how to read on.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct OutputReading {
    /// What the model is given.
    pub text: String,
    /// The call that gives what follows, when something does.
    pub next: Option<ReadOnCall>,
}

/// Names an output.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum OutputReference {
    /// A blob, by its id.
    Blob(String),
    /// An entry: the output it names, or else its own words.
    Entry(Seq),
    /// An entry of another thread of the session.
    Elsewhere(ThreadId, Seq),
}

impl Display for OutputReference {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Blob(id) => f.write_str(id),
            Self::Entry(seq) => write!(f, "@{seq}"),
            Self::Elsewhere(thread, seq) => write!(f, "{thread}@{seq}"),
        }
    }
}

impl std::str::FromStr for OutputReference {
    type Err = Error;

    fn from_str(given: &str) -> Result<Self> {
        let text = given.trim();
        let bad = || Error::BadReference(given.chars().take(80).collect());
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
pub type OutputBytes = Box<dyn Read + Send>;

/// Opens what `reference` names.
pub fn open(thread: &Thread<'_>, reference: &OutputReference) -> Result<OutputBytes> {
    let seq = match reference {
        OutputReference::Blob(id) => {
            let none = || Error::NoOutput(id.chars().take(80).collect());
            return Ok(Box::new(thread.engine().blob(thread.session(), id)?.ok_or_else(none)?));
        }
        OutputReference::Entry(seq) => *seq,
        OutputReference::Elsewhere(name, seq) if *name == thread.header().thread => *seq,
        OutputReference::Elsewhere(name, seq) => {
            let other = thread.engine().open(thread.session(), name, OpenMode::Read)?;
            return open(&other, &OutputReference::Entry(*seq));
        }
    };
    thread.check_entry(seq)?;
    let record = thread.record(thread.view().result(seq))?;
    let Entry::Message(message, _) = record.entry else {
        return Err(Error::NoWords { seq, kind: format!("{:?}", Kind::of(&record.entry)).to_lowercase() });
    };
    let named = message.outcome().and_then(|outcome| outcome.output_ref.as_ref());
    let kept = named.map(|output| thread.engine().blob(thread.session(), &output.id)).transpose()?.flatten();
    // Of an output that never was here the words are all there is.
    Ok(kept.map_or_else(
        || Box::new(Cursor::new(whole(&message).into_bytes())) as OutputBytes,
        |kept| Box::new(kept),
    ))
}

/// Everything a message says, as text: words, calls with their arguments, and the names of pictures.
pub fn whole(message: &Message) -> String {
    let mut lines = Vec::new();
    message.parts.iter().for_each(|part| tell(part, &mut lines));
    lines.join("\n")
}

fn tell(part: &MessagePart, lines: &mut Vec<String>) {
    match part {
        MessagePart::Text { text, .. } | MessagePart::Reasoning { text, .. } => lines.push(text.clone()),
        MessagePart::Call(call) => lines.push(format!("[Tool Use: {}]\n{}", call.name, call.arguments)),
        MessagePart::Result(outcome) => outcome.content.iter().for_each(|part| tell(part, lines)),
        MessagePart::Image { source: ImageSource::Blob { blob, media_type, byte_size, .. }, .. } => {
            lines.push(format!("[Image {media_type}, {byte_size} bytes; ref={blob}]"));
        }
        MessagePart::Image { source: ImageSource::Url { url }, .. } => lines.push(format!("[Image {url}]")),
        MessagePart::Opaque(opaque) => lines.push(opaque.json.get().to_owned()),
    }
}

// Why an output could not be read, in words a model can act on.

/// What reading gives back.
pub type Result<T> = std::result::Result<T, Error>;

/// Why not.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The thread could not say.
    #[error(transparent)]
    Engine(#[from] crate::Error),
    /// Not a reference.
    #[error(
        "{0:?} names no output: a ref_id is the id that a shortened output ends with, or @ and the number of an entry, such as @12 or root@12"
    )]
    BadReference(String),
    /// Nothing of that name.
    #[error(
        "there is no output {0:?} in this session; copy the ref_id from the end of the shortened output, or name its entry, such as @12 or root@12"
    )]
    NoOutput(String),
    /// An entry without words.
    #[error("@{seq} is a {kind}: only messages can be read")]
    NoWords {
        /// The entry.
        seq: Seq,
        /// What it is.
        kind: String,
    },
    /// Lines count from 1.
    #[error("{0} is 0, but lines count from 1")]
    LineZero(&'static str),
    /// A window of nothing.
    #[error("{0} is 0: that would show nothing; give 1 or more, or leave it out")]
    ShowsNothing(&'static str),
    /// A line after the last.
    #[error("there is no line {line}: the output has {lines} lines")]
    NoLine {
        /// What was asked for.
        line: u64,
        /// How many there are.
        lines: u64,
    },
    /// A character after the last.
    #[error(
        "line {line} has {chars} characters: after {offset} of them nothing is left; give a smaller char_offset"
    )]
    NoChars {
        /// The line.
        line: u64,
        /// Its characters.
        chars: u64,
        /// What was asked for.
        offset: u64,
    },
    /// A search for nothing.
    #[error("the pattern is empty; say what to look for")]
    NoPattern,
    /// More than can be looked for in good time.
    #[error("the pattern has {bytes} bytes, and {most} is the most; a part of it will do")]
    LongPattern {
        /// Its bytes.
        bytes: usize,
        /// The most.
        most: usize,
    },
    /// Not a regular expression.
    #[error(
        "not a regular expression: {0}\nput it right, or leave out regex to search for the text as it is"
    )]
    BadPattern(#[from] regex::Error),
    /// No such tool.
    #[error(
        "there is no tool {0:?} here; there are tool_output_cache, tool_output_cache_grep and tool_output_cache_line"
    )]
    NoTool(String),
    /// Arguments that are none.
    #[error(transparent)]
    BadArguments(#[from] BadArgument),
    /// The bytes could not be read.
    #[error("cannot read the output: {0}")]
    Io(#[from] std::io::Error),
}

// How a long output is taken in: one pass over its bytes, never all of them in memory.
//
// What fits is a message like any other. What does not fit goes to a blob while it is read, and the message holds the
// view of it. The journal is asked first whether it would take the message at all, so that a refusal does not cost a
// gigabyte.

/// What is known of an output besides its bytes.
#[derive(Clone, Debug, Default)]
pub struct ToolOutput {
    /// The call it answers; empty when there is only one it can be.
    pub call_id: String,
    /// The tool, when known.
    pub name: Option<String>,
    /// True when the tool reported an error.
    pub is_error: bool,
    /// How long the tool ran.
    pub duration_ms: Option<u64>,
}

impl ToolOutput {
    /// The message that says `text` of it.
    fn saying(&self, text: String, output_ref: Option<OutputRef>) -> Message {
        let (is_error, duration_ms) = (self.is_error, self.duration_ms);
        let outcome = ToolOutcome::text(&self.call_id, self.name.clone(), text);
        let outcome = ToolOutcome { is_error, output_ref, duration_ms, ..outcome };
        Message::of(Role::Tool, vec![MessagePart::Result(outcome)])
    }
}

impl Thread<'_> {
    /// Journals what a tool printed. Bytes that are no UTF-8 are kept as they are and shown as U+FFFD.
    pub fn say_output(&mut self, output: &ToolOutput, bytes: &mut dyn Read) -> crate::Result<Seq> {
        // Where nothing is clipped all of it is to be in the message, and so in memory.
        let all = ClipLimits { max_message_bytes: usize::MAX, max_line_length: usize::MAX };
        let limits = self.clip().unwrap_or(all);
        let mut begun = Vec::new();
        bytes.take((limits.bytes() as u64).saturating_add(1)).read_to_end(&mut begun)?;
        if let Ok(text) = std::str::from_utf8(&begun)
            && clip(text, &limits, "").is_none()
        {
            return self.say(output.saying(text.to_owned(), None));
        }
        self.batch().say(output.saying(String::new(), None), None)?;
        let mut tee = Tee { from: (&begun[..]).chain(bytes), clipper: Clipper::new(limits) };
        let blob = self.store().put_blob(self.session(), &mut tee)?;
        let view = tee.clipper.finish(&blob.id);
        let text = view.unwrap_or_else(|| String::from_utf8_lossy(&begun).into_owned());
        let whole =
            OutputRef { id: blob.id, byte_size: Some(blob.byte_size), line_count: Some(blob.line_count) };
        self.say(output.saying(text, Some(whole)))
    }
}

/// Shows the clipper what the store reads.
struct Tee<R> {
    from: R,
    clipper: Clipper,
}

impl<R: Read> Read for Tee<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let n = self.from.read(buffer)?;
        self.clipper.push(&buffer[..n]);
        Ok(n)
    }
}

// The three tools that let a model read on, as a provider takes them, and the function that answers their calls.
//
// The definitions are one constant text: a request that offers them stays the same from turn to turn. A call is read
// generously, because models write numbers as strings and add fields of their own; what cannot be meant is refused in
// words that say what to write instead.

/// The definitions, in the form of OpenAI's functions.
pub const DEFINITIONS: &str = include_str!("tools.json");

/// True for the name of one of the three tools.
pub fn is_reader(name: &str) -> bool {
    [READ, GREP, LINE].contains(&name)
}

/// Makes a call of one of the three tools: `arguments` is the JSON the model wrote.
pub fn call(thread: &Thread<'_>, name: &str, arguments: &str) -> Result<String> {
    let request = OutputCall::parse(name, arguments)?;
    Ok(request.answer(thread)?.text)
}

/// A call, understood.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct OutputCall {
    /// The output.
    pub reference: OutputReference,
    /// What to do with it.
    pub ask: OutputAsk,
}

/// What to do with an output.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum OutputAsk {
    /// Read lines.
    Read(OutputPage),
    /// Search.
    Grep(GrepSearch),
    /// Read characters of a line.
    Line(LineStretch),
}

impl OutputCall {
    /// Understands a call.
    pub fn parse(name: &str, arguments: &str) -> Result<Self> {
        let tool = [READ, GREP, LINE].into_iter().find(|tool| *tool == name);
        let Some(tool) = tool else {
            return Err(Error::NoTool(name.chars().take(80).collect()));
        };
        let given = ToolArguments::parse(tool, arguments, r#""ref_id":"@12""#)?;
        let reference = needed(given.text("ref_id"), &given, "ref_id")?.parse()?;
        let ask = match tool {
            READ => OutputAsk::Read(OutputPage {
                offset: given.number("offset")?.unwrap_or(1),
                limit: given.number("limit")?.unwrap_or(LINES),
            }),
            GREP => OutputAsk::Grep(search(&given)?),
            _ => OutputAsk::Line(LineStretch {
                line_number: needed(given.number("line_number"), &given, "line_number")?,
                char_offset: given.number("char_offset")?.unwrap_or(0),
                char_limit: given.number("char_limit")?.unwrap_or(CHARS),
            }),
        };
        Ok(Self { reference, ask })
    }

    /// Carries it out.
    pub fn answer(&self, thread: &Thread<'_>) -> Result<OutputReading> {
        let mut bytes = open(thread, &self.reference)?;
        let limits = thread.clip().unwrap_or_default();
        let name = self.reference.to_string();
        match &self.ask {
            OutputAsk::Read(page) => read::read(&mut bytes, page, &limits, &name),
            OutputAsk::Grep(search) => grep::grep(&mut bytes, search, &limits, &name),
            OutputAsk::Line(stretch) => line(&mut bytes, stretch, &limits, &name),
        }
    }
}

/// What must be there.
fn needed<T>(
    found: std::result::Result<Option<T>, BadArgument>,
    given: &ToolArguments,
    name: &str,
) -> Result<T> {
    Ok(found?.ok_or_else(|| given.bad(format!("{name} is missing")))?)
}

fn search(given: &ToolArguments) -> Result<GrepSearch> {
    let text = needed(given.text("pattern"), given, "pattern")?.to_owned();
    let pattern = if given.flag("regex")? { GrepPattern::Regex(text) } else { GrepPattern::Literal(text) };
    Ok(GrepSearch {
        pattern,
        before: given.number("before")?.unwrap_or(0),
        after: given.number("after")?.unwrap_or(0),
        max_matches: given.number("max_matches")?.unwrap_or(GrepSearch::MATCHES),
        offset: given.number("offset")?.unwrap_or(1),
        char_offset: given.number("char_offset")?.unwrap_or(0),
    })
}
