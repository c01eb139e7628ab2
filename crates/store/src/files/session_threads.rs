//! A session's threads as their journals tell of them: what the tables of spawned threads are made from, and checked by.
//!
//! Nothing here is an error that keeps a session from opening. A parent that is not there, threads that go round in a
//! circle, an anchor that leads nowhere: each is told by who checks, and the rest goes on.

use super::tasks::TaskTable;
use super::{FileJournal, FileStore, TaskTableStore};
use crate::tables::{BranchFilter, ThreadMail, ToldWords};
use crate::{Error, OpenMode, Result, Store};
use komado_core::head::{EntrySource, Kind};
use komado_core::journal::{Ending, Entry, Record};
use komado_core::thread::{Branch, Header, ThreadStatus};
use komado_core::{Seq, SessionId, ThreadId, View, thread};
use std::collections::BTreeSet;

/// What the journals of a session say of its threads.
#[derive(Default)]
pub(super) struct SessionThreads {
    /// A row for each spawned thread, and for those they were spawned from.
    branches: Vec<Branch>,
    /// What they told each other.
    words: ToldWords,
    /// What does not fit together.
    gaps: Vec<String>,
    /// What cannot be read, and why.
    unread: Vec<(ThreadId, String)>,
    /// Threads whose rows are not all theirs to tell: what the table knows of them is better.
    guessed: BTreeSet<ThreadId>,
}

impl SessionThreads {
    /// Takes in a thread: its row, and what its own entries say.
    fn take(&mut self, header: &Header, journal: &FileJournal, known: &BTreeSet<ThreadId>) {
        let branch = thread::branch(header, journal).unwrap_or_else(|why| {
            // Of a parent that is not there the headers tell.
            if !matches!(why, Error::NoThread(..)) {
                self.miss(header, &why);
            }
            self.guess(header, Some(journal))
        });
        match View::fold(journal, EntrySource::last(journal)) {
            Ok(view) => {
                for seq in header.base_seq() + 1..=EntrySource::last(journal) {
                    if let Err(why) = self.take_entry(&branch, journal, (seq, &view), known) {
                        self.miss(header, &why);
                    }
                }
            }
            Err(why) => self.miss(header, &why),
        }
        self.branches.push(branch);
    }

    fn take_entry(
        &mut self,
        branch: &Branch,
        journal: &FileJournal,
        (seq, view): (Seq, &View),
        known: &BTreeSet<ThreadId>,
    ) -> Result<()> {
        match EntrySource::head(journal, seq)?.kind {
            Kind::Tell | Kind::Heard => self.words.take(&branch.thread, EntrySource::record(journal, seq)?),
            Kind::Anchor if view.on_path(seq) => {
                let record = EntrySource::record(journal, view.anchor(seq))?;
                self.take_lost(branch, seq, record, known);
            }
            _ => {}
        }
        Ok(())
    }

    /// Notes what cannot be read.
    fn miss(&mut self, header: &Header, why: &Error) {
        self.unread.push((header.thread.clone(), why.to_string()));
    }

    /// The row of a thread whose share, or whole journal, cannot be read: what its header says, and its end if that can.
    /// Those above it were taken in before.
    fn guess(&mut self, header: &Header, journal: Option<&FileJournal>) -> Branch {
        self.guessed.insert(header.thread.clone());
        let parent = header.parent.as_ref().map(|moment| moment.thread.clone());
        let above = self.branches.iter().find(|branch| Some(&branch.thread) == parent.as_ref());
        let (status, completed_at) = journal.and_then(ended).unwrap_or((ThreadStatus::Active, None));
        Branch {
            session: header.session.clone(),
            thread: header.thread.clone(),
            depth: parent.as_ref().map_or(0, |_| 1 + above.map_or(0, |branch| branch.depth)),
            window_ratio: 1.0,
            status,
            label: header.label.clone(),
            chronicle_summary: None,
            held_by: None,
            told: false,
            created_at: header.timestamp.clone(),
            completed_at,
            parent,
        }
    }

    /// A child of which there is nothing but an open anchor: the next writer of the parent ends it there.
    fn take_lost(&mut self, parent: &Branch, seq: Seq, record: Record, known: &BTreeSet<ThreadId>) {
        let Entry::Anchor(anchor) = record.entry else { return };
        if known.contains(&anchor.thread) || anchor.ending.is_some_and(|ending| ending != Ending::Paused) {
            return;
        }
        self.gaps.push(format!(
            "{}/{}@{seq}: this anchor names thread {}, which is not there; the next process that writes to the session closes it \
             as aborted",
            parent.session, parent.thread, anchor.thread
        ));
        self.branches.push(Branch {
            session: parent.session.clone(),
            parent: Some(parent.thread.clone()),
            depth: parent.depth + 1,
            window_ratio: 1.0,
            status: ThreadStatus::from(anchor.ending),
            label: anchor.label,
            chronicle_summary: None,
            held_by: None,
            told: false,
            created_at: record.timestamp,
            completed_at: None,
            thread: anchor.thread,
        });
    }

    /// Threads that may have heard more than can be read of them, and whose words the table knows: those are not told
    /// twice.
    fn told_before(&self, id: &SessionId, tasks: &TaskTable) -> Result<BTreeSet<ThreadId>> {
        let mut threads: BTreeSet<ThreadId> = self.unread.iter().map(|(thread, _)| thread.clone()).collect();
        for thread in threads.clone() {
            if !tasks.has_branch(id, &thread)? {
                threads.remove(&thread);
            }
        }
        Ok(threads)
    }
}

/// What headers name that is not there, and those that stand on one another in a circle.
fn gaps(headers: &[Header], known: &BTreeSet<ThreadId>) -> Vec<String> {
    let mut found = Vec::new();
    let mut left: Vec<&Header> = headers.iter().collect();
    for header in headers {
        for moment in header.base.iter().chain(&header.parent).filter(|m| !known.contains(&m.thread)) {
            let (Header { session, thread, .. }, parent) = (header, &moment.thread);
            let stands = format!("{session}/{thread}: it stands on thread {parent}, which is not there");
            found.push(format!("{stands}; what it says itself can be read"));
        }
    }
    loop {
        let names: BTreeSet<ThreadId> = left.iter().map(|header| header.thread.clone()).collect();
        left.retain(|h| h.base.iter().chain(&h.parent).any(|moment| names.contains(&moment.thread)));
        if left.len() == names.len() {
            break;
        }
    }
    if let Some(first) = left.first() {
        let threads: Vec<&str> = left.iter().map(|header| header.thread.as_str()).collect();
        found.push(format!(
            "session {}: these threads stand on one another in a circle: {}; the first lines of their journals must be \
             put right by hand",
            first.session,
            threads.join(", ")
        ));
    }
    found
}

/// The same row, whether or not the parent was told.
fn is_same(a: &Branch, b: &Branch) -> bool {
    *a == Branch { told: a.told, ..b.clone() }
}

fn words(branch: &Branch) -> String {
    let parent = branch.parent.as_ref().map_or("no thread", ThreadId::as_str);
    let chronicle = if branch.chronicle_summary.is_some() { ", with a chronicle" } else { "" };
    let Branch { depth, window_ratio: ratio, status, .. } = branch;
    format!("{}, child of {parent}, depth {depth}, ratio {ratio}{chronicle}", status.name())
}

impl FileStore {
    pub(super) fn family(&self, id: &SessionId) -> Result<SessionThreads> {
        let headers = self.threads(id)?;
        let known: BTreeSet<ThreadId> = headers.iter().map(|header| header.thread.clone()).collect();
        let mut family = SessionThreads { gaps: gaps(&headers, &known), ..SessionThreads::default() };
        for header in &headers {
            match self.open_file(id, &header.thread, OpenMode::Read) {
                Ok(journal) => family.take(header, &journal, &known),
                Err(why) => {
                    family.miss(header, &why);
                    let branch = family.guess(header, None);
                    family.branches.push(branch);
                }
            }
        }
        let parents: BTreeSet<ThreadId> = family.branches.iter().filter_map(|b| b.parent.clone()).collect();
        family.branches.retain(|branch| branch.parent.is_some() || parents.contains(&branch.thread));
        for root in family.branches.iter_mut().filter(|branch| branch.parent.is_none()) {
            root.told = true;
        }
        Ok(family)
    }

    /// Makes the rows of a session's threads again from its journals. A row without a thread stays while its parent was
    /// not told: a process may be about to make the thread.
    pub(super) fn fill_tree(&self, tasks: &TaskTable, id: &SessionId, family: &SessionThreads) -> Result<()> {
        self.note_unread(id, family);
        // Rows that cannot be read are not worth keeping.
        let known = match tasks.branches(id, &BranchFilter::All) {
            Ok(known) => known,
            Err(_) => tasks.forget_branches(id).map(|()| Vec::new())?,
        };
        let told = family.told_before(id, tasks)?;
        let is_there = |row: &Branch| family.branches.iter().any(|branch| branch.thread == row.thread);
        for row in known.iter().filter(|row| row.told && !is_there(row)) {
            tasks.drop_branch(id, &row.thread)?;
        }
        let is_known = |row: &Branch| {
            family.guessed.contains(&row.thread) && known.iter().any(|k| k.thread == row.thread)
        };
        for branch in family.branches.iter().filter(|branch| !is_known(branch)) {
            tasks.put_branch(branch)?;
        }
        for (to, mail) in family.words.waiting().filter(|(to, _)| !told.contains(to)) {
            tasks.post(id, to, mail)?;
        }
        family.words.heard.iter().try_for_each(|((to, from), upto)| tasks.taken(id, to, from, *upto))
    }

    /// Compares the rows of a session's threads with its journals; puts right what differs, and tells it.
    pub(super) fn check_tree(&self, id: &SessionId) -> Result<()> {
        let family = self.family(id)?;
        self.note_unread(id, &family);
        let known = match self.with_tasks(|tasks| tasks.branches(id, &BranchFilter::All)) {
            Ok(known) => known,
            Err(_) => self.with_tasks(|tasks| tasks.forget_branches(id)).map(|()| Vec::new())?,
        };
        let told = self.with_tasks(|tasks| family.told_before(id, tasks))?;
        for branch in family.branches.iter().filter(|branch| branch.parent.is_some()) {
            let row = known.iter().find(|row| row.thread == branch.thread);
            if !row.is_some_and(|row| is_same(row, branch) || family.guessed.contains(&row.thread)) {
                let was = row.map_or_else(|| "nothing".into(), words);
                self.note_branch(branch, &was, &words(branch));
                self.with_tasks(|tasks| tasks.put_branch(branch))?;
            }
        }
        for root in family.branches.iter().filter(|branch| branch.parent.is_none()) {
            if !self.with_tasks(|tasks| tasks.has_branch(id, &root.thread))? {
                self.with_tasks(|tasks| tasks.put_branch(root))?;
            }
        }
        let is_there = |row: &Branch| family.branches.iter().any(|branch| branch.thread == row.thread);
        for row in known.iter().filter(|row| row.told && !is_there(row)) {
            self.note_branch(row, &words(row), "gone");
            self.with_tasks(|tasks| tasks.drop_branch(id, &row.thread))?;
        }
        self.check_mail(id, &family, &told)?;
        family.gaps.into_iter().for_each(|gap| self.opener.note(gap));
        Ok(())
    }

    fn note_unread(&self, id: &SessionId, family: &SessionThreads) {
        for (thread, why) in &family.unread {
            self.opener.note_unreadable(id, thread, why);
        }
    }

    fn note_branch(&self, branch: &Branch, was: &str, is: &str) {
        let Branch { session, thread, .. } = branch;
        self.opener.note(format!("{session}/{thread}: the table of threads said {was}, it is {is}"));
    }

    /// Words that wait are in the table, words that were heard are not.
    fn check_mail(&self, id: &SessionId, family: &SessionThreads, told: &BTreeSet<ThreadId>) -> Result<()> {
        let words = &family.words;
        let threads: BTreeSet<&ThreadId> =
            words.told.iter().map(|(_, to, _)| to).chain(words.heard.keys().map(|(to, _)| to)).collect();
        let waiting: Vec<(&ThreadId, &ThreadMail)> = words.waiting().collect();
        for to in threads.into_iter().filter(|to| !told.contains(*to)) {
            let known = self.with_tasks(|tasks| tasks.mail(id, to))?;
            let waits = waiting.iter().filter(|(whose, _)| *whose == to).map(|(_, mail)| *mail);
            let lost: Vec<&ThreadMail> = waits.filter(|mail| !known.contains(mail)).collect();
            let stale: Vec<&ThreadMail> = known.iter().filter(|mail| words.was_heard(to, mail)).collect();
            if lost.is_empty() && stale.is_empty() {
                continue;
            }
            for mail in &lost {
                self.with_tasks(|tasks| tasks.post(id, to, mail))?;
            }
            for mail in &stale {
                self.with_tasks(|tasks| tasks.taken(id, to, &mail.from, mail.seq))?;
            }
            let (lost, stale) = (lost.len(), stale.len());
            self.opener.note(format!(
                "{id}/{to}: of the words told to it, {lost} that wait were not in the table and {stale} that it has \
                 heard still were"
            ));
        }
        Ok(())
    }
}

/// How a thread ended or paused, and when it ended, as far as that can be read.
fn ended(journal: &FileJournal) -> Option<(ThreadStatus, Option<String>)> {
    let at = View::fold(journal, EntrySource::last(journal)).ok()?.closed()?;
    let record = EntrySource::record(journal, at).ok()?;
    let Entry::Close(close) = record.entry else { return None };
    let status = ThreadStatus::from(Some(close.ending));
    Some((status, Some(record.timestamp).filter(|_| !status.is_open())))
}
