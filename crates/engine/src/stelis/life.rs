//! The life of a child whose handle nobody has: ended, paused, resumed, told again, by name.
//!
//! Each verb opens the child, does its work there, and lets the parent look after its anchor. A parent that someone else
//! writes is told later; that is no failure.

use super::anchor::{self, Tale};
use super::chronicle::{Retold, Telling, Written};
use super::finish::{Finish, Finished};
use super::spawn::push_anchor;
use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::share::{Moments, check_room, recut};
use crate::thread::Thread;
use komado_core::admit::Refusal;
use komado_core::journal::{Entry, Ratio, Share};
use komado_core::share::Shares;
use komado_core::thread::Status;
use komado_core::{Seq, SessionId, ThreadId};
use komado_store::Mode;

/// How a thread goes on.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Resume {
    /// The model's window, in tokens as the session counts them.
    pub window: u64,
    /// Share of the window kept free for what no counter sees.
    pub buffer: f64,
    /// What it gets of its parent's window; as before while absent.
    pub ratio: Option<Ratio>,
}

impl Resume {
    /// In a window of `window` tokens, with the usual buffer.
    pub const fn new(window: u64) -> Self {
        Self { window, buffer: 0.1, ratio: None }
    }
}

impl Engine {
    /// Ends or pauses a spawned thread and tells its parent. One that lost its holder is broken off already by being opened,
    /// and refused here.
    pub fn finish_child(&self, id: &SessionId, thread: &ThreadId, finish: Finish<'_>) -> Result<Finished> {
        let mut child = self.open(id, thread, Mode::Write)?;
        let parent = Self::parent_of(&child)?;
        let finished = child.finish(finish)?;
        drop(child);
        Ok(Finished { is_told: self.tell_parent(id, &parent)?, ..finished })
    }

    /// Lets a spawned thread wait, and tells its parent.
    pub fn pause_child(&self, id: &SessionId, thread: &ThreadId, why: Option<String>) -> Result<Finished> {
        self.finish_child(id, thread, Finish::paused(why))
    }

    /// Lets a spawned thread go on that was paused, broken off or ended, be it days ago: it sees what the threads above it
    /// see now. From then on nobody holds it. Gives the entry of its new share.
    pub fn resume_child(&self, id: &SessionId, thread: &ThreadId, resume: &Resume) -> Result<Seq> {
        let mut child = self.open_as_left(id, thread, Mode::Write)?;
        let parent = Self::parent_of(&child)?;
        let above = self.open_as_left(id, &parent, Mode::Read)?;
        if !above.status()?.is_open() {
            return Err(Error::ParentEnded { thread: thread.to_string(), parent: parent.to_string() });
        }
        child.resumed_share(resume)?;
        if above.anchor_of(child.header())?.is_some_and(|first| !above.view().shows(first)) {
            self.anchor_again(&child)?;
        }
        drop(above);
        let seq = child.go_on(resume)?;
        drop(child);
        self.tell_parent(id, &parent)?;
        Ok(seq)
    }

    /// Gives a child another anchor, at the present of its parent: what stood for it there has left the view.
    fn anchor_again(&self, child: &Thread<'_>) -> Result<()> {
        let parent = Self::parent_of(child)?;
        let mut above = self
            .open_as_left(child.session(), &parent, Mode::Write)
            .map_err(|error| child.parent_away(error, &parent))?;
        let Some(first) = above.anchor_of(child.header())? else { return Ok(()) };
        let language = match above.record(first)?.entry {
            Entry::Anchor(before) => anchor::language(&before.text),
            _ => child.speaks()?,
        };
        let header = child.header();
        let tale = Tale::begun(header.thread.clone(), header.label.clone(), header.timestamp.clone());
        let cap = anchor::cap(child.share()?.as_ref());
        let mut staged = above.stage();
        push_anchor(&mut staged, &tale, language, &above, cap)?;
        let work = staged.finish();
        // Whatever becomes of the child now, the new anchor will say it.
        child.put_row()?;
        above.commit(work)?;
        above.settle()
    }

    /// Writes the chronicle of a spawned thread anew, by hand or by whoever tells; its parent's anchor follows.
    pub fn write_chronicle(&self, id: &SessionId, thread: &ThreadId, telling: Telling<'_>) -> Result<Retold> {
        let mut child = self.open_as_left(id, thread, Mode::Write)?;
        let parent = Self::parent_of(&child)?;
        let partial = child.status()? != Status::Completed;
        let Written { chronicle, declined } = child.write_story(telling, partial)?;
        let Some(chronicle) = chronicle else {
            let why = "nothing was said in the thread that could be told; write the chronicle yourself";
            return Err(Refusal::NoEffect { why }.into());
        };
        child.put_row()?;
        child.append(Entry::Chronicle(chronicle.clone()))?;
        child.put_row()?;
        child.settle()?;
        drop(child);
        self.tell_parent(id, &parent)?;
        Ok(Retold { chronicle, declined })
    }
}

impl Thread<'_> {
    /// Goes on after a close, with slices cut from the present of the threads above.
    fn go_on(&mut self, resume: &Resume) -> Result<Seq> {
        let share = self.resumed_share(resume)?;
        self.put_row()?;
        let mut staged = match self.reopened()? {
            Some(staged) => staged,
            None => self.stage(),
        };
        let seq = staged.push(Entry::Share(share), self.engine().now())?;
        let work = staged.finish();
        self.commit(work)?;
        self.put_row()?;
        self.settle()?;
        Ok(seq)
    }

    /// The share with which the thread goes on; refused, before anything is written, when it would have no room.
    fn resumed_share(&self, resume: &Resume) -> Result<Share> {
        let name = self.id().to_string();
        let Some(share) = self.share()? else { return Err(self.shareless()) };
        if self.view().closed().is_none() && share.held_by.is_none() {
            return Err(Error::NotClosed { thread: name });
        }
        let mut share = Share { thread: self.id().clone(), window: resume.window, held_by: None, ..share };
        if let (Some(ratio), Some(slice)) = (resume.ratio, share.slices.last_mut()) {
            slice.ratio = ratio;
        }
        let shares = Shares::of(&share, resume.window);
        let (view, source) = (self.view(), self.source());
        share.slices = recut(view, source, self.meter(), &share, &shares, resume.buffer, Moments::Present)?;
        check_room(&share, resume.window, resume.buffer)?;
        Ok(share)
    }
}
