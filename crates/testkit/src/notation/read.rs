//! From lines to entries.

use super::BadNotation;
use super::cursor::NotationCursor;
use komado_core::journal::{
    Anchor, Cause, Chronicle, Close, Edit, EditKind, ElementGroup, Ending, Entry, Ratio, Replace, Reply,
    Sent, Setup, Share, Show, ShowKind, Slice, TranscriptMark, Usage,
};
use komado_core::message::{
    Call, CallKind, ImageSource, Message, MessagePart, Opaque, OutputRef, Role, ToolOutcome,
};
use komado_core::picture::PictureSize;
use komado_core::{Seq, Span, ThreadId};

/// Words that may follow a tool's name or a message's parts, so that a tool with such a name stands in quotes.
const RESERVED: [&str; 6] = ["error", "interrupted", "image", "opaque", "extra", "reply"];

/// The words for texts that stand for others.
const SHOWS: [(&str, ShowKind); 3] =
    [("retain", ShowKind::Retain), ("summary", ShowKind::Summary), ("marker", ShowKind::Marker)];

type Found<T> = Result<T, BadNotation>;

/// Reads the entry that stands at place `seq`, and its tokens.
pub(super) fn entry(cursor: &mut NotationCursor<'_>, seq: Seq) -> Found<(Entry, u32)> {
    let given = cursor.maybe_number::<Seq>()?;
    if given.is_some_and(|given| given != seq) {
        return cursor.fail(format!("this is entry {seq}; correct its number or leave it out"));
    }
    let found = if let Some(role) = cursor.peek().and_then(Role::named) {
        (message(cursor, role)?, cursor.tokens()?)
    } else if let Some(kind) = EditKind::ALL.into_iter().find(|kind| cursor.eat(kind.name())) {
        edit(cursor, kind)?
    } else if cursor.eat("share") {
        share(cursor)?
    } else {
        (operation(cursor)?, cursor.tokens()?)
    };
    cursor.end()?;
    Ok(found)
}

fn operation(cursor: &mut NotationCursor<'_>) -> Found<Entry> {
    Ok(match cursor.peek() {
        Some("setup") => setup(cursor)?,
        Some("revert") => Entry::Revert { target: number_after(cursor, "revert")? },
        Some("rewind") => Entry::Rewind { to: number_after(cursor, "rewind")? },
        Some("pin") => Entry::Pin { span: span_after(cursor, "pin")? },
        Some("unpin") => Entry::Unpin { span: span_after(cursor, "unpin")? },
        Some("anchor") => anchor(cursor)?,
        Some("sent") => sent(cursor)?,
        Some("lost") => {
            cursor.eat("lost");
            Entry::Lost(reply(cursor)?)
        }
        Some("close") => {
            cursor.eat("close");
            let Some(ending) = ending(cursor) else { return cursor.expected("how the thread ended") };
            Entry::Close(Close { ending, result: cursor.maybe_text()? })
        }
        Some("chronicle") => chronicle(cursor)?,
        Some("tell") => {
            cursor.eat("tell");
            Entry::Tell { to: thread(cursor)?, text: cursor.text("what is told")? }
        }
        Some("heard") => {
            cursor.eat("heard");
            let (from, upto) = moment(cursor)?;
            Entry::Heard { from, upto }
        }
        Some("note") => {
            cursor.eat("note");
            Entry::Note {
                about: cursor.name("what the note is about")?,
                value: cursor.json("what is noted")?,
            }
        }
        _ => {
            return cursor.expected(
                "an entry: system, developer, user, assistant, tool, setup, condense, truncate, trim, revert, \
                 rewind, pin, unpin, anchor, sent, lost, close, share, chronicle, tell, heard or note",
            );
        }
    })
}

fn number_after(cursor: &mut NotationCursor<'_>, word: &str) -> Found<Seq> {
    cursor.eat(word);
    cursor.number("an entry's number")
}

fn span_after(cursor: &mut NotationCursor<'_>, word: &str) -> Found<Span> {
    cursor.eat(word);
    span(cursor)
}

/// `2..4,7`.
fn spans(cursor: &mut NotationCursor<'_>) -> Found<Vec<Span>> {
    let mut spans = vec![span(cursor)?];
    while cursor.eat_sign(',') {
        spans.push(span(cursor)?);
    }
    Ok(spans)
}

/// `4` or `2..4`.
fn span(cursor: &mut NotationCursor<'_>) -> Found<Span> {
    let from = cursor.number("a span such as 4 or 2..4")?;
    if !cursor.at_char('.') {
        return Ok(Span::new(from, from));
    }
    if !(cursor.eat_sign('.') && cursor.eat_sign('.')) {
        return cursor.expected("the end of the span, as in 2..4");
    }
    Ok(Span::new(from, cursor.number("the end of the span, as in 2..4")?))
}

fn setup(cursor: &mut NotationCursor<'_>) -> Found<Entry> {
    cursor.eat("setup");
    let mut setup = Setup { system: cursor.maybe_text()?, ..Setup::default() };
    if cursor.eat("tools") {
        if !cursor.at_char('[') {
            return cursor.expected("tool definitions as a JSON array");
        }
        setup.tools = Some(cursor.json("tool definitions")?);
    }
    if cursor.eat("params") {
        setup.params = Some(cursor.json("parameters as a JSON object")?);
    }
    setup.dialect = cursor.attr("dialect")?;
    Ok(Entry::Setup(setup))
}

fn anchor(cursor: &mut NotationCursor<'_>) -> Found<Entry> {
    cursor.eat("anchor");
    let (thread, ending) = (thread(cursor)?, ending(cursor));
    let first = cursor.count("first", "")?;
    let text = cursor.text("what the anchor says")?;
    let (label, text) = match cursor.maybe_text()? {
        Some(said) => (Some(text), said),
        None => (None, text),
    };
    Ok(Entry::Anchor(Anchor { thread, label, ending, text, brief: cursor.attr("brief")?, first }))
}

fn thread(cursor: &mut NotationCursor<'_>) -> Found<ThreadId> {
    let name = cursor.name("the thread's name")?;
    ThreadId::new(name).or_else(|_| cursor.fail("that is not a name for a thread"))
}

/// `root@12`.
fn moment(cursor: &mut NotationCursor<'_>) -> Found<(ThreadId, Seq)> {
    let what = "a moment of a thread, as in root@12";
    let word = cursor.word(what)?;
    let found = word.rsplit_once('@').and_then(|(name, seq)| Some((name, seq.parse().ok()?)));
    let Some((name, seq)) = found else { return cursor.fail(format!("expected {what}, found: {word}")) };
    match ThreadId::new(name) {
        Ok(thread) => Ok((thread, seq)),
        Err(_) => cursor.fail(format!("that is not a name for a thread: {name}")),
    }
}

fn share(cursor: &mut NotationCursor<'_>) -> Found<(Entry, u32)> {
    let thread = thread(cursor)?;
    let Some(window) = cursor.count("window", "")? else { return cursor.expected("window=…") };
    let lends = cursor.eat("lends");
    let mut slices = Vec::new();
    while cursor.eat("of") {
        slices.push(slice(cursor)?);
    }
    let (chronicle_prompt, anchor_tokens) = (cursor.attr("prompt")?, cursor.count("anchor", "")?);
    let held_by = cursor.attr("held")?;
    let share = Share { thread, window, slices, lends, anchor_tokens, chronicle_prompt, held_by };
    let tokens = if cursor.eat("total") { cursor.tokens()? } else { share.tokens() };
    Ok((Entry::Share(share), tokens))
}

fn slice(cursor: &mut NotationCursor<'_>) -> Found<Slice> {
    let (thread, at) = moment(cursor)?;
    let part = cursor.word("a part of the window, such as 0.8")?;
    let Ok(number) = part.parse::<f64>() else {
        return cursor.fail(format!("expected a part of the window, such as 0.8, found: {part}"));
    };
    let ratio = Ratio::new(number).or_else(|bad| cursor.fail(bad.to_string()))?;
    let keep = if cursor.eat("keep") { spans(cursor)? } else { Vec::new() };
    let mut replace = Vec::new();
    while cursor.eat("clip") {
        let seq = cursor.number("an entry's number")?;
        let text = cursor.text("what the entry says there")?;
        replace.push(Replace { seq, text, tokens: cursor.tokens()? });
    }
    let head = cursor.text("the heading of the slice")?;
    Ok(Slice { thread, at, ratio, keep, replace, head, tokens: cursor.tokens()? })
}

fn chronicle(cursor: &mut NotationCursor<'_>) -> Found<Entry> {
    cursor.eat("chronicle");
    let Span { from, to } = span(cursor)?;
    let partial = cursor.eat("partial");
    let (model, usage) = (cursor.attr("by")?, usage(cursor)?);
    let text = cursor.text("what was done")?;
    Ok(Entry::Chronicle(Chronicle { text, covers: [from, to], partial, model, usage }))
}

fn ending(cursor: &mut NotationCursor<'_>) -> Option<Ending> {
    Ending::ALL.into_iter().find(|ending| cursor.eat(ending.name()))
}

fn sent(cursor: &mut NotationCursor<'_>) -> Found<Entry> {
    cursor.eat("sent");
    let model = cursor.name("the model's name")?;
    let Some(digest) = cursor.attr("digest")? else { return cursor.expected("digest=…") };
    let context_tokens = cursor.maybe_number()?.unwrap_or(0);
    let purpose = cursor.attr("for")?;
    Ok(Entry::Sent(Sent { digest, model, context_tokens, purpose, mark: mark(cursor)? }))
}

/// `mark=FROM..ELEMENTS/1:1:3/2:1/inner/apart@DIGEST`: each group as elements, entries and, unless once, how often.
fn mark(cursor: &mut NotationCursor<'_>) -> Found<Option<TranscriptMark>> {
    let Some(text) = cursor.attr("mark")? else { return Ok(None) };
    match read_mark(&text) {
        Some(mark) => Ok(Some(mark)),
        None => cursor.fail(format!("mark must look like 4..7/1:1:3/2:1/inner/apart@DIGEST: {text}")),
    }
}

fn read_mark(text: &str) -> Option<TranscriptMark> {
    let (places, digest) = text.split_once('@')?;
    let mut pieces = places.split('/');
    let (from, elements) = pieces.next()?.split_once("..")?;
    let (from, elements) = (from.parse().ok()?, elements.parse().ok()?);
    let mut mark = TranscriptMark {
        from,
        elements,
        digest: digest.to_owned(),
        groups: Vec::new(),
        inner: false,
        apart: false,
    };
    for piece in pieces {
        match piece {
            _ if mark.apart => return None,
            "apart" => mark.apart = true,
            _ if mark.inner => return None,
            "inner" => mark.inner = true,
            group => mark.groups.push(read_group(group)?),
        }
    }
    Some(mark)
}

fn read_group(text: &str) -> Option<ElementGroup> {
    let numbers: Vec<u32> = text.split(':').map(|digits| digits.parse().ok()).collect::<Option<_>>()?;
    match numbers[..] {
        [elements, entries] => Some(ElementGroup { elements, entries, times: 1 }),
        [elements, entries, times] => Some(ElementGroup { elements, entries, times }),
        _ => None,
    }
}

fn reply(cursor: &mut NotationCursor<'_>) -> Found<Reply> {
    let finish = match cursor.peek() {
        Some(_) => cursor.word("why it stopped")?.to_owned(),
        None => cursor.attr("finish")?.unwrap_or_default(),
    };
    Ok(Reply {
        to: cursor.count("to", "")?,
        model: cursor.attr("model")?,
        usage: usage(cursor)?,
        finish,
        id: cursor.attr("id")?,
        heard: cursor.attr("heard")?,
        error: cursor.maybe_text()?,
    })
}

/// `used=100+20+5w+900r`.
fn usage(cursor: &mut NotationCursor<'_>) -> Found<Option<Usage>> {
    let Some(used) = cursor.attr("used")? else { return Ok(None) };
    let mut usage = Usage::default();
    for (i, count) in used.split('+').enumerate() {
        let (digits, place) = match (i, count.strip_suffix('w'), count.strip_suffix('r')) {
            (0, None, None) => (count, &mut usage.input_tokens),
            (1, None, None) => (count, &mut usage.output_tokens),
            (2.., Some(digits), _) => (digits, &mut usage.cache_creation_tokens),
            (2.., _, Some(digits)) => (digits, &mut usage.cache_read_tokens),
            _ => return cursor.fail(format!("used must be input+output+…w+…r: {used}")),
        };
        let Ok(number) = digits.parse() else {
            return cursor.fail(format!("used must hold numbers: {used}"));
        };
        *place = number;
    }
    Ok(Some(usage))
}

fn edit(cursor: &mut NotationCursor<'_>, kind: EditKind) -> Found<(Entry, u32)> {
    let mut edit =
        Edit { kind, hide: Vec::new(), show: Vec::new(), replace: Vec::new(), cause: Cause::default() };
    if kind == EditKind::Trim {
        loop {
            let seq = cursor.number("an entry's number")?;
            let text = cursor.text("what the entry now says")?;
            edit.replace.push(Replace { seq, text, tokens: cursor.tokens()? });
            if !cursor.eat_sign(',') {
                break;
            }
        }
    } else {
        edit.hide = spans(cursor)?;
        while let Some(kind) = show(cursor) {
            let text = cursor.text("what is shown instead")?;
            edit.show.push(Show { kind, text, tokens: cursor.tokens()? });
        }
    }
    if cursor.eat("because") {
        edit.cause = cause(cursor)?;
    }
    let tokens = if cursor.eat("total") { cursor.tokens()? } else { tokens_of(&edit) };
    Ok((Entry::Edit(edit), tokens))
}

/// What kind of text stands here for others.
fn show(cursor: &mut NotationCursor<'_>) -> Option<ShowKind> {
    SHOWS.into_iter().find(|(name, _)| cursor.eat(name)).map(|(_, kind)| kind)
}

/// Tokens of an edit's entry, unless the line says otherwise: those of the texts in it.
fn tokens_of(edit: &Edit) -> u32 {
    edit.replace.iter().map(|swap| swap.tokens).fold(edit.shown_tokens(), u32::saturating_add)
}

fn cause(cursor: &mut NotationCursor<'_>) -> Found<Cause> {
    let mut cause = Cause { rule: cursor.name("the rule's name")?, ..Cause::default() };
    if let Some(before) = cursor.maybe_number()? {
        cause.before = before;
        if !cursor.eat_sign('>') {
            return cursor.expected("tokens before and after, as in 1200>300");
        }
        cause.after = cursor.number("tokens after, as in 1200>300")?;
    }
    cause.model = cursor.attr("model")?;
    cause.usage = usage(cursor)?;
    cause.note = cursor.maybe_text()?;
    Ok(cause)
}

fn message(cursor: &mut NotationCursor<'_>, role: Role) -> Found<Entry> {
    cursor.eat(role.name());
    let mut message = Message::of(role, Vec::new());
    if role == Role::Tool {
        outcome(cursor, &mut message)?;
    } else {
        message.name = cursor.attr("name")?;
        while let Some(part) = part(cursor)? {
            message.parts.push(part);
        }
    }
    if cursor.eat("extra") {
        message.extra = Some(opaque(cursor)?);
    }
    let reply = if cursor.eat("reply") { Some(reply(cursor)?) } else { None };
    Ok(Entry::Message(message, reply))
}

fn outcome(cursor: &mut NotationCursor<'_>, message: &mut Message) -> Found<()> {
    let call_id = cursor.name("the id of the call it answers")?;
    let name = match cursor.peek() {
        Some(word) if !RESERVED.contains(&word) => Some(cursor.word("the tool's name")?.to_owned()),
        _ => cursor.attr("tool")?,
    };
    message.name = cursor.attr("name")?;
    let (is_error, interrupted) = (cursor.eat("error"), cursor.eat("interrupted"));
    let replaces = cursor.count("replaces", "")?;
    let mut content = Vec::new();
    while let Some(part) = part(cursor)? {
        content.push(part);
    }
    let output_ref = output_ref(cursor)?;
    let duration_ms = cursor.count("took", "ms")?;
    let outcome =
        ToolOutcome { call_id, name, content, is_error, output_ref, duration_ms, interrupted, replaces };
    message.parts.push(MessagePart::Result(outcome));
    Ok(())
}

/// `ref=ID/1234b/17l`; the id in quotes when it holds a slash.
fn output_ref(cursor: &mut NotationCursor<'_>) -> Found<Option<OutputRef>> {
    if !cursor.eat_key("ref") {
        return Ok(None);
    }
    let quoted = cursor.maybe_text()?;
    let word = if quoted.is_none() || cursor.at_char('/') { cursor.word("the output's id")? } else { "" };
    let (bare, sizes) = word.split_once('/').unwrap_or((word, ""));
    let mut found =
        OutputRef { id: quoted.unwrap_or_else(|| bare.to_owned()), byte_size: None, line_count: None };
    for size in sizes.split('/').filter(|size| !size.is_empty()) {
        let place = if size.ends_with('l') { &mut found.line_count } else { &mut found.byte_size };
        match size.strip_suffix(['b', 'l']).and_then(|digits| digits.parse().ok()) {
            Some(count) => *place = Some(count),
            None => return cursor.fail(format!("a size must look like 1234b or 17l: {size}")),
        }
    }
    Ok(Some(found))
}

fn part(cursor: &mut NotationCursor<'_>) -> Found<Option<MessagePart>> {
    if cursor.at_text() {
        let text = cursor.text("a text")?;
        let extra = if cursor.eat("marked") { Some(opaque(cursor)?) } else { None };
        return Ok(Some(MessagePart::Text { text, extra }));
    }
    Ok(Some(match cursor.peek() {
        Some("call") => call(cursor, "call", CallKind::Function)?,
        Some("custom") => call(cursor, "custom", CallKind::Custom)?,
        Some("image") => image(cursor)?,
        Some("reasoning") => {
            cursor.eat("reasoning");
            MessagePart::Reasoning { text: cursor.text("the thought")?, signature: cursor.attr("signature")? }
        }
        Some("opaque") => {
            cursor.eat("opaque");
            MessagePart::Opaque(opaque(cursor)?)
        }
        _ => return Ok(None),
    }))
}

fn opaque(cursor: &mut NotationCursor<'_>) -> Found<Opaque> {
    Ok(Opaque { dialect: cursor.name("the dialect's name")?, json: cursor.json("JSON")? })
}

fn call(cursor: &mut NotationCursor<'_>, word: &str, kind: CallKind) -> Found<MessagePart> {
    cursor.eat(word);
    let (id, name) = (cursor.name("the call's id")?, cursor.name("the tool's name")?);
    let arguments = match cursor.at_text() {
        true => cursor.text("arguments")?,
        false if cursor.at_char('{') => cursor.json("arguments")?.get().to_owned(),
        false => return cursor.expected("arguments: a JSON object, or a text in quotes"),
    };
    let extra = if cursor.eat("plus") { Some(cursor.json("JSON")?) } else { None };
    Ok(MessagePart::Call(Call { id, name, arguments, kind, extra }))
}

fn image(cursor: &mut NotationCursor<'_>) -> Found<MessagePart> {
    cursor.eat("image");
    let source = if let Some(url) = cursor.maybe_text()? {
        ImageSource::Url { url }
    } else {
        match (cursor.attr("blob")?, cursor.attr("type")?, cursor.count("bytes", "")?) {
            (Some(blob), Some(media_type), Some(byte_size)) => {
                let pixels = cursor.attr("pixels")?;
                let pixels = pixels.as_deref().and_then(|pixels| pixels.split_once('x'));
                let pixels = pixels.and_then(|(width, height)| {
                    Some(PictureSize { width: width.parse().ok()?, height: height.parse().ok()? })
                });
                ImageSource::Blob { blob, media_type, byte_size, pixels }
            }
            _ => return cursor.expected("an address in quotes, or blob=… type=… bytes=…"),
        }
    };
    Ok(MessagePart::Image { source, detail: cursor.attr("detail")? })
}
