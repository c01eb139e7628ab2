//! One job with everything it needs from the settings: model, tools, source, playbook, folder.

use super::{brief, folder, mind, source_of, tools};
use crate::playbook::right;
use crate::session::{hostname, meter};
use crate::{Context, Exit, Fault, Outcome};
use komado_agent::handler::{self, Brief, Kit, Orders, Verdict, Vigil};
use komado_agent::playbook::Playbook;
use komado_agent::progress::Progress;
use komado_agent::task::Task;
use komado_agent::tools::Toolbox;
use komado_agent::worker;
use komado_core::Meter;
use komado_core::session::MetaConfig;
use komado_engine::model::{ModelChoice, ResolvedModel};
use komado_provider::Cancel;
use komado_store::Taken;
use std::path::PathBuf;
use std::sync::Mutex;

/// Hears what happens.
pub type Tell<'a> = &'a (dyn Fn(Progress) + Sync);

/// Works on jobs, as the settings say.
pub struct Runner {
    /// Settings and store.
    pub context: Context,
    /// What was chosen of the model.
    pub choice: ModelChoice,
    /// Hears which meter counts, before it does.
    pub counting: fn(Meter),
}

/// What a task is worked on with.
struct Ready {
    model: ResolvedModel,
    config: MetaConfig,
    brief: Brief,
    folder: PathBuf,
    playbook: Playbook,
    tools: Toolbox,
}

impl Runner {
    /// Where orders are given to a task, with the grace of the settings.
    pub fn orders(&self) -> Orders {
        Orders::new(self.context.config.agent.pace.grace)
    }

    /// Works on a job and ends it in the queue.
    pub fn run(&self, taken: &Taken, orders: &Orders, tell: Tell<'_>) -> Outcome {
        self.attend(taken, orders, tell, |vigil, kit| self.work(vigil, kit))
    }

    /// Gives a job up whose processes all died, and says so where people wait for it. Nothing of what the task works with is
    /// touched. Where it cannot even be told, `tell` hears why.
    pub fn give_up(&self, taken: &Taken, why: &str, tell: Tell<'_>) {
        let orders = self.orders();
        let taken = Taken { why: Some(why.to_owned()), ..taken.clone() };
        let given_up = self.attend(&taken, &orders, tell, |_, kit| {
            self.over(kit).unwrap_or_else(|| Verdict::Again(why.to_owned()))
        });
        if let Err(fault) = given_up {
            tell(Progress::Trouble { why: fault.message().to_owned() });
        }
    }

    /// Has something done to a task while its job is kept, from the first moment on: a server that is slow to start must
    /// not make others take it for forgotten.
    fn attend(
        &self,
        taken: &Taken,
        orders: &Orders,
        tell: Tell<'_>,
        act: impl FnOnce(&Vigil<'_>, &mut Kit<'_>) -> Verdict,
    ) -> Outcome {
        let task: Task = serde_json::from_str(&taken.job.body)
            .map_err(|why| Fault::input(format!("the job of {} is no task: {why}", taken.job.session)))?;
        let source = Mutex::new(source_of(&self.context, &task, orders.cancel())?);
        let pace = &self.context.config.agent.pace;
        let vigil = Vigil {
            engine: &self.context.engine,
            taken,
            task: &task,
            source: &source,
            hidden: pace.hidden,
            poll: pace.poll,
            orders,
            tell,
        };
        let (mut none, built_in) = (Toolbox::default(), Playbook::built_in());
        let mut kit = self.empty_kit(&vigil, &mut none, &built_in);
        worker::attend(&vigil, pace, || act(&vigil, &mut kit))?;
        Ok(())
    }

    /// With nothing in it but what is needed to end a task.
    fn empty_kit<'k>(&self, vigil: &Vigil<'k>, tools: &'k mut Toolbox, playbook: &'k Playbook) -> Kit<'k> {
        let Vigil { taken, task, source, orders, tell, .. } = *vigil;
        let config = &self.context.config;
        let pace = &config.agent.pace;
        Kit {
            task,
            session: &taken.job.session,
            config: MetaConfig { meter: config.meter.clone(), ..MetaConfig::default() },
            host: hostname(),
            brief: Brief::default(),
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

    fn work(&self, vigil: &Vigil<'_>, kit: &mut Kit<'_>) -> Verdict {
        let Vigil { engine, taken, task, orders, .. } = *vigil;
        if let Some(verdict) = self.over(kit) {
            return verdict;
        }
        let mut ready = match self.ready(task, taken, orders.cancel()) {
            Ok(ready) => ready,
            // What the task or the settings name is not there, and will not be next time either.
            Err(why) if matches!(why.exit(), Exit::BadInput | Exit::NotFound) => {
                return handler::give_up(engine, kit, why.message());
            }
            Err(why) => return handler::unable(engine, kit, why.message()),
        };
        let mut mind = mind(&self.context, &ready.model, self.choice.clone());
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
    fn over(&self, kit: &mut Kit<'_>) -> Option<Verdict> {
        let engine = &self.context.engine;
        handler::told(engine, kit).or_else(|| handler::tried_out(engine, kit))
    }

    fn ready(&self, task: &Task, taken: &Taken, cancel: &Cancel) -> Outcome<Ready> {
        let (context, session) = (&self.context, &taken.job.session);
        // What the session was made with, when it is there: the model that worked on it before is asked again.
        let own = context.engine.session(session).map(|session| session.meta.config).unwrap_or_default();
        let model = context.models().resolve(&own, &self.choice)?;
        let folder = folder::of(context, task, session, cancel)?;
        let mut config = model.config();
        let named = config.model.as_deref().filter(|_| !model.is_scripted());
        let meter = meter(context, None, named)?;
        config.meter = meter.name().to_owned();
        (self.counting)(meter);
        config.compression_threshold = Some(context.config.compression_threshold);
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
