//! The providers known by name. To add one is to add a row; only those whose address is certain are here.

use super::Auth;
use crate::dialect::Dialect;

/// What is known about a provider before anyone asks it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ProviderRow {
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
pub const ROWS: &[ProviderRow] = &[
    hosted("openai", "https://api.openai.com/v1", &["OPENAI_API_KEY"], "OpenAI, chat completions"),
    ProviderRow {
        dialect: Dialect::Responses,
        ..hosted("openai-responses", "https://api.openai.com/v1", &["OPENAI_API_KEY"], "OpenAI, responses")
    },
    ProviderRow {
        dialect: Dialect::Messages,
        auth: Auth::of(Dialect::Messages),
        ..hosted("anthropic", "https://api.anthropic.com", &["ANTHROPIC_API_KEY"], "Anthropic, messages")
    },
    ProviderRow {
        dialect: Dialect::Ollama,
        about: "Ollama on this machine, its own API: the only one in which the window can be chosen",
        ..local("ollama", "http://localhost:11434", &["OLLAMA_API_KEY"], "")
    },
    local("lmstudio", "http://localhost:1234/v1", &[], "LM Studio on this machine"),
    local("llama.cpp", "http://localhost:8080/v1", &["LLAMA_API_KEY"], "llama.cpp's server on this machine"),
    local("vllm", "http://localhost:8000/v1", &["VLLM_API_KEY"], "vLLM on this machine"),
    ProviderRow {
        about: "OpenRouter: many providers behind one address",
        ..hosted("openrouter", "https://openrouter.ai/api/v1", &["OPENROUTER_API_KEY"], "")
    },
    hosted("deepseek", "https://api.deepseek.com/v1", &["DEEPSEEK_API_KEY"], "DeepSeek"),
    ProviderRow {
        caches: false,
        is_strict: true,
        ..hosted("mistral", "https://api.mistral.ai/v1", &["MISTRAL_API_KEY"], "Mistral")
    },
    ProviderRow {
        is_strict: true,
        ..hosted("groq", "https://api.groq.com/openai/v1", &["GROQ_API_KEY"], "Groq")
    },
    hosted("xai", "https://api.x.ai/v1", &["XAI_API_KEY"], "xAI"),
    hosted(
        "gemini",
        "https://generativelanguage.googleapis.com/v1beta/openai",
        &["GEMINI_API_KEY", "GOOGLE_API_KEY"],
        "Google Gemini, the address that speaks like OpenAI",
    ),
    ProviderRow {
        caches: false,
        ..hosted("together", "https://api.together.xyz/v1", &["TOGETHER_API_KEY"], "Together")
    },
];

/// The provider called `name`.
pub fn row(name: &str) -> Option<&'static ProviderRow> {
    ROWS.iter().find(|row| row.name == name)
}

const fn hosted(
    name: &'static str,
    base_url: &'static str,
    key_env: &'static [&'static str],
    about: &'static str,
) -> ProviderRow {
    let (dialect, auth) = (Dialect::Chat, Auth::Bearer);
    ProviderRow {
        name,
        dialect,
        base_url,
        auth,
        key_env,
        is_local: false,
        caches: true,
        is_strict: false,
        about,
    }
}

const fn local(
    name: &'static str,
    base_url: &'static str,
    key_env: &'static [&'static str],
    about: &'static str,
) -> ProviderRow {
    ProviderRow { is_local: true, ..hosted(name, base_url, key_env, about) }
}
