//! How a store that is spoken to over a wire is waited for.
//!
//! The drivers are asynchronous, the store's calls are not: each call is run on a small runtime of the store's own, and
//! its caller waits for it there, at most as long as the store may take. So a call is bounded in time whatever the
//! server does, and works on any thread, also on one that drives other tasks.

use crate::{Error, Result};
use komado_core::Seq;
use std::future::Future;
use std::io;
use std::io::{Read, Seek, SeekFrom};
use std::sync::mpsc;
use std::time::Duration;
use tokio::runtime::{Builder, Runtime};

/// A runtime for calls to one server.
pub(crate) struct CallRuntime {
    runtime: Option<Runtime>,
    /// Where the server is, without secrets.
    place: String,
    /// How long one call may take.
    patience: Duration,
}

impl CallRuntime {
    /// A runtime of its own for the server at `place`.
    pub(crate) fn new(place: String, patience: Duration) -> Result<Self> {
        let built =
            Builder::new_multi_thread().worker_threads(1).thread_name("komado-store").enable_all().build();
        let runtime = built.map_err(|e| Error::away(&place, format!("no thread to speak with it: {e}")))?;
        Ok(Self { runtime: Some(runtime), place, patience })
    }

    /// Where the server is, without secrets.
    pub(crate) fn place(&self) -> &str {
        &self.place
    }

    /// Runs a call to its end, or until the server took too long.
    pub(crate) fn call<T: Send + 'static>(
        &self,
        call: impl Future<Output = Result<T>> + Send + 'static,
    ) -> Result<T> {
        self.call_for(self.patience, call)
    }

    /// The same with another patience.
    pub(crate) fn call_for<T: Send + 'static>(
        &self,
        patience: Duration,
        call: impl Future<Output = Result<T>> + Send + 'static,
    ) -> Result<T> {
        let (done, answer) = mpsc::sync_channel(1);
        self.spawn(async move {
            let answer = tokio::time::timeout(patience, call).await;
            let _ = done.send(answer);
        });
        match answer.recv() {
            Ok(Ok(answer)) => answer,
            Ok(Err(_)) => {
                Err(Error::away(&self.place, format!("no answer within {} s", patience.as_secs_f32())))
            }
            Err(_) => Err(Error::away(&self.place, "the call was broken off".to_owned())),
        }
    }

    /// Lets something run beside the calls.
    pub(crate) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        if let Some(runtime) = &self.runtime {
            runtime.spawn(task);
        }
    }
}

impl Drop for CallRuntime {
    fn drop(&mut self) {
        // A runtime must not be waited for where other tasks are driven.
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

// A few entries read ahead, in the direction in which they are asked for: a look at one is cheap, and a walk through all asks a
// server few times.

/// The most that is read ahead.
const MOST_AHEAD: u32 = 256;

/// What was read last.
#[derive(Default)]
pub(crate) struct ReadAhead {
    /// Which of the threads that make up the journal.
    leg: usize,
    first: Seq,
    values: Vec<Vec<u8>>,
    /// How many are read next time, when the next one is asked for.
    reach: u32,
}

/// What is to be read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct ReadPlan {
    pub(crate) leg: usize,
    pub(crate) from: Seq,
    pub(crate) count: u32,
    pub(crate) is_backward: bool,
    /// True when it stands apart from what was read before.
    pub(crate) is_apart: bool,
}

impl ReadAhead {
    /// An entry, when it was read.
    pub(crate) fn get(&self, leg: usize, seq: Seq) -> Option<&[u8]> {
        let at = seq.checked_sub(self.first).filter(|_| leg == self.leg)?;
        self.values.get(at as usize).map(Vec::as_slice)
    }

    /// How to read entry `seq` and what is likely to be asked for next; the leg has the entries from `low` to `high`.
    pub(crate) fn plan(&self, leg: usize, seq: Seq, (low, high): (Seq, Seq), start: u32) -> ReadPlan {
        let is_known = !self.values.is_empty() && leg == self.leg;
        let goes_on = is_known && u64::from(seq) == u64::from(self.first) + self.values.len() as u64;
        let is_backward = is_known && seq + 1 == self.first;
        let wish = if goes_on || is_backward { (self.reach * 4).min(MOST_AHEAD) } else { start };
        let room = if is_backward { seq - low } else { high - seq };
        let is_apart = !goes_on && !is_backward;
        ReadPlan { leg, from: seq, count: wish.min(room.saturating_add(1)), is_backward, is_apart }
    }

    /// Keeps what was read: from the entry that was asked for, in the direction of the plan.
    pub(crate) fn keep(&mut self, plan: ReadPlan, mut values: Vec<Vec<u8>>, start: u32) {
        self.first = plan.from;
        if plan.is_backward {
            self.first = plan.from + 1 - values.len() as u32;
            values.reverse();
        }
        (self.leg, self.reach, self.values) = (plan.leg, plan.count.max(start), values);
    }
}

// A blob that a server keeps in chunks, read from anywhere with one of them at hand.

/// Bytes of a chunk.
pub(crate) const CHUNK: u64 = 256 << 10;

/// A blob being read; `fetch` gives a chunk by its number.
pub(crate) struct Chunks<F> {
    fetch: F,
    size: u64,
    at: u64,
    chunk: Option<(u64, Vec<u8>)>,
}

impl<F: FnMut(u64) -> Result<Vec<u8>>> Chunks<F> {
    pub(crate) const fn new(size: u64, fetch: F) -> Self {
        Self { fetch, size, at: 0, chunk: None }
    }
}

impl<F: FnMut(u64) -> Result<Vec<u8>>> Read for Chunks<F> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if self.at >= self.size || into.is_empty() {
            return Ok(0);
        }
        let (n, skip) = (self.at / CHUNK, (self.at % CHUNK) as usize);
        let known = self.chunk.take().filter(|(number, _)| *number == n);
        let fetched = known.map_or_else(|| Ok((n, (self.fetch)(n)?)), Ok);
        let (_, chunk) = self.chunk.insert(fetched.map_err(|e: crate::Error| io::Error::other(e))?);
        let rest = chunk.get(skip..).unwrap_or_default();
        let count = rest.len().min(into.len());
        if count == 0 {
            return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the output is cut short"));
        }
        into[..count].copy_from_slice(&rest[..count]);
        self.at += count as u64;
        Ok(count)
    }
}

impl<F> Seek for Chunks<F> {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let at = match to {
            SeekFrom::Start(at) => Some(at),
            SeekFrom::End(by) => self.size.checked_add_signed(by),
            SeekFrom::Current(by) => self.at.checked_add_signed(by),
        };
        self.at = at.ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, "before the first byte"))?;
        Ok(self.at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_works_on_any_thread_and_ends_when_the_server_does_not() {
        let wire = CallRuntime::new("nowhere".into(), Duration::from_millis(20)).unwrap();
        assert_eq!(wire.call(async { Ok(7) }).unwrap(), 7);
        let inside = Builder::new_current_thread().build().unwrap();
        assert_eq!(inside.block_on(async { wire.call(async { Ok(8) }) }).unwrap(), 8);
        let never = wire.call(std::future::pending::<Result<()>>()).unwrap_err();
        assert!(never.to_string().contains("nowhere") && never.to_string().contains("0.02 s"), "{never}");
    }

    #[test]
    fn more_is_read_ahead_the_longer_one_goes_on_in_either_direction() {
        let mut page = ReadAhead::default();
        let read = |page: &mut ReadAhead, seq| {
            let plan = page.plan(0, seq, (1, 5000), 8);
            page.keep(plan, vec![Vec::new(); plan.count as usize], 8);
            (plan.from, plan.count, plan.is_backward)
        };
        assert_eq!(read(&mut page, 1000), (1000, 8, false));
        assert_eq!(read(&mut page, 1008), (1008, 32, false));
        assert_eq!(read(&mut page, 1007), (1007, 128, true));
        assert_eq!(page.get(0, 880).map(<[u8]>::len), Some(0));
        assert_eq!((page.get(0, 879), page.get(1, 900)), (None, None));
        assert_eq!(read(&mut page, 879), (879, 256, true));
        assert_eq!(read(&mut page, 4999), (4999, 2, false));
        assert_eq!(page.plan(1, 3, (2, 3), 8).count, 1);
    }
}
