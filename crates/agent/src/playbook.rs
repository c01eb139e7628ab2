//! Playbooks: the course of a task as a graph of nodes, written as JSON, checked before it runs, resumed where it stopped.
//!
//! A playbook is data: it asks the model, carries out calls, chooses a way and opens child threads, and has no code of its
//! own. All that can be known of a graph is checked when it is read, so that a task does not break off in the middle of the
//! night over a misspelled name. While it runs, the journal of the root thread says which node it is at; the worker that takes the
//! task up goes on there, says nothing twice and calls nothing twice that may do harm.

mod call;
mod check;
mod child;
mod cond;
mod draw;
mod mermaid;
mod node;
mod read;
mod run;
mod vars;

pub(crate) use call::no_result;
pub(crate) use run::rests;
pub use run::{ABOUT, run};
pub use vars::RESULTS;

use crate::Result;
use crate::limits::{LimitsUsed, TaskLimits};
use crate::model_session::ModelSession;
use crate::progress::TaskOrder;
use crate::tools::{ToolAnswer, ToolSet};
use komado_core::message::Call;
use komado_core::{SessionId, ThreadId};
use komado_engine::exchange::{ExchangeEvent, TurnResult};
use komado_engine::stelis::{ChronicleBy, Spawn};
use komado_engine::{Engine, Thread};
use komado_provider::Cancel;
use node::PlaybookNode;
use serde_json::{Map, Value};

/// Why a playbook cannot be followed: everything that is wrong with it.
#[derive(Debug, thiserror::Error)]
#[error("{}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))]
pub struct Error(Vec<PlaybookProblemFound>);

/// One thing that is wrong with a playbook.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{place}: {why}")]
pub struct PlaybookProblemFound {
    /// The file, and the node.
    pub place: String,
    /// What is wrong, and what to write.
    pub why: String,
}

impl Error {
    /// Everything that is wrong, one by one.
    pub fn problems(self) -> Vec<PlaybookProblemFound> {
        self.0
    }

    /// One thing is wrong.
    pub fn bad(place: impl Into<String>, why: impl Into<String>) -> Self {
        Self(vec![PlaybookProblemFound { place: place.into(), why: why.into() }])
    }
}

/// A playbook that was checked.
#[derive(Clone, Debug, Default)]
pub struct Playbook {
    /// Its name.
    pub name: String,
    start: String,
    vars: Map<String, Value>,
    nodes: Vec<PlaybookNode>,
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
        match read {
            Some(draft) if problems.is_empty() => Ok(draft.playbook),
            None if problems.is_empty() => Err(Error::bad(place, "it cannot be read")),
            _ => Err(Error(problems)),
        }
    }

    /// The one that is followed when the task names no other: ask, carry out what is called for, until nothing is.
    pub fn built_in() -> Self {
        // A test reads the file; it is part of the program.
        Self::parse("the built-in playbook", BUILT_IN).unwrap_or_default()
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
        self.nodes.iter().any(|node| matches!(node.does, node::NodeAction::Start(_)))
    }

    /// Refuses to nest deeper than `most`: how deep its threads nest is written in it.
    fn check_depth(&self, most: u32) -> std::result::Result<(), Error> {
        let draft = read::PlaybookDraft { playbook: self.clone(), unknown: Vec::new(), has_nameless: false };
        let problems = check::graph(&format!("the playbook {}", self.name), &draft, most);
        if problems.is_empty() { Ok(()) } else { Err(Error(problems)) }
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

    /// As a Mermaid flowchart.
    pub fn mermaid(&self) -> String {
        mermaid::text(self)
    }

    /// As a picture.
    pub fn svg(&self) -> String {
        draw::picture(self)
    }

    fn node(&self, id: &str) -> Option<&PlaybookNode> {
        self.nodes.iter().find(|node| node.id == id)
    }
}

/// The built-in playbook, as a user could have written it.
pub const BUILT_IN: &str = include_str!("playbook/default.json");

/// Carries nodes out.
pub trait NodeRunner<'e> {
    /// Who asks the model.
    fn mind(&self) -> &dyn ModelSession<'e>;

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
    fn between(&mut self, thread: &mut Thread<'_>, next: NextStep) -> Result<()>;

    /// Before the end. True when words wait in `thread` that the model has not answered; new ones are said there only when
    /// `may_answer`, which is whether the course has a way back to where the model answers.
    fn before_end(&mut self, _thread: &mut Thread<'_>, _may_answer: bool) -> Result<bool> {
        Ok(false)
    }

    /// A node is entered.
    fn entered(&mut self, node: &str, label: Option<&str>, thread: &ThreadId);

    /// One turn with the model.
    fn turn(&mut self, thread: &mut Thread<'_>) -> Result<TurnResult>;

    /// Carries out one call, of the model or of a `tool` node. `thread` is where it was made: the tools that lead back to
    /// what left the view read there.
    fn call(&mut self, thread: &Thread<'_>, call: &Call) -> Result<ToolAnswer>;

    /// True when a call may be made once more although it is not known whether it took effect.
    fn may_repeat(&self, name: &str) -> bool;

    /// What a child thread is spawned with, as the settings say.
    fn spawn(&self, thread: &Thread<'_>) -> Result<Spawn> {
        self.mind().spawn(thread)
    }

    /// Hands `tell` what tells what was done in a thread.
    fn telling(
        &mut self,
        thread: &Thread<'_>,
        tell: &mut dyn FnMut(ChronicleBy<'_>) -> Result<()>,
    ) -> Result<()>;
}

/// What comes next. Words that people said wait for a model that hears them, and calls for their results before that.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NextStep {
    /// A turn of the model: what was said meanwhile is said now.
    Turn,
    /// Something else.
    Other,
}

/// How a playbook came to its end.
#[derive(Clone, PartialEq, Debug)]
pub struct PlaybookEnd {
    /// The `end` node.
    pub node: String,
    /// False when that node says that the task failed.
    pub is_good: bool,
    /// What it says came of it: the last words of the model, unless it says otherwise.
    pub result: String,
    /// The variables at the end.
    pub vars: Map<String, Value>,
}

// Hands for a playbook that a user runs in a process of its own: a mind, tools, limits, and Ctrl-C.

/// Is told what happens, as far as it wants to know.
pub trait RunListener {
    /// A node is entered.
    fn node(&mut self, _id: &str, _label: Option<&str>, _thread: &ThreadId) {}
    /// Something happens in a turn.
    fn news(&mut self, _news: ExchangeEvent<'_>) {}
    /// A tool answered.
    fn tool(&mut self, _call: &Call, _answer: &ToolAnswer) {}
}

/// Hands over a mind and a box of tools.
pub struct LocalRunner<'m, 'e> {
    mind: &'m mut dyn ModelSession<'e>,
    tools: &'m mut ToolSet,
    toll: LimitsUsed,
    cancel: Cancel,
    audience: &'m mut dyn RunListener,
}

impl<'m, 'e> LocalRunner<'m, 'e> {
    /// With these; `cancel` stops at the next node, and a turn or a call at once.
    pub fn new(
        mind: &'m mut dyn ModelSession<'e>,
        tools: &'m mut ToolSet,
        limits: TaskLimits,
        cancel: Cancel,
        audience: &'m mut dyn RunListener,
    ) -> Self {
        Self { mind, tools, toll: LimitsUsed::new(limits), cancel, audience }
    }

    /// Turns that were taken.
    pub fn turns(&self) -> u64 {
        self.toll.turns
    }

    /// Unless it was interrupted.
    fn go_on(&self) -> Result<()> {
        match self.cancel.is_cancelled() {
            true => Err(crate::Error::Order(TaskOrder::Leave("it was interrupted".to_owned()))),
            false => Ok(()),
        }
    }
}

impl<'e> NodeRunner<'e> for LocalRunner<'_, 'e> {
    fn mind(&self) -> &dyn ModelSession<'e> {
        self.mind
    }

    fn between(&mut self, _thread: &mut Thread<'_>, _next: NextStep) -> Result<()> {
        self.go_on()?;
        self.toll.reached().map_or(Ok(()), |reached| Err(crate::Error::Limit(reached)))
    }

    fn entered(&mut self, node: &str, label: Option<&str>, thread: &ThreadId) {
        self.audience.node(node, label, thread);
    }

    fn turn(&mut self, thread: &mut Thread<'_>) -> Result<TurnResult> {
        let audience = &mut *self.audience;
        let turned = self.mind.turn(thread, &self.cancel, &mut |news| audience.news(news))?;
        self.toll.turn(turned.reply.usage.map_or(0, |usage| usage.total()));
        Ok(turned)
    }

    fn call(&mut self, thread: &Thread<'_>, call: &Call) -> Result<ToolAnswer> {
        let answer = self.tools.answer(thread, call, &self.cancel)?;
        // A call that was broken off stays open: the next worker makes it again, or tells the model.
        self.go_on()?;
        self.toll.call(answer.fault(&call.name));
        self.audience.tool(call, &answer);
        Ok(answer)
    }

    fn may_repeat(&self, name: &str) -> bool {
        self.tools.may_repeat(name)
    }

    fn telling(
        &mut self,
        thread: &Thread<'_>,
        tell: &mut dyn FnMut(ChronicleBy<'_>) -> Result<()>,
    ) -> Result<()> {
        self.mind.telling(thread, &self.cancel, tell)
    }
}
