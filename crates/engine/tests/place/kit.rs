//! A gateway without a wire: each request is placed, and what `Placed` says is done, as the gateway does it.
//!
//! A transcript is written as `s system|u user|a assistant|c ID TOOL ARGUMENTS|r ID result`, one element each.

use komado_core::head::EntrySource;
use komado_core::journal::{ElementGroup, Entry, Reply, Sent, Setup, TranscriptMark};
use komado_core::message::{Call, Message, Role};
use komado_core::raw::RawJson;
use komado_core::session::{Meta, MetaConfig, TaskKey};
use komado_core::{Seq, SessionId, ThreadId, View};
use komado_engine::place::{PlacedTranscript, Placement, TranscriptCaller, place};
use komado_engine::{Clock, Engine, Error, Thread};
use komado_provider::{Dialect, RequestScanner, ScannedRequest};
use komado_store::{FileStore, Holder, MemoryStore, OpenMode, Store, TranscriptPlace};
use serde_json::{Value, json};
use std::cell::RefCell;
use std::fs::File;
use std::io::Write;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;
use tempfile::TempDir;

struct Still;

impl Clock for Still {
    fn now(&self) -> String {
        "2026-01-15T10:00:00.000000Z".into()
    }
}

/// A store, an engine on it, and who is at work.
pub(crate) struct Room {
    pub(crate) engine: Engine,
    pub(crate) dialect: Dialect,
    pub(crate) dir: Option<TempDir>,
    /// Threads in which a request is under way.
    pub(crate) busy: RefCell<Vec<(SessionId, ThreadId)>>,
    /// The table gets no more rows.
    pub(crate) forgets: std::cell::Cell<bool>,
    /// Sessions in the order they were made, for short names.
    known: RefCell<Vec<SessionId>>,
}

/// Who asks, and how.
#[derive(Clone, Debug, Default)]
pub(crate) struct Client {
    pub(crate) caller: TranscriptCaller,
    /// Offers a tool.
    pub(crate) tools: bool,
    /// A system prompt in a field of its own, where the dialect has one.
    pub(crate) system: Option<String>,
    /// The reply that it goes on from.
    pub(crate) previous: Option<String>,
}

/// A request that was placed and taken in.
#[derive(Clone, Debug)]
pub(crate) struct Done {
    pub(crate) placed: PlacedTranscript,
    /// The thread that it was taken into.
    pub(crate) thread: ThreadId,
    /// Its `Sent`.
    pub(crate) sent: Seq,
    /// In short: how, where, and how much was known.
    pub(crate) told: String,
}

pub(crate) fn client(salt: &str) -> Client {
    Client {
        caller: TranscriptCaller { salt: salt.into(), ..TranscriptCaller::default() },
        tools: true,
        ..Client::default()
    }
}

/// A client that gives its session a name.
pub(crate) fn named(salt: &str, name: &str) -> Client {
    let mut client = client(salt);
    client.caller.named = Some(format!("x-session-id: {name}"));
    client
}

pub(crate) fn files(path: &Path) -> FileStore {
    let (host, program, since) = ("here".into(), "the tests".into(), "now".into());
    FileStore::new(path, Holder { pid: std::process::id(), host, program, since })
}

/// One room for each dialect and each store.
pub(crate) fn rooms() -> Vec<Room> {
    Dialect::ALL.into_iter().flat_map(|dialect| [Room::in_memory(dialect), Room::in_files(dialect)]).collect()
}

impl Room {
    fn new(store: Arc<dyn Store>, dialect: Dialect, dir: Option<TempDir>) -> Self {
        let engine = Engine::new(store, Arc::new(Still));
        let (busy, known) = (RefCell::default(), RefCell::default());
        Self { engine, dialect, dir, busy, forgets: false.into(), known }
    }

    pub(crate) fn in_memory(dialect: Dialect) -> Self {
        Self::new(Arc::new(MemoryStore::default()), dialect, None)
    }

    /// In memory where there is such a folder.
    pub(crate) fn in_files(dialect: Dialect) -> Self {
        let dir = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap();
        Self::new(Arc::new(files(dir.path())), dialect, Some(dir))
    }

    /// The same files, without their table.
    pub(crate) fn without_table(self) -> Self {
        let Self { dialect, dir, known, .. } = self;
        let dir = dir.unwrap();
        for name in ["tasks.db", "tasks.db-wal", "tasks.db-shm"] {
            let _ = std::fs::remove_file(dir.path().join(name));
        }
        let store = Arc::new(files(dir.path()));
        let again = Self::new(store, dialect, Some(dir));
        Self { known, ..again }
    }

    /// Where a request belongs.
    pub(crate) fn place(&self, client: &Client, script: &str) -> Result<PlacedTranscript, Error> {
        let (skim, body) = self.arrive(client, script);
        self.place_skim(client, &skim, &body)
    }

    pub(crate) fn place_skim(
        &self,
        client: &Client,
        skim: &ScannedRequest,
        body: &File,
    ) -> Result<PlacedTranscript, Error> {
        let busy = self.busy.borrow();
        let is_busy = |s: &SessionId, t: &ThreadId| busy.iter().any(|(a, b)| a == s && b == t);
        place(&self.engine, skim, body, &client.caller, &is_busy)
    }

    pub(crate) fn arrive(&self, client: &Client, script: &str) -> (ScannedRequest, File) {
        arrive(self.dialect, client, &elements(self.dialect, script))
    }

    /// Places a request and takes it in; no answer comes yet.
    pub(crate) fn send(&self, client: &Client, script: &str) -> Done {
        let (skim, body) = self.arrive(client, script);
        let placed = self.place_skim(client, &skim, &body).unwrap();
        self.take_in(client, &skim, &body, placed)
    }

    /// Places a request, takes it in, and answers it; gives in short where it went.
    pub(crate) fn ask(&self, client: &Client, script: &str, answer: &str) -> String {
        let done = self.send(client, script);
        self.answer(&done, answer);
        done.told
    }

    /// Does what `placed` says.
    fn take_in(&self, client: &Client, skim: &ScannedRequest, body: &File, placed: PlacedTranscript) -> Done {
        let thread = self.make(client, &placed);
        let mut open = self.engine.open(&placed.session, &thread, OpenMode::Write).unwrap().clipping(None);
        if matches!(placed.how, Placement::Again | Placement::Rewinds) && open.last() != placed.at {
            open.rewind(placed.at).unwrap();
        }
        self.set_up(&mut open, client);
        let texts = texts(skim, body, placed.known as usize);
        let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
        let tail = skim.dialect.read_elements(&texts, &open_calls(&open)).unwrap();
        open.say_all(tail.messages.into_iter().map(|message| (message, None)).collect()).unwrap();
        let mark = mark(skim, placed.known, tail.groups);
        let digest = mark.digest.clone();
        let sent = Sent {
            digest: "d".into(),
            model: "m".into(),
            context_tokens: 0,
            purpose: None,
            mark: Some(mark),
        };
        let sent = open.append(Entry::Sent(sent)).unwrap();
        let spot = TranscriptPlace {
            name: digest,
            session: placed.session.clone(),
            thread: thread.clone(),
            seq: sent,
        };
        if !spot.name.is_empty() && !self.forgets.get() {
            self.engine.store().note(&[spot]).unwrap();
        }
        let told = format!("{} {}/{thread} {}", placed.how.name(), self.nth(&placed.session), placed.known);
        Done { placed, thread, sent, told }
    }

    /// Makes the session or the fork, and gives the thread to go on in.
    fn make(&self, client: &Client, placed: &PlacedTranscript) -> ThreadId {
        let id = &placed.session;
        if placed.how == Placement::New {
            let user = client.caller.user.clone();
            self.engine.create(&Meta { user, ..meta(id, placed.alias.clone()) }).unwrap();
            if let Some(name) = placed.alias.clone() {
                let own = TranscriptPlace { name, session: id.clone(), thread: ThreadId::root(), seq: 0 };
                self.engine.store().note(&[own]).unwrap();
            }
        }
        match &placed.fork {
            Some(name) => {
                let base = self.engine.open(id, &placed.thread, OpenMode::Read).unwrap();
                base.fork(placed.at, name.clone(), None).unwrap();
                name.clone()
            }
            None => placed.thread.clone(),
        }
    }

    fn set_up(&self, thread: &mut Thread<'_>, client: &Client) {
        let tools = client.tools.then(|| RawJson::parse(r#"[{"name":"read"}]"#).unwrap());
        let setup = Setup { system: client.system.clone(), tools, ..Setup::default() };
        let now = thread.view().setup().map(|at| thread.record(at).unwrap().entry);
        if now != Some(Entry::Setup(setup.clone())) && (now.is_some() || setup != Setup::default()) {
            thread.set_up(setup).unwrap();
        }
    }

    /// The model answers, with lines as in a transcript.
    pub(crate) fn answer(&self, done: &Done, script: &str) {
        self.answer_as(done, script, None);
    }

    /// The model answers, and the provider calls it `id`.
    pub(crate) fn answer_as(&self, done: &Done, script: &str, id: Option<String>) {
        let mut thread = self.open(done);
        let texts: Vec<String> = elements(Dialect::Chat, script).iter().map(ToString::to_string).collect();
        let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
        for message in Dialect::Chat.read_elements(&texts, &[]).unwrap().messages {
            let is_reply = message.role == Role::Assistant;
            let reply = is_reply.then(|| Reply { to: Some(done.sent), id: id.clone(), ..Reply::default() });
            let seq = thread.say_all(vec![(message, reply)]).unwrap()[0];
            if let Some(name) = id.clone().filter(|_| is_reply) {
                let (session, thread) = (done.placed.session.clone(), done.thread.clone());
                self.engine.store().note(&[TranscriptPlace { name, session, thread, seq }]).unwrap();
            }
        }
    }

    pub(crate) fn open(&self, done: &Done) -> Thread<'_> {
        self.engine.open(&done.placed.session, &done.thread, OpenMode::Write).unwrap().clipping(None)
    }

    pub(crate) fn nth(&self, id: &SessionId) -> String {
        let mut known = self.known.borrow_mut();
        let at = known.iter().position(|known| known == id).unwrap_or_else(|| {
            known.push(id.clone());
            known.len() - 1
        });
        format!("s{}", at + 1)
    }

    pub(crate) fn mark_busy(&self, done: &Done) {
        self.busy.borrow_mut().push((done.placed.session.clone(), done.thread.clone()));
    }

    /// What each message of a thread's view says.
    pub(crate) fn seen(&self, session: &SessionId, thread: &ThreadId) -> Vec<String> {
        let journal = self.engine.store().open(session, thread, OpenMode::Read).unwrap();
        let view = View::fold(&*journal, journal.last()).unwrap();
        let items = view.items(&*journal).unwrap();
        let said = items.iter().map(|item| match EntrySource::record(&*journal, item.seq).unwrap().entry {
            Entry::Message(message, _) => said(&message),
            other => panic!("{other:?}"),
        });
        said.collect()
    }

    /// Names and entries of all threads of all sessions.
    pub(crate) fn everything(&self) -> Vec<(SessionId, ThreadId, Seq)> {
        let mut all = Vec::new();
        for session in self.engine.store().sessions(&komado_store::SessionQuery::default()).unwrap() {
            let id = SessionId::new(session.meta.uuid).unwrap();
            for header in self.engine.store().threads(&id).unwrap() {
                let last = self.engine.store().open(&id, &header.thread, OpenMode::Read).unwrap().last();
                all.push((id.clone(), header.thread, last));
            }
        }
        all
    }
}

/// The calls that wait for an answer.
fn open_calls(thread: &Thread<'_>) -> Vec<Call> {
    let items = thread.view().items(thread.source()).unwrap();
    let last = items.iter().rev().find_map(|item| match thread.record(item.seq).unwrap().entry {
        Entry::Message(message, _) => Some(message),
        _ => None,
    });
    last.iter().flat_map(Message::calls).cloned().collect()
}

/// Role and words of a message, calls by name and arguments.
pub(crate) fn said(message: &Message) -> String {
    let calls: Vec<String> = message.calls().map(|call| format!("{}{}", call.name, call.arguments)).collect();
    format!("{} {}{}", &message.role.name()[..1], message.words(), calls.join(""))
}

pub(crate) fn mark(skim: &ScannedRequest, known: u32, groups: Vec<ElementGroup>) -> TranscriptMark {
    let elements = skim.elements.len() as u32;
    let digest = if skim.previous.is_some() {
        String::new()
    } else {
        skim.digest(elements as usize).unwrap_or_default()
    };
    TranscriptMark { from: known, elements, digest, groups, inner: false, apart: false }
}

pub(crate) fn meta(id: &SessionId, alias: Option<String>) -> Meta {
    Meta {
        uuid: id.to_string(),
        task_key: TaskKey::local(id),
        created_at: Still.now(),
        process_id: 7,
        hostname: "host".into(),
        config: MetaConfig { meter: "o200k".into(), alias, ..MetaConfig::default() },
        user: None,
        queued: false,
    }
}

pub(crate) fn texts(skim: &ScannedRequest, body: &File, from: usize) -> Vec<String> {
    let text = |span: &std::ops::Range<u64>| {
        let mut bytes = vec![0; (span.end - span.start) as usize];
        body.read_exact_at(&mut bytes, span.start).unwrap();
        String::from_utf8(bytes).unwrap()
    };
    skim.elements[from..].iter().map(|element| text(&element.span)).collect()
}

/// A request as it comes in.
pub(crate) fn arrive(dialect: Dialect, client: &Client, elements: &[Value]) -> (ScannedRequest, File) {
    let list = if dialect == Dialect::Responses { "input" } else { "messages" };
    let mut request = json!({"model": "m", list: elements});
    if client.tools {
        request["tools"] = json!([{"type": "function", "name": "read", "function": {"name": "read"}}]);
    }
    if let Some(system) = &client.system {
        let key = if dialect == Dialect::Responses { "instructions" } else { "system" };
        request[key] = json!(system);
    }
    if let Some(previous) = &client.previous {
        request["previous_response_id"] = json!(previous);
    }
    let bytes = request.to_string().into_bytes();
    let mut skimmer = RequestScanner::new(dialect, client.caller.salt.as_bytes());
    skimmer.push(&bytes).unwrap();
    let mut body = tempfile::tempfile().unwrap();
    body.write_all(&bytes).unwrap();
    (skimmer.end().unwrap(), body)
}

pub(crate) fn elements(dialect: Dialect, script: &str) -> Vec<Value> {
    script.split('|').filter(|line| !line.is_empty()).map(|line| element(dialect, line)).collect()
}

fn element(dialect: Dialect, line: &str) -> Value {
    let (kind, rest) = line.split_once(' ').unwrap();
    let (first, more) = rest.split_once(' ').unwrap_or((rest, ""));
    let (name, arguments) = more.split_once(' ').unwrap_or((more, "{}"));
    match (kind, dialect) {
        ("s", _) => json!({"role": "system", "content": rest}),
        ("u", _) => json!({"role": "user", "content": rest}),
        ("a", Dialect::Responses) => {
            json!({"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": rest}]})
        }
        ("a", Dialect::Messages) => json!({"role": "assistant", "content": [{"type": "text", "text": rest}]}),
        ("a", _) => json!({"role": "assistant", "content": rest}),
        ("c", Dialect::Responses) => {
            json!({"type": "function_call", "call_id": first, "name": name, "arguments": arguments})
        }
        ("c", Dialect::Messages) => {
            let input: Value = serde_json::from_str(arguments).unwrap();
            json!({"role": "assistant", "content": [{"type": "tool_use", "id": first, "name": name, "input": input}]})
        }
        ("c", Dialect::Ollama) => {
            let arguments: Value = serde_json::from_str(arguments).unwrap();
            let function = json!({"name": name, "arguments": arguments});
            json!({"role": "assistant", "content": "", "tool_calls": [{"function": function}]})
        }
        ("c", _) => {
            let function = json!({"name": name, "arguments": arguments});
            json!({"role": "assistant", "content": null, "tool_calls": [{"id": first, "type": "function", "function": function}]})
        }
        ("r", Dialect::Responses) => {
            json!({"type": "function_call_output", "call_id": first, "output": more})
        }
        ("r", Dialect::Messages) => {
            json!({"role": "user", "content": [{"type": "tool_result", "tool_use_id": first, "content": more}]})
        }
        ("r", Dialect::Ollama) => json!({"role": "tool", "tool_name": "read", "content": more}),
        ("r", _) => json!({"role": "tool", "tool_call_id": first, "content": more}),
        _ => panic!("no line of a transcript: {line}"),
    }
}
