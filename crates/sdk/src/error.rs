//! The one error of this crate: what went wrong, what kind of failure it is, and what to do.

use komado_core::BadId;
use std::fmt;

pub use komado_engine::ErrorKind;

/// What this crate gives back.
pub type Result<T> = std::result::Result<T, Error>;

/// What went wrong. Its text names the value, the place, and what to do; [`Error::kind`] is for programs.
#[derive(Debug)]
pub struct Error {
    kind: ErrorKind,
    text: String,
    source: Option<Box<komado_engine::Error>>,
}

impl Error {
    /// A failure that the engine does not know.
    pub(crate) fn new(kind: ErrorKind, text: impl Into<String>) -> Self {
        Self { kind, text: text.into(), source: None }
    }

    /// What kind of failure it is.
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// The engine's own error, for programs that tell more of them apart.
    pub fn engine(&self) -> Option<&komado_engine::Error> {
        self.source.as_deref()
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl std::error::Error for Error {}

impl From<komado_engine::Error> for Error {
    fn from(error: komado_engine::Error) -> Self {
        Self { kind: error.kind(), text: text_of(&error), source: Some(Box::new(error)) }
    }
}

impl From<komado_engine::output::Error> for Error {
    fn from(error: komado_engine::output::Error) -> Self {
        match error {
            komado_engine::output::Error::Engine(error) => error.into(),
            komado_engine::output::Error::Io(error) => komado_engine::Error::from(error).into(),
            other => Self::new(ErrorKind::Input, other.to_string()),
        }
    }
}

impl From<komado_store::Error> for Error {
    fn from(error: komado_store::Error) -> Self {
        komado_engine::Error::from(error).into()
    }
}

impl From<BadId> for Error {
    fn from(error: BadId) -> Self {
        komado_engine::Error::from(error).into()
    }
}

/// The engine's words; where those name flags and settings of the command line, what to do in a program.
#[cfg(feature = "client")]
fn text_of(error: &komado_engine::Error) -> String {
    use komado_engine::model::ModelError;
    let komado_engine::Error::Model(model) = error else { return error.to_string() };
    match model {
        ModelError::UnknownWindow { model, silent, near, .. } => {
            let silent = silent.as_ref().map(|why| format!(", and its server did not answer ({why})"));
            let silent = silent.unwrap_or_default();
            let near = komado_core::suggest::did_you_mean(near);
            format!(
                "the window of model {model:?} is not known{silent}: {near}give it with Model::window(tokens)"
            )
        }
        ModelError::NoKey { provider, variables } => format!(
            "{provider} asks for a key, and there is none: set {variables}, or give it with Model::key(text)"
        ),
        ModelError::UnknownProvider { name, near } => {
            let near = near.as_ref().map(|near| format!("did you mean {near}? ")).unwrap_or_default();
            format!("unknown provider {name:?}; {near}use Model::at(url, model) for any other")
        }
        other => other.to_string(),
    }
}

#[cfg(not(feature = "client"))]
fn text_of(error: &komado_engine::Error) -> String {
    error.to_string()
}
