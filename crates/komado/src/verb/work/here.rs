//! Tasks on threads of the worker's own process: less to start, and one that brings the process down brings all down.

use super::errand;
use crate::app::App;
use komado_agent::handler::Orders;
use komado_agent::progress::{Order, Progress};
use komado_agent::worker::{Exit, Launch, Leash};
use komado_engine::model::ModelChoice;
use komado_store::Taken;
use std::sync::Arc;

pub(super) struct Here {
    app: Arc<App>,
    choice: ModelChoice,
}

impl Here {
    pub(super) fn new(app: &App, choice: ModelChoice) -> Self {
        Self { app: app.shared(), choice }
    }
}

impl Launch for Here {
    fn run(&self, taken: &Taken, leash: &Leash, tell: &(dyn Fn(Progress) + Sync)) -> Exit {
        let orders = Arc::new(Orders::new(self.app.context.config.agent.pace.grace));
        let (rest, end) = (Arc::clone(&orders), Arc::clone(&orders));
        leash.tie(move || rest.give(Order::Leave("its worker ends".into())), move || end.hurry());
        let ran = errand::run(&self.app, &self.choice, taken, &orders, tell);
        leash.untie();
        match ran {
            Ok(()) => Exit::Finished,
            Err(fault) => Exit::Died(fault.message().to_owned()),
        }
    }

    fn give_up(&self, taken: &Taken, why: &str, tell: &(dyn Fn(Progress) + Sync)) {
        errand::give_up(&self.app, taken, why, tell);
    }
}
