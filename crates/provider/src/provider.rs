//! Who is spoken to: an address, a dialect and a way to say who one is, all of it data.
//!
//! A provider known by name is a row of a table ([`ROWS`]); any other is an address ([`Provider::at`]). There is no
//! code for a single provider here: what differs is in the row, and how it speaks is its dialect. A key is never shown,
//! neither are the values of headers.

mod rows;
#[cfg(test)]
mod tests;

pub use rows::{ProviderRow, ROWS, row};

use crate::dialect::Dialect;
use reqwest::Url;
use std::fmt;
use std::net::IpAddr;

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
    pub key: Option<ApiKey>,
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
    pub fn from_row(row: &ProviderRow) -> Self {
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
            is_local: is_local(&url),
            caches: true,
            is_strict: false,
            joins: true,
        })
    }

    /// The same, asked by the owner of `key`.
    pub fn with_key(self, key: ApiKey) -> Self {
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
        endpoint(self.dialect, &self.base_url)
    }

    /// The address without version (`/v1`) and, for a local server or in Ollama's dialect, without `/api`: what a probe
    /// puts its path after.
    pub fn root(&self) -> String {
        root(self.dialect, &self.base_url, self.is_local)
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

// A secret that lets one ask. It is sent and never shown: not in errors, not when debugging.

/// A key.
#[derive(Clone, PartialEq, Eq)]
pub struct ApiKey(String);

/// Why a text cannot be a key. The text itself is never repeated.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BadKey {
    /// Nothing, or only blanks.
    #[error("the key is empty; set it, or leave it out for a server that asks for none")]
    Empty,
    /// More than one line, or a character that no line has.
    #[error("the key holds a line break or another control character; it must be one line, copy it again")]
    Control,
    /// A letter that no key has.
    #[error("the key holds a character that is not ASCII; something else was copied with it, copy it again")]
    NotAscii,
}

impl ApiKey {
    /// Takes a key; blanks around it are dropped.
    pub fn new(text: &str) -> Result<Self, BadKey> {
        let text = text.trim();
        if text.is_empty() {
            return Err(BadKey::Empty);
        }
        if text.chars().any(char::is_control) {
            return Err(BadKey::Control);
        }
        if !text.is_ascii() {
            return Err(BadKey::NotAscii);
        }
        Ok(Self(text.to_owned()))
    }

    /// The secret itself, for the one header it goes into.
    pub(crate) fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for ApiKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Key(***)")
    }
}

impl fmt::Display for ApiKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

// What an address means: what is wrong with it, where its endpoint is, whether it is at home.
//
// People paste addresses as they find them: with `/v1`, without, with the whole path. Where there is one sensible
// reading it is taken. Credentials in an address are refused, since an address is shown and kept; so is a query.

/// What is wrong with an address. Nothing in it that could be a secret is repeated.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BadUrl {
    /// Nothing, or only blanks.
    #[error("the base URL is empty; give one such as http://localhost:11434")]
    Empty,
    /// `localhost:11434`.
    #[error("base URL without a scheme; write http:// or https:// before it: {given}")]
    NoScheme {
        /// What was given.
        given: String,
    },
    /// `ftp://…`.
    #[error("base URL with a scheme that is neither http nor https: {scheme}")]
    Scheme {
        /// The scheme.
        scheme: String,
    },
    /// `https://user:secret@…`.
    #[error(
        "base URL with credentials in it; give the key apart from the address, which is shown and kept: {given}"
    )]
    Credentials {
        /// The address without them.
        given: String,
    },
    /// `https://…?key=…`.
    #[error("base URL with a query or fragment; end it before the ? or #: {given}")]
    Query {
        /// The address without it.
        given: String,
    },
    /// Not a URL at all.
    #[error("not a URL: {given}: {why}")]
    NotUrl {
        /// What was given.
        given: String,
        /// What is wrong with it.
        why: String,
    },
}

/// Reads an address that others are made from.
pub(crate) fn check(text: &str) -> Result<Url, BadUrl> {
    let url = check_whole(text)?;
    if url.query().is_some() || url.fragment().is_some() {
        return Err(BadUrl::Query { given: shown(text) });
    }
    Ok(url)
}

/// Reads an address that is used as it is, query included.
pub(crate) fn check_whole(text: &str) -> Result<Url, BadUrl> {
    let text = text.trim();
    let given = shown(text);
    if text.is_empty() {
        return Err(BadUrl::Empty);
    }
    if !text.contains("://") {
        return Err(BadUrl::NoScheme { given });
    }
    let url =
        Url::parse(text).map_err(|why| BadUrl::NotUrl { given: given.clone(), why: why.to_string() })?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(BadUrl::Scheme { scheme: url.scheme().to_owned() });
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(BadUrl::Credentials { given });
    }
    Ok(url)
}

/// An address that may be shown: without credentials, query and fragment, whatever else is wrong with it.
pub fn shown(text: &str) -> String {
    let text = text.trim();
    let text = &text[..text.find(['?', '#']).unwrap_or(text.len())];
    let (scheme, rest) = text.split_once("://").map_or(("", text), |(scheme, rest)| (scheme, rest));
    let rest = rest.rsplit_once('@').map_or(rest, |(_, after)| after);
    if scheme.is_empty() { rest.to_owned() } else { format!("{scheme}://{rest}") }
}

/// Where requests in `dialect` go.
fn endpoint(dialect: Dialect, base_url: &str) -> String {
    let (origin, path) = parts(base_url);
    let leaf = leaf(dialect);
    if path.ends_with(leaf) {
        return format!("{origin}{path}");
    }
    let path = match dialect {
        // As OpenAI's own libraries read it: a path is the whole prefix; only without one is the version missing.
        Dialect::Chat | Dialect::Responses if path.is_empty() => "/v1",
        Dialect::Chat | Dialect::Responses => &path,
        Dialect::Messages => path.strip_suffix("/v1").unwrap_or(&path),
        Dialect::Ollama => bare(&path),
    };
    match dialect {
        Dialect::Messages => format!("{origin}{path}/v1{leaf}"),
        _ => format!("{origin}{path}{leaf}"),
    }
}

/// The address that probes begin with. `/api` goes only where it is a version like `/v1`, and not part of the way, as
/// it is in `https://openrouter.ai/api/v1`.
fn root(dialect: Dialect, base_url: &str, is_local: bool) -> String {
    let (origin, path) = parts(base_url);
    let path = path.strip_suffix(leaf(dialect)).unwrap_or(&path);
    let path = if is_local || dialect == Dialect::Ollama {
        bare(path)
    } else {
        path.strip_suffix("/v1").unwrap_or(path)
    };
    format!("{origin}{path}")
}

/// The last part of an endpoint.
const fn leaf(dialect: Dialect) -> &'static str {
    match dialect {
        Dialect::Chat => "/chat/completions",
        Dialect::Responses => "/responses",
        Dialect::Messages => "/messages",
        Dialect::Ollama => "/api/chat",
    }
}

/// A path without the version or `/api`, or both, at its end.
fn bare(path: &str) -> &str {
    let path = path.strip_suffix("/v1").unwrap_or(path);
    path.strip_suffix("/api").unwrap_or(path)
}

/// Origin and path, neither with a slash at its end.
fn parts(base_url: &str) -> (String, String) {
    let text = shown(base_url);
    let Ok(mut url) = Url::parse(&text) else {
        return (text.trim_end_matches('/').to_owned(), String::new());
    };
    let path = url.path().trim_end_matches('/').to_owned();
    url.set_path("");
    (url.as_str().trim_end_matches('/').to_owned(), path)
}

/// True for this very machine.
pub(crate) fn is_loopback(url: &Url) -> bool {
    match host(url) {
        Host::Ip(ip) => ip.is_loopback() || ip.is_unspecified(),
        Host::Name(name) => name == "localhost" || name.ends_with(".localhost"),
    }
}

/// True for this machine and those around it: private addresses, and names that only a local network knows.
fn is_local(url: &Url) -> bool {
    if is_loopback(url) {
        return true;
    }
    match host(url) {
        Host::Ip(IpAddr::V4(ip)) => {
            // 100.64/10 is what overlay networks hand out.
            let is_shared = ip.octets()[0] == 100 && ip.octets()[1] & 0xc0 == 64;
            ip.is_private() || ip.is_link_local() || is_shared
        }
        Host::Ip(IpAddr::V6(ip)) => ip.is_unique_local() || ip.is_unicast_link_local(),
        Host::Name(name) => {
            let ends = [".local", ".lan", ".internal", ".home.arpa"];
            !name.contains('.') || ends.iter().any(|end| name.ends_with(end))
        }
    }
}

enum Host<'a> {
    Ip(IpAddr),
    Name(&'a str),
}

fn host(url: &Url) -> Host<'_> {
    let name = url.host_str().unwrap_or_default();
    match name.trim_matches(['[', ']']).parse::<IpAddr>() {
        Ok(ip) => Host::Ip(ip.to_canonical()),
        Err(_) => Host::Name(name.strip_suffix('.').unwrap_or(name)),
    }
}
