//! What of the network is reached: nothing, unless it is listed.

use super::{ALL, Ground, On};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, UdpSocket};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::UnixListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A host with a small page, and how often it was visited.
struct StandIn {
    address: SocketAddr,
    visits: Arc<AtomicUsize>,
}

impl StandIn {
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let (address, visits) = (listener.local_addr().unwrap(), Arc::<AtomicUsize>::default());
        let count = Arc::clone(&visits);
        std::thread::spawn(move || {
            for mut client in listener.incoming().flatten() {
                count.fetch_add(1, Ordering::SeqCst);
                let mut from = BufReader::new(client.try_clone().unwrap());
                let mut line = String::new();
                while from.read_line(&mut line).is_ok_and(|read| read > 0) && !line.ends_with("\r\n\r\n") {}
                let _ = client
                    .write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\nConnection: close\r\n\r\nhello\n");
            }
        });
        Self { address, visits }
    }

    fn visits(&self) -> usize {
        self.visits.load(Ordering::SeqCst)
    }
}

const FETCH: &str = r#"
import sys, urllib.request
for url in sys.argv[1:]:
    try:
        print(urllib.request.urlopen(url, timeout=20).read().decode().strip())
    except urllib.error.HTTPError as error:
        print(error.code, error.read().decode().strip())
    except Exception as error:
        print("no", type(error).__name__)
"#;

#[test]
fn a_task_reaches_a_listed_host_and_no_other_and_not_the_loopback() {
    {
        let on = On::This;
        let (listed, other) = (StandIn::start(), StandIn::start());
        let mut ground = Ground::listing(on, &[listed.address.to_string(), "example.invalid".into()]);
        std::fs::write(ground.dir.path().join("work/fetch.py"), FETCH).unwrap();
        let url = |address: SocketAddr| format!("http://{address}/");
        let (text, _) = ground.shell(&format!("python3 fetch.py {}", url(listed.address)));
        assert_eq!(text, "hello\n[exit code 0]\n", "{on:?}");
        let elsewhere =
            ["http://example.com/".to_owned(), url(other.address), "http://169.254.169.254/".to_owned()];
        for url in elsewhere {
            // Also for clients that would go to a loopback by themselves.
            let (text, _) = ground.shell(&format!("no_proxy= NO_PROXY= python3 fetch.py {url}"));
            assert!(text.contains("403 komado: ") && text.contains("tools.network"), "{on:?} {url}: {text}");
        }
        // Without the proxy there is nothing: the loopback is the command's own.
        let direct = format!("env -u http_proxy -u HTTP_PROXY python3 fetch.py {}", url(listed.address));
        assert!(ground.shell(&direct).0.starts_with("no URLError"));
        assert_eq!((listed.visits(), other.visits()), (1, 0), "{on:?}");
    }
}

#[test]
fn a_tunnel_through_the_proxy_leads_to_the_listed_host_alone() {
    let (listed, other) = (StandIn::start(), StandIn::start());
    let mut ground = Ground::listing(On::This, &[listed.address.to_string()]);
    let tunnel = |address: SocketAddr| {
        format!(
            r#"
import http.client, os, urllib.parse
proxy = urllib.parse.urlsplit(os.environ["https_proxy"])
client = http.client.HTTPConnection(proxy.hostname, proxy.port, timeout=20)
client.set_tunnel("{}", {})
try:
    client.request("GET", "/")
    print(client.getresponse().read().decode().strip())
except OSError as error:
    print(error)
"#,
            address.ip(),
            address.port()
        )
    };
    ground.python(&tunnel(listed.address), "hello");
    std::fs::write(ground.dir.path().join("work/probe.py"), tunnel(other.address)).unwrap();
    let (text, _) = ground.shell("python3 probe.py");
    assert!(text.contains("Tunnel connection failed: 403"), "{text}");
    assert_eq!((listed.visits(), other.visits()), (1, 0));
}

#[test]
fn without_a_list_no_socket_leads_out_of_the_sandbox() {
    for on in ALL {
        let (tcp, udp) = (StandIn::start(), UdpSocket::bind("127.0.0.1:0").unwrap());
        udp.set_nonblocking(true).unwrap();
        let mut ground = Ground::new(on);
        let named = ground.outside().join("socket");
        let by_name = UnixListener::bind(&named).unwrap();
        std::fs::set_permissions(&named, std::os::unix::fs::PermissionsExt::from_mode(0o777)).unwrap();
        let abstract_name = format!("komado-sandbox-{}-{on:?}", std::process::id());
        let address = std::os::unix::net::SocketAddr::from_abstract_name(&abstract_name).unwrap();
        let without_name = UnixListener::bind_addr(&address).unwrap();
        for listener in [&by_name, &without_name] {
            listener.set_nonblocking(true).unwrap();
        }
        let program = format!(
            r#"
import socket, os
def connect(family, kind, address):
    s = socket.socket(family, kind)
    s.settimeout(10)
    s.connect(address)
    s.send(b"x")
    if kind == socket.SOCK_DGRAM and family == socket.AF_INET:
        try:
            s.recv(1)
        except TimeoutError:
            pass
tcp, udp, named, abstract = {tcp_port}, {udp_port}, "{named}", "\0{abstract_name}"
attempt("tcp", lambda: connect(socket.AF_INET, socket.SOCK_STREAM, ("127.0.0.1", tcp)))
attempt("tcp6", lambda: connect(socket.AF_INET6, socket.SOCK_STREAM, ("::ffff:127.0.0.1", tcp)))
attempt("mptcp", lambda: socket.socket(socket.AF_INET, socket.SOCK_STREAM, 262).connect(("127.0.0.1", tcp)))
def fast_open():
    s = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    s.sendto(b"GET / HTTP/1.0\r\n\r\n", socket.MSG_FASTOPEN, ("127.0.0.1", tcp))
attempt("fast open", fast_open)
attempt("udp", lambda: connect(socket.AF_INET, socket.SOCK_DGRAM, ("127.0.0.1", udp)))
attempt("named", lambda: connect(socket.AF_UNIX, socket.SOCK_STREAM, named))
attempt("named by a relative path", lambda: connect(socket.AF_UNIX, socket.SOCK_STREAM, "../outside/socket"))
attempt("abstract", lambda: connect(socket.AF_UNIX, socket.SOCK_STREAM, abstract))
for pid in [1, os.getppid(), {pid}] + [int(p) for p in os.listdir("/proc") if p.isdigit()]:
    path = "/proc/%d/root%s" % (pid, named)
    if len(path) < 108 and pid != os.getpid():
        attempt("named through " + str(pid), lambda: connect(socket.AF_UNIX, socket.SOCK_STREAM, path))
attempt("vsock", lambda: socket.socket(40, socket.SOCK_STREAM))
attempt("packet", lambda: socket.socket(17, socket.SOCK_RAW))
attempt("alg", lambda: socket.socket(38, socket.SOCK_SEQPACKET))
attempt("audit", lambda: socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 9))
print("done")
"#,
            tcp_port = tcp.address.port(),
            udp_port = udp.local_addr().unwrap().port(),
            named = named.display(),
            pid = std::process::id(),
        );
        ground.python(&program, "done");
        assert_eq!(tcp.visits(), 0, "{on:?}");
        assert!(udp.recv(&mut [0]).is_err() && by_name.accept().is_err() && without_name.accept().is_err());
    }
}

#[test]
fn where_the_system_allows_no_namespaces_listed_hosts_are_refused_with_the_reason() {
    let mut ground = Ground::listing(On::WithoutNamespaces, &["example.com".into()]);
    let (text, is_error) = ground.shell("echo here");
    assert!(is_error && text.contains("needs a network namespace") && !text.contains("here\n"), "{text}");
}

#[test]
fn the_loopback_inside_is_the_commands_own_and_works() {
    {
        let on = On::This;
        let mut ground = Ground::new(on);
        ground.python(
            r#"
import socket, threading, os
def echo(family, address):
    server = socket.socket(family)
    server.bind(address)
    server.listen()
    thread = threading.Thread(target=lambda: server.accept()[0].send(b"here"))
    thread.start()
    client = socket.socket(family)
    client.connect(server.getsockname())
    print(client.recv(9).decode())
echo(socket.AF_INET, ("127.0.0.1", 0))
echo(socket.AF_UNIX, "own.socket")
echo(socket.AF_UNIX, os.environ["TMPDIR"] + "/own.socket")
a, b = socket.socketpair()
a.send(b"pair")
print(b.recv(9).decode())
"#,
            "here\nhere\nhere\npair",
        );
    }
}

#[test]
fn an_open_network_is_open() {
    let host = StandIn::start();
    for on in ALL {
        let mut ground = Ground::listing(on, &["open".into()]);
        std::fs::write(ground.dir.path().join("work/fetch.py"), FETCH).unwrap();
        let (text, _) = ground.shell(&format!("python3 fetch.py http://{}/", host.address));
        assert_eq!(text, "hello\n[exit code 0]\n", "{on:?}");
    }
}

/// The way in which a hostile task once listed and completed the sessions of others.
#[test]
fn a_server_without_keys_on_the_same_machine_is_not_reached() {
    let base = tempfile::tempdir().unwrap();
    let mut server = std::process::Command::new(super::program())
        .args([
            "--base-dir",
            base.path().to_str().unwrap(),
            "serve",
            "--listen",
            "127.0.0.1:0",
            "--upstream",
            "scripted",
        ])
        .env_clear()
        .env("HOME", base.path())
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(server.stdout.take().unwrap()).lines();
    let address = lines.by_ref().flatten().find_map(|line| {
        let at = line.find("http://127.0.0.1:")?;
        Some(line[at + 7..].split(['/', ' ']).next()?.to_owned())
    });
    let address = address.expect("the server says where it listens");
    let mut answer = String::new();
    let mut client = std::net::TcpStream::connect(&address).unwrap();
    client.write_all(format!("GET /healthz HTTP/1.0\r\nHost: {address}\r\n\r\n").as_bytes()).unwrap();
    client.read_to_string(&mut answer).unwrap();
    assert!(answer.contains("200 OK"), "it is there for others: {answer}");
    for on in ALL {
        let mut ground = Ground::new(on);
        std::fs::write(ground.dir.path().join("work/fetch.py"), FETCH).unwrap();
        let (text, _) = ground.shell(&format!("python3 fetch.py http://{address}/api/v1/sessions"));
        assert!(text.starts_with("no URLError"), "{on:?}: {text}");
    }
    server.kill().unwrap();
    server.wait().unwrap();
}
