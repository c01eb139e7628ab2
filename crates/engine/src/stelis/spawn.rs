//! Spawning a thread: checked whole before anything is written, then written so that a crash can be put right.
//!
//! The anchor is tried on a copy of the parent's journal, and the child's slices are cut from that copy: a refusal, be it
//! for depth, for room or for calls that wait, leaves no trace. Then come the row, the anchor, the child's journal, its
//! share, and the row again. The parent is never worked on in the child's place: what cannot be spawned is an error.
//!
//! A fork of a spawned thread shares every entry with the thread it left, the share included, so it sees what that one sees.
//! It has an anchor of its own, is held by no process, and where the thread it left had ended it goes on from before that.

use super::anchor::AnchorFacts;
use super::finish::{ChronicleBy, ChronicleDraft, Finish, Finished, RetoldChronicle, is_passed_over};
use super::{ANCHOR_CAP, anchor};
use crate::condense::PromptLanguage;
use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::share::{SliceMoments, check_room, most, recut};
use crate::thread::{Staged, StagedBatch, Thread};
use komado_core::admit::EntryRefusal;
use komado_core::journal::{Anchor, Entry, Ratio, Setup, Share, Slice};
use komado_core::ladder::Blocks;
use komado_core::share::{Shares, windows};
use komado_core::slice::{SliceCut, SliceTools, counted, cut};
use komado_core::thread::{Branch, Header, Moment, ThreadStatus, branch};
use komado_core::{Kind, Seq, SessionId, Span, ThreadId, View};
use komado_store::{BranchFilter, Error as StoreError, OpenMode};
use std::collections::BTreeSet;
use std::ops::{Deref, DerefMut};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// What a thread is to be spawned with.
#[derive(Clone, PartialEq, Debug)]
pub struct Spawn {
    /// Its name; the next free one of its parent when there is none.
    pub name: Option<ThreadId>,
    /// What people call it.
    pub label: Option<String>,
    /// What it has of its parent's window.
    pub ratio: Ratio,
    /// How deep threads may nest.
    pub max_depth: u32,
    /// The model's window, in tokens as the session counts them.
    pub window: u64,
    /// Share of the window kept free for what no counter sees.
    pub buffer: f64,
    /// True when it may use what the threads above leave of their shares.
    pub lends: bool,
    /// Its own system prompt, tools and parameters, after those of the threads above.
    pub setup: Option<Setup>,
    /// The prompt for the chronicle, which tells at its end what was done.
    pub chronicle_prompt: Option<String>,
    /// The language of its anchor; that of the label or of the conversation when there is none.
    pub language: Option<PromptLanguage>,
    /// Most tokens of its anchor.
    pub anchor_cap: u64,
}

impl Spawn {
    /// The usual child in a window of `window` tokens.
    pub fn new(window: u64) -> Self {
        Self {
            name: None,
            label: None,
            ratio: Ratio::default(),
            max_depth: 3,
            window,
            buffer: 0.1,
            lends: true,
            setup: None,
            chronicle_prompt: None,
            language: None,
            anchor_cap: ANCHOR_CAP,
        }
    }
}

impl<'e> Thread<'e> {
    /// Spawns a thread that ends with its holder: dropped, it is closed as aborted.
    pub fn spawn(&mut self, spawn: &Spawn) -> Result<Child<'e>> {
        let held_by = Some(self.engine().name().to_owned());
        Ok(Child::new(self.spawn_held(spawn, held_by)?))
    }

    /// Spawns a thread that outlives the process, until someone ends it.
    pub fn spawn_free(&mut self, spawn: &Spawn) -> Result<Thread<'e>> {
        self.spawn_held(spawn, None)
    }

    fn spawn_held(&mut self, spawn: &Spawn, held_by: Option<String>) -> Result<Thread<'e>> {
        self.check_writer()?;
        let (header, share, anchor) = self.plan_child(spawn, held_by)?;
        let (engine, store) = (self.engine(), self.store());
        let row = row(&header, &share);
        store.put_branch(&row)?;
        self.commit(anchor)?;
        store.spawn(&header)?;
        let child = engine.open_as_left(&header.session, &header.thread, OpenMode::Write)?;
        let mut child = child.on_open_calls(self.on_open_calls).clipping(self.clip());
        child.begin(share, spawn.setup.clone())?;
        store.put_branch(&Branch { told: true, ..row })?;
        Ok(child)
    }

    /// The first entries of a spawned thread.
    fn begin(&mut self, share: Share, setup: Option<Setup>) -> Result<()> {
        let mut staged = self.stage();
        staged.push(Entry::Share(share), self.engine().now())?;
        if let Some(setup) = setup {
            staged.push(Entry::Setup(setup), self.engine().now())?;
        }
        let work = staged.finish();
        self.commit(work)
    }

    /// Decides everything about a child, and writes nothing: its header, its share, and the parent's batch with the anchor.
    fn plan_child(&self, spawn: &Spawn, held_by: Option<String>) -> Result<(Header, Share, StagedBatch)> {
        let above = self.share()?;
        let depth = u32::try_from(above.as_ref().map_or(0, Share::depth)).unwrap_or(u32::MAX);
        if depth >= spawn.max_depth {
            return Err(Error::TooDeep { thread: self.id().to_string(), depth, most: spawn.max_depth });
        }
        let thread = self.free_name(spawn.name.as_ref())?;
        let language = self.language_of(spawn)?;
        let mut header = Header {
            session: self.session().clone(),
            thread: thread.clone(),
            base: None,
            parent: None,
            label: spawn.label.clone(),
            timestamp: self.engine().now(),
        };
        let tale = AnchorFacts::begun(&header);
        let (cap, needed) = (spawn.anchor_cap, tale.least(language, self.meter()));
        if needed > cap {
            return Err(Error::AnchorCap { cap, needed });
        }
        let mut staged = self.stage();
        let at = push_anchor(&mut staged, &tale, language, self, spawn.anchor_cap)?;
        self.check_crowd(&staged, above.as_ref(), spawn.window)?;
        let mut share = Share {
            thread,
            window: spawn.window,
            slices: self.inherited(&staged, above, spawn.setup.as_ref())?,
            lends: spawn.lends,
            anchor_tokens: Some(u32::try_from(spawn.anchor_cap).unwrap_or(u32::MAX)),
            chronicle_prompt: spawn.chronicle_prompt.clone(),
            held_by,
        };
        let slice = self.own_slice(&staged, &share, at, spawn, language)?;
        share.slices.push(slice);
        check_room(&share, spawn.window, spawn.buffer)?;
        header.parent = Some(Moment { thread: self.id().clone(), seq: at });
        Ok((header, share, staged.finish()))
    }

    /// Refuses one more anchor where what must stay would then be more than this thread can show: an anchor of a thread
    /// that has not ended cannot leave.
    fn check_crowd(&self, staged: &Staged<'_>, share: Option<&Share>, window: u64) -> Result<()> {
        let room = share.map_or(window, |share| Shares::of(share, window).room());
        // A twentieth is the least that is left for an answer.
        let most = room - room / 20;
        let blocks = Blocks::of(staged.view(), staged.source(), most)?;
        let (setup, anchors) = (staged.view().weight().setup, blocks.anchors);
        let pinned = blocks.pinned + blocks.system;
        let must = setup + pinned + anchors;
        if must <= most {
            return Ok(());
        }
        Err(Error::Crowded { thread: self.id().to_string(), room, most, must, setup, pinned, anchors })
    }

    /// The share of a thread whose own was never written: what its row and its parent still say, and of its parent the
    /// anchor alone.
    pub(super) fn least_share(&self, parent: &Thread<'_>, row: &Branch) -> Result<Share> {
        let Some(moment) = &self.header().parent else { return Err(self.shareless()) };
        let above = parent.share()?;
        let language = parent.anchor_language(moment.seq, parent)?;
        let window = match &above {
            Some(share) => share.window,
            None => {
                let known = self.engine().session(self.session())?.meta.config.context_length;
                known.map_or_else(|| parent.view().tokens(), u64::from)
            }
        };
        let mut share = Share {
            thread: self.id().clone(),
            window,
            lends: above.as_ref().is_none_or(|share| share.lends),
            slices: above.map_or_else(Vec::new, |share| share.slices),
            anchor_tokens: None,
            chronicle_prompt: None,
            held_by: None,
        };
        share.slices.push(Slice {
            replace: Vec::new(),
            thread: parent.id().clone(),
            at: moment.seq,
            ratio: Ratio::new(row.window_ratio).unwrap_or_default(),
            keep: vec![Span::new(moment.seq, moment.seq)],
            head: heading(parent.id(), language),
            tokens: 0,
        });
        share.slices = counted(self.source(), self.meter(), &share, SliceTools::Offered)?;
        Ok(share)
    }

    /// The name asked for, or the next free one below this thread: `stelis_1`, and below that `stelis_1_1`.
    pub fn free_name(&self, wanted: Option<&ThreadId>) -> Result<ThreadId> {
        let session = self.session();
        let mut taken: BTreeSet<ThreadId> =
            self.store().threads(session)?.into_iter().map(|header| header.thread).collect();
        taken.extend(self.store().branches(session, BranchFilter::All)?.into_iter().map(|row| row.thread));
        if let Some(name) = wanted {
            if taken.contains(name) {
                return Err(komado_store::Error::ThreadExists(session.clone(), name.clone()).into());
            }
            return Ok(name.clone());
        }
        let stem = if self.id().is_root() { "stelis" } else { self.id().as_str() };
        let mut n = 1_u64;
        loop {
            let name = ThreadId::new(format!("{stem}_{n}"))?;
            if !taken.contains(&name) {
                return Ok(name);
            }
            n += 1;
        }
    }

    /// A Japanese label decides; else what the user said last does.
    fn language_of(&self, spawn: &Spawn) -> Result<PromptLanguage> {
        let label = spawn.label.as_deref().map(PromptLanguage::of);
        Ok(match (spawn.language, label) {
            (Some(language), _) => language,
            (None, Some(PromptLanguage::Japanese)) => PromptLanguage::Japanese,
            _ => self.speaks()?,
        })
    }

    /// The language that the user spoke last.
    pub(super) fn speaks(&self) -> Result<PromptLanguage> {
        let words = self.last_words(|kind| kind == Kind::User)?;
        Ok(words.map_or(PromptLanguage::English, |words| PromptLanguage::of(&words)))
    }

    /// The language of the anchor at `seq`; that of `child`'s user where it is none.
    fn anchor_language(&self, seq: Seq, child: &Thread<'_>) -> Result<PromptLanguage> {
        match self.record(seq)?.entry {
            Entry::Anchor(anchor) => Ok(anchor::language(&anchor.text)),
            _ => child.speaks(),
        }
    }

    /// A new anchor for a child that goes by `header`, in the language of the one at `before`: its number, and the batch.
    fn staged_anchor(&self, header: &Header, before: Seq, child: &Thread<'_>) -> Result<(Seq, StagedBatch)> {
        let language = self.anchor_language(before, child)?;
        let cap = anchor::cap(child.share()?.as_ref());
        let mut staged = self.stage();
        let seq = push_anchor(&mut staged, &AnchorFacts::begun(header), language, self, cap)?;
        Ok((seq, staged.finish()))
    }

    /// What this thread sees of those above it, for its child to see as well.
    fn inherited(
        &self,
        staged: &Staged<'_>,
        above: Option<Share>,
        setup: Option<&Setup>,
    ) -> Result<Vec<Slice>> {
        let Some(share) = above else { return Ok(Vec::new()) };
        let own = SliceTools::above(self.view().own_setup(self.source())?.as_ref());
        let tools = if own == SliceTools::Left { own } else { SliceTools::above(setup) };
        // A fork sees the anchor of the thread it left in brief; its children see its own so.
        let share = Share { thread: self.id().clone(), ..share };
        Ok(counted(staged.source(), self.meter(), &share, tools)?)
    }

    /// What the child sees of this thread, its own anchor last.
    fn own_slice(
        &self,
        staged: &Staged<'_>,
        share: &Share,
        at: Seq,
        spawn: &Spawn,
        language: PromptLanguage,
    ) -> Result<Slice> {
        let mut ratios: Vec<Ratio> = share.slices.iter().map(|slice| slice.ratio).collect();
        ratios.push(spawn.ratio);
        let line = windows(spawn.window, &ratios);
        let protected = match line[..] {
            [.., own, child] => own.saturating_sub(child),
            _ => 0,
        };
        let within = |thread: &ThreadId| share.is_within(thread) || thread == self.id();
        let wanted = SliceCut {
            thread: self.id(),
            at,
            ratio: spawn.ratio,
            most: most(protected, spawn.buffer),
            head: heading(self.id(), language),
            tools: SliceTools::above(spawn.setup.as_ref()),
            within: &within,
        };
        Ok(cut(staged.source(), self.meter(), wanted)??)
    }
}

/// Appends the anchor of a new child; gives its number.
pub(super) fn push_anchor(
    staged: &mut Staged<'_>,
    tale: &AnchorFacts,
    language: PromptLanguage,
    parent: &Thread<'_>,
    cap: u64,
) -> Result<Seq> {
    let entry = Entry::Anchor(Anchor {
        thread: tale.thread.clone(),
        label: tale.label.clone(),
        ending: None,
        text: tale.full(language, parent.meter(), cap),
        brief: Some(tale.brief(language)),
        first: None,
    });
    staged.push(entry, tale.started.clone())
}

/// Says, before a slice, whose it is.
fn heading(thread: &ThreadId, language: PromptLanguage) -> String {
    match language {
        PromptLanguage::English => {
            format!(
                "[From thread {thread}, which this work was started from. It stays in view here; an @N in it is {thread}@N.]"
            )
        }
        PromptLanguage::Japanese => {
            format!(
                "[以下は、この作業の元になったスレッド {thread} の内容です。ここでは常に表示されます。その中の @N は {thread}@N です。]"
            )
        }
    }
}

/// The row of a thread that is about to begin.
fn row(header: &Header, share: &Share) -> Branch {
    Branch {
        session: header.session.clone(),
        thread: header.thread.clone(),
        parent: header.parent.as_ref().map(|moment| moment.thread.clone()),
        depth: u32::try_from(share.depth()).unwrap_or(u32::MAX),
        window_ratio: share.slices.last().map_or(1.0, |slice| slice.ratio.get()),
        status: ThreadStatus::Active,
        label: header.label.clone(),
        chronicle_summary: None,
        held_by: share.held_by.clone(),
        told: false,
        created_at: header.timestamp.clone(),
        completed_at: None,
    }
}

impl Thread<'_> {
    /// Forks this thread, which was spawned from `parent`.
    pub(crate) fn fork_child(&self, mut header: Header, parent: &Moment) -> Result<Header> {
        let at = header.base_seq();
        if View::fold(self.source(), at)?.share().is_none() {
            let why = "the thread began after that; name a later entry";
            return Err(EntryRefusal::NoEntry { seq: at, why }.into());
        }
        let engine = self.engine();
        self.free_name(Some(&header.thread))?;
        let mut above = engine
            .open_as_left(self.session(), &parent.thread, OpenMode::Write)
            .map_err(|error| self.parent_away(error, &parent.thread))?;
        let (seq, work) = above.staged_anchor(&header, parent.seq, self)?;
        header.parent = Some(Moment { thread: parent.thread.clone(), seq });
        // Under its own name, and not held.
        let row = Branch { held_by: None, told: false, ..branch(&header, self.source())? };
        self.store().put_branch(&row)?;
        above.commit(work)?;
        self.store().spawn(&header)?;
        let mut fork = engine.open_as_left(self.session(), &header.thread, OpenMode::Write)?;
        fork.begin_fork()?;
        drop(fork);
        above.tend()?;
        above.settle()?;
        Ok(header)
    }

    /// Opens a fork again that was closed, and lets go of it where the thread it left was held.
    fn begin_fork(&mut self) -> Result<()> {
        self.reopen()?;
        let before = self.share()?;
        let share = self.recounted()?.map(|share| Share { held_by: None, ..share });
        if let Some(share) = share.filter(|share| before.as_ref() != Some(share)) {
            self.append(Entry::Share(share))?;
        }
        self.put_row()
    }

    pub(super) fn parent_away(&self, error: Error, parent: &ThreadId) -> Error {
        if is_passed_over(&error) && !matches!(error, Error::Store(StoreError::Io { .. })) {
            return Error::ParentBusy { thread: self.id().to_string(), parent: parent.to_string() };
        }
        error
    }
}

// A guard on a spawned thread: whatever happens to its holder, the thread comes to an end.
//
// Dropped without a word, by an early return or by a panic, it closes the thread as aborted, with what the digest can
// tell of it. Dropping never fails and never panics: what cannot be written now stays marked in the table of threads and
// is put right when the session is next opened for writing.

/// Why a thread ended whose end was not told.
const DROPPED: &str = "the work broke off before its end";

/// A spawned thread that ends with its holder.
pub struct Child<'e> {
    thread: Thread<'e>,
    /// Whether the thread is still the guard's to end.
    is_held: bool,
}

impl<'e> Child<'e> {
    pub(super) fn new(thread: Thread<'e>) -> Self {
        Self { thread, is_held: true }
    }

    /// Ends the thread and tells its parent. A handle on another thread is not a reason not to end it: the parent is then told
    /// when it is next at work. Words for its parent that are none are no reason either: the digest tells in their place,
    /// and why is said in [`Finished::declined`].
    pub fn end(mut self, parent: &mut Thread<'_>, mut finish: Finish<'_>) -> Result<Finished> {
        let wordless = finish.telling.check().err().map(|why| why.to_string());
        if wordless.is_some() {
            finish.telling = ChronicleBy::Digest;
        }
        let finished = self.thread.finish(finish)?;
        self.is_held = false;
        let (session, thread) = (self.thread.session().clone(), self.thread.id().clone());
        drop(self);
        let tended = if *parent.session() == session { parent.tend()? } else { Vec::new() };
        let is_told = tended.iter().any(|tended| tended.thread == thread);
        let declined = finished.declined.or(wordless);
        Ok(Finished { is_told, declined, ..finished })
    }

    /// Breaks the thread off, with what the digest can tell of it, and tells its parent.
    pub fn abort(self, parent: &mut Thread<'_>, why: Option<String>) -> Result<Finished> {
        self.end(parent, Finish::aborted(why))
    }

    /// Lets the thread wait, held by no process, and tells its parent.
    pub fn pause(mut self, parent: &mut Thread<'_>, why: Option<String>) -> Result<Finished> {
        self.let_go()?;
        self.end(parent, Finish::paused(why))
    }

    /// Lets go of the thread: it outlives its holder and its process.
    pub fn detach(mut self) -> Result<Thread<'e>> {
        self.let_go()?;
        self.is_held = false;
        self.thread.settle()?;
        let (id, thread) = (self.thread.session().clone(), self.thread.id().clone());
        let (engine, calls, clip) = (self.thread.engine(), self.thread.on_open_calls, self.thread.clip());
        drop(self);
        Ok(engine.open_as_left(&id, &thread, OpenMode::Write)?.on_open_calls(calls).clipping(clip))
    }

    /// Says that no process holds the thread any more.
    fn let_go(&mut self) -> Result<()> {
        if let Some(share) = self.thread.share()? {
            self.thread.append(Entry::Share(Share { held_by: None, ..share }))?;
        }
        self.thread.put_row()
    }
}

impl<'e> Deref for Child<'e> {
    type Target = Thread<'e>;

    fn deref(&self) -> &Self::Target {
        &self.thread
    }
}

impl DerefMut for Child<'_> {
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.thread
    }
}

impl Drop for Child<'_> {
    fn drop(&mut self) {
        if !self.is_held {
            return;
        }
        let thread = &mut self.thread;
        // No caller is left to hear of a failure; the table of threads remembers that something is to be put right.
        let _ = catch_unwind(AssertUnwindSafe(|| thread.finish(Finish::aborted(Some(DROPPED.to_owned())))));
    }
}

// The life of a child that has no handle: ended, paused, resumed, told again, by name.
//
// Each verb opens the child, does its work there, and lets the parent look after its anchor. A parent that someone else
// writes is told later; that is not a failure.

/// How a thread goes on.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct ResumeChild {
    /// The model's window, in tokens as the session counts them.
    pub window: u64,
    /// Share of the window kept free for what no counter sees.
    pub buffer: f64,
    /// What it gets of its parent's window; as before while absent.
    pub ratio: Option<Ratio>,
}

impl ResumeChild {
    /// In a window of `window` tokens, with the usual buffer.
    pub const fn new(window: u64) -> Self {
        Self { window, buffer: 0.1, ratio: None }
    }
}

impl Engine {
    /// Ends or pauses a spawned thread and tells its parent. One that lost its holder is broken off already by being opened,
    /// and refused here.
    pub fn finish_child(&self, id: &SessionId, thread: &ThreadId, finish: Finish<'_>) -> Result<Finished> {
        let mut child = self.open(id, thread, OpenMode::Write)?;
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
    /// see now. From then on no process holds it. Gives the entry of its new share.
    pub fn resume_child(&self, id: &SessionId, thread: &ThreadId, resume: &ResumeChild) -> Result<Seq> {
        let mut child = self.open_as_left(id, thread, OpenMode::Write)?;
        let parent = Self::parent_of(&child)?;
        let above = self.open_as_left(id, &parent, OpenMode::Read)?;
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
            .open_as_left(child.session(), &parent, OpenMode::Write)
            .map_err(|error| child.parent_away(error, &parent))?;
        let Some(first) = above.anchor_of(child.header())? else { return Ok(()) };
        let (_, work) = above.staged_anchor(child.header(), first, child)?;
        // Whatever becomes of the child now, the new anchor will say it.
        child.put_row()?;
        above.commit(work)?;
        above.settle()
    }

    /// Writes the chronicle of a spawned thread anew, by hand or by a summariser; its parent's anchor follows.
    pub fn write_chronicle(
        &self,
        id: &SessionId,
        thread: &ThreadId,
        telling: ChronicleBy<'_>,
    ) -> Result<RetoldChronicle> {
        let mut child = self.open_as_left(id, thread, OpenMode::Write)?;
        let parent = Self::parent_of(&child)?;
        let partial = child.status()? != ThreadStatus::Completed;
        let ChronicleDraft { chronicle, declined } = child.write_story(telling, partial)?;
        let Some(chronicle) = chronicle else {
            let why = "nothing was said in the thread that could be told; write the chronicle yourself";
            return Err(EntryRefusal::NoEffect { why }.into());
        };
        child.put_row()?;
        child.append(Entry::Chronicle(chronicle.clone()))?;
        child.put_row()?;
        child.settle()?;
        drop(child);
        self.tell_parent(id, &parent)?;
        Ok(RetoldChronicle { chronicle, declined })
    }
}

impl Thread<'_> {
    /// Goes on after a close, with slices cut from the present of the threads above.
    fn go_on(&mut self, resume: &ResumeChild) -> Result<Seq> {
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
    fn resumed_share(&self, resume: &ResumeChild) -> Result<Share> {
        let name = self.id().to_string();
        let Some(share) = self.share()? else { return Err(self.shareless()) };
        if self.view().closed().is_none() && share.held_by.is_none() {
            return Err(Error::NotClosed(name));
        }
        let mut share = Share { thread: self.id().clone(), window: resume.window, held_by: None, ..share };
        if let (Some(ratio), Some(slice)) = (resume.ratio, share.slices.last_mut()) {
            slice.ratio = ratio;
        }
        let shares = Shares::of(&share, resume.window);
        let (view, source) = (self.view(), self.source());
        share.slices =
            recut(view, source, self.meter(), &share, &shares, resume.buffer, SliceMoments::Present)?;
        check_room(&share, resume.window, resume.buffer)?;
        Ok(share)
    }
}
