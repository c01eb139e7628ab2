//! What people, models and tools say: a message is a role and a list of parts.
//!
//! A part we understand is a variant; a part only one provider understands is [`Opaque`], kept raw and given back to
//! that dialect alone. Bytes that are not text (images, large outputs) live in blobs and are named here, so a message
//! in memory is never larger than its words.

use crate::Seq;
use crate::picture::PictureSize;
use crate::raw::RawJson;
use serde::{Deserialize, Serialize};

/// Who speaks.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(inline))]
pub enum Role {
    /// Instructions from the operator of the agent.
    System,
    /// The same, under OpenAI's newer name.
    Developer,
    /// The person, or the program that stands for one.
    #[default]
    User,
    /// The model.
    Assistant,
    /// A tool that the model called.
    Tool,
}

crate::names! {
    /// The name used in the journal and in most dialects.
    Role {
        System = "system", Developer = "developer", User = "user", Assistant = "assistant", Tool = "tool",
    }
}

/// JSON that only one dialect understands, kept as it came.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Opaque {
    /// Whose it is, such as `openai` or `anthropic`.
    pub dialect: String,
    /// The JSON itself.
    pub json: RawJson,
}

/// Where a whole output is kept when the message holds less than all of it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct OutputRef {
    /// The blob's id.
    pub id: String,
    /// Its size in bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub byte_size: Option<u64>,
    /// Its number of lines.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line_count: Option<u64>,
}

/// Where an image's bytes are.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(untagged)]
pub enum ImageSource {
    /// In a blob of the session.
    Blob {
        /// The blob's id.
        blob: String,
        /// Such as `image/png`.
        media_type: String,
        /// Size of the decoded image.
        byte_size: u64,
        /// Its width and height, where its first bytes tell them.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pixels: Option<PictureSize>,
    },
    /// Somewhere else; also a `data:` URL on its way into a blob.
    Url {
        /// The address.
        url: String,
    },
}

/// How a call was made.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CallKind {
    /// Arguments are a JSON object.
    #[default]
    Function,
    /// Arguments are free text.
    Custom,
}

impl CallKind {
    /// The field in which the chat API has such a call, and the one inside it that has the arguments.
    pub const fn fields(self) -> (&'static str, &'static str) {
        match self {
            Self::Function => ("function", "arguments"),
            Self::Custom => ("custom", "input"),
        }
    }
}

/// How the ids of calls begin that no model made: a playbook made them itself.
pub const OWN_CALL: &str = "pb_";

/// A model's request to run a tool.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Call {
    /// Pairs the call with its result.
    pub id: String,
    /// The tool.
    pub name: String,
    /// The arguments exactly as the model wrote them.
    pub arguments: String,
    /// Function or custom.
    pub kind: CallKind,
    /// Fields of the call that only its dialect knows (thought signatures, for one).
    pub extra: Option<RawJson>,
}

/// What a tool answered.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ToolOutcome {
    /// The call it answers.
    pub call_id: String,
    /// The tool, when known.
    pub name: Option<String>,
    /// What the model is shown: text and images.
    pub content: Vec<MessagePart>,
    /// True when the tool reported an error.
    pub is_error: bool,
    /// The whole output, when `content` is only a part of it.
    pub output_ref: Option<OutputRef>,
    /// How long the tool ran.
    pub duration_ms: Option<u64>,
    /// True when no tool answered and this result only says so.
    pub interrupted: bool,
    /// The result of the same call whose place this one takes, because it came after somebody else had spoken.
    pub replaces: Option<Seq>,
}

impl ToolOutcome {
    /// Words of a tool in answer to a call.
    pub fn text(call_id: impl Into<String>, name: Option<String>, text: impl Into<String>) -> Self {
        let (call_id, content) = (call_id.into(), vec![MessagePart::text(text)]);
        let (is_error, output_ref, duration_ms, interrupted, replaces) = (false, None, None, false, None);
        Self { call_id, name, content, is_error, output_ref, duration_ms, interrupted, replaces }
    }
}

/// One piece of a message.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum MessagePart {
    /// Words.
    Text {
        /// The words.
        text: String,
        /// Fields beside the text that only one dialect knows (cache marks, citations).
        extra: Option<Opaque>,
    },
    /// A picture.
    Image {
        /// Its bytes or address.
        source: ImageSource,
        /// How closely the model should look, where the dialect has such a thing.
        detail: Option<String>,
    },
    /// A request to run a tool.
    Call(Call),
    /// A tool's answer.
    Result(ToolOutcome),
    /// What the model thought before it spoke; never edited, because it may be signed.
    Reasoning {
        /// The thought, as far as it is shown.
        text: String,
        /// The provider's seal.
        signature: Option<String>,
    },
    /// Something only one dialect understands.
    Opaque(Opaque),
}

impl MessagePart {
    /// Plain words.
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text { text: text.into(), extra: None }
    }
}

/// One turn of one speaker.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Message {
    /// Who speaks.
    pub role: Role,
    /// The speaker's own name, where there are several.
    pub name: Option<String>,
    /// What is said, in order.
    pub parts: Vec<MessagePart>,
    /// Fields of the message that only one dialect knows.
    pub extra: Option<Opaque>,
}

impl Message {
    /// A message of one text.
    pub fn text(role: Role, text: impl Into<String>) -> Self {
        Self::of(role, vec![MessagePart::text(text)])
    }

    /// A message of `parts`.
    pub fn of(role: Role, parts: Vec<MessagePart>) -> Self {
        Self { role, name: None, parts, extra: None }
    }

    /// The calls this message makes.
    pub fn calls(&self) -> impl Iterator<Item = &Call> {
        self.parts.iter().filter_map(|part| match part {
            MessagePart::Call(call) => Some(call),
            _ => None,
        })
    }

    /// The tool's answer this message carries.
    pub fn outcome(&self) -> Option<&ToolOutcome> {
        self.parts.iter().find_map(|part| match part {
            MessagePart::Result(outcome) => Some(outcome),
            _ => None,
        })
    }

    /// The entry whose place this message takes: it is a result that came late.
    pub fn replaces(&self) -> Option<Seq> {
        self.outcome().and_then(|outcome| outcome.replaces)
    }

    /// A late result as it is shown in the place of another.
    pub fn in_place(mut self) -> Self {
        for part in &mut self.parts {
            if let MessagePart::Result(outcome) = part {
                outcome.replaces = None;
            }
        }
        self
    }

    /// All words of the message, parts parted by line breaks, without calls and reasoning.
    pub fn words(&self) -> String {
        let mut words = Vec::new();
        collect_words(&self.parts, &mut words);
        words.join("\n")
    }

    /// The same message with `text` in place of what it says; role, calls and pairing stay.
    pub fn saying(&self, text: &str) -> Self {
        let mut message = self.clone();
        match message
            .parts
            .iter_mut()
            .find_map(|p| if let MessagePart::Result(o) = p { Some(o) } else { None })
        {
            Some(outcome) => outcome.content = vec![MessagePart::text(text)],
            None => {
                message.parts.retain(|p| matches!(p, MessagePart::Call(_) | MessagePart::Reasoning { .. }));
                let at = message
                    .parts
                    .iter()
                    .position(|p| matches!(p, MessagePart::Call(_)))
                    .unwrap_or(message.parts.len());
                message.parts.insert(at, MessagePart::text(text));
            }
        }
        message
    }
}

fn collect_words<'a>(parts: &'a [MessagePart], words: &mut Vec<&'a str>) {
    for part in parts {
        match part {
            MessagePart::Text { text, .. } => words.push(text),
            MessagePart::Result(outcome) => collect_words(&outcome.content, words),
            _ => {}
        }
    }
}
