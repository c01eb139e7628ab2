//! As many results as fit into a number of tokens, best first.
//!
//! A result is never cut in the middle of what it says to make it fit: it is told in fewer words, or left out for one
//! further down that fits.

use super::Found;
use komado_core::{Meter, ThreadId};

/// Below this nothing more fits.
const LEAST: u64 = 8;
/// Characters of a result that is told in fewer words.
const SHORT: usize = 80;

/// Those of `found` that fit into `budget` tokens as [`Found::line`] writes them.
pub(crate) fn pack(found: Vec<Found>, budget: u64, meter: Meter) -> Vec<Found> {
    let here = ThreadId::root();
    let mut left = budget;
    let mut packed = Vec::new();
    for mut one in found {
        if left < LEAST {
            break;
        }
        let mut cost = meter.text(&one.line(&here));
        if cost > left {
            one.around.clear();
            one.shorten(SHORT);
            cost = meter.text(&one.line(&here));
        }
        if cost <= left {
            left -= cost;
            packed.push(one);
        }
    }
    packed
}
