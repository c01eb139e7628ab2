//! `bell`: how one process tells another what it did.
//!
//! A watcher makes the file; a writer adds a line to it when it is there. So no writer pays for news that
//! are not wanted. Watchers look at its size ten times a second, one of them for all of its process; within a process news
//! come at once. A bell that grew long, or could not be written, is thrown away: listeners find it gone, make another and
//! are told that they may have missed something. One that a listener left behind goes the same way and is not made again.
//!
//! The line is written after the deed. A process killed in between has told nothing; the next deed in that thread does.

use super::FileStore;
use crate::error::IoContext;
use crate::files::folders;
use crate::watch::{NewsReceiver, NewsSender, ThreadNews, WatchEvent, WatchStore, Watcher};
use crate::{Result, locked};
use komado_core::{Seq, SessionId, ThreadId};
use std::fs::{File, OpenOptions};
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io::Write;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, Weak};
use std::time::{Duration, Instant};

/// Between two looks at the file.
const PAUSE: Duration = Duration::from_millis(100);

/// Bytes of a bell that is thrown away.
const LONGEST: u64 = 1 << 20;

/// Tells what is done in a folder, here and elsewhere.
pub(super) struct FileNews {
    path: PathBuf,
    /// What our own lines begin with: who listens here has heard of those.
    own: u64,
    bell: NewsSender,
    /// What those who listen here share.
    tail: Mutex<Weak<Mutex<Tail>>>,
}

impl FileNews {
    pub(super) fn new(base: &Path) -> Arc<Self> {
        let own = RandomState::new().build_hasher().finish();
        Arc::new(Self { path: base.join("bell"), own, bell: NewsSender::default(), tail: Mutex::default() })
    }

    /// Tells everyone who listens. What was done is done: no call fails because others cannot be told.
    pub(super) fn ring(&self, session: &SessionId, thread: &ThreadId, last: Seq) {
        self.bell.ring(&ThreadNews { session: session.clone(), thread: thread.clone(), last });
        let Ok(mut file) = OpenOptions::new().append(true).open(&self.path) else { return };
        let line = format!("{:016x} {session} {thread} {last}\n", self.own);
        let told = file.write_all(line.as_bytes()).and_then(|()| file.metadata());
        if !told.is_ok_and(|now| now.len() < LONGEST) {
            let _ = std::fs::remove_file(&self.path);
        }
    }

    fn listen(self: &Arc<Self>) -> Result<Listener> {
        let mut shared = locked(&self.tail);
        let tail = match shared.upgrade() {
            Some(tail) => tail,
            None => Arc::new(Mutex::new(Tail::open(&self.path)?)),
        };
        *shared = Arc::downgrade(&tail);
        Ok(Listener { ear: self.bell.listen(), chime: Arc::clone(self), tail })
    }

    /// Passes on what others did, unless another watcher looked a moment ago.
    fn look(&self, tail: &mut Tail) -> Result<()> {
        if tail.looked.elapsed() < PAUSE {
            return Ok(());
        }
        tail.looked = Instant::now();
        // Which file it is comes first: what is written to this one until then is read below.
        let is_other = identity(std::fs::metadata(&self.path).ok()) != identity(tail.file.metadata().ok());
        for line in tail.lines(&self.path)? {
            match heard(&line) {
                Some((own, _)) if own == self.own => {}
                Some((_, news)) => self.bell.ring(&news),
                None => self.bell.miss(),
            }
        }
        if is_other {
            *tail = Tail { at: 0, ..Tail::open(&self.path)? };
            self.bell.miss();
        }
        Ok(())
    }
}

/// Which file it is, on which device.
fn identity(found: Option<std::fs::Metadata>) -> Option<(u64, u64)> {
    found.map(|found| (found.dev(), found.ino()))
}

/// What a line tells, and who wrote it.
fn heard(line: &str) -> Option<(u64, ThreadNews)> {
    let (own, news) = line.split_once(' ')?;
    Some((u64::from_str_radix(own, 16).ok()?, ThreadNews::read(news)?))
}

/// How far a bell was read.
struct Tail {
    file: File,
    at: u64,
    looked: Instant,
}

impl Tail {
    /// Opens the bell at its end, making it when missing.
    fn open(path: &Path) -> Result<Self> {
        folders::make_folder(path.parent().unwrap_or(path))?;
        let file = super::private().read(true).append(true).open(path).tried("make", path)?;
        let at = file.metadata().tried("look at", path)?.len();
        Ok(Self { file, at, looked: Instant::now() })
    }

    /// The whole lines that came since; at most about as much as a bell grows to.
    fn lines(&mut self, path: &Path) -> Result<Vec<String>> {
        let size = self.file.metadata().tried("look at", path)?.len();
        let mut bytes = vec![0; size.saturating_sub(self.at).min(2 * LONGEST) as usize];
        let read = self.file.read_at(&mut bytes, self.at).tried("read", path)?;
        let whole = bytes[..read].iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
        self.at += whole as u64;
        Ok(String::from_utf8_lossy(&bytes[..whole]).lines().map(str::to_owned).collect())
    }
}

/// One who listens.
struct Listener {
    ear: NewsReceiver,
    chime: Arc<FileNews>,
    tail: Arc<Mutex<Tail>>,
}

impl Watcher for Listener {
    fn next(&mut self, patience: Duration) -> Result<WatchEvent> {
        let begun = Instant::now();
        loop {
            self.chime.look(&mut locked(&self.tail))?;
            let left = patience.saturating_sub(begun.elapsed());
            let heard = self.ear.next(left.min(PAUSE))?;
            if heard != WatchEvent::Quiet || left.is_zero() {
                return Ok(heard);
            }
        }
    }
}

impl WatchStore for FileStore {
    fn watch(&self) -> Result<Box<dyn Watcher>> {
        Ok(Box::new(self.opener.chime.listen()?))
    }
}
