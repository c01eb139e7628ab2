//! Values of a command line that are one of several names.

use clap::builder::{PossibleValuesParser, TypedValueParser};

/// Reads one of `all` by its name; the help lists the names.
pub fn one_of<T: Copy + Send + Sync + 'static>(
    all: &'static [T],
    name: fn(T) -> &'static str,
) -> impl TypedValueParser<Value = T> {
    PossibleValuesParser::new(all.iter().map(|one| name(*one)))
        .try_map(move |given| all.iter().copied().find(|one| name(*one) == given).ok_or(given))
}
