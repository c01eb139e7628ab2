//! The body of an answer, read as it arrives.
//!
//! Of a list only one element is held at a time, whatever the list's length; what is longer than anything a tracker keeps is
//! an error, so that no answer takes more memory than that.

use komado_provider::Incoming;
use std::cell::Cell;
use std::io::{self, Cursor, Read};
use std::rc::Rc;

/// The longest thing, in bytes. Trackers keep texts of up to a million characters, which are up to six bytes in JSON.
const MOST: usize = 16 << 20;

/// How much may still come before the thing that is read must have ended.
#[derive(Clone)]
pub(super) struct Room(Rc<Cell<usize>>);

impl Room {
    /// The next thing begins.
    pub(super) fn renew(&self) {
        self.0.set(MOST);
    }
}

/// A body that is read.
pub(super) struct Bounded {
    answer: Incoming,
    chunk: Cursor<Vec<u8>>,
    room: Room,
}

impl Bounded {
    pub(super) fn new(answer: Incoming) -> Self {
        let room = Room(Rc::new(Cell::new(MOST)));
        Self { answer, chunk: Cursor::new(Vec::new()), room }
    }

    /// To be renewed whenever a thing has ended.
    pub(super) fn room(&self) -> Room {
        self.room.clone()
    }
}

impl Read for Bounded {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        loop {
            let read = self.chunk.read(out)?;
            if read > 0 || out.is_empty() {
                return Ok(read);
            }
            let Some(chunk) = self.answer.chunk().map_err(io::Error::other)? else { return Ok(0) };
            let left = self.room.0.get().checked_sub(chunk.len()).ok_or_else(|| {
                io::Error::new(io::ErrorKind::FileTooLarge, format!("one thing is longer than {MOST} bytes"))
            })?;
            self.room.0.set(left);
            self.chunk = Cursor::new(chunk.to_vec());
        }
    }
}
