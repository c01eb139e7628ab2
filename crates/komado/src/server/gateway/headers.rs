//! Which headers go on, and with which key.
//!
//! All of the client's go to the provider but those of the connection and our own. Its credentials go, too, where they can
//! only be meant for this provider, unless the settings hold a key for it. A key of ours never leaves, in whichever header it came.

use super::super::ApiCaller;
use super::GatewayRefusal;
use super::upstream::{GatewayUpstream, UpstreamChoice};
use crate::server::access::is_ours;
use crate::server::{in_header, of_header};
use http::{HeaderMap, HeaderName, HeaderValue};
use komado_core::SessionId;
use komado_engine::model::KeySource;
use komado_engine::place::TranscriptCaller;
use komado_engine::relay::RelayNotes;
use komado_engine::repeat::WARN_AT;
use komado_provider::{Dialect, row};

/// Those of one connection.
const CONNECTION: &[&str] = &[
    "connection",
    "expect",
    "host",
    "keep-alive",
    "proxy-authenticate",
    "proxy-authorization",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

/// Where credentials stand.
const CREDENTIALS: &[&str] = &["authorization", "x-api-key", "api-key", "x-goog-api-key"];

/// A key shorter than this is none: what people write where a client insists on one.
const SHORTEST_KEY: usize = 16;

/// The names under which clients send the name of their session, the most particular first.
const SESSIONS: &[&str] = &[
    "x-claude-code-session-id",
    "thread-id",
    "session-id",
    "conversation_id",
    "session_id",
    "x-session-id",
    "x-session-affinity",
];

/// How a request reaches a provider.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Translation {
    /// In the client's own dialect.
    Native,
    /// In another.
    Across,
}

/// Whose key a request may carry.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum KeyPolicy {
    /// The client's own: it can only be meant for this provider.
    Own,
    /// Only one that is held for the provider.
    Held,
}

/// The headers of a request to `upstream`.
pub(super) fn outgoing(
    client: &HeaderMap,
    upstream: &GatewayUpstream,
    manner: Translation,
    signing: KeyPolicy,
) -> Vec<(String, String)> {
    let own = credential(client);
    let held = match upstream.held {
        _ if signing == KeyPolicy::Held => true,
        KeySource::Settings => true,
        KeySource::Environment => own.as_ref().is_none_or(|own| own.len() < SHORTEST_KEY),
        KeySource::Nowhere => false,
    };
    let listed = listed(client);
    let passes = |name: &str, value: &str| match name {
        "content-length" | "accept-encoding" => false,
        _ if CONNECTION.contains(&name) || listed.iter().any(|other| other == name) => false,
        _ if name.starts_with("x-komado-") => false,
        _ if CREDENTIALS.contains(&name) => !held && manner == Translation::Native && !is_ours(bearer(value)),
        _ => manner == Translation::Native || !is_of_one_api(name),
    };
    let text = |value: &HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
    let mut headers: Vec<(String, String)> = client
        .iter()
        .map(|(name, value)| (name.as_str().to_owned(), text(value)))
        .filter(|(name, value)| passes(name, value))
        .collect();
    // The answer is read on its way, so it must be readable.
    headers.push(("accept-encoding".to_owned(), "identity".to_owned()));
    let signed = match (held, manner) {
        (true, _) => upstream.provider.credential(),
        (false, Translation::Across) => own.and_then(|own| upstream.provider.auth.header(&own)),
        (false, Translation::Native) => None,
    };
    headers.extend(signed.map(|(name, value)| (name.to_owned(), value)));
    if manner == Translation::Across {
        headers.retain(|(name, _)| name != "content-type");
        headers.push(("content-type".to_owned(), "application/json".to_owned()));
        if upstream.provider.dialect == Dialect::Messages {
            headers.push(("anthropic-version".to_owned(), "2023-06-01".to_owned()));
        }
    }
    for (name, value) in &upstream.provider.headers {
        headers.retain(|(other, _)| !other.eq_ignore_ascii_case(name));
        headers.push((name.to_lowercase(), value.clone()));
    }
    headers
}

/// True when a request leaves with the client's own key, to a provider that is known to ask each client for one.
pub(super) fn is_own_account(client: &HeaderMap, choice: &UpstreamChoice) -> bool {
    takes_own_keys(choice) && credential(client).is_some_and(|own| own.len() >= SHORTEST_KEY)
}

/// True when a provider is known to ask each client for a key, and a client's own would reach it.
pub(super) fn takes_own_keys(choice: &UpstreamChoice) -> bool {
    let upstream = &choice.upstream;
    let is_hosted = row(upstream.name())
        .is_some_and(|row| !row.is_local && row.base_url == upstream.provider.base_url.as_str());
    is_hosted && choice.signing == KeyPolicy::Own && upstream.held != KeySource::Settings
}

/// True for a header that only one API understands.
fn is_of_one_api(name: &str) -> bool {
    ["anthropic-", "openai-", "x-stainless-"].iter().any(|start| name.starts_with(start)) || name == "accept"
}

/// Headers that the client calls those of its connection.
fn listed(headers: &HeaderMap) -> Vec<String> {
    let values = headers.get_all("connection").iter().filter_map(|value| value.to_str().ok());
    values.flat_map(|value| value.split(',')).map(|name| name.trim().to_ascii_lowercase()).collect()
}

fn bearer(value: &str) -> &str {
    let word = value.split_once(' ').filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer"));
    word.map_or(value, |(_, token)| token).trim()
}

/// The client's own credentials for a provider.
fn credential(headers: &HeaderMap) -> Option<String> {
    let values = CREDENTIALS.iter().flat_map(|name| headers.get_all(*name));
    let mut keys = values.filter_map(|value| value.to_str().ok()).map(bearer);
    keys.find(|key| !key.is_empty() && !is_ours(key)).map(str::to_owned)
}

/// Who sent a request. An error for a session's name that can be none.
pub(super) fn caller(headers: &HeaderMap, guest: &ApiCaller) -> Result<TranscriptCaller, GatewayRefusal> {
    let text = |name: &str| headers.get(name).and_then(|value| std::str::from_utf8(value.as_bytes()).ok());
    let session = headers.get("x-komado-session").and_then(of_header).map(SessionId::new).transpose();
    let session = session.map_err(|why| GatewayRefusal::new(400, format!("x-komado-session: {why}")))?;
    let named = SESSIONS.iter().find_map(|name| Some((*name, text(name).filter(|text| !text.is_empty())?)));
    let named = named.map(|(name, value)| format!("{name}: {value}"));
    let agent = text("user-agent").map(str::to_owned);
    let who = match (&guest.key, credential(headers)) {
        (Some(key), _) => format!("key {key}"),
        (None, Some(own)) => format!("own {}", &blake3::hash(own.as_bytes()).to_hex()[..32]),
        (None, None) => String::new(),
    };
    let salt = match (&session, &named) {
        (Some(session), _) => format!("session {session}"),
        (None, Some(named)) => format!("{who}\n{named}"),
        (None, None) => format!("{who}\n{}", agent.as_deref().unwrap_or_default()),
    };
    Ok(TranscriptCaller { salt, session, named, user: guest.user.clone(), agent, sees: guest.sight() })
}

/// The headers of an answer: the provider's but those of the connection, and what we have to say.
pub(super) fn answer(theirs: &[(String, String)], notes: &RelayNotes) -> HeaderMap {
    let mut headers = HeaderMap::new();
    let dropped =
        |name: &str| CONNECTION.contains(&name) || name == "content-length" || name.starts_with("x-komado-");
    for (name, value) in theirs.iter().filter(|(name, _)| !dropped(name)) {
        put(&mut headers, name, value);
    }
    let ours = [
        ("x-komado-session", notes.session.as_ref().map(|id| in_header(id.as_str()))),
        ("x-komado-thread", notes.thread.as_ref().map(|id| in_header(id.as_str()))),
        ("x-komado-placed", Some(notes.placed.to_owned()).filter(|placed| !placed.is_empty())),
        ("x-komado-tokens-before", Some(notes.before).filter(|n| *n > 0).map(|n| n.to_string())),
        ("x-komado-tokens-after", Some(notes.after).filter(|n| *n > 0).map(|n| n.to_string())),
        ("x-komado-edits", notes.session.as_ref().map(|_| notes.edits.to_string())),
        ("x-komado-repeats", Some(notes.repeats).filter(|n| *n >= WARN_AT).map(|n| n.to_string())),
        ("x-komado-fault", notes.fault.as_deref().map(one_line)),
    ];
    for (name, value) in ours {
        value.iter().for_each(|value| put(&mut headers, name, value));
    }
    headers
}

fn put(headers: &mut HeaderMap, name: &str, value: &str) {
    let pair = (HeaderName::from_bytes(name.as_bytes()), HeaderValue::from_bytes(value.as_bytes()));
    if let (Ok(name), Ok(value)) = pair {
        headers.append(name, value);
    }
}

/// A reason as a header can carry it.
fn one_line(text: &str) -> String {
    text.chars().map(|c| if c.is_ascii_graphic() || c == ' ' { c } else { '?' }).take(300).collect()
}

#[cfg(test)]
mod tests {
    use super::super::upstream::tests::upstream;
    use super::*;

    fn map(pairs: &[(&str, &str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        pairs.iter().for_each(|(name, value)| put(&mut headers, name, value));
        headers
    }

    fn get<'a>(headers: &'a [(String, String)], name: &str) -> Vec<&'a str> {
        headers.iter().filter(|(other, _)| other == name).map(|(_, value)| value.as_str()).collect()
    }

    const REAL: &str = "sk-0123456789abcdef";

    #[test]
    fn everything_goes_on_but_the_connection_and_what_is_ours() {
        let client = map(&[
            ("connection", "keep-alive, x-hop"),
            ("x-hop", "1"),
            ("host", "h"),
            ("content-length", "3"),
            ("accept-encoding", "gzip"),
            ("x-komado-session", "s"),
            ("anthropic-beta", "b,a"),
            ("x-unknown", "窓"),
            ("authorization", "Bearer short"),
        ]);
        let sent = outgoing(
            &client,
            &upstream("test", Dialect::Messages, KeySource::Nowhere),
            Translation::Native,
            KeyPolicy::Own,
        );
        let names: Vec<&str> = sent.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["anthropic-beta", "x-unknown", "authorization", "accept-encoding"]);
        assert_eq!((get(&sent, "x-unknown"), get(&sent, "accept-encoding")), (vec!["窓"], vec!["identity"]));
    }

    #[test]
    fn a_key_of_ours_never_leaves_and_one_from_the_settings_takes_the_place_of_the_clients() {
        let ours = map(&[
            ("authorization", "Bearer kmd_abc"),
            ("x-api-key", "kmd_def"),
            ("x-komado-key", "kmd_ghi"),
        ]);
        for held in [KeySource::Settings, KeySource::Environment, KeySource::Nowhere] {
            for manner in [Translation::Native, Translation::Across] {
                let sent = outgoing(&ours, &upstream("test", Dialect::Chat, held), manner, KeyPolicy::Own);
                assert!(
                    !sent.iter().any(|(_, value)| value.contains("kmd_")),
                    "{held:?} {manner:?} {sent:?}"
                );
            }
        }
        let real = format!("Bearer {REAL}");
        let client = map(&[("authorization", &real)]);
        let key = |held, client: &HeaderMap| {
            let sent =
                outgoing(client, &upstream("test", Dialect::Chat, held), Translation::Native, KeyPolicy::Own);
            get(&sent, "authorization").join("+")
        };
        assert_eq!(key(KeySource::Settings, &client), "Bearer sk-held");
        assert_eq!(key(KeySource::Environment, &client), real);
        assert_eq!(key(KeySource::Environment, &map(&[("authorization", "Bearer none")])), "Bearer sk-held");
        assert_eq!(key(KeySource::Nowhere, &client), real);
    }

    #[test]
    fn across_dialects_credentials_take_the_form_of_the_provider() {
        let real = format!("Bearer {REAL}");
        let client = map(&[("authorization", &real), ("openai-beta", "x")]);
        let sent = outgoing(
            &client,
            &upstream("test", Dialect::Messages, KeySource::Nowhere),
            Translation::Across,
            KeyPolicy::Own,
        );
        assert_eq!((get(&sent, "x-api-key"), get(&sent, "authorization").len()), (vec![REAL], 0));
        assert_eq!((get(&sent, "anthropic-version").len(), get(&sent, "openai-beta").len()), (1, 0));
    }

    #[test]
    fn a_clients_key_is_not_sent_to_a_provider_that_it_may_not_be_meant_for() {
        let real = format!("Bearer {REAL}");
        let client = map(&[("authorization", &real), ("x-api-key", REAL)]);
        for held in [KeySource::Settings, KeySource::Environment, KeySource::Nowhere] {
            for manner in [Translation::Native, Translation::Across] {
                let upstream = upstream("test", Dialect::Messages, held);
                let sent = outgoing(&client, &upstream, manner, KeyPolicy::Held);
                assert!(!sent.iter().any(|(_, value)| value.contains(REAL)), "{held:?} {manner:?} {sent:?}");
                let key = if held == KeySource::Nowhere { vec![] } else { vec!["sk-held"] };
                assert_eq!(get(&sent, "x-api-key"), key, "{held:?} {manner:?}");
            }
        }
    }

    #[test]
    fn a_clients_own_key_is_its_own_account_only_with_a_provider_at_its_usual_address() {
        let real = format!("Bearer {REAL}");
        let (own, none) = (map(&[("authorization", &real)]), map(&[("authorization", "Bearer none")]));
        let is_own = |name: &str, base_url: &str, held, signing, client: &HeaderMap| {
            let mut upstream = upstream(name, Dialect::Chat, held);
            upstream.provider.base_url = base_url.to_owned();
            let choice =
                UpstreamChoice { upstream: upstream.into(), model: String::new(), renames: false, signing };
            is_own_account(client, &choice)
        };
        let openai = "https://api.openai.com/v1";
        assert!(is_own("openai", openai, KeySource::Environment, KeyPolicy::Own, &own));
        assert!(is_own("openai", openai, KeySource::Nowhere, KeyPolicy::Own, &own));
        assert!(!is_own("openai", openai, KeySource::Nowhere, KeyPolicy::Own, &none));
        assert!(!is_own("openai", openai, KeySource::Settings, KeyPolicy::Own, &own));
        assert!(!is_own("openai", openai, KeySource::Environment, KeyPolicy::Held, &own));
        // A server that asks for no key takes a made-up one.
        assert!(!is_own("openai", "http://h:1/v1", KeySource::Nowhere, KeyPolicy::Own, &own));
        assert!(!is_own("vllm", "http://localhost:8000/v1", KeySource::Environment, KeyPolicy::Own, &own));
        assert!(!is_own("test", openai, KeySource::Nowhere, KeyPolicy::Own, &own));
    }

    #[test]
    fn callers_are_told_apart_by_key_credentials_agent_and_the_name_of_their_session() {
        let salt = |pairs: &[(&str, &str)], key: Option<&str>| {
            let guest = ApiCaller { key: key.map(str::to_owned), ..ApiCaller::default() };
            caller(&map(pairs), &guest).unwrap().salt
        };
        let salts = [
            salt(&[], None),
            salt(&[("user-agent", "a")], None),
            salt(&[("x-api-key", "one")], None),
            salt(&[("x-api-key", "two")], None),
            salt(&[], Some("one")),
            salt(&[("session-id", "1")], Some("one")),
            salt(&[("session-id", "1")], Some("two")),
            salt(&[("x-session-id", "1")], Some("two")),
            salt(&[("x-komado-session", "1")], None),
        ];
        let apart: std::collections::BTreeSet<&String> = salts.iter().collect();
        assert_eq!(apart.len(), salts.len(), "{salts:?}");
        assert!(!salts.concat().contains("two\n\n"), "a credential is not kept: {salts:?}");
        assert!(caller(&map(&[("x-komado-session", "a/b")]), &ApiCaller::default()).is_err());
    }

    #[test]
    fn an_answer_keeps_the_providers_headers_and_says_ours() {
        let theirs = [
            ("x-request-id", "r"),
            ("content-length", "9"),
            ("transfer-encoding", "chunked"),
            ("x-komado-fault", "theirs"),
        ];
        let theirs = theirs.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let notes = RelayNotes {
            fault: Some("disk\nfull 窓".into()),
            placed: "extends",
            before: 9,
            ..RelayNotes::default()
        };
        let headers = answer(&theirs, &notes);
        assert_eq!(headers["x-request-id"], "r");
        assert_eq!(
            (&headers["x-komado-fault"], &headers["x-komado-placed"]),
            (&HeaderValue::from_static("disk?full ?"), &HeaderValue::from_static("extends"))
        );
        assert!(!headers.contains_key("content-length") && !headers.contains_key("transfer-encoding"));
    }
}
