//! Lists of models: OpenAI's `/v1/models` with what others add to it, and LM Studio's own list.

use serde_json::Value;

/// vLLM's `max_model_len`, OpenRouter's `context_length`, llama.cpp's `meta.n_ctx`.
pub(super) fn list(body: &str, model: &str) -> Option<u64> {
    let rows = rows(body)?;
    let row = named(&rows, model)?;
    let provider = row.pointer("/top_provider/context_length").and_then(Value::as_u64);
    let own =
        ["/max_model_len", "/loaded_context_length", "/context_length", "/context_window", "/meta/n_ctx"];
    let own = own.iter().find_map(|field| row.pointer(field)?.as_u64().filter(|n| *n > 0));
    // OpenRouter names the model's window and that of the provider it would choose; the smaller one holds.
    match (own, provider) {
        (Some(own), Some(provider)) => Some(own.min(provider)),
        (own, provider) => own.or(provider),
    }
}

/// `loaded_context_length` of a model that is loaded. Older servers do not tell it, and then the largest it can have been
/// loaded with is all there is. A model that is not loaded has no window yet.
pub(super) fn lm_studio(body: &str, model: &str) -> Option<u64> {
    let rows = rows(body)?;
    let row = named(&rows, model)?;
    let field = |name: &str| row.get(name).and_then(Value::as_u64).filter(|n| *n > 0);
    let loaded = row.get("state").and_then(Value::as_str) == Some("loaded");
    field("loaded_context_length").or_else(|| field("max_context_length").filter(|_| loaded))
}

fn rows(body: &str) -> Option<Vec<Value>> {
    match serde_json::from_str(body).ok()? {
        Value::Object(mut object) => match object.remove("data").or_else(|| object.remove("models"))? {
            Value::Array(rows) => Some(rows),
            _ => None,
        },
        Value::Array(rows) => Some(rows),
        _ => None,
    }
}

/// The row of `model`; the only row there is, when a server has one model and takes any name for it.
fn named<'a>(rows: &'a [Value], model: &str) -> Option<&'a Value> {
    let id =
        |row: &Value| row.get("id").or_else(|| row.get("name")).and_then(Value::as_str).map(str::to_owned);
    let tail = |name: &str| name.rsplit('/').next().unwrap_or(name).to_lowercase();
    let exact = rows.iter().find(|row| id(row).as_deref() == Some(model));
    let alias = || {
        let has = |row: &Value| match row.get("aliases") {
            Some(Value::Array(names)) => names.iter().any(|name| name == model),
            _ => false,
        };
        rows.iter().find(|row| has(row))
    };
    let close = || rows.iter().find(|row| id(row).is_some_and(|id| tail(&id) == tail(model)));
    exact.or_else(alias).or_else(close).or_else(|| if rows.len() == 1 { rows.first() } else { None })
}
