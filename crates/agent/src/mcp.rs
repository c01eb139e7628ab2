//! Tools of MCP servers: started or connected to once, kept open, and never able to hold a task up for good.
//!
//! A server is a foreign program. So each step with it has an end: its start, its list of tools, each call, each message
//! it sends and the time it is given to leave. What it does wrong is told to the model as an answer, with its own last words,
//! and the task goes on. Its tools are listed once: they stand before the conversation, and a server that changes its mind
//! later does not change what was offered.

mod connection;
mod http;
mod process;

use crate::sandbox::Confinement;
use crate::tools::{Repeatability, ToolAnswer, ToolBody, ToolDefinition, ToolProvider};
use connection::{CallFailure, McpConnection, McpRuntime};
use komado_provider::Cancel;
use komado_provider::provider::shown;
use rmcp::model::{CallToolResult, ContentBlock, JsonObject, ResourceContents, Tool};
use serde_json::{Map, Value, json};
use std::collections::HashSet;
use std::fmt;
use std::io::{self, Seek, Write};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Mutex;
use tokio::time::Instant;

/// The most bytes of one message. A longer one is not read to its end: it would be held as a whole, more than once.
const MOST_MESSAGE: usize = 8 << 20;

/// A server from the settings.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct McpServer {
    /// Its name: the beginning of its tools' names.
    pub name: String,
    /// How it is reached.
    pub how: McpTransport,
    /// How long it may take to start, and to say what it has.
    pub start: Duration,
    /// How long a call may take.
    pub call: Duration,
    /// The only tools of it that are offered; all when empty.
    pub only: Vec<String>,
}

/// How a server is reached.
#[derive(Clone, PartialEq, Eq)]
pub enum McpTransport {
    /// As a process that is spoken to over its standard input and output.
    Command {
        /// The program.
        program: String,
        /// Its arguments.
        args: Vec<String>,
        /// Variables of its environment, on top of the few that every confined process has.
        env: Vec<(String, String)>,
        /// Where it runs; in a private folder when there is none.
        folder: Option<PathBuf>,
        /// The working folder of the task, which it may read and write. `{folder}` in arguments and variables stands for it.
        work: Option<PathBuf>,
        /// How it is confined.
        confinement: Confinement,
    },
    /// At an address (streamable HTTP).
    Http {
        /// The address.
        url: String,
        /// Headers of each request.
        headers: Vec<(String, String)>,
    },
}

/// Why a server's tools cannot be had.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// It did not start, or said nothing that is MCP.
    #[error("the MCP server {server} cannot be used: {why}")]
    Server {
        /// Its name.
        server: String,
        /// Why, and what to do.
        why: String,
    },
}

/// Servers that are open. They are closed, and their processes ended, when this is dropped.
pub struct McpServers {
    definitions: Vec<ToolDefinition>,
    places: Vec<Place>,
    seats: Vec<Arc<Mutex<Seat>>>,
    pump: McpRuntime,
}

/// Where a tool is: at which server, and what it is called there.
struct Place {
    seat: usize,
    tool: String,
}

impl McpServers {
    /// Starts or reaches all of them, at the same time. Where one cannot be used, none is kept.
    pub fn open(servers: &[McpServer], cancel: &Cancel) -> Result<Self, Error> {
        let pump = McpRuntime::start().map_err(|why| Error::Server {
            server: servers.iter().map(|server| server.name.as_str()).collect::<Vec<_>>().join(", "),
            why: format!("no thread for it: {why}"),
        })?;
        let mut open = Self { definitions: Vec::new(), places: Vec::new(), seats: Vec::new(), pump };
        let opened = open.pump.all(servers.iter().cloned().map(|server| Seat::open(server, cancel.clone())));
        let mut failed = None;
        let mut names = Names::default();
        for (server, opened) in servers.iter().zip(opened) {
            let opened = opened.unwrap_or_else(|| Err("it could not be waited for".to_owned()));
            match opened {
                Ok((seat, tools)) => open.take(&server.name, seat, tools, &mut names),
                Err(why) => failed = failed.or(Some(Error::Server { server: server.name.clone(), why })),
            }
        }
        failed.map_or(Ok(open), Err)
    }

    fn take(&mut self, server: &str, seat: Seat, tools: Vec<ToolDefinition>, names: &mut Names) {
        for tool in tools {
            let name = names.give(server, &tool.name);
            self.places.push(Place { seat: self.seats.len(), tool: tool.name });
            self.definitions.push(ToolDefinition { name, ..tool });
        }
        self.seats.push(Arc::new(Mutex::new(seat)));
    }
}

impl ToolProvider for McpServers {
    fn definitions(&self) -> &[ToolDefinition] {
        &self.definitions
    }

    fn call(&mut self, name: &str, arguments: &str, cancel: &Cancel) -> ToolAnswer {
        let place = self.definitions.iter().position(|tool| tool.name == name);
        let Some(Place { seat, tool }) = place.and_then(|place| self.places.get(place)) else {
            return ToolAnswer::wrong(format!("there is no tool {name:?}"));
        };
        let arguments = match object(arguments) {
            Ok(arguments) => arguments,
            Err(why) => return ToolAnswer::wrong(format!("{name}: {why}")),
        };
        let (seat, tool, cancel) = (Arc::clone(&self.seats[*seat]), tool.clone(), cancel.clone());
        let heard = self.pump.wait(async move { seat.lock().await.call(tool, arguments, &cancel).await });
        match heard {
            Some(Ok(result)) => answer(result),
            Some(Err(why)) => ToolAnswer::wrong(why),
            None => {
                ToolAnswer::wrong(format!("{name}: the call could not be waited for; try something else"))
            }
        }
    }
}

impl Drop for McpServers {
    fn drop(&mut self) {
        let close = |seat: Arc<Mutex<Seat>>| async move { seat.lock().await.close().await };
        self.pump.all(self.seats.drain(..).map(close));
    }
}

/// The arguments that a model wrote. Some write nothing where nothing is wanted.
fn object(arguments: &str) -> Result<Map<String, Value>, String> {
    if arguments.trim().is_empty() {
        return Ok(Map::new());
    }
    serde_json::from_str(arguments).map_err(|why| format!("the arguments are no JSON object: {why}"))
}

// Names of tools as models know them: `{server}_{tool}`, in the letters that every provider takes, each name once.

/// The longest name a provider takes.
const LONGEST: usize = 64;

/// Names that were given.
#[derive(Default)]
struct Names(HashSet<String>);

impl Names {
    /// A name for a tool. One that had to be cut, or that another tool has, ends in a digest of what it stands for.
    fn give(&mut self, server: &str, tool: &str) -> String {
        let plain: String = format!("{server}_{tool}").chars().map(safe).collect();
        let name = if plain.len() > LONGEST || self.0.contains(&plain) {
            let digest = blake3::hash(format!("{server}\0{tool}").as_bytes()).to_hex();
            let kept = plain.len().min(LONGEST - 9);
            format!("{}_{}", &plain[..kept], &digest[..8])
        } else {
            plain
        };
        self.0.insert(name.clone());
        name
    }
}

fn safe(letter: char) -> char {
    if letter.is_ascii_alphanumeric() || letter == '-' { letter } else { '_' }
}

// One server of a task: its connection, and what is done when that ends. It is opened again by the next call, a few times;
// its tools stay the ones it had in the beginning.

/// How often a process that ended is started again.
const RESTARTS: u32 = 3;
/// The most bytes of all definitions of a server: they are in every request to the model.
const MOST_DEFINED: usize = 1 << 20;

/// A server and its connection, if it is open.
struct Seat {
    server: McpServer,
    link: Option<McpConnection>,
    restarts: u32,
}

impl Seat {
    /// Opens a server: with its tools, under the names it gives them.
    async fn open(server: McpServer, cancel: Cancel) -> Result<(Self, Vec<ToolDefinition>), String> {
        let opened = open_and_list(&server, &cancel).await;
        let (link, tools) = opened.map_err(|why| server.hide(&why))?;
        match chosen(&server, tools) {
            Ok(tools) => Ok((Self { server, link: Some(link), restarts: 0 }, tools)),
            Err(why) => {
                link.close().await;
                Err(why)
            }
        }
    }

    /// Calls a tool; else says why there is no result.
    async fn call(
        &mut self,
        tool: String,
        arguments: JsonObject,
        cancel: &Cancel,
    ) -> Result<CallToolResult, String> {
        let link = match self.link.take() {
            Some(link) if !link.is_closed() => link,
            gone => self.open_again(gone, cancel).await.map_err(|why| self.told(&why))?,
        };
        let heard = match link.call(tool, arguments, self.server.call, cancel).await {
            Err(CallFailure::Lost(why)) => return Err(self.told(&link.fate(why).await)),
            Err(CallFailure::Told(why)) => Err(self.told(&why)),
            Ok(result) => Ok(result),
        };
        self.link = Some(link);
        heard
    }

    fn told(&self, why: &str) -> String {
        self.server.hide(&format!("the MCP server {}: {why}", self.server.name))
    }

    async fn open_again(
        &mut self,
        gone: Option<McpConnection>,
        cancel: &Cancel,
    ) -> Result<McpConnection, String> {
        if let Some(link) = gone {
            let fate = link.fate(None).await;
            tracing::debug!(
                server = self.server.name,
                fate = self.server.hide(&fate),
                "an MCP server is gone"
            );
        }
        // A process that always ends would be started forever; to reach for an address costs nothing.
        if matches!(self.server.how, McpTransport::Command { .. }) {
            if self.restarts == RESTARTS {
                return Err(format!(
                    "it was started again {RESTARTS} times and always ended; do without its tools"
                ));
            }
            self.restarts += 1;
        }
        McpConnection::open(&self.server, Instant::now() + self.server.start, cancel).await
    }

    /// Closes it; its process is gone afterwards.
    async fn close(&mut self) {
        if let Some(link) = self.link.take() {
            link.close().await;
        }
    }
}

async fn open_and_list(server: &McpServer, cancel: &Cancel) -> Result<(McpConnection, Vec<Tool>), String> {
    let until = Instant::now() + server.start;
    let link = McpConnection::open(server, until, cancel).await?;
    match link.tools(until, cancel).await {
        Ok(tools) => Ok((link, tools)),
        Err(why) => Err(link.fate(why).await),
    }
}

/// The tools that are offered, each once.
fn chosen(server: &McpServer, tools: Vec<Tool>) -> Result<Vec<ToolDefinition>, String> {
    let missing = server.only.iter().find(|name| tools.iter().all(|tool| tool.name != name.as_str()));
    if let Some(missing) = missing {
        let known: Vec<&str> = tools.iter().map(|tool| &*tool.name).collect();
        return Err(format!(
            "it has no tool {missing:?}, which mcp_servers.{}.tools names; it has: {}",
            server.name,
            connection::short(&known.join(", "))
        ));
    }
    let mut seen = HashSet::new();
    let is_wanted =
        |tool: &Tool| server.only.is_empty() || server.only.iter().any(|name| *name == *tool.name);
    let tools = tools.into_iter().filter(|tool| is_wanted(tool) && seen.insert(tool.name.to_string()));
    let definitions: Vec<ToolDefinition> = tools.map(definition).collect();
    let size =
        |tool: &ToolDefinition| tool.name.len() + tool.description.len() + tool.schema.to_string().len();
    let defined: usize = definitions.iter().map(size).sum();
    if defined > MOST_DEFINED {
        return Err(format!(
            "what it says about its tools has {defined} bytes, and {MOST_DEFINED} are the most; choose some of them \
             (mcp_servers.{}.tools)",
            server.name
        ));
    }
    Ok(definitions)
}

fn definition(tool: Tool) -> ToolDefinition {
    let hints = tool.annotations.unwrap_or_default();
    let is_safe = hints.read_only_hint == Some(true) || hints.idempotent_hint == Some(true);
    let takes_object = tool.input_schema.get("type").is_some_and(|kind| kind == "object");
    let schema = if takes_object {
        Value::Object((*tool.input_schema).clone())
    } else {
        json!({"type": "object", "properties": {}})
    };
    ToolDefinition {
        name: tool.name.into_owned(),
        description: tool.description.or(tool.title.map(Into::into)).unwrap_or_default().into_owned(),
        schema,
        again: if is_safe { Repeatability::Safe } else { Repeatability::Unsafe },
    }
}

// What may be shown of a server: never the values of its environment and headers, nor what stands in its address beside the
// place. They are where people put their keys.

/// Shorter values are not secrets, and would be found in any text.
const SHORTEST: usize = 8;

impl McpServer {
    /// A text about it without its secrets. What a server prints when it fails may well be its key.
    fn hide(&self, text: &str) -> String {
        let (McpTransport::Command { env: values, .. } | McpTransport::Http { headers: values, .. }) =
            &self.how;
        let words = values.iter().flat_map(|(_, value)| [value.as_str()].into_iter().chain(value.split(' ')));
        let secrets = words.filter(|word| word.len() >= SHORTEST);
        secrets.fold(text.to_owned(), |text, secret| text.replace(secret, "***"))
    }
}

impl fmt::Debug for McpTransport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Command { program, args, env, folder, work, confinement } => f
                .debug_struct("Command")
                .field("program", program)
                .field("args", &args.len())
                .field("env", &names(env))
                .field("folder", folder)
                .field("work", work)
                .field("confinement", confinement)
                .finish(),
            Self::Http { url, headers } => {
                f.debug_struct("Http").field("url", &shown(url)).field("headers", &names(headers)).finish()
            }
        }
    }
}

fn names(pairs: &[(String, String)]) -> Vec<&str> {
    pairs.iter().map(|(name, _)| name.as_str()).collect()
}

// What a server answered, in words: a model reads text. What is no text is named, with its kind and size.

/// Longer answers are kept in a file.
const LONG: usize = 64 << 10;
/// What stands for content of a kind that did not exist when this was written.
const UNKNOWN: &str = "[content of an unknown kind, not shown]";

/// The answer a result stands for.
fn answer(result: CallToolResult) -> ToolAnswer {
    let is_error = result.is_error == Some(true);
    let text = text(result);
    if text.len() <= LONG {
        return ToolAnswer { body: ToolBody::Text(text), is_error };
    }
    match laid_down(&text) {
        Ok(body) => ToolAnswer { body, is_error },
        Err(why) => ToolAnswer::wrong(format!(
            "the answer has {} bytes, and no file could hold it: {why}",
            text.len()
        )),
    }
}

fn text(result: CallToolResult) -> String {
    let parts: Vec<String> = result.content.into_iter().map(part).filter(|part| !part.is_empty()).collect();
    match (parts.is_empty(), result.structured_content) {
        (false, _) => parts.join("\n"),
        (true, Some(value)) => value.to_string(),
        (true, None) => "(the tool answered without a word)".to_owned(),
    }
}

fn part(block: ContentBlock) -> String {
    match block {
        ContentBlock::Text(text) => text.text,
        ContentBlock::Image(image) => data("image", &image.mime_type, &image.data),
        ContentBlock::Audio(audio) => data("audio", &audio.mime_type, &audio.data),
        ContentBlock::ResourceLink(link) => {
            let about = link.description.map(|about| format!(": {about}")).unwrap_or_default();
            format!("[resource {} ({}){about}]", link.uri, link.name)
        }
        ContentBlock::Resource(resource) => match resource.resource {
            ResourceContents::TextResourceContents { text, .. } => text,
            ResourceContents::BlobResourceContents { uri, mime_type, blob, .. } => {
                data(&format!("resource {uri}"), mime_type.as_deref().unwrap_or("of no kind"), &blob)
            }
            _ => UNKNOWN.to_owned(),
        },
        _ => UNKNOWN.to_owned(),
    }
}

/// Data in base64, named.
fn data(what: &str, kind: &str, base64: &str) -> String {
    let padding = base64.bytes().rev().take_while(|byte| *byte == b'=').count();
    let bytes = (base64.len() / 4 * 3).saturating_sub(padding);
    format!("[{what}: {kind}, {bytes} bytes, not shown]")
}

/// A text in a file that has no name, to be read from its beginning.
fn laid_down(text: &str) -> io::Result<ToolBody> {
    let mut file = tempfile::tempfile()?;
    file.write_all(text.as_bytes())?;
    file.rewind()?;
    Ok(ToolBody::File(file))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_the_server_and_the_tool_in_letters_that_every_provider_takes() {
        let mut names = Names::default();
        assert_eq!(names.give("github", "get_file_contents"), "github_get_file_contents");
        assert_eq!(names.give("my.files", "read/all-now"), "my_files_read_all-now");
        assert_eq!(names.give("s", "検索"), "s___");
    }

    #[test]
    fn a_name_that_is_too_long_is_cut_and_still_tells_two_tools_apart() {
        let mut names = Names::default();
        let (one, two) = (names.give("s", &"a".repeat(80)), names.give("s", &"a".repeat(81)));
        assert_ne!(one, two);
        assert_eq!((one.len(), two.len()), (LONGEST, LONGEST));
        assert_eq!(names.give("s", &"b".repeat(LONGEST - 2)).len(), LONGEST);
    }

    #[test]
    fn the_second_tool_of_a_name_gets_a_digest_and_the_first_one_keeps_it() {
        let mut names = Names::default();
        assert_eq!(names.give("a", "b_c"), "a_b_c");
        let second = names.give("a_b", "c");
        assert!(second.starts_with("a_b_c_") && second.len() == "a_b_c_".len() + 8, "{second}");
        assert_eq!(Names(["a_b_c".to_owned()].into()).give("a_b", "c"), second, "the same one every time");
        assert_ne!(names.give("s", "検索"), names.give("s", "検査"));
    }
}

#[cfg(test)]
mod shown_tests {
    use super::*;
    use std::time::Duration;

    fn server(how: McpTransport) -> McpServer {
        let second = Duration::from_secs(1);
        McpServer { name: "s".to_owned(), how, start: second, call: second, only: Vec::new() }
    }

    #[test]
    fn neither_debug_nor_an_error_shows_what_is_in_the_environment_or_the_headers() {
        let pair = |name: &str, value: &str| vec![(name.to_owned(), value.to_owned())];
        let by_command = server(McpTransport::Command {
            program: "p".to_owned(),
            args: vec!["--key=sesame-open".to_owned()],
            env: pair("API_KEY", "sesame-open"),
            folder: None,
            work: None,
            confinement: crate::sandbox::Confinement::default(),
        });
        let url = "https://ann:sesame-open@host/mcp?key=sesame-open#sesame-open".to_owned();
        let by_http =
            server(McpTransport::Http { url, headers: pair("Authorization", "Bearer sesame-open") });
        for server in [by_command, by_http] {
            let shown = format!("{server:?}");
            assert!(!shown.contains("sesame"), "{shown}");
            assert_eq!(server.hide("bad key: sesame-open!"), "bad key: ***!");
        }
    }

    #[test]
    fn the_address_and_the_names_of_headers_are_shown() {
        let headers = vec![("X-Team".to_owned(), "a".to_owned())];
        let shown = format!("{:?}", McpTransport::Http { url: "http://host:1/mcp?q".to_owned(), headers });
        assert_eq!(shown, r#"Http { url: "http://host:1/mcp", headers: ["X-Team"] }"#);
    }
}

#[cfg(test)]
mod words_tests {
    use super::*;
    use serde_json::{Value, json};

    fn read(result: Value) -> (String, bool) {
        let answer = answer(serde_json::from_value(result).unwrap());
        (io::read_to_string(answer.body.reader()).unwrap(), answer.is_error)
    }

    #[test]
    fn every_kind_of_content_becomes_words_in_its_order() {
        let content = json!([
            {"type": "text", "text": "こんにちは"},
            {"type": "image", "mimeType": "image/png", "data": "aGVsbG8="},
            {"type": "audio", "mimeType": "audio/wav", "data": "aGVsbG8h"},
            {"type": "resource", "resource": {"uri": "file:///a", "text": "inside"}},
            {"type": "resource", "resource": {"uri": "file:///b", "mimeType": "application/pdf", "blob": "aGVsbA=="}},
            {"type": "resource_link", "uri": "file:///c", "name": "c"},
        ]);
        let (text, is_error) = read(json!({"content": content, "structuredContent": {"not": "twice"}}));
        let wanted = "こんにちは\n[image: image/png, 5 bytes, not shown]\n[audio: audio/wav, 6 bytes, not shown]\ninside\n\
                      [resource file:///b: application/pdf, 4 bytes, not shown]\n[resource file:///c (c)]";
        assert_eq!((text.as_str(), is_error), (wanted, false));
    }

    #[test]
    fn structured_content_speaks_where_there_is_no_text() {
        let (text, is_error) = read(json!({"content": [], "structuredContent": {"a": [1]}, "isError": true}));
        assert_eq!((text.as_str(), is_error), (r#"{"a":[1]}"#, true));
        assert_eq!(read(json!({"content": []})).0, "(the tool answered without a word)");
    }

    #[test]
    fn a_long_answer_is_in_a_file_and_whole() {
        let long = "長い".repeat(LONG);
        let result = json!({"content": [{"type": "text", "text": long}], "isError": true});
        let answer = answer(serde_json::from_value(result.clone()).unwrap());
        assert!(matches!(answer.body, ToolBody::File(_)));
        assert_eq!(read(result), (long, true));
    }
}
