//! Files for people: `current.jsonl`, `summaries.jsonl`, `tools.jsonl`.
//!
//! All three follow from the journal. The view is extended when only messages came in and written anew, by rename,
//! when an edit, a rewind or a redaction changed what was there; the two lists only grow. None is synced: losing them
//! loses nothing, and one that does not look as it was left is written anew.

use super::journal::FileJournal;
use super::{blobs, folders, private};
use crate::error::IoContext;
use crate::{Error, Result};
use komado_core::head::{EntrySource, Kind};
use komado_core::journal::{Edit, Entry, Record, ShowKind};
use komado_core::message::{Message, ToolOutcome};
use komado_core::openai::BlobReader;
use komado_core::{Seq, View, openai};
use serde::Serialize;
use std::fs::{File, OpenOptions};
use std::io;
use std::io::{BufWriter, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// Longest result repeated in `tools.jsonl`; the whole of it is in the journal or in a blob.
const LONGEST: usize = 4096;

pub(super) fn settle(journal: &mut FileJournal, view: &View) -> Result<()> {
    settle_current(journal, view)?;
    settle_list(journal, &TOOLS)?;
    settle_list(journal, &SUMMARIES)
}

/// Removes what was made from lines of `journal` that are no longer there, the first of them `first`: in the thread, in
/// its forks, and in the threads spawned from these, which see a part of them.
pub(super) fn forget(journal: &FileJournal, first: Seq) -> Result<()> {
    let family = folders::family_headers(&journal.folder)?;
    let mut stale = vec![(crate::Journal::header(journal).thread.clone(), first)];
    let mut next = 0;
    while let Some((thread, first)) = stale.get(next).cloned() {
        next += 1;
        for (header, folder) in &family {
            let shares = header.base.as_ref().is_some_and(|base| base.thread == thread && base.seq >= first);
            // Which part a child sees may have changed since it was spawned, so its moment says nothing here.
            let sees = header.parent.as_ref().is_some_and(|parent| parent.thread == thread);
            if (shares || sees) && !stale.iter().any(|(known, _)| *known == header.thread) {
                stale.push((header.thread.clone(), if sees { 0 } else { first }));
            }
            if header.thread == thread {
                for path in [folder.current(), folder.tools(), folder.summaries(), folder.request()] {
                    folders::remove(&path)?;
                }
            }
        }
    }
    Ok(())
}

struct Inline(PathBuf);

impl BlobReader for Inline {
    fn base64(&mut self, id: &str, out: &mut dyn Write) -> io::Result<()> {
        blobs::write_base64(&self.0, id, out)
    }
}

/// The last operation at or before `at`.
fn last_op(journal: &FileJournal, at: Seq) -> Result<Seq> {
    let head = EntrySource::head(journal, at)?;
    Ok(if head.kind.is_op() { at } else { head.prev_op })
}

/// True when nothing between two last operations changed what was shown before: words told to or heard from others and
/// the chronicle are not part of it.
fn is_quiet_since(journal: &FileJournal, before: u64, now: Seq) -> Result<bool> {
    let mut at = now;
    while u64::from(at) > before {
        let head = EntrySource::head(journal, at)?;
        if !matches!(head.kind, Kind::Tell | Kind::Heard | Kind::Chronicle) {
            return Ok(false);
        }
        at = head.prev_op;
    }
    Ok(u64::from(at) == before)
}

/// True when the first `bytes` of a file are there and look like whole lines.
fn has_lines(path: &Path, bytes: u64) -> bool {
    let Ok(file) = File::open(path) else { return false };
    let byte = |at: u64| {
        let mut byte = [0];
        file.read_exact_at(&mut byte, at).is_ok().then_some(byte[0])
    };
    bytes == 0 || (byte(0) == Some(b'{') && byte(bytes - 1) == Some(b'\n'))
}

fn settle_current(journal: &mut FileJournal, view: &View) -> Result<()> {
    let path = journal.folder.current();
    let [upto, op, bytes] = journal.index.marks().current;
    let (last, now) = (u64::from(view.last()), last_op(journal, view.last())?);
    let size = std::fs::metadata(&path).map(|m| m.len()).ok();
    let whole = size == Some(bytes) && has_lines(&path, bytes);
    let can_extend = whole && (1..=last).contains(&upto) && is_quiet_since(journal, op, now)?;
    if can_extend && upto == last {
        return Ok(());
    }
    let written = if can_extend {
        let file = OpenOptions::new().append(true).open(&path).tried("open", &path)?;
        let mut lines = Lines::new(journal, file, &path);
        view.pour_since(journal, upto as Seq, &mut |_, m: &Message| lines.put(m))?;
        bytes + lines.finish()?
    } else {
        let temp = journal.folder.unfinished_current();
        let mut lines =
            Lines::new(journal, private().truncate(true).open(&temp).tried("make", &temp)?, &temp);
        view.pour(journal, &mut |_, m: &Message| lines.put(m))?;
        let written = lines.finish()?;
        std::fs::rename(&temp, &path).tried("replace", &path)?;
        written
    };
    journal.index.mark(|marks| marks.current = [last, u64::from(now), written]);
    Ok(())
}

/// Messages as the chat API takes them, one per line.
struct Lines {
    out: BufWriter<Counted>,
    blobs: Inline,
    path: PathBuf,
}

struct Counted(File, u64);

impl Write for Counted {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let n = self.0.write(bytes)?;
        self.1 += n as u64;
        Ok(n)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

impl Lines {
    fn new(journal: &FileJournal, file: File, path: &Path) -> Self {
        let out = BufWriter::with_capacity(1 << 16, Counted(file, 0));
        Self { out, blobs: Inline(journal.folder.outputs()), path: path.to_owned() }
    }

    fn put(&mut self, message: &Message) -> Result<()> {
        let done =
            openai::write(message, &mut self.blobs, &mut self.out).and_then(|()| self.out.write_all(b"\n"));
        done.tried("write", &self.path)
    }

    fn finish(self) -> Result<u64> {
        let inner =
            self.out.into_inner().map_err(io::IntoInnerError::into_error).tried("write", &self.path)?;
        Ok(inner.1)
    }
}

/// Makes the n-th row from an entry, if it is worth one.
type MakeRow = fn(&FileJournal, &mut Caller, u64, &Record) -> Result<Option<Vec<u8>>>;

/// The message whose calls were answered last; its other results mostly follow.
type Caller = Option<(Seq, Message)>;

/// A list with one row for some of the entries.
struct List {
    path: fn(&FileJournal) -> PathBuf,
    marks: fn(&mut super::index::IndexMarks) -> &mut [u64; 3],
    wants: fn(Kind) -> bool,
    row: MakeRow,
}

const TOOLS: List = List {
    path: |journal| journal.folder.tools(),
    marks: |marks| &mut marks.tools,
    wants: |kind| kind == Kind::Tool,
    row: tool_row,
};

const SUMMARIES: List = List {
    path: |journal| journal.folder.summaries(),
    marks: |marks| &mut marks.summaries,
    wants: |kind| kind == Kind::Condense,
    row: summary_row,
};

fn settle_list(journal: &mut FileJournal, list: &List) -> Result<()> {
    let path = (list.path)(journal);
    let mut marks = *journal.index.marks();
    let [mut upto, mut rows, mut bytes] = *(list.marks)(&mut marks);
    let size = std::fs::metadata(&path).map(|m| m.len()).ok();
    if size.is_none_or(|size| size < bytes) || !has_lines(&path, bytes) {
        [upto, rows, bytes] = [0, 0, 0];
    }
    let base = u64::from(crate::Journal::header(journal).base_seq());
    upto = upto.max(base);
    let last = EntrySource::last(journal);
    if size == Some(bytes) && upto == u64::from(last) {
        return Ok(());
    }
    let file = private().open(&path).tried("open", &path)?;
    file.set_len(bytes).tried("cut", &path)?;
    let mut out = BufWriter::new(file);
    io::Seek::seek(&mut out, io::SeekFrom::Start(bytes)).tried("write", &path)?;
    let mut caller = None;
    for seq in upto as Seq + 1..=last {
        if !(list.wants)(EntrySource::head(journal, seq)?.kind) {
            continue;
        }
        if let Some(row) = (list.row)(journal, &mut caller, rows + 1, &EntrySource::record(journal, seq)?)? {
            out.write_all(&row).tried("write", &path)?;
            rows += 1;
            bytes += row.len() as u64;
        }
    }
    out.flush().tried("write", &path)?;
    journal.index.mark(|marks| *(list.marks)(marks) = [u64::from(last), rows, bytes]);
    Ok(())
}

#[derive(Serialize)]
struct SummaryRow<'a> {
    id: u64,
    start_seq: Seq,
    end_seq: Seq,
    summary: String,
    original_tokens: u64,
    summary_tokens: u64,
    ratio: f64,
    timestamp: &'a str,
    seq: Seq,
}

fn summary_row(_: &FileJournal, _: &mut Caller, id: u64, record: &Record) -> Result<Option<Vec<u8>>> {
    let Entry::Edit(edit) = &record.entry else { return Ok(None) };
    let Some(span) = edit.hull() else { return Ok(None) };
    let summary_tokens = u64::from(edit.shown_tokens());
    let original_tokens = edit.cause.before.saturating_sub(edit.cause.after) + summary_tokens;
    let ratio = if original_tokens == 0 { 0.0 } else { summary_tokens as f64 / original_tokens as f64 };
    json_line(&SummaryRow {
        id,
        start_seq: span.from,
        end_seq: span.to,
        summary: summary_text(edit),
        original_tokens,
        summary_tokens,
        ratio: (ratio * 1000.0).round() / 1000.0,
        timestamp: &record.timestamp,
        seq: record.seq,
    })
}

fn summary_text(edit: &Edit) -> String {
    let texts = edit.show.iter().filter(|show| show.kind != ShowKind::Marker);
    texts.map(|show| show.text.as_str()).collect::<Vec<_>>().join("\n")
}

#[derive(Serialize)]
struct ToolRow<'a> {
    seq: u64,
    tool: &'a str,
    args: serde_json::Value,
    #[serde(skip_serializing_if = "Option::is_none")]
    result: Option<String>,
    status: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
    duration_ms: Option<u64>,
    timestamp: &'a str,
    message_seq: Seq,
    #[serde(skip_serializing_if = "Option::is_none")]
    output_ref: Option<&'a str>,
}

fn tool_row(journal: &FileJournal, caller: &mut Caller, n: u64, record: &Record) -> Result<Option<Vec<u8>>> {
    let Entry::Message(message, _) = &record.entry else { return Ok(None) };
    let Some(outcome) = message.outcome() else { return Ok(None) };
    let (name, args) = call_of(journal, caller, record.seq, outcome)?;
    let failed = outcome.is_error || outcome.interrupted;
    let said = clip(message.words());
    json_line(&ToolRow {
        seq: n,
        tool: outcome.name.as_deref().unwrap_or(&name),
        args,
        result: (!failed).then(|| said.clone()),
        status: if failed { "error" } else { "success" },
        error: failed.then_some(said),
        duration_ms: outcome.duration_ms,
        timestamp: &record.timestamp,
        message_seq: record.seq,
        output_ref: outcome.output_ref.as_ref().map(|r| r.id.as_str()),
    })
}

/// The tool and the arguments of the call that `outcome` answers.
fn call_of(
    journal: &FileJournal,
    caller: &mut Caller,
    seq: Seq,
    outcome: &ToolOutcome,
) -> Result<(String, serde_json::Value)> {
    let unit = EntrySource::head(journal, seq)?.unit;
    if caller.as_ref().is_none_or(|(of, _)| *of != unit) {
        *caller = match EntrySource::record(journal, unit)?.entry {
            Entry::Message(message, _) => Some((unit, message)),
            _ => None,
        };
    }
    let calls = caller.iter().flat_map(|(_, message)| message.calls());
    let call = calls.into_iter().find(|call| call.id == outcome.call_id);
    Ok(call.map_or((String::new(), serde_json::Value::Null), |call| {
        let args = serde_json::from_str(&call.arguments);
        (call.name.clone(), args.unwrap_or_else(|_| serde_json::Value::from(call.arguments.as_str())))
    }))
}

fn clip(text: String) -> String {
    if text.len() <= LONGEST {
        return text;
    }
    let end = (0..=LONGEST).rev().find(|&i| text.is_char_boundary(i)).unwrap_or(0);
    format!("{}… ({} bytes in all)", &text[..end], text.len())
}

fn json_line<T: Serialize>(row: &T) -> Result<Option<Vec<u8>>> {
    let mut line = serde_json::to_vec(row).map_err(|e| Error::damaged("a derived row", e))?;
    line.push(b'\n');
    Ok(Some(line))
}
