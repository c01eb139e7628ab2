//! The settings, one on a line.

use super::{Render, each};
use crate::fault::Outcome;
use crate::paper::{Ink, Paper, say};
use komado_core::notation::tamed;
use komado_ops::config::Settings;

impl Render for Settings {
    fn text(&self, paper: &mut Paper) -> Outcome {
        if let Some(table) = &self.reference {
            return paper.line(table.trim_end());
        }
        say_file(self);
        for one in &self.items {
            let first = tamed(one.value.lines().next().unwrap_or_default());
            let more = if one.value.lines().count() > 1 { " …" } else { "" };
            let origin = paper.ink(Ink::Dim, &tamed(&one.origin));
            paper.line(format!("{:<44} {first}{more}  {origin}", tamed(&one.key)))?;
        }
        Ok(())
    }

    fn json(&self, paper: &mut Paper) -> Outcome {
        match self.reference {
            Some(_) => self.text(paper),
            None => {
                say_file(self);
                each(paper, &self.items)
            }
        }
    }
}

fn say_file(settings: &Settings) {
    say(match (&settings.file, &settings.left_out) {
        (Some(path), _) => format!("settings file: {path}"),
        (None, Some(left_out)) => format!("settings file: none is used below; {left_out}"),
        (None, None) => "settings file: none; ./komado.yaml would be read".to_owned(),
    });
}
