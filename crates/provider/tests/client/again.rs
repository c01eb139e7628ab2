//! What is tried again, and what is not.

use crate::client::server::{Script, Server, answer, nobody, whole};
use crate::client::{body, client, file, patience, send, text};
use komado_provider::{Cancel, Client, ClientTimeouts, Dialect, Provider, SendError};
use std::sync::mpsc;
use std::time::Duration;

#[test]
fn what_may_pass_is_tried_again_after_the_delay_the_provider_asks_for() {
    let scripts = [
        whole("503 Unavailable", "retry-after-ms: 3\r\n", "busy"),
        whole("429 Too Many", "Retry-After: 0.004\r\n", ""),
        whole(
            "529 Overloaded",
            "date: Sun, 06 Nov 1994 08:49:37 GMT\r\nretry-after: Sun, 06 Nov 1994 08:49:37 GMT\r\n",
            "",
        ),
        whole("200 OK", "", "here"),
    ];
    let (say, hear) = mpsc::channel();
    let scripts = scripts.map(|text| -> Script {
        let say = say.clone();
        Box::new(move |peer| {
            say.send(peer.request().1).unwrap();
            peer.say(&text);
        })
    });
    drop(say);
    let server = Server::play(scripts.into());
    let (file, mut waits) = (file("また".as_bytes()), Vec::new());
    let client = Client::new(ClientTimeouts { tries: 9, ..patience() }).unwrap();
    let result = client.post(&server.provider(), body(file.path()), &Cancel::default(), &mut |waiting| {
        waits.push((waiting.tries, waiting.most, waiting.status, waiting.delay));
    });
    assert_eq!(text(result), (200, "here".to_owned()));
    let ms = Duration::from_millis;
    let expected = [(1, 9, Some(503), ms(3)), (2, 9, Some(429), ms(4)), (3, 9, Some(529), ms(0))];
    assert_eq!(waits, expected);
    assert!(hear.iter().all(|arrived| arrived == "また".as_bytes()), "each try sends the whole file");
    server.done();
}

#[test]
fn who_asks_for_more_patience_than_there_is_is_not_asked_again() {
    let server = Server::play(vec![answer(whole("429 Too Many", "Retry-After: 3600\r\n", "in an hour"))]);
    let (result, waits) = send(&client(), &server.provider());
    assert_eq!(text(result), (429, "in an hour".to_owned()));
    assert!(waits.is_empty(), "{waits:?}");
    server.done();
}

#[test]
fn after_the_last_try_the_last_answer_is_given_back() {
    let scripts = (1..=3).map(|n| answer(whole("502 Bad", "x-n: 窓\r\n", &format!("no {n}")))).collect();
    let server = Server::play(scripts);
    let (result, waits) = send(&client(), &server.provider());
    let incoming = result.unwrap();
    assert_eq!(incoming.header("x-n"), Some("窓"));
    assert_eq!(text(Ok(incoming)), (502, "no 3".to_owned()));
    assert_eq!(waits.iter().map(|waiting| waiting.tries).collect::<Vec<_>>(), [1, 2]);
    server.done();
}

#[test]
fn what_is_wrong_with_the_request_is_not_tried_again() {
    for status in ["400 Bad Request", "401 Unauthorized", "404 Not Found", "413 Too Large", "501 Not Here"] {
        let server = Server::play(vec![answer(whole(status, "retry-after: 0\r\n", "why"))]);
        let (result, waits) = send(&client(), &server.provider());
        let (code, said) = text(result);
        assert_eq!((code.to_string().as_str(), said.as_str()), (&status[..3], "why"));
        assert!(waits.is_empty());
        server.done();
    }
}

#[test]
fn an_answer_that_is_final_comes_back_at_once_and_whole() {
    let long = format!("context overflow {}", "窓".repeat(60_000));
    let server = Server::play(vec![answer(whole("500 Oops", "", &long))]);
    let client = client().final_if(|status, body| status == 500 && body.starts_with("context overflow"));
    let (result, waits) = send(&client, &server.provider());
    assert_eq!(text(result), (500, long));
    assert!(waits.is_empty());
    server.done();
    let server = Server::play(vec![answer(whole("429 Quota", "x-should-retry: false\r\n", "never"))]);
    let (result, waits) = send(&client, &server.provider());
    assert_eq!((text(result), waits), ((429, "never".to_owned()), Vec::new()));
    server.done();
}

#[test]
fn a_connection_that_ends_before_an_answer_is_tried_again() {
    let hang_up: Script = Box::new(|peer| {
        peer.request();
        peer.hang_up();
    });
    let server = Server::play(vec![hang_up, answer(whole("200 OK", "", "here"))]);
    let (result, waits) = send(&client(), &server.provider());
    assert_eq!(text(result), (200, "here".to_owned()));
    assert_eq!((waits.len(), waits[0].status), (1, None));
    assert!(waits[0].why.contains("connection"), "{}", waits[0].why);
    server.done();
}

#[test]
fn where_nobody_listens_the_error_names_the_place() {
    let url = format!("http://127.0.0.1:{}", nobody());
    let to = Provider::at("test", Dialect::Ollama, &url).unwrap();
    let (result, waits) = send(&client(), &to);
    let error = result.unwrap_err();
    assert!(matches!(&error, SendError::Unreachable { url: at, .. } if *at == format!("{url}/api/chat")));
    assert!(error.to_string().contains("refused"), "{error}");
    assert_eq!(waits.len(), 2);
}

#[test]
fn an_answer_that_has_begun_is_never_asked_for_again() {
    let script = answer("HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nonly this");
    let server = Server::play(vec![script]);
    let (result, waits) = send(&client(), &server.provider());
    let mut incoming = result.unwrap();
    assert_eq!(incoming.chunk().unwrap().unwrap().as_ref(), b"only this");
    let error = incoming.chunk().unwrap_err();
    assert!(matches!(error, SendError::Broken { .. }), "{error}");
    assert!(incoming.chunk().unwrap().is_none());
    assert!(waits.is_empty());
    server.done();
}

#[test]
fn a_redirect_is_not_followed_but_told() {
    let script = answer(whole("307 Elsewhere", "location: /other?x=1\r\n", ""));
    let server = Server::play(vec![script]);
    let to = server.provider();
    let error = send(&client(), &to).0.unwrap_err();
    let SendError::Redirected { status: 307, to: target, .. } = &error else { panic!("{error}") };
    assert_eq!(*target, format!("{}/other", to.root()));
    assert!(error.to_string().contains(target));
    server.done();
}
