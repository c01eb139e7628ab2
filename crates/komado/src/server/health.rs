//! Is it up, can it serve, what has it counted: for whoever watches over it.
//!
//! `/healthz` says that the process runs. `/readyz` says whether what is said can be kept; a server that lets requests
//! through untouched when it cannot is ready all the same, and says that it is degraded.

use super::House;
use super::gateway::Gateway;
use crate::app::App;
use crate::config::OnFault;
use axum::Router;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use http::{StatusCode, header};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// How long an answer about the store counts.
const LIFE: Duration = Duration::from_secs(5);

/// The store as it was last found.
#[derive(Default)]
struct Store(Mutex<Option<(Instant, Result<(), String>)>>);

struct Watch {
    house: Arc<House>,
    gateway: Arc<Gateway>,
    store: Store,
}

/// Its routes.
pub(crate) fn routes(house: &Arc<House>, gateway: &Arc<Gateway>) -> Router<Arc<House>> {
    // Made here, so that it is missed when it is gone.
    if house.app.files.is_some() {
        let _ = std::fs::create_dir_all(&house.app.config.base_dir);
    }
    let watch = Watch { house: Arc::clone(house), gateway: Arc::clone(gateway), store: Store::default() };
    Router::new()
        .route("/healthz", get(|| async { "ok\n" }))
        .route("/readyz", get(ready))
        .route("/metrics", get(metrics))
        .with_state(Arc::new(watch))
}

async fn ready(State(watch): State<Arc<Watch>>) -> Response {
    let found = tokio::task::spawn_blocking({
        let watch = Arc::clone(&watch);
        move || watch.store.look(&watch.house.app)
    })
    .await;
    let found = found.unwrap_or_else(|_| Err("the store could not be looked at".to_owned()));
    if watch.house.stop.is_cancelled() {
        return (StatusCode::SERVICE_UNAVAILABLE, "stopping\n").into_response();
    }
    match (found, watch.gateway.on_fault) {
        (Ok(()), _) => "ready\n".into_response(),
        (Err(why), OnFault::Pass) => {
            format!("degraded: requests go through untouched, nothing is kept: {why}\n").into_response()
        }
        (Err(why), OnFault::Stop) => {
            (StatusCode::SERVICE_UNAVAILABLE, format!("not ready: {why}\n")).into_response()
        }
    }
}

async fn metrics(State(watch): State<Arc<Watch>>) -> Response {
    let text = watch.gateway.meters.render(watch.gateway.flights.count());
    ([(header::CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")], text).into_response()
}

impl Store {
    /// Whether something can be written; looked at once in a while.
    fn look(&self, app: &App) -> Result<(), String> {
        let mut last = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, found)) = last.as_ref().filter(|(at, _)| at.elapsed() < LIFE) {
            return found.clone();
        }
        let found = match &app.files {
            Some(_) => writable(&app.config.base_dir),
            None => Ok(()),
        };
        *last = Some((Instant::now(), found.clone()));
        found
    }
}

/// Whether a file can be made in a folder.
fn writable(folder: &Path) -> Result<(), String> {
    let wrong = |error: std::io::Error| format!("cannot write to {}: {error}", folder.display());
    let file = tempfile::tempfile_in(folder).map_err(wrong)?;
    // A disk that is full lets a file be made and takes nothing into it.
    std::io::Write::write_all(&mut &file, &[0; 4096]).map_err(wrong)
}
