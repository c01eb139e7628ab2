//! A provider that requests go to.
//!
//! Most servers speak more than one API. A client's own is used wherever the provider has it: then its bytes are the
//! client's. Chat completions and messages are put into another API where it has not; the others go as they come, and
//! the provider says what it thinks of them.

use super::headers::Manner;
use crate::fault::{Exit, Fault, Outcome};
use komado_engine::model::{KeySource, SCRIPTED, SCRIPTED_WINDOW};
use komado_ops::Context;
use komado_provider::scripted::{Options, Server};
use komado_provider::{Client, Dialect, Provider, overflow};
use tokio::runtime::Handle;

/// A provider that requests go to.
pub(crate) struct Upstream {
    /// Who it is, with the key that is held for it.
    pub(crate) provider: Provider,
    /// Where that key comes from.
    pub(crate) held: KeySource,
    /// Sends and receives; one for all requests.
    pub(crate) client: Client,
    /// Models that lead to it: names, or beginnings that end in `*`.
    pub(crate) models: Vec<String>,
    /// The model that is meant when none is named.
    pub(crate) model: Option<String>,
    /// The window of the built-in model, where it is the one.
    pub(crate) scripted_window: Option<u32>,
    /// The built-in model; it runs for as long as this does.
    _server: Option<Server>,
}

impl Upstream {
    /// The provider called `name`, asked on the threads of `handle`.
    pub(crate) fn open(context: &Context, name: &str, handle: &Handle) -> Outcome<Self> {
        if name == SCRIPTED {
            return Self::scripted(context, handle);
        }
        let (provider, held) = context.models().upstream(name)?;
        Ok(Self { held, ..Self::of(context, provider, handle) })
    }

    fn of(context: &Context, provider: Provider, handle: &Handle) -> Self {
        let of = context.config.models.of(&provider.name);
        let client = Client::on(handle.clone(), context.config.models.patience(&provider.name))
            .final_if(|status, body| overflow::classify(status, body).overflow);
        Self {
            client,
            held: KeySource::Nowhere,
            models: of.map(|of| of.models.clone()).unwrap_or_default(),
            model: of.and_then(|of| of.model.clone()),
            scripted_window: None,
            _server: None,
            provider,
        }
    }

    /// The built-in model, in this process.
    fn scripted(context: &Context, handle: &Handle) -> Outcome<Self> {
        let given = context.config.models.of(SCRIPTED).and_then(|of| of.context_length);
        let window = given.unwrap_or(SCRIPTED_WINDOW);
        let server = Server::start(Options { window: Some(u64::from(window)), ..Options::default() })?;
        let provider = Provider::at(SCRIPTED, Dialect::Chat, server.url())
            .map_err(|error| Fault::new(Exit::Failed, error.to_string()))?;
        let of = Self::of(context, provider, handle);
        Ok(Self {
            scripted_window: Some(window),
            _server: Some(server),
            model: Some(SCRIPTED.to_owned()),
            ..of
        })
    }

    /// What it is called.
    pub(crate) fn name(&self) -> &str {
        &self.provider.name
    }

    /// True when the built-in model answers.
    pub(crate) fn is_scripted(&self) -> bool {
        self.scripted_window.is_some()
    }

    /// How a request of a client that speaks `dialect` reaches it.
    pub(super) fn manner(&self, dialect: Dialect) -> Manner {
        let crosses = matches!(dialect, Dialect::Chat | Dialect::Messages);
        if self.speaks(dialect) || !crosses { Manner::Native } else { Manner::Across }
    }

    /// True when it is known to speak `dialect`.
    pub(crate) fn speaks(&self, dialect: Dialect) -> bool {
        let also: &[Dialect] = match self.name() {
            "openai" | "openai-responses" => &[Dialect::Chat, Dialect::Responses],
            "lmstudio" | "llama.cpp" | "openrouter" => {
                &[Dialect::Chat, Dialect::Responses, Dialect::Messages]
            }
            SCRIPTED => &Dialect::ALL,
            _ => &[],
        };
        self.provider.dialect == dialect || also.contains(&dialect)
    }

    /// The provider as it is asked in `dialect`.
    pub(super) fn as_asked(&self, dialect: Dialect) -> Provider {
        if self.provider.dialect == dialect || self.manner(dialect) == Manner::Across {
            return self.provider.clone();
        }
        let base_url = if dialect == Dialect::Ollama { self.provider.root() } else { self.versioned() };
        Provider { dialect, base_url, ..self.provider.clone() }
    }

    /// Its address up to the version, which most paths follow.
    fn versioned(&self) -> String {
        let endpoint = self.provider.endpoint();
        let leaf = match self.provider.dialect {
            Dialect::Chat => "/chat/completions",
            Dialect::Responses => "/responses",
            Dialect::Messages => "/messages",
            Dialect::Ollama => return format!("{}/v1", self.provider.root()),
        };
        endpoint.strip_suffix(leaf).map(str::to_owned).unwrap_or(endpoint)
    }

    /// The address of a path after the version.
    pub(super) fn url(&self, path: &str, query: Option<&str>) -> String {
        with_query(format!("{}{path}", self.versioned()), query)
    }

    /// The address of a path at its root.
    pub(super) fn root_url(&self, path: &str, query: Option<&str>) -> String {
        with_query(format!("{}{path}", self.provider.root()), query)
    }

    /// The address of a request in `dialect`.
    pub(super) fn endpoint(&self, dialect: Dialect, query: Option<&str>) -> String {
        with_query(self.as_asked(dialect).endpoint(), query)
    }
}

fn with_query(url: String, query: Option<&str>) -> String {
    match query {
        Some(query) if !query.is_empty() => format!("{url}?{query}"),
        _ => url,
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use komado_provider::{Key, Patience};

    /// A provider that nobody asks.
    pub(in super::super) fn upstream(name: &str, dialect: Dialect, held: KeySource) -> Upstream {
        let base = if name == "ollama" { "http://h:1" } else { "http://h:1/v1" };
        let mut provider = Provider::at(name, dialect, base).unwrap();
        if held != KeySource::Nowhere {
            provider = provider.with_key(Key::new("sk-held").unwrap());
        }
        let client = Client::new(Patience::default()).unwrap();
        Upstream { provider, held, client, models: vec![], model: None, scripted_window: None, _server: None }
    }

    #[test]
    fn each_path_is_put_after_the_providers_own_address() {
        let ollama = upstream("ollama", Dialect::Ollama, KeySource::Nowhere);
        let chat = upstream("test", Dialect::Chat, KeySource::Nowhere);
        assert_eq!(chat.endpoint(Dialect::Chat, None), "http://h:1/v1/chat/completions");
        assert_eq!(chat.endpoint(Dialect::Responses, Some("a=b")), "http://h:1/v1/responses?a=b");
        assert_eq!(chat.url("/embeddings", Some("")), "http://h:1/v1/embeddings");
        assert_eq!(ollama.endpoint(Dialect::Ollama, None), "http://h:1/api/chat");
        assert_eq!(ollama.endpoint(Dialect::Responses, None), "http://h:1/v1/responses");
        assert_eq!(ollama.root_url("/api/tags", None), "http://h:1/api/tags");
        let messages = upstream("test", Dialect::Messages, KeySource::Nowhere);
        assert_eq!(
            messages.endpoint(Dialect::Messages, Some("beta=true")),
            "http://h:1/v1/messages?beta=true"
        );
    }

    #[test]
    fn a_clients_own_dialect_is_used_wherever_the_provider_has_it() {
        use Dialect::{Chat, Messages, Ollama, Responses};
        let manner = |name, own, asked| upstream(name, own, KeySource::Nowhere).manner(asked);
        assert_eq!(manner("openai", Chat, Responses), Manner::Native);
        assert_eq!(manner("openai", Chat, Messages), Manner::Across);
        assert_eq!(manner("anthropic", Messages, Chat), Manner::Across);
        assert_eq!(manner("llama.cpp", Chat, Messages), Manner::Native);
        assert_eq!(manner("ollama", Ollama, Chat), Manner::Across);
        assert_eq!(manner("test", Chat, Ollama), Manner::Native);
    }
}
