//! What every operation needs: settings, store and engine, who calls, and what is changed at the same time.

use crate::address::Target;
use crate::stream::StreamSink;
use crate::{ApiCaller, FaultKind, OpFault, OpResult, Operation, Streamed};
use komado_config::{Config, mask};
use komado_core::session::Session;
use komado_core::{Address, BadId, Seq, SessionId, ThreadId};
use komado_engine::engine::ResolvedAddress;
use komado_engine::model::ModelResolver;
use komado_engine::{Engine, Error, Thread};
use komado_store::{FileStore, OpenMode, SessionQuery, Store};
use std::collections::HashMap;
use std::io::BufRead;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, Weak};

/// Sessions that are looked through at once.
const PAGE: usize = 200;

/// How sessions may be named.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Naming {
    /// In full.
    Exact,
    /// In full or by a beginning that only one has; a request that names none means `default`, or the only one there is.
    Prefix {
        /// The session when a request names none.
        default: Option<String>,
    },
}

/// A store, and the same as a file store when it is one.
pub type OpenedStore = (Arc<dyn Store>, Option<Arc<FileStore>>);

/// Opens the store at an address, as the argument of a name gives it.
type OpenStore = dyn Fn(&str, &str) -> OpResult<OpenedStore> + Send + Sync;

/// What is beside the store in the base folder, and belongs to an interface.
pub trait BaseFolder: Send + Sync {
    /// Makes the folder the owner's before something is put into it.
    fn claim(&self) -> OpResult;
    /// Forgets what is kept there about a session.
    fn forget_session(&self, id: &SessionId) -> OpResult;
}

/// What an operation reads beside its request, such as an export.
pub type RequestInput = Box<dyn BufRead + Send>;

/// What a call is run in. One is made for each call; they share what outlives it.
#[derive(Clone)]
pub struct OperationContext {
    /// The engine over the store.
    pub engine: Engine,
    /// The settings.
    pub config: Arc<Config>,
    /// The file store, when that is the one in use.
    pub files: Option<Arc<FileStore>>,
    /// Who calls.
    pub caller: ApiCaller,
    /// How sessions may be named.
    pub naming: Naming,
    /// True where callers come over a network.
    is_served: bool,
    /// The folder that the caller works in, where that is known.
    working_folder: Option<Arc<PathBuf>>,
    shared: Arc<Shared>,
    notes: Arc<dyn Fn(&str) + Send + Sync>,
    progress: Arc<dyn Fn(OperationProgress) -> OpResult + Send + Sync>,
    folder: Option<Arc<dyn BaseFolder>>,
    stores: Option<Arc<OpenStore>>,
    /// Hears of entries before they are durable.
    plan: Arc<dyn Fn(&PlannedEntries) -> OpResult + Send + Sync>,
    /// What an operation reads beside its request.
    input: Arc<Mutex<Option<RequestInput>>>,
    /// The thread that was last opened to be changed.
    changing: Arc<Mutex<Option<ResolvedAddress>>>,
    /// The row of the session that the call is about, where it was read already.
    known: Option<Arc<Session>>,
}

/// What an operation will journal, and what it will answer then.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PlannedEntries {
    /// The first entry that says what was sent.
    pub seq: Seq,
    /// The digest of its line.
    pub line: String,
    /// The answer, as JSON.
    pub answer: String,
}

/// What all calls of a process share.
#[derive(Default)]
struct Shared {
    /// Sessions that are being changed by a call.
    locks: Mutex<HashMap<SessionId, Weak<Mutex<()>>>>,
    /// Held while a report is made: it reads every session there is.
    report: Arc<Mutex<()>>,
}

impl OperationContext {
    /// For the owner of the machine. What people should know meanwhile goes to `notes`, line by line.
    pub fn new(
        engine: Engine,
        config: Arc<Config>,
        files: Option<Arc<FileStore>>,
        notes: impl Fn(&str) + Send + Sync + 'static,
    ) -> Self {
        Self {
            engine,
            config,
            files,
            caller: ApiCaller::owner(),
            naming: Naming::Prefix { default: None },
            is_served: false,
            working_folder: None,
            shared: Arc::default(),
            notes: Arc::new(|_| {}),
            progress: Arc::new(|_| Ok(())),
            folder: None,
            stores: None,
            plan: Arc::new(|_| Ok(())),
            input: Arc::default(),
            changing: Arc::default(),
            known: None,
        }
        .noting(notes)
    }

    /// The same, where `notes` is told what people should know.
    #[must_use]
    pub fn noting(&self, notes: impl Fn(&str) + Send + Sync + 'static) -> Self {
        Self { notes: Arc::new(notes), ..self.clone() }
    }

    /// The same for another caller.
    #[must_use]
    pub fn of(&self, caller: ApiCaller, naming: Naming) -> Self {
        Self { caller, naming, changing: Arc::default(), progress: Arc::new(|_| Ok(())), ..self.clone() }
    }

    /// The same for callers who come over a network: where things lie on this machine's disk is not told to them.
    #[must_use]
    pub fn served(self) -> Self {
        Self { is_served: true, ..self }
    }

    /// The same for a caller who works in this folder.
    #[must_use]
    pub fn within(self, folder: PathBuf) -> Self {
        Self { working_folder: Some(Arc::new(folder)), ..self }
    }

    /// The folder that the caller works in; none for one who is not on this machine.
    pub fn working_folder(&self) -> Option<&Path> {
        self.working_folder.as_deref().map(PathBuf::as_path).filter(|_| self.is_here())
    }

    /// Where sessions are kept, for a caller on this machine: a folder, or the address of a server without its secrets.
    pub fn kept_in(&self) -> Option<String> {
        let config = &self.config;
        let url = config.store_url.as_deref().filter(|url| !url.starts_with("file:"));
        let folder = || match &self.files {
            Some(files) => files.base_dir().display().to_string(),
            None => "memory".to_owned(),
        };
        self.is_here().then(|| url.filter(|_| config.enabled).map_or_else(folder, mask::url))
    }

    /// The same over another engine on the same store.
    #[must_use]
    pub fn over(&self, engine: Engine) -> Self {
        Self { engine, ..self.clone() }
    }

    /// Runs an operation. Where it fails because a thread is closed, the failure says how to open it again.
    pub fn run<O: Operation>(&self, operation: O) -> OpResult<O::Output> {
        operation.run(self).map_err(|fault| self.explained(fault))
    }

    /// Runs an operation whose result is streamed.
    pub fn stream<S: Streamed>(&self, operation: S, to: &mut dyn StreamSink<S>) -> OpResult {
        operation.run(self, to).map_err(|fault| self.explained(fault))
    }

    /// Tells people something that is not part of the result.
    pub fn note(&self, text: impl AsRef<str>) {
        (self.notes)(text.as_ref());
    }

    /// The same where `show` hears how far a long operation has come; what it refuses ends the operation.
    #[must_use]
    pub fn showing(self, show: impl Fn(OperationProgress) -> OpResult + Send + Sync + 'static) -> Self {
        Self { progress: Arc::new(show), ..self }
    }

    /// The same, where `folder` looks after the base folder.
    #[must_use]
    pub fn beside(self, folder: Arc<dyn BaseFolder>) -> Self {
        Self { folder: Some(folder), ..self }
    }

    /// The same, where `open` opens the store at an address, as the argument of a name gives it.
    #[must_use]
    pub fn opening(self, open: impl Fn(&str, &str) -> OpResult<OpenedStore> + Send + Sync + 'static) -> Self {
        Self { stores: Some(Arc::new(open)), ..self }
    }

    /// Opens the store at `url`, as the argument `by` gives it.
    pub fn open_store(&self, url: &str, by: &str) -> OpResult<OpenedStore> {
        match &self.stores {
            Some(open) => open(url, by),
            None => Err(OpFault::usage("no other store is opened here")),
        }
    }

    /// Makes the base folder the owner's before something is put into it.
    pub fn claim(&self) -> OpResult {
        self.folder.as_ref().map_or(Ok(()), |folder| folder.claim())
    }

    /// Forgets what is kept about a session beside the store.
    pub fn forget_session(&self, id: &SessionId) -> OpResult {
        self.folder.as_ref().map_or(Ok(()), |folder| folder.forget_session(id))
    }

    /// Tells how far a long operation has come. A failure means that its result is no longer wanted.
    pub fn progress(&self, at: OperationProgress) -> OpResult {
        (self.progress)(at)
    }

    /// The same, where `plan` hears of entries before they are made durable; what it refuses is not done.
    #[must_use]
    pub fn planning(self, plan: impl Fn(&PlannedEntries) -> OpResult + Send + Sync + 'static) -> Self {
        Self { plan: Arc::new(plan), ..self }
    }

    /// Tells of entries that will be made durable now.
    pub(crate) fn plan(&self, planned: &PlannedEntries) -> OpResult {
        (self.plan)(planned)
    }

    /// The same, where an operation that reads more than its request reads `input`.
    #[must_use]
    pub fn reading(self, input: impl BufRead + Send + 'static) -> Self {
        Self { input: Arc::new(Mutex::new(Some(Box::new(input)))), ..self }
    }

    /// What is to be read beside the request; it is there once.
    pub(crate) fn input(&self) -> OpResult<RequestInput> {
        let input = self.input.lock().unwrap_or_else(PoisonError::into_inner).take();
        input.ok_or_else(|| OpFault::usage("there is nothing to read; send it with the request"))
    }

    /// Resolves models as the settings say.
    pub fn models(&self) -> ModelResolver<'_> {
        let (engine, settings, note) = (&self.engine, &self.config.models, &*self.notes);
        ModelResolver { engine, settings, note, session: None }
    }

    /// The thread or entry that a request means, among what the caller may see.
    pub fn find(&self, given: impl Into<Target>) -> OpResult<ResolvedAddress> {
        self.locate(given.into()).map(|(found, _)| found)
    }

    /// The same with the session's row, for an operation that changes what is now.
    pub(crate) fn find_row(&self, given: impl Into<Target>) -> OpResult<(ResolvedAddress, Session)> {
        let (found, row) = self.locate(given.into())?;
        let found = check_now(found)?;
        let row = row.map_or_else(|| self.session(&found.session), Ok)?;
        Ok((found, row))
    }

    /// The same, and the context for what is done there: the session's row is not read again in it.
    pub(crate) fn find_once(&self, given: Target) -> OpResult<(ResolvedAddress, Self)> {
        let (found, row) = self.locate(given)?;
        Ok((found, Self { known: row.map(Arc::new), ..self.clone() }))
    }

    fn locate(&self, given: Target) -> OpResult<(ResolvedAddress, Option<Session>)> {
        let Target { session, thread, seq } = given;
        let whole = |session| Address { session, thread: None, seq: None };
        let address = match (session, &self.naming) {
            (Some(text), Naming::Exact) => whole(self.named(SessionId::new(text))?),
            (Some(text), _) => text.parse()?,
            (None, Naming::Prefix { default: Some(text) }) => text.parse()?,
            (None, _) => whole(self.only_session()?),
        };
        let thread = thread.map(|id| self.named(ThreadId::new(id))).transpose()?.or(address.thread);
        let (session, row) = self.look_up(&address.session)?;
        let thread = self.find_thread(&session, thread)?;
        Ok((ResolvedAddress { session, thread, seq: seq.or(address.seq) }, row))
    }

    /// A name that was given. Where names are given in full, one that cannot be a name does not fit the schema.
    fn named<T>(&self, name: Result<T, BadId>) -> OpResult<T> {
        name.map_err(|error| match self.naming {
            Naming::Exact => OpFault::malformed(error.to_string()),
            Naming::Prefix { .. } => error.into(),
        })
    }

    /// A name for a session that is to be made: refused where it is taken by one that the caller may not see, or kept for
    /// another user.
    pub fn free_name(&self, id: &str) -> OpResult<SessionId> {
        let name = self.named(SessionId::new(id))?;
        let is_free = match self.engine.session(&name) {
            Ok(session) => self.caller.may_see(&session),
            Err(_) => self.caller.may_name(&name),
        };
        match is_free {
            true => Ok(name),
            false => Err(OpFault::forbidden(format!(
                "the name {id:?} cannot be used; choose another one, or leave it out"
            ))),
        }
    }

    /// The folder of a session, if it has one, for a caller on this machine. Where things lie on a server's disk is told to
    /// no key, and not over HTTP.
    pub fn folder(&self, id: &SessionId) -> Option<Option<String>> {
        let folder = || Some(self.files.as_ref()?.folder(id).ok()?.display().to_string());
        self.is_here().then(folder)
    }

    /// True for a caller on this machine.
    pub fn is_here(&self) -> bool {
        !self.is_served && self.caller.key.is_none()
    }

    /// The same for an operation that changes what is now: a moment in the past cannot be meant.
    pub fn find_now(&self, given: impl Into<Target>) -> OpResult<ResolvedAddress> {
        check_now(self.find(given)?)
    }

    /// The one session there is.
    fn only_session(&self) -> OpResult<SessionId> {
        match &self.visible_sessions(SessionQuery::default(), 2, |_| true)?[..] {
            [session] => Ok(SessionId::new(session.meta.uuid.as_str())?),
            [] => Err(self.told_where(OpFault::not_found("there is no session yet; `new` makes one"))),
            _ => Err(OpFault::usage("say which session is meant: `sessions` lists them")),
        }
    }

    /// True where a session may be named by a beginning of its id.
    pub fn takes_beginnings(&self) -> bool {
        self.naming != Naming::Exact
    }

    /// The first sessions of a query that the caller may see and that are wanted, in the order they were made.
    pub fn visible_sessions(
        &self,
        query: SessionQuery,
        most: usize,
        wanted: impl Fn(&Session) -> bool,
    ) -> OpResult<Vec<Session>> {
        let (mut query, mut seen) = (SessionQuery { limit: PAGE, ..query }, Vec::new());
        loop {
            let page = self.engine.store().sessions(&query)?;
            let is_last = page.len() < PAGE;
            query.after = page.last().map(place).transpose()?;
            seen.extend(page.into_iter().filter(|session| self.caller.may_see(session) && wanted(session)));
            if is_last || seen.len() >= most {
                seen.truncate(most);
                return Ok(seen);
            }
        }
    }

    /// A session by its name. One that may not be seen and one that is not there are told alike.
    pub fn find_session(&self, given: &SessionId) -> OpResult<SessionId> {
        self.look_up(given).map(|(session, _)| session)
    }

    /// The same, with its row where that had to be read.
    fn look_up(&self, given: &SessionId) -> OpResult<(SessionId, Option<Session>)> {
        if self.known(given).is_some() {
            return Ok((given.clone(), None));
        }
        if self.naming == Naming::Exact {
            return self.session(given).map(|row| (given.clone(), Some(row)));
        }
        if self.caller.sees_all {
            let address = Address { session: given.clone(), thread: None, seq: None };
            return match self.engine.find(&address) {
                Ok(found) => Ok((found.session, None)),
                Err(Error::Unknown { .. }) => Err(self.no_session(given)),
                Err(Error::Ambiguous { .. }) => Err(self.several_sessions(given)),
                Err(error) => Err(error.into()),
            };
        }
        let query = SessionQuery { prefix: Some(given.to_string()), ..SessionQuery::default() };
        let mut fits = self.engine.store().sessions(&query)?;
        fits.retain(|session| self.caller.may_see(session));
        let exact = fits.iter().find(|session| session.meta.uuid == given.as_str());
        match (exact, &fits[..]) {
            (Some(session), _) | (None, [session]) => {
                Ok((SessionId::new(session.meta.uuid.as_str())?, Some(session.clone())))
            }
            (None, []) => Err(self.no_session(given)),
            (None, _) => Err(self.several_sessions(given)),
        }
    }

    fn known(&self, id: &SessionId) -> Option<&Session> {
        self.known.as_deref().filter(|row| row.meta.uuid == id.as_str())
    }

    fn find_thread(&self, session: &SessionId, given: Option<ThreadId>) -> OpResult<ThreadId> {
        let Some(given) = given else { return Ok(ThreadId::root()) };
        if self.naming != Naming::Exact {
            let address = Address { session: session.clone(), thread: Some(given), seq: None };
            return match self.engine.find(&address) {
                Ok(found) => Ok(found.thread),
                Err(Error::Unknown { given, .. }) => Err(self.no_thread(session, &ThreadId::new(given)?)),
                Err(error) => Err(error.into()),
            };
        }
        let all = self.engine.store().threads(session)?;
        match all.iter().any(|header| header.thread == given) {
            true => Ok(given),
            false => Err(self.no_thread(session, &given)),
        }
    }

    /// A session's row, if the caller may see it.
    pub fn session(&self, id: &SessionId) -> OpResult<Session> {
        let missing = || self.no_session(id);
        match self.engine.session(id) {
            Ok(session) if self.caller.may_see(&session) => Ok(session),
            Ok(_) => Err(missing()),
            Err(Error::Store(komado_store::Error::NoSession(_)))
                if !self.caller.sees_all || self.naming == Naming::Exact =>
            {
                Err(missing())
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Opens a thread, and notes what had to be put right.
    pub fn open(&self, found: &ResolvedAddress, mode: OpenMode) -> OpResult<Thread<'_>> {
        let config = self.known(&found.session).map(|row| row.meta.config.clone());
        let mut thread = self.engine.open_known(&found.session, &found.thread, mode, config)?;
        if mode != OpenMode::Read {
            *self.changing.lock().unwrap_or_else(PoisonError::into_inner) = Some(found.clone());
            let limits = self.models().output_limits(&thread);
            thread = thread.clipping(limits);
        }
        for recovered in thread.recovered() {
            let name = format!("{}/{}", found.session, recovered.thread);
            let why = match recovered.held_by {
                Some(_) => format!("the process that worked in {name} ended"),
                None => format!("the thread above {name} ended"),
            };
            self.note(format!("{why}; the thread is aborted, with what can be told of it"));
        }
        for note in thread.notes() {
            self.note(format!("{}/{}: {note}", found.session, found.thread));
        }
        Ok(thread)
    }

    /// Brings what is derived up to date. The entry is durable already, so a failure here is noted and is not a failure.
    pub fn settle(&self, thread: &mut Thread<'_>) {
        if let Err(error) = thread.settle() {
            self.note(format!("what was said is safe, but what is derived from it is behind: {error}"));
            self.note("the next change, or `komado admin doctor`, brings it up to date");
        }
    }

    /// The lock of a session: calls that change it go one after another, so that what one of them checked still holds.
    pub fn lock(&self, id: &SessionId) -> Arc<Mutex<()>> {
        let mut locks = self.shared.locks.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(lock) = locks.get(id).and_then(Weak::upgrade) {
            return lock;
        }
        locks.retain(|_, lock| lock.strong_count() > 0);
        let lock = Arc::new(Mutex::new(()));
        locks.insert(id.clone(), Arc::downgrade(&lock));
        lock
    }

    /// Runs what reads every session there is; one such call runs at a time.
    pub fn report<T>(&self, make: impl FnOnce() -> OpResult<T>) -> OpResult<T> {
        let Ok(_held) = self.shared.report.try_lock() else {
            let why = "a report is being made, and one is made at a time; ask again in a moment";
            return Err(OpFault::new(FaultKind::TooMany, why));
        };
        make()
    }

    /// Refuses what only a caller who sees all sessions may do.
    pub fn check_sees_all(&self) -> OpResult {
        match self.caller.sees_all {
            true => Ok(()),
            false => Err(OpFault::forbidden(
                "this is about all sessions, and this key does not see all; `komado admin key add --sees all` makes one that does",
            )),
        }
    }

    /// A failure to find a session, with the place that was searched: there may be sessions elsewhere.
    fn told_where(&self, fault: OpFault) -> OpFault {
        match self.kept_in() {
            Some(place) => fault.and(format!("sessions are in {place}")),
            None => fault,
        }
    }

    /// The thread that was opened last to be changed.
    pub(crate) fn changed(&self) -> Option<ResolvedAddress> {
        self.changing.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// What went wrong; where it is that a thread was closed, with the command that opens it again; where a session is not
    /// there, with the place that was searched.
    pub fn explained(&self, fault: OpFault) -> OpFault {
        if fault.is_about_unknown_session() {
            return self.told_where(fault);
        }
        if !fault.is_closed() {
            return fault;
        }
        // Taken, so that it is said once, however many pass the failure on.
        match self.changing.lock().unwrap_or_else(PoisonError::into_inner).take() {
            Some(found) if found.thread.is_root() => match self.engine.session(&found.session) {
                Ok(Session { status, .. }) => {
                    let (id, status) = (&found.session, status.name());
                    let told =
                        format!("session {id} is {status}; `komado session resume {id}` lets it go on");
                    fault.reworded(told)
                }
                Err(_) => fault,
            },
            Some(found) => {
                fault.and(format!("`komado thread resume {}` opens it again", crate::change::name(&found)))
            }
            None => fault,
        }
    }
}

/// Refuses a moment in the past.
fn check_now(found: ResolvedAddress) -> OpResult<ResolvedAddress> {
    match found.seq {
        Some(seq) => Err(OpFault::usage(crate::address::past(seq))),
        None => Ok(found),
    }
}

/// Where a session stands in the order they were made.
fn place(session: &Session) -> OpResult<(String, SessionId)> {
    Ok((session.meta.created_at.clone(), SessionId::new(session.meta.uuid.as_str())?))
}

/// How far a long operation has come.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum OperationProgress {
    /// The index of what was said is brought up to date.
    Indexing {
        /// Entries that are in it.
        done: u64,
        /// Entries that will be.
        total: u64,
    },
    /// Sessions are searched; when all of their indexes are up to date, the search itself begins.
    Searching {
        /// Sessions whose index is up to date.
        done: u64,
        /// All that are searched.
        total: u64,
    },
    /// Messages are appended.
    Appending {
        /// Entries so far.
        entries: u64,
    },
    /// Sessions are read for a report.
    Reading {
        /// Sessions so far.
        sessions: u64,
        /// Their entries so far.
        entries: u64,
    },
    /// Sessions are checked.
    Checking {
        /// Sessions so far.
        done: u64,
        /// All of them, where that is known.
        total: Option<u64>,
    },
    /// Sessions are copied from one store into another.
    Migrating {
        /// Sessions so far.
        done: u64,
        /// All of them, where that is known.
        total: Option<u64>,
    },
    /// An export is read.
    Importing {
        /// Lines so far.
        lines: u64,
    },
    /// Conversations are replayed.
    Replaying {
        /// Conversations so far.
        done: u64,
        /// All of them.
        total: u64,
    },
}
