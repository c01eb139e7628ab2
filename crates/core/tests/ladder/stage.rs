//! A journal with true token counts, and a window it must fit into.

use crate::ladder::dice::Dice;
use crate::ladder::play::{self, Play};
use komado_core::budget::{Budget, Preset};
use komado_core::digest::Digest;
use komado_core::harness::user_text;
use komado_core::journal::{Cause, Edit, Entry, Show, ShowKind};
use komado_core::ladder::{self, Floor, LadderNext, LadderRound, LadderStep, Rung};
use komado_core::message::{Message, MessagePart, Role, ToolOutcome};
use komado_core::{Meter, Seq};

/// Steps that one round may take before something is wrong.
pub(crate) const MOST_STEPS: usize = 12;

/// Tokens as the meter counts them: the ladder stands on true numbers.
pub(crate) fn trued(meter: Meter, play: &Play, entry: Entry) -> (Entry, u32) {
    match entry {
        Entry::Message(message, reply) => {
            let tokens = meter.message(&message);
            (Entry::Message(message, reply), tokens)
        }
        Entry::Setup(setup) => {
            let tokens = meter.setup(&setup);
            (Entry::Setup(setup), tokens)
        }
        Entry::Anchor(anchor) => {
            let tokens = meter.said(&anchor.text);
            (Entry::Anchor(anchor), tokens)
        }
        Entry::Edit(mut edit) => {
            edit.show.iter_mut().for_each(|show| show.tokens = meter.said(&show.text));
            for swap in &mut edit.replace {
                if let Some(Entry::Message(message, _)) =
                    play::entry(&play.book, play.book.view().result(swap.seq))
                {
                    swap.tokens = meter.message(&message.saying(&swap.text));
                }
            }
            let tokens = edit.shown_tokens();
            (Entry::Edit(edit), tokens)
        }
        other => (other, 0),
    }
}

/// Appends what was proposed, now and then much longer than it was.
pub(crate) fn push(play: &mut Play, meter: Meter, entry: Entry) -> Option<Seq> {
    let entry = match entry {
        Entry::Message(message, reply) if play.dice.chance(35) => {
            Entry::Message(longer(message, &mut play.dice), reply)
        }
        other => other,
    };
    let (entry, tokens) = trued(meter, play, entry);
    play.push(entry, tokens)
}

fn longer(mut message: Message, dice: &mut Dice) -> Message {
    const FILL: [&str; 5] = [
        "the build failed again\n",
        "読み込みに失敗しました。",
        "x",
        "src/main.rs:12: error[E0308]\n",
        "aGVsbG8gd29ybGQ=",
    ];
    let text = dice.pick(&FILL).unwrap().repeat(dice.between(1, 300) as usize);
    match message.parts.iter_mut().find_map(|p| if let MessagePart::Result(o) = p { Some(o) } else { None }) {
        Some(ToolOutcome { content, .. }) => content.push(MessagePart::text(text)),
        None => message.parts.insert(0, MessagePart::text(text)),
    }
    message
}

/// Goes on for `count` entries of any kind, then answers what waits, so that a request could be sent.
pub(crate) fn go_on(play: &mut Play, meter: Meter, count: u32) {
    for _ in 0..count {
        let (entry, _) = play::propose(&play.book, &mut play.dice);
        push(play, meter, entry);
    }
    ready(play, meter);
}

/// Opens what was closed and answers what waits.
pub(crate) fn ready(play: &mut Play, meter: Meter) {
    while let Some(at) = play.book.view().closed() {
        play.push(Entry::Rewind { to: at - 1 }, 0).unwrap();
    }
    while let Some(call) = play.book.view().open().calls.first().cloned() {
        let seq = play.last() + 1;
        let answer = crate::ladder::sayings::result(&mut play.dice, seq, &call.id);
        push(play, meter, Entry::Message(answer, None)).unwrap();
    }
}

/// Someone says something, as agents do: mostly calls with outputs.
pub(crate) fn turn(play: &mut Play, meter: Meter) {
    for _ in 0..play.dice.between(1, 4) {
        let entry = play::say(&play.book, &mut play.dice);
        push(play, meter, entry);
    }
    ready(play, meter);
}

/// What a round came to.
pub(crate) enum Fitted {
    Yes(usize),
    Floor(Floor),
}

/// Takes steps until there are no more, with a summariser that may fail.
pub(crate) fn fit(play: &mut Play, meter: Meter, budget: &Budget) -> Fitted {
    let whim = play.dice.below(4);
    fit_by(play, meter, budget, whim, &mut |_| {})
}

/// The same, with the digest, and told of each step.
pub(crate) fn fit_well(play: &mut Play, budget: &Budget, look: &mut dyn FnMut(Rung)) -> Fitted {
    fit_by(play, Meter::Bytes4, budget, 3, look)
}

fn fit_by(play: &mut Play, meter: Meter, budget: &Budget, whim: u32, look: &mut dyn FnMut(Rung)) -> Fitted {
    let mut round = LadderRound::default();
    for steps in 0..MOST_STEPS {
        let Ok(next) = ladder::next(play.book.view(), play.book.rows(), budget, meter, round);
        let step = match next {
            LadderNext::Rest => return Fitted::Yes(steps),
            LadderNext::Floor(floor) => return Fitted::Floor(floor),
            LadderNext::Do(step) => step,
        };
        round.condensed |= matches!(step, LadderStep::Condense { .. });
        look(step.rung());
        let Some(edit) = written(play, meter, step, whim) else { continue };
        let before = play.book.view().tokens();
        let tokens = edit.shown_tokens();
        round.edited = true;
        let pushed = play.book.push(Entry::Edit(edit), tokens, "t");
        assert!(pushed.is_ok(), "the gate refused a step: {pushed:?}");
        let after = play.book.view().tokens();
        assert!(after < before, "a step freed nothing: {before} to {after}");
    }
    panic!("{MOST_STEPS} steps and no end");
}

/// The step as an edit; a summariser may fail, write much, or be the digest.
fn written(play: &Play, meter: Meter, step: LadderStep, whim: u32) -> Option<Edit> {
    let kind = step.kind();
    let cause = Cause::default();
    Some(match step {
        LadderStep::Replace { replace, .. } => Edit { kind, hide: vec![], show: vec![], replace, cause },
        LadderStep::Truncate { hide, marker } => {
            let show = Show { kind: ShowKind::Marker, tokens: meter.said(&marker), text: marker };
            Edit { kind, hide, show: vec![show], replace: vec![], cause }
        }
        LadderStep::Condense { hide, limit } => {
            let text = match whim {
                0 => return None,
                1 => "ok".to_owned(),
                _ => digest(play, meter, &hide, limit.saturating_sub(8)),
            };
            let show = Show { kind: ShowKind::Summary, tokens: meter.said(&text), text };
            assert!(u64::from(show.tokens) <= limit, "{} over {limit}", show.tokens);
            Edit { kind, hide, show: vec![show], replace: vec![], cause }
        }
    })
}

fn digest(play: &Play, meter: Meter, hide: &[komado_core::Span], limit: u64) -> String {
    let mut digest = Digest::new(meter);
    let view = play.book.view();
    for item in play.items().iter().filter(|item| hide.iter().any(|span| span.holds(item.seq))) {
        let Ok(()) = view.pour_item(play.book.rows(), *item, &mut |seq: Seq, message: &Message| {
            digest.take(seq, message);
            Ok::<(), std::convert::Infallible>(())
        });
    }
    digest.text(limit)
}

/// A random policy in a random window, from far too small to far too large.
pub(crate) fn budget(dice: &mut Dice, tokens: u64) -> Budget {
    let preset = *dice.pick(&Preset::ALL).unwrap();
    let mut policy = preset.policy();
    if dice.chance(20) {
        policy.rungs.condense = false;
    }
    if dice.chance(20) {
        policy.rungs.trim = false;
    }
    let most = u32::try_from(tokens.max(64) * 3).unwrap_or(u32::MAX);
    let window =
        u64::from(if dice.chance(70) { dice.between(200, most.max(201)) } else { dice.between(40, 1200) });
    Budget::new(policy, window, &[])
}

/// The latest instruction that is shown, as it was said or clipped: the user's last message with words of the user's own.
pub(crate) fn latest_instruction(play: &Play) -> Option<Seq> {
    play.items().iter().rev().map(|item| item.seq).find(|&seq| {
        let said = play::entry(&play.book, seq);
        matches!(said, Some(Entry::Message(message, _)) if is_user(message)
            && user_text(&message.words()).any(|text| !text.trim().is_empty()))
    })
}

/// A message of the user's.
pub(crate) fn is_user(message: &Message) -> bool {
    message.role == Role::User
}
