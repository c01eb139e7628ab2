//! How each API writes a request and an answer; pure, both ways, no sockets.
//!
//! Four halves for each dialect: a request is written ([`Dialect::writer`]) and read ([`Dialect::read`]), an answer is
//! decoded ([`Dialect::decoder`]) and encoded ([`Dialect::encoder`]). What a dialect does not know it keeps and gives
//! back to the same dialect, byte for byte; to another dialect it says nothing of it.

pub mod chat;
mod json;
pub mod messages;
pub mod ollama;
pub mod responses;
mod tools;

use crate::event::ModelEvent;
use crate::lines::{self, LONGEST, LineSplitter, SseSplitter};
use komado_core::journal::{ElementGroup, Setup};
use komado_core::message::{Call, Message};
use komado_core::openai::BlobReader;
use komado_core::raw;
use std::borrow::Cow;
use std::io::{self, Write};
use std::ops::Range;

/// An API.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Hash)]
pub enum Dialect {
    #[default]
    /// OpenAI's chat completions, and everyone who speaks like them.
    Chat,
    /// OpenAI's responses.
    Responses,
    /// Anthropic's messages.
    Messages,
    /// Ollama's chat.
    Ollama,
}

komado_core::names! {
    /// Its name in settings, and in what is kept for it alone.
    Dialect {
        Chat = komado_core::openai::DIALECT, Responses = "responses", Messages = "anthropic",
        Ollama = "ollama",
    }
}

/// In one piece or in many.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum ResponseForm {
    #[default]
    /// Server-sent events, or a line of JSON for each piece.
    Stream,
    /// One JSON object.
    Whole,
}

impl Dialect {
    /// Begins a request; what stands before the messages is written to `out`.
    pub fn writer(self, ask: &ModelRequest<'_>, out: &mut dyn Write) -> io::Result<Box<dyn WriteRequest>> {
        Ok(match self {
            Self::Chat => Box::new(chat::Writer::begin(ask, out)?),
            Self::Responses => Box::new(responses::Writer::begin(ask, out)?),
            Self::Messages => Box::new(messages::Writer::begin(ask, out)?),
            Self::Ollama => Box::new(ollama::Writer::begin(ask, out)?),
        })
    }

    /// Reads a request.
    pub fn read(self, body: &str) -> Result<ParsedRequest, BadRequest> {
        match self {
            Self::Chat => chat::read(body),
            Self::Responses => responses::read(body),
            Self::Messages => messages::read(body),
            Self::Ollama => ollama::read(body),
        }
    }

    /// Reads elements of a transcript that follow on others, as JSON texts. `open` are the calls made before them that
    /// wait for an answer, in order: without them some dialects cannot tell what an answer answers. One without a name waits
    /// no more: it was given up, and its answer may come late.
    pub fn read_elements(self, elements: &[&str], open: &[Call]) -> Result<TranscriptTail, BadRequest> {
        read(self, elements, open)
    }

    /// Like [`Self::read_elements`], for elements that are to be written again next to others of the same transcript: where
    /// they do not name a call by an id, it has none here either.
    pub fn read_told(self, elements: &[&str], open: &[Call]) -> Result<TranscriptTail, BadRequest> {
        read_told(self, elements, open)
    }

    /// Writes messages as elements of a transcript, comma between them, as they stand in a request. Neighbours are
    /// joined where the dialect wants it, and a system message is an element like any other.
    pub fn write_elements(self, messages: &[Message], blobs: &mut dyn BlobReader) -> io::Result<Vec<u8>> {
        write(self, messages, blobs)
    }

    /// The tools of `setup` as a JSON array in this dialect's form; `None` when it names none that this one knows.
    pub fn tools(self, setup: &komado_core::journal::Setup) -> Option<String> {
        tools::tools(setup, self)
    }

    /// Decodes an answer.
    pub fn decoder(self, form: ResponseForm) -> Box<dyn Decode> {
        match self {
            Self::Chat => Box::new(Told::<chat::ChatDecoder>::new(form)),
            Self::Responses => Box::new(Told::<responses::ResponsesDecoder>::new(form)),
            Self::Messages => Box::new(Told::<messages::MessagesDecoder>::new(form)),
            Self::Ollama => Box::new(Told::<ollama::OllamaDecoder>::new(form)),
        }
    }

    /// Encodes an answer.
    pub fn encoder(self, form: ResponseForm, stamp: ResponseStamp) -> Box<dyn Encode> {
        match self {
            Self::Chat => Box::new(chat::Encoder::new(form, stamp)),
            Self::Responses => Box::new(responses::Encoder::new(form, stamp)),
            Self::Messages => Box::new(messages::Encoder::new(form, stamp)),
            Self::Ollama => Box::new(ollama::Encoder::new(form, stamp)),
        }
    }
}

/// What an answer carries that its events do not: it comes from outside, because codecs have neither clock nor chance.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ResponseStamp {
    /// Seconds since 1970.
    pub created: u64,
    /// The same as RFC 3339, for those who write it so.
    pub created_at: String,
    /// True when the client asked for usage in the stream (`stream_options.include_usage`); others always give it.
    pub usage: bool,
}

/// Where a request is written to, and the blobs that it may name.
pub struct RequestOutput<'a> {
    /// Takes the bytes.
    pub bytes: &'a mut dyn Write,
    /// Reads what is no words.
    pub blobs: &'a mut dyn BlobReader,
}

impl RequestOutput<'_> {
    /// Writes a blob as base64.
    fn blob(&mut self, id: &str) -> io::Result<()> {
        self.blobs.base64(id, self.bytes)
    }
}

impl Write for RequestOutput<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.bytes.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.bytes.flush()
    }
}

/// A request being written, a message at a time; no two messages are held.
pub trait WriteRequest: Send {
    /// Writes the next message. Neighbours are joined where the dialect wants it.
    fn message(&mut self, message: &Message, out: &mut RequestOutput<'_>) -> io::Result<()>;

    /// Writes what stands after the messages.
    fn end(&mut self, out: &mut dyn Write) -> io::Result<()>;
}

/// An answer being read, however its bytes are cut.
pub trait Decode: Send {
    /// Takes bytes in and hands on the events that are now whole.
    fn push(&mut self, bytes: &[u8], each: &mut dyn FnMut(ModelEvent));

    /// No more comes: hands on what is left. Whether the answer was whole is to be seen from [`ModelEvent::Finished`].
    fn end(&mut self, each: &mut dyn FnMut(ModelEvent));
}

/// An answer being written.
///
/// It may be made of several answers, one after the other: a second [`ModelEvent::Begun`] says that the next one comes. The
/// client sees one, with the first one's id; what is open is closed, and indexes go on. Of [`ModelEvent::Usage`] and
/// [`ModelEvent::Finished`] only the last answer's are to be told.
pub trait Encode: Send {
    /// Adds the bytes of one event to `out`.
    fn event(&mut self, event: &ModelEvent, out: &mut Vec<u8>);

    /// Adds what stands at the end. Only for an answer that finished: a broken one just stops.
    fn end(&mut self, out: &mut Vec<u8>);
}

// An answer as it arrives: in pieces, or in one object.
//
// What a piece or the object means is the dialect's ([`Tell`]); how bytes become either is the same for all.

/// A dialect's understanding of an answer, as far as it has come.
trait Tell: Default + Send {
    /// How its stream is cut into pieces.
    type Pieces: Pieces;

    /// True when a stream that begins like an object is taken for one: some servers send one all the same.
    const GUESSES: bool = false;

    /// Takes a piece in: an event with its name, or a line. The last one may be half of one, because the answer was cut.
    fn piece(&mut self, name: &str, data: &str, is_last: bool, each: &mut dyn FnMut(ModelEvent));

    /// Takes the whole answer in.
    fn whole(&mut self, body: &str, each: &mut dyn FnMut(ModelEvent));

    /// The answer is longer than is taken in.
    fn overlong(&mut self, _each: &mut dyn FnMut(ModelEvent)) {}

    /// No piece comes any more.
    fn finish(&mut self, _each: &mut dyn FnMut(ModelEvent)) {}
}

/// Cuts a stream into pieces, each with its name, which may be empty.
trait Pieces: Default + Send {
    /// Takes bytes in.
    fn push(&mut self, bytes: &[u8], each: &mut dyn FnMut(&str, &str));

    /// No more comes.
    fn end(&mut self, each: &mut dyn FnMut(&str, &str));
}

impl Pieces for SseSplitter {
    fn push(&mut self, bytes: &[u8], each: &mut dyn FnMut(&str, &str)) {
        self.push(bytes, each);
    }

    fn end(&mut self, each: &mut dyn FnMut(&str, &str)) {
        self.end(each);
    }
}

impl Pieces for LineSplitter {
    fn push(&mut self, bytes: &[u8], each: &mut dyn FnMut(&str, &str)) {
        self.push(bytes, &mut |line| each("", &lines::text(line)));
    }

    fn end(&mut self, each: &mut dyn FnMut(&str, &str)) {
        self.end(&mut |line| each("", &lines::text(line)));
    }
}

/// An answer being read.
struct Told<T: Tell> {
    body: Body<T::Pieces>,
    answer: T,
    /// True when it failed or finished; nothing after that counts.
    over: bool,
}

enum Body<P> {
    /// Nothing but white space came yet, and it is not known which it is.
    Unknown,
    Stream(P),
    /// Held until all of it is there; `None` when it was too long: an answer with a hole must not be read.
    Whole(Option<Vec<u8>>),
}

impl<T: Tell> Told<T> {
    fn new(form: ResponseForm) -> Self {
        let body = match form {
            ResponseForm::Whole => Body::Whole(Some(Vec::new())),
            ResponseForm::Stream if T::GUESSES => Body::Unknown,
            ResponseForm::Stream => Body::Stream(T::Pieces::default()),
        };
        Self { body, answer: T::default(), over: false }
    }

    fn settle(&mut self, bytes: &[u8]) {
        let first = bytes.iter().find(|byte| !byte.is_ascii_whitespace());
        match (&self.body, first) {
            (Body::Unknown, Some(b'{' | b'[')) => self.body = Body::Whole(Some(Vec::new())),
            (Body::Unknown, Some(_)) => self.body = Body::Stream(T::Pieces::default()),
            _ => {}
        }
    }
}

/// Hands events on up to the one that ends the answer.
fn until_over(over: &mut bool, each: &mut dyn FnMut(ModelEvent)) -> impl FnMut(ModelEvent) {
    |event| {
        if !*over {
            *over = matches!(event, ModelEvent::Failed(_) | ModelEvent::Finished(_));
            each(event);
        }
    }
}

impl<T: Tell> Decode for Told<T> {
    fn push(&mut self, bytes: &[u8], each: &mut dyn FnMut(ModelEvent)) {
        self.settle(bytes);
        let (answer, each) = (&mut self.answer, &mut until_over(&mut self.over, each));
        match &mut self.body {
            Body::Unknown | Body::Whole(None) => {}
            Body::Stream(pieces) => {
                pieces.push(bytes, &mut |name, data| answer.piece(name, data, false, each));
            }
            Body::Whole(Some(held)) if held.len() + bytes.len() <= LONGEST => held.extend_from_slice(bytes),
            Body::Whole(held) => {
                *held = None;
                answer.overlong(each);
            }
        }
    }

    fn end(&mut self, each: &mut dyn FnMut(ModelEvent)) {
        let (answer, each) = (&mut self.answer, &mut until_over(&mut self.over, each));
        match &mut self.body {
            Body::Unknown => {}
            Body::Stream(pieces) => {
                pieces.end(&mut |name, data| answer.piece(name, data, true, each));
                answer.finish(each);
            }
            Body::Whole(held) => answer.whole(&lines::text(&held.take().unwrap_or_default()), each),
        }
    }
}

// One answer made of several: where the next one begins.
//
// A gateway that answers some of the model's calls itself asks again, and the client is to see one answer. It begins
// once, and where content is one text for all of it, words of the next answer are parted from those before.

/// Between the words of two answers.
const BETWEEN: &str = "\n\n";

/// What was said so far, for answers whose content is one text.
#[derive(Debug, Default)]
struct Parting {
    begun: bool,
    spoke: bool,
    due: bool,
}

impl Parting {
    /// The event as it is to be told; `None` when it is not: an answer begins once.
    fn told<'a>(&mut self, event: &'a ModelEvent) -> Option<Cow<'a, ModelEvent>> {
        match event {
            ModelEvent::Begun { .. } if self.begun => {
                self.due = self.spoke;
                return None;
            }
            ModelEvent::Begun { .. } => self.begun = true,
            ModelEvent::Text(text) if !text.is_empty() => {
                self.spoke = true;
                if std::mem::take(&mut self.due) {
                    return Some(Cow::Owned(ModelEvent::Text(format!("{BETWEEN}{text}"))));
                }
            }
            _ => {}
        }
        Some(Cow::Borrowed(event))
    }
}

// Elements of a transcript on their own: the part of a request that is new, or the part that is shown otherwise.
//
// Read in the light of what came before, they say what they say in the whole; written, they stand in a request as its
// writer would have put them. It refuses to guess what came before: who asks says which calls still wait.

/// Elements, read.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct TranscriptTail {
    /// What they say. A system prompt among them is a message here.
    pub messages: Vec<Message>,
    /// How many elements became how many messages, in order, all of both. Groups that are alike stand together.
    pub groups: Vec<ElementGroup>,
}

/// What a dialect read: messages, and which of them each element became, or became a part of.
#[derive(Debug, Default)]
struct Read {
    messages: Vec<Message>,
    became: Vec<Range<usize>>,
}

impl Read {
    /// Messages each of which is one element.
    fn one_by_one(messages: Vec<Message>) -> Self {
        Self { became: (0..messages.len()).map(|at| at..at + 1).collect(), messages }
    }
}

fn read(dialect: Dialect, elements: &[&str], open: &[Call]) -> Result<TranscriptTail, BadRequest> {
    let waiting: Vec<Call> = open.iter().filter(|call| !call.name.is_empty()).cloned().collect();
    for (i, element) in elements.iter().enumerate() {
        raw::check(element).map_err(|why| BadRequest::new(format!("element {i}"), why))?;
    }
    let read = match dialect {
        Dialect::Chat => chat::read_elements(elements, &waiting),
        Dialect::Responses => responses::read_elements(elements, open),
        Dialect::Messages => messages::read_elements(elements),
        Dialect::Ollama => ollama::read_elements(elements, &waiting),
    }?;
    Ok(TranscriptTail { groups: groups(&read.became), messages: read.messages })
}

/// Elements as the client has them: no id is made up for what it does not name.
fn read_told(dialect: Dialect, elements: &[&str], open: &[Call]) -> Result<TranscriptTail, BadRequest> {
    let mut tail = read(dialect, elements, open)?;
    let told = tail.messages.iter_mut().zip(elements);
    match dialect {
        Dialect::Chat => told.for_each(|(message, text)| chat::as_told(message, text)),
        Dialect::Ollama => told.for_each(|(message, text)| ollama::as_told(message, text)),
        Dialect::Responses | Dialect::Messages => {}
    }
    Ok(tail)
}

/// The smallest groups that hold every message of their elements and every element of their messages.
fn groups(became: &[Range<usize>]) -> Vec<ElementGroup> {
    // The first message that any element from here on became.
    let mut ahead = vec![usize::MAX; became.len() + 1];
    for (i, messages) in became.iter().enumerate().rev() {
        let own = if messages.is_empty() { usize::MAX } else { messages.start };
        ahead[i] = own.min(ahead[i + 1]);
    }
    let mut groups: Vec<ElementGroup> = Vec::new();
    let (mut from, mut told, mut upto) = (0, 0, 0);
    for (i, messages) in became.iter().enumerate() {
        if !messages.is_empty() {
            upto = upto.max(messages.end);
        }
        if upto > ahead[i + 1] {
            continue;
        }
        let (elements, entries) = (count(i + 1 - from), count(upto - told));
        match groups.last_mut() {
            Some(last) if (last.elements, last.entries) == (elements, entries) => last.times += 1,
            _ => groups.push(ElementGroup { elements, entries, times: 1 }),
        }
        (from, told) = (i + 1, upto);
    }
    groups
}

fn count(many: usize) -> u32 {
    u32::try_from(many).unwrap_or(u32::MAX)
}

fn write(dialect: Dialect, messages: &[Message], blobs: &mut dyn BlobReader) -> io::Result<Vec<u8>> {
    match dialect {
        Dialect::Chat => write_with(&mut chat::Writer::of_elements(), messages, blobs),
        Dialect::Responses => write_with(&mut responses::Writer::of_elements(), messages, blobs),
        Dialect::Ollama => write_with(&mut ollama::Writer::of_elements(), messages, blobs),
        Dialect::Messages => {
            let mut writer = messages::Writer::of_elements();
            let mut out = write_with(&mut writer, messages, blobs)?;
            writer.close(&mut out)?;
            Ok(out)
        }
    }
}

fn write_with(
    writer: &mut impl WriteRequest,
    messages: &[Message],
    blobs: &mut dyn BlobReader,
) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let mut out = RequestOutput { bytes: &mut bytes, blobs };
    messages.iter().try_for_each(|message| writer.message(message, &mut out))?;
    Ok(bytes)
}

// What is asked of a model, beside the messages themselves.

/// Everything in a request that is not a message of the conversation.
#[derive(Clone, Copy, Debug)]
pub struct ModelRequest<'a> {
    /// The model.
    pub model: &'a str,
    /// System prompt, tools and parameters.
    pub setup: &'a Setup,
    /// The longest answer wanted; over the one in the parameters.
    pub max_tokens: Option<u64>,
    /// True when the answer should come in pieces.
    pub stream: bool,
    /// The window to ask for, where a dialect lets one choose (Ollama's `num_ctx`).
    pub window: Option<u64>,
    /// Whether the model may call tools.
    pub tools: ToolUse,
    /// True when the server refuses fields that are not its own.
    pub is_strict: bool,
    /// True when neighbouring texts of the user are to be one message: some models' templates refuse two.
    pub joins: bool,
}

/// Whether the model may call tools.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum ToolUse {
    /// As the setup says.
    #[default]
    AsSetUp,
    /// They are named, so that the prompt is the one the provider has cached, but none may be called.
    NamedOnly,
}

/// A request, read.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ParsedRequest {
    /// The model asked.
    pub model: String,
    /// System prompt, tools and every parameter that is not named here, in the dialect's own form.
    pub setup: Setup,
    /// The conversation. A system prompt that leads it is in `setup`, not here.
    pub messages: Vec<Message>,
    /// The longest answer wanted.
    pub max_tokens: Option<u64>,
    /// True when the answer should come in pieces.
    pub stream: bool,
}

/// Why a request cannot be read.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{place}: {why}")]
pub struct BadRequest {
    /// Where, such as `messages[3]`.
    pub place: String,
    /// What is wrong there.
    pub why: String,
}

impl BadRequest {
    /// Something is wrong at `place`.
    pub fn new(place: impl Into<String>, why: impl ToString) -> Self {
        Self { place: place.into(), why: why.to_string() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct NoBlobs;

    impl BlobReader for NoBlobs {
        fn base64(&mut self, _: &str, _: &mut dyn io::Write) -> io::Result<()> {
            Err(io::ErrorKind::NotFound.into())
        }
    }

    #[test]
    fn what_names_no_call_names_none_when_it_is_written_again() {
        let cases = [
            (Dialect::Ollama, r#"{"role":"tool","content":"ok"}"#),
            (Dialect::Ollama, r#"{"role":"tool","content":"ok","tool_name":"read"}"#),
            (Dialect::Ollama, r#"{"role":"tool","content":"ok","tool_name":"read","tool_call_id":"c7"}"#),
            (
                Dialect::Ollama,
                r#"{"role":"assistant","content":"","tool_calls":[{"function":{"name":"read","arguments":{}}},{"id":"c8","function":{"name":"read","arguments":{}}}]}"#,
            ),
            (Dialect::Chat, r#"{"role":"function","content":"ok","name":"read"}"#),
            (
                Dialect::Chat,
                r#"{"role":"assistant","content":null,"function_call":{"name":"read","arguments":"{}"}}"#,
            ),
            (Dialect::Chat, r#"{"role":"tool","tool_call_id":"c7","content":"ok"}"#),
        ];
        for (dialect, text) in cases {
            let id = if text.contains("c7") { "c7" } else { "call_0" };
            let (id, name, arguments) = (id.into(), "read".into(), String::new());
            let open = [Call { id, name, arguments, kind: Default::default(), extra: None }];
            let told = read_told(dialect, &[text], &open).unwrap().messages;
            let written = write(dialect, &told, &mut NoBlobs).unwrap();
            assert_eq!(String::from_utf8(written).unwrap(), text);
        }
    }

    #[test]
    fn groups_are_the_smallest_that_hold_all_of_theirs() {
        let shown = |became: &[Range<usize>]| -> Vec<[u32; 3]> {
            groups(became).into_iter().map(<[u32; 3]>::from).collect()
        };
        assert_eq!(shown(&[0..1, 1..2, 2..3]), [[1, 1, 3]]);
        assert_eq!(shown(&[0..1, 0..1, 1..2, 2..3]), [[2, 1, 1], [1, 1, 2]]);
        assert_eq!(shown(&[0..3, 3..4]), [[1, 3, 1], [1, 1, 1]]);
        // The model goes on after the first of two outputs: all five hang together.
        assert_eq!(shown(&[0..1, 0..1, 1..2, 0..1, 2..3, 3..4]), [[4, 2, 1], [1, 1, 2]]);
        assert_eq!(shown(&[1..2, 0..1, 2..3]), [[2, 2, 1], [1, 1, 1]]);
        assert_eq!(shown(&[]), <[[u32; 3]; 0]>::default());
    }
}
