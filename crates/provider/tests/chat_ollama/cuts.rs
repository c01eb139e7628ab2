//! However the bytes of an answer are cut, it says the same; cut short, it never says that it is whole.

use super::answers::{ALL, Fixture};
use super::kit::{decoded, heard};
use komado_provider::{ModelEvent, ResponseForm};

#[test]
fn an_answer_is_the_same_however_its_bytes_are_cut() {
    for Fixture { dialect, form, name, text, .. } in &ALL {
        let bytes = text.as_bytes();
        let whole = decoded(*dialect, *form, &[bytes]);
        for at in 0..=bytes.len() {
            let (a, b) = bytes.split_at(at);
            assert_eq!(decoded(*dialect, *form, &[a, b]), whole, "{name} at {at}");
        }
        let single: Vec<&[u8]> = bytes.chunks(1).collect();
        assert_eq!(decoded(*dialect, *form, &single), whole, "{name} byte by byte");
    }
}

#[test]
fn line_ends_of_another_system_change_nothing() {
    for Fixture { dialect, form, name, text, .. } in ALL.iter().filter(|f| f.form == ResponseForm::Stream) {
        let other = text.replace('\n', "\r\n");
        let whole = decoded(*dialect, *form, &[text.as_bytes()]);
        assert_eq!(decoded(*dialect, *form, &[other.as_bytes()]), whole, "{name}");
    }
}

#[test]
fn an_answer_cut_short_never_claims_to_be_finished() {
    for Fixture { dialect, form, name, text, .. } in &ALL {
        let whole = heard(&decoded(*dialect, *form, &[text.as_bytes()]));
        for at in 0..text.len() {
            let events = decoded(*dialect, *form, &[&text.as_bytes()[..at]]);
            let part = heard(&events);
            if part.finish.is_some() {
                assert_eq!(
                    (&part.finish, part.message()),
                    (&whole.finish, whole.message()),
                    "{name} at {at}"
                );
            }
            // A line that breaks off is the network's doing, not an error that the server told.
            if part.failed.is_some() && *form == ResponseForm::Stream {
                assert_eq!(part.failed, whole.failed, "{name} at {at}");
            }
            let over = |event: &ModelEvent| matches!(event, ModelEvent::Finished(_) | ModelEvent::Failed(_));
            let said = events.iter().position(over).map_or(0, |at| events.len() - 1 - at);
            assert_eq!(said, 0, "{name} at {at}: nothing comes after the end");
        }
    }
}

#[test]
fn what_comes_before_a_cut_stays_said() {
    for Fixture { dialect, form, name, text, .. } in ALL.iter().filter(|f| f.form == ResponseForm::Stream) {
        let whole = decoded(*dialect, *form, &[text.as_bytes()]);
        for at in 0..text.len() {
            let (mut decoder, mut events) = (dialect.decoder(*form), Vec::new());
            decoder.push(&text.as_bytes()[..at], &mut |event| events.push(event));
            assert_eq!(events, whole[..events.len()], "{name} at {at}");
        }
    }
}
