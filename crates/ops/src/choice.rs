//! Which model is asked, as far as a command line says.
//!
//! Only a command line says it: it runs with the rights of its user. Where a provider listens is never taken from a request
//! of another interface, which would send the keys of this machine there.

use clap::builder::{PossibleValuesParser, TypedValueParser};
use komado_core::amount::{self, TOKEN_FORMS, TimeUnit};
use komado_core::notation::grouped;
use komado_engine::model::ModelChoice;
use komado_provider::ResponseForm;

/// Which model is asked; what is left out is the session's, then the settings'.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct ModelArgs {
    /// The provider: a known name, one from the settings, an address, or `scripted` for the built-in model
    #[arg(long, value_name = "NAME")]
    pub provider: Option<String>,
    /// The model, as its provider spells it
    #[arg(long, value_name = "NAME")]
    pub model: Option<String>,
    /// The model's window in tokens
    #[arg(long, value_name = "TOKENS", value_parser = tokens::<u32>(1))]
    pub window: Option<u32>,
    /// Where the provider listens
    #[arg(long, value_name = "URL")]
    pub base_url: Option<String>,
    /// The longest answer, in tokens
    #[arg(long, value_name = "TOKENS", value_parser = tokens::<u32>(1))]
    pub max_tokens: Option<u32>,
    /// Print the answer only when it is complete
    #[arg(long)]
    pub no_stream: bool,
}

impl From<ModelArgs> for ModelChoice {
    fn from(args: ModelArgs) -> Self {
        Self {
            provider: args.provider,
            model: args.model,
            window: args.window,
            base_url: args.base_url,
            max_tokens: args.max_tokens,
            form: args.no_stream.then_some(ResponseForm::Whole),
            scripted_window: None,
        }
    }
}

/// Reads a number of tokens, at least `least`, as people write it: `8000`, `12,000` or `128k`.
pub fn tokens<T: TryFrom<u64>>(
    least: u64,
) -> impl Fn(&str) -> Result<T, String> + Clone + Send + Sync + 'static {
    move |text| match amount::tokens(text) {
        Some(n) if n < least => Err(format!("{n} is too few: the least is {}", grouped(least))),
        Some(n) => T::try_from(n).map_err(|_| "that is more than any window holds".to_owned()),
        None => Err(format!("write a number of tokens, such as {TOKEN_FORMS}")),
    }
}

/// Reads a time in `unit`s, at least `least`: a plain number of them, or one that names its own unit, such as `90s` or `30d`.
pub fn time<T: TryFrom<u64>>(
    unit: TimeUnit,
    least: u64,
) -> impl Fn(&str) -> Result<T, String> + Clone + Send + Sync + 'static {
    move |text| {
        let units = format!("{unit:?}s").to_lowercase();
        match amount::time(text, unit) {
            Some(n) if n < least => Err(format!("{n} is too few: the least is {least} {units}")),
            Some(n) => T::try_from(n).map_err(|_| format!("that is too many {units}")),
            None => Err(format!("write whole {units}, such as {}", unit.forms())),
        }
    }
}

/// Reads one of `all` by its name; the help lists the names.
pub fn one_of<T: Copy + Send + Sync + 'static>(
    all: &'static [T],
    name: fn(T) -> &'static str,
) -> impl TypedValueParser<Value = T> {
    PossibleValuesParser::new(all.iter().map(|one| name(*one)))
        .try_map(move |given| all.iter().copied().find(|one| name(*one) == given).ok_or(given))
}
