//! A provider that takes its time: what it says meanwhile is let go, so that the client's own patience lasts.

use super::kit::{Agent, Ear, World};
use komado_provider::Dialect;
use komado_provider::scripted::ScriptedOptions;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

const HEAD: &str = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";
const WAITING: &str = ": OPENROUTER PROCESSING\n\n";

/// Answers once: the head and a comment, and the rest when the client has heard of it. Tells whether it has.
fn gated(rest: String, heard: Receiver<()>) -> (String, std::thread::JoinHandle<bool>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let server = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut bytes = vec![0; 1 << 16];
        let mut request = String::new();
        while !request.ends_with("}\n") {
            let n = stream.read(&mut bytes).unwrap();
            request.push_str(&String::from_utf8_lossy(&bytes[..n]));
        }
        stream.write_all(HEAD.as_bytes()).unwrap();
        stream.write_all(WAITING.as_bytes()).unwrap();
        stream.flush().unwrap();
        let was_heard = heard.recv_timeout(Duration::from_secs(20)).is_ok();
        stream.write_all(rest.as_bytes()).unwrap();
        was_heard
    });
    (url, server)
}

fn ask(rest: &str) -> (bool, Ear) {
    let mut world = World::new(Dialect::Chat, 100_000, ScriptedOptions::default());
    world.relay.patience = Duration::ZERO;
    let (bell, heard) = channel();
    let (url, server) = gated(rest.to_owned(), heard);
    let mut agent = Agent::new(Dialect::Chat);
    agent.server = Some(url);
    agent.say("hello");
    let mut ear = Ear { bell: Some(bell), ..Ear::default() };
    agent.send(&world, &mut ear).unwrap();
    (server.join().unwrap(), ear)
}

#[test]
fn a_client_hears_that_its_provider_is_at_work_before_the_first_words() {
    let rest = "data: {\"id\":\"1\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\"hi\"}}]}\n\n\
                data: {\"id\":\"1\",\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n\
                data: [DONE]\n\n";
    let (was_heard, ear) = ask(rest);
    assert!(was_heard);
    assert_eq!(ear.text(), format!("{WAITING}{rest}"));
    assert!(ear.ended && ear.notes.cut.is_none());
}

#[test]
fn an_overflow_after_that_is_handed_on() {
    let rest = "data: {\"error\":{\"message\":\"maximum context length is 10 tokens\",\"code\":\"context_length_exceeded\"}}\n\n";
    let (was_heard, ear) = ask(rest);
    assert!(was_heard);
    assert_eq!(ear.text(), format!("{WAITING}{rest}"));
    assert_eq!((ear.status, ear.notes.attempts), (200, 1));
}
