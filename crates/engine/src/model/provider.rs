//! Which provider is asked, where it is, and with which key.

use super::{ModelChoice, ModelError, ModelResolver, Note, SCRIPTED};
use crate::error::Result;
use komado_core::session::MetaConfig;
use komado_provider::{Dialect, Key, Provider, ROWS, Row, row};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// The name of a provider that has only an address.
const CUSTOM: &str = "custom";

/// Where the key of a provider comes from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum KeySource {
    /// The settings, or the file they name.
    Settings,
    /// The variable that the provider's own tools read.
    Environment,
    /// There is none.
    Nowhere,
}

impl ModelResolver<'_> {
    /// Which provider is asked. The scripted model is never chosen: it has to be named.
    pub(super) fn provider_name(&self, own: &MetaConfig, choice: &ModelChoice) -> Result<String> {
        let settings = self.settings;
        let set = settings.is_provider_set.then(|| settings.provider.clone());
        if let Some(name) = &choice.provider {
            return Ok(name.clone());
        }
        if choice.base_url.is_some() {
            return Ok(set.unwrap_or_else(|| CUSTOM.to_owned()));
        }
        if let Some(name) = own.llm_provider.as_ref().filter(|name| settings.is_known(name)) {
            return Ok(name.clone());
        }
        // A session that was made for one provider is not handed to another in silence.
        if let Some(name) = set.or_else(|| own.llm_provider.clone()) {
            return Ok(name);
        }
        let name = &settings.provider;
        if settings.of(name).is_some() || row(name).is_some_and(|row| self.variable(row).is_some()) {
            return Ok(name.clone());
        }
        if let Some(name) = settings.only_provider() {
            return Ok(name.to_owned());
        }
        let keyed = ROWS.iter().find(|row| self.variable(row).is_some());
        Ok(keyed.map(|row| row.name.to_owned()).ok_or(ModelError::NothingConfigured)?)
    }

    /// A provider with its key. One that asks for a key and has none is an error that names the variable.
    ///
    /// A key from the environment belongs to the provider that was named: it goes to a chosen address only when the
    /// provider was chosen, too.
    pub fn provider(&self, name: &str, choice: &ModelChoice) -> Result<Provider> {
        let provider = self.address(name, choice.base_url.as_deref())?;
        let is_usual = row(name).filter(|row| row.base_url == provider.base_url);
        let own = is_usual.is_some() || choice.base_url.is_none() || choice.provider.is_some();
        match (self.key(name, own)?, is_usual) {
            (Some(key), _) => Ok(provider.with_key(key)),
            (None, Some(row)) if !row.is_local && !row.key_env.is_empty() => {
                let variables = row.key_env.join(" or ");
                Err(ModelError::NoKey { provider: name.to_owned(), variables }.into())
            }
            (None, _) => Ok(provider),
        }
    }

    /// A provider as the gateway asks it: without a key it may still be asked, with the client's own.
    pub fn upstream(&self, name: &str) -> Result<(Provider, KeySource)> {
        let provider = self.address(name, None)?;
        let of = self.settings.of(name);
        let is_set = of.is_some_and(|of| of.api_key.is_some() || of.api_key_file.is_some());
        Ok(match self.key(name, true)? {
            Some(key) if is_set => (provider.with_key(key), KeySource::Settings),
            Some(key) => (provider.with_key(key), KeySource::Environment),
            None => (provider, KeySource::Nowhere),
        })
    }

    /// Providers whose key is in the environment; of two that share one, the first.
    pub fn keyed_providers(&self) -> Vec<&'static str> {
        let mut seen = Vec::new();
        let mut names = Vec::new();
        for row in ROWS {
            if let Some((variable, _)) = self.variable(row).filter(|(variable, _)| !seen.contains(variable)) {
                seen.push(variable);
                names.push(row.name);
            }
        }
        names
    }

    /// The place under which lessons about a provider are kept; `None` when it is not known any more.
    pub(super) fn place(&self, name: &str) -> Option<String> {
        match name {
            SCRIPTED => Some(format!("{SCRIPTED}:")),
            name => Some(self.address(name, None).ok()?.place()),
        }
    }

    /// A provider as yet without its key.
    fn address(&self, name: &str, base_url: Option<&str>) -> Result<Provider> {
        let (of, row) = (self.settings.of(name), row(name));
        let given = base_url.or_else(|| of.and_then(|of| of.base_url.as_deref()));
        let Some(url) = given.or(row.map(|row| row.base_url)) else {
            let near = self.settings.nearest_provider(name).filter(|near| *near != name);
            let near = near.map(str::to_owned);
            return Err(ModelError::UnknownProvider { name: name.to_owned(), near }.into());
        };
        let dialect = of.and_then(|of| of.dialect).or(row.map(|row| row.dialect)).unwrap_or(Dialect::Chat);
        if let (None, Some(row)) = (given, row) {
            return Ok(Provider { dialect, ..Provider::from_row(row) });
        }
        let at = Provider::at(name, dialect, url).map_err(|why| {
            let place = base_url.map_or_else(|| format!("llm.{name}.base_url"), |_| "--base-url".to_owned());
            ModelError::BadValue { place, why: why.to_string() }
        })?;
        Ok(match row.filter(|row| row.dialect == dialect) {
            Some(row) => Provider { auth: row.auth, caches: row.caches, is_strict: row.is_strict, ..at },
            None => at,
        })
    }

    /// The key: from the settings, from the file they name, or from the variable that the provider's own tools read.
    fn key(&self, name: &str, from_environment: bool) -> Result<Option<Key>> {
        let of = self.settings.of(name);
        let (place, text) = if let Some(text) = of.and_then(|of| of.api_key.clone()) {
            (format!("llm.{name}.api_key"), text)
        } else if let Some(path) = of.and_then(|of| of.api_key_file.as_deref()) {
            (format!("llm.{name}.api_key_file: {}", path.display()), self.read_key(path, name)?)
        } else if let Some((variable, text)) =
            row(name).filter(|_| from_environment).and_then(|row| self.variable(row))
        {
            (variable.to_owned(), text.to_owned())
        } else {
            return Ok(None);
        };
        Ok(Some(Key::new(&text).map_err(|why| ModelError::BadValue { place, why: why.to_string() })?))
    }

    /// The variable that holds the key of a provider, and the key.
    fn variable(&self, row: &Row) -> Option<(&'static str, &str)> {
        row.key_env.iter().find_map(|name| Some((*name, self.settings.environment.get(*name)?.as_str())))
    }

    fn read_key(&self, path: &Path, name: &str) -> Result<String> {
        let read = || Ok((std::fs::read_to_string(path)?, std::fs::metadata(path)?.permissions().mode()));
        let (text, mode) = read().map_err(|why: std::io::Error| {
            let (place, path) = (format!("llm.{name}.api_key_file"), path.display());
            ModelError::BadValue { place, why: format!("cannot read {path}: {why}") }
        })?;
        if mode & 0o077 != 0 {
            (self.note)(Note::KeyIsReadable { path: path.to_owned() });
        }
        Ok(text)
    }
}
