//! Keys: one that was made, all of them, one that was taken back.

use super::{Render, each};
use crate::fault::Outcome;
use crate::paper::{Paper, say};
use crate::table::table;
use komado_ops::Page;
use komado_ops::key::file::Sees;
use komado_ops::key::{Added, KeyRow, Revoked};

impl Render for Added {
    fn text(&self, paper: &mut Paper) -> Outcome {
        paper.line(&self.key)?;
        let (name, user) = (&self.row.name, user(&self.row));
        say(format!("key {name} of user {user}: shown this once, and kept as a digest only"));
        say(
            "send it as Authorization: Bearer, x-api-key or x-komado-key; from now on every request needs one",
        );
        say(format!("undo: {}", self.undo));
        Ok(())
    }
}

impl Render for Page<KeyRow> {
    fn text(&self, paper: &mut Paper) -> Outcome {
        if self.items.is_empty() {
            return paper.line("no keys: only this machine is served");
        }
        let heading = ["name", "user", "sees", "rate", "at a time", "expires", "made"];
        let mut rows = vec![heading.map(str::to_owned).to_vec()];
        rows.extend(self.items.iter().map(cells));
        table(&rows, &[]).into_iter().try_for_each(|line| paper.fit(&line))
    }

    fn json(&self, paper: &mut Paper) -> Outcome {
        each(paper, &self.items)
    }
}

impl Render for Revoked {
    fn text(&self, paper: &mut Paper) -> Outcome {
        paper.line(format!("revoked {}", self.name))?;
        if self.left == 0 {
            say(
                "that was the last one: whoever is on this machine needs none now, and others are not served",
            );
        }
        Ok(())
    }
}

fn cells(key: &KeyRow) -> Vec<String> {
    let or_dash = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
    let sees = match key.sees {
        Sees::All => "all".to_owned(),
        Sees::Own if key.sessions.is_empty() => "own".to_owned(),
        Sees::Own => format!("own, {}", key.sessions.join(", ")),
    };
    vec![
        key.name.clone(),
        user(key).to_owned(),
        sees,
        or_dash(key.rate.map(|rate| format!("{rate}/s"))),
        or_dash(key.concurrency.map(|n| n.to_string())),
        or_dash(key.expires.as_ref().map(|end| end.chars().take(19).collect())),
        key.created_at.chars().take(19).collect(),
    ]
}

fn user(key: &KeyRow) -> &str {
    key.user.as_deref().unwrap_or("-")
}
