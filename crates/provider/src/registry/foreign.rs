//! The forms of two public collections: models.dev's `api.json` and LiteLLM's price file.
//!
//! Models that do not chat (embeddings, images, speech) are passed over, and so are limits of zero, which both
//! collections write where they do not know one. A limit that is no number is an error: then it is not the file it
//! seems to be.

use super::{BadRegistry, Model, Price, Source};
use serde_json::{Map, Value};

/// The models of a foreign collection; `None` when the text is none, such as our own lines.
pub(super) fn read(text: &str) -> Result<Option<Vec<Model>>, BadRegistry> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let Ok(Value::Object(root)) = serde_json::from_str::<Value>(text) else { return Ok(None) };
    let has = |key: &str| root.values().any(|value| value.get(key).is_some());
    if root.contains_key("id") && root.contains_key("context") {
        return Ok(None);
    }
    if has("models") {
        return models_dev(&root).map(Some);
    }
    if has("litellm_provider") {
        return litellm(&root).map(Some);
    }
    Err(BadRegistry::UnknownForm)
}

fn models_dev(root: &Map<String, Value>) -> Result<Vec<Model>, BadRegistry> {
    let mut models = Vec::new();
    for (provider, about) in root {
        let Some(Value::Object(theirs)) = about.get("models") else { continue };
        for (id, model) in theirs {
            let entry = Entry { path: format!("{provider}/{id}"), fields: model };
            let Some(context) = entry.count("/limit/context")? else { continue };
            if !entry.writes_text() {
                continue;
            }
            let input = entry.count("/limit/input")?.filter(|n| *n < context);
            let output = entry.count("/limit/output")?.map(|n| n.min(context));
            let price =
                entry.price(["/cost/input", "/cost/output", "/cost/cache_read", "/cost/cache_write"], 1.0)?;
            let (id, provider) = (id.clone(), provider.clone());
            models.push(Model { id, provider, context, input, output, price, source: Source::Builtin });
        }
    }
    Ok(models)
}

fn litellm(root: &Map<String, Value>) -> Result<Vec<Model>, BadRegistry> {
    let mut models: Vec<Model> = Vec::new();
    for (name, model) in root.iter().filter(|(name, _)| *name != "sample_spec") {
        let entry = Entry { path: name.clone(), fields: model };
        let provider = model.get("litellm_provider").and_then(Value::as_str).unwrap_or_default().to_owned();
        let mode = model.get("mode").and_then(Value::as_str).unwrap_or("chat");
        if provider.is_empty() || !matches!(mode, "chat" | "completion" | "responses") {
            continue;
        }
        let asked = entry.count("/max_input_tokens")?;
        let Some(context) = asked.or(entry.count("/max_tokens")?) else { continue };
        let output = entry.count("/max_output_tokens")?.map(|n| n.min(context));
        let costs = [
            "/input_cost_per_token",
            "/output_cost_per_token",
            "/cache_read_input_token_cost",
            "/cache_creation_input_token_cost",
        ];
        let price = entry.price(costs, 1e6)?;
        let id = name.strip_prefix(&format!("{provider}/")).unwrap_or(name).to_owned();
        if !models.iter().rev().any(|known| known.id == id && known.provider == provider) {
            models.push(Model { id, provider, context, input: None, output, price, source: Source::Builtin });
        }
    }
    Ok(models)
}

struct Entry<'a> {
    path: String,
    fields: &'a Value,
}

impl Entry<'_> {
    fn bad(&self, field: &str, value: &Value) -> BadRegistry {
        let (field, why) = (field.trim_start_matches('/').replace('/', "."), format!("{value} is no number"));
        BadRegistry::Entry { entry: self.path.clone(), field, why }
    }

    fn number(&self, field: &str) -> Result<Option<f64>, BadRegistry> {
        match self.fields.pointer(field) {
            None | Some(Value::Null) => Ok(None),
            Some(value) => match value.as_f64() {
                Some(n) if n.is_finite() && n >= 0.0 => Ok(Some(n)),
                _ => Err(self.bad(field, value)),
            },
        }
    }

    /// A number of tokens; zero is not known.
    fn count(&self, field: &str) -> Result<Option<u64>, BadRegistry> {
        // Both collections hold whole numbers far below 2^53, some of them written as floats.
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
        let whole = |n: f64| n as u64;
        Ok(self.number(field)?.map(whole).filter(|n| *n > 0))
    }

    fn price(&self, fields: [&str; 4], scale: f64) -> Result<Option<Price>, BadRegistry> {
        let amount = |field: &str| Ok(self.number(field)?.map(|n| cents(n * scale)));
        let (input, output) = (amount(fields[0])?, amount(fields[1])?);
        let (cache_read, cache_write) = (amount(fields[2])?, amount(fields[3])?);
        let (Some(input), Some(output)) = (input, output) else { return Ok(None) };
        Ok(Some(Price { input, output, cache_read, cache_write }))
    }

    fn writes_text(&self) -> bool {
        match self.fields.pointer("/modalities/output") {
            Some(Value::Array(kinds)) => kinds.iter().any(|kind| kind == "text"),
            _ => true,
        }
    }
}

/// Without the dust that scaling leaves: 3e-6 a token is 3 dollars a million, not 2.9999999999999996.
fn cents(amount: f64) -> f64 {
    (amount * 1e6).round() / 1e6
}
