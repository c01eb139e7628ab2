//! A way to a server that breaks: each connection is cut after a random number of bytes, wherever that is in a message.

use crate::dice::Dice;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU32, Ordering::SeqCst};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

/// Bytes that a connection passes on, both ways together.
const LEAST: u32 = 500;
const MOST: u32 = 60_000;

/// Stands between a store and its server.
pub(crate) struct Proxy {
    /// Where the server is, through this.
    pub(crate) url: String,
    state: Arc<State>,
}

#[derive(Default)]
struct State {
    cuts: AtomicU32,
    is_calm: AtomicBool,
    cut: (Mutex<()>, Condvar),
}

impl Proxy {
    pub(crate) fn start(url: &str, seed: u64) -> Self {
        let (before, rest) = url.split_once("127.0.0.1:").unwrap();
        let digits = rest.chars().take_while(char::is_ascii_digit).count();
        let server = SocketAddr::from((Ipv4Addr::LOCALHOST, rest[..digits].parse().unwrap()));
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        let state = Arc::new(State::default());
        let shared = Arc::clone(&state);
        let mut dice = Dice::new(seed);
        // It ends with the test: nobody is left who would connect.
        std::thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let bytes = LEAST + dice.below(MOST - LEAST);
                if let Ok(server) = TcpStream::connect(server) {
                    join(client, server, i64::from(bytes), &shared);
                }
            }
        });
        Self { url: format!("{before}127.0.0.1:{port}{}", &rest[digits..]), state }
    }

    /// How many connections were cut.
    pub(crate) fn cuts(&self) -> u32 {
        self.state.cuts.load(SeqCst)
    }

    /// Goes on until so many were cut, and cuts none after that.
    pub(crate) fn cut_until(&self, enough: u32) {
        let (lock, changed) = &self.state.cut;
        let guard = lock.lock().unwrap();
        let long = Duration::from_secs(180);
        let waited = changed.wait_timeout_while(guard, long, |()| self.cuts() < enough).unwrap().1;
        self.state.is_calm.store(true, SeqCst);
        assert!(!waited.timed_out(), "only {} connections were cut", self.cuts());
    }
}

fn join(client: TcpStream, server: TcpStream, bytes: i64, state: &Arc<State>) {
    let left = Arc::new(AtomicI64::new(bytes));
    let (client, server) = (Arc::new(client), Arc::new(server));
    for (from, to) in [(&client, &server), (&server, &client)] {
        let (from, to) = (Arc::clone(from), Arc::clone(to));
        let (left, state) = (Arc::clone(&left), Arc::clone(state));
        std::thread::spawn(move || pass_on(&from, &to, &left, &state));
    }
}

fn pass_on(mut from: &TcpStream, mut to: &TcpStream, left: &AtomicI64, state: &State) {
    let mut bytes = [0; 4096];
    while let Ok(read @ 1..) = from.read(&mut bytes) {
        let room = left.fetch_sub(read as i64, SeqCst);
        let passed = match state.is_calm.load(SeqCst) {
            true => read,
            false => read.min(usize::try_from(room).unwrap_or(0)),
        };
        if to.write_all(&bytes[..passed]).is_err() {
            break;
        }
        if passed < read {
            // Only one of the two ways finds the end of what may pass.
            if room > 0 {
                state.cuts.fetch_add(1, SeqCst);
                let _held = state.cut.0.lock().unwrap();
                state.cut.1.notify_all();
            }
            break;
        }
    }
    for stream in [from, to] {
        let _ = stream.shutdown(Shutdown::Both);
    }
}
