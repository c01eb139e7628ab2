//! A stream that is cut, wherever that is: what came is kept, and the session goes on.

use super::kit::{Talk, journaled};
use komado_core::journal::Entry;
use komado_core::message::{Message, Role};
use komado_provider::Dialect;
use komado_provider::scripted::{ScriptStep, ScriptedOptions, ScriptedReply, ToolCall};

/// Words, a thought and two calls: everything a stream can be cut in.
fn step() -> ScriptStep {
    let call =
        |name: &str| ToolCall { id: None, name: name.into(), arguments: "{\"path\":\"窓.txt\"}".into() };
    ScriptStep {
        reply: ScriptedReply {
            text: "小窓を開けます。One moment.".into(),
            reasoning: Some("Let me think.".into()),
            signature: Some("c2VhbA==".into()),
            calls: vec![call("read"), call("list")],
        },
        chunk: Some(5),
        ..ScriptStep::default()
    }
}

/// How long the whole answer is.
fn length(dialect: Dialect) -> u64 {
    let talk = Talk::new(dialect, 16_384, ScriptedOptions::default());
    let client = &talk.asking.client;
    talk.server.add(step());
    let body = format!(
        r#"{{"model":"m","stream":true,"max_tokens":99,"{}":[{{"role":"user","content":"x"}}],"tools":{}}}"#,
        if dialect == Dialect::Responses { "input" } else { "messages" },
        tools(dialect)
    );
    let body = komado_provider::ClientBody::Bytes(body.into_bytes().into());
    let mut incoming = client.post(&talk.asking.provider, body, &talk.asking.cancel, &mut |_| {}).unwrap();
    assert_eq!(incoming.status, 200);
    let mut bytes = 0;
    while let Some(chunk) = incoming.chunk().unwrap() {
        bytes += chunk.len() as u64;
    }
    bytes
}

fn tools(dialect: Dialect) -> &'static str {
    match dialect {
        Dialect::Messages => {
            r#"[{"name":"read","input_schema":{"type":"object"}},{"name":"list","input_schema":{"type":"object"}}]"#
        }
        Dialect::Responses => {
            r#"[{"type":"function","name":"read","parameters":{}},{"type":"function","name":"list","parameters":{}}]"#
        }
        _ => {
            r#"[{"type":"function","function":{"name":"read","parameters":{}}},{"type":"function","function":{"name":"list","parameters":{}}}]"#
        }
    }
}

/// Cuts the answer after `cut` bytes; gives true when it was whole all the same.
fn cut_after(talk: &Talk, thread: &mut komado_engine::Thread<'_>, cut: u64) -> bool {
    talk.server.add(ScriptStep { break_after: Some(cut), ..step() });
    thread.say(Message::text(Role::User, format!("cut {cut}"))).unwrap();
    let before = journaled(thread).len();
    let (turned, told) = talk.turn(thread);
    match turned {
        Ok(_) => true,
        Err(error) => {
            let last = thread.record(thread.last()).unwrap().entry;
            let Entry::Lost(reply) = last else { panic!("after {cut} bytes: {error}: {last:?}") };
            assert_eq!(reply.finish, "lost", "{cut}: {error}");
            assert_eq!(journaled(thread).len(), before, "half an answer is not a message");
            let heard = reply.heard.unwrap_or_default();
            assert!(heard.contains(&told.said), "{cut}: {heard:?} lacks {:?}", told.said);
            false
        }
    }
}

fn a_cut_anywhere_is_a_lost_reply(dialect: Dialect) {
    let length = length(dialect);
    let talk = Talk::new(dialect, 1 << 20, ScriptedOptions::default());
    let mut thread = talk.thread();
    let mut setup = super::kit::setup();
    setup.tools = Some(komado_core::raw::RawJson::parse(tools(dialect)).unwrap());
    setup.dialect = Some(dialect.name().into());
    thread.set_up(setup).unwrap();
    // Every byte of a stream is decoded in the tests of the dialects; here every few, over a real connection.
    let mut lost = 0;
    for cut in (0..length).step_by(97) {
        lost += usize::from(!cut_after(&talk, &mut thread, cut));
        talk.server.add(ScriptStep::say("going on"));
        let (turned, _) = talk.ask(&mut thread, "go on");
        assert_eq!(turned.message.words(), "going on", "{dialect:?} after a cut at {cut}");
    }
    assert!(lost > 10, "{dialect:?}: {lost} of {length} bytes");
}

#[test]
fn a_chat_stream_cut_anywhere_is_a_lost_reply_and_the_session_goes_on() {
    a_cut_anywhere_is_a_lost_reply(Dialect::Chat);
}

#[test]
fn so_is_one_of_responses() {
    a_cut_anywhere_is_a_lost_reply(Dialect::Responses);
}

#[test]
fn so_is_one_of_messages() {
    a_cut_anywhere_is_a_lost_reply(Dialect::Messages);
}

#[test]
fn so_is_one_of_ollama() {
    a_cut_anywhere_is_a_lost_reply(Dialect::Ollama);
}

#[test]
fn a_turn_that_is_cancelled_keeps_what_came() {
    let talk = Talk::new(Dialect::Chat, 16_384, ScriptedOptions::default());
    let mut thread = talk.thread();
    let slow =
        ScriptStep { chunk: Some(1), chunk_delay_ms: 20, ..ScriptStep::say("あいうえお".repeat(200)) };
    talk.server.add(slow);
    thread.say(Message::text(Role::User, "slowly, please")).unwrap();
    let cancel = talk.asking.cancel.clone();
    let mut by = komado_engine::condense::ByDigest::new(thread.meter());
    let settings = komado_engine::condense::CondenseSettings::default();
    let mut ladder = komado_engine::fit::Ladder { budget: talk.budget(), settings, by: &mut by };
    let turned = thread.turn(&talk.asking, &mut ladder, &mut |news| {
        if matches!(news, komado_engine::exchange::ExchangeEvent::Said(_)) {
            cancel.cancel();
        }
    });
    assert!(turned.is_err());
    let Entry::Lost(reply) = thread.record(thread.last()).unwrap().entry else { panic!() };
    assert_eq!(reply.finish, "cancelled");
    assert!(reply.heard.unwrap().starts_with('あ'));
}

#[test]
fn a_request_that_a_crash_left_behind_is_given_up_before_the_next() {
    let talk = Talk::new(Dialect::Chat, 16_384, ScriptedOptions::default());
    let mut thread = talk.thread();
    thread.say(Message::text(Role::User, "hello")).unwrap();
    let sent = komado_core::journal::Sent {
        digest: "d".into(),
        model: "m".into(),
        context_tokens: 9,
        purpose: None,
        mark: None,
    };
    let sent = thread.append(Entry::Sent(sent)).unwrap();
    drop(thread);
    let mut thread = talk.thread();
    talk.ask(&mut thread, "still there?");
    let lost: Vec<_> = (1..=thread.last())
        .filter_map(|seq| match thread.record(seq).unwrap().entry {
            Entry::Lost(reply) => Some((reply.to, reply.finish)),
            _ => None,
        })
        .collect();
    assert_eq!(lost, [(Some(sent), "lost".to_owned())]);
    talk.ask(&mut thread, "and now?");
    assert_eq!(journaled(&thread).len(), 5);
}

#[test]
fn a_request_is_kept_when_it_failed_and_removed_when_it_was_answered() {
    let folder = tempfile::tempdir().unwrap();
    let holder =
        komado_store::Holder { pid: 1, host: "here".into(), program: "test".into(), since: "now".into() };
    let store = std::sync::Arc::new(komado_store::FileStore::new(folder.path(), holder));
    let talk = Talk::on(store, Dialect::Chat, 16_384, ScriptedOptions::default());
    let mut thread = talk.thread();
    let path = folder.path().join("running/s/request.json");
    talk.server.add(ScriptStep::fail(400, Some("no")));
    thread.say(Message::text(Role::User, "窓")).unwrap();
    assert!(talk.turn(&mut thread).0.is_err());
    let kept = std::fs::read(&path).unwrap();
    assert_eq!(kept, talk.server.seen()[0].body, "as it was sent");
    let Entry::Sent(sent) = thread.record(2).unwrap().entry else { panic!() };
    assert_eq!(sent.digest, blake3::hash(&kept).to_hex().to_string());
    assert!(talk.turn(&mut thread).0.is_ok());
    assert!(!path.exists());
}
