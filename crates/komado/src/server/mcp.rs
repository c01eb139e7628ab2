//! The MCP server: over standard input and output, and over HTTP at `/mcp`.
//!
//! Every tool is an operation: its name, its description and the schema of its arguments are those of the type, so nothing
//! is decided here a second time. Over HTTP no protocol session is kept: each request brings its own key, and a server that was
//! started again goes on where it was. What a caller may not see is not there.

mod resource;

use super::ServerState;
use axum::Router;
use http::request::Parts;
use komado_ops::{
    ApiCaller, Effect, FaultKind, Missing, Naming, OpFault, OpResult, OperationContext, OperationRow,
    ResultReader,
};
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, ErrorCode, GetPromptRequestParams,
    GetPromptResponse, GetPromptResult, Implementation, JsonObject, ListPromptsResult,
    ListResourceTemplatesResult, ListResourcesResult, ListToolsResult, PaginatedRequestParams, Prompt,
    PromptArgument, PromptMessage, ReadResourceRequestParams, ReadResourceResponse, ReadResourceResult, Role,
    ServerCapabilities, ServerConfig, Tool, ToolAnnotations,
};
use rmcp::service::RequestContext;
use rmcp::transport::streamable_http_server::session::never::NeverSessionManager;
use rmcp::transport::{StreamableHttpServerConfig, StreamableHttpService};
use rmcp::{ErrorData, RoleServer, ServerHandler};
use schemars::generate::SchemaSettings;
use serde_json::{Value, json};
use std::sync::Arc;

/// Where it is.
const PATH: &str = "/mcp";

/// The largest request: what a tool printed may be appended through it.
const MOST_BYTES: usize = 32 << 20;

/// Its routes.
pub(crate) fn routes(house: &Arc<ServerState>) -> Router<Arc<ServerState>> {
    // The gate has looked at who calls, and under which name, before a request comes here.
    let settings = StreamableHttpServerConfig::default()
        .with_legacy_session_mode(false)
        .with_json_response(true)
        .with_max_request_body_bytes(MOST_BYTES)
        .with_cancellation_token(house.stop.clone())
        .disable_allowed_hosts();
    let context = house.context.clone();
    let door = move || Ok(McpHandler::guarded(context.clone()));
    let served = StreamableHttpService::new(door, Arc::new(NeverSessionManager::default()), settings);
    Router::new().route_service(PATH, served)
}

/// Names the session that calls of a request are about.
const HEADER: &str = "x-komado-session";

/// What a client is told about this server.
const ABOUT: &str = "Komado keeps the whole conversation of an agent on disk, in sessions, and a part of it in the model's \
window. Use `recall` to find again what was said or printed, `tool_output_cache` to read it in full, `context` to see how \
full the window is, and `pin`, `condense`, `rewind` and `revert` to change what the model sees. Nothing is ever removed.";

/// One client's way in.
#[derive(Clone)]
pub(crate) struct McpHandler {
    /// Settings, store and engine.
    operations: OperationContext,
    /// Who asks, where no gate says so for each request.
    owner: Option<ApiCaller>,
    named: Option<String>,
}

impl McpHandler {
    /// For the user who started the process, and may see everything. `named` is the session when a call names none.
    pub(crate) fn owned(operations: OperationContext, named: Option<String>) -> Self {
        Self { operations, owner: Some(ApiCaller::owner()), named }
    }

    /// For requests that came through the gate, each with its caller.
    pub(crate) fn guarded(operations: OperationContext) -> Self {
        Self { operations, owner: None, named: None }
    }

    /// What operations run in for the caller of a request.
    fn context(&self, request: &RequestContext<RoleServer>) -> Result<OperationContext, ErrorData> {
        let parts = request.extensions.get::<Parts>();
        let caller = self.owner.clone().or_else(|| parts?.extensions.get::<ApiCaller>().cloned());
        // A request that no gate has looked at is refused.
        let caller = caller.ok_or_else(|| ErrorData::invalid_request("who is asking is not known", None))?;
        let header = parts.and_then(|parts| super::of_header(parts.headers.get(HEADER)?));
        let default = header.or_else(|| self.named.clone());
        Ok(self.operations.of(caller, Naming::Prefix { default }))
    }

    /// Does the work where it may block.
    async fn run<T: Send + 'static>(
        &self,
        request: &RequestContext<RoleServer>,
        work: impl FnOnce(&OperationContext) -> Result<T, OpFault> + Send + 'static,
    ) -> Result<Result<T, OpFault>, ErrorData> {
        let context = self.context(request)?;
        let done = tokio::task::spawn_blocking(move || work(&context)).await;
        done.map_err(|error| ErrorData::internal_error(format!("the call broke off: {error}"), None))
    }
}

/// What was named is not there, or was named wrongly.
fn refused(fault: &OpFault) -> ErrorData {
    ErrorData::invalid_params(fault.message().to_owned(), None)
}

impl ServerHandler for McpHandler {
    fn get_info(&self) -> ServerConfig {
        let able = ServerCapabilities::builder().enable_tools().enable_resources().enable_prompts().build();
        let name = Implementation::new("komado", env!("CARGO_PKG_VERSION")).with_title("Komado");
        ServerConfig::new(able).with_server_info(name).with_instructions(ABOUT)
    }

    async fn list_tools(
        &self,
        _page: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult::with_all_items(tools()))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let given = request.arguments.unwrap_or_default();
        let Some(row) = find(&request.name) else {
            let why = format!("there is no tool {:?}; tools/list has them all", request.name);
            return Err(ErrorData::new(ErrorCode::INVALID_PARAMS, why, None));
        };
        let answer = self.run(&context, move |context| call(row, given, context)).await?;
        let result = match answer {
            Ok(answer) => {
                let mut result = CallToolResult::success(vec![ContentBlock::text(answer.text)]);
                result.structured_content = Some(answer.value);
                result
            }
            Err(fault) => CallToolResult::error(vec![ContentBlock::text(fault.message())]),
        };
        Ok(result.into())
    }

    async fn list_resources(
        &self,
        page: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        let cursor = page.and_then(|page| page.cursor);
        let listed = self.run(&context, move |context| resource::list(context, cursor.as_deref())).await?;
        let (items, next) = listed.map_err(|fault| refused(&fault))?;
        let mut result = ListResourcesResult::with_all_items(items);
        result.next_cursor = next;
        Ok(result)
    }

    async fn list_resource_templates(
        &self,
        _page: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        Ok(ListResourceTemplatesResult::with_all_items(resource::templates()))
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let read = self.run(&context, move |context| resource::read(context, &request.uri)).await?;
        match read {
            Ok(contents) => Ok(ReadResourceResult::new(vec![contents]).into()),
            Err(fault) => Err(ErrorData::resource_not_found(fault.message().to_owned(), None)),
        }
    }

    async fn list_prompts(
        &self,
        _page: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        Ok(ListPromptsResult::with_all_items(prompts()))
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        let given = request.arguments.unwrap_or_default();
        let said = self.run(&context, move |context| say(context, &request.name, &given)).await?;
        let text = said.map_err(|fault| refused(&fault))?;
        Ok(GetPromptResult::new(vec![PromptMessage::new_text(Role::User, text)]).into())
    }
}

/// What a tool gives back: words, and the same for programs.
#[derive(Clone, PartialEq, Debug)]
struct McpAnswer {
    /// For people and models.
    text: String,
    /// For programs: always an object.
    value: Value,
}

/// The operations that are offered as tools.
fn operations() -> impl Iterator<Item = &'static OperationRow> {
    komado_ops::ALL.iter().filter(|row| row.interfaces.mcp.is_ok())
}

/// Every tool.
fn tools() -> Vec<Tool> {
    operations().map(described).collect()
}

/// The tool of a name.
fn find(name: &str) -> Option<&'static OperationRow> {
    operations().find(|row| row.name == name)
}

/// An operation as a tool: its schema is that of its type, and what it does to a session is told as hints.
fn described(row: &OperationRow) -> Tool {
    let settings = SchemaSettings::draft2020_12().with(|settings| settings.inline_subschemas = true);
    let mut schema = (row.request)(&mut settings.into_generator()).to_value();
    let Some(fields) = schema.as_object_mut() else { return Tool::default() };
    fields.remove("title");
    fields.remove("description");
    fields.insert("additionalProperties".to_owned(), Value::Bool(false));
    let reads = row.effect == Effect::Read;
    let hints = ToolAnnotations::with_title(row.title)
        .read_only(reads)
        .destructive(matches!(row.effect, Effect::Edit | Effect::Settle | Effect::Remove))
        .idempotent(reads || row.effect == Effect::Settle)
        .open_world(false);
    Tool::new(row.name, row.about(), fields.clone()).with_title(row.title).with_annotations(hints)
}

/// Calls a tool.
fn call(row: &OperationRow, given: JsonObject, context: &OperationContext) -> OpResult<McpAnswer> {
    let answer = row
        .call(given.into(), context, ResultReader::Model, |_| Ok(None))
        .map_err(|fault| told(row, fault))?;
    let value: Value = serde_json::from_str(&answer.json)?;
    Ok(McpAnswer { text: answer.text.unwrap_or(answer.json), value })
}

/// A failure in the words of this interface.
fn told(row: &OperationRow, fault: OpFault) -> OpFault {
    match (fault.what_is_missing(), fault.exit()) {
        (Some(Missing::Session { .. }), _) => fault.and("`sessions` lists them".to_owned()),
        (_, FaultKind::Malformed) => {
            OpFault::input(format!("invalid arguments for {}: {}", row.name, fault.message()))
        }
        _ => fault,
    }
}

/// The prompt that takes up an old thread.
const RESUME: &str = "resume";

/// Entries that it quotes.
const ENTRIES: u32 = 20;

/// The prompts there are.
fn prompts() -> Vec<Prompt> {
    let argument = |name: &str, about: &str| PromptArgument::new(name).with_description(about);
    let arguments = vec![
        argument("session", "The session or its address; not needed when only one can be meant"),
        argument("thread", "The thread; the root when left out"),
    ];
    let about = "Go on with a session: what fills its window, its last entries, and how to find the rest";
    vec![Prompt::new(RESUME, Some(about), Some(arguments)).with_title("Go on with a session")]
}

/// The words of a prompt.
fn say(context: &OperationContext, name: &str, given: &JsonObject) -> OpResult<String> {
    if name != RESUME {
        return Err(OpFault::new(
            FaultKind::NotFound,
            format!("there is no prompt {name:?}; there is {RESUME:?}"),
        ));
    }
    let window = run(context, "context", given.clone())?;
    let mut asked = given.clone();
    asked.insert("limit".to_owned(), json!(ENTRIES));
    let log = run(context, "log", asked)?;
    let word = |name: &str| log.value[name].as_str().unwrap_or_default().to_owned();
    let (session, thread) = (word("session"), word("thread"));
    Ok(format!(
        "Go on with the work of session {session}, thread {thread}.\n\nIts window:\n{}\n\nIts last entries:\n{}\n\n\
         Everything that was ever said in it can be found with the tool `recall` and read in full with \
         `tool_output_cache` (ref_id \"@NUMBER\"). Say in a few sentences where the work stands and what comes next, \
         then go on.",
        window.text, log.text
    ))
}

/// Calls the tool of a name.
fn run(context: &OperationContext, name: &str, given: JsonObject) -> OpResult<McpAnswer> {
    let tool = find(name).ok_or_else(|| OpFault::usage(format!("there is no tool {name:?}")))?;
    call(tool, given, context)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::app::{App, GlobalOptions};
    use komado_ops::task::AddTask;
    use komado_ops::{ApiCaller, Naming};
    use serde_json::json;
    use std::collections::{BTreeSet, HashSet};

    #[test]
    fn every_schema_is_strict_and_every_argument_is_explained() {
        let mut names = HashSet::new();
        for tool in tools() {
            assert!(names.insert(tool.name.clone()), "{} is there twice", tool.name);
            assert!(find(&tool.name).is_some());
            assert_eq!(tool.input_schema["type"], "object", "{}", tool.name);
            assert_eq!(tool.input_schema["additionalProperties"], false, "{}", tool.name);
            let about = tool.description.as_deref().unwrap_or_default();
            assert!((20..400).contains(&about.len()), "{}: {about}", tool.name);
            for (field, schema) in tool.input_schema["properties"].as_object().unwrap() {
                let about = schema["description"].as_str().unwrap_or_default();
                assert!(!about.is_empty(), "{}.{field} is not explained", tool.name);
            }
        }
    }

    #[test]
    fn what_changes_nothing_says_so_and_nothing_else_does() {
        let hints = |tool: &Tool| tool.annotations.clone().unwrap();
        let tools = tools();
        let reads = tools.iter().filter(|tool| hints(tool).read_only_hint == Some(true));
        let reads: BTreeSet<&str> = reads.map(|tool| tool.name.as_ref()).collect();
        let outputs = ["tool_output_cache", "tool_output_cache_grep", "tool_output_cache_line"];
        let others = ["recall", "context", "log", "show", "sessions", "threads", "task", "tasks"];
        assert_eq!(reads, outputs.into_iter().chain(others).collect());
        assert!(tools.iter().all(|tool| hints(tool).open_world_hint == Some(false)));
    }

    #[test]
    fn a_session_of_one_guest_is_not_there_for_another_whatever_the_tool() {
        let dir = tempfile::tempdir().unwrap();
        let app = app(dir.path());
        let of = |caller: ApiCaller| app.context.of(caller, Naming::Prefix { default: None });
        let user = |user: &str| ApiCaller {
            key: Some(user.into()),
            user: Some(user.into()),
            ..ApiCaller::default()
        };
        let (ann, bob) = (of(user("ann")), of(user("bob")));
        let run = |context: &OperationContext, name: &str, given: Value| {
            call(find(name).unwrap(), given.as_object().unwrap().clone(), context)
        };
        assert!(run(&ann, "new", json!({ "user": "bob", "window": 4000 })).is_err());
        let made = run(&ann, "new", json!({ "window": 4000 })).unwrap();
        let hers = made.value["session"].as_str().unwrap().to_owned();
        run(&ann, "append", json!({ "session": hers, "text": "the secret is 合言葉" })).unwrap();
        for tool in tools() {
            let mut given = plausible(&tool);
            if given.contains_key("session") {
                given.insert("session".into(), json!(hers));
            }
            let said = call(find(&tool.name).unwrap(), given, &bob);
            let text = match &said {
                Ok(answer) => format!("{} {}", answer.text, answer.value),
                Err(fault) => fault.message().to_owned(),
            };
            assert!(!text.contains("合言葉"), "{}: {text}", tool.name);
            match tool.name.as_ref() {
                "task" => assert!(said.is_err() && text.contains("there is no task"), "{text}"),
                "new" | "sessions" | "tasks" => assert!(!text.contains(&hers), "{}: {text}", tool.name),
                _ => assert!(said.is_err() && text.contains("there is no session"), "{}: {text}", tool.name),
            }
        }
        let wide = run(&bob, "recall", json!({ "query": "secret" })).unwrap();
        assert_eq!(wide.value["items"], json!([]));
        assert_eq!(run(&ann, "recall", json!({ "query": "secret" })).unwrap().value["items"][0]["seq"], 1);
        // A session that the key lists is searched, too, with a user of one's own or without.
        for user in [Some("bob".to_owned()), None] {
            let sessions = vec!["gone".into(), hers.clone()];
            let listed = of(ApiCaller { user, sessions, ..bob.caller.clone() });
            let wide = run(&listed, "recall", json!({ "query": "secret" })).unwrap();
            assert_eq!(wide.value["items"].as_array().unwrap().len(), 1);
            assert_eq!(wide.value["items"][0]["session"], hers);
        }
        for uri in ["", "/journal", "/thread/root"] {
            assert!(resource::read(&bob, &format!("komado://session/{hers}{uri}")).is_err(), "{uri}");
            assert!(resource::read(&ann, &format!("komado://session/{hers}{uri}")).is_ok(), "{uri}");
        }
        let (listed, _) = resource::list(&bob, None).unwrap();
        assert!(!listed.iter().any(|one| one.uri.contains(&hers)));
        let given = json!({ "session": hers }).as_object().unwrap().clone();
        assert!(say(&bob, "resume", &given).is_err());
        assert!(say(&ann, "resume", &given).unwrap().contains("合言葉"));
    }

    #[test]
    fn tasks_are_read_by_those_who_see_their_sessions_and_no_tool_changes_one() {
        let dir = tempfile::tempdir().unwrap();
        let app = app(dir.path());
        let of = |user: &str| {
            let caller =
                ApiCaller { key: Some(user.into()), user: Some(user.into()), ..ApiCaller::default() };
            app.context.of(caller, Naming::Prefix { default: None })
        };
        let add =
            AddTask {
                text: "the secret is 合言葉".into(), user: Some("ann".into()), ..AddTask::default()
            };
        let hers = app.context.run(add).unwrap().session;
        let run = |context: &OperationContext, name: &str, given: Value| {
            call(find(name).unwrap(), given.as_object().unwrap().clone(), context)
        };
        let listed = run(&of("ann"), "tasks", json!({})).unwrap();
        assert!(listed.text.starts_with(&format!("{hers} queued")), "{}", listed.text);
        let shown = run(&of("ann"), "task", json!({ "task": hers[..8] })).unwrap().value;
        assert_eq!((&shown["state"], &shown["text"]), (&json!("queued"), &json!("the secret is 合言葉")));
        assert_eq!(shown.get("folder"), None, "where things lie is told to no key");
        assert_eq!(run(&of("bob"), "tasks", json!({ "all": true })).unwrap().text, "no tasks");
        let why = run(&of("bob"), "task", json!({ "task": hers })).unwrap_err();
        assert!(why.message().contains("there is no task"), "{}", why.message());
        assert!(["task_add", "task_stop", "task_retry"].iter().all(|name| find(name).is_none()));
    }

    fn app(base: &std::path::Path) -> App {
        let options =
            GlobalOptions { json: false, base_dir: Some(base.to_owned()), config: None, set: Vec::new() };
        App::new(&options).unwrap()
    }

    /// Arguments that a schema takes: what is required, and a session where there can be one.
    fn plausible(tool: &Tool) -> JsonObject {
        let empty = Vec::new();
        let required = tool.input_schema.get("required").and_then(Value::as_array).unwrap_or(&empty);
        let mut given: JsonObject = required
            .iter()
            .map(|name| {
                let name = name.as_str().unwrap();
                let kind = &tool.input_schema["properties"][name]["type"];
                (name.to_owned(), if kind == "integer" { json!(1) } else { json!("root") })
            })
            .collect();
        if tool.input_schema["properties"].get("session").is_some() {
            given.insert("session".into(), Value::Null);
        }
        given
    }
}
