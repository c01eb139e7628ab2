//! Threads as people see them: what was started, ended and told, and what is next.

mod tree;

use super::{Listed, Render, address, columns, or_dash};
use crate::fault::Outcome;
use crate::paper::{Paper, number, say};
use crate::share;
use komado_core::notation::tamed;
use komado_ops::page::Page;
use komado_ops::thread::{
    Balanced, Chronicle, ChronicleEntry, Ended, Forked, HowEnded, Ran, Resumed, Started, ThreadRow, Told,
    WindowShare, WrittenChronicle,
};

/// How a window is shared out.
fn say_window(window: u64, share: &WindowShare) {
    say(format!("window: {} = {}", number(window), share::line(share)));
}

impl Render for Forked {
    fn text(&self, paper: &mut Paper) -> Outcome {
        paper.line(&self.address)?;
        if let Some(base) = &self.base {
            say(format!("shares everything up to @{}; the thread it left is as it was", base.seq));
        }
        say(format!("next: komado append {} \"…\"", self.address));
        Ok(())
    }
}

impl Listed for ThreadRow {
    fn list(page: &Page<Self>, paper: &mut Paper) -> Outcome {
        let heading = ["thread", "status", "started at", "goes on from", "entries", "tokens", "label"];
        let rows = page.items.iter().map(|one| {
            [
                one.thread.clone(),
                one.status.to_owned(),
                or_dash(one.parent.as_ref()),
                or_dash(one.base.as_ref()),
                number(one.entries.into()),
                number(one.context_tokens),
                one.label.clone().unwrap_or_default(),
            ]
        });
        columns(paper, heading, &[4, 5], rows)
    }
}

impl Render for Started {
    fn text(&self, paper: &mut Paper) -> Outcome {
        let address = &self.address;
        paper.line(address)?;
        self.share.iter().for_each(|share| say_window(self.window, share));
        say(format!("next: komado ask {address} \"…\"; at the end: komado thread end {address}"));
        say(format!("undo: {}", self.undo));
        Ok(())
    }
}

impl Render for Ended {
    fn text(&self, paper: &mut Paper) -> Outcome {
        paper.line(format!("{} is {}", address(&self.session, &self.thread), self.how.status))?;
        beside(&self.how);
        Ok(())
    }
}

impl Render for Ran {
    fn text(&self, _: &mut Paper) -> Outcome {
        say(format!("{} is completed", address(&self.answered.session, &self.answered.thread)));
        beside(&self.how);
        Ok(())
    }
}

/// What else is to be known of a thread that has ended, or waits.
fn beside(ended: &HowEnded) {
    if !ended.aborted.is_empty() {
        say(format!("aborted with it: {}", ended.aborted.join(", ")));
    }
    if let Some(why) = &ended.declined {
        say(format!("komado: the thread did end, and its chronicle is the digest's, not a model's: {why}"));
    }
    if let Some(chronicle) = &ended.chronicle {
        let first: String = tamed(chronicle.headline()).chars().take(70).collect();
        say(format!("chronicle of {}: {first}", covers(chronicle)));
    }
    if !ended.told {
        say(
            "komado: its parent is being changed by another process; it hears of this when it is opened next",
        );
    }
    say(format!("undo: {}", ended.undo));
    ended.undo_aborted.iter().for_each(|undo| say(format!("      {undo}")));
}

/// Which entries a chronicle tells of.
fn covers(chronicle: &Chronicle) -> String {
    let [from, to] = chronicle.covers;
    format!("@{from}..{to}{}", if chronicle.partial { " (partial)" } else { "" })
}

impl Render for Resumed {
    fn text(&self, paper: &mut Paper) -> Outcome {
        let name = address(&self.session, &self.thread);
        paper.line(format!("{name} is active"))?;
        if let Some(share) = &self.share {
            say_window(self.window, share);
            say(format!("what it sees of the threads above is as of now: {}", share::seen(share)));
        }
        say(format!("next: komado ask {name} \"…\""));
        say(format!("undo: {}", self.undo));
        Ok(())
    }
}

impl Render for Told {
    fn text(&self, paper: &mut Paper) -> Outcome {
        paper.line(format!("@{} told {}", self.seq, self.to))?;
        say(format!("{} hears it before its next request; what was told cannot be taken back", self.to));
        say(format!("next: komado ask {} \"…\"", address(&self.session, &self.to)));
        Ok(())
    }
}

impl Render for Balanced {
    fn text(&self, paper: &mut Paper) -> Outcome {
        for one in &self.entries {
            paper.line(format!("@{} {} has a new share", one.seq, one.thread))?;
        }
        if let Some(share) = &self.share {
            say_window(self.window, share);
            say(format!("seen of the threads above: {}", share::seen(share)));
        }
        self.undo.iter().for_each(|undo| say(format!("undo: {undo}")));
        Ok(())
    }
}

impl Render for ChronicleEntry {
    fn text(&self, paper: &mut Paper) -> Outcome {
        let chronicle = &self.chronicle;
        paper.line(chronicle.text.trim_end())?;
        let by = chronicle.by.as_deref().map(|by| format!(", by {by}")).unwrap_or_default();
        say(format!("@{}, of {}{by}", self.seq, covers(chronicle)));
        Ok(())
    }
}

impl Render for WrittenChronicle {
    fn text(&self, paper: &mut Paper) -> Outcome {
        let ChronicleEntry { seq, chronicle, .. } = &self.entry;
        paper.line(format!("@{seq} chronicle of {}", covers(chronicle)))?;
        self.declined.iter().for_each(|why| say(format!("komado: no chronicle by a model: {why}")));
        self.undo.iter().for_each(|undo| say(format!("undo: {undo}")));
        Ok(())
    }
}
