//! Takes requests, keeps nothing of them but their length and digest, and answers a few words.
//!
//! It speaks just enough HTTP for a client that says how long its request is. It refuses one that does not: a request
//! without a length is one that was not on disk.

use crate::error::{Error, Result};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

/// Bytes read at a time.
const BLOCK: usize = 256 << 10;
/// The longest head of a request.
const HEAD: u64 = 64 << 10;
/// How long a request may be missing after its sender has gone.
const LATE: Duration = Duration::from_secs(10);

const ANSWER: &str = r#"{"id":"chatcmpl-1","object":"chat.completion","created":1700000000,"model":"sink","choices":[{"index":0,"message":{"role":"assistant","content":"Got it: 受け取りました。"},"finish_reason":"stop"}]}"#;

/// A request that was taken.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Got {
    /// Bytes of its body.
    pub(super) bytes: u64,
    /// BLAKE3 of them.
    pub(super) digest: String,
}

/// A server on a thread that ends with the process.
pub(super) struct RequestSink {
    url: String,
    got: Receiver<io::Result<Got>>,
}

impl RequestSink {
    pub(super) fn start() -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let url = format!("http://{}/v1", listener.local_addr()?);
        let (tell, got) = channel();
        std::thread::Builder::new().name("sink".into()).spawn(move || serve(&listener, &tell))?;
        Ok(Self { url, got })
    }

    /// Where it is, as clients want to hear it.
    pub(super) fn url(&self) -> &str {
        &self.url
    }

    /// The request that came last.
    pub(super) fn last(&self) -> Result<Got> {
        let mut last = self.got.recv_timeout(LATE).ok();
        while let Ok(next) = self.got.try_recv() {
            last = Some(next);
        }
        match last {
            Some(got) => Ok(got?),
            None => Err(Error::failed("no request arrived from the measured process")),
        }
    }
}

fn serve(listener: &TcpListener, tell: &Sender<io::Result<Got>>) {
    for stream in listener.incoming().flatten() {
        let mut stream = BufReader::with_capacity(BLOCK, stream);
        // A connection may bring one request after the other; it ends when the client has had enough.
        while let Some(got) = take(&mut stream).transpose() {
            let broken = got.is_err();
            // Told before it is answered: a client that has the answer can rely on it.
            if tell.send(got).is_err() || broken || answer(stream.get_mut()).is_err() {
                break;
            }
        }
    }
}

/// One request; `None` when there is no more.
fn take(stream: &mut BufReader<TcpStream>) -> io::Result<Option<Got>> {
    let Some(length) = head(stream)? else { return Ok(None) };
    let mut hasher = blake3::Hasher::new();
    let mut left = length;
    while left > 0 {
        let block = stream.fill_buf()?;
        let some = block.len().min(usize::try_from(left).unwrap_or(usize::MAX));
        if some == 0 {
            return Err(io::Error::new(io::ErrorKind::UnexpectedEof, format!("{left} bytes are missing")));
        }
        hasher.update(&block[..some]);
        stream.consume(some);
        left -= some as u64;
    }
    Ok(Some(Got { bytes: length, digest: hasher.finalize().to_hex().to_string() }))
}

fn answer(stream: &mut TcpStream) -> io::Result<()> {
    let head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length";
    stream.write_all(format!("{head}: {}\r\n\r\n{ANSWER}", ANSWER.len()).as_bytes())
}

/// Reads the head of a request; gives the length of its body.
fn head(stream: &mut impl BufRead) -> io::Result<Option<u64>> {
    let (mut length, mut line) = (None, String::new());
    let mut head = stream.take(HEAD);
    loop {
        line.clear();
        if head.read_line(&mut line)? == 0 {
            return Ok(None);
        }
        let Some((name, value)) = line.split_once(':') else {
            match line.trim_end().is_empty() {
                true => break,
                false => continue,
            }
        };
        if name.eq_ignore_ascii_case("content-length") {
            length = value.trim().parse().ok();
        }
    }
    length.map(Some).ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "a request without its length"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn send(url: &str, request: &[u8]) -> String {
        let address = url.trim_start_matches("http://").trim_end_matches("/v1");
        let mut stream = TcpStream::connect(address).unwrap();
        stream.write_all(request).unwrap();
        stream.shutdown(std::net::Shutdown::Write).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    }

    #[test]
    fn a_request_is_hashed_and_answered_and_one_that_breaks_off_is_told() {
        let sink = RequestSink::start().unwrap();
        let body = "窓".repeat(200_000);
        let request = format!("POST /v1/x HTTP/1.1\r\nContent-Length: {}\r\n\r\n{body}", body.len());
        assert!(send(sink.url(), request.as_bytes()).ends_with(ANSWER));
        let digest = blake3::hash(body.as_bytes()).to_hex().to_string();
        assert_eq!(sink.last().unwrap(), Got { bytes: body.len() as u64, digest });
        assert_eq!(send(sink.url(), &request.as_bytes()[..1000]), "");
        assert!(sink.last().is_err());
        assert_eq!(send(sink.url(), b"POST / HTTP/1.1\r\n\r\n"), "");
        assert!(sink.last().is_err());
    }
}
