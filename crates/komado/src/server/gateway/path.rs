//! Where does a path lead?
//!
//! `/v1/messages` and `/messages` are one; so is `/NAME/v1/messages`, which also says who is asked. A path that stands for
//! nothing here goes to the provider as it comes when it is under `/v1` or under a provider's name, and nowhere else.

use http::Method;
use komado_provider::Dialect;

/// Where a request wants to go.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Aim {
    /// The provider that the path names.
    pub(super) upstream: Option<String>,
    /// What is wanted there.
    pub(super) way: Way,
    /// How the client speaks, as far as the path tells.
    pub(super) dialect: Dialect,
}

/// What is wanted.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Way {
    /// A model is asked.
    Ask,
    /// A conversation is to be made shorter (`/responses/compact`).
    Compact,
    /// A request is only counted.
    Count,
    /// The list of models.
    Models,
    /// One model of it.
    Model(String),
    /// Whether somebody is there.
    About,
    /// Something under `/v1` of the provider; the path after that.
    Version(String),
    /// Something at the root of the provider.
    Root(String),
    /// Nothing.
    Nowhere,
}

/// Reads a path.
pub(super) fn aim(method: &Method, path: &str, is_upstream: &dyn Fn(&str) -> bool) -> Aim {
    let path = path.trim_end_matches('/');
    let (upstream, rest) = named(path, is_upstream);
    let (is_versioned, leaf) = version(rest);
    let reach = if is_versioned || upstream.is_some() { Reach::Open } else { Reach::Known };
    Aim { way: way(method, leaf, is_versioned, reach), dialect: dialect(leaf), upstream }
}

/// Whether paths that stand for nothing here may go to the provider.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Reach {
    Open,
    Known,
}

fn way(method: &Method, leaf: &str, is_versioned: bool, reach: Reach) -> Way {
    let is_read = [Method::GET, Method::HEAD].contains(method);
    let is_post = *method == Method::POST;
    match leaf {
        _ if climbs(leaf) => Way::Nowhere,
        "" if is_read => Way::About,
        "/chat/completions" | "/responses" | "/messages" if is_post => Way::Ask,
        "/api/chat" if is_post && !is_versioned => Way::Ask,
        "/responses/compact" if is_post => Way::Compact,
        "/messages/count_tokens" if is_post => Way::Count,
        "/models" if is_read => Way::Models,
        _ if is_read && leaf.starts_with("/models/") => Way::Model(decoded(&leaf["/models/".len()..])),
        _ if !is_versioned && leaf.starts_with("/api/") && !leaf.starts_with("/api/v1") => {
            Way::Root(leaf.to_owned())
        }
        _ if reach == Reach::Open && !leaf.is_empty() && !leaf.starts_with("/api/v1") => {
            Way::Version(leaf.to_owned())
        }
        _ => Way::Nowhere,
    }
}

/// How whoever uses a path speaks.
fn dialect(leaf: &str) -> Dialect {
    match leaf {
        _ if leaf.starts_with("/api/") => Dialect::Ollama,
        _ if leaf.starts_with("/messages") => Dialect::Messages,
        _ if leaf.starts_with("/responses") => Dialect::Responses,
        _ => Dialect::Chat,
    }
}

/// The provider that a path begins with, and the rest of it.
fn named<'a>(path: &'a str, is_upstream: &dyn Fn(&str) -> bool) -> (Option<String>, &'a str) {
    let bare = path.trim_start_matches('/');
    let bare = &path[path.len() - bare.len()..];
    let (first, rest) = bare.find('/').map_or((bare, ""), |at| bare.split_at(at));
    let name = decoded(first);
    if ["", "v1", "api"].contains(&name.as_str()) || !is_upstream(&name) {
        return (None, if bare.is_empty() { "" } else { &path[path.len() - bare.len() - 1..] });
    }
    (Some(name), rest)
}

/// A path without its version. Some clients put one after a base URL that has one already.
fn version(path: &str) -> (bool, &str) {
    let mut rest = path;
    while let Some(after) =
        rest.strip_prefix("/v1").filter(|after| after.is_empty() || after.starts_with('/'))
    {
        rest = after;
    }
    (rest.len() < path.len(), rest)
}

/// True for a path that leads out of where it begins, however it is written.
fn climbs(leaf: &str) -> bool {
    bytes(leaf).split(|byte| b"/\\".contains(byte)).any(|part| [&b"."[..], b".."].contains(&part))
}

/// True for a path that some servers take for another one: with a part that begins with a dot, a parameter of a part (`..;`), or a
/// control character, however often it is encoded.
pub(super) fn is_ambiguous(path: &str) -> bool {
    let mut path = path.as_bytes().to_vec();
    loop {
        let is_odd = |byte: &u8| *byte == b';' || byte.is_ascii_control();
        if path.iter().any(is_odd)
            || path.split(|byte| b"/\\".contains(byte)).any(|part| part.starts_with(b"."))
        {
            return true;
        }
        let next = unescaped(&path);
        if next == path {
            return false;
        }
        path = next;
    }
}

/// 窓 is `%E7%AA%93`. What parts a path stays, since models have names of several parts.
pub(super) fn encoded(text: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/-_.~:@!$&'()*+,;=".contains(&byte);
    let one = |byte: u8| if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") };
    text.bytes().map(one).collect()
}

/// `%E7%AA%93` is 窓; what is no such thing stays as it is.
fn decoded(text: &str) -> String {
    String::from_utf8(bytes(text)).unwrap_or_else(|_| text.to_owned())
}

fn bytes(text: &str) -> Vec<u8> {
    unescaped(text.as_bytes())
}

fn unescaped(bytes: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let pair = bytes.get(at + 1..at + 3).and_then(|pair| std::str::from_utf8(pair).ok());
        match (bytes[at], pair.and_then(|pair| u8::from_str_radix(pair, 16).ok())) {
            (b'%', Some(byte)) => {
                out.push(byte);
                at += 3;
            }
            (byte, _) => {
                out.push(byte);
                at += 1;
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(method: &str, path: &str) -> (Option<String>, Way, Dialect) {
        let known = |name: &str| ["ollama", "社内", "llama.cpp"].contains(&name);
        let aim = aim(&method.parse().unwrap(), path, &known);
        (aim.upstream, aim.way, aim.dialect)
    }

    #[test]
    fn a_path_leads_to_one_place_with_or_without_version_and_provider() {
        use Dialect::{Chat, Messages, Ollama, Responses};
        let table = [
            ("/v1/chat/completions", None, Way::Ask, Chat),
            ("/chat/completions/", None, Way::Ask, Chat),
            ("//v1/chat/completions", None, Way::Ask, Chat),
            ("/v1/v1/messages", None, Way::Ask, Messages),
            ("/ollama/v1/responses", Some("ollama"), Way::Ask, Responses),
            ("/%E7%A4%BE%E5%86%85/messages", Some("社内"), Way::Ask, Messages),
            ("/llama.cpp/api/chat", Some("llama.cpp"), Way::Ask, Ollama),
            ("/api/chat", None, Way::Ask, Ollama),
            ("/v1/responses/compact", None, Way::Compact, Responses),
            ("/v1/messages/count_tokens", None, Way::Count, Messages),
            ("/api/show", None, Way::Root("/api/show".into()), Ollama),
            ("/v1/embeddings", None, Way::Version("/embeddings".into()), Chat),
            ("/ollama/embeddings", Some("ollama"), Way::Version("/embeddings".into()), Chat),
            ("/embeddings", None, Way::Nowhere, Chat),
            ("/acme/v1/messages", None, Way::Nowhere, Chat),
            ("/api/v1/sessions", None, Way::Nowhere, Ollama),
            ("/v1/api/v1/sessions", None, Way::Nowhere, Ollama),
        ];
        for (path, upstream, way, dialect) in table {
            assert_eq!(of("POST", path), (upstream.map(str::to_owned), way, dialect), "{path}");
        }
    }

    #[test]
    fn nothing_leads_out_of_the_version() {
        for path in ["..%2F..%2Fx", "../x", "%2e%2e/x", "a/%2E./b", "%2e%2e%5cx", ".%2e", "%2e%2e/%ff"] {
            for path in [format!("/v1/models/{path}"), format!("/v1/{path}"), format!("/ollama/api/{path}")] {
                assert_eq!(of("GET", &path).1, Way::Nowhere, "{path}");
            }
        }
        assert_eq!(of("GET", "/v1/models/gpt-5..x").1, Way::Model("gpt-5..x".into()));
        assert_eq!(encoded("社内/m?a#b%2e c:8b"), "%E7%A4%BE%E5%86%85/m%3Fa%23b%252e%20c:8b");
    }

    #[test]
    fn a_path_that_some_servers_take_for_another_one_is_ambiguous() {
        for path in ["a;/..;/files", "a%3b", ".x", "%2ex", "a/%252e%252e/files", "a%00", "a%250ab", "a%5c.b"]
        {
            assert!(is_ambiguous(&format!("/v1/models/{path}")), "{path}");
        }
        for path in ["gpt-5..x", "org/model:8b", "a%2Fb", "%E7%AA%93", "100%25", "%ff"] {
            assert!(!is_ambiguous(&format!("/v1/models/{path}")), "{path}");
        }
    }

    #[test]
    fn what_is_read_and_what_is_written_are_different_ways() {
        assert_eq!(of("HEAD", "/").1, Way::About);
        assert_eq!(of("GET", "").1, Way::About);
        assert_eq!(of("GET", "/ollama").1, Way::About);
        assert_eq!(of("GET", "/v1/models").1, Way::Models);
        assert_eq!(of("GET", "/v1/models/a%2Fb/c").1, Way::Model("a/b/c".into()));
        assert_eq!(of("DELETE", "/v1/models/x").1, Way::Version("/models/x".into()));
        assert_eq!(of("GET", "/v1/responses").1, Way::Version("/responses".into()));
        assert_eq!(of("GET", "/responses").1, Way::Nowhere);
        assert_eq!(of("POST", "/").1, Way::Nowhere);
    }
}
