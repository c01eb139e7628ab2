//! Tell what happened in the sessions that the caller may see: usage, common questions, performance.

use crate::{
    Interfaces, OpFault, OpResult, Operation, OperationContext, OperationLabel, OperationProgress, Route,
};
use komado_core::session::Session;
use komado_engine::report::{self, Range, Report, ReportDepth, ReportPart, ReportQuery, ScanFlow};
use schemars::JsonSchema;
use serde::Deserialize;

/// Rows of a table that may have many, unless a request says otherwise.
const USUAL_ROWS: u32 = 20;
/// The most of them.
const MOST_ROWS: u32 = 1_000;

/// Tell what happened in the sessions that may be seen: usage, common questions, performance.
#[derive(Clone, Debug, clap::Args, Deserialize, JsonSchema)]
pub struct MakeReport {
    /// Which part
    #[arg(value_enum, default_value_t = ReportKind::All)]
    #[serde(default)]
    pub what: ReportKind,
    /// From then on: 2026-11-01, a time, today, yesterday, or 12h, 7d, 4w ago; thirty days when left out
    #[arg(long, value_name = "DATE")]
    #[schemars(example = &"7d")]
    pub from: Option<String>,
    /// Until before then; today is the last day when left out
    #[arg(long, value_name = "DATE")]
    #[schemars(example = &"today")]
    pub to: Option<String>,
    /// The time zone of days, such as +09:00; UTC when left out
    #[arg(long, value_name = "OFFSET", allow_hyphen_values = true)]
    #[schemars(example = &"Z")]
    pub utc_offset: Option<String>,
    /// Only sessions of this user
    #[arg(long)]
    pub user: Option<String>,
    /// Only requests to this model
    #[arg(long)]
    pub model: Option<String>,
    /// Rows of users, models, tools and questions, from 1 to 1000
    #[arg(long, default_value_t = USUAL_ROWS)]
    #[serde(default = "usual_rows")]
    pub top: u32,
    /// Use only the table of sessions, without reading journals
    #[arg(long)]
    #[serde(default)]
    pub quick: bool,
}

/// Which part of a report.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, clap::ValueEnum, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
pub enum ReportKind {
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

const fn usual_rows() -> u32 {
    USUAL_ROWS
}

impl ReportKind {
    fn parts(self) -> Vec<ReportPart> {
        match self {
            Self::Usage => vec![ReportPart::Usage],
            Self::Questions => vec![ReportPart::Questions],
            Self::Performance => vec![ReportPart::Performance],
            Self::All => ReportPart::ALL.to_vec(),
        }
    }
}

impl Operation for MakeReport {
    const ABOUT: OperationLabel = OperationLabel::read("report", "What happened in many sessions");
    const INTERFACES: Interfaces =
        Interfaces::everywhere("admin report", Route { has_forms: true, ..Route::get("report", "/report") })
            .not_mcp("figures about all sessions are for people");
    type Output = Report;

    fn run(self, context: &OperationContext) -> OpResult<Report> {
        let ask = self.ask(context)?;
        context.report(|| {
            let sees = |session: &Session| context.caller.may_see(session);
            let mut wanted = Ok(());
            let made = report::report(&context.engine, &ask, &sees, &mut |at: report::ScanProgress| {
                wanted = context
                    .progress(OperationProgress::Reading { sessions: at.sessions, entries: at.entries });
                if wanted.is_ok() { ScanFlow::Continue(()) } else { ScanFlow::Break(()) }
            })?;
            wanted.and_then(|()| made.ok_or_else(|| OpFault::usage("the report was broken off")))
        })
    }
}

impl MakeReport {
    /// What is asked for; refused where it cannot be meant.
    fn ask(self, context: &OperationContext) -> OpResult<ReportQuery> {
        let text = |text: &Option<String>| text.clone().filter(|text| !text.is_empty());
        let (from, to, offset) = (text(&self.from), text(&self.to), text(&self.utc_offset));
        let range = Range::read(from.as_deref(), to.as_deref(), offset.as_deref(), &context.engine.now())
            .map_err(|error| OpFault::usage(error.to_string()))?;
        if !(1..=MOST_ROWS).contains(&self.top) {
            return Err(OpFault::usage(format!("top is {}; give 1 to {MOST_ROWS}", self.top)));
        }
        let parts = self.what.parts();
        if self.quick && !matches!(self.what, ReportKind::Usage | ReportKind::All) {
            let name = parts.first().map_or("this", |part| part.name());
            return Err(OpFault::usage(format!(
                "quick reads no journals, and the {name} part is in them; leave quick out"
            )));
        }
        let depth = if self.quick { ReportDepth::Rows } else { ReportDepth::Journals };
        let user = context.caller.whose(self.user)?;
        Ok(ReportQuery { range, user, model: self.model, top: self.top as usize, parts, depth })
    }
}
