//! Long outputs: a table of them, and what was read of one.

use super::{Listed, Render};
use crate::fault::Outcome;
use crate::paper::{Paper, number, say};
use crate::table::table;
use komado_ops::Page;
use komado_ops::output::{Output, Reading};

impl Listed for Output {
    fn list(page: &Page<Self>, paper: &mut Paper) -> Outcome {
        if page.items.is_empty() {
            say("no output is too long to be shown; @SEQ reads any entry");
            return Ok(());
        }
        let mut rows = vec![["ref", "bytes", "lines", "tool", "entry"].map(str::to_owned).to_vec()];
        let figure = |n: Option<u64>| n.map_or("?".to_owned(), number);
        rows.extend(page.items.iter().map(|one| {
            let tool = one.tool.clone().unwrap_or_else(|| "?".to_owned());
            let (bytes, lines) = (figure(one.byte_size), figure(one.line_count));
            vec![one.ref_id.clone(), bytes, lines, tool, format!("@{}", one.seq)]
        }));
        table(&rows, &[1, 2]).iter().try_for_each(|line| paper.line(line))
    }
}

impl Render for Reading {
    fn text(&self, paper: &mut Paper) -> Outcome {
        paper.line(&self.text)
    }
}
