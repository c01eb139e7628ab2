//! Sessions from one store into another.

use crate::stream::{Form, Sink};
use crate::{About, Context, Fault, Interfaces, Outcome, Progress, Streamed};
use komado_core::session::Session;
use komado_core::{BadId, SessionId};
use komado_engine::Engine;
use komado_engine::migrate::{self, Error, Left, Live, Migration, Moved, Seal, Standing, Then};
use komado_store::{Query, Store};
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
    /// What to do about a session that is being written
    #[arg(long, value_enum, default_value = "refuse")]
    #[serde(default)]
    pub live: OnLive,
    /// Only say what would be copied
    #[arg(long, conflicts_with_all = ["verify_only", "delete_source"])]
    #[serde(default)]
    pub dry_run: bool,
    /// Only compare what both stores hold
    #[arg(long, conflicts_with = "delete_source")]
    #[serde(default)]
    pub verify_only: bool,
    /// Remove each session from the source once it was read back from the target and found the same
    #[arg(long)]
    #[serde(default)]
    pub delete_source: bool,
}

/// What to do about sessions that are being written.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, clap::ValueEnum, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum OnLive {
    /// Name them and leave them
    #[default]
    Refuse,
    /// Copy them, then what came since
    CatchUp,
}

/// A session id, as it is written.
fn id(text: &str) -> Result<String, BadId> {
    SessionId::new(text).map(|id| id.to_string())
}

/// What is done with each session.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Way {
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
pub struct Begun {
    /// What is done with each session.
    pub way: Way,
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
        figures: Figures,
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
pub enum Figures {
    /// It was copied.
    Moved(Moved),
    /// It was compared.
    Compared(Seal),
    /// It was looked at.
    Looked(Standing),
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
    pub added: migrate::Progress,
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
    const ABOUT: About = About::remove("migrate", "Copy sessions from one store into another");
    const INTERFACES: Interfaces =
        Interfaces::only_cli("migrate", "it copies whole stores; their operator runs it beside them");
    const FORM: Form = Form::Object;
    type Head = Begun;
    type Item = Migrated;

    fn run(self, context: &Context, to: &mut dyn Sink<Self>) -> Outcome {
        if self.from == self.to {
            return Err(Fault::usage("source and target are the same store; give two different ones"));
        }
        self.check_lasting(context)?;
        let (source, files) = context.open_store(&self.from, "--from")?;
        if let Some(files) = files.filter(|files| !files.base_dir().is_dir()) {
            let why = format!("there is no folder {} to read sessions from", files.base_dir().display());
            return Err(Fault::not_found(why));
        }
        if self.to == "file:" {
            context.claim()?;
        }
        let (target, _) = context.open_store(&self.to, "--to")?;
        let live = match self.live {
            OnLive::Refuse => Live::Refuse,
            OnLive::CatchUp => Live::CatchUp { rounds: ROUNDS },
        };
        to.begin(Begun { way: self.way() })?;
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
    fn way(&self) -> Way {
        match (self.dry_run, self.verify_only, self.delete_source) {
            (true, ..) => Way::Look,
            (_, true, _) => Way::Compare,
            (.., true) => Way::Move,
            _ => Way::Copy,
        }
    }

    /// What is removed at the source must outlive the call at the target; what lasts only for a while is told first.
    fn check_lasting(&self, context: &Context) -> Outcome {
        if !self.delete_source {
            return Ok(());
        }
        if self.to == "memory:" {
            return Err(Fault::usage(
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
    context: &'s Context,
    migration: Migration<'s>,
    to: &'s mut dyn Sink<Migrate>,
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
    fn sessions(&mut self, source: &Engine) -> Outcome {
        let request = self.request;
        if !request.sessions.is_empty() {
            self.total = Some(request.sessions.len() as u64);
            return request.sessions.iter().try_for_each(|id| self.one(&SessionId::new(id.as_str())?));
        }
        let query = Query { user: request.user.clone(), ..Query::default() };
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
    fn one(&mut self, id: &SessionId) -> Outcome {
        let gone_over = self.go_over(id);
        self.done += 1;
        self.context.progress(Progress::Migrating { done: self.done, total: self.total })?;
        match gone_over {
            Ok((outcome, figures)) => {
                self.to.item(Migrated::Session { session: id.to_string(), outcome, figures })
            }
            Err(Error::SameStore) => Err(Fault::usage(Error::SameStore.to_string())),
            Err(Error::Store(away)) if away.is_away() => Err(away.into()),
            Err(error) => {
                self.refused.insert(id.clone());
                self.refuse(id, error.to_string())
            }
        }
    }

    fn refuse(&mut self, id: &SessionId, error: String) -> Outcome {
        self.summary.left += 1;
        let figures = Figures::Left { error };
        self.to.item(Migrated::Session { session: id.to_string(), outcome: "left", figures })
    }

    fn go_over(&mut self, id: &SessionId) -> Result<(&'static str, Figures), Error> {
        let way = self.request.way();
        Ok(match way {
            Way::Look => {
                let standing = self.migration.look(id)?;
                self.summary.sessions += 1;
                self.summary.entries += standing.entries;
                self.summary.added.entries += standing.entries.saturating_sub(standing.there);
                let is_there = standing.there == standing.entries;
                (if is_there { "there" } else { "would copy" }, Figures::Looked(standing))
            }
            Way::Compare => {
                let seal = self.migration.verify(id)?;
                self.add(id, &seal);
                ("same", Figures::Compared(seal))
            }
            Way::Copy | Way::Move => {
                let (context, done, total) = (self.context, self.done, self.total);
                let mut tick = |_: &migrate::Progress| {
                    // A session is copied whole, also when the reader has gone.
                    let _ = context.progress(Progress::Migrating { done, total });
                };
                let moved = self.migration.session(id, &mut tick)?;
                self.add(id, &moved.seal);
                self.summary.added.entries += moved.added.entries;
                self.summary.added.blobs += moved.added.blobs;
                self.summary.added.bytes += moved.added.bytes;
                if way == Way::Move && !self.migration.remove(id, &moved.seal)? {
                    return Err(Error::Growing { session: id.clone(), rounds: moved.rounds });
                }
                self.summary.removed += u64::from(way == Way::Move);
                let is_there = moved.added == migrate::Progress::default();
                (if is_there { "there" } else { "copied" }, Figures::Moved(moved))
            }
        })
    }

    /// Counts a session that both stores hold.
    fn add(&mut self, id: &SessionId, seal: &Seal) {
        self.summary.sessions += 1;
        self.summary.entries += seal.entries;
        self.summary.outputs += seal.blobs;
        self.summary.bytes += seal.bytes;
        self.digest.update(format!("{id}\n{}\n", seal.digest).as_bytes());
    }

    /// What stands beside sessions: lessons, and the jobs of the sessions that were wanted and went.
    fn beside(&mut self) -> Outcome {
        let (request, way) = (self.request, self.request.way());
        if !matches!(way, Way::Copy | Way::Move) {
            return Ok(());
        }
        let wrong = |error: Error| Fault::failed(error.to_string());
        self.summary.lessons = self.migration.lessons().map_err(wrong)?;
        let mut left: Vec<Left> = Vec::new();
        let wanted = |job: &komado_store::Job| {
            let named =
                request.sessions.is_empty() || request.sessions.iter().any(|id| id == job.session.as_str());
            let went = !self.refused.contains(&job.session);
            Ok(named && went && (request.user.is_none() || job.user == request.user))
        };
        let then = if way == Way::Move { Then::Withdraw } else { Then::Keep };
        self.summary.jobs = self.migration.jobs(then, wanted, |job| left.push(job)).map_err(wrong)?;
        left.into_iter().try_for_each(|job| self.refuse(&job.session, job.why))
    }

    fn end(mut self, target: &dyn Store) -> Outcome {
        let kind = target.vitals().map(|vitals| vitals.kind).unwrap_or("store");
        self.summary.digest = self.digest.finalize().to_hex().to_string();
        let left = self.summary.left;
        self.to.item(Migrated::Summary { summary: self.summary })?;
        if kind == "memory" {
            self.context.note("the target is memory: it is gone with this command");
        }
        match left {
            0 => Ok(()),
            n => Err(Fault::refused(format!(
                "{} not moved; the reasons are above",
                komado_core::notation::grouped(n)
            ))),
        }
    }
}
