//! Asks a tracker over HTTP, and keeps asking while that may help.
//!
//! The token goes to the address of the settings and nowhere else: of a link to the next page only the query is taken, and
//! a redirect is followed on the same host alone. What a tracker says is repeated in an error only in part, and never with
//! the token in it.

use super::retry::{self, RetryState, TransientFailure};
use super::text::{head, line};
use super::{Error, TrackerConfig, TrackerKind};
use komado_provider::{Cancel, Client, ClientBody, ForwardRequest, Method, ProviderResponse, SendError};
use serde::de::{DeserializeOwned, Deserializer, Error as _, SeqAccess, Visitor};
use serde_json::Value;
use std::cell::Cell;
use std::fmt;
use std::io::{self, BufReader, Cursor, Read};
use std::marker::PhantomData;
use std::rc::Rc;
use std::time::Duration;

/// How much of a refusal is read.
const MOST_REFUSAL: usize = 64 << 10;
/// How much of it is repeated.
const MOST_REPEATED: usize = 300;
/// How often one is sent elsewhere.
const MOVES: usize = 3;

/// Something to ask.
pub(super) struct TrackerRequest<'a> {
    /// What, in words, for errors.
    pub(super) what: &'a str,
    pub(super) method: Method,
    /// After the address of the settings, query included.
    pub(super) path: String,
    pub(super) body: Option<Value>,
}

impl<'a> TrackerRequest<'a> {
    /// Only looks.
    pub(super) fn get(what: &'a str, path: String) -> Self {
        Self { what, method: Method::GET, path, body: None }
    }
}

/// Why there is no answer.
pub(super) enum TrackerFailure {
    /// To ask again may help.
    Passing(TransientFailure),
    /// It would not.
    Lasting(Error),
}

/// The way to a tracker.
#[derive(Clone)]
pub(super) struct TrackerClient {
    client: Client,
    kind: TrackerKind,
    root: String,
    token: Option<String>,
    headers: Vec<(String, String)>,
    patience: Duration,
    /// Breaks off waits and questions.
    cancel: Cancel,
}

impl TrackerClient {
    /// `root` is where the API is, without a slash at its end.
    pub(super) fn new(tracker: &TrackerConfig, root: String, client: Client) -> Self {
        let mut headers =
            vec![("user-agent".to_owned(), concat!("komado/", env!("CARGO_PKG_VERSION")).to_owned())];
        let mut put = |name: &str, value: &str| headers.push((name.to_owned(), value.to_owned()));
        match tracker.kind {
            TrackerKind::GitHub => {
                put("accept", "application/vnd.github+json");
                put("x-github-api-version", "2022-11-28");
            }
            TrackerKind::GitLab => put("accept", "application/json"),
        }
        match (tracker.kind, &tracker.token) {
            (TrackerKind::GitHub, Some(token)) => put("authorization", &format!("Bearer {token}")),
            (TrackerKind::GitLab, Some(token)) => put("private-token", token),
            (_, None) => {}
        }
        let (kind, token, patience) = (tracker.kind, tracker.token.clone(), tracker.patience);
        Self { client, kind, root, token, headers, patience, cancel: Cancel::default() }
    }

    /// The same way, for what is not needed any more once `cancel` is said.
    pub(super) fn until(&self, cancel: Cancel) -> Self {
        Self { cancel, ..self.clone() }
    }

    /// Asks until there is an answer that `take` can read; `None` when there is no such thing, or no longer.
    pub(super) fn ask<T>(
        &self,
        ask: &TrackerRequest<'_>,
        take: &mut dyn FnMut(ProviderResponse) -> Result<T, TrackerFailure>,
    ) -> Result<Option<T>, Error> {
        let mut tries = RetryState::new(self.patience);
        loop {
            match self.once(ask).and_then(|answer| answer.map(&mut *take).transpose()) {
                Ok(taken) => return Ok(taken),
                Err(trouble) => self.rest(ask, &mut tries, trouble)?,
            }
        }
    }

    /// Asks for one thing, as JSON.
    pub(super) fn get<T: DeserializeOwned>(&self, ask: &TrackerRequest<'_>) -> Result<Option<T>, Error> {
        self.ask(ask, &mut |answer| {
            serde_json::from_reader(BufReader::new(BoundedBody::new(answer)))
                .map_err(|error| self.unread(ask, &error))
        })
    }

    /// Asks for something to be done that may be done twice.
    pub(super) fn tell(&self, ask: &TrackerRequest<'_>) -> Result<Option<()>, Error> {
        self.ask(ask, &mut |_| Ok(()))
    }

    /// Posts what must not be there twice: `is_there` looks before each try, since one that broke off may have come through.
    pub(super) fn post_once(
        &self,
        ask: &TrackerRequest<'_>,
        is_there: &mut dyn FnMut() -> Result<bool, Error>,
    ) -> Result<(), Error> {
        let mut tries = RetryState::new(self.patience);
        while !is_there()? {
            match self.once(ask) {
                Ok(_) => return Ok(()),
                Err(trouble) => self.rest(ask, &mut tries, trouble)?,
            }
        }
        Ok(())
    }

    fn rest(
        &self,
        ask: &TrackerRequest<'_>,
        tries: &mut RetryState,
        trouble: TrackerFailure,
    ) -> Result<(), Error> {
        match trouble {
            TrackerFailure::Lasting(error) => Err(error),
            TrackerFailure::Passing(passing) => {
                tries.rest(&passing, &self.cancel).map_err(|why| self.away(ask.what, &why))
            }
        }
    }

    /// Asks once. `None` when there is no such thing, or no longer.
    fn once(&self, ask: &TrackerRequest<'_>) -> Result<Option<ProviderResponse>, TrackerFailure> {
        let mut url = format!("{}{}", self.root, ask.path);
        for _ in 0..MOVES {
            let answer = self.sent(ask, &url)?;
            match moved(&answer, &self.root) {
                Some(to) => url = to,
                None => return self.judged(ask, answer),
            }
        }
        Err(TrackerFailure::Lasting(self.refused(ask.what, "it sends us from one address to the next")))
    }

    fn sent(&self, ask: &TrackerRequest<'_>, url: &str) -> Result<ProviderResponse, TrackerFailure> {
        let mut headers = self.headers.clone();
        let body = ask.body.as_ref().map(ToString::to_string).unwrap_or_default().into_bytes();
        if ask.body.is_some() {
            headers.push(("content-type".to_owned(), "application/json".to_owned()));
        }
        let request = ForwardRequest {
            method: ask.method.clone(),
            url,
            headers: &headers,
            body: ClientBody::Bytes(body.into()),
        };
        // What changes something is not left half done: it would not be known when it comes through.
        let cancel = if ask.method == Method::GET { self.cancel.clone() } else { Cancel::default() };
        self.client.forward(request, &cancel).map_err(|error| match error {
            SendError::Cancelled => TrackerFailure::Lasting(self.away(ask.what, "it was broken off")),
            SendError::Unreachable { .. } | SendError::Broken { .. } | SendError::TimedOut { .. } => {
                TrackerFailure::Passing(TransientFailure { why: error.to_string(), wait: None })
            }
            other => TrackerFailure::Lasting(self.refused(ask.what, &self.without_token(&other.to_string()))),
        })
    }

    /// What an answer means.
    fn judged(
        &self,
        ask: &TrackerRequest<'_>,
        answer: ProviderResponse,
    ) -> Result<Option<ProviderResponse>, TrackerFailure> {
        let status = answer.status;
        match status {
            200..300 => return Ok(Some(answer)),
            404 | 410 => return Ok(None),
            _ => {}
        }
        let asked = retry::asked(&answer.headers);
        let location = answer.header("location").map(|to| head(to, MOST_REPEATED).to_owned());
        let said = self.without_token(&said(&answer.text(MOST_REFUSAL).unwrap_or_default()));
        let is_limit = status == 429 || (status == 403 && (asked.is_some() || speaks_of_limits(&said)));
        if is_limit || matches!(status, 408 | 500 | 502..=504) {
            let unsaid = || is_limit.then(retry::unsaid);
            let why = format!("the answer was {status}: {said}");
            return Err(TrackerFailure::Passing(TransientFailure { why, wait: asked.or_else(unsaid) }));
        }
        let name = self.kind.name();
        let why = match (status, location) {
            (401, _) => self.no_key(&said),
            (403, _) => format!("{said} ({status}); the token needs more rights ({name}.token)"),
            (300..=399, Some(to)) => {
                format!("it answers {status} and points to {}; {name}.base_url is wrong", origin(&to))
            }
            _ => format!("{said} ({status})"),
        };
        Err(TrackerFailure::Lasting(self.refused(ask.what, &why)))
    }

    fn no_key(&self, said: &str) -> String {
        let (name, variable) = (self.kind.name(), self.kind.name().to_uppercase());
        let what = if self.token.is_some() { "the token is not accepted" } else { "there is no token" };
        format!("{said} (401); {what}: set {name}.token or {variable}_TOKEN")
    }

    /// What could not be read: a connection that broke, or what is not an answer of this API.
    pub(super) fn unread(&self, ask: &TrackerRequest<'_>, error: &serde_json::Error) -> TrackerFailure {
        let is_too_long = error.io_error_kind() == Some(io::ErrorKind::FileTooLarge);
        if (error.is_io() || error.is_eof()) && !is_too_long {
            return TrackerFailure::Passing(TransientFailure { why: error.to_string(), wait: None });
        }
        let name = self.kind.name();
        let why = format!(
            "the answer cannot be read: {error}; check that {name}.base_url is the address of its API"
        );
        TrackerFailure::Lasting(self.refused(ask.what, &why))
    }

    /// It says no.
    pub(super) fn refused(&self, what: &str, why: &str) -> Error {
        Error::Refused { tracker: self.name(), what: what.to_owned(), why: why.to_owned() }
    }

    fn away(&self, what: &str, why: &str) -> Error {
        Error::Away { tracker: self.name(), why: format!("{what}: {why}") }
    }

    fn name(&self) -> String {
        format!("{} at {}", self.kind.title(), self.root)
    }

    fn without_token(&self, text: &str) -> String {
        match self.token.as_deref() {
            Some(token) if !token.is_empty() => text.replace(token, "…"),
            _ => text.to_owned(),
        }
    }
}

/// Where an answer sends us, when that is on the same host.
fn moved(answer: &ProviderResponse, root: &str) -> Option<String> {
    let is_move = matches!(answer.status, 301 | 302 | 307 | 308);
    let to = answer.header("location").filter(|_| is_move)?;
    if to.starts_with('/') && !to.starts_with("//") {
        return Some(format!("{}{to}", origin(root)));
    }
    origin(to).eq_ignore_ascii_case(origin(root)).then(|| to.to_owned())
}

/// Scheme and host of an address.
fn origin(url: &str) -> &str {
    let start = url.find("://").map_or(0, |at| at + 3);
    let end = url[start..].find(['/', '?', '#']).map_or(url.len(), |at| start + at);
    &url[..end]
}

/// GitHub says some limits in words alone.
fn speaks_of_limits(said: &str) -> bool {
    let said = said.to_lowercase();
    said.contains("rate limit") || said.contains("abuse detection")
}

/// What a refusal says, as one line: the message of its JSON, the title of its page, or its beginning.
fn said(text: &str) -> String {
    let json: Option<Value> = serde_json::from_str(text).ok();
    let message = json.as_ref().and_then(|json| json.get("message").or_else(|| json.get("error")));
    let words = match message {
        Some(Value::String(words)) => words.clone(),
        Some(other) => other.to_string(),
        None => match text.split_once("<title>").and_then(|(_, rest)| rest.split_once("</title>")) {
            Some((title, _)) => format!("a page, {title:?}"),
            None if text.trim().is_empty() => "nothing more".to_owned(),
            None => text.to_owned(),
        },
    };
    line(head(&words, MOST_REPEATED))
}

// Lists of a tracker: page after page, element by element.
//
// An element is handed on as soon as it is read. A page that breaks off is asked for again, and goes on behind the elements
// that were handed on. Pages count: a change of the list while it is read may make it skip something, which is found
// the next time.

/// How many pages a list may have: a tracker whose list leads on forever is none.
const MOST_PAGES: usize = 2_000;

/// Whether there is more to read.
enum Next {
    /// The page of this query.
    Query(String),
    /// No, or it is not wanted.
    End,
}

impl TrackerClient {
    /// Hands on every element of the list at `path`, until `each` says no. False when there is no such list.
    pub(super) fn list<T: DeserializeOwned>(
        &self,
        what: &str,
        path: &str,
        query: &str,
        each: &mut dyn FnMut(T) -> bool,
    ) -> Result<bool, Error> {
        let mut query = query.to_owned();
        for _ in 0..MOST_PAGES {
            let ask = TrackerRequest::get(what, format!("{path}?{query}"));
            match self.page(&ask, &query, each)? {
                None => return Ok(false),
                Some(Next::End) => return Ok(true),
                Some(Next::Query(next)) if next == query => break,
                Some(Next::Query(next)) => query = next,
            }
        }
        Err(self.refused(what, "its pages lead on without an end"))
    }

    fn page<T: DeserializeOwned>(
        &self,
        ask: &TrackerRequest<'_>,
        query: &str,
        each: &mut dyn FnMut(T) -> bool,
    ) -> Result<Option<Next>, Error> {
        let mut handed = 0;
        self.ask(ask, &mut |answer| {
            let next = next(&answer.headers, query);
            let body = BoundedBody::new(answer);
            let mut is_enough = false;
            let elements = Elements {
                room: body.room(),
                handed: &mut handed,
                is_enough: &mut is_enough,
                each: &mut *each,
                of: PhantomData,
            };
            let read = serde_json::Deserializer::from_reader(BufReader::new(body)).deserialize_seq(elements);
            match read {
                _ if is_enough => Ok(Next::End),
                Ok(()) => Ok(next),
                Err(error) => Err(self.unread(ask, &error)),
            }
        })
    }
}

/// Reads an array, and holds one element.
struct Elements<'a, T> {
    room: ElementLimit,
    /// How many were handed on, in this try and in those before.
    handed: &'a mut usize,
    is_enough: &'a mut bool,
    each: &'a mut dyn FnMut(T) -> bool,
    of: PhantomData<T>,
}

impl<'de, T: DeserializeOwned> Visitor<'de> for Elements<'_, T> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<(), A::Error> {
        let mut at = 0;
        while let Some(element) = seq.next_element()? {
            self.room.renew();
            at += 1;
            if at <= *self.handed {
                continue;
            }
            *self.handed = at;
            if !(self.each)(element) {
                *self.is_enough = true;
                return Err(A::Error::custom("the reader has enough"));
            }
        }
        Ok(())
    }
}

/// What comes after a page. GitLab says its number, GitHub gives a link; of that only the query is taken, so that no
/// answer leads away from the host that was asked.
fn next(headers: &[(String, String)], query: &str) -> Next {
    let find = |name: &str| headers.iter().find(|(other, _)| other == name).map(|(_, value)| value.trim());
    let next = match find("x-next-page") {
        Some("") => None,
        Some(page) => Some(at_page(query, page)),
        None => find("link").and_then(linked).map(str::to_owned),
    };
    next.map_or(Next::End, Next::Query)
}

fn at_page(query: &str, page: &str) -> String {
    let kept = query.split('&').filter(|pair| !pair.starts_with("page="));
    kept.chain([format!("page={page}").as_str()]).collect::<Vec<_>>().join("&")
}

/// The query of the link that is called `next`.
fn linked(link: &str) -> Option<&str> {
    let (_, query) = link.split('<').find_map(|one| {
        let (url, rest) = one.split_once('>')?;
        let is_next = rest.split([';', ',']).any(|word| matches!(word.trim(), "rel=\"next\"" | "rel=next"));
        is_next.then(|| url.split_once('?'))?
    })?;
    query.split('#').next()
}

// The body of an answer, read as it arrives.
//
// Of a list only one element is held at a time, whatever the list's length; what is longer than anything a tracker keeps is
// an error, so that no answer takes more memory than that.

/// The longest thing, in bytes. Trackers keep texts of up to a million characters, which are up to six bytes in JSON.
const MOST: usize = 16 << 20;

/// How much may still come before the thing that is read must have ended.
#[derive(Clone)]
pub(super) struct ElementLimit(Rc<Cell<usize>>);

impl ElementLimit {
    /// The next thing begins.
    pub(super) fn renew(&self) {
        self.0.set(MOST);
    }
}

/// A body that is read.
pub(super) struct BoundedBody {
    answer: ProviderResponse,
    chunk: Cursor<Vec<u8>>,
    room: ElementLimit,
}

impl BoundedBody {
    pub(super) fn new(answer: ProviderResponse) -> Self {
        let room = ElementLimit(Rc::new(Cell::new(MOST)));
        Self { answer, chunk: Cursor::new(Vec::new()), room }
    }

    /// To be renewed whenever a thing has ended.
    pub(super) fn room(&self) -> ElementLimit {
        self.room.clone()
    }
}

impl Read for BoundedBody {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        loop {
            let read = self.chunk.read(out)?;
            if read > 0 || out.is_empty() {
                return Ok(read);
            }
            let Some(chunk) = self.answer.chunk().map_err(io::Error::other)? else { return Ok(0) };
            let left = self.room.0.get().checked_sub(chunk.len()).ok_or_else(|| {
                io::Error::new(io::ErrorKind::FileTooLarge, format!("one thing is longer than {MOST} bytes"))
            })?;
            self.room.0.set(left);
            self.chunk = Cursor::new(chunk.to_vec());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_is_one_short_line_whatever_it_was() {
        for (text, expect) in [
            (r#"{"message":"Bad\ncredentials"}"#, "Bad credentials"),
            (r#"{"error":"body is missing"}"#, "body is missing"),
            (r#"{"message":{"note":["is too long"]}}"#, r#"{"note":["is too long"]}"#),
            ("<html><head><title>502 Bad Gateway</title></head>", r#"a page, "502 Bad Gateway""#),
            ("Retry later\n", "Retry later"),
            (" ", "nothing more"),
        ] {
            assert_eq!(said(text), expect);
        }
        assert!(said(&"窓".repeat(9_999)).len() <= MOST_REPEATED);
    }

    #[test]
    fn another_host_is_another_origin_however_it_is_written() {
        let root = "https://api.github.com/v3";
        assert_eq!(origin(root), "https://api.github.com");
        for other in [
            "https://api.github.com.evil.example/",
            "https://api.github.com@evil.example/",
            "http://api.github.com/",
            "https://api.github.com:8443/",
            "//evil.example/",
            "https://api.github.com\\@evil.example/",
        ] {
            assert_ne!(origin(other), origin(root), "{other}");
        }
    }
}

#[cfg(test)]
mod list_tests {
    use super::*;

    #[test]
    fn of_a_link_to_the_next_page_only_the_query_is_taken() {
        for (link, expect) in [
            (
                "<https://a.example/x?page=2>; rel=\"next\", <https://a.example/x?page=9>; rel=\"last\"",
                Some("page=2"),
            ),
            (
                "<https://a.example/x?page=1>; rel=\"prev\", <https://evil.example/y?page=3&a=1>; rel=next",
                Some("page=3&a=1"),
            ),
            ("<https://a.example/x?page=1>; rel=\"prev\"", None),
            ("<https://a.example/next>; rel=\"next\"", None),
            ("rel=\"next\"", None),
            ("", None),
        ] {
            assert_eq!(linked(link), expect, "{link}");
        }
        assert_eq!(at_page("labels=a&page=3&sort=asc", "4"), "labels=a&sort=asc&page=4");
    }
}
