//! Which thread does this transcript belong to?
//!
//! A client of the gateway sends its whole transcript each time, and mostly without a name for it. It is placed by a running
//! digest: the longest beginning that some thread has been sent before is what is known, the rest is new. `docs/placing.md`
//! tells the rules. Nothing is written here, and what is known is not read again: only the last reply, as the client tells
//! it, is compared with the journal.
//!
//! What a client calls its session, and what a provider calls its answer, is kept as a digest together with who said it: so
//! no one comes upon another's session by its name, and no name of a client stands in a table.

use crate::engine::{Engine, session_of};
use crate::error::{Error, Result};
use crate::lineage;
use komado_core::message::{Call, Message};
use komado_core::session::{Session, State};
use komado_core::thread::Moment;
use komado_core::{Seq, SessionId, ThreadId};
use komado_provider::ScannedRequest;
use komado_store::{Error as StoreError, OpenMode, TranscriptPlace};
use std::collections::HashMap;
use transcript::{ClientTranscript, ThreadAnswer, ThreadMatch};

mod transcript;

/// Who sent a transcript, as far as the wire tells.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct TranscriptCaller {
    /// What parts this caller from all others: a key's name, a digest of the credentials. Goes into the salt of the skim.
    pub salt: String,
    /// The session, by our own header; it must exist or be a fit name for a new one.
    pub session: Option<SessionId>,
    /// The name that the client gives its session, by a header of its own, with the header's name.
    pub named: Option<String>,
    /// Whose sessions these are.
    pub user: Option<String>,
    /// What the client calls itself.
    pub agent: Option<String>,
    /// Which sessions may be entered; `None` for all. Names and digests find a session, this alone opens it.
    pub sees: Option<VisibleSessions>,
}

/// The sessions that a caller may enter.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct VisibleSessions {
    /// Those of this user.
    pub user: Option<String>,
    /// And these, also where another user made them.
    pub sessions: Vec<String>,
}

impl VisibleSessions {
    /// True when it may be entered.
    pub fn sees(&self, session: &Session) -> bool {
        self.sees_named(&session.meta.uuid, session.meta.user.as_deref())
    }

    /// True when a session of this name and user may be entered.
    pub fn sees_named(&self, id: &str, user: Option<&str>) -> bool {
        self.user.is_some() && user == self.user.as_deref() || self.sessions.iter().any(|known| known == id)
    }
}

impl TranscriptCaller {
    /// True when this caller may be led into the session.
    pub(crate) fn may_enter(&self, session: &Session) -> bool {
        self.sees.as_ref().is_none_or(|sight| sight.sees(session))
    }
}

/// How a transcript stands to what is known.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Placement {
    /// Nothing is known: a new session.
    New,
    /// It goes on.
    Extends,
    /// The same again; the last request was not answered, or the client did not like the answer.
    Again,
    /// It is shorter than what is known: the thread goes back to where it still agrees.
    Rewinds,
    /// Its past is another from some point on: a fork.
    Forks,
    /// A request beside the conversation (a title, a summary), or one that came while another was under way: a fork that
    /// leaves the thread alone.
    Beside,
}

komado_core::names! {
    /// The word for it.
    Placement {
        New = "new", Extends = "extends", Again = "again", Rewinds = "rewinds", Forks = "forks", Beside = "beside",
    }
}

/// Where a transcript belongs. Nothing has been done about it yet.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PlacedTranscript {
    /// How.
    pub how: Placement,
    /// The session; for a new one its name to be.
    pub session: SessionId,
    /// The thread it goes on from.
    pub thread: ThreadId,
    /// The entry after which it goes on; 0 for the beginning. For [`Placement::Extends`] the thread's last entry; else the moment to
    /// rewind to or to fork at: the `Sent` with the deepest mark, or the end of the reply to it where the client tells the
    /// same. So that mark is on the path of what goes on, and nothing after it that the client does not tell.
    pub at: Seq,
    /// The last entry of that thread when it was looked at. It was looked at without holding it: who takes it must find it so.
    pub last: Seq,
    /// Elements that are known: the first that is new, the reply as the client tells it included in what is known.
    pub known: u32,
    /// The name that the client gave, as it is to be noted for a new session (`Meta.alias`, and a spot at 0).
    pub alias: Option<String>,
    /// The name of the thread to be made, for [`Placement::Forks`] and [`Placement::Beside`]: the first of its row that is free. Also for a
    /// new session whose first request is one beside the conversation.
    pub fork: Option<ThreadId>,
}

impl PlacedTranscript {
    /// The thread that it is written to.
    pub(crate) fn name(&self) -> &ThreadId {
        self.fork.as_ref().unwrap_or(&self.thread)
    }

    /// The last entry of that thread before anything is added: a fork begins where it leaves the other.
    pub(crate) fn stands_at(&self) -> Seq {
        if self.fork.is_some() { self.at } else { self.last }
    }

    /// True when both want the same fork, whatever it is to be called.
    pub(crate) fn forks_like(&self, other: &Self) -> bool {
        let whence = |placed: &Self| (placed.how, placed.session.clone(), placed.thread.clone(), placed.at);
        self.fork.is_some() && other.fork.is_some() && whence(self) == whence(other)
    }
}

/// True when a caller was given a reply of this id in a session that it may enter, whether or not that has ended.
pub fn was_given(engine: &Engine, caller: &TranscriptCaller, id: &str) -> Result<bool> {
    let name = reply_name(caller, id);
    for spot in engine.store().spots(&name)? {
        if look_up(engine, &spot.session)?.is_some_and(|session| caller.may_enter(&session)) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Finds where a transcript belongs. `is_busy` tells of a thread whether a request is under way in it.
pub fn place(
    engine: &Engine,
    skim: &ScannedRequest,
    body: &std::fs::File,
    caller: &TranscriptCaller,
    is_busy: &dyn Fn(&SessionId, &ThreadId) -> bool,
) -> Result<PlacedTranscript> {
    let tale = ClientTranscript { skim, body };
    let scope = scope(engine, caller)?;
    let search = Search { engine, tale, caller, within: scope.session(), is_busy };
    match (search.find()?, scope.clone()) {
        (Some(found), _) => placed(engine, &tale, found),
        (None, Scope::Within(session)) => unmatched(engine, &tale, session, is_busy),
        (None, Scope::Anywhere) => Ok(begun(engine.fresh(&caller.salt)?, None)),
        (None, Scope::New { session, alias }) => {
            // Agents that name their sessions bring tools; what comes before them without any is a title, and the root is theirs.
            let aside = alias.is_some() && !skim.has_tools();
            let fork = aside.then(|| side(1)).transpose()?;
            Ok(PlacedTranscript { fork, ..begun(session, alias) })
        }
    }
}

fn begun(session: SessionId, alias: Option<String>) -> PlacedTranscript {
    PlacedTranscript {
        how: Placement::New,
        session,
        thread: ThreadId::root(),
        at: 0,
        last: 0,
        known: 0,
        alias,
        fork: None,
    }
}

/// A request beside the conversation, or beside another one that is under way, leaves the thread alone.
fn placed(engine: &Engine, tale: &ClientTranscript<'_>, found: Found<'_>) -> Result<PlacedTranscript> {
    // As it was seen when it was chosen: a request that came since finds out when it takes the thread, and looks again.
    let busy = found.is_busy();
    let Found { mut how, strand, mut at, known, apart, .. } = found;
    let (session, thread, last) = (strand.session().clone(), strand.id().clone(), strand.last());
    // A request beside the conversation may have an answer, and go on: that is its own thread already.
    let goes_on = how == Placement::Extends && is_side(&thread);
    if busy || (!goes_on && tale.is_aside(&strand)?) {
        how = Placement::Beside;
        // Whatever else goes on in the thread is not this client's.
        at = if busy { apart } else { at };
    }
    let fork = next_fork(engine, &session, how)?;
    Ok(PlacedTranscript { how, session, thread, at, last, known: known as u32, alias: None, fork })
}

/// A session that was named, and of which the transcript tells nothing: the client began anew, or made its own summary.
fn unmatched(
    engine: &Engine,
    tale: &ClientTranscript<'_>,
    session: SessionId,
    is_busy: &dyn Fn(&SessionId, &ThreadId) -> bool,
) -> Result<PlacedTranscript> {
    let thread = ThreadId::root();
    let root = ThreadMatch::open(engine, &session, &thread)?;
    let Some(root) = root else { return Ok(begun(session, None)) };
    let busy = is_busy(&session, &thread);
    let how = match root.is_blank()? {
        true if busy => Placement::Beside,
        true => Placement::Extends,
        false if tale.is_aside(&root)? => Placement::Beside,
        false => Placement::Forks,
    };
    let at = if how == Placement::Extends { root.last() } else { 0 };
    let fork = next_fork(engine, &session, how)?;
    Ok(PlacedTranscript { how, session, thread, at, last: root.last(), known: 0, alias: None, fork })
}

/// Where to look.
#[derive(Clone, PartialEq, Eq, Debug)]
enum Scope {
    /// No session was named.
    Anywhere,
    /// In this one.
    Within(SessionId),
    /// Nowhere: it was named, and is to be made.
    New {
        /// Its name to be.
        session: SessionId,
        /// What the client calls it.
        alias: Option<String>,
    },
}

impl Scope {
    /// The session to look in; `None` to look everywhere, and nothing where there is nothing to look in.
    fn session(&self) -> Option<&SessionId> {
        match self {
            Self::Anywhere => None,
            Self::Within(session) | Self::New { session, .. } => Some(session),
        }
    }
}

/// Our own header comes first, then the client's own name for its session.
fn scope(engine: &Engine, caller: &TranscriptCaller) -> Result<Scope> {
    if let Some(session) = caller.session.clone() {
        return match look_up(engine, &session)? {
            None => Ok(Scope::New { session, alias: None }),
            Some(found) if !caller.may_enter(&found) => Err(StoreError::NoSession(session).into()),
            Some(found) if is_open(found.status) => Ok(Scope::Within(session)),
            Some(found) => Err(Error::WrongState {
                session: session.to_string(),
                state: found.status.name(),
                why: "nothing is added to it; name another session, or resume this one first",
            }),
        };
    }
    let Some(alias) = alias(caller) else { return Ok(Scope::Anywhere) };
    // A name can be worked out, and a row may be anyone's: the session must have been made for this name, and be the caller's.
    let is_own =
        |found: &Session| caller.may_enter(found) && found.meta.config.alias.as_ref() == Some(&alias);
    for spot in engine.store().spots(&alias)? {
        match look_up(engine, &spot.session)?.filter(is_own) {
            Some(found) if is_open(found.status) => return Ok(Scope::Within(spot.session)),
            // It ended: the client goes on in a new one, which has the name from then on.
            Some(_) => break,
            None => {}
        }
    }
    // Two first requests at once are of one session: its name follows from the client's own.
    let session = session_of(&alias)?;
    match look_up(engine, &session)? {
        None => Ok(Scope::New { session, alias: Some(alias) }),
        Some(found) if is_own(&found) && is_open(found.status) => Ok(Scope::Within(session)),
        Some(_) => Ok(Scope::New { session: engine.fresh(&alias)?, alias: Some(alias) }),
    }
}

/// True when a session takes more words: one that has ended is left as it is, and one that was made to wait waits.
fn is_open(state: State) -> bool {
    !state.is_ended() && state != State::Paused
}

/// A session's attributes; `None` when there is none.
fn look_up(engine: &Engine, id: &SessionId) -> Result<Option<Session>> {
    match engine.session(id) {
        Ok(session) => Ok(Some(session)),
        Err(Error::Store(StoreError::NoSession(_))) => Ok(None),
        Err(other) => Err(other),
    }
}

/// What requests beside a conversation are called.
const SIDE: &str = "side";

/// The name by which a client's session is found again: `MetaConfig::alias` of a new one, and its spot at entry 0.
pub fn alias(caller: &TranscriptCaller) -> Option<String> {
    caller.named.as_ref().map(|named| digest(&["session", &caller.salt, named]))
}

/// The name by which a reply is found again when a client only gives the provider's id of it: `Reply::id`, and the spot of the
/// reply's entry.
pub fn reply_name(caller: &TranscriptCaller, id: &str) -> String {
    digest(&["reply", &caller.salt, id])
}

fn digest(words: &[&str]) -> String {
    let mut hasher = blake3::Hasher::new();
    for word in words {
        hasher.update(&(word.len() as u64).to_le_bytes()).update(word.as_bytes());
    }
    hasher.finalize().to_hex().chars().take(32).collect()
}

/// The name of the `n`-th request beside.
fn side(n: usize) -> Result<ThreadId> {
    Ok(ThreadId::new(format!("{SIDE}_{n}"))?)
}

/// True for the thread of a request beside.
fn is_side(thread: &ThreadId) -> bool {
    thread.as_str().strip_prefix(SIDE).is_some_and(|rest| rest.starts_with('_'))
}

/// A free name for a thread to be made, the next of its row; `None` where none is to be made.
fn next_fork(engine: &Engine, session: &SessionId, how: Placement) -> Result<Option<ThreadId>> {
    let row = match how {
        Placement::Forks => "fork",
        Placement::Beside => SIDE,
        Placement::New | Placement::Extends | Placement::Again | Placement::Rewinds => return Ok(None),
    };
    let nth = |n: usize| ThreadId::new(format!("{row}_{n}"));
    let is_free = |n: usize| match engine.store().open(session, &nth(n)?, OpenMode::Read) {
        Err(StoreError::NoThread(..)) => Ok(true),
        Err(other) => Err(Error::from(other)),
        Ok(_) => Ok(false),
    };
    // A row has no gaps: a few looks find its end, however long it is. Were there one, a name in it would be as good.
    let (mut taken, mut free) = (0, 1);
    while !is_free(free)? {
        (taken, free) = (free, free * 2);
    }
    while free - taken > 1 {
        let between = taken + (free - taken) / 2;
        *(if is_free(between)? { &mut free } else { &mut taken }) = between;
    }
    Ok(Some(nth(free)?))
}

// The search: from the longest beginning of a transcript down, until a thread is found that has been sent it.
//
// Of several, the one whose reply is what the client tells; of those, one that simply goes on; of those, the newest.

/// Most threads that are looked at for one beginning, the newest first. So many conversations with the same words up to a
/// point are not told apart further.
const MOST_LOOKED_AT: usize = 256;
/// Most moments of one thread that are looked at for one beginning, the newest first.
const MOST_TIMES: usize = 4;

/// Most threads that are looked at for a request that was never answered. A batch may begin with the same words very often,
/// and a retry comes soon.
const MOST_RETRIED: usize = 8;

/// A search.
struct Search<'a> {
    engine: &'a Engine,
    tale: ClientTranscript<'a>,
    caller: &'a TranscriptCaller,
    /// Only in this session.
    within: Option<&'a SessionId>,
    is_busy: &'a dyn Fn(&SessionId, &ThreadId) -> bool,
}

/// What was found.
struct Found<'a> {
    how: Placement,
    /// The thread.
    strand: ThreadMatch<'a>,
    /// Where it goes on.
    at: Seq,
    /// The same, without anything that came since: for a fork that leaves the thread alone.
    apart: Seq,
    /// Elements that are known.
    known: usize,
    /// The request it goes on from.
    sent: Seq,
    /// How well it fits: what the client tells of the reply; it simply goes on; the request was the thread's last; no request is under way in it.
    rank: (Telling, bool, bool, bool),
}

impl Found<'_> {
    /// True when a request was under way in it.
    fn is_busy(&self) -> bool {
        !self.rank.3
    }

    fn is_best(&self) -> bool {
        self.rank == (Telling::Same, true, true, true)
    }
}

impl<'a> Search<'a> {
    /// The place of the transcript, if it has one.
    fn find(&self) -> Result<Option<Found<'a>>> {
        if let Some(id) = &self.tale.skim.previous {
            return self.after(&reply_name(self.caller, id));
        }
        let found = match self.within {
            None if !self.tale.is_answered() => return self.retried(),
            None => self.anywhere()?,
            Some(_) => self.inside()?,
        };
        match found {
            Some(found) if found.how != Placement::Extends => {
                Ok(Some(self.sharing(&found)?.unwrap_or(found)))
            }
            found => Ok(found),
        }
    }

    /// In a session that was named the deepest mark decides.
    fn inside(&self) -> Result<Option<Found<'a>>> {
        for n in self.tale.beginnings() {
            if let Some(found) = self.best(n)?.0 {
                return Ok(Some(found));
            }
        }
        Ok(None)
    }

    /// Without a name the deepest mark decides, too, unless the same transcript simply goes on in another session: two
    /// clients may be told the same, and none of them goes back for the other.
    fn anywhere(&self) -> Result<Option<Found<'a>>> {
        let mut deepest: Option<Found<'a>> = None;
        for n in self.tale.beginnings() {
            match (self.best(n)?, &deepest) {
                ((Some(found), _), _) if self.simply_goes_on(&found, &deepest) => {
                    return Ok(Some(found));
                }
                ((Some(found), _), None) => deepest = Some(found),
                // It was told in a session that has ended.
                ((None, true), None) => return Ok(None),
                _ => {}
            }
        }
        Ok(deepest)
    }

    /// One that was found before at a deeper mark gives way only to another session in which the reply was given.
    fn simply_goes_on(&self, found: &Found<'_>, deepest: &Option<Found<'_>>) -> bool {
        let is_own = |deepest: &Found<'_>| deepest.strand.session() == found.strand.session();
        let gives_way = |deepest: &Found<'_>| !is_own(deepest) && found.rank.0 == Telling::Same;
        found.how == Placement::Extends && deepest.as_ref().is_none_or(gives_way)
    }

    /// First words, without a name: only the very same request, unanswered and not under way, is asked again.
    fn retried(&self) -> Result<Option<Found<'a>>> {
        let n = self.tale.len();
        let spots = self.spots(n)?.into_iter().filter(|spot| !(self.is_busy)(&spot.session, &spot.thread));
        for spot in spots.take(MOST_RETRIED) {
            let Some(strand) = self.open(&spot)? else { continue };
            if let Some(found) = self.judge(strand, spot.seq, n)?
                && found.how == Placement::Again
                && found.strand.answer(found.sent)?.is_missing()
            {
                return Ok(Some(found));
            }
        }
        Ok(None)
    }

    fn spots(&self, n: usize) -> Result<Vec<TranscriptPlace>> {
        let Some(digest) = self.tale.skim.digest(n) else { return Ok(Vec::new()) };
        let mut spots = self.engine.store().spots(&digest)?;
        spots.retain(|spot| self.within.is_none_or(|session| *session == spot.session));
        Ok(spots)
    }

    /// The thread of a moment, where words may be added; a session that was named has been asked for already.
    fn open(&self, spot: &TranscriptPlace) -> Result<Option<ThreadMatch<'a>>> {
        if self.within.is_none() && !self.entered(spot)?.is_some_and(is_open) {
            return Ok(None);
        }
        ThreadMatch::open(self.engine, &spot.session, &spot.thread)
    }

    /// Where the session of a moment is in its life; `None` when it is no more, or not the caller's.
    fn entered(&self, spot: &TranscriptPlace) -> Result<Option<State>> {
        let found = look_up(self.engine, &spot.session)?;
        Ok(found.filter(|session| self.caller.may_enter(session)).map(|session| session.status))
    }

    /// The best place for the first `n` elements, and whether there were only places that take no more words from here.
    fn best(&self, n: usize) -> Result<(Option<Found<'a>>, bool)> {
        let mut spots = self.spots(n)?;
        // A busy thread is most often another conversation with the same words.
        spots.sort_by_cached_key(|spot| (self.is_busy)(&spot.session, &spot.thread));
        let mut best: Option<Found<'a>> = None;
        let mut is_closed = false;
        let are_twins = spots.windows(2).any(|pair| pair[0].session != pair[1].session);
        let mut looked: HashMap<(SessionId, ThreadId), usize> = HashMap::new();
        // A thread in which the same was asked again and again is as well known by the last few times.
        spots.retain(|spot| {
            let times = looked.entry((spot.session.clone(), spot.thread.clone())).or_default();
            *times += 1;
            *times <= MOST_TIMES
        });
        for spot in spots.into_iter().take(MOST_LOOKED_AT) {
            let Some(strand) = self.open(&spot)? else {
                is_closed |= self.entered(&spot)?.is_some();
                continue;
            };
            let Some(found) = self.judge(strand, spot.seq, n)? else { continue };
            if best.as_ref().is_none_or(|best| found.rank > best.rank) {
                best = Some(found);
            }
            if best.as_ref().is_some_and(Found::is_best) {
                break;
            }
        }
        // Several had the same words, and the threads that are free have gone on: another's session is not a place to stand beside.
        let is_taken = best.as_ref().is_some_and(Found::is_busy);
        if self.within.is_none() && are_twins && is_taken {
            return Ok((None, true));
        }
        Ok((best, is_closed))
    }

    /// How the transcript stands to the request at `sent`, of which it tells the first `n` elements.
    fn judge(&self, strand: ThreadMatch<'a>, mut sent: Seq, mut n: usize) -> Result<Option<Found<'a>>> {
        let Some(mark) = strand.mark(sent)? else { return Ok(None) };
        if mark.elements as usize != n || !self.tale.begins(n, &mark.digest) {
            return Ok(None);
        }
        loop {
            let answer = strand.answer(sent)?;
            let told = self.tale.told(n);
            // A reply that says nothing is told by leaving it out.
            let goes_on = n < self.tale.len() && !answer.is_missing();
            let is_told = goes_on && self.tale.tells(n, told, &answer);
            let next = if strand.on_path(sent) { strand.next_mark(sent)? } else { None };
            // The table may be behind: what the journal knows of the transcript counts.
            if let Some((at, mark)) = &next {
                let further = mark.elements as usize;
                if (further > n || (further == n && !is_told)) && self.tale.begins(further, &mark.digest) {
                    (sent, n) = (*at, further);
                    continue;
                }
            }
            let known = if is_told { n + told } else { n };
            let (is_missing, end) = (answer.is_missing(), answer.end);
            let apart = if is_told { end } else { sent };
            let is_tip = next.is_none() && strand.on_path(apart);
            let is_again = n == self.tale.len();
            let (how, at) = match () {
                () if is_tip && is_again && !is_missing => (Placement::Again, strand.first_asked(sent)?),
                () if is_tip && is_again => (Placement::Again, apart),
                () if is_tip && (is_told || is_missing) => {
                    // The same words may have been taken in before and never sent: the process ended between the two.
                    let unsent = strand.unsent(end)?;
                    let calls: Vec<Call> = answer.replies.iter().flat_map(Message::calls).cloned().collect();
                    let was_taken_in = !unsent.is_empty() && self.tale.goes_on_with(known, &calls, &unsent);
                    if was_taken_in { (Placement::Again, apart) } else { (Placement::Extends, strand.last()) }
                }
                () if known == self.tale.len() && strand.on_path(apart) => (Placement::Rewinds, apart),
                () if is_told && strand.on_path(apart) && self.retells(&strand, &answer, known)? => {
                    (Placement::Rewinds, apart)
                }
                () => (Placement::Forks, apart),
            };
            let telling = match () {
                () if is_told => Telling::Same,
                () if is_again || (is_missing && is_tip) => Telling::Nothing,
                () => Telling::Other,
            };
            let is_free = !(self.is_busy)(strand.session(), strand.id());
            let rank = (telling, how == Placement::Extends, is_tip, is_free);
            return Ok(Some(Found { how, strand, at, apart, known, sent, rank }));
        }
    }

    /// True when the rest of the transcript is what the thread says after an answer, with other results.
    fn retells(&self, strand: &ThreadMatch<'_>, answer: &ThreadAnswer, known: usize) -> Result<bool> {
        let calls: Vec<Call> = answer.replies.iter().flat_map(Message::calls).cloned().collect();
        self.tale.retells(known, &calls, strand, answer.end)
    }

    /// A fork that shares the request with the thread that was found, and in which the transcript simply goes on.
    fn sharing(&self, found: &Found<'_>) -> Result<Option<Found<'a>>> {
        let (session, thread) = (found.strand.session(), found.strand.id());
        let headers = self.engine.store().threads(session)?;
        let shares = |fork: &ThreadId| {
            let line = lineage::line(&headers, Moment { thread: fork.clone(), seq: Seq::MAX });
            line.iter().skip(1).any(|moment| moment.thread == *thread && moment.seq >= found.sent)
        };
        let forks = headers.iter().rev().map(|header| &header.thread).filter(|fork| shares(fork));
        for fork in forks.take(MOST_LOOKED_AT) {
            let Some(strand) = ThreadMatch::open(self.engine, session, fork)? else { continue };
            let Some(mark) = strand.mark(found.sent)? else { continue };
            let judged = self.judge(strand, found.sent, mark.elements as usize)?;
            if let Some(judged) = judged.filter(|judged| judged.how == Placement::Extends) {
                return Ok(Some(judged));
            }
        }
        Ok(None)
    }

    /// The place after a reply that the client only names: all of the transcript is new.
    fn after(&self, name: &str) -> Result<Option<Found<'a>>> {
        let mut spots = self.engine.store().spots(name)?;
        spots.retain(|spot| self.within.is_none_or(|session| *session == spot.session));
        for spot in spots.into_iter().take(MOST_LOOKED_AT) {
            let Some(strand) = self.open(&spot)? else { continue };
            let Some(end) = strand.reply(spot.seq, name)? else { continue };
            let goes_on = !strand.on_path(end) || strand.goes_on_after(end)?;
            let (how, at) =
                if goes_on { (Placement::Forks, end) } else { (Placement::Extends, strand.last()) };
            let is_free = !(self.is_busy)(strand.session(), strand.id());
            let rank = (Telling::Same, !goes_on, !goes_on, is_free);
            return Ok(Some(Found { how, strand, at, apart: end, known: 0, sent: spot.seq, rank }));
        }
        Ok(None)
    }
}

/// What a client tells of a reply, the worst first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Telling {
    /// Something else.
    Other,
    /// Nothing, or there was none.
    Nothing,
    /// What was said.
    Same,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_name_given_by_two_is_two_names() {
        let by = |salt: &str, named: &str| {
            alias(&TranscriptCaller {
                salt: salt.into(),
                named: Some(named.into()),
                ..TranscriptCaller::default()
            })
            .unwrap()
        };
        assert_eq!(by("ann", "session-id: 窓"), by("ann", "session-id: 窓"));
        assert_ne!(by("ann", "session-id: 窓"), by("bob", "session-id: 窓"));
        assert_ne!(by("ann", "x"), by("an", "nx"));
        assert_eq!(by("ann", "x").len(), 32);
        let caller = TranscriptCaller { salt: "ann".into(), ..TranscriptCaller::default() };
        assert_eq!(alias(&caller), None);
        assert_ne!(reply_name(&caller, "x"), by("ann", "x"));
    }
}
