//! Answers as they come, clients that go, and a server that is told to stop.

use crate::gateway::stage::{ASKS, Fake, Gateway, answer, begin, begun, next, piece};
use std::io::{BufReader, Read};
use std::sync::Mutex;
use std::sync::mpsc::{Receiver, channel};

const CHUNK: &str = "data: {\"id\":\"c\",\"object\":\"chat.completion.chunk\",\"created\":1,\"model\":\"m\",\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":\"窓\"},\"finish_reason\":null}]}\n\n";
const LAST: &str = "data: {\"id\":\"c\",\"object\":\"chat.completion.chunk\",\"created\":1,\"model\":\"m\",\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n";
const ASK: &str = r#"{"model":"m","stream":true,"messages":[{"role":"user","content":"窓"}]}"#;

/// A provider that says one piece, waits to be told, and says the rest.
fn gated() -> (Fake, std::sync::mpsc::Sender<()>) {
    let (go, gate) = channel::<()>();
    let gate: Mutex<Receiver<()>> = Mutex::new(gate);
    let fake = Fake::start(move |_, stream| {
        begin(stream);
        piece(stream, CHUNK);
        let _ = gate.lock().unwrap().recv();
        piece(stream, LAST);
        piece(stream, "");
    });
    (fake, go)
}

#[test]
fn a_piece_of_an_answer_reaches_the_client_before_the_next_one_is_made() {
    let (fake, go) = gated();
    let gateway = Gateway::before(&fake, "openai", &[]);
    let mut reader = BufReader::new(gateway.send("POST /v1/chat/completions", &[], ASK.as_bytes()));
    let head = begun(&mut reader);
    assert_eq!((head.status(), head.header("content-type")), (200, "text/event-stream"));
    assert_eq!(next(&mut reader).unwrap(), CHUNK, "before the provider goes on");
    go.send(()).unwrap();
    let mut said = String::new();
    while let Some(more) = next(&mut reader).filter(|more| !more.is_empty()) {
        said += &more;
    }
    assert_eq!(said, LAST);
}

#[test]
fn a_client_that_goes_stops_the_provider_before_and_during_an_answer() {
    for speaks in [false, true] {
        let (say, gone) = channel();
        let say = Mutex::new(say);
        let fake = Fake::start(move |_, stream| {
            if speaks {
                begin(stream);
                piece(stream, CHUNK);
            }
            say.lock().unwrap().send("asked").unwrap();
            // Nothing is said any more: only the end of the connection is seen here.
            let mut end = [0];
            let _ = stream.read(&mut end);
            say.lock().unwrap().send("gone").unwrap();
        });
        let gateway = Gateway::before(&fake, "openai", &[]);
        let mut reader = BufReader::new(gateway.send("POST /v1/chat/completions", &[], ASK.as_bytes()));
        assert_eq!(gone.recv().unwrap(), "asked");
        if speaks {
            begun(&mut reader);
            next(&mut reader).unwrap();
        }
        drop(reader);
        assert_eq!(
            gone.recv_timeout(std::time::Duration::from_secs(20)),
            Ok("gone"),
            "while it speaks: {speaks}"
        );
    }
}

#[test]
fn an_answer_that_breaks_off_does_not_look_whole() {
    let fake = Fake::start(|_, stream| {
        begin(stream);
        piece(stream, CHUNK);
    });
    let gateway = Gateway::before(&fake, "openai", &[]);
    let answer = gateway.ask("POST /v1/chat/completions", &[], ASK.as_bytes());
    assert_eq!((answer.status(), answer.text().as_str(), answer.is_whole), (200, CHUNK, false));
}

#[test]
fn an_answer_under_way_ends_before_the_server_does() {
    let (fake, go) = gated();
    let mut gateway = Gateway::before(&fake, "openai", &[]);
    let mut reader = BufReader::new(gateway.send("POST /v1/chat/completions", &[], ASK.as_bytes()));
    begun(&mut reader);
    next(&mut reader).unwrap();
    gateway.signal(rustix::process::Signal::TERM);
    while !gateway.log().contains("stopping") {
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    assert!(gateway.child.try_wait().unwrap().is_none());
    go.send(()).unwrap();
    assert_eq!(next(&mut reader).unwrap(), LAST);
    let mut rest = String::new();
    reader.read_to_string(&mut rest).unwrap();
    assert_eq!(gateway.child.wait().unwrap().code(), Some(0), "{}", gateway.log());
}

#[test]
fn without_grace_an_answer_under_way_is_cut_and_the_server_ends_all_the_same() {
    let (fake, _go) = gated();
    let gateway = Gateway::before(&fake, "openai", &["--set", "server.grace_seconds=0"]);
    let mut reader = BufReader::new(gateway.send("POST /v1/chat/completions", &[], ASK.as_bytes()));
    begun(&mut reader);
    next(&mut reader).unwrap();
    assert_eq!(gateway.stop(), Some(0));
}

#[test]
fn many_at_once_are_not_mixed() {
    let fake = Fake::start(|request, stream| {
        let word = request.json()["messages"][0]["content"].as_str().unwrap().to_owned();
        crate::gateway::stage::say(stream, 200, &crate::gateway::stage::reply(request.path(), &word));
    });
    let gateway = Gateway::before(&fake, "openai", &[]);
    std::thread::scope(|scope| {
        for n in 0..24 {
            let gateway = &gateway;
            scope.spawn(move || {
                for turn in 0..3 {
                    let body = format!(
                        r#"{{"model":"m","messages":[{{"role":"user","content":"窓 {n}.{turn}"}}]}}"#
                    );
                    let agent = format!("agent {n}");
                    let mut stream = BufReader::new(gateway.send(
                        "POST /v1/chat/completions",
                        &[("user-agent", &agent)],
                        body.as_bytes(),
                    ));
                    let answer = answer(&mut stream);
                    assert_eq!(answer.json()["choices"][0]["message"]["content"], format!("窓 {n}.{turn}"));
                    assert_eq!(answer.header("x-komado-fault"), "", "{}", gateway.log());
                }
            });
        }
    });
    assert_eq!(fake.seen().len(), 72);
    assert_eq!(ASKS.len(), 4);
}
