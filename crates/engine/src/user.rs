//! What is kept of a user: a standing session, what was said lately, habits; and how all of it is forgotten.
//!
//! A user is a name that sessions carry. Nothing here keeps a table of its own: whatever is told of a user is read from
//! their sessions when it is asked for, so there is nothing to fall out of step, and nothing left over when they go.

use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::recall::terms;
use crate::report::table::TopTable;
use komado_core::head::{EntrySource, Kind};
use komado_core::journal::{Entry, Record};
use komado_core::message::Role;
use komado_core::session::{Counters, Session};
use komado_core::{Seq, SessionId, ThreadId, head};
use komado_store::{JobStage, Journal, OpenMode, QueuedJob, SessionQuery};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io;
use std::io::{BufRead, BufReader, BufWriter, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

/// How the names of standing sessions begin.
const BEGIN: &str = "session_";
/// The longest id.
const LONGEST: usize = 128;

/// The name of a user's standing session: `session_ann` for ann. A name that cannot stand in an id is spelled in hex after a
/// colon, and one that is too long for that is a digest after two; so no two users share a session, and a plain name never
/// begins with a colon.
pub fn standing(user: &str) -> Result<SessionId> {
    if user.is_empty() {
        return Err(Error::Unknown { what: "user", given: String::new(), hint: "give a name" });
    }
    // Names of other scripts were spelled before an id could hold them, and their sessions are there.
    let plain = |user: &str| {
        !user.starts_with(':') && user.is_ascii() && SessionId::new(format!("{BEGIN}{user}")).is_ok()
    };
    if plain(user) {
        return Ok(SessionId::new(format!("{BEGIN}{user}"))?);
    }
    let spelled: String = user.bytes().map(|byte| format!("{byte:02x}")).collect();
    if BEGIN.len() + 1 + spelled.len() <= LONGEST {
        return Ok(SessionId::new(format!("{BEGIN}:{spelled}"))?);
    }
    Ok(SessionId::new(format!("{BEGIN}::{}", blake3::hash(user.as_bytes()).to_hex()))?)
}

/// True for a name that is kept for the standing session of some user.
pub fn is_standing(id: &SessionId) -> bool {
    id.as_str().starts_with(BEGIN)
}

/// All sessions of a user.
fn of_user(user: &str) -> SessionQuery {
    SessionQuery { user: Some(user.to_owned()), ..SessionQuery::default() }
}

impl Engine {
    /// A user's standing session, when it was made. One of that name that is another user's is refused.
    pub fn standing(&self, user: &str) -> Result<(SessionId, Option<Session>)> {
        let id = standing(user)?;
        let query = SessionQuery { id: Some(id.clone()), ..SessionQuery::default() };
        let found = self.store().sessions(&query)?.pop();
        match &found {
            Some(session) if session.meta.user.as_deref() != Some(user) => Err(Error::WrongState {
                session: id.to_string(),
                state: session.status.name(),
                why: "it is not this user's, though it has the name of theirs; remove it, or move it to another name",
            }),
            _ => Ok((id, found)),
        }
    }

    /// Refuses a user of whom nothing is known.
    fn known_user(&self, user: &str) -> Result<()> {
        let query = SessionQuery { limit: 1, ..of_user(user) };
        match self.store().sessions(&query)?.is_empty() {
            false => Ok(()),
            true => Err(Error::Unknown {
                what: "user",
                given: user.to_owned(),
                hint: "`komado user list` lists them",
            }),
        }
    }
}

/// A user, and what their sessions add up to.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct UserSummary {
    /// The name.
    pub user: String,
    /// Sessions.
    pub sessions: u64,
    /// Tokens all calls took.
    pub total_tokens: u64,
    /// When the first session was made.
    pub first_seen: String,
    /// When anything of theirs last changed.
    pub last_seen: String,
}

impl UserSummary {
    fn new(user: &str, session: &Session) -> Self {
        let (first_seen, last_seen) = (session.meta.created_at.clone(), session.updated_at.clone());
        Self { user: user.to_owned(), sessions: 0, total_tokens: 0, first_seen, last_seen }
    }

    fn add(&mut self, session: &Session) {
        self.sessions += 1;
        self.total_tokens += session.counters.total_tokens;
        if session.meta.created_at < self.first_seen {
            self.first_seen.clone_from(&session.meta.created_at);
        }
        if session.updated_at > self.last_seen {
            self.last_seen.clone_from(&session.updated_at);
        }
    }
}

impl Engine {
    /// The users after `after` by name, at most `limit`.
    pub fn users(&self, after: Option<&str>, limit: usize) -> Result<Vec<UserSummary>> {
        let mut page: BTreeMap<String, UserSummary> = BTreeMap::new();
        self.each_session(SessionQuery::default(), |session| {
            let Some(user) = session.meta.user.as_deref() else { return Ok(()) };
            if after.is_some_and(|after| user <= after) {
                return Ok(());
            }
            if !page.contains_key(user) {
                page.insert(user.to_owned(), UserSummary::new(user, session));
                if page.len() > limit {
                    page.pop_last();
                }
            }
            if let Some(known) = page.get_mut(user) {
                known.add(session);
            }
            Ok(())
        })?;
        Ok(page.into_values().collect())
    }

    /// One user, when anything is known of them.
    pub fn user(&self, user: &str) -> Result<Option<UserSummary>> {
        let mut sum: Option<UserSummary> = None;
        self.each_session(of_user(user), |session| {
            sum.get_or_insert_with(|| UserSummary::new(user, session)).add(session);
            Ok(())
        })?;
        Ok(sum)
    }
}

// What was said lately, over all of a user's sessions.
//
// The sessions that changed last are read first, each thread from its end, and no further back than what can still be among
// the newest; a session that has not changed since the oldest of those is not opened, nor any that changed before it. What
// is held of a session is its name and when it changed; of what was said only places: the words are read when they are
// shown.

/// Where and when something was said. They sort by time.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SpokenPlace {
    /// When.
    pub timestamp: String,
    /// The session.
    pub session: String,
    /// The thread.
    pub thread: String,
    /// The entry.
    pub seq: Seq,
}

/// Something that was said.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SpokenText {
    /// Where and when.
    #[serde(flatten)]
    pub place: SpokenPlace,
    /// `user` or `assistant`.
    pub role: &'static str,
    /// The words.
    pub text: String,
}

impl Engine {
    /// Where the newest words of a user and of their models stand, the newest first: at most `limit`, those before `before`.
    pub fn recent(&self, user: &str, before: Option<&SpokenPlace>, limit: usize) -> Result<Vec<SpokenPlace>> {
        self.known_user(user)?;
        let mut newest = BTreeSet::new();
        for (changed, id) in self.by_change(user)? {
            let is_full = newest.len() >= limit;
            if is_full && newest.first().is_none_or(|oldest: &SpokenPlace| changed < oldest.timestamp) {
                break;
            }
            for header in self.store().threads(&id)? {
                let journal = self.store().open(&id, &header.thread, OpenMode::Read)?;
                look_back(&*journal, before, limit, &mut newest)?;
            }
        }
        Ok(newest.into_iter().rev().collect())
    }

    /// A user's sessions and when each changed, the last to change first.
    fn by_change(&self, user: &str) -> Result<Vec<(String, SessionId)>> {
        let mut all = Vec::new();
        self.each_session(of_user(user), |session| {
            all.push((session.updated_at.clone(), SessionId::new(session.meta.uuid.as_str())?));
            Ok(())
        })?;
        all.sort_unstable_by(|a, b| b.cmp(a));
        Ok(all)
    }

    /// What was said at a place.
    pub fn spoken(&self, place: SpokenPlace) -> Result<SpokenText> {
        let (id, thread) = (SessionId::new(place.session.as_str())?, ThreadId::new(place.thread.as_str())?);
        let journal = self.store().open(&id, &thread, OpenMode::Read)?;
        let record = EntrySource::record(&*journal, place.seq)?;
        let (role, text) = said(&record).unwrap_or_default();
        Ok(SpokenText { place, role, text })
    }
}

fn look_back(
    journal: &dyn Journal,
    before: Option<&SpokenPlace>,
    limit: usize,
    newest: &mut BTreeSet<SpokenPlace>,
) -> Result<()> {
    let header = journal.header();
    for entry in head::back(journal, header.base_seq()) {
        let (seq, head) = entry?;
        if !matches!(head.kind, Kind::User | Kind::Assistant) {
            continue;
        }
        let record = EntrySource::record(journal, seq)?;
        if said(&record).is_none() {
            continue;
        }
        let (session, thread) = (header.session.to_string(), header.thread.to_string());
        let place = SpokenPlace { timestamp: record.timestamp, session, thread, seq };
        if before.is_some_and(|before| place >= *before) {
            continue;
        }
        let is_full = newest.len() >= limit;
        if is_full && newest.first().is_none_or(|oldest| place < *oldest) {
            return Ok(());
        }
        newest.insert(place);
        if is_full {
            newest.pop_first();
        }
    }
    Ok(())
}

/// Who said what in an entry, in words; `None` where no words were said.
fn said(record: &Record) -> Option<(&'static str, String)> {
    let Entry::Message(message, _) = &record.entry else { return None };
    let role = match message.role {
        Role::User => "user",
        Role::Assistant => "assistant",
        _ => return None,
    };
    Some((role, message.words())).filter(|(_, text)| !text.is_empty())
}

// Forgetting a user: their sessions are kept outside first, and then erased.
//
// What is erased was exported, read back and found whole, and has not changed since; otherwise it stays. A session that
// a process writes is never removed.

/// Bytes of an export's last line, and more.
const TAIL: usize = 160;

/// A session's export on disk.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct KeptExport {
    /// The file.
    pub path: PathBuf,
    /// The digest of its bytes.
    pub digest: String,
    /// Their number.
    pub bytes: u64,
}

impl Engine {
    /// Exports a session into `folder`, reads the file back and checks it. The name means the whole of it.
    pub fn keep(&self, id: &SessionId, folder: &Path) -> Result<KeptExport> {
        let mut file = tempfile::NamedTempFile::new_in(folder)?;
        let mut out = BufWriter::new(file.as_file_mut());
        self.export(id, &mut out, |_| {})?;
        out.flush()?;
        drop(out);
        file.as_file().sync_all()?;
        let path = kept_at(folder, id);
        file.persist(&path).map_err(|e| e.error)?;
        File::open(folder)?.sync_all()?;
        check(&path)
    }

    /// Erases a session that was kept in `folder` and has not changed since; false when it has. It is held while it is
    /// compared, so that nothing is said in it meanwhile that would be lost. Its job is not touched.
    pub fn erase(&self, id: &SessionId, folder: &Path) -> Result<bool> {
        let held = self.store().open(id, &ThreadId::root(), OpenMode::Amend)?;
        let mut now = Tail::default();
        self.export(id, &mut now, |_| {})?;
        let is_same = now.last_line() == Tail::of(&kept_at(folder, id))?.last_line();
        drop(held);
        if is_same {
            self.store().remove(id)?;
        }
        Ok(is_same)
    }

    /// Takes the user's jobs out of the queue; gives how many. One that a worker holds stays, and `held` is told.
    pub fn withdraw_jobs(&self, user: &str, mut held: impl FnMut(&SessionId)) -> Result<u64> {
        let mut gone = 0;
        for queued in self.jobs() {
            let QueuedJob { job, stage, .. } = queued?;
            match stage {
                _ if job.user.as_deref() != Some(user) => {}
                JobStage::Held(_) => held(&job.session),
                _ => gone += u64::from(self.store().withdraw(&job.session)?),
            }
        }
        Ok(gone)
    }

    /// Calls `each` for every session of a user.
    pub fn each_of_user(&self, user: &str, mut each: impl FnMut(&SessionId) -> Result<()>) -> Result<()> {
        self.each_session(of_user(user), |session| each(&SessionId::new(session.meta.uuid.as_str())?))
    }
}

fn kept_at(folder: &Path, id: &SessionId) -> PathBuf {
    folder.join(format!("{id}.jsonl"))
}

/// Reads an export back: its last line must be the digest of all before it.
fn check(path: &Path) -> Result<KeptExport> {
    let mut file = BufReader::new(File::open(path)?);
    let (mut whole, mut before) = (blake3::Hasher::new(), blake3::Hasher::new());
    let (mut line, mut last, mut bytes) = (Vec::new(), Vec::new(), 0);
    while file.read_until(b'\n', &mut line)? > 0 {
        before.update(&last);
        whole.update(&line);
        bytes += line.len() as u64;
        std::mem::swap(&mut last, &mut line);
        line.clear();
    }
    let end = format!("{{\"end\":\"{}\"}}\n", before.finalize().to_hex());
    if last != end.as_bytes() {
        let why = format!("{} does not read back as it was written; nothing was erased", path.display());
        return Err(Error::Io(io::Error::new(io::ErrorKind::InvalidData, why)));
    }
    Ok(KeptExport { path: path.to_owned(), digest: whole.finalize().to_hex().to_string(), bytes })
}

/// The end of what is written to it.
#[derive(Default)]
struct Tail(Vec<u8>);

impl Tail {
    fn of(path: &Path) -> Result<Self> {
        let mut file = File::open(path)?;
        let size = file.seek(SeekFrom::End(0))?;
        file.seek(SeekFrom::Start(size.saturating_sub(TAIL as u64)))?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes)?;
        Ok(Self(bytes))
    }

    fn last_line(&self) -> &[u8] {
        let text = self.0.strip_suffix(b"\n").unwrap_or(&self.0);
        text.rsplit(|byte| *byte == b'\n').next().unwrap_or(text)
    }
}

impl Write for Tail {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.extend_from_slice(&bytes[bytes.len().saturating_sub(TAIL)..]);
        if self.0.len() > TAIL {
            self.0.drain(..self.0.len() - TAIL);
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

// How a user talks: when, how often, about what, with which models and tools, and how it goes.
//
// One pass over their journals; only sums are held, and of what can be anything, what comes most often.

/// Names that are told.
const TOLD: usize = 10;
/// Names that are remembered while counting.
const REMEMBERED: usize = 2_000;
/// Characters of a question that are compared and told.
const QUESTION: usize = 80;

/// A name and how often it came.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct NameCount {
    /// The name.
    pub name: String,
    /// How often.
    pub count: u64,
}

/// What is known of a user's conversations.
#[derive(Clone, PartialEq, Debug, Default, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Habits {
    /// The name.
    pub user: String,
    /// Sessions.
    pub sessions: u64,
    /// Sessions by state.
    pub by_status: BTreeMap<&'static str, u64>,
    /// When the first session was made.
    pub first_seen: Option<String>,
    /// When anything of theirs last changed.
    pub last_seen: Option<String>,
    /// Messages of the user.
    pub turns: u64,
    /// Messages of models.
    pub replies: u64,
    /// Answers from tools.
    pub tool_calls: u64,
    /// Tokens all calls took.
    pub total_tokens: u64,
    /// Characters of a user's message, on average.
    pub mean_turn_chars: f64,
    /// Characters of a reply, on average.
    pub mean_reply_chars: f64,
    /// Requests that were refused as too large.
    pub overflows: u64,
    /// Edits that made a view smaller.
    pub compactions: u64,
    /// Overflows for each of the user's messages.
    pub overflow_rate: f64,
    /// Compactions for each of the user's messages.
    pub compaction_rate: f64,
    /// Models that answered.
    pub models: Vec<NameCount>,
    /// Tools that were called.
    pub tools: Vec<NameCount>,
    /// The user's messages by hour of the day (UTC), from 0 to 23.
    pub hours: Vec<u64>,
    /// Words that the user says most often.
    pub words: Vec<NameCount>,
    /// How the user's messages begin most often, where they begin so more than once.
    pub questions: Vec<NameCount>,
}

struct Count {
    habits: Habits,
    turn_chars: u64,
    reply_chars: u64,
    models: TopTable<u64>,
    tools: TopTable<u64>,
    words: TopTable<u64>,
    questions: TopTable<u64>,
}

impl Engine {
    /// What is known of a user's conversations.
    pub fn habits(&self, user: &str) -> Result<Habits> {
        self.known_user(user)?;
        let mut count = Count::new(user);
        self.each_session(of_user(user), |session| {
            count.session(session);
            let id = SessionId::new(session.meta.uuid.as_str())?;
            for header in self.store().threads(&id)? {
                count.journal(&*self.store().open(&id, &header.thread, OpenMode::Read)?)?;
            }
            Ok(())
        })?;
        Ok(count.finish())
    }
}

impl Count {
    fn new(user: &str) -> Self {
        let habits = Habits { user: user.to_owned(), hours: vec![0; 24], ..Habits::default() };
        let often = || TopTable::new(2 * REMEMBERED);
        Self {
            habits,
            turn_chars: 0,
            reply_chars: 0,
            models: often(),
            tools: often(),
            words: often(),
            questions: often(),
        }
    }

    fn session(&mut self, session: &Session) {
        let habits = &mut self.habits;
        habits.sessions += 1;
        *habits.by_status.entry(session.status.name()).or_default() += 1;
        let made = &session.meta.created_at;
        if habits.first_seen.as_ref().is_none_or(|first| made < first) {
            habits.first_seen = Some(made.clone());
        }
        if habits.last_seen.as_ref().is_none_or(|last| session.updated_at > *last) {
            habits.last_seen = Some(session.updated_at.clone());
        }
    }

    fn journal(&mut self, journal: &dyn Journal) -> Result<()> {
        for seq in journal.header().base_seq() + 1..=journal.last() {
            self.record(&EntrySource::record(journal, seq)?);
        }
        Ok(())
    }

    fn record(&mut self, record: &Record) {
        let counters = Counters::of(&record.entry);
        self.habits.total_tokens += counters.total_tokens;
        self.habits.tool_calls += counters.tool_call_count;
        self.habits.compactions += counters.compression_count;
        match &record.entry {
            Entry::Message(message, reply) => {
                message.calls().for_each(|call| *self.tools.row(&call.name) += 1);
                match said(record) {
                    Some(("user", text)) => self.turn(&record.timestamp, &text),
                    Some((_, text)) => {
                        self.habits.replies += 1;
                        self.reply_chars += text.chars().count() as u64;
                    }
                    None => {}
                }
                if let Some(model) = reply.as_ref().and_then(|reply| reply.model.as_deref()) {
                    *self.models.row(model) += 1;
                }
            }
            Entry::Lost(reply) => {
                self.habits.overflows += u64::from(reply.finish == "overflow");
            }
            _ => {}
        }
    }

    fn turn(&mut self, at: &str, text: &str) {
        self.habits.turns += 1;
        self.turn_chars += text.chars().count() as u64;
        if let Some(hour) = at.get(11..13).and_then(|hour| hour.parse::<usize>().ok())
            && let Some(hour) = self.habits.hours.get_mut(hour)
        {
            *hour += 1;
        }
        let first = text.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
        *self.questions.row(&first.to_lowercase().chars().take(QUESTION).collect::<String>()) += 1;
        words(text, &mut |word| *self.words.row(word) += 1);
    }

    fn finish(self) -> Habits {
        let told = |often: TopTable<u64>| -> Vec<NameCount> {
            often.top(TOLD).0.into_iter().map(|(name, count)| NameCount { name, count }).collect()
        };
        let each = |sum: u64, of: u64| if of == 0 { 0.0 } else { sum as f64 / of as f64 };
        let mut questions = told(self.questions);
        questions.retain(|share| share.count > 1);
        let habits = self.habits;
        Habits {
            mean_turn_chars: each(self.turn_chars, habits.turns),
            mean_reply_chars: each(self.reply_chars, habits.replies),
            overflow_rate: each(habits.overflows, habits.turns),
            compaction_rate: each(habits.compactions, habits.turns),
            models: told(self.models),
            tools: told(self.tools),
            words: told(self.words),
            questions,
            ..habits
        }
    }
}

/// The words of a text that carry something. Of scripts without spaces, runs of kanji or of katakana: what stands between them
/// is mostly grammar.
fn words(text: &str, put: &mut dyn FnMut(&str)) {
    terms::each(text, &mut |term| {
        if term.kind == terms::TermKind::Word {
            put(&text[term.span].to_lowercase());
        }
    });
    for run in text.split(|c: char| !is_content(c)).filter(|run| run.chars().nth(1).is_some()) {
        put(run);
    }
}

fn is_content(c: char) -> bool {
    matches!(c, '々' | '\u{30a1}'..='\u{30ff}' | '\u{3400}'..='\u{4dbf}' | '\u{4e00}'..='\u{9fff}')
        && c != '・'
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn no_two_users_share_a_standing_session() {
        let long = ["長".repeat(200), "長".repeat(201), "x".repeat(121), "x".repeat(120)];
        let mut names =
            vec!["ann", "Ann", "太郎", "a b", ":616e6e", ":", "::", "616e6e", "..", "a/b", "a\0b", "-", "é"];
        names.extend(long.iter().map(String::as_str));
        let ids: HashSet<String> = names.iter().map(|name| standing(name).unwrap().to_string()).collect();
        assert_eq!(ids.len(), names.len(), "{ids:?}");
        assert_eq!(standing("ann").unwrap().as_str(), "session_ann");
        assert_eq!(standing("太郎").unwrap().as_str(), "session_:e5a4aae9838e");
        assert!(standing("").is_err());
    }
}

#[cfg(test)]
mod habits_tests {
    use super::*;

    #[test]
    fn words_are_those_that_carry_something_in_japanese_too() {
        let mut found = Vec::new();
        words("the parser fails; 設定ファイルを読む、設定は正しい", &mut |word| {
            found.push(word.to_owned())
        });
        assert_eq!(found, ["parser", "fails", "設定ファイル", "設定"]);
    }
}
