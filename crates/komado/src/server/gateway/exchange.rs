//! One request and its answer.
//!
//! The body is on disk before anything else is done with it. Then a thread of its own places it, journals it, makes it
//! fit, sends it and hands on what comes back. Whatever goes wrong on our side before the answer begins, the request goes
//! through as it came, and that is said in a header, in the log and in a metric; those who would rather stop than go
//! unrecorded said so.
//!
//! Between that thread and the answer that streams is a short queue. When the client reads slowly the queue is full and the
//! thread waits, so the provider waits, too. When the client goes, the provider is told to stop.

use super::body::{self, SpooledBody};
use super::headers;
use super::permissions::BodyCheck;
use super::upstream::UpstreamChoice;
use super::{GatewayRefusal, GatewayRequest, TargetKind};
use crate::server::metrics::{ExchangeRecord, STATUS_BY_US};
use crate::server::{ApiCaller, traces};
use axum::body::Body;
use axum::response::Response;
use bytes::Bytes;
use futures_util::{Stream, stream};
use http::StatusCode;
use komado_config::OnFault;
use komado_core::session::{Meta, MetaConfig};
use komado_core::{Meter, SessionId};
use komado_engine::exchange::ModelTarget;
use komado_engine::model::{ModelChoice, ResolvedModel, SummaryWriter};
use komado_engine::place::TranscriptCaller;
use komado_engine::relay::{self, ClientGone, ClientOutlet, ClientRequest, RelayNotes};
use komado_ops::OperationContext;
use komado_provider::{Cancel, Dialect, ElementAuthor, RequestScanner, ScannedRequest, SendError};
use std::collections::HashMap;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::{mpsc, oneshot};

/// How many pieces of an answer may wait for the client.
const QUEUE: usize = 16;

/// Handles a request to a model, or one to make a conversation shorter.
pub(super) async fn exchange(mut visit: GatewayRequest, body: Body) -> Result<Response, GatewayRefusal> {
    let dialect = visit.aim.dialect;
    let caller = headers::caller(&visit.headers, &visit.guest)?;
    let skimmer = RequestScanner::new(dialect, caller.salt.as_bytes());
    let SpooledBody { file, len, skim } = body::take(body, Some(skimmer), &visit.gateway.rules).await?;
    let (skim, bad) = match skim {
        Some(Ok(skim)) => (skim, None),
        unread => {
            let (fields, elements) = (Vec::new(), Vec::new());
            let skim =
                ScannedRequest { dialect, len, fields, elements, model: None, stream: false, previous: None };
            (skim, unread.and_then(Result::err).map(|why| why.to_string()))
        }
    };
    let choice =
        visit.gateway.upstreams.choose(visit.aim.upstream.as_deref(), skim.model.as_deref(), dialect)?;
    let check = visit.check_ask(&choice);
    let arrival = ClientRequest { skim: Arc::new(skim), body: file, caller };
    let cancel = Cancel::default();
    let work = ExchangeJob { visit, arrival, choice, cancel: cancel.clone(), bad, check };
    answer(cancel, move |pipe| work.run(pipe)).await
}

/// Runs `work` on a thread of its own and gives what it answers.
pub(super) async fn answer(
    cancel: Cancel,
    work: impl FnOnce(ResponsePipe) + Send + 'static,
) -> Result<Response, GatewayRefusal> {
    let (pipe, begins) = pipe(cancel.clone());
    // Dropped with this future when the client goes before the answer begins.
    let mut leave = CancelOnDrop(Some(cancel));
    drop(tokio::task::spawn_blocking(move || work(pipe)));
    let given_up = |_| GatewayRefusal::new(500, "the request was given up; the log of komado tells why");
    let response = begins.await.map_err(given_up);
    leave.0 = None;
    response
}

/// Why a request was not handled as it should be.
enum ExchangeFailure {
    /// Something of ours.
    Ours(&'static str, String),
    /// The provider could not be asked.
    Theirs(SendError),
    /// The client must do something else.
    Refused(GatewayRefusal),
}

impl From<relay::RelayFault> for ExchangeFailure {
    fn from(fault: relay::RelayFault) -> Self {
        match fault {
            relay::RelayFault::Ours(error) => {
                let kind = if matches!(error, komado_engine::Error::Store(_)) { "store" } else { "engine" };
                Self::Ours(kind, error.to_string())
            }
            relay::RelayFault::Theirs(error) => Self::Theirs(error),
            other => Self::Ours("engine", format!("{other:?}")),
        }
    }
}

/// A request that is to be handled on a thread of its own.
struct ExchangeJob {
    visit: GatewayRequest,
    arrival: ClientRequest,
    choice: UpstreamChoice,
    cancel: Cancel,
    /// Why its body cannot be read.
    bad: Option<String>,
    /// What is to be checked before anything else is done.
    check: BodyCheck,
}

impl ExchangeJob {
    fn run(self, mut pipe: ResponsePipe) {
        let _flight = self.visit.gateway.flights.enter(&self.cancel);
        let (dialect, upstream) = (self.arrival.dialect().name(), self.choice.upstream.name());
        let span = tracing::debug_span!("request", dialect, upstream, status = tracing::field::Empty);
        traces::go_on(&span, &self.visit.headers);
        let _entered = span.enter();
        // Outside of what may go wrong and let a request through: this must not.
        let checked = self.visit.check(&self.check, (&self.arrival.body, self.arrival.skim.len));
        let trouble = match checked {
            Err(refusal) => Err(ExchangeFailure::Refused(refusal)),
            Ok(()) => catch_unwind(AssertUnwindSafe(|| self.handle(&mut pipe)))
                .unwrap_or_else(|panic| Err(ExchangeFailure::Ours("panic", words(&*panic)))),
        };
        match trouble {
            Err(ExchangeFailure::Ours(kind, why)) => self.stumble(&mut pipe, kind, why),
            Err(ExchangeFailure::Theirs(error)) => self.away(&mut pipe, &error),
            Err(ExchangeFailure::Refused(refusal)) => self.refuse(&mut pipe, &refusal, RelayNotes::default()),
            Ok(()) => {}
        }
        span.record("status", pipe.status);
        let skim = &self.arrival.skim;
        let turns = skim.elements.iter().filter(|element| element.by == ElementAuthor::User).count();
        self.visit.tell(&pipe, &self.choice, (skim.len, turns));
    }

    /// The way a request takes when all is well.
    fn handle(&self, pipe: &mut ResponsePipe) -> Result<(), ExchangeFailure> {
        if let Some(why) = &self.bad {
            return Err(self.unread(why));
        }
        if self.is_wordless() {
            self.pass(pipe, RelayNotes::default());
            return Ok(());
        }
        let gateway = &self.visit.gateway;
        let circuit = &gateway.house.circuit;
        let entered = circuit.check().map_err(|why| ExchangeFailure::Ours("store", why))?;
        self.check_session()?;
        let context = &gateway.house.context;
        let UpstreamChoice { upstream, model, .. } = &self.choice;
        let (mut asking, window) = gateway.asking(upstream, model, self.arrival.dialect());
        // What was learned is asked for in vain while the store is away: who waited for that does not wait once more.
        circuit.check_again(entered).map_err(|why| ExchangeFailure::Ours("store", why))?;
        asking.cancel = self.cancel.clone();
        let model = window.map(|window| ResolvedModel::new(asking.clone(), window));
        let summariser = GatewaySummaries { context, model };
        let meta =
            |id: &SessionId, caller: &TranscriptCaller, config: MetaConfig| self.meta(id, caller, config);
        let meter = |model: &str| self.meter(model);
        let manner = relay::RelayConfig {
            policy: context.config.models.policy.clone(),
            settings: context.config.models.summaries.settings.clone(),
            summariser: &summariser,
            offer: context.config.server.recall,
            max_repeats: context.config.server.max_repeats,
            meta: &meta,
            meter: &meter,
        };
        let upstream = self.upstream(asking);
        match self.visit.aim.way {
            TargetKind::Compact => gateway.relay.compact(&self.arrival, &upstream, &manner, pipe)?,
            _ => gateway.relay.relay(&self.arrival, &upstream, &manner, pipe)?,
        }
        Ok(())
    }

    /// A session that is named must be one that the caller may see, or none yet whose name the caller may give.
    fn check_session(&self) -> Result<(), ExchangeFailure> {
        let Some(id) = &self.arrival.caller.session else { return Ok(()) };
        let guest = &self.visit.guest;
        let is_theirs = match self.visit.gateway.house.context.engine.session(id) {
            Ok(session) => guest.may_see(&session),
            Err(komado_engine::Error::Store(komado_store::Error::NoSession(_))) => guest.may_name(id),
            Err(error) => return Err(relay::RelayFault::Ours(error).into()),
        };
        if is_theirs {
            return Ok(());
        }
        Err(ExchangeFailure::Refused(GatewayRefusal::new(
            404,
            format!("x-komado-session: there is no session {id}"),
        )))
    }

    fn unread(&self, why: &str) -> ExchangeFailure {
        let why = format!("the request cannot be read: {why}");
        match self.visit.gateway.on_fault {
            OnFault::Pass => ExchangeFailure::Ours("unread", why),
            OnFault::Stop => ExchangeFailure::Refused(GatewayRefusal::new(400, why)),
        }
    }

    fn upstream(&self, asking: ModelTarget) -> relay::RelayUpstream {
        let (UpstreamChoice { upstream, renames, signing, .. }, visit) = (&self.choice, &self.visit);
        let (dialect, query) = (self.arrival.dialect(), visit.query.as_deref());
        let url = match visit.aim.way {
            TargetKind::Compact => upstream.url("/responses/compact", query),
            _ => upstream.endpoint(dialect, query),
        };
        let headers = headers::outgoing(&visit.headers, upstream, upstream.manner(dialect), *signing);
        relay::RelayUpstream { asking, url, headers, renames: *renames }
    }

    fn meta(&self, id: &SessionId, caller: &TranscriptCaller, config: MetaConfig) -> Meta {
        let usual = komado_ops::session::meta(&self.visit.gateway.house.context, id, config);
        Meta { user: caller.user.clone().or(usual.user), ..usual }
    }

    /// The meter of the settings; the model's own where they leave it as it is.
    fn meter(&self, model: &str) -> Meter {
        match Meter::named(&self.visit.gateway.house.context.config.meter) {
            Some(meter) if meter != Meter::O200k => meter,
            _ => Meter::for_model(model),
        }
    }

    /// Something of ours failed: the request goes through as it came, unless it cannot or must not.
    fn stumble(&self, pipe: &mut ResponsePipe, kind: &'static str, why: String) {
        let gateway = &self.visit.gateway;
        gateway.meters.fault(kind);
        let begun = pipe.has_begun();
        tracing::warn!(kind, why = why.as_str(), begun, "an internal fault");
        if begun {
            return;
        }
        let why = said(&self.visit.guest, why);
        let notes = RelayNotes { fault: Some(format!("{kind}: {why}")), ..RelayNotes::default() };
        if gateway.on_fault == OnFault::Stop {
            let refusal = GatewayRefusal::new(
                503,
                format!("komado could not keep this conversation ({why}), and was told to stop then"),
            );
            return self.refuse(pipe, &refusal, notes);
        }
        self.pass(pipe, notes);
    }

    /// True when nothing is said in it: there is no conversation to keep, and the provider says what it thinks of that. A request in
    /// the manner of responses may go on with what was said before.
    fn is_wordless(&self) -> bool {
        self.arrival.skim.elements.is_empty() && self.arrival.dialect() != Dialect::Responses
    }

    /// Sends the request on untouched.
    fn pass(&self, pipe: &mut ResponsePipe, notes: RelayNotes) {
        let UpstreamChoice { upstream, model, .. } = &self.choice;
        let provider = upstream.as_asked(self.arrival.dialect());
        let mut asking = ModelTarget::new(upstream.client.clone(), provider, model.as_str(), 0);
        asking.cancel = self.cancel.clone();
        if let Err(error) = relay::untouched(&self.arrival, &self.upstream(asking), pipe, notes) {
            self.away(pipe, &error);
        }
    }

    /// The provider could not be asked.
    fn away(&self, pipe: &mut ResponsePipe, error: &SendError) {
        if matches!(error, SendError::Cancelled) {
            return;
        }
        self.visit.gateway.meters.away(self.choice.upstream.name());
        self.refuse(pipe, &GatewayRefusal::of(error), RelayNotes::default());
    }

    fn refuse(&self, pipe: &mut ResponsePipe, refusal: &GatewayRefusal, notes: RelayNotes) {
        pipe.refuse(refusal, self.arrival.dialect(), notes);
    }
}

impl GatewayRequest {
    /// Says in log and metrics how an exchange went.
    pub(super) fn tell(&self, pipe: &ResponsePipe, choice: &UpstreamChoice, (bytes_in, turns): (u64, usize)) {
        self.gateway.meters.told(&ExchangeRecord {
            dialect: self.aim.dialect.name(),
            upstream: choice.upstream.name(),
            model: &choice.model,
            status: pipe.status,
            took: self.started.elapsed(),
            bytes_in,
            bytes_out: pipe.bytes,
            turns,
            notes: &pipe.notes,
        });
    }
}

/// The summaries of a session, as the settings say.
struct GatewaySummaries<'a> {
    context: &'a OperationContext,
    /// The conversation's own model, where its window is known.
    model: Option<ResolvedModel>,
}

impl relay::SummariserFor for GatewaySummaries<'_> {
    fn summariser(&self, id: &SessionId, meter: Meter, cancel: &Cancel) -> Option<SummaryWriter<'_>> {
        let (models, choice) = (self.context.models(), ModelChoice::default());
        let made = models.summariser(id, meter, &choice, Some(self.model.as_ref()?), cancel);
        made.inspect_err(|why| tracing::warn!(%why, "no model writes summaries; the digest does")).ok()
    }
}

/// A fault as a caller is told of it: what it says may name folders of this machine, which only those who see all may know.
fn said(guest: &ApiCaller, why: String) -> String {
    if guest.sees_all { why } else { "the log of komado tells why".to_owned() }
}

/// What a panic said.
fn words(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(ToString::to_string);
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "a panic".to_owned())
}

/// Where the thread writes an answer to.
pub(super) struct ResponsePipe {
    /// Where the answer goes when it begins, and what then follows.
    begins: Option<(oneshot::Sender<Response>, mpsc::Receiver<io::Result<Bytes>>)>,
    queue: mpsc::Sender<io::Result<Bytes>>,
    cancel: Cancel,
    /// Said when the answer is over and was whole.
    is_whole: bool,
    /// The status, once the answer has begun.
    pub(super) status: Option<u16>,
    /// Bytes that went to the client.
    pub(super) bytes: u64,
    /// What is known of the exchange by now.
    pub(super) notes: RelayNotes,
}

/// A pipe, and where its answer begins.
fn pipe(cancel: Cancel) -> (ResponsePipe, oneshot::Receiver<Response>) {
    let (sender, begins) = oneshot::channel();
    let (queue, pieces) = mpsc::channel(QUEUE);
    let begin = Some((sender, pieces));
    let notes = RelayNotes::default();
    (ResponsePipe { begins: begin, queue, cancel, is_whole: false, status: None, bytes: 0, notes }, begins)
}

impl ResponsePipe {
    /// True once the client has heard something.
    fn has_begun(&self) -> bool {
        self.status.is_some()
    }

    /// Answers with an error of ours, unless an answer has begun.
    pub(super) fn refuse(&mut self, refusal: &GatewayRefusal, dialect: Dialect, notes: RelayNotes) {
        if self.has_begun() {
            return;
        }
        let headers = [("content-type", "application/json"), (STATUS_BY_US, "komado")];
        let headers = headers.map(|(name, value)| (name.to_owned(), value.to_owned()));
        self.begin(refusal.status, &headers, &notes);
        let _ = self.write(&refusal.body(dialect));
        self.end(&notes);
    }
}

impl ClientOutlet for ResponsePipe {
    fn begin(&mut self, status: u16, headers: &[(String, String)], notes: &RelayNotes) {
        self.status = Some(status);
        self.notes = notes.clone();
        let Some((sender, pieces)) = self.begins.take() else { return };
        let mut response = Response::new(Body::from_stream(rest(pieces, self.cancel.clone())));
        *response.status_mut() = StatusCode::from_u16(status).unwrap_or(StatusCode::BAD_GATEWAY);
        *response.headers_mut() = headers::answer(headers, notes);
        // An answer whose client has gone is dropped, which stops the provider.
        let _ = sender.send(response);
    }

    fn write(&mut self, bytes: &[u8]) -> Result<(), ClientGone> {
        if bytes.is_empty() {
            return Ok(());
        }
        self.queue.blocking_send(Ok(Bytes::copy_from_slice(bytes))).map_err(|_| {
            self.cancel.cancel();
            ClientGone
        })?;
        self.bytes += bytes.len() as u64;
        Ok(())
    }

    fn end(&mut self, notes: &RelayNotes) {
        self.notes = notes.clone();
        self.is_whole = notes.cut.is_none();
    }
}

impl Drop for ResponsePipe {
    fn drop(&mut self) {
        // A thread that failed in the middle must not look like an answer that ended.
        if self.has_begun() && !self.is_whole {
            let why = self.notes.cut.take().unwrap_or_else(|| "the answer broke off".to_owned());
            let _ = self.queue.blocking_send(Err(io::Error::other(why)));
        }
    }
}

/// The rest of an answer, as it comes. Dropped before its end, it stops the provider.
fn rest(pieces: mpsc::Receiver<io::Result<Bytes>>, cancel: Cancel) -> impl Stream<Item = io::Result<Bytes>> {
    stream::unfold((pieces, CancelOnDrop(Some(cancel))), |(mut pieces, mut leave)| async move {
        let piece = pieces.recv().await;
        if piece.is_none() {
            leave.0 = None;
        }
        Some((piece?, (pieces, leave)))
    })
}

/// Says stop when it is dropped: the client has gone.
struct CancelOnDrop(Option<Cancel>);

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        if let Some(cancel) = &self.0 {
            cancel.cancel();
        }
    }
}

/// The exchanges under way, so that they can be counted, waited for and, at the very end, ended.
#[derive(Default)]
pub(crate) struct InFlight(Mutex<InFlightTable>);

#[derive(Default)]
struct InFlightTable {
    next: u64,
    cancels: HashMap<u64, Cancel>,
}

impl InFlight {
    fn under(&self) -> MutexGuard<'_, InFlightTable> {
        // A panic elsewhere leaves the table as it was.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// One more; it is over when what this gives is dropped.
    pub(super) fn enter(&self, cancel: &Cancel) -> InFlightGuard<'_> {
        let mut under = self.under();
        let number = under.next;
        under.next += 1;
        under.cancels.insert(number, cancel.clone());
        InFlightGuard { flights: self, number }
    }

    /// How many there are.
    pub(crate) fn count(&self) -> usize {
        self.under().cancels.len()
    }

    /// Ends all of them.
    pub(crate) fn end(&self) {
        self.under().cancels.values().for_each(Cancel::cancel);
    }
}

/// An exchange under way.
pub(super) struct InFlightGuard<'f> {
    flights: &'f InFlight,
    number: u64,
}

impl Drop for InFlightGuard<'_> {
    fn drop(&mut self) {
        self.flights.under().cancels.remove(&self.number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::StreamExt;

    #[test]
    fn only_who_sees_all_hears_where_a_fault_was() {
        let why = || "cannot open /home/ann/komado".to_owned();
        assert_eq!(said(&ApiCaller::owner(), why()), why());
        assert!(!said(&ApiCaller::default(), why()).contains("/home"));
    }

    #[test]
    fn a_client_that_goes_stops_the_provider() {
        let cancel = Cancel::default();
        let (mut pipe, begins) = pipe(cancel.clone());
        pipe.begin(200, &[], &RelayNotes::default());
        drop(begins);
        assert_eq!(pipe.write(b"x"), Err(ClientGone));
        assert!(cancel.is_cancelled());
    }

    #[test]
    fn an_answer_that_breaks_off_ends_in_an_error_and_one_that_ends_does_not() {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        for (is_whole, cut) in [(false, None), (true, None), (false, Some("窓".to_owned()))] {
            let (mut pipe, mut begins) = pipe(Cancel::default());
            pipe.begin(200, &[], &RelayNotes::default());
            pipe.write("窓".as_bytes()).unwrap();
            if is_whole || cut.is_some() {
                pipe.end(&RelayNotes { cut, ..RelayNotes::default() });
            }
            drop(pipe);
            let mut rest = begins.try_recv().unwrap().into_body().into_data_stream();
            assert_eq!(runtime.block_on(rest.next()).unwrap().unwrap(), "窓".as_bytes());
            assert_eq!(matches!(runtime.block_on(rest.next()), Some(Err(_))), !is_whole);
        }
    }
}
