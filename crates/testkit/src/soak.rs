//! How much do the long tests do? A small part in `make test`, all of it in `make soak`.

/// How often a long test does what it does: `few` times, or `full` times under `make soak`, which sets `KOMADO_SOAK` to 1. A
/// larger number does as many times more.
///
/// # Panics
/// Where `KOMADO_SOAK` is not a whole number.
#[must_use]
pub fn times(few: u64, full: u64) -> u64 {
    let said = std::env::var("KOMADO_SOAK").unwrap_or_default();
    if said.is_empty() {
        return few;
    }
    let factor = said.parse::<u64>();
    full * factor.unwrap_or_else(|why| panic!("KOMADO_SOAK must be a whole number, not {said:?}: {why}"))
}
