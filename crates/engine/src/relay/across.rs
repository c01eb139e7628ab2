//! A request of one dialect for a provider of another, when nothing of ours can be relied on but the codecs.
//!
//! It is read, written and sent, and its answer is said in the client's dialect. No store is asked, nothing is journaled
//! or made smaller, and it is tried no more often than the client's patience says.

use super::mouth::Mouth;
use super::request::{Request, text};
use super::{Arrival, GONE, Notes, Outlet, Upstream};
use komado_core::openai::Blobs;
use komado_provider::client::SendError;
use komado_provider::dialect::Stamp;
use komado_provider::{
    Ask, Body, Dialect, Event, Failed, Form, Heard, Incoming, Refusal, RefusalKind, Tools,
};
use std::io::{self, Write};

/// Most of a refusal that is read.
const MOST: usize = 1 << 20;
/// Nobody asks the time here; some clients want one that can be read.
const LONG_AGO: &str = "1970-01-01T00:00:00Z";

/// A request, written for the provider.
struct Letter {
    bytes: Vec<u8>,
    form: Form,
    usage: bool,
}

/// Sends a request on in the provider's dialect, and says what comes in the client's.
pub(super) fn pass(
    arrival: &Arrival,
    upstream: &Upstream,
    outlet: &mut dyn Outlet,
    mut notes: Notes,
) -> Result<(), SendError> {
    let (asking, dialect) = (&upstream.asking, arrival.dialect());
    let mut mouth = Mouth::new(outlet);
    let letter = match write(arrival, upstream) {
        Ok(letter) => letter,
        Err(why) => {
            // What nobody can read cannot be said to anyone.
            let (status, body) = dialect.refusal(&Refusal::new(RefusalKind::BadRequest, why));
            mouth.begin(status, &[("content-type".to_owned(), "application/json".to_owned())], &notes);
            mouth.write(&body);
            mouth.close(&notes);
            return Ok(());
        }
    };
    let body = Body::Bytes(letter.bytes);
    let mut incoming = asking.client.post(&asking.provider, body, &asking.cancel, &mut |_| {})?;
    if incoming.header("content-encoding").is_some_and(|kind| kind != "identity") {
        return Err(SendError::Broken { why: "the answer came packed and cannot be translated".to_owned() });
    }
    if !(200..300).contains(&incoming.status) {
        let (status, headers) = (incoming.status, std::mem::take(&mut incoming.headers));
        let body = incoming.text(MOST)?;
        mouth.translate(dialect, Form::Whole, Stamp::default(), false);
        mouth.begin_anew(status, &headers, &notes);
        mouth.fail(Failed { status, body });
        mouth.close(&notes);
        return Ok(());
    }
    let stamp = Stamp { created: 0, created_at: LONG_AGO.to_owned(), usage: letter.usage };
    mouth.translate(dialect, letter.form, stamp, false);
    match listen(incoming, asking.provider.dialect, letter.form, &mut mouth, &notes) {
        Ok(End::Said) => mouth.finish(None),
        Ok(End::Failed) => {}
        Err(error) if !mouth.begun() => return Err(error),
        Err(error) => notes.cut = Some(error.to_string()),
    }
    if mouth.gone() {
        notes.cut = Some(GONE.to_owned());
    }
    mouth.close(&notes);
    Ok(())
}

/// Reads the whole request and writes it as the provider wants it.
fn write(arrival: &Arrival, upstream: &Upstream) -> Result<Letter, String> {
    let body = text(&arrival.body, &(0..arrival.skim.len)).map_err(|error| error.to_string())?;
    let mut asked = arrival.dialect().read(&body).map_err(|error| error.to_string())?;
    let (messages, stream) = (std::mem::take(&mut asked.messages), asked.stream);
    let (asking, request) = (&upstream.asking, Request::of(asked));
    let ask = Ask {
        model: &asking.model,
        setup: &request.setup,
        max_tokens: request.wish,
        stream,
        // Nothing is made to fit here: the server's own window is the best there is.
        window: None,
        tools: Tools::AsSetUp,
        is_strict: asking.provider.is_strict,
        joins: asking.provider.joins,
    };
    let mut bytes = Vec::new();
    let mut writing = || {
        let mut writer = asking.provider.dialect.writer(&ask, &mut bytes)?;
        messages.iter().try_for_each(|message| writer.message(message, &mut Nowhere, &mut bytes))?;
        writer.end(&mut bytes)
    };
    writing().map_err(|error: io::Error| error.to_string())?;
    let form = if stream { Form::Stream } else { Form::Whole };
    Ok(Letter { bytes, form, usage: request.usage })
}

/// How an answer ended that was told to its end.
enum End {
    /// It is whole.
    Said,
    /// With an error, which was told.
    Failed,
}

/// Says what comes; an error is why it broke off.
fn listen(
    mut incoming: Incoming,
    theirs: Dialect,
    wanted: Form,
    mouth: &mut Mouth<'_>,
    notes: &Notes,
) -> Result<End, SendError> {
    // Some servers do not say that they stream.
    let is_json = incoming.header("content-type").is_some_and(|kind| kind.contains("json"));
    let streams = incoming.is_stream() || wanted == Form::Stream && !is_json;
    let mut decoder = theirs.decoder(if streams { Form::Stream } else { Form::Whole });
    let (mut heard, mut over) = (Heard::default(), false);
    let mut broken = None;
    while !over && !mouth.gone() {
        let mut events: Vec<Event> = Vec::new();
        match incoming.chunk() {
            Ok(Some(bytes)) => decoder.push(&bytes, &mut |event| events.push(event)),
            ended => {
                broken = ended.err();
                over = true;
                decoder.end(&mut |event| events.push(event));
            }
        }
        for event in events {
            heard.take(&event);
            mouth.begin_anew(incoming.status, &incoming.headers, notes);
            mouth.say(&event);
        }
    }
    match broken {
        _ if heard.failed.is_some() => Ok(End::Failed),
        _ if heard.finish.is_some() => Ok(End::Said),
        Some(error) => Err(error),
        None => Err(SendError::Broken { why: "the connection ended before the answer did".to_owned() }),
    }
}

/// There is no store to keep anything in: what a request brings stands in it.
struct Nowhere;

impl Blobs for Nowhere {
    fn base64(&mut self, id: &str, _: &mut dyn Write) -> io::Result<()> {
        Err(io::Error::new(io::ErrorKind::NotFound, format!("blob {id} is not in the request")))
    }
}
