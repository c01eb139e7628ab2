//! A request on its way out: written to a file, one message in memory at a time, or spliced from a client's bytes.

use crate::error::{Error, Result};
use crate::turn::Asking;
use komado_core::journal::{Mark, Setup};
use komado_core::message::{Message, Part};
use komado_core::openai::Blobs;
use komado_core::{Meter, Seq, SessionId};
use komado_provider::{Ask, Body, Splice, Tools};
use komado_store::{Letter, Store, write_base64};
use std::io::{self, Write};

/// A request, ready to be sent.
pub(crate) struct OutgoingRequest {
    pub(crate) body: RequestBody,
    /// Digest of all its bytes.
    pub(crate) digest: String,
    /// The longest answer that it asks for.
    pub(crate) max_tokens: Option<u64>,
    /// Tokens of what it shows.
    pub(crate) tokens: u64,
    /// Tokens of our own tools, where they are offered.
    pub(crate) added: u64,
    /// Those of `tokens` that a provider may count in its own way, or not at all; `None` while they were not counted.
    pub(crate) uncertain: Option<u64>,
    /// Where the client's transcript stands.
    pub(crate) mark: Option<Mark>,
    /// The entry that announces it, when it is in the journal already.
    pub(crate) announced: Option<Seq>,
}

/// What is sent.
pub(crate) enum RequestBody {
    /// A file, and its length.
    File(Letter, u64),
    /// A client's request, in pieces.
    Spliced(Splice),
}

impl RequestBody {
    pub(crate) fn body(&self) -> Body<'_> {
        match self {
            Self::File(file, len) => Body::File { path: file.path(), len: *len },
            Self::Spliced(splice) => Body::Spliced(splice.clone()),
        }
    }

    pub(crate) fn len(&self) -> u64 {
        match self {
            Self::File(_, len) => *len,
            Self::Spliced(splice) => splice.len(),
        }
    }

    /// It was answered: a file is not needed any more.
    pub(crate) fn remove(self) -> Result<()> {
        match self {
            Self::File(file, _) => Ok(file.answered()?),
            Self::Spliced(_) => Ok(()),
        }
    }
}

/// What a request asks for beside its messages.
pub(crate) struct Form<'a> {
    pub(crate) setup: &'a Setup,
    pub(crate) max_tokens: Option<u64>,
    pub(crate) stream: bool,
    pub(crate) window: Option<u64>,
    pub(crate) tools: Tools,
}

/// Takes one message.
pub(crate) type Put<'p> = dyn FnMut(&Message) -> Result<()> + 'p;

/// Writes a request in the provider's dialect; `pour` hands over its messages, without the system prompt.
pub(crate) fn write(
    asking: &Asking,
    form: &Form<'_>,
    blobs: &mut dyn Blobs,
    out: &mut dyn Write,
    pour: &mut dyn FnMut(&mut Put<'_>) -> Result<()>,
) -> Result<()> {
    let ask = Ask {
        model: &asking.model,
        setup: form.setup,
        max_tokens: form.max_tokens,
        stream: form.stream,
        window: form.window,
        tools: form.tools,
        is_strict: asking.provider.is_strict,
        joins: asking.provider.joins,
    };
    let mut writer = asking.provider.dialect.writer(&ask, out)?;
    pour(&mut |message| writer.message(message, blobs, out).map_err(Error::from))?;
    Ok(writer.end(out)?)
}

/// Writes a request to a file; gives it with its digest.
pub(crate) fn write_file(
    file: Letter,
    asking: &Asking,
    form: &Form<'_>,
    blobs: &mut dyn Blobs,
    pour: &mut dyn FnMut(&mut Put<'_>) -> Result<()>,
) -> Result<(RequestBody, String)> {
    let mut out = Digested { file, hasher: blake3::Hasher::new() };
    write(asking, form, blobs, &mut out, pour)?;
    let len = out.file.seal()?;
    Ok((RequestBody::File(out.file, len), out.hasher.finalize().to_hex().to_string()))
}

/// Tokens of a message that a provider may leave out, or count in its own way.
pub(crate) fn uncertain(parts: &[Part], meter: Meter) -> u64 {
    let tokens = |part: &Part| match part {
        Part::Reasoning { text, .. } => meter.text(text),
        Part::Opaque(opaque) => meter.text(opaque.json.get()),
        // No counter knows its size in tokens: nothing is learned beside a picture.
        Part::Image { .. } => u64::from(u32::MAX),
        Part::Result(outcome) => uncertain(&outcome.content, meter),
        Part::Text { .. } | Part::Call(_) => 0,
    };
    parts.iter().map(tokens).sum()
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
struct Digested {
    file: Letter,
    hasher: blake3::Hasher,
}

impl Write for Digested {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.file.write(bytes)?;
        self.hasher.update(&bytes[..written]);
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}
