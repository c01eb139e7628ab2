//! `komado models`: what is known about models, and how to know it better.

use crate::app::App;
use crate::fault::{Exit, Fault, Outcome};
use clap::{Args as ClapArgs, Subcommand};
use komado_ops::model::{ForgetLesson, ListLessons, ListModels, UpdateModels};
use std::path::{Path, PathBuf};

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
    Update {
        /// Lines in our own form, models.dev's api.json, or LiteLLM's model_prices_and_context_window.json
        file: PathBuf,
    },
    /// List what was learned from the answers and refusals of models
    Learned(ListLessons),
    /// Forget what was learned about a model
    Forget(ForgetLesson),
}

pub(crate) fn run(app: &mut App, args: Args) -> Outcome {
    match (args.action, args.name) {
        (Some(Action::Update { file }), _) => update(app, &file),
        (Some(Action::Learned(request)), _) => app.show(request),
        (Some(Action::Forget(request)), _) => app.show(request),
        (None, None) => app.show(ListModels::default()),
        (None, name) => {
            let found = app.run(ListModels { name })?.items;
            found.iter().try_for_each(|model| app.print(model))
        }
    }
}

fn update(app: &mut App, path: &Path) -> Outcome {
    let file = path.display();
    let text = std::fs::read_to_string(path).map_err(|e| {
        let exit = match e.kind() {
            std::io::ErrorKind::NotFound => Exit::NotFound,
            std::io::ErrorKind::InvalidData => Exit::BadInput,
            _ => Exit::Failed,
        };
        Fault::new(exit, format!("{file}: {e}; nothing was changed"))
    })?;
    app.show(UpdateModels { text }).map_err(|fault| match fault.exit() {
        Exit::BadInput => Fault::input(format!("{file}: {}", fault.message())),
        _ => fault,
    })
}
