//! The forms of a report: text for people, JSON for programs, CSV for spreadsheets, HTML for browsers.

mod chart;
mod csv;
mod html;
mod section;
mod text;
mod words;

use clap::ValueEnum;
pub(crate) use html::POLICY;
use komado_engine::report::Report;
use schemars::JsonSchema;
use serde::Deserialize;
use std::io::{self, Write};
pub(crate) use text::print;
pub(crate) use words::Lang;

/// What usage is counted by.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
pub(crate) enum By {
    Day,
    Week,
    User,
    Model,
}

/// In which form. Text is for the command line alone.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
pub(crate) enum Format {
    #[serde(skip)]
    Text,
    Json,
    Csv,
    Html,
}

/// How a report is shown.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Look {
    pub(crate) format: Format,
    pub(crate) by: Option<By>,
    pub(crate) lang: Lang,
}

/// A report in one of its forms.
pub(crate) fn write(told: &Report, look: Look, out: &mut dyn Write) -> io::Result<()> {
    match look.format {
        Format::Text => text::lines(told, look).iter().try_for_each(|line| writeln!(out, "{line}")),
        Format::Csv => csv::write(&section::sections(told, look), out),
        Format::Html => html::write(told, look, out),
        Format::Json => {
            serde_json::to_writer(&mut *out, told)?;
            out.write_all(b"\n")
        }
    }
}
