//! What can be known of a graph before it runs: every way leads on, every way can end, and what is begun is ended.
//!
//! A graph may have holes, which were told: a way that could not be read, an id that two nodes have, a node of no known
//! type. Behind a hole anything may be, so nothing is told that mending it could undo.

use super::node::{ChildStart, NodeAction, PlaybookNode};
use super::read::{HOLE, PlaybookDraft, among, place_of};
use super::vars::{RESULTS, TASK};
use super::{Playbook, PlaybookProblemFound};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// A graph while it is looked at.
pub(super) struct PlaybookGraph<'p> {
    place: &'p str,
    draft: &'p PlaybookDraft,
    /// How deep the settings let child threads nest.
    most: u32,
    /// Every id, and the node that it surely names.
    ids: BTreeMap<&'p str, Option<&'p PlaybookNode>>,
    problems: Vec<PlaybookProblemFound>,
}

/// Everything that is wrong with the graph of a playbook, as far as it was read, where threads may be `most` deep.
pub(super) fn graph(place: &str, draft: &PlaybookDraft, most: u32) -> Vec<PlaybookProblemFound> {
    let mut graph = PlaybookGraph { place, draft, most, ids: BTreeMap::new(), problems: Vec::new() };
    graph.check_ids();
    graph.check_ways();
    let reached = graph.check_reached();
    graph.check_ends(&reached);
    graph.check_nesting();
    graph.check_spinning();
    graph.problems
}

impl<'p> PlaybookGraph<'p> {
    fn tell(&mut self, id: &str, why: impl Into<String>) {
        self.problems.push(PlaybookProblemFound { place: place_of(self.place, id), why: why.into() });
    }

    fn nodes(&self) -> &'p [PlaybookNode] {
        &self.draft.playbook.nodes
    }

    fn start(&self) -> &'p str {
        &self.draft.playbook.start
    }

    /// The node that an id surely names.
    fn node(&self, id: &str) -> Option<&'p PlaybookNode> {
        self.ids.get(id).copied().flatten()
    }

    /// Those that are surely named, with their ids.
    fn sure(&self) -> impl Iterator<Item = (&'p str, &'p PlaybookNode)> {
        self.ids.iter().filter_map(|(id, node)| Some((*id, (*node)?)))
    }

    /// True when that is not known some way of a node leads.
    fn has_hole(&self, node: &PlaybookNode) -> bool {
        node.ways().into_iter().any(|(_, to)| self.node(to).is_none())
    }

    fn check_ids(&mut self) {
        let unknown = self.draft.unknown.iter().map(|id| (id.as_str(), None));
        let read = self.nodes().iter().map(|node| (node.id.as_str(), Some(node)));
        for (id, node) in read.chain(unknown) {
            if self.ids.insert(id, node).is_some() {
                self.ids.insert(id, None);
                self.tell(id, "two nodes have this id; each needs its own");
            }
        }
    }

    fn check_ways(&mut self) {
        let start = self.start();
        if let Some(near) = self.not_there(start) {
            let why = format!("\"start\" names a node that is not there: {start:?}{near}");
            self.problems.push(PlaybookProblemFound { place: self.place.to_owned(), why });
        }
        for node in self.nodes() {
            for (field, to) in node.ways() {
                if let Some(near) = self.not_there(to) {
                    self.tell(&node.id, format!("{field:?} leads to a node that is not there: {to:?}{near}"));
                }
            }
        }
    }

    /// Of an id that no node has: which may have been meant. A node without an id may be the one.
    fn not_there(&self, id: &str) -> Option<String> {
        let is_told = id == HOLE || self.draft.has_nameless;
        (!is_told && !self.ids.contains_key(id)).then(|| among(id, self.ids.keys().copied()))
    }

    /// Every node can be come to; gives those that can, or may.
    fn check_reached(&mut self) -> BTreeSet<&'p str> {
        let start = self.start();
        let (mut reached, mut waits) = (BTreeSet::from([start]), vec![start]);
        let mut is_sure = true;
        while let Some(id) = waits.pop() {
            let ways = self.node(id).map(|node| node.ways());
            is_sure &= ways.is_some();
            let to = ways.into_iter().flatten().map(|(_, to)| to);
            waits.extend(to.filter(|to| reached.insert(to)));
        }
        if !is_sure {
            return self.ids.keys().copied().collect();
        }
        for node in self.nodes().iter().filter(|node| !reached.contains(node.id.as_str())) {
            self.tell(
                &node.id,
                format!("no way leads here from {start:?}: lead one here, or take the node out"),
            );
        }
        reached
    }

    /// From every node some way leads to an end.
    fn check_ends(&mut self, reached: &BTreeSet<&str>) {
        let mut back: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for node in self.nodes() {
            node.ways().into_iter().for_each(|(_, to)| back.entry(to).or_default().push(&node.id));
        }
        let may_end =
            |node: &&PlaybookNode| matches!(node.does, NodeAction::End { .. }) || self.has_hole(node);
        let mut waits: Vec<&str> = self.nodes().iter().filter(may_end).map(|node| node.id.as_str()).collect();
        let mut ending: BTreeSet<&str> = waits.iter().copied().collect();
        while let Some(id) = waits.pop() {
            let before = back.get(id).map(Vec::as_slice).unwrap_or_default();
            waits.extend(before.iter().copied().filter(|id| ending.insert(id)));
        }
        for node in self.nodes() {
            let id = node.id.as_str();
            if self.node(id).is_some() && reached.contains(id) && !ending.contains(id) {
                self.tell(id, "no way leads from here to an \"end\" node: it would never end");
            }
        }
    }

    /// Child threads are nested the same on every way, are all ended, and none is ended that was not begun.
    fn check_nesting(&mut self) {
        let start = self.start();
        let mut depths: BTreeMap<&str, u32> = BTreeMap::from([(start, 0)]);
        let mut waits = VecDeque::from([start]);
        while let Some(id) = waits.pop_front() {
            let (Some(node), depth) = (self.node(id), depths[id]) else { continue };
            let Some(after) = self.depth_after(node, depth) else { continue };
            for (_, to) in node.ways() {
                match depths.get(to) {
                    _ if self.node(to).is_none() => {}
                    None => {
                        depths.insert(to, after);
                        waits.push_back(to);
                    }
                    Some(known) if *known == after => {}
                    Some(known) => self.tell(
                        to,
                        format!(
                            "child threads are {known} deep on one way here and {after} deep on the way from {id:?}: end \
                             them before the ways meet"
                        ),
                    ),
                }
            }
        }
    }

    /// How deep child threads are after a node; `None` when that cannot be said.
    fn depth_after(&mut self, node: &'p PlaybookNode, depth: u32) -> Option<u32> {
        match &node.does {
            NodeAction::Start(start) => {
                self.check_depth(node, start, depth + 1);
                Some(depth + 1)
            }
            NodeAction::Stop { .. } if depth == 0 => {
                self.tell(&node.id, "no \"stelis_start\" stands before it: there is no child thread to end");
                None
            }
            NodeAction::Stop { .. } => Some(depth - 1),
            NodeAction::End { .. } if depth > 0 => {
                self.tell(&node.id, "a child thread is still open here: put a \"stelis_end\" before it");
                None
            }
            _ => Some(depth),
        }
    }

    /// Its thread may be so deep. Of those inside one that may not be nothing is told: it follows.
    fn check_depth(&mut self, node: &'p PlaybookNode, start: &ChildStart, deep: u32) {
        if let Some(most) = start.max_depth.filter(|most| deep > *most) {
            self.tell(&node.id, format!("its thread would be {deep} deep, and \"max_depth\" is {most}"));
        } else if deep - 1 == self.most {
            let why = format!(
                "its thread would be {deep} deep, and at most {} may be nested (threads.max_depth, or the session's own \
                 max_depth): end another thread before it, or allow more",
                self.most
            );
            self.tell(&node.id, why);
        }
    }

    /// No cycle without a turn or a call of its own: it would spin for ever, and cost nothing that a limit counts.
    fn check_spinning(&mut self) {
        let idle: BTreeMap<&str, &PlaybookNode> = self
            .sure()
            .filter(|(_, node)| !matches!(node.does, NodeAction::Llm(_) | NodeAction::Tool { .. }))
            .collect();
        let spinning: Vec<&str> = idle.keys().copied().filter(|id| leads_back(id, &idle)).collect();
        if let Some(first) = spinning.first() {
            let why = format!(
                "the nodes {} go round without an \"llm\" node or a \"tool\" node with a \"tool\": it would never stop",
                spinning.join(", ")
            );
            self.tell(first, why);
        }
    }
}

/// True when a way through `idle` nodes leads from `id` back to it.
fn leads_back(id: &str, idle: &BTreeMap<&str, &PlaybookNode>) -> bool {
    let (mut seen, mut waits) = (BTreeSet::new(), vec![id]);
    while let Some(at) = waits.pop() {
        for (_, to) in idle.get(at).map(|node| node.ways()).unwrap_or_default() {
            if to == id {
                return true;
            }
            if idle.contains_key(to) && seen.insert(to) {
                waits.push(to);
            }
        }
    }
    false
}

/// Variables that are read and that nothing here ever sets: they have to be given.
pub(super) fn unset(playbook: &Playbook) -> Vec<(String, String)> {
    let mut known: BTreeSet<&str> = RESULTS.into_iter().chain([TASK]).collect();
    known.extend(playbook.vars.keys().map(String::as_str));
    known.extend(playbook.nodes.iter().flat_map(PlaybookNode::sets));
    let root = |path: &'_ str| path.split('.').next().unwrap_or_default().to_owned();
    let mut found = Vec::new();
    for node in &playbook.nodes {
        let names: BTreeSet<String> = node.reads().into_iter().map(root).collect();
        found.extend(
            names.into_iter().filter(|name| !known.contains(name.as_str())).map(|n| (node.id.clone(), n)),
        );
    }
    found
}
