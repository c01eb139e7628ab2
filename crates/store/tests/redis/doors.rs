//! The many ways to a server.

use super::servers::{Kind, Server};
use super::{how, make, open, reader, row, rows, writer};
use komado_store::{Blobs, Error, RedisStore, SessionQuery, Store};
use std::process::Command;

fn refused(url: &str) -> String {
    match RedisStore::open(url, &how("nobody")) {
        Err(error @ Error::Refused { .. }) => error.to_string(),
        Err(error) => panic!("{error}"),
        Ok(_) => panic!("it was let in"),
    }
}

/// Says a little in a new session, and reads it.
fn speaks(url: &str) {
    let store = open(url, &how("caller"));
    let id = make(&store, "s");
    let mut journal = writer(&store, &id);
    journal.append(0, &rows(&["こんにちは", "窓"])).unwrap();
    assert_eq!(reader(&store, &id).line(2).unwrap(), rows(&["こんにちは", "窓"])[1].line);
}

#[test]
fn a_password_or_a_user_of_ones_own_opens_and_a_wrong_one_is_told_what_to_do() {
    let server = Server::start(Kind::Redis, &[]);
    let mut line = redis::Client::open(server.url.as_str()).unwrap().get_connection().unwrap();
    for user in ["ann on >pass ~* &* +@all -config", "bob on >pass ~x* &* +@all", "default off"] {
        let words: Vec<&str> = user.split(' ').collect();
        let _: () = redis::cmd("ACL").arg("SETUSER").arg(words).query(&mut line).unwrap();
    }
    let with = |who: &str| server.url.replace("redis://", &format!("redis://{who}@"));
    speaks(&with("ann:pass"));
    let wrong = refused(&with("ann:geheim"));
    assert!(wrong.contains("redis://user:password@host") && !wrong.contains("geheim"), "{wrong}");
    let nobody = refused(&server.url);
    assert!(nobody.contains("redis://user:password@host"), "{nobody}");
    let store = open(&with("ann:pass"), &how("ann"));
    let vitals = komado_store::StoreFigures::vitals(&store).unwrap();
    assert!(vitals.durability.contains("unknown") && vitals.may_lose, "{vitals:?}");
    assert!(!format!("{vitals:?}").contains("pass@"));
    let bob = open(&with("bob:pass"), &how("bob"));
    let error = bob.sessions(&SessionQuery::default()).unwrap_err().to_string();
    assert!(error.contains("may not do this"), "{error}");
}

#[test]
fn a_full_server_says_so_and_loses_nothing() {
    let server = Server::start(Kind::Redis, &["--maxmemory", "8mb", "--maxmemory-policy", "noeviction"]);
    let store = open(&server.url, &how("large"));
    let id = make(&store, "s");
    let mut journal = writer(&store, &id);
    let text = "満".repeat(100_000);
    let mut after = 0;
    let error = loop {
        assert!(after < 100, "it is never full");
        match journal.append(after, &[row(after, &text)]) {
            Ok(()) => after += 1,
            Err(error) => break error,
        }
    };
    assert!(
        matches!(&error, Error::Refused { .. }) && error.to_string().contains("Redis is full"),
        "{error}"
    );
    assert_eq!((journal.last(), reader(&store, &id).last()), (after, after));
    drop(journal);
    store.remove(&id).unwrap();
    make(&store, "t");
}

#[test]
fn a_cluster_holds_many_sessions_each_in_one_place() {
    let cluster = Server::start(Kind::Cluster, &[]);
    let store = open(&cluster.url, &how("many"));
    for n in 0..20 {
        let id = make(&store, &format!("s{n}"));
        writer(&store, &id).append(0, &rows(&["一", "二"])).unwrap();
        store.put_blob(&id, &mut "出力".as_bytes()).unwrap();
    }
    let all = store.sessions(&SessionQuery::default()).unwrap();
    assert_eq!(all.len(), 20);
    let mut ear = komado_store::WatchStore::watch(&store).unwrap();
    let id = komado_core::SessionId::new("s7").unwrap();
    writer(&store, &id).append(2, &[row(2, "三")]).unwrap();
    // What was told before may still be on its way between the nodes.
    loop {
        match ear.next(std::time::Duration::from_secs(30)).unwrap() {
            komado_store::WatchEvent::News(news) if news.session == id && news.last == 3 => break,
            komado_store::WatchEvent::News(_) => {}
            other => panic!("{other:?}"),
        }
    }
    let job = komado_store::Job {
        session: id.clone(),
        key: "k".into(),
        user: None,
        body: "{}".into(),
        at: "t".into(),
    };
    assert!(komado_store::Queue::enqueue(&store, &job).unwrap());
    store.remove(&id).unwrap();
    assert_eq!(store.sessions(&SessionQuery::default()).unwrap().len(), 19);
}

#[test]
fn a_certificate_of_ones_own_is_trusted_when_it_is_named_and_not_otherwise() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).display().to_string();
    let made = Command::new("openssl")
        .args(["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost"])
        .args(["-addext", "basicConstraints=critical,CA:FALSE"])
        .args(["-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"])
        .args(["-keyout", &at("key.pem"), "-out", &at("cert.pem")])
        .output();
    if !made.is_ok_and(|made| made.status.success()) {
        eprintln!("no openssl here: nothing was tried");
        return;
    }
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port().to_string();
    let (key, cert) = (at("key.pem"), at("cert.pem"));
    let settings =
        ["--tls-port", &port, "--tls-key-file", &key, "--tls-cert-file", &cert, "--tls-auth-clients", "no"];
    let _server = Server::start(Kind::Redis, &settings);
    speaks(&format!("rediss://localhost:{port}?ca={cert}"));
    let stranger = refused(&format!("rediss://localhost:{port}"));
    assert!(stranger.contains("?ca=FILE"), "{stranger}");
}
