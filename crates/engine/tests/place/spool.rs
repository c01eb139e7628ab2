//! Long transcripts: what is known is not read again.

use crate::place::kit::{Room, arrive, client, elements};
use komado_engine::place::Placement;
use komado_provider::{Dialect, ScannedRequest};
use std::fs::File;
use std::os::unix::fs::FileExt;

/// Overwrites everything before element `n`, so that whoever reads it cannot but notice.
fn blot(skim: &ScannedRequest, body: &File, n: usize) {
    let end = skim.elements[n].span.start;
    body.write_all_at(&vec![0xff; end as usize], 0).unwrap();
}

fn long(pairs: usize) -> String {
    (0..pairs).map(|n| format!("u 質問 {n}|a 答え {n}|")).collect()
}

#[test]
fn of_ten_thousand_elements_only_the_last_reply_is_read() {
    for dialect in Dialect::ALL {
        let room = Room::in_files(dialect);
        let ann = client("ann");
        let script = long(5_000);
        let first = script.strip_suffix("a 答え 4999|").unwrap();
        let done = room.send(&ann, first);
        assert_eq!(done.told, "new s1/root 0");
        room.answer(&done, "a 答え 4999");
        let more = format!("{script}u next");
        let (skim, body) = arrive(dialect, &ann, &elements(dialect, &more));
        assert_eq!(skim.elements.len(), 10_001);
        blot(&skim, &body, 9_999);
        let placed = room.place_skim(&ann, &skim, &body).unwrap();
        assert_eq!((placed.how, placed.known), (Placement::Extends, 10_000));
        // An edit in the middle is found by the digests alone.
        let edited = more.replace("u 質問 2500|", "u 質問 2500?|");
        let (skim, body) = arrive(dialect, &ann, &elements(dialect, &edited));
        blot(&skim, &body, 10_000);
        assert_eq!(room.place_skim(&ann, &skim, &body).unwrap().how, Placement::New);
    }
}

#[test]
fn a_body_that_cannot_be_read_is_another_past_and_no_panic() {
    let room = Room::in_memory(Dialect::Chat);
    let ann = client("ann");
    room.ask(&ann, "u a", "a b");
    let (skim, body) = room.arrive(&ann, "u a|a b|u c");
    body.set_len(10).unwrap();
    let placed = room.place_skim(&ann, &skim, &body).unwrap();
    assert_eq!((placed.how, placed.known), (Placement::Forks, 1));
}
