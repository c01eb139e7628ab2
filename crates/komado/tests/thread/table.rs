//! The table `stelis_threads`, as those see it who ask with `sqlite3`.

use super::{session, start};
use crate::thread::run::Place;
use rusqlite::Connection;

type Row = (String, Option<String>, i64, f64, String, Option<String>, Option<String>);

fn rows(place: &Place) -> Vec<Row> {
    let db = Connection::open(place.base().join("tasks.db")).unwrap();
    let sql = "SELECT thread_id, parent_thread_id, depth, window_ratio, status, chronicle_summary, completed_at \
               FROM stelis_threads ORDER BY depth, created_at, thread_id";
    let mut asked = db.prepare(sql).unwrap();
    let row = |row: &rusqlite::Row<'_>| {
        Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?, row.get(4)?, row.get(5)?, row.get(6)?))
    };
    asked.query_map([], row).unwrap().map(Result::unwrap).collect()
}

#[test]
fn the_columns_of_the_seed_follow_a_child_through_its_life() {
    let place = Place::new();
    let city = session(&place);
    start(&place, &city, "a");
    place.ok(&["thread", "start", "city/stelis_1", "b", "--ratio", "0.5"]);
    place.ok(&["append", "city/stelis_1", "work"]);
    let find = |name: &str| rows(&place).into_iter().find(|row| row.0.ends_with(name)).unwrap();
    let (_, parent, depth, ratio, status, chronicle, ended) = find("stelis_1");
    assert!(parent.unwrap().ends_with("root"));
    assert_eq!((depth, ratio, status.as_str(), chronicle, ended), (1, 0.8, "active", None, None));
    let (_, parent, depth, ratio, ..) = find("stelis_1_1");
    assert!(parent.unwrap().ends_with("stelis_1"));
    assert_eq!((depth, ratio), (2, 0.5));
    place.ok(&["thread", "end", "city/stelis_1", "--chronicle", "終わりました"]);
    let (.., status, chronicle, ended) = find("stelis_1");
    assert_eq!((status.as_str(), chronicle.as_deref()), ("completed", Some("終わりました")));
    assert!(ended.is_some());
    assert_eq!(find("stelis_1_1").4, "aborted");
    let before = rows(&place);
    place.ok(&["admin", "doctor", "--rebuild"]);
    assert_eq!(rows(&place), before, "the table is made again from the journals");
}
