//! What may child threads have, and who said so?
//!
//! The command line is trusted over the session, the session over its persona, the persona over the settings and the
//! environment. A switch that is off is told with the place that turned it off.

use super::Config;
use super::check::{GivenValues, SettingsSection};
use super::table::{self, PERSONA};
use crate::ConfigError;
use komado_core::journal::Ratio;
use komado_core::session::{MetaConfig, StelisConfig};
use komado_engine::Error;
use std::collections::BTreeMap;

/// What the settings say.
#[derive(Clone)]
pub(super) struct ThreadConfig {
    enabled: bool,
    child_ratio: f64,
    max_depth: u32,
    lending: bool,
    anchor_tokens: u32,
    personas: BTreeMap<String, StelisConfig>,
}

impl ThreadConfig {
    pub(super) fn of(given: &GivenValues) -> Self {
        let threads = SettingsSection::of(given, "threads");
        let named = table::named(given.keys()).into_iter().filter(|(stand_in, _)| *stand_in == PERSONA);
        let persona = |name: String| {
            let said = SettingsSection::of(given, format!("personas.{name}.stelis_config"));
            let (enabled, max_depth) = (said.get("enabled"), said.get("max_depth"));
            (
                name,
                StelisConfig { enabled, default_window_ratio: said.get("default_window_ratio"), max_depth },
            )
        };
        Self {
            enabled: threads.get("enabled"),
            child_ratio: threads.get("child_ratio"),
            max_depth: threads.get("max_depth"),
            lending: threads.get("lending"),
            anchor_tokens: threads.get("anchor_tokens"),
            personas: named.map(|(_, name)| persona(name)).collect(),
        }
    }
}

/// What child threads of one session may have.
#[derive(Clone, Debug, PartialEq)]
pub struct ChildThreadLimits {
    /// Who turned them off; `None` while they may be started.
    pub off: Option<String>,
    /// What a child has of its parent's window.
    pub ratio: f64,
    /// How deep they may nest.
    pub max_depth: u32,
    /// Whether what the threads above leave unused is lent.
    pub lends: bool,
    /// The most tokens of an anchor.
    pub anchor_tokens: u64,
}

impl ChildThreadLimits {
    /// An error that says what turned them off, if something did.
    pub fn check(&self) -> Result<(), ConfigError> {
        match &self.off {
            None => Ok(()),
            Some(who) => Err(ConfigError::ThreadsOff(who.clone())),
        }
    }

    /// The ratio, checked once more: a session may have been made by other hands.
    pub fn ratio(&self) -> Result<Ratio, ConfigError> {
        Ratio::new(self.ratio).map_err(|error| ConfigError::Ratio(error.to_string()))
    }
}

impl Config {
    /// What child threads of a session made with `own` may have.
    pub fn threads(&self, own: &MetaConfig) -> ChildThreadLimits {
        let of_session = own.stelis_config.unwrap_or_default();
        let persona = own.persona.as_deref();
        let of_persona = persona.and_then(|name| self.persona(name)).copied().unwrap_or_default();
        let wishes = &self.threads;
        let off = match (of_session.enabled, of_persona.enabled, wishes.enabled) {
            (Some(false), ..) => Some("the session was made with enabled: false in its stelis_config".into()),
            (None, Some(false), _) => Some(format!(
                "personas.{}.stelis_config.enabled is false; change it there, or in a session with --stelis",
                persona.unwrap_or_default()
            )),
            (None, None, false) => {
                Some("threads.enabled is false; --set threads.enabled=true allows it".into())
            }
            _ => None,
        };
        ChildThreadLimits {
            off,
            ratio: of_session
                .default_window_ratio
                .or(of_persona.default_window_ratio)
                .unwrap_or(wishes.child_ratio),
            max_depth: of_session.max_depth.or(of_persona.max_depth).unwrap_or(wishes.max_depth),
            lends: wishes.lending,
            anchor_tokens: u64::from(wishes.anchor_tokens),
        }
    }

    /// Why a child of a session made with `own` is too deep, and which setting says so; `None` for any other error. `flag` is
    /// what the command line says of it.
    pub fn too_deep(&self, own: &MetaConfig, error: &Error, flag: Option<u32>) -> Option<ConfigError> {
        let Error::TooDeep { thread, depth, most } = error else { return None };
        let of_session = own.stelis_config.and_then(|config| config.max_depth);
        let persona = own.persona.as_deref();
        let of_persona = persona.and_then(|name| self.persona(name)).and_then(|config| config.max_depth);
        let who = match (flag, of_session, of_persona) {
            (Some(_), ..) => "--max-depth".to_owned(),
            (None, Some(_), _) => "the session was made with max_depth in its stelis_config".to_owned(),
            (None, None, Some(_)) => {
                format!("personas.{}.stelis_config.max_depth", persona.unwrap_or_default())
            }
            (None, None, None) => "threads.max_depth, STELIS_MAX_DEPTH".to_owned(),
        };
        let wayout = if *depth == 0 { "" } else { "end it and start from its parent, or " };
        Some(ConfigError::TooDeep(format!(
            "thread {thread} is {depth} deep and a child may be at most {most} deep ({who}); {wayout}allow more with \
             --max-depth"
        )))
    }

    /// What is said for a persona; `None` when nothing is.
    pub fn persona(&self, name: &str) -> Option<&StelisConfig> {
        self.threads.personas.get(name)
    }

    /// The persona of the settings whose name is nearest.
    pub fn near_persona(&self, name: &str) -> Option<&str> {
        komado_core::suggest::nearest_name(name, self.threads.personas.keys().map(String::as_str))
    }
}
