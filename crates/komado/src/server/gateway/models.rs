//! `GET /v1/models`: what can be asked for.
//!
//! With one provider its own list goes through untouched. With several the lists are put together, and each model is
//! there twice: by its name, and by its provider's name before it, which says who is asked.

use super::allow::Check;
use super::headers::Signing;
use super::plain::{forward, send};
use super::refusal::Refusal;
use super::spool::Spooled;
use super::upstream::Upstream;
use super::{Visit, choose::Choice, path};
use axum::Json;
use axum::body::Body;
use axum::response::{IntoResponse, Response};
use komado_provider::{Cancel, Dialect};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::sync::Arc;

/// The longest list that is read.
const LONGEST: usize = 16 << 20;

/// The list of models.
pub(super) async fn list(mut visit: Visit) -> Result<Response, Refusal> {
    visit.take_away_overrides();
    let upstreams = visit.gateway.upstreams.all();
    let named = visit.aim.upstream.as_deref();
    if named.is_some() || upstreams.len() == 1 {
        let choice = visit.gateway.upstreams.choose(named, None, visit.aim.dialect)?;
        let url = choice.upstream.url("/models", visit.query.as_deref());
        return forward(visit, Body::empty(), choice, (url, Check::Nothing)).await;
    }
    let is_anthropic = visit.headers.contains_key("anthropic-version");
    let empty = visit.gateway.take(Body::empty(), None).await?;
    let lists = tokio::task::spawn_blocking(move || lists(&visit, &empty)).await.unwrap_or_default();
    let models = merged(&lists, if is_anthropic { Dialect::Messages } else { Dialect::Chat });
    Ok(Json(page(models, is_anthropic)).into_response())
}

/// What each provider lists. All are asked at once, on threads that no other request waits for.
fn lists(visit: &Visit, empty: &Spooled) -> Vec<(String, Vec<Value>)> {
    let all = visit.gateway.upstreams.all();
    std::thread::scope(|scope| {
        let asks: Vec<_> = all.iter().map(|one| (one, scope.spawn(|| listed(visit, empty, one)))).collect();
        let list = |(one, ask): (&Arc<Upstream>, std::thread::ScopedJoinHandle<'_, Vec<Value>>)| {
            (one.name().to_owned(), ask.join().unwrap_or_default())
        };
        asks.into_iter().map(list).collect()
    })
}

/// One model of the list.
pub(super) async fn one(mut visit: Visit, id: &str) -> Result<Response, Refusal> {
    visit.take_away_overrides();
    let choice =
        visit.gateway.upstreams.choose(visit.aim.upstream.as_deref(), Some(id), visit.aim.dialect)?;
    let url =
        choice.upstream.url(&format!("/models/{}", path::encoded(&choice.model)), visit.query.as_deref());
    forward(visit, Body::empty(), choice, (url, Check::Nothing)).await
}

/// What a provider lists, and what the settings say it has. One that does not answer lists nothing.
fn listed(visit: &Visit, empty: &Spooled, upstream: &Arc<Upstream>) -> Vec<Value> {
    // A client's key is not for all of them.
    let choice = Choice {
        upstream: Arc::clone(upstream),
        model: String::new(),
        renames: false,
        signing: Signing::Held,
    };
    let url = upstream.url("/models", None);
    let answer = send(visit, empty, &choice, &url, &Cancel::default());
    let text = answer.ok().filter(|answer| answer.status == 200).and_then(|answer| answer.text(LONGEST).ok());
    let value: Value = text.and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default();
    let mut models = value["data"].as_array().cloned().unwrap_or_default();
    let own = upstream.models.iter().filter(|name| !name.ends_with('*')).chain(&upstream.model);
    for name in own.filter(|name| !name.is_empty()) {
        if !models.iter().any(|model| model["id"] == name.as_str()) {
            models.push(json!({ "id": name }));
        }
    }
    models
}

/// Lists put together: each model by its name where it is the first of that name, and as `provider/model`.
fn merged(lists: &[(String, Vec<Value>)], dialect: Dialect) -> Vec<Value> {
    let mut seen = BTreeSet::new();
    let mut models = Vec::new();
    for (name, list) in lists {
        for model in list {
            let Some(id) = model["id"].as_str() else { continue };
            for id in [id.to_owned(), format!("{name}/{id}")] {
                if seen.insert(id.clone()) {
                    models.push(formed(model, &id, name, dialect));
                }
            }
        }
    }
    models
}

/// A model in the form of the client's API, with all that its provider says of it.
fn formed(model: &Value, id: &str, owner: &str, dialect: Dialect) -> Value {
    let mut formed = match dialect {
        Dialect::Messages => {
            json!({ "type": "model", "display_name": id, "created_at": "1970-01-01T00:00:00Z" })
        }
        _ => json!({ "object": "model", "created": 0, "owned_by": owner }),
    };
    for (key, value) in model.as_object().into_iter().flatten() {
        formed[key] = value.clone();
    }
    formed["id"] = json!(id);
    formed
}

fn page(models: Vec<Value>, is_anthropic: bool) -> Value {
    if !is_anthropic {
        return json!({ "object": "list", "data": models });
    }
    let id = |model: Option<&Value>| model.map(|model| model["id"].clone()).unwrap_or_default();
    json!({ "first_id": id(models.first()), "last_id": id(models.last()), "has_more": false, "data": models })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_put_together_and_the_first_of_a_name_has_it() {
        let lists = [
            ("openai".to_owned(), vec![json!({ "id": "m", "x": 1 })]),
            ("社内".to_owned(), vec![json!({ "id": "m" }), json!({ "no": "id" }), json!({ "id": "大" })]),
        ];
        let ids = |dialect| -> Vec<String> {
            merged(&lists, dialect).iter().map(|m| m["id"].as_str().unwrap().to_owned()).collect()
        };
        assert_eq!(ids(Dialect::Chat), ["m", "openai/m", "社内/m", "大", "社内/大"]);
        let first = &merged(&lists, Dialect::Chat)[0];
        assert_eq!((first["owned_by"].as_str(), first["x"].as_u64()), (Some("openai"), Some(1)));
        assert_eq!(merged(&lists, Dialect::Messages)[1]["type"], "model");
        assert_eq!(page(merged(&lists, Dialect::Messages), true)["last_id"], "社内/大");
    }
}
