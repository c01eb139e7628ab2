//! A view as the body of a request: what a model would be sent at that moment.

use crate::error::Result;
use crate::exchange::request::{StoredBlobs, write};
use crate::thread::Thread;
use komado_core::View;
use komado_core::journal::Entry;
use komado_core::{Kind, Message};
use komado_provider::Dialect;
use komado_provider::dialect::{ModelRequest, ToolUse};
use std::io::Write;

impl Thread<'_> {
    /// Writes what the model sees in a view as a request for `model`. Messages go out one at a time.
    pub fn write_request(
        &self,
        view: &View,
        dialect: Dialect,
        model: &str,
        out: &mut dyn Write,
    ) -> Result<()> {
        let setup = view.setup_in(self.source())?;
        let ask = ModelRequest {
            model,
            setup: &setup,
            max_tokens: None,
            stream: false,
            window: None,
            tools: ToolUse::AsSetUp,
            is_strict: false,
            joins: false,
        };
        let mut blobs = StoredBlobs { store: self.store(), session: self.session() };
        write(dialect, &ask, &mut blobs, out, &mut |sink| {
            view.pour_said(self.source(), &mut |_, message: &Message| sink(message))
        })
    }

    /// The model of the session, or the one that was asked last.
    pub fn model_name(&self) -> Result<Option<String>> {
        match &self.config().model {
            Some(model) => Ok(Some(model.clone())),
            None => self.newest(
                |kind| kind == Kind::Sent,
                |record| match record.entry {
                    Entry::Sent(sent) => Some(sent.model),
                    _ => None,
                },
            ),
        }
    }
}
