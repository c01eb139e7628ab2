//! The threads of a session as a tree, in numbers: for whoever draws it.
//!
//! Everything comes from the journals; the table of threads is not asked. A fork stands beside the thread it left. What a
//! rewind of the parent left without an anchor is still there, and marked.

use super::anchor;
use crate::engine::Engine;
use crate::error::Result;
use crate::thread::Thread;
use komado_core::journal::{Chronicle, Entry, Ratio};
use komado_core::share::Shares;
use komado_core::thread::{Header, Status};
use komado_core::{SessionId, ThreadId};
use komado_store::Mode;

/// The threads of a session.
#[derive(Clone, PartialEq, Debug)]
pub struct Tree {
    /// The session.
    pub session: SessionId,
    /// The root first, then its forks.
    pub nodes: Vec<Node>,
}

/// One thread.
#[derive(Clone, PartialEq, Debug)]
pub struct Node {
    /// Its header; `base` says what it was forked from.
    pub header: Header,
    /// Where it is in its life.
    pub status: Status,
    /// How far below the root it is.
    pub depth: u32,
    /// What it has of its parent's window; none for a thread that was not spawned.
    pub ratio: Option<Ratio>,
    /// The window, shared out; none for a thread that was not spawned.
    pub shares: Option<Shares>,
    /// The window by which it was shared out.
    pub window: Option<u64>,
    /// Tokens of its own: setup, messages, summaries.
    pub tokens: u64,
    /// Tokens of what it sees of the threads above.
    pub above: u64,
    /// Messages said in it.
    pub messages: u64,
    /// What was done in it.
    pub chronicle: Option<Chronicle>,
    /// What its anchor says in its parent.
    pub anchor: Option<String>,
    /// True when its parent was rewound to before its anchor.
    pub is_adrift: bool,
    /// The process that ends it by ending itself.
    pub held_by: Option<String>,
    /// The threads spawned from it, by age.
    pub children: Vec<Self>,
}

impl Engine {
    /// The threads of a session. Shares are those of `window`, or of the window each thread was spawned in.
    pub fn tree(&self, id: &SessionId, window: Option<u64>) -> Result<Tree> {
        let headers = self.store().threads(id)?;
        let nodes = self.nodes(id, &headers, None, window)?;
        Ok(Tree { session: id.clone(), nodes })
    }

    /// The threads that were spawned from `parent`, forks beside what they left.
    fn nodes(
        &self,
        id: &SessionId,
        headers: &[Header],
        parent: Option<&Thread<'_>>,
        window: Option<u64>,
    ) -> Result<Vec<Node>> {
        let name = parent.map(Thread::id);
        let own = |header: &&Header| header.parent.as_ref().map(|moment| &moment.thread) == name;
        let mut nodes = Vec::new();
        for header in headers.iter().filter(own) {
            let thread = self.open_as_left(id, &header.thread, Mode::Read)?;
            let mut node = node(&thread, parent, window)?;
            node.children = self.nodes(id, headers, Some(&thread), window)?;
            nodes.push(node);
        }
        Ok(nodes)
    }
}

impl Tree {
    /// The node of a thread.
    pub fn node(&self, thread: &ThreadId) -> Option<&Node> {
        find(&self.nodes, thread)
    }
}

fn find<'a>(nodes: &'a [Node], thread: &ThreadId) -> Option<&'a Node> {
    nodes.iter().find_map(|node| {
        if node.header.thread == *thread { Some(node) } else { find(&node.children, thread) }
    })
}

fn node(thread: &Thread<'_>, parent: Option<&Thread<'_>>, window: Option<u64>) -> Result<Node> {
    let (view, share) = (thread.view(), thread.share()?);
    let chronicle = match view.chronicle() {
        Some(seq) => match thread.record(seq)?.entry {
            Entry::Chronicle(chronicle) => Some(chronicle),
            _ => None,
        },
        None => None,
    };
    let said = parent.map(|parent| shown_anchor(parent, thread.header())).transpose()?.flatten();
    let window = window.or(share.as_ref().map(|share| share.window));
    let shares = share.as_ref().zip(window).map(|(share, window)| Shares::of(share, window));
    Ok(Node {
        header: thread.header().clone(),
        status: thread.status()?,
        depth: share.as_ref().map_or(0, |share| u32::try_from(share.depth()).unwrap_or(u32::MAX)),
        ratio: share.as_ref().and_then(|share| share.slices.last()).map(|slice| slice.ratio),
        shares,
        window,
        tokens: view.tokens() - view.weight().above,
        above: view.weight().above,
        messages: anchor::count(thread.source(), view)?,
        chronicle,
        is_adrift: parent.is_some() && said.is_none(),
        anchor: said,
        held_by: share.and_then(|share| share.held_by),
        children: Vec::new(),
    })
}

/// What the anchor of `child` says now; none when it does not stand in the parent's present.
fn shown_anchor(parent: &Thread<'_>, child: &Header) -> Result<Option<String>> {
    let Some(first) = parent.anchor_of(child)? else { return Ok(None) };
    Ok(match parent.record(parent.view().anchor(first))?.entry {
        Entry::Anchor(anchor) => Some(anchor.text),
        _ => None,
    })
}
