//! Parameters of a request, from one dialect's words to another's.
//!
//! Only what means the same on both sides goes over. How long an answer may be is the writer's matter; settings for
//! reasoning, caching and output formats stay at home.

use super::choice;
use super::fields::Fields;
use crate::dialect::Dialect;
use komado_core::journal::Setup;

/// Parameters with one name and one meaning, and who has them.
const SHARED: [(&str, &[Dialect]); 10] = [
    ("temperature", &Dialect::ALL),
    ("top_p", &Dialect::ALL),
    ("top_k", &[Dialect::Messages, Dialect::Ollama]),
    ("seed", &[Dialect::Chat, Dialect::Ollama]),
    ("frequency_penalty", &[Dialect::Chat, Dialect::Ollama]),
    ("presence_penalty", &[Dialect::Chat, Dialect::Ollama]),
    ("prompt_cache_key", &[Dialect::Chat, Dialect::Responses]),
    ("safety_identifier", &[Dialect::Chat, Dialect::Responses]),
    ("service_tier", &[Dialect::Chat, Dialect::Responses]),
    ("user", &[Dialect::Chat, Dialect::Responses]),
];

/// What of `params` in `from`'s words means the same to `to`, in `to`'s words.
pub(super) fn translated(setup: &Setup, params: &Fields, from: Dialect, to: Dialect) -> Fields {
    let inner = match from {
        Dialect::Ollama => Fields::of(params.get("options").unwrap_or_default()),
        _ => params.clone(),
    };
    let mut out = Fields::default();
    for (key, who) in SHARED {
        if let Some(value) = inner.get(key).filter(|value| *value != "null")
            && who.contains(&from)
            && who.contains(&to)
        {
            out.put(key, value);
        }
    }
    if let (Some(stop), Some(key)) = (stop_word(from).and_then(|key| inner.get(key)), stop_word(to))
        && let Some(stop) = stop_list(stop)
    {
        out.put(key, stop);
    }
    match to {
        Dialect::Messages => tame(&mut out),
        Dialect::Ollama if !out.is_empty() => {
            let options = std::mem::take(&mut out);
            out.put("options", options.json());
        }
        _ => {}
    }
    write_choice(setup, params, from, to, &mut out);
    out
}

fn write_choice(setup: &Setup, params: &Fields, from: Dialect, to: Dialect, out: &mut Fields) {
    let Some(raw) = &setup.tools else { return };
    let mut tools = super::read_all(raw.get(), from);
    tools.retain(|tool| tool.write(to).is_some());
    choice::write(choice::read(params, from), choice::parallel(params, from), &tools, to, out);
}

const fn stop_word(dialect: Dialect) -> Option<&'static str> {
    match dialect {
        Dialect::Chat | Dialect::Ollama => Some("stop"),
        Dialect::Messages => Some("stop_sequences"),
        Dialect::Responses => None,
    }
}

/// OpenAI takes one text or a list of them; a list is understood by all.
fn stop_list(json: &str) -> Option<String> {
    match json.as_bytes().first()? {
        b'"' => Some(format!("[{json}]")),
        b'[' => Some(json.to_owned()),
        _ => None,
    }
}

/// Anthropic's temperature ends at 1, and its newer models refuse `top_p` beside it.
fn tame(out: &mut Fields) {
    let Some(temperature) = out.get("temperature") else { return };
    if temperature.parse::<f64>().is_ok_and(|value| value > 1.0) {
        out.put("temperature", "1");
    }
    out.take("top_p");
}
