//! A queue in memory, a model that answers by what it was told last, a tracker that writes everything down.

use komado_agent::Result;
use komado_agent::handler::{self, TaskContext, TaskInstructions, TaskOrders, TaskOutcome, TaskWatch};
use komado_agent::limits::TaskLimits;
use komado_agent::model_session::ModelSession;
use komado_agent::playbook::Playbook;
use komado_agent::progress::TaskProgress;
use komado_agent::source::{Error as Away, SourceEnd, TaskComment, TaskNews, TaskSource};
use komado_agent::task::Task;
use komado_agent::tools::{Repeatability, ToolAnswer, ToolDefinition, ToolProvider, ToolSet};
use komado_agent::worker::{self, WorkerPace};
use komado_core::budget::{Budget, Preset};
use komado_core::journal::{Entry, Reply, Sent, Usage};
use komado_core::message::{Call, CallKind, Message, MessagePart, Role};
use komado_core::session::{MetaConfig, State, TaskKey};
use komado_core::{SessionId, ThreadId};
use komado_engine::exchange::{ExchangeEvent, HintTime, TurnResult};
use komado_engine::stelis::{ChronicleBy, Spawn};
use komado_engine::{Clock, Engine, Thread};
use komado_provider::Cancel;
use komado_store::{Holder, Job, JobStage, MemoryStore, OpenMode, QueuedJob, Store, TakenJob};
use serde_json::json;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

struct Ticks(AtomicU32);

impl Clock for Ticks {
    fn now(&self) -> String {
        format!("2026-01-15T10:00:00.{:06}Z", self.0.fetch_add(1, Ordering::SeqCst))
    }
}

/// What the model says to what is new.
pub(crate) type Answers = Box<dyn FnMut(&str) -> Result<Message>>;

/// Words.
pub(crate) fn words(text: &str) -> Message {
    Message::text(Role::Assistant, text)
}

/// A call.
pub(crate) fn call(name: &str) -> Message {
    let (id, arguments) = (String::new(), "{}".to_owned());
    let call = Call { id, name: name.to_owned(), arguments, kind: CallKind::Function, extra: None };
    Message::of(Role::Assistant, vec![MessagePart::Call(call)])
}

/// What the tracker was told, and what it says.
#[derive(Default)]
pub(crate) struct Board {
    pub(crate) said: Vec<(String, String)>,
    pub(crate) ended: Vec<SourceEnd>,
    pub(crate) begun: u32,
    pub(crate) comments: Vec<TaskComment>,
    pub(crate) unwanted: Option<String>,
    pub(crate) is_away: bool,
    /// True when it cannot be asked for news.
    pub(crate) is_deaf: bool,
    /// Called while it is asked for news.
    pub(crate) while_asked: Option<Arc<dyn Fn() + Send + Sync>>,
}

pub(crate) type Shared = Arc<Mutex<Board>>;

struct Tracker(Shared);

impl TaskSource for Tracker {
    fn waiting(&mut self, _each: &mut dyn FnMut(Task) -> bool) -> std::result::Result<(), Away> {
        Ok(())
    }

    fn begin(&mut self, _task: &Task) -> std::result::Result<(), Away> {
        self.0.lock().unwrap().begun += 1;
        Ok(())
    }

    fn look(&mut self, _task: &Task, after: Option<&str>) -> std::result::Result<TaskNews, Away> {
        let while_asked = self.0.lock().unwrap().while_asked.clone();
        while_asked.iter().for_each(|act| act());
        let board = self.0.lock().unwrap();
        if board.is_deaf {
            return Err(Away::Away { tracker: "board".into(), why: "it does not answer".into() });
        }
        let is_new = |comment: &&TaskComment| after.is_none_or(|after| comment.id.as_str() > after);
        let comments = board.comments.iter().filter(is_new).cloned().collect();
        Ok(TaskNews { comments, unwanted: board.unwanted.clone() })
    }

    fn say(&mut self, _task: &Task, mark: &str, text: &str) -> std::result::Result<(), Away> {
        let mut board = self.0.lock().unwrap();
        if board.is_away {
            return Err(Away::Away { tracker: "board".into(), why: "nobody there".into() });
        }
        if board.said.iter().all(|(other, _)| other != mark) {
            board.said.push((mark.to_owned(), text.to_owned()));
        }
        Ok(())
    }

    fn end(&mut self, _task: &Task, ended: SourceEnd) -> std::result::Result<(), Away> {
        self.0.lock().unwrap().ended.push(ended);
        Ok(())
    }
}

/// What a tool does, and what it says.
pub(crate) type Does = Arc<dyn Fn(&str, &Cancel) -> ToolAnswer + Send + Sync>;

struct Bench(Does, Vec<ToolDefinition>);

impl ToolProvider for Bench {
    fn definitions(&self) -> &[ToolDefinition] {
        &self.1
    }

    fn call(&mut self, name: &str, _arguments: &str, cancel: &Cancel) -> ToolAnswer {
        (self.0)(name, cancel)
    }
}

struct Head<'e> {
    engine: &'e Engine,
    answers: &'e Mutex<Answers>,
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
        let model = "head".to_owned();
        let sent = Sent { digest: String::new(), model, context_tokens: 1, purpose: None, mark: None };
        let to = thread.append(Entry::Sent(sent))?;
        let news = news_of(thread)?;
        let message = (self.answers.lock().unwrap_or_else(std::sync::PoisonError::into_inner))(&news)?;
        let usage = Usage { input_tokens: 90, output_tokens: 10, ..Usage::default() };
        let reply = Reply { to: Some(to), finish: "stop".into(), usage: Some(usage), ..Reply::default() };
        let seq = thread.reply(message, reply.clone())?;
        let Entry::Message(message, _) = thread.record(seq)?.entry else { unreachable!() };
        let hint = thread.hint(HintTime::AfterReply, &Budget::new(Preset::Komado.policy(), 100_000, &[]));
        Ok(TurnResult { seq, message, reply, attempts: 1, is_ours: false, hint: hint? })
    }

    fn spawn(&self, _thread: &Thread<'_>) -> Result<Spawn> {
        Ok(Spawn::new(100_000))
    }

    fn telling(
        &mut self,
        _thread: &Thread<'_>,
        _cancel: &Cancel,
        tell: &mut dyn FnMut(ChronicleBy<'_>) -> Result<()>,
    ) -> Result<()> {
        tell(ChronicleBy::Digest)
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

/// A place with a queue.
pub(crate) struct World {
    pub(crate) engine: Engine,
    pub(crate) board: Shared,
    pub(crate) limits: TaskLimits,
    pub(crate) pace: WorkerPace,
    pub(crate) does: Does,
    pub(crate) playbook: Playbook,
    /// Called with what happens.
    pub(crate) hears: Box<dyn Fn(&TaskProgress) + Sync>,
    pub(crate) told: Mutex<Vec<TaskProgress>>,
}

impl World {
    pub(crate) fn new() -> Self {
        Self::on(Arc::new(MemoryStore::default()))
    }

    pub(crate) fn on(store: Arc<dyn Store>) -> Self {
        let engine = Engine::new(store, Arc::new(Ticks(AtomicU32::new(0))));
        let quick = Duration::from_millis(60);
        let pace = WorkerPace {
            tries: 3,
            hidden: Duration::from_secs(30),
            pause: Duration::ZERO,
            grace: Duration::ZERO,
            poll: quick,
        };
        Self {
            engine,
            board: Shared::default(),
            limits: TaskLimits::default(),
            pace,
            does: Arc::new(|name, _| ToolAnswer::text(format!("{name} ok"))),
            playbook: Playbook::built_in(),
            hears: Box::new(|_| {}),
            told: Mutex::default(),
        }
    }

    /// Puts a task about issue 27 into the queue.
    pub(crate) fn queue(&self, session: &str) -> SessionId {
        let key = TaskKey::parse("github:ann/tool/issue/27").unwrap();
        let task = Task {
            name: key.to_string(),
            key,
            title: "窓を直す".into(),
            text: "Make the window small.".into(),
            user: Some("ann".into()),
            url: None,
            clone_url: None,
            folder: None,
            playbook: None,
            last_comment: None,
        };
        let session = SessionId::new(session).unwrap();
        let body = serde_json::to_string(&task).unwrap();
        let job = Job { session: session.clone(), key: task.name, user: None, body, at: self.engine.now() };
        assert!(self.engine.store().enqueue(&job).unwrap());
        session
    }

    pub(crate) fn take(&self) -> TakenJob {
        let holder = Holder { pid: 1, host: "here".into(), program: "test".into(), since: String::new() };
        self.engine.store().take(&holder, self.pace.hidden).unwrap().expect("a job waits")
    }

    /// Takes a job and works on it as one process does.
    pub(crate) fn work(&self, answers: impl FnMut(&str) -> Result<Message> + 'static) -> TaskOutcome {
        self.work_on(&self.take(), answers)
    }

    pub(crate) fn work_on(
        &self,
        taken: &TakenJob,
        answers: impl FnMut(&str) -> Result<Message> + 'static,
    ) -> TaskOutcome {
        let answers: Mutex<Answers> = Mutex::new(Box::new(answers));
        let mut head = Head { engine: &self.engine, answers: &answers };
        self.attend(taken, |kit| handler::work(&mut head, kit))
    }

    /// As one process does: the job is kept and finished around `act`.
    pub(crate) fn attend(
        &self,
        taken: &TakenJob,
        act: impl FnOnce(&mut TaskContext<'_>) -> TaskOutcome,
    ) -> TaskOutcome {
        let task: Task = serde_json::from_str(&taken.job.body).unwrap();
        let orders = TaskOrders::new(self.pace.grace);
        let source: Mutex<Box<dyn TaskSource>> = Mutex::new(Box::new(Tracker(Arc::clone(&self.board))));
        let mut tools = ToolSet::default().with(Bench(Arc::clone(&self.does), definitions()));
        let tell = |progress| {
            (self.hears)(&progress);
            self.told.lock().unwrap().push(progress);
        };
        let mut kit = TaskContext {
            task: &task,
            session: &taken.job.session,
            config: MetaConfig { meter: "chars4".into(), ..MetaConfig::default() },
            host: "here".into(),
            brief: TaskInstructions::default(),
            folder: None,
            playbook: &self.playbook,
            tools: &mut tools,
            source: &source,
            limits: self.limits,
            tries: (taken.tries, self.pace.tries),
            why: taken.why.clone(),
            patience: Duration::ZERO,
            orders: &orders,
            tell: &tell,
        };
        let vigil = TaskWatch {
            engine: &self.engine,
            taken,
            task: &task,
            source: &source,
            hidden: self.pace.hidden,
            poll: self.pace.poll,
            orders: &orders,
            tell: &tell,
        };
        worker::attend(&vigil, &self.pace, || act(&mut kit)).unwrap()
    }

    pub(crate) fn jobs(&self) -> Vec<QueuedJob> {
        self.engine.store().jobs(None, 0).unwrap()
    }

    pub(crate) fn stage(&self) -> Option<JobStage> {
        self.jobs().pop().map(|queued| queued.stage)
    }

    pub(crate) fn state(&self, session: &SessionId) -> State {
        self.engine.session(session).unwrap().status
    }

    /// Everything said in the root thread, one line each.
    pub(crate) fn said(&self, session: &SessionId) -> Vec<String> {
        let root = self.engine.open(session, &ThreadId::root(), OpenMode::Read).unwrap();
        let on_path = (1..=root.last()).filter(|seq| root.view().on_path(*seq));
        on_path
            .filter_map(|seq| match root.record(seq).unwrap().entry {
                Entry::Message(message, _) => Some(format!("{:?}: {}", message.role, message.words())),
                _ => None,
            })
            .collect()
    }

    /// The marks of what the tracker was told, without the entry that an end has.
    pub(crate) fn marks(&self) -> Vec<String> {
        let short = |mark: &String| mark.split(':').take(2).collect::<Vec<_>>().join(":");
        self.board.lock().unwrap().said.iter().map(|(mark, _)| short(mark)).collect()
    }
}

fn definitions() -> Vec<ToolDefinition> {
    let tool = |name: &str, again| ToolDefinition {
        name: name.to_owned(),
        description: String::new(),
        schema: json!({ "type": "object" }),
        again,
    };
    vec![tool("look", Repeatability::Safe), tool("push", Repeatability::Unsafe)]
}
