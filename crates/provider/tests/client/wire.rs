//! What is on the wire.

use crate::client::server::{Script, Server, whole};
use crate::client::{body, client, file, send, text};
use komado_provider::{ApiKey, Cancel, Dialect};
use std::sync::mpsc;

#[test]
fn a_file_arrives_byte_for_byte_with_its_length_said_before() {
    let sent: Vec<u8> = "小窓から見える会話。".bytes().cycle().take(700_001).collect();
    let (say, hear) = mpsc::channel();
    let script: Script = Box::new(move |peer| {
        say.send(peer.request()).unwrap();
        peer.say(&whole("200 OK", "content-type: application/json; charset=utf-8\r\n", "{}"));
    });
    let server = Server::play(vec![script]);
    let to = server.speaking(Dialect::Messages).with_key(ApiKey::new("sk-sesame").unwrap());
    let file = file(&sent);
    let incoming = client().post(&to, body(file.path()), &Cancel::default(), &mut |_| {}).unwrap();
    assert!(!incoming.is_stream());
    assert_eq!(text(Ok(incoming)), (200, "{}".to_owned()));
    let (head, arrived) = hear.recv().unwrap();
    assert!(arrived == sent, "the bytes differ");
    assert_eq!(head.line(), "POST /v1/messages HTTP/1.1");
    assert_eq!(head.all("content-length"), ["700001"]);
    assert_eq!(head.get("transfer-encoding"), None);
    assert_eq!(head.all("content-type"), ["application/json"]);
    assert_eq!(head.all("x-api-key"), ["sk-sesame"]);
    assert_eq!(head.get("authorization"), None);
    assert_eq!(head.all("anthropic-version"), ["2023-06-01"]);
    assert_eq!(head.all("user-agent"), [concat!("komado/", env!("CARGO_PKG_VERSION"))]);
    server.done();
}

#[test]
fn an_empty_request_says_that_it_is_empty() {
    let script: Script = Box::new(|peer| {
        assert_eq!(peer.head().get("content-length"), Some("0"));
        peer.say(&whole("200 OK", "", "fine"));
    });
    let server = Server::play(vec![script]);
    let file = file(b"");
    let result = client().post(&server.provider(), body(file.path()), &Cancel::default(), &mut |_| {});
    assert_eq!(text(result), (200, "fine".to_owned()));
    server.done();
}

#[test]
fn headers_of_the_owner_win_and_those_of_the_connection_stay_ours() {
    let (say, hear) = mpsc::channel();
    let script: Script = Box::new(move |peer| {
        say.send(peer.request()).unwrap();
        peer.say(&whole("200 OK", "", ""));
    });
    let server = Server::play(vec![script]);
    let mut to = server.speaking(Dialect::Messages).with_key(ApiKey::new("sk-own").unwrap());
    to.headers = [
        ("Anthropic-Version", "2099-01-01"),
        ("anthropic-beta", "one"),
        ("anthropic-beta", "two"),
        ("x-title", "小窓"),
        ("X-Api-Key", "sk-client"),
        ("Content-Length", "1"),
        ("transfer-encoding", "chunked"),
        ("accept-encoding", "gzip"),
    ]
    .map(|(name, value)| (name.to_owned(), value.to_owned()))
    .to_vec();
    send(&client(), &to).0.unwrap();
    let (head, arrived) = hear.recv().unwrap();
    assert_eq!(arrived, b"{}");
    assert_eq!(head.all("anthropic-version"), ["2099-01-01"]);
    assert_eq!(head.all("anthropic-beta"), ["one", "two"]);
    assert_eq!(head.all("x-title"), ["小窓"]);
    assert_eq!(head.all("x-api-key"), ["sk-client"]);
    assert_eq!(head.all("content-length"), ["2"]);
    assert_eq!(head.get("transfer-encoding"), None);
    assert_eq!(head.all("accept-encoding"), ["identity"]);
    server.done();
}

#[test]
fn a_stream_is_known_by_its_type_and_comes_as_it_is_said() {
    let (go, wait) = mpsc::channel::<()>();
    let script: Script = Box::new(move |peer| {
        peer.request();
        peer.say(
            "HTTP/1.1 200 OK\r\ncontent-type: Text/Event-Stream\r\nconnection: close\r\n\r\ndata: 1\n\n",
        );
        wait.recv().unwrap();
        peer.say("data: 2\n\n");
    });
    let server = Server::play(vec![script]);
    let mut incoming = send(&client(), &server.provider()).0.unwrap();
    assert!(incoming.is_stream());
    assert_eq!(incoming.chunk().unwrap().unwrap().as_ref(), b"data: 1\n\n");
    go.send(()).unwrap();
    assert_eq!(incoming.chunk().unwrap().unwrap().as_ref(), b"data: 2\n\n");
    assert!(incoming.chunk().unwrap().is_none());
    assert!(incoming.chunk().unwrap().is_none());
    server.done();
}
