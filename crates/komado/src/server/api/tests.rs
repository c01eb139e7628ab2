//! The API as its callers meet it: requests through the real router, answers as they would leave.

mod append;
mod callers;
mod events;
mod forms;
mod reading;
mod report;
mod tasks;
mod verbs;

use super::super::access::ClientAccess;
use super::super::gateway::{Gateway, GatewayUpstreams};
use crate::app::{App, GlobalOptions};
use crate::server::ServerState;
use crate::server::{ListenReach, router};
use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::ConnectInfo;
use axum::http::{HeaderMap, Request, StatusCode};
use komado_config::OnFault;
use komado_ops::key::file::{self as keys, Sees, StoredKey};
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::sync::Arc;
use tower::ServiceExt;

/// A server in a folder of its own.
struct Place {
    folder: tempfile::TempDir,
    house: Arc<ServerState>,
    router: Router,
}

/// What was answered.
struct Told {
    status: StatusCode,
    headers: HeaderMap,
    bytes: Vec<u8>,
}

impl Told {
    fn json(&self) -> Value {
        serde_json::from_slice(&self.bytes).unwrap_or_else(|_| panic!("no JSON: {}", self.text()))
    }

    fn text(&self) -> String {
        String::from_utf8_lossy(&self.bytes).into_owned()
    }

    /// The answer, where it is the one that was expected.
    #[track_caller]
    fn ok(self, status: u16) -> Value {
        assert_eq!(self.status.as_u16(), status, "{}", self.text());
        if self.bytes.is_empty() { Value::Null } else { self.json() }
    }

    /// The problem, where it is one.
    #[track_caller]
    fn problem(self, status: u16) -> String {
        assert_eq!(self.status.as_u16(), status, "{}", self.text());
        assert_eq!(self.headers["content-type"], "application/problem+json");
        let body = self.json();
        assert_eq!(body["status"], status);
        body["detail"].as_str().unwrap().to_owned()
    }
}

/// A gateway in front of the built-in model; opening it waits, which a test's own thread must not.
fn gateway(house: &Arc<ServerState>) -> Arc<Gateway> {
    let (opened, handle) = (Arc::clone(house), tokio::runtime::Handle::current());
    let upstreams = std::thread::spawn(move || {
        GatewayUpstreams::open(&opened.context, Some("scripted"), &handle).unwrap()
    });
    Arc::new(Gateway::new(house, upstreams.join().unwrap(), OnFault::Pass))
}

impl Place {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        Self::at(folder)
    }

    fn at(folder: tempfile::TempDir) -> Self {
        let options = GlobalOptions {
            json: false,
            base_dir: Some(folder.path().to_owned()),
            config: None,
            set: Vec::new(),
        };
        let app = App::new(&options).unwrap();
        let access = ClientAccess::open(folder.path()).unwrap();
        let house = ServerState::new(&app.context, access);
        let gateway = gateway(&house);
        let router = router(Arc::clone(&house), &gateway, ListenReach::Loopback);
        Self { folder, house, router }
    }

    /// The same folder under another server, as after a crash.
    fn again(self) -> Self {
        Self::at(self.folder)
    }

    /// A key of `user`.
    fn key(&self, user: &str, sees: Sees, sessions: &[&str]) -> String {
        let secret = keys::secret().unwrap();
        let key = StoredKey {
            name: format!("key-{user}"),
            digest: keys::digest(&secret),
            user: Some(user.into()),
            sees,
            sessions: sessions.iter().map(|id| (*id).to_owned()).collect(),
            rate: None,
            concurrency: None,
            expires: None,
            created_at: "2026-01-01T00:00:00.000000Z".into(),
        };
        keys::add(self.folder.path(), key).unwrap();
        secret
    }

    async fn send(&self, mut request: Request<Body>) -> Told {
        let peer: SocketAddr = "127.0.0.1:9".parse().unwrap();
        request.extensions_mut().insert(ConnectInfo(peer));
        let response = self.router.clone().oneshot(request).await.unwrap();
        let (parts, body) = response.into_parts();
        let bytes = to_bytes(body, 64 << 20).await.unwrap().to_vec();
        Told { status: parts.status, headers: parts.headers, bytes }
    }

    /// A call with headers and perhaps a JSON body.
    async fn with(&self, method: &str, path: &str, headers: &[(&str, &str)], body: Option<&Value>) -> Told {
        let mut request = Request::builder().method(method).uri(format!("/api/v1{path}"));
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let body = match body {
            Some(body) => {
                request = request.header("content-type", "application/json");
                Body::from(body.to_string())
            }
            None => Body::empty(),
        };
        self.send(request.body(body).unwrap()).await
    }

    async fn get(&self, path: &str) -> Told {
        self.with("GET", path, &[], None).await
    }

    async fn post(&self, path: &str, body: Value) -> Told {
        self.with("POST", path, &[], Some(&body)).await
    }

    /// A session with a few words in it.
    async fn talk(&self, id: &str) {
        self.post("/sessions", json!({ "id": id, "window": 4000 })).await.ok(201);
        let messages = json!([
            { "role": "user", "content": "窓を開けて。" },
            { "role": "assistant", "content": "開けました。" },
            { "role": "user", "content": "ありがとう。もう一度閉めてください。" },
        ]);
        self.post(&format!("/sessions/{id}/threads/root/entries"), json!({ "messages": messages }))
            .await
            .ok(201);
    }
}
