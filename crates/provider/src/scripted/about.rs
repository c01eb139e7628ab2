//! What a server says about itself: its models, and the window they run with.
//!
//! Whoever plays one server answers only where that server does, so that a client which tries one address after the
//! other finds what it would find there. Without a window nothing is said about it.

use super::words::Words;
use serde_json::{Value, json};

/// The model that is listed; any other is answered, too.
pub(super) const MODEL: &str = "scripted";

/// A page of the server about itself.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Page {
    /// `/`
    Root,
    /// `/healthz`, `/health`
    Health,
    /// `/v1/models`, with or without the name of one.
    Models,
    /// `/props` of llama.cpp.
    Props,
    /// `/api/show` of Ollama.
    Show,
    /// `/api/ps` of Ollama.
    Ps,
    /// `/api/tags` of Ollama.
    Tags,
    /// `/api/version` of Ollama.
    Version,
    /// `/api/v0/models` of LM Studio.
    LmModels,
}

/// What stands on `page`; `None` when `words` speaks for a server that has no such page.
pub(super) fn page(page: Page, words: Words, window: Option<u64>, anthropic: bool) -> Option<Value> {
    let only = |owner: Words| [owner, Words::ByDialect].contains(&words);
    match page {
        Page::Root => Some(json!({ "name": "komado model-server", "status": "running" })),
        Page::Health => Some(json!({ "status": "ok" })),
        Page::Models if anthropic && only(Words::Anthropic) => Some(anthropic_models(window)),
        Page::Models => Some(models(words, window)),
        Page::Props => only(Words::LlamaCpp).then(|| props(window)),
        Page::Show => only(Words::Ollama).then(|| show(window)),
        Page::Ps => only(Words::Ollama).then(|| json!({ "models": [loaded(window)] })),
        Page::Tags => only(Words::Ollama).then(|| json!({ "models": [installed()] })),
        Page::Version => only(Words::Ollama).then(|| json!({ "version": "0.12.6" })),
        Page::LmModels => only(Words::LmStudio).then(|| lm_models(window)),
    }
}

/// `about` with the window under these names, where there is one.
fn sized(mut about: Value, names: &[&str], window: Option<u64>) -> Value {
    for (name, window) in names.iter().zip(window.into_iter().cycle()) {
        about[name] = json!(window);
    }
    about
}

fn models(words: Words, window: Option<u64>) -> Value {
    let model = json!({ "id": MODEL, "object": "model", "created": 1_700_000_000, "owned_by": "komado" });
    let model = match (words, window) {
        (Words::Vllm, _) => sized(model, &["max_model_len"], window),
        (Words::OpenRouter, _) => sized(model, &["context_length"], window),
        (Words::LlamaCpp, Some(_)) => {
            let mut model = model;
            model["meta"] = sized(json!({}), &["n_ctx", "n_ctx_train"], window);
            model
        }
        _ => model,
    };
    json!({ "object": "list", "data": [model] })
}

fn anthropic_models(window: Option<u64>) -> Value {
    let model = json!({
        "type": "model", "id": MODEL, "display_name": "Scripted", "created_at": "2023-11-14T22:13:20Z"
    });
    let model = sized(model, &["max_input_tokens"], window);
    json!({ "data": [model], "has_more": false, "first_id": MODEL, "last_id": MODEL })
}

fn props(window: Option<u64>) -> Value {
    json!({
        "default_generation_settings": sized(json!({ "id": 0 }), &["n_ctx"], window), "total_slots": 1, "model_path": MODEL, "model_alias": MODEL,
        "chat_template": "", "build_info": "scripted"
    })
}

fn show(window: Option<u64>) -> Value {
    let mut shown = json!({
        "details": details(), "capabilities": ["completion", "tools", "thinking"],
        "model_info": { "general.architecture": "scripted" }, "template": "", "modelfile": "", "parameters": ""
    });
    if let Some(window) = window {
        shown["parameters"] = json!(format!("num_ctx                        {window}"));
        shown["model_info"]["scripted.context_length"] = json!(window);
    }
    shown
}

fn details() -> Value {
    json!({
        "parent_model": "", "format": "gguf", "family": "scripted", "families": ["scripted"],
        "parameter_size": "0B", "quantization_level": "none"
    })
}

fn installed() -> Value {
    json!({
        "name": MODEL, "model": MODEL, "modified_at": "2023-11-14T22:13:20Z", "size": 0, "digest": "0",
        "details": details()
    })
}

fn loaded(window: Option<u64>) -> Value {
    let model = json!({
        "name": MODEL, "model": MODEL, "size": 0, "digest": "0", "details": details(),
        "expires_at": "2318-11-14T22:13:20Z", "size_vram": 0
    });
    sized(model, &["context_length"], window)
}

fn lm_models(window: Option<u64>) -> Value {
    let model = json!({
        "id": MODEL, "object": "model", "type": "llm", "publisher": "komado", "arch": "scripted",
        "compatibility_type": "gguf", "quantization": "none", "state": "loaded"
    });
    let model = sized(model, &["max_context_length", "loaded_context_length"], window);
    json!({ "object": "list", "data": [model] })
}
