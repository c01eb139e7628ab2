//! Keys: one that was made, all of them, one that was taken back.

use super::{Listed, Render, columns, or_dash, seconds};
use crate::fault::Outcome;
use crate::paper::{Paper, say};
use komado_ops::Page;
use komado_ops::key::file::Sees;
use komado_ops::key::{Added, KeyRow, Revoked};

impl Render for Added {
    fn text(&self, paper: &mut Paper) -> Outcome {
        paper.line(&self.key)?;
        let (name, user) = (&self.row.name, or_dash(self.row.user.as_ref()));
        say(format!("key {name} of user {user}: shown this once, and kept as a digest only"));
        say(
            "send it as Authorization: Bearer, x-api-key or x-komado-key; from now on every request needs one",
        );
        say(format!("undo: {}", self.undo));
        Ok(())
    }
}

impl Listed for KeyRow {
    fn list(page: &Page<Self>, paper: &mut Paper) -> Outcome {
        if page.items.is_empty() {
            return paper.line("no keys: only this machine is served");
        }
        let heading = ["name", "user", "sees", "rate", "at a time", "expires", "made"];
        columns(paper, heading, &[], page.items.iter().map(cells))
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

fn cells(key: &KeyRow) -> [String; 7] {
    let sees = match key.sees {
        Sees::All => "all".to_owned(),
        Sees::Own if key.sessions.is_empty() => "own".to_owned(),
        Sees::Own => format!("own, {}", key.sessions.join(", ")),
    };
    [
        key.name.clone(),
        or_dash(key.user.as_ref()),
        sees,
        or_dash(key.rate.map(|rate| format!("{rate}/s"))),
        or_dash(key.concurrency),
        or_dash(key.expires.as_deref().map(seconds)),
        seconds(&key.created_at),
    ]
}
