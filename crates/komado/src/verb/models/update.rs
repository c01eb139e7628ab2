//! `komado models update`: a newer collection, checked whole before anything changes.

use super::place;
use crate::app::App;
use crate::fault::{Exit, Fault, Outcome};
use crate::paper::{count, number, say};
use clap::Args as ClapArgs;
use komado_provider::registry::{Model, Registry};
use serde_json::json;
use std::fs::DirBuilder;
use std::io::Write;
use std::os::unix::fs::DirBuilderExt;
use std::path::PathBuf;

#[derive(ClapArgs, Debug)]
pub(super) struct Args {
    /// Lines in our own form, models.dev's api.json, or LiteLLM's model_prices_and_context_window.json
    file: PathBuf,
}

/// So many changes are told one by one.
const TOLD: usize = 10;

pub(super) fn run(app: &mut App, args: &Args) -> Outcome {
    let file = args.file.display();
    let text = std::fs::read_to_string(&args.file).map_err(|e| {
        let exit = match e.kind() {
            std::io::ErrorKind::NotFound => Exit::NotFound,
            std::io::ErrorKind::InvalidData => Exit::BadInput,
            _ => Exit::Failed,
        };
        Fault::new(exit, format!("{file}: {e}; nothing was changed"))
    })?;
    let new =
        Registry::read_any(&text).map_err(|e| Fault::input(format!("{file}: {e}; nothing was changed")))?;
    // A broken file of before must not keep a good one out.
    let before = app.config.models.registry().unwrap_or_else(|_| Registry::builtin());
    let change = Change::between(&before, &new);
    put(app, &new)?;
    let rows = new.models().len() as u64;
    if app.paper.json {
        return app.paper.json(&json!({
            "path": place(app).display().to_string(),
            "rows": rows,
            "added": change.added,
            "changed": change.changed.len(),
            "same": change.same,
        }));
    }
    app.paper.line(format!(
        "{}: {} new, {} changed, {} as before",
        count(rows, "model"),
        number(change.added),
        number(change.changed.len() as u64),
        number(change.same)
    ))?;
    for line in change.changed.iter().take(TOLD) {
        app.paper.line(format!("  {line}"))?;
    }
    if let Some(more) = change.changed.len().checked_sub(TOLD).filter(|more| *more > 0) {
        app.paper.line(format!("  and {} more", number(more as u64)))?;
    }
    say(format!("kept in {}; remove it to go back to what is built in", place(app).display()));
    Ok(())
}

/// Writes the rows beside their place and moves them there in one step.
fn put(app: &App, new: &Registry) -> Outcome {
    app.claim()?;
    let path = place(app);
    let folder = &app.context.config.base_dir;
    let tell =
        |e: std::io::Error| Fault::new(Exit::Failed, format!("{}: {e}; nothing was changed", path.display()));
    DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(tell)?;
    let mut file = tempfile::NamedTempFile::new_in(folder).map_err(tell)?;
    file.write_all(new.write().as_bytes()).map_err(tell)?;
    file.as_file().sync_all().map_err(tell)?;
    file.persist(&path).map_err(|e| tell(e.error))?;
    Ok(())
}

/// What a new collection does to what was known.
#[derive(Default)]
struct Change {
    added: u64,
    same: u64,
    changed: Vec<String>,
}

impl Change {
    fn between(before: &Registry, new: &Registry) -> Self {
        let mut change = Self::default();
        for model in new.models() {
            match before.get(&model.provider, &model.id) {
                None => change.added += 1,
                Some(old) => match differences(old, model) {
                    lines if lines.is_empty() => change.same += 1,
                    lines => {
                        change.changed.push(format!("{}/{}: {}", model.provider, model.id, lines.join(", ")))
                    }
                },
            }
        }
        change
    }
}

fn differences(old: &Model, new: &Model) -> Vec<String> {
    let tokens = |n: Option<u64>| n.map_or_else(|| "none".to_owned(), number);
    let sizes = [
        ("window", Some(old.context), Some(new.context)),
        ("input", old.input, new.input),
        ("output", old.output, new.output),
    ];
    let mut lines: Vec<String> = sizes
        .iter()
        .filter(|(_, old, new)| old != new)
        .map(|(name, old, new)| format!("{name} {} → {}", tokens(*old), tokens(*new)))
        .collect();
    if old.price != new.price {
        lines.push("price".to_owned());
    }
    lines
}
