//! What a task is worked on with, as the settings say: folder, tools, rules, model, tracker.
//!
//! A worker has it for each task it takes ([`Runner`]); a playbook that is run by hand has the same.

pub mod folder;

use crate::playbook::right;
use crate::session::{AGENT, hostname, meter};
use crate::thread::spawn_settings;
use crate::{FaultKind, OpFault, OpResult, OperationContext};
use komado_agent::builtin::{Builtin, BuiltinConfig, beginning};
use komado_agent::handler::{self, TaskContext, TaskInstructions, TaskOrders, TaskOutcome, TaskWatch};
use komado_agent::mcp::{McpServer, McpServers, McpTransport};
use komado_agent::model_session::{ResolvedModelSession, of};
use komado_agent::playbook::Playbook;
use komado_agent::progress::TaskProgress;
use komado_agent::sandbox::Confinement;
use komado_agent::source::{self, NoSource, TaskSource, TrackerConfig};
use komado_agent::task::Task;
use komado_agent::tools::ToolSet;
use komado_agent::worker;
use komado_config::regular;
use komado_core::Meter;
use komado_core::session::MetaConfig;
use komado_engine::model::{ModelChoice, ResolvedModel};
use komado_provider::{Cancel, Client};
use komado_store::TakenJob;
use std::ffi::OsString;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

/// A resolved model as work on a task asks it.
pub fn mind<'a>(
    context: &'a OperationContext,
    model: &'a ResolvedModel,
    choice: ModelChoice,
) -> ResolvedModelSession<'a> {
    let spawn = |own: &MetaConfig, window| {
        spawn_settings(context, own, window).map_err(of("the settings of child threads"))
    };
    ResolvedModelSession::new(context.models(), model, choice, Box::new(spawn))
}

/// A tracker of the settings; `cancel` breaks off what is asked of it.
pub fn open_tracker(
    context: &OperationContext,
    tracker: &TrackerConfig,
    cancel: &Cancel,
) -> OpResult<Box<dyn TaskSource>> {
    let client = Client::new(context.config.models.patience(tracker.kind.name()))
        .map_err(|why| OpFault::failed(why.to_string()))?;
    Ok(source::open(tracker.clone(), client, cancel.clone()).map_err(komado_agent::Error::from)?)
}

/// The tracker that a task came from, which is told how it ends.
pub fn source_of(context: &OperationContext, task: &Task, cancel: &Cancel) -> OpResult<Box<dyn TaskSource>> {
    let mut trackers = context.config.agent.trackers.iter();
    match trackers.find(|tracker| tracker.kind.name() == task.key.task_source) {
        Some(tracker) => open_tracker(context, tracker, cancel),
        None => Ok(Box::new(NoSource)),
    }
}

/// Hears what happens.
pub type TaskObserver<'a> = &'a (dyn Fn(TaskProgress) + Sync);

/// Works on jobs, as the settings say.
pub struct Runner {
    /// Settings and store.
    pub context: OperationContext,
    /// What was chosen of the model.
    pub choice: ModelChoice,
    /// Hears which meter counts, before it does.
    pub counting: fn(Meter),
}

/// What a task is worked on with.
struct Ready {
    model: ResolvedModel,
    config: MetaConfig,
    brief: TaskInstructions,
    folder: PathBuf,
    playbook: Playbook,
    tools: ToolSet,
}

impl Runner {
    /// Where orders are given to a task, with the grace of the settings.
    pub fn orders(&self) -> TaskOrders {
        TaskOrders::new(self.context.config.agent.pace.grace)
    }

    /// Works on a job and ends it in the queue.
    pub fn run(&self, taken: &TakenJob, orders: &TaskOrders, tell: TaskObserver<'_>) -> OpResult {
        self.attend(taken, orders, tell, |vigil, kit| self.work(vigil, kit))
    }

    /// Gives a job up whose processes all died, and says so where people wait for it. Nothing of what the task works with is
    /// touched. Where it cannot even be told, `tell` hears why.
    pub fn give_up(&self, taken: &TakenJob, why: &str, tell: TaskObserver<'_>) {
        let orders = self.orders();
        let taken = TakenJob { why: Some(why.to_owned()), ..taken.clone() };
        let given_up = self.attend(&taken, &orders, tell, |_, kit| {
            self.over(kit).unwrap_or_else(|| TaskOutcome::Again(why.to_owned()))
        });
        if let Err(fault) = given_up {
            tell(TaskProgress::Trouble { why: fault.message().to_owned() });
        }
    }

    /// Has something done to a task while its job is kept, from the first moment on: a server that is slow to start must
    /// not make others take it for forgotten.
    fn attend(
        &self,
        taken: &TakenJob,
        orders: &TaskOrders,
        tell: TaskObserver<'_>,
        act: impl FnOnce(&TaskWatch<'_>, &mut TaskContext<'_>) -> TaskOutcome,
    ) -> OpResult {
        let task: Task = serde_json::from_str(&taken.job.body).map_err(|why| {
            OpFault::input(format!("the job of {} is not a task: {why}", taken.job.session))
        })?;
        let source = Mutex::new(source_of(&self.context, &task, orders.cancel())?);
        let pace = &self.context.config.agent.pace;
        let vigil = TaskWatch {
            engine: &self.context.engine,
            taken,
            task: &task,
            source: &source,
            hidden: pace.hidden,
            poll: pace.poll,
            orders,
            tell,
        };
        let (mut none, built_in) = (ToolSet::default(), Playbook::built_in());
        let mut kit = self.empty_kit(&vigil, &mut none, &built_in);
        worker::attend(&vigil, pace, || act(&vigil, &mut kit))?;
        Ok(())
    }

    /// With nothing in it but what is needed to end a task.
    fn empty_kit<'k>(
        &self,
        vigil: &TaskWatch<'k>,
        tools: &'k mut ToolSet,
        playbook: &'k Playbook,
    ) -> TaskContext<'k> {
        let TaskWatch { taken, task, source, orders, tell, .. } = *vigil;
        let config = &self.context.config;
        let pace = &config.agent.pace;
        TaskContext {
            task,
            session: &taken.job.session,
            config: MetaConfig { meter: config.meter.clone(), ..MetaConfig::default() },
            host: hostname(),
            brief: TaskInstructions::default(),
            folder: None,
            playbook,
            tools,
            source,
            limits: config.agent.limits,
            tries: (taken.tries, pace.tries),
            why: taken.why.clone(),
            patience: pace.hidden,
            orders,
            tell,
        }
    }

    fn work(&self, vigil: &TaskWatch<'_>, kit: &mut TaskContext<'_>) -> TaskOutcome {
        let TaskWatch { engine, taken, task, orders, .. } = *vigil;
        if let Some(verdict) = self.over(kit) {
            return verdict;
        }
        let mut ready = match self.ready(task, taken, orders.cancel()) {
            Ok(ready) => ready,
            // What the task or the settings name is not there, and will not be next time either.
            Err(why) if matches!(why.exit(), FaultKind::BadInput | FaultKind::NotFound) => {
                return handler::give_up(engine, kit, why.message());
            }
            Err(why) => return handler::unable(engine, kit, why.message()),
        };
        let mut mind = mind(&self.context, &ready.model, self.choice.clone());
        let mut kit = TaskContext {
            config: ready.config,
            brief: ready.brief,
            folder: Some(ready.folder),
            playbook: &ready.playbook,
            tools: &mut ready.tools,
            host: kit.host.clone(),
            why: kit.why.clone(),
            ..*kit
        };
        handler::work(&mut mind, &mut kit)
    }

    /// What is left to do for a task that has ended, or that was tried too often; `None` when it is to be worked on.
    fn over(&self, kit: &mut TaskContext<'_>) -> Option<TaskOutcome> {
        let engine = &self.context.engine;
        handler::told(engine, kit).or_else(|| handler::tried_out(engine, kit))
    }

    fn ready(&self, task: &Task, taken: &TakenJob, cancel: &Cancel) -> OpResult<Ready> {
        let (context, session) = (&self.context, &taken.job.session);
        // What the session was made with, when it is there: the model that worked on it before is asked again.
        let own = context.engine.session(session).map(|session| session.meta.config).unwrap_or_default();
        let model = context.models().of(session).resolve(&own, &self.choice)?;
        let folder = folder::of(context, task, session, cancel)?;
        let mut config = model.config();
        let named = config.model.as_deref().filter(|_| !model.is_scripted());
        let meter = meter(context, None, named)?;
        config.meter = meter.name().to_owned();
        (self.counting)(meter);
        config.compression_threshold = Some(context.config.compression_threshold);
        config.agent = Some(AGENT.to_owned());
        config.project = folder.to_str().map(str::to_owned);
        let named = task.playbook.as_ref().or(context.config.agent.playbook.as_ref());
        Ok(Ready {
            config,
            brief: brief(context, &folder)?,
            // Its session has a say in how deep its threads may nest: it is asked when the course begins.
            playbook: right(named.map(PathBuf::as_path), u32::MAX)?,
            tools: tools(context, &folder, cancel)?,
            folder,
            model,
        })
    }
}

/// The file with rules that is looked for in a working folder.
const RULES: &str = "AGENTS.md";
/// Most bytes of a rules file that are read; how much of it is told is bounded, too.
const MOST_RULES: u64 = 1 << 20;

/// The tools of the settings in a folder: the built-in ones, and those of the MCP servers.
pub fn tools(context: &OperationContext, folder: &Path, cancel: &Cancel) -> OpResult<ToolSet> {
    let wishes = &context.config.agent.tools;
    // A command starts in its folder: from there, a path that is not absolute would be another one.
    let sessions = std::path::absolute(&context.config.base_dir)?;
    folder::check_named(context, folder)?;
    let confinement = Confinement {
        launcher: launcher()?,
        sandbox: wishes.sandbox,
        network: wishes.network.clone(),
        limits: wishes.limits,
        hide: vec![sessions],
    };
    let workshop = BuiltinConfig {
        folder: folder.to_owned(),
        enabled: wishes.enabled.clone(),
        allow: wishes.allow.clone(),
        timeout: wishes.timeout,
        most_output: wishes.most_output,
        confinement: confinement.clone(),
    };
    let builtin = Builtin::new(workshop).map_err(komado_agent::Error::from)?;
    let servers: Vec<McpServer> =
        context.config.agent.servers.iter().map(|server| at_work(server, folder, &confinement)).collect();
    let servers = McpServers::open(&servers, cancel).map_err(komado_agent::Error::from)?;
    Ok(ToolSet::default().with(builtin).with(servers))
}

/// What starts this program again so that it confines a command: its verb `confine`.
pub fn launcher() -> std::io::Result<Vec<OsString>> {
    Ok(vec![std::env::current_exe()?.into(), "confine".into()])
}

/// A server that works with a task: in its folder, and confined by the same program as commands.
fn at_work(server: &McpServer, folder: &Path, of_commands: &Confinement) -> McpServer {
    let mut server = server.clone();
    if let McpTransport::Command { work, confinement, .. } = &mut server.how {
        *work = Some(folder.to_owned());
        let Confinement { sandbox, network, .. } = confinement.clone();
        *confinement = Confinement { sandbox, network, ..of_commands.clone() };
    }
    server
}

/// What stands before the conversation: the words of the settings, and the rules of the folder.
pub fn brief(context: &OperationContext, folder: &Path) -> OpResult<TaskInstructions> {
    let wishes = &context.config.agent;
    let rules = match &wishes.rules_file {
        Some(path) => Some((path.display().to_string(), read(path, MOST_RULES).map_err(rules_file)?)),
        // The folder's own file is a stranger's: one that leads elsewhere, or is not a file, is not read.
        None => beginning(folder, RULES, MOST_RULES)
            .unwrap_or_else(|why| {
                tracing::warn!("the rules of {} are not taken: {why}", folder.display());
                None
            })
            .map(|text| (RULES.to_owned(), text)),
    };
    Ok(TaskInstructions { system: wishes.system_prompt.clone(), rules })
}

fn rules_file(why: OpFault) -> OpFault {
    OpFault::input(format!("agent.rules_file: {}", why.message()))
}

/// The beginning of a file.
fn read(path: &Path, most: u64) -> OpResult<String> {
    let name = path.display();
    let mut bytes = Vec::new();
    // A folder from elsewhere may have a pipe there, which would be waited for.
    regular::open(path)
        .and_then(|file| file.take(most).read_to_end(&mut bytes))
        .map_err(|why| OpFault::input(format!("{name}: {why}")))?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
mod tests {
    use super::{RULES, read};

    #[test]
    fn rules_that_are_a_pipe_are_not_waited_for() {
        let folder = tempfile::tempdir().unwrap();
        let rules = folder.path().join(RULES);
        assert!(std::process::Command::new("mkfifo").arg(&rules).status().unwrap().success());
        assert!(read(&rules, 10).unwrap_err().message().contains("not a regular file"));
    }
}
