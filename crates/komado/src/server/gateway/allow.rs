//! What a key that sees only its own sessions may ask of a provider.
//!
//! Requests leave with the key of the server's owner, and to the provider everything that was ever made with that key belongs to
//! one account. So of all routes only those are open that keep nothing and show nothing kept, and a request may go on only from
//! responses that this client was given. A client whose own key of the provider leaves with its request asks about its own account,
//! and is free. Refused: a list of what is forbidden, which the next route of a provider would not be on.

use super::choose::Choice;
use super::refusal::Refusal;
use super::{Visit, form, headers, path};
use http::header::{CONTENT_ENCODING, CONTENT_TYPE};
use http::{HeaderValue, Method};
use komado_engine::place;
use komado_provider::{ReferenceSkimmer, References};
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

/// Routes after the version that take JSON, keep nothing, and answer from what they are sent.
const STATELESS: [&str; 9] = [
    "/embeddings",
    "/moderations",
    "/completions",
    "/fim/completions",
    "/images/generations",
    "/audio/speech",
    "/rerank",
    "/responses/input_tokens",
    "/tokenize",
];

/// The same, of those that take a form with a file.
const FORMS: [&str; 2] = ["/audio/transcriptions", "/audio/translations"];

/// Ollama's routes that only read, and those that answer from what they are sent.
const OLLAMA_READ: [&str; 3] = ["/api/tags", "/api/version", "/api/ps"];
const OLLAMA_ASK: [&str; 4] = ["/api/show", "/api/embed", "/api/embeddings", "/api/generate"];

/// Headers by which some servers take another method or path than the request's own.
const OVERRIDES: [&str; 6] = [
    "x-http-method-override",
    "x-http-method",
    "x-method-override",
    "x-original-url",
    "x-rewrite-url",
    "x-forwarded-prefix",
];

/// Headers that choose an account among those that a key of the provider can use.
const ACCOUNTS: [&str; 3] = ["openai-organization", "openai-project", "x-goog-user-project"];

/// Bytes that are looked at in one step.
const PIECE: usize = 64 << 10;

/// What is still to be done before a request may leave.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Check {
    /// Nothing.
    Nothing,
    /// Its body is to be looked through.
    Body,
    /// Its body is a form, or JSON.
    FormOrJson,
    /// Its body is a form with this boundary, whose fields are to be looked through.
    Form(String),
    /// This response must be one that the client was given.
    Response(String),
}

impl Visit {
    /// True when the request would leave with a key that is not the client's, for a client that may not see everything. Headers that
    /// lead elsewhere than the request says are taken away then.
    pub(super) fn is_bound(&mut self, choice: &Choice) -> bool {
        let is_bound = !self.guest.sees_all && !headers::is_own_account(&self.headers, choice);
        if is_bound {
            self.take_away_overrides();
        }
        is_bound
    }

    /// Takes those headers away, whichever provider is asked.
    pub(super) fn take_away_overrides(&mut self) {
        if !self.guest.sees_all {
            OVERRIDES.iter().chain(&ACCOUNTS).for_each(|name| drop(self.headers.remove(*name)));
        }
    }

    /// A path must mean the same to every server.
    pub(super) fn check_path(&self) -> Result<(), Refusal> {
        if self.guest.sees_all || !path::is_ambiguous(&self.path) {
            return Ok(());
        }
        let text = "a key that sees only its own sessions may not ask for a path with `;`, a control character, or a part that begins \
                    with a dot, since servers read such paths in different ways";
        Err(Refusal::new(403, format!("{}: {text}", self.path)))
    }

    /// What is to be checked of a request to a model.
    pub(super) fn check_ask(&mut self, choice: &Choice) -> Check {
        if !self.is_bound(choice) {
            return Check::Nothing;
        }
        self.leave_as_json();
        Check::Body
    }

    /// The body leaves as what it is looked through as: JSON in UTF-8, whatever the client calls it.
    fn leave_as_json(&mut self) {
        self.headers.remove(CONTENT_ENCODING);
        self.headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    }

    /// What is to be checked of a body that may be a form.
    fn form_or_json(&mut self) -> Result<Check, Refusal> {
        let texts = self.headers.get_all(CONTENT_TYPE).iter().map(|value| value.to_str().unwrap_or("?"));
        let text = texts.collect::<Vec<_>>().join(", ");
        match text.split(';').next().unwrap_or_default().trim().to_ascii_lowercase().as_str() {
            "multipart/form-data" => {
                self.headers.remove(CONTENT_ENCODING);
                form::boundary(&text).map(Check::Form)
            }
            "application/json" => {
                self.leave_as_json();
                Ok(Check::Body)
            }
            _ => Err(Refusal::new(
                400,
                format!("Content-Type {text:?}: {} takes multipart/form-data or application/json", self.path),
            )),
        }
    }

    /// Whether the client may ask for a path of the provider, and what is to be checked first.
    pub(super) fn check_route(&mut self, choice: &Choice, path: &str) -> Result<Check, Refusal> {
        if !self.is_bound(choice) {
            return Ok(Check::Nothing);
        }
        match route(&self.method, path) {
            Some(Check::Body) => {
                self.leave_as_json();
                Ok(Check::Body)
            }
            Some(Check::FormOrJson) => self.form_or_json(),
            Some(check) => Ok(check),
            None => Err(self.closed(choice)),
        }
    }

    /// The error for a route that is not open.
    fn closed(&self, choice: &Choice) -> Refusal {
        let key = self.guest.key.as_deref().unwrap_or_default();
        let or_own = match headers::takes_own_keys(choice) {
            true => ", or send your own key of the provider beside x-komado-key",
            false => "",
        };
        Refusal::new(
            403,
            format!(
                "key {key} sees only its own sessions, and {} {} could reach what other users keep with the provider; \
                 use a key that was made with `komado key add NAME --sees all`{or_own}",
                self.method, self.path
            ),
        )
    }

    /// Looks at what is to be checked. Blocks while the store is asked.
    pub(super) fn check(&self, check: &Check, (body, len): (&File, u64)) -> Result<(), Refusal> {
        match check {
            Check::Nothing => Ok(()),
            Check::Body | Check::FormOrJson => self.check_body(body, len),
            Check::Form(boundary) => form::check((body, len), boundary),
            Check::Response(id) => self.check_given(id, ""),
        }
    }

    /// A body must be readable and name nothing that the provider keeps for others.
    fn check_body(&self, body: &File, len: u64) -> Result<(), Refusal> {
        let References { previous, field } = references(body, len)?;
        if let Some(field) = field {
            return Err(Refusal::new(
                403,
                format!(
                    "{field}: a key that sees only its own sessions may not name what is kept with the provider, since other users \
                     keep theirs in the same account; send the content itself"
                ),
            ));
        }
        previous.map_or(Ok(()), |id| self.check_given(&id, "send the whole conversation instead"))
    }

    /// A response must be one that this client was given. `instead` says what else the client can do.
    fn check_given(&self, id: &str, instead: &str) -> Result<(), Refusal> {
        let caller = headers::caller(&self.headers, &self.guest)
            .map_err(|why| Refusal::new(400, format!("x-komado-session: {why}")))?;
        let or = |before: &str| if instead.is_empty() { String::new() } else { format!("{before}{instead}") };
        match place::was_given(&self.gateway.house.context.engine, &caller, id) {
            Ok(true) => Ok(()),
            Ok(false) => Err(Refusal::new(
                404,
                format!("no session of this key has received the response {id:?}{}", or("; ")),
            )),
            Err(error) => {
                tracing::warn!(why = %error, "whose response it is cannot be looked up");
                Err(Refusal::new(
                    503,
                    format!("it cannot be looked up now whose response {id:?} is; try again{}", or(", or ")),
                )
                .later(1))
            }
        }
    }
}

/// What must be checked of a request for a path; `None` where it is not open.
fn route(method: &Method, path: &str) -> Option<Check> {
    let is_read = [Method::GET, Method::HEAD].contains(method);
    let is_post = *method == Method::POST;
    match path {
        _ if is_read && OLLAMA_READ.contains(&path) => Some(Check::Nothing),
        _ if is_post && (STATELESS.contains(&path) || OLLAMA_ASK.contains(&path)) => Some(Check::Body),
        _ if is_post && FORMS.contains(&path) => Some(Check::FormOrJson),
        _ => response(method, path).map(Check::Response),
    }
}

/// The response that is read, ended or deleted by its id.
fn response(method: &Method, path: &str) -> Option<String> {
    let rest = path.strip_prefix("/responses/")?;
    let (id, what) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    let is_id =
        !id.is_empty() && id.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte));
    let is_open = match what {
        "" => [Method::GET, Method::DELETE].contains(method),
        "/input_items" => *method == Method::GET,
        "/cancel" => *method == Method::POST,
        _ => false,
    };
    (is_id && is_open).then(|| id.to_owned())
}

/// What a body names. One that is no JSON object is refused: what we cannot read the provider may.
fn references(body: &File, len: u64) -> Result<References, Refusal> {
    let wrong = |why: String| Refusal::new(400, format!("the request cannot be read: {why}"));
    let failed = |error: io::Error| Refusal::new(500, error.to_string());
    let mut skimmer = ReferenceSkimmer::default();
    let (mut piece, mut at) = (vec![0; PIECE], 0);
    while at < len {
        let most = usize::try_from(len - at).unwrap_or(PIECE).min(PIECE);
        body.read_exact_at(&mut piece[..most], at).map_err(failed)?;
        skimmer.push(&piece[..most]).map_err(|why| wrong(why.to_string()))?;
        at += most as u64;
    }
    skimmer.end().map_err(|why| wrong(why.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_routes_that_keep_nothing_are_open_and_only_as_they_are_written() {
        let open = |method: &str, path: &str| route(&method.parse().unwrap(), path);
        assert_eq!(open("POST", "/embeddings"), Some(Check::Body));
        assert_eq!(open("POST", "/audio/transcriptions"), Some(Check::FormOrJson));
        assert_eq!(open("HEAD", "/api/tags"), Some(Check::Nothing));
        for (method, path) in [
            ("GET", "/responses/resp_1"),
            ("DELETE", "/responses/resp_1"),
            ("POST", "/responses/resp_1/cancel"),
        ] {
            assert_eq!(open(method, path), Some(Check::Response("resp_1".into())), "{method} {path}");
        }
        for (method, path) in [
            ("GET", "/files"),
            ("POST", "/files"),
            ("DELETE", "/files/x"),
            ("GET", "/organization/users"),
            ("POST", "/batches"),
            ("GET", "/messages/batches"),
            ("GET", "/chat/completions"),
            ("GET", "/chat/completions/chatcmpl-1"),
            ("DELETE", "/models/ft:m"),
            ("GET", "/conversations/conv_1"),
            ("GET", "/threads/t/messages"),
            ("POST", "/fine_tuning/jobs"),
            ("GET", "/vector_stores"),
            ("GET", "/responses"),
            ("GET", "/responses/"),
            ("GET", "/responses/a%2Fb"),
            ("GET", "/responses/resp_1/x"),
            ("GET", "/responses//files"),
            ("GET", "/embeddings"),
            ("DELETE", "/embeddings"),
            ("POST", "//embeddings"),
            ("POST", "/Embeddings"),
            ("POST", "/embeddings;x"),
            ("POST", "/%65mbeddings"),
            ("POST", "/embeddings%2F"),
            ("POST", "/V1/Files"),
            ("DELETE", "/api/delete"),
            ("POST", "/api/pull"),
            ("POST", "/api/create"),
            ("POST", "/api/tags"),
        ] {
            assert_eq!(open(method, path), None, "{method} {path}");
        }
    }
}
