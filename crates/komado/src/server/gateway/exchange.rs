//! One request and its answer.
//!
//! The body is on disk before anything else is done with it. Then a thread of its own places it, journals it, makes it
//! fit, sends it and hands on what comes back. Whatever goes wrong on our side before the answer begins, the request goes
//! through as it came, and that is said in a header, in the log and in a metric; those who would rather stop than go
//! unrecorded said so.

use super::allow::Check;
use super::choose::Choice;
use super::headers::{self, Manner};
use super::outlet::{self, Head, Leave, Pipe, Rest};
use super::refusal::Refusal;
use super::scribe::Scribe;
use super::spool::{self, Spooled, Unread};
use super::{Gateway, Upstream, Visit};
use crate::server::metrics::Told;
use crate::server::{Caller as ApiCaller, traces};
use axum::body::Body;
use axum::response::Response;
use http::StatusCode;
use komado_config::OnFault;
use komado_core::session::{Meta, MetaConfig, TaskKey};
use komado_core::{Meter, SessionId};
use komado_engine::exchange::Asking;
use komado_engine::lesson::Window;
use komado_engine::model::ResolvedModel;
use komado_engine::place::Caller;
use komado_engine::relay::{self, Arrival, Notes, Outlet};
use komado_provider::{By, Cancel, Dialect, SendError, Skim, Skimmer};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use tokio::sync::oneshot;

/// What is done with a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Deed {
    /// The model is asked.
    Relay,
    /// The conversation is made shorter.
    Compact,
}

/// Handles a request.
pub(super) async fn exchange(mut visit: Visit, body: Body, deed: Deed) -> Result<Response, Refusal> {
    let dialect = visit.aim.dialect;
    let caller = headers::caller(&visit.headers, &visit.guest)
        .map_err(|why| Refusal::new(400, format!("x-komado-session: {why}")))?;
    let skimmer = Skimmer::new(dialect, caller.salt.as_bytes());
    let spooled = visit.gateway.take(body, Some(skimmer)).await?;
    let (skim, bad) = skimmed(dialect, &spooled);
    let choice =
        visit.gateway.upstreams.choose(visit.aim.upstream.as_deref(), skim.model.as_deref(), dialect)?;
    let check = visit.check_ask(&choice);
    let arrival = Arrival { skim: Arc::new(skim), body: spooled.file, caller };
    let cancel = Cancel::default();
    let manner = choice.upstream.manner(dialect);
    let work = Work { visit, arrival, choice, manner, cancel: cancel.clone(), bad, check, deed };
    answer(cancel, move |pipe| work.run(pipe)).await
}

/// Runs `work` on a thread of its own and gives what it answers.
pub(super) async fn answer(
    cancel: Cancel,
    work: impl FnOnce(Pipe) + Send + 'static,
) -> Result<Response, Refusal> {
    let (pipe, begins) = outlet::pipe(cancel.clone());
    // Dropped with this future when the client goes before the answer begins.
    let leave = Leave(Some(cancel));
    drop(tokio::task::spawn_blocking(move || work(pipe)));
    begun(begins, leave).await
}

async fn begun(begins: oneshot::Receiver<Head>, leave: Leave) -> Result<Response, Refusal> {
    let Ok(Head { status, headers, notes, rest }) = begins.await else {
        return Err(Refusal::new(500, "the request was given up; the log of komado tells why"));
    };
    let mut response = Response::new(Body::from_stream(Rest { pieces: rest, leave }));
    *response.status_mut() = StatusCode::from_u16(status).unwrap_or(StatusCode::BAD_GATEWAY);
    *response.headers_mut() = headers::answer(&headers, &notes);
    Ok(response)
}

impl Gateway {
    /// Everything a turn needs to ask a model, and its window where somebody knows it.
    pub(super) fn asking(
        &self,
        upstream: &Upstream,
        model: &str,
        dialect: Dialect,
    ) -> (Asking, Option<Window>) {
        self.windows.asking(&self.house.context, upstream, model, dialect, &self.upstreams.registry)
    }

    /// Takes a body in.
    pub(super) async fn take(&self, body: Body, skimmer: Option<Skimmer>) -> Result<Spooled, Refusal> {
        spool::take(body, skimmer, &self.rules).await.map_err(|why| match why {
            Unread::TooLarge { .. } => Refusal::new(413, why.to_string()),
            Unread::Slow { .. } => Refusal::new(408, why.to_string()),
            Unread::Broken { .. } => Refusal::new(400, why.to_string()),
            Unread::NoRoom(_) => Refusal::new(507, why.to_string()),
        })
    }
}

/// The skim of a body; of one that cannot be read an empty one, and why.
fn skimmed(dialect: Dialect, spooled: &Spooled) -> (Skim, Option<String>) {
    match &spooled.skim {
        Some(Ok(skim)) => (skim.clone(), None),
        other => {
            let why = other.as_ref().and_then(|skim| skim.as_ref().err()).map(ToString::to_string);
            let (fields, elements) = (Vec::new(), Vec::new());
            let len = spooled.len;
            let skim = Skim { dialect, len, fields, elements, model: None, stream: false, previous: None };
            (skim, why)
        }
    }
}

/// Why a request was not handled as it should be.
enum Trouble {
    /// Something of ours.
    Ours(&'static str, String),
    /// The provider could not be asked.
    Theirs(SendError),
    /// The client must do something else.
    Refused(Refusal),
}

impl From<relay::Fault> for Trouble {
    fn from(fault: relay::Fault) -> Self {
        match fault {
            relay::Fault::Ours(error) => {
                let kind = if matches!(error, komado_engine::Error::Store(_)) { "store" } else { "engine" };
                Self::Ours(kind, error.to_string())
            }
            relay::Fault::Theirs(error) => Self::Theirs(error),
            other => Self::Ours("engine", format!("{other:?}")),
        }
    }
}

/// A request that is to be handled on a thread of its own.
struct Work {
    visit: Visit,
    arrival: Arrival,
    choice: Choice,
    manner: Manner,
    cancel: Cancel,
    /// Why its body cannot be read.
    bad: Option<String>,
    /// What is to be checked before anything else is done.
    check: Check,
    deed: Deed,
}

impl Work {
    fn run(self, mut pipe: Pipe) {
        let _flight = self.visit.gateway.flights.enter(&self.cancel);
        let (dialect, upstream) = (self.arrival.dialect().name(), self.choice.upstream.name());
        let span = tracing::debug_span!("request", dialect, upstream, status = tracing::field::Empty);
        traces::go_on(&span, &self.visit.headers);
        let _entered = span.enter();
        // Outside of what may go wrong and let a request through: this must not.
        let checked = self.visit.check(&self.check, (&self.arrival.body, self.arrival.skim.len));
        if let Err(refusal) = checked {
            self.refuse(&mut pipe, &refusal, Notes::default());
            span.record("status", pipe.status);
            return self.tell(&pipe);
        }
        let done = catch_unwind(AssertUnwindSafe(|| self.handle(&mut pipe)));
        let trouble = match done {
            Ok(Ok(())) => None,
            Ok(Err(trouble)) => Some(trouble),
            Err(panic) => Some(Trouble::Ours("panic", words(&*panic))),
        };
        match trouble {
            Some(Trouble::Ours(kind, why)) => self.stumble(&mut pipe, kind, why),
            Some(Trouble::Theirs(error)) => self.away(&mut pipe, &error),
            Some(Trouble::Refused(refusal)) => self.refuse(&mut pipe, &refusal, Notes::default()),
            None => {}
        }
        span.record("status", pipe.status);
        self.tell(&pipe);
    }

    /// The way a request takes when all is well.
    fn handle(&self, pipe: &mut Pipe) -> Result<(), Trouble> {
        if let Some(why) = &self.bad {
            return Err(self.unread(why));
        }
        let gateway = &self.visit.gateway;
        let circuit = &gateway.house.circuit;
        let entered = circuit.check().map_err(|why| Trouble::Ours("store", why))?;
        self.check_session()?;
        let context = &gateway.house.context;
        let Choice { upstream, model, .. } = &self.choice;
        let (mut asking, window) = gateway.asking(upstream, model, self.arrival.dialect());
        // What was learned is asked for in vain while the store is away: who waited for that does not wait once more.
        circuit.check_again(entered).map_err(|why| Trouble::Ours("store", why))?;
        asking.cancel = self.cancel.clone();
        let talk = window.map(|window| Arc::new(ResolvedModel::new(asking.clone(), window)));
        let summariser = |id: &SessionId, meter: Meter, cancel: &Cancel| match &talk {
            Some(talk) => Scribe::of(context, id, meter, talk, cancel),
            None => None,
        };
        let meta = |id: &SessionId, caller: &Caller, config: MetaConfig| self.meta(id, caller, config);
        let meter = |model: &str| self.meter(model);
        let manner = relay::Manner {
            policy: context.config.models.policy.clone(),
            settings: context.config.models.summaries.settings.clone(),
            summariser: &summariser,
            offer: context.config.server.recall,
            meta: &meta,
            meter: &meter,
        };
        let upstream = self.upstream(asking);
        match self.deed {
            Deed::Relay => gateway.relay.relay(&self.arrival, &upstream, &manner, pipe)?,
            Deed::Compact => gateway.relay.compact(&self.arrival, &upstream, &manner, pipe)?,
        }
        Ok(())
    }

    /// A session that is named must be one that the guest may see, or none yet whose name the guest may give.
    fn check_session(&self) -> Result<(), Trouble> {
        let Some(id) = &self.arrival.caller.session else { return Ok(()) };
        let guest = &self.visit.guest;
        let is_theirs = match self.visit.gateway.house.context.engine.session(id) {
            Ok(session) => guest.may_see(&session),
            Err(komado_engine::Error::Store(komado_store::Error::NoSession(_))) => guest.may_name(id),
            Err(error) => return Err(relay::Fault::Ours(error).into()),
        };
        if is_theirs {
            return Ok(());
        }
        Err(Trouble::Refused(Refusal::new(404, format!("x-komado-session: there is no session {id}"))))
    }

    fn unread(&self, why: &str) -> Trouble {
        match self.visit.gateway.on_fault {
            OnFault::Pass => Trouble::Ours("unread", format!("the request cannot be read: {why}")),
            OnFault::Stop => {
                Trouble::Refused(Refusal::new(400, format!("the request cannot be read: {why}")))
            }
        }
    }

    fn upstream(&self, asking: Asking) -> relay::Upstream {
        let Choice { upstream, renames, .. } = &self.choice;
        let mut url = upstream.endpoint(self.arrival.dialect(), self.visit.query.as_deref());
        if self.deed == Deed::Compact {
            url = upstream.url("/responses/compact", self.visit.query.as_deref());
        }
        let headers = headers::outgoing(&self.visit.headers, upstream, self.manner, self.choice.signing);
        relay::Upstream { asking, url, headers, renames: *renames }
    }

    fn meta(&self, id: &SessionId, caller: &Caller, config: MetaConfig) -> Meta {
        let context = &self.visit.gateway.house.context;
        Meta {
            uuid: id.to_string(),
            task_key: TaskKey::local(id),
            created_at: context.engine.now(),
            process_id: std::process::id(),
            hostname: crate::app::hostname(),
            config,
            user: caller.user.clone().or_else(|| context.config.user.clone()),
            queued: false,
        }
    }

    /// The meter of the settings; the model's own where they leave it as it is.
    fn meter(&self, model: &str) -> Meter {
        match Meter::named(&self.visit.gateway.house.context.config.meter) {
            Some(meter) if meter != Meter::O200k => meter,
            _ => Meter::for_model(model),
        }
    }

    /// Something of ours failed: the request goes through as it came, unless it cannot or must not.
    fn stumble(&self, pipe: &mut Pipe, kind: &'static str, why: String) {
        let gateway = &self.visit.gateway;
        gateway.meters.fault(kind);
        let begun = pipe.has_begun();
        tracing::warn!(kind, why = why.as_str(), begun, "a fault of ours");
        let why = said(&self.visit.guest, why);
        let notes = Notes { fault: Some(format!("{kind}: {why}")), ..Notes::default() };
        if begun {
            return;
        }
        if gateway.on_fault == OnFault::Stop {
            let refusal = Refusal::new(
                503,
                format!("komado could not keep this conversation ({why}), and was told to stop then"),
            );
            return self.refuse(pipe, &refusal, notes);
        }
        let Choice { upstream, model, .. } = &self.choice;
        let provider = upstream.as_asked(self.arrival.dialect());
        let mut asking = Asking::new(upstream.client.clone(), provider, model.as_str(), 0);
        asking.cancel = self.cancel.clone();
        if let Err(error) = relay::untouched(&self.arrival, &self.upstream(asking), pipe, notes) {
            self.away(pipe, &error);
        }
    }

    /// The provider could not be asked.
    fn away(&self, pipe: &mut Pipe, error: &SendError) {
        if matches!(error, SendError::Cancelled) {
            return;
        }
        self.visit.gateway.meters.away(self.choice.upstream.name());
        self.refuse(pipe, &Refusal::of(error), Notes::default());
    }

    fn refuse(&self, pipe: &mut Pipe, refusal: &Refusal, notes: Notes) {
        refuse(pipe, refusal, self.arrival.dialect(), notes);
    }

    /// Log and metrics.
    fn tell(&self, pipe: &Pipe) {
        let skim = &self.arrival.skim;
        let turns = skim.elements.iter().filter(|element| element.by == By::User).count();
        self.visit.tell(pipe, &self.choice, (skim.len, turns));
    }
}

/// Answers with an error of ours.
pub(super) fn refuse(pipe: &mut Pipe, refusal: &Refusal, dialect: Dialect, notes: Notes) {
    if pipe.has_begun() {
        return;
    }
    let headers = [("content-type", "application/json"), (crate::server::metrics::STATUS_BY_US, "komado")];
    let headers = headers.map(|(name, value)| (name.to_owned(), value.to_owned()));
    pipe.begin(refusal.status, &headers, &notes);
    let _ = pipe.write(&refusal.body(dialect));
    pipe.end(&notes);
}

impl Visit {
    /// Says in log and metrics how an exchange went.
    pub(super) fn tell(&self, pipe: &Pipe, choice: &Choice, (bytes, turns): (u64, usize)) {
        let notes = &pipe.notes;
        let told = Told {
            dialect: self.aim.dialect.name(),
            upstream: choice.upstream.name(),
            status: pipe.status,
            seconds: self.started.elapsed().as_secs_f64(),
            bytes_in: bytes,
            bytes_out: pipe.bytes,
            turns,
            notes,
        };
        self.gateway.meters.told(&told);
        let session = notes.session.as_ref().map(ToString::to_string);
        // Whatever went wrong before a place was found has been told already.
        if let (Some(why), Some(session)) = (&notes.fault, &session) {
            self.gateway.meters.fault("journal");
            tracing::warn!(
                kind = "journal",
                why = why.as_str(),
                session,
                "a fault of ours: not all of it was kept"
            );
        }
        tracing::info!(
            dialect = told.dialect,
            upstream = told.upstream,
            model = choice.model,
            status = told.status.unwrap_or_default(),
            session,
            placed = notes.placed,
            before = notes.before,
            after = notes.after,
            edits = notes.edits,
            attempts = notes.attempts,
            bytes_in = told.bytes_in,
            bytes_out = told.bytes_out,
            ms = self.started.elapsed().as_millis() as u64,
            cut = notes.cut,
            fault = notes.fault,
            "request"
        );
    }
}

/// A fault as a guest hears it: what it says may name folders of this machine, which only those who see all may know.
fn said(guest: &ApiCaller, why: String) -> String {
    if guest.sees_all { why } else { "the log of komado tells why".to_owned() }
}

/// What a panic said.
fn words(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(ToString::to_string);
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "a panic".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_who_sees_all_hears_where_a_fault_was() {
        let why = || "cannot open /home/ann/komado".to_owned();
        assert_eq!(said(&ApiCaller::owner(), why()), why());
        assert!(!said(&ApiCaller::default(), why()).contains("/home"));
    }
}
