//! One conversation that is asked the same again and again: its journal grows, its requests do not, and neither may the cost.

use super::Args;
use super::caller::{LoadClient, client};
use super::servers::GatewayServer;
use crate::context::BenchEngine;
use crate::costs::median;
use crate::dice::Dice;
use crate::error::{Error, Result};
use crate::words::BenchWords;
use std::path::Path;

/// The first and the last part of a long conversation.
pub(super) struct Growth {
    pub(super) requests: u32,
    /// Processor time of the gateway for each request in hundredths of a millisecond, at first and at last.
    pub(super) cpu: [f64; 2],
    /// Milliseconds of a request in the middle of the field, at first and at last.
    pub(super) wall: [f64; 2],
}

pub(super) fn measure(komado: &BenchEngine, folder: &Path, args: &Args) -> Result<Growth> {
    let model = GatewayServer::model(komado, None)?;
    let gateway = GatewayServer::gateway(komado, &folder.join("growth"), &model.url)?;
    let client = client()?;
    let mut caller = LoadClient::new(&client, &gateway.url, Some("growth"));
    let mut dice = Dice::new(7);
    let words = BenchWords::new();
    for _ in 0..8 {
        caller.say("user", &words.text(&mut dice, 2 << 10));
        caller.say("assistant", "ok");
    }
    caller.say("user", "and now?");
    let part = args.growth / 10;
    let first = ask(&caller, &gateway, part)?;
    ask(&caller, &gateway, args.growth - 2 * part)?;
    let last = ask(&caller, &gateway, part)?;
    Ok(Growth { requests: args.growth, cpu: [first.0, last.0], wall: [first.1, last.1] })
}

/// Asks `times` times; milliseconds of processor and wall for each.
fn ask(caller: &LoadClient, gateway: &GatewayServer, times: u32) -> Result<(f64, f64)> {
    let before = gateway.ticks();
    let mut wall = Vec::with_capacity(times as usize);
    for _ in 0..times {
        let answer = caller.ask()?;
        if answer.status != 200 || answer.fault.is_some() {
            return Err(Error::failed(answer.fault.unwrap_or(answer.text)));
        }
        wall.push(answer.whole.as_secs_f64() * 1e3);
    }
    Ok(((gateway.ticks() - before) as f64 * 10.0 / f64::from(times), median(&wall)))
}
