//! How many tokens a request has, and where a text ends that may have only so many.
//!
//! The recipe is the one OpenAI published for its chat models: for each message three tokens, its role and what it says;
//! one more for a name; three for the answer's beginning. Tools count as their JSON, a picture as a fixed figure. It is
//! the same for every dialect, so that a conversation has one size whoever is asked.

use crate::ask::Asked;
use komado_core::Meter;
use komado_core::journal::Setup;
use komado_core::message::{Message, Part};
use komado_core::raw::{Object, Raw};
use serde_json::value::RawValue;

/// Around each message.
const MESSAGE: u64 = 3;
/// Before the answer.
const ANSWER: u64 = 3;
/// A picture, whatever its size.
const IMAGE: u64 = 765;

/// The tokens of a request, piece by piece.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Count {
    /// System prompt and tools.
    pub(super) setup: u64,
    /// Each message.
    pub(super) messages: Vec<u64>,
}

impl Count {
    pub(super) fn of(meter: Meter, asked: &Asked) -> Self {
        Self {
            setup: setup(meter, &asked.setup),
            messages: asked.messages.iter().map(|message| of_message(meter, message)).collect(),
        }
    }

    /// All of it.
    pub(super) fn total(&self) -> u64 {
        self.setup + self.messages.iter().sum::<u64>() + ANSWER
    }
}

fn setup(meter: Meter, setup: &Setup) -> u64 {
    let system = system(setup).map_or(0, |system| MESSAGE + meter.text("system") + meter.text(&system));
    system + tools(setup).map_or(0, |tools| meter.text(tools))
}

/// The tools, when there are any: an empty list is what some clients send for none.
pub(super) fn tools(setup: &Setup) -> Option<&str> {
    let is_empty = |list: &str| list.bytes().all(|byte| b"[] \t".contains(&byte));
    setup.tools.as_ref().map(Raw::get).filter(|list| !is_empty(list))
}

/// The system prompt: a text, or the blocks that Anthropic takes in its place.
pub(super) fn system(setup: &Setup) -> Option<String> {
    if setup.system.is_some() {
        return setup.system.clone();
    }
    let object = Object::parse(setup.params.as_ref()?.get()).ok()?;
    let blocks: Vec<&RawValue> = serde_json::from_str(object.get("system")?.get()).ok()?;
    let text = |block: &&RawValue| Object::parse(block.get()).ok()?.read::<String>("text").ok()?;
    let texts: Vec<String> = blocks.iter().filter_map(text).collect();
    Some(texts.join("\n")).filter(|text| !text.is_empty())
}

fn of_message(meter: Meter, message: &Message) -> u64 {
    let name = message.name.as_deref().map_or(0, |name| 1 + meter.text(name));
    let extra = message.extra.as_ref().map_or(0, |extra| meter.text(extra.json.get()));
    let parts: u64 = message.parts.iter().map(|part| of_part(meter, part)).sum();
    MESSAGE + meter.text(message.role.name()) + name + parts + extra
}

fn of_part(meter: Meter, part: &Part) -> u64 {
    match part {
        Part::Text { text, .. } => meter.text(text),
        Part::Image { .. } => IMAGE,
        Part::Call(call) => meter.text(&call.name) + meter.text(&call.arguments),
        Part::Result(outcome) => outcome.content.iter().map(|part| of_part(meter, part)).sum(),
        // The seal is for the provider; the model reads the thought.
        Part::Reasoning { text, .. } => meter.text(text),
        Part::Opaque(opaque) => meter.text(opaque.json.get()),
    }
}

/// The longest beginning of `text` that has at most `most` tokens.
pub(super) fn beginning(meter: Meter, text: &str, most: u64) -> &str {
    if meter.text(text) <= most {
        return text;
    }
    let ends: Vec<usize> = text.char_indices().map(|(at, _)| at).collect();
    let mut at = ends.partition_point(|end| meter.text(&text[..*end]) <= most).saturating_sub(1);
    // A beginning may take more tokens than a longer one: the last character may be half of a token.
    while at > 0 && meter.text(&text[..ends[at]]) > most {
        at -= 1;
    }
    ends.get(at).map_or("", |end| &text[..*end])
}

#[cfg(test)]
mod tests {
    use super::*;
    use komado_core::message::Role;

    fn asked(messages: Vec<Message>, setup: Setup) -> Asked {
        Asked { model: "m".into(), setup, messages, max_tokens: None, stream: false }
    }

    #[test]
    fn a_request_is_counted_by_the_published_recipe() {
        let meter = Meter::O200k;
        let one = asked(vec![Message::text(Role::User, "hello")], Setup::default());
        assert_eq!(Count::of(meter, &one).total(), 3 + 1 + 1 + 3);
        let bare = Setup { tools: Some(Raw::parse("[ ]").unwrap()), ..Setup::default() };
        assert_eq!(Count::of(meter, &asked(one.messages.clone(), bare)).total(), 8, "no tools are no tokens");
        let setup = Setup { system: Some("hello".into()), ..Setup::default() };
        let with = asked(vec![Message::text(Role::User, "窓を開ける")], setup);
        assert_eq!(Count::of(meter, &with).total(), (3 + 1 + 1) + (3 + 1 + meter.text("窓を開ける")) + 3);
    }

    #[test]
    fn a_text_is_cut_at_so_many_tokens_and_never_inside_a_character() {
        let text = "The window is small 小さな窓が開いている and the text goes on 🪟🪟 for a while.";
        let all = Meter::O200k.text(text);
        for most in 0..=all {
            let cut = beginning(Meter::O200k, text, most);
            assert!(text.starts_with(cut) && Meter::O200k.text(cut) <= most, "{most}: {cut:?}");
            assert!(Meter::O200k.text(cut) + 3 > most, "{most}: {cut:?} is too short");
        }
        assert_eq!(beginning(Meter::O200k, text, all), text);
    }
}
