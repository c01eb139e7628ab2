//! Which provider is meant, where it is, and with which key it is asked.

use crate::app::App;
use crate::connect::Wishes;
use crate::fault::{Fault, Outcome};
use crate::paper::say;
use komado_config::table::SCRIPTED;
use komado_core::session::MetaConfig;
use komado_provider::probe::{Probe, Step};
use komado_provider::{Dialect, Key, Provider, ROWS, Row, row};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// The name of a provider that has only an address.
const CUSTOM: &str = "custom";
/// With nothing configured no model is asked: words that follow a script must not be taken for an answer.
const NO_MODEL: &str = "no model is configured: set OPENAI_API_KEY or ANTHROPIC_API_KEY and give --model NAME, or give \
     --provider ollama --model NAME, or set llm.provider and llm.<provider>.model; --provider scripted (or llm.provider: \
     scripted) asks the built-in scripted model, which only follows a script";

/// Where the key of a provider comes from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Held {
    /// The settings, or the file they name.
    Settings,
    /// The variable that the provider's own tools read.
    Environment,
    /// There is none.
    Nowhere,
}

impl App {
    /// Which provider is meant. The built-in scripted model is never chosen: it has to be named.
    pub(super) fn provider_name(&self, own: &MetaConfig, wishes: &Wishes) -> Outcome<String> {
        if let Some(name) = &wishes.provider {
            return Ok(name.clone());
        }
        if wishes.base_url.is_some() {
            let named = self.config.names_provider().then(|| self.config.provider.clone());
            return Ok(named.unwrap_or_else(|| CUSTOM.to_owned()));
        }
        if let Some(name) = own.llm_provider.as_ref().filter(|name| self.config.is_known(name)) {
            return Ok(name.clone());
        }
        if self.config.names_provider() {
            return Ok(self.config.provider.clone());
        }
        // A session that was made for someone is not handed to another in silence.
        if let Some(name) = &own.llm_provider {
            return Ok(name.clone());
        }
        if self.is_set_up(&self.config.provider) {
            return Ok(self.config.provider.clone());
        }
        if let Some(name) = self.config.only_llm() {
            return Ok(name.to_owned());
        }
        let keyed = ROWS.iter().find(|row| variable(row).is_some());
        keyed.map(|row| row.name.to_owned()).ok_or_else(|| Fault::usage(NO_MODEL))
    }

    /// Whether something was said about a provider, or its key is in the environment.
    fn is_set_up(&self, name: &str) -> bool {
        self.config.llm(name).is_some() || row(name).is_some_and(|row| variable(row).is_some())
    }

    /// A provider with its key. One that asks for a key and has none is an error that names the variable.
    ///
    /// A key from the environment belongs to the provider that was named: it goes to an address on the command line only
    /// when the provider stands there, too.
    pub(crate) fn provider(&self, name: &str, wishes: &Wishes) -> Outcome<Provider> {
        let provider = self.address(name, wishes.base_url.as_deref())?;
        let is_usual = row(name).filter(|row| row.base_url == provider.base_url);
        let own = is_usual.is_some() || wishes.base_url.is_none() || wishes.provider.is_some();
        match (self.key(name, own)?, is_usual) {
            (Some(key), _) => Ok(provider.with_key(key)),
            (None, Some(row)) if !row.is_local && !row.key_env.is_empty() => Err(Fault::usage(format!(
                "{name} asks for a key, and there is none: set {}, or name a file that holds it in llm.{name}.api_key_file",
                row.key_env.join(" or ")
            ))),
            (None, _) => Ok(provider),
        }
    }

    /// A provider as the gateway asks it: without a key it may still be asked, with the client's own.
    pub(crate) fn upstream(&self, name: &str) -> Outcome<(Provider, Held)> {
        let provider = self.address(name, None)?;
        let llm = self.config.llm(name);
        let is_set = llm.is_some_and(|llm| llm.api_key.is_some() || llm.api_key_file.is_some());
        Ok(match self.key(name, true)? {
            Some(key) if is_set => (provider.with_key(key), Held::Settings),
            Some(key) => (provider.with_key(key), Held::Environment),
            None => (provider, Held::Nowhere),
        })
    }

    /// Providers whose key is in the environment; of two that share one, the first.
    pub(crate) fn keyed(&self) -> Vec<&'static str> {
        let mut seen = Vec::new();
        let mut names = Vec::new();
        for row in ROWS {
            if let Some((variable, _)) = variable(row).filter(|(variable, _)| !seen.contains(variable)) {
                seen.push(variable);
                names.push(row.name);
            }
        }
        names
    }

    /// A provider as yet without its key.
    pub(super) fn address(&self, name: &str, base_url: Option<&str>) -> Outcome<Provider> {
        let (llm, row) = (self.config.llm(name), row(name));
        let dialect = llm.and_then(|llm| llm.dialect.as_deref()).and_then(Dialect::named);
        let given = base_url.or_else(|| llm.and_then(|llm| llm.base_url.as_deref()));
        let Some(url) = given.or(row.map(|row| row.base_url)) else { return Err(self.stranger(name)) };
        let dialect = dialect.or(row.map(|row| row.dialect)).unwrap_or(Dialect::Chat);
        if let (None, Some(row)) = (given, row) {
            return Ok(Provider { dialect, ..Provider::from_row(row) });
        }
        let key = if base_url.is_some() { "--base-url".to_owned() } else { format!("llm.{name}.base_url") };
        let at = Provider::at(name, dialect, url).map_err(|why| Fault::usage(format!("{key}: {why}")))?;
        Ok(match row.filter(|row| row.dialect == dialect) {
            Some(row) => Provider { auth: row.auth, caches: row.caches, is_strict: row.is_strict, ..at },
            None => at,
        })
    }

    /// The error for a provider of which nothing is known.
    fn stranger(&self, name: &str) -> Fault {
        let near = self.config.near_provider(name).filter(|near| *near != name);
        let near = near.map(|near| format!("did you mean {near}? ")).unwrap_or_default();
        let known: Vec<&str> = ROWS.iter().map(|row| row.name).chain([SCRIPTED]).collect();
        Fault::usage(format!(
            "nothing is known of provider {name:?}; {near}known by name are {}; any other needs --base-url URL or \
             llm.{name}.base_url",
            known.join(", ")
        ))
    }

    /// The key: from the settings, from the file they name, or from the variable that the provider's own tools read.
    fn key(&self, name: &str, from_environment: bool) -> Outcome<Option<Key>> {
        let llm = self.config.llm(name);
        let (place, text) = if let Some(text) = llm.and_then(|llm| llm.api_key.clone()) {
            (format!("llm.{name}.api_key"), text)
        } else if let Some(path) = llm.and_then(|llm| llm.api_key_file.as_deref()) {
            (format!("llm.{name}.api_key_file: {}", path.display()), read_key(path, name)?)
        } else if let Some((variable, text)) = row(name).filter(|_| from_environment).and_then(variable) {
            (variable.to_owned(), text)
        } else {
            return Ok(None);
        };
        Key::new(&text).map(Some).map_err(|why| Fault::usage(format!("{place}: {why}")))
    }
}

/// The variable that holds the key of a provider, and the key.
fn variable(row: &Row) -> Option<(&'static str, String)> {
    let set =
        |name: &&'static str| Some((*name, std::env::var(name).ok().filter(|text| !text.trim().is_empty())?));
    row.key_env.iter().find_map(set)
}

fn read_key(path: &Path, name: &str) -> Outcome<String> {
    let wrong = |why: std::io::Error| {
        Fault::usage(format!("llm.{name}.api_key_file: cannot read {}: {why}", path.display()))
    };
    let text = std::fs::read_to_string(path).map_err(wrong)?;
    let mode = std::fs::metadata(path).map_err(wrong)?.permissions().mode();
    if mode & 0o077 != 0 {
        let path = path.display();
        say(format!("komado: others can read the key in {path}; `chmod 600 {path}` keeps it to yourself"));
    }
    Ok(text)
}

/// Asks a server step by step how large its window is; `fetch` gives nothing when there was no answer.
pub(super) fn probe(
    provider: &Provider,
    model: &str,
    fetch: &mut dyn FnMut(&Step) -> Option<(u16, String)>,
) -> Option<u64> {
    let probes: &[Probe] = match provider.dialect {
        Dialect::Ollama => &[Probe::Ollama],
        _ => &[Probe::LlamaCpp, Probe::Models],
    };
    for probe in probes {
        for step in probe.steps(model) {
            let (status, body) = fetch(&step)?;
            if let Some(tokens) = probe.read(step.path, &body, model).filter(|_| (200..300).contains(&status))
            {
                return Some(tokens);
            }
        }
    }
    None
}
