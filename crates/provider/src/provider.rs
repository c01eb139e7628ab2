//! Who is spoken to: an address, a dialect and a way to say who one is, all of it data.
//!
//! A provider known by name is a row of a table ([`ROWS`]); any other is an address ([`Provider::at`]). There is no
//! code for a single provider here: what differs is in the row, and how it speaks is its dialect. A key is never shown,
//! neither are the values of headers.

use crate::dialect::Dialect;
use std::fmt;

mod address;
mod key;
mod rows;

pub use address::{BadUrl, shown};
pub(crate) use address::{check, check_whole, is_loopback};
pub use key::{BadKey, Key};
pub use rows::{ROWS, Row, row};

/// How a provider wants to be told who asks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Auth {
    /// It does not ask; a key is not sent.
    None,
    /// `authorization: Bearer KEY`, where there is a key.
    Bearer,
    /// The key alone, under this name.
    Header(&'static str),
}

impl Auth {
    /// What the makers of a dialect ask for.
    pub const fn of(dialect: Dialect) -> Self {
        match dialect {
            Dialect::Messages => Self::Header("x-api-key"),
            Dialect::Chat | Dialect::Responses | Dialect::Ollama => Self::Bearer,
        }
    }

    /// The header that carries `key`, and what stands in it.
    pub fn header(self, key: &str) -> Option<(&'static str, String)> {
        match self {
            Self::None => None,
            Self::Bearer => Some(("authorization", format!("Bearer {key}"))),
            Self::Header(name) => Some((name, key.to_owned())),
        }
    }
}

/// Someone to speak to.
#[derive(Clone)]
pub struct Provider {
    /// What it is called here.
    pub name: String,
    /// How it speaks.
    pub dialect: Dialect,
    /// Where it is, with or without the version that ends most such addresses.
    pub base_url: String,
    /// How it wants to be told who asks.
    pub auth: Auth,
    /// Who asks.
    pub key: Option<Key>,
    /// Sent with every request. A name given here wins over what is sent otherwise.
    pub headers: Vec<(String, String)>,
    /// True when it runs at home: nothing is paid for, and it can be asked what it has loaded.
    pub is_local: bool,
    /// True when it keeps what it has read, so that a request with the same beginning costs less.
    pub caches: bool,
    /// True when it refuses every field that is not its own.
    pub is_strict: bool,
    /// True when it may run models whose templates refuse two messages of the user in a row.
    pub joins: bool,
}

impl Provider {
    /// The provider of a row, as yet without a key.
    pub fn from_row(row: &Row) -> Self {
        Self {
            name: row.name.to_owned(),
            dialect: row.dialect,
            base_url: row.base_url.to_owned(),
            auth: row.auth,
            key: None,
            headers: Vec::new(),
            is_local: row.is_local,
            caches: row.caches,
            is_strict: row.is_strict,
            joins: row.is_local,
        }
    }

    /// A provider at any address. It is taken to keep what it has read: most do, and to be wrong the other way costs more.
    pub fn at(name: &str, dialect: Dialect, base_url: &str) -> Result<Self, BadUrl> {
        let url = check(base_url)?;
        Ok(Self {
            name: name.to_owned(),
            dialect,
            base_url: url.as_str().trim_end_matches('/').to_owned(),
            auth: Auth::of(dialect),
            key: None,
            headers: Vec::new(),
            is_local: address::is_local(&url),
            caches: true,
            is_strict: false,
            joins: true,
        })
    }

    /// The same, asked by the owner of `key`.
    pub fn with_key(self, key: Key) -> Self {
        Self { key: Some(key), ..self }
    }

    /// The header that says who asks, where there is a key; its value is secret.
    pub fn credential(&self) -> Option<(&'static str, String)> {
        self.auth.header(self.key.as_ref()?.reveal())
    }

    /// `text` without the key, should someone have repeated it: some servers do when they refuse one.
    pub fn without_key(&self, text: String) -> String {
        match &self.key {
            Some(key) if text.contains(key.reveal()) => text.replace(key.reveal(), "***"),
            _ => text,
        }
    }

    /// Where requests go. An address may end in its version, in the whole path of the endpoint, or in neither.
    pub fn endpoint(&self) -> String {
        address::endpoint(self.dialect, &self.base_url)
    }

    /// The address without version (`/v1`) and, for a local server or in Ollama's dialect, without `/api`: what a probe
    /// puts its path after.
    pub fn root(&self) -> String {
        address::root(self.dialect, &self.base_url, self.is_local)
    }

    /// One spelling of the address, however it was written, and without credentials: what is learned about a provider
    /// is kept under this.
    pub fn place(&self) -> String {
        self.root()
    }
}

impl fmt::Debug for Provider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = self.headers.iter().map(|(name, _)| name.as_str()).collect();
        f.debug_struct("Provider")
            .field("name", &self.name)
            .field("dialect", &self.dialect)
            .field("base_url", &shown(&self.base_url))
            .field("auth", &self.auth)
            .field("key", &self.key)
            .field("headers", &names)
            .field("is_local", &self.is_local)
            .field("caches", &self.caches)
            .field("is_strict", &self.is_strict)
            .finish()
    }
}

#[cfg(test)]
mod tests;
