//! `komado admin report`: what happened in many sessions, for people, programs, spreadsheets and browsers.

use crate::app::App;
use crate::cli_output::{count, keep, number, say, text_of};
use crate::report::{ReportFormat, ReportLanguage, ReportView, UsageBy, print, write};
use komado_engine::report::Report;
use komado_ops::report::MakeReport;
use komado_ops::{OpResult, OperationProgress};
use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// Sessions between two lines of progress, where no terminal shows a bar.
const STRIDE: u64 = 10_000;

#[derive(clap::Args, Debug)]
pub(crate) struct ReportArgs {
    #[command(flatten)]
    request: MakeReport,
    /// Only usage by this
    #[arg(long, value_enum)]
    by: Option<UsageBy>,
    /// The output format; otherwise taken from the file's ending
    #[arg(long, value_enum)]
    format: Option<ReportFormat>,
    /// The language of headings
    #[arg(long, value_enum, default_value_t = ReportLanguage::En)]
    lang: ReportLanguage,
    /// Write to this file instead of standard output
    #[arg(short, long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Show progress even when standard error is not a terminal
    #[arg(long)]
    progress: bool,
}

pub(crate) fn report(app: &mut App, args: ReportArgs) -> OpResult {
    let look = ReportView { format: format(app, &args), by: args.by, lang: args.lang };
    let told = match args.progress && !std::io::stderr().is_terminal() {
        true => counted(app, args.request)?,
        false => app.run(args.request)?,
    };
    for id in &told.unreadable_sessions {
        say(format!(
            "komado: {id} could not be read to its end and is counted only up to there; `komado admin doctor {id}` says why"
        ));
    }
    match &args.out {
        Some(path) => {
            keep(path, |out| Ok(write(&told, look, out)?))?;
            if app.paper.json {
                return app.paper.json(&serde_json::json!({ "file": text_of(path) }));
            }
            say(format!("wrote {}", path.display()));
            Ok(())
        }
        None if look.format == ReportFormat::Text => print(&mut app.paper, &told, look),
        None => Ok(write(&told, look, &mut app.paper.safe())?),
    }
}

/// What was asked for, or what the file's name ends in.
fn format(app: &App, args: &ReportArgs) -> ReportFormat {
    let ending = args.out.as_deref().and_then(Path::extension).and_then(|ending| ending.to_str());
    args.format.unwrap_or(match ending {
        Some("json") => ReportFormat::Json,
        Some("csv") => ReportFormat::Csv,
        Some("html" | "htm") => ReportFormat::Html,
        _ if app.paper.json => ReportFormat::Json,
        _ => ReportFormat::Text,
    })
}

/// Makes it, and says in lines how far that has come.
fn counted(app: &App, request: MakeReport) -> OpResult<Report> {
    let last = AtomicU64::new(0);
    let context = app.context.clone().showing(move |at| {
        // It ticks within a session, too; each number is told once.
        if let OperationProgress::Reading { sessions, entries } = at
            && sessions.is_multiple_of(STRIDE)
            && last.swap(sessions, Ordering::Relaxed) != sessions
        {
            tell(sessions, entries);
        }
        Ok(())
    });
    let told = context.run(request)?;
    tell(told.sessions_read, told.entries_read);
    Ok(told)
}

fn tell(sessions: u64, entries: u64) {
    say(format!("komado: {}, {} entries read", count(sessions, "session"), number(entries)));
}
