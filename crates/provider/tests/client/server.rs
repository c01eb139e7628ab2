//! A server of a few lines that does what a script says, one script for each connection. It speaks bytes, not HTTP: so it
//! can break off, stall and lie where a real server would not.

#![allow(dead_code)] // Each test program uses its own part of it.

use komado_provider::{Dialect, Provider};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::thread::{self, JoinHandle};

/// What to do with one connection.
pub(crate) type Script = Box<dyn FnOnce(&mut Peer) + Send>;

/// A server that plays its scripts in order and then is gone.
pub(crate) struct Server {
    port: u16,
    playing: JoinHandle<()>,
}

impl Server {
    pub(crate) fn play(scripts: Vec<Script>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let playing = thread::spawn(move || {
            for script in scripts {
                let (stream, _) = listener.accept().unwrap();
                script(&mut Peer(BufReader::new(stream)));
            }
        });
        Self { port, playing }
    }

    /// The server as a provider that speaks like OpenAI.
    pub(crate) fn provider(&self) -> Provider {
        self.speaking(Dialect::Chat)
    }

    pub(crate) fn speaking(&self, dialect: Dialect) -> Provider {
        Provider::at("test", dialect, &format!("http://127.0.0.1:{}", self.port)).unwrap()
    }

    pub(crate) fn secure(&self) -> Provider {
        Provider::at("test", Dialect::Chat, &format!("https://127.0.0.1:{}", self.port)).unwrap()
    }

    /// Waits until every script was played; fails if one did.
    pub(crate) fn done(self) {
        self.playing.join().unwrap();
    }
}

/// A script that takes a request and answers it.
pub(crate) fn answer(text: impl Into<String>) -> Script {
    let text = text.into();
    Box::new(move |peer| {
        peer.request();
        peer.say(&text);
    })
}

/// A whole answer, after which the connection ends.
pub(crate) fn whole(status: &str, headers: &str, body: &str) -> String {
    let len = body.len();
    format!("HTTP/1.1 {status}\r\nconnection: close\r\ncontent-length: {len}\r\n{headers}\r\n{body}")
}

/// A port at which nobody listens.
pub(crate) fn nobody() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

/// The other end of a connection.
pub(crate) struct Peer(BufReader<TcpStream>);

impl Peer {
    pub(crate) fn of(stream: TcpStream) -> Self {
        Self(BufReader::new(stream))
    }

    pub(crate) fn say(&mut self, text: &str) {
        self.0.get_mut().write_all(text.as_bytes()).unwrap();
    }

    /// Reads the head of a request: its lines, in lower case but for the first.
    pub(crate) fn head(&mut self) -> Head {
        let mut lines = Vec::new();
        loop {
            let mut line = String::new();
            assert!(self.0.read_line(&mut line).unwrap() > 0, "the request ended in its head");
            match line.trim_end() {
                "" => return Head(lines),
                line => lines.push(line.to_owned()),
            }
        }
    }

    /// Reads a whole request.
    pub(crate) fn request(&mut self) -> (Head, Vec<u8>) {
        let head = self.head();
        let len: usize = head.get("content-length").map_or(0, |len| len.parse().unwrap());
        let mut body = vec![0; len];
        self.0.read_exact(&mut body).unwrap();
        (head, body)
    }

    /// Reads `len` bytes and forgets them.
    pub(crate) fn skip(&mut self, len: u64) {
        assert_eq!(std::io::copy(&mut (&mut self.0).take(len), &mut std::io::sink()).unwrap(), len);
    }

    /// Reads until the other side ends, however it does, and says how much that was.
    pub(crate) fn drain(&mut self) -> u64 {
        let (mut read, mut buffer) = (0, vec![0; 1 << 16]);
        while let Ok(count @ 1..) = self.0.read(&mut buffer) {
            read += count as u64;
        }
        read
    }

    /// Reads until the other side ends, and keeps it.
    pub(crate) fn read_to_end(&mut self, text: &mut Vec<u8>) {
        let _ = self.0.read_to_end(text);
    }

    /// Ends the connection at once, whatever is still to be read.
    pub(crate) fn hang_up(&mut self) {
        let _ = self.0.get_mut().shutdown(Shutdown::Both);
    }
}

/// The head of a request.
pub(crate) struct Head(Vec<String>);

impl Head {
    pub(crate) fn line(&self) -> &str {
        &self.0[0]
    }

    pub(crate) fn lines(&self) -> Vec<String> {
        self.0.clone()
    }

    pub(crate) fn all(&self, name: &str) -> Vec<&str> {
        let fields = self.0[1..].iter().filter_map(|line| line.split_once(':'));
        fields.filter(|(other, _)| other.eq_ignore_ascii_case(name)).map(|(_, value)| value.trim()).collect()
    }

    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.all(name).first().copied()
    }
}
