//! What a marker stands for may grow without end; markers may not.

use komado_core::budget::{Budget, Preset};
use komado_core::journal::{Cause, Edit, EditKind, Entry, Show, ShowKind};
use komado_core::ladder::{self, LadderNext, LadderRound, LadderStep};
use komado_core::view::ItemSource;
use komado_core::{Message, Meter, Role};
use komado_testkit::Book;

const METER: Meter = Meter::Bytes4;

/// Truncates as often as the ladder says.
fn fit(book: &mut Book, budget: &Budget) -> u32 {
    let (mut times, mut round) = (0, LadderRound::default());
    loop {
        let Ok(next) = ladder::next(book.view(), book.rows(), budget, METER, round);
        let (hide, marker) = match next {
            LadderNext::Rest => return times,
            LadderNext::Do(LadderStep::Truncate { hide, marker }) => (hide, marker),
            other => panic!("{other:?}"),
        };
        let show = vec![Show { kind: ShowKind::Marker, tokens: METER.said(&marker), text: marker }];
        let edit = Edit { kind: EditKind::Truncate, hide, show, replace: vec![], cause: Cause::default() };
        let tokens = edit.shown_tokens();
        book.push(Entry::Edit(edit), tokens, "t").unwrap();
        (times, round.edited) = (times + 1, true);
    }
}

#[test]
fn one_marker_stands_for_all_that_was_left_out_however_often_that_happened() {
    let mut policy = Preset::Komado.policy();
    policy.rungs.condense = false;
    let budget = Budget::new(policy, 4_000, &[]);
    let mut book = Book::default();
    let (mut times, mut most) = (0, 0);
    for n in 0..4_000 {
        let role = if n % 2 == 0 { Role::User } else { Role::Assistant };
        let message = Message::text(role, "word ".repeat(30));
        let tokens = METER.message(&message);
        book.push(Entry::Message(message, None), tokens, "t").unwrap();
        times += fit(&mut book, &budget);
        let Ok(items) = book.view().items(book.rows());
        most = most.max(items.iter().filter(|item| item.what == ItemSource::Shown).count());
    }
    assert!(times > 50, "{times}");
    // A user's message that was the newest may stand between two of them until the next time.
    assert!(most <= 2, "{most} markers at once");
}
