//! Tokens, as chat completions count them.
//!
//! OpenAI counts what came from the cache among the prompt's tokens; we keep the two apart, so that the four numbers
//! of a usage add up to the total. Some servers leave the model's thoughts out of what it wrote but not out of the
//! total; then the total is believed.

use crate::dialect::json::object;
use komado_core::journal::Usage;
use komado_core::raw::Object;

/// Reads a `usage` object; `None` when it counts nothing.
pub(super) fn read(json: &str) -> Option<Usage> {
    let usage = Object::parse(json).ok()?;
    let details = object(&usage, "prompt_tokens_details");
    let detail = |key: &str| details.as_ref().and_then(|details| number(details, key));
    let (prompt, completion) = (number(&usage, "prompt_tokens"), number(&usage, "completion_tokens"));
    if prompt.is_none() && completion.is_none() {
        return None;
    }
    let (prompt, completion) = (prompt.unwrap_or(0), completion.unwrap_or(0));
    let hit = detail("cached_tokens").or_else(|| number(&usage, "prompt_cache_hit_tokens")).unwrap_or(0);
    let cache_read_tokens = hit.min(prompt);
    let made = detail("cache_write_tokens").or_else(|| detail("cache_creation_tokens")).unwrap_or(0);
    let cache_creation_tokens = made.min(prompt - cache_read_tokens);
    let total = number(&usage, "total_tokens").unwrap_or(0);
    Some(Usage {
        input_tokens: prompt - cache_read_tokens - cache_creation_tokens,
        output_tokens: completion.max(total.saturating_sub(prompt)),
        cache_creation_tokens,
        cache_read_tokens,
    })
}

/// Writes a `usage` object.
pub(super) fn write(usage: &Usage) -> String {
    let prompt = usage.total() - usage.output_tokens;
    let written = match usage.cache_creation_tokens {
        0 => String::new(),
        tokens => format!(",\"cache_write_tokens\":{tokens}"),
    };
    format!(
        "{{\"prompt_tokens\":{prompt},\"completion_tokens\":{},\"total_tokens\":{},\
         \"prompt_tokens_details\":{{\"cached_tokens\":{}{written}}}}}",
        usage.output_tokens,
        usage.total(),
        usage.cache_read_tokens
    )
}

/// A count; some servers write it as `12.0`.
pub(in crate::dialect) fn number(object: &Object<'_>, key: &str) -> Option<u64> {
    let text = object.get(key)?.get();
    let rounded = || text.parse::<f64>().ok().filter(|n| (0.0..1e15).contains(n));
    text.parse().ok().or_else(|| rounded().map(|n| n as u64))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn four(json: &str) -> [u64; 4] {
        let u = read(json).unwrap();
        [u.input_tokens, u.output_tokens, u.cache_creation_tokens, u.cache_read_tokens]
    }

    #[test]
    fn the_four_numbers_add_up_to_the_total_whoever_counts() {
        let openai = r#"{"prompt_tokens":100,"completion_tokens":20,"total_tokens":120,"prompt_tokens_details":{"cached_tokens":64},"completion_tokens_details":{"reasoning_tokens":8}}"#;
        assert_eq!(four(openai), [36, 20, 0, 64]);
        let gemini = r#"{"prompt_tokens":10,"completion_tokens":5,"total_tokens":40}"#;
        assert_eq!(four(gemini), [10, 30, 0, 0]);
        let deepseek = r#"{"prompt_tokens":10,"completion_tokens":5,"prompt_cache_hit_tokens":8,"prompt_cache_miss_tokens":2}"#;
        assert_eq!(four(deepseek), [2, 5, 0, 8]);
        let openrouter = r#"{"prompt_tokens":10.0,"completion_tokens":5,"total_tokens":15,"prompt_tokens_details":{"cached_tokens":3,"cache_write_tokens":4}}"#;
        assert_eq!(four(openrouter), [3, 5, 4, 3]);
        assert_eq!(four(r#"{"prompt_tokens":1,"prompt_tokens_details":{"cached_tokens":9}}"#), [0, 0, 0, 1]);
        assert_eq!(read(r#"{"prompt_tokens":null}"#), None);
    }

    #[test]
    fn what_is_written_is_read_again() {
        let usage =
            Usage { input_tokens: 3, output_tokens: 5, cache_creation_tokens: 7, cache_read_tokens: 11 };
        assert_eq!(read(&write(&usage)), Some(usage));
    }
}
