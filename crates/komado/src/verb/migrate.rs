//! `komado migrate`: each session is told when it is gone over, and all of them at the end.

use crate::app::App;
use crate::fault::Outcome;
use crate::paper::{Paper, count, number, say};
use crate::progress::Shown;
pub(crate) use komado_ops::migrate::Migrate as Args;
use komado_ops::migrate::{Begun, Figures, Migrated, Summary, Way};
use komado_ops::stream::Sink;

pub(crate) fn run(app: &mut App, args: Args) -> Outcome {
    let mut printed = Printed { paper: &mut app.paper, progress: &app.progress, way: Way::Copy };
    let outcome = app.context.stream(args, &mut printed);
    app.progress.clear();
    outcome
}

struct Printed<'a> {
    paper: &'a mut Paper,
    progress: &'a Shown,
    way: Way,
}

impl Sink<Args> for Printed<'_> {
    fn begin(&mut self, begun: Begun) -> Outcome {
        self.way = begun.way;
        Ok(())
    }

    fn item(&mut self, item: Migrated) -> Outcome {
        match (&item, self.paper.json) {
            (_, true) => self.paper.json(&item)?,
            (Migrated::Session { figures: Figures::Left { error }, .. }, false) => {
                self.progress.clear();
                say(format!("komado: {error}"));
            }
            (Migrated::Session { .. }, false) => {}
            (Migrated::Summary { summary }, false) => {
                self.progress.clear();
                lines(summary, self.way).iter().try_for_each(|line| self.paper.line(line))?;
            }
        }
        // Each session is told when it is there, not at the end.
        self.paper.flush()
    }
}

fn lines(sum: &Summary, way: Way) -> Vec<String> {
    let (sessions, outputs) = (count(sum.sessions, "session"), count(sum.outputs, "output"));
    if way == Way::Look {
        return vec![format!("would copy {} entries of {sessions}", number(sum.added.entries))];
    }
    let (entries, digest) = (number(sum.entries), &sum.digest);
    let mut lines =
        vec![format!("{sessions}, {entries} entries, {outputs}: read back and the same; digest {digest}")];
    if matches!(way, Way::Copy | Way::Move) {
        lines.push(format!(
            "copied {} entries and {} that were not there, {} and {}",
            number(sum.added.entries),
            count(sum.added.blobs, "output"),
            count(sum.lessons, "lesson"),
            count(sum.jobs, "job")
        ));
    }
    if way == Way::Move {
        lines.push(format!("removed {} from the source", count(sum.removed, "session")));
    }
    lines
}
