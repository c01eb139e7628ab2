//! A connection to a server that is open: it lists its tools, and answers calls, in time or not at all.

use super::process::McpProcess;
use super::{MOST_MESSAGE, McpServer, McpTransport, http};
use komado_provider::Cancel;
use rmcp::model::{
    CallToolRequest, CallToolRequestParams, CallToolResult, ClientCapabilities, ClientConfig, ClientRequest,
    Implementation, JsonObject, PaginatedRequestParams, ServerResult, Tool,
};
use rmcp::service::{
    ClientInitializeError, PeerRequestOptions, RequestHandle, RoleClient, RunningService, ServiceError,
    serve_client,
};
use rmcp::transport::async_rw::AsyncRwTransport;
use std::error::Error;
use std::io;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::task::{Context, Poll, ready};
use std::thread::{self, JoinHandle};
use std::time::Duration;
use tokio::io::{AsyncRead, ReadBuf};
use tokio::runtime::{Builder, Handle};
use tokio::sync::oneshot;
use tokio::time::{Instant, timeout, timeout_at};

/// How long a connection may take to close, and a server to take the word that a call is no longer wanted.
const SHORT: Duration = Duration::from_secs(1);
/// The most tools and pages of tools a server may have.
const MOST_TOOLS: usize = 1000;
const MOST_PAGES: usize = 100;

/// A connection.
pub(super) struct McpConnection {
    running: RunningService<RoleClient, ClientConfig>,
    process: Option<McpProcess>,
    too_long: Arc<AtomicBool>,
}

/// Why there is no result.
pub(super) enum CallFailure {
    /// The server, or the time, says no. It can be called again.
    Told(String),
    /// The connection is of no more use, for this reason or for one the [`fate`](Link::fate) of the server tells.
    Lost(Option<String>),
}

impl McpConnection {
    /// Starts or reaches a server, and agrees with it on the protocol, by then.
    pub(super) async fn open(server: &McpServer, until: Instant, cancel: &Cancel) -> Result<Self, String> {
        let too_long = Arc::<AtomicBool>::default();
        let us = ClientConfig::new(
            ClientCapabilities::default(),
            Implementation::new("komado", env!("CARGO_PKG_VERSION")),
        );
        match &server.how {
            McpTransport::Command { .. } => {
                let (process, output, input) = McpProcess::start(&server.how)?;
                let lines = BoundedLines::new(output, Arc::clone(&too_long));
                // The reader before it keeps the bound; this one must not be the first to find a line too long.
                let transport = AsyncRwTransport::new_client(lines, input).with_max_line_length(usize::MAX);
                match in_time(Box::pin(serve_client(us, transport)), until, cancel).await {
                    Ok(running) => Ok(Self { running, process: Some(process), too_long }),
                    Err(why) => Err(lost(why, Some(process), &too_long).await),
                }
            }
            McpTransport::Http { url, headers } => {
                let transport = http::transport(url, headers, Arc::clone(&too_long))?;
                let running = in_time(Box::pin(serve_client(us, transport)), until, cancel).await;
                let running =
                    running.map_err(|why| why.unwrap_or_else(|| "it closed the connection".to_owned()))?;
                Ok(Self { running, process: None, too_long })
            }
        }
    }

    /// Every tool, in the server's order, by then.
    pub(super) async fn tools(&self, until: Instant, cancel: &Cancel) -> Result<Vec<Tool>, Option<String>> {
        let (mut tools, mut cursor, mut size) = (Vec::new(), None, 0);
        for _ in 0..MOST_PAGES {
            let params = PaginatedRequestParams::default().with_cursor(cursor);
            let page = in_time(self.running.list_tools(Some(params)), until, cancel).await?;
            size += page.tools.iter().map(size_of).sum::<usize>();
            if size > MOST_MESSAGE {
                return Err(Some(format!("its list of tools has more than {} MiB", MOST_MESSAGE >> 20)));
            }
            tools.extend(page.tools);
            cursor = page.next_cursor;
            if cursor.is_none() || tools.len() > MOST_TOOLS {
                break;
            }
        }
        if cursor.is_some() || tools.len() > MOST_TOOLS {
            return Err(Some(format!(
                "it has more than {MOST_TOOLS} tools, or a list of them that does not end"
            )));
        }
        Ok(tools)
    }

    /// Calls a tool. A call that takes too long, or is no longer wanted, is taken back.
    pub(super) async fn call(
        &self,
        tool: String,
        arguments: JsonObject,
        most: Duration,
        cancel: &Cancel,
    ) -> Result<CallToolResult, CallFailure> {
        let params = CallToolRequestParams::new(tool).with_arguments(arguments);
        let request = ClientRequest::CallToolRequest(CallToolRequest::new(params));
        let options = PeerRequestOptions::no_options();
        let mut sent = match timeout(most, self.running.send_cancellable_request(request, options)).await {
            Ok(sent) => sent.map_err(miss)?,
            Err(_) => return Err(CallFailure::Lost(Some("it takes no more calls".to_owned()))),
        };
        let heard = tokio::select! {
            heard = &mut sent.rx => heard,
            () = tokio::time::sleep(most) => {
                return Err(self.take_back(sent, &format!("it did not answer within {}", seconds(most))).await);
            }
            () = cancel.cancelled() => return Err(self.take_back(sent, "the call was cancelled").await),
        };
        match heard {
            Ok(Ok(ServerResult::CallToolResult(result))) => Ok(result),
            Ok(Ok(_)) => {
                Err(CallFailure::Told("it answered with something that is not a result of a tool".to_owned()))
            }
            Ok(Err(why)) => Err(miss(why)),
            Err(_) => Err(CallFailure::Lost(None)),
        }
    }

    /// Tells the server that a call is no longer wanted. One that does not even take that is of no more use.
    async fn take_back(&self, sent: RequestHandle<RoleClient>, why: &str) -> CallFailure {
        match timeout(SHORT, sent.cancel(Some(why.to_owned()))).await {
            Ok(Ok(())) => CallFailure::Told(why.to_owned()),
            _ => CallFailure::Lost(Some(why.to_owned())),
        }
    }

    /// True once the server has closed it.
    pub(super) fn is_closed(&self) -> bool {
        self.running.is_closed() || self.running.is_transport_closed()
    }

    /// Closes it and ends its process.
    pub(super) async fn close(self) {
        self.fate(Some("it is no longer needed".to_owned())).await;
    }

    /// Closes it and ends its process; says how the server ended, or why it was given up.
    pub(super) async fn fate(mut self, why: Option<String>) -> String {
        let _ = self.running.close_with_timeout(SHORT).await;
        lost(why, self.process, &self.too_long).await
    }
}

/// How many bytes a server says about a tool.
fn size_of(tool: &Tool) -> usize {
    serde_json::to_string(tool).map_or(0, |text| text.len())
}

/// Why a connection is of no more use, once the process behind it, if there is one, has ended.
async fn lost(why: Option<String>, process: Option<McpProcess>, too_long: &AtomicBool) -> String {
    let closed = why.is_none();
    let why = if too_long.load(Ordering::Acquire) {
        Some(format!("it sent a message of more than {} MiB", MOST_MESSAGE >> 20))
    } else {
        why
    };
    // One that closed its output is about to leave; any other is told to.
    let patience = if closed { SHORT } else { Duration::ZERO };
    let fate = match process {
        Some(process) => Some(process.fate(patience).await),
        None => None,
    };
    match (why, fate) {
        (Some(why), Some(fate)) => format!("{why}; {fate}"),
        (Some(word), None) | (None, Some(word)) => word,
        (None, None) => "it closed the connection".to_owned(),
    }
}

/// What a step of the beginning gives, if it does so in time; else why not, if that is not for the server's end to tell.
async fn in_time<T, E: Reason>(
    step: impl Future<Output = Result<T, E>>,
    until: Instant,
    cancel: &Cancel,
) -> Result<T, Option<String>> {
    tokio::select! {
        done = timeout_at(until, step) => match done {
            Ok(done) => done.map_err(Reason::reason),
            Err(_) => Err(Some("it did not say in time what it has (start_seconds)".to_owned())),
        },
        () = cancel.cancelled() => Err(Some("it was no longer wanted".to_owned())),
    }
}

/// An error of the protocol's library in our words; none when the connection was simply closed.
trait Reason {
    fn reason(self) -> Option<String>;
}

impl Reason for ServiceError {
    fn reason(self) -> Option<String> {
        match self {
            Self::TransportClosed => None,
            Self::McpError(error) => Some(format!("it refused: {}", short(&error.message))),
            Self::TransportSend(error) => Some(http::reason(error.error.as_ref())),
            other => Some(short(&other.to_string())),
        }
    }
}

impl Reason for ClientInitializeError {
    fn reason(self) -> Option<String> {
        match self {
            Self::ConnectionClosed(_) => None,
            Self::TransportError { error, .. } => Some(http::reason(error.error.as_ref())),
            Self::JsonRpcError(error) => Some(format!("it refused: {}", short(&error.message))),
            other => Some(format!("it does not speak MCP: {}", short(&other.to_string()))),
        }
    }
}

fn miss(error: ServiceError) -> CallFailure {
    match error.reason() {
        Some(why) => CallFailure::Told(why),
        None => CallFailure::Lost(None),
    }
}

/// An error and what is behind it, each once.
pub(super) fn chain(error: &(dyn Error + 'static)) -> String {
    let mut words = error.to_string();
    let mut next = error.source();
    while let Some(error) = next {
        let more = error.to_string();
        if !words.contains(&more) {
            words = format!("{words}: {more}");
        }
        next = error.source();
    }
    short(&words)
}

/// A text that others wrote, cut where it is long.
pub(super) fn short(text: &str) -> String {
    const MOST: usize = 500;
    let mut letters = text.chars();
    let mut kept: String = letters.by_ref().take(MOST).collect();
    if letters.next().is_some() {
        kept.push('…');
    }
    kept
}

fn seconds(time: Duration) -> String {
    if time.subsec_millis() == 0 {
        format!("{} s", time.as_secs())
    } else {
        format!("{} ms", time.as_millis())
    }
}

// A server's output with a bound on its lines. A line is a message; a server that never ends one is given up, since what comes
// after it cannot be told from what is still in it.

/// Reads until a line is too long; then fails, and `too_long` says so.
pub(super) struct BoundedLines<R> {
    inner: R,
    /// Bytes of the line that has not ended yet.
    open: usize,
    too_long: Arc<AtomicBool>,
}

impl<R> BoundedLines<R> {
    pub(super) fn new(inner: R, too_long: Arc<AtomicBool>) -> Self {
        Self { inner, open: 0, too_long }
    }

    /// Whether the lines in `piece` keep the bound.
    fn fits(&mut self, piece: &[u8]) -> bool {
        let mut parts = piece.split(|byte| *byte == b'\n');
        let first = self.open + parts.next().map_or(0, <[u8]>::len);
        let mut longest = first;
        self.open = first;
        for part in parts {
            self.open = part.len();
            longest = longest.max(self.open);
        }
        longest <= MOST_MESSAGE
    }
}

impl<R: AsyncRead + Unpin> AsyncRead for BoundedLines<R> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        ready!(Pin::new(&mut self.inner).poll_read(context, buffer))?;
        if self.fits(&buffer.filled()[before..]) {
            return Poll::Ready(Ok(()));
        }
        self.too_long.store(true, Ordering::Release);
        Poll::Ready(Err(io::Error::new(io::ErrorKind::InvalidData, "a line is too long")))
    }
}

// One thread that keeps the pipes of all servers moving, also between calls: they are read, and their ends are seen.
//
// The caller blocks until the work is done there. The work itself has an end: every step of it is bounded.

/// How long is waited at the end for what should have ended already.
const LAST: Duration = Duration::from_secs(1);

/// The thread. It ends when this is dropped.
pub(super) struct McpRuntime {
    handle: Handle,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl McpRuntime {
    pub(super) fn start() -> io::Result<Self> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let handle = runtime.handle().clone();
        let (stop, stopped) = oneshot::channel::<()>();
        let thread = thread::Builder::new().name("mcp".to_owned()).spawn(move || {
            // Either it is told, or its owner is gone: both mean the end.
            let _ = runtime.block_on(stopped);
            runtime.shutdown_timeout(LAST);
        })?;
        Ok(Self { handle, stop: Some(stop), thread: Some(thread) })
    }

    /// Waits for a piece of work; `None` when it broke off.
    pub(super) fn wait<T: Send + 'static>(
        &self,
        work: impl Future<Output = T> + Send + 'static,
    ) -> Option<T> {
        self.all([work]).pop().flatten()
    }

    /// Waits for several pieces of work, done at the same time; what each gave, in the order they came.
    pub(super) fn all<T, F>(&self, works: impl IntoIterator<Item = F>) -> Vec<Option<T>>
    where
        T: Send + 'static,
        F: Future<Output = T> + Send + 'static,
    {
        let begin = |work: F| {
            let (done, result) = mpsc::sync_channel(1);
            self.handle.spawn(async move {
                // The receiver is gone with the caller.
                let _ = done.send(work.await);
            });
            result
        };
        let begun: Vec<_> = works.into_iter().map(begin).collect();
        begun.into_iter().map(|result| result.recv().ok()).collect()
    }
}

impl Drop for McpRuntime {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            // It only fails when the thread panicked, and then there is nothing left to end.
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_line_that_is_open_counts_however_it_is_cut() {
        let mut lines = BoundedLines::new(tokio::io::empty(), Arc::default());
        let half = vec![b'x'; MOST_MESSAGE / 2];
        assert!(lines.fits(&half) && lines.fits(&half));
        assert!(lines.fits(b"\n") && lines.fits(&half) && lines.fits(b"x\nyy\nzzz"));
        assert_eq!(lines.open, 3);
        assert!(lines.fits(&half));
        assert!(!lines.fits(&half), "three bytes too many");
    }

    #[test]
    fn a_line_that_ends_in_the_same_piece_counts_too() {
        let mut lines = BoundedLines::new(tokio::io::empty(), Arc::default());
        let mut piece = vec![b'x'; MOST_MESSAGE + 1];
        piece.push(b'\n');
        assert!(!lines.fits(&piece));
    }
}
