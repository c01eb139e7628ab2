//! Playbooks: the course of a task as a graph of nodes, written as JSON, checked before it runs, resumed where it stopped.
//!
//! A playbook is data: it asks the model, carries out calls, chooses a way and opens child threads, and has no code of its
//! own. All that can be known of a graph is checked when it is read, so that a task does not break off in the middle of the
//! night over a misspelled name. While it runs, the journal of the root thread says which node it is at; whoever takes the
//! task up goes on there, says nothing twice and calls nothing twice that may do harm.

mod back;
mod call;
mod check;
mod child;
mod cond;
mod course;
mod draw;
mod fields;
mod llm;
mod nearest;
mod node;
mod note;
mod read;
mod solo;
mod svg;
mod template;
mod vars;

pub(crate) use call::no_result;
pub use note::ABOUT;
pub(crate) use note::rests;
pub use solo::{Audience, Solo};
pub use vars::RESULTS;

use crate::error::Result;
use crate::mind::Mind;
use crate::tools::Answer;
use komado_core::message::Call;
use komado_core::{SessionId, ThreadId};
use komado_engine::exchange::Turned;
use komado_engine::stelis::{Spawn, Telling};
use komado_engine::{Engine, Thread};
use node::Node;
use serde_json::{Map, Value};

/// Why a playbook cannot be followed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// It is none.
    #[error("{place}: {why}")]
    Bad {
        /// The file, and the node.
        place: String,
        /// What is wrong with it, and what to write.
        why: String,
    },
    /// Several things are wrong with it.
    #[error("{}", lines(.0))]
    Several(Vec<Problem>),
}

/// One thing that is wrong with a playbook.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{place}: {why}")]
pub struct Problem {
    /// The file, and the node.
    pub place: String,
    /// What is wrong, and what to write.
    pub why: String,
}

fn lines(problems: &[Problem]) -> String {
    problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
}

impl Error {
    /// Everything that is wrong, one by one.
    pub fn problems(self) -> Vec<Problem> {
        match self {
            Self::Bad { place, why } => vec![Problem { place, why }],
            Self::Several(problems) => problems,
        }
    }

    /// Of what was found; `None` when nothing was.
    fn of(mut problems: Vec<Problem>) -> Option<Self> {
        match problems.len() {
            0 => None,
            1 => problems.pop().map(|Problem { place, why }| Self::Bad { place, why }),
            _ => Some(Self::Several(problems)),
        }
    }
}

/// A playbook that was checked.
#[derive(Clone, Debug)]
pub struct Playbook {
    /// Its name.
    pub name: String,
    start: String,
    vars: Map<String, Value>,
    nodes: Vec<Node>,
    digest: String,
}

impl Playbook {
    /// Reads and checks one, wherever it will be followed; `place` is where it stands, for errors.
    pub fn parse(place: &str, text: &str) -> std::result::Result<Self, Error> {
        Self::parse_within(place, text, u32::MAX)
    }

    /// The same for one that is followed where child threads may be at most `most` deep.
    pub fn parse_within(place: &str, text: &str, most: u32) -> std::result::Result<Self, Error> {
        let mut problems = Vec::new();
        let read = read::playbook(place, text, &mut problems);
        problems.extend(read.iter().flat_map(|draft| check::graph(place, draft, most)));
        match (Error::of(problems), read) {
            (None, Some(draft)) => Ok(draft.playbook),
            (Some(error), _) => Err(error),
            (None, None) => Err(Error::Bad { place: place.to_owned(), why: "it cannot be read".to_owned() }),
        }
    }

    /// The one that is followed when nobody names another: ask, carry out what is called for, until nothing is.
    pub fn built_in() -> Self {
        match Self::parse("the built-in playbook", BUILT_IN) {
            Ok(playbook) => playbook,
            // A test reads the file; it is part of the program.
            Err(_) => Self {
                name: "default".into(),
                start: String::new(),
                vars: Map::new(),
                nodes: Vec::new(),
                digest: String::new(),
            },
        }
    }

    /// What may go wrong, although it can be followed: variables that have to be given.
    pub fn warnings(&self) -> Vec<String> {
        let unset = check::unset(self).into_iter();
        unset
            .map(|(node, name)| {
                format!("node {node:?} needs the variable {name:?}, which no node sets: give it when it runs")
            })
            .collect()
    }

    /// True when it begins child threads.
    fn has_children(&self) -> bool {
        self.nodes.iter().any(|node| matches!(node.does, node::Does::Start(_)))
    }

    /// Refuses to nest deeper than `most`: how deep its threads nest is written in it.
    fn check_depth(&self, most: u32) -> std::result::Result<(), Error> {
        let draft = read::Draft { playbook: self.clone(), unknown: Vec::new(), has_nameless: false };
        Error::of(check::graph(&format!("the playbook {}", self.name), &draft, most)).map_or(Ok(()), Err)
    }

    /// How many nodes it has.
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// True when it has none.
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// As lines of at most `width` columns, for a terminal.
    pub fn drawn(&self, width: usize) -> String {
        draw::text(self, width)
    }

    /// As a picture.
    pub fn svg(&self) -> String {
        svg::picture(self)
    }

    fn node(&self, id: &str) -> Option<&Node> {
        self.nodes.iter().find(|node| node.id == id)
    }
}

/// The built-in playbook, as anybody could have written it.
pub const BUILT_IN: &str = include_str!("playbook/default.json");

/// Whoever carries nodes out.
pub trait Hands<'e> {
    /// Who asks the model.
    fn mind(&self) -> &dyn Mind<'e>;

    /// The engine.
    fn engine(&self) -> &'e Engine {
        self.mind().engine()
    }

    /// Opens a thread of the session for writing, with the limits of the settings.
    fn open(&self, session: &SessionId, thread: &ThreadId) -> Result<Thread<'e>> {
        self.mind().open(session, thread)
    }

    /// Between two nodes and between two calls: orders are followed and limits kept here, by an error; comments and other
    /// news are said in `thread`, which has no open calls unless `calls_wait`.
    fn between(&mut self, thread: &mut Thread<'_>, next: Next) -> Result<()>;

    /// Before the end. True when words wait in `thread` that the model has not answered; new ones are said there only when
    /// `may_answer`, which is whether the course has a way back to where the model answers.
    fn before_end(&mut self, _thread: &mut Thread<'_>, _may_answer: bool) -> Result<bool> {
        Ok(false)
    }

    /// A node is entered.
    fn entered(&mut self, node: &str, label: Option<&str>, thread: &ThreadId);

    /// One turn with the model.
    fn turn(&mut self, thread: &mut Thread<'_>) -> Result<Turned>;

    /// Carries out one call, of the model or of a `tool` node. `thread` is where it was made: the tools that lead back to
    /// what left the view read there.
    fn call(&mut self, thread: &Thread<'_>, call: &Call) -> Result<Answer>;

    /// True when a call may be made once more although nobody knows whether it took effect.
    fn may_repeat(&self, name: &str) -> bool;

    /// What a child thread is spawned with, as the settings say.
    fn spawn(&self, thread: &Thread<'_>) -> Result<Spawn> {
        self.mind().spawn(thread)
    }

    /// Hands `tell` whoever tells what was done in a thread.
    fn telling(&mut self, thread: &Thread<'_>, tell: &mut dyn FnMut(Telling<'_>) -> Result<()>)
    -> Result<()>;
}

/// What comes next. Words that people said wait for a model that hears them, and calls for their results before that.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Next {
    /// A turn of the model: what was said meanwhile is said now.
    Turn,
    /// Something else.
    Other,
}

/// How a playbook came to its end.
#[derive(Clone, PartialEq, Debug)]
pub struct Ended {
    /// The `end` node.
    pub node: String,
    /// False when that node says that the task failed.
    pub is_good: bool,
    /// What it says came of it: the last words of the model, unless it says otherwise.
    pub result: String,
    /// The variables at the end.
    pub vars: Map<String, Value>,
}

/// Follows a playbook in a session, from its beginning or from where its journal says that it stopped. `vars` are there at
/// the beginning.
pub fn run<'e>(
    playbook: &Playbook,
    session: &SessionId,
    vars: &Map<String, Value>,
    hands: &mut dyn Hands<'e>,
) -> Result<Ended> {
    course::Course::begin(playbook, session, vars, hands)?.follow()
}
