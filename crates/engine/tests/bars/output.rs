//! Bars 8 and 17: what one tool prints, however long, neither empties a view nor blocks a session.

use crate::bars::room::{Room, call, calls, everywhere, model, result, user};
use crate::bars::talk::{budget, check_order, exchange, fit, prose, request, session};
use komado_core::Meter;
use komado_core::budget::Preset;
use komado_core::message::MessagePart;
use komado_engine::Thread;

/// A model calls a tool that prints `text`.
fn prints(root: &mut Thread<'_>, id: &str, text: &str) {
    root.say(calls(vec![MessagePart::text("running"), call(id, "run", r#"{"cmd":"make"}"#)])).unwrap();
    root.say(result(id, text)).unwrap();
}

/// One line of `bytes` bytes, whose ends are told apart.
fn one_line(bytes: usize, fill: &str) -> String {
    let middle = fill.repeat(bytes / fill.len());
    format!("BEGIN-OF-LINE {middle} END-OF-LINE")
}

/// Bar 8.
#[test]
fn one_line_of_sixty_kilobytes_gives_a_useful_view() {
    for (fill, window) in [("key:value,", 8_000), ("値は空です。", 8_000), ("aGVsbG8=", 8_000)] {
        for preset in Preset::ALL {
            let room = Room::memory();
            let mut root = room.root(&session(&room, Meter::O200k)).clipping(None);
            root.say(user("what does the build say?")).unwrap();
            prints(&mut root, "a", &one_line(60 * 1024, fill));
            let budget = budget(preset, window);
            let fitted = fit(&mut root, &budget);
            assert!(!fitted.done.is_empty(), "{}", preset.name());
            let view = request(&root);
            let output = view.last().unwrap();
            let name = preset.name();
            assert!(output.contains("BEGIN-OF-LINE") && output.contains("END-OF-LINE"), "{name}: {output}");
            assert!(output.contains(&fill.repeat(40)), "{name}: {output}");
            assert!(output.contains("ref_id"), "{name}: {output}");
            let shown = output.matches(fill).count() * fill.chars().count();
            assert!(shown >= 1_000, "{name}: {shown} characters");
        }
    }
}

/// Bar 8, as it arrives.
#[test]
fn a_long_line_that_fits_the_window_is_seen_from_both_ends_too() {
    everywhere(|room| {
        let mut root = room.root(&session(room, Meter::O200k));
        root.say(user("what does the build say?")).unwrap();
        prints(&mut root, "a", &one_line(60 * 1024, "key:value,"));
        assert!(fit(&mut root, &budget(Preset::Komado, 128_000)).done.is_empty());
        let view = request(&root);
        assert!(view[2].contains("BEGIN-OF-LINE") && view[2].contains("END-OF-LINE"), "{}", view[2].len());
    });
}

/// Bar 17.
#[test]
fn one_tool_result_larger_than_the_window_never_blocks_a_session() {
    for preset in Preset::ALL {
        everywhere(|room| {
            let id = session(room, Meter::O200k);
            let mut root = room.root(&id).clipping(None);
            let budget = budget(preset, 4_000);
            root.say(user("what does the build say?")).unwrap();
            for round in 0..4 {
                // Three windows in one output; then two of them in one answer; then one in the middle of talk.
                let large = prose(round, 12_000);
                match round {
                    1 => {
                        let both = vec![call("b", "run", "{}"), call("c", "run", "{}")];
                        root.say(calls(both)).unwrap();
                        root.say(result("b", &large)).unwrap();
                        root.say(result("c", &large)).unwrap();
                    }
                    2 => {
                        prints(&mut root, "d", &large);
                        exchange(&mut root, 7, 100);
                    }
                    n => prints(&mut root, &format!("a{n}"), &large),
                }
                let fitted = fit(&mut root, &budget);
                assert!(!fitted.done.is_empty() && fitted.after <= budget.usable);
                check_order(&root);
                assert!(request(&root)[0].contains("what does the build say?"));
                root.say(model("I see; the build is fine.")).unwrap();
                exchange(&mut root, 40 + round, 40);
                fit(&mut root, &budget);
            }
            root.settle().unwrap();
            let seen = request(&root);
            drop(root);
            assert_eq!(request(&room.again().root(&id)), seen);
        });
    }
}

/// Bar 17, from the other side: a person may paste as much.
#[test]
fn one_request_larger_than_the_window_never_blocks_a_session_either() {
    for preset in Preset::ALL {
        let room = Room::memory();
        let mut root = room.root(&session(&room, Meter::O200k));
        let budget = budget(preset, 4_000);
        root.say(user(&format!("FIRST {} ENDS", prose(1, 9_000)))).unwrap();
        fit(&mut root, &budget);
        assert!(request(&root)[0].contains("FIRST") && request(&root)[0].contains("ENDS"));
        root.say(model("too long, but fine")).unwrap();
        root.say(user(&format!("SECOND {} ENDS", prose(2, 9_000)))).unwrap();
        fit(&mut root, &budget);
        let view = request(&root);
        assert!(view[0].contains("FIRST") && view.last().unwrap().contains("SECOND"), "{}", preset.name());
        for n in 0..20 {
            exchange(&mut root, n, 80);
            fit(&mut root, &budget);
            check_order(&root);
        }
    }
}
