//! `komado report`: what happened in many sessions, for people, programs, spreadsheets and browsers.

mod chart;
mod csv;
mod html;
mod section;
mod text;
mod words;

use crate::app::App;
use crate::fault::{Fault, Outcome};
use crate::paper::{count, number, say, text_of};
use crate::progress;
use clap::{Args as ClapArgs, ValueEnum};
pub(crate) use html::POLICY;
use komado_core::session::Session;
use komado_engine::report::{self, Ask, Depth, Flow, Part, Progress, Range, Report};
use serde::Deserialize;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use utoipa::ToSchema;
pub(crate) use words::Lang;

/// Rows of a table that may have many, at most.
pub(crate) const MOST_ROWS: usize = 1_000;

/// Sessions between two lines of progress, where no terminal shows a bar.
const STRIDE: u64 = 10_000;

#[derive(ClapArgs, Debug)]
pub(crate) struct Args {
    /// Which part
    #[arg(value_enum, default_value_t = What::All)]
    what: What,
    #[command(flatten)]
    wish: Wish,
    /// Only usage by this
    #[arg(long, value_enum)]
    by: Option<By>,
    /// In which form; a file's ending says it too
    #[arg(long, value_enum)]
    format: Option<Format>,
    /// The language of headings
    #[arg(long, value_enum, default_value_t = Lang::En)]
    lang: Lang,
    /// Write to this file instead of standard output
    #[arg(short, long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Say how far it has come, also where standard error is no terminal
    #[arg(long)]
    progress: bool,
}

/// What a report is asked to be about, on the command line and over HTTP alike.
#[derive(ClapArgs, Debug, Clone, Default)]
pub(crate) struct Wish {
    /// From then on: 2026-11-01, a time, today, yesterday, or 12h, 7d, 4w ago; thirty days when left out
    #[arg(long, value_name = "DATE")]
    pub(crate) from: Option<String>,
    /// Until before then; today is the last day when left out
    #[arg(long, value_name = "DATE")]
    pub(crate) to: Option<String>,
    /// Where midnight is, such as +09:00; UTC when left out
    #[arg(long, value_name = "OFFSET", allow_hyphen_values = true)]
    pub(crate) utc_offset: Option<String>,
    /// Only sessions of this user
    #[arg(long)]
    pub(crate) user: Option<String>,
    /// Only what was asked of this model
    #[arg(long)]
    pub(crate) model: Option<String>,
    /// Rows of users, models, tools and questions
    #[arg(long, default_value_t = 20)]
    pub(crate) top: usize,
    /// Read no journals: only what the table of sessions knows
    #[arg(long)]
    pub(crate) quick: bool,
}

/// Which part of a report.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, ValueEnum, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum What {
    /// How much was used
    Usage,
    /// What people ask
    Questions,
    /// How well agents do
    Performance,
    /// Everything
    #[default]
    All,
}

/// What usage is counted by.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum By {
    Day,
    Week,
    User,
    Model,
}

/// In which form.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum Format {
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

impl What {
    fn parts(self) -> Vec<Part> {
        match self {
            Self::Usage => vec![Part::Usage],
            Self::Questions => vec![Part::Questions],
            Self::Performance => vec![Part::Performance],
            Self::All => Part::ALL.to_vec(),
        }
    }
}

impl Wish {
    /// What is asked for; refused where it cannot be meant.
    pub(crate) fn ask(self, what: What, now: &str) -> Outcome<Ask> {
        let text = |text: &Option<String>| text.clone().filter(|text| !text.is_empty());
        let (from, to, offset) = (text(&self.from), text(&self.to), text(&self.utc_offset));
        let range = Range::read(from.as_deref(), to.as_deref(), offset.as_deref(), now)
            .map_err(|error| Fault::usage(error.to_string()))?;
        if self.top == 0 || self.top > MOST_ROWS {
            return Err(Fault::usage(format!("top is {}; give 1 to {MOST_ROWS}", self.top)));
        }
        if self.quick && !matches!(what, What::Usage | What::All) {
            let name = what.parts().first().map_or("this", |part| part.name());
            return Err(Fault::usage(format!(
                "quick reads no journals, and the {name} part is in them; leave quick out"
            )));
        }
        let parts = what.parts();
        let depth = if self.quick { Depth::Rows } else { Depth::Journals };
        Ok(Ask { range, user: self.user, model: self.model, top: self.top, parts, depth })
    }
}

pub(crate) fn run(app: &mut App, args: Args) -> Outcome {
    let ask = args.wish.clone().ask(args.what, &app.context.engine.now())?;
    let look = Look { format: format(app, &args)?, by: args.by, lang: args.lang };
    let told = read(app, &ask, args.progress)?;
    for id in &told.unreadable_sessions {
        say(format!(
            "komado: {id} could not be read to its end and is counted only up to there; `komado doctor {id}` says why"
        ));
    }
    match &args.out {
        Some(path) => keep(app, path, &told, look),
        None if look.format == Format::Text => text::print(&mut app.paper, &told, look),
        None => Ok(write(&told, look, &mut app.paper.safe())?),
    }
}

/// What was asked for, or what the file's name ends in.
fn format(app: &App, args: &Args) -> Outcome<Format> {
    if let Some(format) = args.format {
        return Ok(format);
    }
    let ending = args.out.as_deref().and_then(Path::extension).and_then(|ending| ending.to_str());
    Ok(match ending {
        Some("json") => Format::Json,
        Some("csv") => Format::Csv,
        Some("html" | "htm") => Format::Html,
        _ if app.paper.json => Format::Json,
        _ => Format::Text,
    })
}

/// Reads it, and shows how far that has come.
fn read(app: &App, ask: &Ask, lines: bool) -> Outcome<Report> {
    let bar = progress::spinner("sessions");
    let everyone = |_: &Session| true;
    let mut last = 0;
    let told = report::report(&app.context.engine, ask, &everyone, &mut |at: Progress| {
        bar.set_position(at.sessions);
        // It ticks within a session, too; each number is told once.
        if lines && at.sessions.is_multiple_of(STRIDE) && at.sessions != last && bar.is_hidden() {
            last = at.sessions;
            say(format!("komado: {}, {} entries read", count(at.sessions, "session"), number(at.entries)));
        }
        Flow::Continue(())
    });
    bar.finish_and_clear();
    let told = told?.ok_or_else(|| Fault::usage("the report was broken off"))?;
    if lines && bar.is_hidden() {
        let entries = number(told.entries_read);
        say(format!("komado: {}, {entries} entries read", count(told.sessions_read, "session")));
    }
    Ok(told)
}

/// Writes it beside its name first: a name means the whole report.
fn keep(app: &mut App, path: &Path, told: &Report, look: Look) -> Outcome {
    let folder = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut file = tempfile::NamedTempFile::new_in(folder)
        .map_err(|error| Fault::input(format!("cannot write in {}: {error}", folder.display())))?;
    {
        let mut out = BufWriter::new(file.as_file_mut());
        write(told, look, &mut out)?;
        out.flush()?;
    }
    file.as_file().sync_all()?;
    file.persist(path).map_err(|error| error.error)?;
    if app.paper.json {
        return app.paper.json(&serde_json::json!({ "file": text_of(path) }));
    }
    say(format!("wrote {}", path.display()));
    Ok(())
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
