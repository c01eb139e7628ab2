//! Everything that is wrong with playbooks, with its place, before they run.

use super::{most_depth, of_files, read};
use crate::{Context, Effect, Interfaces, Operation, Outcome};
use komado_agent::playbook::{Error, Problem};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// Say everything that is wrong with playbooks.
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

impl From<Problem> for PlaybookProblem {
    fn from(Problem { place, why }: Problem) -> Self {
        Self { place, why }
    }
}

impl Operation for CheckPlaybooks {
    const NAME: &'static str = "playbook_check";
    const TITLE: &'static str = "Check playbooks";
    const EFFECT: Effect = Effect::Read;
    const INTERFACES: Interfaces = of_files("playbook check");
    type Output = CheckedPlaybooks;

    fn run(self, context: &Context) -> Outcome<CheckedPlaybooks> {
        Ok(CheckedPlaybooks { items: self.files.iter().map(|file| checked(context, file)).collect() })
    }
}

fn checked(context: &Context, path: &Path) -> CheckedPlaybook {
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
