//! Saying things: what is journaled, what is refused, and what refusing leaves behind.

use crate::engine::room::{
    call, calls, check, everywhere, model, outcome, result, thread_id, used, user, words,
};
use komado_core::journal::{Entry, Reply};
use komado_core::message::{ImageSource, Message, MessagePart, Role};
use komado_engine::thread::INTERRUPTED;
use komado_engine::{Error, OnOpenCalls};
use komado_store::{Error as StoreError, OpenMode};

const PIXEL: &str =
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

#[test]
fn what_is_said_gets_a_number_its_tokens_and_a_place_in_the_view() {
    everywhere(|room| {
        let id = room.session("s");
        let mut root = room.root(&id);
        assert_eq!(root.say(user("12345678")).unwrap(), 1);
        assert_eq!(root.reply(model("1234"), used(10, 5)).unwrap(), 2);
        assert_eq!(root.say_all(vec![(user("a"), None), (model("b"), None)]).unwrap(), [3, 4]);
        assert!(root.say_all(vec![]).unwrap().is_empty());
        assert_eq!(root.record(1).unwrap().tokens, 2);
        assert_eq!(root.view().tokens(), 2 + 1 + 1 + 1);
        assert_eq!(words(&root), ["user: 12345678", "assistant: 1234", "user: a", "assistant: b"]);
        let Entry::Message(_, Some(reply)) = root.record(2).unwrap().entry else { panic!() };
        assert_eq!(reply.usage.unwrap().total(), 15);
        check(&root);
    });
}

#[test]
fn a_batch_is_one_append_and_nothing_shows_before_it_is_committed() {
    everywhere(|room| {
        let id = room.session("s");
        let mut root = room.root(&id);
        root.say(user("before")).unwrap();
        let mut batch = root.batch();
        assert!(batch.is_empty());
        assert_eq!(batch.say(calls(vec![call("c", "read", "{}")]), None).unwrap(), 2);
        assert_eq!(batch.say(result("c", "done"), None).unwrap(), 3);
        assert_eq!((batch.len(), batch.bytes() > 100), (2, true));
        let (said, work) = batch.finish();
        assert_eq!((said, root.last()), (vec![2, 3], 1));
        root.commit(work).unwrap();
        assert_eq!(root.last(), 3);
        check(&root);
    });
}

#[test]
fn work_that_another_overtook_is_refused() {
    everywhere(|room| {
        let id = room.session("s");
        let mut root = room.root(&id);
        let mut batch = root.batch();
        batch.say(user("late"), None).unwrap();
        let (_, work) = batch.finish();
        root.say(user("early")).unwrap();
        let error = root.commit(work).unwrap_err();
        assert!(matches!(error, Error::Store(StoreError::Moved { expected: 0, found: 1 })), "{error}");
        assert_eq!(words(&root), ["user: early"]);
        check(&root);
    });
}

#[test]
fn a_refused_message_leaves_the_batch_and_the_thread_as_they_were() {
    everywhere(|room| {
        let id = room.session("s");
        let mut root = room.root(&id);
        root.say(calls(vec![call("c1", "read", "{}"), call("c2", "read", "{}")])).unwrap();
        let before = words(&root);
        let twins = || calls(vec![call("x", "read", "{}"), call("x", "read", "{}")]);

        let mut batch = root.batch();
        batch.say(result("c1", "one"), None).unwrap();
        let bytes = batch.bytes();
        // The user would have interrupted c2; as the message is refused, nothing is interrupted.
        for bad in
            [twins(), Message::of(Role::User, vec![]), Message::of(Role::User, vec![call("y", "f", "{}")])]
        {
            batch.say(bad, None).unwrap_err();
            assert_eq!((batch.len(), batch.bytes()), (1, bytes));
        }
        batch.say(result("nobody", "x"), None).unwrap_err();
        assert_eq!(batch.say(result("c2", "two"), None).unwrap(), 3);
        drop(batch);

        root.say(twins()).unwrap_err();
        root.say_all(vec![(result("c1", "one"), None), (twins(), None)]).unwrap_err();
        assert_eq!((words(&root), root.last()), (before, 1));
        root.say(result("c2", "later")).unwrap();
        check(&root);
    });
}

#[test]
fn who_speaks_while_calls_wait_interrupts_them_with_explicit_results() {
    everywhere(|room| {
        let id = room.session("s");
        let mut root = room.root(&id);
        root.say(calls(vec![call("a", "read", "{}"), call("b", "grep", "{}"), call("c", "ls", "{}")]))
            .unwrap();
        root.say(result("b", "found")).unwrap();
        assert_eq!(root.say(user("stop that")).unwrap(), 5);
        for (seq, call_id, name) in [(3, "a", "read"), (4, "c", "ls")] {
            let Entry::Message(message, None) = root.record(seq).unwrap().entry else { panic!() };
            let result = message.outcome().unwrap();
            assert_eq!((result.call_id.as_str(), result.name.as_deref()), (call_id, Some(name)));
            assert!(result.interrupted && result.is_error);
            assert_eq!(message.words(), INTERRUPTED);
        }
        assert_eq!(words(&root).last().unwrap(), "user: stop that");
        check(&root);
    });
}

#[test]
fn whoever_asks_for_it_gets_a_refusal_instead_of_an_interruption() {
    everywhere(|room| {
        let id = room.session("s");
        let mut root = room.root(&id).on_open_calls(OnOpenCalls::Refuse);
        root.say(user("go")).unwrap();
        root.say(calls(vec![call("a", "read", "{}")])).unwrap();
        let why = root.say(user("and?")).unwrap_err().to_string();
        assert!(why.contains("a (read)") && why.contains("rewind to @1"), "{why}");
        assert_eq!(root.last(), 2);
        root.say(result("a", "ok")).unwrap();
        root.say(user("and?")).unwrap();
        check(&root);
    });
}

#[test]
fn calls_without_an_id_get_one_and_results_find_them_by_tool() {
    everywhere(|room| {
        let id = room.session("s");
        let mut root = room.root(&id);
        let by_tool = |name: Option<&str>, text: &str| {
            Message::of(Role::Tool, vec![MessagePart::Result(outcome("", name, text))])
        };
        root.say(calls(vec![
            MessagePart::text("look"),
            call("", "read", "1"),
            call("", "read", "2"),
            call("", "ls", "3"),
        ]))
        .unwrap();
        root.say(by_tool(Some("ls"), "three")).unwrap();
        let why = root.say(by_tool(None, "?")).unwrap_err().to_string();
        assert!(why.contains("2 calls wait") && why.contains("tool_call_id"), "{why}");
        root.say(by_tool(Some("read"), "one")).unwrap();
        root.say(by_tool(None, "two")).unwrap();
        assert_eq!(
            words(&root),
            [
                "assistant: look read(1)#call_1_1 read(2)#call_1_2 ls(3)#call_1_3",
                "tool #call_1_3: three",
                "tool #call_1_1: one",
                "tool #call_1_2: two",
            ]
        );
        let Entry::Message(last, _) = root.record(4).unwrap().entry else { panic!() };
        assert_eq!(last.outcome().unwrap().name.as_deref(), Some("read"));
        let why = root.say(by_tool(Some("read"), "more")).unwrap_err().to_string();
        assert!(why.contains("no call waits"), "{why}");
        // A second result for one call is kept, and shown in the place of the first.
        root.say(result("call_1_1", "again")).unwrap();
        assert_eq!(words(&root)[2], "tool #call_1_1: again");
        check(&root);
    });
}

fn picture(url: &str) -> Message {
    let image =
        MessagePart::Image { source: ImageSource::Url { url: url.into() }, detail: Some("low".into()) };
    Message::of(Role::User, vec![MessagePart::text("見て"), image])
}

fn kept_url(message: &Message) -> Option<&str> {
    message.parts.iter().find_map(|part| match part {
        MessagePart::Image { source: ImageSource::Url { url }, .. } => Some(url.as_str()),
        _ => None,
    })
}

#[test]
fn a_picture_goes_to_a_blob_and_comes_back_as_the_very_same_url() {
    let room = crate::engine::room::Room::files();
    let id = room.session("s");
    let mut root = room.root(&id);
    let urls = [
        format!("data:image/png;base64,{PIXEL}"),
        "data:image/png;charset=x;base64,AAEC".to_owned(),
        "data:;base64,".to_owned(),
        // None of these would come back as it came, so each stays where it is.
        "data:image/png;base64,AAF=".to_owned(),
        "data:image/png;base64,AAEC\n".to_owned(),
        "data:image/png;base64,AA".to_owned(),
        "data:image/\"png\";base64,AAEC".to_owned(),
        "data:text/plain,hello".to_owned(),
        "https://example.org/x.png".to_owned(),
    ];
    for url in &urls {
        root.say(picture(url)).unwrap();
    }
    root.settle().unwrap();
    for (url, seq) in urls.iter().zip(1..) {
        let Entry::Message(message, _) = root.record(seq).unwrap().entry else { panic!() };
        assert_eq!(kept_url(&message), (seq > 3).then_some(url.as_str()), "{url:?}");
    }
    let current = std::fs::read_to_string(room.folder(&id).join("current.jsonl")).unwrap();
    let back: Vec<String> = current
        .lines()
        .map(|line| kept_url(&komado_core::openai::read(line).unwrap()).unwrap().to_owned())
        .collect();
    assert_eq!(back, urls);
    assert_eq!(room.engine.named_blobs(&id).unwrap().len(), 3);
    assert!(!std::fs::read_to_string(room.folder(&id).join("messages.jsonl")).unwrap().contains(PIXEL));
    check(&root);
}

#[test]
fn a_reader_sees_what_was_there_and_may_not_write() {
    everywhere(|room| {
        let id = room.session("s");
        let mut root = room.root(&id);
        root.say(user("one")).unwrap();
        let mut reader = room.look(&id, "root");
        root.say(user("two")).unwrap();
        assert_eq!(words(&reader), ["user: one"]);
        let error = reader.say(user("mine")).unwrap_err();
        assert!(matches!(error, Error::Store(StoreError::ReadOnly | StoreError::Moved { .. })), "{error}");
        assert_eq!(words(&reader), ["user: one"]);
        let twice = room.engine.open(&id, &thread_id("root"), OpenMode::Write).err().unwrap();
        assert!(matches!(twice, Error::Store(StoreError::Busy { .. })), "{twice}");
    });
}

#[test]
fn a_reply_is_only_the_models() {
    everywhere(|room| {
        let id = room.session("s");
        let mut root = room.root(&id);
        root.reply(user("I am no model"), Reply::default()).unwrap_err();
        assert_eq!(root.last(), 0);
    });
}
