//! What is answered, cut to the length asked for, as events.

use super::count::beginning;
use super::script::{News, Reply, ToolCall};
use crate::dialect::Dialect;
use crate::event::Event;
use komado_core::Meter;
use komado_core::journal::Usage;
use komado_core::message::CallKind;

/// Characters in a piece when the script does not say.
const PIECE: usize = 16;

/// An answer, ready to be said.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Speech {
    /// What is said.
    pub(super) reply: Reply,
    /// Why it ends.
    pub(super) finish: String,
    /// Its tokens.
    pub(super) tokens: u64,
}

impl Speech {
    /// `reply`, of which at most `most` tokens are said. A call is made whole or not at all.
    pub(super) fn new(meter: Meter, mut reply: Reply, most: Option<u64>, finish: Option<String>) -> Self {
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
    pub(super) fn events(&self, begun: Event, usage: Usage, piece: Option<usize>) -> Vec<Event> {
        let size = piece.unwrap_or(PIECE).max(1);
        let mut events = vec![begun, Event::Usage(Usage { output_tokens: 0, ..usage })];
        if let Some(reasoning) = &self.reply.reasoning {
            events.extend(pieces(reasoning, size).map(|text| Event::Reasoning(text.into())));
            events.extend(self.reply.signature.clone().map(Event::Signature));
            events.push(Event::PartDone(None));
        }
        if !self.reply.text.is_empty() {
            events.extend(pieces(&self.reply.text, size).map(|text| Event::Text(text.into())));
            events.push(Event::PartDone(None));
        }
        for (index, call) in self.reply.calls.iter().enumerate() {
            let id = call.id.clone().unwrap_or_default();
            events.push(Event::Call { index, id, name: call.name.clone(), kind: CallKind::Function });
            events.extend(
                pieces(&call.arguments, size).map(|text| Event::Arguments { index, text: text.into() }),
            );
            events.push(Event::PartDone(None));
        }
        events.extend([Event::Usage(usage), Event::Finished(self.finish.clone())]);
        events
    }
}

/// How an answer introduces itself. The id is made from the request: the same request has the same answer.
pub(super) fn begun(dialect: Dialect, model: &str, digest: u64) -> Event {
    let id = match dialect {
        Dialect::Chat => Some(format!("chatcmpl-{digest:016x}")),
        Dialect::Responses => Some(format!("resp_{digest:016x}")),
        Dialect::Messages => Some(format!("msg_{digest:016x}")),
        Dialect::Ollama => None,
    };
    Event::Begun { id, model: Some(model.to_owned()) }
}

/// Gives each call an id that no other call of the conversation has.
pub(super) fn name_calls(calls: &mut [ToolCall], dialect: Dialect, digest: u64) {
    let mark = if dialect == Dialect::Messages { "toolu" } else { "call" };
    for (at, call) in calls.iter_mut().enumerate() {
        call.id.get_or_insert_with(|| format!("{mark}_{digest:016x}_{at}"));
    }
}

/// Fills in what a script leaves open.
pub(super) fn fill(reply: &mut Reply, news: &News<'_>, tokens: u64, n: u64) {
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

/// The last blank is filled last, so that braces in what somebody said stay as they are.
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

#[cfg(test)]
mod tests {
    use super::*;

    fn reply(text: &str, calls: &[&str]) -> Reply {
        let call =
            |arguments: &&str| ToolCall { id: None, name: "f".into(), arguments: (*arguments).to_owned() };
        Reply { text: text.into(), calls: calls.iter().map(call).collect(), ..Reply::default() }
    }

    #[test]
    fn an_answer_is_cut_by_true_tokens_and_says_so() {
        let meter = Meter::O200k;
        let whole = Speech::new(meter, reply("one two three four", &[]), None, None);
        assert_eq!((whole.tokens, whole.finish.as_str()), (4, "stop"));
        let cut = Speech::new(meter, reply("one two three four", &["{}"]), Some(2), None);
        assert_eq!((cut.reply.text.as_str(), cut.tokens, cut.finish.as_str()), ("one two", 2, "length"));
        assert!(cut.reply.calls.is_empty());
        let calls = Speech::new(
            meter,
            reply("", &["{}", "{\"path\":\"a long path/to/a file\"}", "{}"]),
            Some(4),
            None,
        );
        assert_eq!((calls.reply.calls.len(), calls.finish.as_str()), (1, "length"));
        assert_eq!(Speech::new(meter, reply("", &["{}"]), Some(9), None).finish, "tool_calls");
        assert_eq!(
            Speech::new(meter, reply("a", &[]), None, Some("content_filter".into())).finish,
            "content_filter"
        );
    }

    #[test]
    fn blanks_are_filled_and_what_was_said_is_not_filled_again() {
        let news = News { last: "say \"{{n}}\"".into(), turn: 3, ..News::default() };
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
