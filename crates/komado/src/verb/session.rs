//! Verbs about whole sessions: `sessions`, `export`, `import`, `migrate`.

use crate::app::App;
use crate::cli_output::{CliOutput, ProgressShown, count, keep, say, spinner, text_of};
use indicatif::ProgressBar;
use komado_core::Address;
use komado_core::amount::count_of;
use komado_core::session::State;
use komado_ops::address::{AtMoment, AtSession};
use komado_ops::choice::one_of;
use komado_ops::migrate::{Migrate, MigrateBegun, MigrateMode, Migrated, MigratedFigures, Summary};
use komado_ops::session::{Export, ExportFormat, Exported, Import, ListSessions, SessionOrder};
use komado_ops::stream::{StreamBytes, StreamSink};
use komado_ops::thread::ListThreads;
use komado_ops::{FaultKind, OpFault, OpResult};
use std::fs::File;
use std::io::{BufRead, BufReader, Write, stdin};
use std::path::PathBuf;

#[derive(clap::Args, Debug)]
pub(crate) struct SessionsArgs {
    /// List this session's threads
    pub(crate) address: Option<Address>,
    /// Only sessions in this state
    #[arg(long, value_parser = one_of(&State::ALL, State::name))]
    pub(crate) status: Option<State>,
    /// Only this user's
    #[arg(long)]
    pub(crate) user: Option<String>,
    /// Only those of this agent, such as claude-code
    #[arg(long, value_name = "NAME")]
    pub(crate) agent: Option<String>,
    /// Only those of this project folder and of folders in it
    #[arg(long, value_name = "DIR")]
    pub(crate) project: Option<PathBuf>,
    /// At most so many: those that were used last (with --json: the newest)
    #[arg(short = 'n', long, default_value_t = 50, conflicts_with = "all")]
    pub(crate) limit: u32,
    /// All of them
    #[arg(long)]
    pub(crate) all: bool,
}

pub(crate) fn sessions(app: &mut App, args: SessionsArgs) -> OpResult {
    if let Some(address) = &args.address {
        let at = AtSession { session: Some(address.session.to_string()) };
        return app.show(ListThreads { at });
    }
    let SessionsArgs { status, user, agent, project, limit, all, .. } = args;
    // Of a folder that is gone there may still be sessions.
    let project =
        project.map(|path| path.canonicalize().or_else(|_| std::path::absolute(&path))).transpose()?;
    let project = project.as_deref().map(text_of);
    let order = if app.paper.json { SessionOrder::Made } else { SessionOrder::Activity };
    app.show(ListSessions {
        status,
        user,
        agent,
        project,
        limit: Some(if all { u32::MAX } else { limit }),
        newest: Some(true),
        order: Some(order),
        ..ListSessions::default()
    })
}

#[derive(clap::Args, Debug)]
pub(crate) struct ExportArgs {
    /// The session; of a transcript or request also SESSION/THREAD or SESSION@SEQ
    #[arg(value_name = "SESSION")]
    at: AtMoment,
    /// komado: everything, which import reads; md, html: a transcript; openai, anthropic: what the model sees, as a request
    #[arg(short, long, value_parser = one_of(&ExportFormat::ALL, ExportFormat::name), default_value = "komado")]
    format: ExportFormat,
    /// The model that a request names; that of the session when left out
    #[arg(long, value_name = "NAME")]
    model: Option<String>,
    /// Write to this file instead of standard output
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

pub(crate) fn export(app: &mut App, args: ExportArgs) -> OpResult {
    let export = Export { at: args.at, format: Some(args.format), model: args.model };
    let Some(path) = args.output else {
        return write(app.context.clone(), export, &mut app.paper.safe()).map(|_| ());
    };
    let session = keep(&path, |out| write(app.context.clone(), export, out))?;
    if app.paper.json {
        return app.paper.json(&serde_json::json!({ "session": session, "file": text_of(&path) }));
    }
    say(format!("wrote {}", path.display()));
    Ok(())
}

/// Writes an export; gives the session's id.
fn write(context: komado_ops::OperationContext, export: Export, out: &mut dyn Write) -> OpResult<String> {
    let mut to = ExportSink { out, session: String::new(), bytes: 0, bar: spinner("bytes") };
    context.stream(export, &mut to)?;
    to.bar.finish_and_clear();
    Ok(to.session)
}

struct ExportSink<'a> {
    out: &'a mut dyn Write,
    session: String,
    bytes: u64,
    bar: ProgressBar,
}

impl StreamSink<Export> for ExportSink<'_> {
    fn begin(&mut self, head: Exported) -> OpResult {
        self.session = head.session;
        Ok(())
    }

    fn item(&mut self, StreamBytes(bytes): StreamBytes) -> OpResult {
        self.out.write_all(&bytes)?;
        self.bytes += bytes.len() as u64;
        self.bar.set_position(self.bytes);
        Ok(())
    }
}

#[derive(clap::Args, Debug)]
pub(crate) struct ImportArgs {
    /// The export; standard input when left out or -
    file: Option<PathBuf>,
    /// Give the session another id
    #[arg(long = "as", value_name = "ID")]
    name: Option<String>,
}

pub(crate) fn import(app: &mut App, args: ImportArgs) -> OpResult {
    let from: Box<dyn BufRead + Send> = match args.file.filter(|path| path.as_os_str() != "-") {
        None => Box::new(BufReader::new(stdin())),
        Some(path) => {
            let file = File::open(&path).map_err(|e| {
                OpFault::new(FaultKind::NotFound, format!("cannot open {}: {e}", path.display()))
            })?;
            Box::new(BufReader::new(file))
        }
    };
    app.context = app.context.clone().reading(from);
    app.show(Import { name: args.name })
}

pub(crate) fn migrate(app: &mut App, args: Migrate) -> OpResult {
    let mut printed =
        MigrationPrinter { paper: &mut app.paper, progress: &app.progress, way: MigrateMode::Copy };
    let outcome = app.context.stream(args, &mut printed);
    app.progress.clear();
    outcome
}

struct MigrationPrinter<'a> {
    paper: &'a mut CliOutput,
    progress: &'a ProgressShown,
    way: MigrateMode,
}

impl StreamSink<Migrate> for MigrationPrinter<'_> {
    fn begin(&mut self, begun: MigrateBegun) -> OpResult {
        self.way = begun.way;
        Ok(())
    }

    fn item(&mut self, item: Migrated) -> OpResult {
        match (&item, self.paper.json) {
            (_, true) => self.paper.json(&item)?,
            (Migrated::Session { figures: MigratedFigures::Left { error }, .. }, false) => {
                self.progress.clear();
                say(format!("komado: {error}"));
            }
            (Migrated::Session { .. }, false) => {}
            (Migrated::Summary { summary }, false) => {
                self.progress.clear();
                lines(summary, self.way).iter().try_for_each(|line| self.paper.prose(line))?;
            }
        }
        // Each session is told when it is there, not at the end.
        self.paper.flush()
    }
}

fn lines(sum: &Summary, way: MigrateMode) -> Vec<String> {
    let (sessions, outputs) = (count(sum.sessions, "session"), count(sum.outputs, "output"));
    if way == MigrateMode::Look {
        return vec![format!("would copy {} of {sessions}", entries(sum.added.entries))];
    }
    let (kept, digest) = (entries(sum.entries), &sum.digest);
    let mut lines = vec![format!("{sessions}, {kept}, {outputs}: read back and the same; digest {digest}")];
    if matches!(way, MigrateMode::Copy | MigrateMode::Move) {
        lines.push(format!(
            "copied {} and {} that were not there, {} and {}",
            entries(sum.added.entries),
            count(sum.added.blobs, "output"),
            count(sum.lessons, "lesson"),
            count(sum.jobs, "job")
        ));
    }
    if way == MigrateMode::Move {
        lines.push(format!("removed {} from the source", count(sum.removed, "session")));
    }
    lines
}

fn entries(n: u64) -> String {
    count_of(n, "entry", "entries")
}
