//! A provider that takes less than we believe: the child goes on, and so does what it sees of the threads above.

use crate::shares::kit::{ratio, share, words_above};
use crate::shares::talk::{Talk, turn};
use komado_core::budget::{Budget, Preset};
use komado_core::journal::Entry;
use komado_core::message::{Message, Role};
use komado_engine::Spawn;
use komado_engine::condense::{ByDigest, CondenseSettings};
use komado_engine::fit::Ladder;
use komado_provider::Dialect;
use komado_provider::scripted::ScriptedOptions;

const TRUE: u64 = 4_096;
const BELIEVED: u64 = 16_384;

#[test]
fn slices_that_the_true_window_cannot_hold_are_cut_and_the_child_is_answered() {
    let talk = Talk::new(
        Dialect::Chat,
        BELIEVED,
        ScriptedOptions { window: Some(TRUE), ..ScriptedOptions::default() },
    );
    let mut root = talk.thread();
    for n in 0..80 {
        let text = format!("wish {n}: {}", "the parser must read every line of the file again ".repeat(10));
        root.say(Message::text(if n % 2 == 0 { Role::User } else { Role::Assistant }, text)).unwrap();
    }
    let spawn = Spawn { ratio: ratio(0.5), ..Spawn::new(BELIEVED) };
    let mut child = root.spawn(&spawn).unwrap();
    let before = share(&child);
    assert!(u64::from(before.tokens()) > TRUE, "{}", before.tokens());
    child.say(Message::text(Role::User, "begin")).unwrap();
    let budget = child.budget(Preset::Komado.policy(), BELIEVED, &[]).unwrap();
    let mut by = ByDigest::new(child.meter());
    let mut ladder = Ladder { budget, settings: CondenseSettings::default(), by: &mut by };
    let (turned, told) = turn(&mut child, &talk.asking, &mut ladder);
    let turned = turned.unwrap();
    assert!(!turned.is_ours && told.too_large.len() == 1, "{:?}", told.too_large);
    let now = share(&child);
    assert!(now.window <= TRUE && now.slices[0].at == before.slices[0].at, "{now:?}");
    assert!(child.view().tokens() <= TRUE, "{}", child.view().tokens());
    let words = words_above(&child);
    assert!(words.contains("wish 79") && words.contains("wish 78") && words.contains("stelis_1"), "{words}");
    // The next turn knows: nothing is refused, and nothing is cut again.
    let shares =
        (1..=child.last()).filter(|seq| matches!(child.record(*seq).unwrap().entry, Entry::Share(_)));
    let said = shares.count();
    child.say(Message::text(Role::User, "go on")).unwrap();
    ladder.budget = child.budget(Preset::Komado.policy(), TRUE, &[]).unwrap();
    let (turned, told) = turn(&mut child, &talk.asking, &mut ladder);
    assert!(!turned.unwrap().is_ours && told.too_large.is_empty());
    let shares =
        (1..=child.last()).filter(|seq| matches!(child.record(*seq).unwrap().entry, Entry::Share(_)));
    assert_eq!(shares.count(), said);
    // Whoever insists on the larger window is not refused in every turn.
    let last = child.last();
    child.say(Message::text(Role::User, "go on")).unwrap();
    ladder.budget = child.budget(Preset::Komado.policy(), BELIEVED, &[]).unwrap();
    let (turned, told) = turn(&mut child, &talk.asking, &mut ladder);
    assert!(!turned.unwrap().is_ours && told.too_large.is_empty());
    assert!((last..=child.last()).all(|seq| !matches!(child.record(seq).unwrap().entry, Entry::Share(_))));
}

#[test]
fn where_even_that_is_too_much_the_child_answers_honestly_and_its_slices_stay() {
    let talk = Talk::new(
        Dialect::Chat,
        BELIEVED,
        ScriptedOptions { window: Some(300), ..ScriptedOptions::default() },
    );
    let mut root = talk.thread();
    for n in 0..80 {
        root.say(Message::text(Role::User, format!("wish {n} {}", "again ".repeat(80)))).unwrap();
    }
    let mut child = root.spawn(&Spawn { ratio: ratio(0.5), ..Spawn::new(BELIEVED) }).unwrap();
    child.say(Message::text(Role::User, "begin")).unwrap();
    let before = share(&child);
    let mut by = ByDigest::new(child.meter());
    let budget = Budget::new(Preset::Komado.policy(), BELIEVED, &[]);
    let mut ladder = Ladder { budget, settings: CondenseSettings::default(), by: &mut by };
    let (turned, _) = turn(&mut child, &talk.asking, &mut ladder);
    assert!(turned.unwrap().is_ours);
    assert_eq!(share(&child), before);
}
