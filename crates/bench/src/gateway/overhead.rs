//! The way through, beside the direct one: the same requests, in turns, to the same server.

use super::Args;
use super::caller::{LoadClient, client};
use super::servers::GatewayServer;
use crate::context::BenchEngine;
use crate::dice::Dice;
use crate::error::{Error, Result};
use crate::words::BenchWords;
use std::path::Path;

/// Bytes of the transcripts that are sent.
const SIZES: [usize; 3] = [4 << 10, 64 << 10, 1 << 20];

/// One way.
pub(super) struct GatewayRoute {
    pub(super) name: &'static str,
    /// Milliseconds of each request, to the last byte, in order of size.
    pub(super) took: Vec<f64>,
}

/// All ways for requests of one size.
pub(super) struct Overhead {
    pub(super) bytes: usize,
    pub(super) ways: Vec<GatewayRoute>,
}

pub(super) fn measure(komado: &BenchEngine, folder: &Path, args: &Args) -> Result<Vec<Overhead>> {
    let model = GatewayServer::model(komado, None)?;
    let gateway = GatewayServer::gateway(komado, &folder.join("overhead"), &model.url)?;
    let peer = args
        .litellm
        .as_deref()
        .map(|program| GatewayServer::litellm(program, folder, &model.url))
        .transpose()?;
    let mut ways = vec![("direct", model.url.as_str()), ("komado", gateway.url.as_str())];
    ways.extend(peer.iter().map(|peer| ("litellm", peer.url.as_str())));
    SIZES.iter().map(|bytes| of_size(*bytes, &ways, args.requests)).collect()
}

/// A conversation that is `bytes` long and grows a little with each request, each way in turn.
fn of_size(bytes: usize, ways: &[(&'static str, &str)], requests: u32) -> Result<Overhead> {
    let client = client()?;
    let mut dice = Dice::new(bytes as u64);
    let words = BenchWords::new();
    let mut callers: Vec<LoadClient> =
        ways.iter().map(|(_, url)| LoadClient::new(&client, url, None)).collect();
    let mut filled = 0;
    while filled < bytes {
        let text = words.text(&mut dice, 2 << 10);
        filled += text.len();
        callers.iter_mut().for_each(|caller| {
            caller.say("user", &text);
            caller.say("assistant", "ok");
        });
    }
    let mut took: Vec<Vec<f64>> = vec![Vec::new(); ways.len()];
    // Large requests are the same for longer: fewer of them say as much.
    let rounds = if bytes >= 1 << 20 { requests / 4 } else { requests };
    for n in 0..rounds + WARM {
        for (i, caller) in callers.iter_mut().enumerate() {
            caller.say("user", &format!("question {n}"));
            let answer = caller.ask()?;
            if answer.status != 200 || answer.fault.is_some() {
                let why = answer.fault.unwrap_or(answer.text);
                return Err(Error::failed(format!("{} failed: {why}", ways[i].0)));
            }
            if n >= WARM {
                took[i].push(answer.whole.as_secs_f64() * 1e3);
            }
            caller.say("assistant", &answer.text);
        }
    }
    let ways = ways.iter().zip(took).map(|((name, _), mut took)| {
        took.sort_by(f64::total_cmp);
        GatewayRoute { name, took }
    });
    Ok(Overhead { bytes, ways: ways.collect() })
}

/// Requests before it counts: connections, first pages, a proxy's caches.
const WARM: u32 = 10;

impl GatewayRoute {
    /// The value below which a share of all requests stayed.
    pub(super) fn at(&self, share: f64) -> f64 {
        let last = self.took.len().saturating_sub(1);
        self.took.get((last as f64 * share).round() as usize).copied().unwrap_or(0.0)
    }
}
