//! A thread on a store in memory, a scripted server, and a budget between them.

use komado_core::budget::{Budget, Preset};
use komado_core::journal::{Entry, Setup};
use komado_core::message::{Message, MessagePart, Role, ToolOutcome};
use komado_core::raw::RawJson;
use komado_core::session::{Meta, MetaConfig, TaskKey};
use komado_core::{Meter, SessionId, ThreadId};
use komado_engine::condense::{ByDigest, CondenseSettings};
use komado_engine::exchange::{ExchangeEvent, ModelTarget, TurnResult};
use komado_engine::fit::Ladder;
use komado_engine::lesson::AppliedLesson;
use komado_engine::{Clock, Engine, Result, Thread};
use komado_provider::overflow::classify;
use komado_provider::scripted::{ScriptedOptions, ScriptedServer};
use komado_provider::{Client, ClientTimeouts, Dialect, Provider};
use komado_store::{MemoryStore, OpenMode, Store};
use std::sync::Arc;
use std::time::Duration;

pub(crate) const MODEL: &str = "scripted-1";

struct Still;

impl Clock for Still {
    fn now(&self) -> String {
        "2026-01-15T10:00:00.000000Z".into()
    }
}

/// Everything a conversation needs.
pub(crate) struct Talk {
    pub(crate) engine: Engine,
    pub(crate) server: ScriptedServer,
    pub(crate) asking: ModelTarget,
    /// The window as the client believes it to be, in tokens of the provider.
    pub(crate) window: u64,
}

/// What a turn was told on the way.
#[derive(Debug, Default)]
pub(crate) struct Told {
    pub(crate) edits: usize,
    pub(crate) too_large: Vec<Option<u64>>,
    pub(crate) truncated: Vec<(u64, u64)>,
    pub(crate) waits: usize,
    pub(crate) said: String,
    /// Said before a request was refused: must stay empty.
    pub(crate) said_too_early: bool,
}

impl Talk {
    /// A client that believes in a window of `window`, before a server set up with `options`.
    pub(crate) fn new(dialect: Dialect, window: u64, options: ScriptedOptions) -> Self {
        Self::on(Arc::new(MemoryStore::default()), dialect, window, options)
    }

    pub(crate) fn on(store: Arc<dyn Store>, dialect: Dialect, window: u64, options: ScriptedOptions) -> Self {
        let server = ScriptedServer::start(options).unwrap();
        let engine = Engine::new(store, Arc::new(Still));
        let patience =
            ClientTimeouts { tries: 2, delay: Duration::from_millis(1), ..ClientTimeouts::default() };
        let client = Client::new(patience).unwrap().final_if(|status, body| classify(status, body).overflow);
        let provider = Provider::at("scripted", dialect, server.url()).unwrap();
        let asking = ModelTarget::new(client, provider, MODEL, window);
        let meta = Meta {
            uuid: "s".into(),
            task_key: TaskKey::local(&id()),
            created_at: Still.now(),
            process_id: 7,
            hostname: "host".into(),
            config: MetaConfig { model: Some(MODEL.into()), meter: "o200k".into(), ..MetaConfig::default() },
            user: None,
            queued: false,
        };
        engine.create(&meta).unwrap();
        Self { engine, server, asking, window }
    }

    pub(crate) fn thread(&self) -> Thread<'_> {
        let thread = self.engine.open(&id(), &ThreadId::root(), OpenMode::Write).unwrap();
        let limits = self.budget().limits(&komado_core::clip::ClipLimits::default());
        thread.clipping(Some(limits))
    }

    /// The default budget, as the binary makes it: the window in tokens of ours, by what was learned.
    pub(crate) fn budget(&self) -> Budget {
        let lesson = self.lesson();
        let window = lesson.window().filter(|learned| *learned < self.window).unwrap_or(self.window);
        Budget::new(Preset::Komado.policy(), lesson.ours(window), &[])
    }

    /// What was learned, as the session applies it.
    pub(crate) fn lesson(&self) -> AppliedLesson {
        AppliedLesson::known(self.engine.store(), &self.asking.about(), &id()).unwrap()
    }

    /// One turn, with the digest as summariser.
    pub(crate) fn turn(&self, thread: &mut Thread<'_>) -> (Result<TurnResult>, Told) {
        let mut by = ByDigest::new(thread.meter());
        let mut ladder = Ladder { budget: self.budget(), settings: CondenseSettings::default(), by: &mut by };
        turn(thread, &self.asking, &mut ladder)
    }

    /// Says something and hears the answer.
    pub(crate) fn ask(&self, thread: &mut Thread<'_>, text: &str) -> (TurnResult, Told) {
        thread.say(Message::text(Role::User, text)).unwrap();
        let (turned, told) = self.turn(thread);
        (turned.unwrap(), told)
    }
}

/// One turn, and what was told on the way.
pub(crate) fn turn(
    thread: &mut Thread<'_>,
    asking: &ModelTarget,
    ladder: &mut Ladder<'_>,
) -> (Result<TurnResult>, Told) {
    let mut told = Told::default();
    let turned = thread.turn(asking, ladder, &mut |news| match news {
        ExchangeEvent::Fitted(fitted) => told.edits += fitted.done.len(),
        ExchangeEvent::TooLarge { limit, .. } => {
            told.said_too_early |= !told.said.is_empty();
            told.too_large.push(limit);
        }
        ExchangeEvent::Truncated { reported, expected } => told.truncated.push((reported, expected)),
        ExchangeEvent::Waiting(_) => told.waits += 1,
        ExchangeEvent::Said(komado_provider::ModelEvent::Text(text)) => told.said.push_str(text),
        _ => {}
    });
    (turned, told)
}

pub(crate) fn id() -> SessionId {
    SessionId::new("s").unwrap()
}

/// What a tool answered.
pub(crate) fn result(call: &str, text: &str) -> Message {
    Message::of(
        Role::Tool,
        vec![MessagePart::Result(ToolOutcome {
            call_id: call.into(),
            name: None,
            content: vec![MessagePart::text(text)],
            is_error: false,
            output_ref: None,
            duration_ms: None,
            interrupted: false,
            replaces: None,
        })],
    )
}

/// A system prompt and a tool.
pub(crate) fn setup() -> Setup {
    let tools = r#"[{"type":"function","function":{"name":"read","description":"Read a file","parameters":{"type":"object","properties":{"path":{"type":"string"}},"required":["path"]}}}]"#;
    Setup {
        system: Some("You are a careful engineer. Never delete a file.".into()),
        tools: Some(RawJson::parse(tools).unwrap()),
        params: None,
        dialect: Some("openai".into()),
    }
}

/// Every message of the journal, in order.
pub(crate) fn journaled(thread: &Thread<'_>) -> Vec<Message> {
    let said = (1..=thread.last()).filter_map(|seq| match thread.record(seq).unwrap().entry {
        Entry::Message(message, _) => Some(message),
        _ => None,
    });
    said.collect()
}

/// Tokens as the meter of the session counts them.
pub(crate) fn tokens(text: &str) -> u64 {
    Meter::O200k.text(text)
}
