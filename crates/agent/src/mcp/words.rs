//! What a server answered, in words: a model reads text. What is no text is named, with its kind and size.

use crate::tools::{Answer, Body};
use rmcp::model::{CallToolResult, ContentBlock, ResourceContents};
use std::io::{self, Seek, Write};

/// Longer answers are kept in a file.
const LONG: usize = 64 << 10;
/// What stands for content of a kind that did not exist when this was written.
const UNKNOWN: &str = "[content of an unknown kind, not shown]";

/// The answer a result stands for.
pub(super) fn answer(result: CallToolResult) -> Answer {
    let is_error = result.is_error == Some(true);
    let text = text(result);
    if text.len() <= LONG {
        return Answer { body: Body::Text(text), is_error };
    }
    match laid_down(&text) {
        Ok(body) => Answer { body, is_error },
        Err(why) => {
            Answer::wrong(format!("the answer has {} bytes, and no file could hold it: {why}", text.len()))
        }
    }
}

fn text(result: CallToolResult) -> String {
    let parts: Vec<String> = result.content.into_iter().map(part).filter(|part| !part.is_empty()).collect();
    match (parts.is_empty(), result.structured_content) {
        (false, _) => parts.join("\n"),
        (true, Some(value)) => value.to_string(),
        (true, None) => "(the tool answered without a word)".to_owned(),
    }
}

fn part(block: ContentBlock) -> String {
    match block {
        ContentBlock::Text(text) => text.text,
        ContentBlock::Image(image) => data("image", &image.mime_type, &image.data),
        ContentBlock::Audio(audio) => data("audio", &audio.mime_type, &audio.data),
        ContentBlock::ResourceLink(link) => {
            let about = link.description.map(|about| format!(": {about}")).unwrap_or_default();
            format!("[resource {} ({}){about}]", link.uri, link.name)
        }
        ContentBlock::Resource(resource) => match resource.resource {
            ResourceContents::TextResourceContents { text, .. } => text,
            ResourceContents::BlobResourceContents { uri, mime_type, blob, .. } => {
                data(&format!("resource {uri}"), mime_type.as_deref().unwrap_or("of no kind"), &blob)
            }
            _ => UNKNOWN.to_owned(),
        },
        _ => UNKNOWN.to_owned(),
    }
}

/// Data in base64, named.
fn data(what: &str, kind: &str, base64: &str) -> String {
    let padding = base64.bytes().rev().take_while(|byte| *byte == b'=').count();
    let bytes = (base64.len() / 4 * 3).saturating_sub(padding);
    format!("[{what}: {kind}, {bytes} bytes, not shown]")
}

/// A text in a file that has no name, to be read from its beginning.
fn laid_down(text: &str) -> io::Result<Body> {
    let mut file = tempfile::tempfile()?;
    file.write_all(text.as_bytes())?;
    file.rewind()?;
    Ok(Body::File(file))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn read(result: Value) -> (String, bool) {
        let answer = answer(serde_json::from_value(result).unwrap());
        (io::read_to_string(answer.body.reader()).unwrap(), answer.is_error)
    }

    #[test]
    fn every_kind_of_content_becomes_words_in_its_order() {
        let content = json!([
            {"type": "text", "text": "こんにちは"},
            {"type": "image", "mimeType": "image/png", "data": "aGVsbG8="},
            {"type": "audio", "mimeType": "audio/wav", "data": "aGVsbG8h"},
            {"type": "resource", "resource": {"uri": "file:///a", "text": "inside"}},
            {"type": "resource", "resource": {"uri": "file:///b", "mimeType": "application/pdf", "blob": "aGVsbA=="}},
            {"type": "resource_link", "uri": "file:///c", "name": "c"},
        ]);
        let (text, is_error) = read(json!({"content": content, "structuredContent": {"not": "twice"}}));
        let wanted = "こんにちは\n[image: image/png, 5 bytes, not shown]\n[audio: audio/wav, 6 bytes, not shown]\ninside\n\
                      [resource file:///b: application/pdf, 4 bytes, not shown]\n[resource file:///c (c)]";
        assert_eq!((text.as_str(), is_error), (wanted, false));
    }

    #[test]
    fn structured_content_speaks_where_there_is_no_text() {
        let (text, is_error) = read(json!({"content": [], "structuredContent": {"a": [1]}, "isError": true}));
        assert_eq!((text.as_str(), is_error), (r#"{"a":[1]}"#, true));
        assert_eq!(read(json!({"content": []})).0, "(the tool answered without a word)");
    }

    #[test]
    fn a_long_answer_is_in_a_file_and_whole() {
        let long = "長い".repeat(LONG);
        let result = json!({"content": [{"type": "text", "text": long}], "isError": true});
        let answer = answer(serde_json::from_value(result.clone()).unwrap());
        assert!(matches!(answer.body, Body::File(_)));
        assert_eq!(read(result), (long, true));
    }
}
