//! Is it up, can it serve, what has it counted: for operators.
//!
//! `/healthz` says that the process runs. `/readyz` says whether what is said can be kept; a server that lets requests
//! through untouched when it cannot is ready all the same, and says that it is degraded. What is to be put right in the settings of
//! the store follows on lines of its own.

use super::ServerState;
use super::gateway::Gateway;
use crate::app::is_kept;
use axum::Router;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use http::{StatusCode, header};
use komado_config::OnFault;
use komado_ops::private;
use komado_store::{Store, StoreHealthFigures};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// How long it counts whether a folder can be written to.
const LIFE: Duration = Duration::from_secs(5);

/// How long a client that asks whether we are ready waits for the store: few clients wait much longer than a second.
const LOOKING: Duration = Duration::from_millis(800);

/// How long figures wait for what the store says of itself.
const ASKING: Duration = Duration::from_secs(3);

/// How long what the store says of itself counts: counting what it holds is work for it.
const PULSE: Duration = Duration::from_secs(10);
/// How long it counts that the store said nothing.
const SILENCE: Duration = Duration::from_secs(2);

/// The last answer to something that is asked once in a while, or why there was none.
pub(crate) struct CachedAnswer<T>(Mutex<Option<(Instant, Result<T, String>)>>);

impl<T> Default for CachedAnswer<T> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<T: Clone> CachedAnswer<T> {
    /// The last answer, which counts for `known`, and a failure for `unknown`; asked anew when it was long ago.
    fn get(
        &self,
        (known, unknown): (Duration, Duration),
        ask: impl FnOnce() -> Result<T, String>,
    ) -> Result<T, String> {
        let mut last = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((at, said)) = last.as_ref()
            && at.elapsed() < if said.is_ok() { known } else { unknown }
        {
            return said.clone();
        }
        let said = ask();
        *last = Some((Instant::now(), said.clone()));
        said
    }
}

impl CachedAnswer<StoreHealthFigures> {
    /// What the store says of itself.
    pub(crate) fn of(&self, store: &dyn Store) -> Result<StoreHealthFigures, String> {
        self.get((PULSE, SILENCE), || store.vitals().map_err(|error| error.to_string()))
    }
}

struct HealthState {
    house: Arc<ServerState>,
    gateway: Arc<Gateway>,
    /// Whether the folder could be written to.
    folder: CachedAnswer<()>,
}

/// The route that says no more than that the process runs.
pub(crate) fn alive() -> Router<Arc<ServerState>> {
    Router::new().route("/healthz", get(|| async { "ok\n" }))
}

/// The routes that say how it is doing.
pub(crate) fn routes(house: &Arc<ServerState>, gateway: &Arc<Gateway>) -> Router<Arc<ServerState>> {
    // Made here, so that it is missed when it is gone; beside the sessions it holds the keys of this machine.
    if is_kept(&house.context.config) {
        let _ = private::folder(&house.context.config.base_dir);
    }
    let watch = HealthState {
        house: Arc::clone(house),
        gateway: Arc::clone(gateway),
        folder: CachedAnswer::default(),
    };
    Router::new().route("/readyz", get(ready)).route("/metrics", get(metrics)).with_state(Arc::new(watch))
}

async fn ready(State(watch): State<Arc<HealthState>>) -> Response {
    let found = match watch.house.circuit.trouble() {
        Some(why) => Err(why),
        None => {
            let watch = Arc::clone(&watch);
            within(LOOKING, move || watch.look()).await
        }
    };
    if watch.house.stop.is_cancelled() {
        return (StatusCode::SERVICE_UNAVAILABLE, "stopping\n").into_response();
    }
    match (found, watch.gateway.on_fault) {
        (Ok(warnings), _) => {
            let lines = warnings.iter().map(|warning| format!("warning: {warning}\n"));
            format!("ready\n{}", lines.collect::<String>()).into_response()
        }
        (Err(why), OnFault::Pass) => {
            format!("degraded: requests go through untouched, nothing is kept: {why}\n").into_response()
        }
        (Err(why), OnFault::Stop) => {
            (StatusCode::SERVICE_UNAVAILABLE, format!("not ready: {why}\n")).into_response()
        }
    }
}

async fn metrics(State(watch): State<Arc<HealthState>>) -> Response {
    let house = Arc::clone(&watch.house);
    let ask = move || {
        let said = house.pulse.of(house.context.engine.store())?;
        house.meters.vitals(Some(&said));
        Ok(())
    };
    // A store that is away must not keep the figures that say so.
    if within(ASKING, ask).await.is_err() || watch.house.circuit.trouble().is_some() {
        watch.house.meters.vitals(None);
    }
    let text = watch.gateway.meters.render(watch.gateway.flights.count());
    ([(header::CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")], text).into_response()
}

/// Looks at the store on a thread of its own, and waits for it no longer than `most`.
async fn within<T: Send + 'static>(
    most: Duration,
    look: impl FnOnce() -> Result<T, String> + Send + 'static,
) -> Result<T, String> {
    let looked = tokio::task::spawn_blocking(look);
    match tokio::time::timeout(most, looked).await {
        Ok(Ok(found)) => found,
        Ok(Err(_)) => Err("the store could not be looked at".to_owned()),
        Err(_) => Err(format!("the store did not answer within {} ms", most.as_millis())),
    }
}

impl HealthState {
    /// Whether the store is there, and what is to be put right in its settings.
    fn look(&self) -> Result<Vec<String>, String> {
        let context = &self.house.context;
        match &context.files {
            Some(_) => {
                let look = || writable(&context.config.base_dir);
                self.folder.get((LIFE, LIFE), look).map(|()| Vec::new())
            }
            None => self.house.pulse.of(context.engine.store()).map(|vitals| vitals.warnings),
        }
    }
}

/// Whether a file can be made in a folder.
fn writable(folder: &Path) -> Result<(), String> {
    let wrong = |error: std::io::Error| format!("cannot write to {}: {error}", folder.display());
    let file = tempfile::tempfile_in(folder).map_err(wrong)?;
    // A disk that is full lets a file be made and takes nothing into it.
    std::io::Write::write_all(&mut &file, &[0; 4096]).map_err(wrong)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_store_that_hangs_is_not_waited_for() {
        let (_hangs, end) = std::sync::mpsc::channel::<()>();
        let looked = within(Duration::from_millis(1), move || end.recv().map_err(|_| String::new())).await;
        assert_eq!(looked.unwrap_err(), "the store did not answer within 1 ms");
        assert_eq!(within(LOOKING, || Ok(())).await, Ok(()));
    }
}
