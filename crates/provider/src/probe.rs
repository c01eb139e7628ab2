//! How a server is asked for the window it really has, and how its answer is read.
//!
//! A local server's window is set where it is started, so no registry knows it. This knows the questions and the answers
//! of the servers people run; the caller asks the steps in their order and takes the first answer that reads
//! to a number. Nothing here speaks to a network.
//!
//! What a model was *trained* for is not what is loaded: llama.cpp's `n_ctx_train`, LM Studio's `max_context_length` of a
//! model that is not loaded and Ollama's `*.context_length` are left out, but for the two cases named at
//! [`Probe::Ollama`] and [`Probe::Models`].

use serde_json::{Value, json};

/// A question to a server.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ProbeStep {
    /// Where, from the root of the server (without `/v1`).
    pub path: &'static str,
    /// With what, as JSON: with a body it is posted.
    pub body: Option<String>,
}

/// A kind of server.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum Probe {
    /// llama.cpp's server: `/props` says the window of a slot, which is what one conversation has.
    LlamaCpp,
    /// Servers that list models with their window: vLLM, llama.cpp, LM Studio, OpenRouter. LM Studio's own list is asked first,
    /// because it alone says what is loaded; from an older one, which does not, the largest length of a loaded model is taken.
    Models,
    /// Ollama: what is loaded now (`/api/ps`), else what the model file sets (`num_ctx`). The length a model was trained
    /// for (`model_info`) is never an answer: Ollama loads far less unless a request asks for more.
    Ollama,
}

impl Probe {
    /// Every kind, in the order in which an unknown server is best asked.
    pub const ALL: [Self; 3] = [Self::LlamaCpp, Self::Ollama, Self::Models];

    /// What to ask for `model`, in this order.
    pub fn steps(self, model: &str) -> Vec<ProbeStep> {
        let get = |path| ProbeStep { path, body: None };
        match self {
            Self::LlamaCpp => vec![get("/props"), get("/v1/models")],
            Self::Models => vec![get("/api/v0/models"), get("/v1/models")],
            Self::Ollama => {
                let body = Some(json!({ "model": model }).to_string());
                vec![get("/api/ps"), ProbeStep { path: "/api/show", body }]
            }
        }
    }

    /// The window that the answer to `path` gives for `model`; `None` when it says nothing about it.
    pub fn read(self, path: &str, body: &str, model: &str) -> Option<u64> {
        let path = path.trim_end_matches('/');
        let found = match (self, path) {
            (Self::LlamaCpp, "/props") => props(body),
            (Self::LlamaCpp | Self::Models, "/v1/models" | "/api/v1/models" | "/models") => list(body, model),
            (Self::Models, "/api/v0/models") => lm_studio(body, model),
            (Self::Ollama, "/api/ps") => loaded(body, model),
            (Self::Ollama, "/api/show") => set(body),
            _ => None,
        };
        found.filter(|window| *window > 0)
    }
}

// llama.cpp's `/props`.

/// The window of one slot, which is what one conversation has: servers with several slots divide before they tell, in
/// `default_generation_settings` as well as in the `n_ctx` that some put at the top.
fn props(body: &str) -> Option<u64> {
    let value: Value = serde_json::from_str(body).ok()?;
    let read = |place: &str| value.pointer(place).and_then(Value::as_u64).filter(|n| *n > 0);
    read("/default_generation_settings/n_ctx").or_else(|| read("/n_ctx"))
}

// Lists of models: OpenAI's `/v1/models` with what others add to it, and LM Studio's own list.

/// vLLM's `max_model_len`, OpenRouter's `context_length`, llama.cpp's `meta.n_ctx`.
fn list(body: &str, model: &str) -> Option<u64> {
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
fn lm_studio(body: &str, model: &str) -> Option<u64> {
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

// Ollama's `/api/ps` and `/api/show`.

/// The window `model` is loaded with now.
fn loaded(body: &str, model: &str) -> Option<u64> {
    let value: Value = serde_json::from_str(body).ok()?;
    let rows = value.get("models")?.as_array()?;
    let is = |row: &&Value| {
        ["model", "name"]
            .iter()
            .any(|key| row.get(key).and_then(Value::as_str).is_some_and(|name| same(name, model)))
    };
    rows.iter().find(is)?.get("context_length")?.as_u64()
}

/// `num_ctx` as the model file sets it.
fn set(body: &str) -> Option<u64> {
    let value: Value = serde_json::from_str(body).ok()?;
    let parameters = value.get("parameters")?.as_str()?;
    let mut set = parameters.lines().filter_map(|line| {
        let mut words = line.split_whitespace();
        (words.next()? == "num_ctx").then(|| words.next()?.parse().ok())?
    });
    set.next_back()
}

/// `llama3.1` is `llama3.1:latest`.
fn same(a: &str, b: &str) -> bool {
    let full = |name: &str| {
        let last = name.rsplit('/').next().unwrap_or(name);
        if last.contains(':') { name.to_lowercase() } else { format!("{name}:latest").to_lowercase() }
    };
    full(a) == full(b)
}
