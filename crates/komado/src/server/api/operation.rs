//! Operations over HTTP: a request becomes named arguments, a result JSON with a status.
//!
//! Names come from the path, the query and a JSON object in the body. Which of them an operation has, of which type and within
//! which bounds, its own schema says; nothing here knows one operation from another.

use super::call::Call;
use super::document::{ROOT, is_in_path};
use super::problem::{Answer, Problem};
use super::{tag, take};
use crate::server::House;
use axum::Router;
use axum::extract::{RawPathParams, Request};
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodRouter, delete, get, post, put};
use http::header::{CONTENT_TYPE, LOCATION};
use http::{HeaderValue, StatusCode};
use komado_ops::{Method, Naming, Reader, Route, Row};
use serde_json::{Map, Value};
use std::sync::Arc;

/// Adds the routes of operations.
pub(super) fn routed(router: Router<Arc<House>>, rows: &'static [Row]) -> Router<Arc<House>> {
    let offered = rows.iter().filter_map(|row| Some((row, row.interfaces.http.get()?)));
    offered.fold(router, |router, (row, route)| {
        router.route(&format!("{ROOT}{}", route.path), method(row, route))
    })
}

fn method(row: &'static Row, route: Route) -> MethodRouter<Arc<House>> {
    let handler =
        move |call: Call, names: RawPathParams, request: Request| answer(row, route, call, names, request);
    match route.method {
        Method::Get => get(handler),
        Method::Post => post(handler),
        Method::Put => put(handler),
        Method::Delete => delete(handler),
    }
}

/// Runs one operation, where it may block.
async fn answer(
    row: &'static Row,
    route: Route,
    call: Call,
    names: RawPathParams,
    request: Request,
) -> Answer<Response> {
    let schema = (row.request)(&mut schemars::SchemaGenerator::default()).to_value();
    let mut given = arguments(&schema, &route, request).await?;
    for (name, value) in &names {
        given.insert(name.to_owned(), typed(&schema, name, value)?);
    }
    let headers = call.headers.clone();
    let answer = call
        .run(move |desk| {
            let context = desk.app.context.of(desk.guest.clone(), Naming::Exact);
            row.call(given, &context, Reader::Program, |found| desk.check(found, &route))
                .map_err(Problem::from)
        })
        .await?;
    if route.status == StatusCode::NO_CONTENT {
        return Ok(StatusCode::NO_CONTENT.into_response());
    }
    let mut response = match answer.moment.filter(|_| route.has_tag) {
        Some(moment) => tag::answer(&headers, &tag::of(&moment, answer.json.as_bytes()), answer.json),
        None => answer.json.into_response(),
    };
    if response.status() == StatusCode::OK {
        let is_there = route.may_be_there && answer.location.is_none();
        let status = if is_there { 200 } else { route.status };
        *response.status_mut() = StatusCode::from_u16(status).unwrap_or_default();
        response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    }
    if let Some(place) = answer.location.and_then(|path| HeaderValue::try_from(format!("{ROOT}{path}")).ok())
    {
        response.headers_mut().insert(LOCATION, place);
    }
    Ok(response)
}

/// The arguments that stand in the query, or in the body.
async fn arguments(schema: &Value, route: &Route, request: Request) -> Answer<Map<String, Value>> {
    if !matches!(route.method, Method::Post | Method::Put) {
        let query = request.uri().query().unwrap_or_default();
        let pairs = form_urlencoded::parse(query.as_bytes());
        return pairs.map(|(name, value)| Ok((name.to_string(), typed(schema, &name, &value)?))).collect();
    }
    let given = take::object(request).await?;
    match given.keys().find(|name| is_in_path(route, name)) {
        Some(name) => {
            Err(Problem::bad(format!("the body does not fit: {name} stands in the path; leave it out")))
        }
        None => Ok(given),
    }
}

/// A text as the type that the schema asks for.
fn typed(schema: &Value, name: &str, text: &str) -> Answer<Value> {
    let kind = &schema["properties"][name]["type"];
    let is = |wanted: &str| {
        kind == wanted || kind.as_array().is_some_and(|kinds| kinds.iter().any(|kind| kind == wanted))
    };
    let wrong = |what: &str| Problem::bad(format!("{name} is {text:?}; give {what}"));
    if is("integer") {
        return text.parse::<u64>().map(Value::from).map_err(|_| wrong("a whole number"));
    }
    if is("number") {
        return text.parse::<f64>().map(Value::from).map_err(|_| wrong("a number"));
    }
    if is("boolean") {
        return text.parse::<bool>().map(Value::from).map_err(|_| wrong("true or false"));
    }
    Ok(Value::from(text))
}
