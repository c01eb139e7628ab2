//! A session in which everything has happened.

use crate::engine::room::{
    Room, call, calls, model, result, result_with_output, setup, thread_id, used, user,
};
use komado_core::journal::{Anchor, Entry, Reply, Sent};
use komado_core::message::{ImageSource, Message, MessagePart, Opaque, Role};
use komado_core::raw::RawJson;
use komado_core::{SessionId, Span};

/// A secret with everything that JSON escapes.
pub(crate) const SECRET: &str = "s3cr\"et\\秘";

/// Bytes that are no text, longer than one line of an export holds.
pub(crate) fn noise(len: usize) -> Vec<u8> {
    (0..len as u64).map(|i| (i.wrapping_mul(2_654_435_761) >> 13) as u8).collect()
}

/// Tells the whole story in session `name`: a root of 22 entries, a fork `a` of it, a fork `b` of that.
pub(crate) fn tell(room: &Room, name: &str) -> SessionId {
    let id = room.session(name);
    let mut root = room.root(&id);
    root.set_up(setup(&format!("親切に。 {SECRET}"))).unwrap();
    let url = "data:image/png;base64,AAECAwQFBgc=".to_owned();
    let image = MessagePart::Image { source: ImageSource::Url { url }, detail: None };
    root.say(Message::of(Role::User, vec![MessagePart::text("何が見える？"), image])).unwrap();
    let arguments = serde_json::json!({ "key": SECRET, "n": "x" }).to_string().replace("\"x\"", "1.0");
    let thought = MessagePart::Reasoning { text: format!("I know {SECRET}"), signature: Some("seal".into()) };
    let opaque = Opaque { dialect: "openai".into(), json: RawJson::parse(r#"{"refusal": 1.50}"#).unwrap() };
    let asked =
        vec![thought, MessagePart::text("looking"), call("a", "read", &arguments), call("b", "ls", "{}")];
    root.reply(Message { extra: Some(opaque), ..calls(asked) }, used(100, 20)).unwrap();
    let log = format!("line\n{SECRET}\nline\n").into_bytes();
    root.say(result_with_output(room, &id, "a", &format!("head {SECRET} tail"), &log)).unwrap();
    root.say(result_with_output(room, &id, "b", "binary", &noise(100_000))).unwrap();
    root.say(model("done")).unwrap();
    root.pin(2).unwrap();
    root.say(user("more")).unwrap();
    root.fork(8, thread_id("a"), Some("別案".into())).unwrap();
    root.condense(vec![Span::new(3, 6)], &format!("They read {SECRET}."), "by_hand").unwrap();
    root.say(model("ok")).unwrap();
    root.revert(9).unwrap();
    root.truncate(vec![Span::new(3, 6)], "[…]", "by_hand").unwrap();
    let sent = Sent {
        digest: "d".into(),
        model: "gpt-4o".into(),
        context_tokens: 9,
        purpose: None,
        mark: Some(mark()),
    };
    let sent = root.append(Entry::Sent(sent)).unwrap();
    root.append(Entry::Lost(Reply {
        to: Some(sent),
        error: Some(format!("no {SECRET}")),
        ..Reply::default()
    }))
    .unwrap();
    root.say(calls(vec![call("c", "read", "{}")])).unwrap();
    root.say(result_with_output(room, &id, "c", "exactly one piece of an export", &noise(48 * 1024)))
        .unwrap();
    root.trim(vec![(16, "[trimmed]".into())], "tool_budget").unwrap();
    root.say(user("wrong")).unwrap();
    root.rewind(17).unwrap();
    root.say(calls(vec![call("d", "read", "{}")])).unwrap();
    root.say(result_with_output(room, &id, "d", "nothing", b"")).unwrap();
    let (text, label) = (format!("thread t: {SECRET}"), Some("t".into()));
    root.append(Entry::Anchor(Anchor {
        thread: thread_id("t"),
        label,
        ending: None,
        text,
        brief: None,
        first: None,
    }))
    .unwrap();
    root.settle().unwrap();
    drop(root);
    tell_forks(room, &id);
    id
}

fn tell_forks(room: &Room, id: &SessionId) {
    let mut a = room.thread(id, "a");
    a.reply(model("another way"), used(7, 3)).unwrap();
    a.say(calls(vec![call("e", "read", "{}")])).unwrap();
    a.fork(10, thread_id("b"), None).unwrap();
    a.fork(3, thread_id("c"), None).unwrap();
    a.fork(8, thread_id("idle"), None).unwrap();
    a.say(result("e", "a's")).unwrap();
    a.settle().unwrap();
    let mut b = room.thread(id, "b");
    b.say(result_with_output(room, id, "e", "b's", "b の出力".as_bytes())).unwrap();
    b.settle().unwrap();
    // Its calls were made in the root; its answers are its own.
    let mut c = room.thread(id, "c");
    c.say(result("a", "c's")).unwrap();
    c.settle().unwrap();
    room.thread(id, "idle").settle().unwrap();
}

/// Where a client's transcript stood.
fn mark() -> komado_core::journal::TranscriptMark {
    let groups = vec![[1, 1, 2].into(), [2, 1, 1].into()];
    komado_core::journal::TranscriptMark {
        from: 3,
        elements: 7,
        digest: "9f3a".into(),
        groups,
        inner: false,
        apart: false,
    }
}
