//! Playbooks: the course of a task as a graph, looked at before it is followed, and followed.

mod run;

pub use run::{Follower, RanPlaybook, RunPlaybook};

use crate::{Interfaces, OpFault, OpResult, Operation, OperationContext, OperationLabel};
use komado_agent::playbook::{Error, Playbook, PlaybookProblemFound};
use komado_core::session::MetaConfig;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// An operation on files of this machine.
const fn of_files(verb: &'static str) -> Interfaces {
    Interfaces::only_cli(verb, "it reads files of this machine, whose paths no caller from elsewhere names")
}

/// How deep child threads may nest in a session that says nothing of it.
pub(crate) fn most_depth(context: &OperationContext) -> u32 {
    context.config.threads(&MetaConfig::default()).max_depth
}

/// Reads one; what is wrong with it where child threads may be at most `most` deep.
fn read(path: &Path, most: u32) -> OpResult<Result<Playbook, Error>> {
    let name = path.display().to_string();
    let text = std::fs::read_to_string(path)
        .map_err(|why| OpFault::unread(format!("the playbook {name} cannot be read"), &why))?;
    Ok(Playbook::parse_within(&name, &text, most))
}

/// Reads one that must be right; the built-in one when none is named.
pub(crate) fn right(path: Option<&Path>, most: u32) -> OpResult<Playbook> {
    let Some(path) = path else { return Ok(Playbook::built_in()) };
    read(path, most)?.map_err(|error| OpFault::input(error.to_string()))
}

/// Check playbooks and list every problem.
#[derive(Clone, Debug, clap::Args, Deserialize, JsonSchema)]
pub struct CheckPlaybooks {
    /// The playbooks
    #[arg(required = true, value_name = "FILE")]
    pub files: Vec<PathBuf>,
}

/// Playbooks that were checked.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
pub struct CheckedPlaybooks {
    /// They, as they were named.
    pub items: Vec<CheckedPlaybook>,
}

/// A playbook that was checked.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, JsonSchema)]
pub struct CheckedPlaybook {
    /// Its file.
    pub file: String,
    /// True when it can be followed.
    pub ok: bool,
    /// Its name, when it can be followed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// How many nodes it has, when it can be followed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nodes: Option<u64>,
    /// Why it cannot be followed.
    pub problems: Vec<PlaybookProblem>,
    /// What may be meant otherwise.
    pub warnings: Vec<String>,
}

/// Something that is wrong with a playbook.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
pub struct PlaybookProblem {
    /// Where.
    pub place: String,
    /// What is wrong, and what to do.
    pub why: String,
}

impl From<PlaybookProblemFound> for PlaybookProblem {
    fn from(PlaybookProblemFound { place, why }: PlaybookProblemFound) -> Self {
        Self { place, why }
    }
}

impl Operation for CheckPlaybooks {
    const ABOUT: OperationLabel = OperationLabel::read("playbook_check", "Check playbooks");
    const INTERFACES: Interfaces = of_files("playbook check");
    type Output = CheckedPlaybooks;

    fn run(self, context: &OperationContext) -> OpResult<CheckedPlaybooks> {
        Ok(CheckedPlaybooks { items: self.files.iter().map(|file| checked(context, file)).collect() })
    }
}

fn checked(context: &OperationContext, path: &Path) -> CheckedPlaybook {
    let file = path.display().to_string();
    let found = read(path, most_depth(context))
        .unwrap_or_else(|fault| Err(Error::bad(file.clone(), fault.message())));
    match found {
        Ok(playbook) => CheckedPlaybook {
            file,
            ok: true,
            nodes: Some(playbook.len() as u64),
            warnings: playbook.warnings(),
            name: Some(playbook.name),
            problems: Vec::new(),
        },
        Err(error) => {
            let problems = error.problems().into_iter().map(PlaybookProblem::from).collect();
            CheckedPlaybook { file, problems, ..CheckedPlaybook::default() }
        }
    }
}

/// Columns of a drawing.
const COLUMNS: usize = 80;

/// Draw a playbook.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
pub struct GraphPlaybook {
    /// The playbook; the built-in one when left out
    pub file: Option<PathBuf>,
    /// Also as a Mermaid flowchart
    #[serde(default)]
    pub mermaid: bool,
}

/// A playbook that was drawn.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
pub struct DrawnPlaybook {
    /// Its name.
    pub name: String,
    /// How many nodes it has.
    pub nodes: u64,
    /// The drawing as lines.
    pub text: String,
    /// The drawing as a Mermaid flowchart, where that was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mermaid: Option<String>,
    /// The drawing as a picture, SVG.
    #[serde(skip)]
    pub svg: String,
}

impl Operation for GraphPlaybook {
    const ABOUT: OperationLabel = OperationLabel::read("playbook_graph", "Draw a playbook");
    const INTERFACES: Interfaces = of_files("playbook graph");
    type Output = DrawnPlaybook;

    fn run(self, _: &OperationContext) -> OpResult<DrawnPlaybook> {
        let playbook = right(self.file.as_deref(), u32::MAX)?;
        Ok(DrawnPlaybook {
            nodes: playbook.len() as u64,
            text: playbook.drawn(COLUMNS),
            mermaid: self.mermaid.then(|| playbook.mermaid()),
            svg: playbook.svg(),
            name: playbook.name,
        })
    }
}
