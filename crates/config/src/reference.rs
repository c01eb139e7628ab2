//! What does the manual say about the settings?
//!
//! The manual's table is made from the same rows as the parser, so it cannot fall behind.

use std::fmt::Write;

use super::check::expected;
use super::mask;
use super::table::{SETTINGS, Setting};

/// Every setting as a Markdown table.
pub fn reference() -> String {
    let mut out = String::from("| key | value | default | environment | meaning |\n|---|---|---|---|---|\n");
    for setting in SETTINGS {
        let default = setting
            .default
            .map_or_else(|| "unset".to_owned(), |lines| code(&mask::excerpt(&lines.join("\n"))));
        let value = expected(setting.kind);
        // Writing to a String cannot fail.
        let _ = writeln!(
            out,
            "| `{}` | {value} | {default} | {} | {} |",
            setting.path,
            variables(setting),
            setting.about
        );
    }
    out
}

fn variables(setting: &Setting) -> String {
    let seeds = setting.seed_env.iter().map(|name| (*name).to_owned());
    setting.env().into_iter().chain(seeds).map(|name| code(&name)).collect::<Vec<_>>().join(", ")
}

fn code(text: &str) -> String {
    format!("`{text}`")
}
