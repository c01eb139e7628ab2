//! A session in memory, a model that answers by what it was told last, and tools that write down who called them.

use komado_agent::limits::Limits;
use komado_agent::mind::Mind;
use komado_agent::playbook::{Audience, Ended, Playbook, Solo, run};
use komado_agent::tools::{Again, Answer, Definition, Toolbox, Tools};
use komado_agent::{Error, Result};
use komado_core::budget::{Budget, Preset};
use komado_core::journal::{Entry, Reply, Sent, Setup};
use komado_core::message::{Call, CallKind, Message, Part, Role};
use komado_core::session::{Meta, MetaConfig, TaskKey};
use komado_core::{SessionId, ThreadId};
use komado_engine::condense::Settings;
use komado_engine::exchange::{News, Turned, When};
use komado_engine::stelis::{Spawn, Telling};
use komado_engine::{Clock, Engine, Thread};
use komado_provider::Cancel;
use komado_store::{MemoryStore, Mode, Store};
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
        Part::Call(Call {
            id: String::new(),
            name: (*name).to_owned(),
            arguments: (*arguments).to_owned(),
            kind: CallKind::Function,
            extra: None,
        })
    };
    let words = (!text.is_empty()).then(|| Part::text(text));
    Message::of(Role::Assistant, words.into_iter().chain(calls.iter().map(call)).collect())
}

/// Who called what.
pub(crate) type Log = Arc<Mutex<Vec<String>>>;

/// `look` only looks, `push` must not be made twice, `fail` goes wrong, `long` says a lot.
struct Bench {
    log: Log,
    definitions: Vec<Definition>,
}

impl Bench {
    fn new(log: Log) -> Self {
        let tool = |name: &str, again| Definition {
            name: name.to_owned(),
            description: String::new(),
            schema: json!({"type": "object"}),
            again,
        };
        let definitions = vec![
            tool("look", Again::Safe),
            tool("push", Again::Unsafe),
            tool("fail", Again::Unsafe),
            tool("long", Again::Safe),
        ];
        Self { log, definitions }
    }
}

impl Tools for Bench {
    fn definitions(&self) -> &[Definition] {
        &self.definitions
    }

    fn call(&mut self, name: &str, arguments: &str, _cancel: &Cancel) -> Answer {
        self.log.lock().unwrap().push(format!("{name} {arguments}"));
        match name {
            "fail" => Answer::wrong("うまくいきません"),
            "long" => Answer::text("0123456789 長い出力\n".repeat(20_000)),
            _ => Answer::text(format!("{name} ok")),
        }
    }
}

/// Hears nothing but which nodes were entered.
#[derive(Default)]
pub(crate) struct Heard {
    pub(crate) nodes: Vec<String>,
}

impl Audience for Heard {
    fn node(&mut self, id: &str, _label: Option<&str>, thread: &ThreadId) {
        self.nodes.push(format!("{thread}:{id}"));
    }

    fn news(&mut self, _news: News<'_>) {}

    fn tool(&mut self, _call: &Call, _answer: &Answer) {}
}

/// A model in this process: it answers by what is new to it.
pub(crate) struct Head<'e> {
    pub(crate) engine: &'e Engine,
    pub(crate) answers: Answers,
    /// Who tells; the digest when nobody does.
    pub(crate) teller: Option<Scripted>,
}

impl<'e> Mind<'e> for Head<'e> {
    fn engine(&self) -> &'e Engine {
        self.engine
    }

    fn open(&self, session: &SessionId, thread: &ThreadId) -> Result<Thread<'e>> {
        Ok(self.engine.open(session, thread, Mode::Write)?)
    }

    fn config(&self) -> MetaConfig {
        MetaConfig::default()
    }

    fn turn(
        &mut self,
        thread: &mut Thread<'_>,
        _cancel: &Cancel,
        _news: &mut dyn FnMut(News<'_>),
    ) -> Result<Turned> {
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
        let hint = thread.hint(When::AfterReply, &Budget::new(Preset::Komado.policy(), WINDOW, &[]));
        Ok(Turned { seq, message, reply, attempts: 1, is_ours: false, hint })
    }

    fn spawn(&self, _thread: &Thread<'_>) -> Result<Spawn> {
        Ok(Spawn::new(WINDOW))
    }

    fn telling(
        &mut self,
        _thread: &Thread<'_>,
        _cancel: &Cancel,
        tell: &mut dyn FnMut(Telling<'_>) -> Result<()>,
    ) -> Result<()> {
        match &mut self.teller {
            Some(by) => tell(Telling::By { by, settings: Settings::default() }),
            None => tell(Telling::Digest),
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
    pub(crate) limits: Limits,
    pub(crate) teller: Option<fn() -> Scripted>,
}

impl World {
    pub(crate) fn new(answers: Answers) -> Self {
        let limits = Limits { turns: Some(60), errors: 20, ..Limits::default() };
        Self { store: MemoryStore::default(), log: Log::default(), answers, limits, teller: None }
    }

    pub(crate) fn engine(&self) -> Engine {
        engine(Arc::new(self.store.clone()))
    }

    /// Runs it as one process would: the session is made and told its task unless it was already.
    pub(crate) fn run(&self, playbook: &Playbook) -> Result<Ended> {
        self.run_on(&self.engine(), playbook).0
    }

    pub(crate) fn run_on(&self, engine: &Engine, playbook: &Playbook) -> (Result<Ended>, Vec<String>) {
        let mut heard = Heard::default();
        let ended = begin(engine).and_then(|()| {
            let mut mind = Head { engine, answers: self.answers, teller: self.teller.map(|teller| teller()) };
            let mut tools = Toolbox::default().with(Bench::new(Arc::clone(&self.log)));
            let mut hands = Solo::new(&mut mind, &mut tools, self.limits, Cancel::default(), &mut heard);
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
        let thread = engine.open(&id(), &ThreadId::new(thread).unwrap(), Mode::Read).unwrap();
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
    let mut root = engine.open(&id(), &ThreadId::root(), Mode::Write)?;
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
pub(crate) fn why(ended: Result<Ended>) -> String {
    match ended {
        Ok(ended) => panic!("it ended at {}", ended.node),
        Err(Error::Playbook(why)) => why.to_string(),
        Err(other) => other.to_string(),
    }
}
