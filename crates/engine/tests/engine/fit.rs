//! The ladder at work, rung by rung: what each one takes, what it spares, and what it says about it.
//!
//! Tokens are counted as a quarter of the bytes, so that every number here can be checked by hand.

mod refused;
mod trim;
mod truncate;
mod undo;
mod working_set;

use crate::engine::room::{Room, call, calls, check, model, result, user};
use komado_core::budget::{Budget, Policy, Preset};
use komado_core::{Seq, SessionId};
use komado_engine::Thread;
use komado_engine::condense::{ByDigest, CondenseSettings, Summariser};
use komado_engine::fit::{FitResult, Ladder};

/// A text of `tokens` tokens that begins with `name`.
fn text(name: &str, tokens: usize) -> String {
    let mut text = format!("{name} ");
    let words = ["reads ", "the ", "next ", "token ", "from ", "its ", "buffer\n"];
    let mut n = name.len();
    while text.len() < tokens * 4 {
        text.push_str(words[n % 7]);
        n += 3;
    }
    text.truncate(tokens * 4);
    text
}

fn ask(root: &mut Thread<'_>, name: &str, tokens: usize) -> Seq {
    root.say(user(&text(name, tokens))).unwrap()
}

fn tell(root: &mut Thread<'_>, name: &str, tokens: usize) -> Seq {
    root.say(model(&text(name, tokens))).unwrap()
}

/// A call of `tool` with `arguments`, and its output of `tokens` tokens; gives the entry of the output.
fn run(root: &mut Thread<'_>, tool: &str, arguments: &str, tokens: usize) -> Seq {
    let id = format!("c{}", root.last());
    root.say(calls(vec![call(&id, tool, arguments)])).unwrap();
    root.say(result(&id, &text(&format!("output of {tool} {arguments}:"), tokens))).unwrap()
}

fn read(root: &mut Thread<'_>, path: &str, tokens: usize) -> Seq {
    run(root, "read_file", &format!(r#"{{"path":"{path}"}}"#), tokens)
}

/// A session whose first request is 10 tokens long.
fn begin(room: &Room) -> SessionId {
    let id = room.session("s");
    ask(&mut room.root(&id), "please", 10);
    id
}

/// A window of 10,000: 7,000 are usable. With a first request of 10 tokens it acts at 6,302 and comes down to 4,204.
fn ours(change: impl FnOnce(&mut Policy)) -> Budget {
    let mut policy = Preset::Komado.policy();
    change(&mut policy);
    Budget::new(policy, 10_000, &[])
}

fn fit_by(root: &mut Thread<'_>, budget: &Budget, by: &mut dyn Summariser) -> FitResult {
    let mut ladder = Ladder { budget: budget.clone(), settings: CondenseSettings::default(), by };
    let fitted = root.fit(&mut ladder).unwrap();
    check(root);
    explained(&fitted, root);
    fitted
}

/// With the digest.
fn fit(root: &mut Thread<'_>, budget: &Budget) -> FitResult {
    let mut by = ByDigest::new(root.meter());
    fit_by(root, budget, &mut by)
}

/// Every edit says by which rule, from how much to how much, and in which window.
fn explained(fitted: &FitResult, root: &Thread<'_>) {
    let mut tokens = fitted.verdict.tokens;
    for done in &fitted.done {
        let cause = &done.edit.cause;
        assert_eq!(cause.rule, fitted.verdict.rule.name());
        assert_eq!(cause.before, tokens);
        assert!(cause.after < cause.before, "{cause:?}");
        let note = cause.note.as_deref().unwrap();
        let numbers = format!("window {}, reserve {}", fitted.verdict.window, fitted.verdict.reserve);
        assert!(note.contains(&numbers), "{note}");
        assert_eq!(root.view_at(done.seq).unwrap().tokens(), cause.after);
        tokens = cause.after;
    }
    assert_eq!(fitted.after, root.view().tokens());
    assert!(if fitted.returned.is_empty() { fitted.after == tokens } else { fitted.after > tokens });
}
