//! Addresses that answer, but not as an MCP server should.

use crate::mcp::ground::{at, open, refusal, right, wrong};
use komado_agent::mcp::{McpServer, McpTransport};
use komado_agent::tools::ToolProvider;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// A request as it came: its head, in lower case, and its message.
struct Request {
    head: String,
    message: Value,
}

impl Request {
    fn method(&self) -> &str {
        self.message["method"].as_str().unwrap_or_default()
    }
}

/// A server that answers each request as it is told to, one connection for each.
fn serve(mut answer: impl FnMut(&Request) -> String + Send + 'static) -> McpServer {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            if let Some(request) = read(&stream) {
                // Whoever has read enough hangs up.
                let _ = stream.write_all(answer(&request).as_bytes());
            }
        }
    });
    at(&format!("http://{address}/mcp?key=sesame"))
}

fn read(stream: &TcpStream) -> Option<Request> {
    let mut reader = BufReader::new(stream);
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        if reader.read_line(&mut head).ok()? == 0 {
            return None;
        }
    }
    let head = head.to_lowercase();
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
    let mut body = vec![0; length.map_or(0, |length| length.parse().unwrap())];
    reader.read_exact(&mut body).ok()?;
    Some(Request { head, message: serde_json::from_slice(&body).unwrap_or_default() })
}

fn http(status: &str, headers: &str, body: &str) -> String {
    format!("HTTP/1.1 {status}\r\n{headers}Connection: close\r\nContent-Length: {}\r\n\r\n{body}", body.len())
}

fn result(request: &Request, result: &Value) -> String {
    let body = json!({"jsonrpc": "2.0", "id": request.message["id"], "result": result}).to_string();
    http("200 OK", "Content-Type: application/json\r\nMcp-Session-Id: s1\r\n", &body)
}

/// What a good server says to everything but calls.
fn well(request: &Request) -> String {
    match request.method() {
        "initialize" => result(
            request,
            &json!({
                "protocolVersion": request.message["params"]["protocolVersion"],
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "far", "version": "1"},
            }),
        ),
        "tools/list" => {
            result(request, &json!({"tools": [{"name": "go", "inputSchema": {"type": "object"}}]}))
        }
        _ => http("202 Accepted", "", ""),
    }
}

fn gone(request: &Request) -> String {
    result(request, &json!({"content": [{"type": "text", "text": "gone"}]}))
}

/// Why a server is refused whose every answer is this one.
fn refused(answer: String) -> String {
    let why = refusal(&[serve(move |_| answer.clone())]);
    assert!(!why.contains("sesame"), "{why}");
    why
}

#[test]
fn what_an_address_answers_that_is_no_mcp_server_is_said_in_plain_words() {
    let html = "Content-Type: text/html\r\n";
    let why = refused(http("500 Internal Server Error", html, "<html>"));
    assert!(why.ends_with("it answered HTTP 500 Internal Server Error"), "{why}");
    let why = refused(http("401 Unauthorized", "WWW-Authenticate: Bearer\r\n", ""));
    assert!(why.ends_with("it answered HTTP 401 Unauthorized; its settings need the right headers"), "{why}");
    let why = refused(http("200 OK", html, "<html>welcome"));
    assert!(why.ends_with("it answered with text/html, not with MCP; is the address right?"), "{why}");
    let why = refused(http("404 Not Found", html, "<html>"));
    assert!(why.ends_with("it answered HTTP 404 Not Found; is the address right?"), "{why}");
    let why = refused(http("200 OK", "Content-Type: application/json\r\n", "[1, 2]"));
    assert!(why.contains("it answered with JSON that is not MCP"), "{why}");
    let why = refused(http("200 OK", "Content-Type: text/event-stream\r\n", "data: nonsense\n\n"));
    assert!(why.starts_with("the MCP server far cannot be used: "), "{why}");
    let why = refused("SSH-2.0-OpenSSH_9.6\r\n".to_owned());
    assert!(why.contains("it cannot be reached"), "{why}");
}

#[test]
fn a_redirect_is_named_and_not_followed() {
    let elsewhere = Arc::new(Mutex::new(0));
    let counter = Arc::clone(&elsewhere);
    let other = serve(move |request| {
        *counter.lock().unwrap() += 1;
        well(request)
    });
    let McpTransport::Http { url, .. } = &other.how else { panic!("an address") };
    let why = refused(http("307 Temporary Redirect", &format!("Location: {url}\r\n"), ""));
    let shown = url.split('?').next().unwrap();
    assert!(why.contains(&format!("it sends us to {shown} (HTTP 307 Temporary Redirect)")), "{why}");
    assert_eq!(*elsewhere.lock().unwrap(), 0, "the keys of one server are not for another one");
}

#[test]
fn an_address_where_nobody_is_cannot_be_reached() {
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let why = refusal(&[at(&format!("http://127.0.0.1:{port}/mcp?key=sesame"))]);
    assert!(why.contains("it cannot be reached") && !why.contains("sesame"), "{why}");
    for url in ["ftp://host/mcp", "not an address"] {
        let why = refusal(&[at(url)]);
        assert!(why.contains(&format!("{url:?}")), "{why}");
    }
}

#[test]
fn an_address_that_never_answers_is_given_up_in_time() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut server = at(&format!("http://{}/mcp", listener.local_addr().unwrap()));
    server.start = Duration::from_millis(300);
    let why = refusal(&[server]);
    assert!(why.contains("start_seconds"), "{why}");
}

#[test]
fn headers_go_with_every_request_and_never_into_words() {
    let heads = Arc::new(Mutex::new(Vec::new()));
    let kept = Arc::clone(&heads);
    let mut server = serve(move |request| {
        kept.lock().unwrap().push(request.head.clone());
        match request.method() {
            "tools/call" => http("403 Forbidden", "", "bearer sesame-open is not good enough"),
            _ => well(request),
        }
    });
    if let McpTransport::Http { headers, .. } = &mut server.how {
        headers.push(("Authorization".to_owned(), "Bearer sesame-open".to_owned()));
    }
    let mut servers = open(&[server]);
    let why = wrong(&mut servers, "far_go", "{}");
    assert!(why.contains("HTTP 403") && !why.contains("sesame"), "{why}");
    drop(servers);
    let heads = heads.lock().unwrap();
    assert!(heads.len() >= 4, "{heads:?}");
    assert!(heads.iter().all(|head| head.contains("authorization: bearer sesame-open")), "{heads:?}");
}

#[test]
fn a_header_that_cannot_be_sent_is_named_without_its_value() {
    let mut server = at("http://127.0.0.1:1/mcp");
    if let McpTransport::Http { headers, .. } = &mut server.how {
        headers.push(("X-Key".to_owned(), "sesame\nopen".to_owned()));
    }
    let why = refusal(&[server]);
    assert!(why.contains("X-Key") && !why.contains("sesame"), "{why}");
}

#[test]
fn a_session_that_the_server_forgot_is_begun_again_once_and_the_call_made_in_it() {
    let begun = Arc::new(Mutex::new(0));
    let counter = Arc::clone(&begun);
    let server = serve(move |request| match request.method() {
        "initialize" => {
            *counter.lock().unwrap() += 1;
            well(request)
        }
        "tools/call" if *counter.lock().unwrap() == 1 => http("404 Not Found", "", ""),
        "tools/call" => gone(request),
        _ => well(request),
    });
    let mut servers = open(&[server]);
    assert_eq!(right(&mut servers, "far_go", "{}"), "gone");
    assert_eq!(*begun.lock().unwrap(), 2);
}

#[test]
fn a_server_that_forgets_every_session_is_not_asked_forever() {
    let begun = Arc::new(Mutex::new(0));
    let counter = Arc::clone(&begun);
    let server = serve(move |request| match request.method() {
        "initialize" => {
            *counter.lock().unwrap() += 1;
            well(request)
        }
        "tools/call" => http("404 Not Found", "", ""),
        _ => well(request),
    });
    let mut servers = open(&[server]);
    wrong(&mut servers, "far_go", "{}");
    assert!(*begun.lock().unwrap() <= 3, "{}", begun.lock().unwrap());
}

#[test]
fn a_call_that_an_address_refuses_is_an_answer_and_the_next_one_works() {
    let calls = Arc::new(Mutex::new(0));
    let mut server = serve(move |request| {
        if request.method() != "tools/call" {
            return well(request);
        }
        *calls.lock().unwrap() += 1;
        let id = &request.message["id"];
        let error =
            json!({"jsonrpc": "2.0", "id": id, "error": {"code": -32602, "message": "だめ"}}).to_string();
        match *calls.lock().unwrap() {
            1 => http("500 Oops", "Content-Type: text/plain\r\n", "a stack trace"),
            2 => http("400 Bad Request", "Content-Type: application/json\r\n", &error),
            3 => http("200 OK", "Content-Type: text/event-stream\r\n", "data: {\"half\n"),
            4 => "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n\r\n{"
                .to_owned(),
            _ => gone(request),
        }
    });
    server.call = Duration::from_secs(5);
    let mut servers = open(&[server]);
    assert!(wrong(&mut servers, "far_go", "{}").ends_with("it answered HTTP 500 Internal Server Error"));
    assert_eq!(wrong(&mut servers, "far_go", "{}"), "the MCP server far: it refused: だめ");
    wrong(&mut servers, "far_go", "{}");
    assert!(wrong(&mut servers, "far_go", "{}").contains("its answer broke off"));
    assert_eq!(right(&mut servers, "far_go", "{}"), "gone");
    assert_eq!(servers.definitions().len(), 1);
}
