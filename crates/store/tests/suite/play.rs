//! Random conversations: entries of every kind are proposed, and the gate keeps what may follow.

use crate::suite::dice::Dice;
use komado_core::head::EntrySource;
use komado_core::journal::{
    Anchor, Cause, Chronicle, Close, Edit, EditKind, ElementGroup, Ending, Entry, Replace, Reply, Sent,
    Setup, Show, ShowKind, TranscriptMark, Usage, encode,
};
use komado_core::message::{Call, CallKind, MessagePart, OutputRef, ToolOutcome};
use komado_core::{Message, Role, Seq, Span, ThreadId};
use komado_store::{Journal, JournalRow};
use komado_testkit::Book;

/// When everything here happens.
pub(crate) const NOW: &str = "2024-01-15T10:30:00Z";

/// Appends up to `count` random entries.
pub(crate) fn go_on(book: &mut Book, dice: &mut Dice, count: u32) {
    let end = book.view().last() + count;
    for _ in 0..8 * count {
        if book.view().last() >= end {
            return;
        }
        let (entry, tokens) = propose(book, dice);
        let _ = book.push(entry, tokens, NOW);
    }
}

/// A whole random conversation.
pub(crate) fn book(seed: u64, count: u32) -> Book {
    let mut book = Book::default();
    go_on(&mut book, &mut Dice::new(seed), count);
    book
}

/// The rows of a book after entry `after`, as they go into a store.
pub(crate) fn rows(book: &Book, after: Seq) -> Vec<JournalRow> {
    let records = book.records().skip(after as usize);
    records
        .map(|record| {
            let Ok(head) = book.rows().head(record.seq);
            JournalRow { line: encode(record), head }
        })
        .collect()
}

/// Says something in the book and in the journal; gives its number.
pub(crate) fn write(book: &mut Book, journal: &mut dyn Journal, entry: Entry, tokens: u32) -> Seq {
    let seq = book.push(entry, tokens, NOW).unwrap();
    journal.append(seq - 1, &rows(book, seq - 1)).unwrap();
    seq
}

/// Somebody says `text`.
pub(crate) fn said(role: Role, text: &str) -> Entry {
    Entry::Message(Message::text(role, text), None)
}

/// The tool answers.
pub(crate) fn answered(call_id: &str, text: &str) -> ToolOutcome {
    ToolOutcome {
        call_id: call_id.into(),
        name: None,
        content: vec![MessagePart::text(text)],
        is_error: false,
        output_ref: None,
        duration_ms: Some(12),
        interrupted: false,
        replaces: None,
    }
}

/// As an entry.
pub(crate) fn result(outcome: ToolOutcome) -> Entry {
    Entry::Message(Message::of(Role::Tool, vec![MessagePart::Result(outcome)]), None)
}

fn propose(book: &Book, dice: &mut Dice) -> (Entry, u32) {
    let view = book.view();
    let seq = view.last() + 1;
    if view.closed().is_some() && dice.chance(50) {
        return (Entry::Rewind { to: dice.below(seq) }, 0);
    }
    if let Some(call) = dice.pick(&view.open().calls)
        && dice.chance(70)
    {
        let mut outcome = answered(&call.id, &words(dice, seq));
        outcome.is_error = dice.chance(20);
        outcome.output_ref =
            dice.chance(20).then(|| OutputRef { id: "ab".into(), byte_size: Some(7), line_count: None });
        return (result(outcome), dice.below(500));
    }
    match dice.below(100) {
        0..25 => (said(Role::User, &words(dice, seq)), dice.below(300)),
        25..50 => (reply(dice, seq), dice.below(300)),
        50..68 => (edit(book, dice), dice.below(40)),
        68..74 => (Entry::Revert { target: dice.below(seq) }, 0),
        74..80 => (Entry::Rewind { to: dice.below(seq) }, 0),
        80..84 => (Entry::Pin { span: unit(book, dice) }, 0),
        84..86 => (Entry::Unpin { span: *dice.pick(view.pins()).unwrap_or(&Span::new(1, 1)) }, 0),
        86..92 => (anchor(book, dice), dice.below(50)),
        92..95 => {
            (Entry::Setup(Setup { system: Some(words(dice, seq)), ..Setup::default() }), dice.below(200))
        }
        95..96 => (
            Entry::Sent(Sent {
                digest: "d".into(),
                model: "m".into(),
                context_tokens: 9,
                purpose: None,
                mark: seq.is_multiple_of(2).then(|| mark(seq)),
            }),
            0,
        ),
        96..97 => (kin(dice, seq), 0),
        97..98 => (Entry::Lost(Reply { finish: "lost".into(), ..Reply::default() }), 0),
        98..99 => (said(Role::System, &words(dice, seq)), dice.below(99)),
        _ => (Entry::Close(Close { ending: *dice.pick(&Ending::ALL).unwrap(), result: None }), 0),
    }
}

fn mark(seq: Seq) -> TranscriptMark {
    let groups = (0..seq % 3).map(|n| ElementGroup { elements: 1, entries: n, times: 1 + n }).collect();
    TranscriptMark {
        from: seq,
        elements: seq + 5,
        digest: format!("9f3a{seq}"),
        groups,
        inner: seq.is_multiple_of(4),
        apart: seq.is_multiple_of(3),
    }
}

/// What passes between threads.
fn kin(dice: &mut Dice, seq: Seq) -> Entry {
    let other = ThreadId::new("t1").unwrap();
    match dice.below(3) {
        0 => Entry::Tell { to: other, text: words(dice, seq) },
        1 => Entry::Heard { from: other, upto: dice.below(seq) },
        _ => Entry::Chronicle(Chronicle {
            text: words(dice, seq),
            covers: [1, seq],
            partial: dice.chance(50),
            model: None,
            usage: None,
        }),
    }
}

fn words(dice: &mut Dice, seq: Seq) -> String {
    const TEXTS: [&str; 4] = ["窓を開ける", "line one\nline \"two\"\u{2028}", "a\\b\u{0}c 🪟", ""];
    format!("{} {seq} {}", dice.pick(&TEXTS).unwrap(), "x".repeat(dice.below(200) as usize))
}

fn reply(dice: &mut Dice, seq: Seq) -> Entry {
    let calls = if dice.chance(50) { 0 } else { 1 + dice.below(3) };
    let mut parts = vec![MessagePart::text(words(dice, seq))];
    for n in 0..calls {
        parts.push(MessagePart::Call(Call {
            id: format!("c{seq}-{n}"),
            name: "read".into(),
            arguments: "{\"path\":\"窓.rs\"}".into(),
            kind: CallKind::Function,
            extra: None,
        }));
    }
    let usage = Usage { input_tokens: 10, output_tokens: 5, ..Usage::default() };
    let reply = Reply { usage: dice.chance(50).then_some(usage), finish: "stop".into(), ..Reply::default() };
    Entry::Message(Message::of(Role::Assistant, parts), Some(reply))
}

fn edit(book: &Book, dice: &mut Dice) -> Entry {
    let seq = book.view().last() + 1;
    let Ok(items) = book.view().items(book.rows());
    let text = words(dice, seq);
    if dice.chance(40) {
        let swap = dice.pick(&items).map_or(1, |item| item.seq);
        return Entry::Edit(Edit {
            kind: EditKind::Trim,
            hide: Vec::new(),
            show: Vec::new(),
            replace: vec![Replace { seq: swap, text, tokens: dice.below(9) }],
            cause: Cause::default(),
        });
    }
    let (a, b, far) = (unit(book, dice), unit(book, dice), unit(book, dice));
    let mut hide = vec![Span::new(a.from.min(b.from), a.to.max(b.to))];
    if far.from > hide[0].to && dice.chance(50) {
        hide.push(far);
    }
    let kind = if dice.chance(70) { EditKind::Condense } else { EditKind::Truncate };
    let show = vec![Show { kind: ShowKind::Summary, text, tokens: dice.below(30) }];
    Entry::Edit(Edit { kind, hide, show, replace: Vec::new(), cause: Cause::default() })
}

/// A whole unit on the path, if one is found.
fn unit(book: &Book, dice: &mut Dice) -> Span {
    for _ in 0..4 {
        let Ok(unit) = book.view().unit(book.rows(), 1 + dice.below(book.view().last()));
        if let Some(unit) = unit {
            return unit;
        }
    }
    Span::new(1, 1)
}

fn anchor(book: &Book, dice: &mut Dice) -> Entry {
    let seq = book.view().last() + 1;
    let anchors = book.records().filter(|r| matches!(&r.entry, Entry::Anchor(a) if a.first.is_none()));
    let anchors: Vec<Seq> = anchors.map(|r| r.seq).collect();
    let first = dice.pick(&anchors).copied().filter(|_| dice.chance(60));
    let ending = first.map(|_| Ending::Completed);
    let thread = ThreadId::new(format!("t{}", first.unwrap_or(seq))).unwrap();
    let brief = dice.chance(50).then(|| words(dice, seq));
    Entry::Anchor(Anchor { thread, label: None, ending, text: words(dice, seq), brief, first })
}
