//! A client that knows nothing of us, a server with a window, and the gateway's turn between them.

use komado_core::budget::Preset;
use komado_core::message::{Message, MessagePart, Role, ToolOutcome};
use komado_core::openai::BlobReader;
use komado_core::session::{Meta, MetaConfig, TaskKey};
use komado_core::{Meter, SessionId, ThreadId};
use komado_engine::condense::CondenseSettings;
use komado_engine::exchange::ModelTarget;
use komado_engine::place::TranscriptCaller;
use komado_engine::relay::{
    ClientGone, ClientOutlet, ClientRequest, Relay, RelayConfig, RelayFault, RelayNotes, RelayUpstream,
    ToolOffer, untouched,
};
use komado_engine::{Clock, Engine, Thread};
use komado_provider::client::SendError;
use komado_provider::overflow::classify;
use komado_provider::scripted::{ScriptStep, ScriptedOptions, ScriptedServer, SeenRequest};
use komado_provider::{
    Client, ClientTimeouts, Dialect, ModelResponse, Provider, RequestScanner, ResponseForm,
};
use komado_store::{MemoryStore, OpenMode, Store};
use std::collections::VecDeque;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

pub(crate) const MODEL: &str = "scripted-1";
pub(crate) const CHAT_TOOL: &str = r#"{"type":"function","function":{"name":"read","description":"Read a file","parameters":{"type":"object","properties":{"path":{"type":"string"}},"required":["path"]}}}"#;

/// A second later each time it is asked.
#[derive(Default)]
struct Ticking(AtomicU64);

impl Clock for Ticking {
    fn now(&self) -> String {
        let n = self.0.fetch_add(1, Ordering::SeqCst);
        format!("2026-01-15T{:02}:{:02}:{:02}.000000Z", n / 3600 % 24, n / 60 % 60, n % 60)
    }
}

/// The house and what is behind it.
pub(crate) struct World {
    pub(crate) relay: Relay,
    pub(crate) server: ScriptedServer,
    pub(crate) asking: ModelTarget,
    pub(crate) offer: ToolOffer,
    /// How often a model may repeat a call before its request is refused.
    pub(crate) max_repeats: u32,
    /// Where requests in the client's own dialect go.
    pub(crate) base: String,
}

impl World {
    /// A gateway that believes in a window of `window`, before a server of `upstream`'s dialect.
    pub(crate) fn new(upstream: Dialect, window: u64, options: ScriptedOptions) -> Self {
        Self::on(Arc::new(MemoryStore::default()), upstream, window, options)
    }

    pub(crate) fn on(
        store: Arc<dyn Store>,
        upstream: Dialect,
        window: u64,
        options: ScriptedOptions,
    ) -> Self {
        let server = ScriptedServer::start(ScriptedOptions { keep: 4_096, ..options }).unwrap();
        let patience =
            ClientTimeouts { tries: 1, delay: Duration::from_millis(1), ..ClientTimeouts::default() };
        let client = Client::new(patience).unwrap().final_if(|status, body| classify(status, body).overflow);
        let provider = Provider::at("scripted", upstream, server.url()).unwrap();
        let asking = ModelTarget::new(client, provider, MODEL, window);
        let relay = Relay::new(Engine::new(store, Arc::new(Ticking::default())));
        let base = server.url().to_owned();
        Self { relay, server, asking, offer: ToolOffer::WhenNeeded, max_repeats: 0, base }
    }

    /// From now on requests go to another address.
    pub(crate) fn turn_to(&mut self, url: &str) {
        self.base = url.to_owned();
        self.asking.provider = Provider::at("scripted", self.asking.provider.dialect, url).unwrap();
    }

    /// What the server answers to an agent, byte for byte.
    pub(crate) fn answer_to(&self, agent: &Agent, step: ScriptStep) -> Ear {
        self.server.add(step);
        let mut ear = Ear::default();
        agent.send_untouched(self, &mut ear);
        ear
    }

    pub(crate) fn thread(&self, notes: &RelayNotes) -> Thread<'_> {
        let (session, thread) = (notes.session.clone().unwrap(), notes.thread.clone().unwrap());
        self.relay.engine().open(&session, &thread, OpenMode::Read).unwrap()
    }

    /// The last request that the server saw.
    pub(crate) fn last_seen(&self) -> SeenRequest {
        self.server.seen().pop().unwrap()
    }
}

fn meta(session: &SessionId, caller: &TranscriptCaller, config: MetaConfig) -> Meta {
    Meta {
        uuid: session.to_string(),
        task_key: TaskKey::local(session),
        created_at: "2026-01-15T10:00:00.000000Z".into(),
        process_id: 7,
        hostname: "host".into(),
        config,
        user: caller.user.clone(),
        queued: false,
    }
}

/// A client: its transcript, as it tells it.
#[derive(Clone)]
pub(crate) struct Agent {
    pub(crate) dialect: Dialect,
    pub(crate) elements: Vec<String>,
    pub(crate) stream: bool,
    pub(crate) has_tools: bool,
    pub(crate) max_tokens: Option<u64>,
    pub(crate) salt: String,
    /// More fields, each with a comma before it.
    pub(crate) more: String,
    /// The model has another name behind the gateway.
    pub(crate) renames: bool,
    /// Another server than the world's, by its address.
    pub(crate) server: Option<String>,
}

/// What a client heard.
#[derive(Default)]
pub(crate) struct Ear {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
    pub(crate) notes: RelayNotes,
    pub(crate) ended: bool,
    /// Hangs up after so many writes.
    pub(crate) patience: Option<usize>,
    /// Told of each write.
    pub(crate) bell: Option<std::sync::mpsc::Sender<()>>,
}

impl ClientOutlet for Ear {
    fn begin(&mut self, status: u16, headers: &[(String, String)], notes: &RelayNotes) {
        assert_eq!(self.status, 0, "begun once");
        (self.status, self.headers, self.notes) = (status, headers.to_vec(), notes.clone());
    }

    fn write(&mut self, bytes: &[u8]) -> Result<(), ClientGone> {
        assert!(self.status > 0 && !self.ended, "between beginning and end");
        match &mut self.patience {
            Some(0) => return Err(ClientGone),
            Some(left) => *left -= 1,
            None => {}
        }
        self.body.extend_from_slice(bytes);
        if let Some(bell) = &self.bell {
            let _ = bell.send(());
        }
        Ok(())
    }

    fn end(&mut self, notes: &RelayNotes) {
        (self.notes, self.ended) = (notes.clone(), true);
    }
}

impl Ear {
    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }
}

pub(crate) struct NoBlobs;

impl BlobReader for NoBlobs {
    fn base64(&mut self, _: &str, _: &mut dyn Write) -> io::Result<()> {
        Err(io::ErrorKind::NotFound.into())
    }
}

impl Agent {
    pub(crate) fn new(dialect: Dialect) -> Self {
        let mut agent = Self {
            dialect,
            elements: Vec::new(),
            stream: true,
            has_tools: false,
            max_tokens: None,
            salt: "ann".into(),
            more: String::new(),
            renames: false,
            server: None,
        };
        if matches!(dialect, Dialect::Chat | Dialect::Ollama) {
            agent
                .elements
                .push(r#"{"role":"system","content":"You are a careful engineer. 丁寧に。"}"#.into());
        }
        agent
    }

    pub(crate) fn with_tools(mut self) -> Self {
        self.has_tools = true;
        self
    }

    pub(crate) fn whole(mut self) -> Self {
        self.stream = false;
        self
    }

    /// Adds messages to its transcript, as its dialect writes them.
    pub(crate) fn add(&mut self, message: &Message) {
        let text = self.dialect.write_elements(std::slice::from_ref(message), &mut NoBlobs).unwrap();
        let all: Vec<serde_json::Value> =
            serde_json::from_str(&format!("[{}]", String::from_utf8(text).unwrap())).unwrap();
        // Spaces as no writer of ours has them: what is kept is kept byte for byte.
        self.elements.extend(all.iter().map(|element| serde_json::to_string_pretty(element).unwrap()));
    }

    pub(crate) fn say(&mut self, text: &str) {
        self.add(&Message::text(Role::User, text));
    }

    /// Adds what tools answered, all to one message of calls.
    pub(crate) fn results(&mut self, results: &[(&str, &str)]) {
        let messages: Vec<Message> = results.iter().map(|(id, text)| result(id, text)).collect();
        let text = self.dialect.write_elements(&messages, &mut NoBlobs).unwrap();
        let list = format!("[{}]", String::from_utf8(text).unwrap());
        let all: Vec<Box<serde_json::value::RawValue>> = serde_json::from_str(&list).unwrap();
        self.elements.extend(all.into_iter().map(|element| element.get().to_owned()));
    }

    pub(crate) fn body(&self) -> String {
        let list = self.elements.join(" ,\n");
        let more = &self.more;
        let stream = self.stream;
        let tools = match (self.has_tools, self.dialect) {
            (false, _) => String::new(),
            (true, Dialect::Chat | Dialect::Ollama) => format!(",\"tools\":[{CHAT_TOOL} ]"),
            (true, Dialect::Messages) => {
                r#","tools":[{"name":"read","description":"Read a file","input_schema":{"type":"object","properties":{}}}]"#.into()
            }
            (true, Dialect::Responses) => {
                r#","tools":[{"type":"function","name":"read","parameters":{"type":"object","properties":{}},"strict":false}]"#
                    .into()
            }
        };
        let most = self.max_tokens;
        let limit = |key: &str| most.map(|most| format!(",\"{key}\":{most}")).unwrap_or_default();
        match self.dialect {
            Dialect::Chat => {
                let limit = limit("max_tokens");
                format!(
                    "{{ \"model\": \"{MODEL}\",\"x_own\":1.0,\"messages\":[{list}]{tools}{limit}{more},\"stream\":{stream}}}\n"
                )
            }
            Dialect::Ollama => {
                format!("{{\"model\":\"{MODEL}\",\"messages\": [ {list} ]{tools}{more},\"stream\":{stream}}}")
            }
            Dialect::Responses => {
                let limit = limit("max_output_tokens");
                format!(
                    "{{\"model\":\"{MODEL}\",\"instructions\":\"Be careful. 丁寧に。\"{tools},\"input\":[{list}],\"store\":false{limit}{more},\"stream\":{stream}}}"
                )
            }
            Dialect::Messages => {
                let most = most.unwrap_or(400);
                format!(
                    "{{\"model\":\"{MODEL}\",\"max_tokens\":{most},\"system\":[{{\"type\":\"text\",\"text\":\"Be careful. 丁寧に。\"}}]{tools},\"messages\":[{list}]{more},\"stream\":{stream}}}"
                )
            }
        }
    }

    fn path(&self) -> &'static str {
        match self.dialect {
            Dialect::Chat => "/v1/chat/completions",
            Dialect::Responses => "/v1/responses",
            Dialect::Messages => "/v1/messages",
            Dialect::Ollama => "/api/chat",
        }
    }

    pub(crate) fn arrival(&self, body: &str) -> ClientRequest {
        let mut skimmer = RequestScanner::new(self.dialect, self.salt.as_bytes());
        skimmer.push(body.as_bytes()).unwrap();
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(body.as_bytes()).unwrap();
        let caller = TranscriptCaller { salt: self.salt.clone(), ..TranscriptCaller::default() };
        ClientRequest { skim: Arc::new(skimmer.end().unwrap()), body: Arc::new(file), caller }
    }

    fn upstream(&self, world: &World) -> RelayUpstream {
        RelayUpstream {
            asking: world.asking.clone(),
            url: format!("{}{}", self.server.as_deref().unwrap_or(world.base.as_str()), self.path()),
            headers: vec![("content-type".into(), "application/json".into()), ("x-trace".into(), "7".into())],
            renames: self.renames,
        }
    }

    /// Sends its transcript.
    pub(crate) fn send(&self, world: &World, ear: &mut Ear) -> Result<(), RelayFault> {
        self.act(world, ear, |relay, arrival, upstream, manner, ear| {
            relay.relay(arrival, upstream, manner, ear)
        })
    }

    pub(crate) fn compact(&self, world: &World, ear: &mut Ear) -> Result<(), RelayFault> {
        self.act(world, ear, |relay, arrival, upstream, manner, ear| {
            relay.compact(arrival, upstream, manner, ear)
        })
    }

    /// Sends its transcript past everything of ours.
    pub(crate) fn send_untouched(&self, world: &World, ear: &mut Ear) {
        let arrival = self.arrival(&self.body());
        untouched(&arrival, &self.upstream(world), ear, RelayNotes::default()).unwrap();
    }

    pub(crate) fn try_untouched(&self, world: &World, ear: &mut Ear) -> Result<(), SendError> {
        untouched(&self.arrival(&self.body()), &self.upstream(world), ear, RelayNotes::default())
    }

    fn act(
        &self,
        world: &World,
        ear: &mut Ear,
        act: impl FnOnce(
            &Relay,
            &ClientRequest,
            &RelayUpstream,
            &RelayConfig<'_>,
            &mut Ear,
        ) -> Result<(), RelayFault>,
    ) -> Result<(), RelayFault> {
        let manner = RelayConfig {
            max_repeats: world.max_repeats,
            policy: Preset::Komado.policy(),
            settings: CondenseSettings::default(),
            summariser: &(),
            offer: world.offer,
            meta: &meta,
            meter: &|_| Meter::O200k,
        };
        act(&world.relay, &self.arrival(&self.body()), &self.upstream(world), &manner, ear)
    }

    /// Sends its transcript and takes the answer into it.
    pub(crate) fn ask(&mut self, world: &World) -> (Message, Ear) {
        let mut ear = Ear::default();
        self.send(world, &mut ear).unwrap();
        assert_eq!(ear.status, 200, "{}", ear.text());
        let heard = self.hear(&ear);
        assert!(heard.failed.is_none() && heard.finish.is_some(), "{}", ear.text());
        let message = heard.message().unwrap_or_else(|| Message::text(Role::Assistant, ""));
        self.add(&message);
        (message, ear)
    }

    /// What an answer says.
    pub(crate) fn hear(&self, ear: &Ear) -> ModelResponse {
        let mut decoder =
            self.dialect.decoder(if self.stream { ResponseForm::Stream } else { ResponseForm::Whole });
        let mut heard = ModelResponse::default();
        decoder.push(&ear.body, &mut |event| heard.take(&event));
        decoder.end(&mut |event| heard.take(&event));
        heard
    }

    /// Says something and hears the answer.
    pub(crate) fn turn(&mut self, world: &World, text: &str) -> (Message, Ear) {
        self.say(text);
        self.ask(world)
    }
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

/// Words that are others each time.
pub(crate) fn words(n: usize) -> String {
    format!("Item {n}: team {} meets in room {}; notes of week {n}. 第{n}週の会議。", n % 9, n * 3).repeat(6)
}

pub(crate) fn root() -> ThreadId {
    ThreadId::root()
}

/// The elements of a request that was seen.
pub(crate) fn seen_list(seen: &SeenRequest) -> Vec<String> {
    let body: std::collections::BTreeMap<String, Box<serde_json::value::RawValue>> =
        serde_json::from_slice(&seen.body).unwrap();
    let list = body.get("messages").or(body.get("input")).unwrap();
    let list: Vec<Box<serde_json::value::RawValue>> = serde_json::from_str(list.get()).unwrap();
    list.into_iter().map(|element| element.get().to_owned()).collect()
}

/// Answers to come: what they are, and their bytes.
type Answers = Arc<Mutex<VecDeque<(String, Vec<u8>)>>>;

/// A server that says exactly these bytes, one answer after the other, and hangs up politely after each.
pub(crate) struct Canned {
    pub(crate) url: String,
    answers: Answers,
}

impl Canned {
    pub(crate) fn new() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let answers: Answers = Arc::default();
        let queue = Arc::clone(&answers);
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let mut stream = stream.unwrap();
                let mut reader = BufReader::new(stream.try_clone().unwrap());
                let (mut length, mut line) = (0, String::new());
                while reader.read_line(&mut line).unwrap() > 2 {
                    if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
                        length = value.trim().parse().unwrap();
                    }
                    line.clear();
                }
                reader.read_exact(&mut vec![0; length]).unwrap();
                let (kind, body) = queue.lock().unwrap().pop_front().expect("one more answer than requests");
                let head = format!(
                    "HTTP/1.1 200 OK\r\ncontent-type: {kind}\r\nx-odd: 窓 \r\nx-odd: b\r\nconnection: close\r\n\r\n"
                );
                // A client that hangs up is not our concern.
                let _ = stream.write_all(&[head.as_bytes(), &body].concat());
            }
        });
        Self { url, answers }
    }

    pub(crate) fn say(&self, kind: &str, body: &[u8]) {
        self.answers.lock().unwrap().push_back((kind.to_owned(), body.to_vec()));
    }

    /// Nothing more is to be said.
    pub(crate) fn clear(&self) {
        self.answers.lock().unwrap().clear();
    }

    /// Says again what was heard, or its beginning.
    pub(crate) fn repeat(&self, ear: &Ear, bytes: usize) {
        let kind = ear.headers.iter().find(|(name, _)| name == "content-type").unwrap().1.clone();
        self.say(&kind, &ear.body[..bytes]);
    }
}
