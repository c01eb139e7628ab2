//! The way to the listed hosts: a small HTTP proxy, for a process that has no network of its own.
//!
//! It listens inside the process's network and connects outside. A client asks for a name; only a listed name is resolved,
//! and only a public address is connected to, unless that address is listed itself: the owner of a name chooses where it
//! leads. `CONNECT` makes a tunnel, whose bytes are not looked at; a plain request (`GET http://…`) is sent on with the name
//! it was admitted for. What is refused is told in words, and logged to standard error once a name.

use super::network::{AllowedHost, is_public, split};
use std::collections::HashSet;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{IpAddr, Shutdown, SocketAddr, TcpListener, TcpStream, ToSocketAddrs};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Connections at a time; more are closed at once.
const MOST_OPEN: usize = 256;
/// The most bytes of a request's head, and how long it may take to come.
const MOST_HEAD: u64 = 64 << 10;
const HEAD: Duration = Duration::from_secs(30);
/// How long an address may take to pick up.
const CONNECT: Duration = Duration::from_secs(15);

struct Proxy {
    hosts: Vec<AllowedHost>,
    open: AtomicUsize,
    told: Mutex<HashSet<String>>,
}

/// Serves clients until the process ends.
pub(super) fn serve(listener: &TcpListener, hosts: Vec<AllowedHost>) {
    let proxy = Arc::new(Proxy { hosts, open: AtomicUsize::new(0), told: Mutex::default() });
    for client in listener.incoming() {
        let Ok(client) = client else {
            // Out of descriptors, most likely: some of them will be closed.
            std::thread::sleep(Duration::from_millis(50));
            continue;
        };
        let open = Open::new(&proxy);
        if open.count > MOST_OPEN {
            continue;
        }
        let started = std::thread::Builder::new().spawn(move || {
            // A client that goes away is its own affair.
            let _ = open.proxy.client(client);
        });
        drop(started);
    }
}

/// One of the connections that are open.
struct Open {
    proxy: Arc<Proxy>,
    count: usize,
}

impl Open {
    fn new(proxy: &Arc<Proxy>) -> Self {
        let count = proxy.open.fetch_add(1, Ordering::Relaxed) + 1;
        Self { proxy: Arc::clone(proxy), count }
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.proxy.open.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Proxy {
    fn client(&self, client: TcpStream) -> io::Result<()> {
        client.set_read_timeout(Some(HEAD))?;
        let mut from = BufReader::new(client.try_clone()?);
        let Some(head) = Head::read(&mut from)? else {
            return refuse(
                &client,
                "400 Bad Request",
                "this is a proxy for HTTP; set https_proxy to its address",
            );
        };
        let Some(asked) = Asked::of(&head) else {
            return refuse(&client, "400 Bad Request", &format!("{:?} names no host", head.target));
        };
        match self.connect(&asked) {
            Ok(server) => forward(client, from, &server, &head, &asked),
            Err(why) => {
                self.tell(&asked, &why);
                refuse(&client, why.status(), &why.words(&asked))
            }
        }
    }

    /// A connection to where the client may go.
    fn connect(&self, asked: &Asked) -> Result<TcpStream, Refused> {
        let Asked { name, port, .. } = asked;
        if !self.hosts.iter().any(|host| host.admits(name, *port)) {
            return Err(Refused::Unlisted);
        }
        let found = (name.as_str(), *port).to_socket_addrs().map_err(Refused::Unreached)?;
        let mut last = Refused::Unreached(io::Error::other("the name leads nowhere"));
        for address in found {
            match self.connect_to(address) {
                Ok(server) => return Ok(server),
                Err(why) => last = why,
            }
        }
        Err(last)
    }

    fn connect_to(&self, address: SocketAddr) -> Result<TcpStream, Refused> {
        let ip = address.ip();
        let is_listed = self.hosts.iter().any(|host| host.lists(ip, address.port()));
        if !is_listed && !is_public(ip) {
            return Err(Refused::Private(ip));
        }
        let server = TcpStream::connect_timeout(&address, CONNECT).map_err(Refused::Unreached)?;
        // This machine under its public address is this machine all the same.
        let is_here = server.local_addr().is_ok_and(|own| own.ip() == ip);
        if is_here && !is_listed { Err(Refused::Private(ip)) } else { Ok(server) }
    }

    fn tell(&self, asked: &Asked, why: &Refused) {
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        if told.len() < MOST_OPEN && told.insert(format!("{}:{}", asked.name, asked.port)) {
            super::keeper::tell(&format!("komado: {}\n", why.words(asked)));
        }
    }
}

/// Why a client is not connected.
enum Refused {
    Unlisted,
    Private(IpAddr),
    Unreached(io::Error),
}

impl Refused {
    const fn status(&self) -> &'static str {
        match self {
            Self::Unreached(_) => "502 Bad Gateway",
            _ => "403 Forbidden",
        }
    }

    fn words(&self, asked: &Asked) -> String {
        let Asked { name, port, .. } = asked;
        match self {
            Self::Unlisted => {
                format!(
                    "the network is closed but for the hosts in tools.network, and {name}:{port} is not among them"
                )
            }
            Self::Private(ip) => format!(
                "{name} leads to {ip}, which is not a public address; tools.network must list that address itself"
            ),
            Self::Unreached(why) => format!("{name}:{port} cannot be reached: {why}"),
        }
    }
}

/// The beginning of a request.
struct Head {
    method: String,
    target: String,
    version: String,
    /// The lines after the first, without their ends.
    fields: Vec<String>,
}

impl Head {
    /// `None` for what is not a request.
    fn read(from: &mut impl BufRead) -> io::Result<Option<Self>> {
        let mut from = from.take(MOST_HEAD);
        let Some(first) = line(&mut from)? else { return Ok(None) };
        let mut words = first.split(' ');
        let (Some(method), Some(target), Some(version), None) =
            (words.next(), words.next(), words.next(), words.next())
        else {
            return Ok(None);
        };
        if !version.starts_with("HTTP/1.") {
            return Ok(None);
        }
        let (method, target, version) = (method.to_owned(), target.to_owned(), version.to_owned());
        let mut fields = Vec::new();
        loop {
            match line(&mut from)? {
                None => return Ok(None),
                Some(end) if end.is_empty() => return Ok(Some(Self { method, target, version, fields })),
                Some(field) => fields.push(field),
            }
        }
    }
}

/// A line without its end; `None` where it has none, or is no text.
fn line(from: &mut impl BufRead) -> io::Result<Option<String>> {
    let mut bytes = Vec::new();
    from.read_until(b'\n', &mut bytes)?;
    let Some(bytes) = bytes.strip_suffix(b"\n") else { return Ok(None) };
    Ok(String::from_utf8(bytes.strip_suffix(b"\r").unwrap_or(bytes).to_vec()).ok())
}

/// Where a client wants to go.
struct Asked {
    name: String,
    port: u16,
    /// What is asked for there; `None` for a tunnel.
    path: Option<String>,
}

impl Asked {
    fn of(head: &Head) -> Option<Self> {
        if head.method == "CONNECT" {
            let (name, port) = split(&head.target).filter(|(name, _)| !name.is_empty())?;
            return Some(Self { name: name.to_owned(), port: port?, path: None });
        }
        let rest = head.target.get(..7).filter(|scheme| scheme.eq_ignore_ascii_case("http://"))?;
        let rest = &head.target[rest.len()..];
        let (authority, path) = rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()));
        let (name, port) = split(authority).filter(|(name, _)| !name.is_empty())?;
        let path = if path.starts_with('/') { path.to_owned() } else { format!("/{path}") };
        Some(Self { name: name.to_owned(), port: port.unwrap_or(80), path: Some(path) })
    }

    /// As the `Host` of a request.
    fn authority(&self) -> String {
        let name = if self.name.contains(':') { format!("[{}]", self.name) } else { self.name.clone() };
        if self.port == 80 { name } else { format!("{name}:{}", self.port) }
    }
}

/// Carries bytes both ways until both sides have said all.
fn forward(
    client: TcpStream,
    mut from: BufReader<TcpStream>,
    server: &TcpStream,
    head: &Head,
    asked: &Asked,
) -> io::Result<()> {
    client.set_read_timeout(None)?;
    match &asked.path {
        None => (&client).write_all(b"HTTP/1.1 200 Connection established\r\n\r\n")?,
        Some(path) => {
            let mut to = server;
            to.write_all(plain(head, asked, path).as_bytes())?
        }
    }
    let (mut back_from, mut back_to) = (server.try_clone()?, client);
    let back = std::thread::Builder::new().spawn(move || {
        let _ = io::copy(&mut back_from, &mut back_to);
        let _ = back_to.shutdown(Shutdown::Write);
    })?;
    let mut to = server;
    let _ = io::copy(&mut from, &mut to);
    let _ = to.shutdown(Shutdown::Write);
    let _ = back.join();
    Ok(())
}

/// A plain request as its server takes it: for the host that was admitted, and the only one of its connection.
fn plain(head: &Head, asked: &Asked, path: &str) -> String {
    let mut text = format!("{} {path} {}\r\nHost: {}\r\n", head.method, head.version, asked.authority());
    let is_ours = |field: &&String| {
        let name = field.split(':').next().unwrap_or_default().trim().to_ascii_lowercase();
        !(name == "host" || name == "connection" || name == "keep-alive" || name.starts_with("proxy-"))
    };
    for field in head.fields.iter().filter(is_ours) {
        text.push_str(field);
        text.push_str("\r\n");
    }
    text.push_str("Connection: close\r\n\r\n");
    text
}

fn refuse(mut client: &TcpStream, status: &str, why: &str) -> io::Result<()> {
    let body = format!("komado: {why}\n");
    let length = body.len();
    write!(
        client,
        "HTTP/1.1 {status}\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}"
    )
}

#[cfg(test)]
mod tests {
    use super::{AllowedHost, Mutex, Proxy, Refused, serve};
    use crate::sandbox::Network;
    use std::io::{Read, Write};
    use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};

    /// A server that answers each connection with what it read, until a blank line.
    fn echo() -> SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        std::thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let (mut client, mut bytes) = (client, vec![0; 4096]);
                let length = client.read(&mut bytes).unwrap();
                let _ = client.write_all(&bytes[..length]);
            }
        });
        address
    }

    fn proxy(hosts: &[String]) -> SocketAddr {
        let Network::Hosts(hosts) = Network::parse(hosts).unwrap() else { unreachable!() };
        let hosts: Vec<AllowedHost> = hosts;
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        std::thread::spawn(move || serve(&listener, hosts));
        address
    }

    fn said(proxy: SocketAddr, request: &str) -> String {
        let mut client = TcpStream::connect(proxy).unwrap();
        client.write_all(request.as_bytes()).unwrap();
        client.shutdown(Shutdown::Write).unwrap();
        let mut text = String::new();
        client.read_to_string(&mut text).unwrap();
        text
    }

    #[test]
    fn a_tunnel_leads_to_a_listed_address_and_nowhere_else() {
        let (server, other) = (echo(), echo());
        let proxy = proxy(&[server.to_string(), "example.invalid".to_owned()]);
        let through = said(proxy, &format!("CONNECT {server} HTTP/1.1\r\nHost: x\r\n\r\nhello"));
        assert_eq!(through, "HTTP/1.1 200 Connection established\r\n\r\nhello");
        for target in [
            other.to_string(),
            format!("localhost:{}", server.port()),
            format!("[::1]:{}", server.port()),
            format!("127.1:{}", server.port()),
            format!("0.0.0.0:{}", server.port()),
            "169.254.169.254:80".to_owned(),
        ] {
            let answer = said(proxy, &format!("CONNECT {target} HTTP/1.1\r\n\r\nhello"));
            assert!(
                answer.starts_with("HTTP/1.1 403 ") && answer.contains("tools.network"),
                "{target}: {answer}"
            );
        }
        for target in ["", "x", "a:b:c", "127.0.0.1:0", "user@127.0.0.1:80x"] {
            let answer = said(proxy, &format!("CONNECT {target} HTTP/1.1\r\n\r\n"));
            assert!(answer.starts_with("HTTP/1.1 400 "), "{target}: {answer}");
        }
        assert!(said(proxy, "CONNECT example.invalid:443 HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 502 "));
    }

    #[test]
    fn a_listed_name_that_leads_to_this_machine_is_refused() {
        // As if its owner had made the name lead here.
        let server = echo();
        let named = Network::parse(&[format!("example.com:{}", server.port())]).unwrap();
        let proxy = Proxy { hosts: named.hosts().unwrap().to_vec(), open: 0.into(), told: Mutex::default() };
        assert!(matches!(proxy.connect_to(server), Err(Refused::Private(ip)) if ip == server.ip()));
        let listed = Network::parse(&[server.to_string()]).unwrap();
        let proxy = Proxy { hosts: listed.hosts().unwrap().to_vec(), ..proxy };
        assert!(proxy.connect_to(server).is_ok());
    }

    #[test]
    fn a_plain_request_is_sent_on_for_the_host_it_was_admitted_for() {
        let server = echo();
        let proxy = proxy(&[server.to_string()]);
        let request = format!(
            "GET http://{server}/a?b HTTP/1.1\r\nHost: other\r\nProxy-Authorization: x\r\nAccept: */*\r\n\r\n"
        );
        let sent = format!("GET /a?b HTTP/1.1\r\nHost: {server}\r\nAccept: */*\r\nConnection: close\r\n\r\n");
        assert_eq!(said(proxy, &request), sent);
        let elsewhere = said(proxy, "GET http://example.com/ HTTP/1.1\r\n\r\n");
        assert!(elsewhere.starts_with("HTTP/1.1 403 "), "{elsewhere}");
        for bad in ["GET / HTTP/1.1\r\n\r\n", "hello\r\n\r\n", "GET http:// HTTP/1.1\r\n\r\n", "\u{0}\r\n"] {
            assert!(said(proxy, bad).starts_with("HTTP/1.1 400 "), "{bad:?}");
        }
    }
}
