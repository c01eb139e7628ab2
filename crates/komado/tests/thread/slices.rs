//! What a child sees of its parent when that is too large for its share, or for the window at hand.

use super::shown;
use crate::thread::run::Place;
use serde_json::json;

fn begun(place: &Place) -> String {
    place.session_with(&["--id", "city", "--meter", "bytes4", "--window", "100000"])
}

#[test]
fn a_request_larger_than_the_share_is_seen_in_part_and_told_where_to_read_the_rest() {
    let place = Place::new();
    let city = begun(&place);
    let request: String = (0..4_000).map(|n| format!("rule {n}: port it as it is\n")).collect();
    std::fs::write(place.path().join("req.txt"), request).unwrap();
    let file = place.path().join("req.txt");
    place.ok(&["append", &city, "--file", file.to_str().unwrap()]);
    place.ok(&["thread", "start", &city, "Port"]);
    let seen = shown(&place, "city/stelis_1");
    assert!(seen.contains("rule 0: port it") && seen.contains("@1"), "{seen}");
    let context = place.json(&["context", "city/stelis_1"]);
    assert!(context["context_tokens"].as_u64() > Some(5_000), "{context}");
}

#[test]
fn slices_cut_for_a_small_window_are_told_and_come_back_with_the_large_one() {
    let place = Place::new();
    let city = begun(&place);
    for n in 0..5 {
        place.ok(&["append", &city, &format!("{n}: {}", "word ".repeat(1_600))]);
    }
    place.ok(&["thread", "start", &city, "A"]);
    let before = shown(&place, "city/stelis_1");
    let small = place.json(&["fit", "city/stelis_1", "--window", "5000"]);
    let cut = &small["slices"][0];
    assert_eq!((&cut["seq"], &cut["window"]), (&json!(2), &json!(5_000)), "{small}");
    assert!(cut["tokens_before"].as_u64() > Some(10_000) && cut["tokens_after"].as_u64() < Some(1_000));
    assert_eq!(place.json(&["fit", "city/stelis_1", "--window", "5200"])["slices"], json!([]));
    let said = place.run(&["fit", "city/stelis_1"]);
    assert!(said.err.contains("slices of the threads above: "), "{}", said.err);
    assert!(said.err.contains(" tokens for a window of 100,000 (@3)"), "{}", said.err);
    assert_eq!(shown(&place, "city/stelis_1"), before);
}
