//! Paths, refusals, and a panic of ours in the middle of a request.

use super::*;
use crate::server::access::ClientAccess;
use crate::server::listen::PeerAddress;
use crate::server::{ListenReach, router};
use axum::extract::ConnectInfo;
use http_body_util::BodyExt;
use komado_config::{Config, Sources};
use komado_engine::{Clock, Engine};
use komado_ops::OperationContext;
use komado_store::MemoryStore;
use std::sync::atomic::{AtomicBool, Ordering};
use tower::ServiceExt;

/// A clock that breaks.
#[derive(Default)]
struct Breaks(AtomicBool);

impl Clock for Breaks {
    fn now(&self) -> String {
        assert!(!self.0.load(Ordering::SeqCst), "時計が止まった");
        "2026-01-01T00:00:00Z".to_owned()
    }
}

fn config() -> Config {
    let folder = std::env::temp_dir();
    Config::load(&Sources {
        flags: &[],
        env: &|_| None,
        env_names: &[],
        file: None,
        cwd: &folder.join("no-such-folder"),
        home: None,
        xdg: None,
        data: None,
        has_contexts: &|_| false,
        in_folder: komado_config::InFolder::Ignored,
        has_consent: &|_, _| false,
    })
    .unwrap()
}

fn threads() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap()
}

/// A gateway in front of the built-in model, and its routes.
fn opened(
    runtime: &tokio::runtime::Runtime,
    clock: &Arc<Breaks>,
    on_fault: OnFault,
) -> (Arc<Gateway>, Router) {
    let engine = Engine::new(Arc::new(MemoryStore::default()), Arc::clone(clock) as Arc<dyn Clock>);
    let context = OperationContext::new(engine, Arc::new(config()), None, |_| {});
    let upstreams = GatewayUpstreams::open(&context, Some("scripted"), runtime.handle()).unwrap();
    let house = ServerState::new(&context, ClientAccess::default());
    let gateway = Arc::new(Gateway::new(&house, upstreams, on_fault));
    let router = router(house, &gateway, ListenReach::Loopback);
    (gateway, router)
}

fn to(method: &str, path: &str, body: &'static str) -> Request {
    let mut request = Request::builder().method(method).uri(path).body(Body::from(body)).unwrap();
    request.extensions_mut().insert(ConnectInfo(PeerAddress(([127, 0, 0, 1], 9).into())));
    request
}

fn asked(on_fault: OnFault) -> (u16, HeaderMap, String) {
    let (runtime, clock) = (threads(), Arc::new(Breaks::default()));
    let (gateway, router) = opened(&runtime, &clock, on_fault);
    clock.0.store(true, Ordering::SeqCst);
    let body = r#"{"model":"scripted","messages":[{"role":"user","content":"窓"}]}"#;
    let request = to("POST", "/v1/chat/completions", body);
    let answer = runtime.block_on(async {
        let answer = router.oneshot(request).await.unwrap();
        let (parts, body) = answer.into_parts();
        let bytes = body.collect().await.unwrap().to_bytes();
        (parts.status.as_u16(), parts.headers, String::from_utf8(bytes.to_vec()).unwrap())
    });
    assert!(gateway.meters.render(0).contains("komado_faults_total{kind=\"panic\"} 1"));
    answer
}

#[test]
fn calls_of_the_api_wait_for_a_seat_and_requests_to_models_do_not() {
    let runtime = threads();
    let (gateway, router) = opened(&runtime, &Arc::default(), OnFault::Pass);
    runtime.block_on(async {
        let taken = gateway.limits.fill().await;
        let call = tokio::spawn(router.clone().oneshot(to("GET", "/api/v1", "")));
        let body = r#"{"model":"scripted","messages":[{"role":"user","content":"窓"}]}"#;
        let asked = router.oneshot(to("POST", "/v1/chat/completions", body)).await.unwrap();
        assert_eq!(asked.status(), 200);
        assert!(!call.is_finished());
        drop(taken);
        assert_eq!(call.await.unwrap().unwrap().status(), 200);
    });
}

#[test]
fn a_path_says_how_its_client_speaks_also_behind_a_provider() {
    for (path, dialect) in [
        ("/v1/messages", Dialect::Messages),
        ("/messages", Dialect::Messages),
        ("/any/v1/messages/count_tokens", Dialect::Messages),
        ("/any/responses", Dialect::Responses),
        ("/api/chat", Dialect::Ollama),
        ("/any/api/chat", Dialect::Ollama),
        ("/v1/embeddings", Dialect::Chat),
    ] {
        assert_eq!(dialect_at(path), dialect, "{path}");
    }
}

#[test]
fn a_panic_of_ours_lets_the_request_through_untouched() {
    let (status, headers, body) = asked(OnFault::Pass);
    assert_eq!(status, 200, "{body}");
    assert!(headers["x-komado-fault"].to_str().unwrap().starts_with("panic"), "{headers:?}");
    assert!(body.contains("You said"), "{body}");
}

#[test]
fn a_panic_of_ours_stops_the_request_for_those_who_wish_it() {
    let (status, headers, body) = asked(OnFault::Stop);
    assert_eq!(status, 503, "{body}");
    assert!(headers.contains_key("x-komado-fault") && body.contains("told to stop"), "{body}");
}

fn of(method: &str, path: &str) -> (Option<String>, TargetKind, Dialect) {
    let known = |name: &str| ["ollama", "社内", "llama.cpp"].contains(&name);
    let aim = aim(&method.parse().unwrap(), path, &known);
    (aim.upstream, aim.way, aim.dialect)
}

#[test]
fn a_path_leads_to_one_place_with_or_without_version_and_provider() {
    use Dialect::{Chat, Messages, Ollama, Responses};
    let table = [
        ("/v1/chat/completions", None, TargetKind::Ask, Chat),
        ("/chat/completions/", None, TargetKind::Ask, Chat),
        ("//v1/chat/completions", None, TargetKind::Ask, Chat),
        ("/v1/v1/messages", None, TargetKind::Ask, Messages),
        ("/ollama/v1/responses", Some("ollama"), TargetKind::Ask, Responses),
        ("/%E7%A4%BE%E5%86%85/messages", Some("社内"), TargetKind::Ask, Messages),
        ("/llama.cpp/api/chat", Some("llama.cpp"), TargetKind::Ask, Ollama),
        ("/api/chat", None, TargetKind::Ask, Ollama),
        ("/v1/responses/compact", None, TargetKind::Compact, Responses),
        ("/v1/messages/count_tokens", None, TargetKind::Count, Messages),
        ("/api/show", None, TargetKind::Root("/api/show".into()), Ollama),
        ("/v1/embeddings", None, TargetKind::Version("/embeddings".into()), Chat),
        ("/ollama/embeddings", Some("ollama"), TargetKind::Version("/embeddings".into()), Chat),
        ("/embeddings", None, TargetKind::Nowhere, Chat),
        ("/acme/v1/messages", None, TargetKind::Nowhere, Chat),
        ("/api/v1/sessions", None, TargetKind::Nowhere, Ollama),
        ("/v1/api/v1/sessions", None, TargetKind::Nowhere, Ollama),
    ];
    for (path, upstream, way, dialect) in table {
        assert_eq!(of("POST", path), (upstream.map(str::to_owned), way, dialect), "{path}");
    }
}

#[test]
fn nothing_leads_out_of_the_version() {
    for path in ["..%2F..%2Fx", "../x", "%2e%2e/x", "a/%2E./b", "%2e%2e%5cx", ".%2e", "%2e%2e/%ff"] {
        for path in [format!("/v1/models/{path}"), format!("/v1/{path}"), format!("/ollama/api/{path}")] {
            assert_eq!(of("GET", &path).1, TargetKind::Nowhere, "{path}");
        }
    }
    assert_eq!(of("GET", "/v1/models/gpt-5..x").1, TargetKind::Model("gpt-5..x".into()));
    assert_eq!(encoded("社内/m?a#b%2e c:8b"), "%E7%A4%BE%E5%86%85/m%3Fa%23b%252e%20c:8b");
}

#[test]
fn a_path_that_some_servers_take_for_another_one_is_ambiguous() {
    for path in ["a;/..;/files", "a%3b", ".x", "%2ex", "a/%252e%252e/files", "a%00", "a%250ab", "a%5c.b"] {
        assert!(is_ambiguous(&format!("/v1/models/{path}")), "{path}");
    }
    for path in ["gpt-5..x", "org/model:8b", "a%2Fb", "%E7%AA%93", "100%25", "%ff"] {
        assert!(!is_ambiguous(&format!("/v1/models/{path}")), "{path}");
    }
}

#[test]
fn what_is_read_and_what_is_written_are_different_ways() {
    assert_eq!(of("HEAD", "/").1, TargetKind::About);
    assert_eq!(of("GET", "").1, TargetKind::About);
    assert_eq!(of("GET", "/ollama").1, TargetKind::About);
    assert_eq!(of("GET", "/v1/models").1, TargetKind::Models);
    assert_eq!(of("GET", "/v1/models/a%2Fb/c").1, TargetKind::Model("a/b/c".into()));
    assert_eq!(of("DELETE", "/v1/models/x").1, TargetKind::Version("/models/x".into()));
    assert_eq!(of("GET", "/v1/responses").1, TargetKind::Version("/responses".into()));
    assert_eq!(of("GET", "/responses").1, TargetKind::Nowhere);
    assert_eq!(of("POST", "/").1, TargetKind::Nowhere);
}

#[test]
fn a_provider_that_is_slow_is_told_from_one_that_is_away() {
    let slow = SendError::TimedOut {
        url: "u".into(),
        step: SendStep::Answer,
        after: std::time::Duration::from_secs(1),
    };
    let away = SendError::Unreachable { url: "u".into(), why: "refused".into() };
    assert_eq!((GatewayRefusal::of(&slow).status, GatewayRefusal::of(&away).status), (504, 502));
}
