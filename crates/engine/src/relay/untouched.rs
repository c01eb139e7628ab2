//! A request sent on when nothing of ours can be relied on: as it came, or translated by the codecs alone.
//!
//! No store is asked, nothing is journaled or made smaller. A request in the provider's own dialect is sent once, byte for
//! byte but for the model's name; one of another dialect is held in memory whole, and tried no more often than the client's
//! patience says.

use super::client_stream::{ClientReceiver, ClientStream, cut_short, pass};
use super::intake::{Request, text};
use super::splice::{Patch, is_whole, whole};
use super::{Arrival, Notes, Outlet, PATIENCE, Upstream};
use crate::exchange::request::{Form as RequestForm, Put, write};
use crate::exchange::response::{Outcome, Why, receive};
use komado_core::openai::Blobs;
use komado_provider::client::SendError;
use komado_provider::dialect::Stamp;
use komado_provider::{Body, Form, Refusal, RefusalKind, Splice, Tools};
use std::io::{self, Write};

/// The time of an answer where no clock is read; some clients want one that can be read.
const LONG_AGO: &str = "1970-01-01T00:00:00Z";

/// Sends a request on as it came, and hands back what comes, byte for byte; only the model's name is replaced where the
/// provider has another. For a provider of another dialect both are translated. Nothing is journaled.
pub fn untouched(
    arrival: &Arrival,
    upstream: &Upstream,
    outlet: &mut dyn Outlet,
    mut notes: Notes,
) -> Result<(), SendError> {
    let mut client = ClientStream::new(outlet, arrival.dialect(), arrival.skim.stream);
    if upstream.asking.provider.dialect != arrival.dialect() {
        translate(arrival, upstream, &mut client, &mut notes)?;
    } else {
        let splice = named(arrival, upstream);
        notes.untouched = is_whole(&splice, arrival.skim.len);
        let mut incoming = upstream.forward(Body::Spliced(splice))?;
        client.begin(incoming.status, &incoming.headers, &notes);
        notes.cut = pass(&mut incoming, &mut client).err().map(|why| why.to_string());
    }
    client.close(&notes);
    Ok(())
}

/// The client's request with the model's name as the provider knows it.
fn named(arrival: &Arrival, upstream: &Upstream) -> Splice {
    let mut patch = Patch::new(&arrival.skim, &arrival.body);
    // A body that could not be skimmed has no place for a name.
    if upstream.renames && arrival.skim.field("model").is_some() {
        // It stands there already, so nothing has to be read for it.
        let _ = patch.model(&upstream.asking.model);
    }
    patch.finish().unwrap_or_else(|_| whole(arrival))
}

/// Sends a request on in the provider's dialect, and hands on what comes in the client's.
fn translate(
    arrival: &Arrival,
    upstream: &Upstream,
    client: &mut ClientStream<'_>,
    notes: &mut Notes,
) -> Result<(), SendError> {
    let asking = &upstream.asking;
    let (bytes, usage) = match translated(arrival, upstream) {
        Ok(written) => written,
        Err(why) => {
            // What cannot be read cannot be sent anywhere.
            let (status, body) = client.dialect().refusal(&Refusal::new(RefusalKind::BadRequest, why));
            client.send_whole(status, Form::Whole, &body, notes);
            return Ok(());
        }
    };
    let incoming = asking.client.post(&asking.provider, Body::Bytes(bytes), &asking.cancel, &mut |_| {})?;
    if incoming.header("content-encoding").is_some_and(|kind| kind != "identity") {
        return Err(SendError::Broken { why: "the answer came packed and cannot be translated".to_owned() });
    }
    let form = client.form();
    client.encode(form, Stamp { created: 0, created_at: LONG_AGO.to_owned(), usage }, false);
    let mut receiver = ClientReceiver::new(client, notes, PATIENCE, true, false);
    let lost = match receive(asking, Ok(incoming), form, &mut receiver) {
        Outcome::Answer(_) => {
            client.finish(None);
            return Ok(());
        }
        Outcome::TooLarge(why) if why.status >= 400 => {
            client.refuse((why.status, &why.headers, &why.body), true, notes);
            return Ok(());
        }
        Outcome::TooLarge(why) => {
            client.refuse_too_large(&why, true, notes);
            return Ok(());
        }
        Outcome::Lost(lost) => lost,
    };
    match lost.error {
        Why::Send(error) if !client.begun() => return Err(error),
        Why::Broken if !client.begun() => return Err(cut_short()),
        error if error.is_cut() => notes.cut = Some(error.to_string()),
        _ => {}
    }
    Ok(())
}

/// Reads the whole request and writes it as the provider wants it; gives it, and whether usage is wanted in the stream.
fn translated(arrival: &Arrival, upstream: &Upstream) -> Result<(Vec<u8>, bool), String> {
    let body = text(&arrival.body, &(0..arrival.skim.len)).map_err(|error| error.to_string())?;
    let mut asked = arrival.dialect().read(&body).map_err(|error| error.to_string())?;
    let (messages, stream) = (std::mem::take(&mut asked.messages), asked.stream);
    let request = Request::of(asked);
    let form = RequestForm {
        setup: &request.setup,
        max_tokens: request.wish,
        stream,
        // Nothing is made to fit here: the server's own window is the best there is.
        window: None,
        tools: Tools::AsSetUp,
    };
    let mut bytes = Vec::new();
    let mut pour = |put: &mut Put<'_>| messages.iter().try_for_each(put);
    write(&upstream.asking, &form, &mut Nowhere, &mut bytes, &mut pour).map_err(|error| error.to_string())?;
    Ok((bytes, request.usage))
}

/// There is no store to keep anything in: what a request brings stands in it.
struct Nowhere;

impl Blobs for Nowhere {
    fn base64(&mut self, id: &str, _: &mut dyn Write) -> io::Result<()> {
        Err(io::Error::new(io::ErrorKind::NotFound, format!("blob {id} is not in the request")))
    }
}
