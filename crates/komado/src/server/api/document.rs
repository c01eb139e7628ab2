//! The document of the API: OpenAPI 3.1, made from the types of the operations.
//!
//! What holds for every operation (the problems it may answer, the keys it asks for, the headers for conditional calls) is
//! said here, once. The same types say which parameters a route knows; any other is refused.

use super::response::{ApiProblem, PROBLEM_JSON, ProblemBody};
use super::{MEDIA, ReportParameters};
use axum::extract::Request;
use http::StatusCode;
use http::header::ACCEPT;
use komado_ops::stream::StreamForm;
use komado_ops::{HttpMethod, OperationRow, Route as Path};
use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, SchemaGenerator};
use serde_json::{Map, Value, json};

/// The path under which all routes are.
pub(super) const ROOT: &str = "/api/v1";
/// Where schemas are in the document.
const COMPONENTS: &str = "#/components/schemas";
/// Statuses of problems that any operation may answer.
const PROBLEMS: [u16; 11] = [400, 401, 403, 404, 405, 406, 409, 422, 429, 500, 503];

/// Fields that name a session or a thread; over HTTP in full.
const NAMES: [&str; 2] = ["session", "thread"];

/// Groups of operations.
const GROUPS: [(&str, &str); 11] = [
    ("sessions", "Make, list, end and move sessions"),
    ("users", "Standing sessions, what was said lately, habits"),
    ("threads", "Windows inside the window, and forks"),
    ("journal", "What was said, for good"),
    ("view", "What the model sees, and what changes that"),
    ("outputs", "What was too long to be shown"),
    ("recall", "Search everything that was said"),
    ("tasks", "What waits in the queue, what is worked on, and what became of it"),
    ("report", "What happened in many sessions"),
    ("events", "What happens, as it happens"),
    ("models", "What is known about models"),
];

/// The document as it is served.
pub(super) fn document(rows: &[OperationRow]) -> Value {
    let settings =
        SchemaSettings::draft2020_12().with(|settings| settings.definitions_path = COMPONENTS.into());
    let mut schemas = Schemas {
        requests: settings.clone().into_generator(),
        results: settings.for_serialize().into_generator(),
    };
    let mut paths = json!({});
    for row in rows {
        if let Ok(route) = row.interfaces.http {
            let path = format!("{ROOT}{}", route.path);
            paths[path][route.method.name()] = operation(row, &route, &mut schemas);
        }
    }
    let mut components = schemas.requests.take_definitions(true);
    components.extend(schemas.results.take_definitions(true));
    let groups = GROUPS.map(|(name, about)| json!({ "name": name, "description": about }));
    let mut document = json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Komado",
            "description": "The context engine for LLM agents: sessions, threads, journals and views over HTTP.",
            "license": { "name": "MIT OR Apache-2.0", "identifier": "MIT OR Apache-2.0" },
            "version": env!("CARGO_PKG_VERSION"),
        },
        "tags": groups,
        "paths": paths,
        "components": {
            "schemas": components,
            "securitySchemes": {
                "bearer": { "type": "http", "scheme": "bearer", "description": "A key of `komado admin key add`" },
                "key": { "type": "apiKey", "in": "header", "name": "x-komado-key" },
            },
        },
        "security": [{}, { "bearer": [] }, { "key": [] }],
    });
    bound(&mut document);
    document
}

/// Schemas of what is read and of what is written: a field that may be left out in one need not be left out in the other.
struct Schemas {
    requests: SchemaGenerator,
    results: SchemaGenerator,
}

/// Each number has an end.
fn bound(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            let most = match fields.get("format").and_then(Value::as_str) {
                Some("uint32") => Some(json!(u32::MAX)),
                Some("uint64" | "uint") => Some(json!(u64::MAX)),
                _ => None,
            };
            if let Some(most) = most {
                fields.entry("maximum").or_insert(most);
            }
            fields.values_mut().for_each(bound);
        }
        Value::Array(items) => items.iter_mut().for_each(bound),
        _ => {}
    }
}

/// An operation: where each field of its request stands, and what it answers.
fn operation(row: &OperationRow, route: &Path, schemas: &mut Schemas) -> Value {
    let mut request = (row.request)(&mut schemas.requests).to_value();
    let about = request["description"].as_str().unwrap_or(row.title).replace('\n', " ");
    let required: Vec<String> = serde_json::from_value(request["required"].take()).unwrap_or_default();
    let fields = fields(&mut request, route, &mut schemas.requests);
    let (mut parameters, mut body) = (Vec::new(), Map::new());
    for (name, mut schema) in fields {
        if NAMES.contains(&name.as_str()) {
            schema["maxLength"] = json!(128);
            schema["pattern"] = json!(komado_core::address::ID_PATTERN);
        }
        match place(route, &name) {
            Some(place) => parameters.push(parameter(place, &name, required.contains(&name), schema)),
            None => drop(body.insert(name, schema)),
        }
    }
    let mut said =
        json!({ "operationId": row.name, "summary": row.title, "description": about, "tags": [route.group] });
    if let Some(body) = request_body(route, body, &required, &request) {
        said["requestBody"] = body;
    }
    parameters.extend(headers(row, route));
    said["parameters"] = json!(parameters);
    said["responses"] = responses(row, route, said.get("requestBody").is_some(), &mut schemas.results);
    said
}

/// The fields of a request, and those that say how a report is shown.
fn fields(request: &mut Value, route: &Path, generator: &mut SchemaGenerator) -> Map<String, Value> {
    let mut fields = match request["properties"].take() {
        Value::Object(fields) => fields,
        _ => Map::new(),
    };
    if route.has_forms {
        let shown = ReportParameters::json_schema(generator).to_value();
        fields.extend(shown["properties"].as_object().cloned().unwrap_or_default());
    }
    fields
}

/// Headers that are no field of the request.
fn headers(row: &OperationRow, route: &Path) -> Vec<Value> {
    let header = |name: &str, about: &str| {
        parameter("header", name, false, json!({ "type": "string", "description": about }))
    };
    let mut headers = Vec::new();
    if is_tagged(row, route) {
        headers.push(header("if-none-match", "An ETag you have; 304 when it is still that"));
    }
    if route.method != HttpMethod::Get && route.path.contains("{session}") {
        headers.push(header("if-match", "An ETag you have read; 412 when it is no longer that"));
    }
    if route.is_once {
        let mut key =
            header("idempotency-key", "Names this call, so that it is done once, also over a crash");
        key["schema"] = json!({ "type": "string", "minLength": 1, "maxLength": 255 });
        headers.push(key);
    }
    headers
}

/// Where a field of a request stands; `None` for the body.
fn place(route: &Path, name: &str) -> Option<&'static str> {
    if route.is_in_path(name) {
        Some("path")
    } else if route.header == Some(name) {
        Some("header")
    } else {
        (!route.has_json()).then_some("query")
    }
}

/// True where an answer says which moment it is of.
fn is_tagged(row: &OperationRow, route: &Path) -> bool {
    route.has_tag || row.form == Some(StreamForm::Object)
}

fn parameter(place: &str, name: &str, is_needed: bool, mut schema: Value) -> Value {
    let about = schema["description"].take();
    let mut about = about.as_str().unwrap_or_default();
    if place == "path" {
        // Behind it stands when it may be left out, and nothing of a path may be.
        about = about.split(';').next().unwrap_or(about);
    }
    let is_needed = is_needed || place == "path";
    let mut parameter =
        json!({ "name": name, "in": place, "required": is_needed, "description": about, "schema": schema });
    say_once(&mut parameter);
    parameter
}

/// The body: what the operation reads as it is, or a JSON object of fields.
fn request_body(
    route: &Path,
    mut fields: Map<String, Value>,
    required: &[String],
    request: &Value,
) -> Option<Value> {
    if let Some(media) = route.body {
        let schema = json!({ "type": "string" });
        return Some(json!({ "required": true, "content": { media: { "schema": schema } } }));
    }
    if fields.is_empty() {
        return None;
    }
    // What is null is left out.
    for (_, schema) in fields.iter_mut().filter(|(name, _)| !required.contains(name)) {
        if let Some(only) = schema["type"].as_str() {
            schema["type"] = json!([only, "null"]);
        }
        clean(schema);
    }
    let required: Vec<&String> = required.iter().filter(|name| fields.contains_key(*name)).collect();
    let example = |name: &String| Some((name.clone(), fields[name].pointer("/examples/0")?.clone()));
    let example: Map<String, Value> = required.iter().copied().filter_map(example).collect();
    let example = request.pointer("/examples/0").cloned().unwrap_or(Value::Object(example));
    let mut schema = json!({ "type": "object", "properties": fields, "additionalProperties": false });
    match required.is_empty() {
        // Nothing is to be said, and may be said so.
        true => schema["type"] = json!(["object", "null"]),
        false => schema["required"] = json!(required),
    }
    let content = json!({ "application/json": { "schema": schema, "example": example } });
    Some(json!({ "required": !required.is_empty(), "content": content }))
}

/// What an operation answers: a result, or a problem.
fn responses(row: &OperationRow, route: &Path, has_body: bool, generator: &mut SchemaGenerator) -> Value {
    let told = |about: &str| json!({ "description": about, "schema": { "type": "string" } });
    let mut done = json!({ "description": row.title });
    if route.status != 204 {
        done["content"] = content(row, route, generator);
    }
    if is_tagged(row, route) {
        done["headers"] = json!({ "etag": told("Which moment it is of") });
    } else if route.status == 201 {
        done["headers"] = json!({ "location": told("What was made") });
    }
    let mut responses = json!({});
    if route.may_be_there {
        let Value::Object(mut there) = done.clone() else { return responses };
        there.remove("headers");
        responses["200"] = there.into();
    }
    responses[route.status.to_string()] = done;
    if is_tagged(row, route) {
        responses["304"] = json!({ "description": "Not Modified: you have it" });
    }
    let schema = generator.subschema_for::<ProblemBody>();
    let changed = (route.method != HttpMethod::Get).then_some(412);
    let of_body = [408, 413, 415].into_iter().filter(|_| has_body);
    for status in PROBLEMS.into_iter().chain(changed).chain(of_body) {
        let reason = StatusCode::from_u16(status).ok().and_then(|status| status.canonical_reason());
        responses[status.to_string()] = json!({
            "description": reason.unwrap_or("Problem"),
            "content": { PROBLEM_JSON: { "schema": schema } },
        });
    }
    responses
}

/// A result, in each form that it is answered in.
fn content(row: &OperationRow, route: &Path, generator: &mut SchemaGenerator) -> Value {
    if row.form == Some(StreamForm::Events) {
        // OpenAPI 3.1 has no word for the data of an event.
        let settings = SchemaSettings::draft2020_12().for_serialize();
        let inline = settings.with(|settings| settings.inline_subschemas = true);
        let data = (row.output)(&mut inline.into_generator());
        return json!({ "text/event-stream": { "schema": { "type": "string" }, "x-event-data": data } });
    }
    let schema = (row.output)(generator).to_value();
    let mut content = json!({});
    for media in media(row, route) {
        let is_text = MEDIA.contains(&media);
        content[media] =
            json!({ "schema": if is_text { json!({ "type": "string" }) } else { schema.clone() } });
    }
    content
}

/// The media types that a route answers in.
fn media(row: &OperationRow, route: &Path) -> Vec<&'static str> {
    match row.form {
        Some(StreamForm::Events) => vec!["text/event-stream"],
        Some(StreamForm::Bytes(media)) => media.to_vec(),
        _ if route.has_forms => ["application/json"].into_iter().chain(MEDIA).collect(),
        _ => vec!["application/json"],
    }
}

/// A parameter that is left out is left out: there is no null in a URL.
fn say_once(parameter: &mut Value) {
    let schema = &mut parameter["schema"];
    if let Some(listed) = schema["enum"].as_array_mut() {
        listed.retain(|value| !value.is_null());
    }
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

/// Refuses parameters that a route does not know, and a caller that takes nothing of what it answers in.
pub(super) fn check(row: &OperationRow, route: &Path, request: &Request) -> Result<(), ApiProblem> {
    let mut generator = SchemaGenerator::default();
    let mut schema = (row.request)(&mut generator).to_value();
    let fields = fields(&mut schema, route, &mut generator);
    let known: Vec<&str> =
        fields.keys().map(String::as_str).filter(|name| place(route, name) == Some("query")).collect();
    let query = request.uri().query().unwrap_or_default();
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        let name = pair.split('=').next().unwrap_or(pair);
        if !known.contains(&name) {
            let known = match &known[..] {
                [] => "this takes none".to_owned(),
                some => format!("known are {}", some.join(", ")),
            };
            return Err(ApiProblem::bad(format!("unknown parameter: {name:?}; {known}")));
        }
    }
    let accept = request.headers().get_all(ACCEPT).iter().filter_map(|value| value.to_str().ok());
    let (accept, media) = (accept.collect::<Vec<_>>().join(","), media(row, route));
    if accept.trim().is_empty() || media.iter().any(|media| accepts(&accept, media)) {
        return Ok(());
    }
    let detail = format!("accept is {accept:?}; this answers in {}", media.join(" or "));
    Err(ApiProblem::new(StatusCode::NOT_ACCEPTABLE, detail))
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
