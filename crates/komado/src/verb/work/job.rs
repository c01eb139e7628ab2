//! The process of one task: its job comes on standard input, its progress goes to standard output, a line of JSON each.
//!
//! The end of the input means that the worker is gone or wants the task to rest; so does a signal. A second signal ends
//! what is under way at once.

use super::{errand, signals};
use crate::app::App;
use crate::connect::Wishes;
use crate::fault::{Fault, Outcome};
use crate::server::log::{self, Lines};
use komado_agent::handler::Orders;
use komado_agent::progress::{Order, Progress};
use komado_agent::worker::read_taken;
use std::io::{BufRead, Read, Write};
use std::sync::Arc;

/// Most bytes of a job.
const MOST: u64 = 64 << 20;
/// The variable that says how much is logged.
const LOG: &str = "KOMADO_LOG";

pub(super) fn run(app: &App, wishes: Wishes) -> Outcome {
    let level = std::env::var(LOG).unwrap_or_else(|_| "warn,rmcp=off".to_owned());
    log::begin(Some(&level), Lines::Text, None)?;
    let mut line = String::new();
    std::io::stdin().lock().take(MOST).read_line(&mut line)?;
    let taken = read_taken(&line).map_err(|why| {
        Fault::input(format!("standard input holds no job ({why}); `komado work` starts this, not you"))
    })?;
    let orders = Arc::new(Orders::new(app.config.agent.work.grace));
    leave_at_the_end_of_input(&orders)?;
    leave_on_signals(&orders)?;
    errand::run(app, &wishes, &taken, &orders, &print)
}

/// A worker that is gone hears nothing; the task goes on to where it can rest.
fn print(progress: Progress) {
    if let Ok(line) = serde_json::to_string(&progress) {
        let _ = writeln!(std::io::stdout(), "{line}");
    }
}

fn leave_at_the_end_of_input(orders: &Arc<Orders>) -> Outcome {
    let orders = Arc::clone(orders);
    let thread = std::thread::Builder::new().name("komado-leash".into());
    thread.spawn(move || {
        let _ = std::io::copy(&mut std::io::stdin().lock(), &mut std::io::sink());
        orders.give(Order::Leave("its worker ends".into()));
    })?;
    Ok(())
}

fn leave_on_signals(orders: &Arc<Orders>) -> Outcome {
    let orders = Arc::clone(orders);
    signals::each(move || match orders.now() {
        None => orders.give(Order::Leave("its process was asked to end".into())),
        Some(_) => orders.hurry(),
    })
}
