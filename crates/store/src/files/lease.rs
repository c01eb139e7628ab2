//! One process writes a session at a time.
//!
//! The lock is the system's own, on the file `lock` in the session's folder: it goes with the process, however that
//! ends. What is written in the file only says who holds it. Within the process a table says which threads have a
//! writer; the lock is given back, under the table's own lock, with the last of them.

use crate::error::{Holder, Tried};
use crate::{Error, Result, locked};
use komado_core::{SessionId, ThreadId};
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::fs::{File, TryLockError};
use std::io::{Read, Seek, SeekFrom};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

/// What a thread is held for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Purpose {
    /// To append, for as long as its holder likes.
    Write,
    /// To bring the index forward; over in a moment, so others of this process wait.
    Repair,
}

/// The sessions this process holds.
#[derive(Debug)]
pub(super) struct Leases {
    holder: Holder,
    held: Mutex<HashMap<SessionId, Held>>,
    freed: Condvar,
}

/// The system's lock. It is given back by name: closing the file alone would leave it with a child process that is
/// just being started and has not yet closed what it inherited.
#[derive(Debug)]
pub(super) struct Lock(File);

impl Drop for Lock {
    fn drop(&mut self) {
        let _ = self.0.unlock();
    }
}

#[derive(Debug)]
struct Held {
    _lock: Lock,
    threads: HashMap<ThreadId, Purpose>,
}

impl Held {
    fn only_repairs(&self) -> bool {
        self.threads.values().all(|purpose| *purpose == Purpose::Repair)
    }
}

impl Leases {
    pub(super) fn new(holder: Holder) -> Arc<Self> {
        Arc::new(Self { holder, held: Mutex::default(), freed: Condvar::new() })
    }

    fn table(&self) -> MutexGuard<'_, HashMap<SessionId, Held>> {
        locked(&self.held)
    }

    /// How many sessions are held.
    pub(super) fn held(&self) -> u64 {
        self.table().len() as u64
    }

    /// Takes `thread` of the session in `folder`, or says who has it.
    pub(super) fn take(
        self: &Arc<Self>,
        id: &SessionId,
        thread: &ThreadId,
        folder: &Path,
        purpose: Purpose,
    ) -> Result<Ticket> {
        let mut table = self.table();
        while purpose == Purpose::Write
            && table.get(id).is_some_and(|held| held.threads.get(thread) == Some(&Purpose::Repair))
        {
            table = self.freed.wait(table).unwrap_or_else(PoisonError::into_inner);
        }
        let held = match table.entry(id.clone()) {
            Entry::Occupied(held) => held.into_mut(),
            Entry::Vacant(place) => {
                place.insert(Held { _lock: lock(id, folder, &self.holder)?, threads: HashMap::new() })
            }
        };
        if held.threads.contains_key(thread) {
            return Err(Error::Busy { session: id.clone(), holder: self.holder.clone() });
        }
        held.threads.insert(thread.clone(), purpose);
        Ok(Ticket { leases: Arc::clone(self), id: id.clone(), thread: thread.clone() })
    }

    /// Takes the whole session in `folder`; refused while anyone, here or elsewhere, writes any of its threads.
    pub(super) fn take_whole(&self, id: &SessionId, folder: &Path) -> Result<Lock> {
        let mut table = self.table();
        while let Some(held) = table.get(id) {
            if !held.only_repairs() {
                return Err(Error::Busy { session: id.clone(), holder: self.holder.clone() });
            }
            table = self.freed.wait(table).unwrap_or_else(PoisonError::into_inner);
        }
        lock(id, folder, &self.holder)
    }
}

/// One thread's share of a session's lock; given back when dropped.
#[derive(Debug)]
pub(super) struct Ticket {
    leases: Arc<Leases>,
    id: SessionId,
    thread: ThreadId,
}

impl Drop for Ticket {
    fn drop(&mut self) {
        let mut table = self.leases.table();
        if let Some(held) = table.get_mut(&self.id) {
            held.threads.remove(&self.thread);
            if held.threads.is_empty() {
                table.remove(&self.id);
            }
        }
        self.leases.freed.notify_all();
    }
}

/// Locks the session in `folder`, or says who has it.
fn lock(id: &SessionId, folder: &Path, holder: &Holder) -> Result<Lock> {
    let path = folder.join("lock");
    let mut file = super::private().read(true).open(&path).tried("open", &path)?;
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => {
            return Err(Error::Busy { session: id.clone(), holder: read_holder(&mut file) });
        }
        Err(TryLockError::Error(e)) => return Err(e).tried("lock", &path),
    }
    // Only for people, and first written, then cut: whoever looks in between still finds a name. The lock holds
    // whether or not there is room to say whose it is.
    let line = serde_json::to_vec(holder).unwrap_or_default();
    let _ = file.write_all_at(&line, 0).and_then(|()| file.set_len(line.len() as u64));
    Ok(Lock(file))
}

/// Who holds the session in `folder`, changing nothing in it. The lock is shared with others who look, for a moment.
pub(super) fn holder_of(folder: &Path) -> Result<Option<Holder>> {
    let path = folder.join("lock");
    let mut file = match File::open(&path) {
        Ok(file) => file,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound && folder.is_dir() => return Ok(None),
        Err(error) => return Err(error).tried("open", &path),
    };
    match file.try_lock_shared() {
        Ok(()) => {
            drop(Lock(file));
            Ok(None)
        }
        Err(TryLockError::WouldBlock) => Ok(Some(read_holder(&mut file))),
        Err(TryLockError::Error(error)) => Err(error).tried("lock", &path),
    }
}

fn read_holder(file: &mut File) -> Holder {
    let mut text = Vec::new();
    let read = file.seek(SeekFrom::Start(0)).and_then(|_| file.read_to_end(&mut text));
    Holder::read(if read.is_ok() { &text } else { &[] })
}
