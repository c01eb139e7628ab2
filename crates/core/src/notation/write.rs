//! From entries to lines.

use super::line::{NotationLine, TokenPlace, grouped, is_bare, is_wild};
use crate::budget::BudgetRule;
use crate::journal::{
    Anchor, Cause, Chronicle, Edit, ElementGroup, Entry, Record, Reply, Sent, Setup, Share, Slice,
    TranscriptMark, Usage,
};
use crate::message::{Call, CallKind, ImageSource, Message, MessagePart, Opaque, OutputRef, ToolOutcome};
use crate::{Seq, Span};
use serde_json::value::RawValue;

/// Words that may follow a tool's name, so that a tool with such a name needs quotes.
const AFTER_TOOL: [&str; 4] = ["error", "interrupted", "image", "opaque"];
/// Words that may follow a message's parts.
const AFTER_PARTS: [&str; 2] = ["extra", "reply"];

/// How replies usually end; a person need not be told.
const USUAL: [&str; 6] = ["stop", "tool_calls", "end_turn", "tool_use", "completed", "stop_sequence"];

/// Everything an entry holds.
pub(super) fn record(record: &Record) -> NotationLine<'_> {
    everything(record).without(TokenPlace::Plain)
}

/// What a person looks for in an entry: without digests, ids that only programs compare, and the numbers of requests and edits.
pub(super) fn plain(record: &Record) -> NotationLine<'_> {
    everything(record).without(TokenPlace::Detail)
}

fn everything(record: &Record) -> NotationLine<'_> {
    match &record.entry {
        Entry::Message(_, reply) => entry(record, reply.as_ref(), None),
        Entry::Anchor(anchor) => entry(record, None, anchor.brief.as_deref()),
        _ => entry(record, None, None),
    }
}

/// An entry as the model sees it: without what the provider reported about it, and without what only others see.
pub(super) fn said(record: &Record) -> NotationLine<'_> {
    entry(record, None, None).without(TokenPlace::Plain)
}

fn entry<'a>(record: &'a Record, reply: Option<&'a Reply>, brief: Option<&'a str>) -> NotationLine<'a> {
    let mut line = NotationLine::default();
    line.word(record.seq.to_string());
    match &record.entry {
        Entry::Setup(setup) => line.setup(setup),
        Entry::Message(message, _) => line.message(message, None).maybe(reply, |line, reply| {
            line.placed(TokenPlace::Detail, |line| line.word("reply")).reply(reply)
        }),
        Entry::Edit(edit) => {
            line.edit(edit, record.tokens);
            return line;
        }
        Entry::Revert { target } => line.word("revert").word(target.to_string()),
        Entry::Rewind { to } => line.word("rewind").word(to.to_string()),
        Entry::Pin { span } => line.word("pin").word(span.to_string()),
        Entry::Unpin { span } => line.word("unpin").word(span.to_string()),
        Entry::Anchor(anchor) => {
            line.anchor(anchor, None).maybe(brief, |line, brief| line.quoted_attr("brief", brief))
        }
        Entry::Sent(sent) => line.sent(sent),
        Entry::Lost(reply) => line.word("lost").reply(reply),
        Entry::Close(close) => {
            line.word("close").word(close.ending.name()).maybe_text(close.result.as_deref())
        }
        Entry::Share(share) => {
            line.share(share, record.tokens);
            return line;
        }
        Entry::Chronicle(chronicle) => line.chronicle(chronicle),
        Entry::Tell { to, text } => line.word("tell").name(to.as_str()).text(text),
        Entry::Heard { from, upto } => line.word("heard").word(format!("{from}@{upto}")),
        Entry::Note { about, value } => line.word("note").name(about).json(value.get()),
    };
    line.tokens(record.tokens);
    line
}

/// What an edit shows, and in place of what.
pub(super) fn shown(record: &Record) -> NotationLine<'_> {
    let mut line = NotationLine::default();
    if let Entry::Edit(edit) = &record.entry {
        line.word(spans(&edit.hide)).word(format!("{}@{}", edit.kind.name(), record.seq)).shows(edit);
    }
    line
}

/// What stands before a slice, without what it keeps.
pub(super) fn heading(slice: &Slice) -> NotationLine<'_> {
    let mut line = NotationLine::default();
    line.whose(slice).text(&slice.head).tokens(slice.tokens);
    line
}

/// A message with other content; `mark` says by which entry.
pub(super) fn replaced(seq: Seq, message: &Message, mark: String, tokens: u32) -> NotationLine<'_> {
    let mut line = NotationLine::default();
    line.word(seq.to_string()).message(message, Some(mark)).tokens(tokens);
    line
}

/// An anchor that stands at `seq` and says what entry `by` made of it.
pub(super) fn moved_anchor(seq: Seq, now: &Anchor, by: Seq, tokens: u32) -> NotationLine<'_> {
    let mut line = NotationLine::default();
    line.word(seq.to_string()).anchor(now, Some(by)).tokens(tokens);
    line
}

fn spans(spans: &[Span]) -> String {
    spans.iter().map(ToString::to_string).collect::<Vec<_>>().join(",")
}

impl<'a> NotationLine<'a> {
    fn setup(&mut self, setup: &'a Setup) -> &mut Self {
        self.word("setup").maybe_text(setup.system.as_deref());
        self.maybe(setup.tools.as_ref(), |line, tools| line.word("tools").list(tools.get()));
        self.maybe(setup.params.as_ref(), |line, params| line.word("params").json(params.get()));
        self.attr("dialect", setup.dialect.as_deref())
    }

    fn message(&mut self, message: &'a Message, mark: Option<String>) -> &mut Self {
        self.word(message.role.name());
        if let [MessagePart::Result(outcome)] = &message.parts[..] {
            self.outcome(message, outcome, mark);
        } else {
            self.attr("name", message.name.as_deref()).maybe_word(mark);
            message.parts.iter().fold(&mut *self, |line, part| line.part(part));
        }
        self.maybe(message.extra.as_ref(), |line, extra| line.opaque("extra", extra))
    }

    /// What only one dialect knows, under a word of ours.
    fn opaque(&mut self, word: &'static str, opaque: &'a Opaque) -> &mut Self {
        self.word(word).name(&opaque.dialect).json(opaque.json.get())
    }

    fn outcome(&mut self, message: &'a Message, outcome: &'a ToolOutcome, mark: Option<String>) -> &mut Self {
        // The plain form names the tool, where it is known.
        match outcome.name {
            Some(_) => self.placed(TokenPlace::Detail, |line| line.name(&outcome.call_id)),
            None => self.name(&outcome.call_id),
        };
        match outcome.name.as_deref() {
            Some(tool) if is_bare(tool) && !AFTER_TOOL.contains(&tool) && !AFTER_PARTS.contains(&tool) => {
                self.word(tool);
            }
            Some(tool) => {
                self.quoted_attr("tool", tool);
            }
            None => {}
        }
        self.attr("name", message.name.as_deref());
        for (said, word) in [(outcome.is_error, "error"), (outcome.interrupted, "interrupted")] {
            if said {
                self.word(word);
            }
        }
        self.maybe_word(outcome.replaces.map(|seq| format!("replaces={seq}")));
        self.maybe_word(mark);
        outcome.content.iter().fold(&mut *self, |line, part| line.part(part));
        self.maybe(outcome.output_ref.as_ref(), Self::output_ref);
        self.maybe_word(outcome.duration_ms.map(|ms| format!("took={ms}ms")))
    }

    fn output_ref(&mut self, output: &'a OutputRef) -> &mut Self {
        if is_bare(&output.id) && !output.id.contains('/') {
            self.word(format!("ref={}", output.id));
        } else {
            self.quoted_attr("ref", &output.id);
        }
        self.maybe(output.byte_size, |line, bytes| line.tail(&format!("/{bytes}b")));
        self.maybe(output.line_count, |line, lines| line.tail(&format!("/{lines}l")))
    }

    fn part(&mut self, part: &'a MessagePart) -> &mut Self {
        match part {
            MessagePart::Text { text, extra } => {
                self.text(text).maybe(extra.as_ref(), |line, extra| line.opaque("marked", extra))
            }
            MessagePart::Image { source, detail } => {
                self.word("image");
                match source {
                    ImageSource::Url { url } => self.text(url),
                    ImageSource::Blob { blob, media_type, byte_size, pixels } => self
                        .attr("blob", Some(blob))
                        .attr("type", Some(media_type))
                        .word(format!("bytes={byte_size}"))
                        .maybe(pixels.as_ref(), |line, size| {
                            line.word(format!("pixels={}x{}", size.width, size.height))
                        }),
                };
                self.attr("detail", detail.as_deref())
            }
            MessagePart::Call(call) => self.call(call),
            // Only a tool's message holds a result, and alone.
            MessagePart::Result(outcome) => self.word("result").name(&outcome.call_id),
            MessagePart::Reasoning { text, signature } => {
                self.word("reasoning").text(text);
                self.placed(TokenPlace::Detail, |line| line.attr("signature", signature.as_deref()))
            }
            MessagePart::Opaque(opaque) => self.opaque("opaque", opaque),
        }
    }

    /// Arguments that are a JSON object stand as they are; anything else is a text.
    fn call(&mut self, call: &'a Call) -> &mut Self {
        self.word(if call.kind == CallKind::Custom { "custom" } else { "call" });
        self.placed(TokenPlace::Detail, |line| line.name(&call.id)).name(&call.name);
        if is_object(&call.arguments) {
            self.json(&call.arguments);
        } else {
            self.text(&call.arguments);
        }
        self.maybe(call.extra.as_ref(), |line, extra| line.word("plus").json(extra.get()))
    }

    fn edit(&mut self, edit: &'a Edit, tokens: u32) -> &mut Self {
        self.placed(TokenPlace::Plain, |line| line.word("edit")).word(edit.kind.name());
        if !edit.hide.is_empty() {
            self.word(spans(&edit.hide));
        }
        self.shows(edit);
        for (i, swap) in edit.replace.iter().enumerate() {
            if i > 0 {
                self.tail(",");
            }
            self.word(swap.seq.to_string()).text(&swap.text).tokens(swap.tokens);
        }
        if edit.cause != Cause::default() {
            self.cause(&edit.cause);
        }
        if tokens == edit_tokens(edit) {
            return self;
        }
        self.placed(TokenPlace::Detail, |line| line.word("total").word(format!("~{tokens}")))
    }

    fn shows(&mut self, edit: &'a Edit) -> &mut Self {
        edit.show
            .iter()
            .fold(self, |line, show| line.word(show.kind.name()).text(&show.text).tokens(show.tokens))
    }

    fn cause(&mut self, cause: &'a Cause) -> &mut Self {
        self.placed(TokenPlace::Plain, |line| match BudgetRule::named(&cause.rule) {
            Some(rule) => line.word(format!("({})", rule.words())),
            None => line.word("because").name(&cause.rule),
        });
        self.placed(TokenPlace::Detail, |line| line.word("because").name(&cause.rule));
        if (cause.before, cause.after) != (0, 0) {
            let [before, after] = [cause.before, cause.after].map(grouped);
            self.placed(TokenPlace::Plain, |line| line.word(format!("{before} → {after} tokens")));
            self.placed(TokenPlace::Detail, |line| line.word(format!("{}>{}", cause.before, cause.after)));
        }
        self.attr("model", cause.model.as_deref());
        self.placed(TokenPlace::Detail, |line| {
            line.used(cause.usage.as_ref()).maybe_text(cause.note.as_deref())
        })
    }

    fn anchor(&mut self, anchor: &'a Anchor, by: Option<Seq>) -> &mut Self {
        self.word("anchor").name(anchor.thread.as_str());
        self.maybe_word(anchor.ending.map(|ending| ending.name().to_owned()));
        let first = anchor.first.map(|first| format!("first={first}"));
        self.maybe_word(by.map(|by| format!("anchor@{by}")).or(first));
        self.maybe_text(anchor.label.as_deref()).text(&anchor.text)
    }

    fn share(&mut self, share: &'a Share, tokens: u32) -> &mut Self {
        self.word("share").name(share.thread.as_str()).word(format!("window={}", share.window));
        if share.lends {
            self.word("lends");
        }
        share.slices.iter().fold(&mut *self, |line, slice| line.slice(slice));
        self.maybe(share.chronicle_prompt.as_ref(), |line, prompt| line.quoted_attr("prompt", prompt));
        self.maybe_word(share.anchor_tokens.map(|tokens| format!("anchor={tokens}")));
        self.attr("held", share.held_by.as_deref());
        if tokens == share.tokens() { self } else { self.word("total").word(format!("~{tokens}")) }
    }

    /// The thread a slice is of, its moment, and the ratio.
    fn whose(&mut self, slice: &Slice) -> &mut Self {
        self.word("of").word(format!("{}@{}", slice.thread, slice.at)).word(slice.ratio.to_string())
    }

    fn slice(&mut self, slice: &'a Slice) -> &mut Self {
        self.whose(slice);
        if !slice.keep.is_empty() {
            self.word("keep").word(spans(&slice.keep));
        }
        for swap in &slice.replace {
            self.word("clip").word(swap.seq.to_string()).text(&swap.text).tokens(swap.tokens);
        }
        self.text(&slice.head).tokens(slice.tokens)
    }

    fn chronicle(&mut self, chronicle: &'a Chronicle) -> &mut Self {
        let [from, to] = chronicle.covers;
        self.word("chronicle").word(Span { from, to }.to_string());
        if chronicle.partial {
            self.word("partial");
        }
        self.attr("by", chronicle.model.as_deref()).used(chronicle.usage.as_ref()).text(&chronicle.text)
    }

    fn sent(&mut self, sent: &'a Sent) -> &mut Self {
        self.word("sent").name(&sent.model);
        self.placed(TokenPlace::Detail, |line| line.attr("digest", Some(&sent.digest)));
        self.maybe_word((sent.context_tokens > 0).then(|| sent.context_tokens.to_string()));
        self.attr("for", sent.purpose.as_deref());
        self.placed(TokenPlace::Detail, |line| line.maybe(sent.mark.as_ref(), Self::mark))
    }

    fn mark(&mut self, mark: &TranscriptMark) -> &mut Self {
        let mut text = format!("{}..{}", mark.from, mark.elements);
        for ElementGroup { elements, entries, times } in &mark.groups {
            text.push_str(&format!("/{elements}:{entries}"));
            if *times != 1 {
                text.push_str(&format!(":{times}"));
            }
        }
        if mark.inner {
            text.push_str("/inner");
        }
        if mark.apart {
            text.push_str("/apart");
        }
        text.push('@');
        text.push_str(&mark.digest);
        if is_bare(&text) { self.word(format!("mark={text}")) } else { self.quoted_attr("mark", text) }
    }

    fn reply(&mut self, reply: &'a Reply) -> &mut Self {
        let is_usual = USUAL.contains(&reply.finish.as_str());
        self.placed(if is_usual { TokenPlace::Detail } else { TokenPlace::Always }, |line| {
            match reply.finish.as_str() {
                "" => line,
                finish if is_bare(finish) => line.word(finish),
                finish => line.quoted_attr("finish", finish),
            }
        });
        self.placed(TokenPlace::Detail, |line| {
            line.maybe_word(reply.to.map(|to| format!("to={to}")))
                .attr("model", reply.model.as_deref())
                .used(reply.usage.as_ref())
                .attr("id", reply.id.as_deref())
                .maybe(reply.heard.as_ref(), |line, heard| line.quoted_attr("heard", heard))
        });
        self.maybe_text(reply.error.as_deref())
    }

    fn used(&mut self, usage: Option<&Usage>) -> &mut Self {
        let Some(usage) = usage else { return self };
        let mut word = format!("used={}+{}", usage.input_tokens, usage.output_tokens);
        for (count, unit) in [(usage.cache_creation_tokens, 'w'), (usage.cache_read_tokens, 'r')] {
            if count > 0 {
                word.push_str(&format!("+{count}{unit}"));
            }
        }
        self.word(word)
    }
}

/// Tokens of an edit's entry, unless the line says otherwise: those of the texts in it.
fn edit_tokens(edit: &Edit) -> u32 {
    edit.replace.iter().map(|swap| swap.tokens).fold(edit.shown_tokens(), u32::saturating_add)
}

fn is_object(text: &str) -> bool {
    text.starts_with('{')
        && !text.contains(is_wild)
        && serde_json::from_str::<&RawValue>(text).is_ok_and(|raw| raw.get().len() == text.len())
}
