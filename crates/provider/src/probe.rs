//! How a server is asked for the window it really has, and how its answer is read.
//!
//! A local server's window is set where it is started, so no registry knows it. This knows the questions and the answers
//! of the servers people run; whoever has a socket asks the steps in their order and takes the first answer that reads
//! to a number. Nothing here speaks to a network.
//!
//! What a model was *trained* for is not what is loaded: llama.cpp's `n_ctx_train`, LM Studio's `max_context_length` of a
//! model that is not loaded and Ollama's `*.context_length` are left out, but for the two cases named at
//! [`Probe::Ollama`] and [`Probe::Models`].

mod llama;
mod models;
mod ollama;

/// How a question is asked.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Method {
    /// Without a body.
    Get,
    /// With one.
    Post,
}

/// A question to a server.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Step {
    /// How.
    pub method: Method,
    /// Where, from the root of the server (without `/v1`).
    pub path: &'static str,
    /// With what, as JSON.
    pub body: Option<String>,
}

/// A kind of server.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum Probe {
    /// llama.cpp's server: `/props` says the window of a slot, which is what one conversation has.
    LlamaCpp,
    /// Whoever lists models with their window: vLLM, llama.cpp, LM Studio, OpenRouter. LM Studio's own list is asked first,
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
    pub fn steps(self, model: &str) -> Vec<Step> {
        let get = |path| Step { method: Method::Get, path, body: None };
        match self {
            Self::LlamaCpp => vec![get("/props"), get("/v1/models")],
            Self::Models => vec![get("/api/v0/models"), get("/v1/models")],
            Self::Ollama => vec![get("/api/ps"), ollama::show(model)],
        }
    }

    /// The window that the answer to `path` gives for `model`; `None` when it says nothing about it.
    pub fn read(self, path: &str, body: &str, model: &str) -> Option<u64> {
        let path = path.trim_end_matches('/');
        let found = match (self, path) {
            (Self::LlamaCpp, "/props") => llama::props(body),
            (Self::LlamaCpp | Self::Models, "/v1/models" | "/api/v1/models" | "/models") => {
                models::list(body, model)
            }
            (Self::Models, "/api/v0/models") => models::lm_studio(body, model),
            (Self::Ollama, "/api/ps") => ollama::loaded(body, model),
            (Self::Ollama, "/api/show") => ollama::set(body),
            _ => None,
        };
        found.filter(|window| *window > 0)
    }
}
