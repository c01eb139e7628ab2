//! A session in memory, a model that answers by what it was told last, and tools that write down who called them.

use komado_agent::limits::TaskLimits;
use komado_agent::model_session::ModelSession;
use komado_agent::playbook::{LocalRunner, Playbook, PlaybookEnd, RunListener, run};
use komado_agent::tools::{Repeatability, ToolAnswer, ToolDefinition, ToolProvider, ToolSet};
use komado_agent::{Error, Result};
use komado_core::budget::{Budget, Preset};
use komado_core::journal::{Entry, Reply, Sent, Setup};
use komado_core::message::{Call, CallKind, Message, MessagePart, Role};
use komado_core::session::{Meta, MetaConfig, TaskKey};
use komado_core::{SessionId, ThreadId};
use komado_engine::condense::CondenseSettings;
use komado_engine::exchange::{ExchangeEvent, HintTime, TurnResult};
use komado_engine::stelis::{ChronicleBy, Spawn};
use komado_engine::{Clock, Engine, Thread};
use komado_provider::Cancel;
use komado_store::{MemoryStore, OpenMode, Store};
use komado_testkit::Scripted;
use serde_json::{Map, Value, json};
use std::sync::{Arc, Mutex};

pub(crate) const WINDOW: u64 = 100_000;

struct Still;

impl Clock for Still {
    fn now(&self) -> String {
        "2026-01-15T10:00:00.000000Z".into()
    }
}

pub(crate) fn id() -> SessionId {
    SessionId::new("s").unwrap()
}

/// What the model says to what is new.
pub(crate) type Answers = fn(&str) -> Message;

/// Words.
pub(crate) fn words(text: &str) -> Message {
    Message::text(Role::Assistant, text)
}

/// Words, and calls.
pub(crate) fn calls(text: &str, calls: &[(&str, &str)]) -> Message {
    let call = |(name, arguments): &(&str, &str)| {
        MessagePart::Call(Call {
            id: String::new(),
            name: (*name).to_owned(),
            arguments: (*arguments).to_owned(),
            kind: CallKind::Function,
            extra: None,
        })
    };
    let words = (!text.is_empty()).then(|| MessagePart::text(text));
    Message::of(Role::Assistant, words.into_iter().chain(calls.iter().map(call)).collect())
}

/// Who called what.
pub(crate) type Log = Arc<Mutex<Vec<String>>>;

/// `look` only looks, `push` must not be made twice, `fail` goes wrong, `long` says a lot.
struct Bench {
    log: Log,
    definitions: Vec<ToolDefinition>,
}

impl Bench {
    fn new(log: Log) -> Self {
        let tool = |name: &str, again| ToolDefinition {
            name: name.to_owned(),
            description: String::new(),
            schema: json!({"type": "object"}),
            again,
        };
        let definitions = vec![
            tool("look", Repeatability::Safe),
            tool("push", Repeatability::Unsafe),
            tool("fail", Repeatability::Unsafe),
            tool("long", Repeatability::Safe),
        ];
        Self { log, definitions }
    }
}

impl ToolProvider for Bench {
    fn definitions(&self) -> &[ToolDefinition] {
        &self.definitions
    }

    fn call(&mut self, name: &str, arguments: &str, _cancel: &Cancel) -> ToolAnswer {
        self.log.lock().unwrap().push(format!("{name} {arguments}"));
        match name {
            "fail" => ToolAnswer::wrong("うまくいきません"),
            "long" => ToolAnswer::text("0123456789 長い出力\n".repeat(20_000)),
            _ => ToolAnswer::text(format!("{name} ok")),
        }
    }
}

/// Hears nothing but which nodes were entered.
#[derive(Default)]
pub(crate) struct Heard {
    pub(crate) nodes: Vec<String>,
}

impl RunListener for Heard {
    fn node(&mut self, id: &str, _label: Option<&str>, thread: &ThreadId) {
        self.nodes.push(format!("{thread}:{id}"));
    }

    fn news(&mut self, _news: ExchangeEvent<'_>) {}

    fn tool(&mut self, _call: &Call, _answer: &ToolAnswer) {}
}

/// A model in this process: it answers by what is new to it.
pub(crate) struct Head<'e> {
    pub(crate) engine: &'e Engine,
    pub(crate) answers: Answers,
    /// Who tells; the digest when nobody does.
    pub(crate) teller: Option<Scripted>,
}

impl<'e> ModelSession<'e> for Head<'e> {
    fn engine(&self) -> &'e Engine {
        self.engine
    }

    fn open(&self, session: &SessionId, thread: &ThreadId) -> Result<Thread<'e>> {
        Ok(self.engine.open(session, thread, OpenMode::Write)?)
    }

    fn config(&self) -> MetaConfig {
        MetaConfig::default()
    }

    fn turn(
        &mut self,
        thread: &mut Thread<'_>,
        _cancel: &Cancel,
        _news: &mut dyn FnMut(ExchangeEvent<'_>),
    ) -> Result<TurnResult> {
        thread.answer_open_calls()?;
        thread.tend()?;
        let model = "head".to_owned();
        let sent = Sent { digest: String::new(), model, context_tokens: 1, purpose: None, mark: None };
        let to = thread.append(Entry::Sent(sent))?;
        let message = (self.answers)(&news_of(thread)?);
        let reply =
            Reply { to: Some(to), model: Some("head".into()), finish: "stop".into(), ..Reply::default() };
        let seq = thread.reply(message, reply.clone())?;
        let Entry::Message(message, _) = thread.record(seq)?.entry else { unreachable!() };
        let hint = thread.hint(HintTime::AfterReply, &Budget::new(Preset::Komado.policy(), WINDOW, &[]));
        Ok(TurnResult { seq, message, reply, attempts: 1, is_ours: false, hint: hint? })
    }

    fn spawn(&self, _thread: &Thread<'_>) -> Result<Spawn> {
        Ok(Spawn::new(WINDOW))
    }

    fn telling(
        &mut self,
        _thread: &Thread<'_>,
        _cancel: &Cancel,
        tell: &mut dyn FnMut(ChronicleBy<'_>) -> Result<()>,
    ) -> Result<()> {
        match &mut self.teller {
            Some(by) => tell(ChronicleBy::By { by, settings: CondenseSettings::default() }),
            None => tell(ChronicleBy::Digest),
        }
    }
}

/// The words after the model's last ones.
fn news_of(thread: &Thread<'_>) -> Result<String> {
    let mut news = Vec::new();
    for seq in (1..=thread.last()).rev().filter(|seq| thread.view().on_path(*seq)) {
        if let Entry::Message(message, _) = thread.record(seq)?.entry {
            if message.role == Role::Assistant {
                break;
            }
            news.push(message.words());
        }
    }
    news.reverse();
    Ok(news.join("\n"))
}

/// A place to run playbooks in.
pub(crate) struct World {
    pub(crate) store: MemoryStore,
    pub(crate) log: Log,
    pub(crate) answers: Answers,
    pub(crate) limits: TaskLimits,
    pub(crate) teller: Option<fn() -> Scripted>,
}

impl World {
    pub(crate) fn new(answers: Answers) -> Self {
        let limits = TaskLimits { turns: Some(60), errors: 20, ..TaskLimits::default() };
        Self { store: MemoryStore::default(), log: Log::default(), answers, limits, teller: None }
    }

    pub(crate) fn engine(&self) -> Engine {
        engine(Arc::new(self.store.clone()))
    }

    /// Runs it as one process would: the session is made and told its task unless it was already.
    pub(crate) fn run(&self, playbook: &Playbook) -> Result<PlaybookEnd> {
        self.run_on(&self.engine(), playbook).0
    }

    pub(crate) fn run_on(&self, engine: &Engine, playbook: &Playbook) -> (Result<PlaybookEnd>, Vec<String>) {
        let mut heard = Heard::default();
        let ended = begin(engine).and_then(|()| {
            let mut mind = Head { engine, answers: self.answers, teller: self.teller.map(|teller| teller()) };
            let mut tools = ToolSet::default().with(Bench::new(Arc::clone(&self.log)));
            let mut hands =
                LocalRunner::new(&mut mind, &mut tools, self.limits, Cancel::default(), &mut heard);
            run(playbook, &id(), &given(), &mut hands)
        });
        (ended, heard.nodes)
    }

    pub(crate) fn calls(&self) -> Vec<String> {
        self.log.lock().unwrap().clone()
    }

    /// Everything said in a thread that is still true, one line each: role and words, and the names of calls.
    pub(crate) fn said(&self, thread: &str) -> Vec<String> {
        let engine = self.engine();
        let thread = engine.open(&id(), &ThreadId::new(thread).unwrap(), OpenMode::Read).unwrap();
        let mut lines = Vec::new();
        for seq in (1..=thread.last()).filter(|seq| thread.view().on_path(*seq)) {
            match thread.record(seq).unwrap().entry {
                Entry::Message(message, _) => {
                    let called: Vec<String> =
                        message.calls().map(|call| format!("{}({})", call.name, call.arguments)).collect();
                    let line = format!("{}: {} {}", message.role.name(), message.words(), called.join(" "));
                    lines.push(line.trim().to_owned());
                }
                Entry::Setup(Setup { system: Some(system), .. }) => lines.push(format!("setup: {system}")),
                _ => {}
            }
        }
        lines
    }
}

pub(crate) fn engine(store: Arc<dyn Store>) -> Engine {
    Engine::new(store, Arc::new(Still))
}

/// The variables that a task's handler gives.
pub(crate) fn given() -> Map<String, Value> {
    json!({"task": {"title": "窓を直す"}}).as_object().unwrap().clone()
}

/// The session, and the first words in it.
pub(crate) fn begin(engine: &Engine) -> Result<()> {
    if engine.session(&id()).is_err() {
        engine.create(&Meta {
            uuid: "s".into(),
            task_key: TaskKey::local(&id()),
            created_at: Still.now(),
            process_id: 7,
            hostname: "host".into(),
            config: MetaConfig {
                meter: "o200k".into(),
                context_length: u32::try_from(WINDOW).ok(),
                ..MetaConfig::default()
            },
            user: None,
            queued: false,
        })?;
    }
    let mut root = engine.open(&id(), &ThreadId::root(), OpenMode::Write)?;
    if root.last() == 0 {
        root.say(Message::text(Role::User, "はじめます: a task"))?;
    }
    Ok(())
}

/// A playbook that must be one.
pub(crate) fn playbook(nodes: Value) -> Playbook {
    let text = json!({"name": "test", "vars": {"n": 0}, "nodes": nodes}).to_string();
    Playbook::parse("test.json", &text).unwrap_or_else(|why| panic!("{why}"))
}

/// What went wrong, in words.
pub(crate) fn why(ended: Result<PlaybookEnd>) -> String {
    match ended {
        Ok(ended) => panic!("it ended at {}", ended.node),
        Err(Error::Playbook(why)) => why.to_string(),
        Err(other) => other.to_string(),
    }
}
