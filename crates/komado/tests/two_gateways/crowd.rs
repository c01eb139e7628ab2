//! Clients that go back and forth between two gateways, and what became of their conversations.

use crate::two_gateways::stage::{Gateway, Heard};
use rustix::process::Signal;
use serde_json::{Value, json};
use std::io::{BufReader, Read, Write};
use std::net::TcpStream;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// Questions of each client.
const TURNS: usize = 6;
/// How long a client tries.
const PATIENCE: Duration = Duration::from_secs(60);

/// What the model says to a question.
pub(crate) fn answer(question: &str) -> String {
    format!("{question} への答え")
}

/// A conversation as its client knows it.
#[derive(Clone)]
struct Talk {
    sessions: Vec<String>,
    messages: Vec<Value>,
}

/// Clients of two gateways.
pub(crate) struct Crowd {
    gateways: [Gateway; 2],
    talks: Mutex<Vec<Talk>>,
    many: usize,
    answered: AtomicUsize,
    retries: AtomicUsize,
    faults: AtomicUsize,
    slowest_ms: AtomicUsize,
    is_killed: AtomicBool,
}

impl Crowd {
    pub(crate) fn new(gateways: [Gateway; 2], many: usize) -> Self {
        Self {
            gateways,
            talks: Mutex::default(),
            many,
            answered: AtomicUsize::default(),
            retries: AtomicUsize::default(),
            faults: AtomicUsize::default(),
            slowest_ms: AtomicUsize::default(),
            is_killed: AtomicBool::default(),
        }
    }

    /// Everyone talks; the first gateway is killed while they do.
    pub(crate) fn talk(&self) {
        std::thread::scope(|scope| {
            let talk = |client| {
                move || {
                    let talk = self.one(client);
                    self.talks.lock().unwrap().push(talk);
                }
            };
            let clients: Vec<_> = (0..self.many).map(|client| scope.spawn(talk(client))).collect();
            // Those who were not answered in time have panicked, and answer no more: the scope then says so.
            let are_done = || clients.iter().all(|client| client.is_finished());
            while self.answered.load(Ordering::SeqCst) < self.many * TURNS / 2 && !are_done() {
                std::thread::sleep(Duration::from_millis(1));
            }
            self.gateways[0].signal(Signal::KILL);
            self.is_killed.store(true, Ordering::SeqCst);
        });
    }

    fn one(&self, client: usize) -> Talk {
        let mut talk = Talk { sessions: Vec::new(), messages: Vec::new() };
        for turn in 0..TURNS {
            let question = format!("質問 {turn} of client {client}");
            talk.messages.push(json!({ "role": "user", "content": question }));
            let heard = self.ask(client, turn, &talk.messages);
            let reply = heard.json()["choices"][0]["message"]["content"].clone();
            assert_eq!(reply, answer(&question));
            talk.messages.push(json!({ "role": "assistant", "content": reply }));
            talk.sessions.push(heard.header("x-komado-session").to_owned());
            if !heard.header("x-komado-fault").is_empty() {
                eprintln!("client {client}, turn {turn}: {}", heard.header("x-komado-fault"));
                self.faults.fetch_add(1, Ordering::SeqCst);
            }
            self.answered.fetch_add(1, Ordering::SeqCst);
        }
        talk
    }

    /// Asks one gateway, then the other, until there is an answer.
    fn ask(&self, client: usize, turn: usize, messages: &[Value]) -> Heard {
        let body = json!({ "model": "m", "messages": messages }).to_string();
        let begun = Instant::now();
        // Some begin here and some there, so that both are at work whenever one goes.
        for attempt in client + turn.. {
            assert!(begun.elapsed() < PATIENCE, "client {client} had no answer to turn {turn}");
            let heard = ask(&self.gateways[attempt % 2].url, client, &body);
            if let Some(heard) = heard.filter(|heard| heard.is_whole && heard.status() == 200) {
                self.slowest_ms.fetch_max(begun.elapsed().as_millis() as usize, Ordering::SeqCst);
                return heard;
            }
            self.retries.fetch_add(1, Ordering::SeqCst);
        }
        unreachable!("the attempts do not end");
    }

    /// What the gateway that is left says of the conversations.
    pub(crate) fn check(&self) -> Found {
        assert!(self.is_killed.load(Ordering::SeqCst));
        let talks = self.talks.lock().unwrap();
        let left = &self.gateways[1];
        let mut found = Found {
            talks: talks.len(),
            turns: self.answered.load(Ordering::SeqCst),
            retries: self.retries.load(Ordering::SeqCst),
            slowest_ms: self.slowest_ms.load(Ordering::SeqCst),
            unrecorded: self.faults.load(Ordering::SeqCst),
            ..Found::default()
        };
        for talk in talks.iter() {
            let id = &talk.sessions[0];
            found.moved += usize::from(talk.sessions.iter().any(|other| other != id));
            let threads = get(&left.url, &format!("/sessions/{id}/threads"));
            let names = threads["items"].as_array().unwrap_or_else(|| panic!("{id:?}: {threads}"));
            found.forks += names.len() - 1;
            let view = get(&left.url, &format!("/sessions/{id}/threads/root/view"));
            found.wrong += usize::from(!is_same(&view, &talk.messages));
        }
        found
    }
}

/// True when the journal's view is what the client knows, each message once and in order.
fn is_same(view: &Value, messages: &[Value]) -> bool {
    let text = |message: &Value| (message["role"].clone(), message["content"].clone());
    let shown = view["items"].as_array().expect("a view").iter().map(|item| text(&item["message"]));
    let same = shown.eq(messages.iter().map(text));
    if !same {
        eprintln!("{view:#}\n{messages:?}");
    }
    same
}

/// Asks; `None` when nobody is there, or the answer broke off before it began.
fn ask(url: &str, client: usize, body: &str) -> Option<Heard> {
    send(url, &format!("POST /v1/chat/completions HTTP/1.1\r\nuser-agent: client-{client}"), body)
}

/// What the API says.
fn get(url: &str, path: &str) -> Value {
    send(url, &format!("GET /api/v1{path} HTTP/1.1"), "").expect("an answer").json()
}

fn send(url: &str, head: &str, body: &str) -> Option<Heard> {
    let place = url.strip_prefix("http://")?;
    let mut stream = TcpStream::connect(place).ok()?;
    let length = body.len();
    write!(stream, "{head}\r\nhost: {place}\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n{body}")
        .ok()?;
    let mut bytes = Vec::new();
    BufReader::new(stream).read_to_end(&mut bytes).ok()?;
    // A head that is not whole is none.
    bytes
        .windows(4)
        .any(|four| four == b"\r\n\r\n")
        .then(|| crate::two_gateways::stage::answer(&mut &bytes[..]))
}

/// What became of the conversations.
#[derive(Default)]
pub(crate) struct Found {
    talks: usize,
    turns: usize,
    retries: usize,
    slowest_ms: usize,
    /// Answers that were not journaled.
    unrecorded: usize,
    /// Conversations that went on in another session.
    moved: usize,
    /// Threads beside the first.
    forks: usize,
    /// Journals that tell something else than the client.
    wrong: usize,
}

impl Found {
    pub(crate) fn is_well(&self) -> bool {
        self.unrecorded + self.moved + self.forks + self.wrong == 0
    }
}

impl std::fmt::Display for Found {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "{} conversations, {} turns, {} asked again, slowest {} ms; unrecorded {}, moved {}, forks {}, wrong {}",
            self.talks,
            self.turns,
            self.retries,
            self.slowest_ms,
            self.unrecorded,
            self.moved,
            self.forks,
            self.wrong
        )
    }
}
