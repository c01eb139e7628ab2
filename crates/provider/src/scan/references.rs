//! Does a request name something that its provider keeps: an earlier response, a file, a container?
//!
//! Such an id works for every request that carries the same key of the provider, so where several users share one key each of them
//! could name what belongs to another. A field that is called an id is one of those, unless it is known to name nothing kept: the next
//! API of a provider has names that no list has. One pass over the bytes, of which nothing is held. Names of fields are compared without
//! regard to case, as some servers do. What a tool says or takes is the client's own and is not looked into.

use super::digest::ShortText;
use super::json::{JsonHolder, JsonScanner, JsonToken, JsonWatch};
use crate::dialect::BadRequest;
use crate::listed;

/// The longest name of a field, type or id that is looked at.
const LONGEST: usize = 1024;

/// Fields below which stands what a tool takes or says, a schema, or what a provider said about an earlier answer.
const UNREAD: &str = "arguments input parameters input_schema input_examples env client_metadata schema \
    json_schema properties definitions $defs metadata annotations citations results";

/// Ids that name nothing kept, without `_`: of what stands in the request itself, of the client's own, or of what is for everyone.
const HARMLESS: &str = "callid toolcallid tooluseid parenttooluseid toolid functioncallid approvalrequestid \
    userid enduserid sessionid requestid traceid spanid docid connectorid modelid";

/// Fields of an item of the input in which stands what it says or does, so that it is more than an id.
const PAYLOADS: &str = "content encrypted_content arguments action actions operation result results input code \
    queries query output outputs tools approve";

/// What a request names of what its provider keeps.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct References {
    /// `previous_response_id`.
    pub previous: Option<String>,
    /// The first field that names anything else.
    pub field: Option<String>,
}

/// Looks for references in a request as it passes.
#[derive(Debug, Default)]
pub struct ReferenceScanner {
    scanner: JsonScanner,
    walk: Walk,
}

impl ReferenceScanner {
    /// Takes bytes in, cut anywhere. An error names the byte at which this is not a JSON object.
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
    /// Each `type` it has is one of what was said before or of a call.
    is_call: bool,
    /// There is something in it.
    has_any: bool,
    has_id: bool,
    has_role: bool,
    has_content: bool,
    has_summary: bool,
    has_result: bool,
    has_payload: bool,
    is_message: bool,
    is_reasoning: bool,
    makes_image: bool,
    file: bool,
    container: bool,
    skill: bool,
}

impl Frame {
    /// One of its fields holds something.
    fn holds(&mut self, key: &str) {
        self.has_any = true;
        self.has_content |= key == "content";
        self.has_summary |= ["summary", "content", "encrypted_content"].contains(&key);
        self.has_result |= key == "result";
        self.has_payload |= listed(PAYLOADS, key);
    }

    /// It is no more than an id of an item, and so stands for one that the provider keeps. Of two types it must satisfy both.
    fn is_bare(&self) -> bool {
        let is_message = self.is_message || !self.has_type;
        !self.has_type && !self.has_role
            || is_message && !self.has_content
            || self.is_reasoning && !self.has_summary
            || self.makes_image && !self.has_result
            || !self.is_reasoning && !self.has_payload
    }
}

#[derive(Debug, Default)]
struct Walk {
    found: References,
    frames: Vec<Frame>,
    word: ShortText,
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
    fn name(&mut self, field: &str) {
        self.found.field.get_or_insert_with(|| field.to_owned());
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
        let is_empty = value == Value::Text(Some("")) && !["arguments", "input"].contains(&key.as_str());
        if let Some(frame) = self.frames.last_mut().filter(|_| !is_empty && value != Value::Object) {
            frame.holds(if frame.is_object { &key } else { "" });
        }
        let Some(frame) = self.frames.last_mut().filter(|frame| !frame.is_unread) else { return };
        match key.as_str() {
            "type" if frame.is_object => return self.typed(value),
            "file_id" => frame.file = true,
            "skill_id" => frame.skill = true,
            "container_id" => frame.container = true,
            "id" => frame.has_id = true,
            "role" => frame.has_role = true,
            _ => {}
        }
        let holder = frame.key.clone();
        match (key.as_str(), value) {
            ("id", _) if holder == "prompt" => self.name("prompt.id"),
            ("id", _) if holder == "container" => self.name("container.id"),
            ("id", _) if holder == "audio" => self.name("audio.id"),
            ("id", _) if holder == "voice" => self.name("voice.id"),
            ("cached_content" | "cachedcontent", _) => self.name("cached_content"),
            ("container", Value::Text(_) | Value::Other) => self.name("container"),
            ("conversation", _) if depth == 1 || holder == "extra_body" => self.name("conversation"),
            ("file_ids", _) => self.name("file_ids"),
            ("vector_store_id" | "vector_store_ids", _) => self.name("vector_store_ids"),
            ("previous_response_id", value) if depth == 1 => self.follow(value),
            ("file_id" | "skill_id" | "container_id", _) => {}
            (_, Value::Text(_)) if is_kept(&key) => self.name(&key),
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
        frame.is_call = (is_first || frame.is_call) && (frame.is_history || said.ends_with("_call"));
        frame.is_message |= said == "message";
        frame.is_reasoning |= said == "reasoning";
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
        if frame.container && !(frame.has_type && frame.is_call) {
            self.name("container_id");
        }
        if frame.skill && !(frame.has_type && frame.is_public) {
            self.name("skill_id");
        }
        if [2, 3].contains(&depth) && frame.key == "input" && frame.has_id && frame.is_bare() {
            self.name("item_reference");
        }
    }
}

impl JsonWatch for Walk {
    fn open(&mut self, holder: JsonHolder, _at: u64) -> Result<(), BadRequest> {
        let is_object = holder == JsonHolder::Object;
        if is_object && !self.frames.is_empty() {
            self.value(Value::Object);
        }
        let key = self.field();
        let is_inside = self.frames.len() > 1
            && self.frames.last().is_some_and(|frame| frame.is_object && frame.key != "extra_body");
        let is_unread = self.frames.last().is_some_and(|frame| frame.is_unread)
            || listed(UNREAD, &key) && (is_inside || ["metadata", "client_metadata"].contains(&key.as_str()));
        self.frames.push(Frame { is_object, key, is_unread, ..Frame::default() });
        Ok(())
    }

    fn close(&mut self, _at: u64) -> Result<(), BadRequest> {
        let depth = self.frames.len();
        if let Some(frame) = self.frames.pop() {
            self.whole(&frame, depth);
            if let Some(parent) = self.frames.last_mut().filter(|parent| frame.has_any || !parent.is_object) {
                parent.holds(if parent.is_object { &frame.key } else { "" });
            }
        }
        Ok(())
    }

    fn begin(&mut self, _token: JsonToken, _at: u64) -> Result<(), BadRequest> {
        self.word.clear();
        Ok(())
    }

    fn piece(&mut self, bytes: &[u8]) -> Result<(), BadRequest> {
        self.word.push(bytes, LONGEST);
        Ok(())
    }

    fn end(&mut self, token: JsonToken, _at: u64) -> Result<(), BadRequest> {
        let word = std::mem::take(&mut self.word);
        match token {
            JsonToken::Key => self.key = folded(&word.said().unwrap_or_default()),
            JsonToken::Text => self.value(Value::Text(word.said().as_deref())),
            JsonToken::Plain if word.raw() == b"null" => {}
            JsonToken::Plain => self.value(Value::Other),
        }
        self.word = word;
        Ok(())
    }
}

/// A name without regard to case, also of letters that are only another form of one of ours; `fileId` is `file_id`.
fn folded(name: &str) -> String {
    let end = ["Id", "Ids", "ID", "IDs"].into_iter().find(|end| name.ends_with(end));
    let (stem, end) = name.split_at(name.len() - end.map_or(0, str::len));
    let is_joined =
        !end.is_empty() && stem.ends_with(|last: char| last.is_lowercase() || last.is_ascii_digit());
    let fold = |text: &str| -> String {
        text.chars().flat_map(char::to_uppercase).flat_map(char::to_lowercase).collect()
    };
    format!("{}{}{}", fold(stem), if is_joined { "_" } else { "" }, fold(end))
}

/// True for the name of an id that may be one of something kept.
fn is_kept(key: &str) -> bool {
    let is_id = key.ends_with("_id") || key.ends_with("_ids");
    is_id && !listed(HARMLESS, &key.replace('_', ""))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> References {
        let mut whole = ReferenceScanner::default();
        whole.push(text.as_bytes()).unwrap();
        let whole = whole.end().unwrap();
        let mut cut = ReferenceScanner::default();
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
            assert_eq!(found(text).field.as_deref(), Some(field), "{text}");
        }
    }

    #[test]
    fn an_id_of_a_kind_that_is_not_known_is_taken_for_one_of_something_kept() {
        for (field, text) in [
            (
                "container_id",
                r#"{"tools":[{"type":"shell","environment":{"type":"container_reference","container_id":"c"}}]}"#,
            ),
            ("container_id", r#"{"container_id":"cntr_1"}"#),
            ("container_id", r#"{"tools":[{"containerId":"cntr_1"}]}"#),
            ("cached_content", r#"{"cached_content":"cachedContents/1"}"#),
            ("cached_content", r#"{"extra_body":{"google":{"cachedContent":"cachedContents/1"}}}"#),
            ("collection_ids", r#"{"tools":[{"type":"file_search","collection_ids":["c_1"]}]}"#),
            ("collection_id", r#"{"collectionId":"c_1"}"#),
            ("voice.id", r#"{"model":"m","input":"x","voice":{"id":"voice_1"}}"#),
            ("library_ids", r#"{"tools":[{"type":"document_library","library_ids":["l_1"]}]}"#),
            ("agent_id", r#"{"agent_id":"ag_1"}"#),
            ("vectorstore_ids", r#"{"vectorStoreIds":["vs_1"]}"#),
            ("file_id", r#"{"messages":[{"content":[{"type":"file","file":{"fileId":"f"}}]}]}"#),
            ("previous_response_id", r#"{"extra_body":{"previous_response_id":"resp_1"}}"#),
            ("conversation", r#"{"extra_body":{"conversation":"conv_1"}}"#),
            ("file_id", r#"{"extra_body":{"input":[{"type":"input_file","file_id":"f"}]}}"#),
        ] {
            assert_eq!(found(text).field.as_deref(), Some(field), "{text}");
        }
    }

    #[test]
    fn an_item_that_is_no_more_than_its_id_is_a_reference() {
        for item in [
            r#""type":"message","role":"assistant""#,
            r#""type":"message","role":"assistant","content":null"#,
            r#""type":"message","role":"assistant","content":[]"#,
            r#""role":"assistant","content":"""#,
            r#""type":"reasoning""#,
            r#""type":"reasoning","summary":[],"encrypted_content":null"#,
            r#""type":"reasoning","summary":[],"encrypted_content":"""#,
            r#""type":"function_call","call_id":"c","name":"f""#,
            r#""type":"web_search_call","status":"completed""#,
            r#""type":"code_interpreter_call","code":null,"container_id":"c""#,
            r#""type":"shell_call","action":{}"#,
            r#""type":"image_generation_call","action":"edit""#,
            r#""type":"compaction""#,
        ] {
            let text = format!(r#"{{"input":[{{{item},"id":"x_1"}}]}}"#);
            assert_eq!(found(&text).field.as_deref(), Some("item_reference"), "{text}");
        }
    }

    #[test]
    fn a_history_that_is_sent_whole_is_no_reference() {
        for item in [
            r#""type":"message","role":"assistant","content":[{"type":"output_text","text":"x","annotations":[{"container_id":"c"}]}]"#,
            r#""role":"assistant","content":"x""#,
            r#""type":"reasoning","summary":[],"encrypted_content":"gAAA""#,
            r#""type":"reasoning","summary":[{"type":"summary_text","text":"x"}]"#,
            r#""type":"reasoning","summary":[],"content":[{"type":"reasoning_text","text":"x"}]"#,
            r#""type":"function_call","call_id":"c","name":"f","arguments":"""#,
            r#""type":"function_call_output","call_id":"c","output":"x""#,
            r#""type":"custom_tool_call","call_id":"c","name":"f","input":"""#,
            r#""type":"web_search_call","action":{"type":"search","query":"x"}"#,
            r#""type":"file_search_call","queries":["x"],"results":[{"file_id":"f","vector_store_id":"v"}]"#,
            r#""type":"code_interpreter_call","code":"1","container_id":"c","outputs":[]"#,
            r#""type":"local_shell_call","call_id":"c","action":{"type":"exec","command":["ls"],"env":{"container":"podman","BUILD_ID":"b"}}"#,
            r#""type":"apply_patch_call","call_id":"c","operation":{"type":"delete_file","path":"a"}"#,
            r#""type":"mcp_list_tools","server_label":"s","tools":[{"name":"t","input_schema":{"properties":{"page_id":{}}}}]"#,
            r#""type":"mcp_approval_response","approval_request_id":"mcpr_1","approve":true"#,
            r#""type":"compaction","encrypted_content":"gAAA""#,
        ] {
            let text = format!(r#"{{"input":[{{"id":"x_1",{item}}}]}}"#);
            assert_eq!(found(&text), References::default(), "{text}");
        }
    }

    #[test]
    fn an_earlier_response_is_named_however_the_field_is_written() {
        for field in ["previous_response_id", "Previous_Response_ID", r"previous\u005fresponse_id"] {
            let found = found(&format!(r#"{{"input":"窓","{field}":"resp_\u0031"}}"#));
            assert_eq!(
                (found.previous.as_deref(), found.field.as_deref()),
                (Some("resp_1"), None),
                "{field}"
            );
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
            r#"{"tools":[{"name":"t","input_examples":[{"file_id":"report-1"}],"input_schema":{"type":"object"}}]}"#,
            r#"{"messages":[{"role":"tool","tool_call_id":"c","content":"x"}],"user_id":"u","session_id":"s","request_id":"r"}"#,
            r#"{"messages":[{"content":[{"type":"tool_result","tool_use_id":"t"},{"caller":{"tool_id":"srvtoolu_1"}}]}]}"#,
            r#"{"stop_token_ids":[1,2],"input_ids":[3],"tools":[{"type":"mcp","connector_id":"connector_gmail"}]}"#,
            r#"{"client_metadata":{"thread_id":"t"},"metadata":{"user_id":"u","promptId":"p"},"options":{"toolCallId":"c"}}"#,
            r#"{"voice":"alloy","cached_content":null,"id_slot":1,"valid":"x","paid":"y"}"#,
        ] {
            assert_eq!(found(text), References::default(), "{text}");
        }
    }
}
