//! A thread on disk: `messages.jsonl`, its index, and what is derived for people.
//!
//! Opening reads the header line and the index's marks. When the journal is longer than the index knows, only the
//! rest is read; a last line without an end was never acknowledged and is cut off.

use super::folders::ThreadFolder;
use super::index::{Extent, HeadIndex, MAKING, OPEN};
use super::opener::{JournalOpener, SessionLock};
use super::{derived, folders};
use crate::error::IoContext;
use crate::lease::ThreadLease;
use crate::request_file::RequestFile;
use crate::{Error, Journal, JournalRepair, JournalRow, OpenMode, Result, check_rewritten, check_rows};
use komado_core::journal::{Record, decode};
use komado_core::thread::Header;
use komado_core::{Head, Seq, ThreadId, View};
use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

/// Told how far a long read has come: bytes done, bytes in all.
pub type ReadProgress = dyn Fn(u64, u64) + Send + Sync;

/// How many writes and syncs the journal file has taken; counted where they are made.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct JournalWork {
    /// Calls to write.
    pub writes: u64,
    /// Calls to sync.
    pub syncs: u64,
}

/// The work of every journal of a store, added up.
#[derive(Debug, Default)]
pub(super) struct WorkCount {
    writes: AtomicU64,
    syncs: AtomicU64,
}

impl WorkCount {
    pub(super) fn work(&self) -> JournalWork {
        JournalWork { writes: self.writes.load(Relaxed), syncs: self.syncs.load(Relaxed) }
    }
}

/// A thread on disk, open.
pub struct FileJournal {
    pub(super) folder: ThreadFolder,
    header: Header,
    base: Option<Box<FileJournal>>,
    file: File,
    pub(super) index: HeadIndex,
    tail: (Seq, Head),
    end: u64,
    lease: Option<ThreadLease<SessionLock>>,
    poisoned: bool,
    notes: Vec<JournalRepair>,
    work: JournalWork,
    opener: JournalOpener,
}

/// What a handle may do about an index that is behind its journal.
pub(super) enum JournalAccess {
    /// Bring it forward, and append.
    Write(ThreadLease<SessionLock>),
    /// Nothing: a writer is at work and will. What it has not indexed is not yet said.
    Follow,
    /// Nothing, and no writer will: read the rest, and keep it in mind.
    Read,
    /// Nothing: read the whole journal, whatever the index says.
    Anew,
}

impl FileJournal {
    pub(super) fn open(
        opener: &JournalOpener,
        folder: ThreadFolder,
        base: Option<Box<Self>>,
        access: JournalAccess,
    ) -> Result<Self> {
        let path = folder.journal();
        let (file, header, first, index, scans, lease) = match access {
            JournalAccess::Write(ticket) => {
                let file = OpenOptions::new().read(true).append(true).open(&path).tried("open", &path)?;
                let (header, first) = folders::read_header(&folder, &file)?;
                let index = match HeadIndex::open_to_write(&folder.index())? {
                    Some(index) => index,
                    None => HeadIndex::begin(&folder.index(), first)?,
                };
                (file, header, first, index, true, Some(ticket))
            }
            JournalAccess::Follow | JournalAccess::Read | JournalAccess::Anew => {
                let (file, found) = open_pair(&folder)?;
                let (header, first) = folders::read_header(&folder, &file)?;
                let index = found.filter(|_| !matches!(access, JournalAccess::Anew));
                let scans = index.is_none() || matches!(access, JournalAccess::Read);
                let index = index.unwrap_or_else(|| HeadIndex::in_memory(&folder.index(), first));
                (file, header, first, index, scans, None)
            }
        };
        let tail = (header.base_seq(), Head::START);
        let (notes, work, opener) = (Vec::new(), JournalWork::default(), opener.clone());
        let poisoned = false;
        let mut journal = Self {
            folder,
            header,
            base,
            file,
            index,
            tail,
            end: first,
            lease,
            poisoned,
            notes,
            work,
            opener,
        };
        journal.catch_up(first, scans)?;
        Ok(journal)
    }

    /// The bytes of the journal file that count.
    pub fn byte_size(&self) -> u64 {
        self.end
    }

    /// Writes and syncs of the journal file since it was opened.
    pub fn work(&self) -> JournalWork {
        self.work
    }

    /// Gives back what it goes on from.
    pub(super) fn into_base(self) -> Option<Box<Self>> {
        self.base
    }

    /// True when `other`, which was opened later, knows all of this journal's entries in the same places.
    pub(super) fn agrees_with(&self, other: &Self) -> bool {
        let count = self.index.marks().count;
        other.index.marks().count >= count
            && (0..count).all(|n| matches!((self.index.get(n), other.index.get(n)), (Ok(a), Ok(b)) if a == b))
    }

    fn base_seq(&self) -> Seq {
        self.header.base_seq()
    }

    fn base_head(&self) -> Result<Head> {
        match &self.base {
            Some(base) => Journal::head(&**base, self.base_seq()),
            None => Ok(Head::START),
        }
    }

    /// Begins where the index ends, and takes in what the journal has after that.
    fn catch_up(&mut self, first: u64, scans: bool) -> Result<()> {
        let size = self.file.metadata().tried("look at", &self.folder.journal())?.len();
        let known = self.known_tail(first, size)?;
        let scans = scans || known.is_none();
        (self.tail, self.end) = match known {
            Some(known) => known,
            None => {
                let path = self.folder.index();
                self.index = match &self.lease {
                    Some(_) => HeadIndex::begin(&path, first)?,
                    None => HeadIndex::in_memory(&path, first),
                };
                ((self.base_seq(), self.base_head()?), first)
            }
        };
        if self.end == size || !scans {
            return Ok(());
        }
        let before = self.tail.0;
        self.index.mark(|marks| marks.clean = MAKING);
        self.scan(size)?;
        self.index.mark(|marks| marks.clean = OPEN);
        if self.tail.0 > before && self.lease.is_some() {
            self.notes.push(JournalRepair::Reindexed { entries: u64::from(self.tail.0 - before) });
        }
        Ok(())
    }

    /// The last entry the index knows and the end of its line; `None` when the index speaks of another journal.
    fn known_tail(&self, first: u64, size: u64) -> Result<Option<((Seq, Head), u64)>> {
        let marks = self.index.marks();
        if marks.count == 0 {
            return Ok(Some(((self.base_seq(), self.base_head()?), first)));
        }
        let seq = Seq::try_from(marks.count).ok().and_then(|count| self.base_seq().checked_add(count));
        let (Some(seq), Some((head, extent))) = (seq, self.index.last()) else { return Ok(None) };
        let fits = extent.offset >= first && extent.end() <= size && self.is_line(seq, extent);
        Ok(fits.then_some(((seq, head), extent.end())))
    }

    /// True when entry `seq` lies at `extent`. Our own lines begin with their number, so this reads few bytes.
    fn is_line(&self, seq: Seq, extent: Extent) -> bool {
        let begin = format!("{{\"seq\":{seq},");
        let mut found = vec![0; begin.len() + 1];
        let mut last = [0];
        let read = self.file.read_exact_at(&mut found, extent.offset.saturating_sub(1)).and_then(|()| {
            self.file.read_exact_at(&mut last, extent.end().saturating_sub(1)) // The line break.
        });
        if read.is_err() || found[0] != b'\n' || last[0] != b'\n' {
            return false;
        }
        if &found[1..] == begin.as_bytes() {
            return true;
        }
        let line = self.read_line(extent).ok().and_then(|line| String::from_utf8(line).ok());
        line.and_then(|line| decode(&line).ok()).is_some_and(|record| record.seq == seq)
    }

    /// Reads lines from `self.end` on, indexes them, and cuts off a torn last one.
    fn scan(&mut self, size: u64) -> Result<()> {
        let path = self.folder.journal();
        let mut view = View::fold(self, self.tail.0)?;
        let mut file = self.file.try_clone().tried("open", &path)?;
        file.seek(SeekFrom::Start(self.end)).tried("read", &path)?;
        let mut reader = BufReader::with_capacity(1 << 16, file.take(size - self.end));
        let mut line = Vec::new();
        loop {
            line.clear();
            let read = reader.read_until(b'\n', &mut line).tried("read", &path)?;
            if read == 0 {
                return Ok(());
            }
            let record = match self.parse(&line) {
                Ok(record) => record,
                Err(_) if is_torn(&line) && self.end + read as u64 >= size => return self.cut_torn(size),
                Err(why) => return Err(self.damaged(why)),
            };
            let head = view.head_of(&record, self)?;
            self.index.reserve(1)?;
            self.take(head, read as u32)?;
            view.apply(&record, self)?;
            if let Some(progress) = &self.opener.progress {
                progress(self.end, size);
            }
        }
    }

    fn parse(&self, line: &[u8]) -> std::result::Result<Record, String> {
        if line.last() != Some(&b'\n') {
            return Err("it has no end".into());
        }
        if u32::try_from(line.len()).is_err() {
            return Err("it is longer than 4 GiB".into());
        }
        let text = std::str::from_utf8(line).map_err(|e| e.to_string())?;
        let record = decode(text).map_err(|e| e.to_string())?;
        match self.tail.0.checked_add(1) {
            Some(next) if next == record.seq => Ok(record),
            next => Err(format!("it has seq {}, expected {}", record.seq, next.unwrap_or(Seq::MAX))),
        }
    }

    fn damaged(&self, why: String) -> Error {
        let line = self.tail.0 - self.base_seq() + 2;
        let place = format!("{} line {line} (byte {})", self.folder.journal().display(), self.end);
        Error::damaged(place, why)
    }

    /// Cuts off a last line that was never acknowledged. Who only looks passes over it.
    fn cut_torn(&mut self, size: u64) -> Result<()> {
        if self.lease.is_none() {
            return Ok(());
        }
        let path = self.folder.journal();
        self.file.set_len(self.end).tried("cut", &path)?;
        self.file.sync_data().tried("sync", &path)?;
        self.notes.push(JournalRepair::Torn { bytes: size - self.end });
        Ok(())
    }

    /// Notes a line that is in the journal.
    fn take(&mut self, head: Head, len: u32) -> Result<()> {
        self.index.push(&head, Extent { offset: self.end, len })?;
        self.end += u64::from(len);
        self.tail = (self.tail.0 + 1, head);
        Ok(())
    }

    /// One write, one sync; taken back whole when either fails.
    fn write(&mut self, bytes: &[u8]) -> Result<()> {
        let path = self.folder.journal();
        self.work.writes += 1;
        self.opener.tally.writes.fetch_add(1, Relaxed);
        let written = (&self.file).write_all(bytes);
        let done = written.and_then(|()| {
            self.work.syncs += 1;
            self.opener.tally.syncs.fetch_add(1, Relaxed);
            self.file.sync_data()
        });
        let Err(error) = done else { return Ok(()) };
        self.poisoned = self.file.set_len(self.end).and_then(|()| self.file.sync_data()).is_err();
        Err(error).tried("append to", &path)
    }
}

/// True for what an append leaves behind that did not come to its end: a line without one, or, where blocks came to
/// disk out of order, one with holes of zeros. A whole line that cannot be read is something else, and is never cut.
fn is_torn(line: &[u8]) -> bool {
    line.last() != Some(&b'\n') || line.contains(&0)
}

/// Opens a journal and the index that belongs to it, if there is one that can be used.
///
/// A rewrite removes the index, then replaces the journal, then makes another index. So an index belongs to the
/// journal that was opened before it if that one is still in place after.
fn open_pair(folder: &ThreadFolder) -> Result<(File, Option<HeadIndex>)> {
    let path = folder.journal();
    let inode = |found: std::io::Result<std::fs::Metadata>| found.map(|m| m.ino()).tried("look at", &path);
    for _ in 0..8 {
        let file = File::open(&path).tried("open", &path)?;
        let index = HeadIndex::open(&folder.index())?;
        if inode(file.metadata())? == inode(std::fs::metadata(&path))? {
            return Ok((file, index));
        }
    }
    Ok((File::open(&path).tried("open", &path)?, None))
}

/// True when a reader can trust the index: it covers the journal to its end.
pub(super) fn is_settled(folder: &ThreadFolder) -> Result<bool> {
    let path = folder.journal();
    let file = File::open(&path).tried("open", &path)?;
    let Some(index) = HeadIndex::open(&folder.index())? else { return Ok(false) };
    let end = match index.last() {
        Some((_, extent)) => extent.end(),
        None => folders::read_header(folder, &file)?.1,
    };
    Ok(end == file.metadata().tried("look at", &path)?.len())
}

impl FileJournal {
    fn check_writer(&self) -> Result<()> {
        match &self.lease {
            _ if self.poisoned => Err(Error::Poisoned),
            Some(_) => Ok(()),
            None => Err(Error::ReadOnly),
        }
    }

    /// Refuses a moment that has not come yet.
    pub(super) fn check_moment(&self, seq: Seq) -> Result<()> {
        if seq <= self.tail.0 { Ok(()) } else { Err(self.no_entry(seq)) }
    }

    fn no_entry(&self, seq: Seq) -> Error {
        Error::no_entry(&self.header.session, &self.header.thread, seq)
    }
}

impl Journal for FileJournal {
    fn header(&self) -> &Header {
        &self.header
    }

    fn last(&self) -> Seq {
        self.tail.0
    }

    fn head(&self, seq: Seq) -> Result<Head> {
        let base = self.base_seq();
        if seq == self.tail.0 {
            return Ok(self.tail.1);
        }
        match &self.base {
            _ if seq > self.tail.0 => Err(self.no_entry(seq)),
            _ if seq > base => Ok(self.index.get(u64::from(seq - base - 1))?.0),
            Some(journal) => Journal::head(&**journal, seq),
            None => Ok(Head::START),
        }
    }

    fn line(&self, seq: Seq) -> Result<Vec<u8>> {
        let base = self.base_seq();
        if seq == 0 || seq > self.tail.0 {
            return Err(self.no_entry(seq));
        }
        if let (Some(journal), true) = (&self.base, seq <= base) {
            return journal.line(seq);
        }
        self.read_line(self.index.get(u64::from(seq - base - 1))?.1)
    }

    fn append(&mut self, after: Seq, rows: &[JournalRow]) -> Result<()> {
        self.check_writer()?;
        if after != self.tail.0 {
            return Err(Error::Moved { expected: after, found: self.tail.0 });
        }
        check_rows(after, rows)?;
        self.index.reserve(rows.len())?;
        match rows {
            [] => return Ok(()),
            [row] => self.write(&row.line)?,
            rows => self.write(&rows.iter().map(|row| &row.line[..]).collect::<Vec<_>>().concat())?,
        }
        for row in rows {
            self.take(row.head, row.line.len() as u32)?;
        }
        self.opener.chime.ring(&self.header.session, &self.header.thread, self.tail.0);
        Ok(())
    }

    fn request_file(&self) -> Result<RequestFile> {
        if self.lease.is_none() {
            return Err(Error::ReadOnly);
        }
        RequestFile::at(self.folder.request())
    }

    fn settle(&mut self, view: &View) -> Result<()> {
        if self.lease.is_none() {
            return Ok(());
        }
        derived::settle(self, view)
    }

    fn rewrite(&mut self, change: &mut dyn FnMut(Seq, &str) -> Option<Vec<u8>>) -> Result<u64> {
        self.write_again(&self.header.clone(), change)
    }

    fn relabel(&mut self, label: Option<&str>) -> Result<()> {
        let header = Header { label: label.map(str::to_owned), ..self.header.clone() };
        self.write_again(&header, &mut |_, _| None).map(|_| ())
    }

    fn above(&self, thread: &ThreadId) -> Result<Box<dyn Journal>> {
        Ok(Box::new(self.opener.open(&self.header.session, thread, OpenMode::Read)?))
    }

    fn notes(&self) -> &[JournalRepair] {
        &self.notes
    }
}

impl FileJournal {
    /// Replaces the journal by one with this header and changed lines; gives the number of lines changed.
    fn write_again(
        &mut self,
        header: &Header,
        change: &mut dyn FnMut(Seq, &str) -> Option<Vec<u8>>,
    ) -> Result<u64> {
        self.check_writer()?;
        let path = self.folder.journal();
        let temp = self.folder.unfinished_journal();
        let (changed, first) = match self.write_changed(&temp, header, change) {
            Ok((changed, Some(first))) => (changed, first),
            Ok((0, None)) if *header != self.header => (0, self.base_seq() + 1),
            unchanged => {
                let _ = std::fs::remove_file(&temp);
                return unchanged.map(|(changed, _)| changed);
            }
        };
        // The index goes first, and durably: without one, whatever journal is there is read anew. It is removed, not
        // emptied, because readers of the old journal go on with it.
        folders::remove(&self.folder.index())?;
        folders::sync_folder(self.folder.path())?;
        std::fs::rename(&temp, &path).tried("replace", &path)?;
        self.poisoned = true; // Until it is open again.
        folders::sync_folder(self.folder.path())?;
        derived::forget(self, first)?;
        if let Some(ticket) = self.lease.take() {
            let (folder, base) = (self.folder.clone(), self.base.take());
            let (work, notes) = (self.work, std::mem::take(&mut self.notes));
            let open = Self::open(&self.opener.silent(), folder, base, JournalAccess::Write(ticket))?;
            *self = Self { work, notes, opener: self.opener.clone(), ..open };
        }
        Ok(changed)
    }

    /// Writes the journal as it is to be; gives the number of lines changed, and the first of them.
    fn write_changed(
        &self,
        temp: &std::path::Path,
        header: &Header,
        change: &mut dyn FnMut(Seq, &str) -> Option<Vec<u8>>,
    ) -> Result<(u64, Option<Seq>)> {
        let file = folders::private().truncate(true).open(temp).tried("make", temp)?;
        let mut out = std::io::BufWriter::new(file);
        out.write_all(&header.encode()).tried("write", temp)?;
        let (mut changed, mut first) = (0, None);
        for seq in self.base_seq() + 1..=self.tail.0 {
            let line = self.line(seq)?;
            let new = change(seq, &String::from_utf8_lossy(&line));
            if let Some(new) = &new {
                check_rewritten(&line, new)?;
                changed += 1;
                first = first.or(Some(seq));
            }
            out.write_all(&new.unwrap_or(line)).tried("write", temp)?;
        }
        let file = out.into_inner().map_err(std::io::IntoInnerError::into_error).tried("write", temp)?;
        file.sync_all().tried("sync", temp)?;
        Ok((changed, first))
    }

    fn read_line(&self, extent: Extent) -> Result<Vec<u8>> {
        let path = self.folder.journal();
        let mut line = vec![0; extent.len as usize];
        self.file.read_exact_at(&mut line, extent.offset).tried("read", &path)?;
        if line.last() == Some(&b'\n') {
            return Ok(line);
        }
        let place = self.folder.index().display().to_string();
        Err(Error::Damaged { place, why: format!("no line ends at byte {} of the journal", extent.end()) })
    }
}
