//! Follow a playbook in this process, with the model of the settings.
//!
//! What it does is journaled like everything else: interrupted by a signal or by a power cut, a second run with its session
//! goes on where it stopped. What was given, variables and the folder that the tools work in, is noted in the root's journal with
//! the first words: the rest of the work must not be done in another folder, or with other words, because not everything was said
//! once more. The model has what it has in a task: the built-in tools in a folder, those of the MCP servers, those that lead back
//! to what left its view, and the rules of the folder. The session ends with the playbook.

use super::{most_depth, right};
use crate::address::Target;
use crate::ask::{Beginning, Conversation, Silent};
use crate::choice::ModelArgs;
use crate::work::{brief, folder, mind, tools};
use crate::{Interfaces, OpFault, OpResult, Operation, OperationContext, OperationLabel};
use komado_agent::Error;
use komado_agent::handler::{self, TaskInstructions};
use komado_agent::playbook::{self, LocalRunner, Playbook, PlaybookEnd, RESULTS, RunListener};
use komado_agent::progress::TaskOrder;
use komado_agent::tools::ToolSet;
use komado_core::Role;
use komado_core::journal::Setup;
use komado_core::message::Message;
use komado_core::notation::grouped;
use komado_core::raw::RawJson;
use komado_engine::engine::ResolvedAddress;
use komado_engine::lesson::{ModelWindow, WindowSource};
use komado_engine::model::{ModelChoice, SCRIPTED_TOOL_WINDOW};
use komado_engine::{Error as EngineError, Thread};
use komado_provider::Cancel;
use komado_store::OpenMode;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use std::path::{Path, PathBuf};

/// Run a playbook in a new session, or continue one that stopped.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
pub struct RunPlaybook {
    /// The playbook
    pub file: PathBuf,
    /// The first message; not needed when a session continues
    #[serde(default)]
    pub text: String,
    /// Variables
    #[serde(default)]
    pub vars: Map<String, Value>,
    /// The session to go on with; a new one when left out
    pub session: Option<String>,
    /// The folder that the tools work in; when left out the one it began in, or one of the session's own
    pub folder: Option<PathBuf>,
    /// The system prompt of a new session; the one for tasks when left out
    pub system: Option<String>,
    /// Leave the session running when the playbook has ended
    #[serde(default)]
    pub keep_open: bool,
    /// The model that is asked
    #[serde(skip)]
    pub model: ModelArgs,
}

/// A playbook that came to its end.
#[derive(Clone, PartialEq, Debug, Serialize, JsonSchema)]
pub struct RanPlaybook {
    /// The session it ran in.
    pub session: String,
    /// The node where it ended.
    pub node: String,
    /// How: `completed` or `failed`.
    pub status: &'static str,
    /// What it says came of it.
    pub result: String,
    /// The variables at the end.
    pub vars: Map<String, Value>,
}

/// Hears what happens while a playbook is followed, and may stop it.
pub trait Follower: RunListener {
    /// The session is known; it was made for this when `is_new`.
    fn begun(&mut self, _found: &ResolvedAddress, _is_new: bool) {}

    /// What stops it.
    fn cancel(&mut self) -> Cancel {
        Cancel::default()
    }
}

impl RunListener for Silent {}

impl Follower for Silent {}

impl Operation for RunPlaybook {
    const ABOUT: OperationLabel = OperationLabel::add("playbook_run", "Run a playbook");
    const INTERFACES: Interfaces = Interfaces::only_cli(
        "playbook run",
        "it runs commands on this machine until it ends; a task does the same through the queue",
    )
    .not_mcp("it runs commands on this machine, which is for people to start");
    type Output = RanPlaybook;

    fn run(self, context: &OperationContext) -> OpResult<RanPlaybook> {
        self.hear(context, &mut Silent)
    }
}

impl RunPlaybook {
    /// Does it, while `follower` hears what happens.
    pub fn hear(self, context: &OperationContext, follower: &mut dyn Follower) -> OpResult<RanPlaybook> {
        context.claim()?;
        // A session that is there has a say in how deep its threads may nest: it is asked when the course begins.
        let most = if self.session.is_none() { most_depth(context) } else { u32::MAX };
        let playbook = right(Some(&self.file), most)?;
        let given = PlaybookInput::new(self.vars, self.folder.as_deref())?;
        let at = self.session.map(|session| Target { session: Some(session), ..Target::default() });
        let before = at.clone().map(|at| PlaybookInput::of_session(context, at)).transpose()?.flatten();
        let cancel = follower.cancel();
        // A folder that is refused is not a reason to make a session.
        let in_folder = |folder: PathBuf| tools(context, &folder, &cancel).map(|tools| (folder, tools));
        let named = given.folder(context, before.as_ref())?.map(in_folder).transpose()?;
        let choice = ModelChoice { scripted_window: Some(SCRIPTED_TOOL_WINDOW), ..self.model.into() };
        let is_new = at.is_none();
        let mut talk = Conversation::open(context, at, choice, Beginning::default())?;
        talk.make(context)?;
        follower.begun(&talk.found, is_new);
        let (folder, mut tools) = match named {
            Some(named) => named,
            None => in_folder(folder::own(context, &talk.found.session, |_| Ok(()))?)?,
        };
        let brief = brief(context, &folder)?;
        let brief = TaskInstructions { system: self.system.or(brief.system), ..brief };
        let vars = begin(context, &talk, &handler::setup(&brief, &tools), &self.text, given)?;
        let ended =
            follow(context, &talk, &playbook, &vars, &mut tools, &cancel, follower).map_err(|fault| {
                let (file, name) = (self.file.display(), talk.name());
                fault.and(format!("`komado playbook run {file} --session {name}` goes on"))
            })?;
        let session = &talk.found.session;
        match ended.is_good {
            _ if self.keep_open => {}
            true => drop(context.engine.complete(session, Some(ended.result.clone()))?),
            false => drop(context.engine.fail(session, &ended.result)?),
        }
        Ok(RanPlaybook {
            session: session.to_string(),
            status: if ended.is_good { "completed" } else { "failed" },
            node: ended.node,
            result: ended.result,
            vars: ended.vars,
        })
    }
}

/// Says the first words and notes what was given, in one write, unless that was done; gives all variables, also those that
/// were given to the process that began.
fn begin(
    context: &OperationContext,
    talk: &Conversation,
    setup: &Setup,
    text: &str,
    given: PlaybookInput,
) -> OpResult<Map<String, Value>> {
    let mut root = context.open(&talk.found, OpenMode::Write)?;
    let before = PlaybookInput::of(&root)?;
    let is_silent = text.trim().is_empty();
    if before.is_some() && !is_silent {
        return Err(OpFault::usage("the session goes on where its playbook stopped: leave the text out"));
    }
    if root.last() == 0 {
        root.set_up(setup.clone())?;
    } else {
        // A process that was killed may not have said what it took.
        context.engine.recount(&talk.found.session)?;
    }
    let mut now = given.after(before.clone().unwrap_or_default());
    let title = text.lines().next().unwrap_or_default();
    now.vars.entry("task").or_insert_with(|| json!({ "title": title, "text": text }));
    if before.as_ref() != Some(&now) {
        let (about, note) = now.note()?;
        let first = (!is_silent).then(|| Message::text(Role::User, text));
        root.say_noting(about, note, first.into_iter().collect())?;
        context.settle(&mut root);
    }
    Ok(now.vars)
}

fn follow(
    context: &OperationContext,
    talk: &Conversation,
    playbook: &Playbook,
    vars: &Map<String, Value>,
    tools: &mut ToolSet,
    cancel: &Cancel,
    audience: &mut dyn RunListener,
) -> OpResult<PlaybookEnd> {
    let mut mind = mind(context, &talk.model, talk.choice.clone());
    let mut hands = LocalRunner::new(&mut mind, tools, context.config.agent.limits, cancel.clone(), audience);
    playbook::run(playbook, &talk.found.session, vars, &mut hands).map_err(|error| with_way_out(error, talk))
}

/// What went wrong. A window that was set by hand may be made larger.
fn with_way_out(error: Error, talk: &Conversation) -> OpFault {
    let is_tight = matches!(error, Error::Engine(EngineError::TooMuch(_)));
    let ModelWindow { tokens, told } = talk.model.window;
    let fault = match error {
        Error::Engine(error) => error.into(),
        Error::Order(TaskOrder::Leave(why)) => OpFault::failed(why),
        Error::Playbook(error) => OpFault::input(error.to_string()),
        other => OpFault::failed(other.to_string()),
    };
    match is_tight && told == WindowSource::Given {
        true => fault.and(format!("or give more than {} tokens with --window", grouped(tokens))),
        false => fault,
    }
}

/// What the note of it is about.
const ABOUT: &str = "playbook_run";

/// What a run is given.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PlaybookInput {
    pub(super) vars: Map<String, Value>,
    /// Where the tools work, from the root of the file system; in a folder of the session's own when left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) folder: Option<PathBuf>,
}

/// A note as it was written by any version. The first ones noted the variables alone, `task` always among them.
#[derive(Deserialize)]
#[serde(untagged)]
enum Noted {
    Given(PlaybookInput),
    Vars(Map<String, Value>),
}

impl PlaybookInput {
    /// As a request says.
    pub(super) fn new(vars: Map<String, Value>, folder: Option<&Path>) -> OpResult<Self> {
        if let Some(folder) = folder.filter(|folder| !folder.is_dir()) {
            return Err(OpFault::input(format!("--folder {}: there is no such folder", folder.display())));
        }
        if let Some(name) = vars.keys().find(|name| RESULTS.contains(&name.as_str())) {
            let taken = RESULTS.join(", ");
            return Err(OpFault::usage(format!(
                "--var {name}: the run sets {taken} itself, and would never read a value that is given; choose another name"
            )));
        }
        let given = Self { vars, folder: folder.map(std::path::absolute).transpose()? };
        // What cannot be noted is refused before anything is made for it.
        given.note()?;
        Ok(given)
    }

    /// What a session notes; `None` when no playbook began in it.
    pub(super) fn of_session(context: &OperationContext, at: Target) -> OpResult<Option<Self>> {
        Self::of(&context.open(&context.find_now(at)?, OpenMode::Read)?)
    }

    /// What a root thread notes.
    pub(super) fn of(root: &Thread<'_>) -> OpResult<Option<Self>> {
        if !root.id().is_root() {
            return Err(OpFault::usage(
                "a playbook is followed from the root thread: name a session, without a thread",
            ));
        }
        let Some((_, noted)) = root.noted(ABOUT)? else { return Ok(None) };
        let noted = serde_json::from_str(noted.get())
            .map_err(|why| OpFault::input(format!("what was given to the playbook cannot be read: {why}")))?;
        Ok(Some(match noted {
            Noted::Given(given) => given,
            Noted::Vars(vars) => Self { vars, folder: None },
        }))
    }

    /// This as a note.
    pub(super) fn note(&self) -> OpResult<(&'static str, RawJson)> {
        let text = serde_json::to_string(self)
            .map_err(|why| OpFault::input(format!("what was given cannot be noted: {why}")))?;
        Ok((ABOUT, RawJson::parse(text).map_err(|why| OpFault::input(format!("--var: {why}")))?))
    }

    /// This, and of what was given before all that it leaves open.
    pub(super) fn after(self, before: Self) -> Self {
        let mut vars = before.vars;
        vars.extend(self.vars);
        Self { vars, folder: self.folder.or(before.folder) }
    }

    /// The folder to work in after what was given `before`; `None` for one of the session's own. Another one than before
    /// is told, since files that were made are not there.
    pub(super) fn folder(
        &self,
        context: &OperationContext,
        before: Option<&Self>,
    ) -> OpResult<Option<PathBuf>> {
        let Some(before) = before else { return Ok(self.folder.clone()) };
        match (&self.folder, &before.folder) {
            (None, Some(old)) if !old.is_dir() => Err(OpFault::input(format!(
                "the playbook works in {}, and there is no such folder any more: bring it back, or name another with \
                 --folder",
                old.display()
            ))),
            (None, old) => Ok(old.clone()),
            (Some(new), Some(old)) if is_same(new, old) => Ok(Some(new.clone())),
            (Some(new), old) => {
                let old = old.as_ref().map(|old| format!(", no longer in {}", old.display()));
                let old = old.unwrap_or_default();
                context.note(format!("from here on the playbook works in {}{old}", new.display()));
                Ok(Some(new.clone()))
            }
        }
    }
}

fn is_same(one: &Path, other: &Path) -> bool {
    one == other || one.canonicalize().is_ok_and(|one| other.canonicalize().is_ok_and(|other| one == other))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn read(value: Value) -> PlaybookInput {
        match serde_json::from_value(value).unwrap() {
            Noted::Given(given) => given,
            Noted::Vars(vars) => PlaybookInput { vars, folder: None },
        }
    }

    #[test]
    fn a_note_of_variables_alone_is_read_also_with_names_of_our_own_fields() {
        let vars = json!({"task": {"title": "窓"}, "vars": {"n": 1}, "folder": "/x"});
        assert_eq!(
            read(vars.clone()),
            PlaybookInput { vars: vars.as_object().unwrap().clone(), folder: None }
        );
        let new = PlaybookInput { vars: vars.as_object().unwrap().clone(), folder: Some("/作業".into()) };
        assert_eq!(read(serde_json::to_value(&new).unwrap()), new);
    }

    #[test]
    fn what_is_given_later_wins_and_what_it_leaves_open_stays() {
        let given = |vars: Value, folder: Option<&str>| PlaybookInput {
            vars: vars.as_object().unwrap().clone(),
            folder: folder.map(PathBuf::from),
        };
        let before = given(json!({"a": 1, "b": 1}), Some("/x"));
        let now = given(json!({"b": 2}), None).after(before.clone());
        assert_eq!(now, given(json!({"a": 1, "b": 2}), Some("/x")));
        assert_eq!(given(json!({}), Some("/y")).after(before).folder, Some("/y".into()));
    }
}
