//! The document of the API: OpenAPI 3.1, made from the handlers themselves.
//!
//! What holds for every operation (the problems it may answer, the keys it asks for, the headers for conditional calls) is
//! laid over all of them here, once. The same document says which parameters a route knows; any other is refused.

use super::problem::{PROBLEM_JSON, Problem};
use super::report;
use axum::extract::{MatchedPath, Request};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use http::StatusCode;
use http::header::ACCEPT;
use komado_ops::stream::Form;
use komado_ops::{Method, Route as Path, Row};
use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, SchemaGenerator};
use serde_json::{Map, Value, json};
use std::collections::HashMap;
use std::sync::Arc;
use utoipa::OpenApi;

/// What stands at the top.
#[derive(OpenApi)]
#[openapi(
    info(title = "Komado", description = "The context engine for LLM agents: sessions, threads, journals and views over HTTP.",
        license(name = "MIT OR Apache-2.0", identifier = "MIT OR Apache-2.0")),
    components(schemas(super::shape::Problem)),
    tags(
        (name = "sessions", description = "Make, list, end and move sessions"),
        (name = "users", description = "Standing sessions, what was said lately, habits"),
        (name = "threads", description = "Windows inside the window, and forks"),
        (name = "journal", description = "What was said, for good"),
        (name = "view", description = "What the model sees, and what changes that"),
        (name = "outputs", description = "What was too long to be shown"),
        (name = "recall", description = "Find again what was said"),
        (name = "tasks", description = "What waits in the queue, what is worked on, and what became of it"),
        (name = "report", description = "What happened in many sessions"),
        (name = "events", description = "What happens, as it happens"),
        (name = "models", description = "What is known about models"),
    )
)]
pub(super) struct Top;

/// The path under which all routes are.
pub(super) const ROOT: &str = "/api/v1";
/// Where schemas are in the document.
const COMPONENTS: &str = "#/components/schemas";

/// The methods an operation may have.
const METHODS: [&str; 4] = ["get", "post", "put", "delete"];

/// The document as it is served.
pub(super) fn finish(document: &utoipa::openapi::OpenApi, rows: &[Row]) -> Value {
    let mut document = serde_json::to_value(document).unwrap_or_default();
    describe(&mut document, rows);
    if let Some(paths) = document["paths"].as_object_mut() {
        for (path, item) in paths {
            for method in METHODS {
                if let Some(operation) = item.get_mut(method) {
                    operate(path, method, operation);
                }
            }
        }
    }
    bound(&mut document);
    document["components"]["securitySchemes"] = json!({
        "bearer": { "type": "http", "scheme": "bearer", "description": "A key of `komado key add`" },
        "key": { "type": "apiKey", "in": "header", "name": "x-komado-key" },
    });
    document["security"] = json!([{}, { "bearer": [] }, { "key": [] }]);
    document
}

/// Adds the routes of operations, with the schemas of their types.
fn describe(document: &mut Value, rows: &[Row]) {
    let settings =
        SchemaSettings::draft2020_12().with(|settings| settings.definitions_path = COMPONENTS.into());
    let mut generator = settings.into_generator();
    for row in rows {
        if let Some(route) = row.interfaces.http.get() {
            let path = format!("{ROOT}{}", route.path);
            document["paths"][path][route.method.name()] = operation(row, &route, &mut generator);
        }
    }
    for (name, schema) in generator.take_definitions(true) {
        document["components"]["schemas"][name] = schema;
    }
}

/// An operation: names in its path, the rest of its request as parameters or as a body, and what it answers.
fn operation(row: &Row, route: &Path, generator: &mut SchemaGenerator) -> Value {
    let mut request = (row.request)(generator).to_value();
    let about = request["description"].as_str().unwrap_or(row.title).replace('\n', " ");
    let mut required: Vec<String> = serde_json::from_value(request["required"].take()).unwrap_or_default();
    let mut fields = match request["properties"].take() {
        Value::Object(fields) => fields,
        _ => Map::new(),
    };
    if route.has_forms {
        let shown = report::Shown::json_schema(generator).to_value();
        fields.extend(shown["properties"].as_object().cloned().unwrap_or_default());
    }
    let names: Vec<String> = fields.keys().filter(|name| is_in_path(route, name)).cloned().collect();
    required.retain(|name| !names.contains(name));
    let mut parameters: Vec<Value> = Vec::new();
    for name in &names {
        parameters.push(parameter("path", name, true, fields.remove(name).unwrap_or_default()));
    }
    let mut response = json!({ "description": row.title });
    if route.status != 204 {
        let schema = (row.output)(generator).to_value();
        let media = match row.form {
            Some(Form::Bytes(media)) => media,
            Some(Form::Object) | None => "application/json",
        };
        response["content"] = json!({ media: { "schema": schema } });
        for media in report::MEDIA.iter().filter(|_| route.has_forms) {
            response["content"][media] = json!({ "schema": { "type": "string" } });
        }
    }
    let mut said = json!({
        "operationId": row.name,
        "summary": row.title,
        "description": about,
        "tags": [route.group],
        "responses": { route.status.to_string(): response },
    });
    if route.may_be_there {
        said["responses"]["200"] = said["responses"][route.status.to_string()].clone();
    }
    let has_body = matches!(route.method, Method::Post | Method::Put) && !fields.is_empty();
    if has_body {
        let is_needed = !required.is_empty();
        let example: Map<String, Value> = required
            .iter()
            .filter_map(|name| Some((name.clone(), fields.get(name)?.pointer("/examples/0")?.clone())))
            .collect();
        let example = request.pointer("/examples/0").cloned().unwrap_or(Value::Object(example));
        let mut body = json!({ "type": "object", "properties": fields, "additionalProperties": false });
        if is_needed {
            body["required"] = json!(required);
        }
        said["requestBody"] = json!({ "required": is_needed, "content": { "application/json": { "schema": body, "example": example } } });
    } else {
        let rest = fields.into_iter().map(|(name, schema)| {
            let is_needed = required.contains(&name);
            parameter("query", &name, is_needed, schema)
        });
        parameters.extend(rest);
    }
    let told = |about: &str| json!({ "description": about, "schema": { "type": "string" } });
    let headers = match (route.has_tag, route.status) {
        (true, _) => json!({ "etag": told("Which moment it is of") }),
        (_, 201) => json!({ "location": told("What was made") }),
        _ => Value::Null,
    };
    if !headers.is_null() {
        said["responses"][route.status.to_string()]["headers"] = headers;
    }
    if route.is_once {
        let mut key =
            header("idempotency-key", "Names this call, so that it is done once, also over a crash");
        key["schema"] = json!({ "type": "string", "minLength": 1, "maxLength": 255 });
        parameters.push(key);
    }
    said["parameters"] = json!(parameters);
    said
}

/// True for a field that stands in the path.
pub(super) fn is_in_path(route: &Path, name: &str) -> bool {
    route
        .path
        .split('/')
        .any(|part| part.strip_prefix('{').and_then(|part| part.strip_suffix('}')) == Some(name))
}

fn parameter(place: &str, name: &str, is_needed: bool, mut schema: Value) -> Value {
    let about = schema.as_object_mut().and_then(|schema| schema.remove("description")).unwrap_or_default();
    let mut parameter =
        json!({ "name": name, "in": place, "required": is_needed, "description": about, "schema": schema });
    if place == "path" {
        say_once(&mut parameter);
    }
    parameter
}

/// What holds for every operation.
fn operate(path: &str, method: &str, operation: &mut Value) {
    let is_write = method != "get";
    let has_body = operation.get("requestBody").is_some();
    let is_tagged = operation.pointer("/responses/200/headers/etag").is_some();
    let mut statuses = vec![400, 401, 403, 404, 405, 406, 409, 422, 429, 500, 503];
    if is_write {
        statuses.push(412);
    }
    if has_body {
        statuses.extend([408, 413, 415]);
    }
    for status in statuses {
        let reason = StatusCode::from_u16(status).ok().and_then(|status| status.canonical_reason());
        operation["responses"][status.to_string()] = json!({
            "description": reason.unwrap_or("Problem"),
            "content": { PROBLEM_JSON: { "schema": { "$ref": "#/components/schemas/Problem" } } },
        });
    }
    if is_tagged {
        operation["responses"]["304"] = json!({ "description": "Not Modified: you have it" });
    }
    let mut parameters = operation["parameters"].as_array().cloned().unwrap_or_default();
    if is_tagged {
        parameters.push(header("if-none-match", "An ETag you have; 304 when it is still that"));
    }
    if is_write && path.contains("{session}") {
        parameters.push(header("if-match", "An ETag you have read; 412 when it is no longer that"));
    }
    if path.ends_with("/events") && path.contains("{session}") {
        parameters.push(header("last-event-id", "The id of the last event you heard"));
    }
    parameters.iter_mut().filter(|parameter| parameter["in"] != "path").for_each(say_once);
    operation["parameters"] = json!(parameters);
}

fn header(name: &str, description: &str) -> Value {
    json!({ "name": name, "in": "header", "required": false, "description": description, "schema": { "type": "string" } })
}

/// A parameter that is left out is left out: there is no null in a URL.
fn say_once(parameter: &mut Value) {
    let schema = &mut parameter["schema"];
    if let Some(types) = schema["type"].as_array() {
        let types: Vec<Value> = types.iter().filter(|one| **one != "null").cloned().collect();
        if let [only] = &types[..] {
            schema["type"] = only.clone();
        }
    }
    for key in ["oneOf", "anyOf"] {
        if let Some(choices) = schema[key].as_array() {
            let mut rest = choices.iter().filter(|choice| choice["type"] != "null").cloned();
            if let (Some(only), None) = (rest.next(), rest.next()) {
                parameter["schema"] = only;
                return;
            }
        }
    }
    clean(schema);
}

/// Looking a field up in an object must not have left a null in it.
fn clean(schema: &mut Value) {
    if let Value::Object(fields) = schema {
        fields.retain(|_, value| !value.is_null());
    }
}

/// No number here is below zero, and each has an end.
fn bound(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            let (format, most) = match fields.get("format").and_then(Value::as_str) {
                Some("int32") => (json!("uint32"), json!(u32::MAX)),
                Some("int64") => (json!("uint64"), json!(u64::MAX)),
                _ => (Value::Null, Value::Null),
            };
            if !format.is_null() {
                fields.insert("format".to_owned(), format);
                fields.entry("maximum").or_insert(most);
            }
            fields.values_mut().for_each(bound);
        }
        Value::Array(items) => items.iter_mut().for_each(bound),
        _ => {}
    }
}

/// What each route knows: its parameters, and what it answers in.
#[derive(Default)]
pub(super) struct Table {
    routes: HashMap<(String, String), Route>,
}

#[derive(Default)]
struct Route {
    parameters: Vec<String>,
    answers: Vec<String>,
}

impl Table {
    /// From the document.
    pub(super) fn of(document: &Value) -> Self {
        let mut routes = HashMap::new();
        for (path, item) in document["paths"].as_object().into_iter().flatten() {
            for (method, operation) in item.as_object().into_iter().flatten() {
                routes.insert((method.to_uppercase(), path.clone()), Route::of(operation));
            }
        }
        Self { routes }
    }

    fn check(&self, request: &Request) -> Result<(), Problem> {
        let Some(path) = request.extensions().get::<MatchedPath>() else { return Ok(()) };
        let method = if request.method() == "HEAD" { "GET" } else { request.method().as_str() };
        let Some(route) = self.routes.get(&(method.to_owned(), path.as_str().to_owned())) else {
            return Ok(());
        };
        let query = request.uri().query().unwrap_or_default();
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            let name = pair.split('=').next().unwrap_or(pair);
            if !route.parameters.iter().any(|known| known == name) {
                let known = match &route.parameters[..] {
                    [] => "this takes none".to_owned(),
                    some => format!("known are {}", some.join(", ")),
                };
                return Err(Problem::bad(format!("unknown parameter: {name:?}; {known}")));
            }
        }
        let accept = request.headers().get_all(ACCEPT).iter().filter_map(|value| value.to_str().ok());
        let accept = accept.collect::<Vec<_>>().join(",");
        if accept.trim().is_empty() || route.answers.iter().any(|answer| accepts(&accept, answer)) {
            return Ok(());
        }
        let answers = route.answers.join(" or ");
        Err(Problem::new(
            StatusCode::NOT_ACCEPTABLE,
            format!("accept is {accept:?}; this answers in {answers}"),
        ))
    }
}

impl Route {
    fn of(operation: &Value) -> Self {
        let parameters = operation["parameters"].as_array().into_iter().flatten();
        let parameters = parameters.filter(|one| one["in"] == "query").filter_map(|one| one["name"].as_str());
        let fine = |status: &String| status.starts_with('2');
        let responses: Option<&Map<String, Value>> = operation["responses"].as_object();
        let contents = responses.into_iter().flatten().filter(|(status, _)| fine(status));
        let contents = contents.filter_map(|(_, response)| response["content"].as_object());
        let mut answers: Vec<String> = contents.flat_map(|content| content.keys().cloned()).collect();
        if answers.is_empty() {
            answers.push("application/json".to_owned());
        }
        Self { parameters: parameters.map(str::to_owned).collect(), answers }
    }
}

/// True when an Accept header takes a media type.
fn accepts(accept: &str, media: &str) -> bool {
    let (main, _) = media.split_once('/').unwrap_or((media, ""));
    accept.split(',').any(|one| {
        let mut parts = one.split(';').map(str::trim);
        let range = parts.next().unwrap_or_default();
        let refused = parts.any(|part| part.replace(' ', "") == "q=0");
        !refused && (range == "*/*" || range.eq_ignore_ascii_case(media) || range == format!("{main}/*"))
    })
}

/// Refuses parameters that no route knows, and answers that nobody takes.
pub(super) async fn known(
    axum::Extension(table): axum::Extension<Arc<Table>>,
    request: Request,
    next: Next,
) -> Response {
    match table.check(&request) {
        Ok(()) => next.run(request).await,
        Err(problem) => problem.into_response(),
    }
}
