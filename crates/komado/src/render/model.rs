//! Models: a table of all, the figures of one, what was learned, what a newer collection changed, what an error means.

use super::{Listed, Render, columns, or_dash};
use crate::fault::Outcome;
use crate::paper::{Ink, Paper, count, number, say};
use komado_ops::Page;
use komado_ops::model::{Difference, Forgotten, Learned, Model, ModelChange, Updated};
use komado_provider::overflow::{Remedy, Verdict};

/// So many changes are told one by one.
const TOLD: usize = 10;

impl Listed for Model {
    fn list(page: &Page<Self>, paper: &mut Paper) -> Outcome {
        let heading =
            ["window", "input", "output", "$ in", "$ out", "$ cached", "source", "provider", "model"];
        columns(paper, heading, &[0, 1, 2, 3, 4, 5], page.items.iter().map(cells))?;
        say("$: US dollars for a million tokens");
        Ok(())
    }
}

fn cells(model: &Model) -> [String; 9] {
    [
        number(model.context),
        number(model.input_limit),
        or_dash(model.output.map(number)),
        or_dash(model.price.map(|price| price.input)),
        or_dash(model.price.map(|price| price.output)),
        or_dash(model.price.and_then(|price| price.cache_read)),
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

impl Listed for Learned {
    fn list(page: &Page<Self>, paper: &mut Paper) -> Outcome {
        if page.items.is_empty() {
            say("nothing was learned yet");
            return Ok(());
        }
        let heading = ["window", "most answered", "factor", "answers", "about"];
        let rows = page.items.iter().map(|Self { about, lesson }| {
            let factor = or_dash(lesson.factor.map(|factor| format!("{factor:.2}")));
            let window = or_dash(lesson.window.map(number));
            [window, number(lesson.most), factor, number(lesson.samples), about.clone()]
        });
        columns(paper, heading, &[0, 1, 2, 3], rows)
    }
}

impl Listed for Forgotten {
    fn list(page: &Page<Self>, paper: &mut Paper) -> Outcome {
        let line = |one: &Self| format!("forgot what was learned about {}", one.forgotten);
        page.items.iter().try_for_each(|one| paper.line(line(one)))
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

impl Render for Verdict {
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
