//! Sessions and users: those that were made, listed, ended, removed and counted; what users said, and how they talk.

use super::{Render, RenderList, columns, each, local, or_dash, took};
use crate::cli_output::{CliOutput, Style, count, number, table};
use komado_core::notation::tamed;
use komado_engine::user::{Habits, NameCount, UserSummary};
use komado_ops::page::ResultPage;
use komado_ops::session::{CleanedSessions, Imported, NewSession, StateChange, Stats};
use komado_ops::user::{StandingSession, UserMessage};
use komado_ops::{FaultKind, OpFault, OpResult};

impl Render for NewSession {
    fn text(&self, paper: &mut CliOutput) -> OpResult {
        paper.line(&self.session)?;
        match self.window {
            Some(window) => {
                let from = if self.window_is_listed() { ", from the table of models" } else { "" };
                let window = count(u64::from(window), "token");
                paper.say(format!("window: {window}{from}, counted by {}", self.meter));
            }
            None => paper.say(format!(
                "window: not set; say --window TOKENS to the command that needs it, such as `komado fit {} --window 8000`",
                self.session
            )),
        }
        self.folder.iter().flatten().for_each(|folder| paper.say(format!("folder: {folder}")));
        paper.say(format!("next: komado append {} \"…\"", self.session));
        Ok(())
    }
}

impl Render for Imported {
    fn text(&self, paper: &mut CliOutput) -> OpResult {
        paper.line(&self.session)?;
        paper.say(format!("next: komado context {}", self.session));
        Ok(())
    }
}

impl Render for StateChange {
    fn text(&self, paper: &mut CliOutput) -> OpResult {
        paper.line(format!("{} is {}", self.session, self.status.name()))?;
        if !self.aborted.is_empty() {
            paper.say(format!("child threads aborted with it: {}", self.aborted.join(", ")));
        }
        self.folder.iter().flatten().for_each(|folder| paper.say(format!("folder: {folder}")));
        paper.say(format!("undo: {}", self.undo));
        self.undo_aborted.iter().for_each(|undo| paper.say(format!("      {undo}")));
        Ok(())
    }
}

impl Render for CleanedSessions {
    fn text(&self, paper: &mut CliOutput) -> OpResult {
        let verb = verb(self);
        for one in &self.items {
            let id = &one.session;
            let status = one.status.map_or("?", |status| status.name());
            paper.prose(&match &one.error {
                Some(why) => format!("could not remove {id}: {why}"),
                None => format!("{verb} {id} ({status} {})", one.completed_at.as_deref().unwrap_or("?")),
            })?;
        }
        tell(paper, self);
        Ok(())
    }

    fn json(&self, paper: &mut CliOutput) -> OpResult {
        each(paper, &self.items)?;
        tell(paper, self);
        Ok(())
    }

    fn fault(&self) -> OpResult {
        match self.failures() {
            0 => Ok(()),
            n => {
                let sessions = count(n, "session");
                Err(OpFault::new(FaultKind::Failed, format!("{sessions} could not be removed; see above")))
            }
        }
    }
}

/// What a clean-up tells beside its rows.
fn tell(paper: &mut CliOutput, cleaned: &CleanedSessions) {
    let sessions = cleaned.items.len() as u64 - cleaned.failures();
    let (when, outputs) = (count(u64::from(cleaned.days), "day"), count(cleaned.outputs, "output"));
    let what = count(sessions, "session");
    paper.say(format!(
        "{} {what} that ended more than {when} ago, and {outputs} that no entry names",
        verb(cleaned)
    ));
    if cleaned.dry_run && sessions > 0 {
        paper.say("without --dry-run this is done, and cannot be undone");
    }
}

fn verb(cleaned: &CleanedSessions) -> &'static str {
    if cleaned.dry_run { "would remove" } else { "removed" }
}

impl Render for Stats {
    fn text(&self, paper: &mut CliOutput) -> OpResult {
        let states: Vec<String> =
            self.by_status.iter().map(|(state, n)| format!("{state} {}", number(*n))).collect();
        let states = if states.is_empty() { "no sessions".into() } else { states.join(", ") };
        paper.prose(&format!("{}  {states}", paper.ink(Style::Bold, "sessions")))?;
        let time = or_dash(self.avg_minutes.map(|minutes| took(minutes * 60_000.0)));
        let mean = self.average_tokens.map_or_else(|| "-".into(), |t| number(t.round() as u64));
        let total = number(self.total_tokens);
        let head = paper.ink(Style::Bold, "completed");
        paper.prose(&format!("{head}  mean time {time}, tokens {total} in all, {mean} on average"))?;
        let users = self.by_user.iter().map(|n| vec![n.user.clone(), n.status.clone(), number(n.count)]);
        let running = self
            .running
            .iter()
            .map(|s| vec![s.uuid.clone(), s.task_key.to_string(), s.started_at.clone().unwrap_or_default()]);
        let failed = self
            .failed
            .iter()
            .map(|s| vec![s.uuid.clone(), s.error_message.clone().unwrap_or_default(), s.created_at.clone()]);
        section(paper, &["user", "status", "count"], users)?;
        section(paper, &["running"], running)?;
        section(paper, &["failed"], failed)
    }
}

/// A table below others; none where it would be empty.
fn section(paper: &mut CliOutput, heading: &[&str], rows: impl Iterator<Item = Vec<String>>) -> OpResult {
    let heading = heading.iter().map(|cell| (*cell).to_owned()).collect();
    let rows: Vec<Vec<String>> = std::iter::once(heading).chain(rows).collect();
    if rows.len() == 1 {
        return Ok(());
    }
    paper.line("")?;
    table(&rows, &[]).iter().try_for_each(|line| paper.fit(line))
}

/// Bars of the hours, from few to many.
const BARS: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

impl RenderList for UserSummary {
    fn list(page: &ResultPage<Self>, paper: &mut CliOutput) -> OpResult {
        let heading = ["user", "sessions", "tokens", "first seen", "last seen"];
        let rows = page.items.iter().map(|user| {
            let (first, last) = (local(&user.first_seen), local(&user.last_seen));
            [user.user.clone(), number(user.sessions), number(user.total_tokens), first, last]
        });
        columns(paper, heading, &[1, 2], rows)?;
        if let Some(last) = page.items.last().filter(|_| page.next.is_some()) {
            paper.say(format!("more: komado user list --after {:?}", last.user));
        }
        Ok(())
    }
}

impl RenderList for UserMessage {
    fn list(page: &ResultPage<Self>, paper: &mut CliOutput) -> OpResult {
        for Self { spoken, .. } in &page.items {
            let place = &spoken.place;
            let at = tamed(&local(&place.timestamp));
            let address = format!("{}/{}@{}", place.session, place.thread, place.seq);
            let text = tamed(&spoken.text.split_whitespace().collect::<Vec<_>>().join(" "));
            paper.fit(&format!("{at}  {:<9}  {address}  {text}", spoken.role))?;
        }
        Ok(())
    }
}

impl Render for StandingSession {
    fn text(&self, paper: &mut CliOutput) -> OpResult {
        let row = &self.session;
        paper.line(&row.id)?;
        let what = if self.made { "made" } else { "there since" };
        paper.say(format!("{what} {}; {}", local(&row.meta.created_at), row.status.name()));
        if row.completed_at.is_some() {
            paper.say(format!("`komado session resume {}` opens it again", row.id));
        }
        Ok(())
    }
}

impl Render for Habits {
    fn text(&self, paper: &mut CliOutput) -> OpResult {
        paper.line(paper.ink(Style::Bold, &tamed(&self.user)))?;
        lines(self).into_iter().try_for_each(|line| paper.prose(&line))
    }
}

fn lines(habits: &Habits) -> Vec<String> {
    let states: Vec<String> = habits.by_status.iter().map(|(state, n)| format!("{n} {state}")).collect();
    let date = |at: &Option<String>| or_dash(at.as_deref().map(local));
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
            "took       {}, {}",
            count(habits.total_tokens, "token"),
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

fn shares(all: &[NameCount]) -> String {
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
