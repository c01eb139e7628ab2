//! Does a request name something that its provider keeps: an earlier response, a file, a container?
//!
//! Such an id works for every request that carries the same key of the provider, so where several users share one key each of them
//! could name what belongs to another. One pass over the bytes, of which nothing is held. Names of fields are compared without
//! regard to case, as some servers do. What a tool says or takes is the client's own and is not looked into.

use super::element::Word;
use super::scan::{Holder, Scanner, Token, Watch};
use crate::ask::BadRequest;

/// The longest name of a field, type or id that is looked at.
const LONGEST: usize = 1024;

/// Fields below which stands what a tool takes or says, a schema, or what a provider said about an earlier answer.
const UNREAD: [&str; 13] = [
    "arguments",
    "input",
    "parameters",
    "input_schema",
    "schema",
    "json_schema",
    "properties",
    "definitions",
    "$defs",
    "metadata",
    "annotations",
    "citations",
    "results",
];

/// What a request names of what its provider keeps.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct References {
    /// `previous_response_id`.
    pub previous: Option<String>,
    /// The first field that names anything else.
    pub field: Option<&'static str>,
}

/// Looks for references in a request as it passes.
#[derive(Debug)]
pub struct ReferenceSkimmer {
    scanner: Scanner,
    walk: Walk,
}

impl Default for ReferenceSkimmer {
    fn default() -> Self {
        Self { scanner: Scanner::new(), walk: Walk::default() }
    }
}

impl ReferenceSkimmer {
    /// Takes bytes in, cut anywhere. An error names the byte at which this is no JSON object.
    pub fn push(&mut self, bytes: &[u8]) -> Result<(), BadRequest> {
        self.scanner.push(bytes, &mut self.walk)
    }

    /// No more comes.
    pub fn end(self) -> Result<References, BadRequest> {
        self.scanner.end()?;
        Ok(self.walk.found)
    }
}

/// An object or a list that is open.
#[derive(Debug, Default)]
struct Frame {
    is_object: bool,
    /// The field that it is the value of, or that the list is the value of in which it stands.
    key: String,
    /// It stands below a field that is not looked into.
    is_unread: bool,
    has_type: bool,
    /// Each `type` it has is one of what was said before.
    is_history: bool,
    /// Each `type` it has is that of the provider's own skills.
    is_public: bool,
    has_id: bool,
    has_role: bool,
    has_result: bool,
    makes_image: bool,
    file: bool,
    skill: bool,
}

#[derive(Debug, Default)]
struct Walk {
    found: References,
    frames: Vec<Frame>,
    word: Word,
    /// The field whose value comes next, in lower case.
    key: String,
}

/// A value as far as it matters.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Value<'a> {
    /// What it says; nothing where it is too long.
    Text(Option<&'a str>),
    Object,
    Other,
}

impl Walk {
    fn name(&mut self, field: &'static str) {
        self.found.field.get_or_insert(field);
    }

    /// The field that the next value belongs to.
    fn field(&self) -> String {
        match self.frames.last() {
            Some(frame) if !frame.is_object => frame.key.clone(),
            _ => self.key.clone(),
        }
    }

    fn value(&mut self, value: Value<'_>) {
        let (key, depth) = (self.field(), self.frames.len());
        let Some(frame) = self.frames.last_mut().filter(|frame| !frame.is_unread) else { return };
        match key.as_str() {
            "type" if frame.is_object => return self.typed(value),
            "file_id" => frame.file = true,
            "skill_id" => frame.skill = true,
            "id" => frame.has_id = true,
            "role" => frame.has_role = true,
            "result" => frame.has_result = true,
            _ => {}
        }
        let holder = frame.key.clone();
        match (key.as_str(), value) {
            ("id", _) if holder == "prompt" => self.name("prompt.id"),
            ("id", _) if holder == "container" => self.name("container.id"),
            ("id", _) if holder == "audio" => self.name("audio.id"),
            ("container", Value::Text(_) | Value::Other) => self.name("container"),
            ("conversation", _) if depth == 1 => self.name("conversation"),
            ("file_ids", _) => self.name("file_ids"),
            ("vector_store_id" | "vector_store_ids", _) => self.name("vector_store_ids"),
            ("previous_response_id", value) if depth == 1 => self.follow(value),
            _ => {}
        }
    }

    /// A response that is gone on from; of two of them both cannot be meant.
    fn follow(&mut self, value: Value<'_>) {
        match value {
            Value::Text(Some(id)) if self.found.previous.is_none() => {
                self.found.previous = Some(id.to_owned());
            }
            _ => self.name("previous_response_id"),
        }
    }

    fn typed(&mut self, value: Value<'_>) {
        let Value::Text(said) = value else { return };
        let said = said.unwrap_or_default();
        if said == "item_reference" {
            self.name("item_reference");
        }
        let Some(frame) = self.frames.last_mut() else { return };
        let is_first = !frame.has_type;
        frame.is_history =
            (is_first || frame.is_history) && (said.ends_with("_output") || said.ends_with("_citation"));
        frame.is_public = (is_first || frame.is_public) && said == "anthropic";
        frame.makes_image |= said == "image_generation_call";
        frame.has_type = true;
    }

    /// What only the whole of an object tells.
    fn whole(&mut self, frame: &Frame, depth: usize) {
        if frame.is_unread || !frame.is_object {
            return;
        }
        if frame.file && !(frame.has_type && frame.is_history) {
            self.name("file_id");
        }
        if frame.skill && !(frame.has_type && frame.is_public) {
            self.name("skill_id");
        }
        // An item of the input that is no more than its id stands for one that the provider keeps.
        let is_bare = !frame.has_type && !frame.has_role || frame.makes_image && !frame.has_result;
        if depth == 3 && frame.key == "input" && frame.has_id && is_bare {
            self.name("item_reference");
        }
    }
}

impl Watch for Walk {
    fn open(&mut self, holder: Holder, _at: u64) -> Result<(), BadRequest> {
        let is_object = holder == Holder::Object;
        if is_object && !self.frames.is_empty() {
            self.value(Value::Object);
        }
        let key = self.field();
        let is_inside = self.frames.len() > 1 && self.frames.last().is_some_and(|frame| frame.is_object);
        let is_unread = self.frames.last().is_some_and(|frame| frame.is_unread)
            || UNREAD.contains(&key.as_str()) && (is_inside || key == "metadata");
        self.frames.push(Frame { is_object, key, is_unread, ..Frame::default() });
        Ok(())
    }

    fn close(&mut self, _at: u64) -> Result<(), BadRequest> {
        let depth = self.frames.len();
        if let Some(frame) = self.frames.pop() {
            self.whole(&frame, depth);
        }
        Ok(())
    }

    fn begin(&mut self, _token: Token, _at: u64) -> Result<(), BadRequest> {
        self.word.clear();
        Ok(())
    }

    fn piece(&mut self, bytes: &[u8]) -> Result<(), BadRequest> {
        self.word.push(bytes, LONGEST);
        Ok(())
    }

    fn end(&mut self, token: Token, _at: u64) -> Result<(), BadRequest> {
        let word = std::mem::take(&mut self.word);
        match token {
            Token::Key => self.key = folded(&word.said().unwrap_or_default()),
            Token::Text => self.value(Value::Text(word.said().as_deref())),
            Token::Plain if word.raw() == b"null" => {}
            Token::Plain => self.value(Value::Other),
        }
        self.word = word;
        Ok(())
    }
}

/// A name without regard to case, also of letters that are only another form of one of ours.
fn folded(name: &str) -> String {
    name.chars().flat_map(char::to_uppercase).flat_map(char::to_lowercase).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> References {
        let mut whole = ReferenceSkimmer::default();
        whole.push(text.as_bytes()).unwrap();
        let whole = whole.end().unwrap();
        let mut cut = ReferenceSkimmer::default();
        text.as_bytes().iter().for_each(|byte| cut.push(&[*byte]).unwrap());
        assert_eq!(cut.end().unwrap(), whole, "{text}");
        whole
    }

    #[test]
    fn every_id_of_what_a_provider_keeps_is_found() {
        for (field, text) in [
            ("conversation", r#"{"conversation":"conv_1"}"#),
            ("conversation", r#"{"conversation":{"id":"conv_1"}}"#),
            ("previous_response_id", r#"{"previous_response_id":7}"#),
            ("previous_response_id", r#"{"previous_response_id":"a","previous_response_id":"b"}"#),
            ("prompt.id", r#"{"prompt":{"id":"pmpt_1"}}"#),
            ("container", r#"{"container":"container_1"}"#),
            ("container.id", r#"{"container":{"id":"container_1"}}"#),
            ("container", r#"{"tools":[{"type":"code_interpreter","container":"cntr_1"}]}"#),
            ("file_ids", r#"{"tools":[{"container":{"type":"auto","file_ids":["file_1"]}}]}"#),
            ("skill_id", r#"{"container":{"skills":[{"type":"custom","skill_id":"skill_1"}]}}"#),
            ("vector_store_ids", r#"{"tools":[{"type":"file_search","vector_store_ids":["vs_1"]}]}"#),
            ("file_id", r#"{"input":[{"content":[{"type":"input_file","file_id":"file_1"}]}]}"#),
            (
                "file_id",
                r#"{"input":[{"type":"function_call_output","output":[{"type":"input_file","file_id":"f"}]}]}"#,
            ),
            ("file_id", r#"{"messages":[{"content":[{"type":"file","file":{"file_id":"file_1"}}]}]}"#),
            ("file_id", r#"{"messages":[{"content":[{"source":{"type":"file","file_id":"file_1"}}]}]}"#),
            ("file_id", r#"{"messages":[{"content":[{"file_id":"f","type":"container_upload"}]}]}"#),
            (
                "file_id",
                r#"{"messages":[{"content":[{"type":"input_file","file_id":"f","type":"x_citation"}]}]}"#,
            ),
            ("audio.id", r#"{"messages":[{"role":"assistant","audio":{"id":"audio_1"}}]}"#),
            ("item_reference", r#"{"input":[{"type":"item_reference","id":"msg_1"}]}"#),
            ("item_reference", r#"{"input":[{"id":"msg_1"}]}"#),
            ("item_reference", r#"{"input":[{"id":"msg_1","type":null}]}"#),
            ("item_reference", r#"{"input":[{"type":"image_generation_call","id":"ig_1"}]}"#),
            ("file_id", r#"{"messages":[{"content":[{"type":"file","file":{"F\u0069LE_ID":"f"}}]}]}"#),
            ("conversation", r#"{"Conversation":"conv_1"}"#),
            ("conversation", r#"{"conver\u017fation":"conv_1"}"#),
        ] {
            assert_eq!(found(text).field, Some(field), "{text}");
        }
    }

    #[test]
    fn an_earlier_response_is_named_however_the_field_is_written() {
        for field in ["previous_response_id", "Previous_Response_ID", r"previous\u005fresponse_id"] {
            let found = found(&format!(r#"{{"input":"窓","{field}":"resp_\u0031"}}"#));
            assert_eq!((found.previous.as_deref(), found.field), (Some("resp_1"), None), "{field}");
        }
    }

    #[test]
    fn what_names_nothing_kept_is_left_alone() {
        for text in [
            r#"{"previous_response_id":null,"conversation":null,"container":null,"prompt":"a text"}"#,
            r#"{"container":{"type":"auto","skills":[{"type":"anthropic","skill_id":"pptx"}]}}"#,
            r#"{"tools":[{"type":"file_search","vector_store_ids":[]},{"container":{"type":"auto"}}]}"#,
            r#"{"tools":[{"input_schema":{"properties":{"file_id":{"type":"string"},"container":{}}}}]}"#,
            r#"{"tools":[{"function":{"parameters":{"properties":{"conversation":{},"file_ids":{}}}}}]}"#,
            r#"{"messages":[{"content":[{"type":"tool_use","id":"t","input":{"file_id":"a","container":"b"}}]}]}"#,
            r#"{"messages":[{"tool_calls":[{"id":"c","function":{"name":"f","arguments":{"file_id":"x"}}}]}]}"#,
            r#"{"messages":[{"content":[{"type":"x_result","content":[{"type":"bash_code_execution_output","file_id":"f"}]}]}]}"#,
            r#"{"metadata":{"conversation":"c","file_id":"f"},"audio":{"voice":"alloy"}}"#,
            r#"{"input":[{"type":"message","id":"msg_1","role":"assistant","content":[{"annotations":[{"file_id":"f"}]}]}]}"#,
            r#"{"input":[{"role":"user","id":"msg_1","content":"the file_id is \"file_1\""}]}"#,
            r#"{"input":[{"type":"image_generation_call","id":"ig_1","result":"aGk="}]}"#,
        ] {
            assert_eq!(found(text), References::default(), "{text}");
        }
    }
}
