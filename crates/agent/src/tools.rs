//! Tools: what a model may call. The built-in ones and those of MCP servers have the same face.

use crate::Result;
use komado_core::message::Call;
use komado_engine::Thread;
use komado_engine::exchange::{RecallTools, ToolAnswerer as _};
use komado_provider::Cancel;
use serde::Deserialize;
use serde_json::Value;
use std::fs::File;
use std::io::{self, Cursor, Read};

/// Whether a call may be made once more when it is not known whether it took effect: a worker was killed while it ran.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Repeatability {
    /// It only looks, or does the same thing twice without harm.
    Safe,
    /// Once more may do harm: the model is told, and looks for itself.
    Unsafe,
}

/// A tool as it is offered.
#[derive(Clone, PartialEq, Debug, Deserialize)]
pub struct ToolDefinition {
    /// Its name: letters, digits, `_` and `-`, at most 64.
    pub name: String,
    /// What it does, for the model.
    pub description: String,
    /// What it takes: a JSON schema of an object.
    pub schema: Value,
    /// Whether a call may be made once more.
    pub again: Repeatability,
}

/// What a tool answered. What the model got wrong is an answer, too.
#[derive(Debug)]
pub struct ToolAnswer {
    /// The words.
    pub body: ToolBody,
    /// True when they say what went wrong.
    pub is_error: bool,
}

impl ToolAnswer {
    /// These words.
    pub fn text(text: impl Into<String>) -> Self {
        Self { body: ToolBody::Text(text.into()), is_error: false }
    }

    /// These words, about what went wrong.
    pub fn wrong(text: impl Into<String>) -> Self {
        Self { body: ToolBody::Text(text.into()), is_error: true }
    }

    /// How a call of `name` went wrong, if it did.
    pub(crate) fn fault(&self, name: &str) -> Option<String> {
        self.is_error.then(|| match &self.body {
            ToolBody::Text(text) => text.clone(),
            ToolBody::File(_) => name.to_owned(),
        })
    }
}

/// The words of an answer. Long ones are in a file that has no name: they are never held.
#[derive(Debug)]
pub enum ToolBody {
    /// Here.
    Text(String),
    /// In a file, to be read from where it stands.
    File(File),
}

impl ToolBody {
    /// To be read once.
    pub fn reader(self) -> Box<dyn Read> {
        match self {
            Self::Text(text) => Box::new(Cursor::new(text)),
            Self::File(file) => Box::new(io::BufReader::new(file)),
        }
    }
}

/// Tools of one kind. A call blocks; `cancel` ends it early, and that is an answer as well.
pub trait ToolProvider: Send {
    /// The tools, always in the same order and in the same words: they stand before the conversation.
    fn definitions(&self) -> &[ToolDefinition];

    /// Answers a call of one of them. `arguments` is the JSON the model wrote. Nothing that goes wrong in a tool is an error
    /// here: the conversation goes on.
    fn call(&mut self, name: &str, arguments: &str, cancel: &Cancel) -> ToolAnswer;
}

/// Several kinds of tools as one. The first one that has a name answers to it.
#[derive(Default)]
pub struct ToolSet {
    kinds: Vec<Box<dyn ToolProvider>>,
}

impl ToolSet {
    /// With one more kind.
    #[must_use]
    pub fn with(mut self, tools: impl ToolProvider + 'static) -> Self {
        self.kinds.push(Box::new(tools));
        self
    }

    /// Every tool, each name once.
    pub fn definitions(&self) -> Vec<&ToolDefinition> {
        let mut all: Vec<&ToolDefinition> = Vec::new();
        for definition in self.kinds.iter().flat_map(|kind| kind.definitions()) {
            if all.iter().all(|other| other.name != definition.name) {
                all.push(definition);
            }
        }
        all
    }

    /// The tool called `name`.
    pub fn definition(&self, name: &str) -> Option<&ToolDefinition> {
        self.kinds.iter().flat_map(|kind| kind.definitions()).find(|tool| tool.name == name)
    }

    /// Answers a call that was made in `thread`: the tools that lead back to what left its view first, then these. A call of an
    /// unknown tool is answered with the names of those that exist.
    pub fn answer(&mut self, thread: &Thread<'_>, call: &Call, cancel: &Cancel) -> Result<ToolAnswer> {
        if RecallTools.knows(&call.name) {
            let told = RecallTools.call(thread, call)?;
            return Ok(ToolAnswer { body: ToolBody::Text(told.text), is_error: told.is_error });
        }
        let answer = self.call(&call.name, &call.arguments, cancel);
        Ok(answer.unwrap_or_else(|| ToolAnswer::wrong(self.no_tool(&call.name))))
    }

    fn no_tool(&self, name: &str) -> String {
        let known: Vec<&str> = self.definitions().iter().map(|tool| tool.name.as_str()).collect();
        format!(
            "there is no tool {name:?}; there are: {}, and those that read what left the view",
            known.join(", ")
        )
    }

    /// True when a call may be made once more although it is not known whether it took effect.
    pub fn may_repeat(&self, name: &str) -> bool {
        RecallTools.knows(name) || self.definition(name).is_some_and(|tool| tool.again == Repeatability::Safe)
    }

    /// Answers a call; `None` when there is no such tool.
    pub fn call(&mut self, name: &str, arguments: &str, cancel: &Cancel) -> Option<ToolAnswer> {
        let kind =
            self.kinds.iter_mut().find(|kind| kind.definitions().iter().any(|tool| tool.name == name))?;
        Some(kind.call(name, arguments, cancel))
    }
}
