//! The providers that requests go to: which one is meant, how it is asked, and how large the window of its model is.
//!
//! The path names the provider, else the model's name does: as `provider/model`, by the lists in the settings, or by the table
//! of models. With nothing configured the providers whose keys are in the environment are asked, else what runs on this
//! machine. The built-in scripted model answers only where it is named; with no provider at all the server does not start.
//!
//! Most servers speak more than one API. A client's own is used wherever the provider has it: then its bytes are the
//! client's. Chat completions and messages are put into another API where it has not; the others go as they come, and
//! the provider says what it thinks of them.

use super::headers::{KeyPolicy, Translation};
use super::{Gateway, GatewayRefusal};
use komado_core::session::MetaConfig;
use komado_engine::exchange::ModelTarget;
use komado_engine::lesson::{ModelWindow, WindowSource};
use komado_engine::model::{KeySource, KnownModel, ModelChoice, SCRIPTED, SCRIPTED_WINDOW};
use komado_ops::{FaultKind, OpFault, OpResult, OperationContext};
use komado_provider::registry::Registry;
use komado_provider::scripted::{ScriptedOptions, ScriptedServer};
use komado_provider::{
    Cancel, Client, ClientTimeouts, Dialect, Method, Provider, ResponseForm, overflow, row,
};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tokio::runtime::Handle;

/// A provider that requests go to.
pub(crate) struct GatewayUpstream {
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
    _server: Option<ScriptedServer>,
}

impl GatewayUpstream {
    /// The provider called `name`, asked on the threads of `handle`.
    pub(crate) fn open(context: &OperationContext, name: &str, handle: &Handle) -> OpResult<Self> {
        if name == SCRIPTED {
            return Self::scripted(context, handle);
        }
        let (provider, held) = context.models().upstream(name)?;
        Ok(Self { held, ..Self::of(context, provider, handle) })
    }

    fn of(context: &OperationContext, provider: Provider, handle: &Handle) -> Self {
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
    fn scripted(context: &OperationContext, handle: &Handle) -> OpResult<Self> {
        let given = context.config.models.of(SCRIPTED).and_then(|of| of.context_length);
        let window = given.unwrap_or(SCRIPTED_WINDOW);
        let server = ScriptedServer::start(ScriptedOptions {
            window: Some(u64::from(window)),
            ..ScriptedOptions::default()
        })?;
        let provider = Provider::at(SCRIPTED, Dialect::Chat, server.url())
            .map_err(|error| OpFault::new(FaultKind::Failed, error.to_string()))?;
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
    pub(super) fn manner(&self, dialect: Dialect) -> Translation {
        let crosses = matches!(dialect, Dialect::Chat | Dialect::Messages);
        if self.speaks(dialect) || !crosses { Translation::Native } else { Translation::Across }
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
        if self.provider.dialect == dialect || self.manner(dialect) == Translation::Across {
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

/// Local servers, and what each of them answers to, in the order in which they are asked.
const LOCAL: [(&str, &str, &str); 3] = [
    ("ollama", "/api/version", "version"),
    ("lmstudio", "/v1/models", "data"),
    ("llama.cpp", "/v1/models", "data"),
];

/// How long a local server may take to connect when it is looked for.
const NEAR: Duration = Duration::from_millis(300);

/// All providers that can be asked.
pub(crate) struct GatewayUpstreams {
    all: Vec<Arc<GatewayUpstream>>,
    default: Option<Arc<GatewayUpstream>>,
    /// The table of models.
    pub(super) registry: Registry,
    /// How they were found.
    pub(crate) found: ProvidersFound,
}

/// How providers were found.
#[derive(Clone, Copy, PartialEq, Eq, Debug, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum ProvidersFound {
    /// The settings name them.
    Settings,
    /// Their keys are in the environment.
    Environment,
    /// They run on this machine.
    Local,
}

/// With no provider the server does not start: words that follow a script must not be taken for a model's.
const NO_PROVIDER: &str = "no model provider is set up, no key of one is in the environment, and none runs on this machine: \
     give --upstream NAME or --upstream URL (it gets its clients' own keys; known names are openai, anthropic, ollama and \
     others), or set llm.provider, or \
     set OPENAI_API_KEY or ANTHROPIC_API_KEY; --upstream scripted serves the built-in scripted model, which only follows a script";

/// Which provider is asked, and for what.
pub(super) struct UpstreamChoice {
    pub(super) upstream: Arc<GatewayUpstream>,
    /// The model as the provider calls it; empty where none is named.
    pub(super) model: String,
    /// The client calls it otherwise.
    pub(super) renames: bool,
    /// Whose key it may carry.
    pub(super) signing: KeyPolicy,
}

impl GatewayUpstreams {
    /// The providers that the settings name, else those that are found; `wished` is asked where nothing else decides.
    pub(crate) fn open(context: &OperationContext, wished: Option<&str>, handle: &Handle) -> OpResult<Self> {
        let (server, models) = (&context.config.server, &context.config.models);
        let set = models.is_provider_set.then_some(models.provider.as_str());
        let default = wished.or(server.upstream.as_deref()).or(set);
        let (found, names) = names(context, default).ok_or_else(|| OpFault::usage(NO_PROVIDER))?;
        let mut all = Vec::new();
        for name in &names {
            all.push(Arc::new(GatewayUpstream::open(context, name, handle)?));
        }
        let default = default.and_then(|name| all.iter().find(|upstream| upstream.name() == name).cloned());
        let registry = models.registry().unwrap_or_else(|why| {
            tracing::warn!(why = why.to_string(), "the built-in table of models is used");
            Registry::builtin()
        });
        Ok(Self { all, default, registry, found })
    }

    /// All of them.
    pub(crate) fn all(&self) -> &[Arc<GatewayUpstream>] {
        &self.all
    }

    /// All names, for messages.
    pub(super) fn listed_names(&self) -> String {
        self.all.iter().map(|upstream| upstream.name()).collect::<Vec<_>>().join(", ")
    }

    /// The one called `name`.
    pub(super) fn get(&self, name: &str) -> Option<&Arc<GatewayUpstream>> {
        self.all.iter().find(|upstream| upstream.name() == name)
    }

    /// The provider of `model` for a client that speaks `dialect`; the path may have `named` one.
    pub(super) fn choose(
        &self,
        named: Option<&str>,
        model: Option<&str>,
        dialect: Dialect,
    ) -> Result<UpstreamChoice, GatewayRefusal> {
        let model = model.unwrap_or_default();
        let chosen = |upstream: &Arc<GatewayUpstream>, own: Option<&str>| {
            let upstream = Arc::clone(upstream);
            let signing = self.signing(named, &upstream, dialect);
            let model = own.unwrap_or(model);
            let model = Some(model).filter(|model| !model.is_empty()).or(upstream.model.as_deref());
            let model = model.unwrap_or_default().to_owned();
            UpstreamChoice { upstream, model, renames: own.is_some(), signing }
        };
        if let Some(upstream) = named.and_then(|name| self.get(name)) {
            return Ok(chosen(upstream, own_name(upstream, model)));
        }
        if let Some((upstream, own)) =
            self.all.iter().find_map(|upstream| Some((upstream, own_name(upstream, model)?)))
        {
            return Ok(chosen(upstream, Some(own)));
        }
        // The built-in model answers where it is named or the default, and stands in for no provider.
        let models = || self.all.iter().filter(|upstream| upstream.name() != SCRIPTED);
        let found = self
            .listed(model)
            .or(self.default.as_ref())
            .or_else(|| self.registered(model))
            .or_else(|| models().find(|upstream| upstream.speaks(dialect)))
            .or_else(|| models().next());
        found
            .map(|upstream| chosen(upstream, None))
            .ok_or_else(|| GatewayRefusal::new(503, "no provider is set up"))
    }

    /// A client's key goes only to whom it can be meant for: the one its path names, the only one there is, or one that speaks
    /// the client's API and has no key of its own.
    fn signing(&self, named: Option<&str>, upstream: &GatewayUpstream, dialect: Dialect) -> KeyPolicy {
        let is_meant = named == Some(upstream.name()) || self.all.len() == 1;
        let is_open = upstream.held == KeySource::Nowhere && upstream.speaks(dialect);
        if is_meant || is_open { KeyPolicy::Own } else { KeyPolicy::Held }
    }

    /// By the lists in the settings: a whole name over a beginning, a longer beginning over a shorter one.
    fn listed(&self, model: &str) -> Option<&Arc<GatewayUpstream>> {
        let fits = |entry: &String| match entry.strip_suffix('*') {
            Some(start) => model.starts_with(start).then_some(start.len()),
            None => (entry == model).then_some(usize::MAX),
        };
        let longest = |upstream: &&Arc<GatewayUpstream>| {
            let own = upstream.model.as_ref().filter(|own| *own == model).map(|_| usize::MAX);
            upstream.models.iter().filter_map(fits).chain(own).max()
        };
        let all = self.all.iter().filter(|upstream| longest(upstream).is_some());
        // Of equals the first, in the order of their names.
        all.rev().max_by_key(longest)
    }

    /// By the table of models.
    fn registered(&self, model: &str) -> Option<&Arc<GatewayUpstream>> {
        if model.is_empty() {
            return None;
        }
        let own = self.all.iter().find(|upstream| self.registry.get(upstream.name(), model).is_some());
        own.or_else(|| self.get(&self.registry.find(model)?.provider))
    }
}

/// The model in `provider/model`, where the provider is this one.
fn own_name<'m>(upstream: &GatewayUpstream, model: &'m str) -> Option<&'m str> {
    model.strip_prefix(upstream.name())?.strip_prefix('/').filter(|own| !own.is_empty())
}

/// The names of the providers that are set up or found; `None` when there is no provider, or only the built-in model and nothing
/// that chooses it.
fn names(context: &OperationContext, default: Option<&str>) -> Option<(ProvidersFound, Vec<String>)> {
    let models = &context.config.models;
    let is_there = |name: &&String| {
        *name == SCRIPTED || models.of(name).is_some_and(|of| of.base_url.is_some()) || row(name).is_some()
    };
    let mut names: Vec<String> = models.providers.keys().filter(is_there).cloned().collect();
    names.extend(default.filter(|name| !names.iter().any(|other| other == name)).map(str::to_owned));
    if default.is_some() || names.iter().any(|name| name != SCRIPTED) {
        return Some((ProvidersFound::Settings, names));
    }
    let keyed: Vec<String> = context.models().keyed_providers().into_iter().map(str::to_owned).collect();
    let (found, others) = if keyed.is_empty() {
        (ProvidersFound::Local, local())
    } else {
        (ProvidersFound::Environment, keyed)
    };
    let is_found = !others.is_empty();
    names.extend(others);
    is_found.then_some((found, names))
}

/// Who runs on this machine. All are asked at once, and briefly.
fn local() -> Vec<String> {
    let patience =
        ClientTimeouts { connect: NEAR, first: NEAR, idle: NEAR, tries: 1, ..ClientTimeouts::default() };
    let Ok(client) = Client::new(patience) else { return Vec::new() };
    let asks = LOCAL.map(|(name, path, field)| {
        let client = client.clone();
        std::thread::spawn(move || answers(&client, name, path, field).then(|| name.to_owned()))
    });
    asks.into_iter().filter_map(|ask| ask.join().ok().flatten()).collect()
}

/// True when a server answers as the one called `name` does: any program may listen at a port.
fn answers(client: &Client, name: &str, path: &str, field: &str) -> bool {
    let Some(provider) = row(name).map(Provider::from_row) else { return false };
    let answer = client.fetch(&provider, Method::GET, path, None, &Cancel::default());
    let Ok((200, body)) = answer else { return false };
    serde_json::from_str::<serde_json::Value>(&body).is_ok_and(|value| value.get(field).is_some())
}

/// How long what is known of a model counts.
const LIFE: Duration = Duration::from_secs(60);
/// Models that are remembered; a client may name any.
const MOST: usize = 1024;

/// What is known of the models that were asked for, by provider, model and dialect.
pub(super) type ModelWindows = Mutex<HashMap<(String, String, Dialect), ModelSlot>>;

type ModelSlot = Arc<Mutex<Option<(Instant, Arc<KnownModel>)>>>;

impl Gateway {
    /// Everything a turn needs to ask `model` of `upstream` in the manner of a client that speaks `dialect`, and its window
    /// where it is known. A window that is not known is 0: nothing is edited until a refusal tells.
    ///
    /// A server is probed at most once a minute for each model; what was learned from refusals is read anew for every
    /// request, because it may have been learned a moment ago.
    pub(super) fn asking(
        &self,
        upstream: &GatewayUpstream,
        model: &str,
        dialect: Dialect,
    ) -> (ModelTarget, Option<ModelWindow>) {
        let known = self.known(upstream, model, dialect);
        let mut asking = known.asking.clone();
        // A store that is away has learned nothing.
        let window = known.window(&self.house.context.models().lesson(&asking).unwrap_or_default());
        if let Some(window) = window {
            (asking.window, asking.is_given) = (window.tokens, window.told == WindowSource::Given);
        }
        asking.cancel = Default::default();
        (asking, window)
    }

    fn known(&self, upstream: &GatewayUpstream, model: &str, dialect: Dialect) -> Arc<KnownModel> {
        let slot = self.slot(upstream.name(), model, dialect);
        // Held while the server is asked: those who come meanwhile want the same answer.
        let mut slot = slot.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, known)) = slot.as_ref().filter(|(at, _)| at.elapsed() < LIFE) {
            return Arc::clone(known);
        }
        let provider = upstream.as_asked(dialect);
        let mut asking = ModelTarget::new(upstream.client.clone(), provider, model, 0);
        asking.known_as = upstream.is_scripted().then(|| format!("{SCRIPTED}:"));
        asking.form = ResponseForm::Stream;
        let (own, choice) = (MetaConfig::default(), ModelChoice::default());
        let models = self.house.context.models();
        let known = models.known(asking, &own, &choice, upstream.scripted_window, &self.upstreams.registry);
        let known = Arc::new(known);
        // A server that is too busy to answer has the window it had.
        let known = slot.take().map(|(_, before)| before).filter(|_| known.is_silent()).unwrap_or(known);
        *slot = Some((Instant::now(), Arc::clone(&known)));
        known
    }

    fn slot(&self, upstream: &str, model: &str, dialect: Dialect) -> ModelSlot {
        let mut slots = self.windows.lock().unwrap_or_else(PoisonError::into_inner);
        if slots.len() >= MOST {
            slots.clear();
        }
        let name = (upstream.to_owned(), model.to_owned(), dialect);
        Arc::clone(slots.entry(name).or_default())
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use komado_provider::{ApiKey, ClientTimeouts};

    /// A provider that is never asked.
    pub(in super::super) fn upstream(name: &str, dialect: Dialect, held: KeySource) -> GatewayUpstream {
        let base = if name == "ollama" { "http://h:1" } else { "http://h:1/v1" };
        let mut provider = Provider::at(name, dialect, base).unwrap();
        if held != KeySource::Nowhere {
            provider = provider.with_key(ApiKey::new("sk-held").unwrap());
        }
        let client = Client::new(ClientTimeouts::default()).unwrap();
        GatewayUpstream {
            provider,
            held,
            client,
            models: vec![],
            model: None,
            scripted_window: None,
            _server: None,
        }
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
        assert_eq!(manner("openai", Chat, Responses), Translation::Native);
        assert_eq!(manner("openai", Chat, Messages), Translation::Across);
        assert_eq!(manner("anthropic", Messages, Chat), Translation::Across);
        assert_eq!(manner("llama.cpp", Chat, Messages), Translation::Native);
        assert_eq!(manner("ollama", Ollama, Chat), Translation::Across);
        assert_eq!(manner("test", Chat, Ollama), Translation::Native);
    }

    fn all(names: &[(&str, Dialect, &[&str])], default: Option<&str>) -> GatewayUpstreams {
        let one = |(name, dialect, models): &(&str, Dialect, &[&str])| {
            let models = models.iter().map(ToString::to_string).collect();
            let mut one = upstream(name, *dialect, KeySource::Nowhere);
            one.models = models;
            Arc::new(one)
        };
        let all: Vec<_> = names.iter().map(one).collect();
        let default = default.and_then(|name| all.iter().find(|one| one.name() == name).cloned());
        GatewayUpstreams { all, default, registry: Registry::builtin(), found: ProvidersFound::Settings }
    }

    fn chosen(upstreams: &GatewayUpstreams, named: Option<&str>, model: &str, dialect: Dialect) -> String {
        let choice = upstreams.choose(named, Some(model), dialect).unwrap();
        format!("{} {}{}", choice.upstream.name(), choice.model, if choice.renames { " renamed" } else { "" })
    }

    #[test]
    fn the_path_wins_then_the_models_name_then_the_lists_then_the_default() {
        use Dialect::{Chat, Messages};
        let some = all(
            &[
                ("anthropic", Messages, &[]),
                ("社内", Chat, &["gpt-*", "gpt-5-mini", "x"]),
                ("openai", Chat, &["gpt-5*"]),
            ],
            Some("anthropic"),
        );
        assert_eq!(chosen(&some, Some("openai"), "x", Chat), "openai x");
        assert_eq!(chosen(&some, Some("openai"), "openai/x", Chat), "openai x renamed");
        assert_eq!(chosen(&some, None, "社内/大規模", Chat), "社内 大規模 renamed");
        assert_eq!(chosen(&some, None, "gpt-4", Chat), "社内 gpt-4");
        assert_eq!(chosen(&some, None, "gpt-5", Chat), "openai gpt-5");
        assert_eq!(chosen(&some, None, "gpt-5-mini", Chat), "社内 gpt-5-mini");
        assert_eq!(chosen(&some, None, "unknown", Chat), "anthropic unknown");
        assert_eq!(chosen(&some, None, "acme/model", Chat), "anthropic acme/model");
    }

    #[test]
    fn a_clients_key_goes_only_to_whom_it_can_be_meant_for() {
        use Dialect::{Chat, Messages};
        let mut some = all(&[("openai", Chat, &[]), ("anthropic", Messages, &["claude-*"])], None);
        let signing = |some: &GatewayUpstreams, named: Option<&str>, model: &str| {
            some.choose(named, Some(model), Chat).unwrap().signing
        };
        assert_eq!(signing(&some, None, "gpt-5"), KeyPolicy::Own);
        assert_eq!(signing(&some, None, "claude-x"), KeyPolicy::Held);
        assert_eq!(signing(&some, Some("anthropic"), "claude-x"), KeyPolicy::Own);
        some.all = vec![
            Arc::new(upstream("openai", Chat, KeySource::Environment)),
            Arc::new(upstream("anthropic", Messages, KeySource::Environment)),
        ];
        assert_eq!(signing(&some, None, "gpt-5"), KeyPolicy::Held);
        some.all.truncate(1);
        assert_eq!(signing(&some, None, "gpt-5"), KeyPolicy::Own);
    }

    #[test]
    fn without_a_default_the_table_of_models_decides_and_then_the_dialect() {
        use Dialect::{Chat, Messages, Ollama};
        let some = all(&[("openai", Chat, &[]), ("anthropic", Messages, &[])], None);
        let claude =
            Registry::builtin().models().iter().find(|m| m.provider == "anthropic").unwrap().id.clone();
        assert_eq!(chosen(&some, None, &claude, Chat), format!("anthropic {claude}"));
        assert_eq!(chosen(&some, None, "nobody-knows", Messages), "anthropic nobody-knows");
        assert_eq!(chosen(&some, None, "", Ollama), "openai ");
    }

    #[test]
    fn the_built_in_model_stands_in_for_no_provider() {
        use Dialect::{Chat, Messages, Ollama};
        let mut some = all(&[(SCRIPTED, Chat, &[]), ("openai", Chat, &[])], None);
        for dialect in [Chat, Messages, Ollama] {
            assert_eq!(chosen(&some, None, "unknown", dialect), "openai unknown");
        }
        assert_eq!(chosen(&some, Some(SCRIPTED), "m", Messages), "scripted m");
        assert_eq!(chosen(&some, None, "scripted/m", Messages), "scripted m renamed");
        some.all.truncate(1);
        assert!(some.choose(None, Some("unknown"), Chat).is_err());
        some.default = some.all.first().cloned();
        assert_eq!(chosen(&some, None, "unknown", Chat), "scripted unknown");
    }
}
