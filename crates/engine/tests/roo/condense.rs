//! A summary by hand under the preset: what it stands for, what the summariser is told, and when there is none.

use crate::roo::facts::{ASKED, Answer, Asked};
use crate::roo::room::{Room, check, counted, everywhere};
use crate::roo::story::{self, EACH, play, said};
use komado_core::budget::{Budget, Preset};
use komado_core::journal::{Edit, Entry, ShowKind};
use komado_core::message::{Message, Role};
use komado_engine::Thread;
use komado_engine::condense::CondenseSettings;
use komado_engine::fit::{FitResult, Ladder};
use komado_testkit::Scripted;

const WORDS: &str = "<summary>S U M: they read a file and went on from there.</summary>";

fn condense(root: &mut Thread<'_>, by: &mut Scripted) -> FitResult {
    let budget = Budget::new(Preset::Seed002.policy(), 100_000, &[]);
    root.condense_now(&mut Ladder { budget, settings: CondenseSettings::default(), by }).unwrap()
}

fn script(root: &Thread<'_>, answer: &Answer) -> Scripted {
    let by = Scripted::new(root.meter());
    match answer {
        Answer::Words => by.says(WORDS),
        Answer::Nothing => by.says(""),
        Answer::TooMuch => by.says(format!("<summary>{}</summary>", "much more than that ".repeat(400))),
    }
}

#[test]
fn a_summary_stands_for_all_but_the_first_and_the_last_three() {
    for asked in ASKED {
        everywhere(|room| {
            let told = play(room, asked.story);
            let mut root = room.root(&told.session);
            let (tokens, last) = (root.view().tokens(), root.last());
            let mut by = script(&root, &asked.answer);
            let fitted = condense(&mut root, &mut by);
            check(&root);
            assert_eq!(story::seen(&root), asked.seen, "{}", asked.id);
            match by.requests.first() {
                None => assert!(asked.told.is_empty(), "{}: nobody was asked", asked.id),
                Some(request) => is_told(&asked, &request.text),
            }
            match (&asked.answer, asked.told.is_empty()) {
                (_, true) => assert_eq!((fitted.done.len(), root.last()), (0, last), "{}", asked.id),
                (Answer::Words, _) => holds(&root, &asked, &fitted, tokens),
                _ => in_vain(&root, &asked, &fitted),
            }
        });
    }
}

/// What leaves is told, and nothing else.
fn is_told(asked: &Asked, request: &str) {
    for name in asked.told.split_whitespace() {
        assert!(request.contains(&said(name)), "{}: {name} is not told", asked.id);
    }
    for name in asked.untold.split_whitespace() {
        assert!(!request.contains(&format!("this is {name}:")), "{}: {name} is told", asked.id);
    }
}

/// The numbers are the real ones, the cost is on record, and the summary speaks as a user.
fn holds(root: &Thread<'_>, asked: &Asked, fitted: &FitResult, before: u64) {
    let [done] = &fitted.done[..] else { panic!("{}: {fitted:?}", asked.id) };
    let Edit { cause, show, .. } = &done.edit;
    assert_eq!((cause.before, cause.after), (before, counted(root)), "{}", asked.id);
    assert_eq!(fitted.after, cause.after, "{}", asked.id);
    assert!(cause.usage.is_some_and(|usage| usage.output_tokens == root.meter().text(WORDS)), "{}", asked.id);
    assert_eq!((show.len(), show[0].kind), (1, ShowKind::Summary), "{}", asked.id);
    assert!(show[0].text.contains("S U M: they read a file"), "{}: {}", asked.id, show[0].text);
    let mut roles = Vec::new();
    let mut pour = |seq, message: &Message| -> komado_store::Result<()> {
        roles.extend((seq == done.seq).then_some(message.role));
        Ok(())
    };
    root.view().pour(root.source(), &mut pour).unwrap();
    assert_eq!(roles, [Role::User], "{}", asked.id);
}

/// Nothing has changed, and what it cost is on record.
fn in_vain(root: &Thread<'_>, asked: &Asked, fitted: &FitResult) {
    assert_eq!((fitted.done.len(), fitted.declined.len()), (0, 1), "{}", asked.id);
    let why = match asked.answer {
        Answer::Nothing => "without a summary",
        _ => "does not make the view smaller",
    };
    assert!(fitted.declined[0].contains(why), "{}: {}", asked.id, fitted.declined[0]);
    let Entry::Lost(lost) = root.record(root.last()).unwrap().entry else { panic!("{}", asked.id) };
    let usage = lost.usage.unwrap();
    assert!(usage.input_tokens > 3 * EACH, "{}: {usage:?}", asked.id);
}

#[test]
fn a_second_summary_right_away_is_refused_as_condensed_recently() {
    let room = Room::memory();
    let told = play(&room, "u1 a2 u3 a4 u5 a6 u7");
    let mut root = room.root(&told.session);
    let mut by = Scripted::new(root.meter()).always(WORDS);
    assert_eq!(condense(&mut root, &mut by).done.len(), 1);
    let last = root.last();
    assert_eq!((condense(&mut root, &mut by).done.len(), by.requests.len()), (0, 1));
    assert_eq!(root.last(), last);
}
