//! The process of one task: its job comes on standard input, its progress goes to standard output, a line of JSON each.
//!
//! The end of the input means that the worker is gone or wants the task to rest; so does a signal. A second signal ends
//! what is under way at once.

use super::{errand, signals};
use crate::app::App;
use crate::fault::{Exit, Fault, Outcome};
use crate::server::log::{self, Lines};
use komado_agent::handler::Orders;
use komado_agent::progress::{Order, Progress};
use komado_agent::worker::read_taken;
use komado_engine::model::ModelChoice;
use std::io::{BufRead, Read, Write};
use std::sync::Arc;
use std::time::Duration;

/// Most bytes of a job.
const MOST: u64 = 64 << 20;
/// How long after its step was ended a task may take to come to rest.
const STUCK: Duration = Duration::from_secs(30);
/// The variable that says how much is logged.
const LOG: &str = "KOMADO_LOG";

pub(super) fn run(app: &App, choice: ModelChoice) -> Outcome {
    let level = std::env::var(LOG).unwrap_or_else(|_| "warn,rmcp=off".to_owned());
    log::begin(Some(&level), Lines::Text, None)?;
    let mut line = String::new();
    std::io::stdin().lock().take(MOST).read_line(&mut line)?;
    let taken = read_taken(&line).map_err(|why| {
        Fault::input(format!("standard input holds no job ({why}); `komado work` starts this, not you"))
    })?;
    let orders = Arc::new(Orders::new(app.context.config.agent.pace.grace));
    leave_at_the_end_of_input(&orders)?;
    leave_on_signals(&orders)?;
    end_when_stuck(&orders)?;
    errand::run(app, &choice, &taken, &orders, &print)
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

/// A task that hangs in something that cannot be broken off must not keep its worker from the next one. What it started
/// ends with this process, and a task whose job is still there is tried again.
fn end_when_stuck(orders: &Arc<Orders>) -> Outcome {
    let orders = Arc::clone(orders);
    let thread = std::thread::Builder::new().name("komado-stuck".into());
    thread.spawn(move || {
        if orders.is_stuck(STUCK) {
            tracing::error!(
                "the task does not come to rest {} s after it was told to: its process ends",
                STUCK.as_secs()
            );
            std::process::exit(Exit::Failed as i32);
        }
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
