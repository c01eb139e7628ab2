//! From the view to a request in a file: one pass, one message in memory at a time.

use super::Asking;
use crate::error::{Error, Result};
use crate::thread::Thread;
use komado_core::journal::Setup;
use komado_core::message::{Message, Part};
use komado_core::openai::Blobs;
use komado_core::{Meter, SessionId};
use komado_provider::{Ask, Form, Tools};
use komado_store::{Letter, Store, write_base64};
use std::io::{self, Write};

/// A request, ready to be sent.
pub(crate) struct Written {
    pub(crate) file: Letter,
    pub(crate) bytes: u64,
    pub(crate) digest: String,
    /// Tokens of the view that a provider may count otherwise, or not at all.
    pub(crate) uncertain: u64,
}

impl Thread<'_> {
    /// System prompt, tools and parameters in force, those of the threads above included.
    pub fn setup(&self) -> Result<Setup> {
        Ok(self.view().setup_in(self.source())?)
    }

    /// Writes the view as a request.
    pub(crate) fn write_letter(&self, asking: &Asking, max_tokens: Option<u64>) -> Result<Written> {
        let setup = self.setup()?;
        let ask = Ask {
            model: &asking.model,
            setup: &setup,
            max_tokens,
            stream: asking.form == Form::Stream,
            window: Some(asking.window),
            tools: Tools::AsSetUp,
            is_strict: asking.provider.is_strict,
            joins: asking.provider.joins,
        };
        let mut out = Digested::new(self.source().letter()?);
        let mut writer = asking.provider.dialect.writer(&ask, &mut out)?;
        let mut blobs = Stored { store: self.store(), session: self.session() };
        let (meter, mut uncertain) = (self.meter(), 0);
        // The writer has the system prompt already.
        self.view().pour_said(self.source(), &mut |_, message: &Message| {
            uncertain += message.parts.iter().map(|part| doubt(part, meter)).sum::<u64>();
            writer.message(message, &mut blobs, &mut out).map_err(Error::from)
        })?;
        writer.end(&mut out)?;
        Ok(Written { uncertain, ..out.seal()? })
    }
}

/// Tokens of a part that a provider may leave out, or count in its own way.
pub(crate) fn doubt(part: &Part, meter: Meter) -> u64 {
    match part {
        Part::Reasoning { text, .. } => meter.text(text),
        Part::Opaque(opaque) => meter.text(opaque.json.get()),
        // Its size in tokens is anybody's guess: nothing is learned beside a picture.
        Part::Image { .. } => u64::from(u32::MAX),
        Part::Result(outcome) => outcome.content.iter().map(|part| doubt(part, meter)).sum(),
        Part::Text { .. } | Part::Call(_) => 0,
    }
}

/// Reads blobs where they are kept.
pub(crate) struct Stored<'a> {
    pub(crate) store: &'a dyn Store,
    pub(crate) session: &'a SessionId,
}

impl Blobs for Stored<'_> {
    fn base64(&mut self, id: &str, out: &mut dyn Write) -> io::Result<()> {
        let mut bytes = self.store.blob(self.session, id).map_err(io::Error::other)?;
        write_base64(&mut *bytes, out)
    }
}

/// Takes the digest of what passes through it.
pub(crate) struct Digested {
    letter: Letter,
    hasher: blake3::Hasher,
}

impl Digested {
    pub(crate) fn new(letter: Letter) -> Self {
        Self { letter, hasher: blake3::Hasher::new() }
    }

    pub(crate) fn seal(mut self) -> Result<Written> {
        let bytes = self.letter.seal()?;
        let digest = self.hasher.finalize().to_hex().to_string();
        Ok(Written { file: self.letter, bytes, digest, uncertain: 0 })
    }
}

impl Write for Digested {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.letter.write(bytes)?;
        self.hasher.update(&bytes[..written]);
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.letter.flush()
    }
}
