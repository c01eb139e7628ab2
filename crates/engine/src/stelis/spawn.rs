//! Spawning a thread: checked whole before anything is written, then written so that a crash can be put right.
//!
//! The anchor is tried on a copy of the parent's journal, and the child's slices are cut from that copy: a refusal, be it
//! for depth, for room or for calls that wait, leaves no trace. Then come the row, the anchor, the child's journal, its
//! share, and the row again. The parent is never worked on in the child's place: what cannot be spawned is an error.
//!
//! A fork of a spawned thread shares every entry with the thread it left, the share included, so it sees what that one sees.
//! It has an anchor of its own, is held by no process, and where the thread it left had ended it goes on from before that.

use super::ANCHOR_CAP;
use super::anchor::{self, Tale};
use super::child::Child;
use super::finish::is_passed_over;
use crate::condense::Language;
use crate::error::{Error, Result};
use crate::share::{check_room, most};
use crate::staged::{Staged, Work};
use crate::thread::Thread;
use komado_core::admit::Refusal;
use komado_core::journal::{Anchor, Entry, Ratio, Setup, Share, Slice};
use komado_core::ladder::Blocks;
use komado_core::share::{Shares, windows};
use komado_core::slice::{Cut, Tools, counted, cut};
use komado_core::thread::{Branch, Header, Moment, Status, branch};
use komado_core::{Kind, Seq, Span, ThreadId, View};
use komado_store::{Error as StoreError, Mode, Which};
use std::collections::BTreeSet;

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
    /// What is asked of whoever tells, at its end, what was done.
    pub chronicle_prompt: Option<String>,
    /// The language of its anchor; that of the label or of the conversation when there is none.
    pub language: Option<Language>,
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

/// A thread that may be spawned: everything about it is decided, nothing is written.
struct Plan {
    header: Header,
    share: Share,
    /// The parent's journal with the anchor.
    anchor: Work,
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
        let Plan { header, share, anchor } = self.plan_child(spawn, held_by)?;
        let (engine, store) = (self.engine(), self.store());
        let row = row(&header, &share);
        store.put_branch(&row)?;
        self.commit(anchor)?;
        store.spawn(&header)?;
        let child = engine.open_as_left(&header.session, &header.thread, Mode::Write)?;
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

    fn plan_child(&self, spawn: &Spawn, held_by: Option<String>) -> Result<Plan> {
        let above = self.share()?;
        let depth = above.as_ref().map_or(0, Share::depth);
        self.check_depth(depth, spawn.max_depth)?;
        let thread = self.free_name(spawn.name.as_ref())?;
        let language = self.language_of(spawn)?;
        let started = self.engine().now();
        let tale = Tale::begun(thread.clone(), spawn.label.clone(), started.clone());
        check_cap(&tale, language, self, spawn.anchor_cap)?;
        let mut staged = self.stage();
        let at = push_anchor(&mut staged, &tale, language, self, spawn.anchor_cap)?;
        self.check_crowd(&staged, above.as_ref(), spawn.window)?;
        let mut share = Share {
            thread: thread.clone(),
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
        let header = Header {
            session: self.session().clone(),
            thread,
            base: None,
            parent: Some(Moment { thread: self.id().clone(), seq: at }),
            label: spawn.label.clone(),
            timestamp: started,
        };
        Ok(Plan { header, share, anchor: staged.finish() })
    }

    fn check_depth(&self, depth: usize, most: u32) -> Result<()> {
        let depth = u32::try_from(depth).unwrap_or(u32::MAX);
        if depth < most {
            return Ok(());
        }
        Err(Error::TooDeep { thread: self.id().to_string(), depth, most })
    }

    /// Refuses one more anchor where what must stay would then be more than this thread can show: an anchor of a thread
    /// that has not ended cannot leave.
    fn check_crowd(&self, staged: &Staged<'_>, share: Option<&Share>, window: u64) -> Result<()> {
        let room = share.map_or(window, |share| Shares::of(share, window).room());
        // A twentieth is the least that is left for an answer.
        let most = room - room / 20;
        let blocks = Blocks::of(staged.view(), staged.source())?;
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
        let language = match parent.record(moment.seq)?.entry {
            Entry::Anchor(anchor) => anchor::language(&anchor.text),
            _ => parent.speaks()?,
        };
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
        share.slices = counted(self.source(), self.meter(), &share, Tools::Offered)?;
        Ok(share)
    }

    /// The name asked for, or the next free one below this thread: `stelis_1`, and below that `stelis_1_1`.
    pub fn free_name(&self, wanted: Option<&ThreadId>) -> Result<ThreadId> {
        let session = self.session();
        let mut taken: BTreeSet<ThreadId> =
            self.store().threads(session)?.into_iter().map(|header| header.thread).collect();
        taken.extend(self.store().branches(session, Which::All)?.into_iter().map(|row| row.thread));
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
    fn language_of(&self, spawn: &Spawn) -> Result<Language> {
        let label = spawn.label.as_deref().map(Language::of);
        Ok(match (spawn.language, label) {
            (Some(language), _) => language,
            (None, Some(Language::Japanese)) => Language::Japanese,
            _ => self.speaks()?,
        })
    }

    /// The language that the user spoke last.
    pub(super) fn speaks(&self) -> Result<Language> {
        let words = self.last_words(|kind| kind == Kind::User)?;
        Ok(words.map_or(Language::English, |words| Language::of(&words)))
    }

    /// What this thread sees of those above it, for its child to see as well.
    fn inherited(
        &self,
        staged: &Staged<'_>,
        above: Option<Share>,
        setup: Option<&Setup>,
    ) -> Result<Vec<Slice>> {
        let Some(share) = above else { return Ok(Vec::new()) };
        let own = Tools::above(self.view().own_setup(self.source())?.as_ref());
        let tools = if own == Tools::Left { own } else { Tools::above(setup) };
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
        language: Language,
    ) -> Result<Slice> {
        let mut ratios: Vec<Ratio> = share.slices.iter().map(|slice| slice.ratio).collect();
        ratios.push(spawn.ratio);
        let line = windows(spawn.window, &ratios);
        let protected = match line[..] {
            [.., own, child] => own.saturating_sub(child),
            _ => 0,
        };
        let within = |thread: &ThreadId| share.is_within(thread) || thread == self.id();
        let wanted = Cut {
            thread: self.id(),
            at,
            ratio: spawn.ratio,
            most: most(protected, spawn.buffer),
            head: heading(self.id(), language),
            tools: Tools::above(spawn.setup.as_ref()),
            within: &within,
        };
        Ok(cut(staged.source(), self.meter(), wanted)??)
    }
}

/// Appends the anchor of a new child; gives its number.
pub(super) fn push_anchor(
    staged: &mut Staged<'_>,
    tale: &Tale,
    language: Language,
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

fn check_cap(tale: &Tale, language: Language, parent: &Thread<'_>, cap: u64) -> Result<()> {
    let needed = tale.least(language, parent.meter());
    if needed <= cap { Ok(()) } else { Err(Error::AnchorCap { cap, needed }) }
}

/// Says, before a slice, whose it is.
fn heading(thread: &ThreadId, language: Language) -> String {
    match language {
        Language::English => {
            format!(
                "[From thread {thread}, which this work was started from. It stays in view here; an @N in it is {thread}@N.]"
            )
        }
        Language::Japanese => {
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
        status: Status::Active,
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
            return Err(Refusal::NoEntry { seq: at, why }.into());
        }
        let engine = self.engine();
        self.free_name(Some(&header.thread))?;
        let mut above = engine
            .open_as_left(self.session(), &parent.thread, Mode::Write)
            .map_err(|error| self.parent_away(error, &parent.thread))?;
        let language = match above.record(parent.seq)?.entry {
            Entry::Anchor(own) => anchor::language(&own.text),
            _ => self.speaks()?,
        };
        let tale = Tale::begun(header.thread.clone(), header.label.clone(), header.timestamp.clone());
        let cap = anchor::cap(self.share()?.as_ref());
        let mut staged = above.stage();
        let seq = push_anchor(&mut staged, &tale, language, &above, cap)?;
        let work = staged.finish();
        header.parent = Some(Moment { thread: parent.thread.clone(), seq });
        // Under its own name, and not held.
        let row = Branch { held_by: None, told: false, ..branch(&header, self.source())? };
        self.store().put_branch(&row)?;
        above.commit(work)?;
        self.store().spawn(&header)?;
        let mut fork = engine.open_as_left(self.session(), &header.thread, Mode::Write)?;
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
