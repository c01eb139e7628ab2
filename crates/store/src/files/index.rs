//! The table of heads on disk: derived, fixed width, never read whole.
//!
//! An append must cost one write and one sync, both for the journal, so the index is written through a mapping of its
//! last stretch: storing a record is a copy to memory. The kernel writes it back in its own time, and it survives a
//! killed process. It may not survive a power cut, so it notes the boot it was written in; after another boot an index
//! that was not closed is made again from the journal. Space is reserved before it is mapped, so a full disk is an
//! error at a known place and never a signal. A process may be killed between any two stores, so their order matters:
//! a record before the count that covers it, and a file's size last among what is noted of it.
//!
//! Who may not write keeps the records that the file lacks in memory.

use crate::error::IoContext;
use crate::{Error, Result};
use komado_core::{Head, Kind, Seq, Span};
use memmap2::{MmapMut, MmapOptions};
use std::cell::RefCell;
use std::fs::{File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{Ordering, compiler_fence};

const MAGIC: &[u8; 8] = b"komadoix";
const VERSION: u32 = 1;
/// The first page holds the marks, so that records never share a page with them.
const FIRST: u64 = 4096;
const RECORD: usize = 80;
/// How much is reserved and mapped at a time.
const STRETCH: u64 = 1 << 20;
/// In use, or its writer was killed.
pub(super) const OPEN: u64 = 0;
/// Closed in order, and durable.
const CLOSED: u64 = 1;
/// Being brought forward: says less than the journal, so readers pass it over.
pub(super) const MAKING: u64 = 2;
/// Records read at a time when looking back.
const BLOCK: usize = 64;
/// How close to the last one a record must be for its neighbours to be worth reading. The fold goes from operation to
/// operation, far apart, and needs nothing between them.
const NEAR: u64 = 8;

/// What the first page says: how far everything derived has come. Field order is the order on disk.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct IndexMarks {
    /// Own records.
    pub(super) count: u64,
    /// End of the last indexed line in the journal.
    pub(super) journal_end: u64,
    /// [`OPEN`], [`CLOSED`] or [`MAKING`].
    pub(super) clean: u64,
    /// Digest of the boot that wrote it.
    pub(super) boot: u64,
    /// `current.jsonl`: last entry in it, last operation it obeys, its bytes.
    pub(super) current: [u64; 3],
    /// `tools.jsonl`: last entry looked at, rows, bytes.
    pub(super) tools: [u64; 3],
    /// `summaries.jsonl`: last entry looked at, rows, bytes.
    pub(super) summaries: [u64; 3],
}

impl IndexMarks {
    const WORDS: usize = 13;

    fn words(&self) -> [u64; Self::WORDS] {
        let ([a, b, c], [d, e, f], [g, h, i]) = (self.current, self.tools, self.summaries);
        [self.count, self.journal_end, self.clean, self.boot, a, b, c, d, e, f, g, h, i]
    }

    fn from_words(w: [u64; Self::WORDS]) -> Self {
        Self {
            count: w[0],
            journal_end: w[1],
            clean: w[2],
            boot: w[3],
            current: [w[4], w[5], w[6]],
            tools: [w[7], w[8], w[9]],
            summaries: [w[10], w[11], w[12]],
        }
    }
}

/// Where a line lies in the journal.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Extent {
    pub(super) offset: u64,
    pub(super) len: u32,
}

impl Extent {
    /// Where the line after it begins.
    pub(super) const fn end(self) -> u64 {
        self.offset.saturating_add(self.len as u64)
    }
}

/// The index of one journal.
pub(super) struct HeadIndex {
    path: PathBuf,
    file: Option<File>,
    marks: IndexMarks,
    writer: Option<Writer>,
    block: RefCell<Block>,
    /// Records in the file; all of them for a writer.
    stored: u64,
    /// Records after those, for a reader who found the file behind its journal.
    extra: Vec<[u8; RECORD]>,
}

struct Writer {
    page: MmapMut,
    stretch: MmapMut,
    /// Where the mapped stretch begins in the file.
    start: u64,
    reserved: u64,
}

#[derive(Default)]
struct Block {
    first: u64,
    records: u64,
    bytes: Vec<u8>,
    /// The record last asked for.
    asked: u64,
}

/// Where record `n` lies in the file.
const fn place(n: u64) -> u64 {
    FIRST + n * RECORD as u64
}

impl HeadIndex {
    fn new(path: &Path, file: Option<File>, marks: IndexMarks) -> Self {
        let block = RefCell::default();
        Self {
            path: path.to_owned(),
            file,
            stored: marks.count,
            marks,
            writer: None,
            block,
            extra: Vec::new(),
        }
    }

    /// The index of a journal that has a header of `journal_end` bytes and nothing else, as bytes for a new file.
    pub(super) fn seed(journal_end: u64) -> Vec<u8> {
        let marks = IndexMarks { journal_end, clean: CLOSED, ..IndexMarks::default() };
        let mut page = vec![0u8; FIRST as usize];
        put_name(&mut page);
        for (slot, word) in page[16..].chunks_exact_mut(8).zip(marks.words()) {
            slot.copy_from_slice(&word.to_le_bytes());
        }
        page
    }

    /// An index in memory alone, for a reader who found none that can be used.
    pub(super) fn in_memory(path: &Path, journal_end: u64) -> Self {
        Self::new(path, None, IndexMarks { journal_end, ..IndexMarks::default() })
    }

    /// Opens an index to look; `None` when there is none that can be used.
    pub(super) fn open(path: &Path) -> Result<Option<Self>> {
        let Some(file) = File::open(path).tried_if_there("open", path)? else { return Ok(None) };
        Ok(read_marks(path, &file)?.map(|marks| Self::new(path, Some(file), marks)))
    }

    /// Opens an index to append to; `None` when there is none that can be used.
    pub(super) fn open_to_write(path: &Path) -> Result<Option<Self>> {
        let file = OpenOptions::new().read(true).write(true).open(path).tried_if_there("open", path)?;
        let Some(file) = file else { return Ok(None) };
        let Some(marks) = read_marks(path, &file)? else { return Ok(None) };
        let mut index = Self::new(path, Some(file), IndexMarks { boot: boot(), clean: OPEN, ..marks });
        index.map()?;
        Ok(Some(index))
    }

    /// Begins an index. One that is there is left to the readers that have it open.
    pub(super) fn begin(path: &Path, journal_end: u64) -> Result<Self> {
        super::folders::remove(path)?;
        let file = super::private().read(true).create_new(true).open(path).tried("make", path)?;
        let marks = IndexMarks { journal_end, boot: boot(), clean: OPEN, ..IndexMarks::default() };
        let mut index = Self::new(path, Some(file), marks);
        index.map()?;
        Ok(index)
    }

    pub(super) fn marks(&self) -> &IndexMarks {
        &self.marks
    }

    /// Changes the marks and notes them.
    pub(super) fn mark(&mut self, change: impl FnOnce(&mut IndexMarks)) {
        change(&mut self.marks);
        if let Some(writer) = &mut self.writer {
            put_marks(&mut writer.page, &self.marks);
        }
    }

    /// Reserves room for the next `records` records, so that storing them cannot fail.
    pub(super) fn reserve(&mut self, records: usize) -> Result<()> {
        let end = place(self.marks.count + records as u64);
        match &self.writer {
            Some(writer) if end <= writer.start + writer.stretch.len() as u64 => Ok(()),
            Some(_) => self.remap(end),
            None => Ok(()),
        }
    }

    fn map(&mut self) -> Result<()> {
        self.remap(place(self.marks.count) + 1)
    }

    /// Maps the stretch from the next record to `end` and a little more.
    fn remap(&mut self, end: u64) -> Result<()> {
        let Some(file) = &self.file else { return Ok(()) };
        let start = place(self.marks.count) & !(4096 - 1);
        let size = file.metadata().tried("look at", &self.path)?.len();
        let ample = end.max(start + STRETCH).next_multiple_of(4096);
        let least = end.next_multiple_of(4096).max(start + 4096);
        let reserved = match reserve_space(file, size, ample) {
            Ok(()) => ample,
            // Where space is short, what is needed now must do.
            Err(e) if e.kind() == std::io::ErrorKind::StorageFull => {
                reserve_space(file, size, least).tried("reserve space in", &self.path)?;
                least
            }
            Err(e) => return Err(e).tried("reserve space in", &self.path),
        };
        let map = |offset: u64, len: u64| {
            // SAFETY: the file is ours alone while the session's lock is held, it is only ever cut when no mapping
            // is alive, and the mapped range was reserved above, so every page is backed by disk.
            unsafe { MmapOptions::new().offset(offset).len(len as usize).map_mut(file) }
        };
        let mut page = map(0, FIRST).tried("map", &self.path)?;
        let stretch = map(start, reserved - start).tried("map", &self.path)?;
        put_marks(&mut page, &self.marks);
        put_name(&mut page);
        self.writer = Some(Writer { page, stretch, start, reserved });
        Ok(())
    }

    /// Stores the next record. Room must have been reserved.
    pub(super) fn push(&mut self, head: &Head, extent: Extent) -> Result<()> {
        let record = encode(head, extent);
        match &mut self.writer {
            None => self.extra.push(record),
            Some(writer) => {
                let from = (place(self.marks.count) - writer.start) as usize;
                let Some(slot) = writer.stretch.get_mut(from..from + RECORD) else {
                    return Err(Error::Poisoned);
                };
                slot.copy_from_slice(&record);
                self.stored += 1;
            }
        }
        self.marks.count += 1;
        self.marks.journal_end = extent.end();
        if let Some(writer) = &mut self.writer {
            put_count(&mut writer.page, &self.marks);
        }
        Ok(())
    }

    /// The last record; `None` when there is none or it makes no sense.
    pub(super) fn last(&self) -> Option<(Head, Extent)> {
        self.marks.count.checked_sub(1).and_then(|n| self.get(n).ok())
    }

    /// The `n`-th record, counted from 0.
    pub(super) fn get(&self, n: u64) -> Result<(Head, Extent)> {
        if let Some(record) = n.checked_sub(self.stored).and_then(|i| self.extra.get(i as usize)) {
            return decode(record).ok_or_else(|| self.senseless(n));
        }
        let mut block = self.block.borrow_mut();
        let near = block.records > 0 && n.abs_diff(block.asked) <= NEAR;
        if n < block.first || n >= block.first + block.records {
            let (first, most) = if near { (n - n % BLOCK as u64, BLOCK as u64) } else { (n, 1) };
            self.load(&mut block, first, most)?;
        }
        block.asked = n;
        let from = (n - block.first) as usize * RECORD;
        block.bytes.get(from..from + RECORD).and_then(decode).ok_or_else(|| self.senseless(n))
    }

    fn senseless(&self, n: u64) -> Error {
        Error::Damaged { place: self.path.display().to_string(), why: format!("record {n} makes no sense") }
    }

    fn load(&self, block: &mut Block, first: u64, most: u64) -> Result<()> {
        let records = self.stored.saturating_sub(first).min(most);
        block.bytes.resize(records as usize * RECORD, 0);
        (block.first, block.records) = (first, 0);
        if let Some(file) = &self.file {
            file.read_exact_at(&mut block.bytes, place(first)).tried("read", &self.path)?;
            block.records = records;
        }
        Ok(())
    }

    /// Closes in order: to disk, then the note that it is.
    pub(super) fn close(&mut self) {
        let (Some(mut writer), Some(file)) = (self.writer.take(), &self.file) else { return };
        let end = place(self.marks.count);
        if file.sync_data().is_ok() {
            self.marks.clean = CLOSED;
            put_marks(&mut writer.page, &self.marks);
        }
        let cut = writer.reserved > end;
        drop(writer);
        if cut {
            // A longer file than needed is no harm: the marks say how much of it counts.
            let _ = file.set_len(end);
        }
    }
}

impl Drop for HeadIndex {
    fn drop(&mut self) {
        self.close();
    }
}

/// Reads the first page; `None` when it is not one, or speaks of what may not be there.
fn read_marks(path: &Path, file: &File) -> Result<Option<IndexMarks>> {
    let mut page = [0u8; 16 + 8 * IndexMarks::WORDS];
    if file.read_exact_at(&mut page, 0).is_err() || &page[..8] != MAGIC {
        return Ok(None);
    }
    if read_u32(&page, 8) != VERSION || read_u32(&page, 12) as usize != RECORD {
        return Ok(None);
    }
    let mut words = [0u64; IndexMarks::WORDS];
    for (word, bytes) in words.iter_mut().zip(page[16..].chunks_exact(8)) {
        *word = read_u64(bytes);
    }
    let marks = IndexMarks::from_words(words);
    let size = file.metadata().tried("look at", path)?.len();
    let there = marks.count <= u64::from(Seq::MAX) && place(marks.count) <= size;
    let sound = match marks.clean {
        CLOSED => true,
        OPEN => same_boot(marks.boot),
        _ => false,
    };
    Ok((there && sound).then_some(marks))
}

fn put_name(page: &mut [u8]) {
    page[..8].copy_from_slice(MAGIC);
    page[8..12].copy_from_slice(&VERSION.to_le_bytes());
    page[12..16].copy_from_slice(&(RECORD as u32).to_le_bytes());
}

/// Notes the marks so that a process killed in between leaves what is either true or known to be wrong: what is noted
/// of a file is first made to speak of one larger than any.
fn put_marks(page: &mut [u8], marks: &IndexMarks) {
    let words = marks.words();
    for file in [4, 7, 10] {
        put_word(page, file + 2, u64::MAX);
        for (i, word) in words.iter().enumerate().skip(file).take(3) {
            put_word(page, i, *word);
        }
    }
    put_word(page, 2, words[2]);
    put_word(page, 3, words[3]);
    put_count(page, marks);
}

/// The count comes after everything it covers.
fn put_count(page: &mut [u8], marks: &IndexMarks) {
    put_word(page, 1, marks.journal_end);
    put_word(page, 0, marks.count);
}

/// Stores one word after everything that was stored before it.
fn put_word(page: &mut [u8], i: usize, word: u64) {
    compiler_fence(Ordering::SeqCst);
    page[16 + 8 * i..24 + 8 * i].copy_from_slice(&word.to_le_bytes());
    compiler_fence(Ordering::SeqCst);
}

fn reserve_space(file: &File, from: u64, to: u64) -> std::io::Result<()> {
    use rustix::fs::{FallocateFlags, fallocate};
    if to <= from {
        return Ok(());
    }
    match fallocate(file, FallocateFlags::empty(), from, to - from) {
        Ok(()) => Ok(()),
        Err(rustix::io::Errno::OPNOTSUPP | rustix::io::Errno::NOSYS) => {
            let zeros = [0u8; 4096];
            let mut at = from;
            while at < to {
                let n = (to - at).min(4096);
                file.write_all_at(&zeros[..n as usize], at)?;
                at += n;
            }
            Ok(())
        }
        Err(e) => Err(e.into()),
    }
}

/// False also where the system does not say which boot this is.
fn same_boot(noted: u64) -> bool {
    noted == boot() && noted != 0
}

/// Tells one boot of the machine from another; 0 where the system does not say.
fn boot() -> u64 {
    use std::sync::OnceLock;
    static BOOT: OnceLock<u64> = OnceLock::new();
    *BOOT.get_or_init(|| match std::fs::read("/proc/sys/kernel/random/boot_id") {
        Ok(id) => blake3::hash(&id).as_bytes().first_chunk().map_or(0, |b| u64::from_le_bytes(*b)),
        Err(_) => 0,
    })
}

fn read_u64(bytes: &[u8]) -> u64 {
    bytes.first_chunk().map_or(0, |b| u64::from_le_bytes(*b))
}

fn read_u32(bytes: &[u8], at: usize) -> u32 {
    bytes[at..].first_chunk().map_or(0, |b| u32::from_le_bytes(*b))
}

/// A head as bytes, for stores that keep their lines elsewhere.
#[cfg(any(feature = "postgres", feature = "redis"))]
pub(crate) fn head_bytes(head: &Head) -> [u8; RECORD] {
    encode(head, Extent { offset: 0, len: 0 })
}

/// The head that [`head_bytes`] wrote; `None` when it did not.
#[cfg(any(feature = "postgres", feature = "redis"))]
pub(crate) fn read_head(bytes: &[u8]) -> Option<Head> {
    decode(bytes).map(|(head, _)| head)
}

fn encode(head: &Head, extent: Extent) -> [u8; RECORD] {
    let mut out = [0u8; RECORD];
    out[..8].copy_from_slice(&extent.offset.to_le_bytes());
    for (i, sum) in head.sums.iter().enumerate() {
        out[8 + 8 * i..16 + 8 * i].copy_from_slice(&sum.to_le_bytes());
    }
    let Head { tokens, items, unit, prev_op, skip, operand, .. } = *head;
    let words = [extent.len, tokens, items, unit, prev_op, operand.from, operand.to, skip];
    for (i, word) in words.iter().enumerate() {
        out[40 + 4 * i..44 + 4 * i].copy_from_slice(&word.to_le_bytes());
    }
    out[72] = head.kind as u8;
    out[73] = u8::from(head.plain);
    out[74] = 0x6b; // Tells a record from a page of zeros.
    out[RECORD - 1] = seal(&out);
    out
}

/// One byte over all others, so that most garbage is known as such.
fn seal(record: &[u8]) -> u8 {
    let words = record[..RECORD - 8].chunks_exact(8).map(read_u64);
    let last = read_u64(&record[RECORD - 8..]) & (u64::MAX >> 8);
    let mixed = words.chain([last]).fold(0u64, |sum, word| sum.rotate_left(7) ^ word);
    mixed.to_le_bytes().into_iter().fold(0, |sum, byte| sum ^ byte)
}

fn decode(bytes: &[u8]) -> Option<(Head, Extent)> {
    if bytes.len() != RECORD || bytes[74] != 0x6b || bytes[RECORD - 1] != seal(bytes) {
        return None;
    }
    let word = |i: usize| read_u32(bytes, 40 + 4 * i);
    let mut sums = [0u64; 4];
    for (i, sum) in sums.iter_mut().enumerate() {
        *sum = read_u64(&bytes[8 + 8 * i..]);
    }
    let head = Head {
        kind: Kind::from_u8(bytes[72])?,
        plain: bytes[73] == 1,
        tokens: word(1),
        sums,
        items: word(2),
        unit: word(3) as Seq,
        prev_op: word(4) as Seq,
        skip: word(7) as Seq,
        operand: Span::new(word(5), word(6)),
    };
    Some((head, Extent { offset: read_u64(bytes), len: word(0) }))
}
