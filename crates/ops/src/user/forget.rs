//! Forget a user: everything of them is kept outside, and then erased.
//!
//! First every session is exported and read back; only then is anything erased, and nothing that changed meanwhile. What is
//! to be done and what was is written to `erasures.jsonl` in the base folder, also where it broke off: when, who did it, how
//! much, digests; no name and no content.
//!
//! A user stands in that record by a digest with a key of its own (`erasures.key`, beside it): lines about one user show that they
//! are, a reader of both files can check a name, and the record alone tells nothing, however many names are tried. The key is
//! applied to the digest of the name, which is what earlier versions wrote down: so their lines can be closed, too, without
//! knowing the names.

use super::{check, no_user};
use crate::key::file::{self, KeyFile};
use crate::{
    FaultKind, Interfaces, OpFault, OpResult, Operation, OperationContext, OperationLabel, Route, private,
};
use komado_core::SessionId;
use komado_store::{JobStage, QueuedJob};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::fs::File;
use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::path::{Path, PathBuf};

/// Erase everything of a user; this cannot be undone, so export first what is to be kept.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
pub struct ForgetUser {
    /// The user
    #[schemars(length(min = 1), example = &"ann")]
    pub user: String,
    /// Show what would be erased, and erase nothing
    #[serde(default)]
    pub dry_run: bool,
    /// Erase the rest where some sessions are being written; those are named and stay
    #[serde(default)]
    pub force: bool,
}

/// What was erased of a user, or would be.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum Forgetting {
    /// What would be.
    Planned(WouldForget),
    /// What was.
    Done(ForgottenUser),
}

/// What would be erased.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, JsonSchema)]
pub struct WouldForget {
    /// Sessions that would be erased.
    pub would_erase: u64,
    /// Jobs that would be withdrawn.
    pub jobs: u64,
    /// Those of the sessions that are being written or worked on; they would stay.
    pub live: Vec<String>,
    /// Nothing.
    pub erased: u64,
    /// Which process is at each of the live sessions.
    #[serde(skip)]
    pub holders: Vec<String>,
}

/// What was erased.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, JsonSchema)]
pub struct ForgottenUser {
    /// Sessions that were erased.
    pub erased: u64,
    /// Jobs that were withdrawn.
    pub jobs: u64,
    /// Sessions that stay.
    pub left: Vec<Remaining>,
    /// Sessions that were erased while something of them remains elsewhere.
    pub remains: Vec<Remaining>,
    /// Keys that still name the user.
    pub keys: Vec<String>,
    /// Sessions that were exported, where the exports are kept.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exported: Option<u64>,
    /// The folder of the exports.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub folder: Option<String>,
    /// The command that brings a session back from its export.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub undo: Option<String>,
}

/// A session of which not all is gone.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
pub struct Remaining {
    /// The session.
    pub session: String,
    /// Why.
    pub why: String,
}

impl Operation for ForgetUser {
    const ABOUT: OperationLabel = OperationLabel::remove("user_forget", "Forget a user");
    const INTERFACES: Interfaces =
        Interfaces::everywhere("user forget", Route::delete("users", "/users/{user}"))
            .not_mcp("a model does not erase people");
    type Output = Forgetting;

    /// The exports only show that nothing changes while it is erased. They are gone with it: the caller has no folder here.
    fn run(self, context: &OperationContext) -> OpResult<Forgetting> {
        if self.dry_run {
            return self.plan(context).map(Forgetting::Planned);
        }
        let folder = private::temporary("komado-", &std::env::temp_dir())?;
        let by = context.caller.key.as_ref().map_or_else(|| "no key".to_owned(), |key| format!("key {key}"));
        self.erase(context, folder.path(), by).map(|(done, _)| Forgetting::Done(done))
    }
}

impl ForgetUser {
    /// What there is of the user.
    pub fn plan(&self, context: &OperationContext) -> OpResult<WouldForget> {
        check(context, &self.user)?;
        let mut found = WouldForget::default();
        let mut live = |id: &SessionId, holder: String| {
            if !found.live.iter().any(|known| known == id.as_str()) {
                found.live.push(id.to_string());
                found.holders.push(holder);
            }
        };
        context.engine.each_of_user(&self.user, |id| {
            found.would_erase += 1;
            if let Some(holder) = context.engine.store().writer(id)? {
                live(id, holder.to_string());
            }
            Ok(())
        })?;
        for queued in context.engine.jobs() {
            let QueuedJob { job, stage, .. } = queued?;
            if job.user.as_ref() != Some(&self.user) {
                continue;
            }
            found.jobs += 1;
            if let JobStage::Held(holder) = stage {
                live(&job.session, holder.to_string());
            }
        }
        match found.would_erase == 0 && found.jobs == 0 {
            true => Err(no_user(&self.user)),
            false => Ok(found),
        }
    }

    /// Exports everything into `folder`, then erases it; gives what was done and how many sessions were exported.
    pub fn erase(
        &self,
        context: &OperationContext,
        folder: &Path,
        by: String,
    ) -> OpResult<(ForgottenUser, u64)> {
        let found = self.plan(context)?;
        self.check_live(&found)?;
        // It reads every session of the user, and two at once would find each other's halves.
        context.report(|| {
            context.claim()?;
            let record = Erasures::open(&context.config.base_dir)?;
            let user = record.digest(&self.user);
            let mut erasing = Erasing {
                context,
                of: self,
                record,
                user,
                by,
                live: found.live,
                done: ForgottenUser::default(),
            };
            let exported = erasing.export(folder)?;
            erasing.note(&json!({ "erasing": exported }))?;
            let erased = erasing.erase(folder);
            // What was erased is noted also where the store went away in the middle.
            erasing.note(&erasing.told(erased.is_ok()))?;
            erased?;
            erasing.done.keys = keys_of(context, &self.user)?;
            Ok((erasing.done, exported))
        })
    }

    /// Refuses to begin where a session is being written.
    pub fn check_live(&self, found: &WouldForget) -> OpResult {
        if found.live.is_empty() || self.force {
            return Ok(());
        }
        let named: Vec<String> =
            found.live.iter().zip(&found.holders).map(|(id, holder)| format!("{id} by {holder}")).collect();
        let sessions = if named.len() == 1 {
            "1 session is".to_owned()
        } else {
            format!("{} sessions are", named.len())
        };
        Err(OpFault::new(
            FaultKind::Busy,
            format!(
                "nothing was erased: {sessions} being written or worked on: {}; wait for them to end, or erase the rest \
                 with force=true (--force)",
                named.join(", ")
            ),
        ))
    }
}

/// The names of the keys that still name the user.
fn keys_of(context: &OperationContext, user: &str) -> OpResult<Vec<String>> {
    let all = KeyFile::read(&file::place(&context.config.base_dir))?;
    let theirs = all.iter().filter(|key| key.user.as_deref() == Some(user));
    Ok(theirs.map(|key| key.name.clone()).collect())
}

/// A user being forgotten.
struct Erasing<'a> {
    context: &'a OperationContext,
    of: &'a ForgetUser,
    /// Where it is written down.
    record: Erasures,
    /// What stands for the user there.
    user: String,
    /// Who does it.
    by: String,
    live: Vec<String>,
    done: ForgottenUser,
}

impl Erasing<'_> {
    fn is_live(&self, id: &SessionId) -> bool {
        self.live.iter().any(|live| live == id.as_str())
    }

    /// Exports every session; what goes wrong here stops everything, and nothing was erased.
    fn export(&self, folder: &Path) -> OpResult<u64> {
        let (mut exported, mut failed) = (0, None);
        self.context.engine.each_of_user(&self.of.user, |id| {
            if self.is_live(id) || failed.is_some() {
                return Ok(());
            }
            let kept = self.context.engine.keep(id, folder)?;
            exported += 1;
            failed = self.note(&json!({ "export": kept.digest, "bytes": kept.bytes })).err();
            Ok(())
        })?;
        failed.map_or(Ok(exported), Err)
    }

    /// Erases what was exported, and withdraws jobs.
    fn erase(&mut self, folder: &Path) -> OpResult {
        let (engine, user) = (&self.context.engine, &self.of.user);
        engine.each_of_user(user, |id| {
            if self.is_live(id) {
                self.left(id, "it is being written or worked on");
                return Ok(());
            }
            match engine.erase(id, folder) {
                Ok(true) => self.gone(id),
                Ok(false) => self.left(id, "it changed since it was exported"),
                Err(error) => self.left(id, error.to_string()),
            }
            Ok(())
        })?;
        let withdrawn = engine.withdraw_jobs(user, |id| {
            if !self.done.left.iter().any(|known| known.session == id.as_str()) {
                self.left(id, "its job is being worked on");
            }
        })?;
        self.done.jobs += withdrawn;
        Ok(())
    }

    fn left(&mut self, id: &SessionId, why: impl Into<String>) {
        self.done.left.push(Remaining { session: id.to_string(), why: why.into() });
    }

    /// Counts a session that is gone, and takes away what stands beside it.
    fn gone(&mut self, id: &SessionId) {
        self.done.erased += 1;
        let mut remains = |why: String| self.done.remains.push(Remaining { session: id.to_string(), why });
        match self.context.engine.store().withdraw(id) {
            Ok(was_there) => self.done.jobs += u64::from(was_there),
            Err(error) => remains(format!("its job: {error}")),
        }
        if let Err(fault) = self.context.forget_session(id) {
            remains(format!("answers to calls: {}", fault.message()));
        }
    }

    /// What was done, for the record; `broke_off` where not all was tried.
    fn told(&self, is_whole: bool) -> Value {
        let ForgottenUser { erased, left, jobs, .. } = &self.done;
        let mut line = json!({ "erased": erased, "left": left.len(), "jobs": jobs });
        if !is_whole {
            line["broke_off"] = json!(true);
        }
        line
    }

    /// Adds a line to the record of erasures; durable when it returns.
    fn note(&self, what: &Value) -> OpResult {
        let now = self.context.engine.now();
        let mut line = json!({ "at": now, "by": self.by, "user_digest": self.user, "keyed": true });
        if let (Some(line), Some(what)) = (line.as_object_mut(), what.as_object()) {
            line.extend(what.clone());
        }
        self.record.add(&line)
    }
}

/// The record, and the key to the digests in it.
pub(super) struct Erasures {
    record: PathBuf,
    key_at: PathBuf,
    key: [u8; 32],
}

impl Erasures {
    /// The record of a base folder.
    pub(super) fn open(base_dir: &Path) -> OpResult<Self> {
        private::folder(base_dir)?;
        let (record, key_at) = (base_dir.join("erasures.jsonl"), base_dir.join("erasures.key"));
        let mut file = private::file(&key_at)?;
        // Two that begin at once share one key, and none of them adds a line while the record is replaced.
        file.lock()?;
        let erasures = Self { key: key(&mut file, &key_at)?, record, key_at };
        erasures.close_old_lines()?;
        Ok(erasures)
    }

    /// What stands for a user.
    pub(super) fn digest(&self, user: &str) -> String {
        self.keyed(blake3::hash(user.as_bytes()).to_hex().as_str())
    }

    fn keyed(&self, plain: &str) -> String {
        blake3::keyed_hash(&self.key, plain.as_bytes()).to_hex().to_string()
    }

    /// Adds a line; durable when it returns.
    pub(super) fn add(&self, line: &Value) -> OpResult {
        let held = private::file(&self.key_at)?;
        held.lock()?;
        let mut file = private::file(&self.record)?;
        file.write_all(format!("{line}\n").as_bytes())?;
        Ok(file.sync_all()?)
    }

    /// Lines of earlier versions hold the digest alone, which a list of names undoes.
    fn close_old_lines(&self) -> OpResult {
        let file = match File::open(&self.record) {
            Ok(file) => file,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
            Err(error) => return Err(error.into()),
        };
        let (mut lines, mut is_old) = (Vec::new(), false);
        for line in BufReader::new(file).lines() {
            let line = line?;
            let closed = self.closed(&line);
            is_old |= closed.is_some();
            lines.push(closed.unwrap_or(line));
        }
        if !is_old {
            return Ok(());
        }
        let written = |out: &mut dyn Write| lines.iter().try_for_each(|line| writeln!(out, "{line}"));
        Ok(private::replace(&self.record, written)?)
    }

    /// A line of an earlier version as it is written now; `None` for every other.
    fn closed(&self, line: &str) -> Option<String> {
        let mut row: Value = serde_json::from_str(line).ok()?;
        let plain = row.get("user_digest")?.as_str()?.to_owned();
        if row["keyed"] == true {
            return None;
        }
        row["user_digest"] = json!(self.keyed(&plain));
        row["keyed"] = json!(true);
        Some(row.to_string())
    }
}

/// The key in a file; one that is empty gets one.
fn key(file: &mut File, path: &Path) -> OpResult<[u8; 32]> {
    let mut text = String::new();
    file.read_to_string(&mut text)?;
    if text.is_empty() {
        let key = private::random()?;
        file.write_all(format!("{}\n", private::hex(&key)).as_bytes())?;
        file.sync_all()?;
        return Ok(key);
    }
    blake3::Hash::from_hex(text.trim()).map(Into::into).map_err(|_| {
        OpFault::input(format!(
            "{}: not 64 hexadecimal digits; restore the file, or move it away together with erasures.jsonl",
            path.display()
        ))
    })
}
