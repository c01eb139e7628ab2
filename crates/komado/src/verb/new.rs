//! `komado new`: make a session.

pub(crate) mod stelis;

use crate::app::{App, hostname};
use crate::fault::{Exit, Fault, Outcome};
use crate::paper::{number, say, text_of};
use clap::Args as ClapArgs;
use komado_core::journal::Setup;
use komado_core::session::{Meta, MetaConfig, StelisConfig, TaskKey};
use komado_core::{Meter, SessionId, ThreadId};
use komado_engine::window::Told;
use komado_store::Mode;
use serde_json::json;

#[derive(ClapArgs, Debug, Default)]
pub(crate) struct Args {
    /// The session's id; a new UUID when left out
    #[arg(long)]
    pub(crate) id: Option<String>,
    /// The model it will talk to
    #[arg(long)]
    pub(crate) model: Option<String>,
    /// The provider of the model, as in the settings
    #[arg(long)]
    pub(crate) provider: Option<String>,
    /// The model's window in tokens
    #[arg(long, value_name = "TOKENS", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) window: Option<u32>,
    /// Whose session it is
    #[arg(long)]
    pub(crate) user: Option<String>,
    /// What it works on, such as github:ann/tool/issue/27
    #[arg(long, value_name = "KEY")]
    pub(crate) task: Option<String>,
    /// How tokens are counted: o200k, cl100k, chars4, bytes4 or o200k-1.5
    #[arg(long)]
    pub(crate) meter: Option<String>,
    /// The system prompt
    #[arg(long, value_name = "TEXT")]
    pub(crate) system: Option<String>,
    /// Make it wait in a queue
    #[arg(long)]
    pub(crate) queued: bool,
    /// Who speaks in it: the name of a persona in the settings
    #[arg(long, value_name = "NAME")]
    pub(crate) persona: Option<String>,
    /// What its child threads get, such as {"default_window_ratio":0.7,"max_depth":2,"enabled":true}
    #[arg(long, value_name = "JSON", value_parser = stelis::parse)]
    pub(crate) stelis: Option<StelisConfig>,
}

pub(crate) fn run(app: &mut App, args: Args) -> Outcome {
    let id = args.id.clone().unwrap_or_else(|| uuid::Uuid::new_v4().to_string());
    let id = SessionId::new(id)?;
    if let Some(persona) = &args.persona {
        check_persona(app, persona)?;
    }
    let meta = meta(app, &args, &id)?;
    app.context.engine.create(&meta)?;
    if let Some(system) = args.system {
        let mut root = app.context.engine.open(&id, &ThreadId::root(), Mode::Write)?;
        root.set_up(Setup { system: Some(system), ..Setup::default() })?;
        root.settle()?;
    }
    let folder = app.context.files.as_ref().and_then(|files| files.folder(&id).ok());
    if app.paper.json {
        return app.paper.json(&json!({
            "session": id.as_str(),
            "folder": folder.as_deref().map(text_of),
            "user": meta.user,
            "task": meta.task_key.to_string(),
            "model": meta.config.model,
            "window": meta.config.context_length,
            "window_from": meta.config.window_from,
            "meter": meta.config.meter,
            "persona": meta.config.persona,
            "stelis_config": meta.config.stelis_config,
            "status": if meta.queued { "queued" } else { "running" },
        }));
    }
    app.paper.line(id.as_str())?;
    match meta.config.context_length {
        Some(window) => {
            let listed = meta.config.window_from.as_deref() == Some(Told::Listed.name());
            let from = if listed { ", from the table of models" } else { "" };
            say(format!(
                "window: {} tokens{from}, counted by {}",
                number(u64::from(window)),
                meta.config.meter
            ))
        }
        None => say("window: not set; `komado new --window TOKENS` sets it"),
    }
    folder.iter().for_each(|folder| say(format!("folder: {}", folder.display())));
    say(format!("next: komado append {id} \"…\""));
    Ok(())
}

/// Makes a user's session as the settings say, and prints nothing.
pub(crate) fn make(
    app: &App,
    id: &SessionId,
    user: &str,
    model: Option<String>,
    window: Option<u32>,
) -> Outcome {
    let args = Args { model, window, user: Some(user.to_owned()), ..Args::default() };
    app.context.engine.create(&meta(app, &args, id)?)?;
    Ok(())
}

fn meta(app: &App, args: &Args, id: &SessionId) -> Outcome<Meta> {
    let provider = args.provider.clone().unwrap_or_else(|| app.context.config.models.provider.clone());
    let of = app.context.config.models.of(&provider);
    let model = args.model.clone().or_else(|| of.and_then(|of| of.model.clone()));
    let known = of.filter(|of| of.model == model).and_then(|of| of.context_length);
    let (window, told) = match (args.window.or(known), &model) {
        (Some(window), _) => (Some(window), Some(Told::Given)),
        (None, None) => (None, None),
        (None, Some(model)) => (Some(app.models().listed_window(model, &provider)?), Some(Told::Listed)),
    };
    let made = Made {
        config: MetaConfig {
            llm_provider: model.as_ref().map(|_| provider),
            meter: meter(app, args.meter.as_deref(), model.as_deref())?.name().to_owned(),
            model,
            context_length: window,
            window_from: told.map(|told| told.name().to_owned()),
            compression_threshold: Some(app.context.config.compression_threshold),
            persona: args.persona.clone(),
            stelis_config: args.stelis,
            alias: None,
        },
        user: args.user.clone(),
        task: args.task.as_deref(),
        queued: args.queued,
    };
    made.meta(app, id)
}

/// A persona without settings is most often a misspelling, but may get some later.
fn check_persona(app: &App, name: &str) -> Outcome {
    if name.trim().is_empty() {
        return Err(Fault::usage("--persona takes a name, not an empty text"));
    }
    if app.context.config.persona(name).is_none() {
        let hint = match app.context.config.near_persona(name) {
            Some(near) => format!("did you mean {near}?"),
            None => format!("personas.{name}.stelis_config gives it some"),
        };
        say(format!("komado: nothing is set for persona {name:?}; {hint}"));
    }
    Ok(())
}

/// What a session is made with.
pub(super) struct Made<'a> {
    /// Provider, model, window and meter.
    pub(super) config: MetaConfig,
    /// Whose it is; else as the settings say.
    pub(super) user: Option<String>,
    /// What it works on.
    pub(super) task: Option<&'a str>,
    /// Whether it waits in a queue.
    pub(super) queued: bool,
}

impl Made<'_> {
    /// The attributes of the session `id`.
    pub(super) fn meta(self, app: &App, id: &SessionId) -> Outcome<Meta> {
        Ok(Meta {
            uuid: id.to_string(),
            task_key: match self.task {
                Some(key) => TaskKey::parse(key).map_err(Fault::usage)?,
                None => TaskKey::local(id),
            },
            created_at: app.context.engine.now(),
            process_id: std::process::id(),
            hostname: hostname(),
            config: self.config,
            user: self.user.or_else(|| app.context.config.user.clone()),
            queued: self.queued,
        })
    }
}

/// The meter asked for; the model's own where the default was left as it is.
pub(super) fn meter(app: &App, asked: Option<&str>, model: Option<&str>) -> Outcome<Meter> {
    let name = asked.unwrap_or(&app.context.config.meter);
    let Some(meter) = Meter::named(name) else {
        let known = Meter::ALL.map(Meter::name).join(", ");
        return Err(Fault::new(Exit::Usage, format!("unknown meter: {name:?}; known are {known}")));
    };
    Ok(match (asked, model, meter) {
        (None, Some(model), Meter::O200k) => Meter::for_model(model),
        _ => meter,
    })
}
