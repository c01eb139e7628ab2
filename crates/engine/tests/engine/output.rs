//! Long outputs: what is shown of them, where the rest is, and how it is read.

use crate::engine::room::{Room, call, calls, everywhere, outcome, result, result_with_output, user};
use komado_core::clip::ClipLimits;
use komado_core::journal::Entry;
use komado_core::message::{ImageSource, Message, MessagePart, Opaque, Role, ToolOutcome};
use komado_core::raw::RawJson;
use komado_core::{Seq, SessionId, ThreadId};
use komado_engine::Thread;
use komado_engine::cleanup::CleanupMode;
use komado_engine::output::{self, Error, OutputReference, ToolOutput, open};
use std::io::Read;

fn log(lines: usize) -> String {
    (1..=lines).map(|n| format!("{n}: 小窓 looks at a line\n")).collect()
}

fn ask(room: &Room, id: &SessionId) {
    room.root(id).say(calls(vec![call("a", "run", "{}")])).unwrap();
}

fn tool(thread: &Thread<'_>, seq: Seq) -> ToolOutcome {
    let Entry::Message(message, _) = thread.record(seq).unwrap().entry else { panic!("no message") };
    message.outcome().unwrap().clone()
}

fn shown(outcome: &ToolOutcome) -> String {
    Message::of(Role::Tool, vec![MessagePart::Result(outcome.clone())]).words()
}

fn whole(thread: &Thread<'_>, reference: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    open(thread, &reference.parse().unwrap()).unwrap().read_to_end(&mut bytes).unwrap();
    bytes
}

/// The call that the last line of a text names, made.
fn follow(thread: &Thread<'_>, text: &str) -> String {
    let last = text.rsplit('\n').next().unwrap();
    let made = last.rsplit("read on with ").next().unwrap().trim_end_matches(']');
    let (name, arguments) = made.split_once('(').unwrap();
    output::call(thread, name, arguments.strip_suffix(')').unwrap()).unwrap()
}

#[test]
fn a_long_output_goes_to_a_blob_and_its_view_ends_with_a_call_that_works() {
    everywhere(|room| {
        let id = room.session("s");
        ask(room, &id);
        let mut root = room.root(&id);
        let text = log(5000);
        let seq = root.say(result("a", &text)).unwrap();
        let outcome = tool(&root, seq);
        let output = outcome.output_ref.clone().unwrap();
        assert_eq!((output.byte_size, output.line_count), (Some(text.len() as u64), Some(5000)));
        let view = shown(&outcome);
        assert!(view.len() <= 50 * 1024 && view.starts_with("1: 小窓"), "{}", view.len());
        assert!(view.contains("\n5000: 小窓 looks at a line\n["));
        assert_eq!(whole(&root, &output.id), text.as_bytes());
        assert_eq!(whole(&root, &format!("@{seq}")), text.as_bytes());
        // From the view on, call by call, nothing is passed over.
        let first = view.lines().position(|line| line.starts_with('[')).unwrap();
        let mut due = first as u64 + 1;
        let mut page = follow(&root, &view);
        loop {
            for line in page.lines().filter(|line| !line.starts_with('[')) {
                assert_eq!(line, format!("{due:>6}\t{due}: 小窓 looks at a line"));
                due += 1;
            }
            assert!(page.len() <= 50 * 1024);
            if page.ends_with(", the end]") {
                break;
            }
            page = follow(&root, &page);
        }
        assert_eq!(due, 5001);
    });
}

#[test]
fn what_fits_does_not_change_in_any_byte() {
    everywhere(|room| {
        let id = room.session("s");
        for text in
            ["", "short", "two\r\nlines\n", &"x".repeat(2000), &format!("{}\n", "y".repeat(1023)).repeat(50)]
        {
            ask(room, &id);
            let mut root = room.root(&id);
            let seq = root.say(result("a", text)).unwrap();
            let said = tool(&root, seq);
            assert_eq!(said, ToolOutcome { name: Some("run".into()), ..outcome("a", None, text) });
        }
        assert!(room.engine.named_blobs(&id).unwrap().is_empty());
        assert_eq!(room.engine.sweep(&id, CleanupMode::Dry).unwrap().blobs, 0);
    });
}

#[test]
fn an_output_is_kept_once_and_named_by_its_digest() {
    everywhere(|room| {
        let id = room.session("s");
        let text = log(4000);
        let mut refs = Vec::new();
        for turn in 0..3 {
            ask(room, &id);
            let mut root = room.root(&id);
            let seq = if turn == 2 {
                let output = ToolOutput { call_id: "a".into(), ..ToolOutput::default() };
                root.say_output(&output, &mut text.as_bytes()).unwrap()
            } else {
                root.say(result("a", &text)).unwrap()
            };
            refs.push((tool(&root, seq).output_ref.unwrap(), shown(&tool(&root, seq))));
        }
        assert_eq!(refs[0], refs[1]);
        assert_eq!(refs[0], refs[2], "by whichever door it came");
        let digest = blake3::hash(text.as_bytes()).to_hex();
        assert_eq!(refs[0].0.id, digest[..32]);
        assert_eq!(room.engine.named_blobs(&id).unwrap().len(), 1);
        if room.files.is_some() {
            let outputs = std::fs::read_dir(room.folder(&id).join("outputs")).unwrap();
            assert_eq!(outputs.count(), 1);
        }
    });
}

#[test]
fn pictures_and_other_parts_stay_where_they_are() {
    everywhere(|room| {
        let id = room.session("s");
        ask(room, &id);
        let mut root = room.root(&id);
        let picture =
            MessagePart::Image { source: ImageSource::Url { url: "https://x/y.png".into() }, detail: None };
        let odd = MessagePart::Opaque(Opaque {
            dialect: "openai".into(),
            json: RawJson::parse("{\"type\":\"odd\"}").unwrap(),
        });
        let content =
            vec![picture.clone(), MessagePart::text(log(3000)), odd.clone(), MessagePart::text("the end")];
        let seq = root
            .say(Message::of(
                Role::Tool,
                vec![MessagePart::Result(ToolOutcome { content, ..outcome("a", None, "") })],
            ))
            .unwrap();
        let said = tool(&root, seq);
        assert_eq!(said.content.len(), 3);
        assert_eq!((&said.content[0], &said.content[2]), (&picture, &odd));
        let MessagePart::Text { text, .. } = &said.content[1] else { panic!("no text") };
        assert!(text.contains("\nthe end\n["), "both texts are in the view");
        let kept = whole(&root, &said.output_ref.unwrap().id);
        assert_eq!(kept, format!("{}\nthe end", log(3000)).as_bytes());
    });
}

#[test]
fn an_output_that_is_named_already_and_one_that_is_not_to_be_clipped_stay() {
    everywhere(|room| {
        let id = room.session("s");
        ask(room, &id);
        let long = log(5000);
        let mut root = room.root(&id);
        let seq = root.say(result_with_output(room, &id, "a", &long, b"elsewhere")).unwrap();
        assert_eq!(shown(&tool(&root, seq)), long);
        drop(root);
        ask(room, &id);
        let mut root = room.root(&id).clipping(None);
        let seq = root.say(result("a", &long)).unwrap();
        assert_eq!((shown(&tool(&root, seq)), tool(&root, seq).output_ref), (long, None));
    });
}

#[test]
fn what_a_reading_tool_gives_is_not_cut_again() {
    everywhere(|room| {
        let id = room.session("s");
        ask(room, &id);
        let mut root = room.root(&id);
        let seq = root.say(result("a", &"窓".repeat(60_000))).unwrap();
        let arguments = format!(r#"{{"ref_id":"@{seq}","line_number":1,"char_limit":9000}}"#);
        let read = output::call(&root, "tool_output_cache_line", &arguments).unwrap();
        assert!(read.starts_with(&"窓".repeat(9000)));
        root.say(calls(vec![call("b", "tool_output_cache_line", &arguments)])).unwrap();
        let seq = root.say(result("b", &read)).unwrap();
        assert_eq!((shown(&tool(&root, seq)), tool(&root, seq).output_ref), (read, None));
    });
}

#[test]
fn an_output_streams_in_by_its_own_door() {
    everywhere(|room| {
        let id = room.session("s");
        for (bytes, kept) in [
            (b"all of it\n".to_vec(), false),
            (Vec::new(), false),
            (log(9000).into_bytes(), true),
            (b"not \xff UTF-8\n".to_vec(), true),
            ("窓".repeat(30_000).into_bytes(), true),
        ] {
            ask(room, &id);
            let mut root = room.root(&id);
            let output = ToolOutput { is_error: true, duration_ms: Some(7), ..ToolOutput::default() };
            // A reader that gives a byte here and seven there changes nothing.
            let seq = root.say_output(&output, &mut Dribble(&bytes, 0)).unwrap();
            let said = tool(&root, seq);
            assert_eq!((said.call_id.as_str(), said.name.as_deref()), ("a", Some("run")));
            assert_eq!((said.is_error, said.duration_ms), (true, Some(7)));
            assert_eq!(said.output_ref.is_some(), kept);
            assert_eq!(whole(&root, &format!("@{seq}")), bytes);
            if !kept {
                assert_eq!(shown(&said).as_bytes(), bytes);
            }
        }
        let mut root = room.root(&id);
        assert!(root.say_output(&ToolOutput::default(), &mut log(9001).as_bytes()).is_err(), "no call waits");
        assert_eq!(
            room.engine.sweep(&id, CleanupMode::Dry).unwrap().blobs,
            0,
            "a refusal leaves nothing behind"
        );
    });
}

/// Gives its bytes in uneven pieces.
struct Dribble<'b>(&'b [u8], usize);

impl Read for Dribble<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        self.1 += 1;
        let n = [1, 7, 4096][self.1 % 3].min(buffer.len()).min(self.0.len());
        buffer[..n].copy_from_slice(&self.0[..n]);
        self.0 = &self.0[n..];
        Ok(n)
    }
}

#[test]
fn a_reference_survives_export_and_import_and_clean_up() {
    everywhere(|room| {
        let id = room.session("s");
        ask(room, &id);
        let text = log(5000);
        let seq = room.root(&id).say(result("a", &text)).unwrap();
        room.root(&id).rewind(0).unwrap();
        assert_eq!(room.engine.sweep(&id, CleanupMode::Real).unwrap().blobs, 0, "the journal still names it");
        let mut export = Vec::new();
        room.engine.export(&id, &mut export, |_| {}).unwrap();
        let other = Room::memory();
        let copy = other.engine.import(&mut &export[..], None, |_| {}).unwrap();
        let thread = other.look(&copy, "root");
        let output = tool(&thread, seq).output_ref.unwrap();
        assert_eq!(whole(&thread, &output.id), text.as_bytes());
        other.engine.complete(&copy, None).unwrap();
        other.engine.cleanup("2000-01-01T00:00:00Z", CleanupMode::Real, |_| {}).unwrap();
        assert_eq!(whole(&other.look(&copy, "root"), &format!("@{seq}")), text.as_bytes());
    });
}

#[test]
fn an_entry_is_read_by_its_number_whoever_spoke() {
    everywhere(|room| {
        let id = room.session("s");
        let mut root = room.root(&id);
        root.say(user("one\ntwo\nthree")).unwrap();
        root.pin(1).unwrap();
        let read = |arguments: &str| output::call(&root, "tool_output_cache", arguments);
        assert_eq!(
            read(r#"{"ref_id":"@1"}"#).unwrap(),
            "     1\tone\n     2\ttwo\n     3\tthree\n[lines 1 to 3, the end]"
        );
        assert_eq!(
            read(r#"{"ref_id":"@1","offset":"2","limit":1.0,"why":"because"}"#).unwrap(),
            "     2\ttwo\n[line 2; read on with tool_output_cache({\"ref_id\":\"@1\",\"offset\":3,\"limit\":1})]"
        );
        let wrong = |arguments: &str| read(arguments).unwrap_err().to_string();
        assert!(wrong(r#"{"ref_id":"@2"}"#).contains("@2 is a pin"));
        assert!(wrong(r#"{"ref_id":"@9"}"#).contains("has 2 entries; @9 is not there"));
        assert!(wrong(r#"{"ref_id":"@1","offset":4}"#).contains("no line 4: the output has 3 lines"));
        assert!(wrong(r#"{"ref_id":"@1","offset":0}"#).contains("lines count from 1"));
        assert!(wrong(r#"{"ref_id":"@1","limit":0}"#).contains("limit is 0"));
        assert!(wrong(r#"{"ref_id":"0123"}"#).contains("no output \"0123\""));
        assert!(wrong(r#"{"ref_id":"../../etc/passwd"}"#).contains("no output"));
        assert!(wrong(r#"{"ref_id":""}"#).contains("names no output"));
        assert!(wrong(r#"{}"#).contains("ref_id is missing"));
        assert!(wrong(r#"{"ref_id":7}"#).contains("ref_id must be a text, not 7"));
        assert!(wrong(r#"{"ref_id":"@1","offset":"soon"}"#).contains("offset must be a whole number"));
        assert!(wrong(r#"{"ref_id":"@1","offset":-3}"#).contains("not -3"));
        assert!(wrong("[]").contains("no JSON object"));
        assert!(wrong("{").contains("no JSON"));
        assert_eq!(read(r#"{"ref_id":"root@1"}"#).unwrap(), read(r#"{"ref_id":"@1"}"#).unwrap());
        assert!(wrong(r#"{"ref_id":"nobody@1"}"#).contains("nobody"));
        assert!(wrong(r#"{"ref_id":"root@x"}"#).contains("names no output"));
        root.fork(1, ThreadId::new("other").unwrap(), None).unwrap();
        let other = room.look(&id, "other");
        let from_other =
            output::call(&other, "tool_output_cache", r#"{"ref_id":"root@1","limit":1}"#).unwrap();
        assert!(from_other.contains("one") && from_other.contains("root@1"), "{from_other}");
        let none = output::call(&root, "bash", "{}").unwrap_err();
        assert!(matches!(none, Error::NoTool { .. }), "{none}");
    });
}

#[test]
fn limits_of_a_thread_hold_for_what_is_read_there() {
    let room = Room::memory();
    let id = room.session("s");
    ask(&room, &id);
    for bytes in [300, 700, 1024, 4096] {
        let limits = ClipLimits { max_message_bytes: bytes, max_line_length: 80 };
        let mut root = room.root(&id).clipping(Some(limits));
        let text = format!("{}\n{}", "長".repeat(9000), log(900));
        let seq = root.say(result("a", &text)).unwrap();
        assert!(shown(&tool(&root, seq)).len() <= bytes);
        for (name, more) in [
            ("tool_output_cache", ""),
            ("tool_output_cache", r#","offset":2"#),
            ("tool_output_cache_line", r#","line_number":1"#),
            ("tool_output_cache_line", r#","line_number":1,"char_limit":99999"#),
            ("tool_output_cache_grep", r#","pattern":"小窓""#),
            ("tool_output_cache_grep", r#","pattern":"小窓","before":9,"after":9,"offset":2"#),
            ("tool_output_cache_grep", r#","pattern":"長長""#),
        ] {
            let mut text = output::call(&root, name, &format!(r#"{{"ref_id":"@{seq}"{more}}}"#)).unwrap();
            for _ in 0..5 {
                assert!(text.len() <= bytes, "{bytes} {name} {more}: {} {text}", text.len());
                assert!(text.contains('長') || text.contains("小窓"), "{bytes} {name} {more}: {text}");
                text = follow(&root, &text);
            }
        }
        root.say(calls(vec![call("a", "run", "{}")])).unwrap();
    }
}

#[test]
fn the_definitions_are_what_the_tools_take() {
    let tools: serde_json::Value = serde_json::from_str(output::DEFINITIONS).unwrap();
    let names: Vec<&str> =
        tools.as_array().unwrap().iter().map(|t| t["function"]["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["tool_output_cache", "tool_output_cache_grep", "tool_output_cache_line"]);
    for tool in tools.as_array().unwrap() {
        assert_eq!(tool["type"], "function");
        let parameters = &tool["function"]["parameters"];
        let properties = parameters["properties"].as_object().unwrap();
        // Every argument is known: a wrong one is refused by its name.
        for (name, property) in properties {
            let mut arguments = serde_json::json!({ "ref_id": "@1", "pattern": "x", "line_number": 1 });
            arguments[name] = serde_json::json!([]);
            let error =
                output::OutputCall::parse(tool["function"]["name"].as_str().unwrap(), &arguments.to_string());
            assert!(error.unwrap_err().to_string().contains(&format!("{name} must be")), "{name} {property}");
        }
        for needed in parameters["required"].as_array().unwrap() {
            assert!(properties.contains_key(needed.as_str().unwrap()));
        }
    }
    assert_eq!("@12".parse::<OutputReference>().unwrap().to_string(), "@12");
}
