//! A gateway in front of a provider that writes down what it hears and says what a test wants.

use crate::gateway::run::Place;
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Stdio};
use std::sync::{Arc, Mutex};

/// A request or an answer.
#[derive(Clone, Debug, Default)]
pub(crate) struct Heard {
    /// The first line.
    pub(crate) line: String,
    /// Headers, names in lower case.
    pub(crate) headers: BTreeMap<String, String>,
    pub(crate) body: Vec<u8>,
    /// False when it broke off.
    pub(crate) is_whole: bool,
}

impl Heard {
    pub(crate) fn status(&self) -> u16 {
        self.line.split(' ').nth(1).unwrap_or_default().parse().unwrap_or_default()
    }

    pub(crate) fn path(&self) -> &str {
        self.line.split(' ').nth(1).unwrap_or_default()
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    pub(crate) fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|e| panic!("{e}: {} {}", self.line, self.text()))
    }

    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", String::as_str)
    }
}

fn head(reader: &mut impl BufRead) -> Option<Heard> {
    let mut heard = Heard::default();
    let mut line = String::new();
    reader.read_line(&mut line).ok().filter(|n| *n > 0)?;
    heard.line = line.trim_end().to_owned();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        let Some((name, value)) = line.trim_end().split_once(':') else { break };
        heard.headers.insert(name.to_lowercase(), value.trim().to_owned());
    }
    Some(heard)
}

/// The rest of what has a head: by its length, in chunks, or up to the end.
fn rest(reader: &mut impl BufRead, heard: &mut Heard) {
    if let Some(length) = heard.headers.get("content-length") {
        heard.body = vec![0; length.parse().unwrap()];
        heard.is_whole = reader.read_exact(&mut heard.body).is_ok();
    } else if heard.header("transfer-encoding") == "chunked" {
        while let Some(chunk) = chunk(reader) {
            if chunk.is_empty() {
                heard.is_whole = true;
                break;
            }
            heard.body.extend(chunk);
        }
    } else if heard.line.starts_with("HTTP") {
        heard.is_whole = reader.read_to_end(&mut heard.body).is_ok();
    }
}

fn chunk(reader: &mut impl BufRead) -> Option<Vec<u8>> {
    let mut line = String::new();
    reader.read_line(&mut line).ok().filter(|n| *n > 0)?;
    let mut bytes = vec![0; usize::from_str_radix(line.trim(), 16).ok()? + 2];
    reader.read_exact(&mut bytes).ok()?;
    bytes.truncate(bytes.len() - 2);
    Some(bytes)
}

/// A provider.
pub(crate) struct Fake {
    pub(crate) url: String,
    seen: Arc<Mutex<Vec<Heard>>>,
}

impl Fake {
    /// Answers each request as `answer` does.
    pub(crate) fn start(answer: impl Fn(&Heard, &mut TcpStream) + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let seen = Arc::new(Mutex::new(Vec::new()));
        let (heard, answer) = (Arc::clone(&seen), Arc::new(answer));
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let (heard, answer) = (Arc::clone(&heard), Arc::clone(&answer));
                std::thread::spawn(move || {
                    let mut stream = stream.unwrap();
                    let mut reader = BufReader::new(stream.try_clone().unwrap());
                    let Some(mut request) = head(&mut reader) else { return };
                    rest(&mut reader, &mut request);
                    // What a gateway asks to know the window is not what a client asked.
                    let asks = ["/chat/completions", "/responses", "/messages", "/api/chat"];
                    let is_ask = asks.iter().any(|path| request.path().ends_with(path));
                    if request.header("user-agent").starts_with("komado/") && !is_ask {
                        return say(&mut stream, 404, "{}");
                    }
                    heard.lock().unwrap().push(request.clone());
                    answer(&request, &mut stream);
                });
            }
        });
        Self { url, seen }
    }

    /// Says the same each time, as the dialect of the path wants it.
    pub(crate) fn saying(text: &'static str) -> Self {
        Self::start(move |request, stream| say(stream, 200, &reply(request.path(), text)))
    }

    /// What clients asked.
    pub(crate) fn seen(&self) -> Vec<Heard> {
        self.seen.lock().unwrap().clone()
    }
}

/// Answers in one piece.
pub(crate) fn say(stream: &mut TcpStream, status: u16, body: &str) {
    let length = body.len();
    let _ = write!(
        stream,
        "HTTP/1.1 {status} X\r\ncontent-type: application/json\r\nx-request-id: r1\r\nconnection: close\r\n\
         content-length: {length}\r\n\r\n{body}"
    );
}

/// Begins an answer in pieces.
pub(crate) fn begin(stream: &mut TcpStream) {
    let _ = write!(
        stream,
        "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\ntransfer-encoding: chunked\r\n\r\n"
    );
}

/// One piece; an empty one is the end. False when nobody listens.
pub(crate) fn piece(stream: &mut TcpStream, text: &str) -> bool {
    write!(stream, "{:x}\r\n{text}\r\n", text.len()).and_then(|()| stream.flush()).is_ok()
}

/// What a model says, in the API of a path.
pub(crate) fn reply(path: &str, text: &str) -> String {
    let usage = r#""usage":{"input_tokens":5,"output_tokens":2}"#;
    let path = path.split('?').next().unwrap_or_default();
    match path {
        _ if path.ends_with("/responses") => format!(
            r#"{{"id":"resp_1","object":"response","status":"completed","model":"m","output":[{{"type":"message","id":"msg_1","status":"completed","role":"assistant","content":[{{"type":"output_text","text":"{text}","annotations":[]}}]}}],{usage}}}"#
        ),
        _ if path.ends_with("/messages") => format!(
            r#"{{"id":"msg_1","type":"message","role":"assistant","model":"m","content":[{{"type":"text","text":"{text}"}}],"stop_reason":"end_turn","stop_sequence":null,{usage}}}"#
        ),
        _ if path.ends_with("/api/chat") => format!(
            r#"{{"model":"m","created_at":"2024-01-01T00:00:00Z","message":{{"role":"assistant","content":"{text}"}},"done":true,"done_reason":"stop","prompt_eval_count":5,"eval_count":2}}"#
        ),
        _ => format!(
            r#"{{"id":"c1","object":"chat.completion","created":1,"model":"m","choices":[{{"index":0,"message":{{"role":"assistant","content":"{text}"}},"finish_reason":"stop"}}],"usage":{{"prompt_tokens":5,"completion_tokens":2,"total_tokens":7}}}}"#
        ),
    }
}

fn serve<'a>(args: &[&'a str]) -> Vec<&'a str> {
    let own = ["serve", "--listen", "127.0.0.1:0", "--json", "--log", "trace"];
    own.into_iter().chain(args.iter().copied()).collect()
}

/// A running gateway.
pub(crate) struct Gateway {
    pub(crate) place: Place,
    pub(crate) child: Child,
    pub(crate) url: String,
    pub(crate) ready: serde_json::Value,
}

impl Gateway {
    /// In front of `fake`, which is called `test` and speaks `dialect`.
    pub(crate) fn before(fake: &Fake, dialect: &str, args: &[&str]) -> Self {
        let base = format!("llm.test.base_url={}", fake.url);
        let dialect = format!("llm.test.dialect={dialect}");
        let own = ["--set", &base, "--set", &dialect, "--set", "server.upstream=test"];
        Self::start(Place::new(), &own.into_iter().chain(args.iter().copied()).collect::<Vec<_>>())
    }

    /// The same on a disk that is full as soon as a file has so many kilobytes.
    pub(crate) fn on_full_disk(fake: &Fake, kilobytes: u32, args: &[&str]) -> Self {
        let base = format!("llm.test.base_url={}", fake.url);
        let own = ["--set", &base, "--set", "llm.test.dialect=openai", "--set", "server.upstream=test"];
        let place = Place::new();
        let inner = place.command(&serve(&own.into_iter().chain(args.iter().copied()).collect::<Vec<_>>()));
        let mut command = std::process::Command::new("bash");
        let limited = format!("trap '' XFSZ; ulimit -f {kilobytes}; exec \"$0\" \"$@\"");
        command.args(["-c", &limited]).arg(inner.get_program()).args(inner.get_args());
        if let Some(dir) = inner.get_current_dir() {
            command.current_dir(dir);
        }
        for (name, value) in inner.get_envs() {
            match value {
                Some(value) => command.env(name, value),
                None => command.env_remove(name),
            };
        }
        Self::run(place, command)
    }

    pub(crate) fn start(place: Place, args: &[&str]) -> Self {
        let command = place.command(&serve(args));
        Self::run(place, command)
    }

    fn run(place: Place, mut command: std::process::Command) -> Self {
        let log = std::fs::File::create(place.path().join("log")).unwrap();
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(log);
        let mut child = command.spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let log = || std::fs::read_to_string(place.path().join("log")).unwrap();
        let ready: serde_json::Value =
            serde_json::from_str(&line).unwrap_or_else(|e| panic!("{e}: {}", log()));
        let url = ready["url"].as_str().unwrap().to_owned();
        Self { place, child, url, ready }
    }

    pub(crate) fn connect(&self) -> TcpStream {
        TcpStream::connect(self.url.strip_prefix("http://").unwrap()).unwrap()
    }

    /// Sends a request and leaves the answer to be read.
    pub(crate) fn send(&self, line: &str, headers: &[(&str, &str)], body: &[u8]) -> TcpStream {
        let mut stream = self.connect();
        let headers: String = headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
        let length = body.len();
        let head = format!(
            "{line} HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-length: {length}\r\n{headers}\r\n"
        );
        // A server that refuses early may have closed already.
        let _ = stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(body));
        stream
    }

    pub(crate) fn ask(&self, line: &str, headers: &[(&str, &str)], body: &[u8]) -> Heard {
        answer(&mut BufReader::new(self.send(line, headers, body)))
    }

    pub(crate) fn get(&self, path: &str) -> Heard {
        self.ask(&format!("GET {path}"), &[], b"")
    }

    pub(crate) fn log(&self) -> String {
        std::fs::read_to_string(self.place.path().join("log")).unwrap()
    }

    pub(crate) fn signal(&self, signal: rustix::process::Signal) {
        rustix::process::kill_process(rustix::process::Pid::from_child(&self.child), signal).unwrap();
    }

    /// Asks it to stop; gives its exit code.
    pub(crate) fn stop(mut self) -> Option<i32> {
        self.signal(rustix::process::Signal::TERM);
        self.child.wait().unwrap().code()
    }
}

impl Drop for Gateway {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Reads the head of an answer.
pub(crate) fn begun(reader: &mut impl BufRead) -> Heard {
    head(reader).expect("an answer")
}

/// Reads a piece of an answer.
pub(crate) fn next(reader: &mut impl BufRead) -> Option<String> {
    chunk(reader).map(|bytes| String::from_utf8(bytes).unwrap())
}

/// Reads a whole answer.
pub(crate) fn answer(reader: &mut impl BufRead) -> Heard {
    let mut heard = begun(reader);
    rest(reader, &mut heard);
    heard
}

/// The smallest request of each API: its path, and what it says.
pub(crate) const ASKS: [(&str, &str, &str); 4] = [
    ("openai", "/v1/chat/completions", r#"{"model":"m","messages":[{"role":"user","content":"窓"}]}"#),
    ("responses", "/v1/responses", r#"{"model":"m","input":[{"role":"user","content":"窓"}]}"#),
    (
        "anthropic",
        "/v1/messages",
        r#"{"model":"m","max_tokens":9,"messages":[{"role":"user","content":"窓"}]}"#,
    ),
    ("ollama", "/api/chat", r#"{"model":"m","stream":false,"messages":[{"role":"user","content":"窓"}]}"#),
];
