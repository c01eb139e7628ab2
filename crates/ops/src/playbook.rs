//! Playbooks: the course of a task as a graph, looked at before it is followed, and followed.

mod check;
mod given;
mod graph;
mod run;

pub use check::{CheckPlaybooks, CheckedPlaybook, CheckedPlaybooks, PlaybookProblem};
pub use graph::{DrawnPlaybook, GraphPlaybook};
pub use run::{Follower, RanPlaybook, RunPlaybook};

use crate::operation::{Interfaces, Offer};
use crate::{Context, Fault, Outcome};
use komado_agent::playbook::{Error, Playbook};
use komado_core::session::MetaConfig;
use std::path::Path;

/// An operation on files of this machine.
const fn of_files(verb: &'static str) -> Interfaces {
    const WHY: &str = "it reads files of this machine, whose paths no caller from elsewhere names";
    Interfaces { cli: Offer::As(verb), http: Offer::Not(WHY), mcp: Offer::Not(WHY) }
}

/// How deep child threads may nest in a session that says nothing of it.
pub(crate) fn most_depth(context: &Context) -> u32 {
    context.config.threads(&MetaConfig::default()).max_depth
}

/// Reads one; what is wrong with it where child threads may be at most `most` deep.
fn read(path: &Path, most: u32) -> Outcome<Result<Playbook, Error>> {
    let name = path.display().to_string();
    let text = std::fs::read_to_string(path)
        .map_err(|why| Fault::unread(format!("the playbook {name} cannot be read"), &why))?;
    Ok(Playbook::parse_within(&name, &text, most))
}

/// Reads one that must be right; the built-in one when none is named.
pub(crate) fn right(path: Option<&Path>, most: u32) -> Outcome<Playbook> {
    let Some(path) = path else { return Ok(Playbook::built_in()) };
    read(path, most)?.map_err(|error| Fault::input(error.to_string()))
}
