//! Append: add messages, durably.
//!
//! Messages as JSON lines are taken in as they arrive: what has come is journaled with one write and one sync, and only then are
//! its numbers told. A slow writer gets each number at once, a fast one gets them in bulk.

use crate::address::AtThread;
use crate::{
    Interfaces, OpFault, OpResult, Operation, OperationContext, OperationLabel, OperationProgress,
    PlannedEntries, Route, change,
};
use komado_core::amount::count_of;
use komado_core::clip::clip;
use komado_core::message::{Message, MessagePart, Role, ToolOutcome};
use komado_core::view::ViewWeight;
use komado_core::{Seq, openai};
use komado_engine::engine::ResolvedAddress;
use komado_engine::output::ToolOutput;
use komado_engine::{OnOpenCalls, Thread};
use komado_store::OpenMode;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use std::io::{self, BufRead, BufReader, Read};

/// Add messages to a thread, durably: one by its text, or several, all of them or none. A tool output that is too long is kept
/// whole and shown in part.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[schemars(example = serde_json::json!({ "messages": [{ "role": "user", "content": "窓を直して。" }] }))]
pub struct AppendMessages {
    /// The thread.
    #[serde(flatten)]
    pub at: AtThread,
    /// Messages as OpenAI's chat API has them; in place of text.
    #[schemars(with = "Option<Vec<Chat>>", length(min = 1))]
    pub messages: Option<Vec<Box<RawValue>>>,
    /// The words of one message; in place of messages.
    pub text: Option<String>,
    /// Who says the text; user when left out.
    pub role: Option<Role>,
    /// The call that a tool's text answers.
    pub call: Option<String>,
    /// The text is a tool's error.
    #[serde(default)]
    pub error: bool,
    /// Refuse a message while calls wait, instead of answering them as interrupted.
    #[serde(default)]
    pub strict: bool,
}

/// A message as OpenAI's chat API has it; other fields are kept as they are.
#[derive(JsonSchema)]
#[allow(dead_code, reason = "the message itself is kept")]
#[schemars(inline)]
struct Chat {
    /// Who speaks.
    role: Role,
    /// What is said: a text, or a list of parts.
    content: Option<Content>,
}

#[derive(JsonSchema)]
#[allow(dead_code, reason = "the message itself is kept")]
#[serde(untagged)]
#[schemars(inline)]
enum Content {
    /// A text.
    Text(String),
    /// Parts.
    Parts(Vec<serde_json::Map<String, serde_json::Value>>),
}

/// Messages that are in the journal now.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Appended {
    /// The session.
    pub session: String,
    /// The thread.
    pub thread: String,
    /// The number of the last one.
    pub seq: Seq,
    /// Their numbers, in order.
    pub seqs: Vec<Seq>,
    /// Their tokens.
    pub tokens: u64,
    /// Tokens of the view once they are in it.
    pub context_tokens: u64,
    /// The window of the thread in tokens.
    pub window: Option<u32>,
    /// The command that undoes it.
    pub undo: String,
    /// What fills the window.
    #[serde(skip)]
    pub weight: ViewWeight,
    /// Who spoke, where it was one message.
    #[serde(skip)]
    pub role: Option<Role>,
}

impl Operation for AppendMessages {
    const ABOUT: OperationLabel = OperationLabel::add("append", "Add messages");
    const INTERFACES: Interfaces = Interfaces::everywhere("append", {
        Route { is_once: true, ..Route::make("journal", "/sessions/{session}/threads/{thread}/entries") }
    });
    type Output = Appended;

    fn run(self, context: &OperationContext) -> OpResult<Appended> {
        let messages = self.read()?;
        let found = context.find_now(&self.at)?;
        let mut thread = open(context, &found, self.strict)?;
        let before = thread.last();
        let mut batch = thread.batch();
        for (i, message) in messages.into_iter().enumerate() {
            let told = |error: komado_engine::Error| match self.messages {
                Some(_) => OpFault::from(error).of(&format!("messages[{i}]")),
                None => error.into(),
            };
            batch.say(message, None).map_err(told)?;
        }
        let (seqs, work) = batch.finish();
        let first = seqs.first().copied().unwrap_or_default();
        let line = work.lines().nth((first - before).saturating_sub(1) as usize).unwrap_or_default();
        let line = blake3::hash(line).to_hex().to_string();
        let tokens = seqs.iter().map(|seq| u64::from(work.tokens_of(*seq))).sum();
        let mut appended = told(&thread, &found, before, seqs, tokens)?;
        appended.context_tokens = work.tokens();
        context.plan(&PlannedEntries { seq: first, line, answer: serde_json::to_string(&appended)? })?;
        thread.commit(work)?;
        context.settle(&mut thread);
        appended.role = self.messages.is_none().then(|| self.role.unwrap_or_default());
        appended.weight = *thread.view().weight();
        Ok(appended)
    }
}

/// Adds what a tool printed, which may be more than fits in memory. What can be shown whole loses its last line break.
pub fn append_output(
    context: &OperationContext,
    found: &ResolvedAddress,
    output: &ToolOutput,
    strict: bool,
    from: &mut dyn Read,
) -> OpResult<Appended> {
    let mut thread = open(context, found, strict)?;
    let before = thread.last();
    let limits = thread.clip().unwrap_or_default();
    let mut begun = Vec::new();
    from.take(limits.bytes() as u64 + 1).read_to_end(&mut begun)?;
    let whole = std::str::from_utf8(&begun).ok().filter(|text| clip(text, &limits, "").is_none());
    let seq = match whole {
        Some(text) => thread.say_output(output, &mut without_break(text).as_bytes())?,
        None => thread.say_output(output, &mut (&begun[..]).chain(from))?,
    };
    context.settle(&mut thread);
    let tokens = u64::from(thread.record(seq)?.tokens);
    let appended = told(&thread, found, before, vec![seq], tokens)?;
    Ok(Appended { role: Some(Role::Tool), ..appended })
}

/// A text without its last line break.
fn without_break(text: &str) -> &str {
    let Some(text) = text.strip_suffix('\n') else { return text };
    text.strip_suffix('\r').unwrap_or(text)
}

/// Opens a thread to append to it.
pub(super) fn open<'c>(
    context: &'c OperationContext,
    found: &ResolvedAddress,
    strict: bool,
) -> OpResult<Thread<'c>> {
    let choice = if strict { OnOpenCalls::Refuse } else { OnOpenCalls::Answer };
    Ok(context.open(found, OpenMode::Write)?.on_open_calls(choice))
}

fn told(
    thread: &Thread<'_>,
    found: &ResolvedAddress,
    before: Seq,
    seqs: Vec<Seq>,
    tokens: u64,
) -> OpResult<Appended> {
    let given = thread.config().context_length;
    let portion = thread.portion(given.map(u64::from))?;
    Ok(Appended {
        session: found.session.to_string(),
        thread: found.thread.to_string(),
        seq: seqs.last().copied().unwrap_or(before),
        seqs,
        tokens,
        context_tokens: thread.view().tokens(),
        window: portion.map_or(given, |portion| u32::try_from(portion.window()).ok()),
        // Calls that were answered for it go back, too.
        undo: change::rewind_to(found, before),
        weight: *thread.view().weight(),
        role: None,
    })
}

impl AppendMessages {
    fn read(&self) -> OpResult<Vec<Message>> {
        let is_tool = self.role == Some(Role::Tool);
        if !is_tool && (self.call.is_some() || self.error) {
            return Err(OpFault::usage("--call and --error go with --role tool"));
        }
        match (&self.messages, &self.text) {
            (Some(given), None) if given.is_empty() => {
                Err(OpFault::malformed("messages is empty; send at least one"))
            }
            (Some(given), None) => given.iter().enumerate().map(|(i, text)| read_one(i, text)).collect(),
            (None, Some(text)) => {
                Ok(vec![told_something(self.message(text.clone())).map_err(OpFault::usage)?])
            }
            _ => Err(OpFault::usage("give messages or text, one of them")),
        }
    }

    fn message(&self, text: String) -> Message {
        let role = self.role.unwrap_or_default();
        if role != Role::Tool {
            return Message::text(role, text);
        }
        let outcome = ToolOutcome::text(self.call.as_deref().unwrap_or_default(), None, text);
        let outcome = ToolOutcome { is_error: self.error, ..outcome };
        Message::of(role, vec![MessagePart::Result(outcome)])
    }
}

fn read_one(i: usize, text: &RawValue) -> OpResult<Message> {
    let message = openai::read(text.get()).map_err(|error| error.to_string()).and_then(told_something);
    message.map_err(|why| OpFault::input(why).of(&format!("messages[{i}]")))
}

/// The message, unless it says nothing. A tool may answer nothing, and a call needs no words beside it.
fn told_something(message: Message) -> Result<Message, String> {
    let is_blank =
        |part: &MessagePart| matches!(part, MessagePart::Text { text, .. } if text.trim().is_empty());
    match message.role != Role::Tool && message.parts.iter().all(is_blank) {
        true => Err(format!(
            "the message of role {} is empty: write what it says; only a tool's result and a message with calls may say nothing",
            message.role.name()
        )),
        false => Ok(message),
    }
}

/// Bytes of lines journaled at once.
const BATCH: usize = 1 << 18;

/// Where lines come from, with what is needed to say which one was wrong.
pub struct MessageLines {
    from: BufReader<Box<dyn Read>>,
    name: String,
    number: u64,
}

impl MessageLines {
    /// The lines of a file or stream, by its name.
    pub fn new(from: Box<dyn Read>, name: String) -> Self {
        Self { from: BufReader::with_capacity(BATCH, from), name, number: 0 }
    }

    /// Reads the next message; `None` at the end. Empty lines are passed over.
    pub fn read_message(&mut self) -> io::Result<Option<Result<Message, String>>> {
        let mut line = Vec::new();
        loop {
            line.clear();
            if self.from.read_until(b'\n', &mut line)? == 0 {
                return Ok(None);
            }
            self.number += 1;
            if !line.trim_ascii().is_empty() {
                return Ok(Some(parse(&line)));
            }
        }
    }

    /// True when another whole line has already arrived.
    fn waits(&self) -> bool {
        self.from.buffer().contains(&b'\n')
    }

    /// That the line that was read last is wrong.
    pub fn wrong(&self, why: &str) -> OpFault {
        OpFault::input(format!("{} line {}: {why}", self.name, self.number))
    }
}

fn parse(line: &[u8]) -> Result<Message, String> {
    let text =
        std::str::from_utf8(line).map_err(|e| format!("not UTF-8: byte {} is wrong", e.valid_up_to() + 1))?;
    openai::read(text.trim_start_matches('\u{feff}').trim()).map_err(|e| e.to_string())
}

/// How lines are taken in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AppendLines {
    /// Refuse a message while calls wait, instead of answering them as interrupted.
    pub strict: bool,
    /// Pass over lines that cannot be taken in, and note which.
    pub skip_bad: bool,
}

impl AppendLines {
    /// Takes lines in; `each` is told the numbers of what is durable. A bad line ends it, and what came before is kept.
    pub fn take(
        self,
        context: &OperationContext,
        found: &ResolvedAddress,
        mut lines: MessageLines,
        each: &mut dyn FnMut(&[Seq]) -> OpResult,
    ) -> OpResult {
        let mut thread = open(context, found, self.strict)?;
        let (mut skipped, mut entries) = (0, 0);
        let outcome = loop {
            let (said, more) = self.batch(context, &mut thread, &mut lines, &mut skipped);
            each(&said)?;
            entries += said.len() as u64;
            match more {
                Ok(true) => context.progress(OperationProgress::Appending { entries })?,
                Ok(false) => break Ok(()),
                Err(fault) => break Err(fault),
            }
        };
        context.settle(&mut thread);
        if skipped > 0 {
            context.note(format!("{} passed over", count_of(skipped, "line was", "lines were")));
        }
        outcome
    }

    /// Takes in what has arrived, up to a batch, and makes it durable; gives its numbers, and whether more may come.
    fn batch(
        self,
        context: &OperationContext,
        thread: &mut Thread<'_>,
        lines: &mut MessageLines,
        skipped: &mut u64,
    ) -> (Vec<Seq>, OpResult<bool>) {
        let first = lines.number + 1;
        let mut batch = thread.batch();
        let mut more = Ok(true);
        while more.as_ref().is_ok_and(|more| *more) && batch.bytes() < BATCH {
            let why = match lines.read_message() {
                Ok(Some(Ok(message))) => told_something(message)
                    .and_then(|message| batch.say(message, None).map_err(|e| e.to_string()))
                    .err(),
                Ok(Some(Err(why))) => Some(why),
                Ok(None) => {
                    more = Ok(false);
                    None
                }
                Err(error) => {
                    more = Err(OpFault::input(format!("cannot read {}: {error}", lines.name)));
                    None
                }
            };
            match why {
                Some(why) if self.skip_bad => {
                    context.note(format!("passed over {} line {}: {why}", lines.name, lines.number));
                    *skipped += 1;
                }
                Some(why) => more = Err(lines.wrong(&why)),
                None => {}
            }
            if !lines.waits() {
                break;
            }
        }
        let (said, work) = batch.finish();
        match thread.commit(work) {
            Ok(_) => (said, more),
            Err(error) => {
                let rest = format!("{} from line {first} on was not taken in", lines.name);
                (Vec::new(), Err(OpFault::from(error).and(rest)))
            }
        }
    }
}
