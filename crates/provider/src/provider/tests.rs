//! Addresses as people write them, and secrets that stay secret.

use super::*;

fn at(dialect: Dialect, base_url: &str) -> Provider {
    Provider::at("test", dialect, base_url).unwrap()
}

#[test]
fn an_endpoint_is_found_however_the_address_ends() {
    use Dialect::{Chat, Messages, Ollama, Responses};
    let table = [
        (Chat, "http://h:1", "http://h:1/v1/chat/completions"),
        (Chat, "http://h:1/", "http://h:1/v1/chat/completions"),
        (Chat, " http://H:1/v1/ ", "http://h:1/v1/chat/completions"),
        (Chat, "https://h:443/api/paas/v4", "https://h/api/paas/v4/chat/completions"),
        (Chat, "https://h/v1beta/openai", "https://h/v1beta/openai/chat/completions"),
        (Chat, "https://h/v1/chat/completions", "https://h/v1/chat/completions"),
        (Chat, "https://h/chat/completions/", "https://h/chat/completions"),
        (Chat, "http://[::1]:8080", "http://[::1]:8080/v1/chat/completions"),
        (Responses, "https://h", "https://h/v1/responses"),
        (Responses, "https://h/v1", "https://h/v1/responses"),
        (Messages, "https://h", "https://h/v1/messages"),
        (Messages, "https://h/v1", "https://h/v1/messages"),
        (Messages, "https://h/anthropic/", "https://h/anthropic/v1/messages"),
        (Messages, "https://h/anthropic/v1/messages", "https://h/anthropic/v1/messages"),
        (Ollama, "http://h:11434", "http://h:11434/api/chat"),
        (Ollama, "http://h:11434/v1", "http://h:11434/api/chat"),
        (Ollama, "http://h:11434/api", "http://h:11434/api/chat"),
        (Ollama, "http://h:11434/api/chat", "http://h:11434/api/chat"),
        (Ollama, "http://h/ollama/", "http://h/ollama/api/chat"),
    ];
    for (dialect, base_url, endpoint) in table {
        assert_eq!(at(dialect, base_url).endpoint(), endpoint, "{dialect:?} {base_url}");
    }
}

#[test]
fn a_root_is_the_same_for_every_way_to_write_one_server() {
    use Dialect::{Chat, Messages, Ollama};
    let table = [
        (Chat, "http://h:1", "http://h:1"),
        (Chat, "http://h:1/v1/", "http://h:1"),
        (Chat, "http://h:1/api/v1", "http://h:1"),
        (Chat, "http://h:1/v1/chat/completions", "http://h:1"),
        (Chat, "https://openrouter.ai/api/v1", "https://openrouter.ai/api"),
        (Chat, "https://HOST.example:443/openai/v1", "https://host.example/openai"),
        (Messages, "https://api.example.com/v1/messages", "https://api.example.com"),
        (Ollama, "http://h:11434/v1", "http://h:11434"),
        (Ollama, "http://h:11434/api/chat", "http://h:11434"),
        (Ollama, "https://ollama.example.com/x/api", "https://ollama.example.com/x"),
    ];
    for (dialect, base_url, root) in table {
        let provider = at(dialect, base_url);
        assert_eq!(provider.root(), root, "{dialect:?} {base_url}");
        assert_eq!(provider.place(), root, "{dialect:?} {base_url}");
    }
}

#[test]
fn a_bad_address_is_refused_with_its_reason_and_without_its_secrets() {
    let bad = |base_url| Provider::at("test", Dialect::Chat, base_url).unwrap_err().to_string();
    let table = [
        ("", "is empty"),
        ("localhost:11434", "write http:// or https:// before it: localhost:11434"),
        ("user:sesame@localhost:1", "before it: localhost:1"),
        ("ftp://h/v1", "neither http nor https: ftp"),
        ("https://user:sesame@h/v1", "credentials in it; give the key apart from the address"),
        ("https://sesame@h/v1", "https://h/v1"),
        ("https://h/v1?key=sesame", "end it before the ? or #: https://h/v1"),
        ("https://h/v1#sesame", "end it before the ? or #: https://h/v1"),
        ("http://", "not a URL: http://"),
        ("http://h:99999", "not a URL: http://h:99999: invalid port number"),
    ];
    for (base_url, why) in table {
        let said = bad(base_url);
        assert!(said.contains(why), "{base_url}: {said}");
        assert!(!said.contains("sesame"), "{said}");
    }
}

#[test]
fn a_key_is_trimmed_checked_and_never_shown() {
    let key = ApiKey::new("  sk-sesame\n").unwrap();
    assert_eq!(key.reveal(), "sk-sesame");
    assert_eq!(format!("{key} {key:?}"), "*** Key(***)");
    assert_eq!(ApiKey::new(" \n"), Err(BadKey::Empty));
    assert_eq!(ApiKey::new("sk-sesame\nsk-other"), Err(BadKey::Control));
    assert_eq!(ApiKey::new("sk-sesame\u{7f}"), Err(BadKey::Control));
    assert_eq!(ApiKey::new("sk-sesame窓"), Err(BadKey::NotAscii));
    for bad in [BadKey::Empty, BadKey::Control, BadKey::NotAscii] {
        assert!(!format!("{bad} {bad:?}").contains("sesame"));
    }
}

#[test]
fn a_provider_shows_neither_its_key_nor_what_its_headers_say() {
    let mut provider = at(Dialect::Chat, "https://h/v1").with_key(ApiKey::new("sk-sesame").unwrap());
    provider.headers.push(("x-portal".to_owned(), "sesame".to_owned()));
    provider.base_url = "https://user:sesame@h/v1".to_owned();
    let said = format!("{provider:?}");
    assert!(said.contains("x-portal") && said.contains("https://h/v1"), "{said}");
    assert!(!said.contains("sesame"), "{said}");
    assert!(!provider.place().contains("sesame"));
}

#[test]
fn every_row_is_an_address_that_can_be_used() {
    for known in ROWS {
        assert_eq!(row(known.name), Some(known), "a name stands once: {}", known.name);
        let written = Provider::at(known.name, known.dialect, known.base_url).unwrap();
        let provider = Provider::from_row(known);
        assert_eq!(written.endpoint(), provider.endpoint());
        assert_eq!((written.is_local, written.auth), (known.is_local, known.auth), "{}", known.name);
        assert!(!known.about.is_empty() && (known.is_local || !known.key_env.is_empty()), "{}", known.name);
    }
    assert_eq!(row("nobody"), None);
    let endpoint = |name| Provider::from_row(row(name).unwrap()).endpoint();
    assert_eq!(endpoint("anthropic"), "https://api.anthropic.com/v1/messages");
    assert_eq!(endpoint("ollama"), "http://localhost:11434/api/chat");
    assert_eq!(endpoint("openrouter"), "https://openrouter.ai/api/v1/chat/completions");
}

#[test]
fn what_is_at_home_is_known_by_its_address() {
    let is_local = |base_url| at(Dialect::Chat, base_url).is_local;
    for home in [
        "http://localhost:1",
        "http://127.0.0.9",
        "http://[::1]:1",
        "http://10.1.2.3",
        "http://192.168.0.7:8080",
        "http://172.20.0.1",
        "http://100.100.1.1",
        "http://[fd00::1]",
        "http://ollama:11434",
        "http://box.local",
        "http://host.docker.internal:1",
    ] {
        assert!(is_local(home), "{home}");
    }
    for away in ["https://api.openai.com/v1", "http://8.8.8.8", "http://100.128.0.1", "http://[2001:db8::1]"]
    {
        assert!(!is_local(away), "{away}");
    }
}
