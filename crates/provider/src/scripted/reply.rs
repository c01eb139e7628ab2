//! What is answered, cut to the length asked for, as events.

use super::script::{NewMessages, ScriptedReply, ToolCall};
use crate::dialect::{Dialect, ParsedRequest};
use crate::event::ModelEvent;
use komado_core::Meter;
use komado_core::journal::{Setup, Usage};
use komado_core::message::{CallKind, Message, MessagePart};
use komado_core::raw::{RawJson, RawObject};
use serde_json::value::RawValue;

/// Characters in a piece when the script does not say.
const PIECE: usize = 16;

/// An answer, ready to be said.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct CutReply {
    /// What is said.
    pub(super) reply: ScriptedReply,
    /// Why it ends.
    pub(super) finish: String,
    /// Its tokens.
    pub(super) tokens: u64,
}

impl CutReply {
    /// `reply`, of which at most `most` tokens are said. A call is made whole or not at all.
    pub(super) fn new(
        meter: Meter,
        mut reply: ScriptedReply,
        most: Option<u64>,
        finish: Option<String>,
    ) -> Self {
        let mut room = most.unwrap_or(u64::MAX);
        let mut tokens = 0;
        let mut is_cut = false;
        let mut take = |text: &mut String| {
            let kept = beginning(meter, text, room).len();
            is_cut |= kept < text.len();
            text.truncate(kept);
            let spent = meter.text(text);
            (room, tokens) = (room - spent.min(room), tokens + spent);
        };
        if let Some(reasoning) = &mut reply.reasoning {
            take(reasoning);
        }
        take(&mut reply.text);
        if is_cut {
            reply.calls.clear();
        }
        let calls = reply.calls.len();
        reply.calls.retain(|call| {
            let spent = meter.text(&call.name) + meter.text(&call.arguments);
            let fits = spent <= room;
            // What stands after a call that does not fit was never written.
            (room, tokens) = if fits { (room - spent, tokens + spent) } else { (0, tokens) };
            fits
        });
        let natural = match (is_cut || reply.calls.len() < calls, reply.calls.is_empty()) {
            (true, _) => "length",
            (false, false) => "tool_calls",
            (false, true) => "stop",
        };
        Self { reply, finish: finish.unwrap_or_else(|| natural.to_owned()), tokens }
    }

    /// The answer as events, in pieces of `piece` characters.
    pub(super) fn events(&self, begun: ModelEvent, usage: Usage, piece: Option<usize>) -> Vec<ModelEvent> {
        let size = piece.unwrap_or(PIECE).max(1);
        let mut events = vec![begun, ModelEvent::Usage(Usage { output_tokens: 0, ..usage })];
        if let Some(reasoning) = &self.reply.reasoning {
            events.extend(pieces(reasoning, size).map(|text| ModelEvent::Reasoning(text.into())));
            events.extend(self.reply.signature.clone().map(ModelEvent::Signature));
            events.push(ModelEvent::PartDone(None));
        }
        if !self.reply.text.is_empty() {
            events.extend(pieces(&self.reply.text, size).map(|text| ModelEvent::Text(text.into())));
            events.push(ModelEvent::PartDone(None));
        }
        for (index, call) in self.reply.calls.iter().enumerate() {
            let id = call.id.clone().unwrap_or_default();
            events.push(ModelEvent::Call { index, id, name: call.name.clone(), kind: CallKind::Function });
            events.extend(
                pieces(&call.arguments, size).map(|text| ModelEvent::Arguments { index, text: text.into() }),
            );
            events.push(ModelEvent::PartDone(None));
        }
        events.extend([ModelEvent::Usage(usage), ModelEvent::Finished(self.finish.clone())]);
        events
    }
}

/// How an answer introduces itself. The id is made from the request: the same request has the same answer.
pub(super) fn begun(dialect: Dialect, model: &str, digest: u64) -> ModelEvent {
    let id = match dialect {
        Dialect::Chat => Some(format!("chatcmpl-{digest:016x}")),
        Dialect::Responses => Some(format!("resp_{digest:016x}")),
        Dialect::Messages => Some(format!("msg_{digest:016x}")),
        Dialect::Ollama => None,
    };
    ModelEvent::Begun { id, model: Some(model.to_owned()) }
}

/// Gives each call an id that no other call of the conversation has.
pub(super) fn name_calls(calls: &mut [ToolCall], dialect: Dialect, digest: u64) {
    let mark = if dialect == Dialect::Messages { "toolu" } else { "call" };
    for (at, call) in calls.iter_mut().enumerate() {
        call.id.get_or_insert_with(|| format!("{mark}_{digest:016x}_{at}"));
    }
}

/// Fills in what a script leaves open.
pub(super) fn fill(reply: &mut ScriptedReply, news: &NewMessages<'_>, tokens: u64, n: u64) {
    let blanks = |last: &str| {
        [
            ("{{turn}}", news.turn.to_string()),
            ("{{tokens}}", tokens.to_string()),
            ("{{n}}", n.to_string()),
            ("{{last}}", last.to_owned()),
        ]
    };
    let plain = blanks(&news.last);
    filled(&mut reply.text, &plain);
    reply.reasoning.iter_mut().for_each(|text| filled(text, &plain));
    let quoted = serde_json::Value::from(news.last.as_str()).to_string();
    let quoted = blanks(&quoted[1..quoted.len() - 1]);
    reply.calls.iter_mut().for_each(|call| filled(&mut call.arguments, &quoted));
}

/// The last blank is filled last, so that braces in what was said stay as they are.
fn filled(text: &mut String, blanks: &[(&str, String)]) {
    for (blank, value) in blanks.iter().filter(|(blank, _)| text.contains(blank)).collect::<Vec<_>>() {
        *text = text.replace(blank, value);
    }
}

/// `text` in pieces of `size` characters.
fn pieces(text: &str, size: usize) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let end = rest.char_indices().nth(size).map_or(rest.len(), |(at, _)| at);
        let (piece, after) = rest.split_at(end);
        rest = after;
        Some(piece)
    })
}

// How many tokens a request has, and where a text ends that may have only so many.
//
// The recipe is the one OpenAI published for its chat models: for each message three tokens, its role and what it says;
// one more for a name; three for the answer's beginning. Tools count as their JSON, a picture as a fixed figure. It is
// the same for every dialect, so that a conversation has one size for all.

/// Around each message.
const MESSAGE: u64 = 3;
/// Before the answer.
const ANSWER: u64 = 3;
/// A picture, whatever its size.
const IMAGE: u64 = 765;

/// The tokens of a request, piece by piece.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct RequestTokens {
    /// System prompt and tools.
    pub(super) setup: u64,
    /// Each message.
    pub(super) messages: Vec<u64>,
}

impl RequestTokens {
    pub(super) fn of(meter: Meter, asked: &ParsedRequest) -> Self {
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
    setup.tools.as_ref().map(RawJson::get).filter(|list| !is_empty(list))
}

/// The system prompt: a text, or the blocks that Anthropic takes in its place.
pub(super) fn system(setup: &Setup) -> Option<String> {
    if setup.system.is_some() {
        return setup.system.clone();
    }
    let object = RawObject::parse(setup.params.as_ref()?.get()).ok()?;
    let blocks: Vec<&RawValue> = serde_json::from_str(object.get("system")?.get()).ok()?;
    let text = |block: &&RawValue| RawObject::parse(block.get()).ok()?.read::<String>("text").ok()?;
    let texts: Vec<String> = blocks.iter().filter_map(text).collect();
    Some(texts.join("\n")).filter(|text| !text.is_empty())
}

fn of_message(meter: Meter, message: &Message) -> u64 {
    let name = message.name.as_deref().map_or(0, |name| 1 + meter.text(name));
    let extra = message.extra.as_ref().map_or(0, |extra| meter.text(extra.json.get()));
    let parts: u64 = message.parts.iter().map(|part| of_part(meter, part)).sum();
    MESSAGE + meter.text(message.role.name()) + name + parts + extra
}

fn of_part(meter: Meter, part: &MessagePart) -> u64 {
    match part {
        MessagePart::Text { text, .. } => meter.text(text),
        MessagePart::Image { .. } => IMAGE,
        MessagePart::Call(call) => meter.text(&call.name) + meter.text(&call.arguments),
        MessagePart::Result(outcome) => outcome.content.iter().map(|part| of_part(meter, part)).sum(),
        // The seal is for the provider; the model reads the thought.
        MessagePart::Reasoning { text, .. } => meter.text(text),
        MessagePart::Opaque(opaque) => meter.text(opaque.json.get()),
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

    fn reply(text: &str, calls: &[&str]) -> ScriptedReply {
        let call =
            |arguments: &&str| ToolCall { id: None, name: "f".into(), arguments: (*arguments).to_owned() };
        ScriptedReply {
            text: text.into(),
            calls: calls.iter().map(call).collect(),
            ..ScriptedReply::default()
        }
    }

    #[test]
    fn an_answer_is_cut_by_true_tokens_and_says_so() {
        let meter = Meter::O200k;
        let whole = CutReply::new(meter, reply("one two three four", &[]), None, None);
        assert_eq!((whole.tokens, whole.finish.as_str()), (4, "stop"));
        let cut = CutReply::new(meter, reply("one two three four", &["{}"]), Some(2), None);
        assert_eq!((cut.reply.text.as_str(), cut.tokens, cut.finish.as_str()), ("one two", 2, "length"));
        assert!(cut.reply.calls.is_empty());
        let calls = CutReply::new(
            meter,
            reply("", &["{}", "{\"path\":\"a long path/to/a file\"}", "{}"]),
            Some(4),
            None,
        );
        assert_eq!((calls.reply.calls.len(), calls.finish.as_str()), (1, "length"));
        assert_eq!(CutReply::new(meter, reply("", &["{}"]), Some(9), None).finish, "tool_calls");
        assert_eq!(
            CutReply::new(meter, reply("a", &[]), None, Some("content_filter".into())).finish,
            "content_filter"
        );
    }

    #[test]
    fn blanks_are_filled_and_what_was_said_is_not_filled_again() {
        let news = NewMessages { last: "say \"{{n}}\"".into(), turn: 3, ..NewMessages::default() };
        let mut reply = reply("{{turn}} {{tokens}} {{n}} {{last}}", &[r#"{"q":"{{last}}"}"#]);
        fill(&mut reply, &news, 40, 7);
        assert_eq!(reply.text, "3 40 7 say \"{{n}}\"");
        assert_eq!(reply.calls[0].arguments, r#"{"q":"say \"{{n}}\""}"#);
    }

    #[test]
    fn pieces_are_cut_between_characters_and_lose_nothing() {
        for size in 1..6 {
            let all: Vec<&str> = pieces("小さな窓 ok", size).collect();
            assert_eq!(all.concat(), "小さな窓 ok");
            assert!(all.iter().rev().skip(1).all(|piece| piece.chars().count() == size));
        }
    }
}

#[cfg(test)]
mod count_tests {
    use super::*;
    use komado_core::message::Role;

    fn asked(messages: Vec<Message>, setup: Setup) -> ParsedRequest {
        ParsedRequest { model: "m".into(), setup, messages, max_tokens: None, stream: false }
    }

    #[test]
    fn a_request_is_counted_by_the_published_recipe() {
        let meter = Meter::O200k;
        let one = asked(vec![Message::text(Role::User, "hello")], Setup::default());
        assert_eq!(RequestTokens::of(meter, &one).total(), 3 + 1 + 1 + 3);
        let bare = Setup { tools: Some(RawJson::parse("[ ]").unwrap()), ..Setup::default() };
        assert_eq!(
            RequestTokens::of(meter, &asked(one.messages.clone(), bare)).total(),
            8,
            "no tools are not tokens"
        );
        let setup = Setup { system: Some("hello".into()), ..Setup::default() };
        let with = asked(vec![Message::text(Role::User, "窓を開ける")], setup);
        assert_eq!(
            RequestTokens::of(meter, &with).total(),
            (3 + 1 + 1) + (3 + 1 + meter.text("窓を開ける")) + 3
        );
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
