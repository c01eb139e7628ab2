//! Append: add messages, durably.

use crate::address::AtThread;
use crate::arguments::malformed;
use crate::change;
use crate::context::Planned;
use crate::{Context, Effect, Fault, Interfaces, Operation, Outcome, Route};
use komado_core::clip::clip;
use komado_core::message::{Message, Outcome as ToolOutcome, Part, Role};
use komado_core::view::Weight;
use komado_core::{Seq, openai};
use komado_engine::engine::Found;
use komado_engine::output::Output;
use komado_engine::{OnOpenCalls, Thread};
use komado_store::Mode;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use std::io::Read;

/// Add messages to a thread, durably: one by its text, or several, all of them or none. A tool output that is too long is kept
/// whole and shown in part.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[schemars(example = serde_json::json!({ "messages": [{ "role": "user", "content": "窓を直して。" }] }))]
pub struct Append {
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
    pub weight: Weight,
    /// Who spoke, where it was one message.
    #[serde(skip)]
    pub role: Option<Role>,
}

impl Operation for Append {
    const NAME: &'static str = "append";
    const TITLE: &'static str = "Add messages";
    const EFFECT: Effect = Effect::Add;
    const INTERFACES: Interfaces = Interfaces::everywhere(
        "append",
        Route::make("journal", "/sessions/{session}/threads/{thread}/entries").once(),
    );
    type Output = Appended;

    fn run(self, context: &Context) -> Outcome<Appended> {
        let messages = self.read()?;
        let found = context.find_now(&self.at)?;
        let mut thread = open(context, &found, self.strict)?;
        let before = thread.last();
        let mut batch = thread.batch();
        for (i, message) in messages.into_iter().enumerate() {
            let told = |error: komado_engine::Error| match self.messages {
                Some(_) => Fault::from(error).of(&format!("messages[{i}]")),
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
        context.plan(&Planned { seq: first, line, answer: serde_json::to_string(&appended)? })?;
        thread.commit(work)?;
        context.settle(&mut thread);
        appended.role = self.messages.is_none().then(|| self.role.unwrap_or_default());
        appended.weight = *thread.view().weight();
        Ok(appended)
    }
}

/// Adds what a tool printed, which may be more than fits in memory. What can be shown whole loses its last line break.
pub fn append_output(
    context: &Context,
    found: &Found,
    output: &Output,
    strict: bool,
    from: &mut dyn Read,
) -> Outcome<Appended> {
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
pub(super) fn open<'c>(context: &'c Context, found: &Found, strict: bool) -> Outcome<Thread<'c>> {
    let choice = if strict { OnOpenCalls::Refuse } else { OnOpenCalls::Answer };
    Ok(context.open(found, Mode::Write)?.on_open_calls(choice))
}

fn told(thread: &Thread<'_>, found: &Found, before: Seq, seqs: Vec<Seq>, tokens: u64) -> Outcome<Appended> {
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

impl Append {
    fn read(&self) -> Outcome<Vec<Message>> {
        let is_tool = self.role == Some(Role::Tool);
        if !is_tool && (self.call.is_some() || self.error) {
            return Err(Fault::usage("--call and --error go with --role tool"));
        }
        match (&self.messages, &self.text) {
            (Some(given), None) if given.is_empty() => Err(malformed("messages is empty; send at least one")),
            (Some(given), None) => given.iter().enumerate().map(|(i, text)| read_one(i, text)).collect(),
            (None, Some(text)) => Ok(vec![self.message(text.clone())]),
            _ => Err(Fault::usage("give messages or text, one of them")),
        }
    }

    fn message(&self, text: String) -> Message {
        let role = self.role.unwrap_or_default();
        if role != Role::Tool {
            return Message::text(role, text);
        }
        let outcome = ToolOutcome::text(self.call.as_deref().unwrap_or_default(), None, text);
        let outcome = ToolOutcome { is_error: self.error, ..outcome };
        Message::of(role, vec![Part::Result(outcome)])
    }
}

fn read_one(i: usize, text: &RawValue) -> Outcome<Message> {
    openai::read(text.get()).map_err(|error| Fault::input(error.to_string()).of(&format!("messages[{i}]")))
}
