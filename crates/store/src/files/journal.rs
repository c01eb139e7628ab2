//! A thread on disk: `messages.jsonl`, its index, and what is derived for people.
//!
//! Opening reads the header line and the index's marks. When the journal is longer than the index knows, only the
//! rest is read; a last line without an end was never acknowledged and is cut off.

use super::derived;
use super::index::{Extent, Index};
use super::lease::Ticket;
use super::place::{self, Folder};
use crate::error::Tried;
use crate::{Error, Journal, Mode, Note, Result, Row, read_record};
use komado_core::head::Source;
use komado_core::journal::{Record, decode};
use komado_core::thread::Header;
use komado_core::{Head, Seq, View};
use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{FileExt, OpenOptionsExt};

/// Told how far a long read has come: bytes done, bytes in all.
pub type Progress = dyn Fn(u64, u64) + Send + Sync;

/// How many writes and syncs the journal file has taken; counted where they are made.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Work {
    /// Calls to write.
    pub writes: u64,
    /// Calls to sync.
    pub syncs: u64,
}

/// A thread on disk, open.
pub struct FileJournal {
    folder: Folder,
    header: Header,
    base: Option<Box<FileJournal>>,
    file: File,
    index: Index,
    tail: (Seq, Head),
    end: u64,
    lease: Option<Ticket>,
    poisoned: bool,
    notes: Vec<Note>,
    work: Work,
}

impl FileJournal {
    pub(super) fn open(
        folder: Folder,
        base: Option<Box<Self>>,
        lease: Option<Ticket>,
        progress: Option<&Progress>,
    ) -> Result<Self> {
        let path = folder.journal();
        let mode = if lease.is_some() { Mode::Write } else { Mode::Read };
        let file = OpenOptions::new().read(true).append(mode == Mode::Write).open(&path).tried("open", &path)?;
        let (header, first) = read_header(&folder, &file)?;
        let (index, fresh) = open_index(&folder, mode)?;
        let mut journal = Self {
            tail: (header.base_seq(), Head::START),
            end: first,
            folder,
            header,
            base,
            file,
            index,
            lease,
            poisoned: false,
            notes: Vec::new(),
            work: Work::default(),
        };
        if fresh && mode == Mode::Write {
            journal.index.cut(0, first)?;
        }
        journal.catch_up(progress)?;
        Ok(journal)
    }

    /// The bytes of the journal file that count.
    pub fn byte_size(&self) -> u64 {
        self.end
    }

    /// Writes and syncs of the journal file since it was opened.
    pub fn work(&self) -> Work {
        self.work
    }

    fn base_seq(&self) -> Seq {
        self.header.base_seq()
    }

    fn base_head(&self) -> Result<Head> {
        match &self.base {
            Some(base) => Source::head(&**base, self.base_seq()),
            None => Ok(Head::START),
        }
    }

    /// Takes in what the journal has and the index does not know.
    fn catch_up(&mut self, progress: Option<&Progress>) -> Result<()> {
        let size = self.file.metadata().tried("look at", &self.folder.journal())?.len();
        let marks = *self.index.marks();
        if marks.journal_end > size {
            return self.reindex(progress);
        }
        self.end = if marks.count > 0 { marks.journal_end } else { self.end };
        self.tail = match marks.count {
            0 => (self.base_seq(), self.base_head()?),
            n => (self.base_seq() + n as Seq, self.index.get(n - 1)?.0),
        };
        if self.end == size || self.lease.is_none() {
            return Ok(());
        }
        let before = self.tail.0;
        self.scan(size, progress)?;
        if self.tail.0 > before {
            self.notes.push(Note::Reindexed { entries: u64::from(self.tail.0 - before) });
        }
        Ok(())
    }

    /// The index speaks of bytes that are not there: begin again.
    fn reindex(&mut self, progress: Option<&Progress>) -> Result<()> {
        if self.lease.is_none() {
            return Err(Error::Damaged {
                place: self.folder.index().display().to_string(),
                why: "it does not belong to this journal".into(),
            });
        }
        let (_, first) = read_header(&self.folder, &self.file)?;
        self.index.cut(0, first)?;
        self.end = first;
        self.catch_up(progress)
    }

    /// Reads lines from `self.end` on, indexes them, and cuts off a torn last one.
    fn scan(&mut self, size: u64, progress: Option<&Progress>) -> Result<()> {
        let path = self.folder.journal();
        let mut view = View::fold(self, self.tail.0)?;
        let mut file = File::open(&path).tried("open", &path)?;
        file.seek(SeekFrom::Start(self.end)).tried("read", &path)?;
        let mut reader = BufReader::with_capacity(1 << 16, file);
        let mut line = Vec::new();
        loop {
            line.clear();
            let read = reader.read_until(b'\n', &mut line).tried("read", &path)?;
            if read == 0 {
                return Ok(());
            }
            let whole = line.last() == Some(&b'\n');
            let record = if whole { self.parse(&line) } else { Err("it has no end".into()) };
            let record = match record {
                Ok(record) => record,
                Err(why) if self.end + read as u64 >= size => return self.cut_torn(size, whole, why),
                Err(why) => return Err(self.damaged(why)),
            };
            let head = view.head_of(&record, self)?;
            self.index.reserve(1)?;
            self.take(head, read as u32)?;
            view.apply(&record, self)?;
            if let Some(progress) = progress {
                progress(self.end, size);
            }
        }
    }

    fn parse(&self, line: &[u8]) -> std::result::Result<Record, String> {
        let text = std::str::from_utf8(line).map_err(|e| e.to_string())?;
        let record = decode(text).map_err(|e| e.to_string())?;
        if record.seq == self.tail.0 + 1 {
            return Ok(record);
        }
        Err(format!("it has seq {}, expected {}", record.seq, self.tail.0 + 1))
    }

    fn damaged(&self, why: String) -> Error {
        let line = self.tail.0 - self.base_seq() + 2;
        Error::Damaged {
            place: format!("{} line {line} (byte {})", self.folder.journal().display(), self.end),
            why,
        }
    }

    /// A last line that does not parse was never acknowledged, unless it is whole and only from a newer version.
    fn cut_torn(&mut self, size: u64, whole: bool, why: String) -> Result<()> {
        if whole && why.contains("newer version") {
            return Err(self.damaged(why));
        }
        let path = self.folder.journal();
        self.file.set_len(self.end).tried("cut", &path)?;
        self.file.sync_data().tried("sync", &path)?;
        self.notes.push(Note::Torn { bytes: size - self.end });
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
        let written = (&self.file).write_all(bytes);
        let done = written.and_then(|()| {
            self.work.syncs += 1;
            self.file.sync_data()
        });
        let Err(error) = done else { return Ok(()) };
        self.poisoned = self.file.set_len(self.end).and_then(|()| self.file.sync_data()).is_err();
        Err(error).tried("append to", &path)
    }

    pub(super) fn folder(&self) -> &Folder {
        &self.folder
    }

    pub(super) fn index_mut(&mut self) -> &mut Index {
        &mut self.index
    }

    pub(super) fn index(&self) -> &Index {
        &self.index
    }
}

fn read_header(folder: &Folder, file: &File) -> Result<(Header, u64)> {
    let path = folder.journal();
    let mut line = Vec::new();
    let mut reader = BufReader::with_capacity(512, file.try_clone().tried("open", &path)?);
    reader.seek(SeekFrom::Start(0)).tried("read", &path)?;
    reader.by_ref().take(1 << 16).read_until(b'\n', &mut line).tried("read", &path)?;
    let header = Header::decode(&String::from_utf8_lossy(&line));
    Ok((header.map_err(|source| Error::Header { path, source })?, line.len() as u64))
}

fn open_index(folder: &Folder, mode: Mode) -> Result<(Index, bool)> {
    let path = folder.index();
    match mode {
        Mode::Write | Mode::Amend => Index::open_to_write(&path).map(|(index, found)| (index, !found)),
        Mode::Read => match Index::open(&path)? {
            Some(index) => Ok((index, false)),
            None => Err(Error::Damaged {
                place: path.display().to_string(),
                why: "it is missing or out of date".into(),
            }),
        },
    }
}

/// True when a reader can trust the index: it covers the journal to its end.
pub(super) fn is_settled(folder: &Folder) -> Result<bool> {
    let path = folder.journal();
    let size = std::fs::metadata(&path).tried("look at", &path)?.len();
    Ok(match Index::open(&folder.index())? {
        Some(index) => index.marks().journal_end == size,
        None => false,
    })
}

impl Source for FileJournal {
    type Error = Error;

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
            Some(journal) => Source::head(&**journal, seq),
            None => Ok(Head::START),
        }
    }

    fn record(&self, seq: Seq) -> Result<Record> {
        read_record(self, seq)
    }
}

impl FileJournal {
    fn no_entry(&self, seq: Seq) -> Error {
        Error::Damaged {
            place: format!("{}/{}", self.header.session, self.header.thread),
            why: format!("it has no entry @{seq}"),
        }
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
        Source::head(self, seq)
    }

    fn line(&self, seq: Seq) -> Result<Vec<u8>> {
        let base = self.base_seq();
        if seq == 0 || seq > self.tail.0 {
            return Err(self.no_entry(seq));
        }
        if let (Some(journal), true) = (&self.base, seq <= base) {
            return journal.line(seq);
        }
        let (_, extent) = self.index.get(u64::from(seq - base - 1))?;
        let mut line = vec![0; extent.len as usize];
        self.file.read_exact_at(&mut line, extent.offset).tried("read", &self.folder.journal())?;
        Ok(line)
    }

    fn append(&mut self, after: Seq, rows: &[Row]) -> Result<()> {
        if self.lease.is_none() {
            return Err(Error::ReadOnly);
        }
        if self.poisoned {
            return Err(Error::Poisoned);
        }
        if after != self.tail.0 {
            return Err(Error::Moved { expected: after, found: self.tail.0 });
        }
        self.index.reserve(rows.len())?;
        match rows {
            [] => return Ok(()),
            [row] => self.write(&row.line)?,
            rows => self.write(&rows.iter().flat_map(|row| row.line.iter().copied()).collect::<Vec<u8>>())?,
        }
        for row in rows {
            self.take(row.head, row.line.len() as u32)?;
        }
        Ok(())
    }

    fn settle(&mut self, view: &View) -> Result<()> {
        if self.lease.is_none() {
            return Ok(());
        }
        derived::settle(self, view)
    }

    fn rewrite(&mut self, change: &mut dyn FnMut(Seq, &str) -> Option<Vec<u8>>) -> Result<u64> {
        if self.lease.is_none() {
            return Err(Error::ReadOnly);
        }
        let path = self.folder.journal();
        let temp = self.folder.path().join("messages.jsonl.new");
        let changed = self.write_changed(&temp, change)?;
        if changed == 0 {
            let _ = std::fs::remove_file(&temp);
            return Ok(0);
        }
        // The index goes first: without one, whatever journal is there is read anew.
        self.index.cut(0, 0)?;
        self.index.close();
        std::fs::rename(&temp, &path).tried("replace", &path)?;
        place::sync_folder(self.folder.path())?;
        let (folder, base, lease) = (self.folder.clone(), self.base.take(), self.lease.take());
        *self = Self::open(folder, base, lease, None)?;
        Ok(changed)
    }

    fn notes(&self) -> &[Note] {
        &self.notes
    }
}

impl FileJournal {
    fn write_changed(
        &self,
        temp: &std::path::Path,
        change: &mut dyn FnMut(Seq, &str) -> Option<Vec<u8>>,
    ) -> Result<u64> {
        let mut options = OpenOptions::new();
        let file = options.write(true).create(true).truncate(true).mode(0o600).open(temp).tried("make", temp)?;
        let mut out = std::io::BufWriter::new(file);
        out.write_all(&self.header.encode()).tried("write", temp)?;
        let mut changed = 0;
        for seq in self.base_seq() + 1..=self.tail.0 {
            let line = self.line(seq)?;
            let new = change(seq, &String::from_utf8_lossy(&line));
            changed += u64::from(new.is_some());
            out.write_all(&new.unwrap_or(line)).tried("write", temp)?;
        }
        let file = out.into_inner().map_err(std::io::IntoInnerError::into_error).tried("write", temp)?;
        file.sync_all().tried("sync", temp)?;
        Ok(changed)
    }
}
