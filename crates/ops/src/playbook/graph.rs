//! A playbook as lines for a terminal, and as a picture.

use super::{of_files, right};
use crate::{Context, Effect, Interfaces, Operation, Outcome};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// Columns of a drawing.
const COLUMNS: usize = 80;

/// Draw a playbook.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
pub struct GraphPlaybook {
    /// The playbook; the built-in one when left out
    pub file: Option<PathBuf>,
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
    /// The drawing as a picture, SVG.
    #[serde(skip)]
    pub svg: String,
}

impl Operation for GraphPlaybook {
    const NAME: &'static str = "playbook_graph";
    const TITLE: &'static str = "Draw a playbook";
    const EFFECT: Effect = Effect::Read;
    const INTERFACES: Interfaces = of_files("playbook graph");
    type Output = DrawnPlaybook;

    fn run(self, _: &Context) -> Outcome<DrawnPlaybook> {
        let playbook = right(self.file.as_deref(), u32::MAX)?;
        Ok(DrawnPlaybook {
            nodes: playbook.len() as u64,
            text: playbook.drawn(COLUMNS),
            svg: playbook.svg(),
            name: playbook.name,
        })
    }
}
