//! What ends a request before its answer: refusals, files that change, time, and whoever asked.

use crate::client::server::{Peer, Script, Server, answer, nobody, whole};
use crate::client::{body, bytes, client, file, once, patience, send, text, zeros};
use komado_provider::{
    ApiKey, Cancel, Client, ClientBody, ClientTimeouts, Dialect, Method, Provider, SendError, SendStep,
};
use std::path::Path;
use std::sync::mpsc;
use std::time::Duration;

#[test]
fn a_server_that_says_no_before_it_has_read_all_is_heard() {
    let file = zeros(48 << 20);
    for (read, status) in [(0, "413 Too Large"), (1 << 20, "400 Bad Request"), (9 << 20, "413 Too Large")] {
        let refuse = move || -> Script {
            Box::new(move |peer: &mut Peer| {
                peer.head();
                peer.skip(read);
                peer.say(&whole(status, "", "too long: 48 MB"));
            })
        };
        // Where a server reads on for a while before it hangs up, our last bytes can cross its answer and destroy it;
        // then it is asked again.
        let server = Server::play((0..3).map(|_| refuse()).collect());
        let result = client().post(&server.provider(), body(file.path()), &Cancel::default(), &mut |_| {});
        let (code, said) = text(result);
        assert_eq!((&*code.to_string(), &*said), (&status[..3], "too long: 48 MB"));
    }
}

#[test]
fn a_server_that_broke_off_is_listened_to_before_it_is_sent_the_rest() {
    let scripts: [Script; 2] = [
        Box::new(|peer| {
            peer.head();
            peer.skip(1 << 20);
        }),
        Box::new(|peer| {
            peer.head();
            peer.say(&whole("413 Too Large", "", "too long"));
        }),
    ];
    let server = Server::play(scripts.into());
    let (file, mut waits) = (zeros(48 << 20), Vec::new());
    let result = client().post(&server.provider(), body(file.path()), &Cancel::default(), &mut |waiting| {
        waits.push(waiting.status);
    });
    assert_eq!((text(result), waits), ((413, "too long".to_owned()), vec![None]));
    server.done();
}

#[test]
fn a_refused_request_is_not_sent_to_its_end() {
    let (go, wait) = mpsc::channel::<()>();
    let script: Script = Box::new(move |peer| {
        peer.head();
        peer.say("HTTP/1.1 400 Bad Request\r\ncontent-length: 7\r\n\r\nno ");
        wait.recv().unwrap();
        peer.say("more");
        assert!(peer.drain() < 48 << 20);
    });
    let server = Server::play(vec![script]);
    let file = zeros(48 << 20);
    let result = once().post(&server.provider(), body(file.path()), &Cancel::default(), &mut |_| {});
    go.send(()).unwrap();
    assert_eq!(text(result), (400, "no more".to_owned()));
    server.done();
}

#[test]
fn a_file_that_is_not_as_long_as_was_said_is_not_sent() {
    let file = file(b"{}");
    for len in [1, 3] {
        let to = Provider::at("test", Dialect::Chat, &format!("http://127.0.0.1:{}", nobody())).unwrap();
        let body = ClientBody::File { path: file.path(), len };
        let error = client().post(&to, body, &Cancel::default(), &mut |_| {}).unwrap_err();
        let SendError::Body { path, why } = error else { panic!("{error}") };
        assert_eq!(path, file.path());
        assert!(why.contains(&format!("from {len} to 2 bytes")), "{why}");
    }
}

#[test]
fn a_file_that_changes_on_the_way_never_becomes_a_whole_request() {
    for change in [1 << 20, (48 << 20) + 1] {
        let file = zeros(48 << 20);
        let handle = file.reopen().unwrap();
        let (say, hear) = mpsc::channel();
        let script: Script = Box::new(move |peer| {
            peer.head();
            handle.set_len(change).unwrap();
            say.send(peer.drain()).unwrap();
        });
        let server = Server::play(vec![script]);
        let error = client()
            .post(&server.provider(), body(file.path()), &Cancel::default(), &mut |_| {})
            .unwrap_err();
        assert!(matches!(&error, SendError::Body { why, .. } if why.contains("size changed")), "{error}");
        assert!(hear.recv().unwrap() < 48 << 20);
        server.done();
    }
}

#[test]
fn a_file_that_is_not_there_is_named() {
    let to = Provider::at("test", Dialect::Chat, "http://127.0.0.1:1").unwrap();
    let body = ClientBody::File { path: Path::new("/no/such/request.json"), len: 2 };
    let error = client().post(&to, body, &Cancel::default(), &mut |_| {}).unwrap_err();
    assert!(error.to_string().contains("/no/such/request.json"), "{error}");
}

#[test]
fn an_answer_that_stalls_is_given_up() {
    let (_go, wait) = mpsc::channel::<()>();
    let script: Script = Box::new(move |peer| {
        peer.request();
        peer.say("HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nonly");
        let _ = wait.recv();
    });
    let server = Server::play(vec![script]);
    let client = Client::new(ClientTimeouts { idle: Duration::from_millis(30), ..patience() }).unwrap();
    let mut incoming = send(&client, &server.provider()).0.unwrap();
    assert_eq!(incoming.chunk().unwrap().unwrap().as_ref(), b"only");
    let error = incoming.chunk().unwrap_err();
    assert!(matches!(error, SendError::TimedOut { step: SendStep::Piece, .. }), "{error}");
}

#[test]
fn an_answer_that_does_not_begin_is_given_up_and_not_asked_for_again() {
    let (_go, wait) = mpsc::channel::<()>();
    let script: Script = Box::new(move |peer| {
        peer.request();
        let _ = wait.recv();
    });
    let server = Server::play(vec![script]);
    let client = Client::new(ClientTimeouts { first: Duration::from_millis(30), ..patience() }).unwrap();
    let (result, waits) = send(&client, &server.provider());
    let error = result.unwrap_err();
    assert!(matches!(error, SendError::TimedOut { step: SendStep::Answer, .. }), "{error}");
    assert!(waits.is_empty());
}

/// Cancels from another thread once the server says that it is time, and gives back what `post` made of it.
fn cancelled(script: impl FnOnce(&mut Peer, &dyn Fn()) + Send + 'static, body: ClientBody<'_>) -> SendError {
    let (cancel, (_go, wait)) = (Cancel::default(), mpsc::channel::<()>());
    let stop = cancel.clone();
    let server = Server::play(vec![Box::new(move |peer| {
        script(peer, &|| stop.cancel());
        let _ = wait.recv();
    })]);
    client().post(&server.provider(), body, &cancel, &mut |_| {}).unwrap_err()
}

#[test]
fn cancelling_ends_the_wait_for_an_answer() {
    let error = cancelled(
        |peer, stop| {
            peer.request();
            stop();
        },
        bytes("{}"),
    );
    assert!(matches!(error, SendError::Cancelled), "{error}");
}

#[test]
fn cancelling_ends_the_sending() {
    let file = zeros(48 << 20);
    let error = cancelled(
        |peer, stop| {
            peer.head();
            stop();
        },
        body(file.path()),
    );
    assert!(matches!(error, SendError::Cancelled), "{error}");
}

#[test]
fn cancelling_ends_the_reading() {
    let (cancel, (go, wait)) = (Cancel::default(), mpsc::channel::<()>());
    let (stop, (_keep, kept)) = (cancel.clone(), mpsc::channel::<()>());
    let script: Script = Box::new(move |peer| {
        peer.request();
        peer.say("HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nonly");
        wait.recv().unwrap();
        stop.cancel();
        let _ = kept.recv();
    });
    let server = Server::play(vec![script]);
    let mut incoming = client().post(&server.provider(), bytes("{}"), &cancel, &mut |_| {}).unwrap();
    assert_eq!(incoming.chunk().unwrap().unwrap().as_ref(), b"only");
    go.send(()).unwrap();
    let error = incoming.chunk().unwrap_err();
    assert!(matches!(error, SendError::Cancelled), "{error}");
}

#[test]
fn cancelling_ends_the_wait_between_two_tries() {
    let server = Server::play(vec![answer(whole("503 Later", "retry-after: 3600\r\n", ""))]);
    let hours = Duration::from_secs(7200);
    let client = Client::new(ClientTimeouts { longest_delay: hours, ..patience() }).unwrap();
    let cancel = Cancel::default();
    let mut told = None;
    let error = client.post(&server.provider(), bytes("{}"), &cancel, &mut |waiting| {
        told = Some(waiting.delay);
        cancel.cancel();
    });
    assert!(matches!(error, Err(SendError::Cancelled)));
    assert_eq!(told, Some(Duration::from_secs(3600)));
    server.done();
}

#[test]
fn what_is_cancelled_before_it_begins_does_not_begin() {
    let cancel = Cancel::default();
    cancel.cancel();
    let to = Provider::at("test", Dialect::Chat, "http://127.0.0.1:1").unwrap();
    let sent = client().post(&to, bytes("{}"), &cancel, &mut |_| panic!("it began"));
    assert!(matches!(sent, Err(SendError::Cancelled)));
    let fetched = client().fetch(&to, Method::GET, "/", None, &cancel);
    assert!(matches!(fetched, Err(SendError::Cancelled)));
}

#[test]
fn no_error_shows_a_key() {
    let key = ApiKey::new("sk-sesame").unwrap();
    let hang_up: Script = Box::new(|peer| peer.hang_up());
    let server = Server::play(vec![hang_up, answer(whole("301 Gone", "location: http://x:y@z/\r\n", ""))]);
    let to = server.provider().with_key(key.clone());
    let mut errors = vec![send(&once(), &to).0.unwrap_err(), send(&once(), &to).0.unwrap_err()];
    server.done();
    errors.push(send(&once(), &to).0.unwrap_err());
    let mut odd = to.clone();
    odd.base_url = "http://user:sk-sesame@127.0.0.1:1".to_owned();
    errors.push(send(&once(), &odd).0.unwrap_err());
    let mut bad = to;
    bad.headers.push(("x-own".to_owned(), "sk-sesame\n".to_owned()));
    errors.push(send(&once(), &bad).0.unwrap_err());
    for error in errors {
        let said = format!("{error} {error:?}");
        assert!(!said.contains("sesame") && !said.contains("x:y"), "{said}");
    }
}

#[test]
fn a_server_that_does_not_speak_securely_is_told_from_one_that_is_not_there() {
    let script: Script = Box::new(|peer| {
        peer.say("HTTP/1.1 400 Bad Request\r\n\r\n");
        peer.drain();
    });
    let server = Server::play(vec![script]);
    let (result, waits) = send(&client(), &server.secure());
    let error = result.unwrap_err();
    assert!(matches!(error, SendError::Tls { .. }), "{error:?} {waits:?}");
    assert!(waits.is_empty());
}
