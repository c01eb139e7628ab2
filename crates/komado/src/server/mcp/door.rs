//! The protocol's side: lists, calls, and who is asking.

use super::{prompt, resource, tool};
use crate::fault::Fault;
use http::request::Parts;
use komado_ops::{Caller, Context, Naming};
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, ErrorCode, GetPromptRequestParams,
    GetPromptResponse, GetPromptResult, Implementation, ListPromptsResult, ListResourceTemplatesResult,
    ListResourcesResult, ListToolsResult, PaginatedRequestParams, PromptMessage, ReadResourceRequestParams,
    ReadResourceResponse, ReadResourceResult, Role, ServerCapabilities, ServerConfig,
};
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer, ServerHandler};

/// Names the session that calls of a request are about.
const HEADER: &str = "x-komado-session";

/// What a client is told about this server.
const ABOUT: &str = "Komado keeps the whole conversation of an agent on disk, in sessions, and a part of it in the model's \
window. Use `recall` to find again what was said or printed, `tool_output_cache` to read it in full, `context` to see how \
full the window is, and `pin`, `condense`, `rewind` and `revert` to change what the model sees. Nothing is ever removed.";

/// One client's way in.
#[derive(Clone)]
pub(crate) struct Door {
    /// Settings, store and engine.
    operations: Context,
    /// Who asks, where no gate says so for each request.
    owner: Option<Caller>,
    named: Option<String>,
}

impl Door {
    /// For whoever started the process: everything may be seen. `named` is the session when a call names none.
    pub(crate) fn owned(operations: Context, named: Option<String>) -> Self {
        Self { operations, owner: Some(Caller::owner()), named }
    }

    /// For requests that came through the gate, each with its guest.
    pub(crate) fn guarded(operations: Context) -> Self {
        Self { operations, owner: None, named: None }
    }

    /// What operations run in for the caller of a request.
    fn context(&self, request: &RequestContext<RoleServer>) -> Result<Context, ErrorData> {
        let parts = request.extensions.get::<Parts>();
        let caller = self.owner.clone().or_else(|| parts?.extensions.get::<Caller>().cloned());
        // A request that no gate has looked at is refused.
        let caller = caller.ok_or_else(|| ErrorData::invalid_request("who is asking is not known", None))?;
        let header = parts.and_then(|parts| parts.headers.get(HEADER)?.to_str().ok().map(str::to_owned));
        let default = header.or_else(|| self.named.clone());
        Ok(self.operations.of(caller, Naming::Prefix { default }))
    }

    /// Does the work where it may block.
    async fn run<T: Send + 'static>(
        &self,
        request: &RequestContext<RoleServer>,
        work: impl FnOnce(&Context) -> Result<T, Fault> + Send + 'static,
    ) -> Result<Result<T, Fault>, ErrorData> {
        let context = self.context(request)?;
        let done = tokio::task::spawn_blocking(move || work(&context)).await;
        done.map_err(|error| ErrorData::internal_error(format!("the call broke off: {error}"), None))
    }
}

/// What was named is not there, or was named wrongly.
fn refused(fault: &Fault) -> ErrorData {
    ErrorData::invalid_params(fault.message().to_owned(), None)
}

impl ServerHandler for Door {
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
        Ok(ListToolsResult::with_all_items(tool::all()))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let given = request.arguments.unwrap_or_default();
        let Some(row) = tool::find(&request.name) else {
            let why = format!("there is no tool {:?}; tools/list has them all", request.name);
            return Err(ErrorData::new(ErrorCode::INVALID_PARAMS, why, None));
        };
        let answer = self.run(&context, move |context| tool::call(row, given, context)).await?;
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
        Ok(ListPromptsResult::with_all_items(prompt::all()))
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        let given = request.arguments.unwrap_or_default();
        let said = self.run(&context, move |context| prompt::say(context, &request.name, &given)).await?;
        let text = said.map_err(|fault| refused(&fault))?;
        Ok(GetPromptResult::new(vec![PromptMessage::new_text(Role::User, text)]).into())
    }
}
