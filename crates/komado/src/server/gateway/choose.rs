//! Which provider is meant?
//!
//! The path says so, else the model's name: as `provider/model`, by the lists in the settings, or by the table of models.
//! With nothing configured the providers whose keys are in the environment are asked, else what runs on this machine. The
//! built-in scripted model answers only where it is named; with no provider at all the server does not start.

use super::headers::Signing;
use super::refusal::Refusal;
use super::upstream::Upstream;
use crate::fault::{Fault, Outcome};
use komado_engine::model::{KeySource, SCRIPTED};
use komado_ops::Context;
use komado_provider::registry::Registry;
use komado_provider::{Cancel, Client, Dialect, Method, Patience, Provider, row};
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::Handle;

/// Local servers, and what each of them answers to, in the order in which they are asked.
const LOCAL: [(&str, &str, &str); 3] = [
    ("ollama", "/api/version", "version"),
    ("lmstudio", "/v1/models", "data"),
    ("llama.cpp", "/v1/models", "data"),
];

/// How long a local server may take to connect when it is looked for.
const NEAR: Duration = Duration::from_millis(300);

/// Everyone who can be asked.
pub(crate) struct Upstreams {
    all: Vec<Arc<Upstream>>,
    default: Option<Arc<Upstream>>,
    /// The table of models.
    pub(super) registry: Registry,
    /// How they were found, for whoever starts the server.
    pub(crate) found: Found,
}

/// How providers were found.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Found {
    /// Somebody said so.
    Settings,
    /// Their keys are in the environment.
    Environment,
    /// They run on this machine.
    Local,
}

/// With no provider the server does not start: words that follow a script must not be taken for a model's.
const NO_PROVIDER: &str = "no model provider is set up, no key of one is in the environment, and none runs on this machine: \
     give --upstream NAME (a known one such as openai, anthropic or ollama gets its clients' own keys), or set llm.provider, or \
     set OPENAI_API_KEY or ANTHROPIC_API_KEY; --upstream scripted serves the built-in scripted model, which only follows a script";

/// Who is asked, and for what.
pub(super) struct Choice {
    pub(super) upstream: Arc<Upstream>,
    /// The model as the provider calls it; empty where nobody named one.
    pub(super) model: String,
    /// The client calls it otherwise.
    pub(super) renames: bool,
    /// Whose key it may carry.
    pub(super) signing: Signing,
}

impl Upstreams {
    /// Everyone whom the settings name, else whoever is found; `wished` is asked where nothing else decides.
    pub(crate) fn open(context: &Context, wished: Option<&str>, handle: &Handle) -> Outcome<Self> {
        let default = wished.or(context.config.server.upstream.as_deref());
        let default = default.or(context
            .config
            .models
            .is_provider_set
            .then_some(context.config.models.provider.as_str()));
        let (found, names) = names(context, default).ok_or_else(|| Fault::usage(NO_PROVIDER))?;
        let mut all = Vec::new();
        for name in &names {
            all.push(Arc::new(Upstream::open(context, name, handle)?));
        }
        let default = match default {
            Some(name) => all.iter().find(|upstream| upstream.name() == name).cloned(),
            None => None,
        };
        let registry = context.config.models.registry().unwrap_or_else(|why| {
            tracing::warn!(why = why.to_string(), "the built-in table of models is used");
            Registry::builtin()
        });
        Ok(Self { all, default, registry, found })
    }

    /// All of them.
    pub(crate) fn all(&self) -> &[Arc<Upstream>] {
        &self.all
    }

    /// The one called `name`.
    pub(super) fn get(&self, name: &str) -> Option<&Arc<Upstream>> {
        self.all.iter().find(|upstream| upstream.name() == name)
    }

    /// Who is asked for `model` by a client that speaks `dialect`; the path may have `named` somebody.
    pub(super) fn choose(
        &self,
        named: Option<&str>,
        model: Option<&str>,
        dialect: Dialect,
    ) -> Result<Choice, Refusal> {
        let model = model.unwrap_or_default();
        let chosen = |upstream: &Arc<Upstream>, own: Option<&str>| {
            let upstream = Arc::clone(upstream);
            let signing = self.signing(named, &upstream, dialect);
            let model = own.unwrap_or(model);
            let model = Some(model).filter(|model| !model.is_empty()).or(upstream.model.as_deref());
            let model = model.unwrap_or_default().to_owned();
            Choice { upstream, model, renames: own.is_some(), signing }
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
        found.map(|upstream| chosen(upstream, None)).ok_or_else(|| Refusal::new(503, "no provider is set up"))
    }

    /// A client's key goes only to whom it can be meant for: the one its path names, the only one there is, or one that speaks
    /// the client's API and has no key of its own.
    fn signing(&self, named: Option<&str>, upstream: &Upstream, dialect: Dialect) -> Signing {
        let is_meant = named == Some(upstream.name()) || self.all.len() == 1;
        let is_open = upstream.held == KeySource::Nowhere && upstream.speaks(dialect);
        if is_meant || is_open { Signing::Own } else { Signing::Held }
    }

    /// By the lists in the settings: a whole name over a beginning, a longer beginning over a shorter one.
    fn listed(&self, model: &str) -> Option<&Arc<Upstream>> {
        let fits = |entry: &String| match entry.strip_suffix('*') {
            Some(start) => model.starts_with(start).then_some(start.len()),
            None => (entry == model).then_some(usize::MAX),
        };
        let longest = |upstream: &&Arc<Upstream>| {
            let own = upstream.model.as_ref().filter(|own| *own == model).map(|_| usize::MAX);
            upstream.models.iter().filter_map(fits).chain(own).max()
        };
        let all = self.all.iter().filter(|upstream| longest(upstream).is_some());
        // Of equals the first, in the order of their names.
        all.rev().max_by_key(longest)
    }

    /// By the table of models.
    fn registered(&self, model: &str) -> Option<&Arc<Upstream>> {
        if model.is_empty() {
            return None;
        }
        let own = self.all.iter().find(|upstream| self.registry.get(upstream.name(), model).is_some());
        own.or_else(|| self.get(&self.registry.find(model)?.provider))
    }
}

/// The model in `provider/model`, where the provider is this one.
fn own_name<'m>(upstream: &Upstream, model: &'m str) -> Option<&'m str> {
    model.strip_prefix(upstream.name())?.strip_prefix('/').filter(|own| !own.is_empty())
}

/// The names of everyone who is set up or found; `None` when there is no provider, or only the built-in model and nothing
/// that chooses it.
fn names(context: &Context, default: Option<&str>) -> Option<(Found, Vec<String>)> {
    let is_there = |name: &str| {
        context.config.models.of(name).is_some_and(|of| of.base_url.is_some()) || row(name).is_some()
    };
    let set_up = context
        .config
        .models
        .providers
        .keys()
        .map(String::as_str)
        .filter(|name| *name == SCRIPTED || is_there(name));
    let mut names: Vec<String> = set_up.map(str::to_owned).collect();
    names.extend(default.filter(|name| !names.iter().any(|other| other == name)).map(str::to_owned));
    if default.is_some() || names.iter().any(|name| name != SCRIPTED) {
        return Some((Found::Settings, names));
    }
    let keyed: Vec<String> = context.models().keyed_providers().into_iter().map(str::to_owned).collect();
    let (found, others) =
        if keyed.is_empty() { (Found::Local, local()) } else { (Found::Environment, keyed) };
    let is_found = !others.is_empty();
    names.extend(others);
    is_found.then_some((found, names))
}

/// Who runs on this machine. All are asked at once, and briefly.
fn local() -> Vec<String> {
    let patience = Patience { connect: NEAR, first: NEAR, idle: NEAR, tries: 1, ..Patience::default() };
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

impl Upstreams {
    /// Everyone's name, for messages.
    pub(super) fn listed_names(&self) -> String {
        self.all.iter().map(|upstream| upstream.name()).collect::<Vec<_>>().join(", ")
    }
}

#[cfg(test)]
mod tests {
    use super::super::upstream::tests::upstream;
    use super::*;

    fn all(names: &[(&str, Dialect, &[&str])], default: Option<&str>) -> Upstreams {
        let one = |(name, dialect, models): &(&str, Dialect, &[&str])| {
            let models = models.iter().map(ToString::to_string).collect();
            let mut one = upstream(name, *dialect, KeySource::Nowhere);
            one.models = models;
            Arc::new(one)
        };
        let all: Vec<_> = names.iter().map(one).collect();
        let default = default.and_then(|name| all.iter().find(|one| one.name() == name).cloned());
        Upstreams { all, default, registry: Registry::builtin(), found: Found::Settings }
    }

    fn chosen(upstreams: &Upstreams, named: Option<&str>, model: &str, dialect: Dialect) -> String {
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
        let signing = |some: &Upstreams, named: Option<&str>, model: &str| {
            some.choose(named, Some(model), Chat).unwrap().signing
        };
        assert_eq!(signing(&some, None, "gpt-5"), Signing::Own);
        assert_eq!(signing(&some, None, "claude-x"), Signing::Held);
        assert_eq!(signing(&some, Some("anthropic"), "claude-x"), Signing::Own);
        some.all = vec![
            Arc::new(upstream("openai", Chat, KeySource::Environment)),
            Arc::new(upstream("anthropic", Messages, KeySource::Environment)),
        ];
        assert_eq!(signing(&some, None, "gpt-5"), Signing::Held);
        some.all.truncate(1);
        assert_eq!(signing(&some, None, "gpt-5"), Signing::Own);
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
