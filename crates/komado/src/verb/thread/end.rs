//! `komado thread end`: end a child thread well, and tell its parent what was done.

use super::{child, ended};
use crate::app::App;
use crate::connect::ModelArgs;
use crate::fault::{Fault, Outcome};
use clap::Args as ClapArgs;
use komado_core::Address;
use komado_core::journal::Ending;
use komado_core::thread::Status;
use komado_engine::engine::Found;
use komado_engine::model::ModelChoice;
use komado_engine::stelis::{Finish, Finished, Telling};
use komado_provider::Cancel;
use komado_store::Mode;

#[derive(ClapArgs, Debug)]
pub(crate) struct Args {
    /// The thread, SESSION/THREAD
    pub(crate) address: Address,
    /// Its result, for people
    pub(crate) result: Option<String>,
    #[command(flatten)]
    pub(crate) teller: Teller,
}

/// Who tells what was done.
#[derive(ClapArgs, Clone, Debug, Default)]
pub(crate) struct Teller {
    /// Write no chronicle
    #[arg(long, conflicts_with_all = ["chronicle", "by"])]
    pub(crate) no_chronicle: bool,
    /// The chronicle itself
    #[arg(long, value_name = "TEXT", conflicts_with = "by")]
    pub(crate) chronicle: Option<String>,
    /// Who writes it: model, digest, or as the settings of compaction say when left out
    #[arg(long, value_parser = ["model", "digest"])]
    pub(crate) by: Option<String>,
    #[command(flatten)]
    pub(crate) model: ModelArgs,
}

pub(crate) fn run(app: &mut App, args: Args) -> Outcome {
    let found = child(app, &args.address)?;
    let finished = args.teller.tell(app, &found, |app, telling| {
        let finish = Finish { ending: Ending::Completed, result: args.result, telling };
        Ok(app.context.engine.finish_child(&found.session, &found.thread, finish)?)
    })?;
    ended::tell(app, &found, Status::Completed, &finished)
}

impl Teller {
    /// Hands `op` whoever tells.
    pub(super) fn tell<T>(
        self,
        app: &App,
        found: &Found,
        op: impl FnOnce(&App, Telling<'_>) -> Outcome<T>,
    ) -> Outcome<T> {
        if self.no_chronicle {
            return op(app, Telling::Nothing);
        }
        if let Some(text) = self.chronicle {
            if text.trim().is_empty() {
                return Err(Fault::usage("--chronicle takes what was done, not an empty text"));
            }
            return op(app, Telling::Words(text));
        }
        let by_model = self.by.as_deref() == Some("model");
        if self.by.as_deref() == Some("digest")
            || (!by_model && !app.context.config.models.summaries.has_writer())
        {
            return op(app, Telling::Digest);
        }
        let meter = app.context.engine.open(&found.session, &found.thread, Mode::Read)?.meter();
        let (choice, cancel) = (ModelChoice::from(self.model), Cancel::default());
        let mut writer = match by_model {
            true => app.models().model_summariser(&found.session, meter, &choice, None, &cancel)?,
            false => app.models().summariser(&found.session, meter, &choice, None, &cancel)?,
        };
        op(
            app,
            Telling::By { by: writer.by(), settings: app.context.config.models.summaries.settings.clone() },
        )
    }
}

/// Breaks a thread off, with what can be told without a model.
pub(super) fn abort(app: &App, found: &Found, why: Option<String>) -> Outcome<Finished> {
    Ok(app.context.engine.finish_child(&found.session, &found.thread, Finish::aborted(why))?)
}
