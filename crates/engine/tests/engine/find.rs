//! Addresses and what they lead to.

use crate::engine::room::{Room, everywhere, meta, thread_id};
use komado_engine::Error;

fn find(room: &Room, text: &str) -> Result<String, Error> {
    let found = room.engine.find(&text.parse().unwrap())?;
    let seq = found.seq.map_or_else(String::new, |seq| format!("@{seq}"));
    Ok(format!("{}/{}{seq}", found.session, found.thread))
}

#[test]
fn a_unique_beginning_is_enough_for_session_and_thread() {
    everywhere(|room| {
        let id = room.session("550e8400-e29b");
        room.session("660e8400-e29b");
        for name in ["alpha", "alphabet", "beta"] {
            room.look(&id, "root").fork(0, thread_id(name), None).unwrap();
        }
        assert_eq!(find(room, "55").unwrap(), "550e8400-e29b/root");
        assert_eq!(find(room, "550e8400-e29b@7").unwrap(), "550e8400-e29b/root@7");
        assert_eq!(find(room, "5/b@3").unwrap(), "550e8400-e29b/beta@3");
        assert_eq!(find(room, "5/alpha").unwrap(), "550e8400-e29b/alpha");
        assert_eq!(find(room, "5/alphab").unwrap(), "550e8400-e29b/alphabet");
        assert_eq!(find(room, "5/r").unwrap(), "550e8400-e29b/root");
    });
}

#[test]
fn the_exact_name_wins_however_many_begin_with_it() {
    everywhere(|room| {
        for n in 0..8 {
            room.engine.create(&meta(&format!("run{n}"), "2024-01-15T10:00:00Z")).unwrap();
        }
        room.engine.create(&meta("run", "2024-01-15T11:00:00Z")).unwrap();
        assert_eq!(find(room, "run").unwrap(), "run/root");
        assert_eq!(find(room, "run7").unwrap(), "run7/root");
        let why = find(room, "ru").unwrap_err().to_string();
        assert!(
            why.starts_with("\"ru\" fits several: run0, run1, ") && why.ends_with("write more of it"),
            "{why}"
        );
    });
}

#[test]
fn what_is_not_there_is_named_with_where_to_look() {
    everywhere(|room| {
        let why = find(room, "nobody").unwrap_err().to_string();
        assert_eq!(why, "there is no session \"nobody\"; `komado sessions` lists them");
        room.session("s");
        let why = find(room, "s/t").unwrap_err().to_string();
        assert_eq!(why, "there is no thread \"t\"; `komado sessions SESSION` lists its threads");
        room.look(&"s".parse().unwrap(), "root").fork(0, thread_id("ta"), None).unwrap();
        room.look(&"s".parse().unwrap(), "root").fork(0, thread_id("tb"), None).unwrap();
        assert!(matches!(find(room, "s/t"), Err(Error::Ambiguous { fits, .. }) if fits == ["ta", "tb"]));
    });
}
