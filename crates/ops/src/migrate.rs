//! Copies sessions from one store into another.

use crate::stream::{StreamForm, StreamSink};
use crate::{Interfaces, OpFault, OpResult, OperationContext, OperationLabel, OperationProgress, Streamed};
use komado_core::session::Session;
use komado_core::{BadId, SessionId};
use komado_engine::Engine;
use komado_engine::migrate::{
    self, Error, JobLeft, LiveSessions, Migration, MigrationPlan, MovedSession, SessionDigest, SourceJob,
};
use komado_store::{SessionQuery, Store};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::io;
use std::sync::Arc;

/// How often a session that is being written is gone over.
const ROUNDS: u32 = 8;

/// Copy sessions from one store into another, and check them.
#[derive(Clone, Debug, clap::Args, Deserialize, JsonSchema)]
pub struct Migrate {
    /// The store to read: file:DIR, postgres://… or redis://…; file: alone is the folder of the settings
    #[arg(long, value_name = "URL")]
    pub from: String,
    /// The store to write
    #[arg(long, value_name = "URL")]
    pub to: String,
    /// Only these sessions
    #[arg(long = "session", value_name = "ID", num_args = 1.., conflicts_with = "user", value_parser = id)]
    #[serde(default)]
    pub sessions: Vec<String>,
    /// Only this user's sessions
    #[arg(long)]
    pub user: Option<String>,
    /// What to do with a session that another process is writing
    #[arg(long, value_enum, default_value = "refuse")]
    #[serde(default)]
    pub live: OnLive,
    /// Show what would be copied, and copy nothing
    #[arg(long, conflicts_with_all = ["verify_only", "delete_source"])]
    #[serde(default)]
    pub dry_run: bool,
    /// Only compare the two stores
    #[arg(long, conflicts_with = "delete_source")]
    #[serde(default)]
    pub verify_only: bool,
    /// Remove each session from the source after its copy was read back and found equal
    #[arg(long)]
    #[serde(default)]
    pub delete_source: bool,
}

/// What to do about sessions that are being written.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, clap::ValueEnum, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum OnLive {
    /// List them and leave them out
    #[default]
    Refuse,
    /// Copy them, then copy what was added meanwhile
    CatchUp,
}

/// A session id, as it is written.
fn id(text: &str) -> Result<String, BadId> {
    SessionId::new(text).map(|id| id.to_string())
}

/// What is done with each session.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum MigrateMode {
    /// It is copied.
    Copy,
    /// It is copied, then removed from the source.
    Move,
    /// It is looked at, to say what would be copied.
    Look,
    /// It is compared in both stores.
    Compare,
}

/// A migration that begins.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, JsonSchema)]
pub struct MigrateBegun {
    /// What is done with each session.
    pub way: MigrateMode,
}

/// A session that was gone over, or what all of them come to.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum Migrated {
    /// A session.
    Session {
        /// Its id.
        session: String,
        /// `copied`, `there`, `would copy`, `same` or `left`.
        outcome: &'static str,
        /// Its figures.
        #[serde(flatten)]
        figures: MigratedFigures,
    },
    /// All of them, at the end.
    Summary {
        /// Their sums.
        summary: Summary,
    },
}

/// Figures of a session, by what was done with it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum MigratedFigures {
    /// It was copied.
    Moved(MovedSession),
    /// It was compared.
    Compared(SessionDigest),
    /// It was looked at.
    Looked(MigrationPlan),
    /// It stays where it is.
    Left {
        /// Why.
        error: String,
    },
}

/// Sums over all sessions.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, JsonSchema)]
pub struct Summary {
    /// Sessions.
    pub sessions: u64,
    /// Their entries.
    pub entries: u64,
    /// Their outputs.
    pub outputs: u64,
    /// Bytes of both.
    pub bytes: u64,
    /// What had to be copied for that.
    pub added: migrate::CopyProgress,
    /// Lessons that were copied.
    pub lessons: u64,
    /// Jobs that were copied.
    pub jobs: u64,
    /// Sessions that were removed from the source.
    pub removed: u64,
    /// Sessions and jobs that stay where they are.
    pub left: u64,
    /// A digest over the digests of all sessions, in the order they were made.
    pub digest: String,
}

impl Streamed for Migrate {
    const ABOUT: OperationLabel =
        OperationLabel::remove("migrate", "Copy sessions from one store into another");
    const INTERFACES: Interfaces =
        Interfaces::only_cli("admin migrate", "it copies whole stores; their operator runs it beside them");
    const FORM: StreamForm = StreamForm::Object;
    type Head = MigrateBegun;
    type Item = Migrated;

    fn run(self, context: &OperationContext, to: &mut dyn StreamSink<Self>) -> OpResult {
        if self.from == self.to {
            return Err(OpFault::usage("source and target are the same store; give two different ones"));
        }
        self.check_lasting(context)?;
        let (source, files) = context.open_store(&self.from, "--from")?;
        if let Some(files) = files.filter(|files| !files.base_dir().is_dir()) {
            let why = format!("there is no folder {} to read sessions from", files.base_dir().display());
            return Err(OpFault::not_found(why));
        }
        if self.to == "file:" {
            context.claim()?;
        }
        let (target, _) = context.open_store(&self.to, "--to")?;
        let live = match self.live {
            OnLive::Refuse => LiveSessions::Refuse,
            OnLive::CatchUp => LiveSessions::CatchUp { rounds: ROUNDS },
        };
        to.begin(MigrateBegun { way: self.way() })?;
        let mut run = Run {
            request: &self,
            context,
            migration: Migration::new(&*source, &*target, live),
            to,
            summary: Summary::default(),
            digest: blake3::Hasher::new(),
            refused: BTreeSet::new(),
            done: 0,
            total: None,
        };
        run.sessions(&context.engine.over(|_| Arc::clone(&source)))?;
        run.beside()?;
        run.end(&*target)
    }
}

impl Migrate {
    fn way(&self) -> MigrateMode {
        match (self.dry_run, self.verify_only, self.delete_source) {
            (true, ..) => MigrateMode::Look,
            (_, true, _) => MigrateMode::Compare,
            (.., true) => MigrateMode::Move,
            _ => MigrateMode::Copy,
        }
    }

    /// What is removed at the source must outlive the call at the target; what lasts only for a while is told first.
    fn check_lasting(&self, context: &OperationContext) -> OpResult {
        if !self.delete_source {
            return Ok(());
        }
        if self.to == "memory:" {
            return Err(OpFault::usage(
                "--delete-source to memory: would lose every session, for memory is gone with this command; give --to a \
                 store that stays",
            ));
        }
        let is_redis = self.to.starts_with("redis:") || self.to.starts_with("rediss:");
        if let Some(ttl) = context.config.store.ttl.filter(|_| is_redis) {
            let days = ttl.as_secs().div_ceil(24 * 3600);
            let days = format!("{days} day{}", if days == 1 { "" } else { "s" });
            context.note(format!(
                "the target forgets a session {days} after it last changed (store.ttl_days; 0 for never), and it is \
                 removed from the source"
            ));
        }
        Ok(())
    }
}

/// A migration under way.
struct Run<'s> {
    request: &'s Migrate,
    context: &'s OperationContext,
    migration: Migration<'s>,
    to: &'s mut dyn StreamSink<Migrate>,
    summary: Summary,
    digest: blake3::Hasher,
    /// Sessions that stay at the source.
    refused: BTreeSet<SessionId>,
    done: u64,
    /// Sessions in all.
    total: Option<u64>,
}

impl Run<'_> {
    /// Every session that is wanted, one after another; what goes wrong with one does not keep the others.
    fn sessions(&mut self, source: &Engine) -> OpResult {
        let request = self.request;
        if !request.sessions.is_empty() {
            self.total = Some(request.sessions.len() as u64);
            return request.sessions.iter().try_for_each(|id| self.one(&SessionId::new(id.as_str())?));
        }
        let query = SessionQuery { user: request.user.clone(), ..SessionQuery::default() };
        let mut all = 0;
        source.each_session(query.clone(), |_| {
            all += 1;
            Ok(())
        })?;
        self.total = Some(all);
        let mut failed = None;
        let paged = source.each_session(query, |session: &Session| {
            failed = self.one(&SessionId::new(session.meta.uuid.as_str())?).err();
            // What stops all others stops the paging, too; what it was is told below.
            let stop = || komado_engine::Error::Io(io::Error::from(io::ErrorKind::Interrupted));
            failed.is_none().then_some(()).ok_or_else(stop)
        });
        failed.map_or_else(|| Ok(paged?), Err)
    }

    /// One session. Only what would stop all others stops here: a store that is away, one store under two names, no reader.
    fn one(&mut self, id: &SessionId) -> OpResult {
        let gone_over = self.go_over(id);
        self.done += 1;
        self.context.progress(OperationProgress::Migrating { done: self.done, total: self.total })?;
        match gone_over {
            Ok((outcome, figures)) => {
                self.to.item(Migrated::Session { session: id.to_string(), outcome, figures })
            }
            Err(Error::SameStore) => Err(OpFault::usage(Error::SameStore.to_string())),
            Err(Error::Store(away)) if away.is_away() => Err(away.into()),
            Err(error) => {
                self.refused.insert(id.clone());
                self.refuse(id, error.to_string())
            }
        }
    }

    fn refuse(&mut self, id: &SessionId, error: String) -> OpResult {
        self.summary.left += 1;
        let figures = MigratedFigures::Left { error };
        self.to.item(Migrated::Session { session: id.to_string(), outcome: "left", figures })
    }

    fn go_over(&mut self, id: &SessionId) -> Result<(&'static str, MigratedFigures), Error> {
        let way = self.request.way();
        Ok(match way {
            MigrateMode::Look => {
                let standing = self.migration.look(id)?;
                self.summary.sessions += 1;
                self.summary.entries += standing.entries;
                self.summary.added.entries += standing.entries.saturating_sub(standing.there);
                let is_there = standing.there == standing.entries;
                (if is_there { "there" } else { "would copy" }, MigratedFigures::Looked(standing))
            }
            MigrateMode::Compare => {
                let seal = self.migration.verify(id)?;
                self.add(id, &seal);
                ("same", MigratedFigures::Compared(seal))
            }
            MigrateMode::Copy | MigrateMode::Move => {
                let (context, done, total) = (self.context, self.done, self.total);
                let mut tick = |_: &migrate::CopyProgress| {
                    // A session is copied whole, also when the reader has gone.
                    let _ = context.progress(OperationProgress::Migrating { done, total });
                };
                let moved = self.migration.session(id, &mut tick)?;
                self.add(id, &moved.seal);
                self.summary.added.entries += moved.added.entries;
                self.summary.added.blobs += moved.added.blobs;
                self.summary.added.bytes += moved.added.bytes;
                if way == MigrateMode::Move && !self.migration.remove(id, &moved.seal)? {
                    return Err(Error::Growing { session: id.clone(), rounds: moved.rounds });
                }
                self.summary.removed += u64::from(way == MigrateMode::Move);
                let is_there = moved.added == migrate::CopyProgress::default();
                (if is_there { "there" } else { "copied" }, MigratedFigures::Moved(moved))
            }
        })
    }

    /// Counts a session that both stores hold.
    fn add(&mut self, id: &SessionId, seal: &SessionDigest) {
        self.summary.sessions += 1;
        self.summary.entries += seal.entries;
        self.summary.outputs += seal.blobs;
        self.summary.bytes += seal.bytes;
        self.digest.update(format!("{id}\n{}\n", seal.digest).as_bytes());
    }

    /// What stands beside sessions: lessons, and the jobs of the sessions that were wanted and went.
    fn beside(&mut self) -> OpResult {
        let (request, way) = (self.request, self.request.way());
        if !matches!(way, MigrateMode::Copy | MigrateMode::Move) {
            return Ok(());
        }
        let wrong = |error: Error| OpFault::failed(error.to_string());
        self.summary.lessons = self.migration.lessons().map_err(wrong)?;
        let mut left: Vec<JobLeft> = Vec::new();
        let wanted = |job: &komado_store::Job| {
            let named =
                request.sessions.is_empty() || request.sessions.iter().any(|id| id == job.session.as_str());
            let went = !self.refused.contains(&job.session);
            Ok(named && went && (request.user.is_none() || job.user == request.user))
        };
        let then = if way == MigrateMode::Move { SourceJob::Withdraw } else { SourceJob::Keep };
        self.summary.jobs = self.migration.jobs(then, wanted, |job| left.push(job)).map_err(wrong)?;
        left.into_iter().try_for_each(|job| self.refuse(&job.session, job.why))
    }

    fn end(mut self, target: &dyn Store) -> OpResult {
        let kind = target.vitals().map(|vitals| vitals.kind).unwrap_or("store");
        self.summary.digest = self.digest.finalize().to_hex().to_string();
        let left = self.summary.left;
        self.to.item(Migrated::Summary { summary: self.summary })?;
        if kind == "memory" {
            self.context.note("the target is memory: it is gone with this command");
        }
        match left {
            0 => Ok(()),
            n => Err(OpFault::refused(format!(
                "{} not moved; the reasons are above",
                komado_core::notation::grouped(n)
            ))),
        }
    }
}
