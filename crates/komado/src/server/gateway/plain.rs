//! What is not a conversation goes to the provider as it comes.
//!
//! Embeddings, files, a list of local models: Komado has nothing to say about them, and does not stand in the way.

use super::Visit;
use super::allow::Check;
use super::choose::Choice;
use super::exchange::{answer, refuse};
use super::headers::{self, Manner};
use super::outlet::Pipe;
use super::refusal::Refusal;
use super::spool::Spooled;
use axum::body::Body;
use axum::response::Response;
use komado_engine::relay::{Notes, Outlet};
use komado_provider::{Cancel, Dialect, Forward, Incoming, SendError, Splice};

/// Forwards a request to a path after the version.
pub(super) async fn version(mut visit: Visit, body: Body, path: &str) -> Result<Response, Refusal> {
    let choice = visit.gateway.upstreams.choose(visit.aim.upstream.as_deref(), None, visit.aim.dialect)?;
    let check = visit.check_route(&choice, path)?;
    let url = choice.upstream.url(path, visit.query.as_deref());
    forward(visit, body, choice, (url, check)).await
}

/// Forwards a request to a path at the root: only a provider that speaks as Ollama does has those.
pub(super) async fn root(mut visit: Visit, body: Body, path: &str) -> Result<Response, Refusal> {
    let upstreams = &visit.gateway.upstreams;
    if visit.aim.upstream.is_none() {
        let ollama = upstreams.all().iter().find(|upstream| upstream.speaks(Dialect::Ollama));
        let Some(ollama) = ollama else {
            return Err(Refusal::new(
                404,
                format!("{path} is one of Ollama's, and no provider here speaks as it does"),
            ));
        };
        visit.aim.upstream = Some(ollama.name().to_owned());
    }
    let choice = upstreams.choose(visit.aim.upstream.as_deref(), None, Dialect::Ollama)?;
    let check = visit.check_route(&choice, path)?;
    let url = choice.upstream.root_url(path, visit.query.as_deref());
    forward(visit, body, choice, (url, check)).await
}

/// Forwards a request to an address of the provider, once it was checked.
pub(super) async fn forward(
    visit: Visit,
    body: Body,
    choice: Choice,
    (url, check): (String, Check),
) -> Result<Response, Refusal> {
    let spooled = visit.gateway.take(body, None).await?;
    let cancel = Cancel::default();
    let stop = cancel.clone();
    answer(cancel, move |mut pipe| {
        let _flight = visit.gateway.flights.enter(&stop);
        let sent = visit
            .check(&check, (&spooled.file, spooled.len))
            .and_then(|()| send(&visit, &spooled, &choice, &url, &stop).map_err(|error| Refusal::of(&error)));
        match sent {
            Ok(incoming) => hand_on(incoming, &mut pipe),
            Err(refusal) => refuse(&mut pipe, &refusal, visit.aim.dialect, Notes::default()),
        }
        visit.tell(&pipe, &choice, (spooled.len, 0));
    })
    .await
}

/// Sends a request on.
pub(super) fn send(
    visit: &Visit,
    spooled: &Spooled,
    choice: &Choice,
    url: &str,
    cancel: &Cancel,
) -> Result<Incoming, SendError> {
    let headers = headers::outgoing(&visit.headers, &choice.upstream, Manner::Native, choice.signing);
    let body = komado_provider::Body::Spliced(Splice::whole(spooled.file.clone(), spooled.len));
    let request = Forward { method: visit.method.clone(), url, headers: &headers, body };
    choice.upstream.client.forward(request, cancel)
}

/// Hands an answer on as it comes.
pub(super) fn hand_on(mut incoming: Incoming, pipe: &mut Pipe) {
    let mut notes = Notes { untouched: true, ..Notes::default() };
    pipe.begin(incoming.status, &incoming.headers, &notes);
    loop {
        match incoming.chunk() {
            Ok(Some(bytes)) if pipe.write(&bytes).is_ok() => {}
            Ok(Some(_)) => return,
            Ok(None) => break,
            Err(error) => {
                notes.cut = Some(error.to_string());
                break;
            }
        }
    }
    pipe.end(&notes);
}
