//! What is known about models, and what was learned about them.

use super::call::Call;
use super::problem::{Answer, Problem};
use super::shape;
use super::take::Params;
use crate::fault::Fault;
use crate::verb::models;
use axum::Json;
use serde::Deserialize;
use serde_json::{Value, json};
use utoipa::IntoParams;

/// Which model.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct Which {
    /// Only the model that this name means
    #[param(example = "gpt-4o", min_length = 1)]
    name: Option<String>,
}

/// What is known about models: windows and prices
#[utoipa::path(get, path = "/api/v1/models", tag = "models", params(Which),
    responses((status = 200, body = shape::List)))]
pub(super) async fn list(call: Call, Params(which): Params<Which>) -> Answer<Json<Value>> {
    call.run(move |desk| {
        let registry = desk.app.config.models.registry().map_err(Fault::from)?;
        let items: Vec<Value> = match &which.name {
            Some(name) => {
                let model = registry.find(name).ok_or_else(|| models::unknown(&registry, name))?;
                vec![models::row(model)]
            }
            None => registry.models().iter().map(models::row).collect(),
        };
        Ok(json!({ "items": items }))
    })
    .await
    .map(Json)
}

/// Whom it is about.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct About {
    /// The session whose model it is about
    #[param(example = "demo", pattern = "^[A-Za-z0-9][A-Za-z0-9_.:-]*$", max_length = 128)]
    session: String,
}

/// What was learned about a session's model by talking to it: its true window, how it counts tokens
#[utoipa::path(get, path = "/api/v1/lessons", tag = "models", params(About),
    responses((status = 200, body = shape::Learned)))]
pub(super) async fn lesson(call: Call, Params(about): Params<About>) -> Answer<Json<Value>> {
    call.run(move |desk| {
        let (_, session) = desk.session(&about.session)?;
        let own = &session.meta.config;
        let Some(model) = own.model.as_deref() else {
            return Err(Problem::missing(format!("session {} names no model", about.session)));
        };
        let lesson = desk.app.models().own_lesson(own);
        let window = desk.app.models().own_window(own, None);
        Ok(json!({ "about": model, "lesson": { "window": lesson.window, "factor": lesson.factor(), "our_window": window } }))
    })
    .await
    .map(Json)
}
