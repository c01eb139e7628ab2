//! Probes, and where the client is called from.

use crate::client::server::{Script, Server, answer, nobody, whole};
use crate::client::{client, once, patience, send, text};
use crate::own_process::is_inside;
use komado_provider::{Cancel, Client, Dialect, Method, Provider, SendError};
use std::sync::mpsc;

#[test]
fn a_probe_gets_status_and_body_of_any_path_and_is_not_tried_again() {
    let (say, hear) = mpsc::channel();
    let scripts = ["200 OK", "503 Later"].map(|status| -> Script {
        let say = say.clone();
        Box::new(move |peer| {
            let (head, body) = peer.request();
            say.send((head.line().to_owned(), body)).unwrap();
            peer.say(&whole(status, "", "窓"));
        })
    });
    let server = Server::play(scripts.into());
    let (to, cancel) = (server.speaking(Dialect::Ollama), Cancel::default());
    let got = client().fetch(&to, Method::GET, "/api/ps", None, &cancel).unwrap();
    assert_eq!(got, (200, "窓".to_owned()));
    let show = Some(r#"{"model":"m"}"#.to_owned());
    let got = client().fetch(&to, Method::POST, "/api/show", show, &cancel).unwrap();
    assert_eq!(got, (503, "窓".to_owned()));
    assert_eq!(hear.recv().unwrap(), ("GET /api/ps HTTP/1.1".to_owned(), Vec::new()));
    let sent = ("POST /api/show HTTP/1.1".to_owned(), br#"{"model":"m"}"#.to_vec());
    assert_eq!(hear.recv().unwrap(), sent);
    server.done();
}

#[test]
fn an_answer_to_a_probe_that_does_not_end_is_not_taken_in() {
    let script: Script = Box::new(|peer| {
        peer.request();
        peer.say(&whole("200 OK", "", &"x".repeat((4 << 20) + 1)));
    });
    let server = Server::play(vec![script]);
    let error = client().fetch(&server.provider(), Method::GET, "/", None, &Cancel::default()).unwrap_err();
    assert!(matches!(error, SendError::TooLong { .. }), "{error}");
}

#[test]
fn a_client_works_and_ends_where_others_are_asynchronous() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let server = Server::play((0..2).map(|_| answer(whole("200 OK", "", "here"))).collect());
    let to = server.provider();
    let handle = runtime.handle().clone();
    runtime.block_on(async move {
        assert_eq!(text(send(&client(), &to).0), (200, "here".to_owned()));
        let shared = Client::on(handle, patience());
        assert_eq!(text(send(&shared, &to).0), (200, "here".to_owned()));
    });
    server.done();
}

#[test]
fn a_proxy_is_not_asked_about_this_machine() {
    let proxy = format!("http://127.0.0.1:{}", nobody());
    let environment = ["http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"].map(|name| (name, &*proxy));
    if !is_inside("client::probe::a_proxy_is_not_asked_about_this_machine", &environment) {
        return;
    }
    let server = Server::play(vec![answer(whole("200 OK", "", "here"))]);
    assert_eq!(text(send(&once(), &server.provider()).0), (200, "here".to_owned()));
    server.done();
    // A name that no resolver has: only a proxy could be asked for it, and this one is not there.
    let away = Provider::at("test", Dialect::Chat, "http://away.invalid").unwrap();
    let error = send(&once(), &away).0.unwrap_err();
    assert!(error.to_string().contains("refused"), "the proxy is asked about others: {error}");
}

#[cfg(target_os = "linux")]
#[test]
fn a_machine_without_certificates_speaks_to_those_who_need_none() {
    let none = "/no/such/certificates";
    let environment = [("SSL_CERT_FILE", none), ("SSL_CERT_DIR", none)];
    if !is_inside("client::probe::a_machine_without_certificates_speaks_to_those_who_need_none", &environment)
    {
        return;
    }
    let server = Server::play(vec![answer(whole("200 OK", "", "here"))]);
    assert_eq!(text(send(&once(), &server.provider()).0), (200, "here".to_owned()));
    server.done();
    let open = Provider::at("test", Dialect::Chat, "http://away.invalid").unwrap();
    assert!(matches!(send(&once(), &open).0, Err(SendError::Unreachable { .. })));
    let secure = Provider::at("test", Dialect::Chat, "https://away.invalid").unwrap();
    let error = send(&once(), &secure).0.unwrap_err();
    assert!(matches!(error, SendError::Tls { .. }), "{error:?}");
    assert!(error.to_string().contains("ca-certificates"), "{error}");
}
