//! A room to try things in: a store, a clock that counts, and short ways to say things.

use komado_core::head::EntrySource;
use komado_core::journal::{Reply, Setup, Usage};
use komado_core::message::{Call, CallKind, Message, MessagePart, OutputRef, Role, ToolOutcome};
use komado_core::raw::RawJson;
use komado_core::session::{Meta, MetaConfig, TaskKey};
use komado_core::{Meter, Seq, SessionId, ThreadId, View};
use komado_engine::{Clock, Engine, Thread};
use komado_store::{FileStore, Holder, MemoryStore, OpenMode, Store};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Counts microseconds up from a fixed moment.
#[derive(Default)]
pub(crate) struct Ticks(AtomicU64);

impl Clock for Ticks {
    fn now(&self) -> String {
        let n = self.0.fetch_add(1, Ordering::SeqCst);
        let (micros, seconds) = (n % 1_000_000, n / 1_000_000);
        format!("2024-01-15T10:{:02}:{:02}.{micros:06}Z", 30 + seconds / 60, seconds % 60)
    }
}

pub(crate) struct Room {
    pub(crate) engine: Engine,
    pub(crate) files: Option<Arc<FileStore>>,
    pub(crate) memory: MemoryStore,
    base: Option<Arc<tempfile::TempDir>>,
    clock: Arc<Ticks>,
}

impl Room {
    pub(crate) fn memory() -> Self {
        Self::with(MemoryStore::default(), None, Arc::default())
    }

    pub(crate) fn files() -> Self {
        Self::with(MemoryStore::default(), Some(Arc::new(tempfile::tempdir().unwrap())), Arc::default())
    }

    fn with(memory: MemoryStore, base: Option<Arc<tempfile::TempDir>>, clock: Arc<Ticks>) -> Self {
        let files = base.as_ref().map(|dir| Arc::new(FileStore::new(dir.path(), holder())));
        let store: Arc<dyn Store> = match &files {
            Some(files) => files.clone(),
            None => Arc::new(memory.clone()),
        };
        Self { engine: Engine::new(store, clock.clone()), files, memory, base, clock }
    }

    /// The same room after the process has gone and another has come.
    pub(crate) fn again(&self) -> Self {
        Self::with(self.memory.clone(), self.base.clone(), self.clock.clone())
    }

    /// An engine of another store on this room's clock.
    pub(crate) fn engine_on(&self, store: Arc<dyn Store>) -> Engine {
        Engine::new(store, self.clock.clone())
    }

    pub(crate) fn session(&self, name: &str) -> SessionId {
        self.engine.create(&meta(name, &self.clock.now())).unwrap()
    }

    pub(crate) fn root(&self, id: &SessionId) -> Thread<'_> {
        self.thread(id, "root")
    }

    pub(crate) fn thread(&self, id: &SessionId, name: &str) -> Thread<'_> {
        self.engine.open(id, &thread_id(name), OpenMode::Write).unwrap()
    }

    pub(crate) fn look(&self, id: &SessionId, name: &str) -> Thread<'_> {
        self.engine.open(id, &thread_id(name), OpenMode::Read).unwrap()
    }

    pub(crate) fn folder(&self, id: &SessionId) -> PathBuf {
        self.files.as_ref().unwrap().folder(id).unwrap()
    }

    pub(crate) fn base(&self) -> &Path {
        self.base.as_ref().unwrap().path()
    }
}

/// Runs a test on every store.
pub(crate) fn everywhere(test: impl Fn(&Room)) {
    for room in [Room::memory(), Room::files()] {
        test(&room);
    }
}

pub(crate) fn holder() -> Holder {
    Holder { pid: std::process::id(), host: "here".into(), program: "test".into(), since: "now".into() }
}

pub(crate) fn meta(name: &str, created_at: &str) -> Meta {
    Meta {
        uuid: name.into(),
        task_key: TaskKey::parse("github:ann/tool/issue/27").unwrap(),
        created_at: created_at.into(),
        process_id: 42,
        hostname: "山".into(),
        config: MetaConfig {
            llm_provider: Some("openai".into()),
            model: Some("gpt-4o".into()),
            context_length: Some(128_000),
            compression_threshold: Some(0.7),
            window_from: None,
            meter: Meter::Bytes4.name().into(),
            ..MetaConfig::default()
        },
        user: Some("ann".into()),
        queued: false,
    }
}

pub(crate) fn thread_id(name: &str) -> ThreadId {
    ThreadId::new(name).unwrap()
}

pub(crate) fn user(text: &str) -> Message {
    Message::text(Role::User, text)
}

pub(crate) fn model(text: &str) -> Message {
    Message::text(Role::Assistant, text)
}

pub(crate) fn call(id: &str, name: &str, arguments: &str) -> MessagePart {
    MessagePart::Call(Call {
        id: id.into(),
        name: name.into(),
        arguments: arguments.into(),
        kind: CallKind::Function,
        extra: None,
    })
}

pub(crate) fn calls(parts: Vec<MessagePart>) -> Message {
    Message::of(Role::Assistant, parts)
}

pub(crate) fn outcome(id: &str, name: Option<&str>, text: &str) -> ToolOutcome {
    ToolOutcome {
        call_id: id.into(),
        name: name.map(str::to_owned),
        content: vec![MessagePart::text(text)],
        is_error: false,
        output_ref: None,
        duration_ms: None,
        interrupted: false,
        replaces: None,
    }
}

pub(crate) fn result(id: &str, text: &str) -> Message {
    Message::of(Role::Tool, vec![MessagePart::Result(outcome(id, None, text))])
}

/// A result whose whole output is a blob.
pub(crate) fn result_with_output(
    room: &Room,
    session: &SessionId,
    id: &str,
    text: &str,
    output: &[u8],
) -> Message {
    let blob = room.engine.store().put_blob(session, &mut &output[..]).unwrap();
    let output_ref =
        OutputRef { id: blob.id, byte_size: Some(blob.byte_size), line_count: Some(blob.line_count) };
    Message::of(
        Role::Tool,
        vec![MessagePart::Result(ToolOutcome { output_ref: Some(output_ref), ..outcome(id, None, text) })],
    )
}

pub(crate) fn used(input_tokens: u64, output_tokens: u64) -> Reply {
    let usage = Usage { input_tokens, output_tokens, ..Usage::default() };
    Reply { usage: Some(usage), finish: "stop".into(), ..Reply::default() }
}

pub(crate) fn setup(system: &str) -> Setup {
    Setup {
        system: Some(system.into()),
        tools: Some(
            RawJson::parse(r#"[{"type":"function","function":{"name":"read","limit":1.0}}]"#).unwrap(),
        ),
        params: None,
        dialect: Some("openai".into()),
    }
}

/// What the model sees, a line for each message: who, what they say, what they call.
pub(crate) fn seen(view: &View, thread: &Thread<'_>) -> Vec<String> {
    let mut lines = Vec::new();
    view.pour(thread.source(), &mut |_: Seq, message: &Message| -> komado_store::Result<()> {
        let calls: String =
            message.calls().map(|c| format!(" {}({})#{}", c.name, c.arguments, c.id)).collect();
        let answers = message.outcome().map(|o| format!(" #{}", o.call_id)).unwrap_or_default();
        lines.push(format!("{}{answers}: {}{calls}", message.role.name(), message.words()));
        Ok(())
    })
    .unwrap();
    lines
}

/// What the model sees now.
pub(crate) fn words(thread: &Thread<'_>) -> Vec<String> {
    seen(thread.view(), thread)
}

/// The tokens of the view, counted anew over every message it pours.
pub(crate) fn counted(thread: &Thread<'_>) -> u64 {
    let meter = thread.meter();
    let mut setup = 0;
    if let Some(at) = thread.view().setup()
        && let komado_core::Entry::Setup(entry) = thread.record(at).unwrap().entry
    {
        setup = u64::from(meter.setup(&entry));
    }
    let mut said = 0;
    view_items(thread, |message| said += u64::from(meter.message(message)));
    setup + said
}

fn view_items(thread: &Thread<'_>, mut each: impl FnMut(&Message)) {
    let own = thread.view().setup();
    let mut pour = |seq: Seq, message: &Message| -> komado_store::Result<()> {
        if Some(seq) != own {
            each(message);
        }
        Ok(())
    };
    thread.view().pour(thread.source(), &mut pour).unwrap();
}

/// The view is what the journal folds to, its count is true, and every result has its call.
pub(crate) fn check(thread: &Thread<'_>) {
    let source = thread.source();
    assert_eq!(thread.view(), &View::fold(source, thread.last()).unwrap());
    assert_eq!(thread.view().last(), EntrySource::last(source));
    assert_eq!(thread.view().tokens(), counted(thread));
    let mut open: Vec<String> = Vec::new();
    view_items(thread, |message| match message.outcome() {
        Some(outcome) => {
            let at = open.iter().position(|id| *id == outcome.call_id);
            open.remove(at.expect("a result has its call before it"));
        }
        None => {
            assert!(open.is_empty(), "calls have their results before anyone else speaks");
            open.extend(message.calls().map(|call| call.id.clone()));
        }
    });
    assert_eq!(open.len(), thread.view().open().calls.len());
}
