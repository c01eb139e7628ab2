//! `komado models`: what is known about models, and how to know it better.

mod learned;
mod update;

use crate::app::App;
use crate::fault::{Exit, Fault, Outcome};
use crate::paper::{Ink, number, say};
use crate::table::table;
use clap::{Args as ClapArgs, Subcommand};
use komado_provider::registry::{Model, Registry};
use serde_json::{Value, json};
use std::path::PathBuf;

#[derive(ClapArgs, Debug)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct Args {
    /// Show the model this name means
    name: Option<String>,
    #[command(subcommand)]
    action: Option<Action>,
}

#[derive(Subcommand, Debug)]
enum Action {
    /// Put a newer collection over the one that is built in
    Update(update::Args),
    /// List what was learned from the answers and refusals of models
    Learned,
    /// Forget what was learned about a model
    Forget {
        /// The model's name, or the address and the name as `komado models learned` lists them
        #[arg(value_name = "NAME|ABOUT")]
        about: String,
    },
}

pub(crate) fn run(app: &mut App, args: Args) -> Outcome {
    match (args.action, args.name) {
        (Some(Action::Update(args)), _) => update::run(app, &args),
        (Some(Action::Learned), _) => learned::list(app),
        (Some(Action::Forget { about }), _) => learned::forget(app, &about),
        (None, Some(name)) => one(app, &name),
        (None, None) => list(app),
    }
}

/// Where the user's own rows are.
fn place(app: &App) -> PathBuf {
    app.context.config.base_dir.join("models.jsonl")
}

fn one(app: &mut App, name: &str) -> Outcome {
    let registry = app.config.models.registry()?;
    let Some(model) = registry.find(name) else { return Err(unknown(&registry, name)) };
    if app.paper.json {
        return app.paper.json(&row(model));
    }
    let title = app.paper.ink(Ink::Bold, &format!("{}/{}", model.provider, model.id));
    app.paper.line(title)?;
    let tokens =
        |n: Option<u64>| n.map_or_else(|| "not known".to_owned(), |n| format!("{} tokens", number(n)));
    let lines = [
        ("window", tokens(Some(model.window()))),
        ("may be sent", tokens(Some(model.input_limit()))),
        ("longest answer", tokens(model.output)),
        ("price", price(model)),
        ("source", model.source.name().to_owned()),
    ];
    lines.iter().try_for_each(|(name, value)| app.paper.line(format!("  {name:<15} {value}")))
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

/// That a name is not known, and which are like it.
pub(crate) fn unknown(registry: &Registry, name: &str) -> Fault {
    let wanted = name.to_lowercase();
    let close = registry.models().iter().filter(|model| model.id.to_lowercase().contains(&wanted));
    let close: Vec<&str> = close.map(|model| model.id.as_str()).take(5).collect();
    let hint = if close.is_empty() {
        "a local model's window is the one its server was started with: give it with --window; \
         `komado models` lists what is known"
            .to_owned()
    } else {
        format!("known are {}", close.join(", "))
    };
    Fault::new(Exit::NotFound, format!("no model is known by the name {name:?}; {hint}"))
}

fn list(app: &mut App) -> Outcome {
    let registry = app.config.models.registry()?;
    if app.paper.json {
        return registry.models().iter().try_for_each(|model| app.paper.json(&row(model)));
    }
    let heading = ["window", "input", "output", "$ in", "$ out", "$ cached", "source", "provider", "model"];
    let mut rows = vec![heading.map(str::to_owned).to_vec()];
    rows.extend(registry.models().iter().map(cells));
    table(&rows, &[0, 1, 2, 3, 4, 5]).into_iter().try_for_each(|line| app.paper.fit(&line))?;
    say("$: US dollars for a million tokens");
    Ok(())
}

fn cells(model: &Model) -> Vec<String> {
    let amount = |amount: Option<f64>| amount.map_or_else(|| "-".to_owned(), |amount| format!("{amount}"));
    vec![
        number(model.window()),
        number(model.input_limit()),
        model.output.map_or_else(|| "-".to_owned(), number),
        amount(model.price.map(|price| price.input)),
        amount(model.price.map(|price| price.output)),
        amount(model.price.and_then(|price| price.cache_read)),
        model.source.name().to_owned(),
        model.provider.clone(),
        model.id.clone(),
    ]
}

/// A model for programs.
pub(crate) fn row(model: &Model) -> Value {
    let mut row = json!(model);
    row["input_limit"] = json!(model.input_limit());
    for field in ["input", "output", "price"] {
        if row.get(field).is_none() {
            row[field] = Value::Null;
        }
    }
    row["source"] = json!(model.source.name());
    row
}
