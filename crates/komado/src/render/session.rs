//! Sessions: those that were made, listed, ended, removed and counted.

use super::{Listed, Render, columns, each, or_dash, seconds};
use crate::fault::{Exit, Fault, Outcome};
use crate::paper::{Ink, Paper, count, number, say};
use crate::table::table;
use komado_ops::page::Page;
use komado_ops::session::{Cleaned, Entered, Imported, Made, SessionRow, Stats};

impl Render for Made {
    fn text(&self, paper: &mut Paper) -> Outcome {
        paper.line(&self.session)?;
        match self.window {
            Some(window) => {
                let from = if self.window_is_listed() { ", from the table of models" } else { "" };
                let window = number(u64::from(window));
                say(format!("window: {window} tokens{from}, counted by {}", self.meter));
            }
            None => say("window: not set; `komado new --window TOKENS` sets it"),
        }
        self.folder.iter().flatten().for_each(|folder| say(format!("folder: {folder}")));
        say(format!("next: komado append {} \"…\"", self.session));
        Ok(())
    }
}

impl Listed for SessionRow {
    fn list(page: &Page<Self>, paper: &mut Paper) -> Outcome {
        if page.items.is_empty() {
            return paper.fit("no sessions");
        }
        let heading = ["session", "status", "user", "task", "model", "calls", "tools", "tokens", "created"];
        columns(paper, heading, &[5, 6, 7], page.items.iter().map(row))?;
        for one in &page.items {
            one.unfinished.iter().for_each(|why| say(format!("komado: session {}: {why}", one.id)));
        }
        Ok(())
    }
}

fn row(session: &SessionRow) -> [String; 9] {
    let (meta, counters) = (&session.meta, &session.counters);
    let task = Some(&meta.task_key).filter(|key| key.task_source != "local");
    [
        session.id.clone(),
        session.status.name().into(),
        or_dash(meta.user.as_ref()),
        or_dash(task),
        or_dash(meta.config.model.as_ref()),
        number(counters.llm_call_count),
        number(counters.tool_call_count),
        number(counters.total_tokens),
        seconds(&meta.created_at),
    ]
}

impl Render for Imported {
    fn text(&self, paper: &mut Paper) -> Outcome {
        paper.line(&self.session)?;
        say(format!("next: komado context {}", self.session));
        Ok(())
    }
}

impl Render for Entered {
    fn text(&self, paper: &mut Paper) -> Outcome {
        paper.line(format!("{} is {}", self.session, self.status.name()))?;
        if !self.aborted.is_empty() {
            say(format!("child threads aborted with it: {}", self.aborted.join(", ")));
        }
        self.folder.iter().flatten().for_each(|folder| say(format!("folder: {folder}")));
        say(format!("undo: {}", self.undo));
        self.undo_aborted.iter().for_each(|undo| say(format!("      {undo}")));
        Ok(())
    }
}

impl Render for Cleaned {
    fn text(&self, paper: &mut Paper) -> Outcome {
        let verb = verb(self);
        for one in &self.items {
            let id = &one.session;
            let status = one.status.map_or("?", |status| status.name());
            paper.line(match &one.error {
                Some(why) => format!("could not remove {id}: {why}"),
                None => format!("{verb} {id} ({status} {})", one.completed_at.as_deref().unwrap_or("?")),
            })?;
        }
        tell(self);
        Ok(())
    }

    fn json(&self, paper: &mut Paper) -> Outcome {
        each(paper, &self.items)?;
        tell(self);
        Ok(())
    }

    fn fault(&self) -> Outcome {
        match self.failures() {
            0 => Ok(()),
            n => {
                let sessions = count(n, "session");
                Err(Fault::new(Exit::Failed, format!("{sessions} could not be removed; see above")))
            }
        }
    }
}

/// What a clean-up tells beside its rows.
fn tell(cleaned: &Cleaned) {
    let sessions = cleaned.items.len() as u64 - cleaned.failures();
    let (when, outputs) = (count(u64::from(cleaned.days), "day"), count(cleaned.outputs, "output"));
    let what = count(sessions, "session");
    say(format!("{} {what} that ended over {when} ago, and {outputs} that nothing names", verb(cleaned)));
    if cleaned.dry_run && sessions > 0 {
        say("without --dry-run this is done, and cannot be undone");
    }
}

fn verb(cleaned: &Cleaned) -> &'static str {
    if cleaned.dry_run { "would remove" } else { "removed" }
}

impl Render for Stats {
    fn text(&self, paper: &mut Paper) -> Outcome {
        let states: Vec<String> =
            self.by_status.iter().map(|(state, n)| format!("{state} {}", number(*n))).collect();
        let states = if states.is_empty() { "no sessions".into() } else { states.join(", ") };
        paper.line(format!("{}  {states}", paper.ink(Ink::Bold, "sessions")))?;
        let minutes = self.avg_minutes.map_or_else(|| "-".into(), |m| format!("{m:.1} minutes"));
        let mean = self.average_tokens.map_or_else(|| "-".into(), |t| number(t.round() as u64));
        let total = number(self.total_tokens);
        let head = paper.ink(Ink::Bold, "completed");
        paper.line(format!("{head}  mean time {minutes}, tokens {total} in all, {mean} on average"))?;
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
fn section(paper: &mut Paper, heading: &[&str], rows: impl Iterator<Item = Vec<String>>) -> Outcome {
    let heading = heading.iter().map(|cell| (*cell).to_owned()).collect();
    let rows: Vec<Vec<String>> = std::iter::once(heading).chain(rows).collect();
    if rows.len() == 1 {
        return Ok(());
    }
    paper.line("")?;
    table(&rows, &[]).iter().try_for_each(|line| paper.fit(line))
}
