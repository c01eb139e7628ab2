//! A session as one stream of lines, to be kept, moved or looked at.
//!
//! Journal lines go out as they are, byte for byte, so that importing and exporting again gives the same bytes. Blobs
//! follow in pieces, and the last line is a digest of everything before it.

use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::thread::Staged;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use komado_core::head::{EntrySource, Kind};
use komado_core::journal::Record;
use komado_core::picture::PictureRule;
use komado_core::session::is_address;
use komado_core::session::{Counters, Meta, Session};
use komado_core::thread::{Header, branch};
use komado_core::{Meter, SessionId, ThreadId, View, journal};
use komado_store::{Journal, OpenMode, ReadSeek, SessionChange, ToldWords, TranscriptPlace, spot_of};
use serde::{Deserialize, Serialize};
use std::io;
use std::io::{BufRead, Read, Write};

/// Version of the export format.
pub const VERSION: u32 = 1;
/// Bytes of a blob in one line.
const PIECE: usize = 48 * 1024;

/// First line.
#[derive(Serialize, Deserialize)]
pub(crate) struct ExportOpening {
    pub(crate) komado_export: u32,
    pub(crate) session: Meta,
}

/// Begins a thread: so many journal lines follow, its header first.
#[derive(Serialize, Deserialize)]
pub(crate) struct ThreadLine {
    pub(crate) thread: String,
    pub(crate) lines: u64,
}

/// A piece of a blob.
#[derive(Serialize, Deserialize)]
pub(crate) struct BlobLine {
    pub(crate) blob: String,
    pub(crate) base64: String,
}

/// Last line.
#[derive(Serialize, Deserialize)]
pub(crate) struct ExportEnding {
    pub(crate) end: String,
}

/// Writes and digests.
struct Digested<'w> {
    out: &'w mut dyn Write,
    digest: blake3::Hasher,
}

impl Digested<'_> {
    fn line(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.digest.update(bytes);
        self.out.write_all(bytes)
    }

    fn json<T: Serialize>(&mut self, value: &T) -> io::Result<()> {
        let mut line = serde_json::to_vec(value)?;
        line.push(b'\n');
        self.line(&line)
    }
}

impl Engine {
    /// Writes a session to `out`; `each` is told the entries written so far.
    pub fn export(&self, id: &SessionId, out: &mut dyn Write, mut each: impl FnMut(u64)) -> Result<()> {
        let mut out = Digested { out, digest: blake3::Hasher::new() };
        let session = self.session(id)?.meta;
        out.json(&ExportOpening { komado_export: VERSION, session })?;
        let mut written = 0;
        for header in self.store().threads(id)? {
            let journal = self.store().open(id, &header.thread, OpenMode::Read)?;
            let own = header.base_seq() + 1..=journal.last();
            let lines = 1 + own.size_hint().0 as u64;
            out.json(&ThreadLine { thread: header.thread.to_string(), lines })?;
            out.line(&header.encode())?;
            for seq in own {
                out.line(&journal.line(seq)?)?;
                written += 1;
                each(written);
            }
        }
        let mut blobs: Vec<String> = self.named_blobs(id)?.into_iter().collect();
        blobs.sort();
        for blob in blobs {
            if let Some(bytes) = self.blob(id, &blob)? {
                write_blob(&blob, bytes, &mut out)?;
            }
        }
        let end = out.digest.finalize().to_hex().to_string();
        Ok(out.json(&ExportEnding { end })?)
    }
}

/// A blob has at least one line, and no line but the first is empty.
fn write_blob(blob: &str, mut bytes: Box<dyn ReadSeek>, out: &mut Digested<'_>) -> io::Result<()> {
    let mut piece = Vec::with_capacity(PIECE);
    let mut first = true;
    while bytes.by_ref().take(PIECE as u64).read_to_end(&mut piece)? > 0 || first {
        out.json(&BlobLine { blob: blob.to_owned(), base64: STANDARD.encode(&piece) })?;
        first = false;
        piece.clear();
    }
    Ok(())
}

// The way back in: a session from its export, whole or not at all.
//
// What is wrong with an export takes the session out again. An import that was killed leaves what it had brought in, and
// the session's row says so until the same import, run again, has brought the rest.
//
// An export holds journals alone: the tables of spawned threads are filled from them. Whether a parent's anchor says what
// its child's journal says is not asked here; the next one to open the parent brings that in line.

/// Bytes of journal lines written at once.
const BATCH: usize = 1 << 20;

/// What the row of a session says while not all of it is there.
const UNFINISHED: &str =
    "its import is not finished; unless another process is importing it, run the same `komado import` again";

/// Why a session is not whole, and what to do: where its import has not come to its end.
pub fn unfinished(session: &Session) -> Option<&str> {
    session.error_message.as_deref().filter(|why| !session.status.is_ended() && *why == UNFINISHED)
}

/// Lines, counted and digested, and what came of them so far.
struct Lines<'r> {
    from: &'r mut dyn BufRead,
    digest: blake3::Hasher,
    number: u64,
    line: Vec<u8>,
    /// What the entries count for.
    counters: Counters,
    /// The moments that entries name, at which a client's transcript may go on; as yet unknown to the store.
    places: Vec<TranscriptPlace>,
    /// The blob whose pieces are being read.
    blob: Option<(String, tempfile::SpooledTempFile)>,
    /// Is told the lines read.
    each: &'r mut dyn FnMut(u64),
}

impl Lines<'_> {
    fn bad(&self, why: impl Into<String>) -> Error {
        Error::BadExport { line: self.number, why: why.into() }
    }

    /// The next line; not yet digested.
    fn next(&mut self) -> Result<&str> {
        self.number += 1;
        self.line.clear();
        self.from.read_until(b'\n', &mut self.line)?;
        if self.line.last() != Some(&b'\n') {
            return Err(self.bad("the export ends here, before its last line"));
        }
        let bad = Error::BadExport { line: self.number, why: "not UTF-8".into() };
        std::str::from_utf8(&self.line).map_err(|_| bad)
    }

    fn keep(&mut self) {
        self.digest.update(&self.line);
    }

    /// Takes in the moment that an entry of a thread names.
    fn take_place(&mut self, header: &Header, record: &Record) {
        if let Some(name) = spot_of(&record.entry) {
            let (name, session, thread) = (name.to_owned(), header.session.clone(), header.thread.clone());
            self.places.push(TranscriptPlace { name, session, thread, seq: record.seq });
        }
    }

    /// True when nothing follows.
    fn at_end(&mut self) -> Result<bool> {
        Ok(self.from.fill_buf()?.is_empty())
    }
}

impl Engine {
    /// Reads an export; `name` gives the session another id. Gives the session's id. `each` is told the lines read.
    pub fn import(
        &self,
        from: &mut dyn BufRead,
        name: Option<SessionId>,
        mut each: impl FnMut(u64),
    ) -> Result<SessionId> {
        let (digest, line, counters) = (blake3::Hasher::new(), Vec::new(), Counters::default());
        let places = Vec::new();
        let mut lines =
            Lines { from, digest, number: 0, line, counters, places, blob: None, each: &mut each };
        let mut meta = opened(&mut lines)?;
        if let Some(name) = &name {
            meta.uuid = name.to_string();
        }
        let id = SessionId::new(meta.uuid.as_str())?;
        let known = self.session(&id).ok();
        let begun = known.filter(|session| session.meta == meta && !session.status.is_ended());
        let Some(begun) = begun else {
            self.create(&meta)?;
            let noted = self.note_import(&meta, &id, meta.created_at.clone(), Some(UNFINISHED));
            if let Err(error) = noted.and_then(|()| self.bring(&meta, &id, &mut lines)) {
                self.store().remove(&id)?;
                return Err(error);
            }
            return Ok(id);
        };
        match self.bring(&meta, &id, &mut lines)? {
            0 if unfinished(&begun).is_none() => Err(komado_store::Error::SessionExists(id).into()),
            _ => Ok(id),
        }
    }

    /// Takes in what is not there yet; then the session is whole. Gives the number of entries that were new.
    fn bring(&self, meta: &Meta, id: &SessionId, lines: &mut Lines<'_>) -> Result<u64> {
        let new = self.fill(id, lines)?;
        if let Some(name) = meta.config.alias.clone() {
            let (session, thread) = (id.clone(), ThreadId::root());
            lines.places.push(TranscriptPlace { name, session, thread, seq: 0 });
            self.note_places(lines)?;
        }
        self.finish_import(meta, id)?;
        Ok(new)
    }

    /// Writes into the row of a session whether all of it is there; its state stays the one it was made with.
    fn note_import(&self, meta: &Meta, id: &SessionId, at: String, why: Option<&str>) -> Result<()> {
        let to = Session::new(meta).status;
        self.store().change(id, &SessionChange::State { to, at, why: why.map(str::to_owned) })?;
        Ok(())
    }

    /// The last step: from here on the session is whole.
    fn finish_import(&self, meta: &Meta, id: &SessionId) -> Result<()> {
        let root = self.open(id, &ThreadId::root(), OpenMode::Read)?;
        if let Some(close) = root.view().closed().map(|at| root.record(at)).transpose()? {
            self.follow(id, &close)?;
            return Ok(());
        }
        match unfinished(&self.session(id)?) {
            Some(_) => self.note_import(meta, id, self.now(), None),
            None => Ok(()),
        }
    }

    /// Takes in everything that is not there yet; gives the number of entries that were not.
    fn fill(&self, id: &SessionId, lines: &mut Lines<'_>) -> Result<u64> {
        let mut new = 0;
        loop {
            let text = lines.next()?.to_owned();
            if let Ok(thread) = serde_json::from_str::<ThreadLine>(&text) {
                lines.keep();
                new += self.fill_thread(id, &thread, lines)?;
            } else if let Ok(piece) = serde_json::from_str::<BlobLine>(&text) {
                lines.keep();
                self.take_piece(id, piece, lines)?;
            } else if let Ok(end) = serde_json::from_str::<ExportEnding>(&text) {
                if end.end != lines.digest.finalize().to_hex().as_str() {
                    return Err(lines.bad("the digest does not fit: the export was changed or cut"));
                }
                if !lines.at_end()? {
                    return Err(lines.bad("something follows the last line"));
                }
                break;
            } else {
                return Err(lines.bad("neither a thread, nor a blob, nor the end"));
            }
        }
        self.finish_blob(id, lines)?;
        // Views for people show pictures, so they can be made only now.
        for header in self.store().threads(id)? {
            self.open(id, &header.thread, OpenMode::Write)?.settle()?;
        }
        self.enroll(id)?;
        let by = lines.counters.since(&self.session(id)?.counters);
        self.store().change(id, &SessionChange::Count { by, at: self.now() })?;
        Ok(new)
    }

    fn fill_thread(&self, id: &SessionId, thread: &ThreadLine, lines: &mut Lines<'_>) -> Result<u64> {
        let text = lines.next()?.to_owned();
        let mut header = Header::decode(&text).map_err(|e| lines.bad(e.to_string()))?;
        if header.thread.as_str() != thread.thread {
            return Err(lines.bad("the header names another thread"));
        }
        lines.keep();
        header.session = id.clone();
        let known = self.store().threads(id)?;
        if !known.iter().any(|other| other.thread == header.thread) {
            self.store().spawn(&header)?;
        }
        let mut journal = self.store().open(id, &header.thread, OpenMode::Write)?;
        let mut view = View::fold(&*journal, journal.last())?;
        let mut left = pass_known(id, &*journal, thread.lines.saturating_sub(1), lines)?;
        let new = left;
        while left > 0 {
            left -= fill_batch(&mut *journal, &mut view, left, lines)?;
            self.note_places(lines)?;
            (lines.each)(lines.number);
        }
        self.note_places(lines)?;
        Ok(new)
    }

    /// Lets the gateway find the session by what its entries name. A conversation that is here already goes on where it is, not in
    /// a copy of it.
    fn note_places(&self, lines: &mut Lines<'_>) -> Result<()> {
        let mut new = Vec::new();
        for place in std::mem::take(&mut lines.places) {
            if self.store().spots(&place.name)?.is_empty() {
                new.push(place);
            }
        }
        Ok(self.store().note(&new)?)
    }

    fn take_piece(&self, id: &SessionId, piece: BlobLine, lines: &mut Lines<'_>) -> Result<()> {
        if lines.blob.as_ref().is_some_and(|(name, _)| *name != piece.blob) {
            self.finish_blob(id, lines)?;
        }
        let bytes = STANDARD.decode(&piece.base64).map_err(|e| lines.bad(format!("a blob's base64: {e}")))?;
        let (_, file) =
            lines.blob.get_or_insert_with(|| (piece.blob, tempfile::SpooledTempFile::new(1 << 20)));
        Ok(std::io::Write::write_all(file, &bytes)?)
    }

    fn finish_blob(&self, id: &SessionId, lines: &mut Lines<'_>) -> Result<()> {
        let Some((name, mut file)) = lines.blob.take() else { return Ok(()) };
        std::io::Seek::rewind(&mut file)?;
        let kept = self.store().put_blob(id, &mut file)?;
        if kept.id == name { Ok(()) } else { Err(lines.bad(format!("blob {name} does not fit its name"))) }
    }
}

/// What the session of an export was made with.
fn opened(lines: &mut Lines<'_>) -> Result<Meta> {
    let first = lines.next()?.to_owned();
    let opening: ExportOpening =
        serde_json::from_str(&first).map_err(|e| lines.bad(format!("this is not a komado export ({e})")))?;
    if opening.komado_export > VERSION {
        return Err(lines.bad(format!("version {} is newer than this komado", opening.komado_export)));
    }
    lines.keep();
    let mut meta = opening.session;
    // Where questions go is never taken from a file that came from elsewhere. A name is a name in the settings of this machine.
    let provider = &mut meta.config.llm_provider;
    if provider.as_deref().is_some_and(is_address) {
        *provider = Some(ELSEWHERE.to_owned());
    }
    Ok(meta)
}

/// What the provider of an imported session is called that had only an address; asking needs it to be chosen again.
const ELSEWHERE: &str = "custom";

/// Passes over the lines that an import which was cut short has brought in already; gives the number of those left.
/// Another session of the same name is left alone.
fn pass_known(id: &SessionId, journal: &dyn Journal, mut left: u64, lines: &mut Lines<'_>) -> Result<u64> {
    for seq in journal.header().base_seq() + 1..=journal.last() {
        let same = left > 0 && journal.line(seq)? == lines.next()?.as_bytes();
        if !same {
            return Err(komado_store::Error::SessionExists(id.clone()).into());
        }
        lines.keep();
        let record = EntrySource::record(journal, seq)?;
        lines.counters += Counters::of(&record.entry);
        lines.take_place(journal.header(), &record);
        left -= 1;
    }
    Ok(left)
}

/// Reads up to `left` journal lines and appends them as one.
fn fill_batch(journal: &mut dyn Journal, view: &mut View, left: u64, lines: &mut Lines<'_>) -> Result<u64> {
    let mut staged = Staged::new(&*journal, view.clone(), Meter::O200k, PictureRule::default());
    let mut taken = 0;
    while taken < left && staged.bytes() < BATCH && taken < 4096 {
        let text = lines.next()?.to_owned();
        let record = journal::decode(&text).map_err(|e| lines.bad(e.to_string()))?;
        if record.seq != staged.last() + 1 {
            return Err(lines.bad(format!("entry {} where {} is due", record.seq, staged.last() + 1)));
        }
        lines.keep();
        lines.take_place(journal.header(), &record);
        staged.push_line(record, text.into_bytes())?.map_err(|refusal| lines.bad(refusal.to_string()))?;
        taken += 1;
    }
    let work = staged.finish();
    journal.append(work.after, &work.rows)?;
    *view = work.view;
    lines.counters += work.counters;
    Ok(taken)
}

impl Engine {
    /// Puts a session's spawned threads, and the words that wait for them, into the tables.
    fn enroll(&self, id: &SessionId) -> Result<()> {
        let mut words = ToldWords::default();
        for header in self.store().threads(id)? {
            let journal = self.store().open(id, &header.thread, OpenMode::Read)?;
            let row = branch(&header, &*journal)?;
            if row.parent.is_some() {
                self.store().put_branch(&row)?;
            }
            gather(&mut words, &*journal)?;
        }
        words.waiting().try_for_each(|(to, mail)| Ok(self.store().post(id, to, mail)?))
    }
}

/// Takes in what the own entries of a thread say.
fn gather(words: &mut ToldWords, journal: &dyn Journal) -> Result<()> {
    let (own, mut seq) = (journal.header().base_seq(), journal.last());
    while seq > own {
        let head = journal.head(seq)?;
        if matches!(head.kind, Kind::Tell | Kind::Heard) {
            words.take(&journal.header().thread, EntrySource::record(journal, seq)?);
        }
        seq = head.prev_op;
    }
    Ok(())
}
