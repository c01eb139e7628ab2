//! One job with everything it needs from the settings: model, tools, source, playbook, folder.

use super::pace;
use crate::app::{App, hostname};
use crate::fault::{Exit, Fault, Outcome};
use crate::kit::{brief, folder, tools};
use crate::thrift;
use crate::verb::playbook::right;
use crate::verb::task::fault;
use komado_agent::handler::{self, Brief, Kit, Orders, Verdict, Vigil};
use komado_agent::mind::of;
use komado_agent::playbook::Playbook;
use komado_agent::progress::Progress;
use komado_agent::source::{self, Nobody, Source};
use komado_agent::task::Task;
use komado_agent::tools::Toolbox;
use komado_agent::worker::{self, Pace};
use komado_core::session::MetaConfig;
use komado_engine::model::{ModelChoice, ResolvedModel};
use komado_ops::thread::spawn_settings;
use komado_provider::{Cancel, Client};
use komado_store::Taken;
use std::path::PathBuf;
use std::sync::Mutex;

type Tell<'a> = &'a (dyn Fn(Progress) + Sync);

/// What a task is worked on with.
struct Ready {
    model: ResolvedModel,
    config: MetaConfig,
    brief: Brief,
    folder: PathBuf,
    playbook: Playbook,
    tools: Toolbox,
}

/// Works on a job and ends it in the queue.
pub(super) fn run(
    app: &App,
    choice: &ModelChoice,
    taken: &Taken,
    orders: &Orders,
    tell: Tell<'_>,
) -> Outcome {
    attend(app, taken, orders, tell, |vigil, kit| work(app, choice, vigil, kit))
}

/// Gives a job up whose processes all died, and says so where people wait for it. Nothing of what the task works with is
/// touched. Where it cannot even be told, the worker's own lines say why.
pub(super) fn give_up(app: &App, taken: &Taken, why: &str, tell: Tell<'_>) {
    let orders = Orders::new(app.context.config.agent.pace.grace);
    let taken = Taken { why: Some(why.to_owned()), ..taken.clone() };
    let given_up = attend(app, &taken, &orders, tell, |_, kit| {
        over(app, kit).unwrap_or_else(|| Verdict::Again(why.to_owned()))
    });
    if let Err(fault) = given_up {
        tell(Progress::Trouble { why: fault.message().to_owned() });
    }
}

/// Has something done to a task while its job is kept, from the first moment on: a server that is slow to start must not
/// make others take it for forgotten.
fn attend(
    app: &App,
    taken: &Taken,
    orders: &Orders,
    tell: Tell<'_>,
    act: impl FnOnce(&Vigil<'_>, &mut Kit<'_>) -> Verdict,
) -> Outcome {
    let task: Task = serde_json::from_str(&taken.job.body)
        .map_err(|why| Fault::input(format!("the job of {} is no task: {why}", taken.job.session)))?;
    let source = Mutex::new(source_of(app, &task, orders.cancel())?);
    let pace = pace(app);
    let vigil = Vigil {
        engine: &app.context.engine,
        taken,
        task: &task,
        source: &source,
        hidden: pace.hidden,
        poll: pace.poll,
        orders,
        tell,
    };
    let (mut none, built_in) = (Toolbox::default(), Playbook::built_in());
    let mut kit = empty_kit(app, &vigil, &pace, &mut none, &built_in);
    worker::attend(&vigil, &pace, || act(&vigil, &mut kit)).map_err(fault)?;
    Ok(())
}

/// With nothing in it but what is needed to end a task.
fn empty_kit<'k>(
    app: &App,
    vigil: &Vigil<'k>,
    pace: &Pace,
    tools: &'k mut Toolbox,
    playbook: &'k Playbook,
) -> Kit<'k> {
    let Vigil { taken, task, source, orders, tell, .. } = *vigil;
    Kit {
        task,
        session: &taken.job.session,
        config: MetaConfig { meter: app.context.config.meter.clone(), ..MetaConfig::default() },
        host: hostname(),
        brief: Brief::default(),
        folder: None,
        playbook,
        tools,
        source,
        limits: app.context.config.agent.limits,
        tries: (taken.tries, pace.tries),
        why: taken.why.clone(),
        patience: pace.hidden,
        orders,
        tell,
    }
}

fn work(app: &App, choice: &ModelChoice, vigil: &Vigil<'_>, kit: &mut Kit<'_>) -> Verdict {
    let Vigil { taken, task, orders, .. } = *vigil;
    if let Some(verdict) = over(app, kit) {
        return verdict;
    }
    let mut ready = match ready(app, choice, task, taken, orders.cancel()) {
        Ok(ready) => ready,
        // What the task or the settings name is not there, and will not be next time either.
        Err(why) if matches!(why.exit(), Exit::BadInput | Exit::NotFound) => {
            return handler::give_up(&app.context.engine, kit, why.message());
        }
        Err(why) => return handler::unable(&app.context.engine, kit, why.message()),
    };
    let spawn = |own: &_, window| {
        spawn_settings(&app.context, own, window).map_err(of("the settings of child threads"))
    };
    let mut mind = app.mind(&ready.model, choice.clone(), &spawn);
    let mut kit = Kit {
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
fn over(app: &App, kit: &mut Kit<'_>) -> Option<Verdict> {
    handler::told(&app.context.engine, kit).or_else(|| handler::tried_out(&app.context.engine, kit))
}

fn ready(app: &App, choice: &ModelChoice, task: &Task, taken: &Taken, cancel: &Cancel) -> Outcome<Ready> {
    let model = app.models().resolve(&own(app, taken), choice)?;
    let folder = folder::of(app, task, &taken.job.session, cancel)?;
    let mut config = model.config();
    let named = config.model.as_deref().filter(|_| !model.is_scripted());
    let meter = komado_ops::session::meter(app, None, named)?;
    config.meter = meter.name().to_owned();
    thrift::unpack(meter);
    config.compression_threshold = Some(app.context.config.compression_threshold);
    Ok(Ready {
        config,
        brief: brief(app, &folder)?,
        playbook: playbook(app, task)?,
        tools: tools(app, &folder, cancel)?,
        folder,
        model,
    })
}

/// What the session was made with, when it is there: who worked on it before is asked again.
fn own(app: &App, taken: &Taken) -> MetaConfig {
    app.context.engine.session(&taken.job.session).map(|session| session.meta.config).unwrap_or_default()
}

/// Whoever brought the task, and hears how it ends; `cancel` breaks off what is asked of them.
pub(crate) fn source_of(app: &App, task: &Task, cancel: &Cancel) -> Outcome<Box<dyn Source>> {
    let trackers = &app.context.config.agent.trackers;
    let Some(tracker) = trackers.iter().find(|tracker| tracker.kind.name() == task.key.task_source) else {
        return Ok(Box::new(Nobody));
    };
    let client = Client::new(app.config.models.patience(tracker.kind.name()))
        .map_err(|why| Fault::new(Exit::Failed, why.to_string()))?;
    source::open(tracker.clone(), client, cancel.clone()).map_err(|why| fault(why.into()))
}

fn playbook(app: &App, task: &Task) -> Outcome<Playbook> {
    let named = task.playbook.as_ref().or(app.context.config.agent.playbook.as_ref());
    // Its session has a say in how deep its threads may nest: it is asked when the course begins.
    right(named.map(PathBuf::as_path), u32::MAX)
}
