//! What `komado admin doctor` says of the queue.
use crate::run;

use run::{Place, Said};
use serde_json::Value;

/// A task in the queue; its session.
fn task(place: &Place, name: &str) -> String {
    place.ok(&["task", "add", name]).trim().to_owned()
}

fn queue(place: &Place) -> rusqlite::Connection {
    rusqlite::Connection::open(place.base().join("queue.db")).unwrap()
}

/// A session that is completed.
fn ended(place: &Place) -> String {
    let s = place.session();
    place.ok(&["append", &s, "終わり"]);
    place.ok(&["session", "complete", &s]);
    s
}

/// Lets a session have ended years ago, as far as its journal knows.
fn age(place: &Place, session: &str) {
    let journal = place.folder(session).join("messages.jsonl");
    let text = std::fs::read_to_string(&journal).unwrap();
    let close: Value = serde_json::from_str(text.lines().last().unwrap()).unwrap();
    let today = &close["timestamp"].as_str().unwrap()[..10];
    std::fs::write(&journal, text.replace(today, "2001-01-15")).unwrap();
    place.ok(&["admin", "doctor", "--rebuild"]);
}

fn lines(said: &Said) -> Vec<Value> {
    said.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn a_queue_that_is_as_it_should_be_is_counted_and_nothing_else() {
    let place = Place::new();
    let said = place.run(&["admin", "doctor"]);
    assert_eq!((said.code, said.out.as_str(), said.err.contains("queue")), (0, "", false), "{}", said.err);
    for name in ["窓", "戸", "壁"] {
        task(&place, name);
    }
    // One is held, one was laid aside because it failed, one waits.
    let holder = r#"{"pid":1,"host":"h","program":"komado task work","since":"2026-01-15T10:00:00.000000Z"}"#;
    let hidden = "hidden_until = (unixepoch() + 3600) * 1000";
    let sql = format!("UPDATE jobs SET {hidden}, holder = ?1, token = 1, tries = 1 WHERE place = 1");
    queue(&place).execute(&sql, [holder]).unwrap();
    queue(&place).execute("UPDATE jobs SET dead = 1, tries = 1, why = 'no' WHERE place = 2", []).unwrap();
    let said = place.run(&["admin", "doctor"]);
    assert_eq!((said.code, said.out.as_str()), (0, ""), "{}", said.err);
    assert!(said.err.contains("3 jobs in the queue, 0 stale, 0 cannot be read"), "{}", said.err);
    let summary = place.json(&["admin", "doctor"]);
    assert_eq!((&summary["jobs"], &summary["stale_jobs"]), (&3.into(), &0.into()), "{summary}");
}

#[test]
fn a_queue_that_is_damaged_is_told_and_the_sessions_are_checked_all_the_same() {
    let place = Place::new();
    place.session();
    std::fs::write(place.base().join("queue.db"), "garbage").unwrap();
    let said = place.run(&["admin", "doctor"]);
    assert_eq!(said.code, 1, "{}", said.out);
    assert!(
        said.out.contains("the queue cannot be read") && said.out.contains("move it away"),
        "{}",
        said.out
    );
    assert!(said.err.contains("1 session checked"), "{}", said.err);
    let said = place.run(&["admin", "doctor", "--json"]);
    let lines = lines(&said);
    assert!(lines[0]["queue"]["error"].as_str().unwrap().contains("queue.db"), "{}", said.out);
    assert_eq!(lines[1]["unreadable_jobs"], 1, "{}", said.out);
}

#[test]
fn a_job_that_is_no_task_is_named_with_the_command_that_takes_it_out() {
    let place = Place::new();
    let (good, bad) = (task(&place, "良い"), task(&place, "悪い"));
    queue(&place).execute("UPDATE jobs SET body = '{\"title\":7}' WHERE session = ?1", [&bad]).unwrap();
    let said = place.run(&["admin", "doctor", "--json"]);
    let told = lines(&said);
    assert_eq!((said.code, told.len(), told[0]["job"].as_str()), (1, 2, Some(bad.as_str())), "{}", said.out);
    let why = told[0]["error"].as_str().unwrap();
    let wayout = format!("komado task stop {bad}");
    assert!(why.contains("is not a task") && why.contains(&wayout), "{why}");
    place.ok(&["task", "stop", &bad]);
    assert_eq!(place.json(&["admin", "doctor"])["jobs"], 1, "{good} is left");
}

#[test]
fn a_job_whose_session_ended_days_ago_is_told_and_one_that_just_ended_is_not() {
    let place = Place::new();
    let (s, old) = (ended(&place), ended(&place));
    age(&place, &old);
    task(&place, "窓");
    let put = "INSERT INTO jobs (session, key, body, at, tries) SELECT ?1, ?1, body, at, 1 FROM jobs WHERE place = 1";
    for id in [&s, &old] {
        queue(&place).execute(put, [id]).unwrap();
    }
    let said = place.run(&["admin", "doctor", "--json"]);
    let told = lines(&said);
    assert_eq!((said.code, told.len(), told[0]["job"].as_str()), (0, 2, Some(old.as_str())), "{}", said.out);
    let why = told[0]["finding"].as_str().unwrap();
    assert!(why.starts_with("completed since 2001-01-15") && why.contains("komado task work"), "{why}");
    queue(&place).execute("UPDATE jobs SET dead = 1 WHERE session = ?1", [&old]).unwrap();
    let said = place.run(&["admin", "doctor"]);
    assert!(said.out.contains(&format!("komado task retry {old}")), "{}", said.out);
    assert!(place.run(&["admin", "doctor", &s]).out.is_empty(), "only the job of the session that was named");
}
