//! Elements of a transcript on their own: the part of a request that is new, or the part that is shown otherwise.
//!
//! Read in the light of what came before, they say what they say in the whole; written, they stand in a request as its
//! writer would have put them. It refuses to guess what came before: who asks says which calls still wait.

use super::{Dialect, WriteRequest, chat, messages, ollama, responses};
use crate::ask::BadRequest;
use komado_core::journal::Group;
use komado_core::message::{Call, Message};
use komado_core::openai::Blobs;
use komado_core::raw;
use std::io;
use std::ops::Range;

/// Elements, read.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Tail {
    /// What they say. A system prompt among them is a message here.
    pub messages: Vec<Message>,
    /// How many elements became how many messages, in order, all of both. Groups that are alike stand together.
    pub groups: Vec<Group>,
}

/// What a dialect read: messages, and which of them each element became, or became a part of.
#[derive(Debug, Default)]
pub(super) struct Read {
    pub(super) messages: Vec<Message>,
    pub(super) became: Vec<Range<usize>>,
}

impl Read {
    /// Messages each of which is one element.
    pub(super) fn one_by_one(messages: Vec<Message>) -> Self {
        Self { became: (0..messages.len()).map(|at| at..at + 1).collect(), messages }
    }
}

pub(super) fn read(dialect: Dialect, elements: &[&str], open: &[Call]) -> Result<Tail, BadRequest> {
    for (i, element) in elements.iter().enumerate() {
        raw::check(element).map_err(|why| BadRequest::new(format!("element {i}"), why))?;
    }
    let read = match dialect {
        Dialect::Chat => chat::read_elements(elements, open),
        Dialect::Responses => responses::read_elements(elements, open),
        Dialect::Messages => messages::read_elements(elements),
        Dialect::Ollama => ollama::read_elements(elements, open),
    }?;
    Ok(Tail { groups: groups(&read.became), messages: read.messages })
}

/// Elements as the client has them: no id is made up for what it does not name.
pub(super) fn read_told(dialect: Dialect, elements: &[&str], open: &[Call]) -> Result<Tail, BadRequest> {
    let mut tail = read(dialect, elements, open)?;
    let told = tail.messages.iter_mut().zip(elements);
    match dialect {
        Dialect::Chat => told.for_each(|(message, text)| chat::as_told(message, text)),
        Dialect::Ollama => told.for_each(|(message, text)| ollama::as_told(message, text)),
        Dialect::Responses | Dialect::Messages => {}
    }
    Ok(tail)
}

/// The smallest groups that hold every message of their elements and every element of their messages.
fn groups(became: &[Range<usize>]) -> Vec<Group> {
    // The first message that any element from here on became.
    let mut ahead = vec![usize::MAX; became.len() + 1];
    for (i, messages) in became.iter().enumerate().rev() {
        let own = if messages.is_empty() { usize::MAX } else { messages.start };
        ahead[i] = own.min(ahead[i + 1]);
    }
    let mut groups: Vec<Group> = Vec::new();
    let (mut from, mut told, mut upto) = (0, 0, 0);
    for (i, messages) in became.iter().enumerate() {
        if !messages.is_empty() {
            upto = upto.max(messages.end);
        }
        if upto > ahead[i + 1] {
            continue;
        }
        let (elements, entries) = (count(i + 1 - from), count(upto - told));
        match groups.last_mut() {
            Some(last) if (last.elements, last.entries) == (elements, entries) => last.times += 1,
            _ => groups.push(Group { elements, entries, times: 1 }),
        }
        (from, told) = (i + 1, upto);
    }
    groups
}

fn count(many: usize) -> u32 {
    u32::try_from(many).unwrap_or(u32::MAX)
}

pub(super) fn write(dialect: Dialect, messages: &[Message], blobs: &mut dyn Blobs) -> io::Result<Vec<u8>> {
    match dialect {
        Dialect::Chat => write_with(&mut chat::Writer::of_elements(), messages, blobs),
        Dialect::Responses => write_with(&mut responses::Writer::of_elements(), messages, blobs),
        Dialect::Ollama => write_with(&mut ollama::Writer::of_elements(), messages, blobs),
        Dialect::Messages => {
            let mut writer = messages::Writer::of_elements();
            let mut out = write_with(&mut writer, messages, blobs)?;
            writer.close(&mut out)?;
            Ok(out)
        }
    }
}

fn write_with(
    writer: &mut impl WriteRequest,
    messages: &[Message],
    blobs: &mut dyn Blobs,
) -> io::Result<Vec<u8>> {
    let mut out = Vec::new();
    messages.iter().try_for_each(|message| writer.message(message, blobs, &mut out))?;
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    struct NoBlobs;

    impl Blobs for NoBlobs {
        fn base64(&mut self, _: &str, _: &mut dyn io::Write) -> io::Result<()> {
            Err(io::ErrorKind::NotFound.into())
        }
    }

    #[test]
    fn what_names_no_call_names_none_when_it_is_written_again() {
        let cases = [
            (Dialect::Ollama, r#"{"role":"tool","content":"ok"}"#),
            (Dialect::Ollama, r#"{"role":"tool","content":"ok","tool_name":"read"}"#),
            (Dialect::Ollama, r#"{"role":"tool","content":"ok","tool_name":"read","tool_call_id":"c7"}"#),
            (
                Dialect::Ollama,
                r#"{"role":"assistant","content":"","tool_calls":[{"function":{"name":"read","arguments":{}}},{"id":"c8","function":{"name":"read","arguments":{}}}]}"#,
            ),
            (Dialect::Chat, r#"{"role":"function","content":"ok","name":"read"}"#),
            (
                Dialect::Chat,
                r#"{"role":"assistant","content":null,"function_call":{"name":"read","arguments":"{}"}}"#,
            ),
            (Dialect::Chat, r#"{"role":"tool","tool_call_id":"c7","content":"ok"}"#),
        ];
        for (dialect, text) in cases {
            let id = if text.contains("c7") { "c7" } else { "call_0" };
            let (id, name, arguments) = (id.into(), "read".into(), String::new());
            let open = [Call { id, name, arguments, kind: Default::default(), extra: None }];
            let told = read_told(dialect, &[text], &open).unwrap().messages;
            let written = write(dialect, &told, &mut NoBlobs).unwrap();
            assert_eq!(String::from_utf8(written).unwrap(), text);
        }
    }

    #[test]
    fn groups_are_the_smallest_that_hold_all_of_theirs() {
        let shown = |became: &[Range<usize>]| -> Vec<[u32; 3]> {
            groups(became).into_iter().map(<[u32; 3]>::from).collect()
        };
        assert_eq!(shown(&[0..1, 1..2, 2..3]), [[1, 1, 3]]);
        assert_eq!(shown(&[0..1, 0..1, 1..2, 2..3]), [[2, 1, 1], [1, 1, 2]]);
        assert_eq!(shown(&[0..3, 3..4]), [[1, 3, 1], [1, 1, 1]]);
        // The model goes on after the first of two outputs: all five hang together.
        assert_eq!(shown(&[0..1, 0..1, 1..2, 0..1, 2..3, 3..4]), [[4, 2, 1], [1, 1, 2]]);
        assert_eq!(shown(&[1..2, 0..1, 2..3]), [[2, 2, 1], [1, 1, 1]]);
        assert_eq!(shown(&[]), <[[u32; 3]; 0]>::default());
    }
}
