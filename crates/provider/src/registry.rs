//! What is known about models: how much they take, how much they say, and what that costs.
//!
//! The rows are compiled in (`registry/models.jsonl`, with its sources in `registry/NOTICE`), and a file of the user's may
//! be laid over them. A name is looked up as it stands, then without what differs between routers and releases, then
//! by its longest beginning. It refuses to guess for a model that runs locally: how large its window is was decided when
//! its server was started, and only the server knows ([`crate::probe`]).

mod foreign;
mod name;
mod row;

use serde::{Deserialize, Serialize};
use std::fmt::Write as _;

const BUILTIN: &str = include_str!("registry/models.jsonl");

/// A model of one provider.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Model {
    /// The name the provider knows it by.
    pub id: String,
    /// Who serves it.
    pub provider: String,
    /// The window: what is sent and what is answered together, in tokens.
    pub context: u64,
    /// The most that may be sent, where that is less than the window.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input: Option<u64>,
    /// The longest answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output: Option<u64>,
    /// What it costs, where that is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub price: Option<Price>,
    /// Where the row comes from; not part of a file.
    #[serde(skip)]
    pub source: Source,
}

impl Model {
    /// The window.
    pub const fn window(&self) -> u64 {
        self.context
    }

    /// The most that may be sent. Providers that give it apart are believed (400,000 tokens of window may mean 272,000 of
    /// input); elsewhere it is the whole window, because how much of it the answer takes is for the request to say.
    pub fn input_limit(&self) -> u64 {
        self.input.unwrap_or(self.context)
    }
}

/// A price in US dollars for a million tokens.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Price {
    /// What is sent.
    pub input: f64,
    /// What is answered.
    pub output: f64,
    /// What is sent and was found in the provider's cache.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_read: Option<f64>,
    /// What is sent and put into the provider's cache.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_write: Option<f64>,
}

/// Where a row comes from.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Source {
    /// Compiled in.
    #[default]
    Builtin,
    /// A file of the user's.
    File,
}

komado_core::names! {
    /// Its name.
    Source { Builtin = "built in", File = "file" }
}

/// Why rows cannot be read.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BadRegistry {
    /// A line is no JSON object.
    #[error("line {line}: {why}")]
    Line {
        /// Counted from one.
        line: usize,
        /// What is wrong with it.
        why: String,
    },
    /// A field is not what it should be.
    #[error("line {line}: field `{field}`: {why}")]
    Field {
        /// Counted from one.
        line: usize,
        /// The field.
        field: String,
        /// What is wrong with it.
        why: String,
    },
    /// An entry of another collection is not what it should be.
    #[error("{entry}: field `{field}`: {why}")]
    Entry {
        /// Its path in the file.
        entry: String,
        /// The field.
        field: String,
        /// What is wrong with it.
        why: String,
    },
    /// The text is JSON, but of no form that is known.
    #[error(
        "it is neither lines of {{\"id\",\"provider\",\"context\"}}, nor models.dev's api.json, nor LiteLLM's \
         model_prices_and_context_window.json"
    )]
    UnknownForm,
    /// There is no model in it.
    #[error("there is no model in it")]
    Empty,
}

/// Everything known about models.
#[derive(Clone, PartialEq, Debug)]
pub struct Registry {
    models: Vec<Model>,
}

impl Registry {
    /// What is compiled in.
    pub fn builtin() -> Self {
        // The file is part of the program, and a test reads it; a row that could not be read would only be missing.
        Self::read(BUILTIN).unwrap_or(Self { models: Vec::new() })
    }

    /// Reads rows in our own form: one JSON object per line; empty lines and lines that begin with `#` are passed over.
    pub fn read(text: &str) -> Result<Self, BadRegistry> {
        let models = row::read(text)?;
        if models.is_empty() { Err(BadRegistry::Empty) } else { Ok(Self::sorted(models)) }
    }

    /// Reads rows in our own form, in that of models.dev's `api.json`, or in LiteLLM's.
    pub fn read_any(text: &str) -> Result<Self, BadRegistry> {
        match foreign::read(text)? {
            Some(models) if models.is_empty() => Err(BadRegistry::Empty),
            Some(models) => Ok(Self::sorted(models)),
            None => Self::read(text),
        }
    }

    /// These rows under those of `over`, which count as the user's.
    #[must_use]
    pub fn under(self, over: Self) -> Self {
        let same = |a: &Model, b: &Model| a.id == b.id && a.provider == b.provider;
        let mut models: Vec<Model> =
            self.models.into_iter().filter(|model| !over.models.iter().any(|own| same(own, model))).collect();
        models.extend(over.models.into_iter().map(|model| Model { source: Source::File, ..model }));
        Self::sorted(models)
    }

    /// All rows, by provider and name.
    pub fn models(&self) -> &[Model] {
        &self.models
    }

    /// The row of one provider's model, by its exact name.
    pub fn get(&self, provider: &str, id: &str) -> Option<&Model> {
        self.models.iter().find(|model| model.provider == provider && model.id == id)
    }

    /// Looks a model up.
    ///
    /// The name as it stands comes first; then the name without the path of a router, a date, a tag such as `:free`, or
    /// `-latest`; then the longest known name it begins with, if what follows is another word and none that stands for
    /// another model (`gpt-4` is never taken for `gpt-4.1`, `gpt-4o` or `gpt-4-32k`). Where several providers have it,
    /// the user's own rows win, then whoever made the model, then the smallest window.
    pub fn find(&self, model: &str) -> Option<&Model> {
        name::find(&self.models, model)
    }

    /// The rows in our own form.
    pub fn write(&self) -> String {
        let mut text = String::new();
        for model in &self.models {
            if let Ok(line) = serde_json::to_string(model) {
                let _ = writeln!(text, "{line}");
            }
        }
        text
    }

    fn sorted(mut models: Vec<Model>) -> Self {
        models.sort_by(|a, b| (&a.provider, &a.id).cmp(&(&b.provider, &b.id)));
        Self { models }
    }
}
