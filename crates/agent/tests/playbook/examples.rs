//! The examples of the manual do what their words say.

use crate::playbook::kit::{World, words};
use komado_agent::playbook::Playbook;

const REVIEW: &str = include_str!("../../../../docs/playbooks/review.json");

#[test]
fn the_review_repairs_three_times_and_says_so_when_the_tests_still_fail() {
    let world = World::new(|_| words("直しました"));
    let playbook = Playbook::parse("review.json", REVIEW).unwrap();
    // There is no `shell` here, so that every run of the tests goes wrong.
    let (ended, nodes) = world.run_on(&world.engine(), &playbook);
    let ended = ended.unwrap();
    assert!(!ended.is_good && ended.node == "failed", "{ended:?}");
    assert!(ended.result.starts_with("The tests still fail after 3 rounds:\n"), "{}", ended.result);
    let entered = |id: &str| nodes.iter().filter(|node| node.ends_with(&format!(":{id}"))).count();
    assert_eq!((entered("test"), entered("repair"), entered("give_up")), (4, 3, 1), "{nodes:?}");
    let asked = world.said("stelis_1").into_iter().filter(|line| line.contains("The tests fail (round"));
    let rounds: Vec<String> = asked.collect();
    assert!(rounds.len() == 3 && rounds[2].contains("(round 3)"), "{rounds:?}");
}
