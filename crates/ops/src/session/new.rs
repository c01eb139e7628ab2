//! New: make a session.

use super::ChildSettings;
use crate::{Context, Effect, Exit, Fault, Interfaces, Operation, Outcome, Route};
use komado_core::journal::Setup;
use komado_core::session::{Meta, MetaConfig, State, StelisConfig, TaskKey};
use komado_core::{Meter, SessionId, ThreadId};
use komado_engine::lesson::Told;
use komado_store::Mode;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Make a session: a journal of its own, in which messages are kept and found again. What is left out is as the settings say.
#[derive(Clone, Debug, Default, clap::Args, Deserialize, JsonSchema)]
pub struct New {
    /// The session's id; a new UUID when left out
    #[arg(long)]
    #[schemars(regex(pattern = "^[A-Za-z0-9][A-Za-z0-9_.:-]*$"), length(max = 128))]
    pub id: Option<String>,
    /// The model it will talk to
    #[arg(long)]
    pub model: Option<String>,
    /// The provider of the model, as in the settings
    #[arg(long)]
    pub provider: Option<String>,
    /// The model's window in tokens
    #[arg(long, value_name = "TOKENS", value_parser = clap::value_parser!(u32).range(1..))]
    #[schemars(range(min = 1))]
    pub window: Option<u32>,
    /// Whose session it is
    #[arg(long)]
    pub user: Option<String>,
    /// What it works on, such as github:ann/tool/issue/27
    #[arg(long, value_name = "KEY")]
    pub task: Option<String>,
    /// How tokens are counted: o200k, cl100k, chars4, bytes4 or o200k-1.5
    #[arg(long)]
    pub meter: Option<String>,
    /// The system prompt
    #[arg(long, value_name = "TEXT")]
    pub system: Option<String>,
    /// Make it wait in a queue
    #[arg(long)]
    #[serde(default)]
    pub queued: bool,
    /// Who speaks in it: the name of a persona in the settings
    #[arg(long, value_name = "NAME")]
    pub persona: Option<String>,
    /// What its child threads get, such as {"default_window_ratio":0.7,"max_depth":2,"enabled":true}
    #[arg(long, value_name = "JSON")]
    pub stelis: Option<ChildSettings>,
}

/// A session that was made.
#[derive(Clone, PartialEq, Debug, Serialize, JsonSchema)]
pub struct Made {
    /// Its id.
    pub session: String,
    /// Where it is kept, for a caller on this machine.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub folder: Option<Option<String>>,
    /// Whose it is.
    pub user: Option<String>,
    /// What it works on.
    pub task: String,
    /// The model it will talk to.
    pub model: Option<String>,
    /// The model's window in tokens.
    pub window: Option<u32>,
    /// Who said how large the window is.
    pub window_from: Option<String>,
    /// How tokens are counted.
    pub meter: String,
    /// Who speaks in it.
    pub persona: Option<String>,
    /// What its child threads get.
    pub stelis_config: Option<StelisConfig>,
    /// `running`, or `queued` where it was asked to wait.
    pub status: State,
}

impl Made {
    /// True when the window is the one that the table of models has.
    pub fn window_is_listed(&self) -> bool {
        self.window_from.as_deref() == Some(Told::Listed.name())
    }
}

impl Operation for New {
    const NAME: &'static str = "new";
    const TITLE: &'static str = "Make a session";
    const EFFECT: Effect = Effect::Add;
    const INTERFACES: Interfaces = Interfaces::everywhere("new", Route::make("sessions", "/sessions"));
    type Output = Made;

    fn run(mut self, context: &Context) -> Outcome<Made> {
        let id = match &self.id {
            Some(id) => context.free_name(id)?,
            None => SessionId::new(uuid::Uuid::new_v4().to_string())?,
        };
        self.user = owner(context, self.user.take(), &id)?;
        if let Some(persona) = &self.persona {
            check_persona(context, persona)?;
        }
        let system = self.system.take();
        let meta = self.attributes(context)?.meta(context, &id)?;
        create(context, &meta, Setup { system, ..Setup::default() })?;
        Ok(told(context, &id, meta))
    }

    fn location(made: &Made) -> Option<String> {
        Some(format!("/sessions/{}", made.session))
    }
}

fn told(context: &Context, id: &SessionId, meta: Meta) -> Made {
    Made {
        session: id.to_string(),
        folder: context.folder(id),
        user: meta.user,
        task: meta.task_key.to_string(),
        model: meta.config.model,
        window: meta.config.context_length,
        window_from: meta.config.window_from,
        meter: meta.config.meter,
        persona: meta.config.persona,
        stelis_config: meta.config.stelis_config,
        status: if meta.queued { State::Queued } else { State::Running },
    }
}

/// Whose session is made: the caller's own, unless the caller sees all.
fn owner(context: &Context, asked: Option<String>, id: &SessionId) -> Outcome<Option<String>> {
    let caller = &context.caller;
    match asked {
        Some(user) if !caller.sees_all && caller.user.as_ref() != Some(&user) => Err(Fault::new(
            Exit::Forbidden,
            format!("this key makes no sessions for user {user:?}; leave user out"),
        )),
        None if !caller.sees_all && caller.user.is_none() && !caller.sessions.contains(&id.to_string()) => {
            Err(Fault::usage("this key belongs to no user, and could not see what it made"))
        }
        asked => Ok(asked.or_else(|| caller.user.clone())),
    }
}

/// A persona without settings is most often a misspelling, but may get some later.
fn check_persona(context: &Context, name: &str) -> Outcome {
    if name.trim().is_empty() {
        return Err(Fault::usage("--persona takes a name, not an empty text"));
    }
    if context.config.persona(name).is_none() {
        let hint = match context.config.near_persona(name) {
            Some(near) => format!("did you mean {near}?"),
            None => format!("personas.{name}.stelis_config gives it some"),
        };
        context.note(format!("nothing is set for persona {name:?}; {hint}"));
    }
    Ok(())
}

/// Makes a session, with what stands before its conversation.
pub(crate) fn create(context: &Context, meta: &Meta, setup: Setup) -> Outcome {
    let id = context.engine.create(meta)?;
    if setup != Setup::default() {
        let mut root = context.engine.open(&id, &ThreadId::root(), Mode::Write)?;
        root.set_up(setup)?;
        root.settle()?;
    }
    Ok(())
}

/// Makes a user's session as the settings say.
pub fn make(
    context: &Context,
    id: &SessionId,
    user: &str,
    model: Option<String>,
    window: Option<u32>,
) -> Outcome {
    let new = New { model, window, user: Some(user.to_owned()), ..New::default() };
    context.engine.create(&new.attributes(context)?.meta(context, id)?)?;
    Ok(())
}

impl New {
    fn attributes(self, context: &Context) -> Outcome<Attributes> {
        let models = &context.config.models;
        let provider = self.provider.unwrap_or_else(|| models.provider.clone());
        let of = models.of(&provider);
        let model = self.model.or_else(|| of.and_then(|of| of.model.clone()));
        let known = of.filter(|of| of.model == model).and_then(|of| of.context_length);
        let (window, told) = match (self.window.or(known), &model) {
            (Some(window), _) => (Some(window), Some(Told::Given)),
            (None, None) => (None, None),
            (None, Some(model)) => {
                (Some(context.models().listed_window(model, &provider)?), Some(Told::Listed))
            }
        };
        let config = MetaConfig {
            llm_provider: model.as_ref().map(|_| provider),
            meter: meter(context, self.meter.as_deref(), model.as_deref())?.name().to_owned(),
            model,
            context_length: window,
            window_from: told.map(|told| told.name().to_owned()),
            compression_threshold: Some(context.config.compression_threshold),
            persona: self.persona,
            stelis_config: self.stelis.map(|given| given.0),
            alias: None,
        };
        Ok(Attributes { config, user: self.user, task: self.task, queued: self.queued })
    }
}

/// What a session is made with.
pub struct Attributes {
    /// Provider, model, window and meter.
    pub config: MetaConfig,
    /// Whose it is; else as the settings say.
    pub user: Option<String>,
    /// What it works on.
    pub task: Option<String>,
    /// Whether it waits in a queue.
    pub queued: bool,
}

impl Attributes {
    /// The attributes of the session `id`.
    pub fn meta(self, context: &Context, id: &SessionId) -> Outcome<Meta> {
        Ok(Meta {
            uuid: id.to_string(),
            task_key: match &self.task {
                Some(key) => TaskKey::parse(key).map_err(Fault::usage)?,
                None => TaskKey::local(id),
            },
            created_at: context.engine.now(),
            process_id: std::process::id(),
            hostname: hostname(),
            config: self.config,
            user: self.user.or_else(|| context.config.user.clone()),
            queued: self.queued,
        })
    }
}

/// This machine's name.
pub fn hostname() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

/// The meter asked for; the model's own where the default was left as it is.
pub fn meter(context: &Context, asked: Option<&str>, model: Option<&str>) -> Outcome<Meter> {
    let name = asked.unwrap_or(&context.config.meter);
    let Some(meter) = Meter::named(name) else {
        let known = Meter::ALL.map(Meter::name).join(", ");
        return Err(Fault::usage(format!("unknown meter: {name:?}; known are {known}")));
    };
    Ok(match (asked, model, meter) {
        (None, Some(model), Meter::O200k) => Meter::for_model(model),
        _ => meter,
    })
}
