//! Tasks on threads of the worker's own process: less to start, and one that brings the process down brings all down.

use komado_agent::progress::{Order, Progress};
use komado_agent::worker::{Exit, Launch, Leash};
use komado_ops::work::Runner;
use komado_store::Taken;
use std::sync::Arc;

pub(super) struct Here(pub(super) Runner);

impl Launch for Here {
    fn run(&self, taken: &Taken, leash: &Leash, tell: &(dyn Fn(Progress) + Sync)) -> Exit {
        let orders = Arc::new(self.0.orders());
        let (rest, end) = (Arc::clone(&orders), Arc::clone(&orders));
        leash.tie(move || rest.give(Order::Leave("its worker ends".into())), move || end.hurry());
        let ran = self.0.run(taken, &orders, tell);
        leash.untie();
        match ran {
            Ok(()) => Exit::Finished,
            Err(fault) => Exit::Died(fault.message().to_owned()),
        }
    }

    fn give_up(&self, taken: &Taken, why: &str, tell: &(dyn Fn(Progress) + Sync)) {
        self.0.give_up(taken, why, tell);
    }
}
