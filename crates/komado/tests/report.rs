//! `komado admin report` as people and programs meet it: on sessions that the command line made, in English and Japanese.

use crate::run;

use run::{Place, TALK};

/// Four sessions of two users and two models, one of them done.
fn furnished() -> Place {
    let place = Place::new();
    for (id, user, model, question) in [
        ("a", "ann", "gpt-4o", "返品したい"),
        ("b", "ann", "gpt-4o", "返品の方法を教えて"),
        ("c", "太郎", "claude", "How do I return an item?"),
        ("d", "太郎", "claude", "=cmd() <script>alert('返品')</script>"),
    ] {
        let options = ["--meter", "bytes4", "--window", "8000", "--id", id, "--user", user, "--model", model];
        place.session_with(&options);
        let line = serde_json::json!({ "role": "user", "content": question });
        let said = place.append(id, &format!("{line}\n{{\"role\":\"assistant\",\"content\":\"はい\"}}\n"));
        assert_eq!(said.code, 0, "{}", said.err);
    }
    assert_eq!(place.append("c", TALK).code, 0);
    place.ok(&["session", "complete", "c"]);
    place
}

#[test]
fn a_report_tells_usage_questions_and_performance() {
    let place = furnished();
    let report = place.json(&["admin", "report"]);
    let total = &report["usage"]["total"];
    assert_eq!(
        (&total["sessions_made"], &total["sessions_active"], &total["turns"]),
        (&4.into(), &4.into(), &6.into())
    );
    assert_eq!((&total["messages"], &total["tool_calls"]), (&14.into(), &2.into()));
    assert_eq!(report["usage"]["by_day"].as_array().unwrap().len(), 30);
    assert_eq!(report["usage"]["by_day"][0]["turns"], 0);
    let users = report["usage"]["by_user"].as_array().unwrap();
    assert_eq!(users.len(), 2);
    assert!(users.iter().any(|row| row["key"] == "太郎" && row["turns"] == 4), "{users:?}");
    let first = &report["questions"]["groups"][0];
    assert_eq!((&first["question"], &first["count"]), (&"返品したい".into(), &2.into()), "{report}");
    assert_eq!(first["examples"][0], "a@1");
    let overall = &report["performance"]["overall"];
    assert_eq!((&overall["completed"], &overall["turns_to_finish"]["max"]), (&1.into(), &3.0.into()));
    assert!(
        overall["seconds_per_turn"].is_null(),
        "these words were brought in: nobody knows how long they took"
    );
    let tools = report["performance"]["tools"].as_array().unwrap();
    assert!(tools.iter().any(|tool| tool["tool"] == "read" && tool["calls"] == 1), "{tools:?}");
}

#[test]
fn a_report_for_people_has_a_row_and_a_bar_for_each() {
    let place = furnished();
    let text = place.ok(&["admin", "report", "usage", "--by", "user"]);
    assert!(text.contains("Usage by user") && !text.contains("Usage by day"), "{text}");
    let row = text.lines().find(|line| line.starts_with("太郎")).unwrap();
    assert!(row.ends_with("████████████"), "{text}");
    let japanese = place.ok(&["admin", "report", "--lang", "ja", "--from", "7d"]);
    for word in ["日別の利用状況", "よくある質問", "エージェントの性能", "返品したい"]
    {
        assert!(japanese.contains(word), "{word}: {japanese}");
    }
}

#[test]
fn only_what_was_asked_for_is_told() {
    let place = furnished();
    let of_user = place.json(&["admin", "report", "usage", "--user", "ann"]);
    assert_eq!(of_user["usage"]["total"]["sessions_made"], 2);
    assert!(of_user["questions"].is_null() && of_user["performance"].is_null());
    let of_model = place.json(&["admin", "report", "questions", "--model", "claude", "--top", "1"]);
    assert_eq!(of_model["questions"]["asked"], 4);
    assert_eq!(of_model["questions"]["groups"].as_array().unwrap().len(), 1);
    let before = place.json(&["admin", "report", "--to", "yesterday"]);
    assert_eq!((&before["sessions_read"], &before["usage"]["total"]["turns"]), (&0.into(), &0.into()));
    let quick = place.json(&["admin", "report", "--quick"]);
    assert_eq!((&quick["usage"]["total"]["sessions_made"], &quick["entries_read"]), (&4.into(), &0.into()));
    assert!(quick["usage"]["total"]["turns"].is_null(), "{quick}");
}

#[test]
fn what_cannot_be_meant_is_named() {
    let place = Place::new();
    for (args, word) in [
        (&["admin", "report", "--from", "soon"][..], "soon"),
        (&["admin", "report", "--from", "99999999d"], "99999999d"),
        (&["admin", "report", "--from", "99999999w"], "99999999w"),
        (&["admin", "report", "--from", "today", "--to", "today"], "begin before the end"),
        (&["admin", "report", "--utc-offset", "JST"], "JST"),
        (&["admin", "report", "--top", "0"], "1 to 1000"),
        (&["admin", "report", "questions", "--quick"], "quick"),
        (&["admin", "report", "--by", "moon"], "moon"),
    ] {
        let said = place.run(args);
        assert_eq!(said.code, 2, "{args:?}: {}", said.err);
        assert!(said.err.contains(word), "{args:?}: {}", said.err);
    }
    let said = place.run(&["admin", "report", "--out", "nowhere/report.html"]);
    assert!(said.code == 6 && said.err.contains("nowhere"), "{}", said.err);
    assert!(place.ok(&["admin", "report"]).contains("0 sessions"), "an empty house has an empty report");
}

#[test]
fn a_spreadsheet_gets_lines_and_no_formula() {
    let place = furnished();
    let csv = place.ok(&["admin", "report", "questions", "--format", "csv"]);
    assert!(csv.starts_with("question,count,at_most,share,users,last_seen,example\r\n"), "{csv}");
    assert!(csv.contains("\r\n'=cmd() <script>"), "{csv}");
    assert!(csv.ends_with("\r\n") && csv.lines().count() == 1 + groups(&place), "{csv}");
    let all = place.ok(&["admin", "report", "--format", "csv"]);
    assert!(all.starts_with("section,key,figure,value\r\n"), "{all}");
    assert!(all.contains("\r\nusage_by_user,太郎,turns,4\r\n"), "{all}");
}

fn groups(place: &Place) -> usize {
    place.json(&["admin", "report", "questions"])["questions"]["groups"].as_array().unwrap().len()
}

#[test]
fn a_page_needs_nothing_else_and_runs_nothing() {
    let place = furnished();
    let said = place.run(&["admin", "report", "--out", "report.html", "--lang", "ja", "--progress"]);
    assert_eq!(said.code, 0, "{}", said.err);
    assert!(said.err.contains("4 sessions") && said.err.contains("wrote report.html"), "{}", said.err);
    assert_eq!(said.err.matches(" read\n").count(), 1, "{}", said.err);
    let page = std::fs::read_to_string(place.path().join("report.html")).unwrap();
    assert!(page.starts_with("<!doctype html>") && page.contains("<html lang=\"ja\">"));
    assert!(page.contains("&lt;script&gt;alert(&#39;返品&#39;)"), "{page}");
    let markup = page.replace("xmlns=\"http://www.w3.org/2000/svg\"", "");
    for refused in
        ["<script", "http:", "https:", "//", "src=", "href=", "url(", "@import", "<link", "onload", "<iframe"]
    {
        assert!(!markup.contains(refused), "{refused}");
    }
    assert_eq!(closed(&page), Ok(()));
    assert!(
        page.matches("<svg").count() >= 4 && page.matches("<svg").count() <= page.matches("<table").count()
    );
    assert_eq!(page.matches("<svg").count(), page.matches("role=\"img\"").count());
}

/// Whether every element that is opened is closed, in order.
fn closed(page: &str) -> Result<(), String> {
    let mut open: Vec<&str> = Vec::new();
    for tag in page.split('<').skip(1).filter(|tag| !tag.starts_with('!')) {
        let (tag, _) = tag.split_once('>').ok_or_else(|| format!("a tag without an end: {tag}"))?;
        let name = tag.trim_start_matches('/').split([' ', '\n']).next().unwrap_or_default();
        if name == "meta" || tag.ends_with('/') {
            continue;
        }
        if !tag.starts_with('/') {
            open.push(name);
        } else if open.pop() != Some(name) {
            return Err(format!("{name} is closed where it is not open"));
        }
    }
    if open.is_empty() { Ok(()) } else { Err(format!("never closed: {open:?}")) }
}

#[test]
fn a_damaged_session_is_named_and_the_rest_is_told() {
    let place = furnished();
    // The last words of a session that was completed; what stands before them can be read.
    let journal = place.folder("c").join("messages.jsonl");
    let text = std::fs::read_to_string(&journal).unwrap();
    let at = text.rfind("\"role\":\"user\"").unwrap();
    let damaged = text[at..].replacen("\"role\":\"user\"", "\"role\":\"uses\"", 1);
    std::fs::write(&journal, format!("{}{damaged}", &text[..at])).unwrap();
    let said = place.run(&["admin", "report", "--json"]);
    assert_eq!(said.code, 0, "{}", said.err);
    let report: serde_json::Value = serde_json::from_str(&said.out).unwrap();
    assert_eq!(
        (&report["unreadable"], &report["unreadable_sessions"][0]),
        (&1.into(), &"c".into()),
        "{report}"
    );
    assert!(said.err.contains("c could not be read to its end"), "{}", said.err);
    assert_eq!((&report["usage"]["total"]["turns"], &report["questions"]["asked"]), (&5.into(), &5.into()));
    let overall = &report["performance"]["overall"];
    assert_eq!((&overall["completed"], &overall["turns_to_finish"]), (&1.into(), &serde_json::Value::Null));
    assert!(
        place
            .ok(&["admin", "report"])
            .contains("1 session could not be read to the end: counted only up to the damage")
    );
}
