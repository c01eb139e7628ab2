//! What can be known of a graph before it runs: every way leads on, every way can end, and what is begun is ended.

use super::nearest::among;
use super::node::{Does, Node};
use super::read::place_of;
use super::vars::{RESULTS, TASK};
use super::{Playbook, Problem};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// A graph while it is looked at.
pub(super) struct Graph<'p> {
    place: &'p str,
    playbook: &'p Playbook,
    /// Nodes by id: the first of each.
    nodes: BTreeMap<&'p str, &'p Node>,
    problems: Vec<Problem>,
}

/// Everything that is wrong with a playbook that was read.
pub(super) fn graph(place: &str, playbook: &Playbook) -> Vec<Problem> {
    let mut graph = Graph { place, playbook, nodes: BTreeMap::new(), problems: Vec::new() };
    graph.check_ids();
    graph.check_ways();
    // What follows needs a graph without holes.
    if graph.problems.is_empty() {
        let reached = graph.check_reached();
        graph.check_ends(&reached);
        graph.check_nesting();
        graph.check_spinning();
    }
    graph.problems
}

impl<'p> Graph<'p> {
    fn tell(&mut self, id: &str, why: impl Into<String>) {
        self.problems.push(Problem { place: place_of(self.place, id), why: why.into() });
    }

    fn check_ids(&mut self) {
        for node in &self.playbook.nodes {
            if self.nodes.insert(&node.id, node).is_some() {
                self.tell(&node.id, "two nodes have this id; each needs its own");
            }
        }
    }

    fn check_ways(&mut self) {
        let known: Vec<&str> = self.nodes.keys().copied().collect();
        let start = self.playbook.start.as_str();
        if !self.nodes.contains_key(start) {
            let why = format!(
                "\"start\" names a node that is not there: {start:?}{}",
                among(start, known.iter().copied())
            );
            self.problems.push(Problem { place: self.place.to_owned(), why });
        }
        for node in &self.playbook.nodes {
            for (field, to) in node.ways() {
                if !self.nodes.contains_key(to) {
                    let near = among(to, known.iter().copied());
                    self.tell(&node.id, format!("{field:?} leads to a node that is not there: {to:?}{near}"));
                }
            }
        }
    }

    /// Every node can be come to; gives those that can.
    fn check_reached(&mut self) -> BTreeSet<&'p str> {
        let start = self.playbook.start.as_str();
        let (mut reached, mut waits) = (BTreeSet::from([start]), vec![start]);
        while let Some(id) = waits.pop() {
            let ways = self.nodes.get(id).map(|node| node.ways()).unwrap_or_default();
            waits.extend(ways.into_iter().map(|(_, to)| to).filter(|to| reached.insert(to)));
        }
        for node in self.playbook.nodes.iter().filter(|node| !reached.contains(node.id.as_str())) {
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
        for node in &self.playbook.nodes {
            node.ways().into_iter().for_each(|(_, to)| back.entry(to).or_default().push(&node.id));
        }
        let ends = self.playbook.nodes.iter().filter(|node| matches!(node.does, Does::End(_)));
        let mut waits: Vec<&str> = ends.map(|node| node.id.as_str()).collect();
        let mut ending: BTreeSet<&str> = waits.iter().copied().collect();
        while let Some(id) = waits.pop() {
            let before = back.get(id).map(Vec::as_slice).unwrap_or_default();
            waits.extend(before.iter().copied().filter(|id| ending.insert(id)));
        }
        for node in &self.playbook.nodes {
            if reached.contains(node.id.as_str()) && !ending.contains(node.id.as_str()) {
                self.tell(&node.id, "no way leads from here to an \"end\" node: it would never end");
            }
        }
    }

    /// Child threads are nested the same on every way, are all ended, and none is ended that was not begun.
    fn check_nesting(&mut self) {
        let start = self.playbook.start.as_str();
        let mut depths: BTreeMap<&str, u32> = BTreeMap::from([(start, 0)]);
        let mut waits = VecDeque::from([start]);
        while let Some(id) = waits.pop_front() {
            let (Some(node), depth) = (self.nodes.get(id).copied(), depths[id]) else { continue };
            let Some(after) = self.depth_after(node, depth) else { continue };
            for (_, to) in node.ways() {
                match depths.get(to) {
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
    fn depth_after(&mut self, node: &'p Node, depth: u32) -> Option<u32> {
        match &node.does {
            Does::Start(start) => {
                if let Some(most) = start.max_depth.filter(|most| depth >= *most) {
                    let deep = depth + 1;
                    self.tell(
                        &node.id,
                        format!("its thread would be {deep} deep, and \"max_depth\" is {most}"),
                    );
                }
                Some(depth + 1)
            }
            Does::Stop(_) if depth == 0 => {
                self.tell(&node.id, "no \"stelis_start\" stands before it: there is no child thread to end");
                None
            }
            Does::Stop(_) => Some(depth - 1),
            Does::End(_) if depth > 0 => {
                self.tell(&node.id, "a child thread is still open here: put a \"stelis_end\" before it");
                None
            }
            _ => Some(depth),
        }
    }

    /// No cycle without a turn or a call of its own: it would spin for ever, and cost nothing that a limit counts.
    fn check_spinning(&mut self) {
        let idle: BTreeMap<&str, &Node> = self
            .nodes
            .iter()
            .filter(|(_, node)| !matches!(node.does, Does::Llm(_) | Does::Tool(_)))
            .map(|(id, node)| (*id, *node))
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
fn leads_back(id: &str, idle: &BTreeMap<&str, &Node>) -> bool {
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
    known.extend(playbook.nodes.iter().flat_map(Node::sets));
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
