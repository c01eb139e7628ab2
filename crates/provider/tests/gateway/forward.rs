//! A client's request, sent on.

use super::server::{Peer, Script, Server, whole};
use komado_provider::{
    Cancel, Client, ClientBody, ClientTimeouts, ForwardRequest, Method, ProviderResponse, SendError, Splice,
    SplicePiece,
};
use std::io::Write;
use std::sync::{Arc, mpsc};

fn client() -> Client {
    Client::new(ClientTimeouts::default()).unwrap()
}

fn url(server: &Server) -> String {
    format!("{}/v1/chat/completions?beta=true&x=%E7%AA%93", server.provider().base_url)
}

fn headers(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
    pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

fn forward(
    client: &Client,
    url: &str,
    given: &[(&str, &str)],
    body: ClientBody<'_>,
) -> Result<ProviderResponse, SendError> {
    let headers = headers(given);
    let request = ForwardRequest { method: Method::POST, url, headers: &headers, body };
    client.forward(request, &Cancel::default())
}

fn file(bytes: &[u8]) -> Arc<std::fs::File> {
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(bytes).unwrap();
    Arc::new(file)
}

/// The lines of a request's head, and its body.
type Request = (Vec<String>, Vec<u8>);

/// Takes one request, tells what it was, and says `answer`.
fn telling(answer: String) -> (Script, mpsc::Receiver<Request>) {
    let (tell, told) = mpsc::channel();
    let script = Box::new(move |peer: &mut Peer| {
        let (head, body) = peer.request();
        tell.send((head.lines(), body)).unwrap();
        peer.say(&answer);
    });
    (script, told)
}

#[test]
fn headers_go_on_in_their_order_and_nothing_joins_them() {
    let (script, told) = telling(whole("200 OK", "x-a: 1\r\nx-a: 2\r\nset-cookie: c\r\n", "{}"));
    let server = Server::play(vec![script]);
    let given = [
        ("authorization", "Bearer k"),
        ("accept", "*/*"),
        ("anthropic-beta", "b,a"),
        ("x-app", "窓"),
        ("user-agent", "agent/1"),
        ("content-type", "application/json"),
        ("host", "other"),
        ("content-length", "99"),
        ("transfer-encoding", "chunked"),
        ("connection", "close"),
    ];
    let answer =
        forward(&client(), &url(&server), &given, ClientBody::Bytes(b"{ }".to_vec().into())).unwrap();
    let (head, body) = told.recv().unwrap();
    assert_eq!(head[0], "POST /v1/chat/completions?beta=true&x=%E7%AA%93 HTTP/1.1");
    let names: Vec<&str> = head[1..].iter().map(|line| line.split(':').next().unwrap()).collect();
    let own = ["authorization", "accept", "anthropic-beta", "x-app", "user-agent", "content-type"];
    assert_eq!(names[..6], own);
    let mut rest = names[6..].to_vec();
    rest.sort_unstable();
    assert_eq!(rest, ["content-length", "host"]);
    assert!(head.contains(&"content-length: 3".to_owned()) && head.contains(&"x-app: 窓".to_owned()));
    assert_eq!(body, b"{ }");
    let all: Vec<&str> =
        answer.headers.iter().filter(|(name, _)| name == "x-a").map(|(_, value)| value.as_str()).collect();
    assert_eq!((all, answer.header("set-cookie")), (vec!["1", "2"], Some("c")));
    server.done();
}

#[test]
fn pieces_arrive_as_one_body() {
    let (script, told) = telling(whole("200 OK", "", "ok"));
    let server = Server::play(vec![script]);
    let old: Vec<u8> = (0..200_000u32).map(|i| (i % 251) as u8).collect();
    let pieces = vec![
        SplicePiece::Kept(0..100_001),
        SplicePiece::New("窓".as_bytes().to_vec()),
        SplicePiece::Kept(5..5),
        SplicePiece::New(Vec::new()),
        SplicePiece::Kept(199_990..200_000),
    ];
    let splice = Splice::new(file(&old), pieces);
    let answer = forward(&client(), &url(&server), &[], ClientBody::Spliced(splice)).unwrap();
    assert_eq!(answer.text(10).unwrap(), "ok");
    let expected = [&old[..100_001], "窓".as_bytes(), &old[199_990..]].concat();
    assert!(told.recv().unwrap().1 == expected);
    server.done();
}

#[test]
fn a_body_that_is_shorter_than_it_was_is_never_sent_as_a_whole() {
    let server = Server::play(vec![Box::new(|peer: &mut Peer| {
        let mut text = Vec::new();
        peer.read_to_end(&mut text);
        assert!(text.len() < 150_000, "more than there was");
    })]);
    let there = vec![b'x'; 100_000];
    let splice = Splice::whole(file(&there), 200_000);
    let error = forward(&client(), &url(&server), &[], ClientBody::Spliced(splice)).unwrap_err();
    assert!(matches!(error, SendError::Body { .. }), "{error}");
    server.done();
}

#[test]
fn a_small_one_is_not_even_begun() {
    let splice = Splice::whole(file(b"short"), 100);
    let error = forward(&client(), "http://127.0.0.1:9/", &[], ClientBody::Spliced(splice)).unwrap_err();
    assert!(matches!(error, SendError::Body { .. }), "{error}");
}

#[test]
fn a_redirect_and_an_error_are_answers_and_nothing_is_tried_again() {
    let answers = [
        ("307 Temporary Redirect", "location: http://127.0.0.1:1/\r\n", ""),
        ("429 Too Many Requests", "retry-after: 0\r\n", "slow down"),
        ("503 Service Unavailable", "", "{\"error\":\"busy\"}"),
        ("401 Unauthorized", "www-authenticate: Bearer\r\n", "no"),
    ];
    let client = client();
    for (status, headers, body) in answers {
        let (script, told) = telling(whole(status, headers, body));
        let server = Server::play(vec![script]);
        let answer = forward(&client, &url(&server), &[], ClientBody::Bytes(b"{}".to_vec().into())).unwrap();
        assert_eq!(answer.status.to_string(), status[..3]);
        if let Some((name, value)) = headers.trim().split_once(": ") {
            assert_eq!(answer.header(name), Some(value));
        }
        assert_eq!(answer.text(100).unwrap(), body);
        assert_eq!(told.iter().count(), 1);
        server.done();
    }
}

#[test]
fn a_header_that_cannot_be_sent_is_named_and_nothing_leaves() {
    let error =
        forward(&client(), "http://127.0.0.1:9/", &[("x-bad", "a\nb")], ClientBody::Bytes(Vec::new().into()));
    let error = error.unwrap_err().to_string();
    assert!(error.contains("\"x-bad\"") && !error.contains("a\nb"), "{error}");
}

#[test]
fn a_get_has_no_body_and_no_length() {
    let (script, told) = telling(whole("200 OK", "", "{\"data\":[]}"));
    let server = Server::play(vec![script]);
    let address = url(&server);
    let request = ForwardRequest {
        method: Method::GET,
        url: &address,
        headers: &[],
        body: ClientBody::Bytes(Vec::new().into()),
    };
    let answer = client().forward(request, &Cancel::default()).unwrap();
    assert_eq!(answer.text(100).unwrap(), "{\"data\":[]}");
    let (head, _) = told.recv().unwrap();
    assert!(head[0].starts_with("GET /") && !head.iter().any(|line| line.starts_with("content-length")));
    server.done();
}

#[test]
fn who_cancels_or_goes_away_ends_the_connection() {
    let streaming = || -> Script {
        Box::new(|peer: &mut Peer| {
            peer.request();
            peer.say("HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n4\r\nabc\n\r\n");
            assert_eq!(peer.drain(), 0, "ended by the other side");
        })
    };
    let server = Server::play(vec![streaming(), streaming()]);
    let (client, address, cancel) = (client(), url(&server), Cancel::default());
    let ask = |cancel: &Cancel| {
        let body = ClientBody::Bytes(b"{}".to_vec().into());
        let request = ForwardRequest { method: Method::POST, url: &address, headers: &[], body };
        let mut answer = client.forward(request, cancel).unwrap();
        assert_eq!(answer.chunk().unwrap().unwrap(), "abc\n");
        answer
    };
    let mut answer = ask(&cancel);
    cancel.cancel();
    assert!(matches!(answer.chunk(), Err(SendError::Cancelled)));
    drop(ask(&Cancel::default()));
    server.done();
}

#[test]
fn two_hundred_streams_are_open_at_once_and_their_connections_serve_again() {
    const MANY: usize = 200;
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}/v1/x", listener.local_addr().unwrap());
    // Nobody is answered in full before all have asked; then the same connections are used again.
    let serving = std::thread::spawn(move || {
        let mut peers: Vec<Peer> = (0..MANY).map(|_| Peer::of(listener.accept().unwrap().0)).collect();
        for _round in 0..2 {
            for peer in &mut peers {
                peer.request();
                peer.say("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1\r\na\r\n");
            }
            peers.iter_mut().for_each(|peer| peer.say("1\r\nb\r\n0\r\n\r\n"));
        }
        listener.set_nonblocking(true).unwrap();
        assert!(listener.accept().is_err(), "a connection was not used again");
    });
    let client = client();
    for _round in 0..2 {
        std::thread::scope(|scope| {
            for _ in 0..MANY {
                scope.spawn(|| {
                    let answer =
                        forward(&client, &address, &[], ClientBody::Bytes(b"{}".to_vec().into())).unwrap();
                    assert_eq!(answer.text(10).unwrap(), "ab");
                });
            }
        });
    }
    drop(client);
    serving.join().unwrap();
}
