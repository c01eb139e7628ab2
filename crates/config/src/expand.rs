//! What does `${VAR}` in a value stand for?
//!
//! Expansion happens after YAML is parsed, so a variable's text can never become structure, and is done once,
//! so it can never refer to another variable. `${VAR:-default}` stands in when the variable is unset or
//! empty; `$$` is a dollar sign, and so is a `$` before anything else.

/// Why a text could not be expanded.
pub(super) enum Fault {
    /// The variable is not set and there is no default.
    Unset(String),
    /// What follows `${` is not a reference.
    Malformed {
        /// What is wrong.
        problem: &'static str,
        /// The text from `${` on.
        found: String,
    },
}

/// Replaces the references in a text.
pub(super) fn expand(text: &str, env: &dyn Fn(&str) -> Option<String>) -> Result<String, Fault> {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('$') {
        out.push_str(before);
        rest = match after.chars().next() {
            Some('{') => reference(&after[1..], env, &mut out)?,
            Some('$') => literal(&after[1..], &mut out),
            _ => literal(after, &mut out),
        };
    }
    out.push_str(rest);
    Ok(out)
}

fn literal<'a>(rest: &'a str, out: &mut String) -> &'a str {
    out.push('$');
    rest
}

/// Reads a reference whose `${` is already gone, and returns what follows its `}`.
fn reference<'a>(
    text: &'a str,
    env: &dyn Fn(&str) -> Option<String>,
    out: &mut String,
) -> Result<&'a str, Fault> {
    let (inside, rest) = text.split_once('}').ok_or_else(|| malformed("the } is missing", text))?;
    let (name, default) =
        inside.split_once(":-").map_or((inside, None), |(name, default)| (name, Some(default)));
    if !is_name(name) {
        return Err(malformed("not a variable's name", &text[..=inside.len()]));
    }
    if default.is_some_and(|default| default.contains("${")) {
        return Err(malformed("a default cannot hold another reference", &text[..=inside.len()]));
    }
    match (env(name), default) {
        (Some(value), None) => out.push_str(&value),
        (Some(value), Some(_)) if !value.is_empty() => out.push_str(&value),
        (_, Some(default)) => out.push_str(default),
        (None, None) => return Err(Fault::Unset(name.to_owned())),
    }
    Ok(rest)
}

fn malformed(problem: &'static str, reference: &str) -> Fault {
    Fault::Malformed { problem, found: format!("${{{reference}") }
}

fn is_name(name: &str) -> bool {
    let first = |c: char| c.is_ascii_alphabetic() || c == '_';
    name.starts_with(first) && name.chars().all(|c| first(c) || c.is_ascii_digit())
}
