//! Models: a table of all, the figures of one, what was learned, what a newer collection changed, what an error means.

use super::{Render, each};
use crate::fault::Outcome;
use crate::paper::{Ink, Paper, count, number, say};
use crate::table::table;
use komado_ops::Page;
use komado_ops::model::{Difference, Explained, Forgotten, Learned, Model, ModelChange, Remedy, Updated};

/// So many changes are told one by one.
const TOLD: usize = 10;

impl Render for Page<Model> {
    fn text(&self, paper: &mut Paper) -> Outcome {
        let heading =
            ["window", "input", "output", "$ in", "$ out", "$ cached", "source", "provider", "model"];
        let mut rows = vec![heading.map(str::to_owned).to_vec()];
        rows.extend(self.items.iter().map(cells));
        table(&rows, &[0, 1, 2, 3, 4, 5]).into_iter().try_for_each(|line| paper.fit(&line))?;
        say("$: US dollars for a million tokens");
        Ok(())
    }

    fn json(&self, paper: &mut Paper) -> Outcome {
        each(paper, &self.items)
    }
}

fn cells(model: &Model) -> Vec<String> {
    let amount = |amount: Option<f64>| amount.map_or_else(|| "-".to_owned(), |amount| format!("{amount}"));
    vec![
        number(model.context),
        number(model.input_limit),
        model.output.map_or_else(|| "-".to_owned(), number),
        amount(model.price.map(|price| price.input)),
        amount(model.price.map(|price| price.output)),
        amount(model.price.and_then(|price| price.cache_read)),
        model.source.to_owned(),
        model.provider.clone(),
        model.id.clone(),
    ]
}

impl Render for Model {
    fn text(&self, paper: &mut Paper) -> Outcome {
        paper.line(paper.ink(Ink::Bold, &format!("{}/{}", self.provider, self.id)))?;
        let tokens =
            |n: Option<u64>| n.map_or_else(|| "not known".to_owned(), |n| format!("{} tokens", number(n)));
        let lines = [
            ("window", tokens(Some(self.context))),
            ("may be sent", tokens(Some(self.input_limit))),
            ("longest answer", tokens(self.output)),
            ("price", price(self)),
            ("source", self.source.to_owned()),
        ];
        lines.iter().try_for_each(|(name, value)| paper.line(format!("  {name:<15} {value}")))
    }
}

fn price(model: &Model) -> String {
    let Some(price) = model.price else { return "not known".to_owned() };
    let more = |name: &str, amount: Option<f64>| {
        amount.map(|amount| format!(", {name} {amount}")).unwrap_or_default()
    };
    format!(
        "USD a million tokens: input {}, output {}{}{}",
        price.input,
        price.output,
        more("cache read", price.cache_read),
        more("cache write", price.cache_write)
    )
}

impl Render for Page<Learned> {
    fn text(&self, paper: &mut Paper) -> Outcome {
        if self.items.is_empty() {
            say("nothing was learned yet");
            return Ok(());
        }
        let mut rows =
            vec![["window", "most answered", "factor", "answers", "about"].map(str::to_owned).to_vec()];
        rows.extend(self.items.iter().map(|Learned { about, lesson }| {
            let window = lesson.window.map_or_else(|| "-".to_owned(), number);
            let factor = lesson.factor.map_or_else(|| "-".to_owned(), |factor| format!("{factor:.2}"));
            vec![window, number(lesson.most), factor, number(lesson.samples), about.clone()]
        }));
        table(&rows, &[0, 1, 2, 3]).into_iter().try_for_each(|line| paper.fit(&line))
    }

    fn json(&self, paper: &mut Paper) -> Outcome {
        each(paper, &self.items)
    }
}

impl Render for Page<Forgotten> {
    fn text(&self, paper: &mut Paper) -> Outcome {
        self.items
            .iter()
            .try_for_each(|one| paper.line(format!("forgot what was learned about {}", one.forgotten)))
    }

    fn json(&self, paper: &mut Paper) -> Outcome {
        each(paper, &self.items)
    }
}

impl Render for Updated {
    fn text(&self, paper: &mut Paper) -> Outcome {
        paper.line(format!(
            "{}: {} new, {} changed, {} as before",
            count(self.rows, "model"),
            number(self.added),
            number(self.changed),
            number(self.same)
        ))?;
        for change in self.changes.iter().take(TOLD) {
            paper.line(format!("  {}", told(change)))?;
        }
        if let Some(more) = self.changes.len().checked_sub(TOLD).filter(|more| *more > 0) {
            paper.line(format!("  and {} more", number(more as u64)))?;
        }
        say(format!("kept in {}; remove it to go back to what is built in", self.path));
        Ok(())
    }
}

fn told(change: &ModelChange) -> String {
    let tokens = |n: &Option<u64>| n.map_or_else(|| "none".to_owned(), number);
    let differences = change.differences.iter().map(|difference| match difference {
        Difference::Tokens { name, before, after } => {
            format!("{name} {} → {}", tokens(before), tokens(after))
        }
        Difference::Price => "price".to_owned(),
    });
    format!("{}: {}", change.model, differences.collect::<Vec<_>>().join(", "))
}

impl Render for Explained {
    fn text(&self, paper: &mut Paper) -> Outcome {
        let (ink, title) =
            if self.overflow { (Ink::Yellow, "overflow of the window") } else { (Ink::Bold, "no overflow") };
        paper.line(paper.ink(ink, title))?;
        let sizes = [("limit", self.limit), ("sent", self.actual), ("answer asked for", self.output)];
        for (name, size) in sizes {
            if let Some(size) = size {
                paper.line(format!("  {name:<17} {} tokens", number(size)))?;
            }
        }
        let remedy = match self.remedy {
            Remedy::Shrink => Some("make the conversation smaller: `komado fit`"),
            Remedy::LowerMaxTokens => Some("ask for a shorter answer; what was sent fits"),
            Remedy::None => None,
        };
        if let Some(remedy) = remedy {
            paper.line(format!("  {:<17} {remedy}", "what helps"))?;
        }
        paper.line(format!("  {:<17} {}", "why", self.why))
    }
}
