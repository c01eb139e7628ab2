//! Sessions: those that were made, listed, ended, removed and counted.

use super::Render;
use crate::fault::Outcome;
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
        self.folder.iter().for_each(|folder| say(format!("folder: {folder}")));
        say(format!("next: komado append {} \"…\"", self.session));
        Ok(())
    }
}

impl Render for Page<SessionRow> {
    fn text(&self, paper: &mut Paper) -> Outcome {
        if self.items.is_empty() {
            return paper.fit("no sessions");
        }
        let heading = ["session", "status", "user", "task", "model", "calls", "tools", "tokens", "created"];
        let mut rows = vec![heading.map(str::to_owned).to_vec()];
        rows.extend(self.items.iter().map(row));
        table(&rows, &[5, 6, 7]).into_iter().try_for_each(|line| paper.fit(&line))?;
        for (session, why) in
            self.items.iter().filter_map(|one| Some((&one.session, one.unfinished.as_ref()?)))
        {
            say(format!("komado: session {session}: {why}"));
        }
        Ok(())
    }

    fn json(&self, paper: &mut Paper) -> Outcome {
        self.items.iter().try_for_each(|session| paper.json(session))
    }
}

fn row(session: &SessionRow) -> Vec<String> {
    let or_dash = |text: &Option<String>| text.clone().unwrap_or_else(|| "-".into());
    let task = &session.task_key;
    vec![
        session.session.clone(),
        session.status.name().into(),
        or_dash(&session.user),
        if task.task_source == "local" { "-".into() } else { task.written() },
        or_dash(&session.config.model),
        number(session.llm_call_count),
        number(session.tool_call_count),
        number(session.total_tokens),
        session.created_at.chars().take(19).collect(),
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
        self.folder.iter().for_each(|folder| say(format!("folder: {folder}")));
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
        self.items.iter().try_for_each(|one| paper.json(one))?;
        tell(self);
        Ok(())
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
        let heading = |cells: &[&str]| vec![cells.iter().map(|cell| (*cell).to_owned()).collect::<Vec<_>>()];
        let mut users = heading(&["user", "status", "count"]);
        users.extend(self.by_user.iter().map(|n| vec![n.user.clone(), n.status.clone(), number(n.count)]));
        let mut running = heading(&["running"]);
        running.extend(
            self.running.iter().map(|s| {
                vec![s.uuid.clone(), s.task_key.written(), s.started_at.clone().unwrap_or_default()]
            }),
        );
        let mut failed = heading(&["failed"]);
        failed.extend(self.failed.iter().map(|s| {
            vec![s.uuid.clone(), s.error_message.clone().unwrap_or_default(), s.created_at.clone()]
        }));
        for rows in [users, running, failed].iter().filter(|rows| rows.len() > 1) {
            paper.line("")?;
            table(rows, &[]).into_iter().try_for_each(|line| paper.fit(&line))?;
        }
        Ok(())
    }
}
