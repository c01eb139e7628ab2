//! The search: from the longest beginning of a transcript down, until a thread is found that has been sent it.
//!
//! Of several, the one whose reply is what the client tells; of those, one that simply goes on; of those, the newest.

use super::strand::Strand;
use super::tale::Tale;
use super::{Caller, How, is_open, look_up, reply_name};
use crate::engine::Engine;
use crate::error::Result;
use crate::lineage;
use komado_core::message::{Call, Message};
use komado_core::session::State;
use komado_core::thread::Moment;
use komado_core::{Seq, SessionId, ThreadId};
use komado_store::Spot;
use std::collections::HashMap;

/// Most threads that are looked at for one beginning, the newest first. So many conversations with the same words up to a
/// point are not told apart further.
const MOST_LOOKED_AT: usize = 256;
/// Most moments of one thread that are looked at for one beginning, the newest first.
const MOST_TIMES: usize = 4;

/// Most threads that are looked at for a request that was never answered. A batch may begin with the same words very often,
/// and a retry comes soon.
const MOST_RETRIED: usize = 8;

/// A search.
pub(super) struct Search<'a> {
    pub(super) engine: &'a Engine,
    pub(super) tale: Tale<'a>,
    pub(super) caller: &'a Caller,
    /// Only in this session.
    pub(super) within: Option<&'a SessionId>,
    pub(super) is_busy: &'a dyn Fn(&SessionId, &ThreadId) -> bool,
}

/// What was found.
pub(super) struct Found<'a> {
    pub(super) how: How,
    /// The thread.
    pub(super) strand: Strand<'a>,
    /// Where it goes on.
    pub(super) at: Seq,
    /// The same, without anything that came since: for a fork that leaves the thread alone.
    pub(super) apart: Seq,
    /// Elements that are known.
    pub(super) known: usize,
    /// The request it goes on from.
    sent: Seq,
    /// How well it fits: what the client tells of the reply; it simply goes on; the request was the thread's last; nobody is at it.
    rank: (Telling, bool, bool, bool),
}

impl Found<'_> {
    /// True when a request was under way in it.
    pub(super) fn is_busy(&self) -> bool {
        !self.rank.3
    }

    fn is_best(&self) -> bool {
        self.rank == (Telling::Same, true, true, true)
    }
}

impl<'a> Search<'a> {
    /// The place of the transcript, if it has one.
    pub(super) fn find(&self) -> Result<Option<Found<'a>>> {
        if let Some(id) = &self.tale.skim.previous {
            return self.after(&reply_name(self.caller, id));
        }
        let found = match self.within {
            None if !self.tale.is_answered() => return self.retried(),
            None => self.anywhere()?,
            Some(_) => self.inside()?,
        };
        match found {
            Some(found) if found.how != How::Extends => Ok(Some(self.sharing(&found)?.unwrap_or(found))),
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
        found.how == How::Extends && deepest.as_ref().is_none_or(gives_way)
    }

    /// First words, without a name: only the very same request, unanswered and with nobody at it, is asked again.
    fn retried(&self) -> Result<Option<Found<'a>>> {
        let n = self.tale.len();
        let spots = self.spots(n)?.into_iter().filter(|spot| !(self.is_busy)(&spot.session, &spot.thread));
        for spot in spots.take(MOST_RETRIED) {
            let Some(strand) = self.open(&spot)? else { continue };
            if let Some(found) = self.judge(strand, spot.seq, n)?
                && found.how == How::Again
                && found.strand.answer(found.sent)?.is_missing()
            {
                return Ok(Some(found));
            }
        }
        Ok(None)
    }

    fn spots(&self, n: usize) -> Result<Vec<Spot>> {
        let Some(digest) = self.tale.skim.digest(n) else { return Ok(Vec::new()) };
        let mut spots = self.engine.store().spots(&digest)?;
        spots.retain(|spot| self.within.is_none_or(|session| *session == spot.session));
        Ok(spots)
    }

    /// The thread of a moment, where words may be added; a session that was named has been asked for already.
    fn open(&self, spot: &Spot) -> Result<Option<Strand<'a>>> {
        if self.within.is_none() && !self.entered(spot)?.is_some_and(is_open) {
            return Ok(None);
        }
        Strand::open(self.engine, &spot.session, &spot.thread)
    }

    /// Where the session of a moment is in its life; `None` when it is no more, or not the caller's.
    fn entered(&self, spot: &Spot) -> Result<Option<State>> {
        let found = look_up(self.engine, &spot.session)?;
        Ok(found.filter(|session| self.caller.may_enter(session)).map(|session| session.status))
    }

    /// The best place for the first `n` elements, and whether there were only places that take no more words from here.
    fn best(&self, n: usize) -> Result<(Option<Found<'a>>, bool)> {
        let mut spots = self.spots(n)?;
        // Whoever is busy is most often another conversation with the same words.
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
        // Several had the same words, and whoever is free of them has gone on: another's session is no place to stand beside.
        let is_taken = best.as_ref().is_some_and(Found::is_busy);
        if self.within.is_none() && are_twins && is_taken {
            return Ok((None, true));
        }
        Ok((best, is_closed))
    }

    /// How the transcript stands to the request at `sent`, of which it tells the first `n` elements.
    fn judge(&self, strand: Strand<'a>, mut sent: Seq, mut n: usize) -> Result<Option<Found<'a>>> {
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
            let stand = Stand {
                sent,
                end: answer.end,
                calls: answer.replies.iter().flat_map(Message::calls).cloned().collect(),
                known,
                is_told,
                is_missing: answer.is_missing(),
                is_last: next.is_none(),
            };
            return self.stand(strand, stand, n).map(Some);
        }
    }

    fn stand(&self, strand: Strand<'a>, stand: Stand, n: usize) -> Result<Found<'a>> {
        let Stand { sent, end, known, is_told, is_missing, is_last, .. } = stand;
        let apart = if is_told { end } else { sent };
        let is_tip = is_last && strand.on_path(apart);
        let is_whole = known == self.tale.len();
        let how = match () {
            () if is_tip && n == self.tale.len() => How::Again,
            () if is_tip && (is_told || is_missing) => How::Extends,
            () if is_whole && strand.on_path(apart) => How::Rewinds,
            () => How::Forks,
        };
        let (how, at) = match how {
            How::Extends if self.is_unsent(&strand, &stand)? => (How::Again, apart),
            How::Extends => (how, strand.last()),
            How::Again if !is_missing => (how, strand.first_asked(sent)?),
            how => (how, apart),
        };
        let telling = match () {
            () if is_told => Telling::Same,
            () if n == self.tale.len() || (is_missing && is_tip) => Telling::Nothing,
            () => Telling::Other,
        };
        let is_free = !(self.is_busy)(strand.session(), strand.id());
        let rank = (telling, how == How::Extends, is_tip, is_free);
        Ok(Found { how, strand, at, apart, known, sent, rank })
    }

    /// True when the same words were taken in before and never sent: the process ended between the two.
    fn is_unsent(&self, strand: &Strand, stand: &Stand) -> Result<bool> {
        let unsent = strand.unsent(stand.end)?;
        Ok(!unsent.is_empty() && self.tale.goes_on_with(stand.known, &stand.calls, &unsent))
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
            let Some(strand) = Strand::open(self.engine, session, fork)? else { continue };
            let Some(mark) = strand.mark(found.sent)? else { continue };
            let judged = self.judge(strand, found.sent, mark.elements as usize)?;
            if let Some(judged) = judged.filter(|judged| judged.how == How::Extends) {
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
            let (how, at) = if goes_on { (How::Forks, end) } else { (How::Extends, strand.last()) };
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

/// How a transcript stands to one request.
struct Stand {
    /// The request.
    sent: Seq,
    /// The end of what was answered.
    end: Seq,
    /// Calls that were made in it.
    calls: Vec<Call>,
    /// Elements that are known.
    known: usize,
    /// The client tells the reply as it was.
    is_told: bool,
    /// Nothing was answered.
    is_missing: bool,
    /// It was the client's last request here.
    is_last: bool,
}
