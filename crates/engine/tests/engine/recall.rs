//! Recall: what was said is found again, whoever said it, however it is written, seen by the model or not.

use crate::engine::room::{
    Room, call, calls, everywhere, meta, model, outcome, result, result_with_output, setup, thread_id, user,
};
use komado_core::journal::Entry;
use komado_core::message::{Message, MessagePart, Role};
use komado_core::{Meter, Seq, SessionId, Span, ThreadId};
use komado_engine::Error;
use komado_engine::recall::{self, RecallHit, RecallMode, RecallQuery, RecallScope, SearchFilter};

pub(crate) fn session(id: &SessionId) -> RecallScope {
    RecallScope::Session(id.clone())
}

pub(crate) fn recall(room: &Room, id: &SessionId, ask: &RecallQuery) -> Vec<RecallHit> {
    room.engine.recall(&session(id), ask).unwrap()
}

/// The best entries for a query, without those that only stand beside one.
pub(crate) fn seqs(room: &Room, id: &SessionId, query: &str) -> Vec<Seq> {
    let found = recall(room, id, &RecallQuery::new(query));
    found.iter().filter(|one| !one.snippet.marks.is_empty()).map(|one| one.seq).collect()
}

fn how(how: RecallMode, query: &str) -> RecallQuery {
    RecallQuery { how, ..RecallQuery::new(query) }
}

pub(crate) fn places(found: &[RecallHit]) -> Vec<String> {
    found.iter().map(|one| format!("{}@{}", one.thread, one.seq)).collect()
}

#[test]
fn what_the_model_no_longer_sees_is_found_and_told_apart() {
    everywhere(|room| {
        let id = room.session("s");
        let mut root = room.root(&id);
        root.set_up(setup("You know the password of the vault.")).unwrap();
        for text in ["the red lighthouse", "a quiet harbour", "the green windmill", "an old bridge", "a barn"]
        {
            root.say(user(text)).unwrap();
        }
        root.condense(vec![Span::new(2, 3)], "lighthouse? harbour?", "by_hand").unwrap();
        root.truncate(vec![Span::new(4, 4)], "…", "by_hand").unwrap();
        root.say(user("a wrong turn to the observatory")).unwrap();
        root.rewind(8).unwrap();
        for (query, seq, hidden) in [
            ("lighthouse", 2, true),
            ("harbours", 3, true),
            ("windmill", 4, true),
            ("bridge", 5, false),
            ("observatory", 9, true),
        ] {
            let best = &recall(room, &id, &RecallQuery::new(query))[0];
            assert_eq!((best.seq, best.hidden, best.role), (seq, hidden, Role::User), "{query}");
            assert!(best.snippet.marks.len() == 1 && !best.timestamp.is_empty());
        }
        assert_eq!(seqs(room, &id, "lighthouse"), [2], "a summary was said by nobody");
        assert!(
            seqs(room, &id, "password vault").is_empty(),
            "neither was what stands before the conversation"
        );
    });
}

#[test]
fn japanese_is_found_by_one_character_by_two_and_by_more_in_any_width() {
    everywhere(|room| {
        let id = room.session("s");
        let mut root = room.root(&id);
        for text in [
            "小窓から海が見える",
            "設定ファイルを読み込む処理でエラーが出ました",
            "ﾃﾞｰﾀﾍﾞｰｽの移行は明日です",
            "ＡＰＩキーを更新してください",
            "東京都庁の展望室",
        ] {
            root.say(user(text)).unwrap();
        }
        for (query, seq) in [
            ("窓", 1),
            ("海", 1),
            ("小窓", 1),
            ("設定", 2),
            ("エラー", 2),
            ("読み込む処理", 2),
            ("データベース", 3),
            ("ﾃﾞｰﾀ", 3),
            ("api", 4),
            ("ＡＰＩ", 4),
            ("更新", 4),
            ("京都庁", 5),
            ("展望室はどこ", 5),
            ("を", 4),
        ] {
            let found = recall(room, &id, &RecallQuery::new(query));
            assert_eq!(found[0].seq, seq, "{query}: {found:?}");
            assert!(!found[0].snippet.marks.is_empty(), "{query}");
        }
        assert!(seqs(room, &id, "猫").is_empty());
        assert_eq!(seqs(room, &id, "を").len(), 2);
    });
}

#[test]
fn words_are_found_in_other_forms_and_names_by_their_parts() {
    everywhere(|room| {
        let id = room.session("s");
        let mut root = room.root(&id);
        for text in [
            "We were running the migrations yesterday",
            "the function parse_config_file returns early",
            "call parseConfigFile twice",
            "look at crates/engine/src/redact.rs please",
            "she bought a café in Zürich",
        ] {
            root.say(user(text)).unwrap();
        }
        for (query, expected) in [
            ("run a migration", &[1][..]),
            ("parse_config_file", &[2, 3]),
            ("parseConfigFile", &[3, 2]),
            ("config file parsing", &[3, 2]),
            ("redact.rs", &[4]),
            ("engine/src", &[4]),
            ("crates/engine/src/redact.rs", &[4]),
            ("who buys CAFES in zurich", &[5]),
        ] {
            assert_eq!(seqs(room, &id, query), expected, "{query}");
        }
    });
}

/// A session with tools, files and two speakers.
fn workshop(room: &Room) -> SessionId {
    let id = room.session("s");
    let mut root = room.root(&id);
    root.say(user("please fix the timeout")).unwrap();
    let read = call("a", "read_file", r#"{"path":"src/net/client.rs"}"#);
    let run = call("b", "shell", r#"{"command":"cargo test -- timeout \u7a93 2>&1 | tee out.log"}"#);
    root.say(calls(vec![MessagePart::text("looking at the timeout"), read, run])).unwrap();
    root.say(result("a", "const TIMEOUT: u64 = 30;")).unwrap();
    root.say(Message::of(
        Role::Tool,
        vec![MessagePart::Result(outcome("b", Some("shell"), "timeout: 3 failed"))],
    ))
    .unwrap();
    root.say(model("the timeout was too short")).unwrap();
    id
}

#[test]
fn filters_keep_a_speaker_a_tool_a_file_and_a_time() {
    everywhere(|room| {
        let id = workshop(room);
        let time = |seq: Seq| Some(room.look(&id, "root").record(seq).unwrap().timestamp);
        let found = |filter: SearchFilter| {
            let mut found: Vec<Seq> =
                recall(room, &id, &RecallQuery { filter: filter.clone(), ..RecallQuery::new("timeout") })
                    .iter()
                    .map(|one| one.seq)
                    .collect();
            found.sort_unstable();
            for how in [RecallMode::Exact, RecallMode::Regex] {
                let ask = RecallQuery { filter: filter.clone(), how, ..RecallQuery::new("timeout") };
                assert!(recall(room, &id, &ask).iter().all(|one| found.contains(&one.seq)));
            }
            found
        };
        assert_eq!(found(SearchFilter::default()), [1, 2, 3, 4, 5]);
        assert_eq!(found(SearchFilter { role: Some(Role::Tool), ..SearchFilter::default() }), [3, 4]);
        assert_eq!(found(SearchFilter { tool: Some("shell".into()), ..SearchFilter::default() }), [2, 4]);
        assert_eq!(found(SearchFilter { file: Some("client.rs".into()), ..SearchFilter::default() }), [2, 3]);
        assert_eq!(found(SearchFilter { file: Some("src/net".into()), ..SearchFilter::default() }), [2, 3]);
        assert_eq!(found(SearchFilter { file: Some("out.log".into()), ..SearchFilter::default() }), [2, 4]);
        assert_eq!(found(SearchFilter { since: time(4), ..SearchFilter::default() }), [4, 5]);
        assert_eq!(found(SearchFilter { until: time(2), ..SearchFilter::default() }), [1, 2]);
        assert!(found(SearchFilter { tool: Some("none".into()), ..SearchFilter::default() }).is_empty());
        assert_eq!(seqs(room, &id, "窓"), [2], "arguments are read out of their JSON");
    });
}

#[test]
fn a_thread_finds_what_it_shares_and_a_session_finds_everything_once() {
    everywhere(|room| {
        let id = room.session("s");
        let mut root = room.root(&id);
        root.say(user("apple one")).unwrap();
        root.say(user("apple two")).unwrap();
        root.fork(1, thread_id("side"), None).unwrap();
        let mut side = room.thread(&id, "side");
        side.say(user("apple side two")).unwrap();
        side.say(user("apple side three")).unwrap();
        side.fork(2, thread_id("deep"), None).unwrap();
        room.thread(&id, "deep").say(user("apple deep three")).unwrap();
        let inside = |thread: &str, upto: Option<Seq>| {
            let scope = RecallScope::Thread { session: id.clone(), thread: thread_id(thread), upto };
            let mut places = Vec::new();
            for how in [RecallMode::Ranked, RecallMode::Exact] {
                let found =
                    room.engine.recall(&scope, &RecallQuery { how, ..RecallQuery::new("apple") }).unwrap();
                let mut these = self::places(&found);
                these.sort();
                assert!(places.is_empty() || places == these, "{how:?}");
                places = these;
            }
            places
        };
        assert_eq!(inside("root", None), ["root@1", "root@2"]);
        assert_eq!(inside("side", None), ["root@1", "side@2", "side@3"]);
        assert_eq!(inside("deep", None), ["deep@3", "root@1", "side@2"]);
        assert_eq!(inside("deep", Some(2)), ["root@1", "side@2"]);
        assert_eq!(inside("root", Some(1)), ["root@1"]);
        let mut all = places(&recall(room, &id, &RecallQuery::new("apple")));
        all.sort();
        assert_eq!(all, ["deep@3", "root@1", "root@2", "side@2", "side@3"]);
    });
}

#[test]
fn sessions_are_searched_together_and_their_scores_compare() {
    everywhere(|room| {
        let make = |name: &str, who: &str, texts: &[&str]| {
            let mut meta = meta(name, "2024-01-15T10:00:00.000000Z");
            meta.user = Some(who.into());
            let id = room.engine.create(&meta).unwrap();
            let mut root = room.root(&id);
            for text in texts {
                root.say(user(text)).unwrap();
            }
            id
        };
        // Common in the first, and so worth little there; over both it is worth the same.
        let talk = ["garden gate", "garden wall", "garden path"];
        let spread = |words: &[&'static str]| -> Vec<&'static str> {
            words.iter().flat_map(|word| [&[*word][..], &talk].concat()).collect()
        };
        make("a", "ann", &spread(&["kernel panic", "kernel boot", "kernel tree"]));
        make("b", "ben", &spread(&["kernel crash", "garden shed", "garden door"]));
        let found = |scope: &RecallScope, query: &str| -> Vec<(String, f32)> {
            let found = room.engine.recall(scope, &RecallQuery { k: 30, ..RecallQuery::new(query) }).unwrap();
            let is_before = |a: &RecallHit, b: &RecallHit| match (a.is_beside(), b.is_beside()) {
                (a_is, b_is) if a_is == b_is => a.score >= b.score,
                (a_is, _) => !a_is,
            };
            assert!(found.is_sorted_by(is_before), "what has a word first, then the best");
            found.iter().map(|one| (format!("{}@{}", one.session, one.seq), one.score)).collect()
        };
        let both = found(&RecallScope::All, "kernel");
        let score = |place: &str| both.iter().find(|(found, _)| found == place).unwrap().1;
        let ratio = score("a@1") / score("b@1");
        assert!((0.8..1.25).contains(&ratio), "{both:?}");
        assert_eq!(found(&RecallScope::All, "kernel panic")[0].0, "a@1");
        assert_eq!(found(&RecallScope::User("ben".into()), "kernel garden")[0].0, "b@1");
        assert!(found(&RecallScope::User("nobody".into()), "kernel").is_empty());
        let exact = room.engine.recall(&RecallScope::All, &how(RecallMode::Exact, "garden")).unwrap();
        assert_eq!((exact.len(), exact[0].session.as_str()), (10, "b"), "the last said comes first");
    });
}

#[test]
fn a_word_that_only_the_whole_output_holds_is_found_there() {
    everywhere(|room| {
        let id = room.session("s");
        let mut root = room.root(&id);
        root.say(calls(vec![call("a", "build", "{}"), call("b", "dump", "{}")])).unwrap();
        let mut log = "compiling a crate, nothing to see here\n".repeat(4000);
        log.insert_str(log.len() / 2 / 39 * 39, "error: flumph not found in 窓際 scope\n");
        root.say(result_with_output(room, &id, "a", "compiling…", log.as_bytes())).unwrap();
        let noise = [b"\0binary flumph ".as_slice(), &crate::engine::story::noise(50_000)].concat();
        root.say(result_with_output(room, &id, "b", "bytes", &noise)).unwrap();
        for query in ["flumph", "窓際", "error flumphs found"] {
            let found = recall(room, &id, &RecallQuery::new(query));
            assert!(found[0].seq == 2 && found[0].in_output, "{query}: {found:?}");
            assert!(found[0].snippet.text.contains("flumph not found in 窓際"), "{}", found[0].snippet.text);
            assert!(found[0].snippet.text.chars().count() <= 242);
        }
        for (way, query) in
            [(RecallMode::Exact, "flumph not found in"), (RecallMode::Regex, "^error: fl[a-z]+ ")]
        {
            let found = recall(room, &id, &how(way, query));
            assert_eq!(found.iter().map(|one| (one.seq, one.in_output)).collect::<Vec<_>>(), [(2, true)]);
            assert!(found[0].snippet.text.contains("error: flumph not found"), "{}", found[0].snippet.text);
        }
        assert!(recall(room, &id, &RecallQuery::new("compiling crate")).len() >= 2);
    });
}

#[test]
fn phrases_and_patterns_are_found_as_they_stand_the_last_first() {
    everywhere(|room| {
        let id = room.session("s");
        let mut root = room.root(&id);
        for text in [
            "open the small window now",
            "Open the small window",
            "small\nwindow",
            "窓を開けた。小窓",
            "ab12 cd",
        ] {
            root.say(user(text)).unwrap();
        }
        let found = |way: RecallMode, query: &str| -> Vec<Seq> {
            recall(room, &id, &how(way, query)).iter().map(|one| one.seq).collect()
        };
        assert_eq!(found(RecallMode::Exact, "the small window"), [2, 1]);
        assert_eq!(found(RecallMode::Exact, "open the small window"), [1]);
        assert_eq!(found(RecallMode::Exact, "n the small w"), [2, 1], "the ends may lie inside words");
        assert_eq!(found(RecallMode::Exact, "を開け"), [4]);
        assert_eq!(found(RecallMode::Exact, "窓"), [4]);
        assert_eq!(found(RecallMode::Exact, ".*"), [] as [Seq; 0]);
        assert_eq!(found(RecallMode::Regex, "(?i)^open"), [2, 1]);
        assert_eq!(found(RecallMode::Regex, r"[a-z]+\d+"), [5]);
        assert_eq!(found(RecallMode::Regex, "^window$"), [3]);
        let one = &recall(room, &id, &RecallQuery { k: 1, ..how(RecallMode::Exact, "small") })[0];
        assert_eq!((one.seq, &one.snippet.text[one.snippet.marks[0].clone()]), (3, "small"));
        let error = room.engine.recall(&session(&id), &how(RecallMode::Regex, "(")).unwrap_err();
        assert!(matches!(error, Error::BadPattern(_)), "{error}");
        for empty in ["", "  \n"] {
            let error = room.engine.recall(&session(&id), &RecallQuery::new(empty)).unwrap_err();
            assert_eq!(error.to_string(), "the query is empty; say what to look for");
        }
        root.say(user("to be or not to be")).unwrap();
        assert_eq!(
            seqs(room, &id, "to be or not to be"),
            [6],
            "words that carry nothing are looked for as they stand"
        );
    });
}

#[test]
fn whatever_stands_in_a_text_is_found_as_it_stands() {
    let room = Room::memory();
    let id = room.session("s");
    let ideographs: String = (0x4e00..0x5a00).filter_map(char::from_u32).collect();
    let kana = "ガラスの窓をｶﾞﾗｽに換えた か\u{3099} データ・ベース ".repeat(60);
    let code: String = (0..300)
        .map(|n| format!("fn parse_line_{n}(x: &str) -> Option<Vec{n}> {{ the_rest() }}\n"))
        .collect();
    let mut root = room.root(&id);
    for text in [&ideographs, &kana, &code] {
        root.say(user(text)).unwrap();
    }
    for (text, seq) in [(&ideographs, 1), (&kana, 2), (&code, 3)] {
        let chars: Vec<char> = text.chars().collect();
        for (start, len) in (0..chars.len() - 40).step_by(7).zip([1, 2, 3, 5, 8, 21, 34].into_iter().cycle())
        {
            let piece: String = chars[start..start + len].iter().collect();
            if !piece.trim().is_empty() {
                let found = recall(&room, &id, &how(RecallMode::Exact, &piece));
                assert!(found.iter().any(|one| one.seq == seq), "{piece:?} of @{seq}");
            }
        }
    }
}

#[test]
fn an_answer_without_a_word_of_the_question_stands_beside_it() {
    everywhere(|room| {
        let id = room.session("s");
        let mut root = room.root(&id);
        for n in 0..30 {
            root.say(user(&format!("small talk number {n}"))).unwrap();
        }
        root.say(user("When is your birthday?")).unwrap();
        root.say(model("On the fifth of June.")).unwrap();
        for n in 30..60 {
            root.say(user(&format!("small talk number {n}"))).unwrap();
        }
        let found = recall(room, &id, &RecallQuery::new("birthday"));
        assert_eq!(found.iter().take(2).map(|one| one.seq).collect::<Vec<_>>(), [31, 32]);
        assert!(found[1].snippet.marks.is_empty() && found[1].snippet.text == "On the fifth of June.");
        let only = SearchFilter { role: Some(Role::Assistant), ..SearchFilter::default() };
        assert!(recall(room, &id, &RecallQuery { filter: only, ..RecallQuery::new("birthday") }).is_empty());
        let told = recall(room, &id, &RecallQuery { neighbours: 2, k: 1, ..RecallQuery::new("birthday") });
        let around: Vec<Seq> = told[0].around.iter().map(|beside| beside.seq).collect();
        assert_eq!(around, [29, 30, 32, 33]);
        assert_eq!(told[0].around[2].snippet, "On the fifth of June.");
    });
}

#[test]
fn results_fit_the_budget_and_the_best_come_first() {
    everywhere(|room| {
        let id = room.session("s");
        let mut root = room.root(&id);
        for n in 0..40 {
            let text = format!("window {n} {}", "some more words about it ".repeat(n % 9 * 4));
            root.say(user(&text)).unwrap();
        }
        let meter = Meter::named("bytes4").unwrap();
        for budget in [0, 10, 40, 100, 400, 4000] {
            let ask =
                RecallQuery { k: 40, budget: Some(budget), neighbours: 1, ..RecallQuery::new("window") };
            let found = recall(room, &id, &ask);
            let used: u64 = found.iter().map(|one| meter.text(&one.line(&ThreadId::root()))).sum();
            assert!(used <= budget && (budget < 40 || used > budget / 2), "{used} of {budget}");
            assert!(found.is_sorted_by(|a, b| a.score >= b.score));
        }
        let all =
            recall(room, &id, &RecallQuery { k: 40, budget: Some(1_000_000), ..RecallQuery::new("window") });
        assert_eq!(all.len(), 40);
    });
}

#[test]
fn a_model_can_call_it_and_is_told_how_to_read_on() {
    everywhere(|room| {
        let id = workshop(room);
        let tool: serde_json::Value = serde_json::from_str(recall::TOOL).unwrap();
        assert_eq!(tool["function"]["name"], "recall");
        assert_eq!(tool["function"]["parameters"]["required"][0], "query");
        let call = |arguments: &str| {
            recall::call(&room.engine, &session(&id), (&ThreadId::root(), Seq::MAX), arguments).unwrap()
        };
        let text = call(r#"{"query":"timeout 30","tool":"read_file","k":1}"#);
        assert_eq!(
            text,
            "@3 tool (read_file): const TIMEOUT: u64 = 30;\nTo read one in full: tool_output_cache({\"ref_id\":\"@3\"})"
        );
        assert!(call(r#"{"query":"too short","mode":"exact"}"#).starts_with("@5 assistant: the timeout was"));
        assert!(call(r#"{"query":"no such thing at all: qqq"}"#).contains("Nothing was found"));
        for (wrong, told) in [
            ("{}", "missing field `query`"),
            ("[", "recall({\"query\":\"…\"})"),
            (r#"{"query":"x","mode":"fuzzy"}"#, "ranked, exact and regex"),
            (r#"{"query":"x","role":"boss"}"#, "system, developer, user, assistant, tool"),
            (r#"{"query":"(","mode":"regex"}"#, "not a pattern"),
            (r#"{"query":" "}"#, "the query is empty"),
        ] {
            assert!(call(wrong).contains(told), "{wrong}: {}", call(wrong));
        }
    });
}

#[test]
fn what_was_done_in_a_thread_and_what_it_told_another_are_found_under_it() {
    everywhere(|room| {
        let id = crate::engine::family::tell(room, "s");
        for (query, thread, is_chronicle) in
            [("lighthouse", "stelis_1_1", true), ("windmill turns", "stelis_1", false)]
        {
            for ask in [RecallQuery::new(query), how(RecallMode::Exact, query), how(RecallMode::Regex, query)]
            {
                let found = recall(room, &id, &ask);
                let best = &found[0];
                assert_eq!((best.thread.as_str(), best.role, best.hidden), (thread, Role::Assistant, true));
                assert!(best.snippet.text.contains(query), "{:?}", best.snippet);
                let entry = room.look(&id, thread).record(best.seq).unwrap().entry;
                assert_eq!(matches!(entry, Entry::Chronicle(_)), is_chronicle, "{entry:?}");
                assert!(is_chronicle || matches!(entry, Entry::Tell { .. }), "{entry:?}");
            }
        }
        let scope =
            |name: &str| RecallScope::Thread { session: id.clone(), thread: thread_id(name), upto: None };
        let in_thread =
            |name: &str| room.engine.recall(&scope(name), &how(RecallMode::Exact, "lighthouse")).unwrap();
        assert_eq!((in_thread("stelis_1_1").len(), in_thread("stelis_2").len()), (1, 0));
    });
}
