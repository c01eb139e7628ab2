//! llama.cpp's `/props`.

use serde_json::Value;

/// The window of one slot, which is what one conversation has: servers with several slots divide before they tell, in
/// `default_generation_settings` as well as in the `n_ctx` that some put at the top.
pub(super) fn props(body: &str) -> Option<u64> {
    let value: Value = serde_json::from_str(body).ok()?;
    let read = |place: &str| value.pointer(place).and_then(Value::as_u64).filter(|n| *n > 0);
    read("/default_generation_settings/n_ctx").or_else(|| read("/n_ctx"))
}
