//! The nodes of a playbook, as they are once they were read.

use super::cond::Cond;
use super::vars::{Form, Template};
use komado_core::journal::Ratio;

/// One node.
#[derive(Clone, Debug)]
pub(super) struct Node {
    /// Its id.
    pub(super) id: String,
    /// What people call it.
    pub(super) label: Option<String>,
    /// What it does.
    pub(super) does: Does,
}

/// What a node does.
#[derive(Clone, Debug)]
pub(super) enum Does {
    /// One turn with the model.
    Llm(Llm),
    /// Carries out the calls of the model's last reply.
    Calls(After),
    /// Makes one call itself.
    Tool(Tool),
    /// Chooses where to go.
    Branch(Branch),
    /// Sets variables.
    Set(Set),
    /// Begins a child thread, in which the nodes after it work.
    Start(Start),
    /// Ends it.
    Stop(Stop),
    /// Ends the playbook.
    End(End),
}

/// One turn with the model.
#[derive(Clone, Debug)]
pub(super) struct Llm {
    /// What is said to it before.
    pub(super) prompt: Option<Template>,
    /// The variable that gets its words.
    pub(super) save_as: Option<String>,
    pub(super) next: String,
}

/// What comes after calls.
#[derive(Clone, Debug)]
pub(super) struct After {
    /// The variable that gets the words of the last answer.
    pub(super) save_as: Option<String>,
    pub(super) next: String,
    /// Where to go when the last answer says that something went wrong.
    pub(super) on_error: Option<String>,
}

/// One call.
#[derive(Clone, Debug)]
pub(super) struct Tool {
    pub(super) tool: String,
    pub(super) args: Form,
    pub(super) after: After,
}

/// Ways, and when each is taken.
#[derive(Clone, Debug)]
pub(super) struct Branch {
    pub(super) cases: Vec<(Cond, String)>,
    /// The way when none of them is.
    pub(super) other: String,
}

/// New values; all of them are made from the old ones.
#[derive(Clone, Debug)]
pub(super) struct Set {
    pub(super) vars: Vec<(String, Assign)>,
    pub(super) next: String,
}

/// A new value.
#[derive(Clone, Debug)]
pub(super) enum Assign {
    /// This.
    To(Form),
    /// The number in a variable, and so much more; one that is not set counts as 0.
    Add(String, serde_json::Number),
}

/// A child thread.
#[derive(Clone, Debug)]
pub(super) struct Start {
    pub(super) ratio: Option<Ratio>,
    pub(super) max_depth: Option<u32>,
    pub(super) chronicle_prompt: Option<String>,
    /// A system prompt of its own.
    pub(super) system: Option<Template>,
    pub(super) next: String,
}

/// The end of a child thread.
#[derive(Clone, Debug)]
pub(super) struct Stop {
    pub(super) generate_chronicle: bool,
    pub(super) next: String,
}

/// The end.
#[derive(Clone, Debug)]
pub(super) struct End {
    pub(super) is_good: bool,
    /// What came of it; the last words of the model when it does not say.
    pub(super) result: Option<Template>,
}

impl Node {
    /// Its type, as it is written.
    pub(super) const fn kind(&self) -> &'static str {
        match self.does {
            Does::Llm(_) => "llm",
            Does::Calls(_) | Does::Tool(_) => "tool",
            Does::Branch(_) => "branch",
            Does::Set(_) => "set",
            Does::Start(_) => "stelis_start",
            Does::Stop(_) => "stelis_end",
            Does::End(_) => "end",
        }
    }

    /// Where it may lead, with the field that says so. Each way once, in the order it is written.
    pub(super) fn ways(&self) -> Vec<(&'static str, &str)> {
        match &self.does {
            Does::Llm(Llm { next, .. })
            | Does::Set(Set { next, .. })
            | Does::Start(Start { next, .. })
            | Does::Stop(Stop { next, .. }) => vec![("next", next.as_str())],
            Does::Calls(after) | Does::Tool(Tool { after, .. }) => {
                let wrong = after.on_error.iter().map(|id| ("on_error", id.as_str()));
                std::iter::once(("next", after.next.as_str())).chain(wrong).collect()
            }
            Does::Branch(branch) => {
                let cases = branch.cases.iter().map(|(_, id)| ("cases", id.as_str()));
                cases.chain([("else", branch.other.as_str())]).collect()
            }
            Does::End(_) => Vec::new(),
        }
    }

    /// The variables it reads, without conditions: those may ask for what is not there.
    pub(super) fn reads(&self) -> Vec<&str> {
        match &self.does {
            Does::Llm(llm) => llm.prompt.iter().flat_map(Template::names).collect(),
            Does::Tool(tool) => tool.args.names(),
            Does::Set(set) => set.vars.iter().flat_map(|(_, to)| to.names()).collect(),
            Does::Start(start) => start.system.iter().flat_map(Template::names).collect(),
            Does::End(end) => end.result.iter().flat_map(Template::names).collect(),
            Does::Calls(_) | Does::Branch(_) | Does::Stop(_) => Vec::new(),
        }
    }

    /// The variables it sets.
    pub(super) fn sets(&self) -> Vec<&str> {
        match &self.does {
            Does::Llm(Llm { save_as, .. }) => save_as.iter().map(String::as_str).collect(),
            Does::Calls(after) | Does::Tool(Tool { after, .. }) => {
                after.save_as.iter().map(String::as_str).collect()
            }
            Does::Set(set) => set.vars.iter().map(|(name, _)| name.as_str()).collect(),
            Does::Branch(_) | Does::Start(_) | Does::Stop(_) | Does::End(_) => Vec::new(),
        }
    }
}

impl Assign {
    fn names(&self) -> Vec<&str> {
        match self {
            Self::To(form) => form.names(),
            Self::Add(..) => Vec::new(),
        }
    }
}
