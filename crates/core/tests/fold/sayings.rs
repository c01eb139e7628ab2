//! Random things to say, as odd as what real clients send.

use crate::fold::dice::Dice;
use komado_core::journal::{
    Cause, Chronicle, ElementGroup, Entry, Ratio, Replace, Reply, Setup, Share, Slice, TranscriptMark, Usage,
};
use komado_core::message::{
    Call, CallKind, ImageSource, Message, MessagePart, Opaque, OutputRef, Role, ToolOutcome,
};
use komado_core::raw::RawJson;
use komado_core::{Seq, Span, ThreadId};

const WORDS: [&str; 9] = [
    "",
    "ok",
    "漢字かな交じり",
    "line\nbreak, \"quotes\" and \\ back\\slashes",
    "👩‍👩‍👧 ❤️",
    "\u{1b}[31mred\u{9b}\u{202e}",
    "tab\tbell\u{7}\r\n",
    "~5 # no comment",
    "{\"not\": \"json",
];

const JSON: [&str; 7] = [
    r#"{"a":1.0}"#,
    r#"{"z":[12345678901234567890,"é漢\n"],"b":{"c":null}}"#,
    "{}",
    r#"{"k":"\u0041\""}"#,
    "[1, 2.50]",
    "null",
    "\"text\"",
];

const TOOLS: [&str; 5] = ["read", "ls", "error", "my tool", "道具"];
const IDS: [&str; 5] = ["c0", "c1", "call_2", "c 3", "呼"];
const NAMES: [&str; 3] = ["ann", "Ann B.", ""];

/// Words that nobody said before: `seq` makes them so. Now and then none at all.
pub(crate) fn words(dice: &mut Dice, seq: Seq) -> String {
    if dice.chance(3) {
        return String::new();
    }
    format!("{seq}:{}", dice.pick(&WORDS).unwrap())
}

/// What somebody notes.
pub(crate) fn note(dice: &mut Dice, seq: Seq) -> RawJson {
    RawJson::parse(format!(r#"{{"node":"n{}","at":{seq}}}"#, dice.below(9))).unwrap()
}

fn raw(dice: &mut Dice) -> RawJson {
    RawJson::parse(*dice.pick(&JSON).unwrap()).unwrap()
}

/// What stands beside known fields is always an object with something in it.
fn raw_fields(dice: &mut Dice) -> RawJson {
    RawJson::parse(*dice.pick(&JSON[..2]).unwrap()).unwrap()
}

fn opaque(dice: &mut Dice) -> Opaque {
    let dialect = *dice.pick(&["openai", "anthropic", "odd dialect", ""]).unwrap();
    Opaque { dialect: dialect.into(), json: raw(dice) }
}

fn maybe<T>(dice: &mut Dice, percent: u32, make: impl FnOnce(&mut Dice) -> T) -> Option<T> {
    if dice.chance(percent) { Some(make(dice)) } else { None }
}

fn content(dice: &mut Dice, seq: Seq) -> MessagePart {
    match dice.below(20) {
        0 => MessagePart::Opaque(opaque(dice)),
        1 => MessagePart::Image {
            source: ImageSource::Url { url: words(dice, seq) },
            detail: maybe(dice, 50, |_| "low".into()),
        },
        2 => MessagePart::Image {
            source: ImageSource::Blob {
                blob: "b1".into(),
                media_type: "image/png".into(),
                byte_size: 9,
                pixels: None,
            },
            detail: None,
        },
        3 => MessagePart::Text { text: words(dice, seq), extra: Some(opaque(dice)) },
        _ => MessagePart::text(words(dice, seq)),
    }
}

/// A message of the person, or of whoever runs the agent.
pub(crate) fn plain(dice: &mut Dice, role: Role, seq: Seq) -> Message {
    let mut message = Message::of(role, vec![content(dice, seq)]);
    if dice.chance(15) {
        message.parts.push(content(dice, seq));
    }
    message.name = maybe(dice, 10, |d| (*d.pick(&NAMES).unwrap()).into());
    message.extra = maybe(dice, 5, opaque);
    message
}

/// A message of the model, with up to three calls. Ids come again in later messages, as real ones do.
pub(crate) fn assistant(dice: &mut Dice, seq: Seq, calls: u32) -> Message {
    let mut parts = Vec::new();
    if dice.chance(15) {
        parts.push(MessagePart::Reasoning {
            text: words(dice, seq),
            signature: maybe(dice, 50, |_| "s=".into()),
        });
    }
    if calls == 0 || dice.chance(60) {
        parts.push(content(dice, seq));
    }
    let first = dice.below(5);
    for i in 0..calls {
        let custom = dice.chance(10);
        let arguments = if dice.chance(80) { raw_fields(dice).get().to_owned() } else { words(dice, seq) };
        parts.push(MessagePart::Call(Call {
            id: IDS[(first + i) as usize % IDS.len()].into(),
            name: (*dice.pick(&TOOLS).unwrap()).into(),
            arguments,
            kind: if custom { CallKind::Custom } else { CallKind::Function },
            extra: maybe(dice, 8, raw_fields),
        }));
        if dice.chance(5) {
            parts.push(content(dice, seq));
        }
    }
    Message::of(Role::Assistant, parts)
}

/// A tool's answer to call `id`.
pub(crate) fn result(dice: &mut Dice, seq: Seq, id: &str) -> Message {
    let content = (0..dice.below(3)).map(|_| content(dice, seq)).collect();
    let id_of = |dice: &mut Dice| (*dice.pick(&["abc", "a/b", "odd id"]).unwrap()).to_owned();
    let outcome = ToolOutcome {
        call_id: id.into(),
        name: maybe(dice, 80, |d| (*d.pick(&TOOLS).unwrap()).into()),
        content,
        is_error: dice.chance(15),
        output_ref: maybe(dice, 20, |d| OutputRef {
            id: id_of(d),
            byte_size: maybe(d, 50, |_| 1234),
            line_count: maybe(d, 50, |_| 17),
        }),
        duration_ms: maybe(dice, 20, |d| d.roll() >> 40),
        interrupted: dice.chance(10),
        replaces: None,
    };
    let mut message = Message::of(Role::Tool, vec![MessagePart::Result(outcome)]);
    message.name = maybe(dice, 5, |d| (*d.pick(&NAMES).unwrap()).into());
    message
}

pub(crate) fn setup(dice: &mut Dice, seq: Seq) -> Setup {
    Setup {
        system: maybe(dice, 80, |d| words(d, seq)),
        tools: maybe(dice, 50, |_| RawJson::parse(r#"[{"name":"read"}, {"name":"ls"}]"#).unwrap()),
        params: maybe(dice, 30, raw_fields),
        dialect: maybe(dice, 50, |_| "openai".into()),
    }
}

fn usage(dice: &mut Dice) -> Usage {
    let cache = |dice: &mut Dice| if dice.chance(50) { dice.roll() >> 50 } else { 0 };
    Usage {
        input_tokens: dice.roll() >> 50,
        output_tokens: dice.roll() >> 50,
        cache_creation_tokens: cache(dice),
        cache_read_tokens: cache(dice),
    }
}

pub(crate) fn reply(dice: &mut Dice, seq: Seq) -> Reply {
    Reply {
        to: maybe(dice, 50, |d| d.below(seq)),
        model: maybe(dice, 50, |_| "gpt-4o".into()),
        usage: maybe(dice, 50, usage),
        finish: (*dice.pick(&["", "stop", "tool_calls", "odd finish"]).unwrap()).into(),
        error: maybe(dice, 20, |d| words(d, seq)),
        heard: maybe(dice, 20, |d| words(d, seq)),
        id: maybe(dice, 20, |d| (*d.pick(&["9f3a", "an id", ""]).unwrap()).into()),
    }
}

/// Where a client's transcript stood, perhaps.
pub(crate) fn mark(dice: &mut Dice) -> Option<TranscriptMark> {
    maybe(dice, 50, |dice| {
        let from = dice.below(50);
        let group =
            |d: &mut Dice| ElementGroup { elements: d.below(3), entries: d.below(3), times: d.below(4) };
        TranscriptMark {
            from,
            elements: from + dice.below(9),
            digest: (*dice.pick(&["9f3a0c", "", "a b@c/d\"窓"]).unwrap()).into(),
            groups: (0..dice.below(4)).map(|_| group(dice)).collect(),
            inner: dice.chance(20),
            apart: dice.chance(20),
        }
    })
}

pub(crate) fn cause(dice: &mut Dice, seq: Seq) -> Cause {
    if dice.chance(30) {
        return Cause::default();
    }
    Cause {
        rule: (*dice.pick(&["soft_mark", "by hand", ""]).unwrap()).into(),
        before: dice.roll() >> 45,
        after: dice.roll() >> 50,
        model: maybe(dice, 30, |_| "gpt-4o-mini".into()),
        usage: maybe(dice, 30, usage),
        note: maybe(dice, 20, |d| words(d, seq)),
    }
}

const THREADS: [&str; 4] = ["root", "stelis_1", "a.b:c-d", "t"];

pub(crate) fn thread(dice: &mut Dice) -> ThreadId {
    ThreadId::new(*dice.pick(&THREADS).unwrap()).unwrap()
}

/// A share of nobody's window: its slices are of threads that have said nothing. Now and then out of order.
pub(crate) fn share(dice: &mut Dice, seq: Seq) -> Share {
    Share {
        thread: thread(dice),
        window: dice.roll() >> dice.below(60),
        slices: (0..dice.below(4)).map(|_| slice(dice, seq)).collect(),
        lends: dice.chance(50),
        chronicle_prompt: maybe(dice, 30, |d| words(d, seq)),
        anchor_tokens: maybe(dice, 30, |d| d.below(2_000)),
        held_by: maybe(dice, 30, |d| words(d, seq)),
    }
}

fn swap(dice: &mut Dice, seq: Seq) -> Replace {
    Replace { seq, text: words(dice, seq), tokens: dice.below(9) }
}

fn slice(dice: &mut Dice, seq: Seq) -> Slice {
    let mut last = dice.below(3);
    let mut keep = Vec::new();
    for _ in 0..dice.below(4) {
        let from = dice.between(last + 1, last + 4);
        last = dice.between(from, from + 5);
        keep.push(Span::new(from, last));
    }
    if dice.chance(5) {
        keep.reverse();
    }
    Slice {
        thread: thread(dice),
        at: dice.below(40),
        ratio: Ratio::new(f64::from(dice.between(10_000, 990_000)) / 1e6).unwrap(),
        keep,
        replace: (0..dice.below(3)).map(|i| swap(dice, i)).collect(),
        head: words(dice, seq),
        tokens: dice.below(500),
    }
}

pub(crate) fn chronicle(dice: &mut Dice, seq: Seq) -> Entry {
    Entry::Chronicle(Chronicle {
        text: words(dice, seq),
        covers: [dice.below(seq), dice.below(seq)],
        partial: dice.chance(40),
        model: maybe(dice, 60, |d| (*d.pick(&["digest", "by_hand", "my model", ""]).unwrap()).into()),
        usage: maybe(dice, 30, usage),
    })
}
