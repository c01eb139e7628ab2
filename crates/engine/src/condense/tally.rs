//! What several answers took together. A part that reported nothing adds nothing.

use komado_core::journal::Usage;

/// `sum` with `more` added; `None` only when nobody reported anything.
pub(super) fn add(sum: Option<Usage>, more: Option<Usage>) -> Option<Usage> {
    let (Some(a), Some(b)) = (sum, more) else { return sum.or(more) };
    Some(Usage {
        input_tokens: a.input_tokens.saturating_add(b.input_tokens),
        output_tokens: a.output_tokens.saturating_add(b.output_tokens),
        cache_creation_tokens: a.cache_creation_tokens.saturating_add(b.cache_creation_tokens),
        cache_read_tokens: a.cache_read_tokens.saturating_add(b.cache_read_tokens),
    })
}
