//! Two `komado serve` on one store: conversations that go back and forth between them, and one of the two killed under
//! load. `make soak` has 100 conversations, `make test` a few.
mod crowd;
#[allow(dead_code)]
use crate::gateway::stage;
use crate::run;
use crate::servers;

use crowd::Crowd;
use komado_testkit::soak::times;
use servers::{Kind, Server};
use stage::{Fake, Gateway, Heard, reply, say};

fn sessions() -> usize {
    usize::try_from(times(8, 100)).unwrap()
}

/// A model that takes a moment, and says the same to the same question.
fn model() -> Fake {
    Fake::start(|request: &Heard, stream| {
        std::thread::sleep(std::time::Duration::from_millis(60));
        let said = request.json();
        let question =
            said["messages"].as_array().unwrap().last().unwrap()["content"].as_str().unwrap().to_owned();
        say(stream, 200, &reply(request.path(), &crowd::answer(&question)));
    })
}

fn two(store: &str, fake: &Fake) -> [Gateway; 2] {
    let url = format!("store.url={store}");
    let lease = "store.lease_seconds=2";
    std::array::from_fn(|_| Gateway::before(fake, "openai", &["--set", &url, "--set", lease]))
}

/// All conversations go on, whichever gateway they meet, also when one of the two is gone from one moment to the next.
fn go_on(name: &str, store: &str) {
    let fake = model();
    let crowd = Crowd::new(two(store, &fake), sessions());
    crowd.talk();
    let found = crowd.check();
    println!("{name}: {found}");
    assert!(found.is_well(), "{name}: {found}");
}

#[test]
fn conversations_go_on_over_files_when_one_of_two_gateways_is_killed() {
    let folder = tempfile::tempdir().unwrap();
    go_on("file", &format!("file:{}", folder.path().display()));
}

#[test]
fn conversations_go_on_over_postgres_when_one_of_two_gateways_is_killed() {
    go_on("postgres", &Server::start(Kind::Postgres, &[]).url);
}

#[test]
fn conversations_go_on_over_redis_when_one_of_two_gateways_is_killed() {
    go_on("redis", &Server::start(Kind::Redis, &[]).url);
}

const ASK: &str = r#"{"model":"m","messages":[{"role":"user","content":"窓"}]}"#;

/// A store that is away does no harm: the request goes through as it came, and that is said; then all is kept again.
#[test]
fn requests_go_through_while_the_store_is_away_and_are_kept_again_once_it_is_back() {
    let server = Server::start(Kind::Redis, &[]);
    let (fake, url) = (Fake::saying("はい"), format!("store.url={}", server.url));
    let gateway = Gateway::before(&fake, "openai", &["--set", &url, "--set", "store.patience_seconds=1"]);
    let ask = || gateway.ask("POST /v1/chat/completions", &[], ASK.as_bytes());
    assert_ne!(ask().header("x-komado-session"), "");
    server.tell("kill");
    for _ in 0..3 {
        let heard = ask();
        assert_eq!((heard.status(), heard.header("x-komado-session")), (200, ""));
        assert!(heard.header("x-komado-fault").contains("does not answer"), "{heard:?}");
    }
    assert_eq!(fake.seen().last().unwrap().text(), ASK, "untouched");
    assert!(gateway.get("/readyz").text().contains("degraded"));
    let figures = gateway.get("/metrics").text();
    assert!(figures.contains("komado_store_up 0"), "{figures}");
    assert!(!figures.contains("komado_store_connection_errors_total 0"), "{figures}");
    server.tell("start");
    let is_kept = || !ask().header("x-komado-session").is_empty();
    assert!((0..100).any(|_| is_kept() || {
        std::thread::sleep(std::time::Duration::from_millis(100));
        false
    }));
}

/// A Redis that may lose what it was given says so where people look, and serves all the same.
#[test]
fn a_redis_without_a_log_or_that_evicts_is_said_at_the_start_and_by_readyz() {
    let fake = Fake::saying("はい");
    let gateway = |settings: &[&str]| {
        let server = Server::start(Kind::Redis, settings);
        let url = format!("store.url={}", server.url);
        (Gateway::before(&fake, "openai", &["--set", &url]), server)
    };
    let (well, _server) = gateway(&["--appendonly", "yes", "--maxmemory-policy", "noeviction"]);
    assert_eq!((well.get("/readyz").text().as_str(), well.log().contains("WARN")), ("ready\n", false));
    for (settings, word) in [
        (&["--appendonly", "no"][..], "appendonly no"),
        (&["--maxmemory-policy", "allkeys-lru"], "maxmemory-policy allkeys-lru"),
        (&["--appendonly", "no", "--rename-command", "CONFIG", ""], "appendonly no"),
        (&["--maxmemory-policy", "volatile-ttl", "--rename-command", "CONFIG", ""], "volatile-ttl"),
    ] {
        let (gateway, server) = gateway(settings);
        let ready = gateway.get("/readyz");
        assert_eq!(ready.status(), 200, "{settings:?}");
        let text = ready.text();
        assert!(text.starts_with("ready\nwarning: Redis ") && text.contains(word), "{settings:?}: {text}");
        let log = gateway.log();
        assert!(log.contains("WARN") && log.contains(word), "{settings:?}: {log}");
        let url = format!("store.url={}", server.url);
        let doctor = gateway.place.ok(&["admin", "doctor", "--set", &url]);
        assert!(doctor.contains("warning: Redis") && doctor.contains(word), "{settings:?}: {doctor}");
    }
}

/// The command line says in one line that the server is away, without the password, and exits with a code of its own.
#[test]
fn a_verb_says_that_the_server_is_away_and_no_password() {
    for url in ["postgres://ann:geheim@127.0.0.1:1/db", "redis://:geheim@127.0.0.1:1"] {
        let (place, set) = (run::Place::new(), format!("store.url={url}"));
        let said = place.run(&["sessions", "--set", &set, "--set", "store.patience_seconds=1"]);
        assert_eq!((said.code, said.err.lines().count()), (7, 1), "{}", said.err);
        assert!(said.err.contains("127.0.0.1:1") && !said.err.contains("geheim"), "{}", said.err);
        let config = place.run(&["admin", "config", "--set", &set]);
        assert_eq!(config.code, 0, "settings are shown whether or not it answers: {}", config.err);
        assert!(!config.out.contains("geheim") && !config.err.contains("geheim"), "{}", config.out);
    }
}
