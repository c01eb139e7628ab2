//! The nodes of a playbook, as they are once they were read.

use super::cond::Condition;
use super::vars::{JsonTemplate, Template};
use komado_core::journal::Ratio;

/// One node.
#[derive(Clone, Debug, Default)]
pub(super) struct PlaybookNode {
    /// Its id.
    pub(super) id: String,
    /// What people call it.
    pub(super) label: Option<String>,
    /// What it does.
    pub(super) does: NodeAction,
    /// The variable that gets the words of the reply, or of the last answer.
    pub(super) save_as: Option<String>,
    /// Where to go; of no use in a branch, and at the end.
    pub(super) next: String,
    /// Where to go when the last answer says that something went wrong.
    pub(super) on_error: Option<String>,
}

/// What a node does.
#[derive(Clone, Debug, Default)]
pub(super) enum NodeAction {
    /// One turn with the model, and what is said to it before.
    Llm(Option<Template>),
    /// Carries out the calls of the model's last reply.
    #[default]
    Calls,
    /// Makes one call itself.
    Tool { tool: String, args: JsonTemplate },
    /// Chooses where to go: ways, when each is taken, and the way when none of them is.
    Branch { cases: Vec<(Condition, String)>, other: String },
    /// Sets variables; all new values are made from the old ones.
    Set(Vec<(String, Assignment)>),
    /// Begins a child thread, in which the nodes after it work.
    Start(ChildStart),
    /// Ends it.
    Stop { generate_chronicle: bool },
    /// Ends the playbook. What came of it is the last words of the model when it does not say.
    End { is_good: bool, result: Option<Template> },
}

/// A new value.
#[derive(Clone, Debug)]
pub(super) enum Assignment {
    /// This.
    To(JsonTemplate),
    /// The number in a variable, and so much more; one that is not set counts as 0.
    Add(String, serde_json::Number),
}

/// A child thread.
#[derive(Clone, Debug)]
pub(super) struct ChildStart {
    pub(super) ratio: Option<Ratio>,
    pub(super) max_depth: Option<u32>,
    pub(super) chronicle_prompt: Option<String>,
    /// A system prompt of its own.
    pub(super) system: Option<Template>,
}

impl PlaybookNode {
    /// Its type, as it is written.
    pub(super) const fn kind(&self) -> &'static str {
        match self.does {
            NodeAction::Llm(_) => "llm",
            NodeAction::Calls | NodeAction::Tool { .. } => "tool",
            NodeAction::Branch { .. } => "branch",
            NodeAction::Set(_) => "set",
            NodeAction::Start(_) => "stelis_start",
            NodeAction::Stop { .. } => "stelis_end",
            NodeAction::End { .. } => "end",
        }
    }

    /// Where it may lead, with the field that says so. Each way once, in the order it is written.
    pub(super) fn ways(&self) -> Vec<(&'static str, &str)> {
        match &self.does {
            NodeAction::End { .. } => Vec::new(),
            NodeAction::Branch { cases, other } => {
                let cases = cases.iter().map(|(_, id)| ("cases", id.as_str()));
                cases.chain([("else", other.as_str())]).collect()
            }
            _ => {
                let wrong = self.on_error.iter().map(|id| ("on_error", id.as_str()));
                std::iter::once(("next", self.next.as_str())).chain(wrong).collect()
            }
        }
    }

    /// The variables it reads, without conditions: those may ask for what is not there.
    pub(super) fn reads(&self) -> Vec<&str> {
        match &self.does {
            NodeAction::Tool { args, .. } => args.names(),
            NodeAction::Set(vars) => vars.iter().flat_map(|(_, to)| to.names()).collect(),
            NodeAction::Llm(words)
            | NodeAction::End { result: words, .. }
            | NodeAction::Start(ChildStart { system: words, .. }) => {
                words.iter().flat_map(Template::names).collect()
            }
            NodeAction::Calls | NodeAction::Branch { .. } | NodeAction::Stop { .. } => Vec::new(),
        }
    }

    /// The variables it sets.
    pub(super) fn sets(&self) -> Vec<&str> {
        match &self.does {
            NodeAction::Set(vars) => vars.iter().map(|(name, _)| name.as_str()).collect(),
            _ => self.save_as.iter().map(String::as_str).collect(),
        }
    }
}

impl Assignment {
    fn names(&self) -> Vec<&str> {
        match self {
            Self::To(form) => form.names(),
            Self::Add(..) => Vec::new(),
        }
    }
}
