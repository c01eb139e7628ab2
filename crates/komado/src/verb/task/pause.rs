//! `komado task pause`: let a task rest.
//!
//! Whoever works on it sees its row at the next heartbeat and comes to rest; its job is laid aside until it is resumed.
//! One that was never begun gets its session now, at rest: whoever takes its job finds that and lays it aside.

use super::found::find;
use super::standing::Standing;
use super::{Named, refused, tell};
use crate::app::{App, hostname};
use crate::fault::Outcome;
use clap::Args as ClapArgs;
use komado_agent::handler::keep;
use komado_core::session::{Meta, MetaConfig, State};
use komado_engine::Error as Engine;
use komado_store::{Change, Error as Store};

#[derive(ClapArgs, Debug)]
pub(crate) struct Args {
    #[command(flatten)]
    named: Named,
}

pub(crate) fn run(app: &mut App, args: &Args) -> Outcome {
    let task = find(app, &args.named)?;
    let id = &task.session;
    let state = task.state();
    match (&task.row, state) {
        (_, "paused") => return Err(refused(id, "rests already")),
        (None, "dead") => {
            return Err(refused(
                id,
                format!("is laid aside already: `komado task retry {id}` tries it again"),
            ));
        }
        (None, _) => make(app, &task)?,
        (Some(row), _) if row.status.is_ended() => return Err(refused(id, format!("has ended: {state}"))),
        (Some(_), _) => {}
    }
    if task.is_held() || task.row.is_none() {
        let change = Change::State { to: State::Paused, at: app.context.engine.now(), why: None };
        app.context.engine.store().change(id, &change)?;
        let is_held = task.is_held();
        let (state, words) =
            if is_held { ("pausing", "comes to rest when its step is done") } else { ("paused", "rests") };
        return tell(app, id, state, words, Some("resume"));
    }
    if let Some(about) = task.task() {
        keep(&app.context.engine, id, &about).map_err(super::fault)?;
    }
    app.context.engine.pause(id, Some("somebody paused it".to_owned()))?;
    tell(app, id, "paused", "rests", Some("resume"))
}

/// Its session, made as whoever begins it would; the model is chosen by whoever does.
pub(super) fn make(app: &App, task: &Standing) -> Outcome {
    let Some(about) = task.for_tracker() else { return Ok(()) };
    let model =
        app.context.config.models.of(&app.context.config.models.provider).and_then(|of| of.model.clone());
    let meter = komado_ops::session::meter(app, None, model.as_deref())?.name().to_owned();
    let meta = Meta {
        uuid: task.session.to_string(),
        task_key: about.key,
        created_at: app.context.engine.now(),
        process_id: std::process::id(),
        hostname: hostname(),
        config: MetaConfig { meter, ..MetaConfig::default() },
        user: about.user,
        queued: true,
    };
    match app.context.engine.create(&meta) {
        // Whoever took it was quicker.
        Ok(_) | Err(Engine::Store(Store::SessionExists(_))) => Ok(()),
        Err(other) => Err(other.into()),
    }
}
