//! Show: exactly what the model sees.

use super::columns;
use crate::address::AtMoment;
use crate::stream::{Form, Sink, Streamed};
use crate::{Context, Effect, Interfaces, Outcome, Route};
use komado_core::message::Message;
use komado_core::openai::{self, Blobs};
use komado_core::{Seq, SessionId, View, notation};
use komado_engine::Thread;
use komado_store::{Mode, Store};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use std::io::{self, Write};

/// Print the view of a thread: exactly what the model sees, now or at any moment.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
pub struct Show {
    /// The moment.
    #[serde(flatten)]
    pub at: AtMoment,
    /// How it is told; messages when left out, and lines for a model.
    pub format: Option<Format>,
    /// Give long texts whole, where it is told in lines.
    #[serde(default)]
    pub full: bool,
    /// Columns of a line, where texts are not given whole; 160 when left out.
    #[schemars(range(min = 20, max = 10000))]
    pub width: Option<u32>,
}

/// How a view is told.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
pub enum Format {
    /// Messages as OpenAI's chat API has them.
    #[default]
    Messages,
    /// Its own items, each with its number and tokens.
    Items,
    /// One line for each thing the model sees, also of the setup and of the threads above.
    Lines,
}

/// A view.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[schemars(rename = "View")]
pub struct Viewed {
    /// The session.
    pub session: String,
    /// The thread.
    pub thread: String,
    /// The moment.
    pub seq: Seq,
    /// Its tokens as Komado counts them.
    pub tokens: u64,
}

/// A part of a view.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum ViewItem {
    /// A message.
    Message {
        /// The entry it is from.
        seq: Seq,
        /// The message as OpenAI's chat API has it.
        #[schemars(with = "Map<String, Value>")]
        message: Box<RawValue>,
    },
    /// An item.
    Item {
        /// The entry it is from.
        seq: Seq,
        /// Its tokens.
        tokens: u32,
        /// What it says, in the notation of the log.
        text: String,
    },
    /// A line.
    Line {
        /// What it says, in the notation of the log.
        text: String,
    },
}

impl Streamed for Show {
    const NAME: &'static str = "show";
    const TITLE: &'static str = "What the model sees";
    const EFFECT: Effect = Effect::Read;
    const INTERFACES: Interfaces = Interfaces::everywhere(
        "show",
        Route::get("view", "/sessions/{session}/threads/{thread}/view").tagged(),
    );
    const FORM: Form = Form::Object;
    type Head = Viewed;
    type Item = ViewItem;

    fn for_model(self) -> Self {
        Self { format: self.format.or(Some(Format::Lines)), ..self }
    }

    fn run(self, context: &Context, to: &mut dyn Sink<Self>) -> Outcome {
        let found = context.find(&self.at)?;
        let thread = context.engine.open(&found.session, &found.thread, Mode::Read)?;
        let view = match found.seq {
            Some(seq) => thread.view_at(seq)?,
            None => thread.view().clone(),
        };
        to.begin(Viewed {
            session: found.session.to_string(),
            thread: found.thread.to_string(),
            seq: view.last(),
            tokens: view.tokens(),
        })?;
        match self.format.unwrap_or_default() {
            Format::Messages => messages(context, &thread, &view, to),
            Format::Items => items(&thread, &view, to),
            Format::Lines => lines(&thread, &view, columns(self.full, self.width), to),
        }
    }

    fn line(item: &ViewItem) -> Option<String> {
        match item {
            ViewItem::Line { text } => Some(text.clone()),
            ViewItem::Message { .. } | ViewItem::Item { .. } => None,
        }
    }

    fn moment(view: &Viewed) -> Option<String> {
        Some(format!("{}@{}", view.thread, view.seq))
    }
}

fn messages(context: &Context, thread: &Thread<'_>, view: &View, to: &mut dyn Sink<Show>) -> Outcome {
    let mut blobs = Inline { store: context.engine.store(), session: thread.session() };
    view.pour(thread.source(), &mut |seq: Seq, message: &Message| -> Outcome {
        let mut bytes = Vec::new();
        openai::write(message, &mut blobs, &mut bytes)?;
        to.item(ViewItem::Message { seq, message: serde_json::from_slice(&bytes)? })
    })
}

fn items(thread: &Thread<'_>, view: &View, to: &mut dyn Sink<Show>) -> Outcome {
    let mut done: Outcome = Ok(());
    view.each_item(thread.source(), |item| {
        if done.is_ok() {
            let text = notation::item(&item, thread.source(), usize::MAX);
            done = text
                .map_err(Into::into)
                .and_then(|text| to.item(ViewItem::Item { seq: item.seq, tokens: item.tokens, text }));
        }
    })?;
    done
}

fn lines(thread: &Thread<'_>, view: &View, width: usize, to: &mut dyn Sink<Show>) -> Outcome {
    let mut done: Outcome = Ok(());
    notation::each_item(view, thread.source(), width, |text| {
        if done.is_ok() {
            done = to.item(ViewItem::Line { text });
        }
    })?;
    done
}

/// Pictures from the session's blobs.
struct Inline<'a> {
    store: &'a dyn Store,
    session: &'a SessionId,
}

impl Blobs for Inline<'_> {
    fn base64(&mut self, id: &str, out: &mut dyn Write) -> io::Result<()> {
        let mut blob = self.store.blob(self.session, id).map_err(io::Error::other)?;
        komado_store::write_base64(&mut blob, out)
    }
}
