//! Who comes in, who does not, and what is left of their headers.

use super::*;
use http::HeaderValue;
use http::StatusCode;
use komado_ops::key::file::Sees;

fn key(name: &str, secret: &str) -> StoredKey {
    StoredKey {
        name: name.into(),
        digest: keys::digest(secret),
        user: Some("ann".into()),
        sees: Sees::Own,
        sessions: vec!["shared".into()],
        rate: Some(5),
        concurrency: None,
        expires: None,
        created_at: "2026-01-01T00:00:00.000000Z".into(),
    }
}

fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
    pairs.iter().map(|(name, value)| (name.parse().unwrap(), HeaderValue::from_str(value).unwrap())).collect()
}

fn here() -> Option<SocketAddr> {
    Some("127.0.0.1:5000".parse().unwrap())
}

#[test]
fn without_keys_only_this_machine_comes_in() {
    let access = ClientAccess::default();
    let admit = |peer| access.admit(&mut headers(&[("host", "127.0.0.1:4141")]), "/api/v1/sessions", peer);
    assert_eq!(admit(here()), Ok(ApiCaller::owner()));
    assert!(admit(Some("[::ffff:127.0.0.1]:9".parse().unwrap())).is_ok());
    for peer in [None, Some("10.0.0.7:9".parse().unwrap())] {
        assert_eq!(admit(peer).unwrap_err().status, StatusCode::FORBIDDEN);
    }
}

#[test]
fn a_page_that_was_led_here_by_a_name_or_a_form_is_refused() {
    let access = ClientAccess::default();
    let admit = |pairs: &[(&'static str, &str)], path| access.admit(&mut headers(pairs), path, here());
    for host in ["localhost:4141", "LOCALHOST", "127.0.0.1", "[::1]:4141"] {
        assert!(admit(&[("host", host)], "/api/v1/sessions").is_ok(), "{host}");
    }
    for path in ["/api/v1/sessions", "/mcp"] {
        let away = admit(&[("host", "evil.example:4141")], path).unwrap_err();
        assert_eq!(away.status, StatusCode::FORBIDDEN);
        assert!(away.detail.contains("evil.example"), "{}", away.detail);
        for origin in ["https://evil.example", "null", "file://"] {
            assert!(admit(&[("host", "localhost"), ("origin", origin)], path).is_err(), "{origin}");
        }
        assert!(admit(&[("host", "localhost"), ("origin", "http://localhost:3000")], path).is_ok());
    }
    // Agents may have any name for this machine and pages of their own; a page out there may not spend its owner's key.
    let gateway = "/v1/chat/completions";
    for host in ["model", "10.0.0.7:4141", "[fe80::1]:4141", "app.localhost", "Host.Docker.Internal:4141"] {
        assert!(admit(&[("host", host)], gateway).is_ok(), "{host}");
        assert!(admit(&[("host", host)], "/api/v1/sessions").is_err(), "{host}");
    }
    for path in [gateway, "/v1/files", "/v1/models"] {
        for host in
            ["evil.example:4141", "model.internal", "localhost.evil.example", "10.0.0.7.evil.example", ""]
        {
            assert_eq!(admit(&[("host", host)], path).unwrap_err().status, StatusCode::FORBIDDEN, "{host}");
        }
    }
    assert!(admit(&[("origin", "app://agent")], gateway).is_ok());
    assert!(admit(&[("origin", "https://evil.example")], gateway).is_err());
    for path in
        [gateway, "/v1/messages", "/v1/responses", "/api/chat", "/api/v1/sessions", "/mcp", "/metrics"]
    {
        for origin in
            ["null", "file://", "about:blank", "", "HTTP://evil.example", "http://localhost.evil.example"]
        {
            let away = admit(&[("host", "localhost"), ("origin", origin)], path).unwrap_err();
            assert_eq!(away.status, StatusCode::FORBIDDEN, "{path} {origin}");
        }
        assert!(admit(&[("host", "localhost"), ("sec-fetch-site", "cross-site")], path).is_err(), "{path}");
        for site in ["none", "same-origin", "same-site"] {
            assert!(admit(&[("host", "localhost"), ("sec-fetch-site", site)], path).is_ok(), "{path} {site}");
        }
        let near =
            [("host", "localhost"), ("origin", "http://127.0.0.1:3000"), ("sec-fetch-site", "cross-site")];
        assert!(admit(&near, path).is_ok(), "{path}");
    }
}

#[test]
fn a_host_or_origin_with_more_than_a_name_and_a_port_is_refused() {
    let access = ClientAccess::default();
    let admit = |pairs: &[(&'static str, &str)], path| access.admit(&mut headers(pairs), path, here());
    for path in ["/v1/chat/completions", "/v1/models", "/metrics", "/api/v1/sessions", "/mcp"] {
        for host in [
            "0.0.0.0",
            "0.0.0.0:4141",
            "[::]:4141",
            "[::ffff:0.0.0.0]",
            "[::1].evil.com",
            "[::1]evil",
            "[localhost]",
            "[::1",
            "localhost:80@evil.com",
            "localhost:1.evil.com",
            "localhost:",
            "localhost:+1",
            "evil@localhost",
            "model/evil.com",
        ] {
            let away = admit(&[("host", host)], path).unwrap_err();
            assert_eq!(away.status, StatusCode::FORBIDDEN, "{path} {host}");
            let origin = format!("http://{host}");
            assert!(admit(&[("host", "localhost"), ("origin", &origin)], path).is_err(), "{path} {origin}");
        }
        for origin in ["http://localhost:1", "http://[::1]:3000", "https://127.0.0.1"] {
            assert!(admit(&[("host", "localhost"), ("origin", origin)], path).is_ok(), "{path} {origin}");
        }
    }
}

#[test]
fn a_key_is_asked_for_as_soon_as_there_is_one_and_no_longer_when_it_is_revoked() {
    let folder = tempfile::tempdir().unwrap();
    let access = ClientAccess::open(folder.path()).unwrap();
    assert!(!access.has_keys());
    let secret = keys::secret().unwrap();
    assert_eq!(secret.len(), 68);
    keys::add(folder.path(), key("one", &secret)).unwrap();
    assert!(access.has_keys());
    let admit = |mut pairs: HeaderMap| access.admit(&mut pairs, "/api/v1/sessions", here());
    assert_eq!(admit(headers(&[])).unwrap_err().status, StatusCode::UNAUTHORIZED);
    let guest = admit(headers(&[("authorization", &format!("bearer {secret}"))])).unwrap();
    assert_eq!((guest.key.as_deref(), guest.user.as_deref()), (Some("one"), Some("ann")));
    assert_eq!((guest.sees_all, guest.rate), (false, Some(5)));
    let other = format!("{}{}", &secret[..67], if secret.ends_with('0') { 1 } else { 0 });
    assert_eq!(admit(headers(&[("x-api-key", &other)])).unwrap_err().status, StatusCode::UNAUTHORIZED);
    keys::add(folder.path(), key("one", "kmd_x")).unwrap_err();
    keys::revoke(folder.path(), "two").unwrap_err();
    keys::revoke(folder.path(), "one").unwrap();
    assert!(!access.has_keys());
    assert!(admit(headers(&[("x-komado-key", &secret)])).is_err(), "a revoked key opens nothing");
}

#[test]
fn the_secret_is_nowhere_in_the_file_and_the_file_is_its_owners_alone() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    let secret = keys::secret().unwrap();
    keys::add(folder.path(), key("one", &secret)).unwrap();
    let path = keys::place(folder.path());
    let text = std::fs::read_to_string(&path).unwrap();
    assert!(!text.contains(&secret[4..20]) && text.contains("\"one\""), "{text}");
    assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
}

#[test]
fn a_key_of_ours_never_goes_further_and_an_upstreams_stays() {
    let folder = tempfile::tempdir().unwrap();
    keys::add(folder.path(), key("one", "kmd_abc")).unwrap();
    let access = ClientAccess::open(folder.path()).unwrap();
    let mut both = headers(&[("x-komado-key", "kmd_abc"), ("authorization", "Bearer sk-upstream")]);
    access.admit(&mut both, "/v1/chat/completions", here()).unwrap();
    assert_eq!(both.get("authorization").unwrap(), "Bearer sk-upstream");
    assert!(both.get("x-komado-key").is_none());
    let mut ours = headers(&[("authorization", "Bearer kmd_abc"), ("x-api-key", "kmd_other")]);
    access.admit(&mut ours, "/v1/messages", None).unwrap();
    assert!(ours.is_empty(), "{ours:?}");
}

#[test]
fn a_key_past_its_time_opens_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let old = StoredKey { expires: Some("2020-01-01T00:00:00.000000Z".into()), ..key("old", "kmd_old") };
    keys::add(folder.path(), old).unwrap();
    let access = ClientAccess::open(folder.path()).unwrap();
    let away = access.admit(&mut headers(&[("x-api-key", "kmd_old")]), "/v1/models", here()).unwrap_err();
    assert!(away.detail.contains("old has expired"), "{}", away.detail);
}

#[test]
fn a_key_file_that_cannot_be_read_refuses_every_request() {
    let folder = tempfile::tempdir().unwrap();
    let access = ClientAccess::open(folder.path()).unwrap();
    std::fs::write(keys::place(folder.path()), "{").unwrap();
    let away = access.admit(&mut headers(&[]), "/api/v1/sessions", here()).unwrap_err();
    assert_eq!(away.status, StatusCode::SERVICE_UNAVAILABLE);
    assert!(access.has_keys());
    let fault = ClientAccess::open(folder.path()).unwrap_err();
    assert!(fault.message().contains("keys.json"), "{}", fault.message());
}

#[test]
fn keys_whose_file_is_away_stay_good_and_let_no_stranger_in() {
    let folder = tempfile::tempdir().unwrap();
    let base = folder.path().join("base");
    keys::add(&base, key("one", "kmd_one")).unwrap();
    let access = ClientAccess::open(&base).unwrap();
    let admit = |given: &[(&'static str, &str)]| access.admit(&mut headers(given), "/v1/models", here());
    let check = |when: &str| {
        assert_eq!(admit(&[("x-api-key", "kmd_one")]).unwrap().key.as_deref(), Some("one"), "{when}");
        for given in [&[][..], &[("x-api-key", "kmd_two")]] {
            assert_eq!(admit(given).unwrap_err().status, StatusCode::UNAUTHORIZED, "{when}");
        }
        assert!(access.has_keys(), "{when}");
    };
    check("as it is");
    let away = folder.path().join("away");
    std::fs::rename(&base, &away).unwrap();
    check("the folder is away");
    std::fs::create_dir(&base).unwrap();
    check("the folder is empty");
    std::fs::write(keys::place(&base), "{").unwrap();
    check("the file is broken");
    // It is there again, and what is done to it counts again.
    std::fs::remove_dir_all(&base).unwrap();
    std::fs::rename(&away, &base).unwrap();
    check("it is back");
    keys::revoke(&base, "one").unwrap();
    assert!(!access.has_keys());
    assert_eq!(admit(&[]), Ok(ApiCaller::owner()));
    assert!(admit(&[("x-api-key", "kmd_one")]).is_err());
}

#[tokio::test]
async fn each_client_is_turned_away_in_the_form_it_knows() {
    let away = NotAdmitted { status: StatusCode::UNAUTHORIZED, detail: "why".into() };
    for (path, pointer) in [
        ("/api/v1/sessions", "/detail"),
        ("/mcp", "/detail"),
        ("/v1/chat/completions", "/error/message"),
        ("/v1/messages", "/error/message"),
        ("/api/chat", "/error"),
    ] {
        let response = away.clone().respond(path);
        assert_eq!(response.status(), StatusCode::UNAUTHORIZED);
        assert!(response.headers().contains_key("www-authenticate"));
        let bytes = axum::body::to_bytes(response.into_body(), 10_000).await.unwrap();
        let body: serde_json::Value = serde_json::from_slice(&bytes).unwrap();
        assert_eq!(body.pointer(pointer).unwrap(), "why", "{path}: {body}");
    }
}
