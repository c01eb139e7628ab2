//! Which settings exist?
//!
//! One row per setting, and everything else is derived from it: how its text is parsed and checked, which
//! variables of the environment set it, what `komado admin config` lists and what the manual says. A new setting is
//! a new row in [`SETTINGS`] and a field in `Config`; there is no third place. How a row is named in the file, in the environment
//! and on the command line is worked out in `table/names.rs`.

mod names;
mod rows;

pub use names::*;
pub use rows::SETTINGS;

use crate::check::expected;
use crate::mask;
use komado_core::amount::TimeUnit;
use std::fmt::Write;

/// One setting.
#[derive(Clone, Copy)]
pub struct Setting {
    /// Where it stands in the file; `<provider>` stands for any provider's name, `<persona>` for any persona's, `<server>`
    /// for any MCP server's.
    pub path: &'static str,
    /// What its text must be.
    pub kind: SettingKind,
    /// Its value when none is given, by lines.
    pub default: Option<&'static [&'static str]>,
    /// The variables that the seeds name for it.
    pub seed_env: &'static [&'static str],
    /// A short name, which makes `KOMADO_BASE_DIR` and `--base-dir` out of `base_dir`.
    pub short: Option<&'static str>,
    /// True when a file that came with a folder may set it without the user's consent: it leads nowhere, runs nothing, says
    /// nothing to a model, and removes nothing. So nothing that is said of a provider is: one that is spoken of may be the one
    /// that is asked, and its model has a price. A new setting needs consent unless its row says otherwise.
    pub is_harmless: bool,
    /// What it does, in one line.
    pub about: &'static str,
}

/// What the text of a setting must be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SettingKind {
    /// Yes or no.
    Bool,
    /// A share: above 0, at most 1.
    Ratio,
    /// A share of which something is left on both sides: from 0.01 to 0.99.
    Part,
    /// A whole number within bounds.
    Count {
        /// The least that is allowed.
        min: u32,
        /// The most that is allowed.
        max: u32,
    },
    /// A number of tokens within bounds, also as `128k`.
    Tokens {
        /// The least that is allowed.
        min: u32,
        /// The most that is allowed.
        max: u32,
    },
    /// A time in whole units within bounds: a plain number of them, or one that names its unit, such as `90s` or `30d`.
    Time {
        /// What a plain number counts.
        unit: TimeUnit,
        /// The least that is allowed.
        min: u32,
        /// The most that is allowed.
        max: u32,
    },
    /// Any text.
    Text,
    /// A path; relative ones start from the working folder.
    Path,
    /// A text that is shown nowhere.
    Secret,
    /// An address that begins in one of these ways; a password in it is shown nowhere.
    Url(&'static [&'static str]),
    /// One of these words.
    Choice(&'static [&'static str]),
    /// A percentage from 5 to 100, or -1 for: as elsewhere.
    Percent,
    /// Texts, one per line; in the file also a list.
    Lines,
    /// Names with a percentage each: `NAME=PERCENT`, one per line; in the file also a list.
    Percents,
    /// Hosts that may be reached, one per line; in the file also a list. `open` for all, `none` for none.
    Hosts,
    /// Names with a text each that is shown nowhere, with one of these characters between, one per line; in the file also
    /// a list.
    Pairs(&'static [char]),
}

impl SettingKind {
    /// True when a value is shown nowhere.
    pub const fn is_secret(self) -> bool {
        matches!(self, Self::Secret | Self::Pairs(_))
    }

    /// True when the file may have a list of texts.
    pub const fn is_list(self) -> bool {
        matches!(self, Self::Lines | Self::Percents | Self::Hosts | Self::Pairs(_))
    }
}

/// Variables that begin with `KOMADO_` and are not settings.
pub(super) const RESERVED: [&str; 10] = [
    // A shell that completes a line.
    "KOMADO_COMPLETE",
    "KOMADO_CONFIG",
    "KOMADO_DATA",
    "KOMADO_LOG",
    "KOMADO_PAGER",
    "KOMADO_PYTHON",
    "KOMADO_SESSION",
    // What `tools.prepare` is told.
    "KOMADO_TASK",
    "KOMADO_URL",
    "KOMADO_CLONE_URL",
];

/// Stands in a path for the name of a provider.
pub(super) const PROVIDER: &str = "<provider>";
/// Stands in a path for the name of a persona.
pub(super) const PERSONA: &str = "<persona>";
/// Stands in a path for the name of an MCP server.
pub(super) const SERVER: &str = "<server>";

const PLAIN: Setting = Setting {
    path: "",
    kind: SettingKind::Text,
    default: None,
    seed_env: &[],
    short: None,
    is_harmless: false,
    about: "",
};

/// Every setting as a Markdown table: that of the manual, which so cannot fall behind.
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
