//! The providers known by name. To add one is to add a row; only those whose address is certain are here.

use super::Auth;
use crate::dialect::Dialect;

/// What is known about a provider before anyone asks it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Row {
    /// Its name in settings.
    pub name: &'static str,
    /// How it speaks.
    pub dialect: Dialect,
    /// Where it is.
    pub base_url: &'static str,
    /// How it wants to be told who asks.
    pub auth: Auth,
    /// Where its key is found in the environment: the first one set counts.
    pub key_env: &'static [&'static str],
    /// True when it runs at home.
    pub is_local: bool,
    /// True when a request with the same beginning as the one before costs less.
    pub caches: bool,
    /// True when it refuses every field that is not its own, those of OpenAI among them.
    pub is_strict: bool,
    /// One line about it.
    pub about: &'static str,
}

/// Every provider known by name.
pub const ROWS: &[Row] = &[
    Row {
        key_env: &["OPENAI_API_KEY"],
        about: "OpenAI, chat completions",
        ..hosted("openai", "https://api.openai.com/v1")
    },
    Row {
        dialect: Dialect::Responses,
        key_env: &["OPENAI_API_KEY"],
        about: "OpenAI, responses",
        ..hosted("openai-responses", "https://api.openai.com/v1")
    },
    Row {
        dialect: Dialect::Messages,
        auth: Auth::of(Dialect::Messages),
        key_env: &["ANTHROPIC_API_KEY"],
        about: "Anthropic, messages",
        ..hosted("anthropic", "https://api.anthropic.com")
    },
    Row {
        dialect: Dialect::Ollama,
        key_env: &["OLLAMA_API_KEY"],
        about: "Ollama on this machine, its own API: the only one in which the window can be chosen",
        ..local("ollama", "http://localhost:11434")
    },
    Row { about: "LM Studio on this machine", ..local("lmstudio", "http://localhost:1234/v1") },
    Row {
        key_env: &["LLAMA_API_KEY"],
        about: "llama.cpp's server on this machine",
        ..local("llama.cpp", "http://localhost:8080/v1")
    },
    Row {
        key_env: &["VLLM_API_KEY"],
        about: "vLLM on this machine",
        ..local("vllm", "http://localhost:8000/v1")
    },
    Row {
        key_env: &["OPENROUTER_API_KEY"],
        about: "OpenRouter: many providers behind one address",
        ..hosted("openrouter", "https://openrouter.ai/api/v1")
    },
    Row {
        key_env: &["DEEPSEEK_API_KEY"],
        about: "DeepSeek",
        ..hosted("deepseek", "https://api.deepseek.com/v1")
    },
    Row {
        key_env: &["MISTRAL_API_KEY"],
        caches: false,
        is_strict: true,
        about: "Mistral",
        ..hosted("mistral", "https://api.mistral.ai/v1")
    },
    Row {
        key_env: &["GROQ_API_KEY"],
        is_strict: true,
        about: "Groq",
        ..hosted("groq", "https://api.groq.com/openai/v1")
    },
    Row { key_env: &["XAI_API_KEY"], about: "xAI", ..hosted("xai", "https://api.x.ai/v1") },
    Row {
        key_env: &["GEMINI_API_KEY", "GOOGLE_API_KEY"],
        about: "Google Gemini, the address that speaks like OpenAI",
        ..hosted("gemini", "https://generativelanguage.googleapis.com/v1beta/openai")
    },
    Row {
        key_env: &["TOGETHER_API_KEY"],
        caches: false,
        about: "Together",
        ..hosted("together", "https://api.together.xyz/v1")
    },
];

/// The provider called `name`.
pub fn row(name: &str) -> Option<&'static Row> {
    ROWS.iter().find(|row| row.name == name)
}

const fn hosted(name: &'static str, base_url: &'static str) -> Row {
    Row {
        name,
        dialect: Dialect::Chat,
        base_url,
        auth: Auth::Bearer,
        key_env: &[],
        is_local: false,
        caches: true,
        is_strict: false,
        about: "",
    }
}

const fn local(name: &'static str, base_url: &'static str) -> Row {
    Row { is_local: true, ..hosted(name, base_url) }
}
