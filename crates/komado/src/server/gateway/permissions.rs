//! What a key that sees only its own sessions may ask of a provider.
//!
//! Requests leave with the key of the server's owner, and to the provider everything that was ever made with that key belongs to
//! one account. So of all routes only those are open that keep nothing and show nothing kept, and a request may go on only from
//! responses that this client was given. A client whose own key of the provider leaves with its request asks about its own account,
//! and is free. Refused: a list of what is forbidden, which the next route of a provider would not be on.

use super::upstream::UpstreamChoice;
use super::{GatewayRefusal, GatewayRequest, headers};
use http::header::{CONTENT_ENCODING, CONTENT_TYPE};
use http::{HeaderValue, Method};
use komado_engine::place;
use komado_provider::{ReferenceScanner, References};
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
pub(super) enum BodyCheck {
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

impl GatewayRequest {
    /// True when the request would leave with a key that is not the client's, for a client that may not see everything. Headers that
    /// lead elsewhere than the request says are taken away then.
    pub(super) fn is_bound(&mut self, choice: &UpstreamChoice) -> bool {
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

    /// What is to be checked of a request to a model.
    pub(super) fn check_ask(&mut self, choice: &UpstreamChoice) -> BodyCheck {
        if !self.is_bound(choice) {
            return BodyCheck::Nothing;
        }
        self.leave_as_json();
        BodyCheck::Body
    }

    /// The body leaves as what it is looked through as: JSON in UTF-8, whatever the client calls it.
    fn leave_as_json(&mut self) {
        self.headers.remove(CONTENT_ENCODING);
        self.headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    }

    /// What is to be checked of a body that may be a form.
    fn form_or_json(&mut self) -> Result<BodyCheck, GatewayRefusal> {
        let texts = self.headers.get_all(CONTENT_TYPE).iter().map(|value| value.to_str().unwrap_or("?"));
        let text = texts.collect::<Vec<_>>().join(", ");
        match text.split(';').next().unwrap_or_default().trim().to_ascii_lowercase().as_str() {
            "multipart/form-data" => {
                self.headers.remove(CONTENT_ENCODING);
                boundary(&text).map(BodyCheck::Form)
            }
            "application/json" => {
                self.leave_as_json();
                Ok(BodyCheck::Body)
            }
            _ => Err(GatewayRefusal::new(
                400,
                format!("Content-Type {text:?}: {} takes multipart/form-data or application/json", self.path),
            )),
        }
    }

    /// Whether the client may ask for a path of the provider, and what is to be checked first.
    pub(super) fn check_route(
        &mut self,
        choice: &UpstreamChoice,
        path: &str,
    ) -> Result<BodyCheck, GatewayRefusal> {
        if !self.is_bound(choice) {
            return Ok(BodyCheck::Nothing);
        }
        match route(&self.method, path) {
            Some(BodyCheck::Body) => {
                self.leave_as_json();
                Ok(BodyCheck::Body)
            }
            Some(BodyCheck::FormOrJson) => self.form_or_json(),
            Some(check) => Ok(check),
            None => Err(self.closed(choice)),
        }
    }

    /// The error for a route that is not open.
    fn closed(&self, choice: &UpstreamChoice) -> GatewayRefusal {
        let key = self.guest.key.as_deref().unwrap_or_default();
        let or_own = match headers::takes_own_keys(choice) {
            true => ", or send your own key of the provider beside x-komado-key",
            false => "",
        };
        GatewayRefusal::new(
            403,
            format!(
                "key {key} sees only its own sessions, and {} {} could reach what other users keep with the provider; \
                 use a key that was made with `komado admin key add NAME --sees all`{or_own}",
                self.method, self.path
            ),
        )
    }

    /// Looks at what is to be checked. Blocks while the store is asked.
    pub(super) fn check(&self, check: &BodyCheck, (body, len): (&File, u64)) -> Result<(), GatewayRefusal> {
        match check {
            BodyCheck::Nothing => Ok(()),
            BodyCheck::Body | BodyCheck::FormOrJson => self.check_body(body, len),
            BodyCheck::Form(boundary) => check_form((body, len), boundary),
            BodyCheck::Response(id) => self.check_given(id, ""),
        }
    }

    /// A body must be readable and name nothing that the provider keeps for others.
    fn check_body(&self, body: &File, len: u64) -> Result<(), GatewayRefusal> {
        let References { previous, field } = references(body, len)?;
        if let Some(field) = field {
            return Err(GatewayRefusal::new(
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
    fn check_given(&self, id: &str, instead: &str) -> Result<(), GatewayRefusal> {
        let caller = headers::caller(&self.headers, &self.guest)?;
        let or = |before: &str| if instead.is_empty() { String::new() } else { format!("{before}{instead}") };
        match place::was_given(&self.gateway.house.context.engine, &caller, id) {
            Ok(true) => Ok(()),
            Ok(false) => Err(GatewayRefusal::new(
                404,
                format!("no session of this key has received the response {id:?}{}", or("; ")),
            )),
            Err(error) => {
                tracing::warn!(why = %error, "the owner of the response cannot be looked up");
                Err(GatewayRefusal::new(
                    503,
                    format!("it cannot be looked up now whose response {id:?} is; try again{}", or(", or ")),
                )
                .later(1))
            }
        }
    }
}

/// What must be checked of a request for a path; `None` where it is not open.
fn route(method: &Method, path: &str) -> Option<BodyCheck> {
    let is_read = [Method::GET, Method::HEAD].contains(method);
    let is_post = *method == Method::POST;
    match path {
        _ if is_read && OLLAMA_READ.contains(&path) => Some(BodyCheck::Nothing),
        _ if is_post && (STATELESS.contains(&path) || OLLAMA_ASK.contains(&path)) => Some(BodyCheck::Body),
        _ if is_post && FORMS.contains(&path) => Some(BodyCheck::FormOrJson),
        _ => response(method, path).map(BodyCheck::Response),
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

/// What a body names. One that is not a JSON object is refused: what we cannot read the provider may.
fn references(body: &File, len: u64) -> Result<References, GatewayRefusal> {
    let wrong = |why: String| GatewayRefusal::new(400, format!("the request cannot be read: {why}"));
    let failed = |error: io::Error| GatewayRefusal::new(500, error.to_string());
    let mut skimmer = ReferenceScanner::default();
    let (mut piece, mut at) = (vec![0; PIECE], 0);
    while at < len {
        let most = usize::try_from(len - at).unwrap_or(PIECE).min(PIECE);
        body.read_exact_at(&mut piece[..most], at).map_err(failed)?;
        skimmer.push(&piece[..most]).map_err(|why| wrong(why.to_string()))?;
        at += most as u64;
    }
    skimmer.end().map_err(|why| wrong(why.to_string()))
}

// ---- forms ----
//
// Servers read forms in different ways, and what one takes for the text of a field is another field to the next. So only a form
// that can be read in one way passes: every line that begins as a boundary is one, every header is known, every name is in the list.
// Only the headers of the parts are held.

/// Fields by which nothing is named that a provider keeps.
const FIELDS: [&str; 23] = [
    "file",
    "model",
    "language",
    "prompt",
    "response_format",
    "temperature",
    "timestamp_granularities",
    "timestamp_granularities[]",
    "stream",
    "include",
    "include[]",
    "diarize",
    "chunking_strategy",
    "chunking_strategy[type]",
    "chunking_strategy[prefix_padding_ms]",
    "chunking_strategy[silence_duration_ms]",
    "chunking_strategy[threshold]",
    "known_speaker_names[]",
    "known_speaker_references[]",
    "context_bias",
    "hotwords",
    "vad_filter",
    "seed",
];

/// The most bytes of the headers of one part.
const MOST_HEAD: usize = 4 << 10;

fn unclear(why: &str) -> GatewayRefusal {
    GatewayRefusal::new(
        400,
        format!("the form cannot be read in one way only: {why}; send it as curl -F does"),
    )
}

/// The boundary that a content type of a form names.
fn boundary(content_type: &str) -> Result<String, GatewayRefusal> {
    let parameter = content_type.split_once(';').map(|(_, rest)| rest.trim()).unwrap_or_default();
    let (name, value) = parameter.split_once('=').unwrap_or_default();
    let value = value.strip_prefix('"').and_then(|value| value.strip_suffix('"')).unwrap_or(value);
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    if name.eq_ignore_ascii_case("boundary") && (1..=70).contains(&value.len()) && value.bytes().all(is_plain)
    {
        return Ok(value.to_owned());
    }
    Err(unclear(&format!(
        "Content-Type {content_type:?} has more or less than one boundary of letters, digits, `-`, `_` and `.`"
    )))
}

/// Every field of a form must be one of those that name nothing kept.
fn check_form((body, len): (&File, u64), boundary: &str) -> Result<(), GatewayRefusal> {
    let mark = format!("--{boundary}");
    // Where the text of the part begins that was begun last; `None` after the last boundary.
    let mut text = Some(0);
    let mut is_first = true;
    let (mut from, size) = (0, mark.len() as u64);
    while from + size <= len {
        let piece = read(body, (from, len), PIECE)?;
        let Some(at) = piece.windows(mark.len()).position(|window| window == mark.as_bytes()) else {
            from += piece.len() as u64 - size + 1;
            continue;
        };
        let at = from + at as u64;
        let begin = text.ok_or_else(|| unclear("it goes on after its last boundary"))?;
        let is_line =
            if is_first { at == 0 } else { at >= begin + 2 && read(body, (at - 2, len), 2)? == b"\r\n" };
        if !is_line {
            return Err(unclear("a boundary does not stand at the beginning of a line"));
        }
        let head = read(body, (at + size, len), MOST_HEAD)?;
        text = if let Some(rest) = head.strip_prefix(b"\r\n") {
            Some(at + size + 2 + part(rest)?)
        } else if [&b"--"[..], b"--\r\n"].contains(&head.as_slice()) && !is_first {
            None
        } else {
            return Err(unclear("a boundary is followed by something else than the end of its line"));
        };
        is_first = false;
        from = at + size;
    }
    text.map_or(Ok(()), |_| Err(unclear("its last boundary is missing")))
}

fn read(body: &File, (from, len): (u64, u64), most: usize) -> Result<Vec<u8>, GatewayRefusal> {
    let mut bytes = vec![0; usize::try_from(len - from).unwrap_or(most).min(most)];
    body.read_exact_at(&mut bytes, from).map_err(|error| GatewayRefusal::new(500, error.to_string()))?;
    Ok(bytes)
}

/// Checks the headers that a part begins with, and gives their length.
fn part(bytes: &[u8]) -> Result<u64, GatewayRefusal> {
    let end = bytes.windows(4).position(|window| window == b"\r\n\r\n");
    let end = end.ok_or_else(|| unclear("the headers of a part are too long, or do not end"))?;
    let head =
        std::str::from_utf8(&bytes[..end]).map_err(|_| unclear("the headers of a part are no UTF-8"))?;
    let mut name = None;
    for line in head.split("\r\n") {
        let (header, value) = line.split_once(':').unwrap_or_default();
        match header.to_ascii_lowercase().as_str() {
            _ if line.chars().any(char::is_control) => {
                return Err(unclear("a header has control characters"));
            }
            "content-disposition" if name.is_none() => name = Some(disposition(value)?),
            "content-type" if !value.to_ascii_lowercase().contains("multipart") => {}
            "content-length" => {}
            _ => return Err(unclear(&format!("a part has the header {line:?}"))),
        }
    }
    let name = name.ok_or_else(|| unclear("a part has no Content-Disposition"))?;
    if FIELDS.contains(&name) {
        return Ok(end as u64 + 4);
    }
    Err(GatewayRefusal::new(
        403,
        format!(
            "form field {name:?}: a key that sees only its own sessions may send only fields that name nothing kept with the \
             provider: {}",
            FIELDS.join(", ")
        ),
    ))
}

/// The name in `form-data; name="file"; filename="a.wav"`. A file has a name of its own, or it is a text that may be an id.
fn disposition(value: &str) -> Result<&str, GatewayRefusal> {
    let wrong = || unclear(&format!("Content-Disposition:{value}"));
    let mut pieces = value.split(';').map(str::trim);
    let is_form = pieces.next().is_some_and(|kind| kind.eq_ignore_ascii_case("form-data"));
    let (mut name, mut file, mut file_too) = (None, None, None);
    for piece in pieces {
        let (key, value) = piece.split_once('=').ok_or_else(wrong)?;
        let place = match key {
            "name" => &mut name,
            "filename" => &mut file,
            "filename*" => &mut file_too,
            _ => return Err(wrong()),
        };
        let value = value.strip_prefix('"').and_then(|value| value.strip_suffix('"')).unwrap_or(value);
        if value.contains(['"', '\\']) || place.replace(value).is_some() {
            return Err(wrong());
        }
    }
    let name = name.filter(|name| is_form && (*name != "file" || file.is_some()));
    name.ok_or_else(wrong)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    #[test]
    fn only_routes_that_keep_nothing_are_open_and_only_as_they_are_written() {
        let open = |method: &str, path: &str| route(&method.parse().unwrap(), path);
        assert_eq!(open("POST", "/embeddings"), Some(BodyCheck::Body));
        assert_eq!(open("POST", "/audio/transcriptions"), Some(BodyCheck::FormOrJson));
        assert_eq!(open("HEAD", "/api/tags"), Some(BodyCheck::Nothing));
        for (method, path) in [
            ("GET", "/responses/resp_1"),
            ("DELETE", "/responses/resp_1"),
            ("POST", "/responses/resp_1/cancel"),
        ] {
            assert_eq!(open(method, path), Some(BodyCheck::Response("resp_1".into())), "{method} {path}");
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

    fn checked(text: &str) -> Result<(), GatewayRefusal> {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(text.as_bytes()).unwrap();
        check_form((&file, text.len() as u64), "b-1")
    }

    /// A form with a file and one more part, which begins with these headers.
    fn form(head: &str) -> String {
        format!(
            "--b-1\r\nContent-Disposition: form-data; name=\"file\"; filename=\"窓.wav\"\r\nContent-Type: audio/wav\r\n\r\n\
             {}\r\n--b-1\r\n{head}\r\n\r\nx\r\n--b-1--\r\n",
            "RIFF\r\n--b-".repeat(20_000)
        )
    }

    #[test]
    fn a_form_passes_as_clients_write_it() {
        for head in [
            "Content-Disposition: form-data; name=\"model\"",
            "content-disposition: form-data; name=\"timestamp_granularities[]\"",
            "Content-Type: text/plain; charset=utf-8\r\nContent-Disposition: form-data; name=language",
            "Content-Disposition: form-data; name=file; filename=a.mp3; filename*=utf-8''a.mp3",
        ] {
            assert!(checked(&form(head)).is_ok(), "{head}");
        }
        for (text, named) in [
            ("multipart/form-data; boundary=b-1", "b-1"),
            ("Multipart/Form-Data;Boundary=\"----WebKitFormBoundaryx_1\"", "----WebKitFormBoundaryx_1"),
        ] {
            assert_eq!(boundary(text).unwrap(), named);
        }
    }

    #[test]
    fn a_field_that_names_a_kept_file_is_found_however_it_is_written() {
        for head in [
            "Content-Disposition: form-data; name=\"file_id\"",
            "Content-Disposition: form-data; name=file_id",
            "Content-Disposition: form-data; name=\"FILE_ID\"",
            "Content-Disposition: form-data; name*=utf-8''file_id",
            "Content-Disposition: form-data; name=\"model\"; name*=utf-8''file_id",
            "Content-Disposition: form-data; name=\"model\"; name=\"file_id\"",
            "Content-Disposition: form-data; name=\"model\"; Name=\"file_id\"",
            "Content-Disposition: form-data; name=\"file\\_id\"",
            "Content-Disposition: form-data; name=\"file%5fid\"",
            "Content-Disposition: form-data; name=\"file\"; filename=\"a; name=file_id\"",
            "Content-Disposition: form-data; filename=\"a\\\"; name=\"model\"",
            "Content-Disposition: form-data;\r\n name=\"file_id\"",
            "Content-Disposition: form-data; name=\"model\"\r\n\t; name=\"file_id\"",
            "Content-Disposition: form-data; name=\"model\"\r\nContent-Disposition: form-data; name=\"file_id\"",
            "Content-Disposition: form-data; name=\"model\"\nContent-Disposition: form-data; name=\"file_id\"",
            "Content-Disposition : form-data; name=\"file_id\"",
            "Content-Disposition: form-data; name=\"model\"\r\nContent-Type: multipart/mixed; boundary=c",
            "Content-Disposition: form-data; name=\"model\"\r\nContent-Transfer-Encoding: base64",
            "Content-Disposition: form-data; name=\"file\"",
            "Content-Disposition: attachment; name=\"model\"",
            "Content-Type: text/plain",
            "Content-Disposition: form-data; name=\"model\"\r\n\r\nx\n--b-1\nContent-Disposition: form-data; name=\"file_id\"",
            "Content-Disposition: form-data; name=\"model\"\r\n\r\nx\r\n--b-1 \r\nContent-Disposition: form-data; name=\"file_id\"",
            "Content-Disposition: form-data; name=\"model\"\r\n\r\n--b-1\r\nContent-Disposition: form-data; name=\"model\"",
            "Content-Disposition: form-data; name=\"model\"\r\n\r\nx\r\n--b-1--\r\n--b-1\r\nContent-Disposition: form-data; name=\"model\"",
        ] {
            assert!(checked(&form(head)).is_err(), "{head}");
        }
        let whole = form("Content-Disposition: form-data; name=\"model\"");
        for text in
            ["", "--b-1--\r\n", &whole[..whole.len() - 4], &format!("x\r\n{whole}"), &format!("{whole}x")]
        {
            assert!(checked(text).is_err(), "{} bytes", text.len());
        }
        for text in [
            "multipart/form-data",
            "multipart/form-data; boundary=",
            "multipart/form-data; boundary=a; boundary=b",
            "multipart/form-data; charset=utf-7; boundary=b",
            "multipart/form-data; boundary*=utf-8''b",
            "multipart/form-data; boundary=\"a\\b\"",
            "multipart/form-data; boundary=\"a",
        ] {
            assert!(boundary(text).is_err(), "{text}");
        }
    }
}
