//! A model server that does what a script says: real HTTP, every dialect, real token counts, a window that is enforced.
//!
//! It serves tests, the demo, and users who test an agent of their own without a provider. It fails as the real
//! ones fail, in their words, because that is what a client must understand. What it answers depends on the request, on
//! the script and on what it was asked before; never on a clock or on chance. It refuses a request that a provider would
//! refuse, also where a lenient server would let it pass.
//!
//! ```no_run
//! use komado_provider::scripted::{ScriptStep, ScriptedOptions, ScriptedServer};
//!
//! let server = ScriptedServer::start(ScriptedOptions { window: Some(4096), ..ScriptedOptions::default() })?;
//! server.add(ScriptStep::say("hello"));
//! // Point a client at `server.url()`, then look at what it sent.
//! for seen in server.seen() {
//!     println!("{} {} tokens", seen.path, seen.tokens);
//! }
//! # Ok::<(), std::io::Error>(())
//! ```

mod check;
mod decide;
mod errors;
mod fallback;
mod reply;
mod script;
mod serve;

pub use decide::SeenRequest;
pub use errors::ErrorStyle;
pub use script::{
    BadScript, Repeat, ScriptStep, ScriptedFailure, ScriptedReply, ScriptedSteps, StepCondition, ToolCall,
};

use axum::serve::ListenerExt;
use decide::RequestLog;
use komado_core::Meter;
use std::net::TcpListener;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;
use std::{fmt, io};
use tokio::runtime::Runtime;
use tokio::sync::oneshot;

/// How a server is set up.
#[derive(Clone, Debug)]
pub struct ScriptedOptions {
    /// Where it listens; port 0 for one that is free.
    pub address: String,
    /// The window in tokens; `None` for one without end.
    pub window: Option<u64>,
    /// How tokens are counted. One that differs from the client's shows what a wrong estimate does.
    pub meter: Meter,
    /// The provider whose error texts are used.
    pub words: ErrorStyle,
    /// What it answers.
    pub script: ScriptedSteps,
    /// What happens to a request that is too large.
    pub overflow: OnOverflow,
    /// How many request bodies are remembered; older ones are forgotten, what else was seen is not.
    pub keep: usize,
    /// Reads bodies without keeping or parsing them, and answers steps without conditions as they stand, else a short fixed text:
    /// to measure a client.
    pub discard: bool,
}

impl Default for ScriptedOptions {
    fn default() -> Self {
        Self {
            address: "127.0.0.1:0".into(),
            window: None,
            meter: Meter::O200k,
            words: ErrorStyle::default(),
            script: ScriptedSteps::default(),
            overflow: OnOverflow::default(),
            keep: 256,
            discard: false,
        }
    }
}

/// What happens to a request that is too large for the window.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum OnOverflow {
    /// It is refused with an error status.
    #[default]
    Refuse,
    /// A stream begins with status 200, and the error is an event in it. Answers in one piece are refused as usual.
    RefuseInStream,
    /// The oldest messages are dropped without a word, and the smaller count is reported: what Ollama does by default.
    Truncate,
}

komado_core::names! {
    /// Its name on the command line.
    OnOverflow { Refuse = "refuse", RefuseInStream = "in-stream", Truncate = "truncate" }
}

/// Is told of each request.
type Watch = Box<dyn Fn(&SeenRequest) + Send>;

/// What every request is answered from.
struct Host {
    options: ScriptedOptions,
    ledger: Mutex<RequestLog>,
    watch: Mutex<Option<Watch>>,
}

impl Host {
    fn ledger(&self) -> MutexGuard<'_, RequestLog> {
        // A panic elsewhere leaves the list as it was: it only grows.
        self.ledger.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes down what was asked, and tells the watcher.
    fn record(&self, seen: SeenRequest) {
        if let Some(watch) = &*self.watch.lock().unwrap_or_else(PoisonError::into_inner) {
            watch(&seen);
        }
        self.ledger().record(seen, self.options.keep);
    }
}

/// A running server. It stops when it is dropped; open streams are cut.
pub struct ScriptedServer {
    url: String,
    host: Arc<Host>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl ScriptedServer {
    /// Starts a server on a thread of its own. Fails when the address cannot be had.
    pub fn start(mut options: ScriptedOptions) -> io::Result<Self> {
        let listener = TcpListener::bind(&options.address)?;
        listener.set_nonblocking(true)?;
        let url = format!("http://{}", listener.local_addr()?);
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
        let ledger = Mutex::new(RequestLog::new(std::mem::take(&mut options.script)));
        let host = Arc::new(Host { options, ledger, watch: Mutex::new(None) });
        let (stop, stopped) = oneshot::channel();
        let served = Arc::clone(&host);
        let thread = std::thread::Builder::new()
            .name("model-server".into())
            .spawn(move || run(runtime, listener, served, stopped))?;
        Ok(Self { url, host, stop: Some(stop), thread: Some(thread) })
    }

    /// Where it is, such as `http://127.0.0.1:40123`; what comes after it is up to the dialect.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Every request so far, the oldest first.
    pub fn seen(&self) -> Vec<SeenRequest> {
        self.host.ledger().seen()
    }

    /// Adds a step to the end of the script.
    pub fn add(&self, step: ScriptStep) {
        self.host.ledger().add(step);
    }

    /// Steps of the script that still wait for a request; one that is always used is not counted.
    pub fn left(&self) -> usize {
        self.host.ledger().left()
    }

    /// Calls `each` for every request from now on, when its status is known. It runs on the server's thread.
    pub fn watch(&self, each: impl Fn(&SeenRequest) + Send + 'static) {
        *self.host.watch.lock().unwrap_or_else(PoisonError::into_inner) = Some(Box::new(each));
    }
}

impl Drop for ScriptedServer {
    fn drop(&mut self) {
        if let Some(stop) = self.stop.take() {
            let _ = stop.send(());
        }
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl fmt::Debug for ScriptedServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Server").field("url", &self.url).finish_non_exhaustive()
    }
}

fn run(runtime: Runtime, listener: TcpListener, host: Arc<Host>, stopped: oneshot::Receiver<()>) {
    runtime.block_on(async move {
        let Ok(listener) = tokio::net::TcpListener::from_std(listener) else { return };
        // Words go out as they come: without this each would wait for the other side to confirm the one before.
        let listener = listener.tap_io(|connection| drop(connection.set_nodelay(true)));
        let serving = axum::serve(listener, serve::router(host));
        let (serving, stopped) = (std::pin::pin!(serving.into_future()), std::pin::pin!(stopped));
        futures_util::future::select(serving, stopped).await;
    });
    // A client that still reads a stream sees it cut.
    runtime.shutdown_timeout(Duration::from_secs(1));
}
