//! What an append costs: the session's row is read once, and the journal is written once, however it is called.

#![allow(clippy::unwrap_used, clippy::expect_used)]

use komado_config::{Config, InFolder, Sources};
use komado_core::SessionId;
use komado_core::session::{Meta, MetaConfig, TaskKey};
use komado_engine::{Clock, Engine};
use komado_ops::address::AtThread;
use komado_ops::journal::AppendMessages;
use komado_ops::{ALL, ApiCaller, NamedArguments, Naming, OperationContext, ResultReader};
use komado_store::MemoryStore;
use komado_testkit::Faulty;
use std::sync::Arc;

type Store = Arc<Faulty<MemoryStore>>;

struct Noon;

impl Clock for Noon {
    fn now(&self) -> String {
        "2026-01-15T12:00:00.000000Z".to_owned()
    }
}

fn config() -> Config {
    let folder = std::env::temp_dir();
    Config::load(&Sources {
        flags: &[],
        env: &|_| None,
        env_names: &[],
        file: None,
        cwd: &folder.join("no-such-folder"),
        home: None,
        xdg: None,
        data: None,
        has_contexts: &|_| false,
        in_folder: InFolder::Ignored,
        has_consent: &|_, _| false,
    })
    .unwrap()
}

/// A session in a store that counts, and a context over it.
fn opened() -> (Store, OperationContext) {
    let store: Store = Arc::new(Faulty::new(MemoryStore::default(), 0));
    let engine = Engine::new(Arc::clone(&store) as _, Arc::new(Noon));
    let id = SessionId::new("s").unwrap();
    let meta = Meta {
        uuid: "s".to_owned(),
        task_key: TaskKey::local(&id),
        created_at: engine.now(),
        process_id: 1,
        hostname: "窓".to_owned(),
        config: MetaConfig { context_length: Some(8_192), ..MetaConfig::default() },
        user: None,
        queued: false,
    };
    engine.create(&meta).unwrap();
    (store, OperationContext::new(engine, Arc::new(config()), None, |_| {}))
}

fn cost(store: &Store, act: impl FnOnce()) -> (u64, u64) {
    let (rows, appends) = store.rows_and_appends();
    act();
    let now = store.rows_and_appends();
    (now.0 - rows, now.1 - appends)
}

#[test]
fn an_append_of_the_command_line_reads_the_row_once_and_writes_once() {
    let (store, context) = opened();
    let at = AtThread { session: Some("s".to_owned()), thread: None };
    let append = AppendMessages { at, text: Some("窓を直して".to_owned()), ..AppendMessages::default() };
    let cost = cost(&store, || {
        let appended = context.run(append).unwrap();
        assert_eq!((appended.seq, appended.window), (1, Some(8_192)));
    });
    assert_eq!(cost, (1, 1));
}

#[test]
fn an_append_by_name_reads_the_row_once_and_writes_once() {
    let (store, context) = opened();
    let context = context.of(ApiCaller::owner(), Naming::Exact);
    let row = ALL.iter().find(|row| row.name == "append").unwrap();
    let given = NamedArguments::parse(r#"{"session":"s","thread":"root","text":"窓を直して"}"#).unwrap();
    let cost = cost(&store, || {
        let answer = row.call(given, &context, ResultReader::Program, |_| Ok(None)).unwrap();
        assert!(answer.json.contains("\"seq\":1"), "{}", answer.json);
    });
    assert_eq!(cost, (1, 1));
}
