//! What an address means: what is wrong with it, where its endpoint is, whether it is at home.
//!
//! People paste addresses as they find them: with `/v1`, without, with the whole path. Where there is one sensible
//! reading it is taken. Credentials in an address are refused, since an address is shown and kept; so is a query.

use crate::dialect::Dialect;
use reqwest::Url;
use std::net::IpAddr;

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
pub(super) fn endpoint(dialect: Dialect, base_url: &str) -> String {
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
pub(super) fn root(dialect: Dialect, base_url: &str, is_local: bool) -> String {
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
pub(super) fn is_local(url: &Url) -> bool {
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
