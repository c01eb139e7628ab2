//! A wire that breaks when it is told to: between the store and the server, bytes go through until then.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

const WHOLE: u8 = 0;
const CUT_BEFORE: u8 = 1;
const CUT_AFTER: u8 = 2;

/// Passes bytes on.
pub(crate) struct Proxy {
    /// Where the server seems to be.
    pub(crate) url: String,
    mood: Arc<AtomicU8>,
}

impl Proxy {
    /// Before the server at `url`.
    pub(crate) fn before(url: &str) -> Self {
        let (user, rest) = url.split_once('@').unwrap();
        let (server, path) = rest.split_once('/').unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let own = listener.local_addr().unwrap();
        let mood = Arc::new(AtomicU8::new(WHOLE));
        let (server, seen) = (server.to_owned(), Arc::clone(&mood));
        std::thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let Ok(server) = TcpStream::connect(&server) else { continue };
                let ends = [client.try_clone().unwrap(), server.try_clone().unwrap()];
                let (to, back) = (Arc::clone(&seen), Arc::clone(&seen));
                let both = ends.each_ref().map(|end| end.try_clone().unwrap());
                std::thread::spawn(move || pass(client, server, &to, CUT_BEFORE, &both));
                let [client, server] = ends.each_ref().map(|end| end.try_clone().unwrap());
                std::thread::spawn(move || pass(server, client, &back, CUT_AFTER, &ends));
            }
        });
        Self { url: format!("{user}@{own}/{path}"), mood }
    }

    /// The next request never reaches the server.
    pub(crate) fn lose_the_request(&self) {
        self.mood.store(CUT_BEFORE, Ordering::SeqCst);
    }

    /// The next answer never comes back.
    pub(crate) fn lose_the_answer(&self) {
        self.mood.store(CUT_AFTER, Ordering::SeqCst);
    }
}

/// Passes bytes on until `cut` is wanted; that breaks both ways, once.
fn pass(mut from: TcpStream, mut to: TcpStream, mood: &AtomicU8, cut: u8, both: &[TcpStream; 2]) {
    let mut buffer = vec![0; 1 << 16];
    while let Ok(n) = from.read(&mut buffer)
        && n > 0
    {
        if mood.compare_exchange(cut, WHOLE, Ordering::SeqCst, Ordering::SeqCst).is_ok() {
            break;
        }
        if to.write_all(&buffer[..n]).is_err() {
            break;
        }
    }
    both.iter().for_each(|end| drop(end.shutdown(Shutdown::Both)));
}
