//! `komado user show`: how a user talks.

use crate::app::App;
use crate::fault::Outcome;
use crate::paper::{Ink, count, number};
use komado_core::notation::tamed;
use komado_engine::user::{Habits, Share};

/// Bars of the hours, from few to many.
const BARS: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

pub(super) fn run(app: &mut App, user: &str) -> Outcome {
    let habits = app.context.engine.habits(user)?;
    if app.paper.json {
        return app.paper.json(&habits);
    }
    let title = app.paper.ink(Ink::Bold, &tamed(&habits.user));
    app.paper.line(title)?;
    lines(&habits).into_iter().try_for_each(|line| app.paper.fit(&line))
}

fn lines(habits: &Habits) -> Vec<String> {
    let states: Vec<String> = habits.by_status.iter().map(|(state, n)| format!("{n} {state}")).collect();
    let date = |at: &Option<String>| at.as_deref().unwrap_or("-").chars().take(19).collect::<String>();
    let mut lines = vec![
        format!("sessions   {} ({})", number(habits.sessions), states.join(", ")),
        format!("seen       {} to {}", date(&habits.first_seen), date(&habits.last_seen)),
        format!(
            "said       {} of {:.0} characters each, {} of {:.0}",
            count(habits.turns, "message"),
            habits.mean_turn_chars,
            if habits.replies == 1 {
                "1 reply".to_owned()
            } else {
                format!("{} replies", number(habits.replies))
            },
            habits.mean_reply_chars
        ),
        format!(
            "took       {} tokens, {}",
            number(habits.total_tokens),
            count(habits.tool_calls, "tool call")
        ),
        format!(
            "window     {} ({:.2} for each message), {} ({:.2})",
            count(habits.overflows, "overflow"),
            habits.overflow_rate,
            count(habits.compactions, "compaction"),
            habits.compaction_rate
        ),
        format!("hours UTC  0 |{}| 23", hours(&habits.hours)),
    ];
    let told = [
        ("models     ", &habits.models),
        ("tools      ", &habits.tools),
        ("words      ", &habits.words),
        ("questions  ", &habits.questions),
    ];
    lines.extend(
        told.iter().filter(|(_, all)| !all.is_empty()).map(|(name, all)| format!("{name}{}", shares(all))),
    );
    lines
}

fn shares(all: &[Share]) -> String {
    all.iter()
        .map(|share| format!("{} {}", tamed(&share.name), number(share.count)))
        .collect::<Vec<_>>()
        .join(", ")
}

fn hours(counts: &[u64]) -> String {
    let most = counts.iter().copied().max().unwrap_or(0).max(1);
    let bar = |n: &u64| BARS[((n * 8).div_ceil(most)).min(8) as usize];
    counts.iter().map(bar).collect()
}
