//! Shelves: terms put in, entries found, and nothing left of what was cleared.

use super::{make, tid};
use komado_core::{Role, Seq, SessionId, Span};
use komado_store::search_index::{
    IndexQuery, IndexedEntry, IndexedPassage, IndexedUpto, Passage, SearchFilter, SearchFor, SearchHit,
    SearchIndex,
};
use komado_store::{Error, Store};

fn doc(part: u32, terms: &str) -> IndexedPassage {
    let terms: Vec<(String, u32)> = terms.split(' ').map(|term| (term.to_owned(), 1)).collect();
    let at = u64::from(part) * 100;
    IndexedPassage {
        passage: Passage { part, at, bytes: 100, in_output: part > 0 },
        words: terms.len() as u32,
        terms,
    }
}

fn sheet(seq: Seq, passages: &[&str]) -> IndexedEntry {
    let docs = passages.iter().zip(0..).map(|(terms, part)| doc(part, terms)).collect();
    let timestamp = format!("2024-01-15T10:{seq:02}:00.000000Z");
    IndexedEntry { seq, role: Role::User, tools: Vec::new(), files: Vec::new(), timestamp, docs }
}

fn at(seq: Seq) -> IndexedUpto {
    IndexedUpto { seq, part: 0 }
}

/// Puts sheets on the shelf of the first thread, each with its terms, from entry 1 on.
fn filled(store: &dyn Store, id: &SessionId, entries: &[&[&str]]) -> Box<dyn SearchIndex> {
    let mut shelf = store.search_index(id).unwrap();
    let sheets: Vec<IndexedEntry> =
        entries.iter().zip(1..).map(|(passages, seq)| sheet(seq, passages)).collect();
    shelf.add(&tid("root"), at(0), at(sheets.len() as Seq), &sheets).unwrap();
    shelf
}

fn sought(terms: &[(&str, f32)]) -> IndexQuery {
    let terms = terms.iter().map(|(term, worth)| ((*term).to_owned(), *worth)).collect();
    IndexQuery { terms, average: 3.0, filter: SearchFilter::default(), limit: 10 }
}

fn seqs(hits: &[SearchHit]) -> Vec<Seq> {
    hits.iter().map(|hit| hit.seq).collect()
}

fn words(terms: &[&str]) -> Vec<String> {
    terms.iter().map(|term| (*term).to_owned()).collect()
}

pub(crate) fn what_was_put_on_a_shelf_is_found_by_its_terms(store: &dyn Store) {
    let id = make(store, "s");
    let shelf = store.search_index(&id).unwrap();
    assert_eq!(shelf.upto(&tid("root")).unwrap(), IndexedUpto::default());
    assert!(shelf.search(&sought(&[("window", 1.0)])).unwrap().is_empty());
    filled(store, &id, &[&["open window"], &["close door"], &["窓 開け"]]);
    assert_eq!(shelf.upto(&tid("root")).unwrap(), at(3), "others see it");
    let hits = shelf.search(&sought(&[("door", 1.0), ("窓", 2.0), ("none", 9.0)])).unwrap();
    assert_eq!(seqs(&hits), [3, 2]);
    assert_eq!((hits[0].holds, hits[1].holds), (0b10, 0b01));
    assert_eq!((hits[0].thread.as_str(), hits[0].role), ("root", Role::User));
    assert_eq!(hits[0].timestamp, "2024-01-15T10:03:00.000000Z");
    let tally = shelf.tally(&words(&["door", "none", "open"])).unwrap();
    assert_eq!((tally.docs, tally.words, tally.holding), (3, 6, vec![1, 0, 1]));
}

pub(crate) fn the_best_passage_stands_for_its_entry(store: &dyn Store) {
    let id = make(store, "s");
    let shelf = filled(store, &id, &[&["a b", "a b c", "c d"], &["a x"]]);
    let hits = shelf.search(&sought(&[("a", 1.0), ("c", 1.0)])).unwrap();
    assert_eq!(seqs(&hits), [1, 2]);
    assert_eq!(hits[0].passage, Passage { part: 1, at: 100, bytes: 100, in_output: true });
    assert_eq!(hits[0].holds, 0b11);
}

pub(crate) fn a_term_worth_more_and_a_shorter_passage_come_first_and_of_equals_the_latest(store: &dyn Store) {
    let id = make(store, "s");
    let many: Vec<String> = (0..400).map(|n| format!("common filler{n}")).collect();
    let mut entries: Vec<Vec<&str>> = many.iter().map(|text| vec![text.as_str()]).collect();
    entries.push(vec!["common a b c d e f g h"]);
    entries.push(vec!["rare x"]);
    let entries: Vec<&[&str]> = entries.iter().map(Vec::as_slice).collect();
    let shelf = filled(store, &id, &entries);
    let hits = shelf.search(&sought(&[("common", 1.0), ("rare", 3.0)])).unwrap();
    assert_eq!(seqs(&hits)[..4], [402, 400, 399, 398]);
    assert_eq!(hits.len(), 10);
    let all = IndexQuery { limit: 1000, ..sought(&[("common", 1.0)]) };
    let hits = shelf.search(&all).unwrap();
    assert_eq!((hits.len(), hits[400].seq), (401, 401), "the longest is the last");
    assert!(shelf.search(&IndexQuery { limit: 0, ..all }).unwrap().is_empty());
}

pub(crate) fn each_filter_keeps_what_it_names(store: &dyn Store) {
    let id = make(store, "s");
    let mut shelf = store.search_index(&id).unwrap();
    let mut sheets: Vec<IndexedEntry> = (1..=4).map(|seq| sheet(seq, &["word"])).collect();
    sheets[1].role = Role::Tool;
    sheets[1].tools = words(&["read", "list"]);
    sheets[2].files = words(&["src/窓.rs", "docs/a.md"]);
    shelf.add(&tid("root"), at(0), at(4), &sheets).unwrap();
    shelf.add(&tid("side"), at(0), at(5), &[sheet(5, &["word"])]).unwrap();
    let time = |minute: u32| Some(format!("2024-01-15T10:{minute:02}:00.000000Z"));
    let places = Some(vec![(tid("root"), Span::new(2, 3)), (tid("side"), Span::new(1, 9))]);
    let cases: [(SearchFilter, &[Seq]); 10] = [
        (SearchFilter::default(), &[5, 4, 3, 2, 1]),
        (SearchFilter { role: Some(Role::Tool), ..SearchFilter::default() }, &[2]),
        (SearchFilter { tool: Some("list".into()), ..SearchFilter::default() }, &[2]),
        (SearchFilter { tool: Some("lis".into()), ..SearchFilter::default() }, &[]),
        (SearchFilter { file: Some("窓.rs".into()), ..SearchFilter::default() }, &[3]),
        (SearchFilter { file: Some("docs".into()), ..SearchFilter::default() }, &[3]),
        (SearchFilter { since: time(4), ..SearchFilter::default() }, &[5, 4]),
        (SearchFilter { until: time(2), ..SearchFilter::default() }, &[2, 1]),
        (SearchFilter { places: places.clone(), ..SearchFilter::default() }, &[5, 3, 2]),
        (
            SearchFilter {
                places,
                role: Some(Role::User),
                since: time(3),
                until: time(3),
                ..SearchFilter::default()
            },
            &[3],
        ),
    ];
    for (filter, expected) in cases {
        let hits = shelf.search(&IndexQuery { filter: filter.clone(), ..sought(&[("word", 1.0)]) }).unwrap();
        assert_eq!(seqs(&hits), expected, "search {filter:?}");
        assert_eq!(seqs(&shelf.holding(&words(&["word"]), &filter, None).unwrap()), expected, "{filter:?}");
        assert_eq!(seqs(&shelf.holding(&[], &filter, None).unwrap()), expected, "{filter:?}");
    }
}

pub(crate) fn entries_with_all_of_some_terms_come_page_by_page_the_last_first(store: &dyn Store) {
    let id = make(store, "s");
    let texts: Vec<String> = (1..=1500)
        .map(|n| format!("all {} n{}", if n % 3 == 0 { "third" } else { "other" }, n % 7))
        .collect();
    let entries: Vec<Vec<&str>> = texts.iter().map(|text| text.split(' ').collect()).collect();
    let entries: Vec<&[&str]> = entries.iter().map(Vec::as_slice).collect();
    let shelf = filled(store, &id, &entries);
    let every = |terms: &[&str]| {
        let (mut found, mut before) = (Vec::new(), None);
        loop {
            let page = shelf.holding(&words(terms), &SearchFilter::default(), before).unwrap();
            let Some(last) = page.last() else { return found };
            before = Some(last.id);
            found.extend(seqs(&page));
        }
    };
    let expected = |fits: &dyn Fn(Seq) -> bool| (1..=1500).rev().filter(|n| fits(*n)).collect::<Vec<Seq>>();
    assert_eq!(every(&[]), expected(&|_| true));
    assert_eq!(every(&["all"]), expected(&|_| true));
    assert_eq!(every(&["all", "third"]), expected(&|n| n % 3 == 0));
    // Each term stands in another passage of the entry.
    assert_eq!(every(&["third", "n5", "all"]), expected(&|n| n % 3 == 0 && n % 7 == 5));
    assert!(every(&["third", "other"]).is_empty() && every(&["all", "none"]).is_empty());
}

pub(crate) fn what_stands_beside_an_entry_is_told_with_its_distance(store: &dyn Store) {
    let id = make(store, "s");
    let mut shelf = store.search_index(&id).unwrap();
    let mut sheets: Vec<IndexedEntry> = [1, 3, 4, 9, 10].map(|seq| sheet(seq, &["word"])).into();
    sheets[2].role = Role::Assistant;
    shelf.add(&tid("root"), at(0), at(10), &sheets).unwrap();
    let around = |seq: Seq, reach: u32, filter: &SearchFilter| -> Vec<(i32, Seq)> {
        let found = shelf.hits(SearchFor::Around(&tid("root"), seq, reach), filter).unwrap();
        found.into_iter().map(|(distance, hit)| (distance, hit.seq)).collect()
    };
    let all = SearchFilter::default();
    assert_eq!(around(4, 2, &all), [(-2, 1), (-1, 3), (1, 9), (2, 10)]);
    assert_eq!(around(10, 1, &all), [(-1, 9)]);
    assert_eq!(around(1, 9, &all).len(), 4);
    assert_eq!(around(3, 2, &SearchFilter { role: Some(Role::User), ..all.clone() }), [(-1, 1), (2, 9)]);
    assert!(
        shelf.hits(SearchFor::Around(&tid("other"), 3, 2), &all).unwrap().is_empty()
            && around(3, 0, &all).is_empty()
    );
}

pub(crate) fn who_comes_too_late_is_told_so_and_nothing_is_added_twice(store: &dyn Store) {
    let id = make(store, "s");
    let (mut one, mut two) = (store.search_index(&id).unwrap(), store.search_index(&id).unwrap());
    one.add(&tid("root"), at(0), at(2), &[sheet(1, &["word"]), sheet(2, &["word"])]).unwrap();
    let late = two.add(&tid("root"), at(0), at(1), &[sheet(1, &["word"])]);
    assert!(matches!(late, Err(Error::Moved { expected: 0, found: 2 })), "{late:?}");
    two.add(&tid("root"), at(2), at(5), &[sheet(4, &["word"])]).unwrap();
    assert_eq!(one.upto(&tid("root")).unwrap(), at(5));
    assert_eq!(seqs(&one.search(&sought(&[("word", 1.0)])).unwrap()), [4, 2, 1]);
    assert_eq!(one.tally(&words(&["word"])).unwrap().holding, [3]);
}

pub(crate) fn an_entry_that_is_half_in_is_finished_before_another_begins(store: &dyn Store) {
    let id = make(store, "s");
    let mut shelf = store.search_index(&id).unwrap();
    let part = |part: u32, terms: &str| IndexedEntry { docs: vec![doc(part, terms)], ..sheet(1, &[]) };
    let half = IndexedUpto { seq: 0, part: 1 };
    shelf.add(&tid("root"), at(0), half, &[part(0, "first")]).unwrap();
    let other = shelf.add(&tid("side"), at(0), at(1), &[sheet(1, &["word"])]);
    assert!(matches!(other, Err(Error::Moved { .. })), "{other:?}");
    assert_eq!(shelf.upto(&tid("root")).unwrap(), half);
    shelf.add(&tid("root"), half, at(1), &[part(1, "second")]).unwrap();
    shelf.add(&tid("side"), at(0), at(1), &[sheet(1, &["word"])]).unwrap();
    let all = words(&["first", "second"]);
    assert_eq!(seqs(&shelf.holding(&all, &SearchFilter::default(), None).unwrap()), [1]);
    assert_eq!(shelf.search(&sought(&[("second", 1.0)])).unwrap()[0].passage.part, 1);
}

pub(crate) fn a_cleared_shelf_is_empty_and_takes_nothing_from_who_opened_it_before(store: &dyn Store) {
    let id = make(store, "s");
    let mut shelf = filled(store, &id, &[&["secret"], &["word"]]);
    let mut old = store.search_index(&id).unwrap();
    shelf.clear().unwrap();
    assert_eq!(shelf.upto(&tid("root")).unwrap(), IndexedUpto::default());
    assert!(shelf.search(&sought(&[("secret", 1.0), ("word", 1.0)])).unwrap().is_empty());
    assert_eq!(shelf.tally(&words(&["secret"])).unwrap().docs, 0);
    let stale = old.add(&tid("root"), at(0), at(1), &[sheet(1, &["secret"])]);
    assert!(matches!(stale, Err(Error::Moved { .. })), "{stale:?}");
    shelf.add(&tid("root"), at(0), at(1), &[sheet(1, &["clean"])]).unwrap();
    assert_eq!(shelf.tally(&words(&["secret", "clean"])).unwrap().holding, [0, 1]);
}

pub(crate) fn a_shelf_goes_with_its_session(store: &dyn Store) {
    let (id, other) = (make(store, "s"), make(store, "o"));
    drop(filled(store, &id, &[&["word"]]));
    assert!(store.search_index(&other).unwrap().search(&sought(&[("word", 1.0)])).unwrap().is_empty());
    store.remove(&id).unwrap();
    assert!(matches!(store.search_index(&id), Err(Error::NoSession(_))));
    let again = make(store, "s");
    assert!(store.search_index(&again).unwrap().search(&sought(&[("word", 1.0)])).unwrap().is_empty());
}
