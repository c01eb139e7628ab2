//! What is known of a session beside its words: state, owner, task, model, counters.
//!
//! These are attributes, not history: the journal's first thread and its [`Close`](crate::journal::Close) entries say
//! the same, and the table of sessions can be made again from them.

use crate::SessionId;
use crate::journal::{Ending, Entry, Usage};
use crate::message::{Message, MessagePart, OWN_CALL, Role};
use serde::{Deserialize, Serialize};

/// Where a session is in its life.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(inline))]
pub enum State {
    /// Known, not begun.
    Queued,
    /// At work.
    Running,
    /// Waits to go on.
    Paused,
    /// Done.
    Completed,
    /// Ended by an error.
    Failed,
    /// Ended by its user.
    Stopped,
}

crate::names! {
    /// The word for it.
    State {
        Queued = "queued", Running = "running", Paused = "paused", Completed = "completed",
        Failed = "failed", Stopped = "stopped",
    }
}

impl State {
    /// True when nothing more will be said.
    pub const fn is_ended(self) -> bool {
        matches!(self, Self::Completed | Self::Failed | Self::Stopped)
    }
}

impl From<Ending> for State {
    fn from(ending: Ending) -> Self {
        match ending {
            Ending::Completed => Self::Completed,
            Ending::Failed => Self::Failed,
            Ending::Stopped | Ending::Aborted => Self::Stopped,
            Ending::Paused => Self::Paused,
        }
    }
}

/// The issue or pull request a session works on.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TaskKey {
    /// `github` or `gitlab`; `local` for a session that came from nowhere.
    pub task_source: String,
    /// Owner of the repository; a GitLab group with its sub-groups, such as `tools/web`.
    pub owner: String,
    /// Its name.
    pub repo: String,
    /// `issue` or `pull_request`; `session` for a local one.
    pub task_type: String,
    /// Number of the issue or pull request.
    pub task_id: String,
}

impl TaskKey {
    /// The key of a session that came from no tracker.
    pub fn local(id: &SessionId) -> Self {
        Self {
            task_source: "local".into(),
            owner: String::new(),
            repo: String::new(),
            task_type: "session".into(),
            task_id: id.to_string(),
        }
    }

    /// True for the key of a task; other sessions have one, too.
    pub fn is_task(&self) -> bool {
        self.task_source != "local" || self.task_type == "task"
    }

    /// Reads `source:owner/repo/type/id`, such as `github:ann/tool/issue/27`. Groups of GitLab nest: the owner is whatever
    /// stands before the last three.
    pub fn parse(text: &str) -> Result<Self, String> {
        let wrong = || {
            format!(
                "not a task key: {text:?}: write github|gitlab:OWNER/REPO/issue|pull_request/ID, \
                 such as github:ann/tool/issue/27"
            )
        };
        let (task_source, rest) = text.split_once(':').ok_or_else(wrong)?;
        let pieces: Vec<&str> = rest.rsplitn(4, '/').collect();
        let [task_id, task_type, repo, owner] = pieces[..] else { return Err(wrong()) };
        let nests = task_source == "gitlab";
        let known = (nests || task_source == "github") && matches!(task_type, "issue" | "pull_request");
        let is_whole = |owner: &str| owner.split('/').all(|group| !group.is_empty());
        if !known
            || repo.is_empty()
            || task_id.is_empty()
            || !is_whole(owner)
            || (!nests && owner.contains('/'))
        {
            return Err(wrong());
        }
        let [task_source, owner, repo, task_type, task_id] =
            [task_source, owner, repo, task_type, task_id].map(str::to_owned);
        Ok(Self { task_source, owner, repo, task_type, task_id })
    }
}

impl std::fmt::Display for TaskKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.task_source == "local" {
            return f.write_str("local");
        }
        write!(f, "{}:{}/{}/{}/{}", self.task_source, self.owner, self.repo, self.task_type, self.task_id)
    }
}

/// What a session was made with; written once.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Meta {
    /// The session.
    pub uuid: String,
    /// What it works on.
    pub task_key: TaskKey,
    /// When it was made.
    #[cfg_attr(feature = "schema", schemars(extend("format" = "date-time")))]
    pub created_at: String,
    /// The process that made it.
    pub process_id: u32,
    /// The machine that made it.
    pub hostname: String,
    /// Model and window.
    pub config: MetaConfig,
    /// Whose it is.
    pub user: Option<String>,
    /// True when it was made to wait in a queue.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub queued: bool,
}

impl Meta {
    /// A session that came from no tracker, and of which nothing else is known.
    pub fn new(id: &SessionId, created_at: impl Into<String>, config: MetaConfig) -> Self {
        Self {
            uuid: id.to_string(),
            task_key: TaskKey::local(id),
            created_at: created_at.into(),
            process_id: 0,
            hostname: String::new(),
            config,
            user: None,
            queued: false,
        }
    }
}

/// Model and window of a session.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "SessionConfig"))]
pub struct MetaConfig {
    /// Such as `openai`.
    pub llm_provider: Option<String>,
    /// Such as `gpt-4o`.
    pub model: Option<String>,
    /// The model's window in tokens; unknown while nothing asks for it.
    pub context_length: Option<u32>,
    /// Who said how large the window is: `given`, `learned`, `probed` or `listed`. A session that does not say was
    /// given it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub window_from: Option<String>,
    /// The share of the window at which it is made smaller.
    pub compression_threshold: Option<f64>,
    /// How tokens are counted.
    pub meter: String,
    /// Who speaks in it, where settings are kept by persona.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub persona: Option<String>,
    /// What is said for its spawned threads, in place of the settings.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stelis_config: Option<StelisConfig>,
    /// The name by which the gateway finds the session again: a digest of the name that a client gave it, and of who did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub alias: Option<String>,
    /// The program that talks in it, such as `claude-code`, `codex` or `komado`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// The folder that program works in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project: Option<String>,
}

/// What may be said for the spawned threads of a session or a persona; what is left out is as elsewhere.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "ChildSettings"))]
pub struct StelisConfig {
    /// False when none may be spawned.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub enabled: Option<bool>,
    /// What a child has of its parent's window.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(range(min = 0.01, max = 0.99)))]
    pub default_window_ratio: Option<f64>,
    /// How deep they may nest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(range(min = 0, max = 100)))]
    pub max_depth: Option<u32>,
}

/// Declares the counters, and what goes over all of them: each stands here once.
macro_rules! counters {
    ($($(#[$about:meta])* $name:ident: u64,)+) => {
        /// Sums over a session's life.
        #[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
        #[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
        pub struct Counters {
            $($(#[$about])* pub $name: u64,)+
        }

        impl Counters {
            /// Their names, in the order of [`Counters::numbers`].
            pub const NAMES: [&str; 9] = [$(stringify!($name)),+];

            /// All of them.
            pub const fn numbers(&self) -> [u64; 9] {
                [$(self.$name),+]
            }

            /// Counters with these numbers.
            pub const fn of_numbers([$($name),+]: [u64; 9]) -> Self {
                Self { $($name),+ }
            }
        }
    };
}

counters! {
    /// Replies from a provider.
    llm_call_count: u64,
    /// Answers from tools.
    tool_call_count: u64,
    /// Tokens all calls took, as the providers said.
    total_tokens: u64,
    /// Edits that made the view smaller.
    compression_count: u64,
    /// Of all tokens, those that models read and that were paid in full.
    #[serde(default)]
    input_tokens: u64,
    /// Of all tokens, those that were read from a provider's cache.
    #[serde(default)]
    cached_tokens: u64,
    /// Of all tokens, those that were read and put into a provider's cache.
    #[serde(default)]
    cache_write_tokens: u64,
    /// Of all tokens, those that models wrote.
    #[serde(default)]
    output_tokens: u64,
    /// Tokens by which edits made the view smaller.
    #[serde(default)]
    saved_tokens: u64,
}

impl Counters {
    /// The tokens by kind, where they are known for all of the total. A session from before they were counted has only its
    /// total, until the table is made again from the journals.
    pub fn usage(&self) -> Option<Usage> {
        let usage = Usage {
            input_tokens: self.input_tokens,
            output_tokens: self.output_tokens,
            cache_creation_tokens: self.cache_write_tokens,
            cache_read_tokens: self.cached_tokens,
        };
        (usage.total() == self.total_tokens).then_some(usage)
    }

    /// What one entry adds: a model's message is a call, and takes the tokens its provider reported, if it did. So is a
    /// summary that a model wrote, and one that it was asked for in vain. A call that a playbook made itself is not.
    pub fn of(entry: &Entry) -> Self {
        let called = |usage: Option<Usage>| {
            let usage = usage.unwrap_or_default();
            Self {
                llm_call_count: 1,
                total_tokens: usage.total(),
                input_tokens: usage.input_tokens,
                cached_tokens: usage.cache_read_tokens,
                cache_write_tokens: usage.cache_creation_tokens,
                output_tokens: usage.output_tokens,
                ..Self::default()
            }
        };
        let told = |usage: Option<Usage>| if usage.is_some() { called(usage) } else { Self::default() };
        match entry {
            Entry::Message(message, reply) => match message.role {
                Role::Assistant if reply.is_none() && is_own(message) => Self::default(),
                Role::Assistant => called(reply.as_ref().and_then(|reply| reply.usage)),
                Role::Tool => Self { tool_call_count: 1, ..Self::default() },
                _ => Self::default(),
            },
            Entry::Lost(reply) => called(reply.usage),
            Entry::Edit(edit) => Self {
                compression_count: 1,
                saved_tokens: edit.cause.before.saturating_sub(edit.cause.after),
                ..told(edit.cause.usage)
            },
            Entry::Chronicle(chronicle) => told(chronicle.usage),
            _ => Self::default(),
        }
    }
}

/// True when a message is nothing but a call of a playbook's own.
fn is_own(message: &Message) -> bool {
    let is_own =
        |part: &MessagePart| matches!(part, MessagePart::Call(call) if call.id.starts_with(OWN_CALL));
    !message.parts.is_empty() && message.parts.iter().all(is_own)
}

impl Counters {
    /// What came on top of `before`.
    #[must_use]
    pub fn since(&self, before: &Self) -> Self {
        self.with(before, u64::saturating_sub)
    }

    fn with(&self, other: &Self, each: fn(u64, u64) -> u64) -> Self {
        let (own, others) = (self.numbers(), other.numbers());
        Self::of_numbers(std::array::from_fn(|n| each(own[n], others[n])))
    }
}

impl std::ops::AddAssign for Counters {
    fn add_assign(&mut self, other: Self) {
        *self = self.with(&other, |sum, more| sum + more);
    }
}

/// A session as the table of sessions knows it.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Session {
    /// What it was made with.
    #[serde(flatten)]
    pub meta: Meta,
    /// Where it is in its life.
    pub status: State,
    /// When work began.
    pub started_at: Option<String>,
    /// When it ended.
    pub completed_at: Option<String>,
    /// When anything about it last changed.
    #[cfg_attr(feature = "schema", schemars(extend("format" = "date-time")))]
    pub updated_at: String,
    /// Why it failed or stopped.
    pub error_message: Option<String>,
    /// Sums.
    #[serde(flatten)]
    pub counters: Counters,
}

impl Session {
    /// A session that has just been made.
    pub fn new(meta: &Meta) -> Self {
        Self {
            status: if meta.queued { State::Queued } else { State::Running },
            started_at: (!meta.queued).then(|| meta.created_at.clone()),
            completed_at: None,
            updated_at: meta.created_at.clone(),
            error_message: None,
            counters: Counters::default(),
            meta: meta.clone(),
        }
    }

    /// Enters another state at `at`.
    pub fn enter(&mut self, to: State, at: &str, why: Option<&str>) {
        self.status = to;
        self.meta.queued = to == State::Queued;
        self.updated_at = at.to_owned();
        self.completed_at = to.is_ended().then(|| at.to_owned());
        self.error_message = why.map(str::to_owned);
        if to != State::Queued && self.started_at.is_none() {
            self.started_at = Some(at.to_owned());
        }
    }
}

/// True for a provider that has no name: it is called by its address, and speaks as OpenAI's chat API does.
pub fn is_address(provider: &str) -> bool {
    provider.starts_with("http://") || provider.starts_with("https://")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_task_key_reads_back_and_a_wrong_one_says_what_to_write() {
        let key = TaskKey::parse("github:notfolder/coding_agent/issue/27").unwrap();
        assert_eq!(key.to_string(), "github:notfolder/coding_agent/issue/27");
        for wrong in
            ["", "github", "svn:a/b/issue/1", "github:a/b/epic/1", "github:a/b/issue/", "github:a/issue/1"]
        {
            assert!(TaskKey::parse(wrong).unwrap_err().contains("github:ann/tool/issue/27"), "{wrong}");
        }
    }

    #[test]
    fn groups_of_gitlab_nest_and_owners_of_github_do_not() {
        let key = TaskKey::parse("gitlab:tools/web/front/issue/7").unwrap();
        assert_eq!((key.owner.as_str(), key.repo.as_str()), ("tools/web", "front"));
        assert_eq!(key.to_string(), "gitlab:tools/web/front/issue/7");
        for wrong in
            ["github:tools/web/front/issue/7", "gitlab:tools//front/issue/7", "gitlab:/front/issue/7"]
        {
            assert!(TaskKey::parse(wrong).is_err(), "{wrong}");
        }
    }
}
