//! Every figure about the store, after traffic and after failures.

use super::super::ServerState;
use super::super::access::ClientAccess;
use crate::app::KomadoClock;
use komado_config::{Config, Sources};
use komado_core::session::{Meta, MetaConfig, State, TaskKey};
use komado_core::{SessionId, ThreadId};
use komado_engine::Engine;
use komado_ops::OperationContext;
use komado_store::{Error, MemoryStore, OpenMode, SessionChange, Store};
use komado_testkit::Faulty;
use std::sync::Arc;

fn house(store: Arc<dyn Store>) -> Arc<ServerState> {
    let folder = std::env::temp_dir().join("no-such-folder");
    let config = Config::load(&Sources {
        flags: &[],
        env: &|_| None,
        env_names: &[],
        file: None,
        cwd: &folder,
        home: None,
        xdg: None,
        data: None,
        has_contexts: &|_| false,
        in_folder: komado_config::InFolder::Ignored,
        has_consent: &|_, _| false,
    });
    let context = OperationContext::new(
        Engine::new(store, Arc::new(KomadoClock)),
        Arc::new(config.unwrap()),
        None,
        |_| {},
    );
    ServerState::new(&context, ClientAccess::default())
}

fn meta(id: &str) -> Meta {
    Meta {
        uuid: id.to_owned(),
        task_key: TaskKey::local(&SessionId::new(id).unwrap()),
        created_at: "2026-01-01T00:00:00Z".to_owned(),
        process_id: 1,
        hostname: "窓".to_owned(),
        config: MetaConfig::default(),
        user: Some("太郎".to_owned()),
        queued: false,
    }
}

#[track_caller]
fn has(text: &str, line: &str) {
    assert!(text.contains(line), "{line}: {text}");
}

#[test]
fn what_is_done_with_the_store_is_counted() {
    let kept = Arc::new(MemoryStore::default());
    kept.create(&meta("old")).unwrap();
    let house = house(kept);
    let (store, root) = (house.context.engine.store(), ThreadId::root());
    store.create(&meta("new")).unwrap();
    let (new, old) = (SessionId::new("new").unwrap(), SessionId::new("old").unwrap());
    for id in [&new, &old, &old] {
        store.open(id, &root, OpenMode::Read).unwrap();
    }
    let at = "2026-01-02T00:00:00Z".to_owned();
    store.change(&new, &SessionChange::State { to: State::Completed, at, why: None }).unwrap();
    house.meters.vitals(house.pulse.of(store).ok().as_ref());
    let text = house.meters.render(0);
    has(&text, "komado_sessions_created_total 1");
    has(&text, r#"komado_sessions_ended_total{state="completed"} 1"#);
    has(&text, r#"komado_session_restores_total{outcome="ok"} 1"#);
    has(&text, r#"komado_store_seconds_count{call="open"} 3"#);
    has(&text, "komado_sessions 2");
    has(&text, "komado_store_up 1");
    has(&text, "komado_session_create_failures_total 0");
}

#[test]
fn what_the_store_cannot_do_is_counted() {
    let house = house(Arc::new(Faulty::down_from(MemoryStore::default(), 1)));
    let (store, id) = (house.context.engine.store(), SessionId::new("s").unwrap());
    assert!(store.create(&meta("s")).is_err());
    assert!(store.open(&id, &ThreadId::root(), OpenMode::Read).is_err());
    house.meters.vitals(house.pulse.of(store).ok().as_ref());
    let text = house.meters.render(0);
    has(&text, "komado_session_create_failures_total 1");
    has(&text, "komado_history_read_errors_total 1");
    has(&text, r#"komado_session_restores_total{outcome="failed"} 1"#);
    has(&text, r#"komado_store_errors_total{call="create",kind="disk"} 1"#);
    has(&text, "komado_store_up 0");
}

#[test]
fn a_session_that_is_not_there_is_no_failure_of_the_store() {
    let house = house(Arc::new(MemoryStore::default()));
    let id = SessionId::new("s").unwrap();
    assert!(house.context.engine.store().open(&id, &ThreadId::root(), OpenMode::Read).is_err());
    let text = house.meters.render(0);
    has(&text, "komado_history_read_errors_total 0");
    has(&text, r#"komado_session_restores_total{outcome="ok"} 0"#);
    has(&text, r#"komado_session_restores_total{outcome="failed"} 0"#);
}

#[test]
fn a_history_of_a_store_that_is_away_is_not_one_that_cannot_be_read() {
    let house = house(Arc::new(MemoryStore::default()));
    let (place, why) = ("db:5432".to_owned(), "応答がない".to_owned());
    house.meters.unread(&Error::Away { place: place.clone(), why: why.clone() });
    house.meters.unread(&Error::TakenOver(SessionId::new("s").unwrap()));
    has(&house.meters.render(0), "komado_history_read_errors_total 0");
    house.meters.unread(&Error::Damaged { place, why });
    has(&house.meters.render(0), "komado_history_read_errors_total 1");
}

#[test]
fn who_writes_is_asked_of_the_store_itself() {
    let house = house(Arc::new(MemoryStore::default()));
    let (store, id) = (house.context.engine.store(), SessionId::new("s").unwrap());
    store.create(&meta("s")).unwrap();
    let _writing = store.open(&id, &ThreadId::root(), OpenMode::Write).unwrap();
    assert!(store.writer(&id).unwrap().is_some());
    has(&house.meters.render(0), r#"komado_store_seconds_count{call="writer"} 1"#);
}
