//! Letters and lessons: requests on their way, and what was learned from the answers.

use super::{make, root};
use komado_store::{Error, OpenMode, Store};
use std::io::Write;

pub(crate) fn a_letter_is_a_file_until_it_is_answered(store: &dyn Store) {
    let id = make(store, "s");
    let journal = root(store, &id, OpenMode::Write);
    let mut request_file = journal.request_file().unwrap();
    request_file.write_all("{\"messages\":[\"".as_bytes()).unwrap();
    request_file.write_all("窓\"]}".as_bytes()).unwrap();
    let bytes = request_file.seal().unwrap();
    let path = request_file.path().to_owned();
    let text = std::fs::read_to_string(&path).unwrap();
    assert_eq!((text.as_str(), bytes), ("{\"messages\":[\"窓\"]}", text.len() as u64));
    request_file.answered().unwrap();
    assert!(!path.exists());
    // The next one begins anew, also over one that was never answered.
    for _ in 0..2 {
        let mut request_file = journal.request_file().unwrap();
        request_file.write_all(b"{}").unwrap();
        assert_eq!(request_file.seal().unwrap(), 2);
        assert_eq!(std::fs::read(request_file.path()).unwrap(), b"{}");
    }
}

pub(crate) fn only_a_writer_sends_letters(store: &dyn Store) {
    let id = make(store, "s");
    let refused = root(store, &id, OpenMode::Read).request_file().unwrap_err();
    assert!(matches!(refused, Error::ReadOnly), "{refused}");
}

pub(crate) fn a_lesson_is_kept_under_its_name_and_changed_in_one_step(store: &dyn Store) {
    assert_eq!(store.lesson("http://h/v1 m").unwrap(), None);
    store.learn("http://h/v1 m", &mut |old| old.is_none().then(|| "{\"window\":4096}".into())).unwrap();
    store.learn("http://h/v1 窓", &mut |_| Some("{\"window\":1.0}".into())).unwrap();
    store.learn("http://h/v1 m", &mut |old| Some(format!("[{}]", old.unwrap()))).unwrap();
    store.learn("http://h/v1 m", &mut |_| None).unwrap();
    assert_eq!(store.lesson("http://h/v1 m").unwrap().unwrap(), "[{\"window\":4096}]");
    assert_eq!(store.lesson("http://h/v1 窓").unwrap().unwrap(), "{\"window\":1.0}");
    assert!(store.forget("http://h/v1 m").unwrap() && !store.forget("http://h/v1 m").unwrap());
    let left = [("http://h/v1 窓".to_owned(), "{\"window\":1.0}".to_owned())];
    assert_eq!(store.lessons().unwrap(), left);
}
