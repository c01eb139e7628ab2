//! Playbooks: those that were checked, drawn and followed.

use super::{Render, each};
use crate::fault::Outcome;
use crate::paper::{Paper, count, say};
use komado_ops::playbook::{CheckedPlaybooks, DrawnPlaybook, RanPlaybook};
use serde_json::Value;

impl Render for CheckedPlaybooks {
    fn text(&self, paper: &mut Paper) -> Outcome {
        for one in &self.items {
            let file = &one.file;
            if let (Some(name), Some(nodes)) = (&one.name, one.nodes) {
                paper.line(format!("{file}: ok, {name} has {}", count(nodes, "node")))?;
            }
            one.warnings.iter().for_each(|warning| say(format!("komado: {file}: {warning}")));
            for problem in &one.problems {
                paper.line(format!("{}: {}", problem.place, problem.why))?;
            }
        }
        Ok(())
    }

    fn json(&self, paper: &mut Paper) -> Outcome {
        each(paper, &self.items)
    }
}

impl Render for DrawnPlaybook {
    fn text(&self, paper: &mut Paper) -> Outcome {
        paper.line(&self.text)
    }
}

impl Render for RanPlaybook {
    fn text(&self, paper: &mut Paper) -> Outcome {
        say(format!("ended at {}", self.node));
        // What the model said last was printed as it came.
        match self.vars.get("last").and_then(Value::as_str) == Some(self.result.as_str()) {
            true => Ok(()),
            false => paper.line(&self.result),
        }
    }
}
