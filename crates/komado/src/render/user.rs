//! Users: a list, what was said lately, how one talks, a standing session.

use super::{Listed, Render, columns, or_dash, seconds};
use crate::fault::Outcome;
use crate::paper::{Ink, Paper, count, number, say};
use komado_core::notation::tamed;
use komado_engine::user::{Habits, Share, User};
use komado_ops::Page;
use komado_ops::user::{Spoken, StandingSession};

/// Bars of the hours, from few to many.
const BARS: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

impl Listed for User {
    fn list(page: &Page<Self>, paper: &mut Paper) -> Outcome {
        let heading = ["user", "sessions", "tokens", "first seen", "last seen"];
        let rows = page.items.iter().map(|user| {
            let (first, last) = (seconds(&user.first_seen), seconds(&user.last_seen));
            [user.user.clone(), number(user.sessions), number(user.total_tokens), first, last]
        });
        columns(paper, heading, &[1, 2], rows)?;
        if let Some(last) = page.items.last().filter(|_| page.next.is_some()) {
            say(format!("more: komado user list --after {:?}", last.user));
        }
        Ok(())
    }
}

impl Listed for Spoken {
    fn list(page: &Page<Self>, paper: &mut Paper) -> Outcome {
        for Self { spoken, .. } in &page.items {
            let place = &spoken.place;
            let at = tamed(&seconds(&place.timestamp));
            let address = format!("{}/{}@{}", place.session, place.thread, place.seq);
            let text = tamed(&spoken.text.split_whitespace().collect::<Vec<_>>().join(" "));
            paper.fit(&format!("{at}  {:<9}  {address}  {text}", spoken.role))?;
        }
        Ok(())
    }
}

impl Render for StandingSession {
    fn text(&self, paper: &mut Paper) -> Outcome {
        let row = &self.session;
        paper.line(&row.id)?;
        let what = if self.made { "made" } else { "there since" };
        say(format!("{what} {}; {}", row.meta.created_at, row.status.name()));
        if row.completed_at.is_some() {
            say(format!("`komado resume {}` opens it again", row.id));
        }
        Ok(())
    }
}

impl Render for Habits {
    fn text(&self, paper: &mut Paper) -> Outcome {
        paper.line(paper.ink(Ink::Bold, &tamed(&self.user)))?;
        lines(self).into_iter().try_for_each(|line| paper.fit(&line))
    }
}

fn lines(habits: &Habits) -> Vec<String> {
    let states: Vec<String> = habits.by_status.iter().map(|(state, n)| format!("{n} {state}")).collect();
    let date = |at: &Option<String>| or_dash(at.as_deref().map(seconds));
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
