//! What stands where in a request: its fields, the elements of its transcript, and the few values that are read.

use super::digest::{DigestTarget, ElementDigester, LONGEST, ShortText};
use super::json::{JsonHolder, JsonToken, JsonWatch, bad};
use super::{RequestField, ScannedRequest};
use crate::dialect::{BadRequest, Dialect};
use std::borrow::Cow;

/// The longest name of a field that is looked at.
const KEY: usize = 256;
/// The longest value that is read: a model's name, an answer's.
const VALUE: usize = 1024;
/// The most fields a request may have.
const FIELDS: usize = 4096;

/// Which holder the next value stands in, as far as it matters. Holders inside those are counted, no more.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
enum Level {
    #[default]
    Outside,
    Request,
    List,
    Element,
    Content,
    Block,
}

/// What the next value is wanted for.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum Want {
    #[default]
    Nothing,
    List,
    Model,
    Stream,
    Previous,
    Role,
    Content,
    /// The type of an element or a block: held until its end.
    Kind,
}

/// A request as far as it has come.
#[derive(Debug, Default)]
pub(super) struct RequestWatch {
    skim: ScannedRequest,
    has_list: bool,
    level: Level,
    /// Holders open inside the level.
    inner: usize,
    /// Holders open, all in all.
    depth: usize,
    token: JsonToken,
    key: ShortText,
    /// The field of the request whose value passes.
    name: String,
    want: Want,
    value: ShortText,
    /// Where the value or element that passes begins.
    value_from: u64,
    /// True when something stands in the list or object whose field passes.
    filled: bool,
    element_from: u64,
    digester: ElementDigester,
    /// The depth of the object one of whose fields does not count.
    mute: Option<usize>,
    /// The depth of the object one of whose fields is a tool's: what it is called there is no word of the API.
    foreign: Option<usize>,
}

impl RequestWatch {
    pub(super) fn new(dialect: Dialect, salt: &[u8]) -> Self {
        let skim =
            ScannedRequest { dialect, stream: dialect == Dialect::Ollama, ..ScannedRequest::default() };
        Self { skim, digester: ElementDigester::new(dialect, salt), ..Self::default() }
    }

    /// The whole of it. Only a request that may do without a transcript has none.
    pub(super) fn end(mut self, len: u64) -> Result<ScannedRequest, BadRequest> {
        let may_lack = matches!(self.skim.dialect, Dialect::Responses | Dialect::Ollama);
        if !self.has_list && !may_lack {
            return Err(BadRequest::new("messages", "is missing; give a list of messages"));
        }
        self.skim.len = len;
        Ok(self.skim)
    }

    /// True when what passes goes into a digest.
    fn counts(&self) -> bool {
        self.level >= Level::List && self.mute.is_none() && self.want != Want::Kind
    }

    fn write(&mut self, bytes: &[u8]) {
        if self.counts() {
            self.digester.write(bytes);
        }
    }

    /// A key is whole. What it decides is decided here; then it is written, unless its value decides that.
    fn keyed(&mut self, at: u64) -> Result<(), BadRequest> {
        self.want = Want::Nothing;
        let key = std::mem::take(&mut self.key);
        let done = self.decide(&key, at);
        self.key = key;
        done
    }

    fn decide(&mut self, key: &ShortText, at: u64) -> Result<(), BadRequest> {
        let said = key.said();
        if self.level == Level::Request && self.inner == 0 {
            return self.field(said.map(Cow::into_owned), at);
        }
        if self.level < Level::List || self.mute.is_some() {
            return Ok(());
        }
        let said = said.unwrap_or_default();
        let is_own = self.foreign.is_none();
        if is_own && said == "cache_control" {
            self.mute = Some(self.depth);
        } else if self.inner == 0 {
            self.member(&said);
        }
        if is_own && matches!(&*said, "input" | "arguments") {
            self.foreign = Some(self.depth);
        }
        if self.mute.is_some() || matches!(self.want, Want::Kind | Want::Content) {
            return Ok(());
        }
        if self.digester.page == DigestTarget::Id && self.inner == 0 {
            return Ok(());
        }
        if !key.is_long() {
            self.digester.write(b"\"");
            self.digester.write(key.raw());
        }
        self.digester.write(b"\":");
        Ok(())
    }

    /// A field of the request.
    fn field(&mut self, said: Option<String>, at: u64) -> Result<(), BadRequest> {
        let Some(name) = said else {
            return Err(bad(at, format!("a field's name must be text of at most {KEY} bytes")));
        };
        if self.skim.fields.len() == FIELDS {
            return Err(bad(at, format!("the request has more than {FIELDS} fields")));
        }
        self.want = match name.as_str() {
            "model" => Want::Model,
            "stream" => Want::Stream,
            "previous_response_id" => Want::Previous,
            name if name == self.skim.list_name() => Want::List,
            _ => Want::Nothing,
        };
        if self.want == Want::List {
            self.skim.elements.clear();
            self.digester.begin_list();
            self.has_list = false;
        }
        self.name = name;
        Ok(())
    }

    /// A field of an element or of a block.
    fn member(&mut self, key: &str) {
        if self.level == Level::Block {
            if key == "type" {
                self.want = Want::Kind;
                self.digester.block_kind.clear();
            }
            return;
        }
        match (key, self.skim.dialect) {
            ("reasoning_content" | "reasoning" | "reasoning_details", Dialect::Chat)
            | ("thinking", Dialect::Ollama)
            | ("status", Dialect::Responses) => self.mute = Some(self.depth),
            ("id", Dialect::Responses) => self.digester.begin_id(),
            ("type", _) => {
                self.want = Want::Kind;
                self.digester.kind.clear();
            }
            ("role", _) => {
                self.want = Want::Role;
                self.digester.role.clear();
            }
            ("content", _) => self.want = Want::Content,
            _ => {}
        }
        self.digester.note(key);
    }

    /// A value of the level's own, or one inside it, has ended before `at`.
    fn valued(&mut self, at: u64) {
        if self.level == Level::Request && self.inner == 0 {
            let key = std::mem::take(&mut self.name);
            let filled = std::mem::take(&mut self.filled);
            self.skim.fields.push(RequestField { key, span: self.value_from..at, filled });
            return;
        }
        self.filled |= self.level == Level::Request;
        if self.mute == Some(self.depth) {
            self.mute = None;
            return;
        }
        if self.foreign == Some(self.depth) {
            self.foreign = None;
        }
        if self.level == Level::List && self.inner == 0 {
            return;
        }
        self.write(b",");
        if self.level == Level::Element && self.inner == 0 {
            self.digester.page = DigestTarget::Element;
        }
    }

    /// The value of a key whose value is no text, or none that was looked for: it is like any other.
    fn ordinary(&mut self) {
        let key: &[u8] = match self.want {
            Want::Kind => b"\"type\":",
            Want::Content => b"\"content\":",
            _ => b"",
        };
        self.want = Want::Nothing;
        self.write(key);
    }

    fn begin_element(&mut self, at: u64) {
        self.digester.begin();
        self.element_from = at;
    }

    fn end_element(&mut self, at: u64) {
        let element = self.digester.end(self.element_from..at);
        self.skim.elements.push(element);
    }

    /// An input that is a text alone says what a user's message of that text says.
    fn begin_sole_text(&mut self, at: u64) {
        self.begin_element(at);
        self.has_list = true;
        self.digester.note("role");
        self.digester.role.push(b"user", LONGEST);
        self.digester.write(b"{\"role\":\"user\",");
        self.begin_sole_block();
    }

    fn end_sole_text(&mut self, at: u64) {
        self.end_sole_block();
        self.digester.write(b",]");
        self.end_element(at);
    }

    /// Content that is a text alone says what a list of one text says.
    fn begin_sole_block(&mut self) {
        self.digester.write(b"\"content\":[");
        self.digester.begin_block();
        self.digester.block_kind.push(b"text", LONGEST);
        self.digester.write(b"{\"text\":\"");
    }

    fn end_sole_block(&mut self) {
        self.digester.write(b"\",]");
        self.digester.end_block();
        self.digester.write(b"]");
    }

    /// A piece of a value that is wanted.
    fn take(&mut self, bytes: &[u8]) {
        let most = if self.level == Level::Request { VALUE } else { LONGEST };
        match self.want {
            Want::Role if self.token == JsonToken::Text => _ = self.digester.role.push(bytes, most),
            Want::Kind => self.take_kind(bytes),
            Want::Model | Want::Previous | Want::Stream | Want::List => _ = self.value.push(bytes, most),
            Want::Nothing | Want::Role | Want::Content => {}
        }
    }

    fn take_kind(&mut self, bytes: &[u8]) {
        let kind = match self.level {
            Level::Block => &mut self.digester.block_kind,
            _ => &mut self.digester.kind,
        };
        if kind.push(bytes, LONGEST) {
            return;
        }
        let held = kind.raw().to_vec();
        self.want = Want::Nothing;
        [b"\"type\":\"", held.as_slice(), bytes].into_iter().for_each(|bytes| self.digester.write(bytes));
    }

    /// A value that was read is whole.
    fn taken(&mut self, token: JsonToken, at: u64) -> Result<(), BadRequest> {
        let said = self.value.said().filter(|_| token == JsonToken::Text).map(Cow::into_owned);
        if self.value.is_long() {
            return Err(bad(at, format!("{}: longer than {VALUE} bytes", self.name)));
        }
        match self.want {
            Want::Model => self.skim.model = said,
            Want::Previous => self.skim.previous = said,
            Want::Stream => {
                let unsaid = self.skim.dialect == Dialect::Ollama;
                self.skim.stream = match self.value.raw() {
                    b"true" if token == JsonToken::Plain => true,
                    b"false" if token == JsonToken::Plain => false,
                    _ => unsaid,
                };
            }
            _ => {}
        }
        Ok(())
    }

    /// The level that a holder of the level's own begins; `None` when it is only counted.
    fn entered(&mut self, holder: JsonHolder, at: u64) -> Result<Option<Level>, BadRequest> {
        Ok(match (self.level, holder) {
            (Level::Outside, _) => Some(Level::Request),
            (Level::Request, holder) => {
                self.value_from = at;
                match (self.want, holder) {
                    (Want::List, JsonHolder::Object) => return Err(self.no_list(at)),
                    (Want::List, JsonHolder::List) => {
                        self.has_list = true;
                        Some(Level::List)
                    }
                    _ => None,
                }
            }
            (Level::List, holder) => {
                self.begin_element(at);
                (holder == JsonHolder::Object).then_some(Level::Element)
            }
            (Level::Element, JsonHolder::List) if self.want == Want::Content => Some(Level::Content),
            (Level::Content, JsonHolder::Object) => {
                self.digester.begin_block();
                Some(Level::Block)
            }
            _ => None,
        })
    }

    /// More of a key. One that is too long to mean anything is written as it comes.
    fn key_piece(&mut self, bytes: &[u8]) {
        let was_long = self.key.is_long();
        if self.key.push(bytes, KEY) || self.level < Level::List || self.mute.is_some() {
            return;
        }
        if !was_long {
            self.digester.write(b"\"");
            self.digester.write(self.key.raw());
        }
        self.digester.write(bytes);
    }

    fn no_list(&self, at: u64) -> BadRequest {
        let list = self.skim.list_name();
        bad(at, format!("{list}: it must be a list"))
    }
}

impl JsonWatch for RequestWatch {
    fn open(&mut self, holder: JsonHolder, at: u64) -> Result<(), BadRequest> {
        let own = self.inner == 0;
        let entered = if own { self.entered(holder, at)? } else { None };
        self.depth += 1;
        if own && self.level >= Level::Element {
            self.ordinary();
        }
        self.want = Want::Nothing;
        match entered {
            Some(level) => self.level = level,
            None => self.inner += 1,
        }
        if !matches!(entered, Some(Level::Request | Level::List)) {
            self.write(if holder == JsonHolder::List { b"[" } else { b"{" });
        }
        Ok(())
    }

    /// What it closes need not be told apart in the digest: what was opened was written.
    fn close(&mut self, at: u64) -> Result<(), BadRequest> {
        self.depth -= 1;
        if self.level >= Level::Element || self.inner > 0 {
            self.write(b"]");
        }
        if self.inner > 0 {
            self.inner -= 1;
            if self.inner == 0 && self.level == Level::List {
                self.end_element(at);
            }
            self.valued(at);
            return Ok(());
        }
        match self.level {
            Level::Block => {
                self.digester.end_block();
                self.level = Level::Content;
            }
            Level::Content => {
                self.level = Level::Element;
                self.valued(at);
            }
            Level::Element => {
                self.end_element(at);
                self.level = Level::List;
            }
            Level::List => {
                self.level = Level::Request;
                self.valued(at);
            }
            Level::Request | Level::Outside => self.level = Level::Outside,
        }
        Ok(())
    }

    fn begin(&mut self, token: JsonToken, at: u64) -> Result<(), BadRequest> {
        self.token = token;
        if token == JsonToken::Key {
            self.key.clear();
            return Ok(());
        }
        let own = self.inner == 0;
        if own && self.level == Level::Request {
            self.value_from = at;
            self.value.clear();
            return match (self.want, token, self.skim.dialect) {
                (Want::List, JsonToken::Text, Dialect::Responses) => {
                    self.begin_sole_text(at);
                    Ok(())
                }
                (Want::List, JsonToken::Text, _) => Err(self.no_list(at)),
                _ => Ok(()),
            };
        }
        if own && self.level == Level::List {
            self.begin_element(at);
        }
        match (self.want, token) {
            (Want::Kind, JsonToken::Text) => {}
            (Want::Content, JsonToken::Text) => self.begin_sole_block(),
            (Want::Kind | Want::Content, _) => self.ordinary(),
            (_, JsonToken::Text) => self.write(b"\""),
            _ => {}
        }
        Ok(())
    }

    fn piece(&mut self, bytes: &[u8]) -> Result<(), BadRequest> {
        if self.token == JsonToken::Key {
            self.key_piece(bytes);
        } else if self.want == Want::List && self.token == JsonToken::Text {
            self.digester.write(bytes);
        } else {
            // Written first: a type that becomes too long is written where it is taken.
            self.write(bytes);
            self.take(bytes);
        }
        Ok(())
    }

    fn end(&mut self, token: JsonToken, at: u64) -> Result<(), BadRequest> {
        if token == JsonToken::Key {
            return self.keyed(at);
        }
        let own = self.inner == 0;
        let want = self.want;
        if own && self.level == Level::Request {
            match (want, token) {
                (Want::List, JsonToken::Text) => self.end_sole_text(at),
                (Want::List, _) if self.value.raw() != b"null" => return Err(self.no_list(at)),
                (Want::Nothing | Want::List, _) => {}
                _ => self.taken(token, at)?,
            }
            self.want = Want::Nothing;
            self.valued(at);
            return Ok(());
        }
        self.want = Want::Nothing;
        match (want, token) {
            (Want::Kind, _) => return Ok(()),
            (Want::Content, JsonToken::Text) => self.end_sole_block(),
            (_, JsonToken::Text) => self.write(b"\""),
            _ => {}
        }
        if own && self.level == Level::List {
            self.end_element(at);
        }
        self.valued(at);
        Ok(())
    }
}
