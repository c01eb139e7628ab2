//! Several children of one parent, and what they tell each other.

use super::{session, shown, start};
use crate::thread::run::Place;
use komado_provider::scripted::{ScriptStep, ScriptedOptions, ScriptedServer};
use serde_json::json;

#[test]
fn words_told_are_heard_once_before_the_next_request_and_named_by_their_sender() {
    let place = Place::new();
    let server =
        ScriptedServer::start(ScriptedOptions { window: Some(100_000), ..ScriptedOptions::default() })
            .unwrap();
    let yaml = format!(
        "llm: {{provider: gw, gw: {{base_url: '{}/v1', model: m, context_length: 100000}}}}\n",
        server.url()
    );
    place.settings(&yaml);
    let city = session(&place);
    start(&place, &city, "図面");
    start(&place, &city, "組立");
    let row = place.json(&["thread", "tell", "city/stelis_1", "stelis_2", "図面は", "schema.sql", "です"]);
    assert_eq!((&row["to"], &row["op"]), (&json!("stelis_2"), &json!("tell")));
    server.add(ScriptStep::say("はい"));
    place.ok(&["ask", "city/stelis_2", "始めて"]);
    let seen = shown(&place, "city/stelis_2");
    assert_eq!(seen.matches("図面は schema.sql です").count(), 1, "{seen}");
    let body = String::from_utf8(server.seen().last().unwrap().body.clone()).unwrap();
    assert!(body.contains("図面は schema.sql です") && body.contains("stelis_1"), "{body}");
    assert!(seen.find("図面は schema.sql です") < seen.find("始めて"), "told before it was asked: {seen}");
    server.add(ScriptStep::say("はい"));
    place.ok(&["ask", "city/stelis_2", "続けて"]);
    assert_eq!(shown(&place, "city/stelis_2").matches("図面は schema.sql です").count(), 1);
    assert!(!shown(&place, &city).contains("schema.sql"));
}

#[test]
fn nobody_tells_itself_the_closed_or_another_session() {
    let place = Place::new();
    let city = session(&place);
    let other = place.session();
    start(&place, &city, "a");
    start(&place, &city, "b");
    place.ok(&["thread", "end", "city/stelis_2", "--no-chronicle"]);
    for (args, code) in [
        (&["thread", "tell", "city/stelis_1", "stelis_1", "x"][..], 5),
        (&["thread", "tell", "city/stelis_1", "stelis_2", "x"], 5),
        (&["thread", "tell", "city/stelis_1", "nobody", "x"], 3),
        (&["thread", "tell", "city/stelis_1", &format!("{other}/root"), "x"], 2),
        (&["thread", "tell", "city/stelis_1", "root", " "], 2),
    ] {
        let said = place.run(args);
        assert_eq!(said.code, code, "{args:?}: {}", said.err);
    }
    let said = place.feed(&["thread", "tell", &city, "stelis_1"], "管から\n".as_bytes());
    assert_eq!(said.code, 0, "{}", said.err);
    assert!(place.ok(&["log", &city]).contains("管から"));
}
