//! New: make a session, and what it says for its child threads.

use crate::{Interfaces, OpFault, OpResult, Operation, OperationContext, OperationLabel, Route};
use komado_core::address::ID_PATTERN;
use komado_core::journal::{Ratio, Setup};
use komado_core::session::is_address;
use komado_core::session::{Meta, MetaConfig, State, StelisConfig, TaskKey};
use komado_core::{Meter, SessionId, ThreadId};
use komado_engine::lesson::WindowSource;
use komado_provider::provider::shown;
use komado_store::OpenMode;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::str::FromStr;

/// Make a session: a journal of its own, in which messages are kept and found again. What is left out is as the settings say.
#[derive(Clone, Debug, Default, clap::Args, Deserialize, JsonSchema)]
pub struct New {
    /// The session's id; a new UUID when left out
    #[arg(long)]
    #[schemars(regex(pattern = ID_PATTERN), length(max = 128))]
    pub id: Option<String>,
    /// The model it will talk to
    #[arg(long)]
    pub model: Option<String>,
    /// The provider of the model, as in the settings
    #[arg(long)]
    pub provider: Option<String>,
    /// The model's window in tokens
    #[arg(long, value_name = "TOKENS", value_parser = crate::choice::tokens::<u32>(1))]
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
    /// What its child threads get, such as {"default_window_ratio":0.7}
    #[arg(long, value_name = "JSON")]
    pub stelis: Option<ChildSettings>,
}

/// A session that was made.
#[derive(Clone, PartialEq, Debug, Serialize, JsonSchema)]
pub struct NewSession {
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

impl NewSession {
    /// True when the window is the one that the table of models has.
    pub fn window_is_listed(&self) -> bool {
        self.window_from.as_deref() == Some(WindowSource::Listed.name())
    }
}

impl Operation for New {
    const ABOUT: OperationLabel = OperationLabel::add("new", "Make a session");
    const INTERFACES: Interfaces = Interfaces::everywhere("new", Route::make("sessions", "/sessions"));
    type Output = NewSession;

    fn run(mut self, context: &OperationContext) -> OpResult<NewSession> {
        let id = match &self.id {
            Some(id) => context.free_name(id)?,
            None => SessionId::new(uuid::Uuid::new_v4().to_string())?,
        };
        self.user = owner(context, self.user.take(), &id)?;
        if let Some(persona) = &self.persona {
            check_persona(context, persona)?;
        }
        let system = self.system.take();
        let mut meta = self.meta(context, &id)?;
        meta.config = of_caller(context, meta.config);
        create(context, &meta, Setup { system, ..Setup::default() })?;
        Ok(NewSession {
            session: id.to_string(),
            folder: context.folder(&id),
            user: meta.user,
            task: meta.task_key.to_string(),
            model: meta.config.model,
            window: meta.config.context_length,
            window_from: meta.config.window_from,
            meter: meta.config.meter,
            persona: meta.config.persona,
            stelis_config: meta.config.stelis_config,
            status: if meta.queued { State::Queued } else { State::Running },
        })
    }

    fn location(made: &NewSession) -> Option<String> {
        Some(format!("/sessions/{}", made.session))
    }
}

/// Whose session is made: the caller's own, unless the caller sees all.
fn owner(context: &OperationContext, asked: Option<String>, id: &SessionId) -> OpResult<Option<String>> {
    let caller = &context.caller;
    match asked {
        Some(user) if !caller.sees_all && caller.user.as_ref() != Some(&user) => {
            Err(OpFault::forbidden(format!("this key makes no sessions for user {user:?}; leave user out")))
        }
        None if !caller.sees_all && caller.user.is_none() && !caller.sessions.contains(&id.to_string()) => {
            Err(OpFault::usage("this key belongs to no user, and could not see what it made"))
        }
        asked => Ok(asked.or_else(|| caller.user.clone())),
    }
}

/// A persona without settings is most often a misspelling, but may get some later.
fn check_persona(context: &OperationContext, name: &str) -> OpResult {
    if name.trim().is_empty() {
        return Err(OpFault::usage("--persona takes a name, not an empty text"));
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
pub(crate) fn create(context: &OperationContext, meta: &Meta, setup: Setup) -> OpResult {
    let id = context.engine.create(meta)?;
    if setup != Setup::default() {
        let mut root = context.engine.open(&id, &ThreadId::root(), OpenMode::Write)?;
        root.set_up(setup)?;
        root.settle()?;
    }
    Ok(())
}

/// Makes a user's session as the settings say.
pub fn make(
    context: &OperationContext,
    id: &SessionId,
    user: &str,
    model: Option<String>,
    window: Option<u32>,
) -> OpResult {
    let new = New { model, window, user: Some(user.to_owned()), ..New::default() };
    context.engine.create(&new.meta(context, id)?)?;
    Ok(())
}

impl New {
    fn meta(self, context: &OperationContext, id: &SessionId) -> OpResult<Meta> {
        let models = &context.config.models;
        let provider = self.provider.unwrap_or_else(|| models.provider.clone());
        // A request of another interface must not say where questions go.
        if is_address(&provider) && provider != models.provider {
            return Err(OpFault::usage(format!(
                "the provider of a new session is a name, not {}; set llm.NAME.base_url and say NAME here, or choose the \
                 address where the model is asked: komado ask --base-url URL",
                shown(&provider)
            )));
        }
        let of = models.of(&provider);
        let model = self.model.or_else(|| of.and_then(|of| of.model.clone()));
        let known = of.filter(|of| of.model == model).and_then(|of| of.context_length);
        let (window, told) = match (self.window.or(known), &model) {
            (Some(window), _) => (Some(window), Some(WindowSource::Given)),
            (None, None) => (None, None),
            (None, Some(model)) => {
                (Some(context.models().listed_window(model, &provider)?), Some(WindowSource::Listed))
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
            ..MetaConfig::default()
        };
        let usual = meta(context, id, config);
        let task_key = self.task.as_deref().map(TaskKey::parse).transpose().map_err(OpFault::usage)?;
        let (task_key, user) = (task_key.unwrap_or(usual.task_key), self.user.or(usual.user));
        Ok(Meta { task_key, user, queued: self.queued, ..usual })
    }
}

/// The program that talks in sessions which are made here.
pub(crate) const AGENT: &str = "komado";

/// A session's config with what is known of its caller: for one who works in a folder of this machine, that folder is the project.
pub(crate) fn of_caller(context: &OperationContext, config: MetaConfig) -> MetaConfig {
    let Some(folder) = context.working_folder() else { return config };
    let project = folder.to_str().map(str::to_owned);
    MetaConfig { agent: Some(AGENT.to_owned()), project, ..config }
}

/// What the session `id` is made with: no task, the user of the settings, and not queued.
pub fn meta(context: &OperationContext, id: &SessionId, config: MetaConfig) -> Meta {
    let (process_id, hostname, user) = (std::process::id(), hostname(), context.config.user.clone());
    Meta { process_id, hostname, user, ..Meta::new(id, context.engine.now(), config) }
}

/// This machine's name.
pub fn hostname() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

/// The meter asked for; the model's own where the default was left as it is.
pub fn meter(context: &OperationContext, asked: Option<&str>, model: Option<&str>) -> OpResult<Meter> {
    let name = asked.unwrap_or(&context.config.meter);
    let Some(meter) = Meter::named(name) else {
        let known = Meter::ALL.map(Meter::name).join(", ");
        return Err(OpFault::usage(format!("unknown meter: {name:?}; known are {known}")));
    };
    Ok(match (asked, model, meter) {
        (None, Some(model), Meter::O200k) => Meter::for_model(model),
        _ => meter,
    })
}

/// The deepest nesting that can be asked for; as in the settings.
const DEEPEST: u64 = 100;

/// What the child threads of a session get; what is left out is as the settings say.
#[derive(Clone, Copy, PartialEq, Debug, Deserialize, JsonSchema)]
#[serde(try_from = "Value")]
#[schemars(!try_from)]
pub struct ChildSettings(pub StelisConfig);

impl FromStr for ChildSettings {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let value: Value = serde_json::from_str(text)
            .map_err(|error| format!("not JSON: {error}; write such as {{\"default_window_ratio\":0.7}}"))?;
        value.try_into()
    }
}

impl TryFrom<Value> for ChildSettings {
    type Error = String;

    fn try_from(value: Value) -> Result<Self, String> {
        parse(&value).map(Self)
    }
}

/// Reads a `stelis_config`, bare or under that name.
fn parse(value: &Value) -> Result<StelisConfig, String> {
    let inner = value.get("stelis_config").unwrap_or(value);
    let Value::Object(fields) = inner else { return Err(format!("must be a JSON object, not: {inner}")) };
    let mut config = StelisConfig::default();
    for (key, value) in fields {
        match key.as_str() {
            "enabled" | "default_window_ratio" | "max_depth" if value.is_null() => {}
            "enabled" => {
                let on = value.as_bool().ok_or_else(|| wrong(key, "true or false", value))?;
                config.enabled = Some(on);
            }
            "default_window_ratio" => {
                let ratio = value.as_f64().filter(|ratio| Ratio::new(*ratio).is_ok());
                config.default_window_ratio =
                    Some(ratio.ok_or_else(|| wrong(key, "a number from 0.01 to 0.99", value))?);
            }
            "max_depth" => {
                let depth = value.as_u64().filter(|depth| *depth <= DEEPEST);
                let depth = depth.and_then(|depth| u32::try_from(depth).ok());
                config.max_depth =
                    Some(depth.ok_or_else(|| wrong(key, "a whole number from 0 to 100", value))?);
            }
            _ => {
                return Err(format!(
                    "unknown key: {key}; known are enabled, default_window_ratio, max_depth"
                ));
            }
        }
    }
    Ok(config)
}

fn wrong(key: &str, expected: &str, found: &Value) -> String {
    format!("{key} must be {expected}, not: {found}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_seeds_form_is_read_bare_and_under_its_name() {
        let bare = r#"{"enabled":true,"default_window_ratio":0.8,"max_depth":3}"#;
        let want = StelisConfig { enabled: Some(true), default_window_ratio: Some(0.8), max_depth: Some(3) };
        let parse = |text: &str| text.parse::<ChildSettings>().map(|given| given.0);
        assert_eq!(parse(bare), Ok(want));
        assert_eq!(parse(&format!(r#"{{"stelis_config":{bare}}}"#)), Ok(want));
        assert_eq!(parse("{}"), Ok(StelisConfig::default()));
    }

    #[test]
    fn a_wrong_value_is_named_with_its_key_and_range() {
        for (text, words) in [
            (
                r#"{"default_window_ratio":0}"#,
                "default_window_ratio must be a number from 0.01 to 0.99, not: 0",
            ),
            (r#"{"default_window_ratio":1}"#, "0.99, not: 1"),
            (r#"{"default_window_ratio":1.2}"#, "0.99, not: 1.2"),
            (r#"{"default_window_ratio":"abc"}"#, "0.99, not: \"abc\""),
            (r#"{"max_depth":-1}"#, "max_depth must be a whole number from 0 to 100, not: -1"),
            (r#"{"max_depth":1.5}"#, "not: 1.5"),
            (r#"{"enabled":"yes"}"#, "enabled must be true or false, not: \"yes\""),
            (r#"{"ratio":0.5}"#, "unknown key: ratio"),
            ("[]", "must be a JSON object"),
            ("0.7", "must be a JSON object"),
            ("{", "not JSON"),
        ] {
            let error = text.parse::<ChildSettings>().unwrap_err();
            assert!(error.contains(words), "{text}: {error}");
        }
    }
}
