//! A row in our own form, checked field by field.

use super::{BadRegistry, Model, Price, Source};
use komado_core::raw::Object;
use std::collections::HashMap;

const KNOWN: &[&str] = &["id", "provider", "context", "input", "output", "price"];

pub(super) fn read(text: &str) -> Result<Vec<Model>, BadRegistry> {
    let mut models = Vec::new();
    let mut seen: HashMap<(String, String), usize> = HashMap::new();
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    for (line, json) in text.lines().enumerate().map(|(i, json)| (i + 1, json.trim())) {
        if json.is_empty() || json.starts_with('#') {
            continue;
        }
        let model = row(line, json)?;
        let key = (model.provider.clone(), model.id.clone());
        if let Some(before) = seen.insert(key, line) {
            let why = format!("{:?} of {:?} is on line {before}, too", model.id, model.provider);
            return Err(BadRegistry::Field { line, field: "id".into(), why });
        }
        models.push(model);
    }
    Ok(models)
}

fn row(line: usize, json: &str) -> Result<Model, BadRegistry> {
    let object = Object::parse(json).map_err(|e| BadRegistry::Line { line, why: e.to_string() })?;
    let bad = |field: &str, why: String| BadRegistry::Field { line, field: field.to_owned(), why };
    if let Some((key, _)) = object.0.iter().find(|(key, _)| !KNOWN.contains(&key.as_ref())) {
        return Err(bad(key, format!("not known; known are {}", KNOWN.join(", "))));
    }
    let text = |field: &str| match object.read::<String>(field) {
        Ok(Some(text)) if !text.trim().is_empty() => Ok(text),
        Ok(_) => Err(bad(field, "missing or empty".into())),
        Err(e) => Err(bad(field, e.why)),
    };
    let count = |field: &str| match object.read::<u64>(field) {
        Ok(Some(0)) => Err(bad(field, "must be more than 0 tokens".into())),
        Ok(n) => Ok(n),
        Err(e) => Err(bad(field, e.why)),
    };
    let context = count("context")?.ok_or_else(|| bad("context", "missing".into()))?;
    let within = |field: &str| match count(field)? {
        Some(n) if n > context => Err(bad(field, format!("{n} is more than the window of {context} tokens"))),
        n => Ok(n),
    };
    let price = object.read::<Price>("price").map_err(|e| bad("price", e.why))?;
    if let Some(amount) = price.and_then(wrong) {
        return Err(bad("price", format!("{amount} is no price")));
    }
    Ok(Model {
        id: text("id")?,
        provider: text("provider")?,
        context,
        input: within("input")?,
        output: within("output")?,
        price,
        source: Source::Builtin,
    })
}

/// An amount that cannot be one.
fn wrong(price: Price) -> Option<f64> {
    let amounts = [Some(price.input), Some(price.output), price.cache_read, price.cache_write];
    amounts.into_iter().flatten().find(|amount| !amount.is_finite() || *amount < 0.0)
}
