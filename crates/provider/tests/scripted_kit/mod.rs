//! A client that sees what is on the wire: one request per connection, the answer's bytes as they came.
#![allow(dead_code, clippy::unwrap_used, clippy::expect_used)]

use komado_provider::scripted::{ScriptedOptions, ScriptedServer};
use komado_provider::{Dialect, ModelEvent, ModelResponse, ResponseForm};
use serde_json::Value;
use std::io::{Read, Write};
use std::net::TcpStream;

/// An answer.
pub(crate) struct Got {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
    /// False when the connection ended before the body did.
    pub(crate) whole: bool,
}

impl Got {
    pub(crate) fn text(&self) -> String {
        String::from_utf8(self.body.clone()).unwrap()
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|e| panic!("{e}: {}", self.text()))
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    pub(crate) fn heard(&self, dialect: Dialect, form: ResponseForm) -> ModelResponse {
        let mut decoder = dialect.decoder(form);
        let mut heard = ModelResponse::default();
        let mut take = |event: ModelEvent| heard.take(&event);
        decoder.push(&self.body, &mut take);
        decoder.end(&mut take);
        heard
    }
}

pub(crate) fn start(options: ScriptedOptions) -> ScriptedServer {
    ScriptedServer::start(options).unwrap()
}

pub(crate) fn window(tokens: u64) -> ScriptedServer {
    start(ScriptedOptions { window: Some(tokens), ..ScriptedOptions::default() })
}

pub(crate) fn path(dialect: Dialect) -> &'static str {
    match dialect {
        Dialect::Chat => "/v1/chat/completions",
        Dialect::Responses => "/v1/responses",
        Dialect::Messages => "/v1/messages?beta=true",
        Dialect::Ollama => "/api/chat",
    }
}

pub(crate) fn post(server: &ScriptedServer, dialect: Dialect, body: &Value) -> Got {
    send(server, "POST", path(dialect), &body.to_string())
}

pub(crate) fn get(server: &ScriptedServer, path: &str) -> Got {
    send(server, "GET", path, "")
}

pub(crate) fn send(server: &ScriptedServer, method: &str, path: &str, body: &str) -> Got {
    let head = format!(
        "{method} {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-type: application/json\r\n\
         content-length: {}\r\n\r\n",
        body.len()
    );
    let mut socket = connect(server);
    socket.write_all(head.as_bytes()).unwrap();
    socket.write_all(body.as_bytes()).unwrap();
    receive(socket, method)
}

pub(crate) fn connect(server: &ScriptedServer) -> TcpStream {
    TcpStream::connect(server.url().strip_prefix("http://").unwrap()).unwrap()
}

pub(crate) fn receive(mut socket: TcpStream, method: &str) -> Got {
    let mut bytes = Vec::new();
    // A connection that is cut may end with an error; what came before it counts.
    let _ = socket.read_to_end(&mut bytes);
    let end = bytes.windows(4).position(|four| four == b"\r\n\r\n").expect("an answer has a head");
    let head = String::from_utf8(bytes[..end].to_vec()).unwrap();
    let mut lines = head.split("\r\n");
    let status = lines.next().unwrap().split(' ').nth(1).unwrap().parse().unwrap();
    let header = |line: &str| line.split_once(": ").map(|(k, v)| (k.to_ascii_lowercase(), v.to_owned()));
    let headers: Vec<(String, String)> = lines.filter_map(header).collect();
    let rest = &bytes[end + 4..];
    let length =
        headers.iter().find(|(name, _)| name == "content-length").map(|(_, n)| n.parse::<usize>().unwrap());
    let (body, whole) = match length {
        _ if method == "HEAD" => (Vec::new(), true),
        Some(length) => (rest.to_vec(), rest.len() == length),
        None => dechunked(rest),
    };
    Got { status, headers, body, whole }
}

fn dechunked(mut rest: &[u8]) -> (Vec<u8>, bool) {
    let mut body = Vec::new();
    loop {
        let Some(end) = rest.windows(2).position(|two| two == b"\r\n") else { return (body, false) };
        let size = usize::from_str_radix(std::str::from_utf8(&rest[..end]).unwrap(), 16).unwrap();
        let from = end + 2;
        if size == 0 {
            return (body, true);
        }
        body.extend_from_slice(&rest[from..rest.len().min(from + size)]);
        if rest.len() < from + size + 2 {
            return (body, false);
        }
        rest = &rest[from + size + 2..];
    }
}
